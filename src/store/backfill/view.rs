//! A backfill for display: each of its batches with its progress.

use super::entry_status;
use crate::db::Row;
use crate::domain::backfill::BackfillEntry;
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BackfillId, BatchId, BatchNo, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap};

/// One batch of a backfill for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillBatchRow {
    pub entry: BackfillEntry,
    /// The batch, if it exists.
    pub batch: Option<ShownBatch>,
}

/// The `job_batch` row of a batch of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownBatch {
    pub batch_id: BatchId,
    pub status: BatchStatus,
    pub create_time: Millis,
    pub end_time: Option<Millis>,
    /// Number of its jobs in each state.
    pub jobs: BTreeMap<QueueStatus, u64>,
    /// Jobs that failed or have an unknown outcome, with their states.
    pub failed: Vec<(JobCode, QueueStatus)>,
}

/// The batches of a backfill, in order, with their progress.
pub async fn shown(tx: &mut Tx, id: BackfillId) -> Result<Vec<BackfillBatchRow>> {
    let rows = tx
        .fetch_all(
            "SELECT e.batch_no AS batch_no, e.status AS status, e.message AS message, \
             b.batch_id AS batch_id, b.status AS batch_status, b.create_time AS create_time, \
             b.end_time AS end_time FROM backfill_batch e \
             JOIN backfill f ON f.backfill_id = e.backfill_id \
             LEFT JOIN job_batch b ON b.batch_no = e.batch_no AND b.group_code = f.group_code \
             WHERE e.backfill_id = ? ORDER BY e.place",
            &[id.0.into()],
        )
        .await
        .context("read the batches of a backfill")?;
    let mut counts = job_counts(tx, id).await?;
    let mut failed = failed_jobs(tx, id).await?;
    rows.iter()
        .map(|row| {
            let entry = BackfillEntry {
                batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
                status: entry_status(&row.get_text("status")?)?,
                message: row.opt_text("message")?,
            };
            let Some(batch_id) = row.opt_int("batch_id")? else {
                return Ok(BackfillBatchRow { entry, batch: None });
            };
            let word = row.get_text("batch_status")?;
            let batch = ShownBatch {
                batch_id: BatchId(batch_id),
                status: BatchStatus::parse(&word)
                    .with_context(|| format!("job_batch.status holds {word:?}"))?,
                create_time: row.get_time("create_time")?.into(),
                end_time: row.opt_time("end_time")?.map(Millis::from),
                jobs: counts.remove(&batch_id).unwrap_or_default(),
                failed: failed.remove(&batch_id).unwrap_or_default(),
            };
            Ok(BackfillBatchRow { entry, batch: Some(batch) })
        })
        .collect()
}

/// Joins the queue rows of all batches of a backfill.
const OF_ITS_BATCHES: &str = "FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
     JOIN backfill f ON f.group_code = b.group_code \
     JOIN backfill_batch e ON e.backfill_id = f.backfill_id AND e.batch_no = b.batch_no \
     WHERE f.backfill_id = ?";

fn queue_status(row: &Row) -> Result<QueueStatus> {
    let word = row.get_text("status")?;
    QueueStatus::parse(&word).with_context(|| format!("job_queue.status holds {word:?}"))
}

async fn job_counts(
    tx: &mut Tx,
    id: BackfillId,
) -> Result<HashMap<i64, BTreeMap<QueueStatus, u64>>> {
    let sql = format!(
        "SELECT q.batch_id AS batch_id, q.status AS status, COUNT(*) AS n {OF_ITS_BATCHES} \
         GROUP BY q.batch_id, q.status"
    );
    let mut all: HashMap<i64, BTreeMap<QueueStatus, u64>> = HashMap::new();
    for row in tx.fetch_all(&sql, &[id.0.into()]).await? {
        let of_batch = all.entry(row.get_int("batch_id")?).or_default();
        of_batch.insert(queue_status(&row)?, u64::try_from(row.get_int("n")?)?);
    }
    Ok(all)
}

async fn failed_jobs(
    tx: &mut Tx,
    id: BackfillId,
) -> Result<HashMap<i64, Vec<(JobCode, QueueStatus)>>> {
    let sql = format!(
        "SELECT q.batch_id AS batch_id, q.job_code AS job_code, q.status AS status {OF_ITS_BATCHES} \
         AND q.status IN (?, ?, ?, ?) ORDER BY q.queue_id"
    );
    let mut values = vec![id.0.into()];
    let bad =
        [QueueStatus::Failed, QueueStatus::Timeout, QueueStatus::Killed, QueueStatus::Unknown];
    values.extend(bad.iter().map(|status| status.as_str().into()));
    let mut all: HashMap<i64, Vec<(JobCode, QueueStatus)>> = HashMap::new();
    for row in tx.fetch_all(&sql, &values).await? {
        let job = (JobCode::parse(&row.get_text("job_code")?)?, queue_status(&row)?);
        all.entry(row.get_int("batch_id")?).or_default().push(job);
    }
    Ok(all)
}
