//! Retry rules: which failures are retried, and after which delay.

use serde::{Deserialize, Serialize};

/// Kinds of error that a definition can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The database chose this transaction as a deadlock victim.
    Deadlock,
    /// A lock was not granted in time.
    LockWait,
    /// A serialization conflict between transactions.
    Serialization,
    /// No connection, or it broke.
    ConnectionLost,
    /// The body exceeded its timeout.
    Timeout,
    /// A script's exit code was not 0.
    ExitCode,
    /// An HTTP status other than the expected ones.
    HttpStatus,
    /// A success rule or check failed.
    Check,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// All classes with their words in a definition.
    pub const WORDS: [(&'static str, Self); 9] = [
        ("deadlock", Self::Deadlock),
        ("lock_wait", Self::LockWait),
        ("serialization", Self::Serialization),
        ("connection_lost", Self::ConnectionLost),
        ("timeout", Self::Timeout),
        ("exit_code", Self::ExitCode),
        ("http_status", Self::HttpStatus),
        ("check", Self::Check),
        ("other", Self::Other),
    ];
}

/// Longest delay between two attempts: one day, in seconds.
pub const LONGEST_DELAY_SEC: u32 = 24 * 3_600;

/// Retry settings beside `retry_count` and `retry_delay_sec`: growth of the delay and selection of
/// errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RetryPolicy {
    /// Factor of the delay after each attempt, in percent: 200 doubles it; none keeps it constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_percent: Option<u32>,
    /// Longest delay in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_sec: Option<u32>,
    /// Random variation of the delay, in percent of itself, so that jobs that failed together are
    /// not retried together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_percent: Option<u32>,
    /// Only errors of these classes are retried; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<ErrorClass>,
    /// Errors with one of these SQLSTATE codes are retried as well (5 characters; 2 for a whole
    /// class).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_sqlstate: Vec<String>,
    /// Errors with one of these SQLSTATE codes are never retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_on_sqlstate: Vec<String>,
}

impl RetryPolicy {
    /// Whether every setting has its default.
    pub fn is_plain(&self) -> bool {
        self == &Self::default()
    }

    /// Milliseconds between the end of the `tries`-th failed attempt (from 1) and the next start:
    /// `base_sec`, grown, capped, then varied by `roll`, any number.
    pub fn delay_ms(&self, base_sec: u32, tries: u32, roll: u64) -> u64 {
        let growth = u128::from(self.backoff_percent.unwrap_or(100).max(100));
        let cap = self.max_delay_sec.unwrap_or(LONGEST_DELAY_SEC).min(LONGEST_DELAY_SEC);
        let cap = u128::from(cap) * 1_000;
        let mut delay = (u128::from(base_sec) * 1_000).min(cap);
        for _ in 1..tries {
            let grown = (delay * growth / 100).min(cap);
            if grown == delay {
                break;
            }
            delay = grown;
        }
        let delay = u64::try_from(delay).unwrap_or(u64::MAX);
        let span = delay * u64::from(self.jitter_percent.unwrap_or(0).min(100)) / 100;
        delay - span + roll % (2 * span + 1)
    }

    /// Whether an error of this class and SQLSTATE is retried. Without lists every error is.
    pub fn may_retry(&self, class: ErrorClass, sqlstate: Option<&str>) -> bool {
        let is_listed = |list: &[String]| {
            sqlstate.is_some_and(|state| {
                list.iter()
                    .any(|code| state == code || (code.len() == 2 && state.starts_with(code)))
            })
        };
        if is_listed(&self.never_on_sqlstate) {
            return false;
        }
        let takes_all = self.on.is_empty() && self.on_sqlstate.is_empty();
        takes_all || self.on.contains(&class) || is_listed(&self.on_sqlstate)
    }
}

