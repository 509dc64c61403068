//! Deadlines: parsing the text of a definition, and computing the moment for one batch.

use crate::domain::batch_no::{Period, PeriodKind, shift_days};
use crate::domain::calendar::{Calendar, Calendars, WorkingDays};
use crate::domain::id::CalendarCode;
use crate::domain::time::{Millis, at_wall_clock, day_in};
use chrono::{NaiveDate, NaiveTime, Timelike as _};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum number of days, and of working days, after that of the batch.
pub const DAYS_MAX: u16 = 366;
/// Maximum time after the opening, in seconds: a year.
pub const AFTER_MAX: u32 = 366 * 86_400;
/// Most working days that a month can have.
const MONTH_MAX: u16 = 31;
/// The accepted forms, for error messages.
pub const FORMS: &str =
    "write \"08:00\", \"+1d 08:00\", \"workday(3) 08:00\", \"workday(+2) 08:00\" or \"1h30m\"";

/// A deadline. Eight bytes, because each of 100,000 jobs may have two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DueRule {
    /// At a time of day, in seconds, in the group's time zone.
    At(DueDay, u32),
    /// This many seconds after the batch was opened.
    After(u32),
}

/// A day relative to the batch's day, the day on which it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueDay {
    /// This many days later; 0 is the same day.
    Later(u16),
    /// The n-th working day of its month; the last where the month has fewer.
    OfMonth(u16),
    /// This many working days later.
    Working(u16),
}

/// Permitted multiple of the usual duration, in hundredths: 1.10 to 100.00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Factor(u16);

/// The text is neither a deadline nor a factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {cure}")]
pub struct BadDue {
    /// What is wrong.
    pub what: String,
    /// A hint.
    pub cure: String,
}

/// The facts about a batch from which deadlines are computed.
#[derive(Clone, Copy, Debug)]
pub struct DueContext<'a> {
    /// When it was opened.
    pub at: Millis,
    /// The zone of its group.
    pub zone: Tz,
    /// The calendar of its group.
    pub days: WorkingDays<'a>,
}

impl DueRule {
    /// The moment of the deadline for a batch. A local time within a gap becomes the first moment
    /// after it, an ambiguous one the first of the two. Without a calendar, or where its days are
    /// missing, Monday to Friday are working days.
    pub fn moment(self, opening: DueContext<'_>) -> Millis {
        let (day, sec) = match self {
            Self::After(sec) => return opening.at.plus_ms(i64::from(sec) * 1_000),
            Self::At(day, sec) => (day, sec),
        };
        let time = NaiveTime::from_num_seconds_from_midnight_opt(sec, 0).unwrap_or_default();
        let own = day_in(opening.at, opening.zone);
        let date = match day {
            DueDay::Later(n) => shift_days(own, i64::from(n)),
            DueDay::OfMonth(n) => worked(opening.days, |all, code| of_month(all, code, own, n)),
            DueDay::Working(n) => worked(opening.days, |all, code| {
                all.add_working_days(code, own, i64::from(n)).ok().map(|nth| nth.date)
            }),
        };
        at_wall_clock(date.unwrap_or(own), time, opening.zone)
    }

    /// Whether it is no later than another, whenever the batch is opened.
    pub fn is_surely_before(self, other: Self) -> bool {
        match (self, other) {
            (Self::After(a), Self::After(b)) => a <= b,
            (Self::At(DueDay::Later(a), at), Self::At(DueDay::Later(b), bt)) => (a, at) <= (b, bt),
            (Self::At(DueDay::OfMonth(a), at), Self::At(DueDay::OfMonth(b), bt)) => {
                (a, at) <= (b, bt)
            }
            (Self::At(DueDay::Working(a), at), Self::At(DueDay::Working(b), bt)) => {
                (a, at) <= (b, bt)
            }
            (Self::At(..) | Self::After(_), _) => false,
        }
    }

    /// Whether it counts working days.
    pub fn counts_working_days(self) -> bool {
        match self {
            Self::At(DueDay::OfMonth(_) | DueDay::Working(_), _) => true,
            Self::At(DueDay::Later(_), _) | Self::After(_) => false,
        }
    }
}

fn of_month(all: &Calendars, code: &CalendarCode, own: NaiveDate, n: u16) -> Option<NaiveDate> {
    let month = Period::containing(PeriodKind::Month, own)?;
    let nth = all.nth_working_day(code, month, i32::from(n)).ok()?;
    let last = || all.nth_working_day(code, month, -1).ok().flatten();
    nth.or_else(last).map(|nth| nth.date)
}

/// The result of `ask` on the group's calendar, otherwise on weekdays.
fn worked(
    days: WorkingDays<'_>,
    ask: impl Fn(&Calendars, &CalendarCode) -> Option<NaiveDate>,
) -> Option<NaiveDate> {
    let found = days.resolve_calendar(None).ok().and_then(|(all, code)| ask(all, code));
    found.or_else(|| {
        let code = CalendarCode::parse("weekdays").ok()?;
        let all = Calendars::new(vec![Calendar::with_defaults(code.clone())]).ok()?;
        ask(&all, &code)
    })
}

