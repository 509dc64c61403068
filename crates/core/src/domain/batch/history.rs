//! Statistics of the durations of a job's last successful attempts, and estimates derived from
//! them.

use crate::domain::id::JobCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of attempts considered per job. Twenty month-ends are more than a year and a half; older
/// ones ran on other machines and other data.
pub const TRIES: usize = 20;
/// Minimum number of successful attempts for a usual duration.
pub const TRIES_NEEDED: usize = 5;
/// Cap of a duration, a hundred years in milliseconds: a clock that was wrong once must not
/// overflow a sum.
const LONGEST: i64 = 100 * 365 * 86_400_000;

/// Statistics over the last `TRIES` successful attempts of a job, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// Number of attempts counted.
    pub tries: usize,
    /// Median.
    pub p50: i64,
    /// 95th percentile; with fewer than twenty attempts this is the maximum.
    pub p95: i64,
    /// The newest duration.
    pub last: i64,
}

/// The nearest-rank percentile of sorted values: the smallest value that at least `percent` in a
/// hundred do not exceed. It is always a value that occurred; nothing is interpolated.
pub fn percentile(sorted: &[i64], percent: usize) -> Option<i64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

impl Durations {
    /// Statistics of durations given newest first; `None` when there are none.
    pub fn from_newest_first(newest_first: &[i64]) -> Option<Self> {
        let last = newest_first.first()?.clamp(&0, &LONGEST).to_owned();
        let sorted = counted(newest_first);
        let at = |percent| percentile(&sorted, percent);
        Some(Self { tries: sorted.len(), p50: at(50)?, p95: at(95)?, last })
    }

    /// By how many percent the newest attempt was longer than the median; negative when shorter,
    /// `None` when the median is zero.
    pub fn drift(&self) -> Option<i64> {
        (self.p50 > 0).then(|| (self.last - self.p50).saturating_mul(100) / self.p50)
    }
}

/// The durations that count, sorted.
fn counted(newest_first: &[i64]) -> Vec<i64> {
    let counted = newest_first.iter().take(TRIES).map(|ms| (*ms).clamp(0, LONGEST));
    let mut sorted: Vec<i64> = counted.collect();
    sorted.sort_unstable();
    sorted
}

/// Basis of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DurationBasis")]
pub enum DurationBasis {
    /// The job's own attempts.
    History,
    /// No attempts of its own: the median of the other jobs of the batch that have some.
    Assumed,
}

/// Estimated duration of a job, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// Median case.
    pub p50: i64,
    /// Bad case; never less than `p50`.
    pub p95: i64,
    /// Basis of both.
    pub basis: DurationBasis,
}

/// Durations by job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    of: BTreeMap<JobCode, JobDurations>,
}

/// The counted durations of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JobDurations {
    durations: Durations,
    sorted: Vec<i64>,
}

impl JobDurations {
    fn from_newest_first(newest_first: &[i64]) -> Option<Self> {
        let durations = Durations::from_newest_first(newest_first)?;
        Some(Self { durations, sorted: counted(newest_first) })
    }
}

impl History {
    /// Collects attempts of any jobs; those of one job newest first.
    pub fn from_tries(tries: impl IntoIterator<Item = (JobCode, i64)>) -> Self {
        let mut by_job: BTreeMap<JobCode, Vec<i64>> = BTreeMap::new();
        for (code, ms) in tries {
            by_job.entry(code).or_default().push(ms);
        }
        let of = by_job
            .into_iter()
            .filter_map(|(code, ms)| Some((code, JobDurations::from_newest_first(&ms)?)));
        Self { of: of.collect() }
    }

    /// Statistics of a job.
    pub fn get(&self, code: &JobCode) -> Option<&Durations> {
        self.of.get(code).map(|past| &past.durations)
    }

    /// Counted durations of a job, sorted; empty without history.
    pub fn tries(&self, code: &JobCode) -> &[i64] {
        self.of.get(code).map_or(&[], |past| &past.sorted)
    }

    /// Adds an attempt of a job that has none yet: the first run of a batch uses its own durations.
    pub fn learn(&mut self, code: &JobCode, ms: i64) {
        if let Some(past) = JobDurations::from_newest_first(&[ms]) {
            self.of.entry(code.clone()).or_insert(past);
        }
    }

