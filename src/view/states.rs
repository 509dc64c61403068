//! The states of a batch's jobs, with which front ends update a drawn graph.

use crate::app::App;
use crate::domain::id::BatchId;
use crate::domain::job::queue::QueueEntry;
use crate::domain::time::Millis;
use crate::store;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// Number of changes read before all rows of the batch are read instead.
const MOST: i64 = 20_000;
/// Number of keys that are read again: a lower key may be committed after a higher one.
const AGAIN: i64 = 256;

/// The states of jobs of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchJobStates {
    /// Send this as `since` the next time.
    pub at: i64,
    /// Whether all jobs are included; else those that may have changed since.
    pub is_all: bool,
    /// The batch.
    pub batch: BatchStateSummary,
    /// The jobs.
    pub jobs: Vec<JobStateSummary>,
}

/// The state of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchStateSummary {
    /// RUNNING, KILLING, SUCCESS, WARNING, FAILED or KILLED.
    pub status: String,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Number of changes by operators; when this grows, its definition may have changed.
    pub revision: i64,
    /// When it ended.
    pub end_time: Option<String>,
}

/// The state of a job.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobStateSummary {
    /// The job code.
    pub job_code: String,
    /// The state.
    pub status: String,
    /// For SKIPPED: `operator`, or `branch` when its branch was not taken.
    pub skip_kind: Option<String>,
    /// Start of the present or last attempt.
    pub start: Option<String>,
    /// End of the last attempt.
    pub end: Option<String>,
    /// The attempt number.
    pub attempt: u32,
    /// The earliest start time.
    pub not_before: Option<String>,
    /// The run mode set by an operator.
    pub run_mode: Option<String>,
}

impl BatchJobStates {
    /// All states of a batch, or those changed since an earlier answer with this `at`.
    pub async fn read_states(app: &App, id: BatchId, since: Option<i64>) -> Result<Self> {
        let mut tx = app.db.begin_read().await?;
        // First, so that what is written meanwhile is found the next time.
        let at = store::changed::last_key(&mut tx).await?;
        let is_near = |since: &i64| (0..=at).contains(since) && at - since <= MOST;
        let since = since.filter(is_near);
        let batch = store::batch::get(&mut tx, id).await?;
        let rows = match since {
            Some(since) => store::changed::changed_rows(&mut tx, id, since - AGAIN).await?,
            None => store::queue::of_batch(&mut tx, id).await?,
        };
        let batch = BatchStateSummary {
            status: batch.status.as_str().to_owned(),
            is_paused: batch.is_paused,
            revision: batch.revision,
            end_time: batch.end_time.map(|t| t.to_string()),
        };
        let jobs = rows.iter().map(JobStateSummary::from).collect();
        Ok(Self { at, is_all: since.is_none(), batch, jobs })
    }
}

impl From<&QueueEntry> for JobStateSummary {
    fn from(row: &QueueEntry) -> Self {
        let words = |at: Option<Millis>| at.map(|at| at.to_string());
        Self {
            job_code: row.job_code.to_string(),
            status: row.status.as_str().to_owned(),
            skip_kind: row.status.skip_kind().map(str::to_owned),
            start: words(row.start_time),
            end: words(row.end_time),
            attempt: row.attempt,
            not_before: words(row.not_before),
            run_mode: row.run_mode.map(|mode| mode.as_str().to_owned()),
        }
    }
}
