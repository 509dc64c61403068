//! Translates schedules that fire every so many months, days or seconds of local time from a start. They become cron
//! expressions and fixed rates that fire at the same times.

use crate::domain::schedule::TimingWords;
use crate::domain::time::Millis;
use crate::domain::time::local_time::ahead_sec;
use crate::domain::time::local_time::shown;
use crate::import::note::BilingualSentence;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, TimeDelta, Timelike as _};
use chrono_tz::Tz;
use std::collections::BTreeMap;

const HOUR_SEC: i64 = 3_600;
pub(crate) const DAY_SEC: i64 = 24 * HOUR_SEC;
const WEEK_SEC: i64 = 7 * DAY_SEC;
/// Maximum number of months: a century; a longer interval never fires.
const MONTHS_MAX: i64 = 1_200;
/// A month, for finding out whether a zone has daylight-saving changes.
const MONTH_MS: i64 = 30 * 86_400_000;
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// The step from one firing to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalStep {
    /// Months from the day of the start; in a month without that day, its last day.
    Months(i64),
    /// Seconds of local time: `EVERY 1 DAY` keeps its time of day across daylight-saving changes.
    WallSeconds(i64),
}

/// An interval from a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) step: IntervalStep,
    /// The first firing, in the local time of the zone.
    pub(crate) start: NaiveDateTime,
    pub(crate) zone: Tz,
}

/// The schedules that together fire at the times of an interval, and the differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedules {
    pub(crate) timings: Vec<TimingWords>,
    pub(crate) differs: Option<BilingualSentence>,
}

impl Schedules {
    /// A single schedule without differences.
    pub(crate) fn exact(timing: TimingWords) -> Self {
        Self { timings: vec![timing], differs: None }
    }
}

impl Interval {
    /// The schedules of the interval; `None` if its step is not positive, or more than a century of months.
    pub(crate) fn schedules(&self, now: Millis) -> Option<Schedules> {
        let mut made = match self.step {
            IntervalStep::Months(months) if (1..=MONTHS_MAX).contains(&months) => Schedules {
                timings: self.month_crons(months).into_iter().map(cron_words).collect(),
                differs: None,
            },
            IntervalStep::WallSeconds(sec) if sec > 0 => self.wall_schedules(sec, now),
            IntervalStep::Months(_) | IntervalStep::WallSeconds(_) => return None,
        };
        let is_ahead = shown(self.start, self.zone).planned() > now;
        for timing in &mut made.timings {
            // A fixed rate counts from its start; a cron expression needs the start only if it is in the future.
            if timing.every_sec.is_some() || is_ahead {
                timing.start = Some(wall_text(self.start));
            }
            timing.time_zone = Some(self.zone.name().to_owned());
        }
        Some(made)
    }

    /// The time of day as the first three cron fields.
    fn time_of_day(&self) -> String {
        format!("{} {} {}", self.start.second(), self.start.minute(), self.start.hour())
    }

    /// Every `step` months: cron expressions by months and years, and a separate one for the last day of February.
    fn month_crons(&self, step: i64) -> Vec<String> {
        let mut crons = Vec::new();
        for MonthCycle { months, years } in
            month_cycles(self.start.date(), step).unwrap_or_default()
        {
            let day = self.start.day();
            let (february, others): (Vec<i64>, Vec<i64>) = match day {
                31 => (months, Vec::new()),
                29 | 30 => months.into_iter().partition(|month| *month == 2),
                _ => (Vec::new(), months),
            };
            for (day, months) in [(day.to_string(), others), ("L".to_owned(), february)] {
                if !months.is_empty() {
                    let months = month_list(&months);
                    crons.push(format!("{} {day} {months} ?{years}", self.time_of_day()));
                }
            }
        }
        crons
    }

    fn wall_schedules(&self, sec: i64, now: Millis) -> Schedules {
        if sec == DAY_SEC {
            return Schedules::exact(cron_words(format!("{} * * ?", self.time_of_day())));
        }
        if sec == WEEK_SEC {
            let day = WEEKDAYS[self.start.weekday().num_days_from_monday() as usize];
            return Schedules::exact(cron_words(format!("{} ? * {day}", self.time_of_day())));
        }
        if !changes_clocks(self.zone, now) {
            return Schedules::exact(every(sec));
        }
        match self.cron_within_day(sec) {
            Some(expression) => Schedules {
                timings: vec![cron_words(expression)],
                differs: Some(BilingualSentence::new(
                    "in the hour that comes twice when the clocks go back it may fire at both, there at one of them",
                    "时钟回拨的重复时段内,此处可能触发两次,原系统只触发一次",
                )),
            },
            None => Schedules {
                timings: vec![every(sec)],
                differs: Some(BilingualSentence::new(
                    format!(
                        "there it keeps its time of day when the clocks of {} change; here it counts the seconds that \
                         pass, so its time of day moves with each change",
                        self.zone
                    ),
                    format!(
                        "原系统在 {} 时钟调整后保持钟面时间;此处按经过的秒数计算,钟面时间会随之变化",
                        self.zone
                    ),
                )),
            },
        }
    }

