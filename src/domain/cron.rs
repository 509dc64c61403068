//! Cron expressions in Quartz's dialect, and the five fields of classic cron: which times of the wall
//! clock they name, and the moments at which they fire.
//!
//! # Which days and times
//!
//! `second minute hour day-of-month month day-of-week [year]`. Lists, ranges, steps, names in any
//! case; a range may wrap around (`22-2`, `NOV-FEB`, `FRI-MON`); 1 is Sunday. Exactly one of the two
//! day fields is `?`. `L`, `L-3`, `LW`, `L-3W`, `15W` name days of the month, `L` (Saturday), `FRIL`,
//! `6L`, `FRI#3`, `6#3` days of the week. Unlike in Quartz these may stand in lists (`15,L`), a step
//! of 0 is refused, and `31W` names no day in a month of 30.
//!
//! `minute hour day-of-month month day-of-week`: classic cron. 0 and 7 are Sunday. A day field that
//! begins with `*` restricts nothing by itself: both must hold. When neither does, either is enough.
//!
//! # Where the clocks are changed
//!
//! What counts is whether the expression names all 24 hours, however that is written.
//!
//! - **It does not** (`0 30 2 * * ?`, `0 0/5 8-18 * * ?`): each time is a plan for one moment. In an
//!   overlap that is the first of the two moments that show it. In a gap it is the first moment after
//!   the gap; all times in one gap, and the time at which the gap ends, make one firing there. So a
//!   nightly batch neither vanishes nor runs twice.
//! - **It does** (`0 0 * * * ?`, `*/15 * * * * ?`): it fires whenever the clock shows a time it names.
//!   Through an overlap it goes on, and a time that is shown twice fires twice, an hour apart in real
//!   time; a time in a gap is never shown, and does not fire.

mod days;
mod error;
mod fields;
mod read;

pub use error::CronError;

use crate::domain::time::Millis;
use crate::domain::wall::Shown;
use crate::domain::wall::ahead_sec;
use crate::domain::wall::change_between;
use crate::domain::wall::shown;
use crate::domain::wall::wall_at;
use crate::domain::wall::whole_second;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use chrono_tz::Tz;
use days::Days;
use fields::{Times, Years};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// First year that an expression may name; nothing fires before it.
pub const YEAR_MIN: i32 = 1970;
/// Last year that an expression may name; nothing fires after it.
pub const YEAR_MAX: i32 = 2199;
/// No zone is still in [`YEAR_MAX`] then; milliseconds.
const LAST_MS: i64 = 7_258_204_800_000;
/// No zone is in [`YEAR_MIN`] before; seconds.
const FIRST_SEC: i64 = -86_400;
/// How many firings [`Cron::shortest_gap_sec`] looks at.
pub const GAP_SAMPLE: usize = 100;

/// A cron expression, read once. Equal when written equally.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cron {
    text: Arc<str>,
    dialect: Dialect,
    times: Times,
    days: Days,
    years: Years,
}

/// Which kind of cron an expression is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Six or seven fields, 1 = Sunday.
    Quartz,
    /// Five fields, 0 and 7 = Sunday.
    Classic,
}

