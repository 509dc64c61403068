//! Settles attempts in memory: judges the outcome, records it, notifies. No I/O.

use crate::domain::dag::Node;
use crate::domain::dispatch::settlement::{RetryContext, Settlement, settle, stopped};
use crate::domain::job::job_key::JobKey;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, LargeValues};
use crate::domain::job::queue::{QueueEvent, QueueStatus};
use crate::domain::job::retry::jitter_seed;
use crate::domain::notice::{About, JobEnd};
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::attempt::record::{columns_of, state_of};
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::stop::stops_the_rest;
use crate::engine::dispatch::writes::{Changes, JobNotices};
use crate::engine::opening::large_values::kept_outputs;
use crate::store::breach::Breach;
use crate::store::log::ReportedChange;
use crate::store::queue::SettledRow;

impl Active {
    /// Settles an ended attempt. `false` when the row is in another attempt, so that the result is
    /// late and changes nothing.
    pub(super) fn settle_attempt(
        &mut self,
        node: Node,
        attempt: u32,
        outcome: &AttemptOutcome,
        changes: &mut Changes,
        now: Millis,
    ) -> bool {
        self.awaited.remove(&node);
        let row = &self.rows[node.index()];
        let runs = matches!(row.status, QueueStatus::Running | QueueStatus::Killing);
        if row.attempt == attempt && outcome.is_recorded {
            self.take_recorded(node, outcome, changes, now);
            return true;
        }
        if !runs || row.attempt != attempt {
            return false;
        }
        self.mark_violation(node, outcome, changes, now);
        let wanted_dead = row.is_wanted_dead();
        let who_and_why = row.error_message.clone().filter(|_| wanted_dead);
        let this = RetryContext {
            failed_before: row.try_count,
            roll: jitter_seed(row.queue_id.0, row.attempt),
            retries: self.retries(row.start_time),
            unresolved: row.unresolved,
        };
        let mut settlement = settle(self.job_at(node), this, outcome, now);
        // A job that is to be stopped is not retried because it failed just before.
        if wanted_dead || self.killing {
            settlement = stopped(settlement, this, &outcome.end);
        }
        // A stop that raced with another ending: the row was never KILLING.
        if settlement.event == QueueEvent::Kill && row.status == QueueStatus::Running {
            self.begin_stop(node, changes, now);
        }
        if let (QueueEvent::Kill | QueueEvent::LoseTrack, Some(words)) =
            (settlement.event, who_and_why)
        {
            let how = settlement.message.unwrap_or_default();
            let message = storable(format!("{words}; {how}").as_bytes(), MESSAGE_MAX);
            settlement.message = Some(message);
        }
        if outcome.end != AttemptEnd::Returned {
            self.rows[node.index()].crash_count = 0;
            // Reports of executors are now in the row.
            let is_remote = self.job_at(node).executor.is_some();
            changes.remote.extend(is_remote.then_some(self.rows[node.index()].queue_id.0));
        }
        self.record_end(node, &settlement, Some(outcome), changes, now);
        true
    }

    /// Waits for reports of bodies here that may have ended their rows themselves; the batch is not
    /// closed before, because closing forgets which lines and slots belong to them.
    pub(super) fn await_reports(&mut self) {
        let ended = |node: &&Node| self.rows[node.index()].status.is_final();
        self.awaited = self.stops.keys().filter(ended).copied().collect();
    }

    /// A body has written its end itself, so row and log are up to date; memory follows. If the row
    /// was read again since, memory is up to date too, and only the lines are missing.
    fn take_recorded(
        &mut self,
        node: Node,
        outcome: &AttemptOutcome,
        changes: &mut Changes,
        now: Millis,
    ) {
        let row = &mut self.rows[node.index()];
        if matches!(row.status, QueueStatus::Running | QueueStatus::Killing) {
            (row.not_before, row.end_time) = (None, Some(now));
            (row.error_message, _) = columns_of(outcome);
            (row.crash_count, row.unresolved, row.waits_on) = (0, 0, None);
            self.keep_outputs(node, outcome);
            self.unwatch(node, now);
            let to = state_of(outcome);
            self.set_status(node, to, changes, now);
            if to == QueueStatus::Warning {
                self.notify_owners(node, to, &[], changes, now);
            }
            self.tell_mended(node, to, changes, now);
        }
        self.note_end(node, changes, now);
        changes.batches.insert(self.batch.batch_id, self.batch.revision);
        changes.news.push(self.job_event(node, now));
    }

    /// Keeps a job's outputs, if another job of the batch may refer to them.
    fn keep_outputs(&mut self, node: Node, outcome: &AttemptOutcome) {
        let code = &self.rows[node.index()].job_code;
        if self.wanted.contains(code) {
            let kept = kept_outputs(outcome, self.needed_values.get(code));
            self.outputs.insert(code.clone(), kept);
        }
    }