    /// A cron expression for steps that divide the day evenly.
    fn cron_within_day(&self, sec: i64) -> Option<String> {
        let (s, m, h) = (self.start.second(), self.start.minute(), self.start.hour());
        let list = |unit: i64, of: u32, size: i64| {
            let step = sec / unit;
            let first = i64::from(of) % step;
            let all: Vec<String> =
                (0..size / step).map(|at| (first + at * step).to_string()).collect();
            if step == 1 { "*".to_owned() } else { all.join(",") }
        };
        if sec % HOUR_SEC == 0 && DAY_SEC % sec == 0 {
            return Some(format!("{s} {m} {} * * ?", list(HOUR_SEC, h, 24)));
        }
        if sec % 60 == 0 && HOUR_SEC % sec == 0 {
            return Some(format!("{s} {} * * * ?", list(60, m, 60)));
        }
        (60 % sec == 0).then(|| format!("{} * * * * ?", list(1, s, 60)))
    }
}

/// Months of the year that come again every so many years.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MonthCycle {
    pub(crate) months: Vec<i64>,
    /// The field of a cron for the years, with a blank before it; empty: every year.
    pub(crate) years: String,
}

/// Every so many months, from the month of a day on; none when that is no positive number, or more than a century.
pub(crate) fn month_cycles(start: NaiveDate, step: i64) -> Option<Vec<MonthCycle>> {
    if !(1..=MONTHS_MAX).contains(&step) {
        return None;
    }
    let common = gcd(step, 12);
    // After so many firings they are in the same months again, so many years later.
    let (count, years) = (12 / common, step / common);
    // By the year in which they begin; a cycle of one year has no years.
    let mut months: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
    for at in 0..count {
        let months_on = i64::from(start.month0()) + at * step;
        let year = i64::from(start.year()) + months_on / 12;
        let first = (years > 1).then_some(year);
        months.entry(first).or_default().push(months_on % 12 + 1);
    }
    let cycle = |(first, mut months): (Option<i64>, Vec<i64>)| {
        months.sort_unstable();
        let years = first.map_or_else(String::new, |first| format!(" {first}/{years}"));
        MonthCycle { months, years }
    };
    Some(months.into_iter().map(cycle).collect())
}

fn cron_words(expression: String) -> TimingWords {
    TimingWords { cron: Some(expression), ..TimingWords::default() }
}

fn every(sec: i64) -> TimingWords {
    TimingWords { every_sec: Some(sec), ..TimingWords::default() }
}

