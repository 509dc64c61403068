//! `job_lock`: rows that are locked for work that only one process may do at a time.

use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// The lock for planning firings and writing schedules. Named as in XXL-JOB, whose operators look
/// for it.
pub const SCHEDULE_LOCK: &str = "schedule_lock";

/// The content of a locked row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRow {
    /// The last owner.
    pub owner: Option<NodeId>,
    /// Incremented whenever another process takes the lock.
    pub epoch: i64,
}

/// Locks the row until the end of the transaction; must be its first statement. `None` when the row
/// is missing: then nothing is locked, and two processes could do what only one may (XXL-JOB
/// #1886).
pub async fn hold_lock(tx: &mut Tx, name: &str) -> Result<Option<LockedRow>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT owner, epoch FROM job_lock WHERE lock_name = ?{lock}");
    let row = tx.fetch_optional(&sql, &[name.into()]).await;
    let row = row.with_context(|| format!("lock {name}"))?;
    row.map(|row| {
        Ok(LockedRow { owner: row.opt_text("owner")?.map(NodeId), epoch: row.get_int("epoch")? })
    })
    .transpose()
}

/// Stores who holds the lock, for people and for `node list`.
pub async fn sign_lock(tx: &mut Tx, name: &str, owner: &NodeId, now: Millis) -> Result<()> {
    tx.execute(
        "UPDATE job_lock SET owner = ?, epoch = epoch + 1, update_time = ? WHERE lock_name = ?",
        &[owner.0.as_str().into(), now.to_utc().into(), name.into()],
    )
    .await
    .with_context(|| format!("sign {name}"))?;
    Ok(())
}

/// Restores a missing row. One that another process has inserted meanwhile is left as it is.
pub async fn restore_row(tx: &mut Tx, name: &str, now: Millis) -> Result<()> {
    let row = vec![name.into(), now.to_utc().into()];
    tx.upsert_many("job_lock", "lock_name", &["lock_name", "update_time"], [row])
        .await
        .with_context(|| format!("put {name} back into job_lock"))
}

/// The lock for removing old rows.
pub const RETENTION_LOCK: &str = "retention_lock";

/// After this many milliseconds without a renewal another process may take the lock: its owner is
/// dead, or stalled for longer than any of its steps takes.
const TURN_MS: i64 = 60_000;
/// Interval after which the owner renews it, in milliseconds.
const SIGN_MS: i64 = 15_000;

/// Who owns a lock that spans many transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOwnership {
    /// This process, exclusively until the end of this transaction.
    Ours,
    /// Another process, which has completed a step recently.
    Theirs(NodeId),
}

/// Takes or renews the lock; must be the first statement. The row is locked until the end of the
/// transaction and the owner is stored, so that between two steps nothing is locked and yet no
/// other process takes over. A missing row is restored.
pub async fn take_turn(tx: &mut Tx, name: &str, me: &NodeId, now: Millis) -> Result<LockOwnership> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT owner, update_time FROM job_lock WHERE lock_name = ?{lock}");
    let row = tx.fetch_optional(&sql, &[name.into()]).await;
    let Some(row) = row.with_context(|| format!("lock {name}"))? else {
        restore_row(tx, name, now).await?;
        sign_lock(tx, name, me, now).await?;
        return Ok(LockOwnership::Ours);
    };
    let at = row.opt_time("update_time")?.map(Millis::from);
    let age = at.map_or(i64::MAX, |at| now.since(at));
    match row.opt_text("owner")?.map(NodeId) {
        Some(owner) if owner == *me => {
            if age >= SIGN_MS {
                sign_lock(tx, name, me, now).await?;
            }
            Ok(LockOwnership::Ours)
        }
        Some(owner) if age < TURN_MS => Ok(LockOwnership::Theirs(owner)),
        Some(_) | None => {
            sign_lock(tx, name, me, now).await?;
            Ok(LockOwnership::Ours)
        }
    }
}

/// Releases the lock, so that the next owner need not wait for its expiry.
pub async fn end_turn(tx: &mut Tx, name: &str, me: &NodeId) -> Result<()> {
    let sql = "UPDATE job_lock SET owner = NULL WHERE lock_name = ? AND owner = ?";
    let done = tx.execute(sql, &[name.into(), me.0.as_str().into()]).await;
    done.with_context(|| format!("leave {name}"))?;
    Ok(())
}
