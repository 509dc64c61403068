//! Translates triggers of Quartz to schedules: cron expressions, fixed rates, calendar intervals and daily times.

use super::columns::{CRON_COLUMNS, PROPERTY_COLUMNS, SIMPLE_COLUMNS, TRIGGER_COLUMNS};
use super::daily_times::DailyTimes;
use super::job_data::JobData;
use super::{CRON, SIMPLE, SIMPLE_PROPERTIES, TRIGGERS};
use crate::domain::calendar::Calendars;
use crate::domain::id::GroupCode;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{Anchor, TimingWords};
use crate::domain::source::scheduler_tables::{SchedulerRow, SchedulerTables};
use crate::domain::time::Millis;
use crate::domain::time::local_time::wall_at;
use crate::import::columns::{RowPlace, check_columns};
use crate::import::draft::Draft;
use crate::import::interval::{
    DAY_SEC, Interval, IntervalStep, Schedules, second_after, wall_text,
};
use crate::import::live_zone::{ServerZone, read_zone_word};
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::CountedKind;
use chrono::Datelike as _;
use chrono_tz::Tz;
use std::collections::BTreeSet;

/// The repeat count for endless repetition.
const FOREVER: i64 = -1;
/// The misfire instruction to fire each missed time.
const IGNORE_MISFIRES: i64 = -1;
/// The year 2200, after which nothing fires.
const LAST_MS: i64 = 7_258_204_800_000;
/// The last day that every month has.
const LAST_COMMON_DAY: u32 = 28;

/// The columns that name a trigger, or a job.
const TRIGGER_KEY: [&str; 3] = ["sched_name", "trigger_group", "trigger_name"];
const JOB_KEY: [&str; 3] = ["sched_name", "job_group", "job_name"];

fn has_same(key: &[&str], row: &SchedulerRow, other: &SchedulerRow) -> bool {
    key.iter().all(|column| row.value(column) == other.value(column))
}

/// A trigger with the row of its kind.
pub(super) struct StoredTrigger<'a> {
    row: &'a SchedulerRow,
    at: ImportOrigin,
    pub(super) data: JobData,
    of_kind: Option<&'a SchedulerRow>,
}

/// The triggers of a job, in the order of the table.
pub(super) fn of_job<'a>(
    tables: &'a SchedulerTables,
    job: &SchedulerRow,
) -> Vec<StoredTrigger<'a>> {
    let rows = (1..).zip(tables.table_rows(TRIGGERS));
    let own = rows.filter(|(_, row)| has_same(&JOB_KEY, row, job));
    own.map(|(at, row)| StoredTrigger::new(row, at, tables)).collect()
}

/// Reports rows without their job: the database was changed by hand.
pub(super) fn note_without_job(tables: &SchedulerTables, draft: &mut Draft) {
    for (at, row) in (1..).zip(tables.table_rows(TRIGGERS)) {
        if tables.table_rows(super::JOBS).iter().any(|job| has_same(&JOB_KEY, row, job)) {
            continue;
        }
        let origin = ImportOrigin::new(TRIGGERS, at);
        let title = row.trimmed_value("trigger_name");
        draft.begin_item(CountedKind::Schedule, &origin, title);
        draft.note(
            Level::LeftOut,
            &origin,
            title,
            ("its job is not in QRTZ_JOB_DETAILS", "QRTZ_JOB_DETAILS 中没有它的作业"),
            ("", ""),
        );
    }
}

/// The time zone of triggers that name none: the user's option, else the one that all cron triggers share, else the
/// server's.
pub(super) fn zone(tables: &SchedulerTables, draft: &mut Draft) -> Tz {
    let named: BTreeSet<&str> =
        tables.table_rows(CRON).iter().map(|row| row.trimmed_value("time_zone_id")).collect();
    let only = match named.into_iter().collect::<Vec<_>>()[..] {
        [one] => java_zone(one),
        _ => None,
    };
    if let Some(zone) = draft.asked.zone.or(only) {
        return zone;
    }
    let needs_zone =
        |row: &&SchedulerRow| matches!(row.trimmed_value("trigger_type"), "SIMPLE" | "DAILY_I");
    let zone = ServerZone::find_zone(&tables.server, None, draft.asked.now).zone();
    if let Some(row) = tables.table_rows(TRIGGERS).iter().find(needs_zone) {
        draft.note(
            Level::Look,
            &ImportOrigin::new(TRIGGERS, 0), row.trimmed_value("trigger_name"),
            (
                format!(
                    "triggers that name no zone, such as this one, are in that of the Java program, which no table says: here it is {zone}"
                ),
                format!("未指定时区的触发器（如本条）使用 Java 程序的时区，表中没有记录：此处按 {zone} 计"),
            ),
            (
                "if the program was in another zone, import again with --zone",
                "如果程序不在该时区，请用 --zone 重新导入",
            ),
        );
    }
    zone
}

