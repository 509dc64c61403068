//! A batch with its jobs, for display.

use crate::app::App;
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::id::BatchId;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::queue::{QueueEntry, RunMode};
use crate::domain::time::Millis;
use crate::store;
use crate::view::due::{DueTime, Dues, JobDueTime};
use crate::view::eta::BatchEta;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A batch for display.
pub struct BatchView {
    pub batch: Batch,
    /// The definition that it runs.
    pub snapshot: Snapshot,
    /// Its rows, parallel to the jobs of the snapshot.
    pub rows: Vec<QueueEntry>,
    /// The outputs of ended jobs, by the key of their rows.
    pub outputs: BTreeMap<i64, JobOutputs>,
    /// The process that dispatches it.
    pub owner: Option<store::node::NodeRow>,
    /// When it was read, by the database's clock.
    pub now: Millis,
}

impl BatchView {
    /// A complete batch.
    pub async fn read_view(app: &App, id: BatchId) -> Result<Self> {
        let mut view = Self::without_outputs(app, id).await?;
        let over = view.rows.iter().filter(|r| r.status.is_final());
        let over: Vec<_> = over.map(|r| r.queue_id).collect();
        let mut tx = app.db.begin_read().await?;
        for (row, text) in store::queue::outputs(&mut tx, &over).await? {
            view.outputs.insert(row.0, serde_json::from_str(&text)?);
        }
        Ok(view)
    }

    /// A batch without the outputs of its jobs, which may be large.
    pub async fn without_outputs(app: &App, id: BatchId) -> Result<Self> {
        let now = app.server_now().await?;
        let mut tx = app.db.begin_read().await?;
        let batch = store::batch::get(&mut tx, id).await?;
        let snapshot = store::batch::snapshot(&mut tx, id).await?;
        let rows = store::queue::of_batch(&mut tx, id).await?;
        let owner = match &batch.owner {
            Some(owner) => store::node::find_node(&mut tx, owner).await?,
            None => None,
        };
        Ok(Self { batch, snapshot, rows, outputs: BTreeMap::new(), owner, now })
    }

    /// Whether a living process dispatches it.
    pub fn is_dispatched(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.lease_until > self.now)
    }

    /// The document of the batch and its jobs, without a forecast.
    pub fn document(&self) -> BatchDetail {
        let batch = &self.batch;
        let dues = Dues::of_view(self);
        let jobs = (0..self.rows.len().min(self.snapshot.jobs.len()))
            .map(|at| self.job_document(at, &dues))
            .collect();
        BatchDetail {
            batch_id: batch.batch_id.0,
            revision: batch.revision,
            node: batch.owner.as_ref().map(|owner| owner.0.clone()),
            is_dispatched: self.is_dispatched(),
            deadline: batch.deadline.map(|t| t.to_string()),
            removing: batch.removing.map(|t| t.to_string()),
            batch_no: batch.values.batch_no.to_string(),
            group: batch.values.group.to_string(),
            batch_type: batch.batch_type.clone(),
            status: batch.status.as_str(),
            is_paused: batch.is_paused,
            business_date: batch.values.business_date.map(|day| day.to_string()),
            free_text: batch.is_free_text(),
            params: batch.values.params.clone(),
            started_by: batch.started_by.clone(),
            reason: batch.reason.clone(),
            create_time: batch.create_time.to_string(),
            end_time: batch.end_time.map(|t| t.to_string()),
            jobs,
            due: dues.batch.end_time(),
            eta: None,
        }
    }

    /// The document of one job. `dues` are those of this view.
    pub fn job_document(&self, at: usize, dues: &Dues) -> JobInBatch {
        let (row, job) = (&self.rows[at], &self.snapshot.jobs[at]);
        JobInBatch {
            job_code: row.job_code.to_string(),
            job_name: job.name.clone(),
            job_type: job.job_type.to_string(),
            status: row.status.as_str(),
            try_count: row.try_count,
            attempt: row.attempt,
            run_no: row.run_no,
            crash_count: row.crash_count,
            unresolved: row.unresolved,
            waits_on: row.waits_on.clone(),
            queue_id: row.queue_id.0,
            run_mode: row.run_mode.map(RunMode::as_str),
            priority: row.priority.unwrap_or(job.priority),
            start_time: row.start_time.map(|t| t.to_string()),
            end_time: row.end_time.map(|t| t.to_string()),
            not_before: row.not_before.map(|t| t.to_string()),
            duration_ms: row.start_time.zip(row.end_time).map(|(s, e)| e.since(s)),
            error_message: row.error_message.clone(),
            outputs: self.outputs.get(&row.queue_id.0).cloned(),
            due: dues.jobs[at].job_times(),
        }
    }
}

