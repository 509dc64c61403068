//! Sub-batches that jobs open: requested by a body, opened and watched by the dispatcher of the
//! same process, so that parent and child end in one place.

use crate::domain::action::rerun::UnknownJobs;
use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{Batch, BatchError, BatchOrder};
use crate::domain::id::{BadName, BatchId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::engine::attempt::child_batches::ChildBatchRequest;
use crate::engine::attempt::run::{AttemptReport, What};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::opening::create_batch::PackedPlan;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::log::LoggedChange;
use crate::store::{self, Tx, batch};
use anyhow::{Context as _, Result};

impl QueueDispatcher {
    /// Handles the requests of running bodies about other batches. `true` when there was one.
    pub(super) async fn answer(&mut self) -> Result<bool> {
        let is_ask = |report: &mut AttemptReport| matches!(report.what, What::Asks(_));
        self.reports.asks.extend(self.reports.waiting.extract_if(.., is_ask));
        let mut any = false;
        while let Some(at) = self.next_ask() {
            any = true;
            let AttemptReport { queue_id, attempt, what, .. } = self.reports.asks.remove(at);
            let What::Asks(ask) = what else { continue };
            // After an error the request is repeated: the answer to a commit may be lost, and a
            // batch that was opened is then found by its parent.
            if let Err((ask, error)) = self.do_ask(queue_id, attempt, ask).await {
                self.reports.asks.push(AttemptReport {
                    queue_id,
                    attempt,
                    by: None,
                    what: What::Asks(ask),
                });
                return Err(error);
            }
        }
        Ok(any)
    }

    /// Nothing new is opened during a shutdown; the process that resumes the parent opens it.
    fn next_ask(&self) -> Option<usize> {
        let is_due = |report: &AttemptReport| match &report.what {
            What::Asks(ChildBatchRequest::Open { answer, .. }) => {
                !self.course.draining || answer.is_closed()
            }
            What::Asks(ChildBatchRequest::Kill { .. }) => true,
            What::Stopping | What::Ended(..) => false,
        };
        self.reports.asks.iter().position(is_due)
    }

    async fn do_ask(
        &mut self,
        parent: QueueId,
        attempt: u32,
        ask: ChildBatchRequest,
    ) -> Result<(), (ChildBatchRequest, anyhow::Error)> {
        let done = match &ask {
            ChildBatchRequest::Open { answer, .. } if answer.is_closed() => return Ok(()),
            ChildBatchRequest::Open { order, .. } => self.open_child(parent, attempt, order).await,
            ChildBatchRequest::Kill { id, reason } => {
                self.kill_child(*id, reason).await.map(|()| *id)
            }
        };
        let done = match done {
            Ok(id) => Ok(id),
            Err(error) if is_answer(&error) => Err(format!("{error:#}")),
            Err(error) => return Err((ask, error)),
        };
        let ChildBatchRequest::Open { answer, ended, .. } = ask else { return Ok(()) };
        if let Ok(id) = &done {
            match self.ends.results.get(id).filter(|_| !self.batches.active.contains_key(id)) {
                Some(result) => drop(ended.send(*result)),
                None => self.ends.waiters.entry(*id).or_default().push(ended),
            }
        }
        // The requester may have been stopped; then no one awaits the end of the batch.
        drop(answer.send(done));
        Ok(())
    }

    /// Opens the batch that a row requests from the present definition; a batch that this row
    /// opened before is continued.
    async fn open_child(
        &mut self,
        parent: QueueId,
        attempt: u32,
        order: &BatchOrder,
    ) -> Result<BatchId> {
        let now = self.process.clock.now();
        let group = order.group.as_ref().context("a sub-batch names its group")?;
        let mut tx = self.process.db.begin().await?;
        if let Some(there) = batch::find_batch(&mut tx, &order.batch_no, group).await? {
            let owner = batch::parent_of(&mut tx, there.batch_id).await?;
            if owner != Some(parent) {
                return Err(ChildError::Foreign(Box::new(there)).into());
            }
            let reported = last_report(&store::log::of_entry(&mut tx, parent).await?, attempt);
            tx.rollback().await?;
            return self.go_on(there, reported).await;
        }
        let opener = refuse_ring(&mut tx, parent, order).await?;
        let stores = &self.running.around.secret_stores;
        let defs = stores.add_access(store::job::definition(&mut tx).await?);
        // Free text allowed for the parent is allowed for its sub-batch too.
        let free_text = order.free_text || opener.is_free_text();
        let order = BatchOrder { free_text, ..order.clone() };
        let plans = PackedPlan::pack_plans(plan_opening(&defs, &order, now)?)?;
        let [plan] = &plans[..] else { anyhow::bail!("group {group} is there twice") };
        let by = format!("batch {} of group {}", opener.values.batch_no, opener.values.group);
        let id = self.write_plan(&mut tx, plan, &by, now).await?;
        batch::set_parent(&mut tx, id, parent).await?;
        tx.commit().await.context("open a sub-batch")?;
        self.load_batch(id).await?;
        Ok(id)
    }

    /// Continues a batch that this row opened at an earlier start. It is watched if it runs, taken
    /// over if its process died, and restarted from its failures if those were reported already; an
    /// end that was not reported is reported now.
    async fn go_on(&mut self, there: Batch, reported: Option<Millis>) -> Result<BatchId> {
        let id = there.batch_id;
        if self.batches.active.contains_key(&id) {
            return Ok(id);
        }
        let is_news = there.end_time.is_some_and(|end| reported.is_none_or(|at| end > at));
        if there.status.is_success() || (there.status.is_final() && is_news) {
            self.ends.results.insert(id, there.status);
            return Ok(id);
        }
        if there.owner.as_ref() == Some(self.process.node.id()) {
            self.load_batch(id).await?;
            return Ok(id);
        }
        self.resume(&there, UnknownJobs::Leave, None).await?;
        self.ends.results.remove(&id);
        Ok(id)
    }

    async fn kill_child(&mut self, id: BatchId, reason: &str) -> Result<()> {
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        batch::request_kill(&mut tx, id, reason, now).await?;
        tx.commit().await.context("stop a sub-batch")?;
        self.stop_batch(id, now).await
    }
}

/// Why a job cannot have the batch it requests.
#[derive(Debug, thiserror::Error)]
enum ChildError {
    #[error(
        "batch {} of group {} exists already ({}) and was not opened by this job, so its parameters \
         may be others; run it with another number, or let this job depend on that batch instead",
        .0.values.batch_no, .0.values.group, .0.status
    )]
    Foreign(Box<Batch>),
    #[error("batches would open one another in a ring: {0}; remove one of these sub-batches")]
    Ring(String),
}

