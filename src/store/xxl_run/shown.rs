//! The batches of a run, as shown to its admin.

use crate::db::SqlValue;
use crate::domain::batch::Batch;
use crate::domain::id::BatchId;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::batch::{COLUMNS, batch};
use anyhow::{Context as _, Result};

/// The existing batches of these; old ones may have been removed.
pub async fn batches(tx: &mut Tx, ids: &[BatchId]) -> Result<Vec<Batch>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE batch_id");
    let rows = tx.fetch_in(&sql, &ids, "ORDER BY batch_id").await.context("read job_batch")?;
    rows.iter().map(batch).collect()
}

/// The first failed jobs of a batch, with their messages.
pub async fn failures(
    tx: &mut Tx,
    id: BatchId,
    most: u32,
) -> Result<Vec<(String, QueueStatus, Option<String>)>> {
    let sql = "SELECT job_code, status, error_message FROM job_queue WHERE batch_id = ? \
               AND status IN ('FAILED', 'TIMEOUT', 'UNKNOWN', 'KILLED') ORDER BY queue_id LIMIT ?";
    let rows = tx.fetch_all(sql, &[id.0.into(), most.into()]).await.context("read job_queue")?;
    rows.iter()
        .map(|row| {
            let word = row.get_text("status")?;
            let status = QueueStatus::parse(&word)
                .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
            Ok((row.get_text("job_code")?, status, row.opt_text("error_message")?))
        })
        .collect()
}

/// A change of a job of one of the batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownChange {
    pub at: Millis,
    pub batch_no: String,
    pub job_code: String,
    /// The new state.
    pub status: String,
    /// The attempt number.
    pub attempt: i64,
    pub said: Option<String>,
}

/// Changes of jobs of these batches until a time, in the order in which they were written: skips
/// the first `skip` of them, returns at most `most`.
pub async fn changes(
    tx: &mut Tx,
    ids: &[BatchId],
    until: Millis,
    skip: i64,
    most: u32,
) -> Result<Vec<ShownChange>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let places = vec!["?"; ids.len()].join(", ");
    // The sum, because in the order of that key some servers read all changes there ever were.
    let sql = format!(
        "SELECT l.log_time AS log_time, q.batch_no AS batch_no, q.job_code AS job_code, \
         l.status AS status, l.attempt AS attempt, l.error_message AS error_message \
         FROM job_queue q JOIN job_execution_logs l ON l.queue_id = q.queue_id \
         WHERE q.batch_id IN ({places}) AND l.log_time <= ? ORDER BY l.log_id + 0 LIMIT ? OFFSET ?"
    );
    let mut values: Vec<SqlValue> = ids.iter().map(|id| id.0.into()).collect();
    values.extend([until.to_utc().into(), most.into(), skip.into()]);
    let rows = tx.fetch_all(&sql, &values).await.context("read job_execution_logs")?;
    rows.iter()
        .map(|row| {
            Ok(ShownChange {
                at: row.get_time("log_time")?.into(),
                batch_no: row.get_text("batch_no")?,
                job_code: row.get_text("job_code")?,
                status: row.get_text("status")?,
                attempt: row.get_int("attempt")?,
                said: row.opt_text("error_message")?,
            })
        })
        .collect()
}

/// Number of these changes until a time.
pub async fn count_changes(tx: &mut Tx, ids: &[BatchId], until: Millis) -> Result<i64> {
    if ids.is_empty() {
        return Ok(0);
    }
    let places = vec!["?"; ids.len()].join(", ");
    let sql = format!(
        "SELECT COUNT(*) AS n FROM job_queue q JOIN job_execution_logs l ON l.queue_id = q.queue_id \
         WHERE q.batch_id IN ({places}) AND l.log_time <= ?"
    );
    let mut values: Vec<SqlValue> = ids.iter().map(|id| id.0.into()).collect();
    values.push(until.to_utc().into());
    let row = tx.fetch_optional(&sql, &values).await.context("count job_execution_logs")?;
    Ok(row.map(|row| row.get_int("n")).transpose()?.unwrap_or(0))
}
