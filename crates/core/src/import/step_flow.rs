//! Steps that start by the ends of other steps, as jobs: edges and rules under which the same steps run. Another scheduler starts
//! a step after the end of a step that ran; here a job that never ran (UPSTREAM_FAILED, SKIPPED) has an end as well, so that an
//! edge alone may start what did not run there.
//! Story order: what a flow is, its order, plans of jobs, junctions (plans by construction), comparison (plans by trial).

mod comparison;
mod junctions;
#[cfg(test)]
mod tests;

use crate::domain::job::trigger_rule::{EdgeCondition, TriggerRule};
use comparison::Comparison;
use junctions::plan_junctions;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of a plan, if there is one, and whether it is right by its construction.
type TriedPlan = Option<(Vec<FlowNode>, bool)>;

/// Most ends of one way that are taken apart.
const ENDS_MAX: usize = 4;
/// Most steps of a flow whose ways are tried.
const TRIED_STEPS_MAX: usize = 500;

/// What has to become of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepEnd {
    Succeeded,
    Failed,
    /// Either.
    Ended,
}

/// A step has to have run, with this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepCondition {
    pub(crate) step: usize,
    pub(crate) end: StepEnd,
}

/// Conditions that must all hold; none is the start of the whole.
pub(crate) type StartWay = Vec<StepCondition>;

/// For each step the ways in which it starts; without one it never does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepFlow {
    pub(crate) ways: Vec<Vec<StartWay>>,
    /// Steps that are conditions on other batches and no jobs: they have the start as their way, and others wait for their
    /// success.
    pub(crate) outside: BTreeMap<usize, OutsideStep>,
}

/// How a condition on another batch behaves when it does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutsideStep {
    /// It may be decided that it does not hold; otherwise its job waits.
    pub(crate) may_skip: bool,
    /// What waits for it does not run, whatever else it waits for.
    pub(crate) blocks: bool,
}

/// A job of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowNode {
    /// The step that it runs; none for a junction, which runs nothing.
    pub(crate) step: Option<usize>,
    /// The step for which a junction stands.
    pub(crate) of_step: usize,
    pub(crate) rule: TriggerRule,
    /// Places of other nodes, which stand before it, and what has to become of them.
    pub(crate) edges: Vec<FlowEdge>,
}

/// A dependency on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowEdge {
    pub(crate) node: usize,
    pub(crate) end: StepEnd,
}

impl StepEnd {
    pub(crate) fn condition(self) -> EdgeCondition {
        match self {
            Self::Succeeded => EdgeCondition::Success,
            Self::Failed => EdgeCondition::Failure,
            Self::Ended => EdgeCondition::Done,
        }
    }

    fn holds(self, run: StepRun) -> bool {
        match self {
            Self::Succeeded => run == StepRun::Succeeded,
            Self::Failed => run == StepRun::Failed,
            Self::Ended => run != StepRun::NotRun,
        }
    }

    /// Both of two ends of one step; none when they contradict each other.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Self::Ended, other) | (other, Self::Ended) => Some(other),
            _ => None,
        }
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepRun {
    NotRun,
    Succeeded,
    Failed,
}

/// Jobs that run the same steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowPlan {
    /// Each after those that it depends on.
    pub(crate) nodes: Vec<FlowNode>,
    /// Steps that start in no way.
    pub(crate) never: Vec<usize>,
    /// Steps that several ways may reach in one run.
    pub(crate) joined: BTreeSet<usize>,
}

/// Jobs that run the same steps, except for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JunctionPlan {
    pub(crate) nodes: Vec<FlowNode>,
    /// Steps that might run although they did not there.
    pub(crate) unproven: Vec<usize>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FlowFault {
    /// These steps wait for one another.
    Circle(Vec<usize>),
    /// No rules let this step start when it did.
    NotSayable(usize),
    /// There are too many ways through it to compare.
    TooMany,
}

impl StepFlow {
    /// A flow without conditions on other batches.
    pub(crate) fn of_ways(ways: Vec<Vec<StartWay>>) -> Self {
        Self { ways, ..Self::default() }
    }

    /// Steps one after the other: each after this end of the one before it.
    pub(crate) fn of_chain(ends: &[StepEnd]) -> Self {
        let way = |step: usize| match step.checked_sub(1) {
            Some(before) => vec![vec![StepCondition { step: before, end: ends[before] }]],
            None => vec![Vec::new()],
        };
        Self::of_ways((0..ends.len()).map(way).collect())
    }

