//! Plans by construction. A way opens when every job of its set of edges says so; the set holds what the step waits for, and
//! that each of these steps ran at all.
//!
//! Why it is right: a way that does not open has a step that ended otherwise, whose edge is failed or not met, or a step that did
//! not run. That one's own set of edges is among the edges, and by the same argument one of them is failed or not met. The
//! exception are steps with several ways, none of which was taken: what says that they ran is SKIPPED, which is neutral. What
//! waits for such a step alone is SKIPPED as well; what waits for it and for others is reported as unproven.

use crate::domain::job::trigger_rule::TriggerRule;
use crate::import::step_flow::{
    FlowEdge, FlowNode, JunctionPlan, StartWay, StepCondition, StepEnd, StepFlow,
};
use std::collections::BTreeSet;

/// Jobs with junctions where a step starts in several ways.
pub(super) fn plan_junctions(flow: &StepFlow, order: &[usize]) -> JunctionPlan {
    let mut needs_run = vec![false; flow.ways.len()];
    for way in flow.ways.iter().flatten().filter(|way| wants_runs(way)) {
        for one in way {
            needs_run[one.step] = true;
        }
    }
    let states = vec![StepState::default(); flow.ways.len()];
    let mut builder =
        JunctionBuilder { flow, needs_run, states, nodes: Vec::new(), unproven: Vec::new() };
    for step in order {
        builder.add_step(*step);
    }
    JunctionPlan { nodes: builder.nodes, unproven: builder.unproven }
}

/// Whether the edges of a way have to say that its steps ran: an edge that wants one success says so itself.
fn wants_runs(way: &StartWay) -> bool {
    way.len() > 1 || way.iter().any(|one| one.end != StepEnd::Succeeded)
}

/// What is known of a step.
#[derive(Clone, Debug)]
struct StepState {
    node: usize,
    /// Edges that are all met exactly when it ran.
    ran: Vec<FlowEdge>,
    /// Whether its job may be SKIPPED because a branch is not taken.
    may_skip: bool,
    /// Whether one of `ran` is failed or not met when it did not run.
    blocks: bool,
}

impl Default for StepState {
    fn default() -> Self {
        Self { node: usize::MAX, ran: Vec::new(), may_skip: false, blocks: true }
    }
}

struct JunctionBuilder<'a> {
    flow: &'a StepFlow,
    /// Steps of which an edge has to say that they ran.
    needs_run: Vec<bool>,
    states: Vec<StepState>,
    nodes: Vec<FlowNode>,
    unproven: Vec<usize>,
}

