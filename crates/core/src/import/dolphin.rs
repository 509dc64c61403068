//! Imports Apache DolphinScheduler: a workflow becomes a group, its tasks become jobs.

mod branches;
mod call;
mod delay;
mod job;
pub(super) mod keys;
mod launch;
mod read;
mod sql;
pub(super) mod tables;
mod value;
mod wait;

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{GroupFailurePolicy, JobDef, ParamDecl};
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{TimingWords, read_zone};
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, check_keys, hint};
use crate::import::note::Level;
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::CountedKind;
use crate::import::tree::word;
use branches::Branches;
use read::{DolphinTask, Scheduled, Workflow};
use std::collections::{BTreeMap, HashMap, HashSet};
use value::{Turned, variable};

/// Maximum time-out of a batch.
const LONGEST_MIN: i64 = 30 * 24 * 60;

/// The codes assigned to workflows and tasks.
struct DolphinCodes {
    /// Groups by the key and by the name of their workflow.
    groups: HashMap<String, GroupCode>,
    /// Jobs by the keys of workflow and task; for 2.x and later also by the task's key alone.
    jobs: HashMap<(String, String), JobCode>,
}

/// Reads exports.
pub(crate) fn read_exports(given: &[Given], draft: &mut Draft) {
    let mut flows: Vec<Workflow> = Vec::new();
    for file in given {
        if let Some(text) = text(file, draft) {
            flows.extend(read::flows(&file.path, text, draft));
        }
    }
    flows.retain(|flow| {
        let is_first = draft.is_first("workflow", &flow.key);
        if !is_first {
            draft.fault(&flow.at, format!("workflow {} is there twice", flow.name), "give it once");
        }
        is_first
    });
    let mut codes = DolphinCodes { groups: HashMap::new(), jobs: HashMap::new() };
    let is_only = flows.len() == 1;
    let mut all: Vec<Vec<JobDef>> = Vec::new();
    for flow in &flows {
        let group = if is_only { draft.only_group(&flow.name) } else { draft.group(&flow.name) };
        codes.groups.insert(flow.key.clone(), group.clone());
        codes.groups.entry(flow.name.clone()).or_insert_with(|| group.clone());
        let mut made: Vec<JobDef> = Vec::with_capacity(flow.tasks.len());
        for task in &flow.tasks {
            draft.begin_item(CountedKind::Job, &task.at, &task.name);
            made.push(draft.job(&task.at, &group, &task.name, "NOOP"));
        }
        draft.end_item();
        for (task, job) in flow.tasks.iter().zip(&made) {
            let key = (flow.key.clone(), task.key.clone());
            if codes.jobs.insert(key, job.code.clone()).is_some() {
                let what = format!("workflow {}: task {} is there twice", flow.name, task.name);
                draft.fault(&task.at, what, "rename one of the two there");
            }
        }
        all.push(made);
    }
    for (flow, jobs) in flows.iter().zip(all) {
        if flow.tasks.is_empty() {
            draft.fault(&flow.at, format!("workflow {} has no tasks", flow.name), "leave it out");
        }
        workflow(flow, jobs, &codes, draft);
    }
}

fn workflow(flow: &Workflow, jobs: Vec<JobDef>, codes: &DolphinCodes, draft: &mut Draft) {
    let Some(group) = codes.groups.get(&flow.key).cloned() else { return };
    let params = params(flow, draft);
    if let Some(made) = draft.group_mut(&group) {
        made.params = params;
        made.on_failure = match flow.schedule.as_ref().map(|s| s.failure.as_str()) {
            Some("END") => GroupFailurePolicy::Stop,
            Some(_) | None => GroupFailurePolicy::GoOn,
        };
        let limit = flow.timeout_min.clamp(0, LONGEST_MIN);
        made.batch_timeout_sec = u32::try_from(limit * 60).ok().filter(|s| *s > 0);
    }
    note_cut_timeout(flow, group.as_str(), draft);
    let workers: Vec<&str> = flow.tasks.iter().map(|t| t.worker.as_str()).collect();
    if let Some(worker) = workers.iter().find(|w| !w.is_empty() && **w != "default") {
        draft.note(
            Level::Look,
            &flow.at,
            group.as_str(),
            (
                format!(
                    "its tasks name worker groups, such as {worker}; here they run on any node"
                ),
                format!("其任务指定了 Worker 分组(如 {worker});此处可在任意节点运行"),
            ),
            (
                "start nodes with --label and write worker: LABEL on the jobs",
                "请用 --label 启动节点,并在作业上写 worker: 标签",
            ),
        );
    }
    for (task, job) in flow.tasks.iter().zip(jobs) {
        draft.resume_job(&job.code);
        job::fill_job(task, job, flow, codes, draft);
        draft.end_item();
    }
    declare_resource_dir(flow, &group, draft);
    let branches = Branches::find_branches(flow, codes);
    edges(flow, codes, &branches, draft);
    let entries = delay::add_waits(flow, &group, codes, draft);
    branches.add_edges(&group, &entries, draft);
    if let Some(schedule) = &flow.schedule {
        draft.begin_item(CountedKind::Schedule, &schedule.at, &flow.name);
        scheduled(flow, schedule, &group, draft);
        draft.end_item();
    }
}