    /// Jobs that run the same steps as this flow, whatever the end of each. The plan with the fewest jobs is taken: each way
    /// through the steps is tried with it, or it is right by its construction.
    pub(crate) fn plan(&self) -> Result<FlowPlan, FlowFault> {
        let flow = self.without_unreachable();
        let order = flow.order()?;
        let flow = flow.with_starts_alone();
        let never: Vec<usize> = (0..flow.ways.len()).filter(|s| flow.ways[*s].is_empty()).collect();
        let may_try = flow.ways.len() <= TRIED_STEPS_MAX;
        let mut failed = FlowFault::TooMany;
        let plain = |flow: &Self| Some((flow.plain_nodes(&order)?, flow.wants_successes()));
        let junctions = |flow: &Self| {
            let made = plan_junctions(flow, &order);
            Some((made.nodes, made.unproven.is_empty()))
        };
        let plans: [&dyn Fn() -> TriedPlan; 3] = [&|| plain(&flow), &|| junctions(&flow), &|| {
            junctions(&flow.with_both_ends()).map(|(nodes, _)| (nodes, false))
        }];
        for plan in plans {
            let Some((nodes, is_proven)) = plan() else { continue };
            let mut comparison = Comparison::new(&flow, &order, &nodes);
            let tried = if may_try { comparison.compare() } else { Err(FlowFault::TooMany) };
            match tried {
                Err(fault) if !is_proven || fault != FlowFault::TooMany => failed = fault,
                Ok(()) | Err(_) => {
                    let joined = comparison.into_joined();
                    return Ok(FlowPlan { nodes, never, joined });
                }
            }
        }
        Err(failed)
    }

    /// A plan by construction alone, for flows of any size.
    pub(crate) fn plan_junctions(&self) -> Result<JunctionPlan, FlowFault> {
        let flow = self.without_unreachable();
        let order = flow.order()?;
        let flow = flow.with_starts_alone();
        let mut made = plan_junctions(&flow, &order);
        made.unproven.extend((0..flow.ways.len()).filter(|s| flow.ways[*s].is_empty()));
        Ok(made)
    }

    /// Calls `visit` with what became of the steps in each way through them; false when there are too many.
    pub(crate) fn visit_runs(&self, visit: &mut dyn FnMut(&[StepRun])) -> bool {
        let flow = self.without_unreachable();
        let Ok(order) = flow.order() else { return false };
        Comparison::new(&flow.with_starts_alone(), &order, &[]).visit_all(visit)
    }

    /// Whether each step waits for successes and nothing else, which is what dependencies do without further rules.
    fn wants_successes(&self) -> bool {
        let mut all = self.ways.iter().flatten().flatten();
        all.all(|one| one.end == StepEnd::Succeeded)
            && self.ways.iter().all(|ways| ways.len() < 2)
            && self.outside.values().all(|one| one.blocks && !one.may_skip)
    }

    /// Ways through steps that never start, or that contradict themselves, are none.
    fn without_unreachable(&self) -> Self {
        let sound = self.ways.iter().map(|ways| {
            let mut sound: Vec<StartWay> = ways.iter().filter_map(merged).collect();
            sound.sort();
            sound.dedup();
            sound
        });
        let mut flow = Self { ways: sound.collect(), ..self.clone() };
        let mut is_reached = vec![false; flow.ways.len()];
        loop {
            let before = is_reached.clone();
            for (step, ways) in flow.ways.iter().enumerate() {
                let is_open = |way: &StartWay| {
                    way.iter().all(|one| is_reached.get(one.step).copied().unwrap_or(false))
                };
                if !is_reached[step] && ways.iter().any(is_open) {
                    is_reached[step] = true;
                }
            }
            if before == is_reached {
                break;
            }
        }
        for ways in &mut flow.ways {
            ways.retain(|way| {
                way.iter().all(|one| is_reached.get(one.step).copied().unwrap_or(false))
            });
            either_end(ways);
        }
        flow
    }

