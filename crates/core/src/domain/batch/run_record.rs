//! How the past runs of a job or a group went: success, steadiness, and the band in which durations
//! lie.

use crate::domain::batch::history::{TRIES, TRIES_NEEDED, percentile};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    Succeeded,
    Failed,
}

/// A run that has ended: one job of one batch, or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRun {
    pub end: RunEnd,
    /// Milliseconds from start to end, if both are known.
    pub took_ms: Option<i64>,
    /// Whether it took more than one attempt.
    pub is_repeated: bool,
}

/// The durations in which half of the successful runs, and nineteen of twenty, had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationBand {
    pub p50: i64,
    pub p95: i64,
}

impl DurationBand {
    /// The band of these durations; `None` without any.
    pub fn from_durations(durations: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut sorted: Vec<i64> = durations.into_iter().map(|ms| ms.max(0)).collect();
        sorted.sort_unstable();
        Some(Self { p50: percentile(&sorted, 50)?, p95: percentile(&sorted, 95)? })
    }
}

/// The record of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRecord {
    pub runs: usize,
    pub succeeded: usize,
    /// Runs that failed, or succeeded only after another attempt.
    pub unsteady: usize,
    /// The band of the durations of successful runs.
    pub band: Option<DurationBand>,
    /// The longest of them.
    pub longest_ms: Option<i64>,
}

impl RunRecord {
    /// Summarizes runs in any order.
    pub fn from_runs(runs: &[EndedRun]) -> Self {
        let good = |run: &&EndedRun| run.end == RunEnd::Succeeded;
        let took = || runs.iter().filter(good).filter_map(|run| run.took_ms);
        Self {
            runs: runs.len(),
            succeeded: runs.iter().filter(good).count(),
            unsteady: runs.iter().filter(|run| !good(run) || run.is_repeated).count(),
            band: DurationBand::from_durations(took()),
            longest_ms: took().max(),
        }
    }

    /// Share of unsteady runs in percent, rounded. A job that never succeeds is broken, not flaky.
    pub fn flaky_percent(&self) -> usize {
        match self.succeeded {
            0 => 0,
            _ => (self.unsteady * 200 + self.runs) / (self.runs * 2),
        }
    }
}

/// For each run the band of the successful runs before it, oldest run first: what was usual when it
/// started. `None` where fewer than `TRIES_NEEDED` had succeeded.
pub fn bands_before(runs: &[EndedRun]) -> Vec<Option<DurationBand>> {
    let mut past: Vec<i64> = Vec::new();
    let mut bands = Vec::with_capacity(runs.len());
    for run in runs {
        let last = past.iter().rev().take(TRIES).copied();
        let is_enough = past.len() >= TRIES_NEEDED;
        bands.push(if is_enough { DurationBand::from_durations(last) } else { None });
        if run.end == RunEnd::Succeeded {
            past.extend(run.took_ms);
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(ms: i64) -> EndedRun {
        EndedRun { end: RunEnd::Succeeded, took_ms: Some(ms), is_repeated: false }
    }

    fn bad(ms: i64) -> EndedRun {
        EndedRun { end: RunEnd::Failed, ..ok(ms) }
    }

    #[test]
    fn a_record_counts_successes_and_what_took_more_than_one_attempt() {
        let again = EndedRun { is_repeated: true, ..ok(40) };
        let unknown = EndedRun { took_ms: None, ..ok(0) };
        let record = RunRecord::from_runs(&[ok(10), bad(900), again, ok(20), unknown]);
        let wanted = RunRecord {
            runs: 5,
            succeeded: 4,
            unsteady: 2,
            band: Some(DurationBand { p50: 20, p95: 40 }),
            longest_ms: Some(40),
        };
        assert_eq!(record, wanted);
        assert_eq!(record.flaky_percent(), 40);
        assert_eq!(RunRecord::from_runs(&[]), RunRecord::default());
        assert_eq!(RunRecord::default().flaky_percent(), 0);
    }

    #[test]
    fn what_never_succeeds_is_not_flaky() {
        assert_eq!(RunRecord::from_runs(&[bad(1), bad(2)]).flaky_percent(), 0);
        assert_eq!(RunRecord::from_runs(&[bad(1), bad(2), ok(1)]).flaky_percent(), 67);
    }

    #[test]
    fn a_band_is_of_the_successes_before_a_run() {
        let mut runs: Vec<EndedRun> = (1..=5).map(ok).collect();
        runs.push(bad(1_000));
        runs.push(ok(100));
        let bands = bands_before(&runs);
        assert_eq!(bands[..5], [None; 5]);
        // Neither the run itself nor a failure before it is in its band.
        let five = Some(DurationBand { p50: 3, p95: 5 });
        assert_eq!(bands[5..], [five, five]);
        runs.push(ok(7));
        assert_eq!(bands_before(&runs)[7], Some(DurationBand { p50: 3, p95: 100 }));
    }

    #[test]
    fn a_band_forgets_what_is_long_ago() {
        let mut runs = vec![ok(1_000_000), ok(1_000_000)];
        runs.extend((2..=TRIES + 1).map(|_| ok(5)));
        let bands = bands_before(&runs);
        assert_eq!(bands[TRIES].map(|band| band.p95), Some(1_000_000));
        assert_eq!(bands[TRIES + 1], Some(DurationBand { p50: 5, p95: 5 }));
    }
}
