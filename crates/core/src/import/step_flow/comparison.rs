//! Plans by trial: a flow and jobs are tried with every end of every step, and must run the same steps.

use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::{Edge, EdgeTally, TriggerDecision, evaluate_edge};
use crate::import::step_flow::{
    FlowEdge, FlowFault, FlowNode, StartWay, StepEnd, StepFlow, StepRun,
};
use std::collections::BTreeSet;

/// Most ways through a flow that are tried.
const WAYS_MAX: usize = 20_000;

/// A flow and jobs, which are tried with every end of every step.
pub(super) struct Comparison<'a> {
    flow: &'a StepFlow,
    order: &'a [usize],
    nodes: &'a [FlowNode],
    /// Whether it matters how a step ends.
    matters: Vec<bool>,
    joined: BTreeSet<usize>,
    left: usize,
}

/// Receives the end of one way through the steps; a fault ends the walk.
type RunVisitor<'a, W> = dyn FnMut(&mut W, &[StepRun]) -> Result<(), FlowFault> + 'a;

impl<'a> Comparison<'a> {
    pub(super) fn new(flow: &'a StepFlow, order: &'a [usize], nodes: &'a [FlowNode]) -> Self {
        let mut matters = vec![false; flow.ways.len()];
        for one in flow.ways.iter().flatten().flatten().filter(|one| one.end != StepEnd::Ended) {
            matters[one.step] = true;
        }
        for edge in nodes.iter().flat_map(|node| &node.edges).filter(|e| e.end != StepEnd::Ended) {
            if let Some(step) = nodes[edge.node].step {
                matters[step] = true;
            }
        }
        Self { flow, order, nodes, matters, joined: BTreeSet::new(), left: WAYS_MAX }
    }

    pub(super) fn compare(&mut self) -> Result<(), FlowFault> {
        let mut runs = vec![StepRun::NotRun; self.flow.ways.len()];
        self.left = WAYS_MAX;
        self.walk(0, &mut runs, &mut |comparison, runs| comparison.compare_runs(runs))
    }

    /// Steps that several ways reached in one run.
    pub(super) fn into_joined(self) -> BTreeSet<usize> {
        self.joined
    }

    /// Whether it visited all ways; it stops where they are too many.
    pub(super) fn visit_all(&mut self, visit: &mut dyn FnMut(&[StepRun])) -> bool {
        let mut runs = vec![StepRun::NotRun; self.flow.ways.len()];
        // A visitor is told of every end, also of steps behind which both lead to the same.
        self.matters = vec![true; self.matters.len()];
        self.left = WAYS_MAX;
        let visited = self.walk(0, &mut runs, &mut |_, runs| {
            visit(runs);
            Ok(())
        });
        visited.is_ok()
    }

    /// Tries both ends of each step that starts.
    fn walk(
        &mut self,
        at: usize,
        runs: &mut Vec<StepRun>,
        end: &mut RunVisitor<'_, Self>,
    ) -> Result<(), FlowFault> {
        let Some(step) = self.order.get(at).copied() else {
            self.left = self.left.checked_sub(1).ok_or(FlowFault::TooMany)?;
            return end(self, runs);
        };
        let is_open = |way: &&StartWay| way.iter().all(|one| one.end.holds(runs[one.step]));
        let open = self.flow.ways[step].iter().filter(is_open).count();
        if open > 1 {
            self.joined.insert(step);
        }
        let may_skip = self.flow.outside.get(&step).map(|outside| outside.may_skip);
        let ends: &[StepRun] = match (open, self.matters[step], may_skip) {
            (0, ..) => &[StepRun::NotRun],
            (.., Some(true)) => &[StepRun::Succeeded, StepRun::Failed, StepRun::NotRun],
            (_, true, _) | (.., Some(false)) => &[StepRun::Succeeded, StepRun::Failed],
            (_, false, None) => &[StepRun::Succeeded],
        };
        for one in ends {
            runs[step] = *one;
            self.walk(at + 1, runs, end)?;
        }
        runs[step] = StepRun::NotRun;
        Ok(())
    }

    /// Holds the jobs against the steps that ran.
    fn compare_runs(&self, runs: &[StepRun]) -> Result<(), FlowFault> {
        let mut states: Vec<QueueStatus> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            let mut tally = EdgeTally::default();
            for edge in &node.edges {
                let one = self.evaluate(*edge, &states, runs);
                tally.count_edge(one.ok_or(FlowFault::NotSayable(node.of_step))?);
            }
            let decision = tally.decide(node.rule);
            let run = node.step.map(|step| runs[step]);
            let is_run = decision == Some(TriggerDecision::Run);
            if let Some(step) = node.step.filter(|step| self.flow.outside.contains_key(step)) {
                states.push(match runs[step] {
                    StepRun::Succeeded => QueueStatus::Success,
                    StepRun::Failed => QueueStatus::UpstreamFailed,
                    StepRun::NotRun => QueueStatus::NotTaken,
                });
                continue;
            }
            if run.is_some_and(|run| (run != StepRun::NotRun) != is_run) {
                return Err(FlowFault::NotSayable(node.of_step));
            }
            states.push(match (decision, run) {
                (Some(TriggerDecision::Run), Some(StepRun::Failed)) => QueueStatus::Failed,
                (Some(TriggerDecision::Run), _) => QueueStatus::Success,
                (Some(TriggerDecision::Fail), _) => QueueStatus::UpstreamFailed,
                (Some(TriggerDecision::NotTaken) | None, _) => QueueStatus::NotTaken,
            });
        }
        Ok(())
    }

    fn evaluate(&self, edge: FlowEdge, states: &[QueueStatus], runs: &[StepRun]) -> Option<Edge> {
        let outside = self.nodes[edge.node].step.and_then(|step| {
            let outside = self.flow.outside.get(&step)?;
            Some(outside.blocks && runs[step] == StepRun::NotRun)
        });
        if outside == Some(true) {
            return Some(Edge::Unmet);
        }
        evaluate_edge(&edge.end.condition(), states[edge.node], |_| false)
    }
}
