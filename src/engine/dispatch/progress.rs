//! Progress events of a batch. No I/O.

use crate::domain::dag::Node;
use crate::domain::job::outcome::Stream;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::long_running_alerts::LongRunningAlert;
use crate::engine::news::ProgressEvent;

impl Active {
    /// The present state of a job as an event.
    pub(super) fn job_event(&self, node: Node, now: Millis) -> ProgressEvent {
        let row = &self.rows[node.index()];
        let tried = matches!(row.status, QueueStatus::Running) || row.end_time.is_some();
        let end_time = row.end_time.filter(|_| row.status != QueueStatus::Running);
        let took = row.start_time.filter(|_| tried).zip(end_time);
        ProgressEvent {
            at: now,
            batch_no: self.batch.values.batch_no.clone(),
            group: self.batch.values.group.clone(),
            job_code: row.job_code.clone(),
            status: row.status,
            attempt: row.attempt,
            took_ms: took.map(|(s, e)| e.since(s)),
            message: row.error_message.clone(),
            not_before: row.not_before.filter(|_| row.status == QueueStatus::RetryWait),
        }
    }

    /// What operators changed since `before` was read. Without running jobs: their starts were
    /// published, and `before` may hold ends that were not committed.
    pub(super) fn changed_since(&self, before: &Self, now: Millis) -> Vec<ProgressEvent> {
        let rows = self.rows.iter().zip(&before.rows);
        let told = |new: QueueStatus, old: QueueStatus| new != old && new != QueueStatus::Running;
        let changed = (0..).zip(rows).filter(|(_, (new, old))| told(new.status, old.status));
        changed.map(|(place, _)| self.job_event(Node(place), now)).collect()
    }
}

impl QueueDispatcher {
    /// Notes notifications to owners after the commit: they are not sent again, and the log of the
    /// attempt mentions them.
    pub(super) fn note_told(&mut self, told: &[LongRunningAlert]) {
        for told in told {
            match told {
                LongRunningAlert::Job(row, said) => {
                    if let Some(body) = self.running.bodies.get_mut(row) {
                        body.is_told = true;
                        body.log.add_line(Stream::System, said);
                    }
                }
                LongRunningAlert::Batch(id) => {
                    if let Some(active) = self.batches.active.get_mut(id) {
                        active.watch.batch = None;
                    }
                }
                LongRunningAlert::Late(id, at, alarm) => {
                    if let Some(active) = self.batches.active.get_mut(id) {
                        active.alarms.note_told(*at, *alarm);
                    }
                }
                LongRunningAlert::Forecast(id, foretold) => {
                    if let Some(active) = self.batches.active.get_mut(id) {
                        active.alarms.note_foretold(*foretold);
                    }
                }
            }
        }
    }

    pub(super) fn publish_events(&self, news: Vec<ProgressEvent>) {
        let Some(sender) = &self.news else { return };
        for item in news {
            // The receiver may be gone; the rows hold the same facts.
            let _ = sender.send(item);
        }
    }
}
