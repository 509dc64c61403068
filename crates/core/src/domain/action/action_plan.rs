//! Exactly which rows of a batch an operator's action changes, from which state to which.
//!
//! Pure: the same rows give the same list, so the list that is printed first is the list that is
//! written. Nothing happens that `QueueStatus::after` does not allow.

use crate::domain::action::action_effects::{Decided, Within, follow};
use crate::domain::action::refusal::{Refusal, Refusals};
use crate::domain::action::rerun::{Scope, UnknownJobs, from_failure, reach};
use crate::domain::action::{Action, Change, Parents};
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::readiness::{Gates, Rules};
use crate::domain::job::OnFailure;
use crate::domain::job::queue::{Event, QueueEntry, QueueStatus, RunMode};
use crate::domain::job::trigger_rule::Tally;
use crate::domain::value::expr::Expr;

/// Why a row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The operator meant it.
    Asked,
    /// It follows from what the operator meant.
    Follows,
}

/// A row that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which job.
    pub node: Node,
    /// Its state now.
    pub from: QueueStatus,
    /// Its state then.
    pub to: QueueStatus,
    /// What changes, in order.
    pub changes: Vec<Change>,
    /// Why.
    pub cause: Cause,
}

/// The batch an operator acts on.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// Its graph.
    pub dag: &'a Dag,
    /// The rules of its jobs, without what operators want of them.
    pub rules: &'a Rules,
    /// Its rows, in the order of the graph.
    pub rows: &'a [QueueEntry],
    /// What a failure in it does to the rest.
    pub on_failure: OnFailure,
    /// Whether an expression holds of a job's outputs.
    pub holds: &'a dyn Fn(Node, &Expr) -> bool,
    /// Whether a job's own condition holds of the outputs of the batch.
    pub allows: &'a dyn Fn(&Expr) -> bool,
    /// What jobs wait for beyond the batch.
    pub outside: &'a dyn Fn(Node) -> Tally,
}

impl Scene<'_> {
    fn row(&self, node: Node) -> &QueueEntry {
        &self.rows[node.at()]
    }
}

/// Exactly which rows change when `action` is done to the jobs at `named`, or every reason why it is
/// not. Nothing is done in part.
pub fn plan(action: Action, named: &[Node], scene: Scene<'_>) -> Result<Vec<Step>, Refusals> {
    if scene.batch.status == BatchStatus::Killing {
        return Err(Refusals::one(scene.batch, Refusal::Stopping));
    }
    let asked = if let Action::Rerun(scope, unknown) = action {
        rerun(action, named, scope, unknown, scene)
    } else {
        each(action, named, scene)
    };
    let mut steps = asked.map_err(|all| Refusals::of(scene.batch, all))?;
    steps.sort_by_key(|s| s.node);
    if let Some(swept) = swept(&steps, scene) {
        steps.extend(swept);
        steps.sort_by_key(|s| s.node);
        return Ok(steps);
    }
    let follows = consequences(action, &steps, scene);
    steps.extend(follows.into_iter().map(|(node, from)| Step {
        node,
        from,
        to: QueueStatus::Pending,
        changes: vec![Change::StartOver],
        cause: Cause::Follows,
    }));
    steps.sort_by_key(|s| s.node);
    Ok(steps)
}

/// In a group that stops at a failure, a job that is made to fail stops the rest as one that failed by
/// itself does: nothing that waits is started any more.
fn swept(steps: &[Step], scene: Scene<'_>) -> Option<Vec<Step>> {
    let fails =
        |s: &Step| matches!(s.to, QueueStatus::Failed | QueueStatus::Killed | QueueStatus::Unknown);
    if scene.on_failure == OnFailure::GoOn || !steps.iter().any(fails) {
        return None;
    }
    let waits = |status| {
        matches!(
            status,
            QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued | QueueStatus::RetryWait
        )
    };
    let rest = (0..)
        .map(Node)
        .zip(scene.rows)
        .filter(|(node, row)| waits(row.status) && !steps.iter().any(|step| step.node == *node));
    let all = rest.filter_map(|(node, row)| {
        let open = row.waits_unresolved();
        let event = if open { Event::LoseTrack } else { Event::FailUpstream };
        let to = row.status.after(event).ok()?;
        let changes = vec![Change::State];
        Some(Step { node, from: row.status, to, changes, cause: Cause::Follows })
    });
    Some(all.collect())
}

