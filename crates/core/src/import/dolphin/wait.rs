//! Translates DEPENDENT and CONDITIONS tasks, which only wait and branch.

use super::read::{DolphinTask, Workflow};
use super::{DolphinCodes, keys};
use crate::definition::SourceNode;
use crate::domain::batch_no::{BatchExpr, DaySpan, NamedDay, PeriodKind};
use crate::domain::job::JobDef;
use crate::domain::job::external::{ExternalDependency, Missing};
use crate::domain::job::trigger_rule::{EdgeCondition, TriggerRule};
use crate::import::draft::{Draft, LONGEST_SEC};
use crate::import::keys::{KeyNote, KnownKey, check_keys, hint};
use crate::import::note::{BilingualSentence, Level};
use crate::import::tree::{get, items, list, plain, word};
use chrono::Weekday;

/// Maximum number of days that one condition looks back.
const MOST_DAYS: i64 = 31;

/// Adds the dependencies of a DEPENDENT task to a job.
pub(super) fn add_externals(
    task: &DolphinTask,
    job: &JobDef,
    codes: &DolphinCodes,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    for external in externals(task, job, codes, draft)? {
        draft.waits(external);
    }
    draft.note(
        Level::Look,
        &task.at, job.code.as_str(),
        ("it waits for batches of the other group by their day, 20240731: that group must be numbered by \
          day(0)",
         "它按日期(如 20240731)等待另一个作业组的批次:该组的批次号须为 day(0)"),
        ("look at batch_no of its schedule; wait_sec limits the waiting",
         "请核对其调度的 batch_no;可用 wait_sec 限制等待时间"),
    );
    Ok(())
}

/// The dependencies of a DEPENDENT task, or why they cannot be expressed.
fn externals(
    task: &DolphinTask,
    job: &JobDef,
    codes: &DolphinCodes,
    draft: &mut Draft,
) -> Result<Vec<ExternalDependency>, BilingualSentence> {
    let empty = || BilingualSentence::from(("it waits for nothing", "它没有等待任何对象"));
    let dependence = get(&task.params, "dependence").ok_or_else(empty)?;
    check_dependence(dependence, keys::DEPEND_ITEM, job, draft);
    let mut found = Vec::new();
    let lists = items(dependence, "dependTaskList");
    let is_or = |node: &SourceNode, of: usize| of > 1 && word(node, "relation") == Some("OR");
    if is_or(dependence, lists.len()) {
        return Err(either());
    }
    for one in lists {
        let all = items(one, "dependItemList");
        if is_or(one, all.len()) {
            return Err(either());
        }
        for item in all {
            // A repeated condition is one dependency.
            for external in waits(item, job, codes)? {
                if !found.contains(&external) {
                    found.push(external);
                }
            }
        }
    }
    if found.is_empty() {
        return Err(empty());
    }
    let wait_sec = wait_sec(dependence, task, job, draft);
    found.iter_mut().for_each(|external: &mut ExternalDependency| external.wait_sec = wait_sec);
    Ok(found)
}

/// Reports the parts of a CONDITIONS task that its rule does not cover.
pub(super) fn check_conditions(
    task: &DolphinTask,
    job: &JobDef,
    flow: &Workflow,
    draft: &mut Draft,
) {
    if let Some(dependence) = get(&task.params, "dependence") {
        check_dependence(dependence, keys::CONDITION_ITEM, job, draft);
    }
    let Some(result) = get(&task.params, "conditionResult") else { return };
    for branch in ["successNode", "failedNode"] {
        let tasks = items(result, branch).iter().filter_map(plain).filter(|key| !key.is_empty());
        for key in tasks.filter(|key| flow.tasks.iter().all(|task| task.key != *key)) {
            let note =
                KeyNote { at: &task.at, about: job.code.as_str(), key: branch, value: Some(key) };
            draft.note_key(note, hint("there is no such task", "没有该任务"));
        }
    }
}

