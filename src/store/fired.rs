//! Batches in relation to firings: which firing opened one, and which batches block the next.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::schedule::firing::FiringId;
use crate::store::Tx;
use crate::store::batch::{COLUMNS, batch};
use anyhow::{Context as _, Result};

/// Stores which firing opened a batch.
pub async fn set_firing(tx: &mut Tx, id: BatchId, firing: FiringId) -> Result<()> {
    let sql = "UPDATE job_batch SET firing_id = ? WHERE batch_id = ?";
    tx.execute(sql, &[firing.0.into(), id.0.into()]).await.context("name the firing of a batch")?;
    Ok(())
}

/// Open independent batches of these groups: no sub-batches, none of a backfill. The rows of the
/// groups are locked until the end of the transaction, so that of two firings for one group the
/// second sees the batch of the first.
pub async fn running_of(tx: &mut Tx, groups: &[GroupCode]) -> Result<Vec<Batch>> {
    let lock = tx.dialect().for_update();
    let places = vec!["?"; groups.len()].join(", ");
    let codes: Vec<_> = groups.iter().map(|code| code.as_str().into()).collect();
    let sql = format!(
        "SELECT group_id FROM job_group WHERE group_code IN ({places}) ORDER BY group_id{lock}"
    );
    tx.fetch_all(&sql, &codes).await.context("lock job_group")?;
    let sql = format!(
        "SELECT {COLUMNS} FROM job_batch WHERE status IN (?, ?) AND group_code IN ({places}) \
         AND parent_queue_id IS NULL AND backfill_id IS NULL ORDER BY batch_id"
    );
    let mut values =
        vec![BatchStatus::Running.as_str().into(), BatchStatus::Killing.as_str().into()];
    values.extend(codes);
    let rows = tx.fetch_all(&sql, &values).await.context("read the open batches of groups")?;
    rows.iter().map(batch).collect()
}
