//! Computes the days that an expression names, a month at a time: bit 1 is the first of the month.

use super::fields::{Years, from_bit};
use chrono::{Datelike as _, NaiveDate};

/// The named days: months, days of the month, days of the week, and how the last two are combined.
#[derive(Clone, Copy, Debug)]
pub(super) struct CronDays {
    /// Bits 1 to 12.
    pub(super) months: u64,
    pub(super) of_month: MonthDays,
    pub(super) of_week: WeekDays,
    pub(super) join: DayJoin,
}

/// How days of the month and days of the week are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayJoin {
    /// Quartz, with `?` for the day of the week.
    OfMonth,
    /// Quartz, with `?` for the day of the month.
    OfWeek,
    /// Classic, when a field begins with `*`.
    Both,
    /// Classic, when neither does.
    Either,
}

/// Days of the month.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MonthDays {
    /// Bit d: day d.
    pub(super) days: u64,
    /// Bit n: n days before the last.
    pub(super) before_last: u64,
    /// Bit d: the weekday nearest to day d, within the month.
    pub(super) near: u64,
    /// Bit n: the weekday nearest to the day n days before the last, within the month.
    pub(super) near_before_last: u64,
}

/// Days of the week, 0 = Sunday.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WeekDays {
    /// Bit w: every such day.
    pub(super) every: u64,
    /// Bit w: the last such day of the month.
    pub(super) last: u64,
    /// Bit w of entry k: the (k+1)th such day of the month.
    pub(super) nth: [u64; 5],
}

/// Calendar facts of one month.
#[derive(Clone, Copy)]
struct Month {
    /// Weekday of the first, 0 = Sunday.
    starts: u32,
    /// Its last day, 28 to 31.
    last: u32,
}

/// Every seventh day, from the first on.
const WEEKLY: u64 = 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29;

impl CronDays {
    /// The first named day on or after `from`.
    pub(super) fn next(&self, from: NaiveDate, years: &Years) -> Option<NaiveDate> {
        let mut year = years.next(from.year())?;
        let (mut month, mut day) =
            if year == from.year() { (from.month(), from.day()) } else { (1, 1) };
        loop {
            let Some(named) = from_bit(self.months, month) else {
                (year, month, day) = (years.next(year + 1)?, 1, 1);
                continue;
            };
            if named != month {
                day = 1;
            }
            if let Some(found) = from_bit(self.day_bits(Month::new(year, named)?), day) {
                return NaiveDate::from_ymd_opt(year, named, found);
            }
            (month, day) = (named + 1, 1);
        }
    }

    fn day_bits(&self, month: Month) -> u64 {
        match self.join {
            DayJoin::OfMonth => self.of_month.day_bits(month),
            DayJoin::OfWeek => self.of_week.day_bits(month),
            DayJoin::Both => self.of_month.day_bits(month) & self.of_week.day_bits(month),
            DayJoin::Either => self.of_month.day_bits(month) | self.of_week.day_bits(month),
        }
    }
}

impl MonthDays {
    fn day_bits(&self, month: Month) -> u64 {
        let mut named = self.days & month.all_days();
        for before in iter_bits(self.before_last).filter(|n| *n < month.last) {
            named |= 1 << (month.last - before);
        }
        for day in iter_bits(self.near).filter(|d| *d <= month.last) {
            named |= 1 << month.nearest_weekday(day);
        }
        for before in iter_bits(self.near_before_last).filter(|n| *n < month.last) {
            named |= 1 << month.nearest_weekday(month.last - before);
        }
        named
    }
}

impl WeekDays {
    fn day_bits(&self, month: Month) -> u64 {
        let mut named = 0;
        for weekday in iter_bits(self.every) {
            named |= month.every(weekday);
        }
        for weekday in iter_bits(self.last) {
            named |= 1 << (63 - month.every(weekday).leading_zeros());
        }
        for (weeks, weekdays) in (0u32..).zip(self.nth) {
            for weekday in iter_bits(weekdays) {
                named |= (1 << (month.first(weekday) + 7 * weeks)) & month.all_days();
            }
        }
        named
    }
}

impl Month {
    fn new(year: i32, month: u32) -> Option<Self> {
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        let last = u32::from(first.num_days_in_month());
        Some(Self { starts: first.weekday().num_days_from_sunday(), last })
    }

    fn all_days(self) -> u64 {
        (1 << (self.last + 1)) - 2
    }

    /// The first day of the month with this weekday.
    fn first(self, weekday: u32) -> u32 {
        1 + (weekday + 7 - self.starts) % 7
    }

    fn every(self, weekday: u32) -> u64 {
        (WEEKLY << (self.first(weekday) - 1)) & self.all_days()
    }

    /// `day`, or if it is a Saturday or Sunday the nearest Monday to Friday within the month.
    fn nearest_weekday(self, day: u32) -> u32 {
        match (self.starts + day - 1) % 7 {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.last => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

/// Positions of the set bits, lowest first.
fn iter_bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}
