//! `executor_run`: runs sent to executors of XXL-JOB. A status changes only by compare-and-set.

mod run_ends;
mod run_routes;
mod run_rows;
mod shown;

pub use run_ends::{KnownRun, ReportedRunEnd, known, open_runs, report_ends};
pub use run_routes::{
    RunExecutorGroup, address_is_seen, forget_uses, group, note_use, number, rounds, route_state,
    took_turns,
};
pub use run_rows::{
    NewExecutorRun, adopt, began, end_run, insert, note_request, saw_busy, saw_idle, settled,
    stop_others, stop_runs, wait_again,
};
pub use shown::{RunSeen, of_group};

use crate::db::{Row, SqlValue};
use crate::domain::executor::LogId;
use crate::domain::id::{BatchId, GroupCode, NodeId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEnd, RunStatus, StopWhy, UnreportedEnd};
use crate::domain::xxl::xxl_run::AppName;
use crate::store::{Tx, lock};
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// The lock that protects decisions on which run of a job starts, and on which executor.
const LOCK: &str = "executor_lock";

const COLUMNS: &str = "log_id, queue_id, run_no, attempt, batch_id, job_id, app_name, address, shard_index, \
     shard_total, status, stopping, node_id, trigger_time, busy_time, idle_time, handle_code, handle_msg, \
     result";

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorRunRow {
    /// Key, and the log id that executors know.
    pub log_id: LogId,
    /// The row of its job.
    pub queue_id: QueueId,
    /// Which run of that row.
    pub run_no: i64,
    /// The attempt that began it.
    pub attempt: u32,
    pub batch_id: BatchId,
    /// The id by which executors know its job.
    pub job_id: i64,
    pub app_name: AppName,
    /// The executor that receives or received it.
    pub address: Option<String>,
    /// Index and number of parts.
    pub shard: (i64, i64),
    pub status: RunStatus,
    /// Why it is being stopped.
    pub stopping: Option<StopWhy>,
    /// The process whose attempt waits for its end.
    pub node: Option<NodeId>,
    /// When it was sent.
    pub trigger_time: Option<Millis>,
    /// When its executor was first seen to run it.
    pub busy_time: Option<Millis>,
    /// Since when the executor does not run it.
    pub idle_time: Option<Millis>,
    /// The code that the executor reported.
    pub code: Option<i64>,
    /// The message of the executor, or of Procession.
    pub said: String,
    /// How it ended when the executor did not report it.
    pub result: Option<UnreportedEnd>,
}

impl ExecutorRunRow {
    /// Whether a stop was ordered and its success is unknown.
    pub fn is_unconfirmed(&self) -> bool {
        self.result == Some(UnreportedEnd::Unconfirmed) && self.code.is_none()
    }

    pub fn run_end(&self) -> RunEnd {
        RunEnd {
            log_id: self.log_id.0,
            address: self.address.clone(),
            shard: self.shard,
            stopping: self.stopping,
            result: self.result,
            code: self.code,
            said: self.said.clone(),
        }
    }
}

/// Locks decisions on runs until the end of the transaction; must be its first statement.
pub async fn lock_runs(tx: &mut Tx, now: Millis) -> Result<()> {
    if lock::hold_lock(tx, LOCK).await?.is_none() {
        lock::restore_row(tx, LOCK, now).await?;
    }
    Ok(())
}

/// The row of a job, as far as its run needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunQueueEntry {
    pub batch_id: BatchId,
    /// The group of its batch.
    pub group: GroupCode,
    /// Which run of the row.
    pub run_no: i64,
    /// The attempt number.
    pub attempt: u32,
    pub status: QueueStatus,
    pub owner: Option<NodeId>,
    /// The job's id for executors, and how often it was routed; `None` before its first run.
    pub job: Option<(i64, i64)>,
}

/// The rows of these jobs.
pub async fn entries(tx: &mut Tx, rows: &[QueueId]) -> Result<HashMap<QueueId, RunQueueEntry>> {
    let ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let sql = "SELECT q.queue_id, q.batch_id, b.group_code, q.run_no, q.attempt, q.status, q.owner, j.job_id, j.rounds \
               FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
               LEFT JOIN executor_job j ON j.group_code = b.group_code AND j.job_code = q.job_code WHERE q.queue_id";
    let rows = tx.fetch_in(sql, &ids, "").await.context("read job_queue")?;
    let entry = |row: &Row| {
        let word = row.get_text("status")?;
        let status = QueueStatus::parse(&word)
            .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
        let entry = RunQueueEntry {
            batch_id: BatchId(row.get_int("batch_id")?),
            group: GroupCode::parse(&row.get_text("group_code")?)?,
            run_no: row.get_int("run_no")?,
            attempt: u32::try_from(row.get_int("attempt")?)?,
            status,
            owner: row.opt_text("owner")?.map(NodeId),
            job: row.opt_int("job_id")?.zip(row.opt_int("rounds")?),
        };
        Ok((QueueId(row.get_int("queue_id")?), entry))
    };
    rows.iter().map(entry).collect()
}

