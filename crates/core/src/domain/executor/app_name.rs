//! The name under which executors of XXL-JOB register.

use crate::domain::id::BadName;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The app name of an executor group, as the admin's executor page shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AppName(String);

impl AppName {
    /// Parses an app name.
    pub fn parse(word: &str) -> Result<Self, BadName> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let first = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        if first && (4..=64).contains(&word.len()) && word.chars().all(fits) {
            return Ok(Self(word.to_owned()));
        }
        let rule = "use 4 to 64 ASCII letters, digits, '-', '_' or '.', as XXL-JOB has it";
        Err(BadName::new("appname", word, rule))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AppName {
    type Error = BadName;
    fn try_from(word: String) -> Result<Self, BadName> {
        Self::parse(&word)
    }
}

impl From<AppName> for String {
    fn from(name: AppName) -> Self {
        name.0
    }
}

impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_xxl_job_takes_for_one() {
        for (word, fits) in [
            ("month-end", true),
            ("a.b_c-1", true),
            ("abc", false),
            ("-abcd", false),
            ("月末执行器", false),
        ] {
            assert_eq!(AppName::parse(word).is_ok(), fits, "{word}");
        }
    }
}
