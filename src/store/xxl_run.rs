//! `xxl_run`: runs requested by an admin of XXL-JOB. A status changes only by compare-and-set.

mod shown;
mod unreported_ends;

pub use shown::{ShownChange, batches, changes, count_changes, failures};
pub use unreported_ends::{UnreportedRun, claim, forget, list_due, put_off, taken};

use crate::db::{Row, SqlValue};
use crate::domain::executor::block::BlockStrategy;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{
    AppName, RunResult, Stopping, XxlJobId, XxlLogId, XxlRun, XxlRunId, XxlStatus,
};
use crate::store::{Tx, lock};
use anyhow::{Context as _, Result};

/// The lock that protects decisions on which run of a job starts.
const LOCK: &str = "xxl_run_lock";

const COLUMNS: &str = "run_id, app_name, log_id, log_date_time, job_id, params, block_strategy, timeout_sec, \
     status, stopping, batch_ids, deadline, handle_code, handle_msg, callback_tries, create_time, end_time";

/// A new run.
#[derive(Clone, Debug)]
pub struct NewXxlRun<'a> {
    /// The executor that received the request.
    pub app_name: &'a AppName,
    /// The admin's log id.
    pub log_id: XxlLogId,
    /// The trigger time according to the admin.
    pub log_date_time: i64,
    /// The admin's job id.
    pub job_id: XxlJobId,
    /// The name of the handler.
    pub handler: &'a str,
    /// The parameters of the handler.
    pub params: &'a str,
    /// The admins' addresses, for people.
    pub admin: &'a str,
    /// What to do while an earlier run has not ended.
    pub block: BlockStrategy,
    /// Time limit of its batches in seconds.
    pub timeout_sec: Option<u32>,
    /// Index and number of parts of a broadcast.
    pub shard: (i64, i64),
}

/// Locks decisions on runs until the end of the transaction; must be its first statement.
pub async fn lock_runs(tx: &mut Tx, now: Millis) -> Result<()> {
    if lock::hold_lock(tx, LOCK).await?.is_none() {
        lock::restore_row(tx, LOCK, now).await?;
    }
    Ok(())
}

/// Inserts a waiting run.
pub async fn insert(tx: &mut Tx, run: &NewXxlRun<'_>, now: Millis) -> Result<XxlRunId> {
    let sql = "INSERT INTO xxl_run (app_name, log_id, log_date_time, job_id, handler, params, admin, \
               block_strategy, timeout_sec, shard_index, shard_total, status, callback, callback_tries, \
               create_time, update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = [
        run.app_name.as_str().into(),
        run.log_id.0.into(),
        run.log_date_time.into(),
        run.job_id.0.into(),
        run.handler.into(),
        run.params.into(),
        run.admin.into(),
        run.block.as_str().into(),
        run.timeout_sec.into(),
        run.shard.0.into(),
        run.shard.1.into(),
        XxlStatus::Waiting.as_str().into(),
        unreported_ends::NOTHING.into(),
        0_i64.into(),
        now.to_utc().into(),
        now.to_utc().into(),
    ];
    Ok(XxlRunId(tx.insert_id(sql, "run_id", &values).await.context("write xxl_run")?))
}

/// The run with this log id and trigger time.
pub async fn find_run(
    tx: &mut Tx,
    app: &AppName,
    log: XxlLogId,
    log_date_time: i64,
) -> Result<Option<XxlRun>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM xxl_run WHERE app_name = ? AND log_id = ? AND log_date_time = ?"
    );
    let values = [app.as_str().into(), log.0.into(), log_date_time.into()];
    Ok(read_runs(tx, &sql, &values).await?.pop())
}

/// The newest run with this log id: an admin requests its log with a rounded time.
pub async fn latest(tx: &mut Tx, app: &AppName, log: XxlLogId) -> Result<Option<XxlRun>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM xxl_run WHERE app_name = ? AND log_id = ? ORDER BY run_id DESC LIMIT 1"
    );
    Ok(read_runs(tx, &sql, &[app.as_str().into(), log.0.into()]).await?.pop())
}

/// The unfinished runs, oldest first; of one job if one is named.
pub async fn list_open(tx: &mut Tx, app: &AppName, job: Option<XxlJobId>) -> Result<Vec<XxlRun>> {
    let of_job = if job.is_some() { " AND job_id = ?" } else { "" };
    let sql = format!(
        "SELECT {COLUMNS} FROM xxl_run WHERE app_name = ? AND status IN (?, ?){of_job} ORDER BY run_id"
    );
    let mut values: Vec<SqlValue> = vec![
        app.as_str().into(),
        XxlStatus::Waiting.as_str().into(),
        XxlStatus::Running.as_str().into(),
    ];
    values.extend(job.map(|job| job.0.into()));
    read_runs(tx, &sql, &values).await
}

