//! Converts between local time in a time zone and moments, including the gaps and overlaps of daylight-saving changes.

use crate::domain::time::Millis;
use chrono::{
    MappedLocalTime, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _, Timelike as _,
};
use chrono_tz::{GapInfo, Tz};

/// The moments at which clocks show one local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallClockMoments {
    /// One moment: the normal case.
    Once(Millis),
    /// Two: the clocks were put back in between (an overlap).
    Twice(Millis, Millis),
    /// None: the clocks were put forward past it (a gap). The moment is the first one after the gap.
    Never(Millis),
}

impl WallClockMoments {
    /// The moment at which something planned for this local time happens: the first moment that shows it, or the first
    /// one after the gap. A later local time never gives an earlier moment.
    pub fn planned(self) -> Millis {
        match self {
            Self::Once(at) | Self::Twice(at, _) | Self::Never(at) => at,
        }
    }
}

/// The moments at which the clocks of `zone` show `wall`.
pub fn shown(wall: NaiveDateTime, zone: Tz) -> WallClockMoments {
    match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(at) => WallClockMoments::Once(at.to_utc().into()),
        MappedLocalTime::Ambiguous(first, second) => {
            WallClockMoments::Twice(first.to_utc().into(), second.to_utc().into())
        }
        MappedLocalTime::None => WallClockMoments::Never(after_gap(wall, zone)),
    }
}

/// The local time of `zone` at `at`, to the millisecond.
pub fn wall_at(at: Millis, zone: Tz) -> NaiveDateTime {
    at.to_utc().with_timezone(&zone).naive_local()
}

/// The UTC offset of `zone` at `at`, in seconds.
pub fn ahead_sec(at: Millis, zone: Tz) -> i64 {
    let offset = zone.offset_from_utc_datetime(&at.to_utc().naive_utc());
    i64::from(offset.fix().local_minus_utc())
}

/// The first moment at or after `from` (a whole second) that executes one of the local times of `wall_from`, with that
/// local time. Each local time is planned for one moment ([`Shown::planned`]).
///
/// `wall_from` returns its first local time at or after a given one; both are whole seconds.
pub fn next_planned<E>(
    from: Millis,
    zone: Tz,
    mut wall_from: impl FnMut(NaiveDateTime) -> Result<Option<NaiveDateTime>, E>,
) -> Result<Option<(Millis, NaiveDateTime)>, E> {
    // A later local time is never planned earlier, so the first one not yet done has the first moment.
    let wall = wall_from(first_open(from, zone))?;
    Ok(wall.map(|wall| (shown(wall, zone).planned(), wall)))
}

/// The first local time whose planned moment is `from` or later.
fn first_open(from: Millis, zone: Tz) -> NaiveDateTime {
    let now = whole_second(wall_at(from, zone));
    match shown(now, zone) {
        // Second pass of an overlap: all its local times were done in the first pass.
        WallClockMoments::Twice(first, second) if first < from => {
            let change = change_between(first, second, zone);
            now + TimeDelta::milliseconds(change.since(first))
        }
        WallClockMoments::Twice(..) | WallClockMoments::Once(_) | WallClockMoments::Never(_) => {
            // The first second after a gap also executes the local times within the gap.
            let leap = ahead_sec(from, zone) - ahead_sec(from.plus_ms(-1_000), zone);
            now - TimeDelta::seconds(leap.max(0))
        }
    }
}

/// The first moment at or after `from` (a whole second) at which the clocks show one of the local times of `wall_from`,
/// with that local time.
pub fn next_shown<E>(
    from: Millis,
    zone: Tz,
    mut wall_from: impl FnMut(NaiveDateTime) -> Result<Option<NaiveDateTime>, E>,
) -> Result<Option<(Millis, NaiveDateTime)>, E> {
    let now = whole_second(wall_at(from, zone));
    let onward = not_before(from, now, zone, &mut wall_from)?;
    // In the first pass of an overlap, local times before `now` occur again in the second pass.
    let again = match shown(now, zone) {
        WallClockMoments::Twice(first, second) if first == from => {
            let change = change_between(first, second, zone);
            not_before(change, wall_at(change, zone), zone, &mut wall_from)?
        }
        WallClockMoments::Twice(..) | WallClockMoments::Once(_) | WallClockMoments::Never(_) => {
            None
        }
    };
    Ok(match (onward, again) {
        (Some(onward), Some(again)) => Some(onward.min(again)),
        (one, other) => one.or(other),
    })
}

