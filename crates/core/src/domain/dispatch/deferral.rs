//! Deferral of ready jobs: jobs with slack are started after jobs without slack.
//!
//! A job is deferred in proportion to its slack in the longest path of the batch, expressed as
//! waiting time and always less than one point of priority. So priority and waiting decide as
//! before between jobs that differ by a point, a job without slack never loses by it, and the time
//! for which a job can be overtaken is bounded.

use crate::domain::batch::Snapshot;
use crate::domain::batch::history::History;
use crate::domain::dag::Dag;

/// Batches with at least this many jobs defer nothing: reading the durations of all of them would
/// delay the batch.
pub const MOST_JOBS: usize = 10_000;

/// Whether jobs of a batch can compete for slots when at most `total` run at once, so that their
/// order matters.
pub fn is_worth_it(snapshot: &Snapshot, total: u32) -> bool {
    let sources = snapshot.sources.iter().filter_map(|source| source.max_parallel);
    let limits = sources.chain(snapshot.group.max_parallel).chain([total]);
    let least = limits.min().and_then(|least| usize::try_from(least).ok()).unwrap_or(usize::MAX);
    (least.saturating_add(1)..=MOST_JOBS).contains(&snapshot.jobs.len())
}

/// Deferrals computed from the durations in the group's history; empty without history.
pub fn deferrals_by_history(
    snapshot: &Snapshot,
    dag: &Dag,
    history: &History,
    ageing_ms: i64,
) -> Vec<i64> {
    let estimates = history.estimates(snapshot.jobs.iter().map(|job| &job.code));
    let usual_ms: Option<Vec<i64>> = estimates.map(|all| all.iter().map(|e| e.p50).collect());
    usual_ms.map(|usual_ms| deferrals(dag, &usual_ms, ageing_ms)).unwrap_or_default()
}

