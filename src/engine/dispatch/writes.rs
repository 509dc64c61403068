//! The changes of one tick: gathered from memory, written in one transaction.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::queue::{Acknowledgement, QueueStatus};
use crate::domain::notice::Notice;
use crate::domain::notice::notice_batch;
use crate::domain::time::Millis;
use crate::engine::cluster::registry::AttemptRunner;
use crate::engine::dispatch::long_running_alerts::LongRunningAlert;
use crate::engine::dispatch::traces::EndedAttempt;
use crate::engine::news::ProgressEvent;
use crate::store::breach::Breach;
use crate::store::hint::{self, HintTopic};
use crate::store::hosted::Untaken;
use crate::store::log::{NewLines, ReportedChange};
use crate::store::outbox::NotificationSubject;
use crate::store::queue::{Adopted, SettledRow};
use crate::store::{
    self, CountedStatement, Db, Tx, batch, breach, executor_run, hosted, outbox, queue,
};
use anyhow::Result;
use std::collections::{BTreeMap, HashSet};

/// Maximum number of rows of a hop that is sent as one statement.
const HOP_MOST: usize = 1_024;

/// Notifications about a batch, or about one of its jobs.
#[derive(Debug)]
pub(super) struct JobNotices {
    pub(super) batch: BatchId,
    pub(super) queue_id: Option<QueueId>,
    /// The change of status that they report, if any.
    pub(super) change: Option<ReportedChange>,
    pub(super) notices: Vec<Notice>,
}

impl JobNotices {
    /// Notifications that report no change of a job's status.
    pub(super) fn plain(batch: BatchId, queue_id: Option<QueueId>, notices: Vec<Notice>) -> Self {
        Self { batch, queue_id, change: None, notices }
    }
}

