//! Batches that jobs open: asked for by a body, opened and watched by the dispatcher of the same
//! process, so that parent and child end in one place.

use crate::domain::batch::{Batch, BatchError, BatchOrder, BatchStatus};
use crate::domain::id::{BadName, BatchId, QueueId};
use crate::domain::open_check::plan_opening;
use crate::domain::queue::QueueStatus;
use crate::domain::rerun::UnknownJobs;
use crate::domain::time::Millis;
use crate::engine::attempt::run::{Report, Surroundings, What};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::open::Refused;
use crate::engine::opening::create_batch::PackedPlan;
use crate::handler::{BatchEnd, Batches};
use crate::store::log::LoggedChange;
use crate::store::{self, Db, Tx, batch, queue};
use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// What a body wishes of another batch.
#[derive(Debug)]
pub(in crate::engine) enum Ask {
    /// To have it, and to hear of its end.
    Open {
        order: BatchOrder,
        answer: oneshot::Sender<Result<BatchId, String>>,
        ended: oneshot::Sender<BatchStatus>,
    },
    /// To have it stopped.
    Kill { id: BatchId, reason: String },
}

/// The door to other batches that one try is given.
pub(in crate::engine) struct Children {
    reports: mpsc::UnboundedSender<Report>,
    db: Db,
    queue_id: QueueId,
    attempt: u32,
    ended: Mutex<Option<oneshot::Receiver<BatchStatus>>>,
}

/// Between two tries to read how a batch ended while the database is away.
const AGAIN: Duration = Duration::from_secs(1);

const GONE: &str = "the dispatcher of this process has ended";

impl Children {
    pub(in crate::engine) fn new(
        around: &Arc<Surroundings>,
        queue_id: QueueId,
        attempt: u32,
    ) -> Self {
        let (reports, db) = (around.reports.clone(), around.db.clone());
        Self { reports, db, queue_id, attempt, ended: Mutex::new(None) }
    }

    fn ask(&self, ask: Ask) {
        let what = What::Asks(ask);
        // Without a dispatcher there is nobody to hear the outcome either.
        let _ = self.reports.send(Report {
            queue_id: self.queue_id,
            attempt: self.attempt,
            by: None,
            what,
        });
    }

    async fn read(&self, id: BatchId, status: BatchStatus) -> Result<BatchEnd> {
        let mut tx = self.db.read().await?;
        let counts = batch::counts(&mut tx, id).await?;
        let rows = queue::of_batch(&mut tx, id).await?;
        let bad = rows.iter().filter(|r| r.status.blocks_children());
        // What never started says less than what failed.
        let mut failed: Vec<(bool, String)> = bad
            .map(|r| {
                let never = r.status == QueueStatus::UpstreamFailed;
                (never, format!("{} ({})", r.job_code, r.status))
            })
            .collect();
        failed.sort_by_key(|(never, _)| *never);
        let failed = failed.into_iter().map(|(_, words)| words).collect();
        Ok(BatchEnd { status, counts, failed })
    }
}

impl Batches for Children {
    fn open(&self, order: BatchOrder) -> BoxFuture<'_, Result<BatchId, String>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let (ended, end) = oneshot::channel();
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
            self.ask(Ask::Open { order, answer, ended });
            answered.await.unwrap_or_else(|_| Err(GONE.to_owned()))
        })
    }

    fn ended(&self, id: BatchId) -> BoxFuture<'_, Result<BatchEnd, String>> {
        Box::pin(async move {
            // Taken back out when this future is dropped, so that it can be asked again.
            let mut end = Lent::of(&self.ended).ok_or_else(|| GONE.to_owned())?;
            let status = end.wait().await.ok_or(
                "its batch was taken over by another process, which goes on with it; look how it \
                 ended, then start this job over",
            )?;
            loop {
                match self.read(id, status).await {
                    Ok(end) => return Ok(end),
                    Err(error) if store::is_transient(&error) => tokio::time::sleep(AGAIN).await,
                    Err(error) => return Err(format!("cannot read how it ended: {error:#}")),
                }
            }
        })
    }

    fn kill(&self, id: BatchId, reason: String) {
        self.ask(Ask::Kill { id, reason });
    }
}

/// A receiver on loan: it goes back when whoever waits for it is dropped.
struct Lent<'a> {
    home: &'a Mutex<Option<oneshot::Receiver<BatchStatus>>>,
    receiver: Option<oneshot::Receiver<BatchStatus>>,
}

impl<'a> Lent<'a> {
    fn of(home: &'a Mutex<Option<oneshot::Receiver<BatchStatus>>>) -> Option<Self> {
        let receiver = home.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Self { home, receiver: Some(receiver) })
    }

    async fn wait(&mut self) -> Option<BatchStatus> {
        let status = self.receiver.as_mut()?.await;
        self.receiver = None;
        status.ok()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.receiver.take();
    }
}

impl QueueDispatcher {
    /// Does what running bodies wish of other batches. `true` when there was something to do.
    pub(in crate::engine) async fn answer(&mut self) -> Result<bool> {
        let is_ask = |report: &mut Report| matches!(report.what, What::Asks(_));
        self.asks.extend(self.waiting.extract_if(.., is_ask));
        let mut any = false;
        while let Some(at) = self.next_ask() {
            any = true;
            let Report { queue_id, attempt, what, .. } = self.asks.remove(at);
            let What::Asks(ask) = what else { continue };
            // On an error it is asked again: the answer to a commit may be lost, and what was opened
            // is then found by its parent.
            if let Err((ask, error)) = self.do_ask(queue_id, attempt, ask).await {
                self.asks.push(Report { queue_id, attempt, by: None, what: What::Asks(ask) });
                return Err(error);
            }
        }
        Ok(any)
    }

