//! What executors tell of the ends of their runs.

use crate::db::SqlValue;
use crate::domain::executor::LogId;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::RunStatus;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::Tx;
use crate::store::hint::{self, HintTopic};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Messages of one statement; each is a value of its own.
const MESSAGES: usize = 64;

/// The end of a run, as its executor tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRunEnd {
    /// Which run.
    pub log_id: LogId,
    /// 200, or what an executor has for a failure.
    pub code: i32,
    /// Words.
    pub msg: Option<String>,
}

/// What is known of a run of which an executor tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRun {
    /// Which run.
    pub log_id: LogId,
    /// The group whose executor was asked.
    pub app_name: AppName,
    /// Whether an executor was asked at all.
    pub was_asked: bool,
}

/// Those of these runs that are known.
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

/// Writes the reported ends of runs; returns how many rows changed. A run that is over stays as it is, so a
/// report that comes again, or says otherwise, changes nothing. One whose stop was never confirmed is
/// confirmed by it: the report is kept as evidence, and other runs of its job may begin. All different runs.
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

/// Ends of one code; all of them with words, or none.
async fn tell_alike(tx: &mut Tx, code: i32, ends: &[&ReportedRunEnd], now: Millis) -> Result<u64> {
    let Some(last) = ends.last() else { return Ok(0) };
    let now = now.to_utc();
    let mut values: Vec<SqlValue> = vec![now.into()];
    let words = match last.msg {
        None => "NULL".to_owned(),
        Some(_) => {
            // Filled up to a power of two, so that a handful of texts stays prepared.
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

/// How many runs of a group are not over.
pub async fn open_runs(tx: &mut Tx, app: &AppName) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS runs FROM executor_run WHERE app_name = ? AND end_time IS NULL";
    let row = tx.fetch_optional(sql, &[app.as_str().into()]).await.context("count open runs")?;
    Ok(row.map(|row| row.get_int("runs")).transpose()?.unwrap_or_default())
}
