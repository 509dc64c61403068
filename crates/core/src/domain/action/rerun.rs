//! Decides which jobs of a batch a rerun starts over.

use crate::domain::dag::{Dag, Node};
use crate::domain::job::queue::QueueStatus;
use std::collections::VecDeque;

/// What a rerun does with jobs of UNKNOWN outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownJobs {
    /// Leave them: their effect may already exist.
    Leave,
    /// Rerun them: the operator has checked that the effect does not exist.
    Rerun,
}

/// Which jobs a rerun includes, relative to the named ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunScope {
    /// Only the named jobs.
    These,
    /// The named jobs and everything downstream.
    Downstream,
    /// The named jobs and everything upstream.
    Upstream,
    /// The failed jobs and the jobs that did not run because of them; no job is named.
    FromFailure,
}

/// Rerun from failure: the failed jobs and everything downstream that has not succeeded. Jobs that succeeded are not
/// changed. A job downstream of one that stays UNKNOWN is not changed either. A job that is running downstream of a
/// failed job is included, because it has not succeeded.
pub fn from_failure(dag: &Dag, status: &[QueueStatus], unknown: UnknownJobs) -> Vec<Node> {
    use QueueStatus as S;
    let (mut stuck, mut below) = (vec![false; dag.len()], vec![false; dag.len()]);
    let mut again = Vec::new();
    for &node in dag.in_order() {
        let status = status[node.index()];
        let left = status == S::Unknown && unknown == UnknownJobs::Leave;
        stuck[node.index()] = left || dag.parents(node).any(|p| stuck[p.index()]);
        let hangs = dag.parents(node).any(|p| below[p.index()]);
        let starts_over = match status {
            S::Failed | S::Timeout | S::Killed | S::UpstreamFailed => true,
            S::Unknown => unknown == UnknownJobs::Rerun,
            S::NotTaken | S::Running | S::Killing => hangs,
            S::Success | S::Warning | S::Forced | S::Skipped => false,
            S::Pending | S::Held | S::Queued | S::RetryWait => false,
        };
        let starts_over = starts_over && !stuck[node.index()];
        below[node.index()] = hangs || starts_over;
        if starts_over {
            again.push(node);
        }
    }
    again.sort_unstable();
    again
}

/// The jobs reachable from `from` in the direction of `scope`, including `from`.
pub fn reach(dag: &Dag, from: &[Node], scope: RerunScope) -> Vec<Node> {
    let mut seen = vec![false; dag.len()];
    let mut open: VecDeque<Node> = from.iter().copied().collect();
    let mut found = Vec::new();
    while let Some(node) = open.pop_front() {
        if std::mem::replace(&mut seen[node.index()], true) {
            continue;
        }
        found.push(node);
        match scope {
            RerunScope::These | RerunScope::FromFailure => {}
            RerunScope::Downstream => open.extend(dag.children(node)),
            RerunScope::Upstream => open.extend(dag.parents(node)),
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::GroupCode;
    use crate::domain::id::JobCode;
    use crate::domain::job::JobDependency;

    fn dag(size: usize, edges: &[(usize, usize)]) -> Dag {
        let jobs: Vec<JobCode> =
            (0..size).map(|i| JobCode::parse(&format!("J{i}")).expect("J")).collect();
        let edge = |(c, p): &(usize, usize)| {
            JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                jobs[*c].clone(),
                jobs[*p].clone(),
                0,
            )
        };
        let edges: Vec<JobDependency> = edges.iter().map(edge).collect();
        Dag::build(&jobs, &edges).expect("dag")
    }

    fn numbers(nodes: &[Node]) -> Vec<u32> {
        nodes.iter().map(|n| n.0).collect()
    }

    #[test]
    fn failed_and_what_hangs_below() {
        // 0 ok -> 1 failed -> 2 blocked; 3 unknown -> 4 blocked; 5 killed.
        let dag = dag(6, &[(1, 0), (2, 1), (4, 3)]);
        use QueueStatus as S;
        let rows =
            [S::Success, S::Failed, S::UpstreamFailed, S::Unknown, S::UpstreamFailed, S::Killed];
        let again = |unknown| numbers(&from_failure(&dag, &rows, unknown));
        assert_eq!(again(UnknownJobs::Leave), [1, 2, 5]);
        assert_eq!(again(UnknownJobs::Rerun), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_branch_that_was_not_taken_because_of_a_failure_is_decided_anew() {
        // 0 failed -> 1 ran as a clean-up -> 2 not taken; 3 not taken for a reason of its own.
        let dag = dag(4, &[(1, 0), (2, 1)]);
        use QueueStatus as S;
        let rows = [S::Failed, S::Success, S::NotTaken, S::NotTaken];
        assert_eq!(numbers(&from_failure(&dag, &rows, UnknownJobs::Leave)), [0, 2]);
        let rows = [S::Failed, S::Running, S::Pending, S::Running];
        assert_eq!(numbers(&from_failure(&dag, &rows, UnknownJobs::Leave)), [0, 1]);
    }

    #[test]
    fn up_and_down() {
        let dag = dag(5, &[(1, 0), (2, 1), (3, 1), (4, 0)]);
        let of = |scope| numbers(&reach(&dag, &[Node(1)], scope));
        assert_eq!(of(RerunScope::These), [1]);
        assert_eq!(of(RerunScope::Downstream), [1, 2, 3]);
        assert_eq!(of(RerunScope::Upstream), [0, 1]);
    }
}
