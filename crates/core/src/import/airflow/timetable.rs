//! Translates the timetable of a DAG: when it runs, and which day its `{{ ds }}` is.

use super::{Pause, SerializedDag, bare, seconds};
use crate::definition::SourceNode;
use crate::domain::id::GroupCode;
use crate::domain::schedule::TimingWords;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::time::Millis;
use crate::domain::time::local_time::{ahead_sec, wall_at};
use crate::import::crontab::NICKNAMES;
use crate::import::draft::Draft;
use crate::import::interval::{changes_clocks, wall_text};
use crate::import::live_zone::{read_zone_word, zone_of_offset};
use crate::import::note::{BilingualSentence, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::CountedKind;
use crate::import::tree::{get, items, plain, word};
use chrono_tz::Tz;

const DAY_SEC: i64 = 86_400;

/// The day of a task's `{{ ds }}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataDay {
    /// The business date of the batch.
    BusinessDate,
    /// No batch number here gives this day.
    Unknown,
}

/// The schedules of a DAG.
pub(super) struct Plan {
    pub(super) data_day: DataDay,
    schedules: Planned,
}

enum Planned {
    /// Airflow has no schedule for it either.
    Nothing,
    Timings {
        timings: Vec<TimingWords>,
        batch_no: Option<String>,
        differs: Option<BilingualSentence>,
    },
    Refused(BilingualSentence),
}

/// What a run stands for: the interval before it, or its own moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunOf {
    Interval,
    Moment,
}

fn refused(en: impl Into<String>, zh: impl Into<String>) -> Plan {
    Plan { data_day: DataDay::Unknown, schedules: Planned::Refused(BilingualSentence::new(en, zh)) }
}

/// Reads the timetable of a DAG, or the interval that 2.0 and 2.1 use instead.
pub(super) fn read(dag: &SerializedDag, draft: &mut Draft) -> Plan {
    let by_hand = Plan { data_day: DataDay::BusinessDate, schedules: Planned::Nothing };
    let Some(node) = get(&dag.dag, "timetable") else {
        let Some(interval) = get(&dag.dag, "schedule_interval") else { return by_hand };
        return match plain(interval) {
            Some("@once") => once(dag, draft),
            Some(text) => crons(dag, &[text], RunOf::Interval, zone(dag, None), draft),
            None => delta(dag, bare(interval), RunOf::Interval),
        };
    };
    let kind = word(node, "__type").unwrap_or_default();
    let kind = kind.rsplit('.').next().unwrap_or(kind);
    let Some(about) = get(node, "__var") else {
        return if kind == "NullTimetable" {
            by_hand
        } else {
            refused(
                format!("its timetable {kind} says nothing"),
                format!("其时间表 {kind} 没有内容"),
            )
        };
    };
    match kind {
        "NullTimetable" => by_hand,
        "OnceTimetable" => once(dag, draft),
        _ if kind.contains("Cron") => of_crons(dag, kind, about, draft),
        "DeltaDataIntervalTimetable" | "DeltaTriggerTimetable" => {
            let is_interval = kind == "DeltaDataIntervalTimetable";
            let run = if is_interval { RunOf::Interval } else { RunOf::Moment };
            get(about, "delta").map_or_else(
                || refused("its timetable has no delta", "其时间表没有 delta"),
                |node| delta(dag, bare(node), run),
            )
        }
        "AssetTriggeredTimetable"
        | "DatasetTriggeredTimetable"
        | "AssetOrTimeSchedule"
        | "DatasetOrTimeSchedule" => refused(
            format!(
                "it runs when other DAGs have written what it waits for ({kind}): write a schedule with after: GROUP or event: NAME"
            ),
            format!(
                "它在其他 DAG 写出所等待的内容后运行（{kind}）：请写 after: 作业组 或 event: 名称 的调度"
            ),
        ),
        _ => unknown(kind),
    }
}

fn unknown(kind: &str) -> Plan {
    refused(
        format!("its timetable {kind} is Python code, or has no like here"),
        format!("其时间表 {kind} 是 Python 代码，或此处没有对应"),
    )
}

