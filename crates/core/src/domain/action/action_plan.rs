//! Computes exactly which rows of a batch an operator's action changes, and from which state to which.
//!
//! The function is pure: the same rows give the same plan, so the plan that is shown is the plan that is written. Every
//! change is one that `QueueStatus::after` allows.

use crate::domain::action::action_effects::{RedecideMode, Within, follow};
use crate::domain::action::refusal::{ActionRefusal, Refusals};
use crate::domain::action::rerun::{RerunScope, UnknownJobs, from_failure, reach};
use crate::domain::action::{OperatorAction, Parents, RowChange};
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::readiness::{Gates, Rules};
use crate::domain::job::GroupFailurePolicy;
use crate::domain::job::queue::{QueueEntry, QueueEvent, QueueStatus, RunMode};
use crate::domain::job::trigger_rule::EdgeTally;
use crate::domain::value::expr::Expr;

/// Why a row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The operator named the job.
    Asked,
    /// The change follows from the change of a named job.
    Follows,
}

/// The change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionStep {
    /// The job.
    pub node: Node,
    /// Current state.
    pub from: QueueStatus,
    /// New state.
    pub to: QueueStatus,
    /// Changes of the row, in order.
    pub changes: Vec<RowChange>,
    pub cause: Cause,
}

/// The batch an operator acts on.
#[derive(Clone, Copy)]
pub struct ActionScene<'a> {
    pub batch: &'a Batch,
    /// The graph of the batch.
    pub dag: &'a Dag,
    /// The rules of the jobs, without the run modes set by operators.
    pub rules: &'a Rules,
    /// The rows, in the order of the graph.
    pub rows: &'a [QueueEntry],
    /// Effect of a failure on the rest of the batch.
    pub on_failure: GroupFailurePolicy,
    /// Evaluates an expression over the outputs of a job.
    pub holds: &'a dyn Fn(Node, &Expr) -> bool,
    /// Evaluates a job's own condition over the outputs of the batch.
    pub allows: &'a dyn Fn(&Expr) -> bool,
    /// The state of a job's dependencies on other batches.
    pub outside: &'a dyn Fn(Node) -> EdgeTally,
}

impl ActionScene<'_> {
    fn queue_entry(&self, node: Node) -> &QueueEntry {
        &self.rows[node.index()]
    }
}

/// The rows that change when `action` is applied to the jobs `named`, or every reason why it is refused. An action is
/// applied completely or not at all.
pub fn plan_action(
    action: OperatorAction,
    named: &[Node],
    scene: ActionScene<'_>,
) -> Result<Vec<ActionStep>, Refusals> {
    if scene.batch.status == BatchStatus::Killing {
        return Err(Refusals::single(scene.batch, ActionRefusal::Stopping));
    }
    let asked = if let OperatorAction::Rerun(scope, unknown) = action {
        rerun(action, named, scope, unknown, scene)
    } else {
        plan_each_job(action, named, scene)
    };
    let mut steps = asked.map_err(|all| Refusals::for_batch(scene.batch, all))?;
    steps.sort_by_key(|s| s.node);
    if let Some(swept) = swept(&steps, scene) {
        steps.extend(swept);
        steps.sort_by_key(|s| s.node);
        return Ok(steps);
    }
    let follows = consequences(action, &steps, scene);
    steps.extend(follows.into_iter().map(|(node, from)| ActionStep {
        node,
        from,
        to: QueueStatus::Pending,
        changes: vec![RowChange::StartOver],
        cause: Cause::Follows,
    }));
    steps.sort_by_key(|s| s.node);
    Ok(steps)
}

/// In a group that stops at a failure, a job that an operator fails stops the rest as a normal failure does: nothing
/// that waits is started.
fn swept(steps: &[ActionStep], scene: ActionScene<'_>) -> Option<Vec<ActionStep>> {
    let fails = |s: &ActionStep| {
        matches!(s.to, QueueStatus::Failed | QueueStatus::Killed | QueueStatus::Unknown)
    };
    if scene.on_failure == GroupFailurePolicy::GoOn || !steps.iter().any(fails) {
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
        let event = if open { QueueEvent::LoseTrack } else { QueueEvent::FailUpstream };
        let to = row.status.after(event).ok()?;
        let changes = vec![RowChange::State];
        Some(ActionStep { node, from: row.status, to, changes, cause: Cause::Follows })
    });
    Some(all.collect())
}

