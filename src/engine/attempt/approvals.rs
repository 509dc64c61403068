//! Approval requests of APPROVAL jobs: an attempt writes the request with its notifications and
//! waits for the decision. One query per second covers all approvals that this process waits for.

use crate::domain::access::approval::{ApprovalDecision, ApprovalId, ApprovalRule, ApprovalStatus};
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::JobDef;
use crate::domain::notice::About;
use crate::engine::attempt::claim_check::LostRow;
use crate::engine::attempt::run::{AttemptOrder, Surroundings};
use crate::engine::clock::Clock;
use crate::engine::db_retry::answered_at_last;
use crate::handler::NOT_OURS;
use crate::handler::approval::{Approvals, AskedApproval};
use crate::store::approval::{Approval, NewApproval};
use crate::store::outbox::{self, NotificationSubject};
use crate::store::{Db, approval};
use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Interval between polls for approval decisions.
const POLL: Duration = Duration::from_secs(1);

/// Polls for the decisions that attempts of this process wait for: one query per second for all of
/// them, and none while nothing is pending.
#[derive(Clone)]
pub(in crate::engine) struct ApprovalPoll(Arc<PollState>);

struct PollState {
    db: Db,
    waiting: Mutex<PendingApproval>,
}

#[derive(Default)]
struct PendingApproval {
    ended: HashMap<ApprovalId, oneshot::Sender<()>>,
    is_polled: bool,
}

impl ApprovalPoll {
    pub(in crate::engine) fn new(db: Db) -> Self {
        Self(Arc::new(PollState { db, waiting: Mutex::default() }))
    }

    /// Returns when the approval is no longer pending, or at once when this process has stopped
    /// polling.
    async fn ended(&self, id: ApprovalId) {
        let (sender, receiver) = oneshot::channel();
        let begins = {
            let mut waiting = self.0.waiting();
            waiting.ended.insert(id, sender);
            !std::mem::replace(&mut waiting.is_polled, true)
        };
        if begins {
            tokio::spawn(self.0.clone().poll());
        }
        let _polled = receiver.await;
    }
}

impl PollState {
    fn waiting(&self) -> std::sync::MutexGuard<'_, PendingApproval> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn poll(self: Arc<Self>) {
        loop {
            let ids: Vec<ApprovalId> = {
                let mut waiting = self.waiting();
                waiting.ended.retain(|_, sender| !sender.is_closed());
                waiting.is_polled = !waiting.ended.is_empty();
                waiting.ended.keys().copied().collect()
            };
            if ids.is_empty() {
                return;
            }
            match self.find_decided(&ids).await {
                Ok(ended) => {
                    let mut waiting = self.waiting();
                    ended.iter().for_each(|id| drop(waiting.ended.remove(id)));
                }
                Err(error) => {
                    tracing::debug!(error = format!("{error:#}"), "cannot look for decisions");
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn find_decided(&self, ids: &[ApprovalId]) -> Result<Vec<ApprovalId>> {
        let mut tx = self.db.begin_read().await?;
        approval::ended(&mut tx, ids).await
    }
}

/// The approvals of one attempt.
pub(super) struct AttemptApprovals {
    db: Db,
    clock: Clock,
    poll: ApprovalPoll,
    queue_id: QueueId,
    attempt: u32,
    owner: NodeId,
    lost: LostRow,
    job: JobDef,
    batch: Arc<Batch>,
    snapshot: Arc<Snapshot>,
}

impl AttemptApprovals {
    pub(in crate::engine) fn new(
        around: &Surroundings,
        job: &AttemptOrder,
        snapshot: &Arc<Snapshot>,
    ) -> Self {
        Self {
            db: around.db.clone(),
            clock: around.clock.clone(),
            poll: around.approvals.clone(),
            queue_id: job.queue_id,
            attempt: job.attempt,
            owner: around.owner.clone(),
            lost: job.lost.clone(),
            job: job.def.clone(),
            batch: job.batch.clone(),
            snapshot: snapshot.clone(),
        }
    }

    /// Writes the approval request and its notifications in one transaction. Returns the approval
    /// and, if it is new, the number of people notified.
    async fn ask_once(&self, rule: &ApprovalRule) -> Result<Option<(Approval, Option<usize>)>> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let asking = approval::asking_try(&mut tx, self.queue_id, self.attempt, &self.owner);
        let Some(of) = asking.await? else {
            self.lost.mark_lost();
            return Ok(None);
        };
        if let Some(there) = approval::of_try(&mut tx, of).await? {
            tx.rollback().await?;
            return Ok(Some((there, None)));
        }
        let deadline = now.plus_ms(i64::from(self.job.timeout_sec) * 1_000);
        let values = &self.batch.values;
        let new = NewApproval {
            of,
            batch: (self.batch.batch_id, &values.batch_no),
            group: &self.job.group,
            job: &self.job.code,
            rule,
            deadline,
        };
        let id = approval::insert(&mut tx, &new, now).await?;
        let owners = &self.snapshot.shared.owners;
        let about = About { batch: &self.batch, group: &self.snapshot.group, owners };
        let notices = about.approval_wanted(&self.job, self.attempt, rule, deadline);
        let subject = NotificationSubject {
            batch: Some(self.batch.batch_id),
            queue_id: Some(self.queue_id),
            log_id: None,
        };
        outbox::enqueue_about(&mut tx, subject, &notices, now).await?;
        let made = approval::get(&mut tx, id).await?;
        tx.commit().await.context("ask for an approval")?;
        Ok(Some((made, Some(notices.len()))))
    }

    async fn decision(&self, id: ApprovalId) -> Result<ApprovalDecision> {
        let mut tx = self.db.begin_read().await?;
        Ok(approval::get(&mut tx, id).await?.decision)
    }

    async fn close_once(&self, id: ApprovalId, to: ApprovalStatus) -> Result<ApprovalDecision> {
        let mut tx = self.db.begin().await?;
        approval::close(&mut tx, id, to, self.clock.now()).await?;
        let after = approval::get(&mut tx, id).await?;
        tx.commit().await.context("end an approval")?;
        Ok(after.decision)
    }
}

impl Approvals for AttemptApprovals {
    fn request_approval<'a>(
        &'a self,
        rule: &'a ApprovalRule,
    ) -> BoxFuture<'a, Result<AskedApproval, String>> {
        Box::pin(async move {
            let asked = answered_at_last(|| self.ask_once(rule)).await;
            let asked = asked.map_err(|error| format!("cannot ask for the approval: {error:#}"))?;
            let (there, notified) =
                asked.ok_or_else(|| format!("{NOT_OURS}; nothing was asked"))?;
            let left = u64::try_from(there.deadline.since(self.clock.now())).unwrap_or(0);
            Ok(AskedApproval {
                id: there.id,
                deadline: there.deadline,
                left: Duration::from_millis(left),
                notified,
                decision: there.decision,
            })
        })
    }

    fn ended(&self, id: ApprovalId) -> BoxFuture<'_, Result<ApprovalDecision, String>> {
        Box::pin(async move {
            self.poll.ended(id).await;
            let decision = answered_at_last(|| self.decision(id)).await;
            decision.map_err(|error| format!("cannot read the decision: {error:#}"))
        })
    }

    fn close(
        &self,
        id: ApprovalId,
        to: ApprovalStatus,
    ) -> BoxFuture<'_, Result<ApprovalDecision, String>> {
        Box::pin(async move {
            let after = answered_at_last(|| self.close_once(id, to)).await;
            after.map_err(|error| format!("cannot end the approval: {error:#}"))
        })
    }
}