/// Timetables of one or several cron expressions.
fn of_crons(dag: &SerializedDag, kind: &str, about: &SourceNode, draft: &Draft) -> Plan {
    let zone = zone(dag, get(about, "timezone"));
    let one = [word(about, "expression").unwrap_or_default()];
    let made = match kind {
        "CronDataIntervalTimetable" => crons(dag, &one, RunOf::Interval, zone, draft),
        "CronTriggerTimetable" => crons(dag, &one, RunOf::Moment, zone, draft),
        "MultipleCronTriggerTimetable" => {
            let all: Vec<&str> = items(about, "expressions").iter().filter_map(plain).collect();
            crons(dag, &all, RunOf::Moment, zone, draft)
        }
        _ => return unknown(kind),
    };
    // With an interval, runs happen at those times, and their data day differs.
    match get(about, "interval").and_then(seconds) {
        Some(1..) => made.without_day(),
        _ => made,
    }
}

/// The time zone of a timetable, else that of its DAG: a name, or an offset in seconds.
fn zone(dag: &SerializedDag, own: Option<&SourceNode>) -> Option<Tz> {
    let Some(node) = own.or_else(|| get(&dag.dag, "timezone")) else { return Some(Tz::UTC) };
    let text = plain(bare(node))?;
    text.parse::<i64>().map_or_else(|_| read_zone_word(text), zone_of_offset)
}

fn moment(dag: &SerializedDag, key: &str) -> Option<Millis> {
    let of = |node: &SourceNode| {
        get(node, key).and_then(seconds).and_then(|sec| i64::try_from(sec).ok())
    };
    let own = of(&dag.dag)
        .or_else(|| items(&dag.dag, "tasks").iter().filter_map(|task| of(bare(task))).min());
    own.map(|sec| Millis(sec * 1_000))
}

fn once(dag: &SerializedDag, draft: &Draft) -> Plan {
    match moment(dag, "start_date").filter(|start| *start > draft.asked.now) {
        Some(start) => {
            let zone = zone(dag, None).unwrap_or(Tz::UTC);
            let once_at = Some(wall_text(wall_at(start, zone)));
            let time_zone = Some(zone.name().to_owned());
            let timings = vec![TimingWords { once_at, time_zone, ..TimingWords::default() }];
            let schedules = Planned::Timings { timings, batch_no: None, differs: None };
            Plan { data_day: DataDay::Unknown, schedules }
        }
        None => refused(
            "it runs once (@once), and its start is over",
            "它只运行一次（@once），且已过开始时间",
        ),
    }
}

fn delta(dag: &SerializedDag, node: &SourceNode, run: RunOf) -> Plan {
    let step = seconds(node).and_then(|sec| i64::try_from(sec).ok()).filter(|sec| *sec > 0);
    let (Some(step), Some(start)) = (step, moment(dag, "start_date")) else {
        return refused(
            "its interval is no number of seconds (a relativedelta), or it has no start_date",
            "其间隔不是秒数（relativedelta），或没有 start_date",
        );
    };
    let first = if run == RunOf::Interval { start.plus_ms(step * 1_000) } else { start };
    let zone = zone(dag, None).unwrap_or(Tz::UTC);
    let timings = vec![TimingWords {
        every_sec: Some(step),
        start: Some(wall_text(wall_at(first, zone))),
        end: moment_of_dag(dag, "end_date").map(|end| {
            wall_text(wall_at(
                if run == RunOf::Interval { end.plus_ms(step * 1_000) } else { end }.plus_ms(1_000),
                zone,
            ))
        }),
        time_zone: Some(zone.name().to_owned()),
        ..TimingWords::default()
    }];
    let differs = BilingualSentence::new(
        "it counts from start_date here; without catchup Airflow counts from when the DAG was switched on",
        "此处从 start_date 起计；未启用 catchup 时 Airflow 从 DAG 启用时起计",
    );
    let schedules = Planned::Timings { timings, batch_no: None, differs: Some(differs) };
    Plan { data_day: DataDay::Unknown, schedules }
}

