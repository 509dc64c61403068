//! Converts schedules: cron and fixed rates in the time zone of the admin's machine, which no table names.

use crate::domain::id::GroupCode;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{TimingWords, read_zone};
use crate::domain::time::Millis;
use crate::domain::time::local_time::wall_at;
use crate::domain::xxl::xxl_tables::{XxlJob, XxlTables};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::xxl_job::{origin, title, work};
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// The zone of most XXL-JOB installations, and of its own configuration.
const USUAL: Tz = Tz::Asia__Shanghai;
/// Maximum number of next times compared with a zone; more add no information.
const SAMPLE: usize = 500;

/// The zone of the admin's machine: the user's option, otherwise the first zone that agrees with
/// the next times in the table; with a note when none agrees.
pub(super) fn find_zone(
    tables: &XxlTables,
    asked: Option<Tz>,
) -> (Tz, Option<(BilingualSentence, BilingualSentence)>) {
    let server = tables.server_zone.as_deref().and_then(|word| read_zone(word).ok());
    let guesses = [Some(USUAL), server, Some(Tz::UTC)];
    let zone = asked.or_else(|| {
        let agrees = |zone: &Tz| against(&tables.jobs, *zone).1 == 0;
        guesses.into_iter().flatten().find(agrees)
    });
    let zone = zone.unwrap_or(USUAL);
    let (of, wrong) = against(&tables.jobs, zone);
    if wrong == 0 && (asked.is_some() || of > 0) {
        return (zone, None);
    }
    let cure = BilingualSentence::new(
        "if the admin's machine was in another zone, import again with --zone",
        "如果调度中心不在该时区,请用 --zone 重新导入",
    );
    let said = match wrong {
        0 => BilingualSentence::new(
            format!(
                "times of day are read in {zone}: the tables do not say in which zone the admin was"
            ),
            format!("时间按 {zone} 解释:表中没有调度中心的时区"),
        ),
        _ => BilingualSentence::new(
            format!(
                "times of day are read in {zone}, and {wrong} of {of} next times in the table are none of their cron's there"
            ),
            format!("时间按 {zone} 解释,但表中 {of} 个下次触发时间有 {wrong} 个与 cron 不符"),
        ),
    };
    (zone, Some((said, cure)))
}

/// The number of next times of cron jobs in the table, and of those that contradict a zone.
fn against(jobs: &[XxlJob], zone: Tz) -> (usize, usize) {
    let fires = |job: &XxlJob| {
        let is_cron = job.schedule_type.trim() == "CRON" && job.trigger_status == 1;
        let cron = Cron::parse(job.schedule_conf.trim()).ok()?;
        (is_cron && job.next_time > 0).then_some((cron, Millis(job.next_time)))
    };
    let sample = jobs.iter().filter_map(fires).take(SAMPLE);
    let holds: Vec<bool> =
        sample.map(|(cron, at)| cron.next_after(at.plus_ms(-1), zone) == Some(at)).collect();
    (holds.len(), holds.iter().filter(|holds| !**holds).count())
}

/// Adds the schedule of a pipeline, as far as there is an equivalent. `fixed` are parameters that it passes to its
/// batches.
pub(super) fn add_schedule(
    job: &XxlJob,
    group: &GroupCode,
    fixed: BTreeMap<String, String>,
    draft: &mut Draft,
) {
    let zone = draft.asked.zone.unwrap_or(USUAL);
    let Some(timing) = timing(job, zone, draft, group) else { return };
    let (_, notify_email) = work::recipients(job);
    let words = TriggerWords {
        code: title(job),
        name: Some(title(job)),
        group: Some(group.clone()),
        params: fixed,
        timing,
        misfire: Some(match job.misfire.trim() {
            "FIRE_ONCE_NOW" => MisfirePolicy::Once,
            _ => MisfirePolicy::Skip,
        }),
        // In XXL-JOB, too, only the block strategy of each job separates runs.
        overlap: Some(Overlap::Parallel),
        notify_email,
        owner: work::owner(job),
        ..TriggerWords::default()
    };
    let firing =
        if job.trigger_status == 1 { SourceScheduleState::On } else { SourceScheduleState::Off };
    draft.schedule(&origin(job), words, firing);
}

