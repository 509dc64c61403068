//! Computes which other rows of a batch change after an operator changed some of them.
//!
//! Readiness never revises its decisions: a job that is UPSTREAM_FAILED stays so, and a queued job keeps waiting for a
//! slot. When an operator forces a failed job to success or reruns a parent, some of these decisions no longer hold. To
//! find them, the decisions are made again on a copy, and the rows that differ are the ones that change.

use crate::domain::action::rerun::{RerunScope, reach};
use crate::domain::dag::Node;
use crate::domain::dispatch::readiness::{Gates, Readiness};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::EdgeTally;

/// Whether jobs that were decided never to run are decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedecideMode {
    /// They are: the batch continues by itself.
    Anew,
    /// They are not: the operator named exactly the jobs to start over.
    Stays,
}

/// The jobs to examine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// The jobs downstream of the changed ones.
    Below,
    /// The whole batch: a failure had stopped unrelated jobs (`fail_fast`).
    Batch,
}

/// The jobs that return to PENDING because other jobs changed, each with its current state. `status` holds the states
/// after the change, `gates` the rules after it, `changed` the changed jobs, `outside` the state of dependencies on
/// other batches.
pub fn follow(
    gates: Gates<'_>,
    status: &[QueueStatus],
    changed: &[Node],
    decided: RedecideMode,
    within: Within,
    outside: &dyn Fn(Node) -> EdgeTally,
) -> Vec<(Node, QueueStatus)> {
    let looked_at = match within {
        Within::Below => reach(gates.dag, changed, RerunScope::Downstream),
        Within::Batch => (0..gates.dag.len() as u32).map(Node).collect(),
    };
    let waits = |s: QueueStatus| matches!(s, QueueStatus::Queued | QueueStatus::RetryWait);
    let closed = |s: QueueStatus| matches!(s, QueueStatus::UpstreamFailed | QueueStatus::NotTaken);
    // A list that failed because of one item is evaluated again when that item has changed.
    let counted =
        |n: &Node| gates.rules.is_milestone(*n) && status[n.index()] == QueueStatus::Failed;
    let may_change = |node: &Node| {
        let status = status[node.index()];
        waits(status) || closed(status) && decided == RedecideMode::Anew || counted(node)
    };
    let candidates: Vec<Node> = looked_at
        .into_iter()
        .filter(|n| changed.binary_search(n).is_err())
        .filter(may_change)
        .collect();
    let mut copy = status.to_vec();
    candidates.iter().for_each(|n| copy[n.index()] = QueueStatus::Pending);
    let (anew, freed) = Readiness::rebuild(gates, &copy, outside);
    candidates
        .into_iter()
        .map(|node| (node, status[node.index()]))
        .filter(|(node, was)| {
            let ready = freed.ready.binary_search(node).is_ok();
            if waits(*was) { !ready } else { anew.status(*node) != *was }
        })
        .collect()
}
