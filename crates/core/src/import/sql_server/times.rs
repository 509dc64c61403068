//! When schedules of SQL Server Agent fire: `freq_type` and its companions as crons and intervals.

use crate::domain::calendar::Calendars;
use crate::domain::schedule::{Anchor, TimingWords};
use crate::domain::source::scheduler_tables::SchedulerRow;
use crate::domain::time::Millis;
use crate::domain::time::local_time::shown;
use crate::import::calendar_names::{WEEK, blackout_of_other_days};
use crate::import::counted_days::{CountedDay, counted_days, last_of};
use crate::import::interval::{
    DAY_SEC, Interval, IntervalStep, month_cycles, month_list, wall_text,
};
use crate::import::note::BilingualSentence;
use crate::import::time_fields::{CRONS_MAX, time_fields};
use chrono::{Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, Weekday, WeekdaySet};
use chrono_tz::Tz;

const DAY: u32 = 86_400;
const WORKING: [Weekday; 5] =
    [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri];
const WEEKEND: [Weekday; 2] = [Weekday::Sat, Weekday::Sun];
/// `active_end_date` of a schedule without an end.
const NO_END: i64 = 99_991_231;

/// What decides the times beside the row.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentClock {
    pub(super) zone: Tz,
    pub(super) now: Millis,
    /// `next_run_date` and `next_run_time` of the job, where the table has them.
    pub(super) next_run: Option<NaiveDateTime>,
}

/// The schedules of a row, and what is to be said of them.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentSchedules {
    pub(super) timings: Vec<TimingWords>,
    pub(super) differs: Vec<BilingualSentence>,
    pub(super) look: Vec<BilingualSentence>,
}

/// Days on which times come: the fields for day, month, day of the week and year.
struct DayFields {
    fields: String,
    /// Other days of the week are left out.
    only: Option<WeekdaySet>,
}

/// `20260131`
pub(super) fn read_date(number: i64) -> Option<NaiveDate> {
    let (year, rest) = (number / 10_000, number % 10_000);
    NaiveDate::from_ymd_opt(
        i32::try_from(year).ok()?,
        u32::try_from(rest / 100).ok()?,
        u32::try_from(rest % 100).ok()?,
    )
}

/// `93000` as a second of the day.
pub(super) fn read_time(number: i64) -> Option<u32> {
    let number = u32::try_from(number).ok()?;
    let (hour, minute, second) = (number / 10_000, number / 100 % 100, number % 100);
    (hour < 24 && minute < 60 && second < 60).then_some(hour * 3_600 + minute * 60 + second)
}

fn cannot(en: impl Into<String>, zh: impl Into<String>) -> BilingualSentence {
    let (en, zh) = (en.into(), zh.into());
    BilingualSentence::new(format!("its schedule is left out: {en}"), format!("其调度未迁移:{zh}"))
}

struct AgentRule<'a> {
    row: &'a SchedulerRow,
    clock: AgentClock,
    start: NaiveDate,
    times: Vec<u32>,
    made: AgentSchedules,
}

/// The schedules that fire at the times of a row.
pub(super) fn schedules(
    row: &SchedulerRow,
    clock: AgentClock,
) -> Result<AgentSchedules, BilingualSentence> {
    let number = |column: &str| row.number(column).unwrap_or(0);
    let start = read_date(number("active_start_date"))
        .or(clock.next_run.map(|at| at.date()))
        .unwrap_or(NaiveDate::from_ymd_opt(1990, 1, 1).unwrap_or_default());
    let kind = number("freq_type");
    let mut rule =
        AgentRule { row, clock, start, times: Vec::new(), made: AgentSchedules::default() };
    match kind {
        1 => {
            let time = read_time(number("active_start_time"))
                .ok_or_else(|| cannot("active_start_time is no time", "active_start_time 无效"))?;
            let once_at = wall_text(start.and_time(time_of_day(time)));
            let timing = TimingWords { once_at: Some(once_at), ..TimingWords::default() };
            rule.made.timings.push(timing);
        }
        64 => {
            return Err(cannot(
                "it fires when SQL Server Agent starts",
                "它在 SQL Server Agent 启动时触发",
            ));
        }
        128 => {
            return Err(cannot(
                "it fires when the processors of the server are idle",
                "它在服务器 CPU 空闲时触发",
            ));
        }
        4 | 8 | 16 | 32 => {
            rule.times = times_of_day(row)?;
            rule.repeat(kind)?;
            rule.set_span();
        }
        other => {
            return Err(cannot(
                format!("freq_type {other} is none that is known"),
                format!("freq_type {other} 无法识别"),
            ));
        }
    }
    for timing in &mut rule.made.timings {
        timing.time_zone = Some(clock.zone.name().to_owned());
    }
    rule.check_next_run();
    Ok(rule.made)
}

