//! Adds the dependencies of CONDITIONS tasks and of their branches. In DolphinScheduler such a task runs once all tasks before it
//! have run, and then one of its branches does; what is not taken counts as nothing for what follows. A job here may end without
//! having run, so that the edges to a task are repeated where its end counts.

use super::DolphinCodes;
use super::read::{DolphinTask, Workflow};
use super::wait;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::trigger_rule::{EdgeCondition, TriggerRule};
use crate::import::body::failing;
use crate::import::draft::Draft;
use crate::import::note::BilingualSentence;
use std::collections::{BTreeSet, HashMap};

/// An edge to a job.
type ParentEdge = (JobCode, EdgeCondition);

/// The CONDITIONS tasks of a workflow that have a branch for a false condition.
pub(super) struct Branches<'a> {
    flow: &'a Workflow,
    codes: &'a DolphinCodes,
    /// In the order of the workflow.
    conditions: Vec<&'a DolphinTask>,
}

/// A CONDITIONS task whose end is decided by these jobs.
struct Decision {
    condition: JobCode,
    parents: Vec<JobCode>,
    is_one_enough: bool,
}

impl<'a> Branches<'a> {
    pub(super) fn find_branches(flow: &'a Workflow, codes: &'a DolphinCodes) -> Self {
        let has_branch = |condition: &&DolphinTask| {
            condition.is_active
                && flow.tasks.iter().any(|task| {
                    task.parents.contains(&condition.key)
                        && wait::is_failed_branch(condition, task, flow)
                })
        };
        let conditions = flow.tasks.iter().filter(has_branch).collect();
        Self { flow, codes, conditions }
    }

    /// Whether the dependencies of this task, or on this parent of it, are added here.
    pub(super) fn decides(&self, parent: &DolphinTask, task: &DolphinTask) -> bool {
        self.conditions.iter().any(|one| one.key == parent.key || one.key == task.key)
    }

    fn code(&self, key: &str) -> Option<&JobCode> {
        self.codes.jobs.get(&(self.flow.key.clone(), key.to_owned()))
    }

    /// Adds the dependencies; `entries` are the jobs that stand before others.
    pub(super) fn add_edges(
        &self,
        group: &GroupCode,
        entries: &HashMap<JobCode, JobCode>,
        draft: &mut Draft,
    ) {
        let mut left = self.conditions.clone();
        // A branch of one task may lead to the next one.
        while !left.is_empty() {
            let is_free = |one: &DolphinTask| !left.iter().any(|other| self.is_above(other, one));
            let Some(at) = left.iter().position(|one| is_free(one)) else { return };
            let condition = left.remove(at);
            self.add_condition(condition, group, entries, draft);
        }
    }

    /// Whether a task is somewhere before another one.
    fn is_above(&self, above: &DolphinTask, task: &DolphinTask) -> bool {
        let mut open: Vec<&str> = task.parents.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        while let Some(key) = open.pop() {
            if key == above.key {
                return true;
            }
            if seen.insert(key) {
                let parent = self.flow.tasks.iter().find(|task| task.key == key);
                open.extend(parent.into_iter().flat_map(|p| p.parents.iter().map(String::as_str)));
            }
        }
        false
    }

    fn add_condition(
        &self,
        task: &DolphinTask,
        group: &GroupCode,
        entries: &HashMap<JobCode, JobCode>,
        draft: &mut Draft,
    ) {
        let Some(code) = self.code(&task.key) else { return };
        let entry = |code: &JobCode| entries.get(code).unwrap_or(code).clone();
        let parents: Vec<JobCode> =
            task.parents.iter().filter_map(|key| self.code(key)).cloned().collect();
        let rule = wait::trigger_rule(task, self.flow);
        let is_one_enough = rule == Ok(TriggerRule::OneSuccess);
        let decision = Decision { condition: entry(code), parents, is_one_enough };
        draft.resume_job(code);
        let title = format!("{}_failed", task.name);
        let failed = draft.job(&task.at, group, &title, "NOOP");
        let failed_code = failed.code.clone();
        draft.push(failed);
        let may_skip = decision.may_skip(draft);
        if may_skip && decision.parents.len() > 1 {
            self.refuse(task, code, draft);
        } else if may_skip {
            decision.follow_one(&failed_code, draft);
        } else {
            decision.follow_all(code, &failed_code, draft);
        }
        // A skip of one that may be SKIPPED for another reason says nothing.
        let other = if may_skip { EdgeCondition::Failure } else { EdgeCondition::Skipped };
        for child in self.flow.tasks.iter().filter(|one| one.parents.contains(&task.key)) {
            let Some(child_code) = self.code(&child.key) else { continue };
            let child_entry = entry(child_code);
            if wait::is_failed_branch(task, child, self.flow) {
                draft.depends(&child_entry, &failed_code, EdgeCondition::Success);
            } else {
                draft.depends(&child_entry, code, EdgeCondition::Success);
                draft.depends(&child_entry, &failed_code, other.clone());
            }
        }
        draft.end_item();
    }

