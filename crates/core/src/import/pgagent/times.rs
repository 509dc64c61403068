//! Translates schedules of pgAgent: their arrays become cron expressions, and the time zone, which no table names, is
//! inferred.

use super::{JOBS, SCHEDULES};
use crate::domain::calendar::Calendars;
use crate::domain::schedule::{Anchor, TimingWords};
use crate::domain::source::scheduler_tables::{SchedulerRow, SchedulerTables};
use crate::domain::time::Millis;
use crate::import::calendar_names::{WEEK, blackout_of_other_days};
use crate::import::draft::Draft;
use crate::import::live_zone::ServerZone;
use chrono::DateTime;
use chrono_tz::Tz;

/// The time zone of its times, and whether it is certain: the user's option, else the server's zone or UTC, whichever
/// first explains the next run of every job with exactly one schedule.
pub(super) fn zone(tables: &SchedulerTables, draft: &Draft) -> (Tz, bool) {
    let (asked, now) = (draft.asked.zone, draft.asked.now);
    let server = ServerZone::find_zone(&tables.server, None, now);
    let zones: Vec<Tz> = match asked {
        Some(zone) => vec![zone],
        None => vec![server.zone(), Tz::UTC],
    };
    let mut samples = Vec::new();
    for job in tables.table_rows(JOBS) {
        let own = |row: &&SchedulerRow| {
            row.trimmed_value("jscjobid") == job.trimmed_value("jobid") && row.is_true("jscenabled")
        };
        let schedules: Vec<&SchedulerRow> =
            tables.table_rows(SCHEDULES).iter().filter(own).collect();
        if let ([schedule], Some(next)) = (&schedules[..], moment(job.trimmed_value("jobnextrun")))
        {
            samples.push((*schedule, next));
        }
    }
    let agrees = |zone: Tz| {
        samples.iter().all(|(schedule, next)| {
            let timing = AgentTimes::read(schedule).timing().parse_timing(Some(zone));
            let found = timing.ok().and_then(|timing| {
                let anchor = Anchor::new(now);
                timing.next_after(&Calendars::default(), next.plus_ms(-1), anchor).ok()?
            });
            found.is_some_and(|found| found.planned == *next)
        })
    };
    let found = zones.iter().copied().find(|zone| agrees(*zone));
    let is_sure = found.is_some() && (asked.is_some() || !samples.is_empty());
    (found.unwrap_or(zones[0]), is_sure)
}

/// Parses a moment in PostgreSQL's format: `2026-11-27 02:20:12.5+00`.
pub(super) fn moment(text: &str) -> Option<Millis> {
    let text = if text.len() > 3 && text[text.len() - 3..].starts_with(['+', '-']) {
        format!("{text}:00")
    } else {
        text.to_owned()
    };
    DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f%:z").ok().map(|at| at.to_utc().into())
}

/// The indexes of the set booleans of an array, from 0; `None` if none or all are set, which both mean any.
fn set_places(text: &str) -> Option<Vec<usize>> {
    let bits: Vec<bool> = text
        .trim_matches(['{', '}'])
        .split(',')
        .map(|bit| bit.trim().starts_with(['t', '1']))
        .collect();
    let set: Vec<usize> =
        bits.iter().enumerate().filter(|(_, bit)| **bit).map(|(at, _)| at).collect();
    (!set.is_empty() && set.len() < bits.len()).then_some(set)
}

/// The times of a schedule, from its arrays.
pub(super) struct AgentTimes {
    minutes: Option<Vec<usize>>,
    hours: Option<Vec<usize>>,
    weekdays: Option<Vec<usize>>,
    monthdays: Option<Vec<usize>>,
    months: Option<Vec<usize>>,
}

impl AgentTimes {
    pub(super) fn read(row: &SchedulerRow) -> Self {
        let array = |column| set_places(row.trimmed_value(column));
        Self {
            minutes: array("jscminutes"),
            hours: array("jschours"),
            weekdays: array("jscweekdays"),
            // All 31 days without the "last day" flag also mean any day.
            monthdays: array("jscmonthdays").filter(|days| !(0..31).all(|day| days.contains(&day))),
            months: array("jscmonths"),
        }
    }

