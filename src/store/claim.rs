//! Open, unowned batches: found, claimed by compare-and-set, and released.

use crate::db::SqlValue;
use crate::domain::backfill::EntryStatus;
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, NodeId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::batch::{COLUMNS, batch};
use crate::store::hint::{self, HintTopic};
use crate::store::hosted;
use anyhow::{Context as _, Result};

/// Which batches may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimScope {
    /// Only unowned ones.
    Nobodys,
    /// Also those of processes whose lease has expired.
    DeadOnesToo,
}

/// The condition on claimable batches, with its values. Excludes batches that something else
/// continues: a sub-batch belongs to the job that opened it until that job has ended, and a batch
/// of a backfill to the backfill until it is done there.
///
/// The two `IS NULL OR` keep `NOT EXISTS` from becoming a join with all jobs. PostgreSQL, which had
/// planned it while the tables were empty, joined all of `job_queue` to each open batch: with 2,000
/// open batches that was 4,000,000 rows a poll, and 17 of 300 batches a second were run.
fn condition(whose: ClaimScope, limit: usize, now: Millis) -> Result<(String, Vec<SqlValue>)> {
    let open_jobs = QueueStatus::ALL.into_iter().filter(|status| !status.is_final());
    let open_jobs: Vec<SqlValue> = open_jobs.map(|status| status.as_str().into()).collect();
    let mut values: Vec<SqlValue> =
        vec![BatchStatus::Running.as_str().into(), BatchStatus::Killing.as_str().into()];
    let mut nobodys = "owner IS NULL".to_owned();
    if whose == ClaimScope::DeadOnesToo {
        nobodys.push_str(
            " OR NOT EXISTS (SELECT 1 FROM cluster_node n WHERE n.node_id = job_batch.owner \
             AND n.lease_until > ?)",
        );
        values.push(now.to_utc().into());
    }
    let places = vec!["?"; open_jobs.len()].join(", ");
    values.extend(open_jobs);
    values.extend([EntryStatus::Pending.as_str().into(), EntryStatus::Open.as_str().into()]);
    values.push(u32::try_from(limit)?.into());
    let sql = format!(
        "status IN (?, ?) AND ({nobodys}) \
         AND (parent_queue_id IS NULL OR NOT EXISTS (SELECT 1 FROM job_queue p \
         WHERE p.queue_id = job_batch.parent_queue_id AND p.status IN ({places}))) \
         AND (backfill_id IS NULL OR NOT EXISTS (SELECT 1 FROM backfill_batch e \
         WHERE e.backfill_id = job_batch.backfill_id \
         AND e.batch_no = job_batch.batch_no AND e.status IN (?, ?))) \
         ORDER BY batch_id LIMIT ?"
    );
    Ok((sql, values))
}

/// Claimable batches, oldest first. Locks nothing, and is one statement: every serving process
/// calls it every second.
pub async fn find_claimable(
    tx: &mut Tx,
    whose: ClaimScope,
    limit: usize,
    now: Millis,
) -> Result<Vec<BatchId>> {
    let (condition, values) = condition(whose, limit, now)?;
    let sql = format!("SELECT batch_id FROM job_batch WHERE {condition}");
    let rows = tx.fetch_all(&sql, &values).await;
    let rows = rows.context("look for batches that nobody has")?;
    rows.iter().map(|row| Ok(BatchId(row.get_int("batch_id")?))).collect()
}

/// Since when the oldest unowned batch has waited to be claimed.
pub async fn waits_since(tx: &mut Tx, now: Millis) -> Result<Option<Millis>> {
    let (condition, values) = condition(ClaimScope::Nobodys, 1, now)?;
    let sql = format!("SELECT update_time FROM job_batch WHERE {condition}");
    let row = tx.fetch_optional(&sql, &values).await;
    let row = row.context("look for the batch that waits longest for a process")?;
    row.map(|row| Ok(row.get_time("update_time")?.into())).transpose()
}

/// The same batches, each locked until the end of the transaction; skips those that another process
/// has locked.
pub async fn lock_claimable(
    tx: &mut Tx,
    whose: ClaimScope,
    limit: usize,
    now: Millis,
) -> Result<Vec<Batch>> {
    let lock = tx.dialect().for_update_of_free();
    let (condition, values) = condition(whose, limit, now)?;
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE {condition}{lock}");
    let rows = tx.fetch_all(&sql, &values).await;
    let rows = rows.context("lock batches that nobody has")?;
    rows.iter().map(batch).collect()
}

/// Releases a batch: it stays open without an owner, so that another process claims it at once.
/// `false` when it no longer belongs to this owner, or has ended.
pub async fn give_back(tx: &mut Tx, id: BatchId, owner: &NodeId, now: Millis) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE job_batch SET owner = NULL, update_time = ? \
             WHERE batch_id = ? AND owner = ? AND status IN (?, ?)",
            &[
                now.to_utc().into(),
                id.0.into(),
                owner.0.as_str().into(),
                BatchStatus::Running.as_str().into(),
                BatchStatus::Killing.as_str().into(),
            ],
        )
        .await
        .context("give a batch back")?;
    if found == 1 {
        hosted::note_dispatcher(tx, id, None).await?;
    }
    hint::send_hint(tx, HintTopic::Batch).await?;
    Ok(found == 1)
}
