//! The time of day in which old rows are removed by themselves.

use crate::domain::schedule::read_zone;
use crate::domain::time::Millis;
use crate::domain::time::local_time::{shown, wall_at};
use chrono::{Days, NaiveTime};
use chrono_tz::Tz;

/// From a time of day to another, on the clock of a zone; over midnight when the end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from: NaiveTime,
    to: NaiveTime,
    zone: Tz,
}

/// A window that cannot be read; its text is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadWindow(String);

impl Window {
    /// Reads `22:00-06:00` on the clock of `zone`.
    pub fn parse(text: &str, zone: &str) -> Result<Self, BadWindow> {
        let zone = read_zone(zone).map_err(|error| BadWindow(error.to_string()))?;
        let time = |word: &str| NaiveTime::parse_from_str(word.trim(), "%H:%M").ok();
        let ends = text.split_once('-').and_then(|(from, to)| time(from).zip(time(to)));
        match ends {
            Some((from, to)) if from != to => Ok(Self { from, to, zone }),
            Some(_) => Err(BadWindow(format!(
                "{text:?} begins when it ends; leave it empty for the whole day"
            ))),
            None => Err(BadWindow(format!(
                "{text:?} is no time of day; write 22:00-06:00, or leave it empty for the whole day"
            ))),
        }
    }

    /// Whether it is open at this moment.
    pub fn is_open(&self, now: Millis) -> bool {
        let time = wall_at(now, self.zone).time();
        if self.from < self.to {
            self.from <= time && time < self.to
        } else {
            self.from <= time || time < self.to
        }
    }

    /// When it opens next; this moment when it is open.
    pub fn opens(&self, now: Millis) -> Millis {
        if self.is_open(now) {
            return now;
        }
        let day = wall_at(now, self.zone).date();
        let at = |day: chrono::NaiveDate| shown(day.and_time(self.from), self.zone).planned();
        let tomorrow = day.checked_add_days(Days::new(1)).unwrap_or(day);
        let today = at(day);
        if today > now { today } else { at(tomorrow) }
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{} {}", self.from.format("%H:%M"), self.to.format("%H:%M"), self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Millis {
        text.parse::<chrono::DateTime<chrono::Utc>>().expect("time").into()
    }

    #[test]
    fn a_window_goes_over_midnight_on_the_clock_of_its_zone() {
        let night = Window::parse("22:00-06:00", "Asia/Shanghai").expect("window");
        for (now, is_open) in [
            ("2024-08-01T13:59:59Z", false),
            ("2024-08-01T14:00:00Z", true),
            ("2024-08-01T17:00:00Z", true),
            ("2024-08-01T21:59:59Z", true),
            ("2024-08-01T22:00:00Z", false),
        ] {
            assert_eq!(night.is_open(at(now)), is_open, "{now}");
        }
        assert_eq!(night.opens(at("2024-08-01T22:00:00Z")), at("2024-08-02T14:00:00Z"));
        assert_eq!(night.opens(at("2024-08-01T03:00:00Z")), at("2024-08-01T14:00:00Z"));
        assert_eq!(night.opens(at("2024-08-01T15:00:00Z")), at("2024-08-01T15:00:00Z"));
        let noon = Window::parse("12:00 - 13:30", "UTC").expect("window");
        assert!(
            noon.is_open(at("2024-08-01T13:29:00Z")) && !noon.is_open(at("2024-08-01T13:30:00Z"))
        );
        assert_eq!(noon.to_string(), "12:00-13:30 UTC");
    }

    #[test]
    fn what_is_no_window_is_told_how_to_write_one() {
        for (text, zone, said) in [
            ("at night", "UTC", "write 22:00-06:00"),
            ("22-06", "UTC", "write 22:00-06:00"),
            ("22:00-25:00", "UTC", "write 22:00-06:00"),
            ("22:00-22:00", "UTC", "leave it empty"),
            ("22:00-06:00", "Shanghai", "Shanghai"),
        ] {
            let error = Window::parse(text, zone).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