    /// An estimate for each of `jobs`. A job without history gets the median of those that have
    /// one, marked as assumed; when none has, nothing is estimated.
    pub fn estimates<'a>(
        &self,
        jobs: impl Iterator<Item = &'a JobCode> + Clone,
    ) -> Option<Vec<Estimate>> {
        let median = |of: fn(&Durations) -> i64| {
            let mut known: Vec<i64> =
                jobs.clone().filter_map(|code| self.get(code)).map(of).collect();
            known.sort_unstable();
            percentile(&known, 50)
        };
        let (p50, p95) = (median(|d| d.p50)?, median(|d| d.p95)?);
        let estimate = |code| match self.get(code) {
            Some(d) => Estimate { p50: d.p50, p95: d.p95, basis: DurationBasis::History },
            None => Estimate { p50, p95, basis: DurationBasis::Assumed },
        };
        Some(jobs.map(estimate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(word: &str) -> JobCode {
        JobCode::parse(word).expect("code")
    }

    #[test]
    fn the_nearest_rank_is_a_value_that_occurred() {
        let to = |n: i64| -> Vec<i64> { (1..=n).collect() };
        for (sorted, percent, expected) in [
            (to(0), 50, None),
            (to(1), 50, Some(1)),
            (to(1), 95, Some(1)),
            (to(2), 50, Some(1)),
            (to(3), 50, Some(2)),
            (to(4), 50, Some(2)),
            (to(19), 95, Some(19)),
            (to(20), 95, Some(19)),
            (to(20), 50, Some(10)),
            (to(20), 100, Some(20)),
            (to(20), 0, Some(1)),
        ] {
            assert_eq!(percentile(&sorted, percent), expected, "{sorted:?} {percent}");
        }
    }

    #[test]
    fn only_the_newest_tries_count() {
        let mut tries = vec![300, 100, 200];
        let few = Durations::from_newest_first(&tries).expect("three");
        assert_eq!((few.tries, few.p50, few.p95, few.last), (3, 200, 300, 300));
        assert_eq!(few.drift(), Some(50));
        tries.extend([100; 17]);
        tries.extend([9_000_000; 50]);
        let many = Durations::from_newest_first(&tries).expect("many");
        assert_eq!((many.tries, many.p50, many.p95), (TRIES, 100, 200));
        assert_eq!(Durations::from_newest_first(&[]), None);
        assert_eq!(Durations::from_newest_first(&[5, 0, 0]).expect("three").drift(), None);
        // A clock that ran backwards, and one that was a thousand years ahead.
        let odd = Durations::from_newest_first(&[-5, i64::MAX]).expect("two");
        assert_eq!((odd.p50, odd.p95), (0, LONGEST));
    }

    #[test]
    fn what_is_not_known_is_marked() {
        let history = History::from_tries([(code("A"), 10), (code("B"), 30), (code("C"), 20)]);
        let jobs = [code("A"), code("NEW"), code("B"), code("C")];
        let estimates = history.estimates(jobs.iter()).expect("three are known");
        let shown: Vec<(i64, DurationBasis)> = estimates.iter().map(|e| (e.p50, e.basis)).collect();
        let (history_, assumed) = (DurationBasis::History, DurationBasis::Assumed);
        assert_eq!(shown, [(10, history_), (20, assumed), (30, history_), (20, history_)]);
        assert_eq!(history.estimates([code("X"), code("Y")].iter()), None);
        let mut history = history;
        history.learn(&code("A"), 999);
        history.learn(&code("X"), 70);
        let known = |c| history.get(&code(c)).map(|d| d.p50);
        assert_eq!((known("A"), known("X")), (Some(10), Some(70)));
    }

    proptest! {
        #[test]
        fn percentiles_keep_their_order(tries in prop::collection::vec(any::<i64>(), 1..60)) {
            let found = Durations::from_newest_first(&tries).expect("some");
            prop_assert!(0 <= found.p50 && found.p50 <= found.p95 && found.p95 <= LONGEST);
            let kept: Vec<i64> = tries.iter().take(TRIES).map(|t| (*t).clamp(0, LONGEST)).collect();
            let not_above = |limit| kept.iter().filter(|t| **t <= limit).count() * 100;
            prop_assert!(not_above(found.p50) >= 50 * kept.len());
            prop_assert!(not_above(found.p95) >= 95 * kept.len());
            prop_assert!(kept.contains(&found.p50) && kept.contains(&found.p95));
        }
    }
}
