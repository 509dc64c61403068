//! Determines which jobs of a batch may start: counters of their parents' results, updated by
//! events.
//!
//! The cost of an event is the number of the job's own edges, never the size of the batch; a batch
//! of 10,000 waiting jobs costs nothing while they wait. The counters are rebuilt from the rows at
//! start.

use crate::domain::dag::{Dag, Node};
use crate::domain::job::body::FanOut;
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::domain::job::trigger_rule::{
    Edge, EdgeCondition, EdgeTally, TriggerDecision, TriggerRule, evaluate_edge,
};
use crate::domain::job::{JobDef, JobDependency};
use crate::domain::value::expr::Expr;
use std::collections::{HashMap, HashSet, VecDeque};

/// Jobs released by one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Jobs that may start now, in the order of the batch.
    pub ready: Vec<Node>,
    /// Jobs that will never run (UPSTREAM_FAILED, or on a branch not taken), parents before
    /// children, with the old and new state of each.
    pub left: Vec<(Node, QueueStatus, QueueStatus)>,
}

/// The waiting rules of a batch: one rule per job, one condition per dependency.
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<TriggerRule>,
    /// Parallel to the dependencies of the DAG; empty when all require success, which saves a batch
    /// of a million edges as many conditions.
    whens: Vec<EdgeCondition>,
    /// Parallel to the jobs; empty when no job has an operator's run mode.
    modes: Vec<Option<RunMode>>,
    /// Conditions of jobs that have one.
    ifs: HashMap<Node, Expr>,
    /// Milestones of fan-outs, which only summarize their items.
    milestones: HashSet<Node>,
}

const SUCCESS: &EdgeCondition = &EdgeCondition::Success;

impl Rules {
    /// The rules of `jobs`, parallel to the DAG's nodes, and of `dependencies`, from which it was
    /// built.
    pub fn from_jobs(jobs: &[JobDef], dependencies: &[JobDependency]) -> Self {
        let plain = dependencies.iter().all(|d| d.when == EdgeCondition::Success);
        let whens = if plain { &[] } else { dependencies };
        Self {
            rules: jobs.iter().map(|j| j.trigger_rule).collect(),
            whens: whens.iter().map(|d| d.when.clone()).collect(),
            modes: Vec::new(),
            milestones: (0..)
                .zip(jobs)
                .filter(|(_, j)| matches!(j.fan_out.as_deref(), Some(FanOut::Milestone { .. })))
                .map(|(i, _)| Node(i))
                .collect(),
            ifs: (0..)
                .zip(jobs)
                .filter_map(|(i, j)| Some((Node(i), *j.condition.clone()?)))
                .collect(),
        }
    }

    /// The same rules with the operators' run modes.
    #[must_use]
    pub fn with_modes(mut self, modes: Vec<Option<RunMode>>) -> Self {
        self.modes = if modes.iter().all(Option::is_none) { Vec::new() } else { modes };
        self
    }

    /// Whether `child` waits for `parent` at all: a job on ice is awaited by no child, and a job
    /// released from waiting awaits no parent.
    fn waits(&self, child: Node, parent: Node) -> bool {
        let mode = |node: Node| self.modes.get(node.index()).copied().flatten();
        mode(parent) != Some(RunMode::Ice) && mode(child) != Some(RunMode::NoWait)
    }

    /// The edges of a job to other batches.
    fn beyond(&self, node: Node, outside: &dyn Fn(Node) -> EdgeTally) -> EdgeTally {
        if self.waits(node, node) { outside(node) } else { EdgeTally::default() }
    }

    /// The trigger rule of a job.
    pub fn of_job(&self, node: Node) -> TriggerRule {
        self.rules.get(node.index()).copied().unwrap_or_default()
    }

    /// Whether a job is the milestone of a fan-out.
    pub fn is_milestone(&self, node: Node) -> bool {
        self.milestones.contains(&node)
    }

    /// The condition of a dependency.
    pub fn condition(&self, dependency: usize) -> &EdgeCondition {
        self.whens.get(dependency).unwrap_or(SUCCESS)
    }
}

