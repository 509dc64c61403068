//! Suspends this process when the database has lost committed data: compares what the process
//! remembers of its writes with what the database holds.

use crate::domain::cluster::metadata_gap::{Continuity, HistoryMark, MetadataGap, compare_history};
use crate::domain::time::Millis;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What one process remembers of its writes.
#[derive(Default)]
pub(super) struct Suspension {
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The newest heartbeat of this process that is known to be committed.
    committed: Option<Millis>,
    /// The gap because of which nothing may fire or start.
    gap: Option<MetadataGap>,
}

impl Suspension {
    /// The gap because of which nothing may fire or start.
    pub(in crate::engine) fn metadata_gap(&self) -> Option<MetadataGap> {
        self.memory().gap.clone()
    }

    /// Whether nothing may fire or start.
    pub(in crate::engine) fn is_on(&self) -> bool {
        self.memory().gap.is_some()
    }

    /// Evaluates what the database holds at `now`. Returns the gap that has to be recorded, if this
    /// process is the first to find it; the process is suspended from here on, recorded or not.
    ///
    /// `committed` is what was remembered before `mark` was read. A heartbeat that is committed
    /// between the reading and this call must not count: a process that was stopped just there took
    /// its own heartbeat for a lost one, and the whole installation stopped (p11 on MariaDB,
    /// November 2026).
    pub(in crate::engine) fn observe(
        &self,
        mark: &HistoryMark,
        committed: Option<Millis>,
        now: Millis,
        me: &str,
    ) -> Option<MetadataGap> {
        let mut memory = self.memory();
        match compare_history(mark, committed) {
            Continuity::Unbroken => {
                if memory.gap.take().is_some() {
                    tracing::info!("the gap in the metadata is accepted; work goes on");
                }
                None
            }
            Continuity::Suspended(gap) => {
                if memory.gap.is_none() {
                    report(&gap);
                }
                memory.gap = Some(gap);
                None
            }
            Continuity::WentBack { to, from } => {
                let found_by = me.to_owned();
                let found =
                    MetadataGap { restored_to: to, known_until: from, found_at: now, found_by };
                let is_new = memory.gap.is_none();
                let gap = memory.gap.get_or_insert(found).clone();
                if is_new {
                    report(&gap);
                }
                Some(gap)
            }
        }
    }

    /// The newest heartbeat of this process that is known to be committed; read it before the
    /// database is queried.
    pub(in crate::engine) fn committed(&self) -> Option<Millis> {
        self.memory().committed
    }

    /// Notes that a heartbeat of this time is committed.
    pub(in crate::engine) fn remember(&self, committed: Millis) {
        self.memory().committed = Some(committed);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(gap: &MetadataGap) {
    tracing::error!(
        restored_to = %gap.restored_to,
        known_until = %gap.known_until,
        "the database holds an older state than was committed: a backup was restored, or a replica without the last \
         commits took over; nothing is fired or started until an operator decides: procession metadata show"
    );
}
