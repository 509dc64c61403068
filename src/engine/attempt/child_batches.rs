//! Sub-batches requested by a job body. The request goes to the dispatcher of the same process as a
//! report, and the dispatcher sends the answer back.

use crate::domain::batch::{BatchOrder, BatchStatus};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::engine::attempt::run::{AttemptReport, Surroundings, What};
use crate::handler::{ChildBatchEnd, ChildBatches};
use crate::store::{self, Db, batch, queue};
use anyhow::Result;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A request that a body makes about another batch.
#[derive(Debug)]
pub(in crate::engine) enum ChildBatchRequest {
    /// Open the batch and report its end.
    Open {
        order: BatchOrder,
        answer: oneshot::Sender<Result<BatchId, String>>,
        ended: oneshot::Sender<BatchStatus>,
    },
    /// Stop the batch.
    Kill { id: BatchId, reason: String },
}

/// The access to other batches that one attempt is given.
pub(super) struct AttemptChildBatches {
    reports: mpsc::UnboundedSender<AttemptReport>,
    db: Db,
    queue_id: QueueId,
    attempt: u32,
    ended: Mutex<Option<oneshot::Receiver<BatchStatus>>>,
}

/// Pause between two reads of a batch's result while the database is unavailable.
const AGAIN: Duration = Duration::from_secs(1);

const GONE: &str = "the dispatcher of this process has ended";

impl AttemptChildBatches {
    pub(in crate::engine) fn new(
        around: &Arc<Surroundings>,
        queue_id: QueueId,
        attempt: u32,
    ) -> Self {
        let (reports, db) = (around.reports.clone(), around.db.clone());
        Self { reports, db, queue_id, attempt, ended: Mutex::new(None) }
    }

    fn send_request(&self, ask: ChildBatchRequest) {
        let what = What::Asks(ask);
        // Without a dispatcher no one would receive the outcome either.
        let _ = self.reports.send(AttemptReport {
            queue_id: self.queue_id,
            attempt: self.attempt,
            by: None,
            what,
        });
    }

    async fn read_end(&self, id: BatchId, status: BatchStatus) -> Result<ChildBatchEnd> {
        let mut tx = self.db.begin_read().await?;
        let counts = batch::counts(&mut tx, id).await?;
        let rows = queue::of_batch(&mut tx, id).await?;
        let bad = rows.iter().filter(|r| r.status.blocks_children());
        // A job that never started explains less than a job that failed.
        let mut failed: Vec<(bool, String)> = bad
            .map(|r| {
                let never = r.status == QueueStatus::UpstreamFailed;
                (never, format!("{} ({})", r.job_code, r.status))
            })
            .collect();
        failed.sort_by_key(|(never, _)| *never);
        let failed = failed.into_iter().map(|(_, words)| words).collect();
        Ok(ChildBatchEnd { status, counts, failed })
    }
}

impl ChildBatches for AttemptChildBatches {
    fn open_batch(&self, order: BatchOrder) -> BoxFuture<'_, Result<BatchId, String>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let (ended, end) = oneshot::channel();
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
            self.send_request(ChildBatchRequest::Open { order, answer, ended });
            answered.await.unwrap_or_else(|_| Err(GONE.to_owned()))
        })
    }

    fn ended(&self, id: BatchId) -> BoxFuture<'_, Result<ChildBatchEnd, String>> {
        Box::pin(async move {
            // The receiver is put back when this future is dropped, so that the caller can wait
            // again.
            let mut end =
                BorrowedReceiver::take_receiver(&self.ended).ok_or_else(|| GONE.to_owned())?;
            let status = end.wait_for_end().await.ok_or(
                "its batch was taken over by another process, which goes on with it; look how it \
                 ended, then start this job over",
            )?;
            loop {
                match self.read_end(id, status).await {
                    Ok(end) => return Ok(end),
                    Err(error) if store::is_transient(&error) => tokio::time::sleep(AGAIN).await,
                    Err(error) => return Err(format!("cannot read how it ended: {error:#}")),
                }
            }
        })
    }

    fn kill_batch(&self, id: BatchId, reason: String) {
        self.send_request(ChildBatchRequest::Kill { id, reason });
    }
}

/// A borrowed receiver: dropping the borrower puts it back.
struct BorrowedReceiver<'a> {
    home: &'a Mutex<Option<oneshot::Receiver<BatchStatus>>>,
    receiver: Option<oneshot::Receiver<BatchStatus>>,
}

impl<'a> BorrowedReceiver<'a> {
    fn take_receiver(home: &'a Mutex<Option<oneshot::Receiver<BatchStatus>>>) -> Option<Self> {
        let receiver = home.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Self { home, receiver: Some(receiver) })
    }

    async fn wait_for_end(&mut self) -> Option<BatchStatus> {
        let status = self.receiver.as_mut()?.await;
        self.receiver = None;
        status.ok()
    }
}

impl Drop for BorrowedReceiver<'_> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.receiver.take();
    }
}