/// Inputs of readiness: the graph, the rules, and evaluators of expressions.
#[derive(Clone, Copy)]
pub struct Gates<'a> {
    /// The graph.
    pub dag: &'a Dag,
    /// The rules.
    pub rules: &'a Rules,
    /// Whether an expression is true of the outputs of a succeeded job.
    pub holds: &'a dyn Fn(Node, &Expr) -> bool,
    /// Whether a job's own condition is true of the outputs of the batch.
    pub allows: &'a dyn Fn(&Expr) -> bool,
}

impl Gates<'_> {
    fn evaluate_edge(&self, parent: Node, dependency: usize, status: QueueStatus) -> Option<Edge> {
        evaluate_edge(self.rules.condition(dependency), status, |expr| (self.holds)(parent, expr))
    }

    /// The parents that block a job, given all states: the open ones and, once the job can never
    /// run, the ones that caused this.
    pub fn in_the_way(&self, node: Node, status: &[QueueStatus]) -> Vec<Node> {
        self.dag
            .arrows_in(node)
            .filter(|(p, _)| self.rules.waits(node, *p))
            .filter(|(p, i)| self.evaluate_edge(*p, *i, status[p.index()]) != Some(Edge::Met))
            .map(|(p, _)| p)
            .collect()
    }
}

/// Edge counters and states of one batch.
#[derive(Clone, Debug)]
pub struct Readiness {
    tally: Vec<EdgeTally>,
    status: Vec<QueueStatus>,
    released: Vec<bool>,
    not_final: usize,
}

impl Readiness {
    /// Builds the counters from the rows, with `status` parallel to the DAG's jobs and `outside`
    /// the edges to other batches. Also returns what is released already: waiting jobs that nothing
    /// blocks, and jobs that can never run whose rows do not record it yet (the process died
    /// between the two).
    pub fn rebuild(
        gates: Gates<'_>,
        status: &[QueueStatus],
        outside: &dyn Fn(Node) -> EdgeTally,
    ) -> (Self, Released) {
        let mut this = Self {
            tally: vec![EdgeTally::default(); gates.dag.len()],
            status: status.to_vec(),
            released: vec![false; gates.dag.len()],
            not_final: status.iter().filter(|s| !s.is_final()).count(),
        };
        let mut freed = Released::default();
        for &node in gates.dag.in_order() {
            let mut tally = gates.rules.beyond(node, outside);
            let arrows = gates.dag.arrows_in(node);
            for (parent, dependency) in arrows.filter(|(p, _)| gates.rules.waits(node, *p)) {
                tally.open += 1;
                if let Some(edge) =
                    gates.evaluate_edge(parent, dependency, this.status[parent.index()])
                {
                    tally.count_edge(edge);
                }
            }
            this.tally[node.index()] = tally;
            this.decide(gates, node, &mut freed);
        }
        freed.ready.sort_unstable();
        (this, freed)
    }

    /// The current state of a job.
    pub fn status(&self, node: Node) -> QueueStatus {
        self.status[node.index()]
    }

    /// Records a job's new state and returns what that releases. Jobs that can never run get their
    /// state at once, so each is reported once.
    pub fn change(&mut self, gates: Gates<'_>, node: Node, to: QueueStatus) -> Released {
        let was_final = self.status[node.index()].is_final();
        self.set_status(node, to);
        let mut freed = Released::default();
        if to.is_final() && !was_final {
            self.spread(gates, node, &mut freed);
        }
        freed.ready.sort_unstable();
        freed
    }

    /// Records the result of an awaited thing in another batch.
    pub fn resolve_external(&mut self, gates: Gates<'_>, node: Node, edge: Edge) -> Released {
        self.tally[node.index()].count_edge(edge);
        let mut freed = Released::default();
        let before = self.status[node.index()].is_final();
        self.decide(gates, node, &mut freed);
        if self.status[node.index()].is_final() && !before {
            self.spread(gates, node, &mut freed);
        }
        freed.ready.sort_unstable();
        freed
    }

