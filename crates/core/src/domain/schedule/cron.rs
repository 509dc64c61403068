//! Cron expressions in Quartz's dialect, and the five fields of classic cron: which local times they name, and the
//! moments at which they fire.
//!
//! # Which days and times
//!
//! `second minute hour day-of-month month day-of-week [year]`. Lists, ranges, steps, names in any case; a range may
//! wrap around (`22-2`, `NOV-FEB`, `FRI-MON`); 1 is Sunday. Exactly one of the two day fields is `?`. `L`, `L-3`, `LW`,
//! `L-3W`, `15W` name days of the month, `L` (Saturday), `FRIL`, `6L`, `FRI#3`, `6#3` days of the week. Unlike in
//! Quartz these may be part of a list (`15,L`), a step of 0 is refused, and `31W` names no day in a month of 30 days.
//!
//! `minute hour day-of-month month day-of-week`: classic cron. 0 and 7 are Sunday. If either day field begins with `*`,
//! a day must match both fields; otherwise a day that matches either field is enough.
//!
//! # Daylight-saving changes
//!
//! The rule depends on whether the expression names all 24 hours, however it is written.
//!
//! - **It does not** (`0 30 2 * * ?`, `0 0/5 8-18 * * ?`): each local time is planned for one moment. In an overlap
//!   that is the first of its two moments. In a gap it is the first moment after the gap; all local times in one gap,
//!   and the one at which the gap ends, make one firing there. So a nightly batch is neither skipped nor run twice.
//! - **It does** (`0 0 * * * ?`, `*/15 * * * * ?`): it fires whenever the clocks show a time that it names. During an
//!   overlap it keeps firing, and a local time that occurs twice fires twice, an hour apart; a local time in a gap
//!   never occurs and does not fire.

mod days;
mod error;
mod fields;
mod read;
mod second_opinion;
mod words;

pub use error::CronError;
pub use second_opinion::CronDisagreement;

use crate::domain::time::Millis;
use crate::domain::time::local_time::next_planned;
use crate::domain::time::local_time::next_shown;
use crate::domain::time::local_time::wall_at;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use days::CronDays;
use fields::{DayTimes, Years};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// First year that an expression may name.
pub const YEAR_MIN: i32 = 1970;
/// Last year that an expression may name.
pub const YEAR_MAX: i32 = 2199;
/// End of [`YEAR_MAX`] in every time zone, in milliseconds.
const LAST_MS: i64 = 7_258_204_800_000;
/// Start of [`YEAR_MIN`] in the first time zone that reaches it, in seconds.
const FIRST_SEC: i64 = -86_400;
/// Number of firings that [`Cron::shortest_gap_sec`] examines.
pub const GAP_SAMPLE: usize = 100;

/// A parsed cron expression. Expressions are equal if their texts are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cron {
    text: Arc<str>,
    dialect: CronDialect,
    times: DayTimes,
    days: CronDays,
    years: Years,
}

/// Dialect of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronDialect {
    /// Six or seven fields, 1 = Sunday.
    Quartz,
    /// Five fields, 0 and 7 = Sunday.
    Classic,
}

/// How local times become moments around daylight-saving changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallClockRule {
    /// Each local time is planned for one moment.
    AsPlanned,
    /// Every moment that shows a named local time counts, and no other.
    AsShown,
}

impl Cron {
    /// Parses an expression of 5, 6 or 7 fields.
    ///
    /// # Errors
    /// Names the field, the invalid part and what to write instead.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        read::parse_cron(text)
    }

    /// The expression as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The dialect.
    pub fn dialect(&self) -> CronDialect {
        self.dialect
    }

    /// The rule around daylight-saving changes (see the top of this module).
    pub fn clock(&self) -> WallClockRule {
        if self.times.hours == fields::ALL_HOURS {
            WallClockRule::AsShown
        } else {
            WallClockRule::AsPlanned
        }
    }

    /// The first moment later than `after` at which the expression fires in `zone`, a whole second; `None` if there is
    /// none up to the end of [`YEAR_MAX`].
    pub fn next_after(&self, after: Millis, zone: Tz) -> Option<Millis> {
        if after.0 > LAST_MS {
            return None;
        }
        let from = Millis((after.0.div_euclid(1_000) + 1).max(FIRST_SEC) * 1_000);
        let wall_from = |wall| Ok::<_, Infallible>(self.wall_from(wall));
        let found = match self.clock() {
            WallClockRule::AsShown => next_shown(from, zone, wall_from),
            WallClockRule::AsPlanned => next_planned(from, zone, wall_from),
        };
        found.unwrap_or_else(|never| match never {}).map(|(at, _)| at)
    }

    /// The first firing after `now` in `zone`; checked when an expression is saved.
    ///
    /// # Errors
    /// [`CronError::NeverFires`]: the named day does not exist, or the years are over.
    pub fn fires_after(&self, now: Millis, zone: Tz) -> Result<Millis, CronError> {
        self.next_after(now, zone).ok_or_else(|| {
            let year = chrono::Datelike::year(&wall_at(now, zone));
            CronError::never(&self.text, year, self.years.last_year())
        })
    }

    /// The shortest time between two of the next [`GAP_SAMPLE`] firings after `from`, in seconds; `None` if it fires
    /// less than twice. It is compared with the duration of a batch.
    pub fn shortest_gap_sec(&self, zone: Tz, from: Millis) -> Option<i64> {
        let fires = |at: &Millis| self.next_after(*at, zone);
        let sample: Vec<Millis> =
            std::iter::successors(fires(&from), fires).take(GAP_SAMPLE).collect();
        sample.windows(2).map(|pair| pair[1].since(pair[0]) / 1_000).min()
    }

    /// The first named day on or after `from`, whatever its times.
    pub fn day_from(&self, from: NaiveDate) -> Option<NaiveDate> {
        self.days.next(from, &self.years)
    }

    /// The first named time of day at or after `from`.
    pub fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        self.times.next(from)
    }

    /// The first named local time at or after `from` (whole seconds).
    fn wall_from(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let day = self.day_from(from.date())?;
        if day > from.date() {
            return Some(day.and_time(self.times.first()));
        }
        match self.time_from(from.time()) {
            Some(time) => Some(day.and_time(time)),
            None => Some(self.day_from(day.succ_opt()?)?.and_time(self.times.first())),
        }
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl std::str::FromStr for Cron {
    type Err = CronError;
    fn from_str(text: &str) -> Result<Self, CronError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Cron {
    type Error = CronError;
    fn try_from(text: String) -> Result<Self, CronError> {
        Self::parse(&text)
    }
}

impl From<Cron> for String {
    fn from(cron: Cron) -> Self {
        cron.text.to_string()
    }
}

#[cfg(test)]
mod tests;
