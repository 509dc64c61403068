//! How a batch stops before its jobs are done: by an operator, its deadline, or a failure that
//! stops the rest. No I/O.

use crate::domain::batch::BatchStatus;
use crate::domain::dag::Node;
use crate::domain::dispatch::readiness::Released;
use crate::domain::dispatch::settlement::Retries;
use crate::domain::job::GroupFailurePolicy;
use crate::domain::job::queue::{NOT_LOOKED_UP, QueueEvent, QueueStatus};
use crate::domain::time::Millis;
use crate::engine::attempt::run::request_stop;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::writes::{Changes, JobNotices};
use crate::handler::StopReason;

/// The failure at which a batch has stopped.
#[derive(Clone, Debug)]
pub(super) struct Stopped {
    at: Millis,
    /// `job A ended FAILED`
    why: String,
}

impl Active {
    /// An operator has requested a stop of the batch: kills waiting jobs now, and stops running
    /// ones.
    pub(super) fn kill_jobs(&mut self, changes: &mut Changes, now: Millis) {
        if !self.killing {
            self.killing = true;
            self.batch.status = BatchStatus::Killing;
            let running: Vec<Node> = self.running_nodes().collect();
            for node in running {
                self.begin_stop(node, changes, now);
            }
        }
        self.forget_waiting();
        for i in 0..self.rows.len() {
            let (node, from) = (Node(i as u32), self.rows[i].status);
            if self.rows[i].waits_unresolved() {
                self.lose_track(node, changes, now);
            } else if !matches!(from, QueueStatus::Running | QueueStatus::Killing)
                && let Ok(to) = from.after(QueueEvent::Kill)
            {
                self.change(node, to);
                self.move_row(node, from, to, changes, now);
            }
        }
    }

    /// Whether the batch is being stopped.
    pub(super) fn is_killing(&self) -> bool {
        self.killing
    }

