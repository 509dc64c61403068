//! Operators' changes to rows of `job_queue`, each by compare-and-set.

use crate::domain::action::RowChange;
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::queue::{expect_all, reset};
use anyhow::{Context as _, Result};

/// One change to rows that are all in the same state.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The state they must be in.
    pub from: QueueStatus,
    /// The state they are in afterwards.
    pub to: QueueStatus,
    pub change: RowChange,
    /// The message of a row that does not continue to wait: who changed it and why.
    pub note: Option<&'a str>,
}

/// Applies one change to rows.
pub async fn write(tx: &mut Tx, ids: &[i64], what: Move<'_>, now: Millis) -> Result<()> {
    match what.change {
        RowChange::State => state(tx, ids, what, now).await,
        RowChange::StartOver => reset(tx, ids, what.from, now).await,
        RowChange::Mode(mode) => {
            set_column(tx, ids, "run_mode = ?", mode.map(RunMode::as_str).into(), what.to, now)
                .await
        }
        RowChange::Priority(n) => set_column(tx, ids, "priority = ?", n.into(), what.to, now).await,
        RowChange::NoTime => {
            let never: Option<chrono::DateTime<chrono::Utc>> = None;
            set_column(tx, ids, "not_before = ?", never.into(), what.to, now).await
        }
    }
    .with_context(|| format!("write what an operator did to {} rows of job_queue", ids.len()))
}

/// What a body left behind (start and end time) is kept.
async fn state(tx: &mut Tx, ids: &[i64], what: Move<'_>, now: Millis) -> Result<()> {
    let end = what.to.is_final().then_some(now.to_utc());
    // An operator has looked at it: dead workers are counted from zero again.
    let looked_at = if what.from == QueueStatus::Held { ", crash_count = 0" } else { "" };
    let sql = format!(
        "UPDATE job_queue SET status = ?, skip_kind = ?, error_message = ?, \
         end_time = COALESCE(end_time, ?), update_time = ?{looked_at} WHERE queue_id"
    );
    let found = tx
        .execute_in(
            &sql,
            &[
                what.to.as_str().into(),
                what.to.skip_kind().into(),
                what.note.into(),
                end.into(),
                now.to_utc().into(),
            ],
            ids,
            "AND status = ?",
            &[what.from.as_str().into()],
        )
        .await?;
    expect_all(ids.len(), found)
}

async fn set_column(
    tx: &mut Tx,
    ids: &[i64],
    column: &str,
    value: crate::db::SqlValue,
    status: QueueStatus,
    now: Millis,
) -> Result<()> {
    let sql = format!("UPDATE job_queue SET {column}, update_time = ? WHERE queue_id");
    let first = [value, now.to_utc().into()];
    let last = [status.as_str().into()];
    let found = tx.execute_in(&sql, &first, ids, "AND status = ?", &last).await?;
    expect_all(ids.len(), found)
}