/// The field of a cron for months.
pub(crate) fn month_list(months: &[i64]) -> String {
    if months.len() == 12 {
        return "*".to_owned();
    }
    months.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether a zone has a daylight-saving change within the two years after a moment.
pub(crate) fn changes_clocks(zone: Tz, now: Millis) -> bool {
    let ahead = |month: i64| ahead_sec(now.plus_ms(month * MONTH_MS), zone);
    (1..=24).any(|month| ahead(month) != ahead(0))
}

/// A local time in the format of a schedule.
pub(crate) fn wall_text(wall: NaiveDateTime) -> String {
    wall.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The first moment at which nothing fires any more, given the last one at which something may fire.
pub(crate) fn second_after(last: NaiveDateTime) -> Option<NaiveDateTime> {
    last.checked_add_signed(TimeDelta::seconds(1))
}

/// Parses `2026-01-31 02:00:00`; a fraction is dropped.
pub(crate) fn read_wall(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim().replace('T', " ");
    let whole = text.split('.').next().unwrap_or_default();
    NaiveDateTime::parse_from_str(whole, "%Y-%m-%d %H:%M:%S").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::calendar::Calendars;
    use crate::domain::schedule::Anchor;
    use crate::domain::time::local_time::wall_at;
    use chrono::Months;

    /// 2026-09-21, a Monday.
    const NOW: Millis = Millis(1_789_948_800_000);

    fn interval(step: IntervalStep, start: &str, zone: Tz) -> Interval {
        Interval { step, start: read_wall(start).unwrap_or_default(), zone }
    }

    fn schedules(step: IntervalStep, start: &str, zone: Tz) -> Schedules {
        interval(step, start, zone).schedules(NOW).unwrap_or_default()
    }

    fn crons(step: IntervalStep, start: &str, zone: Tz) -> Vec<String> {
        let made = schedules(step, start, zone).timings;
        made.into_iter().map(|t| t.cron.unwrap_or_else(|| format!("{:?}", t.every_sec))).collect()
    }

    /// The first firings of all schedules together, after `now`.
    fn firings(made: &Schedules, zone: Tz, now: Millis, count: usize) -> Vec<NaiveDateTime> {
        let mut all = Vec::new();
        for words in &made.timings {
            let timing = words.clone().parse_timing(Some(zone)).unwrap_or_else(|e| panic!("{e}"));
            let mut after = now;
            for _ in 0..count {
                let found = timing.next_after(&Calendars::default(), after, Anchor::new(now));
                let Some(found) = found.unwrap_or_else(|e| panic!("{e}")) else { break };
                after = found.planned;
                all.push(wall_at(after, zone));
            }
        }
        all.sort_unstable();
        all.truncate(count);
        all
    }

    #[test]
    fn months_from_any_day_fire_as_months_are_added() {
        let zone = Tz::Asia__Shanghai;
        for day in [1, 15, 28, 29, 30, 31] {
            for step in 1..=30 {
                let start = format!("2024-01-{day:02} 02:30:15");
                let made = schedules(IntervalStep::Months(step), &start, zone);
                let start = read_wall(&start).unwrap_or_default();
                let wanted: Vec<NaiveDateTime> = (0..)
                    .map_while(|at| {
                        start.checked_add_months(Months::new(u32::try_from(at * step).ok()?))
                    })
                    .filter(|at| shown(*at, zone).planned() > NOW)
                    .take(24)
                    .collect();
                assert_eq!(firings(&made, zone, NOW, 24), wanted, "day {day}, every {step} months");
            }
        }
    }

    #[test]
    fn one_schedule_where_one_can_say_it() {
        let zone = Tz::Asia__Shanghai;
        for (step, start, wanted) in [
            (IntervalStep::Months(1), "2026-01-31 02:00:00", "0 0 2 L * ?"),
            (IntervalStep::Months(1), "2026-01-15 02:00:00", "0 0 2 15 * ?"),
            (IntervalStep::Months(3), "2026-01-28 02:00:00", "0 0 2 28 1,4,7,10 ?"),
            (IntervalStep::Months(12), "2024-02-29 02:00:00", "0 0 2 L 2 ?"),
            (IntervalStep::Months(24), "2026-05-05 02:00:00", "0 0 2 5 5 ? 2026/2"),
            (IntervalStep::WallSeconds(DAY_SEC), "2026-01-31 02:10:05", "5 10 2 * * ?"),
            (IntervalStep::WallSeconds(WEEK_SEC), "2026-01-31 02:10:05", "5 10 2 ? * SAT"),
        ] {
            assert_eq!(crons(step, start, zone), [wanted], "{step:?} {start}");
        }
        // No single cron expression has the last day in February and day 30 elsewhere.
        let two = ["0 0 2 30 1,3,4,5,6,7,8,9,10,11,12 ?", "0 0 2 L 2 ?"];
        assert_eq!(crons(IntervalStep::Months(1), "2026-01-30 02:00:00", zone), two);
        assert_eq!(crons(IntervalStep::Months(0), "2026-01-30 02:00:00", zone), [""; 0]);
    }

    #[test]
    fn seconds_of_the_wall_clock() {
        let (plain, changing) = (Tz::Asia__Shanghai, Tz::Europe__Berlin);
        let made = schedules(IntervalStep::WallSeconds(6 * HOUR_SEC), "2026-01-01 01:30:00", plain);
        assert_eq!((made.timings[0].every_sec, &made.differs), (Some(6 * HOUR_SEC), &None));
        assert_eq!(made.timings[0].start.as_deref(), Some("2026-01-01T01:30:00"));
        for (sec, wanted) in [
            (6 * HOUR_SEC, "0 30 1,7,13,19 * * ?"),
            (HOUR_SEC, "0 30 * * * ?"),
            (900, "0 0,15,30,45 * * * ?"),
            (20, "0,20,40 * * * * ?"),
        ] {
            let step = IntervalStep::WallSeconds(sec);
            assert_eq!(crons(step, "2026-01-01 01:30:00", changing), [wanted], "{sec}");
            assert!(schedules(step, "2026-01-01 01:30:00", changing).differs.is_some());
        }
        let uneven =
            schedules(IntervalStep::WallSeconds(5 * HOUR_SEC), "2026-01-01 01:30:00", changing);
        assert_eq!(uneven.timings[0].every_sec, Some(5 * HOUR_SEC));
        assert!(uneven.differs.is_some_and(|said| said.en.contains("Europe/Berlin")));
    }

    #[test]
    fn a_start_to_come_is_kept() {
        let zone = Tz::Asia__Shanghai;
        let step = IntervalStep::WallSeconds(DAY_SEC);
        let start = |text| schedules(step, text, zone).timings[0].start.clone();
        assert_eq!(start("2026-01-31 02:10:05"), None);
        assert_eq!(start("2027-01-31 02:10:05").as_deref(), Some("2027-01-31T02:10:05"));
    }
}