/// A moment in a key of the DAG itself.
fn moment_of_dag(dag: &SerializedDag, key: &str) -> Option<Millis> {
    let sec = i64::try_from(get(&dag.dag, key).and_then(seconds)?).ok()?;
    Some(Millis(sec * 1_000))
}

fn crons(dag: &SerializedDag, texts: &[&str], run: RunOf, zone: Option<Tz>, draft: &Draft) -> Plan {
    let Some(zone) = zone else {
        return refused("its time zone is none that is known here", "其时区无法识别");
    };
    let now = draft.asked.now;
    let (mut timings, mut numbers) = (Vec::new(), Vec::new());
    for text in texts {
        let fields = match cron_fields(text) {
            Ok(fields) => fields,
            Err(why) => {
                return Plan { data_day: DataDay::Unknown, schedules: Planned::Refused(why) };
            }
        };
        let Ok(cron) = Cron::parse(&fields) else {
            return refused(format!("{text} is no cron here"), format!("{text} 不是此处的 cron"));
        };
        numbers.push(day_number(&fields, run, zone, now));
        let next = |after: Millis| cron.next_after(after, zone);
        let wall = |at: Millis| wall_text(wall_at(at, zone));
        let start = moment(dag, "start_date").filter(|start| *start > now);
        let start = start.and_then(|start| next(start.plus_ms(-1)));
        let start = if run == RunOf::Interval { start.and_then(next) } else { start };
        // The run of the last interval that begins by the end date happens at the end of that interval.
        let end = moment_of_dag(dag, "end_date");
        let end = if run == RunOf::Interval { end.and_then(next) } else { end };
        timings.push(TimingWords {
            cron: Some(fields),
            start: start.map(wall),
            end: end.map(|end| wall(end.plus_ms(1_000))),
            time_zone: Some(zone.name().to_owned()),
            ..TimingWords::default()
        });
    }
    let number = match &numbers[..] {
        [Some(first)] => Some(*first),
        _ => None,
    };
    let data_day = if number.is_some() { DataDay::BusinessDate } else { DataDay::Unknown };
    let batch_no = number.map(|days| format!("day({days})"));
    Plan { data_day, schedules: Planned::Timings { timings, batch_no, differs: None } }
}

/// The five fields of a preset or an expression.
fn cron_fields(text: &str) -> Result<String, BilingualSentence> {
    let refuse = |en: &str, zh: &str| {
        Err(BilingualSentence::new(format!("{text}: {en}"), format!("{text}：{zh}")))
    };
    let lower = text.trim().to_ascii_lowercase();
    if lower == "@quarterly" {
        return Ok("0 0 1 */3 *".to_owned());
    }
    if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| *name == lower) {
        return Ok((*fields).to_owned());
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [_, _, day, _, weekday] = fields[..] else {
        return refuse(
            "it has not five fields (there a sixth one is seconds, at the end)",
            "它没有五个字段（原系统的第六个字段是末尾的秒）",
        );
    };
    let is_step = |field: &str| field.starts_with("*/");
    if (is_step(day) && weekday != "*") || (is_step(weekday) && day != "*") {
        return refuse(
            "a step of days and a day of the week: there either is enough, here both must hold",
            "日期步长与星期同时出现：原系统满足其一即可，此处须同时满足",
        );
    }
    let fields = fields.join(" ");
    Cron::parse(&fields).map_err(|error| {
        BilingualSentence::new(format!("{text}: {error}"), format!("{text}：{error}"))
    })?;
    Ok(fields)
}

/// The number of days between a run's day and its `{{ ds }}`, which is a day in UTC; `None` if it varies.
fn day_number(fields: &str, run: RunOf, zone: Tz, now: Millis) -> Option<i64> {
    let all: Vec<&str> = fields.split_whitespace().collect();
    let (minute, hour) = (all.first()?.parse::<i64>().ok()?, all.get(1)?.parse::<i64>().ok()?);
    let is_daily = all[2..].iter().all(|field| *field == "*");
    if changes_clocks(zone, now) || (run == RunOf::Interval && !is_daily) {
        return None;
    }
    let days = (hour * 3_600 + minute * 60 - ahead_sec(now, zone)).div_euclid(DAY_SEC);
    Some(if run == RunOf::Interval { days - 1 } else { days })
}

