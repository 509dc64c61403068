//! Times of the day as the first three fields of crons: one cron for all hours in which the same minutes and seconds come.

use std::collections::{BTreeMap, BTreeSet};

/// Most schedules that one schedule elsewhere may become; more are nothing that people would keep.
pub(crate) const CRONS_MAX: usize = 12;

/// The fields for seconds, minutes and hours that name these seconds of the day together; none when they would be too many.
pub(crate) fn time_fields(times: impl IntoIterator<Item = u32>) -> Option<Vec<String>> {
    let mut hours: BTreeMap<u32, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
    for time in times {
        let of_hour = hours.entry(time / 3_600).or_default();
        of_hour.entry(time / 60 % 60).or_default().insert(time % 60);
    }
    // By the seconds and minutes that come in an hour.
    let mut alike: BTreeMap<(Vec<u32>, Vec<u32>), BTreeSet<u32>> = BTreeMap::new();
    for (hour, minutes) in hours {
        let mut by_seconds: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for (minute, seconds) in minutes {
            by_seconds.entry(seconds.into_iter().collect()).or_default().push(minute);
        }
        for (seconds, minutes) in by_seconds {
            alike.entry((seconds, minutes)).or_default().insert(hour);
        }
        if alike.len() > CRONS_MAX {
            return None;
        }
    }
    let fields = |((seconds, minutes), hours): ((Vec<u32>, Vec<u32>), BTreeSet<u32>)| {
        let (seconds, minutes) = (seconds.into_iter().collect(), minutes.into_iter().collect());
        format!("{} {} {}", field(&seconds, 60), field(&minutes, 60), field(&hours, 24))
    };
    Some(alike.into_iter().map(fields).collect())
}

fn field(all: &BTreeSet<u32>, size: usize) -> String {
    if all.len() == size {
        return "*".to_owned();
    }
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
