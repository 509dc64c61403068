//! Ends of runs that are still to be reported to an admin, and the results of reporting them.

use super::{COLUMNS, read_runs};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{AppName, XxlRun, XxlRunId};
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// There is no end to report yet.
pub(super) const NOTHING: &str = "NONE";
/// The end is to be reported.
pub(super) const DUE: &str = "DUE";
/// An admin has accepted the end.
const TAKEN: &str = "TAKEN";

/// A run whose end is to be reported.
pub type UnreportedRun = XxlRun;

/// Ends that are due to be reported, the longest due first.
pub async fn list_due(
    tx: &mut Tx,
    app: &AppName,
    now: Millis,
    most: u32,
) -> Result<Vec<UnreportedRun>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM xxl_run WHERE app_name = ? AND callback = ? AND callback_at <= ? \
         ORDER BY callback_at, run_id LIMIT ?"
    );
    let values = [app.as_str().into(), DUE.into(), now.to_utc().into(), most.into()];
    read_runs(tx, &sql, &values).await
}

/// Claims an end in order to report it; no other process does so before `until`. `false` when
/// another process came first.
pub async fn claim(tx: &mut Tx, was: &UnreportedRun, until: Millis, now: Millis) -> Result<bool> {
    let sql = "UPDATE xxl_run SET callback_tries = ?, callback_at = ?, update_time = ? \
               WHERE run_id = ? AND callback = ? AND callback_tries = ?";
    let values = [
        was.tries.saturating_add(1).into(),
        until.to_utc().into(),
        now.to_utc().into(),
        was.run_id.0.into(),
        DUE.into(),
        was.tries.into(),
    ];
    Ok(tx.execute(sql, &values).await.context("take ends of runs to tell")? == 1)
}

/// Marks ends as accepted by an admin.
pub async fn taken(tx: &mut Tx, runs: &[XxlRunId], now: Millis) -> Result<()> {
    let sql = "UPDATE xxl_run SET callback = ?, callback_at = NULL, callback_error = NULL, \
               update_time = ? WHERE callback = ? AND run_id";
    let ids: Vec<i64> = runs.iter().map(|run| run.0).collect();
    let values = [TAKEN.into(), now.to_utc().into(), DUE.into()];
    tx.execute_in(sql, &values, &ids, "", &[]).await.context("note what an admin took")?;
    Ok(())
}

/// Postpones the report of an end that no admin accepted.
pub async fn put_off(
    tx: &mut Tx,
    run: XxlRunId,
    at: Millis,
    said: &str,
    now: Millis,
) -> Result<()> {
    let sql = "UPDATE xxl_run SET callback_at = ?, callback_error = ?, update_time = ? \
               WHERE run_id = ? AND callback = ?";
    let values = [at.to_utc().into(), said.into(), now.to_utc().into(), run.0.into(), DUE.into()];
    tx.execute(sql, &values).await.context("put the telling of a run off")?;
    Ok(())
}

/// Removes up to `most` runs whose end their admin knew before that time.
pub async fn forget(tx: &mut Tx, app: &AppName, before: Millis, most: u32) -> Result<u64> {
    let sql = "SELECT run_id FROM xxl_run WHERE app_name = ? AND callback = ? AND end_time < ? \
               ORDER BY run_id LIMIT ?";
    let values = [app.as_str().into(), TAKEN.into(), before.to_utc().into(), most.into()];
    let rows = tx.fetch_all(sql, &values).await.context("look for old runs")?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get_int("run_id")).collect::<Result<_, _>>()?;
    let sql = "DELETE FROM xxl_run WHERE callback = ? AND run_id";
    tx.execute_in(sql, &[TAKEN.into()], &ids, "", &[]).await.context("remove old runs")
}