/// The changes of one tick, over all batches.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Rows of dead processes that this process has taken over, to be ended.
    pub(super) adopted: Vec<Adopted>,
    /// Attempts that ended or are being stopped.
    pub(super) settled: Vec<SettledRow>,
    /// Rows whose executor runs have ended and are settled with this.
    pub(super) remote: Vec<i64>,
    /// Rows that only change state, by (from, to).
    pub(super) moved: BTreeMap<(QueueStatus, QueueStatus), Vec<i64>>,
    /// Rows that start now, by their former state and their node.
    pub(super) claimed: BTreeMap<(QueueStatus, AttemptRunner), Vec<i64>>,
    /// Attempts that were given to another node, which has not taken them and will not.
    pub(super) withdrawn: Vec<Untaken>,
    /// Reports of other nodes that are settled with this.
    pub(super) reported: Vec<(QueueId, u32)>,
    /// One entry per change, in chronological order.
    pub(super) logs: Vec<store::log::ExecutionLog>,
    /// Jobs that were caught ending their transaction by themselves.
    pub(super) breaches: Vec<Breach>,
    /// Notifications to the owners.
    pub(super) notices: Vec<JobNotices>,
    /// Notifications to recipients of a failure that has been fixed.
    pub(super) mended: Vec<(BatchId, Option<QueueId>, notice_batch::RecoveryNotice)>,
    /// Last log lines of bodies that ended.
    pub(super) lines: Vec<NewLines>,
    /// Messages of rows that only change state.
    pub(super) said: BTreeMap<String, Vec<i64>>,
    /// Batches that are stopped, and why.
    pub(super) killing: Vec<(BatchId, String)>,
    /// Alerts about long-running and late jobs and batches.
    pub(super) told: Vec<LongRunningAlert>,
    /// Batches that end.
    pub(super) finished: Vec<(Batch, BatchStatus)>,
    /// Batches affected by these changes, with the revision that the changes are based on.
    pub(super) batches: BTreeMap<BatchId, i64>,
    /// Ended attempts, for their spans.
    pub(super) ended: Vec<EndedAttempt>,
    /// Progress events to publish after the commit.
    pub(super) news: Vec<ProgressEvent>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.settled.is_empty()
            && self.adopted.is_empty()
            && self.moved.is_empty()
            && self.claimed.is_empty()
            && self.finished.is_empty()
            && self.killing.is_empty()
            && self.told.is_empty()
            // A body that wrote its end itself leaves only events and lines.
            && self.news.is_empty()
    }

    /// Whether `write` would only check that the batches still belong to this process.
    pub(super) fn writes_nothing(&self) -> bool {
        // Field by field, so that one that is added is not forgotten.
        let Self {
            adopted,
            settled,
            remote,
            moved,
            claimed,
            withdrawn,
            reported,
            logs,
            breaches,
            notices,
            mended,
            lines,
            said,
            killing,
            finished,
            told: _,
            batches: _,
            ended: _,
            news: _,
        } = self;
        let rows = adopted.is_empty() && settled.is_empty() && remote.is_empty();
        let states = moved.is_empty() && claimed.is_empty() && withdrawn.is_empty();
        let records = reported.is_empty() && logs.is_empty() && lines.is_empty();
        let notices = breaches.is_empty() && notices.is_empty() && mended.is_empty();
        let batches = said.is_empty() && killing.is_empty() && finished.is_empty();
        rows && states && records && notices && batches
    }

    /// Whether there is anything that the single statement of a hop cannot write.
    fn is_more_than_a_hop(&self) -> bool {
        // Field by field, so that one that is added is not forgotten.
        let Self {
            adopted,
            settled,
            remote,
            moved: _,
            claimed,
            withdrawn,
            reported,
            logs: _,
            breaches,
            notices,
            mended,
            lines: _,
            said,
            killing,
            told,
            finished,
            batches: _,
            ended: _,
            news: _,
        } = self;
        let rows = adopted.is_empty() && withdrawn.is_empty() && remote.is_empty();
        let records = reported.is_empty() && breaches.is_empty() && said.is_empty();
        let notices = notices.is_empty() && mended.is_empty() && told.is_empty();
        let batches = killing.is_empty() && finished.is_empty();
        let is_plain = rows && records && notices && batches;
        !is_plain
            || settled.iter().any(|s| !s.large_values.unwritten().is_empty())
            || claimed.keys().any(|(_, runner)| *runner != AttemptRunner::Here)
    }

    /// All changes as statements that do not depend on each other, if there is no more than a hop
    /// has: attempts that ended, rows that move on, rows that start here, and no row twice.
    pub(super) fn single_statements(
        &self,
        owner: &NodeId,
        db: &Db,
        now: Millis,
    ) -> Option<Vec<CountedStatement>> {
        let settled = self.settled.iter().map(|settled| settled.queue_id.0);
        let moved = self.moved.values().chain(self.claimed.values()).flatten().copied();
        let (mut rows, mut count) = (HashSet::new(), 0);
        let is_twice = settled.chain(moved).any(|row| {
            count += 1;
            !rows.insert(row)
        });
        if self.is_more_than_a_hop() || is_twice || count == 0 || count > HOP_MOST {
            return None;
        }
        let mut all = batch::lock_statements(owner, &self.batches, db.dialect());
        all.extend(queue::settled_alike(&self.settled, now));
        all.extend(self.moved.iter().map(|((from, to), ids)| queue::moved(ids, *from, *to, now)));
        let given = |((from, _), ids): (&(QueueStatus, AttemptRunner), &Vec<i64>)| {
            queue::given(ids, *from, owner, Acknowledgement::Yes, now)
        };
        all.extend(self.claimed.iter().map(given));
        if !self.logs.is_empty() {
            all.push(store::log::appended(&self.logs, now));
        }
        if self.lines.iter().any(|(_, _, lines)| !lines.is_empty()) {
            all.push(store::log::lines(&self.lines));
        }
        Some(all)
    }

    /// Writes everything; the caller commits. In chronological order, because a row may take two
    /// steps in one tick (a failed attempt that starts again at once).
    pub(super) async fn write(&self, tx: &mut Tx, owner: &NodeId, now: Millis) -> Result<()> {
        if !self.batches.is_empty() {
            batch::hold_all(tx, owner, &self.batches).await?;
        }
        for adopted in &self.adopted {
            queue::adopt(tx, adopted, owner, now).await?;
        }
        for untaken in &self.withdrawn {
            hosted::withdraw(tx, untaken).await?;
        }
        queue::settle_all(tx, &self.settled, now).await?;
        executor_run::settled(tx, &self.remote, now).await?;
        for ((from, to), ids) in &self.moved {
            queue::transition(tx, ids, *from, *to, now).await?;
        }
        for (message, ids) in &self.said {
            queue::set_message(tx, ids, message).await?;
        }
        for (batch, reason) in &self.killing {
            batch::request_kill(tx, *batch, reason, now).await?;
        }
        if self.claimed.keys().any(|(_, runner)| matches!(runner, AttemptRunner::There(_))) {
            hint::send_hint(tx, HintTopic::Work).await?;
        }
        for ((from, runner), ids) in &self.claimed {
            let (node, taken) = match runner {
                AttemptRunner::Here => (owner, Acknowledgement::Yes),
                AttemptRunner::There(node) => (node, Acknowledgement::NotYet),
            };
            queue::give_to_node(tx, ids, *from, node, taken, now).await?;
        }
        for (queue_id, attempt) in &self.reported {
            hosted::remove(tx, *queue_id, *attempt).await?;
        }
        store::log::append(tx, &self.logs, now).await?;
        store::log::append_lines_of(tx, &self.lines).await?;
        for breach in &self.breaches {
            breach::mark_job(tx, breach).await?;
        }
        for JobNotices { batch, queue_id, change, notices } in &self.notices {
            let log_id = match change {
                Some(change) => store::log::last_of(tx, *change).await?,
                None => None,
            };
            let subject = NotificationSubject { batch: Some(*batch), queue_id: *queue_id, log_id };
            outbox::enqueue_about(tx, subject, notices, now).await?;
        }
        for (batch, queue_id, letter) in &self.mended {
            let told = outbox::told_of_failure(tx, *batch, *queue_id).await?;
            outbox::enqueue(tx, *batch, *queue_id, &letter.address_to(told), now).await?;
        }
        if !self.finished.is_empty() {
            batch::finish_all(tx, &self.finished, owner, now).await?;
            let ids: Vec<BatchId> = self.finished.iter().map(|(batch, _)| batch.batch_id).collect();
            hosted::remove_all(tx, &ids).await?;
        }
        Ok(())
    }
}
