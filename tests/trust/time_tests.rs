//! Judge J1 against Jepsen's own cases, against brute force, and against spoiled runs.

use crate::trust::judge::time::{Due, Run, judge};
use proptest::prelude::*;

fn every_ten_seconds(count: i64) -> Vec<Due> {
    (0..count).map(|k| Due { at: k * 10_000, early: 50, late: 2_000 }).collect()
}

fn ran(at: i64) -> Run {
    Run { at, ended: Some(at + 5), label: None }
}

#[test]
fn what_the_judge_says_of_runs() {
    let due = every_ten_seconds(3);
    let open = Run { ended: None, ..ran(0) };
    let labelled = |at, label| Run { label: Some(label), ..ran(at) };
    // (runs, missed, extra, early, mislabelled)
    for (runs, missed, extra, early, mislabelled) in [
        (vec![ran(0), ran(10_050), ran(22_000)], vec![], vec![], vec![], vec![]),
        (vec![ran(-50), ran(9_950), ran(20_000)], vec![], vec![], vec![], vec![]),
        (vec![ran(0), ran(22_001), ran(10_000)], vec![2], vec![1], vec![], vec![]),
        (vec![ran(0), ran(9_949), ran(20_000)], vec![1], vec![1], vec![1], vec![]),
        (vec![ran(0), ran(1), ran(10_000), ran(20_000)], vec![], vec![1], vec![], vec![]),
        (vec![open, ran(10_000), ran(20_000)], vec![0], vec![], vec![], vec![]),
        (vec![], vec![0, 1, 2], vec![], vec![], vec![]),
        (
            vec![labelled(0, 0), labelled(10_000, 20_000), labelled(20_000, 20_000)],
            vec![],
            vec![],
            vec![],
            vec![1],
        ),
    ] {
        let timing = judge(&due, &runs, 60_000);
        assert_eq!((&timing.missed, &timing.extra), (&missed, &extra), "{runs:?}: {timing:?}");
        assert_eq!((&timing.early, &timing.mislabelled), (&early, &mislabelled), "{runs:?}");
        let is_good = missed.is_empty() && extra.is_empty() && mislabelled.is_empty();
        assert_eq!(timing.is_clean(), is_good);
    }
}

/// Jepsen's windows may overlap when a job's tolerance is longer than its interval; then a run that
/// fits two of them belongs to the one that closes first.
#[test]
fn overlapping_windows_are_shared_out_so_that_as_many_as_can_be_are_met() {
    let due = [Due { at: 0, early: 0, late: 100 }, Due { at: 10, early: 0, late: 20 }];
    let timing = judge(&due, &[ran(15), ran(50)], 1_000);
    assert_eq!(timing.matched, [(1, 0), (0, 1)]);
    assert!(timing.is_clean());
}

#[test]
fn what_is_not_over_is_not_judged() {
    let due = every_ten_seconds(3);
    let timing = judge(&due, &[ran(0), ran(10_000), ran(20_010)], 21_000);
    assert!(timing.is_clean() && timing.undecided == 1, "{timing:?}");
    assert!(judge(&due, &[ran(0), ran(10_000)], 21_000).is_clean());
}

#[test]
fn lateness_is_counted_by_size() {
    let timing = judge(&every_ten_seconds(2), &[ran(40), ran(11_500)], 60_000);
    assert_eq!(timing.lateness.into_iter().collect::<Vec<_>>(), [(100, 1), (5_000, 1)]);
}

/// The largest number of windows that can be met, by trying everything.
fn brute_force(due: &[Due], runs: &[Run], taken: u32) -> usize {
    let Some((first, rest)) = due.split_first() else { return 0 };
    let fits = |run: &Run| run.at >= first.at - first.early && run.at <= first.at + first.late;
    let free = |r: &usize| taken >> r & 1 == 0 && fits(&runs[*r]);
    let with = (0..runs.len()).filter(free).map(|r| 1 + brute_force(rest, runs, taken | 1 << r));
    with.chain([brute_force(rest, runs, taken)]).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_meets_more_windows(
        windows in prop::collection::vec((0i64..40, 0i64..4, 0i64..15), 0..6),
        starts in prop::collection::vec(0i64..60, 0..6),
    ) {
        let due: Vec<Due> =
            windows.into_iter().map(|(at, early, late)| Due { at, early, late }).collect();
        let runs: Vec<Run> = starts.into_iter().map(ran).collect();
        let timing = judge(&due, &runs, 1_000);
        prop_assert_eq!(timing.matched.len(), brute_force(&due, &runs, 0));
        prop_assert_eq!(timing.matched.len() + timing.missed.len(), due.len());
        prop_assert_eq!(timing.matched.len() + timing.extra.len(), runs.len());
    }

    /// Runs as they should be pass; one dropped, doubled, too early or too late does not.
    #[test]
    fn a_spoiled_schedule_is_always_caught(
        late in prop::collection::vec(0i64..2_000, 1..20),
        spoil in 0usize..4,
        place in any::<prop::sample::Index>(),
    ) {
        let due = every_ten_seconds(late.len() as i64);
        let mut runs: Vec<Run> = due.iter().zip(&late).map(|(d, late)| ran(d.at + late)).collect();
        prop_assert!(judge(&due, &runs, 1_000_000).is_clean());
        let place = place.index(runs.len());
        match spoil {
            0 => drop(runs.remove(place)),
            1 => runs.push(ran(runs[place].at + 1)),
            2 => runs[place] = ran(due[place].at - 51),
            _ => runs[place] = ran(due[place].at + 2_001),
        }
        prop_assert!(!judge(&due, &runs, 1_000_000).is_clean());
    }
}
