//! Long-running alerts: notifies owners of a job past its `warn_after_sec` or its usual duration,
//! and of a batch past its group's limit. Uses timers instead of polling. No I/O.

use crate::domain::batch::BatchStatus;
use crate::domain::dag::Node;
use crate::domain::forecast::lateness::{Alarm, Foretold, slow_after};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::notice::Notice;
use crate::domain::notice::notice_batch::BatchEndFacts;
use crate::domain::notice::notice_late::{self, LateJob, keyed, running_long_key};
use crate::domain::time::{Millis, span_words};
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::writes::{Changes, JobNotices};
use std::collections::{BTreeMap, BTreeSet};

/// When owners are notified that something still runs.
#[derive(Clone, Debug, Default)]
pub(super) struct LongRunningWatch {
    jobs: BTreeSet<(Millis, Node)>,
    /// Kept until the commit of its notification, so that a failed tick sends it again.
    pub(super) batch: Option<Millis>,
}

/// A notification to owners, to be noted after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LongRunningAlert {
    /// An attempt runs long: its row, and the line for its log.
    Job(QueueId, String),
    /// A batch runs long.
    Batch(BatchId),
    /// A deadline of a batch was missed.
    Late(BatchId, Millis, Alarm),
    /// A batch will be late, and the forecasts reported with this one.
    Forecast(BatchId, Foretold),
}

impl LongRunningWatch {
    /// Nothing runs yet; `batch` is when owners are notified about the batch.
    pub(super) fn from_batch_limit(batch: Option<Millis>) -> Self {
        Self { batch, jobs: BTreeSet::new() }
    }
}

impl Active {
    /// Watches an attempt that has started, and whose owners were not notified yet.
    pub(super) fn watch(&mut self, node: Node) {
        if let Some(at) = self.warn_at(node) {
            self.watch.jobs.insert((at, node));
        }
    }

    /// Stops watching an attempt that has ended.
    pub(super) fn unwatch(&mut self, node: Node, now: Millis) {
        self.alarms.heard_end(now);
        if let Some(at) = self.warn_at(node) {
            self.watch.jobs.remove(&(at, node));
        }
    }

    /// When the owners are notified: after the fixed time or the unusual duration, whichever is
    /// first.
    fn warn_at(&self, node: Node) -> Option<Millis> {
        let job = self.job_at(node);
        let fixed = job.warn_after_sec.map(|sec| i64::from(sec) * 1_000);
        let after = fixed.into_iter().chain(self.slow_after(node)).min()?;
        Some(self.row_at(node).start_time?.plus_ms(after))
    }

    fn slow_after(&self, node: Node) -> Option<i64> {
        let job = self.job_at(node);
        slow_after(job, &self.snapshot.group, self.alarms.durations(&job.code))
    }

    fn long_notices(&self, node: Node, now: Millis) -> Vec<Notice> {
        let (row, def) = (self.row_at(node), self.job_at(node));
        let took = now.since(row.start_time.unwrap_or(now));
        let usual = self.alarms.durations(&def.code);
        if let Some(usual) = usual.filter(|_| self.slow_after(node).is_some_and(|ms| ms <= took)) {
            return notice_late::running_long_notices(
                self.told_of(now),
                LateJob { def, row },
                usual,
                took,
            );
        }
        let notices = self.about().running_long(def, row.attempt, took);
        keyed(notices, &running_long_key(row))
    }

    /// The next time at which `tell_long` has something to send.
    pub(super) fn next_long(&self) -> Option<Millis> {
        let job = self.watch.jobs.first().map(|(at, _)| *at);
        job.into_iter().chain(self.watch.batch).min()
    }

    /// Notifies subscribers of the end of the batch, and recipients of failures in it.
    pub(super) fn tell_end(&self, status: BatchStatus, changes: &mut Changes, now: Millis) {
        let mut counts: BTreeMap<QueueStatus, usize> = BTreeMap::new();
        let mut bad = Vec::new();
        for row in &self.rows {
            *counts.entry(row.status).or_default() += 1;
            if is_bad(row.status) {
                bad.push(format!("{} {}", row.job_code, row.status));
            }
        }
        let counts: Vec<_> = counts.into_iter().collect();
        let (about, id) = (self.about(), self.batch.batch_id);
        let end = BatchEndFacts { status, ended: now, counts: &counts, bad: &bad };
        let notices = about.batch_ended(&end);
        if !notices.is_empty() {
            changes.notices.push(JobNotices::plain(id, None, notices));
        }
        changes.mended.extend(about.batch_recovered(&end).map(|told| (id, None, told)));
    }

    /// Notifies owners of what runs long by now.
    pub(super) fn tell_long(&mut self, changes: &mut Changes, now: Millis) {
        let id = self.batch.batch_id;
        while let Some(&(at, node)) = self.watch.jobs.first().filter(|(at, _)| *at <= now) {
            self.watch.jobs.remove(&(at, node));
            let row = self.row_at(node);
            if row.status != QueueStatus::Running {
                continue;
            }
            let took = now.since(row.start_time.unwrap_or(now));
            let notices = self.long_notices(node, now);
            let told = match notices.len() {
                0 => "nobody is named to hear of it".to_owned(),
                1 => "told 1 address".to_owned(),
                many => format!("told {many} addresses"),
            };
            let said = format!("still runs after {}; {told}", span_words(took));
            changes.told.push(LongRunningAlert::Job(row.queue_id, said));
            if !notices.is_empty() {
                changes.notices.push(JobNotices::plain(id, Some(row.queue_id), notices));
            }
            changes.batches.insert(id, self.batch.revision);
        }
        if self.watch.batch.is_some_and(|at| at <= now) && !self.readiness.is_done() {
            let notices = self.about().batch_long();
            if !notices.is_empty() {
                changes.notices.push(JobNotices::plain(id, None, notices));
            }
            changes.told.push(LongRunningAlert::Batch(id));
            changes.batches.insert(id, self.batch.revision);
        }
    }
}

/// Whether a job with this result is listed in the notification of the batch's end.
fn is_bad(status: QueueStatus) -> bool {
    match status {
        QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Unknown => true,
        QueueStatus::Killed | QueueStatus::UpstreamFailed => true,
        QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => false,
        QueueStatus::Running | QueueStatus::RetryWait | QueueStatus::Killing => false,
        QueueStatus::Success | QueueStatus::Warning | QueueStatus::Forced => false,
        QueueStatus::Skipped | QueueStatus::NotTaken => false,
    }
}
