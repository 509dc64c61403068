//! Backfills and their progress.

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

/// A backfill for display.
pub struct BackfillView {
    pub row: Backfill,
    /// Its batches, in order.
    pub batches: Vec<BackfillBatchRow>,
    /// The process that runs it.
    pub owner: Option<store::node::NodeRow>,
    pub now: Millis,
}

impl BackfillView {
    /// Reads a backfill.
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

    /// Whether a living process runs it.
    pub fn is_alive(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.lease_until > self.now)
    }

    /// Number of final batches, and number of batches.
    pub fn count_final(&self) -> (usize, usize) {
        let done = self.batches.iter().filter(|b| b.entry.status.is_final()).count();
        (done, self.batches.len())
    }

    /// Duration of one of its batches in milliseconds.
    pub fn time_taken(&self, batch: &ShownBatch) -> i64 {
        batch.end_time.unwrap_or(self.now).since(batch.create_time)
    }

    /// The document.
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

/// A backfill in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillSummary {
    /// The number of the backfill.
    pub backfill_id: i64,
    /// The group whose batches it runs.
    pub group: String,
    /// The range as the user wrote it: `202401..202406`.
    pub range: String,
    /// The state.
    pub status: &'static str,
    /// Maximum number of batches open at once.
    pub parallel: u32,
    /// The order of opening; null for the order of the range.
    pub order: Option<RangeOrder>,
    /// Which batches are run.
    pub only: BackfillSelection,
    /// What to do after a failure.
    pub on_failure: BackfillFailurePolicy,
    /// Parameters of each batch, which take precedence over the group's.
    pub params: BTreeMap<String, String>,
    /// Who started it.
    pub started_by: String,
    /// The reason given.
    pub reason: Option<String>,
    /// When it was started, UTC.
    pub create_time: String,
    /// When it ended, UTC.
    pub end_time: Option<String>,
    /// Number of final batches.
    pub done: u64,
    /// Number of batches.
    pub total: u64,
    /// Number of batches by their state in the backfill.
    pub counts: BTreeMap<&'static str, u64>,
}

/// A backfill with its batches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillDetail {
    #[serde(flatten)]
    summary: BackfillSummary,
    /// The living process that runs it.
    owner: Option<ProcessAddress>,
    /// Its batches, in order.
    batches: Vec<BackfillBatch>,
}

/// Host and process id of a process.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProcessAddress {
    /// The host.
    host: String,
    /// The process id.
    pid: i64,
}

/// A batch of a backfill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillBatch {
    /// The batch number.
    batch_no: String,
    /// The state in the backfill.
    status: &'static str,
    /// Why it was not run.
    message: Option<String>,
    #[serde(flatten)]
    opened: Option<BackfillBatchFacts>,
}

/// Facts about a batch that a backfill has opened, or found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackfillBatchFacts {
    /// The state of the batch.
    batch_status: &'static str,
    /// When it was opened, UTC.
    create_time: String,
    /// When it ended, UTC.
    end_time: Option<String>,
    /// Duration so far in milliseconds.
    duration_ms: i64,
    /// Number of final jobs.
    jobs_done: u64,
    /// Number of jobs.
    jobs: u64,
    /// Failed jobs.
    failed: Vec<FailedJob>,
}

/// A failed job.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedJob {
    /// The job code.
    job_code: String,
    /// The state.
    status: &'static str,
}

/// Number of final jobs of a batch, and number of jobs.
pub fn done_of(jobs: &BTreeMap<QueueStatus, u64>) -> (u64, u64) {
    let done = jobs.iter().filter(|(status, _)| status.is_final()).map(|(_, n)| n).sum();
    (done, jobs.values().sum())
}

impl BackfillSummary {
    /// The document of a backfill, with its batches counted by state.
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
