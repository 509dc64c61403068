//! Which jobs of an ended batch start over.

use crate::domain::dag::{Dag, Node};
use crate::domain::queue::QueueStatus;

/// What to do with jobs whose outcome nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownJobs {
    /// Leave them: their effect may already be there.
    Leave,
    /// Start them over: the operator has looked.
    Rerun,
}

/// Rerun from failure: the failed jobs and everything below them that has not succeeded. Jobs that
/// succeeded are not touched. A job below one that stays UNKNOWN stays where it is.
pub fn from_failure(dag: &Dag, status: &[QueueStatus], unknown: UnknownJobs) -> Vec<Node> {
    let starts_over = |s: QueueStatus| match s {
        QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => true,
        QueueStatus::UpstreamFailed => true,
        QueueStatus::Unknown => unknown == UnknownJobs::Rerun,
        _ => false,
    };
    let mut stuck = vec![false; dag.len()];
    let mut again = Vec::new();
    for &node in dag.in_order() {
        let status = status[node.at()];
        let left = status == QueueStatus::Unknown && unknown == UnknownJobs::Leave;
        stuck[node.at()] = left || dag.parents(node).any(|p| stuck[p.at()]);
        if starts_over(status) && !stuck[node.at()] {
            again.push(node);
        }
    }
    again.sort_unstable();
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobCode;
    use crate::domain::job::JobDependency;
    use crate::domain::trigger_rule::When;

    #[test]
    fn failed_and_what_hangs_below() {
        // 0 ok -> 1 failed -> 2 blocked; 3 unknown -> 4 blocked; 5 killed.
        let jobs: Vec<JobCode> =
            (0..6).map(|i| JobCode::parse(&format!("J{i}")).expect("code")).collect();
        let edge = |c: usize, p: usize| JobDependency {
            job_code: jobs[c].clone(),
            depends_on: jobs[p].clone(),
            dependency_order: 0,
            when: When::Success,
        };
        let dag = Dag::build(&jobs, &[edge(1, 0), edge(2, 1), edge(4, 3)]).expect("dag");
        use QueueStatus as S;
        let rows =
            [S::Success, S::Failed, S::UpstreamFailed, S::Unknown, S::UpstreamFailed, S::Killed];
        let again = |unknown| -> Vec<u32> {
            from_failure(&dag, &rows, unknown).iter().map(|n| n.0).collect()
        };
        assert_eq!(again(UnknownJobs::Leave), [1, 2, 5]);
        assert_eq!(again(UnknownJobs::Rerun), [1, 2, 3, 4, 5]);
    }
}
