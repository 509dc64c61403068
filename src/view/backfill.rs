//! Backfills, and how far each is.

use crate::app::App;
use crate::domain::backfill::{BackfillFailurePolicy, BackfillSelection, EntryStatus, RangeOrder};
use crate::domain::id::BackfillId;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::engine::dispatch::backfill::NotBackfilled;
use crate::store;
use crate::store::backfill::{Backfill, BackfillBatchRow, ShownBatch};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A backfill as it is shown.
pub struct BackfillView {
    /// Its row.
    pub row: Backfill,
    /// Its batches, in their order.
    pub batches: Vec<BackfillBatchRow>,
    /// The process that has it.
    pub owner: Option<store::node::NodeRow>,
    /// The present moment.
    pub now: Millis,
}

impl BackfillView {
    /// Reads it.
    pub async fn read_view(app: &App, id: BackfillId) -> Result<Self> {
        let now = app.server_now().await?;
        let mut tx = app.db.begin_read().await?;
        let row = store::backfill::find_backfill(&mut tx, id)
            .await?
            .ok_or(NotBackfilled::NotThere(id))?;
        let batches = store::backfill::shown(&mut tx, id).await?;
        let owner = match &row.owner {
            Some(owner) => store::node::find_node(&mut tx, owner).await?,
            None => None,
        };
        Ok(Self { row, batches, owner, now })
    }

    /// Whether a living process works on it.
    pub fn is_alive(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.lease_until > self.now)
    }

    /// How many of its batches are final, of how many.
    pub fn count_final(&self) -> (usize, usize) {
        let done = self.batches.iter().filter(|b| b.entry.status.is_final()).count();
        (done, self.batches.len())
    }

    /// How long a batch of it has taken.
    pub fn time_taken(&self, batch: &ShownBatch) -> i64 {
        batch.end_time.unwrap_or(self.now).since(batch.create_time)
    }

    /// As a document.
    pub fn detail(&self) -> BackfillDetail {
        let mut counts: BTreeMap<EntryStatus, u64> = BTreeMap::new();
        self.batches.iter().for_each(|b| *counts.entry(b.entry.status).or_default() += 1);
        let alive = self.owner.as_ref().filter(|_| self.is_alive());
        let owner = alive.map(|o| ProcessAddress { host: o.host.clone(), pid: o.pid });
        let batches = self.batches.iter().map(|one| self.batch_detail(one)).collect();
        BackfillDetail { summary: BackfillSummary::from_row(&self.row, &counts), owner, batches }
    }

    fn batch_detail(&self, one: &BackfillBatchRow) -> BackfillBatch {
        let BackfillBatchRow { entry, batch } = one;
        let opened = batch.as_ref().map(|batch| {
            let (jobs_done, jobs) = done_of(&batch.jobs);
            let failed = batch.failed.iter().map(|(code, status)| FailedJob {
                job_code: code.to_string(),
                status: status.as_str(),
            });
            BackfillBatchFacts {
                batch_status: batch.status.as_str(),
                create_time: batch.create_time.to_string(),
                end_time: batch.end_time.map(|t| t.to_string()),
                duration_ms: self.time_taken(batch),
                jobs_done,
                jobs,
                failed: failed.collect(),
            }
        });
        BackfillBatch {
            batch_no: entry.batch_no.to_string(),
            status: entry.status.as_str(),
            message: entry.message.clone(),
            opened,
        }
    }
}

/// A backfill of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillSummary {
    /// Its number.
    pub backfill_id: i64,
    /// The group whose batches it opens.
    pub group: String,
    /// Their numbers, as they were written: `202401..202406`.
    pub range: String,
    /// How it stands.
    pub status: &'static str,
    /// Batches open at once, at most.
    pub parallel: u32,
    /// Which are opened first; null for the order in which the range names them.
    pub order: Option<RangeOrder>,
    /// Which are run.
    pub only: BackfillSelection,
    /// What a failure means for the rest.
    pub on_failure: BackfillFailurePolicy,
    /// Parameters of each batch, over the group's.
    pub params: BTreeMap<String, String>,
    /// Who started it.
    pub started_by: String,
    /// Why, as that person gave it.
    pub reason: Option<String>,
    /// When it was started, UTC.
    pub create_time: String,
    /// When it ended, UTC.
    pub end_time: Option<String>,
    /// Batches that are final.
    pub done: u64,
    /// Batches in all.
    pub total: u64,
    /// Batches by their state in the backfill.
    pub counts: BTreeMap<&'static str, u64>,
}

/// A backfill and its batches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillDetail {
    #[serde(flatten)]
    summary: BackfillSummary,
    /// The living process that works on it.
    owner: Option<ProcessAddress>,
    /// Its batches, in their order.
    batches: Vec<BackfillBatch>,
}

/// Where a process is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProcessAddress {
    /// Its host.
    host: String,
    /// Its number there.
    pid: i64,
}

/// A batch of a backfill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillBatch {
    /// Its number.
    batch_no: String,
    /// Its state in the backfill.
    status: &'static str,
    /// Why it was not run.
    message: Option<String>,
    #[serde(flatten)]
    opened: Option<BackfillBatchFacts>,
}

/// What is known of a batch that a backfill has opened, or found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillBatchFacts {
    /// Its own state.
    batch_status: &'static str,
    /// When it was opened, UTC.
    create_time: String,
    /// When it ended, UTC.
    end_time: Option<String>,
    /// How long it has taken so far, in milliseconds.
    duration_ms: i64,
    /// Jobs that are final.
    jobs_done: u64,
    /// Jobs in all.
    jobs: u64,
    /// Jobs that did not end well.
    failed: Vec<FailedJob>,
}

/// A job that did not end well.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedJob {
    /// Its code.
    job_code: String,
    /// Its state.
    status: &'static str,
}

/// How many jobs of a batch are final, of how many.
pub fn done_of(jobs: &BTreeMap<QueueStatus, u64>) -> (u64, u64) {
    let done = jobs.iter().filter(|(status, _)| status.is_final()).map(|(_, n)| n).sum();
    (done, jobs.values().sum())
}

impl BackfillSummary {
    /// A backfill, with its batches counted by their state.
    pub fn from_row(row: &Backfill, counts: &BTreeMap<EntryStatus, u64>) -> Self {
        let options = &row.options;
        Self {
            backfill_id: row.id.0,
            group: row.group.to_string(),
            range: row.range.clone(),
            status: row.status.as_str(),
            parallel: options.parallel,
            order: options.order,
            only: options.only,
            on_failure: options.on_failure,
            params: options.params.clone(),
            started_by: row.started_by.clone(),
            reason: row.reason.clone(),
            create_time: row.create_time.to_string(),
            end_time: row.end_time.map(|t| t.to_string()),
            done: counts.iter().filter(|(s, _)| s.is_final()).map(|(_, n)| n).sum(),
            total: counts.values().sum(),
            counts: counts.iter().map(|(s, n)| (s.as_str(), *n)).collect(),
        }
    }
}
