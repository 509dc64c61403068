//! Counted days of a month, such as the third working day, as fields of crons.

use crate::import::calendar_names::WEEK;
use chrono::{Weekday, WeekdaySet};
use std::collections::BTreeMap;

/// The latest day of a month that each month has.
const LAST_COMMON_DAY: u32 = 28;

/// A field for the day of the month, and the days of the week on which alone it counts.
pub(crate) type CountedDay = (String, WeekdaySet);

/// The n-th of some days of the week in a month: by the day of the month on which it falls, the days of the week that it then is.
/// None where some month has no such day.
pub(crate) fn counted_days(kinds: &[Weekday], place: u32) -> Option<Vec<CountedDay>> {
    let mut found: BTreeMap<u32, Vec<Weekday>> = BTreeMap::new();
    for (first, _) in WEEK {
        let (mut day, mut week, mut left) = (1, first, place);
        loop {
            if kinds.contains(&week) {
                left = left.checked_sub(1)?;
            }
            if left == 0 {
                break;
            }
            (day, week) = (day + 1, week.succ());
            if day > LAST_COMMON_DAY {
                return None;
            }
        }
        found.entry(day).or_default().push(week);
    }
    Some(grouped(found, &|day| day.to_string()))
}

/// The last of some days of the week in a month.
pub(crate) fn last_of(kinds: &[Weekday]) -> Vec<CountedDay> {
    let mut found: BTreeMap<u32, Vec<Weekday>> = BTreeMap::new();
    for (last, _) in WEEK.iter().filter(|_| !kinds.is_empty()) {
        let (mut before, mut week) = (0, *last);
        while !kinds.contains(&week) {
            (before, week) = (before + 1, week.pred());
        }
        found.entry(before).or_default().push(week);
    }
    grouped(found, &|before| if before == 0 { "L".to_owned() } else { format!("L-{before}") })
}

/// Days of the month with the same days of the week are one field.
fn grouped(found: BTreeMap<u32, Vec<Weekday>>, name: &dyn Fn(u32) -> String) -> Vec<CountedDay> {
    let mut by_week: Vec<(WeekdaySet, Vec<String>)> = Vec::new();
    for (day, week) in found {
        let set: WeekdaySet = week.into_iter().collect();
        match by_week.iter_mut().find(|(known, _)| *known == set) {
            Some((_, days)) => days.push(name(day)),
            None => by_week.push((set, vec![name(day)])),
        }
    }
    by_week.into_iter().map(|(set, days)| (days.join(","), set)).collect()
}