/// The same thing done to each named job.
fn each(action: Action, named: &[Node], scene: Scene<'_>) -> Result<Vec<Step>, Vec<Refusal>> {
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    for &node in named {
        match one(action, node, scene) {
            Ok(step) => steps.push(step),
            Err(refusal) => refused.push(refusal),
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

fn one(action: Action, node: Node, scene: Scene<'_>) -> Result<Step, Refusal> {
    let row = scene.row(node);
    let (code, from) = (row.job_code.clone(), row.status);
    if let Some(refusal) = refusal(action, row, scene.batch) {
        return Err(refusal);
    }
    let event = event(action, row);
    let to = event.map_or(Ok(from), |event| from.after(event));
    let to = to.map_err(|_| Refusal::State(code, from, action))?;
    let state = match (event, from == to) {
        // It is being stopped already: only who wants it is written.
        (None, true) if action == Action::Kill => Some(Change::State),
        (_, true) => None,
        (Some(Event::Rerun | Event::Recall), false) => Some(Change::StartOver),
        (_, false) => Some(Change::State),
    };
    let more: &[Change] = match action {
        Action::Ice => &[Change::Mode(Some(RunMode::Ice))],
        Action::NoExec => &[Change::Mode(Some(RunMode::NoExec))],
        Action::Normal | Action::Thaw => &[Change::Mode(None)],
        Action::Priority(n) => &[Change::Priority(n)],
        Action::StartNow(Parents::Wait) => &[Change::NoTime],
        Action::StartNow(Parents::Ignore) => &[Change::Mode(Some(RunMode::NoWait)), Change::NoTime],
        Action::Hold | Action::Release | Action::Skip | Action::Kill => &[],
        Action::ForceSuccess | Action::ForceFailure | Action::Rerun(..) => &[],
    };
    let changes = state.into_iter().chain(more.iter().copied()).collect();
    Ok(Step { node, from, to, changes, cause: Cause::Asked })
}

/// Why an action is not done to a job that is named.
fn refusal(action: Action, row: &QueueEntry, batch: &Batch) -> Option<Refusal> {
    let (code, from, mode) = (row.job_code.clone(), row.status, row.run_mode);
    let ends_mode = matches!(action, Action::Thaw | Action::Normal);
    let pretends = matches!(action, Action::NoExec | Action::StartNow(Parents::Ignore));
    if !action.legal_in().any(|s| s == from) {
        Some(Refusal::State(code, from, action))
    } else if action == Action::Kill && from == QueueStatus::Unknown && !row.may_still_run() {
        Some(Refusal::NothingRuns(code))
    } else if action == Action::Thaw && !row.is_on_ice() {
        Some(Refusal::NotOnIce(code, from))
    } else if action == Action::Normal && mode.is_none() {
        Some(Refusal::IsNormal(code, from))
    } else if pretends && mode == Some(RunMode::NoExec) {
        Some(Refusal::IsNoExec(code))
    } else if action == Action::StartNow(Parents::Wait) && row.not_before.is_none() {
        Some(Refusal::NoTime(code))
    } else if ends_mode && row.is_on_ice() && batch.status.is_final() {
        Some(Refusal::Over(code, batch.status))
    } else {
        None
    }
}

/// What an action makes of a row, seeing what was wanted with it before.
fn event(action: Action, row: &QueueEntry) -> Option<Event> {
    let waits_for_slot = matches!(row.status, QueueStatus::Queued | QueueStatus::RetryWait);
    let other_mode = matches!(action, Action::Normal | Action::NoExec);
    if action == Action::Normal && row.is_on_ice() {
        Some(Event::Rerun)
    } else if action == Action::Kill && row.waits_unresolved() {
        Some(Event::LoseTrack)
    } else if other_mode && waits_for_slot && row.run_mode == Some(RunMode::NoWait) {
        // It may have been ready only because it waited for nobody.
        Some(Event::Recall)
    } else {
        action.event(row.status)
    }
}

fn rerun(
    action: Action,
    named: &[Node],
    scope: Scope,
    unknown: UnknownJobs,
    scene: Scene<'_>,
) -> Result<Vec<Step>, Vec<Refusal>> {
    let status: Vec<QueueStatus> = scene.rows.iter().map(|r| r.status).collect();
    let set = match scope {
        Scope::FromFailure => from_failure(scene.dag, &status, unknown),
        Scope::These | Scope::Downstream | Scope::Upstream => reach(scene.dag, named, scope),
    };
    if set.is_empty() {
        let unknown = scene.rows.iter().filter(|r| r.status == QueueStatus::Unknown);
        return Err(vec![Refusal::Nothing(unknown.map(|r| r.job_code.clone()).collect())]);
    }
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    for node in set {
        let row = scene.row(node);
        let (code, from) = (row.job_code.clone(), row.status);
        let by_name = named.contains(&node);
        if row.is_on_ice() && !by_name {
            continue;
        }
        if from == QueueStatus::Unknown && unknown == UnknownJobs::Leave {
            refused.push(Refusal::Unknown(code));
            continue;
        }
        let event = if from.is_final() { Event::Rerun } else { Event::Recall };
        match (from, by_name) {
            (QueueStatus::Pending | QueueStatus::Held, false) => continue,
            (QueueStatus::Queued | QueueStatus::RetryWait, true) => {
                refused.push(Refusal::State(code, from, action));
            }
            _ => match from.after(event) {
                Ok(to) => {
                    let changes = vec![Change::StartOver];
                    steps.push(Step { node, from, to, changes, cause: Cause::Asked });
                }
                Err(_) => refused.push(Refusal::State(code, from, action)),
            },
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

fn consequences(action: Action, steps: &[Step], scene: Scene<'_>) -> Vec<(Node, QueueStatus)> {
    let mut status: Vec<QueueStatus> = scene.rows.iter().map(|r| r.status).collect();
    let mut modes: Vec<Option<RunMode>> = scene.rows.iter().map(|r| r.run_mode).collect();
    for step in steps {
        status[step.node.at()] = step.to;
        for change in &step.changes {
            match change {
                Change::Mode(mode) => modes[step.node.at()] = *mode,
                Change::StartOver => {
                    let kept = modes[step.node.at()].filter(|m| *m == RunMode::NoExec);
                    modes[step.node.at()] = kept;
                }
                Change::State | Change::Priority(_) | Change::NoTime => {}
            }
        }
    }
    let changed: Vec<Node> = steps.iter().map(|s| s.node).collect();
    let decided = match action {
        Action::Rerun(Scope::These | Scope::Downstream | Scope::Upstream, _) => Decided::Stays,
        Action::Rerun(Scope::FromFailure, _) => Decided::Anew,
        Action::Hold | Action::Release | Action::Skip => Decided::Anew,
        Action::Ice | Action::Thaw | Action::NoExec | Action::Normal => Decided::Anew,
        Action::ForceSuccess | Action::ForceFailure | Action::Kill => Decided::Anew,
        Action::Priority(_) | Action::StartNow(_) => Decided::Anew,
    };
    let within = match scene.on_failure {
        OnFailure::GoOn => Within::Below,
        OnFailure::Stop => Within::Batch,
    };
    let rules = scene.rules.clone().with_modes(modes);
    let gates = Gates { dag: scene.dag, rules: &rules, holds: scene.holds, allows: scene.allows };
    follow(gates, &status, &changed, (decided, within), scene.outside)
}

#[cfg(test)]
#[path = "action_plan_tests.rs"]
mod tests;