/// Seed for the jitter of an attempt: the same for the same attempt, so that the rules need no
/// random source, and unlike that of neighbouring rows, so that jobs that failed together are
/// retried apart.
pub fn jitter_seed(queue_id: i64, attempt: u32) -> u64 {
    // The finalizer of SplitMix64, which spreads neighbouring inputs over the whole range.
    let mut x = queue_id.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = x.wrapping_add(u64::from(attempt).wrapping_mul(0xD1B5_4A32_D192_ED03));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(backoff: Option<u32>, max: Option<u32>, jitter: Option<u32>) -> RetryPolicy {
        RetryPolicy {
            backoff_percent: backoff,
            max_delay_sec: max,
            jitter_percent: jitter,
            ..RetryPolicy::default()
        }
    }

    #[test]
    fn the_delay_grows_to_its_cap() {
        // (backoff, cap, jitter, base) -> delays after attempts 1 to 5, in milliseconds
        for (backoff, cap, jitter, base, expected) in [
            (None, None, None, 30, [30_000; 5]),
            (Some(200), None, None, 30, [30_000, 60_000, 120_000, 240_000, 480_000]),
            (Some(150), None, None, 10, [10_000, 15_000, 22_500, 33_750, 50_625]),
            (Some(200), Some(100), None, 30, [30_000, 60_000, 100_000, 100_000, 100_000]),
            (Some(200), Some(10), None, 30, [10_000; 5]),
            (
                Some(1_000),
                None,
                None,
                3_600,
                [3_600_000, 36_000_000, 86_400_000, 86_400_000, 86_400_000],
            ),
            (Some(200), None, None, 0, [0; 5]),
            // Roll 0 gives the shortest delay of the range.
            (None, None, Some(10), 30, [27_000; 5]),
            (Some(200), Some(60), Some(100), 30, [0; 5]),
        ] {
            let policy = policy(backoff, cap, jitter);
            let delays = [1, 2, 3, 4, 5].map(|tries| policy.delay_ms(base, tries, 0));
            assert_eq!(delays, expected, "{policy:?}");
        }
    }

    #[test]
    fn classes_and_states_decide_what_is_tried_again() {
        use ErrorClass as C;
        let states = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        // (on, on_sqlstate, never_on_sqlstate, class, sqlstate, retried)
        for (on, with, never, class, state, again) in [
            (&[][..], &[][..], &[][..], C::Other, None, true),
            (&[C::Deadlock], &[], &[], C::Deadlock, Some("40001"), true),
            (&[C::Deadlock], &[], &[], C::Other, Some("42601"), false),
            (&[C::Deadlock], &[], &[], C::ExitCode, None, false),
            (&[C::Deadlock], &["08"], &[], C::ConnectionLost, Some("08006"), true),
            (&[], &["40001"], &[], C::Deadlock, Some("40P01"), false),
            (&[], &["40"], &[], C::Deadlock, Some("40P01"), true),
            (&[], &["40001"], &[], C::Other, None, false),
            (&[], &[], &["23"], C::Other, Some("23505"), false),
            (&[], &[], &["23"], C::Other, Some("42601"), true),
            (&[C::Other], &["23505"], &["23505"], C::Other, Some("23505"), false),
        ] {
            let policy = RetryPolicy {
                on: on.to_vec(),
                on_sqlstate: states(with),
                never_on_sqlstate: states(never),
                ..RetryPolicy::default()
            };
            assert_eq!(policy.may_retry(class, state), again, "{policy:?} {class:?} {state:?}");
        }
    }

    #[test]
    fn words_are_those_that_are_stored() {
        for (word, class) in ErrorClass::WORDS {
            assert_eq!(serde_json::to_value(class).expect("json"), word);
        }
    }

    proptest! {
        /// Without jitter the delay never decreases; with jitter it stays within its share of the
        /// cap; and it is deterministic per attempt.
        #[test]
        fn the_delay_is_bounded(
            backoff in prop::option::of(0u32..2_000), max in prop::option::of(0u32..200_000),
            jitter in prop::option::of(0u32..200), base in 0u32..100_000,
            queue_id in 1i64..1_000_000,
        ) {
            let still = policy(backoff, max, None);
            let delays: Vec<u64> = (1..=100).map(|t| still.delay_ms(base, t, jitter_seed(queue_id, t))).collect();
            prop_assert!(delays.is_sorted());
            let varied = policy(backoff, max, jitter);
            let cap = u64::from(max.unwrap_or(LONGEST_DELAY_SEC).min(LONGEST_DELAY_SEC)) * 1_000;
            let share = u64::from(jitter.unwrap_or(0).min(100));
            for (tries, still) in (1..=100).zip(delays) {
                let delay = varied.delay_ms(base, tries, jitter_seed(queue_id, tries));
                prop_assert!(delay <= cap + cap * share / 100);
                prop_assert!(delay.abs_diff(still) <= still * share / 100);
            }
        }

        /// Neighbouring rows get different delays.
        #[test]
        fn rolls_differ(queue_id in 1i64..1_000_000, attempt in 1u32..100) {
            prop_assert_ne!(jitter_seed(queue_id, attempt), jitter_seed(queue_id + 1, attempt));
            prop_assert_ne!(jitter_seed(queue_id, attempt), jitter_seed(queue_id, attempt + 1));
        }
    }
}