    /// A cron expression for days of the month or of the week. If both are given, both must match: then the other days
    /// of the week become blackouts.
    pub(super) fn timing(&self) -> TimingWords {
        let list = |places: &Option<Vec<usize>>, first: usize| {
            let Some(places) = places else { return "*".to_owned() };
            places.iter().map(|place| (place + first).to_string()).collect::<Vec<_>>().join(",")
        };
        let monthdays = self.monthdays.as_ref().map(|days| {
            let day =
                |place: &usize| if *place == 31 { "L".to_owned() } else { (place + 1).to_string() };
            days.iter().map(day).collect::<Vec<_>>().join(",")
        });
        let weekdays = self
            .weekdays
            .as_ref()
            .map(|days| days.iter().filter_map(|place| WEEK.get(*place)))
            .map(|days| days.map(|(_, name)| *name).collect::<Vec<_>>().join(","));
        let (day, weekday) = match (&monthdays, &weekdays) {
            (Some(days), _) => (days.as_str(), "?"),
            (None, Some(days)) => ("?", days.as_str()),
            (None, None) => ("*", "?"),
        };
        let (minute, hour, month) =
            (list(&self.minutes, 0), list(&self.hours, 0), list(&self.months, 1));
        let mut blackouts = Vec::new();
        if let (Some(_), Some(days)) = (&self.monthdays, &self.weekdays) {
            let named = days.iter().filter_map(|place| WEEK.get(*place)).map(|(day, _)| *day);
            blackouts.push(blackout_of_other_days(named.collect()));
        }
        TimingWords {
            cron: Some(format!("0 {minute} {hour} {day} {month} {weekday}")),
            blackouts,
            ..TimingWords::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(count: usize, set: &[usize]) -> String {
        let bit = |at: usize| if set.contains(&at) { "t" } else { "f" };
        format!("{{{}}}", (0..count).map(bit).collect::<Vec<_>>().join(","))
    }

    fn timing(monthdays: &[usize], weekdays: &[usize]) -> TimingWords {
        let arrays = [
            ("jscminutes", bits(60, &[0, 30])),
            ("jschours", bits(24, &[2])),
            ("jscweekdays", bits(7, weekdays)),
            ("jscmonthdays", bits(32, monthdays)),
            ("jscmonths", bits(12, &[0, 11])),
        ];
        let pairs: Vec<(&str, &str)> = arrays.iter().map(|(k, v)| (*k, v.as_str())).collect();
        AgentTimes::read(&SchedulerRow::from_pairs(&pairs)).timing()
    }

    #[test]
    fn arrays_are_fields() {
        let all: Vec<usize> = (0..32).collect();
        for (monthdays, weekdays, wanted) in [
            (&[][..], &[][..], "0 0,30 2 * 1,12 ?"),
            (&all, &[], "0 0,30 2 * 1,12 ?"),
            (&all[..31], &[], "0 0,30 2 * 1,12 ?"),
            (&[0, 14, 31], &[], "0 0,30 2 1,15,L 1,12 ?"),
            (&[], &[0, 6], "0 0,30 2 ? 1,12 SUN,SAT"),
        ] {
            let found = timing(monthdays, weekdays);
            assert_eq!(found.cron.as_deref(), Some(wanted));
            assert!(found.blackouts.is_empty());
        }
        let both = timing(&[0], &[1]);
        assert_eq!(both.cron.as_deref(), Some("0 0,30 2 1 1,12 ?"));
        assert_eq!(both.blackouts[0].time.to_string(), "00:00-00:00 tue,wed,thu,fri,sat,sun");
    }

    #[test]
    fn moments_have_an_offset() {
        let at = moment("2026-11-27 02:20:12.5+00").map(|at| at.0);
        assert_eq!(at, Some(1_795_746_012_500));
        assert_eq!(moment("2026-11-27 10:20:12.5+08:00").map(|at| at.0), at);
        assert_eq!(moment(""), None);
    }
}
