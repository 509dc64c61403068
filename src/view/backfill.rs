//! Backfills, and how far each is.

use crate::app::App;
use crate::domain::backfill::EntryStatus;
use crate::domain::id::BackfillId;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::engine::dispatch::backfill::NotBackfilled;
use crate::store;
use crate::store::backfill::{Backfill, BackfillBatchRow, ShownBatch};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A backfill as it is shown.
pub struct View {
    /// Its row.
    pub row: Backfill,
    /// Its batches, in their order.
    pub batches: Vec<BackfillBatchRow>,
    /// The process that has it.
    pub owner: Option<store::node::Node>,
    /// The present moment.
    pub now: Millis,
}

impl View {
    /// Reads it.
    pub async fn of(app: &App, id: BackfillId) -> Result<Self> {
        let now = app.server_now().await?;
        let mut tx = app.db.read().await?;
        let row = store::backfill::find(&mut tx, id).await?.ok_or(NotBackfilled::NotThere(id))?;
        let batches = store::backfill::shown(&mut tx, id).await?;
        let owner = match &row.owner {
            Some(owner) => store::node::find(&mut tx, owner).await?,
            None => None,
        };
        Ok(Self { row, batches, owner, now })
    }

    /// Whether a living process works on it.
    pub fn is_alive(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.lease_until > self.now)
    }

    /// How many of its batches are final, of how many.
    pub fn done(&self) -> (usize, usize) {
        let done = self.batches.iter().filter(|b| b.entry.status.is_final()).count();
        (done, self.batches.len())
    }

    /// How long a batch of it has taken.
    pub fn took(&self, batch: &ShownBatch) -> i64 {
        batch.end_time.unwrap_or(self.now).since(batch.create_time)
    }

    /// As a document.
    pub fn as_json(&self) -> Value {
        let mut counts: BTreeMap<EntryStatus, u64> = BTreeMap::new();
        self.batches.iter().for_each(|b| *counts.entry(b.entry.status).or_default() += 1);
        let mut document = row_as_json(&(self.row.clone(), counts));
        let alive = self.owner.as_ref().filter(|_| self.is_alive());
        document["owner"] = json!(alive.map(|o| json!({"host": o.host, "pid": o.pid})));
        document["batches"] = self.batches.iter().map(|one| self.batch_as_json(one)).collect();
        document
    }

    fn batch_as_json(&self, one: &BackfillBatchRow) -> Value {
        let BackfillBatchRow { entry, batch } = one;
        let mut document = json!({
            "batch_no": entry.batch_no, "status": entry.status.as_str(), "message": entry.message,
        });
        if let Some(batch) = batch {
            let (done, total) = done_of(&batch.jobs);
            let failed = batch.failed.iter();
            document["batch_status"] = json!(batch.status.as_str());
            document["create_time"] = json!(batch.create_time.to_string());
            document["end_time"] = json!(batch.end_time.map(|t| t.to_string()));
            document["duration_ms"] = json!(self.took(batch));
            document["jobs_done"] = json!(done);
            document["jobs"] = json!(total);
            document["failed"] = failed
                .map(|(code, status)| json!({"job_code": code, "status": status.as_str()}))
                .collect();
        }
        document
    }
}

/// How many jobs of a batch are final, of how many.
pub fn done_of(jobs: &BTreeMap<QueueStatus, u64>) -> (u64, u64) {
    let done = jobs.iter().filter(|(status, _)| status.is_final()).map(|(_, n)| n).sum();
    (done, jobs.values().sum())
}

/// A backfill without its batches.
pub fn row_as_json((row, counts): &(Backfill, BTreeMap<EntryStatus, u64>)) -> Value {
    let options = &row.options;
    let done: u64 = counts.iter().filter(|(s, _)| s.is_final()).map(|(_, n)| n).sum();
    json!({
        "backfill_id": row.id, "group": row.group, "range": row.range,
        "status": row.status.as_str(), "parallel": options.parallel, "order": options.order,
        "only": options.only, "on_failure": options.on_failure, "params": options.params,
        "started_by": row.started_by, "reason": row.reason,
        "create_time": row.create_time.to_string(),
        "end_time": row.end_time.map(|t| t.to_string()),
        "done": done, "total": counts.values().sum::<u64>(),
        "counts": counts.iter().map(|(s, n)| (s.as_str(), n)).collect::<BTreeMap<_, _>>(),
    })
}