/// The plan for an action that applies to each named job separately.
fn plan_each_job(
    action: OperatorAction,
    named: &[Node],
    scene: ActionScene<'_>,
) -> Result<Vec<ActionStep>, Vec<ActionRefusal>> {
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    for &node in named {
        match plan_job(action, node, scene) {
            Ok(step) => steps.push(step),
            Err(refusal) => refused.push(refusal),
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

fn plan_job(
    action: OperatorAction,
    node: Node,
    scene: ActionScene<'_>,
) -> Result<ActionStep, ActionRefusal> {
    let row = scene.queue_entry(node);
    let (code, from) = (row.job_code.clone(), row.status);
    if let Some(refusal) = refusal(action, row, scene.batch) {
        return Err(refusal);
    }
    let event = event(action, row);
    let to = event.map_or(Ok(from), |event| from.after(event));
    let to = to.map_err(|_| ActionRefusal::State(code, from, action))?;
    let state = match (event, from == to) {
        // The job is already being stopped: only the operator of this request is recorded.
        (None, true) if action == OperatorAction::Kill => Some(RowChange::State),
        (_, true) => None,
        (Some(QueueEvent::Rerun | QueueEvent::Recall), false) => Some(RowChange::StartOver),
        (_, false) => Some(RowChange::State),
    };
    let more: &[RowChange] = match action {
        OperatorAction::Ice => &[RowChange::Mode(Some(RunMode::Ice))],
        OperatorAction::NoExec => &[RowChange::Mode(Some(RunMode::NoExec))],
        OperatorAction::Normal | OperatorAction::Thaw => &[RowChange::Mode(None)],
        OperatorAction::Priority(n) => &[RowChange::Priority(n)],
        OperatorAction::StartNow(Parents::Wait) => &[RowChange::NoTime],
        OperatorAction::StartNow(Parents::Ignore) => {
            &[RowChange::Mode(Some(RunMode::NoWait)), RowChange::NoTime]
        }
        OperatorAction::Hold
        | OperatorAction::Release
        | OperatorAction::Skip
        | OperatorAction::Kill => &[],
        OperatorAction::ForceSuccess | OperatorAction::ForceFailure | OperatorAction::Rerun(..) => {
            &[]
        }
    };
    let changes = state.into_iter().chain(more.iter().copied()).collect();
    Ok(ActionStep { node, from, to, changes, cause: Cause::Asked })
}

/// Why the action is refused for a named job.
fn refusal(action: OperatorAction, row: &QueueEntry, batch: &Batch) -> Option<ActionRefusal> {
    let (code, from, mode) = (row.job_code.clone(), row.status, row.run_mode);
    let ends_mode = matches!(action, OperatorAction::Thaw | OperatorAction::Normal);
    let pretends =
        matches!(action, OperatorAction::NoExec | OperatorAction::StartNow(Parents::Ignore));
    if !action.legal_in().any(|s| s == from) {
        Some(ActionRefusal::State(code, from, action))
    } else if action == OperatorAction::Kill && from == QueueStatus::Unknown && !row.may_still_run()
    {
        Some(ActionRefusal::NothingRuns(code))
    } else if action == OperatorAction::Thaw && !row.is_on_ice() {
        Some(ActionRefusal::NotOnIce(code, from))
    } else if action == OperatorAction::Normal && mode.is_none() {
        Some(ActionRefusal::IsNormal(code, from))
    } else if pretends && mode == Some(RunMode::NoExec) {
        Some(ActionRefusal::IsNoExec(code))
    } else if action == OperatorAction::StartNow(Parents::Wait) && row.not_before.is_none() {
        Some(ActionRefusal::NoTime(code))
    } else if ends_mode && row.is_on_ice() && batch.status.is_final() {
        Some(ActionRefusal::Over(code, batch.status))
    } else {
        None
    }
}

/// The event that the action causes in a row, given its run mode.
fn event(action: OperatorAction, row: &QueueEntry) -> Option<QueueEvent> {
    let waits_for_slot = matches!(row.status, QueueStatus::Queued | QueueStatus::RetryWait);
    let other_mode = matches!(action, OperatorAction::Normal | OperatorAction::NoExec);
    if action == OperatorAction::Normal && row.is_on_ice() {
        Some(QueueEvent::Rerun)
    } else if action == OperatorAction::Kill && row.waits_unresolved() {
        Some(QueueEvent::LoseTrack)
    } else if other_mode && waits_for_slot && row.run_mode == Some(RunMode::NoWait) {
        // The row may be ready only because it was set to ignore its parents.
        Some(QueueEvent::Recall)
    } else {
        action.event(row.status)
    }
}

fn rerun(
    action: OperatorAction,
    named: &[Node],
    scope: RerunScope,
    unknown: UnknownJobs,
    scene: ActionScene<'_>,
) -> Result<Vec<ActionStep>, Vec<ActionRefusal>> {
    let status: Vec<QueueStatus> = scene.rows.iter().map(|r| r.status).collect();
    let set = match scope {
        RerunScope::FromFailure => from_failure(scene.dag, &status, unknown),
        RerunScope::These | RerunScope::Downstream | RerunScope::Upstream => {
            reach(scene.dag, named, scope)
        }
    };
    if set.is_empty() {
        let unknown = scene.rows.iter().filter(|r| r.status == QueueStatus::Unknown);
        return Err(vec![ActionRefusal::Nothing(unknown.map(|r| r.job_code.clone()).collect())]);
    }
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    for node in set {
        let row = scene.queue_entry(node);
        let (code, from) = (row.job_code.clone(), row.status);
        let by_name = named.contains(&node);
        if row.is_on_ice() && !by_name {
            continue;
        }
        if from == QueueStatus::Unknown && unknown == UnknownJobs::Leave {
            refused.push(ActionRefusal::Unknown(code));
            continue;
        }
        let event = if from.is_final() { QueueEvent::Rerun } else { QueueEvent::Recall };
        match (from, by_name) {
            (QueueStatus::Pending | QueueStatus::Held, false) => continue,
            (QueueStatus::Queued | QueueStatus::RetryWait, true) => {
                refused.push(ActionRefusal::State(code, from, action));
            }
            _ => match from.after(event) {
                Ok(to) => {
                    let changes = vec![RowChange::StartOver];
                    steps.push(ActionStep { node, from, to, changes, cause: Cause::Asked });
                }
                Err(_) => refused.push(ActionRefusal::State(code, from, action)),
            },
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

fn consequences(
    action: OperatorAction,
    steps: &[ActionStep],
    scene: ActionScene<'_>,
) -> Vec<(Node, QueueStatus)> {
    let mut status: Vec<QueueStatus> = scene.rows.iter().map(|r| r.status).collect();
    let mut modes: Vec<Option<RunMode>> = scene.rows.iter().map(|r| r.run_mode).collect();
    for step in steps {
        status[step.node.index()] = step.to;
        for change in &step.changes {
            match change {
                RowChange::Mode(mode) => modes[step.node.index()] = *mode,
                RowChange::StartOver => {
                    let kept = modes[step.node.index()].filter(|m| *m == RunMode::NoExec);
                    modes[step.node.index()] = kept;
                }
                RowChange::State | RowChange::Priority(_) | RowChange::NoTime => {}
            }
        }
    }
    let changed: Vec<Node> = steps.iter().map(|s| s.node).collect();
    let decided = match action {
        OperatorAction::Rerun(
            RerunScope::These | RerunScope::Downstream | RerunScope::Upstream,
            _,
        ) => RedecideMode::Stays,
        OperatorAction::Rerun(RerunScope::FromFailure, _) => RedecideMode::Anew,
        OperatorAction::Hold | OperatorAction::Release | OperatorAction::Skip => RedecideMode::Anew,
        OperatorAction::Ice
        | OperatorAction::Thaw
        | OperatorAction::NoExec
        | OperatorAction::Normal => RedecideMode::Anew,
        OperatorAction::ForceSuccess | OperatorAction::ForceFailure | OperatorAction::Kill => {
            RedecideMode::Anew
        }
        OperatorAction::Priority(_) | OperatorAction::StartNow(_) => RedecideMode::Anew,
    };
    let within = match scene.on_failure {
        GroupFailurePolicy::GoOn => Within::Below,
        GroupFailurePolicy::Stop => Within::Batch,
    };
    let rules = scene.rules.clone().with_modes(modes);
    let gates = Gates { dag: scene.dag, rules: &rules, holds: scene.holds, allows: scene.allows };
    follow(gates, &status, &changed, decided, within, scene.outside)
}

#[cfg(test)]
#[path = "action_plan_tests.rs"]
mod tests;
