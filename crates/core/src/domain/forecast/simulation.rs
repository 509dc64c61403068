//! Monte Carlo simulation of a batch with past durations of its jobs: the median and the 90th
//! percentile of its end.

use crate::domain::batch::history::percentile;
use crate::domain::dag::Dag;
use crate::domain::dispatch::slots::Slots;
use crate::domain::forecast::remaining::Remaining;
use crate::domain::forecast::timeline::{Open, simulate_batch};
use crate::domain::time::Millis;

/// Number of simulated jobs over all runs of a forecast: it bounds the cost of a forecast, whatever
/// the batch.
const BUDGET: usize = 20_000;
/// Maximum number of runs; more do not improve any displayed figure.
const MOST_RUNS: usize = 200;
/// Minimum number of runs; fewer say nothing about the 90th percentile.
const LEAST_RUNS: usize = 20;

/// Simulated end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedEnds {
    /// Median.
    pub p50: Millis,
    /// 90th percentile.
    pub p90: Millis,
}

/// Simulates the batch as often as the budget allows; `None` when that is too rarely to say
/// anything. `rests` is parallel to `jobs`.
pub fn simulate(
    dag: &Dag,
    jobs: &[Option<Open>],
    rests: &[Remaining<'_>],
    slots: &Slots,
    now: Millis,
) -> Option<SimulatedEnds> {
    let open = jobs.iter().flatten().count();
    let runs = (BUDGET / open.max(1)).min(MOST_RUNS);
    if runs < LEAST_RUNS || open == 0 {
        return None;
    }
    let mut drawn = jobs.to_vec();
    let mut ends: Vec<i64> = Vec::with_capacity(runs);
    for run in 0..runs {
        for (at, (job, rest)) in drawn.iter_mut().zip(rests).enumerate() {
            if let Some(job) = job {
                job.left.ms = rest.quantile(quantile(run, at));
            }
        }
        ends.push(simulate_batch(dag, &drawn, slots.clone(), now).end.0);
    }
    ends.sort_unstable();
    let at = |percent| percentile(&ends, percent).map(Millis);
    Some(SimulatedEnds { p50: at(50)?, p90: at(90)? })
}

/// A uniform number from 0 to 1 for a job in a run. The same in every forecast, so that a forecast
/// one second later differs by that second and not by chance (SplitMix64).
fn quantile(run: usize, job: usize) -> f64 {
    let mut z =
        ((run as u64) << 32 | job as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::slots::SlotNeeds;
    use crate::domain::forecast::slack::{RemainingWork, Stage};
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::JobDef;

    const NOW: Millis = Millis(1_000);

    fn open() -> Option<Open> {
        let group = GroupCode::parse("g").expect("group");
        let code = JobCode::parse("J").expect("code");
        let job = JobDef::with_defaults(code, group, JobType::parse("NOOP").expect("type"));
        let left = RemainingWork { stage: Stage::AfterAll, from: NOW, ms: 0, spread: 0 };
        Some(Open { left, priority: 0, needs: SlotNeeds::for_job(&job), deferral: 0 })
    }

    fn beside(size: usize, past: &[i64], slots: u32) -> Option<SimulatedEnds> {
        let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
        let dag = Dag::build(&(0..size).map(code).collect::<Vec<_>>(), &[]).expect("no arrows");
        let rests = vec![Remaining::from_durations(past, 0); size];
        simulate(&dag, &vec![open(); size], &rests, &Slots::new(slots), NOW)
    }

    #[test]
    fn of_many_beside_each_other_one_is_long() {
        let past: Vec<i64> = (1..=20).map(|i| i * 100).collect();
        let one = beside(1, &past, 9).expect("ends");
        let ten = beside(10, &past, 99).expect("ends");
        let (one50, ten50) = (one.p50.since(NOW), ten.p50.since(NOW));
        assert!((900..=1_300).contains(&one50), "{one50}");
        assert!((1_700..=2_100).contains(&ten50), "the longest of ten: {ten50}");
        assert!(one.p90 > one.p50 && ten.p90 > ten.p50);
        // With one slot the durations add up, and deviations cancel out: the spread grows less than
        // the sum.
        let row = beside(10, &past, 1).expect("ends");
        assert!(row.p50.since(NOW) > 5 * ten50);
        assert!(row.p90.since(NOW) * 2 < row.p50.since(NOW) * 3);
    }

    #[test]
    fn the_budget_bounds_what_is_played() {
        assert!(beside(BUDGET / LEAST_RUNS, &[5], 9).is_some());
        assert_eq!(beside(BUDGET / LEAST_RUNS + 1, &[5], 9), None);
        assert_eq!(beside(0, &[5], 9), None);
    }

    #[test]
    fn numbers_are_even_and_the_same_each_time() {
        let all: Vec<f64> =
            (0..100).flat_map(|run| (0..100).map(move |job| quantile(run, job))).collect();
        let below = |limit: f64| all.iter().filter(|q| **q < limit).count();
        assert!((4_800..5_200).contains(&below(0.5)) && (800..1_200).contains(&below(0.1)));
        assert!(all.iter().all(|q| (0.0..1.0).contains(q)));
        assert!((quantile(3, 4) - quantile(3, 4)).abs() < f64::EPSILON);
    }
}