    /// A way that wants an end is two, of which one wants a success and the other a failure.
    fn with_both_ends(&self) -> Self {
        let both = |way: &StartWay| {
            if way.iter().filter(|one| one.end == StepEnd::Ended).count() > ENDS_MAX {
                return vec![way.clone()];
            }
            let mut made: Vec<StartWay> = vec![Vec::new()];
            for one in way {
                let ends: &[StepEnd] = match one.end {
                    StepEnd::Ended => &[StepEnd::Succeeded, StepEnd::Failed],
                    StepEnd::Succeeded => &[StepEnd::Succeeded],
                    StepEnd::Failed => &[StepEnd::Failed],
                };
                let add = |way: &StartWay| {
                    let step = one.step;
                    let with = |end: &StepEnd| {
                        way.iter().copied().chain([StepCondition { step, end: *end }]).collect()
                    };
                    ends.iter().map(with).collect::<Vec<StartWay>>()
                };
                made = made.iter().flat_map(add).collect();
            }
            made
        };
        let ways = self.ways.iter().map(|ways| ways.iter().flat_map(both).collect()).collect();
        Self { ways, ..self.clone() }
    }

    /// The start of the whole needs nothing else.
    fn with_starts_alone(mut self) -> Self {
        for ways in &mut self.ways {
            if ways.iter().any(Vec::is_empty) {
                ways.retain(Vec::is_empty);
            }
        }
        self
    }

    /// Steps that run at all, each after those that it waits for; of those that are free, the first.
    fn order(&self) -> Result<Vec<usize>, FlowFault> {
        let mut waits: Vec<usize> = vec![0; self.ways.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.ways.len()];
        for (step, ways) in self.ways.iter().enumerate() {
            let before: BTreeSet<usize> = ways.iter().flatten().map(|one| one.step).collect();
            waits[step] = before.len();
            for one in before {
                children[one].push(step);
            }
        }
        let runs = |step: &usize| !self.ways[*step].is_empty();
        let all: Vec<usize> = (0..self.ways.len()).filter(runs).collect();
        let mut free: BTreeSet<usize> = all.iter().copied().filter(|s| waits[*s] == 0).collect();
        let mut order: Vec<usize> = Vec::new();
        while let Some(next) = free.pop_first() {
            order.push(next);
            for child in &children[next] {
                waits[*child] -= 1;
                if waits[*child] == 0 {
                    free.insert(*child);
                }
            }
        }
        if order.len() < all.len() {
            let known: BTreeSet<usize> = order.into_iter().collect();
            return Err(FlowFault::Circle(
                all.into_iter().filter(|s| !known.contains(s)).collect(),
            ));
        }
        Ok(order)
    }

    /// A job for each step alone; none where a step starts in several ways with several conditions.
    fn plain_nodes(&self, order: &[usize]) -> Option<Vec<FlowNode>> {
        let mut place = vec![usize::MAX; self.ways.len()];
        let mut nodes = Vec::new();
        for step in order {
            let ways = &self.ways[*step];
            let several = ways.len() > 1;
            let rule = if several { TriggerRule::OneSuccess } else { TriggerRule::AllSuccess };
            if several && (ways.iter().any(|way| way.len() > 1) || names_twice(ways)) {
                return None;
            }
            let edge = |one: &StepCondition| FlowEdge { node: place[one.step], end: one.end };
            let edges = ways.iter().flatten().map(edge).collect();
            place[*step] = nodes.len();
            nodes.push(FlowNode { step: Some(*step), of_step: *step, rule, edges });
        }
        Some(nodes)
    }
}

/// Whether two ways are about one step.
fn names_twice(ways: &[StartWay]) -> bool {
    let all: Vec<usize> = ways.iter().flatten().map(|one| one.step).collect();
    all.iter().collect::<BTreeSet<_>>().len() < all.len()
}

/// Conditions of a way, each step once; none when two contradict each other.
fn merged(way: &StartWay) -> Option<StartWay> {
    let mut made: StartWay = Vec::new();
    for one in way {
        match made.iter_mut().find(|known| known.step == one.step) {
            Some(known) => known.end = known.end.and(one.end)?,
            None => made.push(*one),
        }
    }
    made.sort();
    Some(made)
}

/// Two ways that want a success and a failure of one step are one that wants its end.
fn either_end(ways: &mut Vec<StartWay>) {
    let singles: Vec<StepCondition> =
        ways.iter().filter(|way| way.len() == 1).map(|way| way[0]).collect();
    let has = |step: usize, end: StepEnd| singles.contains(&StepCondition { step, end });
    for one in &singles {
        let is_both = has(one.step, StepEnd::Succeeded) && has(one.step, StepEnd::Failed);
        if is_both || has(one.step, StepEnd::Ended) {
            ways.retain(|way| way.len() != 1 || way[0].step != one.step);
            ways.push(vec![StepCondition { step: one.step, end: StepEnd::Ended }]);
        }
    }
    ways.sort();
}