    fn spread(&mut self, gates: Gates<'_>, node: Node, freed: &mut Released) {
        let mut ended = VecDeque::from([node]);
        while let Some(at) = ended.pop_front() {
            let status = self.status[at.index()];
            let arrows = gates.dag.arrows(at);
            for (child, dependency) in arrows.filter(|(c, _)| gates.rules.waits(*c, at)) {
                let Some(edge) = gates.evaluate_edge(at, dependency, status) else { continue };
                self.tally[child.index()].count_edge(edge);
                if self.status[child.index()].is_final() {
                    continue;
                }
                self.decide(gates, child, freed);
                if self.status[child.index()].is_final() {
                    ended.push_back(child);
                }
            }
        }
    }

    fn decide(&mut self, gates: Gates<'_>, node: Node, freed: &mut Released) {
        let was = self.status[node.index()];
        let Some(decision) = self.tally[node.index()].decide(gates.rules.of_job(node)) else {
            return;
        };
        let barred = self.rules_out(gates, node, was);
        let to = match decision {
            TriggerDecision::Run if barred => QueueStatus::NotTaken,
            TriggerDecision::Run => {
                let waits = matches!(
                    was,
                    QueueStatus::Pending | QueueStatus::Queued | QueueStatus::RetryWait
                );
                if waits && !std::mem::replace(&mut self.released[node.index()], true) {
                    freed.ready.push(node);
                }
                return;
            }
            TriggerDecision::Fail => QueueStatus::UpstreamFailed,
            TriggerDecision::NotTaken => QueueStatus::NotTaken,
        };
        if matches!(was, QueueStatus::Pending | QueueStatus::Held) && !self.released[node.index()] {
            self.set_status(node, to);
            freed.left.push((node, was, to));
        }
    }

    /// Whether a job about to be released has a condition that is false. Evaluated once, when its
    /// parents release it; a job that waits for a retry has passed it.
    fn rules_out(&self, gates: Gates<'_>, node: Node, was: QueueStatus) -> bool {
        let waits = matches!(was, QueueStatus::Pending | QueueStatus::Held);
        let asked = waits && !self.released[node.index()];
        asked && gates.rules.ifs.get(&node).is_some_and(|expr| !(gates.allows)(expr))
    }

    /// All states, in the order of the batch.
    pub fn statuses(&self) -> &[QueueStatus] {
        &self.status
    }

    /// Whether no job can change state without an operator.
    pub fn is_done(&self) -> bool {
        self.not_final == 0
    }

    fn set_status(&mut self, node: Node, to: QueueStatus) {
        let from = std::mem::replace(&mut self.status[node.index()], to);
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
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use proptest::prelude::*;

    struct Graph {
        dag: Dag,
        rules: Rules,
    }

    fn graph(rules: &[TriggerRule], edges: &[(usize, usize, EdgeCondition)]) -> Graph {
        let group = GroupCode::parse("g").expect("group");
        let job = |i: usize| {
            let code = JobCode::parse(&format!("J{i}")).expect("code");
            let mut job =
                JobDef::with_defaults(code, group.clone(), JobType::parse("NOOP").expect("type"));
            job.trigger_rule = rules[i];
            job
        };
        let jobs: Vec<JobDef> = (0..rules.len()).map(job).collect();
        let codes: Vec<JobCode> = jobs.iter().map(|j| j.code.clone()).collect();
        let edges: Vec<JobDependency> = edges
            .iter()
            .map(|(c, p, when)| JobDependency {
                when: when.clone(),
                ..JobDependency::plain(
                    &GroupCode::parse("g").expect("group"),
                    codes[*c].clone(),
                    codes[*p].clone(),
                    0,
                )
            })
            .collect();
        let dag = Dag::build(&codes, &edges).expect("acyclic");
        Graph { dag, rules: Rules::from_jobs(&jobs, &edges) }
    }

    fn plain(size: usize, pairs: &[(usize, usize)]) -> Graph {
        let edges: Vec<_> = pairs.iter().map(|(c, p)| (*c, *p, EdgeCondition::Success)).collect();
        graph(&vec![TriggerRule::AllSuccess; size], &edges)
    }

    fn never(_: Node, _: &Expr) -> bool {
        false
    }

    fn nothing(_: Node) -> EdgeTally {
        EdgeTally::default()
    }

    impl Graph {
        fn gates(&self) -> Gates<'_> {
            Gates { dag: &self.dag, rules: &self.rules, holds: &never, allows: &|_| true }
        }

        fn rebuild(&self, status: &[QueueStatus]) -> (Readiness, Released) {
            Readiness::rebuild(self.gates(), status, &nothing)
        }
    }

