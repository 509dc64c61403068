//! Poll interval for a table in which another process's answer will appear without notification.
//!
//! A recent event is likely to be followed soon by another, and a long wait is likely to become
//! longer. So the interval grows with the time since the last event: polling lengthens a wait by a
//! fraction of itself and never by a fixed second, with a number of polls that hardly grows with
//! the length of the wait.

/// The interval is this fraction (1/n) of the time waited so far.
const SHARE: i64 = 5;
/// Shortest interval in milliseconds, just after an event: some ten commits of a local disk.
const SOONEST_MS: i64 = 5;
/// The interval is at least this multiple of the duration of the last poll: a distant database is
/// not polled continuously, and the poller has four fifths of its time for its own batches.
const BETWEEN: i64 = 4;

/// Milliseconds to the next poll, `quiet_ms` after the last event, when the last poll took
/// `took_ms`; at most `most_ms`.
pub fn pause(quiet_ms: i64, took_ms: i64, most_ms: i64) -> i64 {
    let soonest = took_ms.saturating_mul(BETWEEN).max(SOONEST_MS);
    (quiet_ms / SHARE).max(soonest).min(most_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn soon_after_news_it_is_looked_soon_and_later_seldom() {
        let cases = [
            (0, 0, 1_000, 5),
            (-7, 1, 1_000, 5),
            (24, 0, 1_000, 5),
            (100, 2, 1_000, 20),
            (999, 0, 200, 199),
            (1_000, 0, 200, 200),
            (60_000, 0, 1_000, 1_000),
            (i64::MAX, 0, 1_000, 1_000),
            (0, 0, 2, 2),
            (0, 30, 1_000, 120),
            (1_000, 30, 1_000, 200),
            (0, 9_000, 200, 200),
            (0, i64::MAX, 200, 200),
        ];
        for (quiet, took, most, expected) in cases {
            let said = format!("{quiet} ms quiet, a look of {took} ms, at most {most} ms");
            assert_eq!(pause(quiet, took, most), expected, "{said}");
        }
    }

    /// The times of the polls from an event at 0 to `end`.
    fn looks(end: i64, most: i64) -> Vec<i64> {
        let next = |at: &i64| Some(at + pause(*at, 0, most)).filter(|at| *at < end);
        std::iter::successors(next(&0), next).collect()
    }

    #[test]
    fn the_first_five_seconds_take_34_looks_and_every_further_one_a_single_look() {
        assert_eq!(looks(5_000, 1_000).len(), 34);
        assert!(looks(65_000, 1_000).len() <= 34 + 61);
    }

    proptest! {
        #[test]
        fn an_answer_waits_for_a_fifth_of_its_time_at_most(answer in 0..10_000_000i64, most in 5..2_000i64) {
            let found = looks(answer + most + 1, most).into_iter().find(|at| *at >= answer);
            let late = found.expect("it is looked again") - answer;
            prop_assert!(late <= (answer / SHARE).clamp(SOONEST_MS, most), "{late} ms after {answer} ms");
        }
    }
}
