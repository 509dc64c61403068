//! Flows of steps, and random ones: the plan runs the same steps.

use super::comparison::Comparison;
use super::junctions::plan_junctions;
use super::*;
use proptest::prelude::*;

fn on(step: usize, end: StepEnd) -> StepCondition {
    StepCondition { step, end }
}

fn plan(ways: Vec<Vec<StartWay>>) -> Result<FlowPlan, FlowFault> {
    StepFlow::of_ways(ways).plan()
}

/// `0+>1` is an edge from 0 to 1 that wants a success, `-` a failure, `*` either; `|` before a step: one of its edges.
fn shown(plan: &FlowPlan) -> Vec<String> {
    let name =
        |at: usize| plan.nodes[at].step.map_or_else(|| format!("j{at}"), |step| step.to_string());
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
        [" > 0", "0+ > 1", "1+ > 2", "1- 0+ > j3", "2- 1+ > j4", "j3+ j4+ > |3"]
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
    let both = plan(vec![root.clone(), root, vec![vec![on(0, Succeeded)], vec![on(1, Succeeded)]]]);
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

    /// What is right by its construction runs the same steps in each way through them, also behind conditions on other batches.
    #[test]
    fn constructed_plans_run_the_same_steps(
        all in flows(),
        outside in proptest::collection::btree_map(1_usize..6, (any::<bool>(), any::<bool>()), 0..3),
    ) {
        let mut flow = StepFlow::of_ways(all);
        for (step, (may_skip, blocks)) in outside {
            flow.ways[step] = vec![vec![]];
            flow.outside.insert(step, OutsideStep { may_skip, blocks });
        }
        for one in flow.ways.iter_mut().flatten().flatten() {
            if flow.outside.contains_key(&one.step) {
                one.end = StepEnd::Succeeded;
            }
        }
        let flow = flow.without_unreachable().with_starts_alone();
        let order = flow.order().expect("no circle");
        let made = plan_junctions(&flow, &order);
        let mut comparison = Comparison::new(&flow, &order, &made.nodes);
        let result = comparison.compare();
        let is_right = result.is_ok() || !made.unproven.is_empty();
        prop_assert!(is_right, "{flow:?}\n{made:?}\n{result:?}");
    }
}

/// Most flows are proven: it is no way out to call everything unproven.
#[test]
fn what_has_one_way_to_each_step_is_proven() {
    use StepEnd::{Ended, Failed, Succeeded};
    let root = vec![vec![]];
    let chain = |ends: [StepEnd; 3]| {
        let ways = vec![
            root.clone(),
            vec![vec![on(0, ends[0])]],
            vec![vec![on(1, ends[1])]],
            vec![vec![on(2, ends[2]), on(0, Ended)]],
        ];
        StepFlow::of_ways(ways).plan_junctions().expect("a plan")
    };
    for a in [Succeeded, Failed, Ended] {
        for b in [Succeeded, Failed, Ended] {
            for c in [Succeeded, Failed, Ended] {
                assert_eq!(chain([a, b, c]).unproven, [0; 0], "{a:?} {b:?} {c:?}");
            }
        }
    }
    // The alarm follows either failure; what waits for it and for another would run without it.
    let alarm = vec![vec![on(0, Failed)], vec![on(1, Failed)]];
    let ways = vec![root.clone(), root, alarm, vec![vec![on(2, Succeeded), on(0, Ended)]]];
    assert_eq!(StepFlow::of_ways(ways).plan_junctions().expect("a plan").unproven, [3]);
}

#[test]
fn a_chain_is_one_way() {
    use StepEnd::{Ended, Succeeded};
    let made = StepFlow::of_chain(&[Succeeded, Succeeded, Ended, Succeeded]).plan();
    assert_eq!(shown(&made.expect("a plan")), [" > 0", "0+ > 1", "1+ > 2", "2* 1+ > 3"]);
}