/// The first moment at or after `from` that shows the first of the local times from `now` on, where `now` is the local
/// time at `from`.
fn not_before<E>(
    mut from: Millis,
    mut now: NaiveDateTime,
    zone: Tz,
    wall_from: &mut impl FnMut(NaiveDateTime) -> Result<Option<NaiveDateTime>, E>,
) -> Result<Option<(Millis, NaiveDateTime)>, E> {
    while let Some(wall) = wall_from(now)? {
        match shown(wall, zone) {
            WallClockMoments::Once(at) => return Ok(Some((at, wall))),
            WallClockMoments::Twice(first, second) => {
                return Ok(Some((if first >= from { first } else { second }, wall)));
            }
            WallClockMoments::Never(after) => (from, now) = (after, wall_at(after, zone)),
        }
    }
    Ok(None)
}

/// The first moment after `first` at which the UTC offset of `zone` differs from that at `first`, given that it differs
/// at `second`; both are whole seconds.
fn change_between(first: Millis, second: Millis, zone: Tz) -> Millis {
    let before = ahead_sec(first, zone);
    let (mut low, mut high) = (first.0.div_euclid(1_000), second.0.div_euclid(1_000));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if ahead_sec(Millis(middle * 1_000), zone) == before {
            low = middle;
        } else {
            high = middle;
        }
    }
    Millis(high * 1_000)
}

/// `wall` truncated to whole seconds.
fn whole_second(wall: NaiveDateTime) -> NaiveDateTime {
    wall.with_nanosecond(0).unwrap_or(wall)
}

/// The moment at which the clocks were put forward past `wall`.
fn after_gap(wall: NaiveDateTime, zone: Tz) -> Millis {
    let begin = GapInfo::new(&wall, &zone).and_then(|gap| gap.begin);
    let moment = match begin {
        Some((from, offset)) => {
            from - TimeDelta::seconds(i64::from(offset.fix().local_minus_utc()))
        }
        // Only before the first entry of a zone's table, which starts at the minimum time.
        None => wall,
    };
    moment.and_utc().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(zone: &str, wall: &str) -> String {
        let zone: Tz = zone.parse().expect("zone");
        match shown(wall.parse().expect("time"), zone) {
            WallClockMoments::Once(at) => format!("once {at}"),
            WallClockMoments::Twice(first, second) => format!("twice {first} {second}"),
            WallClockMoments::Never(after) => format!("never {after}"),
        }
    }

    #[test]
    fn clocks_are_changed_in_many_ways() {
        for (zone, wall, expected) in [
            ("Asia/Shanghai", "2026-07-31T02:30:00", "once 2026-07-30T18:30:00.000Z"),
            ("America/New_York", "2026-03-08T02:30:00", "never 2026-03-08T07:00:00.000Z"),
            ("America/New_York", "2026-03-08T03:00:00", "once 2026-03-08T07:00:00.000Z"),
            (
                "America/New_York",
                "2026-11-01T01:30:00",
                "twice 2026-11-01T05:30:00.000Z 2026-11-01T06:30:00.000Z",
            ),
            // Lord Howe: half an hour; next, a gap that begins at midnight.
            ("Australia/Lord_Howe", "2026-10-04T02:15:00", "never 2026-10-03T15:30:00.000Z"),
            ("Africa/Cairo", "2026-04-24T00:00:00", "never 2026-04-23T22:00:00.000Z"),
            // Samoa skipped a whole day when it moved across the date line.
            ("Pacific/Apia", "2011-12-30T10:00:00", "never 2011-12-30T10:00:00.000Z"),
        ] {
            assert_eq!(words(zone, wall), expected, "{zone} {wall}");
        }
    }
}
