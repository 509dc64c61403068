//! Locks batches while their rows are written, and raises their revision when they are changed by
//! anyone but their owner.

use crate::db::Dialect;
use crate::db::single_round_trip::CountedStatement;
use crate::domain::batch::Batch;
use crate::domain::id::{BatchId, NodeId};
use crate::domain::time::Millis;
use crate::store::hint::{self, HintTopic};
use crate::store::{Stale, Tx};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;

/// Locks a batch's row, like `hold_all`.
pub async fn lock_owned(tx: &mut Tx, id: BatchId, owner: &NodeId, revision: i64) -> Result<()> {
    hold_all(tx, owner, &BTreeMap::from([(id, revision)])).await
}

/// Locks the rows of batches until the end of the transaction, in the order of their keys to avoid
/// deadlocks, and checks that they still belong to this owner: a process that was silent for longer
/// than its lease must not write into a batch that another has taken over. Also checks that no
/// operator has changed a batch since its revision: results computed from older rows are not
/// written.
pub async fn hold_all(tx: &mut Tx, owner: &NodeId, held: &BTreeMap<BatchId, i64>) -> Result<()> {
    let ids: Vec<i64> = held.keys().map(|id| id.0).collect();
    let lock = format!("ORDER BY batch_id{}", tx.dialect().for_update());
    let sql = "SELECT batch_id, owner, revision FROM job_batch WHERE batch_id";
    let rows = tx.fetch_in(sql, &ids, &lock).await.context("lock the batches")?;
    let mut revisions = BTreeMap::new();
    for row in &rows {
        ensure!(row.opt_text("owner")?.as_deref() == Some(owner.0.as_str()), Stale::Batch);
        revisions.insert(BatchId(row.get_int("batch_id")?), row.get_int("revision")?);
    }
    ensure!(revisions.len() == held.len(), Stale::Batch);
    ensure!(revisions == *held, Stale::Revised);
    Ok(())
}

/// The statements of `hold_all` for a caller that only checks.
pub fn lock_statements(
    owner: &NodeId,
    held: &BTreeMap<BatchId, i64>,
    dialect: Dialect,
) -> Vec<CountedStatement> {
    let mut by_revision: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (id, revision) in held {
        by_revision.entry(*revision).or_default().push(id.0);
    }
    let locked = |(revision, ids): (i64, Vec<i64>)| CountedStatement::OnEach {
        before: "SELECT batch_id FROM job_batch WHERE batch_id".to_owned(),
        first: Vec::new(),
        ids,
        after: format!("AND owner = ? AND revision = ? ORDER BY batch_id{}", dialect.for_update()),
        last: vec![owner.0.as_str().into(), revision.into()],
    };
    by_revision.into_iter().map(locked).collect()
}

/// Raises the revision after an operator's change to a batch or its rows, so that its dispatcher
/// reads it again. A batch that had ended is reopened without an owner. The caller holds its lock.
pub async fn revise(tx: &mut Tx, seen: &Batch, now: Millis) -> Result<()> {
    let reopen =
        ", status = 'RUNNING', owner = NULL, end_time = NULL, reason = NULL, is_paused = 0";
    let reopen = if seen.status.is_final() { reopen } else { "" };
    let sql = format!(
        "UPDATE job_batch SET revision = revision + 1, update_time = ?{reopen} WHERE batch_id = ?"
    );
    tx.execute(&sql, &[now.to_utc().into(), seen.batch_id.0.into()])
        .await
        .context("say that a batch was changed")?;
    hint::send_hint(tx, HintTopic::Batch).await
}