    /// Nothing new is opened when the process is to end; whoever resumes the parent opens it then.
    fn next_ask(&self) -> Option<usize> {
        let is_due = |report: &Report| match &report.what {
            What::Asks(Ask::Open { answer, .. }) => !self.draining || answer.is_closed(),
            What::Asks(Ask::Kill { .. }) => true,
            What::Stopping | What::Ended(..) => false,
        };
        self.asks.iter().position(is_due)
    }

    async fn do_ask(
        &mut self,
        parent: QueueId,
        attempt: u32,
        ask: Ask,
    ) -> Result<(), (Ask, anyhow::Error)> {
        let done = match &ask {
            Ask::Open { answer, .. } if answer.is_closed() => return Ok(()),
            Ask::Open { order, .. } => self.open_child(parent, attempt, order).await,
            Ask::Kill { id, reason } => self.kill_child(*id, reason).await.map(|()| *id),
        };
        let done = match done {
            Ok(id) => Ok(id),
            Err(error) if is_answer(&error) => Err(format!("{error:#}")),
            Err(error) => return Err((ask, error)),
        };
        let Ask::Open { answer, ended, .. } = ask else { return Ok(()) };
        if let Ok(id) = &done {
            match self.results.get(id).filter(|_| !self.active.contains_key(id)) {
                Some(result) => drop(ended.send(*result)),
                None => self.waiters.entry(*id).or_default().push(ended),
            }
        }
        // Whoever asked may have been stopped; the batch then has no one to hear of its end.
        drop(answer.send(done));
        Ok(())
    }

    /// Opens the batch that a row asks for, from what is defined now; one that this row opened before
    /// is gone on with.
    async fn open_child(
        &mut self,
        parent: QueueId,
        attempt: u32,
        order: &BatchOrder,
    ) -> Result<BatchId> {
        let now = self.clock.now();
        let group = order.group.as_ref().context("a sub-batch names its group")?;
        let mut tx = self.db.begin().await?;
        if let Some(there) = batch::find(&mut tx, &order.batch_no, group).await? {
            let owner = batch::parent_of(&mut tx, there.batch_id).await?;
            if owner != Some(parent) {
                return Err(ChildError::Foreign(Box::new(there)).into());
            }
            let reported = last_report(&store::log::of_entry(&mut tx, parent).await?, attempt);
            tx.rollback().await?;
            return self.go_on(there, reported).await;
        }
        let opener = refuse_ring(&mut tx, parent, order).await?;
        let stores = &self.around.secret_stores;
        let defs = stores.add_access(store::job::definition(&mut tx).await?);
        // Whoever opened the parent as free text meant what it opens too.
        let free_text = order.free_text || opener.is_free_text();
        let order = BatchOrder { free_text, ..order.clone() };
        let plans = PackedPlan::all(plan_opening(&defs, &order, now)?)?;
        let [plan] = &plans[..] else { anyhow::bail!("group {group} is there twice") };
        let by = format!("batch {} of group {}", opener.values.batch_no, opener.values.group);
        let id = self.write_plan(&mut tx, plan, &by, now).await?;
        batch::set_parent(&mut tx, id, parent).await?;
        tx.commit().await.context("open a sub-batch")?;
        self.load(id).await?;
        Ok(id)
    }

    /// A batch that this row opened at an earlier start. It is watched if it runs, taken over if its
    /// process died, and started over from its failures if those were reported already; an end that
    /// nobody heard of is reported now.
    async fn go_on(&mut self, there: Batch, reported: Option<Millis>) -> Result<BatchId> {
        let id = there.batch_id;
        if self.active.contains_key(&id) {
            return Ok(id);
        }
        let is_news = there.end_time.is_some_and(|end| reported.is_none_or(|at| end > at));
        if there.status.is_success() || (there.status.is_final() && is_news) {
            self.results.insert(id, there.status);
            return Ok(id);
        }
        if there.owner.as_ref() == Some(self.node.id()) {
            self.load(id).await?;
            return Ok(id);
        }
        self.resume(&there, UnknownJobs::Leave, None).await?;
        self.results.remove(&id);
        Ok(id)
    }

    async fn kill_child(&mut self, id: BatchId, reason: &str) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        batch::request_kill(&mut tx, id, reason, now).await?;
        tx.commit().await.context("stop a sub-batch")?;
        self.stop_batch(id, now).await
    }
}

/// Why a job cannot have the batch it asks for.
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

/// Whether an error is an answer to whoever asked, and not a trouble of the database.
fn is_answer(error: &anyhow::Error) -> bool {
    error.is::<ChildError>()
        || error.is::<BatchError>()
        || error.is::<Refused>()
        || error.is::<BadName>()
}

/// Refuses a group that is among those whose batches led here; gives the batch that asks.
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

/// When an earlier start of a row last told how its batch ended: any end of a try but that of a worker
/// that died, which charges no try.
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
