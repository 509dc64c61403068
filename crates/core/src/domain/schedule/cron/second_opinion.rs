//! Compares this module's reading of an expression with that of the crate `cron` before a schedule
//! is saved.
//!
//! Only what both interpret alike is compared. The crate reads six and seven fields with 1 as
//! Sunday; it has no `L`, `W` and `#`, no range that wraps around, and no year after 2100. It has
//! no rule for clock changes, so local times near one are left out on both sides.

use super::{Cron, CronDialect};
use crate::domain::time::Millis;
use crate::domain::time::local_time::{WallClockMoments, ahead_sec, shown, wall_at};
use chrono::{Datelike as _, NaiveDateTime};
use chrono_tz::Tz;
use std::fmt;
use std::str::FromStr as _;

/// Number of firings that are compared.
const COMPARED: usize = 50;
/// The crate is not consulted from this year on.
const YEAR_END: i32 = 2099;
/// Milliseconds before and after a clock change within which nothing is compared: no zone moves its
/// clock by more than a day.
const NEAR_CHANGE_MS: i64 = 25 * 3_600_000;

/// Two readings of an expression, at the first firing at which they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronDisagreement {
    /// The expression.
    pub text: String,
    /// The zone.
    pub zone: Tz,
    /// This program's firing, if any.
    pub ours: Option<Millis>,
    /// The crate's firing, if any.
    pub theirs: Option<Millis>,
}

impl fmt::Display for CronDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |at: Option<Millis>| match at {
            Some(at) => format!("at {} ({} UTC)", wall_at(at, self.zone), at.to_utc().naive_utc()),
            None => "no more".to_owned(),
        };
        write!(
            f,
            "'{}' in {} has two readings: by Procession it fires {}, by the crate cron {}",
            self.text,
            self.zone,
            word(self.ours),
            word(self.theirs)
        )
    }
}

impl Cron {
    /// Compares the next firings after `after` with those of the crate `cron`, where the crate
    /// understands the expression.
    ///
    /// # Errors
    /// The first firing at which the two differ.
    pub fn compare_with_crate(&self, after: Millis, zone: Tz) -> Result<(), CronDisagreement> {
        if self.dialect() == CronDialect::Classic {
            return Ok(());
        }
        let Ok(theirs) = cron::Schedule::from_str(self.as_str()) else { return Ok(()) };
        let start = wall_at(after, zone);
        // Local times are passed as if they were UTC: then the crate sees no clock changes.
        let theirs = theirs.after_owned(start.and_utc()).map(|at| at.naive_utc());
        self.compare_firings(after, zone, theirs)
    }

    fn compare_firings(
        &self,
        after: Millis,
        zone: Tz,
        theirs: impl Iterator<Item = NaiveDateTime>,
    ) -> Result<(), CronDisagreement> {
        let fires = |at: &Millis| self.next_after(*at, zone);
        let ours = Firings::gather(std::iter::successors(fires(&after), fires), zone);
        let theirs = Firings::gather(theirs.map(|wall| planned(wall, zone)), zone);
        let until = ours.until.min(theirs.until);
        let (ours, theirs) = (ours.comparable(until, zone), theirs.comparable(until, zone));
        let differs = (0..ours.len().max(theirs.len())).find(|n| ours.get(*n) != theirs.get(*n));
        differs.map_or(Ok(()), |n| {
            Err(CronDisagreement {
                text: self.as_str().to_owned(),
                zone,
                ours: ours.get(n).copied(),
                theirs: theirs.get(n).copied(),
            })
        })
    }
}

fn planned(wall: NaiveDateTime, zone: Tz) -> Millis {
    shown(wall, zone).planned()
}

/// The first firings of one reading, and the moment up to which they are complete.
struct Firings {
    times: Vec<Millis>,
    until: Millis,
}

