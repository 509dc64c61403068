//! Results of a tick that no row accepted: stored as evidence after its commit, or postponed while
//! the database is unavailable.

use crate::domain::job::outcome::AttemptStage;
use crate::engine::attempt::run::{AttemptReport, What};
use crate::engine::cluster::late_results::{Late, end_word, store_late_result};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::store;

impl QueueDispatcher {
    /// Removes reports that are committed; those that no row accepted become evidence.
    pub(super) fn settled(&mut self) {
        for report in std::mem::take(&mut self.reports.waiting) {
            let AttemptReport { queue_id, attempt, by, what: What::Ended(outcome, lines) } = report
            else {
                continue;
            };
            self.measure_end(queue_id, &outcome);
            if !self.reports.heard.contains(&(queue_id, attempt)) {
                let late = Late::of_ours(queue_id, attempt, *outcome, lines);
                self.reports.late.push(late.reported_by(by));
            }
        }
        self.reports.heard.clear();
    }

    /// Stores the late results of this tick as evidence. Not in the tick's own transaction: that
    /// belongs to batches of this process, and these may belong to any. An unavailable database is
    /// waited for.
    pub(super) async fn keep_late(&mut self) {
        let now = self.process.clock.now();
        let up = self.process.clock.uptime();
        let is_due = |late: &mut Late| late.is_due(up);
        let due: Vec<Late> = self.reports.late.extract_if(.., is_due).collect();
        let mut waiting = due.into_iter();
        while let Some(late) = waiting.next() {
            let row = late.queue_id.0;
            match store_late_result(&self.process.db, &late, self.process.node.id(), now).await {
                Ok(()) => {}
                // The next one would wait as long for the same answer, and delay the tick.
                Err(error) if store::is_transient(&error) => {
                    self.reports.late.extend(std::iter::once(late).chain(waiting));
                    return;
                }
                Err(error) => {
                    tracing::warn!(
                        queue_id = row,
                        attempt = late.attempt,
                        error = format!("{error:#}"),
                        "the result of a try could not be written, nor its last {} log lines: {}",
                        late.lines.len(),
                        end_word(&late.outcome.end)
                    );
                    self.hold_result(late);
                }
            }
        }
    }

    /// Keeps the end of a body of this node for another attempt to write it, without the lines,
    /// which may be the cause of the failure: without the end, a body whose row says that it runs
    /// here for another node would be started again. A body that never began is handed back with
    /// the next poll anyway.
    fn hold_result(&mut self, late: Late) {
        if late.by.is_none() && late.outcome.reach != AttemptStage::Before {
            self.reports.late.push(late.held_until(self.process.clock.uptime()));
        }
    }

    /// Whether results wait that have not failed to be written.
    pub(super) fn has_late(&self) -> bool {
        self.reports.late.iter().any(|late| !late.is_held())
    }
}