fn timing(job: &XxlJob, zone: Tz, draft: &mut Draft, group: &GroupCode) -> Option<TimingWords> {
    let (kind, conf) = (job.schedule_type.trim(), job.schedule_conf.trim());
    let seconds = conf.parse::<i64>().ok().filter(|sec| *sec > 0);
    // The fixed rate continues from its current phase, in whole seconds.
    let start = (job.next_time > 0).then(|| {
        let at = Millis(job.next_time / 1_000 * 1_000);
        wall_at(at, zone).format("%Y-%m-%dT%H:%M:%S").to_string()
    });
    match (kind, seconds) {
        ("CRON", _) => Some(TimingWords { cron: Some(conf.to_owned()), ..TimingWords::default() }),
        ("FIX_RATE", Some(sec)) => {
            Some(TimingWords { every_sec: Some(sec), start, ..TimingWords::default() })
        }
        ("FIX_DELAY", Some(sec)) => {
            let said = (
                "FIX_DELAY is in no release of XXL-JOB; here it is so long after the end of the batch before",
                "XXL-JOB 正式版没有 FIX_DELAY;这里表示上一批次结束后的间隔",
            );
            draft.note(Level::Look, &origin(job), group.as_str(), said, ("", ""));
            Some(TimingWords { delay_sec: Some(sec), ..TimingWords::default() })
        }
        _ => {
            let word: String = kind.chars().take(40).collect();
            let conf: String = conf.chars().take(80).collect();
            let said = (
                format!("its schedule is left out: {word} `{conf}` is nothing that is known"),
                format!("其调度未迁移:无法识别 {word} `{conf}`"),
            );
            let cure = (
                format!("procession schedule add CODE --group {group} …"),
                format!("请另行添加:procession schedule add CODE --group {group} …"),
            );
            draft.note(Level::LeftOut, &origin(job), group.as_str(), said, cure);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::xxl::xxl_tables::XxlSchema;

    fn tables(next: &str, server_zone: Option<&str>) -> XxlTables {
        let next =
            next.parse::<chrono::DateTime<chrono::Utc>>().map_or(0, |at| at.timestamp_millis());
        let job = XxlJob {
            schedule_type: "CRON".to_owned(),
            schedule_conf: "0 30 2 * * ?".to_owned(),
            trigger_status: 1,
            next_time: next,
            ..XxlJob::default()
        };
        XxlTables {
            schema: XxlSchema::V3_4,
            groups: Vec::new(),
            jobs: vec![job],
            users: None,
            server_zone: server_zone.map(str::to_owned),
            unread: Vec::new(),
        }
    }

    #[test]
    fn the_zone_is_the_one_that_next_times_agree_with() {
        let shanghai = "2026-11-21T18:30:00Z";
        let york = "2026-11-22T07:30:00Z";
        let told = |next, server, asked: Option<Tz>| {
            let (zone, doubt) = find_zone(&tables(next, server), asked);
            (zone, doubt.map(|(said, _)| said.en))
        };
        assert_eq!(told(shanghai, None, None), (Tz::Asia__Shanghai, None));
        assert_eq!(told("2026-11-22T02:30:00Z", None, None), (Tz::UTC, None));
        assert_eq!(told(york, Some("America/New_York"), None), (Tz::America__New_York, None));
        assert_eq!(told(york, None, Some(Tz::America__New_York)), (Tz::America__New_York, None));
        let (zone, doubt) = told(york, Some("Mars/Olympus"), None);
        assert_eq!(zone, Tz::Asia__Shanghai);
        assert!(doubt.is_some_and(|said| said.contains("1 of 1")));
        let (_, doubt) = told(shanghai, None, Some(Tz::UTC));
        assert!(
            doubt.is_some_and(|said| said.contains("read in UTC")),
            "what was asked for is told"
        );
        let (zone, doubt) = told("never", None, None);
        assert_eq!(zone, Tz::Asia__Shanghai);
        assert!(doubt.is_some_and(|said| said.contains("do not say")));
    }
}
