//! How a batch stops before its jobs are done: an operator, its deadline, or a failure that stops
//! the rest. No I/O.

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
    /// An operator wants the batch stopped: what waits is killed now, what runs is told to stop.
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

    /// When the batch is stopped if it still runs then.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.batch.deadline.filter(|_| !self.killing && !self.readiness.is_done())
    }

    /// Stops a batch whose time is up, as an operator would, and tells its owners.
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

    /// A job has ended badly for good. In a group that stops at a failure everything that has not
    /// started, or waits for another try, does not run any more; gives the codes of those jobs.
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

    /// Leaves a job that waits as it is, because the batch has stopped at a failure.
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

    /// What hangs below a job that is left is given up with it, or would have its turn now; nothing
    /// has.
    fn leave_with(&mut self, released: Released, changes: &mut Changes, now: Millis) {
        for (below, from, to) in released.left {
            self.move_row(below, from, to, changes, now);
        }
        for below in released.ready {
            self.leave(below, changes, now);
        }
    }

    /// A job that waits is stopped while the outcome of an earlier try is open: nobody may say that it
    /// did nothing.
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

    /// Whether a try that started then may be followed by another. A job that an operator started
    /// after the failure goes its own way.
    pub(super) fn retries(&self, started: Option<Millis>) -> Retries {
        match &self.stopped {
            Some(stopped) if started.is_none_or(|s| s <= stopped.at) => Retries::Stopped,
            Some(_) | None => Retries::AsDefined,
        }
    }

    /// Leaves a job that waits for another try which a failure forbids: one whose worker died.
    pub(super) fn leave_if_stopped(
        &mut self,
        node: Node,
        changes: &mut Changes,
        now: Millis,
    ) -> bool {
        self.retries(self.row_at(node).start_time) == Retries::Stopped
            && self.leave(node, changes, now)
    }

    /// The failure at which the batch had stopped, from its rows. What had not started then says so
    /// already, because that was written with the failure; what is to be known is only that tries
    /// from before it are not made again.
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

    /// Tells every running body whose row says so to stop; called after the commit that says it.
    pub(super) fn stop_bodies(&self) {
        let wanted =
            |node: Node| self.killing || self.rows[node.index()].status == QueueStatus::Killing;
        for (_, stop) in self.stops.iter().filter(|(node, _)| wanted(**node)) {
            request_stop(stop, StopReason::Killed);
        }
    }

    /// Tells every running body to stop at once, because the batch is not ours any more: whoever has
    /// it may have started the same jobs. Not those whose locks that process waits for: they go on, and end when
    /// their rows say that they are another's.
    pub(super) fn stop_all(&self) {
        let may_go_on = |node: &Node| self.may_wait_for_lock(*node);
        for (_, stop) in self.stops.iter().filter(|(node, _)| !may_go_on(node)) {
            request_stop(stop, StopReason::Disowned);
        }
    }
}

/// Whether a job that ends so stops the rest of a batch that stops at failures.
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
