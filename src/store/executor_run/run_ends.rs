//! Ends of runs as reported by executors.

use crate::db::SqlValue;
use crate::domain::executor::LogId;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::RunStatus;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::Tx;
use crate::store::hint::{self, HintTopic};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Messages per statement; each is a value of its own.
const MESSAGES: usize = 64;

/// The end of a run, as its executor reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRunEnd {
    pub log_id: LogId,
    /// 200 for success, other values for failures.
    pub code: i32,
    pub msg: Option<String>,
}

/// What is known of a reported run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRun {
    pub log_id: LogId,
    /// The group of the executor.
    pub app_name: AppName,
    /// Whether the run was sent to an executor at all.
    pub was_asked: bool,
}

/// The known ones of these runs.
pub async fn known(tx: &mut Tx, ids: &[i64]) -> Result<Vec<KnownRun>> {
    let sql = "SELECT log_id, app_name, status FROM executor_run WHERE log_id";
    let rows = tx.fetch_in(sql, ids, "").await.context("look for runs of executors")?;
    let read = |row: &crate::db::Row| {
        Ok(KnownRun {
            log_id: LogId(row.get_int("log_id")?),
            app_name: AppName::parse(&row.get_text("app_name")?)?,
            was_asked: row.get_text("status")? != RunStatus::Waiting.as_str(),
        })
    };
    rows.iter().map(read).collect()
}

/// Stores the reported ends of runs; returns the number of changed rows. A run that has ended stays
/// as it is, so a repeated or contradicting report changes nothing. If its stop was never
/// confirmed, the report confirms it and is kept as evidence, and other runs of its job may begin.
/// Runs must be distinct.
pub async fn report_ends(tx: &mut Tx, ends: &[ReportedRunEnd], now: Millis) -> Result<u64> {
    let mut by_code: BTreeMap<i32, Vec<&ReportedRunEnd>> = BTreeMap::new();
    for end in ends {
        by_code.entry(end.code).or_default().push(end);
    }
    let mut written = 0;
    for (code, ends) in by_code {
        let (with, without): (Vec<&ReportedRunEnd>, Vec<&ReportedRunEnd>) =
            ends.into_iter().partition(|end| end.msg.is_some());
        written += tell_alike(tx, code, &without, now).await?;
        for some in with.chunks(MESSAGES) {
            written += tell_alike(tx, code, some, now).await?;
        }
    }
    if written > 0 {
        hint::send_hint(tx, HintTopic::Run).await?;
    }
    Ok(written)
}

/// Stores ends with the same code; either all of them have a message, or none.
async fn tell_alike(tx: &mut Tx, code: i32, ends: &[&ReportedRunEnd], now: Millis) -> Result<u64> {
    let Some(last) = ends.last() else { return Ok(0) };
    let now = now.to_utc();
    let mut values: Vec<SqlValue> = vec![now.into()];
    let words = match last.msg {
        None => "NULL".to_owned(),
        Some(_) => {
            // Padded to a power of two, so that only a few statements need to be prepared.
            let size = ends.len().next_power_of_two();
            let filled = ends.iter().chain(std::iter::repeat(last)).take(size);
            for end in filled {
                values.extend([end.log_id.0.into(), end.msg.as_deref().into()]);
            }
            format!("CASE log_id{} END", " WHEN ? THEN ?".repeat(size))
        }
    };
    values.extend([i64::from(code).into(), now.into()]);
    values.extend([RunStatus::Asked, RunStatus::Running].map(|status| status.as_str().into()));
    // MySQL evaluates assignments from left to right, so the one to `status` comes last.
    let sql = format!(
        "UPDATE executor_run SET end_time = COALESCE(end_time, ?), handle_msg = {words}, \
         handle_code = ?, update_time = ?, \
         status = CASE status WHEN 'UNCONFIRMED' THEN 'DONE' ELSE 'TOLD' END \
         WHERE (status IN (?, ?) OR (result = 'UNCONFIRMED' AND handle_code IS NULL \
         AND status IN ('TOLD', 'UNCONFIRMED'))) AND log_id"
    );
    let ids: Vec<i64> = ends.iter().map(|end| end.log_id.0).collect();
    tx.execute_in(&sql, &values, &ids, "", &[]).await.context("write how runs of executors ended")
}

/// Number of unfinished runs of a group.
pub async fn open_runs(tx: &mut Tx, app: &AppName) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS runs FROM executor_run WHERE app_name = ? AND end_time IS NULL";
    let row = tx.fetch_optional(sql, &[app.as_str().into()]).await.context("count open runs")?;
    Ok(row.map(|row| row.get_int("runs")).transpose()?.unwrap_or_default())
}
