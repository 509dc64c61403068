//! How long something takes: for deadlines of a kill and for lines of a log, never for a decision
//! about when a job is due. The only file here that reads a clock: tokio's, which a test can pause, and
//! the time of day for sentences to people.

use crate::domain::time::Millis;
use std::time::Duration;
use tokio::time::Instant;

/// Runs since it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Since the start, in milliseconds, as the domain writes spans.
    pub(crate) fn elapsed_ms(self) -> i64 {
        i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// The time of day of this machine, for a sentence to people and nothing else.
#[expect(clippy::disallowed_methods, reason = "people are told a moment; nothing is decided by it")]
pub(crate) fn now() -> Millis {
    Millis::from(chrono::Utc::now())
}
