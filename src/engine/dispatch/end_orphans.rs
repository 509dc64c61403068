//! Starts ending what dead processes left of a batch.

use crate::domain::dag::Node as Place;
use crate::domain::id::BatchId;
use crate::engine::attempt::end_orphan::end_orphan;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::handler::StopReason;

impl QueueDispatcher {
    /// Starts ending what dead processes left of a batch; its new state is committed.
    pub(super) fn end_orphans(&mut self, id: BatchId) {
        let Some(active) = self.batches.active.get_mut(&id) else { return };
        for (place, reason) in std::mem::take(&mut active.to_end) {
            self.spawn_end(id, place, reason);
        }
    }

    fn spawn_end(&mut self, id: BatchId, place: Place, reason: StopReason) {
        let now = self.process.clock.now();
        let Some((mut job, snapshot)) = self.put_together(id, place) else { return };
        // Its log lines date from now, not from the start of the attempt.
        job.began = now;
        job.stopper.send_replace(Some(reason));
        if let Some(active) = self.batches.active.get(&id) {
            self.batches.slots.acquire(active.needs(place));
        }
        failpoint!("recover.step");
        tokio::spawn(end_orphan(job, reason, snapshot, self.running.around.clone()));
    }
}