/// A batch with its jobs. Times are UTC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchDetail {
    /// The key of the batch.
    pub batch_id: i64,
    /// Incremented by each change of the batch or of its jobs.
    pub revision: i64,
    /// The process that owns it.
    pub node: Option<String>,
    /// Whether that process is alive.
    pub is_dispatched: bool,
    /// When it is stopped if it still runs.
    pub deadline: Option<String>,
    /// Since when retention has been removing it.
    pub removing: Option<String>,
    /// The batch number.
    pub batch_no: String,
    /// The group code.
    pub group: String,
    /// The type of its group: `monthly`, `daily`, …
    #[serde(rename = "type")]
    pub batch_type: Option<String>,
    /// `RUNNING`, `KILLING`, `SUCCESS`, `WARNING`, `FAILED` or `KILLED`.
    pub status: &'static str,
    /// Whether it is paused.
    pub is_paused: bool,
    /// The business date, `2024-07-31`.
    pub business_date: Option<String>,
    /// Whether its number does not fit the type of its group.
    pub free_text: bool,
    /// The parameters it was opened with.
    pub params: BTreeMap<String, String>,
    /// Who or what opened it.
    pub started_by: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
    /// The jobs.
    pub jobs: Vec<JobInBatch>,
    /// When it is due.
    #[serde(flatten)]
    pub due: DueTime,
    /// The forecast of its end; omitted where none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta: Option<BatchEta>,
}

/// A job of a batch. Times are UTC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobInBatch {
    /// The job code.
    pub job_code: String,
    /// The job name.
    pub job_name: String,
    /// PROC, SQL, SCRIPT, NOOP, HTTP, …
    pub job_type: String,
    /// `WAITING`, `READY`, `RUNNING`, `SUCCESS`, `FAILED`, …
    pub status: &'static str,
    /// Number of retries in the present run.
    pub try_count: u32,
    /// Number of starts over all runs, which is the number of the last attempt.
    pub attempt: u32,
    /// The number of the run, counted from 1.
    pub run_no: u32,
    /// Number of consecutive worker deaths while it ran.
    pub crash_count: u32,
    /// Number of consecutive attempts whose outcome is still unknown and will be looked up.
    pub unresolved: u32,
    /// What its running attempt waits for before it begins.
    pub waits_on: Option<String>,
    /// The key of its row.
    pub queue_id: i64,
    /// The run mode set by an operator.
    pub run_mode: Option<&'static str>,
    /// A higher priority gets a slot first.
    pub priority: i32,
    /// Start of the present or last attempt.
    pub start_time: Option<String>,
    /// End of the last attempt.
    pub end_time: Option<String>,
    /// The earliest start time.
    pub not_before: Option<String>,
    /// Duration of the last attempt in milliseconds.
    pub duration_ms: Option<i64>,
    /// Why the last attempt did not succeed, or who changed its state by hand.
    pub error_message: Option<String>,
    /// Its outputs: values, result sets, checks. Null where they were not requested.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub outputs: Option<JobOutputs>,
    /// When it is due to start and to end.
    #[serde(flatten)]
    pub due: JobDueTime,
}
