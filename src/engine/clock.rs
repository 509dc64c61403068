//! The one place that reads a clock.
//!
//! The database's clock decides: `System` is the local clock corrected by the offset that was last
//! measured against the server, so that two nodes with different clocks agree on leases and times.

#![expect(clippy::disallowed_methods, reason = "this is the file that wraps the clocks")]

use crate::domain::lease::Uptime;
use crate::domain::time::Millis;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The moment from which this process counts.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// A clock; clones show the same time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The local clock plus an offset in milliseconds.
    System(Arc<AtomicI64>),
    /// A clock that a test sets.
    Hand(Arc<AtomicI64>),
}

impl Clock {
    /// The local clock, not yet corrected.
    pub fn system() -> Self {
        Self::System(Arc::new(AtomicI64::new(0)))
    }

    /// A clock that stands at `at` until it is moved.
    pub fn hand(at: Millis) -> Self {
        Self::Hand(Arc::new(AtomicI64::new(at.0)))
    }

    /// The present moment.
    pub fn now(&self) -> Millis {
        match self {
            Self::System(offset) => {
                Millis::from(chrono::Utc::now()).plus(offset.load(Ordering::Relaxed))
            }
            Self::Hand(at) => Millis(at.load(Ordering::Relaxed)),
        }
    }

    /// The present moment as the machine counts it: nobody can set it, and it never goes back. It
    /// stands still while a machine is suspended. A hand-set clock counts what it shows.
    pub fn uptime(&self) -> Uptime {
        match self {
            Self::System(_) => {
                let passed = ORIGIN.get_or_init(Instant::now).elapsed();
                Uptime(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX))
            }
            Self::Hand(at) => Uptime(at.load(Ordering::Relaxed)),
        }
    }

    /// Corrects the local clock: the server says it is `server` now. Gives the offset. A hand-set
    /// clock is not corrected.
    pub fn correct(&self, server: Millis) -> i64 {
        match self {
            Self::System(offset) => {
                let skew = server.since(Millis::from(chrono::Utc::now()));
                offset.store(skew, Ordering::Relaxed);
                skew
            }
            Self::Hand(_) => 0,
        }
    }

    /// Milliseconds by which the server's clock was ahead of the local one when it was last asked.
    pub fn skew_ms(&self) -> i64 {
        match self {
            Self::System(offset) => offset.load(Ordering::Relaxed),
            Self::Hand(_) => 0,
        }
    }

    /// Moves a hand-set clock forward; a system clock takes no notice.
    pub fn advance(&self, ms: i64) {
        if let Self::Hand(at) = self {
            at.fetch_add(ms, Ordering::Relaxed);
        }
    }
}