/// Starts a waiting run. The caller holds the lock.
pub async fn begin(tx: &mut Tx, run: XxlRunId, now: Millis) -> Result<bool> {
    let sql = "UPDATE xxl_run SET status = ?, update_time = ? WHERE run_id = ? AND status = ?";
    let values = [
        XxlStatus::Running.as_str().into(),
        now.to_utc().into(),
        run.0.into(),
        XxlStatus::Waiting.as_str().into(),
    ];
    Ok(tx.execute(sql, &values).await.context("begin a run")? == 1)
}

/// Locks a run whose batches are not open yet until the end of the transaction; `false` when they
/// are open, or it is to be stopped.
pub async fn hold_unopened(tx: &mut Tx, run: XxlRunId, now: Millis) -> Result<bool> {
    let sql = "UPDATE xxl_run SET update_time = ? WHERE run_id = ? AND status = ? \
               AND batch_ids IS NULL AND stopping IS NULL";
    let values = [now.to_utc().into(), run.0.into(), XxlStatus::Running.as_str().into()];
    Ok(tx.execute(sql, &values).await.context("lock a run")? == 1)
}

/// Stores which batches were opened, and when they are stopped.
pub async fn set_batches(
    tx: &mut Tx,
    run: XxlRunId,
    batches: &[BatchId],
    deadline: Option<Millis>,
    now: Millis,
) -> Result<()> {
    let ids: Vec<i64> = batches.iter().map(|id| id.0).collect();
    let sql = "UPDATE xxl_run SET batch_ids = ?, deadline = ?, update_time = ? WHERE run_id = ?";
    let values = [
        serde_json::to_string(&ids)?.into(),
        deadline.map(Millis::to_utc).into(),
        now.to_utc().into(),
        run.0.into(),
    ];
    tx.execute(sql, &values).await.context("name the batches of a run")?;
    Ok(())
}

/// Marks a running run as stopping with a reason, and locks it until the end of the transaction;
/// `false` when it has ended. A first reason is kept.
pub async fn stop_run(tx: &mut Tx, run: XxlRunId, why: Stopping, now: Millis) -> Result<bool> {
    let sql = "UPDATE xxl_run SET stopping = COALESCE(stopping, ?), update_time = ? \
               WHERE run_id = ? AND status = ?";
    let values = [
        why.as_str().into(),
        now.to_utc().into(),
        run.0.into(),
        XxlStatus::Running.as_str().into(),
    ];
    Ok(tx.execute(sql, &values).await.context("stop a run")? == 1)
}

/// Ends an unchanged run; its end is due to be reported at once. `false` when another process came
/// first.
pub async fn end_run(tx: &mut Tx, was: &XxlRun, result: &RunResult, now: Millis) -> Result<bool> {
    let sql = "UPDATE xxl_run SET status = ?, handle_code = ?, handle_msg = ?, callback = ?, \
               callback_at = ?, end_time = ?, update_time = ? WHERE run_id = ? AND status = ?";
    let values = [
        XxlStatus::Done.as_str().into(),
        result.code.into(),
        result.message.as_str().into(),
        unreported_ends::DUE.into(),
        now.to_utc().into(),
        now.to_utc().into(),
        now.to_utc().into(),
        was.run_id.0.into(),
        was.status.as_str().into(),
    ];
    Ok(tx.execute(sql, &values).await.context("end a run")? == 1)
}

async fn read_runs(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Vec<XxlRun>> {
    let rows = tx.fetch_all(sql, values).await.context("read xxl_run")?;
    rows.iter().map(run_of_row).collect()
}

fn run_of_row(row: &Row) -> Result<XxlRun> {
    let status = row.get_text("status")?;
    let stopping = row.opt_text("stopping")?;
    let stopping = stopping.map(|word| {
        Stopping::parse(&word).with_context(|| format!("xxl_run.stopping holds {word:?}"))
    });
    let batches: Option<Vec<i64>> =
        row.opt_text("batch_ids")?.map(|ids| serde_json::from_str(&ids)).transpose()?;
    let timeout = row.opt_int("timeout_sec")?.map(u32::try_from).transpose()?;
    let code = row.opt_int("handle_code")?.map(i32::try_from).transpose()?;
    let message = row.opt_text("handle_msg")?.unwrap_or_default();
    Ok(XxlRun {
        run_id: XxlRunId(row.get_int("run_id")?),
        app_name: AppName::parse(&row.get_text("app_name")?)?,
        log_id: XxlLogId(row.get_int("log_id")?),
        log_date_time: row.get_int("log_date_time")?,
        job_id: XxlJobId(row.get_int("job_id")?),
        params: row.get_text("params")?,
        block: BlockStrategy::parse(&row.get_text("block_strategy")?),
        timeout_sec: timeout,
        status: XxlStatus::parse(&status)
            .with_context(|| format!("xxl_run.status holds {status:?}"))?,
        stopping: stopping.transpose()?,
        batches: batches.map(|ids| ids.into_iter().map(BatchId).collect()),
        deadline: row.opt_time("deadline")?.map(Millis::from),
        result: code.map(|code| RunResult { code, message }),
        tries: u32::try_from(row.get_int("callback_tries")?)?,
        create_time: row.get_time("create_time")?.into(),
        end_time: row.opt_time("end_time")?.map(Millis::from),
    })
}
