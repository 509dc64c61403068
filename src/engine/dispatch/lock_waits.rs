//! Decides which attempts of dead nodes are waited for while their session locks are held.

use crate::domain::dag::Node as Place;
use crate::domain::dispatch::settlement::is_lost_for_good;
use crate::domain::id::BatchId;
use crate::domain::job::queue::{Acknowledgement, QueueStatus};
use crate::domain::time::Millis;
use crate::engine::cluster::held_locks::LockWatcher;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::handler;
use crate::handler::source::has_session_locks;
use std::time::Duration;

impl Active {
    /// Whether a job of a dead node is waited for while its lock is held: otherwise its outcome
    /// could not be known. A job that may start again, or whose outcome is looked up, is not waited
    /// for here: its next start waits for the lock by itself.
    pub(super) fn may_wait_for_lock(&self, place: Place) -> bool {
        let job = self.job_at(place);
        let kind = handler::kind_of(job);
        let source = self.snapshot.sources.iter().find(|s| Some(&s.name) == job.source.as_ref());
        kind.holds_session_lock
            && is_lost_for_good(job, kind.after_crash)
            && source.is_some_and(has_session_locks)
    }

    /// Whether an attempt of a dead node is waited for now: it began, and no operator requested a
    /// stop.
    pub(super) fn waits_for_lock(&self, place: Place) -> bool {
        let row = self.row_at(place);
        let runs = row.status == QueueStatus::Running && row.taken != Acknowledgement::NotYet;
        runs && !self.killing && self.may_wait_for_lock(place)
    }

    /// Whether the time limit of an attempt has passed, which only its node would enforce.
    pub(super) fn is_past_time_limit(&self, place: Place, now: Millis) -> bool {
        let limit = i64::from(self.job_at(place).timeout_sec) * 1_000;
        self.row_at(place).start_time.is_some_and(|start| start.plus_ms(limit) <= now)
    }
}

impl QueueDispatcher {
    /// Begins to watch the locks of attempts of a batch that has just been read.
    pub(super) fn ask_about_locks(&mut self, id: BatchId) {
        let Some(active) = self.batches.active.get(&id) else { return };
        let awaited: Vec<Place> = active.lock_waits.iter().copied().collect();
        for place in awaited {
            let Some((job, snapshot)) = self.job_at(id, place) else { continue };
            let owner =
                self.batches.active.get(&id).and_then(|active| active.row_at(place).owner.clone());
            let (key, Some(owner)) = ((job.queue_id, job.attempt), owner) else { continue };
            let around = self.running.around.clone();
            // A node that ended the job just before has this long to return and report it.
            let grace = Duration::from_millis(self.process.node.lease_ms().unsigned_abs());
            self.fleet
                .held_locks
                .start_watching(key, LockWatcher { owner, job, snapshot, around, grace });
        }
    }
}
