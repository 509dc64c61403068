//! The given command-line arguments by name.

use clap::ArgMatches;
use std::path::PathBuf;

/// The arguments of one verb.
#[derive(Clone, Copy)]
pub(super) struct VerbArguments<'a>(pub(super) &'a ArgMatches);

impl<'a> VerbArguments<'a> {
    /// The values of an argument; empty when it was not given and has no default.
    pub(super) fn values(self, name: &str) -> Vec<String> {
        let raw = self.0.try_get_raw(name).ok().flatten();
        raw.into_iter().flatten().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The value of an argument.
    pub(super) fn value(self, name: &str) -> Option<String> {
        self.values(name).into_iter().next()
    }

    /// The value of a required argument.
    pub(super) fn required_value(self, name: &str) -> String {
        self.value(name).unwrap_or_default()
    }

    /// Whether a flag was given.
    pub(super) fn has_flag(self, name: &str) -> bool {
        self.0.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
    }

    /// A number.
    pub(super) fn number(self, name: &str) -> Option<usize> {
        self.value(name).and_then(|word| word.parse().ok())
    }

    /// A file path.
    pub(super) fn file_path(self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from)
    }
}
