//! The critical path: how much later each open job may end without delaying the batch.
//!
//! Forward and backward pass over the remaining work of each job, by dependencies only; slots are
//! handled by `timeline`. Costs time proportional to jobs plus dependencies.

use crate::domain::dag::{Dag, Node};
use crate::domain::time::Millis;
use std::cmp::Reverse;

/// What an open job waits for before it can use a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All its open parents.
    AfterAll,
    /// The first of its open parents.
    AfterFirst,
    /// No parent.
    Ready,
    /// It is running.
    Running,
}

/// The remaining work of an open job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingWork {
    /// What it waits for.
    pub stage: Stage,
    /// It does not start, or continue, before this moment.
    pub from: Millis,
    /// Remaining duration in milliseconds; never negative.
    pub ms: i64,
    /// Additional milliseconds in a bad case.
    pub spread: i64,
}

/// Result of the two passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// The earliest moment at which all jobs can have ended.
    pub end: Millis,
    /// Milliseconds by which each job may end later, parallel to the jobs; `None` for those that
    /// have ended.
    pub slack: Vec<Option<i64>>,
    /// The jobs that decide `end`, in running order; each starts when the previous one ends. The
    /// first may wait for its earliest start.
    pub path: Vec<Node>,
}

/// Slack and critical path of the open jobs; `left` is parallel to the jobs of `dag`, with `None`
/// for those that have ended.
pub fn passes(dag: &Dag, left: &[Option<RemainingWork>], now: Millis) -> Passes {
    let (mut start, mut finish) = (vec![now; dag.len()], vec![now; dag.len()]);
    for &node in dag.in_order() {
        let Some(job) = left[node.index()] else { continue };
        let ends = awaited(dag, left, node).map(|p| finish[p.index()]);
        let ready = if job.stage == Stage::AfterFirst { ends.min() } else { ends.max() };
        let ready = ready.unwrap_or(now);
        start[node.index()] = ready.max(job.from).max(now);
        finish[node.index()] = start[node.index()].plus_ms(job.ms);
    }
    let end = finish.iter().copied().max().unwrap_or(now);
    let mut latest_end = vec![end; dag.len()];
    let mut slack = vec![None; dag.len()];
    for &node in dag.in_order().iter().rev() {
        let Some(job) = left[node.index()] else { continue };
        for child in dag.children(node) {
            let Some(below) = left[child.index()] else { continue };
            let counts = match below.stage {
                Stage::AfterAll => true,
                // Of several parents, only the one that let it start.
                Stage::AfterFirst => finish[node.index()] <= start[child.index()],
                Stage::Ready | Stage::Running => false,
            };
            if counts {
                let latest = latest_end[child.index()].plus_ms(-below.ms);
                latest_end[node.index()] = latest_end[node.index()].min(latest);
            }
        }
        slack[node.index()] =
            Some(latest_end[node.index()].plus_ms(-job.ms).since(start[node.index()]));
    }
    let path = path(dag, left, &start, &finish, end);
    Passes { end, slack, path }
}

/// The open parents that a job waits for.
fn awaited<'a>(
    dag: &'a Dag,
    left: &'a [Option<RemainingWork>],
    node: Node,
) -> impl Iterator<Item = Node> + 'a {
    let waits =
        left[node.index()].is_some_and(|l| matches!(l.stage, Stage::AfterAll | Stage::AfterFirst));
    dag.parents(node).filter(move |p| waits && left[p.index()].is_some())
}

