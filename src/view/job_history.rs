//! The runs of a job in the last batches of its group.

use crate::app::App;
use crate::domain::id::{BatchId, GroupCode, JobCode};
use crate::domain::job::queue::QueueEntry;
use crate::domain::time::Millis;
use crate::store;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// The run of a job in a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobRunSummary {
    /// The batch number.
    pub batch_no: String,
    /// The group code.
    pub group: String,
    /// The state of the job.
    pub status: String,
    /// The attempt number.
    pub attempt: u32,
    /// Start of the last attempt.
    pub start: Option<String>,
    /// End of the last attempt.
    pub end: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// The error message, if it did not succeed.
    pub message: Option<String>,
}

/// Runs of a job, and the batch before which the next page begins; `None` after the first batch.
pub async fn read_page(
    app: &App,
    group: &GroupCode,
    job: &JobCode,
    before: Option<BatchId>,
    batches: u32,
) -> Result<(Vec<JobRunSummary>, Option<BatchId>)> {
    let mut tx = app.db.begin_read().await?;
    let found = store::glance::list_runs(&mut tx, group, job, before, batches).await?;
    let ids: Vec<BatchId> = found.iter().map(|(id, _)| *id).collect();
    let of = store::changed::of_batches(&mut tx, &ids).await?;
    drop(tx);
    let numbers: HashMap<BatchId, String> =
        of.into_iter().map(|p| (p.batch_id, p.batch_no.to_string())).collect();
    let more = found.len() == batches as usize;
    let next = found.last().map(|(id, _)| *id).filter(|_| more);
    let run = |(id, row): (BatchId, Option<QueueEntry>)| {
        let (row, batch_no) = (row?, numbers.get(&id)?.clone());
        let words = |at: Option<Millis>| at.map(|at| at.to_string());
        Some(JobRunSummary {
            batch_no,
            group: group.to_string(),
            status: row.status.as_str().to_owned(),
            attempt: row.attempt,
            start: words(row.start_time),
            end: words(row.end_time),
            duration_ms: row.start_time.zip(row.end_time).map(|(start, end)| end.since(start)),
            message: row.error_message,
        })
    };
    Ok((found.into_iter().filter_map(run).collect(), next))
}