/// Checks the keys at each level of a task's dependencies.
fn check_dependence(
    dependence: &SourceNode,
    item_keys: &[KnownKey],
    job: &JobDef,
    draft: &mut Draft,
) {
    let about = job.code.as_str();
    check_keys(dependence, &[keys::DEPENDENCE], about, draft);
    for one in items(dependence, "dependTaskList") {
        check_keys(one, &[keys::DEPEND_LIST], about, draft);
        for item in items(one, "dependItemList") {
            check_keys(item, &[item_keys], about, draft);
        }
    }
}

/// How long the job waits: in DolphinScheduler the task fails when its dependency fails, at once or after some minutes.
fn wait_sec(
    dependence: &SourceNode,
    task: &DolphinTask,
    job: &JobDef,
    draft: &mut Draft,
) -> Option<u32> {
    let policy = word(dependence, "failurePolicy").unwrap_or_default();
    let minutes = word(dependence, "failureWaitingTime").and_then(|t| t.trim().parse::<u32>().ok());
    let seconds = minutes.and_then(|m| m.checked_mul(60)).filter(|s| (1..=LONGEST_SEC).contains(s));
    let is_waiting = policy == "DEPENDENT_FAILURE_WAITING";
    let wait_sec = seconds.filter(|_| is_waiting);
    let said = match wait_sec {
        Some(seconds) => (
            format!(
                "failurePolicy {policy}: there the minutes count from the failure of what it waits for; here \
                 wait_sec: {seconds} counts from the opening of the batch"
            ),
            format!(
                "failurePolicy {policy}:原系统从依赖失败起计时;此处 wait_sec: {seconds} 从批次打开起计时"
            ),
        ),
        None => (
            format!(
                "{} a failure of what it waits for fails it there; here it waits until that has run again and \
                 ended well",
                if policy.is_empty() { "as by default," } else { policy }
            ),
            "原系统中依赖失败则本任务失败;此处一直等待,直到依赖重跑成功".to_owned(),
        ),
    };
    let cure = ("wait_sec limits the waiting", "可用 wait_sec 限制等待时间");
    draft.note(Level::Differs, &task.at, job.code.as_str(), said, cure);
    wait_sec
}

fn either() -> BilingualSentence {
    BilingualSentence::from((
        "it waits for one of several (OR); here all that is waited for must be there",
        "它等待多者之一(OR);此处等待的对象必须全部满足",
    ))
}

fn waits(
    item: &SourceNode,
    job: &JobDef,
    codes: &DolphinCodes,
) -> Result<Vec<ExternalDependency>, BilingualSentence> {
    let key = |names: [&str; 2]| names.iter().find_map(|n| word(item, n)).unwrap_or_default();
    let flow = key(["definitionCode", "definitionId"]);
    let group = codes.groups.get(flow).ok_or_else(|| {
        BilingualSentence::new(
            format!("it waits for workflow {flow}, which is not among these files"),
            format!("它等待的工作流 {flow} 不在这些文件中"),
        )
    })?;
    let task = key(["depTaskCode", "depTasks"]);
    let depends_on = match task {
        "" | "0" | "-1" | "ALL" => None,
        key => {
            let found = codes.jobs.get(&(flow.to_owned(), key.to_owned()));
            Some(found.cloned().ok_or_else(|| {
                BilingualSentence::new(
                    format!("it waits for task {key} of workflow {flow}, which is not there"),
                    format!("它等待的任务 {key}(工作流 {flow})不存在"),
                )
            })?)
        }
    };
    let period = word(item, "dateValue").unwrap_or_default();
    let batches = batches_of_period(period).ok_or_else(|| {
        BilingualSentence::new(
            format!("it waits for runs of {period:?}, for which there is no batch number"),
            format!("它等待 {period:?} 的运行,没有对应的批次号"),
        )
    })?;
    let external = |batch| ExternalDependency {
        waiting_group: job.group.clone(),
        job_code: job.code.clone(),
        group: group.clone(),
        depends_on: depends_on.clone(),
        batch,
        when: EdgeCondition::Success,
        missing: Missing::Wait,
        wait_sec: None,
    };
    Ok(batches.into_iter().map(external).collect())
}

