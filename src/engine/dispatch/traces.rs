//! What is committed becomes spans.

use crate::domain::batch::span::{self, TryEnd};
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::dag::Node as Place;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::engine::observe::traces::{SpanExporter, TraceQueue};
use crate::trace::Exporter;
use std::sync::atomic::Ordering;

/// A try that has ended, and where memory has its job.
pub(super) type EndedAttempt = (BatchId, Place, TryEnd);

impl Active {
    /// The try of a row that has just ended, for its span.
    pub(super) fn note_end(&self, place: Place, changes: &mut Changes, now: Millis) {
        let row = self.row_at(place);
        let ended = TryEnd {
            queue_id: row.queue_id,
            attempt: row.attempt,
            status: row.status,
            start: row.start_time.unwrap_or(now),
            end: row.end_time.unwrap_or(now),
        };
        changes.ended.push((self.batch.batch_id, place, ended));
    }
}

impl QueueDispatcher {
    /// From now on spans are made, if there is somewhere to send them to.
    pub fn trace_to(&mut self, exporter: Option<Exporter>) {
        let Some(exporter) = exporter else { return };
        self.traces = TraceQueue::to_exporter(exporter, self.process.meter.clone());
        self.running.around.traced.store(true, Ordering::Relaxed);
    }

    /// What sends them, to be run beside this dispatcher; there is one, once.
    pub fn tracer(&mut self) -> Option<SpanExporter> {
        self.traces.take_tracer()
    }

    /// What is committed becomes spans.
    pub(super) fn trace(
        &self,
        ended: &[EndedAttempt],
        finished: &[(Batch, BatchStatus)],
        now: Millis,
    ) {
        if !self.traces.is_on() {
            return;
        }
        let home = self.process.node.installation();
        let tries = ended.iter().filter_map(|(id, place, ended)| {
            let active = self.batches.active.get(id)?;
            Some(span::of_try(home, &active.batch, active.job_at(*place), *ended))
        });
        let batches =
            finished.iter().map(|(batch, status)| span::of_batch(home, batch, *status, now));
        let dropped = self.traces.send_spans(tries.chain(batches));
        if dropped > 0 {
            self.process.meter.spans("dropped", dropped);
        }
    }
}