impl Cron {
    /// Reads an expression of 5, 6 or 7 fields.
    ///
    /// # Errors
    /// Names the field, what stands there, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        read::cron(text)
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Quartz or classic.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether all 24 hours are named, so that it goes by the clock as it is shown (see the top of
    /// this module).
    pub fn is_hourly(&self) -> bool {
        self.times.hours == fields::ALL_HOURS
    }

    /// The first moment later than `after` at which it fires in `zone`, a whole second; `None` when
    /// there is none up to the end of [`YEAR_MAX`].
    pub fn next_after(&self, after: Millis, zone: Tz) -> Option<Millis> {
        if after.0 > LAST_MS {
            return None;
        }
        let from = Millis((after.0.div_euclid(1_000) + 1).max(FIRST_SEC) * 1_000);
        if self.is_hourly() { self.next_shown(from, zone) } else { self.next_planned(from, zone) }
    }

    /// The first firing after `now` in `zone`; asked when an expression is saved.
    ///
    /// # Errors
    /// [`CronError::NeverFires`]: no such day exists, or its years are over.
    pub fn fires_after(&self, now: Millis, zone: Tz) -> Result<Millis, CronError> {
        self.next_after(now, zone).ok_or_else(|| {
            let year = chrono::Datelike::year(&wall_at(now, zone));
            CronError::never(&self.text, year, self.years.last())
        })
    }

    /// The shortest distance between two firings among the next [`GAP_SAMPLE`] after `from`, in
    /// seconds; `None` when it fires less than twice. Compared with how long a batch takes.
    pub fn shortest_gap_sec(&self, zone: Tz, from: Millis) -> Option<i64> {
        let fires = |at: &Millis| self.next_after(*at, zone);
        let sample: Vec<Millis> =
            std::iter::successors(fires(&from), fires).take(GAP_SAMPLE).collect();
        sample.windows(2).map(|pair| pair[1].since(pair[0]) / 1_000).min()
    }

    /// The first day on or after `from` that it names, whatever its times.
    pub(crate) fn day_from(&self, from: NaiveDate) -> Option<NaiveDate> {
        self.days.next(from, &self.years)
    }

    /// The first time of day that it names, at or after `from`.
    pub(crate) fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        self.times.next(from)
    }

    /// The first time of the wall clock that it names, at or after `from` (whole seconds).
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

    /// For named hours: the plan for a time never goes back as the time goes up, so the answer is the
    /// plan for the first time that is not yet done at `from`.
    fn next_planned(&self, from: Millis, zone: Tz) -> Option<Millis> {
        let wall = self.wall_from(first_open(from, zone))?;
        Some(shown(wall, zone).planned())
    }

    /// For all hours: the first moment, `from` or later, whose time is named.
    fn next_shown(&self, from: Millis, zone: Tz) -> Option<Millis> {
        let now = wall_at(from, zone);
        // Within the first pass of an overlap, times before `now` are still to come, in the second.
        let again = match shown(now, zone) {
            Shown::Twice(first, second) if first == from => {
                let change = change_between(first, second, zone);
                self.not_before(change, wall_at(change, zone), zone)
            }
            Shown::Twice(..) | Shown::Once(_) | Shown::Never(_) => None,
        };
        let onward = self.not_before(from, now, zone);
        match (onward, again) {
            (Some(onward), Some(again)) => Some(onward.min(again)),
            (one, other) => one.or(other),
        }
    }

    /// The first moment at or after `from` that shows the next named time, counted from `now`, which
    /// is what is shown at `from`.
    fn not_before(&self, from: Millis, now: NaiveDateTime, zone: Tz) -> Option<Millis> {
        let (mut from, mut now) = (from, now);
        loop {
            match shown(self.wall_from(now)?, zone) {
                Shown::Once(at) => return Some(at),
                Shown::Twice(first, second) => {
                    return Some(if first >= from { first } else { second });
                }
                Shown::Never(after) => {
                    from = after;
                    now = wall_at(after, zone);
                }
            }
        }
    }
}

/// The first time of the wall clock whose plan (see [`Shown::planned`]) is `from` or later.
pub(crate) fn first_open(from: Millis, zone: Tz) -> NaiveDateTime {
    let now = whole_second(wall_at(from, zone));
    match shown(now, zone) {
        // Second pass: everything in the overlap was done in the first.
        Shown::Twice(first, second) if first < from => {
            let change = change_between(first, second, zone);
            now + TimeDelta::milliseconds(change.since(first))
        }
        Shown::Twice(..) | Shown::Once(_) | Shown::Never(_) => {
            // The first second after a gap has the times in the gap as well.
            let leap = ahead_sec(from, zone) - ahead_sec(from.plus(-1_000), zone);
            now - TimeDelta::seconds(leap.max(0))
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
