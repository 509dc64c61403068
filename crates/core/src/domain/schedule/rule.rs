//! Day rules: days counted within a month, quarter or year, as in `3rd working day of month`.

use super::ScheduleError;
use crate::domain::batch_no::{Period, PeriodKind};
use crate::domain::calendar::{CalendarCertainty, Calendars, Nth};
use crate::domain::id::CalendarCode;
use crate::domain::text::truncate_text;
use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A day of every month, quarter or year.
///
/// Written `WHICH [working] day of month|quarter|year`, or `[working] day WHICH of …`, where WHICH is
/// `3`, `3rd`, `first` to `tenth`, `last`, `last-2` (two before the last), `-1` (the last) or `-3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DayRule {
    /// Position among the counted days.
    pub which: DayPosition,
    /// Which days are counted.
    pub counted: Counted,
    /// The period; never a day.
    pub within: PeriodKind,
}

/// A position in a sequence of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayPosition {
    /// From the front; 1 is the first.
    Nth(u16),
    /// From the end; 0 is the last, 2 is `last-2`.
    BeforeLast(u16),
}

/// Which days are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All of them.
    Days,
    /// Working days of the schedule's calendar.
    WorkingDays,
}

/// Why a text is not a day rule; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule '{text}': {what}; write, for example, {FORMS}")]
pub struct RuleError {
    text: String,
    what: String,
}

/// The accepted forms, for messages and manuals.
const FORMS: &str = "'3rd working day of month', 'last-2 working day of quarter', 'day 15 of month' \
                     or 'last day of year'";

const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

impl DayRule {
    /// Parses the text form.
    ///
    /// # Errors
    /// Names the word that is not understood, or says that the period never has so many days.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let fault = |what: String| RuleError { text: truncate_text(text, 100), what };
        let lower = text.to_lowercase();
        let mut words: Vec<&str> = lower.split_whitespace().filter(|word| *word != "the").collect();
        let within = match (words.pop(), words.pop()) {
            (Some(period), Some("of")) => period_of(period)
                .ok_or_else(|| fault(format!("'{period}' is not month, quarter or year")))?,
            _ => {
                return Err(fault(
                    "it does not end in 'of month', 'of quarter' or 'of year'".into(),
                ));
            }
        };
        let (which, counted) = match words[..] {
            [which, "day"] | ["day", which] => (which, Counted::Days),
            [which, "working" | "work" | "business", "day"]
            | ["working" | "work" | "business", "day", which] => (which, Counted::WorkingDays),
            _ => return Err(fault(format!("'{}' is not understood", words.join(" ")))),
        };
        let which = DayPosition::parse(which)
            .ok_or_else(|| fault(format!("'{which}' is not a number, an ordinal or last")))?;
        let most = most_days(within);
        if which.place() > most {
            return Err(fault(format!("a {within} has {most} days at most")));
        }
        Ok(Self { which, counted, within })
    }

    /// The first such day on or after `from`; `None` when there is none within nine years.
    pub(super) fn day_from(
        self,
        calendars: &Calendars,
        calendar: Option<&CalendarCode>,
        from: NaiveDate,
    ) -> Result<Option<Nth>, ScheduleError> {
        let mut period = Period::containing(self.within, from);
        for _ in 0..periods_looked_at(self.within) {
            let Some(this) = period else { break };
            let found = self.day_in(calendars, calendar, this)?;
            if let Some(found) = found.filter(|nth| nth.date >= from) {
                return Ok(Some(found));
            }
            period = this.next();
        }
        Ok(None)
    }

    fn day_in(
        self,
        calendars: &Calendars,
        calendar: Option<&CalendarCode>,
        period: Period,
    ) -> Result<Option<Nth>, ScheduleError> {
        match self.counted {
            Counted::WorkingDays => {
                let code = calendar
                    .ok_or_else(|| ScheduleError::NeedsCalendar(format!("rule '{self}'")))?;
                let n = match self.which {
                    DayPosition::Nth(n) => i32::from(n),
                    DayPosition::BeforeLast(n) => -i32::from(n) - 1,
                };
                Ok(calendars.nth_working_day(code, period, n)?)
            }
            Counted::Days => {
                let date = match self.which {
                    DayPosition::Nth(n) => {
                        period.first_day().checked_add_days(Days::new(u64::from(n) - 1))
                    }
                    DayPosition::BeforeLast(n) => {
                        period.last_day().checked_sub_days(Days::new(u64::from(n)))
                    }
                };
                let inside = |d: &NaiveDate| (period.first_day()..=period.last_day()).contains(d);
                Ok(date
                    .filter(inside)
                    .map(|date| Nth { date, certainty: CalendarCertainty::Known }))
            }
        }
    }

    /// The rule in words for `date`: `last working day of 2026Q3`.
    pub(super) fn words_for(self, date: NaiveDate) -> String {
        let period = Period::containing(self.within, date);
        let of = period.map_or_else(|| self.within.to_string(), |p| p.batch_no().to_string());
        self.written(&of)
    }

    fn written(self, of: &str) -> String {
        match (self.counted, self.which) {
            (Counted::Days, DayPosition::Nth(n)) => format!("day {n} of {of}"),
            (Counted::Days, last @ DayPosition::BeforeLast(_)) => format!("{last} day of {of}"),
            (Counted::WorkingDays, which) => format!("{which} working day of {of}"),
        }
    }
}