impl FromStr for DueRule {
    type Err = BadDue;

    fn from_str(text: &str) -> Result<Self, BadDue> {
        let word = text.trim();
        parse_due(word).ok_or_else(|| BadDue {
            what: format!("{text:?} is not a time by which it can be due"),
            cure: FORMS.to_owned(),
        })
    }
}

fn parse_due(word: &str) -> Option<DueRule> {
    let Some((day, time)) = word.split_once(char::is_whitespace) else {
        let today = time_of_day(word).map(|sec| DueRule::At(DueDay::Later(0), sec));
        return today.or_else(|| length(word).map(DueRule::After));
    };
    let day = match day.strip_prefix('+').and_then(|rest| rest.strip_suffix('d')) {
        Some(n) => DueDay::Later(number(n, DAYS_MAX)?),
        None => {
            let inner = day.strip_prefix("workday(")?.strip_suffix(')')?;
            match inner.strip_prefix('+') {
                Some(n) => DueDay::Working(number(n, DAYS_MAX).filter(|n| *n > 0)?),
                None => DueDay::OfMonth(number(inner, MONTH_MAX).filter(|n| *n > 0)?),
            }
        }
    };
    Some(DueRule::At(day, time_of_day(time.trim_start())?))
}

fn number(text: &str, max: u16) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && *n <= max)
}

fn time_of_day(text: &str) -> Option<u32> {
    let parts: Vec<&str> = text.split(':').collect();
    let digits = |p: &&str| (1..=2).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit());
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(digits) {
        return None;
    }
    let part = |i: usize| parts.get(i).map_or(Some(0), |p| p.parse().ok());
    let time = NaiveTime::from_hms_opt(part(0)?, part(1)?, part(2)?)?;
    Some(time.num_seconds_from_midnight())
}

/// Parses `1h30m`, `90m`, `45s`: each unit at most once, the larger before the smaller.
fn length(text: &str) -> Option<u32> {
    let (mut rest, mut total) = (text, 0u32);
    for (unit, sec) in [('h', 3_600), ('m', 60), ('s', 1)] {
        if let Some((n, after)) = rest.split_once(unit) {
            let digits = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
            let n: u32 = n.parse().ok().filter(|_| digits)?;
            total = total.checked_add(n.checked_mul(sec)?)?;
            rest = after;
        }
    }
    (rest.is_empty() && (1..=AFTER_MAX).contains(&total)).then_some(total)
}

impl fmt::Display for DueRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::At(day, sec) => {
                match day {
                    DueDay::Later(0) => {}
                    DueDay::Later(n) => write!(f, "+{n}d ")?,
                    DueDay::OfMonth(n) => write!(f, "workday({n}) ")?,
                    DueDay::Working(n) => write!(f, "workday(+{n}) ")?,
                }
                write!(f, "{:02}:{:02}", sec / 3_600, sec / 60 % 60)?;
                if sec % 60 > 0 { write!(f, ":{:02}", sec % 60) } else { Ok(()) }
            }
            Self::After(sec) => {
                for (n, unit) in [(sec / 3_600, 'h'), (sec / 60 % 60, 'm'), (sec % 60, 's')] {
                    if n > 0 {
                        write!(f, "{n}{unit}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Factor {
    /// This multiple of a duration in milliseconds.
    pub fn times(self, ms: i64) -> i64 {
        i64::try_from(i128::from(ms) * i128::from(self.0) / 100).unwrap_or(i64::MAX)
    }
}

impl FromStr for Factor {
    type Err = BadDue;

    fn from_str(text: &str) -> Result<Self, BadDue> {
        let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let fits = (1..=3).contains(&whole.len()) && rest.len() <= 2;
        let read = || -> Option<u16> {
            let cents: u16 = format!("{rest:0<2}").parse().ok()?;
            Some(whole.parse::<u16>().ok()? * 100 + cents)
        };
        let found = (fits && digits(whole) && digits(rest)).then(read).flatten();
        found.filter(|n| (110..=10_000).contains(n)).map(Self).ok_or_else(|| BadDue {
            what: format!("{text:?} is not a factor"),
            cure: "use a number from 1.1 to 100 with at most two decimals".to_owned(),
        })
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, cents) if cents % 10 == 0 => write!(f, "{whole}.{}", cents / 10),
            (whole, cents) => write!(f, "{whole}.{cents:02}"),
        }
    }
}

impl From<DueRule> for String {
    fn from(due: DueRule) -> Self {
        due.to_string()
    }
}

impl TryFrom<String> for DueRule {
    type Error = BadDue;
    fn try_from(text: String) -> Result<Self, BadDue> {
        text.parse()
    }
}

impl From<Factor> for String {
    fn from(factor: Factor) -> Self {
        factor.to_string()
    }
}

impl TryFrom<String> for Factor {
    type Error = BadDue;
    fn try_from(text: String) -> Result<Self, BadDue> {
        text.parse()
    }
}

#[cfg(test)]
#[path = "due_tests.rs"]
mod tests;
