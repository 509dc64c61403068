//! Steps that start by the ends of other steps, as jobs: edges and rules under which the same steps run. Each way through the
//! steps is tried against the rules of [`trigger_rule`](crate::domain::job::trigger_rule); what would run other steps is refused.
//! Story order: what a flow is, its order, plans of jobs (plain, then with junctions), the comparison.

use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::{
    EdgeCondition, EdgeTally, TriggerDecision, TriggerRule, evaluate_edge,
};
use std::collections::BTreeSet;

/// Most ways through a flow that are tried.
const WAYS_MAX: usize = 20_000;
/// Most ends of one way that are taken apart.
const ENDS_MAX: usize = 4;
/// Most steps of one flow.
const STEPS_MAX: usize = 500;

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
    /// Whether every way was visited: there were not too many.
    pub(crate) is_visited: bool,
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
    /// Jobs that run the same steps as this flow, whatever the end of each; `visit` gets what became of the steps in each way.
    pub(crate) fn plan(&self, visit: &mut dyn FnMut(&[StepRun])) -> Result<FlowPlan, FlowFault> {
        if self.ways.len() > STEPS_MAX {
            return Err(FlowFault::TooMany);
        }
        let flow = self.without_unreachable();
        let order = flow.order()?;
        let flow = flow.with_starts_alone();
        let never: Vec<usize> = (0..flow.ways.len()).filter(|s| flow.ways[*s].is_empty()).collect();
        let mut failed = FlowFault::TooMany;
        let plans: [&dyn Fn() -> Option<Vec<FlowNode>>; 3] =
            [&|| flow.plain_nodes(&order), &|| Some(flow.junction_nodes(&order)), &|| {
                Some(flow.with_both_ends().junction_nodes(&order))
            }];
        for plan in plans {
            let Some(nodes) = plan() else { continue };
            let mut comparison = Comparison::new(&flow, &order, &nodes);
            let result = if flow.wants_successes() { Ok(()) } else { comparison.compare() };
            match result {
                Ok(()) => {
                    let joined = comparison.joined.clone();
                    let is_visited = comparison.visit_all(visit);
                    return Ok(FlowPlan { nodes, never, joined, is_visited });
                }
                Err(fault) => failed = fault,
            }
        }
        Err(failed)
    }

    /// Whether each step waits for successes and nothing else, which is what dependencies do without further rules.
    fn wants_successes(&self) -> bool {
        let mut all = self.ways.iter().flatten().flatten();
        all.all(|one| one.end == StepEnd::Succeeded) && self.ways.iter().all(|ways| ways.len() < 2)
    }

    /// Ways through steps that never start, or that contradict themselves, are none.
    fn without_unreachable(&self) -> Self {
        let sound = self.ways.iter().map(|ways| {
            let mut sound: Vec<StartWay> = ways.iter().filter_map(merged).collect();
            sound.sort();
            sound.dedup();
            sound
        });
        let mut flow = Self { ways: sound.collect() };
        let mut is_reached = vec![false; flow.ways.len()];
        loop {
            let before = is_reached.clone();
            for (step, ways) in flow.ways.iter().enumerate() {
                let is_open = |way: &StartWay| {
                    way.iter().all(|one| before.get(one.step).copied().unwrap_or(false))
                };
                is_reached[step] |= ways.iter().any(is_open);
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
        Self { ways: self.ways.iter().map(|ways| ways.iter().flat_map(both).collect()).collect() }
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

    /// Steps that run at all, each after those that it waits for.
    fn order(&self) -> Result<Vec<usize>, FlowFault> {
        let all: Vec<usize> = (0..self.ways.len()).filter(|s| !self.ways[*s].is_empty()).collect();
        let mut order: Vec<usize> = Vec::new();
        while order.len() < all.len() {
            let is_free = |step: &usize| {
                !order.contains(step)
                    && self.ways[*step].iter().flatten().all(|one| order.contains(&one.step))
            };
            let Some(next) = all.iter().copied().find(is_free) else {
                return Err(FlowFault::Circle(
                    all.into_iter().filter(|step| !order.contains(step)).collect(),
                ));
            };
            order.push(next);
        }
        Ok(order)
    }

    /// A job for each step alone; none where a step starts in several ways with several conditions.
    fn plain_nodes(&self, order: &[usize]) -> Option<Vec<FlowNode>> {
        let mut nodes = Vec::new();
        for step in order {
            let ways = &self.ways[*step];
            let place = |one: &StepCondition| {
                let node = order.iter().position(|s| *s == one.step)?;
                Some(FlowEdge { node, end: one.end })
            };
            let rule =
                if ways.len() > 1 { TriggerRule::OneSuccess } else { TriggerRule::AllSuccess };
            if ways.len() > 1 && (ways.iter().any(|way| way.len() > 1) || names_twice(ways)) {
                return None;
            }
            let edges = ways.iter().flatten().map(place).collect::<Option<Vec<_>>>()?;
            nodes.push(FlowNode { step: Some(*step), of_step: *step, rule, edges });
        }
        Some(nodes)
    }

    /// The same with junctions where one step waits in several ways: a step with several ways waits for one of them, each with all that it needs to have run.
    fn junction_nodes(&self, order: &[usize]) -> Vec<FlowNode> {
        let mut nodes: Vec<FlowNode> = Vec::new();
        // The node that a step is, and what says that it has run.
        let mut place = vec![usize::MAX; self.ways.len()];
        let mut ran: Vec<Vec<FlowEdge>> = vec![Vec::new(); self.ways.len()];
        for step in order {
            let ways = &self.ways[*step];
            let mut closed = Vec::new();
            for way in ways {
                let mut edges: Vec<FlowEdge> = Vec::new();
                for one in way {
                    edges.push(FlowEdge { node: place[one.step], end: one.end });
                    if one.end != StepEnd::Succeeded || way.len() > 1 {
                        edges.extend(ran[one.step].iter().copied());
                    }
                }
                closed.push(merged_edges(edges));
            }
            if let [Some(edges)] = &closed[..] {
                place[*step] = nodes.len();
                let mut all: Vec<FlowEdge> = Vec::new();
                let parents = ways[0].iter().flat_map(|one| ran[one.step].iter());
                for edge in edges.iter().chain(parents) {
                    if !all.contains(edge) {
                        all.push(*edge);
                    }
                }
                ran[*step] = all;
                let (rule, edges) = (TriggerRule::AllSuccess, edges.clone());
                nodes.push(FlowNode { step: Some(*step), of_step: *step, rule, edges });
                continue;
            }
            let mut any = Vec::new();
            for edges in closed.into_iter().flatten() {
                if let [edge] = edges[..]
                    && !any.iter().any(|known: &FlowEdge| known.node == edge.node)
                {
                    any.push(edge);
                    continue;
                }
                any.push(FlowEdge { node: nodes.len(), end: StepEnd::Succeeded });
                let rule = TriggerRule::AllSuccess;
                nodes.push(FlowNode { step: None, of_step: *step, rule, edges });
            }
            let start = FlowEdge { node: nodes.len(), end: StepEnd::Succeeded };
            let rule = TriggerRule::OneSuccess;
            nodes.push(FlowNode { step: None, of_step: *step, rule, edges: any });
            place[*step] = nodes.len();
            ran[*step] = vec![start];
            let rule = TriggerRule::AllSuccess;
            nodes.push(FlowNode { step: Some(*step), of_step: *step, rule, edges: vec![start] });
        }
        nodes
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

/// The same of edges.
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

/// A flow and jobs, which are tried with every end of every step.
struct Comparison<'a> {
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
    fn new(flow: &'a StepFlow, order: &'a [usize], nodes: &'a [FlowNode]) -> Self {
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

    fn compare(&mut self) -> Result<(), FlowFault> {
        let mut runs = vec![StepRun::NotRun; self.flow.ways.len()];
        self.left = WAYS_MAX;
        self.walk(0, &mut runs, &mut |comparison, runs| comparison.compare_runs(runs))
    }

    /// Whether it visited all ways; it stops where they are too many.
    fn visit_all(&mut self, visit: &mut dyn FnMut(&[StepRun])) -> bool {
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
        let ends: &[StepRun] = match (open, self.matters[step]) {
            (0, _) => &[StepRun::NotRun],
            (_, true) => &[StepRun::Succeeded, StepRun::Failed],
            (_, false) => &[StepRun::Succeeded],
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
                let state = states[edge.node];
                let Some(one) = evaluate_edge(&edge.end.condition(), state, |_| false) else {
                    return Err(FlowFault::NotSayable(node.of_step));
                };
                tally.count_edge(one);
            }
            let decision = tally.decide(node.rule);
            let run = node.step.map(|step| runs[step]);
            let is_run = decision == Some(TriggerDecision::Run);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on(step: usize, end: StepEnd) -> StepCondition {
        StepCondition { step, end }
    }

    fn plan(ways: Vec<Vec<StartWay>>) -> Result<FlowPlan, FlowFault> {
        StepFlow { ways }.plan(&mut |_| {})
    }

    /// `0+>1` is an edge from 0 to 1 that wants a success, `-` a failure, `*` either; `|` before a step: one of its edges.
    fn shown(plan: &FlowPlan) -> Vec<String> {
        let name = |at: usize| {
            plan.nodes[at].step.map_or_else(|| format!("j{at}"), |step| step.to_string())
        };
        let mark = |end: StepEnd| match end {
            StepEnd::Succeeded => "+",
            StepEnd::Failed => "-",
            StepEnd::Ended => "*",
        };
        let node = |(at, node): (usize, &FlowNode)| {
            let edges = node.edges.iter().map(|e| format!("{}{}", name(e.node), mark(e.end)));
            let rule = if node.rule == TriggerRule::OneSuccess { "|" } else { "" };
            format!("{} > {rule}{}", edges.collect::<Vec<_>>().join(" "), name(at))
        };
        plan.nodes.iter().enumerate().map(node).collect()
    }

    #[test]
    fn steps_one_after_the_other() {
        use StepEnd::{Ended, Failed, Succeeded};
        let root = vec![vec![]];
        let made = plan(vec![root.clone(), vec![vec![on(0, Succeeded)]], vec![vec![on(1, Ended)]]]);
        // 2 needs the success of 0 as well: without it 1 is UPSTREAM_FAILED, which is an end.
        assert_eq!(shown(&made.expect("a plan")), [" > 0", "0+ > 1", "1* 0+ > 2"]);
        let alarm = vec![vec![on(0, Failed)], vec![on(1, Failed)]];
        let made = plan(vec![root.clone(), vec![vec![on(0, Succeeded)]], alarm.clone()]);
        assert_eq!(shown(&made.expect("a plan")), [" > 0", "0+ > 1", "0- 1- > |2"]);
        // The failure of the first ends the whole; only those of the second and third lead to the alarm.
        let alarm = vec![vec![on(1, Failed)], vec![on(2, Failed)]];
        let chain =
            vec![root.clone(), vec![vec![on(0, Succeeded)]], vec![vec![on(1, Succeeded)]], alarm];
        let made = plan(chain).expect("a plan");
        assert!(made.joined.is_empty() && made.never.is_empty());
        assert_eq!(
            shown(&made),
            [" > 0", "0+ > 1", "1+ > 2", "1- 0+ > j3", "2- 1+ 0+ > j4", "j3+ j4+ > |j5", "j5+ > 3"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        use StepEnd::{Failed, Succeeded};
        let root = vec![vec![]];
        let circle = plan(vec![
            root.clone(),
            vec![vec![on(0, Succeeded)], vec![on(2, Failed)]],
            vec![vec![on(1, Succeeded)]],
        ]);
        assert_eq!(circle, Err(FlowFault::Circle(vec![1, 2])));
        // The first step is tried again after another one.
        let again = plan(vec![vec![vec![], vec![on(1, Succeeded)]], vec![vec![on(0, Failed)]]]);
        assert_eq!(again, Err(FlowFault::Circle(vec![0, 1])));
        let made = plan(vec![root.clone(), vec![], vec![vec![on(1, Succeeded)]]]).expect("a plan");
        assert_eq!(made.never, [1, 2]);
        let both =
            plan(vec![root.clone(), root, vec![vec![on(0, Succeeded)], vec![on(1, Succeeded)]]]);
        assert_eq!(both.expect("a plan").joined, BTreeSet::from([2]));
    }

    fn flows() -> impl Strategy<Value = Vec<Vec<StartWay>>> {
        let condition = (0_usize..6, 0_usize..3).prop_map(|(step, end)| {
            on(step, [StepEnd::Succeeded, StepEnd::Failed, StepEnd::Ended][end])
        });
        let way = proptest::collection::vec(condition, 1..3);
        proptest::collection::vec(proptest::collection::vec(way, 1..3), 6).prop_map(|mut all| {
            for (step, ways) in all.iter_mut().enumerate() {
                for one in ways.iter_mut().flatten() {
                    one.step %= step.max(1);
                }
            }
            all[0] = vec![vec![]];
            all
        })
    }

    proptest! {
        /// Steps of one condition each, such as SQL Server Agent and Kettle have them, always have a plan.
        #[test]
        fn single_conditions_can_always_be_said(all in flows()) {
            let single: Vec<Vec<StartWay>> = all
                .iter()
                .map(|ways| ways.iter().map(|way| way.iter().take(1).copied().collect()).collect())
                .collect();
            let made = plan(single.clone());
            prop_assert!(made.is_ok(), "{single:?}: {made:?}");
        }

        /// Nothing is planned wrongly, whatever the conditions: it was compared way by way.
        #[test]
        fn no_plan_panics(all in flows()) {
            let made = plan(all);
            prop_assert!(!matches!(made, Err(FlowFault::Circle(_) | FlowFault::TooMany)));
        }
    }
}
