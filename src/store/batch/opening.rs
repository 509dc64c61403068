//! Writes the queue rows of a batch with many jobs in several transactions.
//!
//! 63,569 rows in one transaction took 37 s on a busy machine in a debug build. On SQLite no other
//! write happens meanwhile, including the lease of the writer. The batch row shows how many rows
//! are missing: its snapshot names all jobs, and their rows are written in its order.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::id::{BatchId, BatchNo, GroupCode};
use crate::store::long_computation::compute;
use crate::store::{Stale, Tx, packed};
use anyhow::{Context as _, Result, ensure};

/// Queue rows per transaction when a batch is opened: a tenth of a second on SQLite, and a second
/// in a debug build on a busy machine.
pub const ROWS_PER_STEP: usize = 2_000;

/// A snapshot in its stored form. Packing 100,000 jobs takes seconds in a debug build and needs no
/// transaction.
#[derive(Clone, Debug)]
pub struct PackedSnapshot {
    pub(super) text: String,
}

impl PackedSnapshot {
    /// Packs a snapshot.
    pub fn new(snapshot: &Snapshot) -> Result<Self> {
        Ok(Self { text: compute(snapshot.jobs.len(), || packed::pack_value(snapshot))? })
    }
}

/// The queue rows of the batch are incomplete, and the operation needs all of them.
#[derive(Debug, thiserror::Error)]
#[error(
    "batch {batch_no} of group {group} is still being opened: {written} of {total} jobs are there. Try again when it is \
     open; procession serve, or run with --resume, goes on with it"
)]
pub struct StillOpening {
    pub batch_no: BatchNo,
    pub group: GroupCode,
    /// Number of jobs whose rows are written.
    pub written: u64,
    /// Number of all its jobs.
    pub total: u64,
}

/// Refuses a batch whose queue rows are incomplete.
pub async fn refuse_opening(tx: &mut Tx, batch: &Batch) -> Result<()> {
    if batch.unwritten_jobs == 0 {
        return Ok(());
    }
    let sql = "SELECT COUNT(*) AS written FROM job_queue WHERE batch_id = ?";
    let row = tx.fetch_optional(sql, &[batch.batch_id.0.into()]).await?;
    let written = row.map(|row| row.get_int("written")).transpose()?.unwrap_or_default();
    let written = u64::try_from(written)?;
    let total = written + u64::from(batch.unwritten_jobs);
    let values = &batch.values;
    let (batch_no, group) = (values.batch_no.clone(), values.group.clone());
    Err(StillOpening { batch_no, group, written, total }.into())
}

/// Subtracts just written rows from the number of missing rows. The caller holds the batch's lock
/// and has read `unwritten` before; a different count means that another process writes them too.
pub async fn count_written(tx: &mut Tx, id: BatchId, unwritten: u32, rows: usize) -> Result<()> {
    let rows = i64::try_from(rows)?;
    let sql = "UPDATE job_batch SET unwritten_jobs = unwritten_jobs - ? \
               WHERE batch_id = ? AND unwritten_jobs = ?";
    let found = tx
        .execute(sql, &[rows.into(), id.0.into(), unwritten.into()])
        .await
        .context("count the jobs of a batch that are written")?;
    ensure!(found == 1, Stale::Batch);
    Ok(())
}
