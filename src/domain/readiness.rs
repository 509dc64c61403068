//! Which jobs of a batch may start: counters of open parents, moved by events.
//!
//! The cost of an event is the job's own edges, never the size of the batch; a batch of 10,000
//! waiting jobs costs nothing while they wait. Rebuilt from rows at start.

use crate::domain::dag::{Dag, Node};
use crate::domain::queue::QueueStatus;

/// What one event set free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Jobs whose last open parent has just let them go, in the order of the batch.
    pub ready: Vec<Node>,
    /// Jobs that can never run any more, parents before children, with the state each was in.
    pub upstream_failed: Vec<(Node, QueueStatus)>,
}

/// Open parents and states of one batch.
#[derive(Clone, Debug)]
pub struct Readiness {
    open_parents: Vec<u32>,
    status: Vec<QueueStatus>,
    not_final: usize,
}

impl Readiness {
    /// Counts from the rows, `status` parallel to the DAG's jobs, and what they already set free:
    /// jobs that are waiting though nothing stands before them, and jobs below a failure whose
    /// rows do not yet say so (the process died between the two).
    pub fn rebuild(dag: &Dag, status: &[QueueStatus]) -> (Self, Released) {
        let mut this = Self {
            open_parents: vec![0; dag.len()],
            status: status.to_vec(),
            not_final: status.iter().filter(|s| !s.is_final()).count(),
        };
        let mut released = Released::default();
        for &node in dag.in_order() {
            this.open_parents[node.at()] =
                dag.parents(node).filter(|p| !this.status[p.at()].lets_children_run()).count()
                    as u32;
            let blocked = dag.parents(node).any(|p| this.status[p.at()].blocks_children());
            match this.status[node.at()] {
                was @ (QueueStatus::Pending | QueueStatus::Held) if blocked => {
                    this.set(node, QueueStatus::UpstreamFailed);
                    released.upstream_failed.push((node, was));
                }
                QueueStatus::Pending | QueueStatus::Queued | QueueStatus::RetryWait
                    if this.open_parents[node.at()] == 0 =>
                {
                    released.ready.push(node);
                }
                _ => {}
            }
        }
        released.ready.sort_unstable();
        (this, released)
    }

    /// The state of a job as the counters know it.
    pub fn status(&self, node: Node) -> QueueStatus {
        self.status[node.at()]
    }

    /// Records that a job is in a new state, and tells what that sets free. Descendants of a
    /// failure become `UPSTREAM_FAILED` here and now, so each is reported once.
    pub fn change(&mut self, dag: &Dag, node: Node, to: QueueStatus) -> Released {
        let before = self.status[node.at()];
        self.set(node, to);
        let mut released = Released::default();
        if to.lets_children_run() && !before.lets_children_run() {
            for child in dag.children(node) {
                let open = &mut self.open_parents[child.at()];
                *open = open.saturating_sub(1);
                if *open == 0 && self.status[child.at()] == QueueStatus::Pending {
                    released.ready.push(child);
                }
            }
        } else if to.blocks_children() {
            self.fail_below(dag, node, &mut released);
        }
        released.ready.sort_unstable();
        released
    }