/// The times of a day, in seconds. A window that ends before it begins goes on after midnight, which holds every day alike.
fn times_of_day(row: &SchedulerRow) -> Result<Vec<u32>, BilingualSentence> {
    let time = |column: &str, default: i64| {
        let number = row.number(column).unwrap_or(default);
        read_time(number).ok_or_else(|| {
            cannot(format!("{column} {number} is no time"), format!("{column} {number} 不是时间"))
        })
    };
    let first = time("active_start_time", 0)?;
    let unit = match row.number("freq_subday_type").unwrap_or(1) {
        0 | 1 => return Ok(vec![first]),
        2 => 1,
        4 => 60,
        8 => 3_600,
        other => {
            return Err(cannot(
                format!("freq_subday_type {other} is none that is known"),
                format!("freq_subday_type {other} 无法识别"),
            ));
        }
    };
    let step = row.number("freq_subday_interval").and_then(|n| u32::try_from(n).ok());
    let step = step.and_then(|n| n.checked_mul(unit)).filter(|step| (1..=DAY).contains(step));
    let Some(step) = step else {
        return Err(cannot(
            "freq_subday_interval is no step within a day",
            "freq_subday_interval 不是一天之内的间隔",
        ));
    };
    let last = time("active_end_time", 235_959)?;
    let last = if last < first {
        let is_daily = row.number("freq_type") == Some(4) && row.number("freq_interval") == Some(1);
        if !is_daily {
            return Err(cannot(
                "its window goes past midnight on some days only, and whether the hours after midnight belong to the day before \
                 is not documented",
                "其时段跨越午夜且并非每天生效,午夜之后的时间属于哪一天没有文档说明",
            ));
        }
        last + DAY
    } else {
        last
    };
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((first..=last).step_by(step).map(|second| second % DAY).collect())
}

fn time_of_day(second: u32) -> NaiveTime {
    NaiveTime::from_num_seconds_from_midnight_opt(second % DAY, 0).unwrap_or_default()
}

