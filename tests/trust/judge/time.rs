//! J1: runs against the instants of a schedule, each with the window in which it has to start.
//!
//! Jepsen gave this to a constraint solver. Points and intervals need none: the runs are swept by time,
//! and each is given to the open window that closes first. That is a largest matching, in O(n log n).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// An instant that is due, and how early and late its run may begin; all in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at: i64,
    pub(crate) early: i64,
    pub(crate) late: i64,
}

impl Due {
    fn opens(self) -> i64 {
        self.at - self.early
    }

    fn closes(self) -> i64 {
        self.at + self.late
    }
}

/// A run as somebody outside saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: i64,
    /// `None`: it never ended, and does not count.
    pub(crate) ended: Option<i64>,
    /// The instant that the run itself says it is for.
    pub(crate) label: Option<i64>,
}

/// What became of each instant and run; numbers are places in what was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    /// (instant, run)
    pub(crate) matched: Vec<(usize, usize)>,
    /// Instants whose window closed without a run.
    pub(crate) missed: Vec<usize>,
    /// Runs that no open window was left for.
    pub(crate) extra: Vec<usize>,
    /// Of those: runs that came before the window of an instant that was missed.
    pub(crate) early: Vec<usize>,
    /// Runs without an end.
    pub(crate) incomplete: Vec<usize>,
    /// Runs that say they are for another instant than the one they were matched with.
    pub(crate) mislabelled: Vec<usize>,
    /// Instants that were not judged, because their window was still open when it was looked.
    pub(crate) undecided: usize,
    /// How many matched runs were at most so many milliseconds late.
    pub(crate) lateness: BTreeMap<i64, usize>,
}

/// Upper bounds of the histogram of lateness, in milliseconds.
pub(super) const LATENESS: [i64; 6] = [100, 1_000, 5_000, 15_000, 60_000, i64::MAX];

impl Timing {
    /// Nothing missed, nothing beside, and what runs say of themselves is so.
    pub(crate) fn is_clean(&self) -> bool {
        self.missed.is_empty() && self.extra.is_empty() && self.mislabelled.is_empty()
    }
}

/// Judges `runs` against the instants that are `due`, looked at when it was `read_at`.
pub(crate) fn judge(due: &[Due], runs: &[Run], read_at: i64) -> Timing {
    let mut timing = Timing::default();
    let mut coming: Vec<usize> = (0..due.len()).filter(|i| due[*i].closes() < read_at).collect();
    timing.undecided = due.len() - coming.len();
    coming.sort_by_key(|i| Reverse(due[*i].opens()));
    let mut sweep: Vec<usize> = (0..runs.len()).collect();
    sweep.sort_by_key(|r| runs[*r].at);
    let mut open = BinaryHeap::<Reverse<(i64, usize)>>::new();
    for r in sweep {
        let run = runs[r];
        if run.ended.is_none() {
            timing.incomplete.push(r);
            continue;
        }
        while let Some(i) = coming.pop_if(|i| due[*i].opens() <= run.at) {
            open.push(Reverse((due[i].closes(), i)));
        }
        while open.peek().is_some_and(|Reverse((closes, _))| *closes < run.at) {
            timing.missed.extend(open.pop().map(|Reverse((_, i))| i));
        }
        match open.pop() {
            Some(Reverse((_, i))) => timing.matched.push((i, r)),
            // Whoever looks too soon sees the runs of windows that it does not judge.
            None if due.iter().any(|d| is_undecided(*d, run.at, read_at)) => {}
            None => timing.extra.push(r),
        }
    }
    timing.missed.extend(coming.into_iter().chain(open.into_iter().map(|Reverse((_, i))| i)));
    timing.missed.sort_unstable();
    finish(timing, due, runs)
}

fn is_undecided(due: Due, at: i64, read_at: i64) -> bool {
    due.closes() >= read_at && due.opens() <= at
}

fn finish(mut timing: Timing, due: &[Due], runs: &[Run]) -> Timing {
    for (i, r) in &timing.matched {
        if runs[*r].label.is_some_and(|label| label != due[*i].at) {
            timing.mislabelled.push(*r);
        }
        let late = runs[*r].at - due[*i].at;
        let bound = LATENESS.into_iter().find(|bound| late <= *bound).unwrap_or(i64::MAX);
        *timing.lateness.entry(bound).or_default() += 1;
    }
    let too_soon = |r: &&usize| timing.missed.iter().any(|i| runs[**r].at < due[*i].opens());
    timing.early = timing.extra.iter().filter(too_soon).copied().collect();
    timing
}
