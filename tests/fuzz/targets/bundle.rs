//! Several files in one input: `=== PATH` begins each. An input without such a line is one file.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// Files of one input, the first of them the one to start with.
pub(crate) struct Bundle {
    pub(crate) files: Vec<(String, String)>,
}

impl Bundle {
    /// Takes an input apart; `name` is the path of the only file of an input that names none.
    pub(crate) fn parse(text: &str, name: &str) -> Self {
        if !text.starts_with("=== ") {
            return Self { files: vec![(name.to_owned(), text.to_owned())] };
        }
        let mut files: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            match (line.strip_prefix("=== "), files.last_mut()) {
                (Some(path), _) => {
                    // The user always names a path.
                    let path = if path.trim().is_empty() { "unnamed" } else { path.trim() };
                    files.push((path.to_owned(), String::new()));
                }
                (None, Some((_, content))) => content.push_str(line),
                (None, None) => {}
            }
        }
        Self { files }
    }

    /// Reads a file as the file system would.
    pub(crate) fn reader(&self) -> impl Fn(&Path) -> std::io::Result<String> {
        let files: BTreeMap<String, String> = self.files.iter().cloned().collect();
        move |path| {
            let found = path.to_str().and_then(|path| files.get(path));
            found.cloned().ok_or_else(|| Error::from(ErrorKind::NotFound))
        }
    }

    /// Lines of a file, of the longest where several have the path; `None` when there is no such file.
    pub(crate) fn line_count(&self, path: &str) -> Option<usize> {
        let found = self.files.iter().filter(|(name, _)| name == path);
        // YAML has more line breaks than most editors show.
        let breaks = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
        found.map(|(_, text)| text.matches(breaks).count() + 1).max()
    }
}