impl Plan {
    /// The same plan with a data day other than the run's.
    fn without_day(self) -> Self {
        let schedules = match self.schedules {
            Planned::Timings { timings, differs, .. } => {
                Planned::Timings { timings, batch_no: None, differs }
            }
            other => other,
        };
        Self { data_day: DataDay::Unknown, schedules }
    }

    pub(super) fn add(self, dag: &SerializedDag, group: &GroupCode, draft: &mut Draft) {
        let Planned::Timings { timings, batch_no, differs } = self.schedules else {
            if let Planned::Refused(why) = self.schedules {
                draft.begin_item(CountedKind::Schedule, &dag.at, &dag.id);
                let said = BilingualSentence::new(
                    format!("its schedule is left out: {}", why.en),
                    format!("其调度未迁移：{}", why.zh),
                );
                let cure = (
                    format!("procession schedule add CODE --group {group} …"),
                    format!("请另行添加：procession schedule add CODE --group {group} …"),
                );
                draft.note(Level::LeftOut, &dag.at, &dag.id, said, cure);
                draft.leave_item_out();
                draft.end_item();
            }
            return;
        };
        draft.begin_item(CountedKind::Schedule, &dag.at, &dag.id);
        if let Some(differs) = differs {
            draft.note(Level::Differs, &dag.at, &dag.id, differs, ("", ""));
        }
        let is_off = match dag.pause {
            Pause::Runs => false,
            Pause::Paused => true,
            Pause::Unknown => word(&dag.dag, "is_paused_upon_creation") == Some("true"),
        };
        let catches_up = word(&dag.dag, "catchup") == Some("true");
        let is_single = word(&dag.dag, "max_active_runs") == Some("1");
        for timing in timings {
            let overlap = if is_single { Overlap::Queue } else { Overlap::Parallel };
            let words = TriggerWords {
                code: dag.id.clone(),
                group: Some(group.clone()),
                batch_no: batch_no.clone(),
                timing,
                misfire: Some(if catches_up { MisfirePolicy::All } else { MisfirePolicy::Once }),
                overlap: Some(overlap),
                ..TriggerWords::default()
            };
            draft.schedule(
                &dag.at,
                words,
                if is_off { SourceScheduleState::Off } else { SourceScheduleState::On },
            );
        }
        draft.end_item();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_789_948_800_000);

    #[test]
    fn the_day_of_a_run_in_utc() {
        let shanghai = Tz::Asia__Shanghai;
        for (fields, run, zone, wanted) in [
            ("0 0 * * *", RunOf::Interval, Tz::UTC, Some(-1)),
            ("0 2 * * *", RunOf::Interval, shanghai, Some(-2)),
            ("0 9 * * *", RunOf::Interval, shanghai, Some(-1)),
            ("0 2 * * *", RunOf::Moment, shanghai, Some(-1)),
            ("0 9 * * 1", RunOf::Moment, shanghai, Some(0)),
            ("0 9 * * 1", RunOf::Interval, shanghai, None),
            ("0 */2 * * *", RunOf::Moment, shanghai, None),
            ("0 2 * * *", RunOf::Moment, Tz::Europe__Berlin, None),
        ] {
            assert_eq!(day_number(fields, run, zone, NOW), wanted, "{fields} {run:?} {zone}");
        }
    }

    #[test]
    fn presets_and_expressions() {
        for (text, wanted) in [
            ("@daily", Some("0 0 * * *")),
            ("@quarterly", Some("0 0 1 */3 *")),
            ("30 6 * * 1-5", Some("30 6 * * 1-5")),
            ("0 0 */2 * 1", None),
            ("0 0 * * * 30", None),
            ("61 0 * * *", None),
        ] {
            assert_eq!(cron_fields(text).ok().as_deref(), wanted, "{text}");
        }
    }
}
