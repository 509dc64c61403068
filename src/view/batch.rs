//! A batch with its jobs, as it is shown.

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

/// A batch as it is shown.
pub struct BatchView {
    /// Its row.
    pub batch: Batch,
    /// What it runs.
    pub snapshot: Snapshot,
    /// Its jobs, parallel to those of the snapshot.
    pub rows: Vec<QueueEntry>,
    /// What those that ended left, by the key of their rows.
    pub outputs: BTreeMap<i64, JobOutputs>,
    /// The process that dispatches it.
    pub owner: Option<store::node::NodeRow>,
    /// When it was read, by the database's clock.
    pub now: Millis,
}

impl BatchView {
    /// All of a batch.
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

    /// A batch without what its jobs left, which may be much.
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

    /// The batch and its jobs for programs, without a forecast.
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

    /// The job at a place. `dues` are those of this view.
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

/// A batch with its jobs. Moments are UTC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchDetail {
    /// Its key.
    pub batch_id: i64,
    /// Raised by each change of the batch or of its jobs.
    pub revision: i64,
    /// The process that runs it.
    pub node: Option<String>,
    /// Whether that process is alive.
    pub is_dispatched: bool,
    /// By then it has to have ended.
    pub deadline: Option<String>,
    /// Since when it is being removed because it is old.
    pub removing: Option<String>,
    /// Its number.
    pub batch_no: String,
    /// Its group.
    pub group: String,
    /// The type of its group: `monthly`, `daily`, …
    #[serde(rename = "type")]
    pub batch_type: Option<String>,
    /// `RUNNING`, `KILLING`, `SUCCESS`, `WARNING`, `FAILED` or `KILLED`.
    pub status: &'static str,
    /// Whether it starts nothing more.
    pub is_paused: bool,
    /// Its business date, `2024-07-31`.
    pub business_date: Option<String>,
    /// Whether its number does not follow the grammar of its type.
    pub free_text: bool,
    /// The parameters it was opened with.
    pub params: BTreeMap<String, String>,
    /// Who or what opened it.
    pub started_by: String,
    /// Why, where a reason was given.
    pub reason: Option<String>,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
    /// Its jobs.
    pub jobs: Vec<JobInBatch>,
    /// By when it should have ended.
    #[serde(flatten)]
    pub due: DueTime,
    /// When it is expected to end; left out where no forecast was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta: Option<BatchEta>,
}

/// A job of a batch. Moments are UTC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobInBatch {
    /// Its code.
    pub job_code: String,
    /// Its name.
    pub job_name: String,
    /// PROC, SQL, SCRIPT, NOOP, HTTP, …
    pub job_type: String,
    /// `WAITING`, `READY`, `RUNNING`, `SUCCESS`, `FAILED`, …
    pub status: &'static str,
    /// Retries of the present run.
    pub try_count: u32,
    /// Starts over all runs; the number of its last attempt.
    pub attempt: u32,
    /// Which run this is, counted from 1.
    pub run_no: u32,
    /// How many processes in a row died while it ran.
    pub crash_count: u32,
    /// Attempts in a row whose outcome is not known yet and is looked up.
    pub unresolved: u32,
    /// What its running attempt waits for before it begins.
    pub waits_on: Option<String>,
    /// Its key.
    pub queue_id: i64,
    /// What an operator wants in place of running it.
    pub run_mode: Option<&'static str>,
    /// The higher, the sooner it gets a slot.
    pub priority: i32,
    /// Start of its present or last attempt.
    pub start_time: Option<String>,
    /// End of its last attempt.
    pub end_time: Option<String>,
    /// It does not start before this moment.
    pub not_before: Option<String>,
    /// How long its last attempt took.
    pub duration_ms: Option<i64>,
    /// Why its last attempt did not succeed, or who changed its state by hand.
    pub error_message: Option<String>,
    /// What it left: values, result sets, checks. Null where that was not asked for.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub outputs: Option<JobOutputs>,
    /// By when it should have started and ended.
    #[serde(flatten)]
    pub due: JobDueTime,
}
