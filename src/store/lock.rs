//! `job_lock`: rows that are locked by whoever does what only one process may do at a time.

use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// The lock of whoever plans firings, or writes a schedule. Named as in XXL-JOB, whose operators look for
/// it.
pub const SCHEDULE_LOCK: &str = "schedule_lock";

/// What the row says once it is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRow {
    /// Who held it last.
    pub owner: Option<NodeId>,
    /// Counts its holders: it rises whenever another process takes it.
    pub epoch: i64,
}

/// Locks the row until the end of the transaction; must be its first statement. `None` when the row is
/// not there: then nothing is locked, and two processes would do what only one may (XXL-JOB #1886).
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

/// Writes who holds it, for people and for `node list`.
pub async fn sign_lock(tx: &mut Tx, name: &str, owner: &NodeId, now: Millis) -> Result<()> {
    tx.execute(
        "UPDATE job_lock SET owner = ?, epoch = epoch + 1, update_time = ? WHERE lock_name = ?",
        &[owner.0.as_str().into(), now.to_utc().into(), name.into()],
    )
    .await
    .with_context(|| format!("sign {name}"))?;
    Ok(())
}

/// Puts a row back that is gone. One that another process put there meanwhile is left as it is.
pub async fn restore_row(tx: &mut Tx, name: &str, now: Millis) -> Result<()> {
    let row = vec![name.into(), now.to_utc().into()];
    tx.upsert_many("job_lock", "lock_name", &["lock_name", "update_time"], [row])
        .await
        .with_context(|| format!("put {name} back into job_lock"))
}

/// The lock of whoever removes old rows.
pub const RETENTION_LOCK: &str = "retention_lock";

/// How long a turn holds that nothing more is heard of: its holder is dead, or stalled for longer than
/// any of its steps takes.
const TURN_MS: i64 = 60_000;
/// After which it is signed anew.
const SIGN_MS: i64 = 15_000;

/// Whose turn it is to do something that takes many transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOwnership {
    /// Ours, and nobody else's before this transaction has ended.
    Ours,
    /// Of this process, which has done a step lately.
    Theirs(NodeId),
}

/// Takes the turn, or keeps it; must be the first statement. The row is locked to the end of the
/// transaction and signed, so that between two steps nothing is locked and still nobody comes in between. A
/// row that is gone is put back.
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

/// Ends a turn, so that the next one need not wait for it to be forgotten.
pub async fn end_turn(tx: &mut Tx, name: &str, me: &NodeId) -> Result<()> {
    let sql = "UPDATE job_lock SET owner = NULL WHERE lock_name = ? AND owner = ?";
    let done = tx.execute(sql, &[name.into(), me.0.as_str().into()]).await;
    done.with_context(|| format!("leave {name}"))?;
    Ok(())
}