    /// A body that ended its transaction by itself: marks its job and notifies the owners.
    fn mark_violation(
        &self,
        node: Node,
        outcome: &AttemptOutcome,
        changes: &mut Changes,
        now: Millis,
    ) {
        let Some(said) = &outcome.breach else { return };
        let (row, job) = (self.row_at(node), self.job_at(node));
        let notices = self.about().caught(job, row.attempt, said);
        if !notices.is_empty() {
            let id = self.batch.batch_id;
            changes.notices.push(JobNotices::plain(id, Some(row.queue_id), notices));
        }
        changes.breaches.push(Breach {
            job: JobKey::of_definition(job),
            batch_no: self.batch.values.batch_no.clone(),
            queue_id: row.queue_id,
            attempt: row.attempt,
            said: storable(said.as_bytes(), MESSAGE_MAX),
            at: now,
        });
    }

    pub(super) fn record_end(
        &mut self,
        node: Node,
        settlement: &Settlement,
        outcome: Option<&AttemptOutcome>,
        changes: &mut Changes,
        now: Millis,
    ) {
        let from = self.rows[node.index()].status;
        let Ok(to) = from.after(settlement.event) else {
            tracing::error!(job.code = %self.rows[node.index()].job_code, %from, event = ?settlement.event,
                "an outcome that the state machine does not allow; the row is left as it is");
            return;
        };
        self.unwatch(node, now);
        let row = &mut self.rows[node.index()];
        (row.try_count, row.not_before) = (settlement.try_count, settlement.not_before);
        (row.error_message, row.end_time) = (settlement.message.clone(), Some(now));
        (row.unresolved, row.waits_on) = (settlement.unresolved, None);
        let row = &self.rows[node.index()];
        let with_outputs = outcome.filter(|outcome| !outcome.outputs.is_empty());
        changes.settled.push(SettledRow {
            queue_id: row.queue_id,
            attempt: row.attempt,
            owner: row.owner.clone(),
            from,
            to,
            try_count: settlement.try_count,
            not_before: settlement.not_before,
            error_message: settlement.message.clone(),
            outputs: with_outputs.and_then(|o| serde_json::to_string(&o.outputs).ok()),
            large_values: with_outputs.map(|o| o.large_values.clone()).unwrap_or_default(),
            crash_count: row.crash_count,
            unresolved: row.unresolved,
        });
        if let Some(outcome) = with_outputs {
            self.keep_outputs(node, outcome);
        }
        let mut blocked = self.set_status(node, to, changes, now);
        if stops_the_rest(to) {
            blocked.extend(self.stop_at_failure(node, changes, now));
        }
        // Retries and warnings are sent only to recipients who want them.
        let tells =
            settlement.tell_owners || matches!(to, QueueStatus::RetryWait | QueueStatus::Warning);
        if tells {
            self.notify_owners(node, to, &blocked, changes, now);
        }
        self.tell_mended(node, to, changes, now);
        self.log_change(node, changes, now);
        self.note_end(node, changes, now);
        if to == QueueStatus::RetryWait && !self.leave_if_stopped(node, changes, now) {
            self.ready_at(node, now);
        }
    }

    /// The batch that notifications are about.
    pub(super) fn about(&self) -> About<'_> {
        let owners = &self.snapshot.shared.owners;
        About { batch: &self.batch, group: &self.snapshot.group, owners }
    }

    /// A job has succeeded that had been started before: notifies the recipients of its failure.
    fn tell_mended(&self, node: Node, to: QueueStatus, changes: &mut Changes, now: Millis) {
        let row = self.row_at(node);
        if matches!(to, QueueStatus::Success | QueueStatus::Warning)
            && row.attempt > 1
            && let Some(told) = self.about().recovered(self.job_at(node), row.attempt, now)
        {
            changes.mended.push((self.batch.batch_id, Some(row.queue_id), told));
        }
    }

    pub(super) fn notify_owners(
        &self,
        node: Node,
        status: QueueStatus,
        blocked: &[String],
        changes: &mut Changes,
        now: Millis,
    ) {
        let row = &self.rows[node.index()];
        let end = JobEnd {
            status,
            attempt: row.attempt,
            started: row.start_time,
            ended: now,
            message: row.error_message.as_deref(),
            blocked,
        };
        let notices = self.about().ended(self.job_at(node), &end);
        if !notices.is_empty() {
            let change = ReportedChange { queue_id: row.queue_id, attempt: row.attempt, status };
            changes.notices.push(JobNotices {
                batch: self.batch.batch_id,
                queue_id: Some(row.queue_id),
                change: Some(change),
                notices,
            });
        }
    }

    /// Marks the row of a running body as being stopped.
    pub(super) fn begin_stop(&mut self, node: Node, changes: &mut Changes, now: Millis) {
        let row = &mut self.rows[node.index()];
        if row.status != QueueStatus::Running {
            return;
        }
        row.status = QueueStatus::Killing;
        changes.settled.push(SettledRow {
            queue_id: row.queue_id,
            attempt: row.attempt,
            owner: row.owner.clone(),
            from: QueueStatus::Running,
            to: QueueStatus::Killing,
            try_count: row.try_count,
            not_before: None,
            error_message: None,
            outputs: None,
            large_values: LargeValues::default(),
            crash_count: row.crash_count,
            unresolved: row.unresolved,
        });
        self.change(node, QueueStatus::Killing);
        self.log_change(node, changes, now);
    }
}