fn note_cut_timeout(flow: &Workflow, group: &str, draft: &mut Draft) {
    if flow.timeout_min <= LONGEST_MIN {
        return;
    }
    draft.note(
        Level::Differs,
        &flow.at,
        group,
        (
            format!(
                "its time-out of {} min is cut to 30 days, the longest there is",
                flow.timeout_min
            ),
            format!("超时 {} 分钟超过上限,改为 30 天", flow.timeout_min),
        ),
        ("", ""),
    );
}

fn params(flow: &Workflow, draft: &mut Draft) -> Vec<ParamDecl> {
    let mut made: BTreeMap<String, ParamDecl> = BTreeMap::new();
    for (name, text) in &flow.params {
        let value = match value::value(text, &|_| false) {
            Turned::Value(value) => Some(value),
            Turned::Unknown => {
                draft.note(
                    Level::Look,
                    &flow.at,
                    name,
                    (
                        format!("its value {text} has no form here, so it has none"),
                        format!("其值 {text} 没有对应的写法,因此留空"),
                    ),
                    (
                        "give it one: procession params show JOB tells what a job gets",
                        "请填写取值;procession params show 作业 可查看",
                    ),
                );
                None
            }
        };
        let name = variable(name);
        let decl = ParamDecl { value, ..ParamDecl::plain(&name, "") };
        made.insert(name.to_lowercase(), decl);
    }
    made.into_values().collect()
}

/// Declares the parameter for the directory of the resource centre in a group whose scripts use it.
fn declare_resource_dir(flow: &Workflow, group: &GroupCode, draft: &mut Draft) {
    let names_files = |job: &&JobDef| job.params.iter().any(|p| p.name == launch::FILES_PARAM);
    if !draft.defs.jobs.iter().filter(|job| job.group == *group).any(|job| names_files(&job)) {
        return;
    }
    if let Some(made) = draft.group_mut(group) {
        made.params.push(ParamDecl { value: None, ..ParamDecl::plain(launch::FILES_PARAM, "") });
    }
    draft.note(
        Level::Look,
        &flow.at, group.as_str(),
        (
            "its scripts start files of DolphinScheduler's resource centre, which are not in an export",
            "其脚本启动资源中心的文件,导出文件不含这些文件",
        ),
        (
            format!(
                "copy them to the hosts that run scripts and write their folder as value of the parameter {} of \
                 the group",
                launch::FILES_PARAM
            ),
            format!("请将文件复制到运行脚本的主机,并把目录填入作业组参数 {}", launch::FILES_PARAM),
        ),
    );
}

