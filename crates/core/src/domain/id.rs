//! Names and keys, each a type of its own, validated once at the boundary.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Why a word is not a valid name of a kind; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} '{got}' is not usable: {rule}")]
pub struct BadName {
    kind: &'static str,
    got: String,
    rule: &'static str,
}

impl BadName {
    /// The rule that `got` violates.
    pub fn new(kind: &'static str, got: &str, rule: &'static str) -> Self {
        Self { kind, got: got.chars().take(60).collect(), rule }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal, $max:literal, $ok:expr, $rule:literal) => {
        $(#[$doc])*
        // Clones share the text, and the pointer is thin: each of a million dependencies names two
        // jobs and a group.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $type(Arc<Box<str>>);

        impl $type {
            /// Validates `word` for this kind of name.
            pub fn parse(word: &str) -> Result<Self, BadName> {
                let fits = !word.is_empty() && word.chars().count() <= $max && word.chars().all($ok);
                let first = word.chars().next().is_some_and(char::is_alphanumeric)
                    || word.starts_with('_');
                if fits && first {
                    return Ok(Self(Arc::new(Box::from(word))));
                }
                Err(BadName { kind: $kind, got: word.chars().take(60).collect(), rule: $rule })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(word: String) -> Result<Self, BadName> {
                Self::parse(&word)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.as_str().to_owned()
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name!(
    /// The code of a job, `GL_POST`, unique within its group. Letters of any script, digits and `_ - . :`.
    JobCode, "job code", 100,
    |c| c.is_alphanumeric() || "_-.:".contains(c),
    "use 1 to 100 letters, digits, '_', '-', '.' or ':', the first a letter, digit or '_'"
);
name!(
    /// The code of a group (a pipeline), `month_end`.
    GroupCode, "group code", 50,
    |c| c.is_alphanumeric() || "_-.:".contains(c),
    "use 1 to 50 letters, digits, '_', '-', '.' or ':', the first a letter, digit or '_'"
);
name!(
    /// The unique code of a schedule, `MONTH_END_AT_2`. Letters of any script, digits and `_ - . :`.
    TriggerCode, "schedule code", 100,
    |c| c.is_alphanumeric() || "_-.:".contains(c),
    "use 1 to 100 letters, digits, '_', '-', '.' or ':', the first a letter, digit or '_'"
);
name!(
    /// The name of a data source, `ledger`. ASCII, because it also names an environment variable.
    SourceName, "source name", 50,
    |c| c.is_ascii_alphanumeric() || "_-".contains(c),
    "use 1 to 50 ASCII letters, digits, '_' or '-', the first a letter, digit or '_'"
);
name!(
    /// The batch number, `202407` or `2024Q3`: one run of a group. It reaches SQL only as a bound
    /// value and scripts only in the environment, yet is restricted to these characters anyway.
    BatchNo, "batch number", 50,
    |c| c.is_ascii_alphanumeric() || "._-".contains(c),
    "use 1 to 50 ASCII letters, digits, '.', '_' or '-', the first a letter, digit or '_'"
);
name!(
    /// The code of a calendar of working days, `cn`. Letters of any script, digits and `_ - .`.
    CalendarCode, "calendar code", 50,
    |c| c.is_alphanumeric() || "_-.".contains(c),
    "use 1 to 50 letters, digits, '_', '-' or '.', the first a letter, digit or '_'"
);
name!(
    /// The name of a job type, `PROC`. A validated name and not an enum, so that a new type is one
    /// file in `handler` and no change here.
    JobType, "job type", 20,
    |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_',
    "use 1 to 20 upper-case ASCII letters, digits or '_'"
);

impl GroupCode {
    /// Placeholder for the group of a dependency in a text that does not repeat it; the reader
    /// replaces it by the group of the whole text.
    pub fn not_read() -> Self {
        Self(Arc::new(Box::from("")))
    }
}

/// Primary key of a `job_queue` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueueId(pub i64);

/// Primary key of a `job_batch` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchId(pub i64);

/// Primary key of a `backfill` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackfillId(pub i64);

impl fmt::Display for BackfillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Identity of one process lifetime: new at every start, so that a restarted node is never taken
/// for the dead one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub String);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_where_they_enter() {
        assert!(JobCode::parse("GL_POST").is_ok());
        assert!(JobCode::parse("总账过账").is_ok());
        assert!(BatchNo::parse("2024Q3").is_ok());
        for bad in ["", "-x", "a b", "a;b", "a/b", "../x", "a\nb", "$(rm)", &"x".repeat(101)] {
            assert!(JobCode::parse(bad).is_err(), "{bad:?} must be refused");
            assert!(BatchNo::parse(bad).is_err(), "{bad:?} must be refused");
        }
        let error = BatchNo::parse("2024/07").expect_err("slash");
        assert!(error.to_string().contains("batch number '2024/07'"), "{error}");
    }
}
