//! Remaining duration of a running job: its past durations, without the attempts that were shorter
//! than the time it has run.

use crate::domain::batch::history::TRIES_NEEDED;

/// Quantile beyond which no duration is drawn: one job in a hundred that never ends would decide
/// every forecast.
const TAIL_END: f64 = 0.99;
/// A job has overrun when it exceeds its longest attempt by this fraction (1/n), and by at least
/// `OVERRUN_LEAST_MS`: a job of five milliseconds that takes eight is not unusual.
const OVERRUN_PART: i64 = 10;
const OVERRUN_LEAST_MS: i64 = 1_000;

/// The remaining duration of one attempt, as a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining<'a> {
    /// Past durations longer than `elapsed`, sorted.
    longer: &'a [i64],
    /// Number of past durations.
    tries: usize,
    /// Longest and median past duration.
    longest: i64,
    median: i64,
    /// Milliseconds that it has been running; 0 when it has not started.
    elapsed: i64,
}

impl<'a> Remaining<'a> {
    /// From past durations, sorted, at least one.
    pub fn from_durations(sorted: &'a [i64], elapsed: i64) -> Self {
        // An attempt that has not started may take no time at all.
        let over = match elapsed {
            0 => 0,
            _ => sorted.partition_point(|ms| *ms <= elapsed),
        };
        let median = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let longest = sorted.last().copied().unwrap_or(0);
        let longer = sorted.get(over..).unwrap_or_default();
        Self { longer, tries: sorted.len(), longest, median, elapsed }
    }

    /// Whether it has run longer than every past attempt.
    pub fn is_beyond_all(&self) -> bool {
        self.longer.is_empty()
    }

    /// Whether it has run so much longer than every past attempt that these say nothing about it.
    pub fn has_overrun(&self) -> bool {
        let over = self.elapsed.saturating_sub(self.longest);
        self.is_beyond_all() && over > (self.longest / OVERRUN_PART).max(OVERRUN_LEAST_MS)
    }

    /// Number of past attempts considered.
    pub fn tries(&self) -> usize {
        self.tries
    }

    /// The longest of them.
    pub fn longest(&self) -> i64 {
        self.longest
    }

    /// How long it has been running.
    pub fn elapsed(&self) -> i64 {
        self.elapsed
    }

    /// The median: the nearest rank of the attempts that took longer than it has been running.
    pub fn median(&self) -> i64 {
        match self.longer.get(self.longer.len().saturating_sub(1) / 2) {
            Some(ms) => ms - self.elapsed,
            None => self.beyond(0.5),
        }
    }

    /// The 90th percentile.
    pub fn percentile_90(&self) -> i64 {
        self.quantile(0.9).max(self.median())
    }

    /// Remaining milliseconds at a quantile from 0 to 1. An attempt that has not started takes as
    /// long as one of the past. With `k` longer past attempts left, a running one is as likely to
    /// exceed all of them as to end before any one of them, one part in `k + 1`. A few past
    /// attempts say nothing about their own tail.
    pub fn quantile(&self, quantile: f64) -> i64 {
        let known = self.longer.len();
        let outlived = (self.tries - known) as f64 / self.tries.max(1) as f64;
        let beyond = match known {
            0 => 1.0,
            _ if self.tries < TRIES_NEEDED => 0.0,
            _ => outlived / (known + 1) as f64,
        };
        let within = 1.0 - beyond;
        if known == 0 || quantile >= within && beyond > 0.0 {
            return self.beyond((quantile - within) / beyond);
        }
        let place = (quantile / within * known as f64) as usize;
        self.longer.get(place.min(known - 1)).map_or(0, |ms| ms - self.elapsed)
    }

    /// Beyond every past attempt. The excess is measured from the median: in half of the cases it
    /// grows by two fifths, in nine of ten to three times as much. So an overrun of a minute is
    /// expected to last for some half a minute more, one of ten hours for hours, and never for no
    /// time at all.
    fn beyond(&self, quantile: f64) -> i64 {
        let reached = self.longest.max(self.elapsed);
        let over = (reached - self.median).max(reached / 10).max(1);
        let growth = 1.0 / (1.0 - quantile.clamp(0.0, TAIL_END)).sqrt() - 1.0;
        (reached - self.elapsed).saturating_add((over as f64 * growth) as i64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tries_that_are_over_by_now_count_no_more() {
        let past = [1_000, 1_000, 1_000, 3_000, 9_000];
        let left = |elapsed| Remaining::from_durations(&past, elapsed).median();
        assert_eq!(
            [0, 400, 999, 1_000, 2_900, 3_000, 8_999].map(left),
            [1_000, 600, 1, 2_000, 100, 6_000, 1]
        );
        // A started attempt takes some time; one that has not started may take none.
        assert_eq!(Remaining::from_durations(&[0, 0], 0).median(), 0);
        assert!(Remaining::from_durations(&[0, 0], 5).median() > 0);
    }

    #[test]
    fn an_overrun_is_expected_to_go_on_in_proportion() {
        let past = [2_600; 20];
        let left = |elapsed| Remaining::from_durations(&past, elapsed).median();
        assert_eq!([2_600, 5_200, 52_600, 1_002_600].map(left), [107, 1_076, 20_710, 414_213]);
        let at = Remaining::from_durations(&past, 52_600);
        assert_eq!((at.percentile_90(), at.quantile(1.0)), (108_113, 449_999));
    }

    #[test]
    fn a_little_over_is_no_overrun() {
        let has =
            |sorted: &[i64], elapsed| Remaining::from_durations(sorted, elapsed).has_overrun();
        assert!(!has(&[5], 900));
        assert!(has(&[5], 1_006));
        assert!(!has(&[60_000], 66_000));
        assert!(has(&[60_000], 66_001));
        assert!(!has(&[60_000, 90_000], 66_001));
    }

    #[test]
    fn what_outlived_some_may_outlive_all() {
        let past = [10, 20, 30, 40, 50];
        let draws = |q: f64| Remaining::from_durations(&past, 0).quantile(q);
        assert_eq!([0.0, 0.2, 0.5, 0.8, 1.0].map(draws), [10, 20, 30, 50, 50]);
        // Four attempts have no tail of their own.
        assert_eq!(Remaining::from_durations(&past[1..], 35).quantile(0.99), 15);
        // Given that it has run for 35, the three shorter ones are excluded.
        let given = |q: f64| Remaining::from_durations(&past, 35).quantile(q);
        assert_eq!([0.0, 0.5].map(given), [5, 15]);
        assert!(given(0.9) > 15);
    }

    proptest! {
        /// A later quantile is never an earlier end, nothing is in the past, and what runs is never over now.
        #[test]
        fn the_rest_grows_with_its_quantile(
            tries in prop::collection::vec(0i64..100_000, 1..21),
            elapsed in 0i64..300_000,
            quantiles in (0.0f64..1.0, 0.0f64..1.0),
        ) {
            let mut sorted = tries;
            sorted.sort_unstable();
            let rest = Remaining::from_durations(&sorted, elapsed);
            let (low, high) = (quantiles.0.min(quantiles.1), quantiles.0.max(quantiles.1));
            prop_assert!(rest.quantile(low) <= rest.quantile(high));
            prop_assert!(rest.median() <= rest.percentile_90());
            prop_assert!(rest.quantile(low) >= i64::from(elapsed > 0));
            prop_assert_eq!(rest.is_beyond_all(), elapsed > 0 && elapsed >= sorted[sorted.len() - 1]);
        }
    }
}