impl AgentRule<'_> {
    fn number(&self, column: &str) -> i64 {
        self.row.number(column).unwrap_or(0)
    }

    fn repeat(&mut self, kind: i64) -> Result<(), BilingualSentence> {
        let interval = self.number("freq_interval");
        let factor = self.number("freq_recurrence_factor").max(1);
        match kind {
            4 if interval <= 1 => self.add_crons(vec![every_day()]),
            4 => self.every_days(interval),
            8 => {
                let days: Vec<usize> = (0..7).filter(|bit| interval & (1 << bit) != 0).collect();
                if days.is_empty() {
                    return Err(cannot("it names no day of the week", "它没有指定星期几"));
                }
                if factor > 1 {
                    return self.every_weeks(&days, factor);
                }
                let names: Vec<&str> = days.iter().map(|day| WEEK[*day].1).collect();
                let fields = format!("? * {}", names.join(","));
                self.add_crons(vec![DayFields { fields, only: None }])
            }
            16 => {
                if !(1..=31).contains(&interval) {
                    return Err(cannot(
                        format!("freq_interval {interval} is no day of a month"),
                        format!("freq_interval {interval} 不是月中的日期"),
                    ));
                }
                if interval > 28 {
                    self.made.look.push(BilingualSentence::new(
                        format!("in months without a day {interval} it does not fire"),
                        format!("没有 {interval} 日的月份不触发"),
                    ));
                }
                let day = i64::from(self.start.day());
                let fields = self.in_months(factor, day > interval, &|months, years| {
                    vec![DayFields { fields: format!("{interval} {months} ?{years}"), only: None }]
                })?;
                self.add_crons(fields)
            }
            _ => {
                let relative = self.number("freq_relative_interval");
                let days = relative_days(interval, relative)?;
                let fields = self.in_months(factor, self.start.day() > 1, &|months, years| {
                    let of_days = |(day, week, only): &RelativeDay| DayFields {
                        fields: format!("{day} {months} {week}{years}"),
                        only: *only,
                    };
                    days.iter().map(of_days).collect()
                })?;
                self.add_crons(fields)
            }
        }
    }

    /// The day from which weeks, days and months are counted: that of the next run, else that of the start.
    fn counted_from(&mut self, is_open: bool) -> NaiveDate {
        if let Some(next) = self.clock.next_run {
            return next.date();
        }
        if is_open {
            self.made.look.push(BilingualSentence::from((
                "which period of its start is the first one is not documented, and the export has no next run: counted from \
                 active_start_date",
                "起始周期如何计算没有文档说明,导出中也没有下次运行时间:此处从 active_start_date 起算",
            )));
        }
        self.start
    }

    fn every_days(&mut self, days: i64) -> Result<(), BilingualSentence> {
        let from = self.counted_from(false);
        self.add_intervals(&[from], days)
    }

    /// Weeks begin on Sunday, as the bits of `freq_interval` do.
    fn every_weeks(&mut self, days: &[usize], weeks: i64) -> Result<(), BilingualSentence> {
        let is_open = days.len() > 1 || WEEK[days[0]].0 != self.start.weekday();
        let from = self.counted_from(is_open);
        let ahead = Days::new(u64::from(from.weekday().num_days_from_sunday()));
        let sunday = from.checked_sub_days(ahead).unwrap_or(from);
        let step = Days::new(u64::try_from(weeks).unwrap_or(1).saturating_mul(7).min(100_000));
        let mut firsts = Vec::new();
        for day in days {
            let first = sunday.checked_add_days(Days::new(*day as u64)).unwrap_or(sunday);
            firsts.push(match first < from {
                true => first.checked_add_days(step).unwrap_or(first),
                false => first,
            });
        }
        self.add_intervals(&firsts, weeks.saturating_mul(7))
    }

    /// Every so many days from each of these days.
    fn add_intervals(&mut self, firsts: &[NaiveDate], days: i64) -> Result<(), BilingualSentence> {
        if firsts.len() * self.times.len() > CRONS_MAX {
            return Err(too_many());
        }
        for first in firsts {
            for time in self.times.clone() {
                let step = IntervalStep::WallSeconds(days.saturating_mul(DAY_SEC));
                let start = first.and_time(time_of_day(time));
                let interval = Interval { step, start, zone: self.clock.zone };
                let Some(made) = interval.schedules(self.clock.now) else {
                    return Err(cannot("its step is no number of days", "其间隔不是有效的天数"));
                };
                self.made.timings.extend(made.timings);
                self.made.differs.extend(made.differs);
            }
        }
        self.made.differs.dedup();
        Ok(())
    }

    /// Days in every so many months.
    fn in_months(
        &mut self,
        factor: i64,
        is_open: bool,
        make: &dyn Fn(&str, &str) -> Vec<DayFields>,
    ) -> Result<Vec<DayFields>, BilingualSentence> {
        if factor <= 1 {
            return Ok(make("*", ""));
        }
        let from = self.counted_from(is_open);
        let cycles = month_cycles(from, factor)
            .ok_or_else(|| cannot("its step is more than a century", "其间隔超过一百年"))?;
        Ok(cycles.iter().flat_map(|cycle| make(&month_list(&cycle.months), &cycle.years)).collect())
    }

    fn add_crons(&mut self, days: Vec<DayFields>) -> Result<(), BilingualSentence> {
        let Some(times) = time_fields(self.times.iter().copied()) else { return Err(too_many()) };
        if times.len() * days.len() > CRONS_MAX {
            return Err(too_many());
        }
        for day in &days {
            for time in &times {
                let mut timing = TimingWords {
                    cron: Some(format!("{time} {}", day.fields)),
                    ..TimingWords::default()
                };
                timing.blackouts.extend(day.only.map(blackout_of_other_days));
                self.made.timings.push(timing);
            }
        }
        Ok(())
    }

    /// From when until when: a start that is over needs no words.
    fn set_span(&mut self) {
        let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN);
        let is_ahead = shown(midnight(self.start), self.clock.zone).planned() > self.clock.now;
        let end = self.number("active_end_date");
        let end = (end != NO_END).then(|| read_date(end)).flatten();
        // There the end is the last day.
        let end = end.and_then(|day| day.succ_opt()).map(|day| wall_text(midnight(day)));
        for timing in &mut self.made.timings {
            if is_ahead && timing.start.is_none() {
                timing.start = Some(wall_text(midnight(self.start)));
            }
            timing.end.clone_from(&end);
        }
    }

    /// The next run that the table has must be a time of these schedules.
    fn check_next_run(&mut self) {
        let Some(next) = self.clock.next_run else { return };
        let planned = shown(next, self.clock.zone).planned();
        let fires = |words: &TimingWords| {
            let timing = words.clone().parse_timing(Some(self.clock.zone)).ok()?;
            let anchor = Anchor::new(planned.plus_ms(-1));
            let found = timing.next_after(&Calendars::default(), planned.plus_ms(-1), anchor);
            Some(found.ok()??.planned == planned)
        };
        if !self.made.timings.iter().any(|words| fires(words) == Some(true)) {
            self.made.look.push(BilingualSentence::new(
                format!("its next run in sysjobschedules is {next}, which is no time of the schedule here"),
                format!("sysjobschedules 中的下次运行时间 {next} 不是此处调度的触发时间"),
            ));
        }
    }
}

