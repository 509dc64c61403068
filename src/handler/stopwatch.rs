//! Measures durations: for deadlines of a kill and for log lines, never for a decision about when a
//! job is due. The only file of the handlers that reads a clock: tokio's, which a test can pause,
//! and the time of day for messages.

use crate::domain::time::Millis;
use std::time::Duration;
use tokio::time::Instant;

/// A stopwatch that runs since its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Time since the start, in milliseconds.
    pub(crate) fn elapsed_ms(self) -> i64 {
        i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// The time of day of this machine, only for messages.
#[expect(clippy::disallowed_methods, reason = "people are told a moment; nothing is decided by it")]
pub(crate) fn now() -> Millis {
    Millis::from(chrono::Utc::now())
}
