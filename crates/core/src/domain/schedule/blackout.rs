//! Periods in which nothing fires.

use super::words::{time_of_day, time_text, wall_text, wall_time};
use super::{ScheduleError, Swallowed};
use crate::domain::time::Millis;
use crate::domain::time::local_time::shown;
use crate::domain::time::local_time::wall_at;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, Weekday, WeekdaySet};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A period in which nothing fires: `{from, until}` or `{daily: 22:00-06:00, days: mon-fri}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BlackoutWords", into = "BlackoutWords")]
#[schemars(with = "BlackoutWords")]
pub struct Blackout {
    /// When it applies.
    pub time: BlackoutTime,
    /// The reason, in the user's words.
    pub because: Option<String>,
}

/// The time of a blackout, in local time. The start is included, the end is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackoutTime {
    /// Once.
    Range {
        /// Start, included.
        from: NaiveDateTime,
        /// End, excluded.
        until: NaiveDateTime,
    },
    /// On days of the week.
    Weekly {
        /// Start, included.
        from: NaiveTime,
        /// End, excluded; on the following day when it is not later than `from`.
        until: NaiveTime,
        /// Days on which it begins.
        days: WeekdaySet,
    },
}

/// The written form of a blackout: `from` and `until`, or `daily` with `days`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Blackout")]
struct BlackoutWords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    daily: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    days: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

const WEEK: [(Weekday, &str); 7] = [
    (Weekday::Mon, "mon"),
    (Weekday::Tue, "tue"),
    (Weekday::Wed, "wed"),
    (Weekday::Thu, "thu"),
    (Weekday::Fri, "fri"),
    (Weekday::Sat, "sat"),
    (Weekday::Sun, "sun"),
];

impl Blackout {
    /// The end of this blackout if `at` is within it.
    pub(super) fn end_if_in(&self, at: Millis, zone: Tz) -> Option<Millis> {
        match self.time {
            BlackoutTime::Range { .. } => self.stretch_of(NaiveDate::MIN, zone),
            BlackoutTime::Weekly { .. } => {
                let today = wall_at(at, zone).date();
                let of = |day| self.stretch_of(day, zone).filter(|(f, u)| *f <= at && at < *u);
                of(today).or_else(|| of(today.pred_opt()?))
            }
        }
        .filter(|(from, until)| *from <= at && at < *until)
        .map(|(_, until)| until)
    }

    /// The reason for an occurrence skipped by it.
    pub(super) fn swallowed(&self) -> Swallowed {
        Swallowed::Blackout { text: self.time.to_string(), because: self.because.clone() }
    }

    /// Its periods that overlap the time from `from` to `to`, in order.
    pub(super) fn stretches(&self, from: Millis, to: Millis, zone: Tz) -> Vec<(Millis, Millis)> {
        let days: Vec<NaiveDate> = match self.time {
            BlackoutTime::Range { .. } => vec![NaiveDate::MIN],
            BlackoutTime::Weekly { .. } => {
                let (first, last) = (wall_at(from, zone).date(), wall_at(to, zone).date());
                let first = first.pred_opt().unwrap_or(first);
                first.iter_days().take_while(|day| *day <= last).collect()
            }
        };
        let found = days.into_iter().filter_map(|day| self.stretch_of(day, zone));
        found.filter(|(first, until)| *first <= to && *until > from).collect()
    }

    /// Start and end of the period; for a weekly one, of the period that begins on `day`.
    fn stretch_of(&self, day: NaiveDate, zone: Tz) -> Option<(Millis, Millis)> {
        let (from, until) = match self.time {
            BlackoutTime::Range { from, until } => (from, until),
            BlackoutTime::Weekly { from, until, days } => {
                let last = if until > from { day } else { day.succ_opt()? };
                if !days.contains(day.weekday()) {
                    return None;
                }
                (day.and_time(from), last.and_time(until))
            }
        };
        Some((shown(from, zone).planned(), shown(until, zone).planned()))
    }

    fn parse_time(words: &BlackoutWords) -> Result<BlackoutTime, ScheduleError> {
        match (&words.from, &words.until, &words.daily, &words.days) {
            (Some(from), Some(until), None, None) => {
                let (from, until) = (wall_time("from", from)?, wall_time("until", until)?);
                if from >= until {
                    return Err(fault(format!("ends at {until}, not after {from}"), "swap them"));
                }
                Ok(BlackoutTime::Range { from, until })
            }
            (None, None, Some(daily), days) => {
                let (from, until) = daily.split_once('-').ok_or_else(|| {
                    fault(format!("daily '{daily}' has no '-'"), "write daily: 22:00-06:00")
                })?;
                Ok(BlackoutTime::Weekly {
                    from: time_of_day("daily", from)?,
                    until: time_of_day("daily", until)?,
                    days: days.as_deref().map_or(Ok(ALL_DAYS), weekdays)?,
                })
            }
            _ => Err(fault(
                "needs from and until, or daily with or without days".to_owned(),
                "write {from: 2026-12-31T18:00, until: 2027-01-02T08:00} or {daily: 22:00-06:00, \
                 days: mon-fri}",
            )),
        }
    }
}

const ALL_DAYS: WeekdaySet = WeekdaySet::ALL;

fn fault(what: String, cure: &'static str) -> ScheduleError {
    ScheduleError::Blackout { what, cure }
}

/// Parses `mon-fri`, `sat,sun`, `fri-mon`.
fn weekdays(text: &str) -> Result<WeekdaySet, ScheduleError> {
    let lower = text.to_lowercase();
    let place = |word: &str| {
        let place = WEEK.iter().position(|(_, name)| word.trim().starts_with(name));
        place.ok_or_else(|| {
            fault(format!("days '{text}' is not understood"), "write days: mon-fri or sat,sun")
        })
    };
    let mut days = WeekdaySet::EMPTY;
    for item in lower.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (place(first)?, place(last)?);
        for at in first..=(if last < first { last + 7 } else { last }) {
            days.insert(WEEK[at % 7].0);
        }
    }
    Ok(days)
}

impl fmt::Display for BlackoutTime {
    /// `2026-12-31T18:00:00 to 2027-01-02T08:00:00`, `22:00-06:00 mon,tue`, `22:00-06:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { from, until } => {
                write!(f, "{} to {}", wall_text(*from), wall_text(*until))
            }
            Self::Weekly { from, until, days } => {
                write!(f, "{}-{}", time_text(*from), time_text(*until))?;
                if *days == ALL_DAYS { Ok(()) } else { write!(f, " {}", days_text(*days)) }
            }
        }
    }
}

fn days_text(days: WeekdaySet) -> String {
    let named = WEEK.iter().filter(|(day, _)| days.contains(*day));
    named.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

impl TryFrom<BlackoutWords> for Blackout {
    type Error = ScheduleError;
    fn try_from(words: BlackoutWords) -> Result<Self, ScheduleError> {
        Ok(Self { time: Self::parse_time(&words)?, because: words.because })
    }
}

impl From<Blackout> for BlackoutWords {
    fn from(blackout: Blackout) -> Self {
        let because = blackout.because;
        match blackout.time {
            BlackoutTime::Range { from, until } => Self {
                from: Some(wall_text(from)),
                until: Some(wall_text(until)),
                because,
                ..Self::default()
            },
            BlackoutTime::Weekly { from, until, days } => Self {
                daily: Some(format!("{}-{}", time_text(from), time_text(until))),
                days: (days != ALL_DAYS).then(|| days_text(days)),
                because,
                ..Self::default()
            },
        }
    }
}
