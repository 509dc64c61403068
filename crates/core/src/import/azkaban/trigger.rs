//! The trigger of a Flow 2.0 file: its cron expression becomes a schedule, and its data
//! dependencies become a job that fails until a user writes the wait.

use super::AzkabanFlow;
use crate::definition::SourceNode as Tree;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::schedule::TimingWords;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::import::body::stand_in;
use crate::import::draft::Draft;
use crate::import::keys::{KnownKey, check_keys, read_key};
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::CountedKind;
use crate::import::tree::{entries, get, items, number, origin, plain, word};

/// Keys of a trigger, its schedule and its dependencies.
pub(in crate::import) const TRIGGER_KEYS: &[KnownKey] =
    &[read_key("maxWaitMins"), read_key("schedule"), read_key("triggerDependencies")];
pub(in crate::import) const SCHEDULE_KEYS: &[KnownKey] = &[read_key("type"), read_key("value")];
pub(in crate::import) const DEPENDENCY_KEYS: &[KnownKey] =
    &[read_key("name"), read_key("type"), read_key("params")];

/// Longest wait of a trigger in Azkaban: 10 days.
const LONGEST_WAIT_MIN: i64 = 10 * 24 * 60;

/// The trigger of a flow.
#[derive(Clone, Debug)]
pub(super) struct FlowTrigger {
    at: ImportOrigin,
    cron: String,
    max_wait_min: Option<i64>,
    dependencies: Vec<TriggerDependency>,
}

/// Something external that a trigger waits for, such as a message in a Kafka topic.
#[derive(Clone, Debug)]
struct TriggerDependency {
    at: ImportOrigin,
    name: String,
    kind: String,
    params: Vec<String>,
}

/// Reads `trigger:` of a flow; one that Azkaban refuses is a fault.
pub(super) fn read_trigger(flow: &Tree, draft: &mut Draft) -> Option<FlowTrigger> {
    let trigger = get(flow, "trigger")?;
    check_keys(trigger, &[TRIGGER_KEYS], "trigger", draft);
    let at = origin(trigger);
    let schedule = get(trigger, "schedule");
    if let Some(schedule) = schedule {
        check_keys(schedule, &[SCHEDULE_KEYS], "trigger", draft);
    }
    let kind = schedule.and_then(|s| word(s, "type")).unwrap_or_default().trim();
    let cron = schedule.and_then(|s| word(s, "value")).unwrap_or_default().trim().to_owned();
    if kind != "cron" || cron.is_empty() {
        let what = "this trigger has no schedule of type cron with a value";
        draft.fault(&at, what, "add schedule: {type: cron, value: \"0 0 2 ? * *\"}");
        return None;
    }
    if let Err(error) = Cron::parse(&cron) {
        let at = schedule.map_or(at, origin);
        draft.fault(&at, format!("trigger: {error}"), "Azkaban refuses such a trigger, too");
        return None;
    }
    let mut dependencies = Vec::new();
    for one in items(trigger, "triggerDependencies") {
        dependencies.extend(read_dependency(one, draft));
    }
    let max_wait_min = number(trigger, "maxWaitMins", draft);
    Some(FlowTrigger { at, cron, max_wait_min, dependencies })
}

fn read_dependency(one: &Tree, draft: &mut Draft) -> Option<TriggerDependency> {
    let at = origin(one);
    let text = |key: &str| word(one, key).unwrap_or_default().trim().to_owned();
    let (name, kind) = (text("name"), text("type"));
    if name.is_empty() || kind.is_empty() {
        draft.fault(&at, "this dependency of a trigger has no name or no type", "add both");
        return None;
    }
    check_keys(one, &[DEPENDENCY_KEYS], &name, draft);
    let params = get(one, "params").map(|params| {
        let all = entries(params);
        all.map(|(key, value)| format!("{key}={}", plain(value).unwrap_or("…"))).collect()
    });
    Some(TriggerDependency { at, name, kind, params: params.unwrap_or_default() })
}

/// The placeholder jobs for a trigger's dependencies; the first jobs of the flow wait for them.
pub(super) fn add_waits(flow: &AzkabanFlow, group: &GroupCode, draft: &mut Draft) -> Vec<JobCode> {
    let Some(trigger) = &flow.trigger else { return Vec::new() };
    let minutes = trigger.max_wait_min.unwrap_or(0).clamp(0, LONGEST_WAIT_MIN);
    let seconds = u64::try_from(minutes * 60).unwrap_or(0);
    let mut codes = Vec::new();
    for wait in &trigger.dependencies {
        let params = wait.params.join(", ");
        let why = BilingualSentence::new(
            format!(
                "the flow starts once {} {params} is there: write a SENSOR with a query, or a script, that waits \
                 for it; its timeout_sec is maxWaitMins",
                wait.kind
            ),
            format!(
                "流在 {} {params} 满足后才启动:请改为等待它的 SENSOR 或脚本;timeout_sec 取自 maxWaitMins",
                wait.kind
            ),
        );
        let title = format!("wait_for_{}", wait.name);
        draft.begin_item(CountedKind::Job, &wait.at, &title);
        let mut job = stand_in(draft, &wait.at, group, &title, &why);
        job.timeout_sec = draft.timeout(&wait.at, &title, seconds);
        codes.push(job.code.clone());
        draft.push(job);
        draft.end_item();
    }
    if trigger.dependencies.is_empty() && trigger.max_wait_min.is_some() {
        draft.note(
            Level::LeftOut,
            &trigger.at,
            &flow.name,
            (
                "maxWaitMins limits the wait for triggerDependencies, and there are none",
                "maxWaitMins 限制对 triggerDependencies 的等待,而这里没有",
            ),
            ("", ""),
        );
    }
    codes
}

/// The schedule of a flow that has a trigger.
pub(super) fn add_schedule(flow: &AzkabanFlow, group: &GroupCode, draft: &mut Draft) {
    let Some(trigger) = &flow.trigger else { return };
    draft.begin_item(CountedKind::Schedule, &trigger.at, &flow.name);
    if draft.asked.zone.is_none() {
        draft.note(
            Level::Look,
            &trigger.at, &flow.name,
            (
                "a trigger goes by the clock of Azkaban's web server, which no file says: times here are UTC",
                "触发器使用 Azkaban Web 服务器的时区,文件中没有写明:此处时间按 UTC 计",
            ),
            (
                "import again with --zone, such as --zone Asia/Shanghai",
                "请加 --zone 重新导入,例如 --zone Asia/Shanghai",
            ),
        );
    }
    let words = TriggerWords {
        code: flow.name.clone(),
        name: Some(flow.name.clone()),
        group: Some(group.clone()),
        timing: TimingWords { cron: Some(trigger.cron.clone()), ..TimingWords::default() },
        // Quartz fires once for missed times, and Azkaban runs executions of a flow in parallel.
        misfire: Some(MisfirePolicy::Once),
        overlap: Some(Overlap::Parallel),
        ..TriggerWords::default()
    };
    draft.schedule(&trigger.at, words, SourceScheduleState::On);
    draft.end_item();
}
