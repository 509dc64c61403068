//! Changes since a reader's last poll, by the growing keys of `job_execution_logs`.
//!
//! Of two transactions the one with the lower key may be committed later; a reader that must miss
//! nothing checks the skipped keys again.

use crate::db::Row;
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::queue::{COLUMNS, entry};
use anyhow::{Context as _, Result};

/// A job whose status has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedJob {
    /// The key of its log row.
    pub log_id: i64,
    pub at: Millis,
    pub job_code: JobCode,
    /// The new status.
    pub status: QueueStatus,
    /// The attempt number.
    pub attempt: u32,
    /// The present state of its batch.
    pub batch: ChangedBatch,
}

/// The state of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedBatch {
    pub batch_id: BatchId,
    pub batch_no: BatchNo,
    pub group: GroupCode,
    pub status: BatchStatus,
    /// The number of changes by operators.
    pub revision: i64,
    /// Whether it is paused.
    pub is_paused: bool,
}

const CHANGED: &str = "l.log_id AS log_id, l.log_time AS log_time, l.status AS job_status, \
    l.attempt AS attempt, q.job_code AS job_code, b.batch_id AS batch_id, b.batch_no AS batch_no, \
    b.group_code AS group_code, b.status AS status, b.revision AS revision, b.is_paused AS is_paused";

/// The key of the last change; 0 before the first.
pub async fn last_key(tx: &mut Tx) -> Result<i64> {
    let sql = "SELECT MAX(log_id) AS last FROM job_execution_logs";
    let row = tx.fetch_optional(sql, &[]).await.context("look for the last change")?;
    Ok(row.map(|row| row.opt_int("last")).transpose()?.flatten().unwrap_or(0))
}

/// Changes with keys after `after`, in order.
pub async fn after(tx: &mut Tx, after: i64, limit: u32) -> Result<Vec<ChangedJob>> {
    let sql = format!(
        "SELECT {CHANGED} FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
         JOIN job_batch b ON b.batch_id = q.batch_id WHERE l.log_id > ? ORDER BY l.log_id LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &[after.into(), limit.into()]).await;
    rows.context("look for changes")?.iter().map(changed).collect()
}

/// The existing changes with these keys.
pub async fn of_keys(tx: &mut Tx, keys: &[i64]) -> Result<Vec<ChangedJob>> {
    let sql = format!(
        "SELECT {CHANGED} FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
         JOIN job_batch b ON b.batch_id = q.batch_id WHERE l.log_id"
    );
    let rows = tx.fetch_in(&sql, keys, "").await.context("look for late changes")?;
    rows.iter().map(changed).collect()
}

fn changed(row: &Row) -> Result<ChangedJob> {
    let word = row.get_text("job_status")?;
    Ok(ChangedJob {
        log_id: row.get_int("log_id")?,
        at: row.get_time("log_time")?.into(),
        job_code: JobCode::parse(&row.get_text("job_code")?)?,
        status: QueueStatus::parse(&word)
            .with_context(|| format!("job_execution_logs.status holds {word:?}"))?,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        batch: pulse(row)?,
    })
}

/// The rows of a batch that have changed since the key `after`.
pub async fn changed_rows(tx: &mut Tx, batch: BatchId, after: i64) -> Result<Vec<QueueEntry>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_queue WHERE queue_id IN (SELECT l.queue_id \
         FROM job_execution_logs l WHERE l.log_id > ?) AND batch_id = ? ORDER BY queue_id"
    );
    let rows = tx.fetch_all(&sql, &[after.into(), batch.0.into()]).await;
    rows.context("look for rows that have changed")?.iter().map(entry).collect()
}

const PULSE: &str = "batch_id, batch_no, group_code, status, revision, is_paused";

pub async fn open_batches(tx: &mut Tx) -> Result<Vec<ChangedBatch>> {
    let sql = format!("SELECT {PULSE} FROM job_batch WHERE status IN (?, ?) ORDER BY batch_id");
    let values = [BatchStatus::Running.as_str().into(), BatchStatus::Killing.as_str().into()];
    let rows = tx.fetch_all(&sql, &values).await.context("look at the open batches")?;
    rows.iter().map(pulse).collect()
}

/// The existing batches with these keys.
pub async fn of_batches(tx: &mut Tx, ids: &[BatchId]) -> Result<Vec<ChangedBatch>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let sql = format!("SELECT {PULSE} FROM job_batch WHERE batch_id");
    let rows = tx.fetch_in(&sql, &ids, "").await.context("look at batches that have ended")?;
    rows.iter().map(pulse).collect()
}

fn pulse(row: &Row) -> Result<ChangedBatch> {
    let word = row.get_text("status")?;
    Ok(ChangedBatch {
        batch_id: BatchId(row.get_int("batch_id")?),
        batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        status: BatchStatus::parse(&word)
            .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?,
        revision: row.get_int("revision")?,
        is_paused: row.get_flag("is_paused")?,
    })
}
