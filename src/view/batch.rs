//! A batch with its jobs, as it is shown.

use crate::app::App;
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::id::BatchId;
use crate::domain::job::outcome::Outputs;
use crate::domain::job::queue::{QueueEntry, RunMode};
use crate::domain::time::Millis;
use crate::store;
use crate::view::due::Dues;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A batch as it is shown.
pub struct View {
    /// Its row.
    pub batch: Batch,
    /// What it runs.
    pub snapshot: Snapshot,
    /// Its jobs, parallel to those of the snapshot.
    pub rows: Vec<QueueEntry>,
    /// What those that ended left, by the key of their rows.
    pub outputs: BTreeMap<i64, Outputs>,
    /// The process that dispatches it.
    pub owner: Option<store::node::Node>,
    /// When it was read, by the database's clock.
    pub now: Millis,
}

impl View {
    /// All of a batch.
    pub async fn of(app: &App, id: BatchId) -> Result<Self> {
        let mut view = Self::without_outputs(app, id).await?;
        let over = view.rows.iter().filter(|r| r.status.is_final());
        let over: Vec<_> = over.map(|r| r.queue_id).collect();
        let mut tx = app.db.read().await?;
        for (row, text) in store::queue::outputs(&mut tx, &over).await? {
            view.outputs.insert(row.0, serde_json::from_str(&text)?);
        }
        Ok(view)
    }

    /// A batch without what its jobs left, which may be much.
    pub async fn without_outputs(app: &App, id: BatchId) -> Result<Self> {
        let now = app.server_now().await?;
        let mut tx = app.db.read().await?;
        let batch = store::batch::get(&mut tx, id).await?;
        let snapshot = store::batch::snapshot(&mut tx, id).await?;
        let rows = store::queue::of_batch(&mut tx, id).await?;
        let owner = match &batch.owner {
            Some(owner) => store::node::find(&mut tx, owner).await?,
            None => None,
        };
        Ok(Self { batch, snapshot, rows, outputs: BTreeMap::new(), owner, now })
    }

    /// Whether a living process dispatches it.
    pub fn is_dispatched(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.lease_until > self.now)
    }

    /// The batch and its jobs for scripts and front ends.
    pub fn document(&self) -> Value {
        let batch = &self.batch;
        let dues = Dues::of_view(self);
        let jobs: Vec<Value> = (0..self.rows.len().min(self.snapshot.jobs.len()))
            .map(|at| {
                let mut document = self.job_document(at);
                dues.jobs[at].put(&mut document);
                document
            })
            .collect();
        let mut document = json!({
            "batch_id": batch.batch_id.0, "revision": batch.revision,
            "node": batch.owner.as_ref().map(|owner| &owner.0), "is_dispatched": self.is_dispatched(),
            "deadline": batch.deadline.map(|t| t.to_string()),
            "removing": batch.removing.map(|t| t.to_string()),
            "batch_no": batch.values.batch_no, "group": batch.values.group, "type": batch.batch_type,
            "status": batch.status.as_str(), "is_paused": batch.is_paused,
            "business_date": batch.values.business_date,
            "free_text": batch.is_free_text(),
            "params": batch.values.params, "started_by": batch.started_by, "reason": batch.reason,
            "create_time": batch.create_time.to_string(),
            "end_time": batch.end_time.map(|t| t.to_string()),
            "jobs": jobs,
        });
        dues.batch.put_end(&mut document);
        document
    }

    /// The job at a place, without the times at which it is due.
    pub fn job_document(&self, at: usize) -> Value {
        let (row, job) = (&self.rows[at], &self.snapshot.jobs[at]);
        json!({
            "job_code": row.job_code, "job_name": job.name, "job_type": job.job_type,
            "status": row.status, "try_count": row.try_count, "attempt": row.attempt,
            "run_no": row.run_no, "crash_count": row.crash_count,
            "unresolved": row.unresolved, "waits_on": row.waits_on,
            "queue_id": row.queue_id, "run_mode": row.run_mode.map(RunMode::as_str),
            "priority": row.priority.unwrap_or(job.priority),
            "start_time": row.start_time.map(|t| t.to_string()),
            "end_time": row.end_time.map(|t| t.to_string()),
            "not_before": row.not_before.map(|t| t.to_string()),
            "duration_ms": row.start_time.zip(row.end_time).map(|(s, e)| e.since(s)),
            "error_message": row.error_message,
            "outputs": self.outputs.get(&row.queue_id.0),
        })
    }
}
