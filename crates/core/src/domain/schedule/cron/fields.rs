//! Bit sets of seconds, minutes, hours and years.

use super::YEAR_MAX;
use super::YEAR_MIN;
use chrono::{NaiveTime, Timelike as _};

/// A day with all hours.
pub(super) const ALL_HOURS: u64 = (1 << 24) - 1;

/// The times of a day: every named second of every named minute of every named hour. No set is
/// empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayTimes {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
}

impl DayTimes {
    /// The earliest time.
    pub(super) fn first(&self) -> NaiveTime {
        self.next(NaiveTime::MIN).expect("the reader refuses empty fields")
    }

    /// The first time at or after `from` on the same day.
    pub(super) fn next(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let (hour, minute, second) = if !is_bit_set(self.hours, hour) {
            (from_bit(self.hours, hour)?, lowest(self.minutes), lowest(self.seconds))
        } else if let Some((minute, second)) = self.within_hour(minute, second) {
            (hour, minute, second)
        } else {
            (from_bit(self.hours, hour + 1)?, lowest(self.minutes), lowest(self.seconds))
        };
        NaiveTime::from_hms_opt(hour, minute, second)
    }

    fn within_hour(&self, minute: u32, second: u32) -> Option<(u32, u32)> {
        if is_bit_set(self.minutes, minute)
            && let Some(second) = from_bit(self.seconds, second)
        {
            return Some((minute, second));
        }
        let past = u32::from(is_bit_set(self.minutes, minute));
        Some((from_bit(self.minutes, minute + past)?, lowest(self.seconds)))
    }
}

/// The named years from [`YEAR_MIN`] to [`YEAR_MAX`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Years([u64; 4]);

impl Years {
    pub(super) const NONE: Self = Self([0; 4]);

    /// Adds a year of that range.
    pub(super) fn insert(&mut self, year: i32) {
        if let Some(at) = index(year) {
            self.0[at / 64] |= 1 << (at % 64);
        }
    }

    /// The first named year that is `from` or later.
    pub(super) fn next(&self, from: i32) -> Option<i32> {
        (from.max(YEAR_MIN)..=YEAR_MAX).find(|year| self.contains(*year))
    }

    /// The last named year.
    pub(super) fn last_year(&self) -> Option<i32> {
        (YEAR_MIN..=YEAR_MAX).rev().find(|year| self.contains(*year))
    }

    fn contains(&self, year: i32) -> bool {
        index(year).is_some_and(|at| self.0[at / 64] >> (at % 64) & 1 == 1)
    }
}

fn index(year: i32) -> Option<usize> {
    usize::try_from(year - YEAR_MIN).ok().filter(|at| *at < 256 && year <= YEAR_MAX)
}

/// Whether bit `at` is set.
pub(super) fn is_bit_set(bits: u64, at: u32) -> bool {
    bits.checked_shr(at).unwrap_or(0) & 1 == 1
}

/// The lowest bit at or above `at`.
pub(super) fn from_bit(bits: u64, at: u32) -> Option<u32> {
    let left = bits & u64::MAX.checked_shl(at).unwrap_or(0);
    (left != 0).then(|| left.trailing_zeros())
}

fn lowest(bits: u64) -> u32 {
    bits.trailing_zeros()
}
