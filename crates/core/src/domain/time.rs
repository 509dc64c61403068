//! Moments and durations in whole milliseconds; nothing here reads a clock.

pub mod local_time;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01T00:00:00Z. All three databases store this precision.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// The moment `ms` milliseconds later; saturates at the ends of time.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; negative when `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The same moment as a `chrono` value; out-of-range moments become the epoch.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

impl Millis {
    /// Parses a moment: `2026-07-01T08:00:00+08:00`, or without an offset, or a date alone, in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Some(at.with_timezone(&Utc).into());
        }
        let forms =
            ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
        let time = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
        let day = || Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN));
        time.or_else(day).map(|wall| Self::from(wall.and_utc()))
    }
}

impl From<DateTime<Utc>> for Millis {
    fn from(at: DateTime<Utc>) -> Self {
        Self(at.timestamp_millis())
    }
}

impl std::fmt::Display for Millis {
    /// RFC 3339 in UTC with milliseconds: `2024-07-31T18:00:00.000Z`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

/// A duration for display: `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 10 min`.
pub fn span_words(ms: i64) -> String {
    let ms = ms.max(0);
    let (s, min, h) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=59_999 => format!("{s}.{} s", ms % 1_000 / 100),
        60_000..=3_599_999 => format!("{min} min {:02} s", s % 60),
        _ => format!("{h} h {:02} min", min % 60),
    }
}

/// The first moment on or after `day` `time` in `zone`. A local time within a daylight-saving gap
/// becomes the first moment after the gap; an ambiguous one is taken the first time, so that a
/// nightly job is neither skipped nor run twice.
pub fn at_wall_clock(day: NaiveDate, time: NaiveTime, zone: Tz) -> Millis {
    let mut wall = day.and_time(time);
    // The longest gap in the tz database is one day (Samoa, 2011-12-30).
    for _ in 0..=(24 * 60) {
        if let Some(at) = zone.from_local_datetime(&wall).earliest() {
            return at.with_timezone(&Utc).into();
        }
        wall += chrono::Duration::minutes(1);
    }
    Millis::from(Utc.from_utc_datetime(&day.and_time(time)))
}

/// The date of `at` in `zone`.
pub fn day_in(at: Millis, zone: Tz) -> NaiveDate {
    at.to_utc().with_timezone(&zone).date_naive()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(zone: &str, day: &str, time: &str) -> String {
        let zone: Tz = zone.parse().expect("zone");
        at_wall_clock(day.parse().expect("day"), time.parse().expect("time"), zone).to_string()
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        let at = |text: &str| Millis::parse(text).map(|at| at.to_string());
        for (text, wanted) in [
            ("2026-07-01T08:00:00+08:00", "2026-07-01T00:00:00.000Z"),
            ("2026-07-01T08:00:00.250Z", "2026-07-01T08:00:00.250Z"),
            ("2026-07-01T08:00", "2026-07-01T08:00:00.000Z"),
            ("2026-07-01 08:00:05", "2026-07-01T08:00:05.000Z"),
            (" 2026-07-01 ", "2026-07-01T00:00:00.000Z"),
        ] {
            assert_eq!(at(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "08:00", "1783000000"] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn wall_clock_gaps_and_overlaps() {
        assert_eq!(wall("Asia/Shanghai", "2024-07-31", "02:30:00"), "2024-07-30T18:30:00.000Z");
        // New York, 8 March 2026: 02:00–03:00 does not exist; the first instant after is 03:00 EDT.
        assert_eq!(wall("America/New_York", "2026-03-08", "02:30:00"), "2026-03-08T07:00:00.000Z");
        // New York, 1 November 2026: 01:30 occurs twice; the first is EDT.
        assert_eq!(wall("America/New_York", "2026-11-01", "01:30:00"), "2026-11-01T05:30:00.000Z");
        // Samoa had no 30 December 2011 at all.
        assert_eq!(wall("Pacific/Apia", "2011-12-30", "10:00:00"), "2011-12-30T10:00:00.000Z");
    }

    #[test]
    fn spans_read_as_people_say_them() {
        for (ms, words) in [
            (-5, "0 ms"),
            (850, "850 ms"),
            (12_345, "12.3 s"),
            (245_000, "4 min 05 s"),
            (7_800_000, "2 h 10 min"),
        ] {
            assert_eq!(span_words(ms), words);
        }
    }
}