/// The runs of these rows whose ends are not settled in the rows yet, oldest first.
pub async fn of_rows(tx: &mut Tx, rows: &[QueueId]) -> Result<Vec<ExecutorRunRow>> {
    let ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let sql = format!(
        "SELECT {COLUMNS} FROM executor_run WHERE status NOT IN ('DONE', 'UNCONFIRMED') AND queue_id"
    );
    let rows = tx.fetch_in(&sql, &ids, "ORDER BY log_id").await.context("read executor_run")?;
    rows.iter().map(run_of_row).collect()
}

/// The unfinished runs of these jobs, oldest first; including those whose stop was never confirmed.
///
/// Such a run may still be running, so no other run of its job may begin: until its executor
/// reports its end after all, or an operator decides about its job, whose row is UNKNOWN until
/// then.
pub async fn open_of_jobs(tx: &mut Tx, jobs: &[i64]) -> Result<Vec<ExecutorRunRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM executor_run WHERE (status IN ('WAITING', 'ASKED', 'RUNNING') \
         OR (status IN ('TOLD', 'UNCONFIRMED') AND result = 'UNCONFIRMED' AND handle_code IS NULL \
         AND EXISTS (SELECT 1 FROM job_queue q WHERE q.queue_id = executor_run.queue_id \
         AND q.run_no = executor_run.run_no AND q.status IN ('UNKNOWN', 'RUNNING', 'KILLING', \
         'RETRY_WAIT', 'HELD', 'PENDING', 'QUEUED')))) AND job_id"
    );
    let rows = tx.fetch_in(&sql, jobs, "ORDER BY log_id").await.context("read executor_run")?;
    rows.iter().map(run_of_row).collect()
}

/// The runs whose ends are to be passed to attempts of this process.
pub async fn list_reported(tx: &mut Tx, me: &NodeId) -> Result<Vec<ExecutorRunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM executor_run WHERE node_id = ? AND status = 'TOLD'");
    read_runs(tx, &sql, &[me.0.as_str().into()]).await
}

/// The runs of this process that are to be stopped.
pub async fn unwanted(tx: &mut Tx, me: &NodeId) -> Result<Vec<ExecutorRunRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM executor_run WHERE node_id = ? AND status IN ('ASKED', 'RUNNING') \
         AND stopping IS NOT NULL"
    );
    read_runs(tx, &sql, &[me.0.as_str().into()]).await
}

/// Unfinished runs whose job rows have ended: no attempt waits for them, and they block others of
/// their jobs.
pub async fn left_over(tx: &mut Tx, most: u32) -> Result<Vec<ExecutorRunRow>> {
    let columns: Vec<String> = COLUMNS.split(", ").map(|c| format!("r.{c} AS {c}")).collect();
    let sql = format!(
        "SELECT {} FROM executor_run r JOIN job_queue q ON q.queue_id = r.queue_id \
         WHERE r.end_time IS NULL AND r.status IN ('WAITING', 'ASKED', 'RUNNING') \
         AND (q.run_no > r.run_no OR q.status NOT IN ('RUNNING', 'KILLING', 'RETRY_WAIT', 'HELD', \
         'PENDING', 'QUEUED')) ORDER BY r.log_id LIMIT ?",
        columns.join(", ")
    );
    read_runs(tx, &sql, &[most.into()]).await
}

async fn read_runs(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Vec<ExecutorRunRow>> {
    let rows = tx.fetch_all(sql, values).await.context("read executor_run")?;
    rows.iter().map(run_of_row).collect()
}

fn run_of_row(row: &Row) -> Result<ExecutorRunRow> {
    let status = row.get_text("status")?;
    let stopping = row.opt_text("stopping")?;
    let stopping = stopping.map(|word| {
        StopWhy::parse(&word).with_context(|| format!("executor_run.stopping holds {word:?}"))
    });
    let result = row.opt_text("result")?;
    let result = result.map(|word| {
        UnreportedEnd::parse(&word).with_context(|| format!("executor_run.result holds {word:?}"))
    });
    Ok(ExecutorRunRow {
        log_id: LogId(row.get_int("log_id")?),
        queue_id: QueueId(row.get_int("queue_id")?),
        run_no: row.get_int("run_no")?,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        batch_id: BatchId(row.get_int("batch_id")?),
        job_id: row.get_int("job_id")?,
        app_name: AppName::parse(&row.get_text("app_name")?)?,
        address: row.opt_text("address")?,
        shard: (row.get_int("shard_index")?, row.get_int("shard_total")?),
        status: RunStatus::parse(&status)
            .with_context(|| format!("executor_run.status holds {status:?}"))?,
        stopping: stopping.transpose()?,
        node: row.opt_text("node_id")?.map(NodeId),
        trigger_time: row.opt_time("trigger_time")?.map(Millis::from),
        busy_time: row.opt_time("busy_time")?.map(Millis::from),
        idle_time: row.opt_time("idle_time")?.map(Millis::from),
        code: row.opt_int("handle_code")?,
        said: row.opt_text("handle_msg")?.unwrap_or_default(),
        result: result.transpose()?,
    })
}