/// Adds the dependencies. DolphinScheduler passes over a disabled task, so its dependents wait for its dependencies.
fn edges(flow: &Workflow, codes: &DolphinCodes, branches: &Branches<'_>, draft: &mut Draft) {
    let by_key: HashMap<&str, &DolphinTask> =
        flow.tasks.iter().map(|t| (t.key.as_str(), t)).collect();
    for task in &flow.tasks {
        let Some(job) = codes.jobs.get(&(flow.key.clone(), task.key.clone())) else { continue };
        let mut open: Vec<&str> = task.parents.iter().rev().map(String::as_str).collect();
        let mut seen = HashSet::new();
        while let Some(key) = open.pop() {
            let Some(parent) = by_key.get(key) else {
                let what = format!("task {} waits for {key}, which is not there", task.name);
                draft.fault(&task.at, what, "export the workflow anew");
                continue;
            };
            if !seen.insert(key) {
                continue;
            }
            if !parent.is_active && task.is_active {
                open.extend(parent.parents.iter().rev().map(String::as_str));
                continue;
            }
            if branches.decides(parent, task) {
                continue;
            }
            if let Some(code) = codes.jobs.get(&(flow.key.clone(), parent.key.clone())) {
                draft.depends(job, code, EdgeCondition::Success);
            }
        }
    }
}

fn scheduled(flow: &Workflow, schedule: &Scheduled, group: &GroupCode, draft: &mut Draft) {
    let at = &schedule.at;
    check_keys(&schedule.source.node, &[schedule.source.keys], &flow.name, draft);
    note_schedule_limits(flow, schedule, draft);
    if let Err(error) = Cron::parse(&schedule.cron) {
        let what = format!("workflow {}: {error}", flow.name);
        draft.fault(at, what, "mend its schedule there and export it anew");
        return;
    }
    let zone = schedule.zone.as_deref().filter(|z| read_zone(z).is_ok());
    if zone.is_none() && (draft.asked.zone.is_none() || schedule.zone.is_some()) {
        let named = schedule.zone.as_deref().unwrap_or("none");
        draft.note(
            Level::Look,
            at,
            &flow.name,
            (
                format!("its time zone ({named}) is not one that is known here"),
                format!("其时区({named})无法识别"),
            ),
            (
                "write time_zone, or import again with --zone",
                "请填写 time_zone,或加 --zone 重新导入",
            ),
        );
    }
    let overlap = match flow.execution.as_str() {
        "SERIAL_WAIT" => Overlap::Queue,
        "SERIAL_DISCARD" => Overlap::Skip,
        "SERIAL_PRIORITY" => Overlap::Replace,
        "" | "PARALLEL" => Overlap::Parallel,
        other => {
            let note = KeyNote { at, about: &flow.name, key: "executionType", value: Some(other) };
            draft.note_key(
                note,
                hint(
                    "it is none that is known: overlap: parallel",
                    "无法识别,改为 overlap: parallel",
                ),
            );
            Overlap::Parallel
        }
    };
    let words = TriggerWords {
        code: flow.name.clone(),
        name: Some(flow.name.clone()),
        group: Some(group.clone()),
        timing: TimingWords {
            cron: Some(schedule.cron.clone()),
            time_zone: zone.map(str::to_owned),
            start: schedule.start.clone(),
            end: schedule.end.clone(),
            ..TimingWords::default()
        },
        overlap: Some(overlap),
        ..TriggerWords::default()
    };
    let state = if schedule.is_on { SourceScheduleState::On } else { SourceScheduleState::Off };
    draft.schedule(at, words, state);
}

/// Reports parts of a schedule that are carried over differently, or cannot be read.
fn note_schedule_limits(flow: &Workflow, schedule: &Scheduled, draft: &mut Draft) {
    let at = &schedule.at;
    if schedule.failure == "END" {
        draft.note(
            Level::Differs,
            at, &flow.name,
            (
                "failureStrategy END: on_failure of the group starts nothing new after a failure, whatever started \
                 the batch; what runs already goes on to its end",
                "failureStrategy END:作业组的 on_failure 在失败后不再启动新作业(不论批次由谁启动),已运行的作业运行到结束",
            ),
            ("", ""),
        );
    }
    let node = &schedule.source.node;
    for (key, found) in [
        (["startTime", "scheduleStartTime"], &schedule.start),
        (["endTime", "scheduleEndTime"], &schedule.end),
    ] {
        let text = key.iter().find_map(|key| word(node, key)).filter(|t| !t.trim().is_empty());
        if let (Some(text), None) = (text, found) {
            let note = KeyNote { at, about: &flow.name, key: key[0], value: Some(text) };
            let form = hint(
                "write it as 2024-01-31T00:00:00 into the schedule",
                "请按 2024-01-31T00:00:00 的形式写入调度",
            );
            draft.note_key(note, form);
        }
    }
}