    fn refuse(&self, task: &DolphinTask, code: &JobCode, draft: &mut Draft) {
        let why = BilingualSentence::from((
            "it decides by several tasks, of which one may have been left out by an earlier condition",
            "它由多个任务决定,其中之一可能已被前面的条件跳过",
        ));
        let Some(at) = draft.defs.jobs.iter().position(|job| job.code == *code) else { return };
        let job = JobDef { trigger_rule: TriggerRule::AllSuccess, ..draft.defs.jobs[at].clone() };
        draft.defs.jobs[at] = failing(draft, &task.at, job, &why);
    }
}

impl Decision {
    /// Whether one of the tasks before it may have been left out.
    fn may_skip(&self, draft: &Draft) -> bool {
        let mut known = HashMap::new();
        self.parents.iter().any(|parent| may_skip(parent, draft, &mut known))
    }

    /// All tasks before it have run; one job more says that the condition is false.
    fn follow_all(&self, code: &JobCode, failed: &JobCode, draft: &mut Draft) {
        set_rule(&self.condition, TriggerRule::AllSuccess, draft);
        let ended = |parent: &JobCode| (parent.clone(), EdgeCondition::Done);
        let ran = self.with_own_edges(self.parents.iter().map(ended).collect(), draft);
        add_all(&self.condition, ran, draft);
        let start = (code.clone(), EdgeCondition::Success);
        let failure = |parent: &JobCode| (parent.clone(), EdgeCondition::Failure);
        if self.is_one_enough || self.parents.len() == 1 {
            let all = [start].into_iter().chain(self.parents.iter().map(failure)).collect();
            return add_all(failed, all, draft);
        }
        set_rule(failed, TriggerRule::OneSuccess, draft);
        let at = draft.origins.get(failed).cloned().unwrap_or_default();
        let Some(group) = draft.group_of(failed) else { return };
        for parent in &self.parents {
            let way = draft.job(&at, &group, &format!("{failed}_{parent}"), "NOOP");
            let way_code = way.code.clone();
            draft.push(way);
            add_all(&way_code, vec![start.clone(), failure(parent)], draft);
            draft.depends(failed, &way_code, EdgeCondition::Success);
        }
    }

    /// The one task before it may have been left out; then this one is, too.
    fn follow_one(&self, failed: &JobCode, draft: &mut Draft) {
        let Some(parent) = self.parents.first() else { return };
        let edges = self.with_own_edges(vec![(parent.clone(), EdgeCondition::Failure)], draft);
        add_all(failed, edges, draft);
        set_rule(&self.condition, TriggerRule::OneSuccess, draft);
        draft.depends(&self.condition, parent, EdgeCondition::Success);
        draft.depends(&self.condition, failed, EdgeCondition::Success);
    }

    /// Edges to the tasks before it, and those of these tasks, which say that they ran.
    fn with_own_edges(&self, edges: Vec<ParentEdge>, draft: &Draft) -> Vec<ParentEdge> {
        let own =
            draft.defs.dependencies.iter().filter(|edge| self.parents.contains(&edge.job_code));
        let own = own.map(|edge| (edge.depends_on.clone(), edge.when.clone()));
        let mut made: Vec<ParentEdge> = Vec::new();
        for (parent, when) in edges.into_iter().chain(own) {
            match made.iter_mut().find(|(known, _)| *known == parent) {
                None => made.push((parent, when)),
                Some((_, known)) if *known == EdgeCondition::Done => *known = when,
                Some(_) => {}
            }
        }
        made
    }
}

fn add_all(job: &JobCode, edges: Vec<ParentEdge>, draft: &mut Draft) {
    for (parent, when) in edges {
        draft.depends(job, &parent, when);
    }
}

fn set_rule(code: &JobCode, rule: TriggerRule, draft: &mut Draft) {
    if let Some(job) = draft.defs.jobs.iter_mut().find(|job| job.code == *code) {
        job.trigger_rule = rule;
    }
}

/// Whether a job may be SKIPPED because its branch is not taken: all of its edges may be neutral or not met.
fn may_skip<'a>(
    code: &'a JobCode,
    draft: &'a Draft,
    known: &mut HashMap<&'a JobCode, bool>,
) -> bool {
    if let Some(known) = known.get(code) {
        return *known;
    }
    // Jobs that wait for one another are refused elsewhere.
    known.insert(code, false);
    let edges: Vec<_> = draft.defs.dependencies.iter().filter(|e| e.job_code == *code).collect();
    let is_open = |when: &EdgeCondition| {
        matches!(when, EdgeCondition::Failure | EdgeCondition::Skipped | EdgeCondition::Output(_))
    };
    let found = edges.iter().any(|edge| is_open(&edge.when))
        || (!edges.is_empty() && edges.iter().all(|edge| may_skip(&edge.depends_on, draft, known)));
    known.insert(code, found);
    found
}
