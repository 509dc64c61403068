//! Checks whether rows still belong to this process, in one query for all bodies that begin at the
//! same moment.
//!
//! Every body checks its row once it has its session lock. Eight bodies that were claimed in one
//! commit used to send eight queries of three round trips each; checks that arrive while a query is
//! under way now share the next one.

use crate::domain::id::{NodeId, QueueId};
use crate::engine::attempt::claim_ack::ClaimAck;
use crate::engine::attempt::run::{AttemptOrder, Surroundings};
use crate::engine::attempt::start_gate::Gate;
use crate::engine::db_retry::answered;
use crate::handler::{Claim, StopReason, StoredApplication};
use crate::store::{Db, queue};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// The queue of claim checks; clones share it.
#[derive(Clone)]
pub(in crate::engine) struct Asker(Arc<ClaimCheckQueue>);

struct ClaimCheckQueue {
    db: Db,
    owner: NodeId,
    /// Checks that no query covers yet.
    waiting: Mutex<Vec<ClaimCheckRequest>>,
    /// The holder of this lock sends the query for all waiting checks.
    turn: tokio::sync::Mutex<()>,
}

struct ClaimCheckRequest {
    row: QueueId,
    attempt: u32,
    answer: oneshot::Sender<bool>,
}

/// Maximum number of rows in one query.
const MOST: usize = 512;

impl Asker {
    /// Checks rows of `owner`.
    pub(in crate::engine) fn new(db: Db, owner: NodeId) -> Self {
        let (waiting, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(ClaimCheckQueue { db, owner, waiting, turn }))
    }

    /// Whether the row is running in this attempt of this process. `None` means that the shared
    /// query failed: the caller then queries by itself and gets the error.
    async fn is_row_running(&self, row: QueueId, attempt: u32) -> Option<bool> {
        let (answer, mut answered) = oneshot::channel();
        let desk = &self.0;
        desk.waiting().push(ClaimCheckRequest { row, attempt, answer });
        loop {
            let _turn = desk.turn.lock().await;
            match answered.try_recv() {
                Ok(answer) => return Some(answer),
                // The caller that had taken over this check was cancelled in the middle.
                Err(oneshot::error::TryRecvError::Closed) => return None,
                Err(oneshot::error::TryRecvError::Empty) => desk.ask_for_all().await,
            }
        }
    }
}

impl ClaimCheckQueue {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<ClaimCheckRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_for_all(&self) {
        let asked: Vec<ClaimCheckRequest> = {
            let mut waiting = self.waiting();
            let most = waiting.len().min(MOST);
            waiting.drain(..most).collect()
        };
        let rows: Vec<QueueId> = asked.iter().map(|question| question.row).collect();
        match queue::ours_of(&self.db, &rows, &self.owner).await {
            // The receiver may be cancelled by now.
            Ok(ours) => asked.into_iter().for_each(|q| {
                let _ = q.answer.send(ours.get(&q.row) == Some(&q.attempt));
            }),
            Err(error) => {
                tracing::debug!("cannot ask for {} bodies at once: {error:#}", rows.len());
            }
        }
    }
}

/// Time that a stop may take from the row's KILLING state to the body.
const STOP_COMES: Duration = Duration::from_secs(2);

/// Set once the row of an attempt is found to belong to another start. Clones share the flag.
#[derive(Clone, Default)]
pub(in crate::engine) struct LostRow(Arc<AtomicBool>);

impl LostRow {
    /// Notes that the row belongs to another start.
    pub(super) fn mark_lost(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether `mark_lost` was called.
    pub(super) fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Checks in the database whether the row still belongs to this attempt.
pub(super) struct RowClaim {
    claimed: ClaimAck,
    gate: Arc<Gate>,
    lost: LostRow,
    stop: watch::Receiver<Option<StopReason>>,
    db: Db,
    asker: Asker,
    queue_id: QueueId,
    attempt: u32,
    owner: NodeId,
}

impl Claim for RowClaim {
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        Box::pin(self.is_still_ours(|| true))
    }

    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        Box::pin(self.is_still_ours(|| self.gate.try_pass()))
    }

    fn is_made(&self) -> bool {
        self.claimed.is_known()
    }

    fn waits_on(&self, what: Option<String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.claimed.is_committed().await {
                return;
            }
            if what.is_some() {
                self.gate.step_back();
            }
            if let Err(error) = self.write_waits_on(what.as_deref()).await {
                tracing::warn!(
                    queue_id = self.queue_id.0,
                    "cannot say what it waits for: {error:#}"
                );
            }
        })
    }

    fn store_application(&self, made: StoredApplication) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            let (mut tx, text) = (self.db.begin().await?, write_application(&made));
            queue::set_application(&mut tx, self.queue_id, self.attempt, &self.owner, &text)
                .await?;
            Ok(tx.commit().await?)
        })
    }

    fn stored_application(&self) -> BoxFuture<'_, anyhow::Result<Option<StoredApplication>>> {
        Box::pin(read_application(&self.db, self.queue_id))
    }
}

/// The application in the form of its column: key and id.
fn write_application(made: &StoredApplication) -> String {
    format!("{} {}", made.key, made.id)
}

/// Reads the application that an attempt of a row stored last.
pub(super) async fn read_application(
    db: &Db,
    id: QueueId,
) -> anyhow::Result<Option<StoredApplication>> {
    let mut tx = db.begin_read().await?;
    let text = queue::application(&mut tx, id).await?;
    let parts = text.as_deref().and_then(|text| text.split_once(' '));
    Ok(parts.map(|(key, id)| StoredApplication { key: key.to_owned(), id: id.to_owned() }))
}

impl RowClaim {
    /// The claim of an attempt.
    pub(in crate::engine) fn for_attempt(job: &AttemptOrder, around: &Surroundings) -> Self {
        Self {
            claimed: job.claimed.clone(),
            stop: job.stop.clone(),
            gate: job.gate.clone(),
            lost: job.lost.clone(),
            db: around.db.clone(),
            asker: around.asker.clone(),
            queue_id: job.queue_id,
            attempt: job.attempt,
            owner: around.owner.clone(),
        }
    }

    async fn is_still_ours(&self, may: impl Fn() -> bool + Send) -> anyhow::Result<bool> {
        // Before the commit the row would read as unowned.
        if !self.claimed.is_committed().await {
            return Ok(false);
        }
        tracing::trace!(target: "procession::moment", id = self.queue_id.0, "claimed");
        let ours = answered(&self.stop, || self.read_ours()).await? && may();
        if !ours {
            self.lost.mark_lost();
            let mut stop = self.stop.clone();
            let told = stop.wait_for(Option::is_some);
            let _in_time = tokio::time::timeout(STOP_COMES, told).await;
        }
        Ok(ours)
    }

    /// Shares a query with other checks; queries alone if the shared one failed.
    async fn read_ours(&self) -> anyhow::Result<bool> {
        if let Some(answer) = self.asker.is_row_running(self.queue_id, self.attempt).await {
            return Ok(answer);
        }
        let mut tx = self.db.begin_read().await?;
        queue::is_ours(&mut tx, self.queue_id, self.attempt, &self.owner).await
    }

    async fn write_waits_on(&self, what: Option<&str>) -> anyhow::Result<()> {
        let mut tx = self.db.begin().await?;
        queue::set_waits_on(&mut tx, self.queue_id, self.attempt, &self.owner, what).await?;
        Ok(tx.commit().await?)
    }
}