/// Parses a zone name of Java: an IANA name, or `GMT+08:00`.
fn java_zone(word: &str) -> Option<Tz> {
    let word = word.trim();
    let offset = word.strip_prefix("GMT").filter(|rest| rest.starts_with(['+', '-']));
    let Some(offset) = offset else { return read_zone_word(word) };
    let (sign, digits) = offset.split_at(1);
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
    if hours.is_empty() || hours.len() > 2 || minutes.len() > 2 {
        return None;
    }
    read_zone_word(&format!("{sign}{hours:0>2}:{minutes}"))
}

/// The moment in a column of milliseconds; `None` for 0 and less, and for a moment out of range.
fn moment(row: &SchedulerRow, column: &str) -> Option<Millis> {
    let at = row.number(column).filter(|at| (1..=LAST_MS).contains(at))?;
    // Schedules count in seconds.
    Some(Millis(at / 1_000 * 1_000))
}

/// Why a trigger cannot become a schedule.
fn refusal(en: impl Into<String>, zh: impl Into<String>) -> BilingualSentence {
    let (en, zh) = (en.into(), zh.into());
    BilingualSentence::new(format!("its schedule is left out: {en}"), format!("其调度未迁移：{zh}"))
}

impl<'a> StoredTrigger<'a> {
    fn new(row: &'a SchedulerRow, at: u64, tables: &'a SchedulerTables) -> Self {
        let table = match row.trimmed_value("trigger_type") {
            "CRON" => CRON,
            "SIMPLE" => SIMPLE,
            _ => SIMPLE_PROPERTIES,
        };
        let of_kind =
            tables.table_rows(table).iter().find(|other| has_same(&TRIGGER_KEY, row, other));
        let data = JobData::read(row.trimmed_value("job_data"));
        Self { row, at: ImportOrigin::new(TRIGGERS, at), data, of_kind }
    }

    pub(super) fn name(&self) -> &str {
        self.row.trimmed_value("trigger_name")
    }

    fn title(&self) -> String {
        match self.row.trimmed_value("trigger_group") {
            "DEFAULT" => self.name().to_owned(),
            group => format!("{group}_{}", self.name()),
        }
    }

    pub(super) fn import(
        &self,
        job: &SchedulerRow,
        group: &GroupCode,
        zone: Tz,
        draft: &mut Draft,
    ) {
        let title = self.title();
        let place = RowPlace { at: &self.at, about: &title };
        draft.begin_item(CountedKind::Schedule, &self.at, &title);
        check_columns(self.row, TRIGGER_COLUMNS, place, draft);
        if let Some(row) = self.of_kind {
            let known = match self.row.trimmed_value("trigger_type") {
                "CRON" => CRON_COLUMNS,
                "SIMPLE" => SIMPLE_COLUMNS,
                _ => PROPERTY_COLUMNS,
            };
            check_columns(row, known, place, draft);
        }
        let made = self.refuse().map_or_else(|| self.schedules(zone, draft.asked.now), Err);
        let schedules = match made {
            Ok(schedules) => schedules,
            Err(why) => {
                let cure = (
                    format!("procession schedule add CODE --group {group} …"),
                    format!("请另行添加：procession schedule add CODE --group {group} …"),
                );
                draft.note(Level::LeftOut, &self.at, &title, why, cure);
                draft.leave_item_out();
                return;
            }
        };
        if let Some(differs) = schedules.differs {
            draft.note(Level::Differs, &self.at, &title, differs, ("", ""));
        }
        self.compare_next_time(&schedules.timings, place, draft);
        for timing in schedules.timings {
            self.add(timing, job, group, draft);
        }
    }

