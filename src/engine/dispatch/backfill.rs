//! A backfill that this process runs: start, resume, stop.
//!
//! The dispatcher that runs the batches also opens them, so the limits of process, group and source
//! apply to all of them together. The state in memory is a copy of the rows.

mod advance;
mod stop_backfill;
mod survey;

pub use stop_backfill::stop_backfill;
pub use survey::{BackfillSurvey, survey, survey_of_nothing};

use crate::domain::backfill::{
    BackfillAction, BackfillEntry, BackfillNeed, BackfillOptions, BackfillStatus, BackfillStep,
    EntryStatus, again, decide,
};
use crate::domain::id::{BackfillId, BatchId, BatchNo, GroupCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::store::audit::{self, Operator};
use crate::store::backfill::{BackfillBatchState, NewBackfill};
use crate::store::{Tx, backfill, batch, node};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use survey::{found, order, weigh};
use tokio::sync::mpsc;

/// A request for a backfill.
#[derive(Clone, Debug)]
pub struct Request {
    /// The group whose batches are run.
    pub group: GroupCode,
    /// The range as the user wrote it.
    pub range: String,
    /// The batch numbers in the range.
    pub numbers: Vec<BatchNo>,
    pub options: BackfillOptions,
    pub by: Operator,
    pub reason: Option<String>,
}

/// A request to resume a backfill.
#[derive(Clone, Debug)]
pub struct Resumption {
    pub id: BackfillId,
    /// New maximum number of batches open at once; `None` keeps the old one.
    pub parallel: Option<u32>,
    pub by: Operator,
    pub reason: Option<String>,
}

/// Why a backfill is not started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum NotBackfilled {
    /// No backfill has this number.
    #[error("there is no backfill {0}; procession backfill list shows those there are")]
    NotThere(BackfillId),
    /// A living process runs it.
    #[error(
        "backfill {id} is in the hands of another process ({host}, pid {pid}), alive until at least \
         {until}; wait for it, or stop it with: procession backfill stop {id}"
    )]
    Owned {
        id: BackfillId,
        /// The host name of its process.
        host: String,
        /// The process id.
        pid: i64,
        /// When its lease expires unless renewed.
        until: Millis,
    },
    /// Another process came first.
    #[error("backfill {0} has just been taken by another process; let it do its work")]
    Hurried(BackfillId),
    /// Nothing is left to do.
    #[error("backfill {0} ended {1}; there is nothing left to do")]
    Ended(BackfillId, BackfillStatus),
}

/// Another process took the backfill over while this one was silent.
#[derive(Debug, thiserror::Error)]
#[error(
    "backfill {0} was taken over by another process, because this one was silent for longer than \
     its lease"
)]
pub struct BackfillTaken(BackfillId);

/// Event about a batch of a backfill, for progress displays. A lost event loses no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchNews {
    pub at: Millis,
    pub batch_no: BatchNo,
    pub status: EntryStatus,
    /// Number of jobs that have not ended when the batch is opened.
    pub jobs: u64,
    /// Duration in milliseconds, when the batch has ended.
    pub took_ms: Option<i64>,
    pub message: Option<String>,
    /// Number of batches of the backfill that are final.
    pub done: usize,
    /// Number of batches of the backfill.
    pub total: usize,
}

/// The course of a running backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackfillCourse {
    On,
    /// An operator has requested a stop.
    Stopping,
    /// Every open batch waits for a batch that did not succeed.
    Hopeless,
}

/// A backfill that this process runs.
pub(super) struct ActiveBackfill {
    id: BackfillId,
    group: GroupCode,
    options: BackfillOptions,
    by: String,
    defs: Definition,
    entries: Vec<BackfillEntry>,
    needs: Vec<Vec<BackfillNeed>>,
    /// The open batches, by their index in the range.
    open: BTreeMap<usize, BatchId>,
    /// Something has changed since the next steps were last computed.
    fresh: bool,
    /// A transaction failed, so memory may differ from the rows.
    stale: bool,
    course: BackfillCourse,
    news: Option<mpsc::UnboundedSender<BatchNews>>,
}

impl QueueDispatcher {
    /// Starts a backfill: inserts it with all its batches; the following ticks open them. Writes
    /// nothing when a living process owns one of the batches, or when a batch would wait forever.
    pub async fn start_backfill(
        &mut self,
        defs: &Definition,
        request: &Request,
        news: Option<mpsc::UnboundedSender<BatchNews>>,
    ) -> Result<BackfillId> {
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        let survey = survey(&mut tx, defs, request, now).await?;
        survey.refusal(&request.group)?;
        let entry = |step: &BackfillStep| BackfillEntry {
            batch_no: step.batch_no.clone(),
            status: if step.action.runs_batch() { EntryStatus::Pending } else { EntryStatus::Left },
            message: None,
        };
        let entries: Vec<BackfillEntry> = survey.steps.iter().map(entry).collect();
        let new = NewBackfill {
            group: &request.group,
            range: &request.range,
            options: &request.options,
            started_by: &request.by.actor,
            reason: request.reason.as_deref(),
        };
        let id = backfill::insert(&mut tx, &new, &entries, self.process.node.id(), now).await?;
        let detail = json!({"backfill": id.0, "range": request.range});
        let why = request.reason.as_deref();
        let act = audit_entry("backfill", &request.group, detail, why);
        audit::record(&mut tx, &request.by, &[act], now).await?;
        tx.commit().await.context("begin a backfill")?;
        self.backfill = Some(ActiveBackfill {
            id,
            group: request.group.clone(),
            options: request.options.clone(),
            by: request.by.actor.clone(),
            defs: defs.clone(),
            entries,
            needs: survey.needs,
            open: BTreeMap::new(),
            fresh: true,
            stale: false,
            course: BackfillCourse::On,
            news,
        });
        Ok(id)
    }

