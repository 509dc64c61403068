//! What else changes in a batch when an operator has changed some of its rows.
//!
//! Readiness never takes back what it has decided: a job that is UPSTREAM_FAILED stays so, one that
//! waits for a slot goes on waiting for it. When an operator declares a failed job done, or starts a
//! parent over, some of those decisions no longer hold. Which ones is not guessed: the decisions are
//! made anew on a copy, and what comes out differently is what changes.

use crate::domain::action::rerun::{RerunScope, reach};
use crate::domain::dag::Node;
use crate::domain::dispatch::readiness::{Gates, Readiness};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::EdgeTally;

/// Whether jobs that were decided never to run may be decided anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedecideMode {
    /// They are: the batch goes on by itself.
    Anew,
    /// They stay: the operator said exactly what starts over.
    Stays,
}

/// Which jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Those below the changed ones.
    Below,
    /// All of the batch: a failure in it had stopped jobs beside it (`fail_fast`).
    Batch,
}

/// The jobs that go back to PENDING because others were changed, with the state each is in. `status`
/// holds the states after the change, `gates` the rules after it, `changed` the jobs it touched,
/// `outside` what jobs wait for beyond the batch.
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
    // A list that failed with one of its items is counted again when that item is another.
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