    /// Why the trigger cannot be expressed as a schedule, if so.
    fn refuse(&self) -> Option<BilingualSentence> {
        let calendar = self.row.trimmed_value("calendar_name");
        if !calendar.is_empty() {
            return Some(refusal(
                format!(
                    "it does not fire in the times of calendar {calendar}, which is a serialised Java object"
                ),
                format!("它不在日历 {calendar} 的时间内触发，而该日历是 Java 序列化对象"),
            ));
        }
        if self.data == JobData::Serialized {
            return Some(refusal(
                "it hands over data of its own as a serialised Java object, so its job would run with other data",
                "它传入的数据是 Java 序列化对象，作业会以不同的数据运行",
            ));
        }
        match self.row.trimmed_value("trigger_state") {
            "COMPLETE" | "DELETED" => Some(refusal("it is over", "它已结束")),
            _ => None,
        }
    }

    fn schedules(&self, zone: Tz, now: Millis) -> Result<Schedules, BilingualSentence> {
        let kind = self.row.trimmed_value("trigger_type");
        let Some(row) = self.of_kind else {
            return Err(refusal(
                format!("its kind is {kind}, which keeps it in another table or as a Java object"),
                format!("其类型为 {kind}，保存在其他表或 Java 对象中"),
            ));
        };
        let mut made = match kind {
            "CRON" => cron(row, zone),
            "SIMPLE" => self.simple(row, zone),
            "CAL_INT" => self.calendar_interval(row, zone, now),
            "DAILY_I" => daily(row, zone),
            _ => Err(refusal(
                format!("its kind is {kind}, which has no like here"),
                format!("其类型为 {kind}，此处没有对应"),
            )),
        }?;
        self.bound(kind, &mut made, now);
        Ok(made)
    }

    /// Sets start and end. Cron and daily triggers may fire at the end itself, the others may not.
    fn bound(&self, kind: &str, made: &mut Schedules, now: Millis) {
        let start = moment(self.row, "start_time").filter(|start| *start > now);
        let end = moment(self.row, "end_time");
        for timing in &mut made.timings {
            let zone = timing.time_zone.as_deref().and_then(read_zone_word).unwrap_or(Tz::UTC);
            let wall = |at: Millis| wall_at(at, zone);
            if timing.start.is_none() && timing.once_at.is_none() {
                timing.start = start.map(|start| wall_text(wall(start)));
            }
            if timing.once_at.is_none() {
                let is_last = matches!(kind, "CRON" | "DAILY_I");
                let end = end.map(wall);
                let end = if is_last { end.and_then(second_after) } else { end };
                // The last repeat, or the end of the trigger, whichever is first.
                timing.end = [timing.end.take(), end.map(wall_text)].into_iter().flatten().min();
            }
        }
    }

    /// Repeats a number of times at an interval in milliseconds.
    fn simple(&self, row: &SchedulerRow, zone: Tz) -> Result<Schedules, BilingualSentence> {
        let number = |column: &str| row.number(column);
        let (Some(count), Some(step), Some(done)) =
            (number("repeat_count"), number("repeat_interval"), number("times_triggered"))
        else {
            return Err(refusal("its numbers cannot be read", "其数值无法读取"));
        };
        let Some(next) = moment(self.row, "next_fire_time") else {
            return Err(refusal("it does not fire any more", "它不再触发"));
        };
        let wall = |at: Millis| wall_text(wall_at(at, zone));
        let time_zone = Some(zone.name().to_owned());
        let left =
            if count == FOREVER { i64::MAX } else { count.saturating_add(1).saturating_sub(done) };
        if left == 1 || count == 0 {
            let once_at = Some(wall(next));
            return Ok(Schedules::exact(TimingWords {
                once_at,
                time_zone,
                ..TimingWords::default()
            }));
        }
        if left < 1 || step < 1_000 || step % 1_000 != 0 {
            return Err(refusal(
                format!("it fires every {step} ms, which are no whole seconds, or not any more"),
                format!("它每 {step} 毫秒触发一次，不是整秒，或不再触发"),
            ));
        }
        let end = (count != FOREVER)
            .then(|| wall(next.plus_ms(step.saturating_mul(left - 1)).plus_ms(1_000)));
        let (every_sec, start) = (Some(step / 1_000), Some(wall(next)));
        Ok(Schedules::exact(TimingWords {
            every_sec,
            start,
            end,
            time_zone,
            ..TimingWords::default()
        }))
    }