impl Firings {
    fn gather(all: impl Iterator<Item = Millis>, zone: Tz) -> Self {
        let is_known = |at: &Millis| wall_at(*at, zone).year() < YEAR_END;
        let times: Vec<Millis> = all.take(COMPARED).take_while(is_known).collect();
        let until = match times.last() {
            Some(last) if times.len() == COMPARED => *last,
            _ => Millis(i64::MAX),
        };
        Self { times, until }
    }

    /// The firings up to `until` that are not near a clock change.
    fn comparable(self, until: Millis, zone: Tz) -> Vec<Millis> {
        let is_far = |at: &Millis| {
            let (before, behind) = (at.plus_ms(-NEAR_CHANGE_MS), at.plus_ms(NEAR_CHANGE_MS));
            let wall = wall_at(*at, zone);
            ahead_sec(before, zone) == ahead_sec(behind, zone)
                && matches!(shown(wall, zone), WallClockMoments::Once(_))
        };
        self.times.into_iter().filter(|at| *at <= until && is_far(at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{TimeZone as _, Timelike as _, Utc};

    fn at(text: &str) -> Millis {
        let wall: NaiveDateTime = text.parse().expect("a time");
        Utc.from_utc_datetime(&wall).into()
    }

    /// Compares a reading of `text` with the crate's reading of `other`.
    fn compare(text: &str, other: &str, zone: Tz) -> Result<(), CronDisagreement> {
        let ours = Cron::parse(text).expect("ours");
        let theirs = cron::Schedule::from_str(other).expect("theirs");
        let after = at("2026-11-24T01:00:00");
        let start = wall_at(after, zone).and_utc();
        ours.compare_firings(after, zone, theirs.after_owned(start).map(|at| at.naive_utc()))
    }

    #[test]
    fn a_difference_is_named_with_both_times() {
        for zone in [Tz::UTC, Tz::Asia__Shanghai, Tz::America__New_York] {
            let same = "0 30 2 1 * ?";
            assert_eq!(compare(same, same, zone), Ok(()), "{zone}");
            let found = compare(same, "0 30 3 1 * ?", zone).expect_err("an hour later");
            let (ours, theirs) = (found.ours.expect("ours"), found.theirs.expect("theirs"));
            assert_eq!(theirs.since(ours), 3_600_000, "{zone}");
            assert_eq!(wall_at(ours, zone).hour(), 2, "{zone}");
            let said = found.to_string();
            assert!(said.contains("2026-12-01 02:30:00"), "{said}");
            assert!(said.contains("2026-12-01 03:30:00"), "{said}");
            // One reading has days that the other lacks; and one that ends.
            assert!(compare("0 0 2 ? * MON", "0 0 2 ? * TUE", zone).is_err(), "{zone}");
            let ends = compare("0 0 2 1 1 ?", "0 0 2 1 1 ? 2027", zone).expect_err("2028");
            assert_eq!(ends.theirs, None);
            assert!(ends.to_string().ends_with("by the crate cron no more"), "{ends}");
        }
    }

    #[test]
    fn changes_of_the_clock_are_left_out() {
        // New York loses 02:30 on 14 March 2027 and has 01:30 twice on 7 November.
        for text in ["0 30 2 * * ?", "0 30 1 * * ?", "0 0/30 * * * ?", "0 0 0/3 * * ?"] {
            for start in ["2026-11-24T01:00:00", "2027-03-13T20:00:00", "2027-11-06T20:00:00"] {
                let cron = Cron::parse(text).expect("read");
                let found = cron.compare_with_crate(at(start), Tz::America__New_York);
                assert_eq!(found, Ok(()), "{text} from {start}");
            }
        }
    }

    #[test]
    fn what_the_crate_does_not_read_is_not_compared() {
        for text in ["0 2 * * 1", "0 0 0 L * ?", "0 0 0 15W * ?", "0 0 0 ? * 6#3"] {
            let cron = Cron::parse(text).expect("read");
            assert_eq!(
                cron.compare_with_crate(at("2026-11-24T01:00:00"), Tz::UTC),
                Ok(()),
                "{text}"
            );
        }
    }
}