fn too_many() -> BilingualSentence {
    cannot(
        format!("it would be more than {CRONS_MAX} schedules here"),
        format!("此处需要超过 {CRONS_MAX} 个调度"),
    )
}

fn every_day() -> DayFields {
    DayFields { fields: "* * ?".to_owned(), only: None }
}

/// Fields for the day of the month and of the week, and the days of the week on which alone it counts.
type RelativeDay = (String, String, Option<WeekdaySet>);

/// `second Friday`, `last weekend day`
fn relative_days(interval: i64, relative: i64) -> Result<Vec<RelativeDay>, BilingualSentence> {
    let place = match relative {
        1 => Some(1_u32),
        2 => Some(2),
        4 => Some(3),
        8 => Some(4),
        16 => None,
        other => {
            return Err(cannot(
                format!("freq_relative_interval {other} is none that is known"),
                format!("freq_relative_interval {other} 无法识别"),
            ));
        }
    };
    let one = |day: String, week: String| vec![(day, week, None)];
    let any = || "?".to_owned();
    let counted = |days: Vec<CountedDay>| {
        days.into_iter().map(|(day, only)| (day, any(), Some(only))).collect::<Vec<_>>()
    };
    Ok(match (interval, place) {
        (day @ 1..=7, place) => {
            let name = WEEK[usize::try_from(day - 1).unwrap_or(0)].1;
            let end = place.map_or_else(|| "L".to_owned(), |place| format!("#{place}"));
            one(any(), format!("{name}{end}"))
        }
        (8, Some(place)) => one(place.to_string(), any()),
        (8, None) => one("L".to_owned(), any()),
        (9, Some(1)) => one("1W".to_owned(), any()),
        (9, None) => one("LW".to_owned(), any()),
        (9, Some(place)) => counted(counted_days(&WORKING, place).unwrap_or_default()),
        (10, Some(place)) => counted(counted_days(&WEEKEND, place).unwrap_or_default()),
        (10, None) => counted(last_of(&WEEKEND)),
        (other, _) => {
            return Err(cannot(
                format!("freq_interval {other} is no kind of day"),
                format!("freq_interval {other} 不是有效的日期类型"),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::local_time::wall_at;
    use crate::import::interval::read_wall;

    /// 2026-09-21, a Monday.
    const NOW: Millis = Millis(1_789_948_800_000);

    fn row(pairs: &[(&str, i64)]) -> SchedulerRow {
        let defaults = [("active_start_date", 20_260_101), ("active_end_date", NO_END)];
        let mut row = SchedulerRow::default();
        for (name, value) in defaults.iter().chain(pairs) {
            row.0.insert((*name).to_owned(), Some(value.to_string()));
        }
        row
    }

    fn clock(next: Option<&str>) -> AgentClock {
        let next_run = next.and_then(read_wall);
        AgentClock { zone: Tz::Asia__Shanghai, now: NOW, next_run }
    }

    /// The first firings of all schedules together.
    fn firings(pairs: &[(&str, i64)], next: Option<&str>, count: usize) -> Vec<String> {
        let made = schedules(&row(pairs), clock(next)).unwrap_or_else(|why| panic!("{why:?}"));
        let mut all = Vec::new();
        for words in &made.timings {
            let timing = words.clone().parse_timing(None).unwrap_or_else(|e| panic!("{e}"));
            let mut after = NOW;
            for _ in 0..count {
                let found = timing.next_after(&Calendars::default(), after, Anchor::new(NOW));
                let Some(found) = found.unwrap_or_else(|e| panic!("{e}")) else { break };
                after = found.planned;
                all.push(wall_at(after, Tz::Asia__Shanghai));
            }
        }
        all.sort_unstable();
        all.dedup();
        all.truncate(count);
        all.into_iter().map(|at| at.format("%m-%d %H:%M").to_string()).collect()
    }

    const MONTHLY: (&str, i64) = ("freq_type", 16);
    const RELATIVE: (&str, i64) = ("freq_type", 32);
    const AT_TWO: (&str, i64) = ("active_start_time", 20_000);

    #[test]
    fn days_and_weeks() {
        let daily = [("freq_type", 4), ("freq_interval", 1), AT_TWO];
        assert_eq!(firings(&daily, None, 2), ["09-22 02:00", "09-23 02:00"]);
        // Every third day from 2026-09-20.
        let third =
            [("freq_type", 4), ("freq_interval", 3), AT_TWO, ("active_start_date", 20_260_920)];
        assert_eq!(firings(&third, None, 3), ["09-23 02:00", "09-26 02:00", "09-29 02:00"]);
        // Tuesdays and Fridays: 4 + 32.
        let weekly = [("freq_type", 8), ("freq_interval", 36), AT_TWO];
        assert_eq!(firings(&weekly, None, 3), ["09-22 02:00", "09-25 02:00", "09-29 02:00"]);
        // Every other week, Monday and Thursday, from Sunday 2026-09-20: this week, and the one of 2026-10-04.
        let other = [
            ("freq_type", 8),
            ("freq_interval", 18),
            ("freq_recurrence_factor", 2),
            ("active_start_date", 20_260_920),
            ("active_start_time", 220_000),
        ];
        let wanted = ["09-21 22:00", "09-24 22:00", "10-05 22:00", "10-08 22:00", "10-19 22:00"];
        assert_eq!(firings(&other, None, 5), wanted);
        // The table says that the next run is a week later.
        let wanted = ["10-01 22:00", "10-12 22:00", "10-15 22:00"];
        assert_eq!(firings(&other, Some("2026-10-01 22:00:00"), 3), wanted);
    }

    #[test]
    fn months() {
        let last = [MONTHLY, ("freq_interval", 31), AT_TWO];
        assert_eq!(firings(&last, None, 3), ["10-31 02:00", "12-31 02:00", "01-31 02:00"]);
        let quarter = [MONTHLY, ("freq_interval", 5), ("freq_recurrence_factor", 3), AT_TWO];
        assert_eq!(firings(&quarter, None, 3), ["10-05 02:00", "01-05 02:00", "04-05 02:00"]);
        // Every five months from January 2026: June, November, April, September.
        let five = [MONTHLY, ("freq_interval", 1), ("freq_recurrence_factor", 5), AT_TWO];
        assert_eq!(firings(&five, None, 3), ["11-01 02:00", "04-01 02:00", "09-01 02:00"]);
    }

    #[test]
    fn counted_days_of_the_month() {
        let relative = |interval, place| {
            let pairs =
                [RELATIVE, ("freq_interval", interval), ("freq_relative_interval", place), AT_TWO];
            firings(&pairs, None, 5)
                .into_iter()
                .map(|at| at.split(' ').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        // Second Friday, last Monday, last day, third day.
        assert_eq!(relative(6, 2), ["10-09", "11-13", "12-11", "01-08", "02-12"]);
        assert_eq!(relative(2, 16), ["09-28", "10-26", "11-30", "12-28", "01-25"]);
        assert_eq!(relative(8, 16), ["09-30", "10-31", "11-30", "12-31", "01-31"]);
        assert_eq!(relative(8, 4), ["10-03", "11-03", "12-03", "01-03", "02-03"]);
        // Weekdays: 2026-10-01 is a Thursday, 11-01 a Sunday, 12-01 a Tuesday, 2027-01-01 a Friday, 02-01 a Monday.
        assert_eq!(relative(9, 1), ["10-01", "11-02", "12-01", "01-01", "02-01"]);
        assert_eq!(relative(9, 2), ["10-02", "11-03", "12-02", "01-04", "02-02"]);
        assert_eq!(relative(9, 4), ["10-05", "11-04", "12-03", "01-05", "02-03"]);
        assert_eq!(relative(9, 8), ["10-06", "11-05", "12-04", "01-06", "02-04"]);
        assert_eq!(relative(9, 16), ["09-30", "10-30", "11-30", "12-31", "01-29"]);
        // Weekend days: the first, the third and the last.
        assert_eq!(relative(10, 1), ["10-03", "11-01", "12-05", "01-02", "02-06"]);
        assert_eq!(relative(10, 4), ["10-10", "11-08", "12-12", "01-09", "02-13"]);
        assert_eq!(relative(10, 16), ["09-27", "10-31", "11-29", "12-27", "01-31"]);
    }

    #[test]
    fn times_within_a_day() {
        let every = |kind, step, from, until| {
            [
                ("freq_type", 4),
                ("freq_interval", 1),
                ("freq_subday_type", kind),
                ("freq_subday_interval", step),
                ("active_start_time", from),
                ("active_end_time", until),
            ]
        };
        let wanted = ["09-21 08:30", "09-21 09:00", "09-22 08:00", "09-22 08:30", "09-22 09:00"];
        assert_eq!(firings(&every(4, 30, 80_000, 90_000), None, 5), wanted);
        // From 22:00 over midnight until 03:59, every two hours.
        let wanted = ["09-21 22:00", "09-22 00:00", "09-22 02:00", "09-22 22:00"];
        assert_eq!(firings(&every(8, 2, 220_000, 35_959), None, 4), wanted);
        let why = schedules(&row(&every(4, 13, 0, 235_959)), clock(None)).err();
        assert!(why.is_some_and(|why| why.en.contains("more than 12 schedules")));
    }

    #[test]
    fn what_has_no_times_is_left_out() {
        for (kind, words) in [(64, "Agent starts"), (128, "idle"), (5, "freq_type 5")] {
            let why = schedules(&row(&[("freq_type", kind)]), clock(None)).err();
            assert!(why.is_some_and(|why| why.en.contains(words)), "{kind}");
        }
        let weekly = [("freq_type", 8), ("freq_interval", 36), AT_TWO];
        let made = schedules(&row(&weekly), clock(Some("2026-09-23 02:00:00"))).unwrap_or_default();
        assert!(made.look.iter().any(|said| said.en.contains("no time of the schedule here")));
    }
}