    /// When the batch is stopped if it still runs.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.batch.deadline.filter(|_| !self.killing && !self.readiness.is_done())
    }

    /// Stops an overdue batch, as an operator would, and notifies its owners.
    pub(super) fn stop_overdue(&mut self, changes: &mut Changes, now: Millis) {
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        let limit = self.snapshot.group.batch_timeout_sec.unwrap_or_default();
        let reason = format!("ran past its {limit} s");
        let notices = self.about().batch_timeout(&reason);
        let id = self.batch.batch_id;
        if !notices.is_empty() {
            changes.notices.push(JobNotices::plain(id, None, notices));
        }
        self.batch.reason = Some(reason.clone());
        changes.killing.push((id, reason));
        changes.batches.insert(id, self.batch.revision);
        self.kill_jobs(changes, now);
    }

    /// Handles a job that has failed for good. In a group that stops at a failure, every job that
    /// has not started or waits for a retry no longer runs; returns the codes of those jobs.
    pub(super) fn stop_at_failure(
        &mut self,
        failed: Node,
        changes: &mut Changes,
        now: Millis,
    ) -> Vec<String> {
        if self.snapshot.group.on_failure == GroupFailurePolicy::GoOn || self.killing {
            return Vec::new();
        }
        let row = self.row_at(failed);
        self.stopped =
            Some(Stopped { at: now, why: format!("job {} ended {}", row.job_code, row.status) });
        self.forget_waiting();
        let waiting = (0..self.rows.len()).map(|i| Node(i as u32));
        let left: Vec<Node> = waiting.filter(|node| self.leave(*node, changes, now)).collect();
        left.into_iter().map(|node| self.job_at(node).code.to_string()).collect()
    }

    /// Leaves a waiting job as it is, because the batch has stopped at a failure.
    fn leave(&mut self, node: Node, changes: &mut Changes, now: Millis) -> bool {
        let row = &self.rows[node.index()];
        if self.stopped.is_some() && row.waits_unresolved() {
            let released = self.lose_track(node, changes, now);
            self.leave_with(released, changes, now);
            return true;
        }
        let runs = matches!(row.status, QueueStatus::Running | QueueStatus::Killing);
        let (Some(stopped), Ok(to), false) =
            (&self.stopped, row.status.after(QueueEvent::FailUpstream), runs)
        else {
            return false;
        };
        let mut said = format!("not started: {}, and its group stops at a failure", stopped.why);
        if let Some(last) = row.error_message.as_ref().filter(|_| row.attempt > 0) {
            said = format!(
                "not started again: {}, and its group stops at a failure; its last try: {last}",
                stopped.why
            );
        }
        let (from, id) = (row.status, row.queue_id);
        changes.said.entry(said.clone()).or_default().push(id.0);
        self.rows[node.index()].error_message = Some(said);
        let released = self.change(node, to);
        self.move_row(node, from, to, changes, now);
        self.leave_with(released, changes, now);
        true
    }

    /// Jobs downstream of a job that was left are given up with it, or would start now; none may.
    fn leave_with(&mut self, released: Released, changes: &mut Changes, now: Millis) {
        for (below, from, to) in released.left {
            self.move_row(below, from, to, changes, now);
        }
        for below in released.ready {
            self.leave(below, changes, now);
        }
    }

    /// A waiting job is stopped while the outcome of an earlier attempt is unknown: it cannot be
    /// reported as having had no effect.
    fn lose_track(&mut self, node: Node, changes: &mut Changes, now: Millis) -> Released {
        let (from, to) = (self.row_at(node).status, QueueStatus::Unknown);
        let row = &mut self.rows[node.index()];
        (row.status, row.error_message) = (to, Some(NOT_LOOKED_UP.to_owned()));
        let id = row.queue_id.0;
        changes.said.entry(NOT_LOOKED_UP.to_owned()).or_default().push(id);
        changes.moved.entry((from, to)).or_default().push(id);
        self.notify_owners(node, to, &[], changes, now);
        self.log_change(node, changes, now);
        self.change(node, to)
    }

    /// Whether an attempt that started at this time may be retried. A job that an operator started
    /// after the failure is retried normally.
    pub(super) fn retries(&self, started: Option<Millis>) -> Retries {
        match &self.stopped {
            Some(stopped) if started.is_none_or(|s| s <= stopped.at) => Retries::Stopped,
            Some(_) | None => Retries::AsDefined,
        }
    }

    /// Leaves a job whose worker died and which waits for a retry that a failure forbids.
    pub(super) fn leave_if_stopped(
        &mut self,
        node: Node,
        changes: &mut Changes,
        now: Millis,
    ) -> bool {
        self.retries(self.row_at(node).start_time) == Retries::Stopped
            && self.leave(node, changes, now)
    }

    /// Finds the failure at which the batch had stopped from its rows. Jobs that had not started
    /// are marked already, because that was written with the failure; what is needed is only that
    /// attempts from before it are not retried.
    pub(super) fn find_stop(&mut self) {
        if self.snapshot.group.on_failure == GroupFailurePolicy::GoOn {
            return;
        }
        let failures = self.rows.iter().filter(|r| stops_the_rest(r.status));
        let last = failures.max_by_key(|r| r.end_time);
        self.stopped = last.map(|row| Stopped {
            at: row.end_time.unwrap_or_default(),
            why: format!("job {} ended {}", row.job_code, row.status),
        });
    }

    /// Stops every running body whose row requests it; called after the commit of the request.
    pub(super) fn stop_bodies(&self) {
        let wanted =
            |node: Node| self.killing || self.rows[node.index()].status == QueueStatus::Killing;
        for (_, stop) in self.stops.iter().filter(|(node, _)| wanted(**node)) {
            request_stop(stop, StopReason::Killed);
        }
    }

    /// Stops every running body at once, because the batch belongs to another process, which may
    /// have started the same jobs. Except bodies whose locks that process waits for: they continue,
    /// and end when their rows name another owner.
    pub(super) fn stop_all(&self) {
        let may_go_on = |node: &Node| self.may_wait_for_lock(*node);
        for (_, stop) in self.stops.iter().filter(|(node, _)| !may_go_on(node)) {
            request_stop(stop, StopReason::Disowned);
        }
    }
}

/// Whether a job with this result stops the rest of a batch that stops at failures.
pub(super) fn stops_the_rest(status: QueueStatus) -> bool {
    match status {
        QueueStatus::Failed | QueueStatus::Timeout => true,
        QueueStatus::Unknown | QueueStatus::Killed => true,
        QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => false,
        QueueStatus::Running | QueueStatus::RetryWait | QueueStatus::Killing => false,
        QueueStatus::Success | QueueStatus::Warning | QueueStatus::Forced => false,
        QueueStatus::Skipped | QueueStatus::NotTaken | QueueStatus::UpstreamFailed => false,
    }
}