    /// Resumes a backfill that was stopped, that failed, or whose process died: batches that were
    /// left open or did not succeed run again. Refused when a living process runs the backfill.
    pub async fn resume_backfill(
        &mut self,
        defs: &Definition,
        asked: &Resumption,
        news: Option<mpsc::UnboundedSender<BatchNews>>,
    ) -> Result<()> {
        let (id, now) = (asked.id, self.process.clock.now());
        let mut tx = self.process.db.begin().await?;
        let there =
            backfill::find_backfill(&mut tx, id).await?.ok_or(NotBackfilled::NotThere(id))?;
        if let Some(owner) = &there.owner
            && let Some(holder) = node::find_node(&mut tx, owner).await?
            && holder.lease_until > now
        {
            let (host, pid, until) = (holder.host, holder.pid, holder.lease_until);
            return Err(NotBackfilled::Owned { id, host, pid, until }.into());
        }
        if there.status == BackfillStatus::Success {
            return Err(NotBackfilled::Ended(id, there.status).into());
        }
        let mut options = there.options.clone();
        options.parallel = asked.parallel.unwrap_or(options.parallel);
        if !backfill::take_over(&mut tx, &there, &options, self.process.node.id(), now).await? {
            return Err(NotBackfilled::Hurried(id).into());
        }
        let (entries, left_open) = self.begin_again(&mut tx, &there, now).await?;
        let standing = backfill::standing(&mut tx, &there.group).await?;
        let steps = steps(&entries, &left_open, &standing, &options, now);
        let needs = weigh(defs, &there.group, &steps, &options, now)??;
        let detail = json!({"backfill": id.0, "parallel": options.parallel});
        let act = audit_entry("backfill resume", &there.group, detail, asked.reason.as_deref());
        audit::record(&mut tx, &asked.by, &[act], now).await?;
        tx.commit().await.context("take the backfill over")?;
        self.backfill = Some(ActiveBackfill {
            id,
            group: there.group,
            options,
            by: there.started_by,
            defs: defs.clone(),
            entries,
            needs,
            open: BTreeMap::new(),
            fresh: true,
            stale: false,
            course: BackfillCourse::On,
            news,
        });
        Ok(())
    }

    /// The initial states of the batches of a resumed backfill. Batches that were left open run
    /// again in the order of the range like the others: taken over all at once they could fill the
    /// capacity that the batch they wait for needs. Also returns their indexes.
    async fn begin_again(
        &self,
        tx: &mut Tx,
        there: &backfill::Backfill,
        now: Millis,
    ) -> Result<(Vec<BackfillEntry>, HashSet<usize>)> {
        let mut entries = backfill::entries(tx, there.id).await?;
        let mut left_open = HashSet::new();
        for (place, entry) in entries.iter_mut().enumerate() {
            let from = entry.status;
            let to = match from {
                EntryStatus::Open => {
                    let no = &entry.batch_no;
                    let batch = batch::find_batch(tx, no, &there.group).await?;
                    let batch = batch.with_context(|| format!("batch {no} is gone"))?;
                    match again(EntryStatus::from_batch_status(batch.status)) {
                        EntryStatus::Open => {
                            left_open.insert(place);
                            EntryStatus::Pending
                        }
                        ended => ended,
                    }
                }
                other => again(other),
            };
            if to != from {
                backfill::set_entry_status(tx, there.id, place, from, to, None, now).await?;
                (entry.status, entry.message) = (to, None);
            }
        }
        Ok((entries, left_open))
    }
}

/// The audit entry of an action on a backfill of a group.
fn audit_entry(
    action: &str,
    group: &GroupCode,
    detail: Value,
    reason: Option<&str>,
) -> audit::AuditEntry {
    audit::AuditEntry {
        action: action.to_owned(),
        group: Some(group.clone()),
        batch: None,
        job: None,
        detail: Some(detail),
        reason: reason.map(str::to_owned),
    }
}

/// Converts the entries of a resumed backfill into steps.
fn steps(
    entries: &[BackfillEntry],
    left_open: &HashSet<usize>,
    standing: &HashMap<BatchNo, BackfillBatchState>,
    options: &BackfillOptions,
    now: Millis,
) -> Vec<BackfillStep> {
    let step = |(place, entry): (usize, &BackfillEntry)| {
        let found = found(standing.get(&entry.batch_no), now);
        let action = match entry.status {
            EntryStatus::Pending if left_open.contains(&place) => BackfillAction::GoOn,
            EntryStatus::Pending => decide(&found, options.only),
            _ => BackfillAction::Leave,
        };
        BackfillStep { batch_no: entry.batch_no.clone(), found, action }
    };
    entries.iter().enumerate().map(step).collect()
}