impl JunctionBuilder<'_> {
    fn add_step(&mut self, step: usize) {
        let ways: Vec<StartWay> =
            self.flow.ways[step].iter().flat_map(|way| self.without_open_end(way)).collect();
        if let Some(outside) = self.flow.outside.get(&step) {
            let (may_skip, blocks) = (outside.may_skip, outside.blocks);
            self.states[step] =
                StepState { node: self.nodes.len(), may_skip, blocks, ..StepState::default() };
            self.push(Some(step), step, TriggerRule::AllSuccess, Vec::new());
            return;
        }
        let may_skip = ways
            .iter()
            .flatten()
            .any(|one| one.end == StepEnd::Failed || self.states[one.step].may_skip);
        let is_blocked = |way: &StartWay| way.iter().all(|one| self.states[one.step].blocks);
        let is_proven = ways.iter().all(|way| way.len() < 2 || is_blocked(way));
        let blocks = !may_skip || (ways.len() < 2 && ways.iter().all(is_blocked));
        let (opened, open): (Vec<&StartWay>, Vec<Vec<FlowEdge>>) =
            ways.iter().filter_map(|way| Some((way, self.edges_of(way)?))).unzip();
        if !is_proven || open.is_empty() {
            self.unproven.push(step);
        }
        let ran = match (&open[..], self.needs_run[step]) {
            ([edges], _) => {
                let parents = opened[0].iter().flat_map(|one| &self.states[one.step].ran);
                let ran = edges.iter().chain(parents).copied().collect();
                let ran = merged_edges(ran).map_or_else(Vec::new, |ran| self.without_implied(ran));
                self.push(Some(step), step, TriggerRule::AllSuccess, edges.clone());
                ran
            }
            (_, false) => {
                let any = self.any_of(open, step);
                self.push(Some(step), step, TriggerRule::OneSuccess, any);
                Vec::new()
            }
            (_, true) => {
                let any = self.any_of(open, step);
                let start = FlowEdge { node: self.nodes.len(), end: StepEnd::Succeeded };
                self.push(None, step, TriggerRule::OneSuccess, any);
                self.push(Some(step), step, TriggerRule::AllSuccess, vec![start]);
                vec![start]
            }
        };
        self.states[step] = StepState { node: self.nodes.len() - 1, ran, may_skip, blocks };
    }

    fn push(
        &mut self,
        step: Option<usize>,
        of_step: usize,
        rule: TriggerRule,
        edges: Vec<FlowEdge>,
    ) {
        self.nodes.push(FlowNode { step, of_step, rule, edges });
    }

    /// An end of a step that may be SKIPPED is a success or a failure: a skip is an end as well.
    fn without_open_end(&self, way: &StartWay) -> Vec<StartWay> {
        match way[..] {
            [StepCondition { step, end: StepEnd::Ended }] if !self.states[step].blocks => {
                [StepEnd::Succeeded, StepEnd::Failed]
                    .map(|end| vec![StepCondition { step, end }])
                    .to_vec()
            }
            _ => vec![way.clone()],
        }
    }

    /// Edges that are all met exactly when a way opens; none when it never does.
    fn edges_of(&self, way: &StartWay) -> Option<Vec<FlowEdge>> {
        let mut edges: Vec<FlowEdge> = Vec::new();
        for one in way {
            let state = &self.states[one.step];
            edges.push(FlowEdge { node: state.node, end: one.end });
            if wants_runs(way) {
                edges.extend(state.ran.iter().copied());
            }
        }
        Some(self.without_implied(merged_edges(edges)?))
    }

    /// An edge for each of several sets: that of a set of one, or one to a junction of all of a set.
    fn any_of(&mut self, sets: Vec<Vec<FlowEdge>>, step: usize) -> Vec<FlowEdge> {
        let mut any: Vec<FlowEdge> = Vec::new();
        for edges in sets {
            if let [edge] = edges[..]
                && !any.iter().any(|known| known.node == edge.node)
            {
                any.push(edge);
                continue;
            }
            any.push(FlowEdge { node: self.nodes.len(), end: StepEnd::Succeeded });
            self.push(None, step, TriggerRule::AllSuccess, edges);
        }
        any
    }

    /// Leaves out edges that another edge of the set implies: a job that succeeded had all of its own edges met, and one that is
    /// never SKIPPED fails where one of them was not.
    fn without_implied(&self, edges: Vec<FlowEdge>) -> Vec<FlowEdge> {
        let is_implied = |edge: &FlowEdge| {
            edges.iter().any(|other| other != edge && self.implies(*other, *edge))
        };
        edges.iter().filter(|edge| !is_implied(edge)).copied().collect()
    }

    fn implies(&self, known: FlowEdge, wanted: FlowEdge) -> bool {
        let mut left = vec![known];
        let mut seen = BTreeSet::new();
        while let Some(edge) = left.pop() {
            let node = &self.nodes[edge.node];
            let is_sure = edge.end == StepEnd::Succeeded
                && node.rule == TriggerRule::AllSuccess
                && !self.states[node.of_step].may_skip;
            if !is_sure || edge.node < wanted.node || !seen.insert(edge.node) {
                continue;
            }
            let says_so = |edge: &FlowEdge| {
                edge.node == wanted.node && [edge.end, StepEnd::Ended].contains(&wanted.end)
            };
            if node.edges.iter().any(says_so) {
                return true;
            }
            left.extend(node.edges.iter().copied());
        }
        false
    }
}

/// Edges of a set, each node once; none when two contradict each other.
fn merged_edges(edges: Vec<FlowEdge>) -> Option<Vec<FlowEdge>> {
    let mut made: Vec<FlowEdge> = Vec::new();
    for edge in edges {
        match made.iter_mut().find(|known| known.node == edge.node) {
            Some(known) => known.end = known.end.and(edge.end)?,
            None => made.push(edge),
        }
    }
    Some(made)
}
