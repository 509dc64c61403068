//! Results of a beat that no row took: kept as evidence after its commit, or put off while the database is away.

use crate::domain::job::outcome::AttemptStage;
use crate::engine::attempt::run::{AttemptReport, What};
use crate::engine::cluster::late_results::{Late, end_word, store_late_result};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::store;

impl QueueDispatcher {
    /// What has been reported so far is in the rows; what no row took is evidence.
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

    /// Keeps the late results of this beat as evidence. Not in the beat's own transaction: that
    /// belongs to batches of ours, and these may be anybody's. A database that is away is waited for.
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
                // The next one would wait as long for the same answer, and the beat with it.
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

    /// Keeps the end of a body of this node for another try, without the lines, which may be what cannot be
    /// written: where its row says that it runs here for another, it would be begun again. One that never
    /// began is handed back with the next look anyway.
    fn hold_result(&mut self, late: Late) {
        if late.by.is_none() && late.outcome.reach != AttemptStage::Before {
            self.reports.late.push(late.held_until(self.process.clock.uptime()));
        }
    }

    /// Whether results wait that nothing was wrong with.
    pub(super) fn has_late(&self) -> bool {
        self.reports.late.iter().any(|late| !late.is_held())
    }
}