    /// Repeats every so many calendar units from the start.
    fn calendar_interval(
        &self,
        row: &SchedulerRow,
        zone: Tz,
        now: Millis,
    ) -> Result<Schedules, BilingualSentence> {
        let word = [row.trimmed_value("str_prop_2"), row.trimmed_value("time_zone_id")]
            .into_iter()
            .find(|w| !w.is_empty());
        let zone = word.map_or(Some(zone), java_zone).ok_or_else(|| unknown_zone(word))?;
        let (unit, step) = (row.trimmed_value("str_prop_1"), row.number("int_prop_1").unwrap_or(0));
        let start = moment(self.row, "start_time")
            .ok_or_else(|| refusal("it has no start", "它没有开始时间"))?;
        let unknown = || {
            refusal(
                format!("every {step} {unit} is no interval"),
                format!("每 {step} {unit} 不是间隔"),
            )
        };
        let seconds = |unit: i64| step.checked_mul(unit).filter(|sec| *sec > 0);
        let wall = wall_at(start, zone);
        let step = match unit {
            "SECOND" | "MINUTE" | "HOUR" => {
                let unit = if unit == "SECOND" {
                    1
                } else if unit == "MINUTE" {
                    60
                } else {
                    3_600
                };
                return Ok(Schedules::exact(TimingWords {
                    every_sec: Some(seconds(unit).ok_or_else(unknown)?),
                    start: Some(wall_text(wall)),
                    time_zone: Some(zone.name().to_owned()),
                    ..TimingWords::default()
                }));
            }
            "DAY" => IntervalStep::WallSeconds(seconds(DAY_SEC).ok_or_else(unknown)?),
            "WEEK" => IntervalStep::WallSeconds(seconds(7 * DAY_SEC).ok_or_else(unknown)?),
            "MONTH" => IntervalStep::Months(step),
            "YEAR" => IntervalStep::Months(step.saturating_mul(12)),
            _ => return Err(unknown()),
        };
        if matches!(step, IntervalStep::Months(_)) && wall.day() > LAST_COMMON_DAY {
            return Err(refusal(
                format!(
                    "it counts months from day {}: there each short month moves the day for good, and the table does not say \
                     to which",
                    wall.day()
                ),
                format!(
                    "它从 {} 日起按月计算：原系统遇到短月后日期会一直改变，表中没有记录",
                    wall.day()
                ),
            ));
        }
        Interval { step, start: wall, zone }.schedules(now).ok_or_else(unknown)
    }

    /// Checks that the next time in the table is one of the schedules'; otherwise a note asks the user to check.
    fn compare_next_time(&self, timings: &[TimingWords], place: RowPlace<'_>, draft: &mut Draft) {
        let is_waiting =
            matches!(self.row.trimmed_value("trigger_state"), "WAITING" | "ACQUIRED" | "BLOCKED");
        let Some(next) = moment(self.row, "next_fire_time").filter(|_| is_waiting) else { return };
        let first = timings.iter().filter_map(|timing| {
            let timing = timing.clone().parse_timing(None).ok()?;
            let anchor = Anchor::new(draft.asked.now);
            timing.next_after(&Calendars::default(), next.plus_ms(-1), anchor).ok()?
        });
        let once = timings.iter().any(|timing| timing.once_at.is_some());
        if once || first.map(|found| found.planned).min() == Some(next) {
            return;
        }
        let at = wall_text(wall_at(next, Tz::UTC));
        draft.note(
            Level::Look,
            place.at,
            place.about,
            (
                format!("its next time in the table is {at} UTC, which is none of its times here"),
                format!("表中的下次触发时间为 {at} UTC，与此处的时间不符"),
            ),
            (
                "see procession schedule next, and compare the time zone",
                "请用 procession schedule next 核对，并检查时区",
            ),
        );
    }

    fn add(&self, timing: TimingWords, job: &SchedulerRow, group: &GroupCode, draft: &mut Draft) {
        let title = self.title();
        let waits = timing.once_at.is_none() && job.is_true("is_nonconcurrent");
        let overlap = if waits { Overlap::Queue } else { Overlap::Parallel };
        let state = self.row.trimmed_value("trigger_state");
        let firing = match state {
            "WAITING" | "ACQUIRED" | "EXECUTING" | "BLOCKED" => SourceScheduleState::On,
            _ => SourceScheduleState::Off,
        };
        if firing == SourceScheduleState::Off && !state.starts_with("PAUSED") {
            draft.note(
                Level::Look,
                &self.at,
                &title,
                (
                    format!("its state there is {state}, in which it does not fire"),
                    format!("其状态为 {state}，不再触发"),
                ),
                ("find out why before it is switched on", "启用前请查明原因"),
            );
        }
        let description = self.row.trimmed_value("description");
        let words = TriggerWords {
            code: title.clone(),
            name: (!description.is_empty()).then(|| description.to_owned()),
            group: Some(group.clone()),
            misfire: Some(self.misfire()),
            overlap: Some(overlap),
            timing,
            ..TriggerWords::default()
        };
        draft.schedule(&self.at, words, firing);
    }

