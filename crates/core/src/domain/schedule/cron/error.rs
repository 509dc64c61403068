//! Why an expression is refused, and what to write instead.

use super::YEAR_MAX;
use crate::domain::text::truncate_text;

/// Why a text is not a usable cron expression; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not 5, 6 or 7 fields.
    #[error(
        "cron '{text}' has {count} field(s); write 6 (second minute hour day-of-month month \
         day-of-week), a year as 7th if you like, or 5 without the seconds for classic cron"
    )]
    Fields {
        /// What was written.
        text: String,
        /// How many fields it has.
        count: usize,
    },
    /// A word such as `@daily`.
    #[error("cron '{text}' is a word of another scheduler; {cure}")]
    Nickname {
        /// What was written.
        text: String,
        /// What to write instead.
        cure: String,
    },
    /// Characters that no expression can contain.
    #[error("cron '{text}': {what}; {cure}")]
    Text {
        /// What was written.
        text: String,
        /// What is wrong.
        what: String,
        /// What to write instead.
        cure: String,
    },
    /// A fault in one field or in a part of it.
    #[error("cron '{text}', {field} '{part}': {what}; {cure}")]
    Field {
        /// The whole expression.
        text: String,
        /// The field's name.
        field: &'static str,
        /// The faulty part.
        part: String,
        /// What is wrong.
        what: String,
        /// What to write instead.
        cure: String,
    },
    /// The expression is well formed, but never fires.
    #[error("cron '{text}' never fires: {why}; {cure}")]
    NeverFires {
        /// The whole expression.
        text: String,
        /// The reason.
        why: String,
        /// A hint.
        cure: String,
    },
}

/// Longest part of an expression that an error quotes, in bytes.
const SHOWN_MAX: usize = 120;

/// Shortens a text for an error message.
pub(super) fn shortened(text: &str) -> String {
    truncate_text(text, SHOWN_MAX)
}

impl CronError {
    pub(super) fn from_text(text: &str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::Text { text: shortened(text), what: what.into(), cure: cure.into() }
    }

    /// The error for an expression whose last year is `last`.
    pub(super) fn never(text: &str, now: i32, last: Option<i32>) -> Self {
        let (why, cure) = match last {
            Some(last) if last < now => (
                format!("its last year is {last}, and it is {now}"),
                "write a later year, or leave the year out".to_owned(),
            ),
            Some(YEAR_MAX) | None => (
                format!("no day up to the year {YEAR_MAX} is what it asks for"),
                "check day and month against each other: 30 and 31 do not occur in every month, \
                 and a fifth weekday not in every one"
                    .to_owned(),
            ),
            Some(last) => (
                format!("no moment that is left up to the end of {last} is what it asks for"),
                "check day, month and year against each other".to_owned(),
            ),
        };
        Self::NeverFires { text: shortened(text), why, cure }
    }
}
