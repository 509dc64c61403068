//! Turns committed changes into trace spans.

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

/// An ended attempt, with the batch and DAG node of its job.
pub(super) type EndedAttempt = (BatchId, Place, TryEnd);

impl Active {
    /// Notes an attempt that has just ended, for its span.
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
    /// Turns tracing on, if there is an exporter.
    pub fn trace_to(&mut self, exporter: Option<Exporter>) {
        let Some(exporter) = exporter else { return };
        self.traces = TraceQueue::to_exporter(exporter, self.process.meter.clone());
        self.running.around.traced.store(true, Ordering::Relaxed);
    }

    /// The task that sends the spans, to be run beside this dispatcher; returned once.
    pub fn tracer(&mut self) -> Option<SpanExporter> {
        self.traces.take_tracer()
    }

    /// Creates spans for what is committed.
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