impl DayPosition {
    fn parse(word: &str) -> Option<Self> {
        let small = |digits: &str| digits.parse::<u16>().ok().filter(|n| (1..=999).contains(n));
        if word == "last" {
            return Some(Self::BeforeLast(0));
        }
        if let Some(before) = word.strip_prefix("last-") {
            return small(before).map(Self::BeforeLast);
        }
        if let Some(back) = word.strip_prefix('-') {
            return small(back).map(|n| Self::BeforeLast(n - 1));
        }
        if let Some(at) = ORDINALS.iter().position(|ordinal| *ordinal == word) {
            return u16::try_from(at + 1).ok().map(Self::Nth);
        }
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end));
        small(digits.unwrap_or(word)).map(Self::Nth)
    }

    /// The position from its own end, counted from 1.
    fn place(self) -> u16 {
        match self {
            Self::Nth(n) => n,
            Self::BeforeLast(n) => n + 1,
        }
    }
}

impl fmt::Display for DayPosition {
    /// `3rd`, `last`, `last-2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BeforeLast(0) => f.write_str("last"),
            Self::BeforeLast(n) => write!(f, "last-{n}"),
            Self::Nth(n) => {
                let end = match (n % 10, n % 100) {
                    (_, 11..=13) => "th",
                    (1, _) => "st",
                    (2, _) => "nd",
                    (3, _) => "rd",
                    _ => "th",
                };
                write!(f, "{n}{end}")
            }
        }
    }
}

impl fmt::Display for DayRule {
    /// The canonical stored form: `day 15 of month`, `last-2 working day of quarter`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written(self.within.as_str()))
    }
}

impl TryFrom<String> for DayRule {
    type Error = RuleError;
    fn try_from(text: String) -> Result<Self, RuleError> {
        Self::parse(&text)
    }
}

impl From<DayRule> for String {
    fn from(rule: DayRule) -> Self {
        rule.to_string()
    }
}

fn period_of(word: &str) -> Option<PeriodKind> {
    match word {
        "month" | "months" => Some(PeriodKind::Month),
        "quarter" | "quarters" => Some(PeriodKind::Quarter),
        "year" | "years" => Some(PeriodKind::Year),
        _ => None,
    }
}

fn most_days(within: PeriodKind) -> u16 {
    match within {
        PeriodKind::Day => 1,
        PeriodKind::Month => 31,
        PeriodKind::Quarter => 92,
        PeriodKind::Year => 366,
    }
}

/// Number of periods in nine years: day 366 of a year occurs every four, and once in eight around
/// 2100.
fn periods_looked_at(within: PeriodKind) -> usize {
    match within {
        PeriodKind::Day => 1,
        PeriodKind::Month => 108,
        PeriodKind::Quarter => 36,
        PeriodKind::Year => 9,
    }
}