    /// The policy for missed times, from the misfire instruction.
    fn misfire(&self) -> MisfirePolicy {
        let instruction = self.row.number("misfire_instr").unwrap_or(0);
        let count = self.of_kind.and_then(|row| row.number("repeat_count"));
        match (self.row.trimmed_value("trigger_type"), instruction) {
            (_, IGNORE_MISFIRES) => MisfirePolicy::All,
            // By default, an endless trigger continues with its next time.
            ("SIMPLE", 0) if count == Some(FOREVER) => MisfirePolicy::Skip,
            ("SIMPLE", 4 | 5) => MisfirePolicy::Skip,
            ("SIMPLE", _) => MisfirePolicy::Once,
            (_, 2) => MisfirePolicy::Skip,
            (_, _) => MisfirePolicy::Once,
        }
    }
}

fn unknown_zone(word: Option<&str>) -> BilingualSentence {
    let word = word.unwrap_or_default();
    refusal(
        format!("its time zone {word:?} is none that is known here"),
        format!("其时区 {word:?} 无法识别"),
    )
}

fn cron(row: &SchedulerRow, zone: Tz) -> Result<Schedules, BilingualSentence> {
    let text = row.trimmed_value("cron_expression");
    let word = Some(row.trimmed_value("time_zone_id")).filter(|word| !word.is_empty());
    let zone = word.map_or(Some(zone), java_zone).ok_or_else(|| unknown_zone(word))?;
    Cron::parse(text)
        .map_err(|error| refusal(format!("{text}: {error}"), format!("{text}：{error}")))?;
    Ok(Schedules::exact(TimingWords {
        cron: Some(text.to_owned()),
        time_zone: Some(zone.name().to_owned()),
        ..TimingWords::default()
    }))
}

fn daily(row: &SchedulerRow, zone: Tz) -> Result<Schedules, BilingualSentence> {
    if row.number("long_prop_1").is_some_and(|count| count != FOREVER) {
        return Err(refusal(
            "it ends after a number of firings, which no schedule here counts",
            "它在触发若干次后结束，此处的调度不计数",
        ));
    }
    let word = Some(row.trimmed_value("time_zone_id")).filter(|word| !word.is_empty());
    let zone = word.map_or(Some(zone), java_zone).ok_or_else(|| unknown_zone(word))?;
    let (unit, times) = (row.trimmed_value("str_prop_1"), row.trimmed_value("str_prop_3"));
    let step = row.number("int_prop_1").unwrap_or(0);
    let days = row.trimmed_value("str_prop_2");
    let crons = DailyTimes::read(unit, step, days, times).and_then(|daily| daily.crons());
    let Some(crons) = crons else {
        return Err(refusal(
            format!("every {step} {unit} between {times} on days {days} would be too many crons"),
            format!("在 {times} 之间每 {step} {unit}（星期 {days}）需要过多的 cron"),
        ));
    };
    let timing = |cron: String| TimingWords {
        cron: Some(cron),
        time_zone: Some(zone.name().to_owned()),
        ..TimingWords::default()
    };
    Ok(Schedules { timings: crons.into_iter().map(timing).collect(), differs: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_as_java_names_them() {
        for (word, zone) in [
            ("Asia/Shanghai", Some(Tz::Asia__Shanghai)),
            ("PRC", Some(Tz::PRC)),
            ("GMT+08:00", Some(Tz::Etc__GMTMinus8)),
            ("GMT-5", Some(Tz::Etc__GMTPlus5)),
            ("GMT+05:30", Some(Tz::Asia__Kolkata)),
            ("UTC", Some(Tz::UTC)),
            ("nowhere", None),
        ] {
            assert_eq!(java_zone(word), zone, "{word}");
        }
    }
}
