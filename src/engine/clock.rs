//! The one place that reads a clock.
//!
//! The database's clock decides: `System` counts on the machine's own count, which nobody can set, from
//! what the server said the time is (domain/cluster/skew.rs). So two nodes with different clocks agree on leases
//! and times, and a wall clock that is set while we run moves nothing.

#![expect(clippy::disallowed_methods, reason = "this is the file that wraps the clocks")]

use crate::domain::cluster::lease::Uptime;
use crate::domain::cluster::skew::Measurement;
use crate::domain::time::Millis;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The moment from which this process counts.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// A clock; clones show the same time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's count plus what the database's clock is ahead of it, in milliseconds.
    System(Arc<AtomicI64>),
    /// A clock that a test sets.
    Hand(Arc<AtomicI64>),
}

impl Clock {
    /// What the wall clock of this machine says, until the database is asked.
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

    /// The present moment as the machine counts it: nobody can set it, and it never goes back. It
    /// stands still while a machine is suspended. A hand-set clock counts what it shows.
    pub fn uptime(&self) -> Uptime {
        match self {
            Self::System(_) => count(),
            Self::Hand(at) => Uptime(at.load(Ordering::Relaxed)),
        }
    }

    /// What it means that the server, asked at `asked`, has just said that it is `server` now. Nothing
    /// for a hand-set clock, which is right by itself.
    pub fn measure(&self, asked: Uptime, server: Millis) -> Option<Measurement> {
        match self {
            Self::System(_) => Some(Measurement::taken(asked, count(), server, wall_clock())),
            Self::Hand(_) => None,
        }
    }

    /// Goes by this from now on: what the database's clock is ahead of the machine's count.
    pub fn follow(&self, base_ms: i64) {
        if let Self::System(base) = self {
            base.store(base_ms, Ordering::Relaxed);
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

fn count() -> Uptime {
    let passed = ORIGIN.get_or_init(Instant::now).elapsed();
    Uptime(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX))
}

fn wall_clock() -> Millis {
    failpoint_wall!(Millis::from(chrono::Utc::now()))
}