/// The batches of a period, relative to the batch's own date: the job waits for all days of the period. Weeks begin on
/// Monday, and "this" week or month ends with the date itself. `None` for an hour.
fn batches_of_period(period: &str) -> Option<Vec<BatchExpr>> {
    let day = |n| BatchExpr::Period(PeriodKind::Day, n);
    let one = match period {
        "today" => day(0),
        "thisWeek" => BatchExpr::ToDate(DaySpan::Week),
        "lastWeek" => BatchExpr::DaysOf(DaySpan::Week, -1),
        "thisMonth" => BatchExpr::ToDate(DaySpan::Month),
        "thisMonthBegin" => BatchExpr::Day(NamedDay::FirstOf(PeriodKind::Month), 0),
        "lastMonth" => BatchExpr::DaysOf(DaySpan::Month, -1),
        "lastMonthBegin" => BatchExpr::Day(NamedDay::FirstOf(PeriodKind::Month), -1),
        "lastMonthEnd" => BatchExpr::Day(NamedDay::LastOf(PeriodKind::Month), -1),
        other => {
            let word = other.strip_prefix("last")?;
            if let Some(count) = word.strip_suffix("Days") {
                let count = count.parse().ok().filter(|count| (1..=MOST_DAYS).contains(count))?;
                return Some((1..=count).map(|n| day(-n)).collect());
            }
            BatchExpr::Day(NamedDay::Weekday(weekday(word)?), -1)
        }
    };
    Some(vec![one])
}

/// Parses an English day of the week.
fn weekday(name: &str) -> Option<Weekday> {
    Some(match name {
        "Monday" => Weekday::Mon,
        "Tuesday" => Weekday::Tue,
        "Wednesday" => Weekday::Wed,
        "Thursday" => Weekday::Thu,
        "Friday" => Weekday::Fri,
        "Saturday" => Weekday::Sat,
        "Sunday" => Weekday::Sun,
        _ => return None,
    })
}

/// The rule of a CONDITIONS task whose items all require success, or why it cannot be expressed.
pub(super) fn trigger_rule(
    task: &DolphinTask,
    flow: &Workflow,
) -> Result<TriggerRule, BilingualSentence> {
    let other = || {
        BilingualSentence::from((
            "its condition is more than that all, or one, of the tasks before it ended well",
            "其条件不只是“前置任务全部成功”或“其一成功”",
        ))
    };
    let dependence = get(&task.params, "dependence").ok_or_else(other)?;
    let [one] = items(dependence, "dependTaskList") else { return Err(other()) };
    let all = items(one, "dependItemList");
    let is_each = all.iter().all(|item| {
        word(item, "status") == Some("SUCCESS")
            && asked_task(item).is_some_and(|key| task.parents.iter().any(|p| p == key))
    });
    let is_known =
        task.parents.iter().all(|p| flow.tasks.iter().any(|t| t.key == *p && t.is_active));
    if all.is_empty() || !is_each || !is_known || all.len() != task.parents.len() {
        return Err(other());
    }
    let is_or = all.len() > 1 && word(one, "relation") == Some("OR");
    Ok(if is_or { TriggerRule::OneSuccess } else { TriggerRule::AllSuccess })
}

/// The task that an item refers to.
fn asked_task(item: &SourceNode) -> Option<&str> {
    ["depTaskCode", "depTasks"].iter().find_map(|key| word(item, key))
}

/// Whether `task` is the branch of a CONDITIONS task for a false condition. A task that could not be carried over has
/// no such branch, because its placeholder job always fails.
pub(super) fn is_failed_branch(parent: &DolphinTask, task: &DolphinTask, flow: &Workflow) -> bool {
    let result = get(&parent.params, "conditionResult").filter(|_| parent.kind == "CONDITIONS");
    let failed = result.and_then(|r| get(r, "failedNode")).map(list).unwrap_or_default();
    failed.iter().filter_map(plain).any(|key| key == task.key) && trigger_rule(parent, flow).is_ok()
}