/// Milliseconds of waiting by which each job is deferred; `usual_ms` are the usual durations,
/// parallel to the jobs of `dag`. One point of priority is worth `ageing_ms`.
pub fn deferrals(dag: &Dag, usual_ms: &[i64], ageing_ms: i64) -> Vec<i64> {
    // Sums of many long jobs must not overflow.
    let took = |at: usize| i128::from(usual_ms[at].max(0));
    let (mut before, mut onward) = (vec![0_i128; dag.len()], vec![0_i128; dag.len()]);
    for &node in dag.in_order() {
        let ends = dag.parents(node).map(|parent| before[parent.index()] + took(parent.index()));
        before[node.index()] = ends.max().unwrap_or(0);
    }
    for &node in dag.in_order().iter().rev() {
        let below = dag.children(node).map(|child| onward[child.index()]).max().unwrap_or(0);
        onward[node.index()] = took(node.index()) + below;
    }
    let longest = onward.iter().copied().max().unwrap_or(0);
    let most = i128::from(ageing_ms.saturating_sub(1).max(0));
    let deferral = |(before, onward): (&i128, &i128)| {
        let slack = longest.saturating_sub(before + onward).max(0);
        i64::try_from(most * slack / longest.max(1)).unwrap_or(i64::MAX)
    };
    before.iter().zip(&onward).map(deferral).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dag::Node;
    use crate::domain::dispatch::ready::{ReadyList, SetAside};
    use crate::domain::dispatch::slots::SlotNeeds;
    use crate::domain::dispatch::slots::Slots;
    use crate::domain::dispatch::slots::tests::user;
    use crate::domain::id::{BatchId, GroupCode, JobCode};
    use crate::domain::job::JobDependency;
    use crate::domain::time::Millis;
    use proptest::prelude::*;

    const AGEING: i64 = 600_000;
    const SIZE: usize = 9;

    fn dag(pairs: &[(usize, usize)]) -> Dag {
        let group = GroupCode::parse("g").expect("group");
        let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
        let jobs: Vec<JobCode> = (0..SIZE).map(code).collect();
        let edge = |(child, parent): &(usize, usize)| {
            JobDependency::plain(&group, code(*child), code(*parent), 0)
        };
        let edges: Vec<JobDependency> = pairs.iter().map(edge).collect();
        Dag::build(&jobs, &edges).expect("acyclic")
    }

    /// The order in which jobs start on one slot, given their priorities and ready times.
    fn order(deferrals: Vec<i64>, ready: &[(i32, i64)]) -> Vec<usize> {
        let needs = vec![SlotNeeds::for_job(&user(&[], &[])); ready.len()];
        let mut list =
            ReadyList::new(BatchId(1), needs.into_iter(), AGEING).with_deferrals(deferrals);
        for (i, (priority, since)) in ready.iter().enumerate() {
            list.push(Node(i as u32), *priority, Millis(*since));
        }
        let slots = Slots::new(1);
        let next = || list.take_startable(&slots, &mut SetAside::default()).map(Node::index);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_start_of_the_longest_path_goes_first() {
        // J8 is followed by J7; all others are independent. J8 and J7 take 10 each, the others 5.
        let usual_ms = [5, 5, 5, 5, 5, 5, 5, 10, 10];
        let found = deferrals(&dag(&[(7, 8)]), &usual_ms, AGEING);
        assert_eq!((found[8], found[7]), (0, 0), "the critical path has no slack");
        // 15 of 20 milliseconds.
        assert_eq!(found[0], (AGEING - 1) * 15 / 20);
        let ready = [(0, 0); SIZE];
        assert_eq!(order(found, &ready), [7, 8, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(
            order(Vec::new(), &ready),
            [0, 1, 2, 3, 4, 5, 6, 7, 8],
            "without a history as before"
        );
    }

    #[test]
    fn nothing_known_defers_nothing() {
        assert_eq!(deferrals(&dag(&[(1, 0)]), &[0; SIZE], AGEING), [0; SIZE]);
        assert_eq!(
            deferrals(&dag(&[(1, 0)]), &[3; SIZE], 0),
            [0; SIZE],
            "waiting counts for nothing"
        );
        let longest = [i64::MAX; SIZE];
        let found = deferrals(&dag(&[(1, 0), (2, 1)]), &longest, i64::MAX);
        assert_eq!((found[0], found[2]), (0, 0), "no overflow");
    }

    /// Dependencies, durations, and each job's priority with the moment since which it is ready.
    type Case = (Vec<(usize, usize)>, Vec<i64>, Vec<(i32, i64)>);

    fn cases() -> impl Strategy<Value = Case> {
        let pairs =
            prop::collection::hash_set((0usize..SIZE, 0usize..SIZE), 0..25).prop_map(|raw| {
                let down =
                    raw.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b)));
                down.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
            });
        let usual_ms = prop::collection::vec(0i64..1_000_000, SIZE);
        let ready = prop::collection::vec((-2i32..3, 0i64..2 * AGEING), SIZE);
        (pairs, usual_ms, ready)
    }

    proptest! {
        #[test]
        fn priority_holds_and_nobody_is_passed_for_ever((pairs, usual_ms, ready) in cases()) {
            let dag = dag(&pairs);
            let found = deferrals(&dag, &usual_ms, AGEING);
            let started = order(found.clone(), &ready);
            let place = |i: usize| started.iter().position(|s| *s == i).expect("each starts");
            for a in 0..SIZE {
                prop_assert!((0..AGEING).contains(&found[a]), "less than a point of priority");
                for b in 0..SIZE {
                    let ((high, since_a), (low, since_b)) = (ready[a], ready[b]);
                    // One point more, and ready no later: first, whatever the slack.
                    if high > low && since_a <= since_b {
                        prop_assert!(place(a) < place(b), "{a} before {b}: {started:?}");
                    }
                    // A job that becomes ready a point's worth of waiting later never overtakes at
                    // equal priority.
                    if high == low && since_a + AGEING <= since_b {
                        prop_assert!(place(a) < place(b), "{a} waits for {b}: {started:?}");
                    }
                    // Ready at the same time: the job with less slack is first.
                    if high == low && since_a == since_b && found[a] < found[b] {
                        prop_assert!(place(a) < place(b), "{a} has less slack than {b}: {started:?}");
                    }
                }
            }
            // The last job of the longest path has no slack.
            prop_assert!(found.contains(&0));
        }

        /// Slack agrees with the forecast from the start of the batch.
        #[test]
        fn who_has_slack_in_the_forecast_is_deferred((pairs, usual_ms, _) in cases()) {
            use crate::domain::forecast::slack::{RemainingWork, Stage, passes};
            let dag = dag(&pairs);
            let left = |ms: &i64| Some(RemainingWork { stage: Stage::AfterAll, from: Millis(0), ms: *ms, spread: 0 });
            let left: Vec<_> = usual_ms.iter().map(left).collect();
            let passes = passes(&dag, &left, Millis(0));
            let longest = passes.end.0.max(1);
            let found = deferrals(&dag, &usual_ms, AGEING);
            for (slack, found) in passes.slack.iter().zip(found) {
                let slack = slack.expect("open");
                prop_assert_eq!(found, (AGEING - 1) * slack / longest);
            }
        }
    }
}