    fn any_rule() -> impl Strategy<Value = TriggerRule> {
        prop::sample::select(TriggerRule::ALL.to_vec())
    }

    fn any_when() -> impl Strategy<Value = EdgeCondition> {
        let expr = EdgeCondition::Output(Box::new(Expr::parse("n > 0").expect("expression")));
        prop::sample::select(vec![
            EdgeCondition::Success,
            EdgeCondition::Failure,
            EdgeCondition::Done,
            EdgeCondition::Skipped,
            expr,
        ])
    }

    proptest! {
        /// For any DAG, rules and conditions, any order of ends and any failures: each job starts
        /// at most once, every job ends, the final states do not depend on the order of ends, and
        /// counters rebuilt from the states at any moment equal those updated by events.
        #[test]
        fn never_sticks_and_never_depends_on_the_order(
            raw in prop::collection::hash_map((0usize..10, 0usize..10), any_when(), 0..30),
            rules in prop::collection::vec(any_rule(), 10),
            fails in prop::collection::vec(prop::bool::weighted(0.3), 10),
            truths in prop::collection::vec(prop::bool::ANY, 10),
            picks in prop::collection::vec(prop::collection::vec(0usize..10, 10), 2),
        ) {
            let edges: Vec<(usize, usize, EdgeCondition)> = raw.into_iter()
                .filter(|((a, b), _)| a != b).map(|((a, b), w)| (a.max(b), a.min(b), w))
                .map(|(a, b, w)| ((a, b), w)).collect::<std::collections::BTreeMap<_, _>>()
                .into_iter().map(|((a, b), w)| (a, b, w)).collect();
            let graph = graph(&rules, &edges);
            let holds = |node: Node, _: &Expr| truths[node.index()];
            let gates = Gates { holds: &holds, ..graph.gates() };
            let mut results = Vec::new();
            for order in picks {
                let (mut counters, first) =
                    Readiness::rebuild(gates, &[QueueStatus::Pending; 10], &nothing);
                let mut ready = first.ready;
                let mut started = [0; 10];
                for pick in order {
                    if ready.is_empty() { break; }
                    let node = ready.remove(pick % ready.len());
                    started[node.index()] += 1;
                    let end = if fails[node.index()] { QueueStatus::Failed } else { QueueStatus::Success };
                    counters.change(gates, node, QueueStatus::Running);
                    ready.extend(counters.change(gates, node, end).ready);
                    let (again, open) = Readiness::rebuild(gates, counters.statuses(), &nothing);
                    let mut expected = ready.clone();
                    expected.sort_unstable();
                    prop_assert_eq!(open.ready, expected);
                    prop_assert!(open.left.is_empty());
                    prop_assert_eq!(again.is_done(), counters.is_done());
                }
                prop_assert!(counters.is_done(), "stuck at {:?}", counters.statuses());
                prop_assert!(started.iter().all(|n| *n <= 1));
                results.push(counters.statuses().to_vec());
            }
            prop_assert_eq!(&results[0], &results[1]);
        }

        /// With the default rule: a job starts only after all parents succeeded, and nothing starts
        /// below a failure.
        #[test]
        fn all_success_starts_after_all_parents(
            raw in prop::collection::hash_set((0usize..12, 0usize..12), 0..40),
            fails in prop::collection::vec(prop::bool::weighted(0.15), 12),
            picks in prop::collection::vec(0usize..12, 12),
        ) {
            let pairs: Vec<(usize, usize)> = raw.into_iter()
                .filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b)))
                .collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            let graph = plain(12, &pairs);
            let (mut counters, first) = graph.rebuild(&[QueueStatus::Pending; 12]);
            let mut ready = first.ready;
            let mut started = [0; 12];
            for pick in picks {
                if ready.is_empty() { break; }
                let node = ready.remove(pick % ready.len());
                started[node.index()] += 1;
                for parent in graph.dag.parents(node) {
                    prop_assert!(counters.status(parent).lets_children_run());
                }
                let end = if fails[node.index()] { QueueStatus::Failed } else { QueueStatus::Success };
                ready.extend(counters.change(graph.gates(), node, end).ready);
            }
            for i in 0..12u32 {
                let status = counters.status(Node(i));
                let expected = usize::from(status != QueueStatus::UpstreamFailed);
                prop_assert_eq!(started[i as usize], expected);
            }
        }
    }

    #[test]
    fn a_failure_stays_in_its_branch() {
        // J2 and J3 are below J0, J4 is below J1.
        let graph = plain(5, &[(2, 0), (3, 2), (4, 1)]);
        let (mut counters, first) = graph.rebuild(&[QueueStatus::Pending; 5]);
        assert_eq!(first.ready, [Node(0), Node(1)]);
        let freed = counters.change(graph.gates(), Node(0), QueueStatus::Failed);
        let below: Vec<Node> = freed.left.iter().map(|(n, _, _)| *n).collect();
        assert_eq!(below, [Node(2), Node(3)]);
        assert_eq!(counters.change(graph.gates(), Node(1), QueueStatus::Success).ready, [Node(4)]);
    }

    #[test]
    fn rebuilding_finishes_what_a_crash_cut_short() {
        let graph = plain(3, &[(1, 0), (2, 1)]);
        let rows = [QueueStatus::Failed, QueueStatus::Pending, QueueStatus::Pending];
        let (counters, open) = graph.rebuild(&rows);
        let (was, is) = (QueueStatus::Pending, QueueStatus::UpstreamFailed);
        assert_eq!(open.left, [(Node(1), was, is), (Node(2), was, is)]);
        assert!(counters.is_done());
    }

    #[test]
    fn ice_is_absence_and_not_success() {
        // J2 starts when one parent succeeded: J0 on ice does not count as a parent, a skipped one
        // does.
        let rules = [TriggerRule::AllSuccess, TriggerRule::AllSuccess, TriggerRule::OneSuccess];
        let mut graph =
            graph(&rules, &[(2, 0, EdgeCondition::Success), (2, 1, EdgeCondition::Success)]);
        let rows = [QueueStatus::Skipped, QueueStatus::Pending, QueueStatus::Pending];
        assert_eq!(graph.rebuild(&rows).1.ready, [Node(1), Node(2)], "skipped: goes on without it");
        graph.rules = graph.rules.with_modes(vec![Some(RunMode::Ice), None, None]);
        let (mut counters, first) = graph.rebuild(&rows);
        assert_eq!(first.ready, [Node(1)], "on ice: J1 alone is waited for");
        let freed = counters.change(graph.gates(), Node(1), QueueStatus::Failed);
        assert_eq!(freed.left.len(), 1, "and decides alone");
        graph.rules = graph.rules.with_modes(vec![None, None, Some(RunMode::NoWait)]);
        let (_, first) = graph.rebuild(&[QueueStatus::Pending; 3]);
        assert_eq!(first.ready, [Node(0), Node(1), Node(2)], "told not to wait");
    }

    #[test]
    fn what_lies_beyond_the_batch_is_waited_for() {
        let graph = plain(2, &[(1, 0)]);
        let outside =
            |node: Node| EdgeTally { open: u32::from(node == Node(0)), ..EdgeTally::default() };
        let pending = [QueueStatus::Pending; 2];
        let (mut counters, first) = Readiness::rebuild(graph.gates(), &pending, &outside);
        assert!(first.ready.is_empty());
        let mut other = counters.clone();
        assert_eq!(counters.resolve_external(graph.gates(), Node(0), Edge::Met).ready, [Node(0)]);
        let freed = other.resolve_external(graph.gates(), Node(0), Edge::Failed);
        assert_eq!(freed.left.len(), 2, "its child hears of it too");
        assert!(other.is_done());
    }
}
