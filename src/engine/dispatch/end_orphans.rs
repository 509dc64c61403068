//! Begins to end what dead processes left of a batch.

use crate::domain::dag::Node as Place;
use crate::domain::id::BatchId;
use crate::engine::attempt::end_orphan::end_orphan;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::handler::StopReason;

impl QueueDispatcher {
    /// Begins to end what dead processes left of a batch; what was to be told of them is committed.
    pub(super) fn end_orphans(&mut self, id: BatchId) {
        let Some(active) = self.batches.active.get_mut(&id) else { return };
        for (place, reason) in std::mem::take(&mut active.to_end) {
            self.spawn_end(id, place, reason);
        }
    }

    fn spawn_end(&mut self, id: BatchId, place: Place, reason: StopReason) {
        let now = self.process.clock.now();
        let Some((mut job, snapshot)) = self.put_together(id, place) else { return };
        // Its lines are of now, and not of the start of the try.
        job.began = now;
        job.stopper.send_replace(Some(reason));
        if let Some(active) = self.batches.active.get(&id) {
            self.batches.slots.acquire(active.needs(place));
        }
        failpoint!("recover.step");
        tokio::spawn(end_orphan(job, reason, snapshot, self.running.around.clone()));
    }
}