    fn fail_below(&mut self, dag: &Dag, node: Node, released: &mut Released) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for child in dag.children(at) {
                let was = self.status[child.at()];
                if matches!(was, QueueStatus::Pending | QueueStatus::Held) {
                    self.set(child, QueueStatus::UpstreamFailed);
                    released.upstream_failed.push((child, was));
                    open.push(child);
                }
            }
        }
    }

    /// All states, in the order of the batch.
    pub fn statuses(&self) -> &[QueueStatus] {
        &self.status
    }

    /// Nothing is left that could still change by itself.
    pub fn is_done(&self) -> bool {
        self.not_final == 0
    }

    fn set(&mut self, node: Node, to: QueueStatus) {
        let from = std::mem::replace(&mut self.status[node.at()], to);
        match (from.is_final(), to.is_final()) {
            (false, true) => self.not_final -= 1,
            (true, false) => self.not_final += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobCode;
    use crate::domain::job::JobDependency;
    use proptest::prelude::*;

    fn dag_of(size: usize, pairs: &[(usize, usize)]) -> Dag {
        let jobs: Vec<JobCode> =
            (0..size).map(|i| JobCode::parse(&format!("J{i}")).expect("code")).collect();
        let edges: Vec<JobDependency> = pairs
            .iter()
            .map(|(c, p)| JobDependency {
                job_code: jobs[*c].clone(),
                depends_on: jobs[*p].clone(),
                dependency_order: 0,
            })
            .collect();
        Dag::build(&jobs, &edges).expect("acyclic")
    }

    proptest! {
        /// For any DAG, any order of endings and any failures: each job starts at most once and
        /// after all its parents; every job ends; whatever is below a failure never starts; and
        /// counters rebuilt from the states at any moment agree with those moved by events.
        #[test]
        fn starts_once_after_all_parents_and_never_sticks(
            raw in prop::collection::hash_set((0usize..12, 0usize..12), 0..40),
            fails in prop::collection::vec(prop::bool::weighted(0.15), 12),
            picks in prop::collection::vec(0usize..12, 12),
        ) {
            let pairs: Vec<(usize, usize)> = raw.into_iter()
                .filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b)))
                .collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            let dag = dag_of(12, &pairs);
            let (mut counters, first) = Readiness::rebuild(&dag, &[QueueStatus::Pending; 12]);
            let mut ready = first.ready;
            let mut started = [0; 12];
            for pick in picks {
                if ready.is_empty() { break; }
                let node = ready.remove(pick % ready.len());
                started[node.at()] += 1;
                for parent in dag.parents(node) {
                    prop_assert!(counters.status(parent).lets_children_run());
                }
                let end = if fails[node.at()] { QueueStatus::Failed } else { QueueStatus::Success };
                counters.change(&dag, node, QueueStatus::Running);
                let freed = counters.change(&dag, node, end);
                ready.extend(freed.ready);
                let states: Vec<QueueStatus> = (0..12).map(|i| counters.status(Node(i))).collect();
                let (again, open) = Readiness::rebuild(&dag, &states);
                let mut expected = ready.clone();
                expected.sort_unstable();
                let mut found = open.ready;
                found.sort_unstable();
                prop_assert_eq!(found, expected);
                prop_assert!(open.upstream_failed.is_empty());
                prop_assert_eq!(again.is_done(), counters.is_done());
            }
            prop_assert!(counters.is_done());
            for i in 0..12u32 {
                let status = counters.status(Node(i));
                let expected = usize::from(status != QueueStatus::UpstreamFailed);
                prop_assert_eq!(started[i as usize], expected);
            }
        }
    }

    #[test]
    fn a_failure_stays_in_its_branch() {
        // J2 and J3 hang below J0, J4 below J1.
        let dag = dag_of(5, &[(2, 0), (3, 2), (4, 1)]);
        let (mut counters, first) = Readiness::rebuild(&dag, &[QueueStatus::Pending; 5]);
        assert_eq!(first.ready, [Node(0), Node(1)]);
        let freed = counters.change(&dag, Node(0), QueueStatus::Failed);
        let below: Vec<Node> = freed.upstream_failed.iter().map(|(n, _)| *n).collect();
        assert_eq!(below, [Node(2), Node(3)]);
        assert_eq!(counters.change(&dag, Node(1), QueueStatus::Success).ready, [Node(4)]);
    }

    #[test]
    fn rebuilding_finishes_what_a_crash_cut_short() {
        let dag = dag_of(3, &[(1, 0), (2, 1)]);
        let rows = [QueueStatus::Failed, QueueStatus::Pending, QueueStatus::Pending];
        let (counters, open) = Readiness::rebuild(&dag, &rows);
        let was = QueueStatus::Pending;
        assert_eq!(open.upstream_failed, [(Node(1), was), (Node(2), was)]);
        assert!(counters.is_done());
    }
}
