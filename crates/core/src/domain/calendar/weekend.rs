//! The days of the week that are off.

use chrono::{NaiveDate, Weekday, WeekdaySet};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The days of the week that are off by default: Saturday and Sunday, Friday and Saturday, none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Weekend(WeekdaySet);

/// A text that is not a weekend; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no weekend; write days of the week joined by commas (sat,sun or fri,sat), or none"
)]
pub struct BadWeekend(pub String);

const DAYS: [(Weekday, &str, &str); 7] = [
    (Weekday::Mon, "mon", "monday"),
    (Weekday::Tue, "tue", "tuesday"),
    (Weekday::Wed, "wed", "wednesday"),
    (Weekday::Thu, "thu", "thursday"),
    (Weekday::Fri, "fri", "friday"),
    (Weekday::Sat, "sat", "saturday"),
    (Weekday::Sun, "sun", "sunday"),
];

impl Default for Weekend {
    fn default() -> Self {
        Self(WeekdaySet::from_array([Weekday::Sat, Weekday::Sun]))
    }
}

impl Weekend {
    /// No day of the week is off.
    pub const NONE: Self = Self(WeekdaySet::EMPTY);

    /// The weekend of these days.
    pub fn from_days(days: impl IntoIterator<Item = Weekday>) -> Self {
        Self(days.into_iter().collect())
    }

    /// Parses `sat,sun`, `Friday, Saturday` or `none`.
    pub fn parse(text: &str) -> Result<Self, BadWeekend> {
        let words = text.trim().to_lowercase();
        if words == "none" {
            return Ok(Self::NONE);
        }
        let day = |word: &str| {
            let word = word.trim();
            let found = DAYS.iter().find(|(_, short, long)| word == *short || word == *long);
            found.map(|(day, ..)| *day).ok_or_else(|| BadWeekend(text.to_owned()))
        };
        words.split(',').map(day).collect::<Result<WeekdaySet, _>>().map(Self)
    }

    /// Whether a day of the week is off.
    pub fn contains(self, day: Weekday) -> bool {
        self.0.contains(day)
    }

    /// Whether the day of the week of `date` is off.
    pub fn has_day_of(self, date: NaiveDate) -> bool {
        self.contains(chrono::Datelike::weekday(&date))
    }

    /// Whether no day is off.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Weekend {
    /// `sat,sun`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = DAYS
            .iter()
            .filter(|(day, ..)| self.contains(*day))
            .map(|(_, short, _)| *short)
            .collect();
        f.pad(if words.is_empty() { "none".to_owned() } else { words.join(",") }.as_str())
    }
}

impl TryFrom<String> for Weekend {
    type Error = BadWeekend;
    fn try_from(text: String) -> Result<Self, BadWeekend> {
        Self::parse(&text)
    }
}

impl From<Weekend> for String {
    fn from(weekend: Weekend) -> String {
        weekend.to_string()
    }
}
