//! Times of day that come every so many seconds between two of them, on days of the week, as crons.

use crate::import::time_fields::time_fields;
use std::collections::BTreeSet;

const DAY_SEC: u32 = 86_400;

/// From one second of the day to another, both inclusive, on some days of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DailyTimes {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
    /// 1 is Sunday, as in Quartz.
    pub(super) weekdays: BTreeSet<u32>,
}

impl DailyTimes {
    /// Reads the columns: the unit, the step, days of the week, and two times of day (`8,0,0,17,30,0`).
    pub(super) fn read(unit: &str, step: i64, days: &str, times: &str) -> Option<Self> {
        let seconds = match unit {
            "SECOND" => 1,
            "MINUTE" => 60,
            "HOUR" => 3_600,
            _ => return None,
        };
        let step = u32::try_from(step).ok()?.checked_mul(seconds)?;
        let weekdays = if days.is_empty() {
            (1..=7).collect()
        } else {
            let all: Option<BTreeSet<u32>> = days
                .split(',')
                .map(|day| day.trim().parse().ok().filter(|day| (1..=7).contains(day)))
                .collect();
            all?
        };
        let parts: Vec<&str> = times.split(',').map(str::trim).collect();
        let second = |from: usize| {
            let part = |at: usize, size: u32| {
                parts.get(from + at)?.parse::<u32>().ok().filter(|n| *n < size)
            };
            Some(part(0, 24)? * 3_600 + part(1, 60)? * 60 + part(2, 60)?)
        };
        let first = second(0).unwrap_or(0);
        let last = second(3).unwrap_or(DAY_SEC - 1);
        let is_sound = (1..=DAY_SEC).contains(&step) && first <= last && last < DAY_SEC;
        is_sound.then_some(Self { first, last, step, weekdays })
    }

    /// The cron expressions that together name these times; `None` if there are too many.
    pub(super) fn crons(&self) -> Option<Vec<String>> {
        let step = usize::try_from(self.step).ok()?;
        let fields = time_fields((self.first..=self.last).step_by(step))?;
        let days = if self.weekdays.len() == 7 {
            "* * ?".to_owned()
        } else {
            let days = self.weekdays.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            format!("? * {days}")
        };
        Some(fields.into_iter().map(|time| format!("{time} {days}")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crons(unit: &str, step: i64, days: &str, times: &str) -> Option<Vec<String>> {
        DailyTimes::read(unit, step, days, times)?.crons()
    }

    #[test]
    fn times_between_two_times_of_day_are_crons() {
        let made = |all: &[&str]| Some(all.iter().map(|cron| (*cron).to_owned()).collect());
        for (unit, step, days, times, wanted) in [
            (
                "HOUR",
                1,
                "1,2,3,4,5,6,7",
                "8,0,0,17,30,0",
                made(&["0 0 8,9,10,11,12,13,14,15,16,17 * * ?"]),
            ),
            ("MINUTE", 30, "2,3", "8,15,0,9,0,0", made(&["0 15,45 8 ? * 2,3"])),
            (
                "MINUTE",
                45,
                "",
                "0,0,0,2,59,59",
                made(&["0 0,45 0 * * ?", "0 15 2 * * ?", "0 30 1 * * ?"]),
            ),
            ("SECOND", 30, "", "", made(&["0,30 * * * * ?"])),
            ("HOUR", 24, "", "6,0,0,23,59,59", made(&["0 0 6 * * ?"])),
            ("SECOND", 7, "", "", None),
            ("DAY", 1, "", "", None),
            ("HOUR", 0, "", "", None),
            ("HOUR", 1, "8", "", None),
            ("HOUR", 1, "", "9,0,0,8,0,0", None),
        ] {
            assert_eq!(crons(unit, step, days, times), wanted, "{unit} {step} {days} {times}");
        }
    }
}