/// Whether an error is an answer for the requester, and not a database error.
fn is_answer(error: &anyhow::Error) -> bool {
    error.is::<ChildError>()
        || error.is::<BatchError>()
        || error.is::<OpeningRefusal>()
        || error.is::<BadName>()
}

/// Refuses a group that is among the ancestors of this batch; returns the batch of the requester.
async fn refuse_ring(tx: &mut Tx, parent: QueueId, order: &BatchOrder) -> Result<Batch> {
    let opener = batch::of_entry(tx, parent).await?;
    let mut way = vec![opener.clone()];
    while let Some(above) = match way.last() {
        Some(last) => batch::parent_of(tx, last.batch_id).await?,
        None => None,
    } {
        way.push(batch::of_entry(tx, above).await?);
    }
    if way.iter().all(|b| Some(&b.values.group) != order.group.as_ref()) {
        return Ok(opener);
    }
    let group = order.group.as_ref().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> = way
        .iter()
        .rev()
        .map(|b| format!("{} {}", b.values.group, b.values.batch_no))
        .chain([format!("{group} {}", order.batch_no)])
        .collect();
    Err(ChildError::Ring(words.join(" -> ")).into())
}

/// When an earlier start of a row last reported the end of its batch: any end of an attempt except
/// a dead worker, which is not charged.
fn last_report(changes: &[LoggedChange], attempt: u32) -> Option<Millis> {
    let mut tries = 0;
    let mut reported = None;
    for change in changes.iter().filter(|c| c.log.attempt < attempt) {
        let charged = change.log.try_count > tries;
        tries = change.log.try_count;
        let is_end = match change.log.status {
            QueueStatus::RetryWait => charged,
            QueueStatus::Running | QueueStatus::Killing | QueueStatus::Pending => false,
            status => status.is_final(),
        };
        if is_end {
            reported = Some(change.at);
        }
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log::ExecutionLog;

    #[test]
    fn a_dead_worker_reported_nothing() {
        let change = |at, status, try_count, attempt| LoggedChange {
            at: Millis(at),
            log: ExecutionLog {
                queue_id: QueueId(1),
                status,
                start_time: None,
                end_time: None,
                error_message: None,
                notified: false,
                try_count,
                attempt,
                owner: None,
            },
        };
        use QueueStatus as S;
        let orphan = [change(1, S::Running, 0, 1), change(2, S::RetryWait, 0, 1)];
        assert_eq!(last_report(&orphan, 2), None);
        let retried = [change(1, S::Running, 0, 1), change(2, S::RetryWait, 1, 1)];
        assert_eq!(last_report(&retried, 2), Some(Millis(2)));
        let rerun = [
            change(1, S::Running, 0, 1),
            change(2, S::Failed, 1, 1),
            change(3, S::Pending, 0, 1),
            change(4, S::Running, 0, 2),
            change(5, S::RetryWait, 0, 2),
            change(6, S::Running, 0, 3),
        ];
        assert_eq!(last_report(&rerun, 3), Some(Millis(2)));
        assert_eq!(last_report(&rerun[..1], 1), None);
    }
}