/// From the last job back along the parents that each waited for. Of equal ones the deepest, then
/// the first by code, so that the path does not depend on the order of the definition.
fn path(
    dag: &Dag,
    left: &[Option<RemainingWork>],
    start: &[Millis],
    finish: &[Millis],
    end: Millis,
) -> Vec<Node> {
    let best = |nodes: &mut dyn Iterator<Item = Node>, ends: Millis| {
        nodes
            .filter(|n| left[n.index()].is_some() && finish[n.index()] == ends)
            .min_by_key(|n| (Reverse(dag.level(*n)), dag.job_code(*n)))
    };
    let mut found = Vec::new();
    let mut next = best(&mut dag.in_order().iter().copied(), end);
    while let Some(node) = next {
        found.push(node);
        next = best(&mut awaited(dag, left, node), start[node.index()]);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::GroupCode;
    use crate::domain::id::JobCode;
    use crate::domain::job::JobDependency;
    use proptest::prelude::*;

    const NOW: Millis = Millis(1_000);

    fn dag(order: &[usize], pairs: &[(usize, usize)]) -> Dag {
        let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
        let jobs: Vec<JobCode> = order.iter().map(|i| code(*i)).collect();
        let edge = |(child, parent): &(usize, usize)| {
            JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                code(*child),
                code(*parent),
                0,
            )
        };
        let edges: Vec<JobDependency> = pairs.iter().map(edge).collect();
        Dag::build(&jobs, &edges).expect("acyclic")
    }

    fn left(ms: i64) -> Option<RemainingWork> {
        Some(RemainingWork { stage: Stage::AfterAll, from: NOW, ms, spread: 0 })
    }

    fn codes(dag: &Dag, path: &[Node]) -> Vec<String> {
        path.iter().map(|n| dag.job_code(*n).to_string()).collect()
    }

    #[test]
    fn the_longest_chain_has_no_slack() {
        // J0 -> J1 -> J3 and J0 -> J2 -> J3; J2 is shorter than J1 by 30; J4 stands alone.
        let dag = dag(&[0, 1, 2, 3, 4], &[(1, 0), (2, 0), (3, 1), (3, 2)]);
        let found = passes(&dag, &[left(10), left(50), left(20), left(5), left(1)], NOW);
        assert_eq!(found.end, NOW.plus_ms(65));
        assert_eq!(found.slack, [Some(0), Some(0), Some(30), Some(0), Some(64)]);
        assert_eq!(codes(&dag, &found.path), ["J0", "J1", "J3"]);
        // J0 and J1 are over: what is left of the other branch is now what counts.
        let found = passes(&dag, &[None, None, left(20), left(5), left(1)], NOW);
        assert_eq!(
            (found.end, codes(&dag, &found.path)),
            (NOW.plus_ms(25), vec!["J2".into(), "J3".into()])
        );
        assert_eq!(found.slack, [None, None, Some(0), Some(0), Some(24)]);
    }

    #[test]
    fn the_first_of_several_is_enough_where_a_rule_says_so() {
        // J2 after J0 or J1, whichever ends first; J3 after J2.
        let dag = dag(&[0, 1, 2, 3], &[(2, 0), (2, 1), (3, 2)]);
        let first = left(5).map(|l| RemainingWork { stage: Stage::AfterFirst, ..l });
        let found = passes(&dag, &[left(10), left(30), first, left(50)], NOW);
        assert_eq!(
            (found.end, codes(&dag, &found.path)),
            (NOW.plus_ms(65), ["J0", "J2", "J3"].map(String::from).to_vec())
        );
        assert_eq!(found.slack, [Some(0), Some(35), Some(0), Some(0)]);
        // Once it is ready, no parent counts.
        let ready = left(5).map(|l| RemainingWork { stage: Stage::Ready, ..l });
        let found = passes(&dag, &[None, left(30), ready, left(50)], NOW);
        assert_eq!((found.end, found.slack[1]), (NOW.plus_ms(55), Some(25)));
    }

    #[test]
    fn a_time_of_day_cuts_the_path() {
        let dag = dag(&[0, 1], &[(1, 0)]);
        let late = left(5).map(|l| RemainingWork { from: NOW.plus_ms(500), ..l });
        let found = passes(&dag, &[left(10), late], NOW);
        assert_eq!(found.slack, [Some(490), Some(0)]);
        assert_eq!((found.end, codes(&dag, &found.path)), (NOW.plus_ms(505), vec!["J1".into()]));
    }

    #[test]
    fn nothing_left_ends_now() {
        let dag = dag(&[0], &[]);
        let found = passes(&dag, &[None], NOW);
        assert_eq!((found.end, found.slack, found.path), (NOW, vec![None], vec![]));
    }

    type Case = (Vec<(usize, usize)>, Vec<Option<(i64, i64)>>, Vec<usize>);

    fn cases() -> impl Strategy<Value = Case> {
        let pairs = prop::collection::hash_set((0usize..9, 0usize..9), 0..25).prop_map(|raw| {
            let down = raw.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b)));
            down.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
        });
        let works = prop::collection::vec(prop::option::weighted(0.8, (0i64..100, 0i64..50)), 9);
        (pairs, works, Just((0..9).collect::<Vec<usize>>()).prop_shuffle())
    }

    fn lefts(works: &[Option<(i64, i64)>]) -> Vec<Option<RemainingWork>> {
        let job = |w: &Option<(i64, i64)>| {
            w.and_then(|(ms, wait)| {
                left(ms).map(|l| RemainingWork { from: NOW.plus_ms(wait), ..l })
            })
        };
        works.iter().map(job).collect()
    }

    proptest! {
        #[test]
        fn slack_is_what_the_words_say((pairs, works, _) in cases()) {
            let order: Vec<usize> = (0..9).collect();
            let (dag, left) = (dag(&order, &pairs), lefts(&works));
            let found = passes(&dag, &left, NOW);
            for node in found.path.iter() {
                prop_assert_eq!(found.slack[node.index()], Some(0));
            }
            for i in 0..9 {
                let (Some(job), Some(slack)) = (left[i], found.slack[i]) else {
                    prop_assert!(left[i].is_none() && found.slack[i].is_none());
                    continue;
                };
                prop_assert!(slack >= 0);
                let with = |more: i64| {
                    let mut longer = left.clone();
                    longer[i] = Some(RemainingWork { ms: job.ms + more, ..job });
                    passes(&dag, &longer, NOW).end
                };
                // So much longer changes nothing, one more does.
                prop_assert_eq!(with(slack), found.end);
                prop_assert_eq!(with(slack + 1), found.end.plus_ms(1));
            }
            // The path explains the end: it starts now or at a not-before, and has no gap.
            if let Some(first) = found.path.first() {
                let total: i64 = found.path.iter().filter_map(|n| left[n.index()]).map(|l| l.ms).sum();
                let begins = left[first.index()].map_or(NOW, |l| l.from);
                prop_assert_eq!(begins.plus_ms(total), found.end);
                for pair in found.path.windows(2) {
                    prop_assert!(dag.parents(pair[1]).any(|p| p == pair[0]));
                }
            }
        }

        #[test]
        fn the_order_of_the_definition_does_not_matter((pairs, works, shuffled) in cases()) {
            let order: Vec<usize> = (0..9).collect();
            let one = dag(&order, &pairs);
            let two = dag(&shuffled, &pairs);
            let moved: Vec<_> = shuffled.iter().map(|i| works[*i]).collect();
            let (a, b) = (passes(&one, &lefts(&works), NOW), passes(&two, &lefts(&moved), NOW));
            prop_assert_eq!(a.end, b.end);
            prop_assert_eq!(codes(&one, &a.path), codes(&two, &b.path));
            for (place, i) in shuffled.iter().enumerate() {
                prop_assert_eq!(a.slack[*i], b.slack[place]);
            }
        }
    }
}
