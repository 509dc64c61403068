//! Translates tasks that wait some minutes before they start: a separate job sleeps first.

use super::DolphinCodes;
use super::read::{DolphinTask, Workflow};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::import::draft::Draft;
use crate::import::note::Level;
use std::collections::HashMap;

/// Adds a job that sleeps before each delayed task, and moves the task's dependencies to it: the sleeping jobs by those of their
/// tasks.
pub(super) fn add_waits(
    flow: &Workflow,
    group: &GroupCode,
    codes: &DolphinCodes,
    draft: &mut Draft,
) -> HashMap<JobCode, JobCode> {
    let mut entries = HashMap::new();
    for task in flow.tasks.iter().filter(|task| task.delay_min > 0 && task.is_active) {
        if let Some(code) = codes.jobs.get(&(flow.key.clone(), task.key.clone())) {
            draft.resume_job(code);
            entries.insert(code.clone(), add_wait(task, code, group, draft));
            draft.end_item();
        }
    }
    entries
}

fn add_wait(task: &DolphinTask, code: &JobCode, group: &GroupCode, draft: &mut Draft) -> JobCode {
    let title = format!("{}_delay", task.name);
    let mut wait = draft.job(&task.at, group, &title, "SCRIPT");
    let seconds = task.delay_min.unsigned_abs().saturating_mul(60);
    wait.interpreter = Some("sh".to_owned());
    wait.script = Some(format!("sleep {seconds}\n"));
    wait.timeout_sec = draft.timeout(&task.at, wait.code.as_str(), seconds.saturating_add(60));
    // The rule concerns the dependencies, which the sleeping job has now.
    if let Some(job) = draft.defs.jobs.iter_mut().find(|job| job.code == *code) {
        wait.trigger_rule = std::mem::take(&mut job.trigger_rule);
        wait.condition = job.condition.take();
    }
    let wait_code = wait.code.clone();
    draft.push(wait);
    draft.hand_parents_on(code, &wait_code);
    draft.depends(code, &wait_code, EdgeCondition::Success);
    draft.note(
        Level::Differs,
        &task.at,
        code.as_str(),
        (
            format!(
                "delayTime: {} minutes: the job {wait_code} sleeps so long before it",
                task.delay_min
            ),
            format!("delayTime:{} 分钟:由作业 {wait_code} 先等待", task.delay_min),
        ),
        ("", ""),
    );
    wait_code
}
