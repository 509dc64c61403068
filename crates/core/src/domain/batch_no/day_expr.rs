//! Expressions that compute days from a date: `last_day_of_month(-1)`, `monday(-1)`, `days_of_week(-1)`.

use super::{Period, PeriodKind, shift_days};
use chrono::{Datelike as _, NaiveDate, Weekday};
use std::fmt;

/// One day of the period that contains a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedDay {
    /// The first day of the month, quarter or year: `first_day_of_month`.
    FirstOf(PeriodKind),
    /// The last day of the month, quarter or year: `last_day_of_month`.
    LastOf(PeriodKind),
    /// A day of the week, which begins on Monday: `monday`.
    Weekday(Weekday),
}

/// A span of days that contains a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaySpan {
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
}

impl NamedDay {
    /// Every named day.
    pub const ALL: [Self; 13] = [
        Self::FirstOf(PeriodKind::Month),
        Self::FirstOf(PeriodKind::Quarter),
        Self::FirstOf(PeriodKind::Year),
        Self::LastOf(PeriodKind::Month),
        Self::LastOf(PeriodKind::Quarter),
        Self::LastOf(PeriodKind::Year),
        Self::Weekday(Weekday::Mon),
        Self::Weekday(Weekday::Tue),
        Self::Weekday(Weekday::Wed),
        Self::Weekday(Weekday::Thu),
        Self::Weekday(Weekday::Fri),
        Self::Weekday(Weekday::Sat),
        Self::Weekday(Weekday::Sun),
    ];

    /// The unit that the argument counts.
    pub fn unit_name(self) -> &'static str {
        match self {
            Self::FirstOf(kind) | Self::LastOf(kind) => kind.as_str(),
            Self::Weekday(_) => DaySpan::Week.as_str(),
        }
    }

    /// The day in the period `n` periods after the one that contains `date`; `None` outside the years 1 to 9999.
    pub fn date_at_offset(self, date: NaiveDate, n: i64) -> Option<NaiveDate> {
        match self {
            Self::FirstOf(kind) => Some(Period::containing(kind, date)?.shift(n)?.first_day()),
            Self::LastOf(kind) => Some(Period::containing(kind, date)?.shift(n)?.last_day()),
            Self::Weekday(weekday) => {
                let monday = shift_days(monday_of(date)?, n.checked_mul(7)?)?;
                shift_days(monday, i64::from(weekday.num_days_from_monday()))
            }
        }
    }
}

impl DaySpan {
    /// Both spans.
    pub const ALL: [Self; 2] = [Self::Week, Self::Month];

    /// The word in the names of the functions: `days_of_week(-1)`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// All days of the span `n` spans after the one that contains `date`; `None` beyond chrono's calendar.
    pub fn days_at_offset(self, date: NaiveDate, n: i64) -> Option<Vec<NaiveDate>> {
        let (first, last) = match self {
            Self::Week => {
                let weekday = |day| NamedDay::Weekday(day).date_at_offset(date, n);
                (weekday(Weekday::Mon)?, weekday(Weekday::Sun)?)
            }
            Self::Month => {
                let month = Period::containing(PeriodKind::Month, date)?.shift(n)?;
                (month.first_day(), month.last_day())
            }
        };
        Some(first.iter_days().take_while(|day| *day <= last).collect())
    }

    /// The days from the first of the span that contains `date` to `date` itself.
    pub fn days_to_date(self, date: NaiveDate) -> Option<Vec<NaiveDate>> {
        let mut days = self.days_at_offset(date, 0)?;
        days.retain(|day| *day <= date);
        Some(days)
    }
}

fn monday_of(date: NaiveDate) -> Option<NaiveDate> {
    shift_days(date, -i64::from(date.weekday().num_days_from_monday()))
}

impl fmt::Display for NamedDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstOf(kind) => write!(f, "first_day_of_{kind}"),
            Self::LastOf(kind) => write!(f, "last_day_of_{kind}"),
            Self::Weekday(weekday) => f.write_str(match weekday {
                Weekday::Mon => "monday",
                Weekday::Tue => "tuesday",
                Weekday::Wed => "wednesday",
                Weekday::Thu => "thursday",
                Weekday::Fri => "friday",
                Weekday::Sat => "saturday",
                Weekday::Sun => "sunday",
            }),
        }
    }
}
