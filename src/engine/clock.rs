//! The only place that reads a clock.
//!
//! The database's clock decides: `System` adds the measured offset of the server's clock
//! (domain/cluster/skew.rs) to this machine's monotonic clock, which cannot be set. So nodes with
//! different wall clocks agree on leases and times, and setting a wall clock while the process runs
//! has no effect.

#![expect(clippy::disallowed_methods, reason = "this is the file that wraps the clocks")]

use crate::domain::cluster::lease::Uptime;
use crate::domain::cluster::skew::Measurement;
use crate::domain::time::Millis;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The zero point of `uptime`.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// A clock; clones show the same time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The monotonic clock of this machine plus the offset of the database's clock, in
    /// milliseconds.
    System(Arc<AtomicI64>),
    /// A clock that a test sets.
    Hand(Arc<AtomicI64>),
}

impl Clock {
    /// Starts with the wall clock of this machine, until the database's time is known.
    pub fn system() -> Self {
        let base = wall_clock().0.saturating_sub(count().0);
        Self::System(Arc::new(AtomicI64::new(base)))
    }

    /// A clock that stands at `at` until it is moved.
    pub fn set_by_hand(at: Millis) -> Self {
        Self::Hand(Arc::new(AtomicI64::new(at.0)))
    }

    /// The present moment.
    pub fn now(&self) -> Millis {
        match self {
            Self::System(base) => Millis(count().0).plus_ms(base.load(Ordering::Relaxed)),
            Self::Hand(at) => Millis(at.load(Ordering::Relaxed)),
        }
    }

    /// The monotonic time of this machine: it cannot be set, never goes back, and stands still
    /// while the machine is suspended. A clock set by hand returns its own time.
    pub fn uptime(&self) -> Uptime {
        match self {
            Self::System(_) => count(),
            Self::Hand(at) => Uptime(at.load(Ordering::Relaxed)),
        }
    }

    /// Evaluates a server's answer: the query was sent at `asked` and the server has just returned
    /// `server`. `None` for a clock set by hand, which is correct by definition.
    pub fn measure(&self, asked: Uptime, server: Millis) -> Option<Measurement> {
        match self {
            Self::System(_) => Some(Measurement::taken(asked, count(), server, wall_clock())),
            Self::Hand(_) => None,
        }
    }

    /// Sets the offset of the database's clock from the machine's monotonic clock.
    pub fn follow(&self, base_ms: i64) {
        if let Self::System(base) = self {
            base.store(base_ms, Ordering::Relaxed);
        }
    }

    /// Milliseconds by which the server's clock was ahead of the local wall clock at the last
    /// measurement.
    pub fn skew_ms(&self) -> i64 {
        match self {
            Self::System(offset) => offset.load(Ordering::Relaxed),
            Self::Hand(_) => 0,
        }
    }

    /// Moves a clock set by hand forward; no effect on a system clock.
    pub fn advance(&self, ms: i64) {
        if let Self::Hand(at) = self {
            at.fetch_add(ms, Ordering::Relaxed);
        }
    }
}

fn count() -> Uptime {
    let passed = ORIGIN.get_or_init(Instant::now).elapsed();
    Uptime(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX))
}

fn wall_clock() -> Millis {
    failpoint_wall!(Millis::from(chrono::Utc::now()))
}
