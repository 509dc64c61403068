//! State changes of runs.

use crate::db::SqlValue;
use crate::domain::executor::LogId;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::id::{BatchId, JobCode, NodeId, QueueId};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunStatus, StopWhy, UnreportedEnd};
use crate::domain::xxl::xxl_run::AppName;
use crate::store::Tx;
use crate::store::hint::{self, HintTopic};
use anyhow::{Context as _, Result};

/// A new run.
#[derive(Clone, Debug)]
pub struct NewExecutorRun<'a> {
    pub queue_id: QueueId,
    /// Which run of that row.
    pub run_no: i64,
    /// The attempt that begins it.
    pub attempt: u32,
    pub batch_id: BatchId,
    pub job: &'a JobCode,
    /// The job's id for executors.
    pub job_id: i64,
    pub app: &'a AppName,
    /// The name of the handler.
    pub handler: Option<&'a str>,
    /// `BEAN`, or the language of a script.
    pub glue_type: &'a str,
    /// The parameters of the handler.
    pub params: &'a str,
    /// What to do while an earlier run has not ended.
    pub block: BlockStrategy,
    /// The executor that receives it; `None` for a waiting run.
    pub address: Option<&'a str>,
    /// Index and number of parts.
    pub shard: (i64, i64),
    /// How it ended, if it has ended already.
    pub ended: Option<(UnreportedEnd, &'a str)>,
}

const INSERTED: [&str; 22] = [
    "queue_id",
    "run_no",
    "attempt",
    "batch_id",
    "job_code",
    "job_id",
    "app_name",
    "address",
    "handler",
    "glue_type",
    "params",
    "block_strategy",
    "shard_index",
    "shard_total",
    "status",
    "node_id",
    "trigger_time",
    "handle_msg",
    "result",
    "create_time",
    "update_time",
    "end_time",
];

/// Inserts runs; their keys are read by `of_rows`.
pub async fn insert(
    tx: &mut Tx,
    runs: &[NewExecutorRun<'_>],
    me: &NodeId,
    now: Millis,
) -> Result<()> {
    let time = || SqlValue::from(now.to_utc());
    let rows: Vec<Vec<SqlValue>> = runs
        .iter()
        .map(|run| {
            let status = match (run.ended, run.address) {
                (Some(_), _) => RunStatus::Told,
                (None, Some(_)) => RunStatus::Asked,
                (None, None) => RunStatus::Waiting,
            };
            let ended = run.ended;
            let asked = run.address.map(|_| now.to_utc());
            vec![
                run.queue_id.0.into(),
                run.run_no.into(),
                run.attempt.into(),
                run.batch_id.0.into(),
                run.job.as_str().into(),
                run.job_id.into(),
                run.app.as_str().into(),
                run.address.into(),
                run.handler.into(),
                run.glue_type.into(),
                run.params.into(),
                run.block.as_str().into(),
                run.shard.0.into(),
                run.shard.1.into(),
                status.as_str().into(),
                me.0.as_str().into(),
                asked.into(),
                ended.map(|(_, said)| said).into(),
                ended.map(|(ended, _)| ended.as_str()).into(),
                time(),
                time(),
                ended.map(|_| now.to_utc()).into(),
            ]
        })
        .collect();
    tx.insert_many("executor_run", &INSERTED, rows).await.context("write runs of executors")
}

/// Makes this process wait for runs of an earlier attempt.
pub async fn adopt(tx: &mut Tx, runs: &[i64], me: &NodeId, now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET node_id = ?, update_time = ? WHERE status NOT IN ('DONE', 'UNCONFIRMED') \
         AND log_id";
    let values = [me.0.as_str().into(), now.to_utc().into()];
    tx.execute_in(sql, &values, runs, "", &[]).await.context("go on with runs")?;
    Ok(())
}

/// Marks a waiting run as being sent to an executor; `false` when it no longer waits.
pub async fn note_request(
    tx: &mut Tx,
    run: LogId,
    address: &str,
    total: i64,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE executor_run SET status = 'ASKED', address = ?, shard_total = ?, trigger_time = ?, \
               update_time = ? WHERE log_id = ? AND status = 'WAITING' AND stopping IS NULL";
    let time = || SqlValue::from(now.to_utc());
    let values = [address.into(), total.into(), time(), time(), run.0.into()];
    Ok(tx.execute(sql, &values).await.context("send a run")? == 1)
}

/// Puts a run that was not sent back into the queue; `false` when it has ended.
pub async fn wait_again(
    tx: &mut Tx,
    run: LogId,
    me: &NodeId,
    said: &str,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE executor_run SET status = 'WAITING', trigger_msg = ?, update_time = ? \
               WHERE log_id = ? AND node_id = ? AND status = 'ASKED'";
    let me = me.0.as_str().into();
    let values = [said.into(), now.to_utc().into(), run.0.into(), me];
    Ok(tx.execute(sql, &values).await.context("put a run back")? == 1)
}

/// Marks runs that executors have accepted.
pub async fn began(tx: &mut Tx, runs: &[i64], now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET status = 'RUNNING', trigger_code = 200, update_time = ? \
               WHERE status = 'ASKED' AND log_id";
    tx.execute_in(sql, &[now.to_utc().into()], runs, "", &[])
        .await
        .context("note who took runs")?;
    Ok(())
}

/// Marks runs that executors were seen to run.
pub async fn saw_busy(tx: &mut Tx, runs: &[i64], now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET busy_time = ?, idle_time = NULL, update_time = ? \
               WHERE status IN ('ASKED', 'RUNNING') AND log_id";
    let values = [now.to_utc().into(), now.to_utc().into()];
    tx.execute_in(sql, &values, runs, "", &[]).await.context("note who is busy")?;
    Ok(())
}

/// Marks runs that executors say they do not run.
pub async fn saw_idle(tx: &mut Tx, runs: &[i64], now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET idle_time = ?, update_time = ? \
               WHERE status IN ('ASKED', 'RUNNING') AND log_id";
    let values = [now.to_utc().into(), now.to_utc().into()];
    tx.execute_in(sql, &values, runs, "", &[]).await.context("note who is idle")?;
    Ok(())
}

/// Marks runs as being stopped; a first reason is kept.
pub async fn stop_runs(tx: &mut Tx, runs: &[i64], why: StopWhy, now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET stopping = COALESCE(stopping, ?), update_time = ? \
               WHERE status IN ('ASKED', 'RUNNING') AND log_id";
    let values = [why.as_str().into(), now.to_utc().into()];
    tx.execute_in(sql, &values, runs, "", &[]).await.context("stop runs")?;
    Ok(())
}

/// Stops runs of other attempts that a later run covers: waiting ones end, the others are stopped
/// by their processes.
pub async fn stop_others(tx: &mut Tx, runs: &[i64], said: &str, now: Millis) -> Result<()> {
    let time = || SqlValue::from(now.to_utc());
    let covered = UnreportedEnd::Stopped(StopWhy::Covered).as_str();
    let sql = "UPDATE executor_run SET status = 'TOLD', stopping = COALESCE(stopping, ?), result = ?, \
               handle_msg = ?, end_time = ?, update_time = ? WHERE status = 'WAITING' AND log_id";
    let values = [StopWhy::Covered.as_str().into(), covered.into(), said.into(), time(), time()];
    tx.execute_in(sql, &values, runs, "", &[]).await.context("cover runs that wait")?;
    stop_runs(tx, runs, StopWhy::Covered, now).await?;
    hint::send_hint(tx, HintTopic::Run).await
}

/// Ends a run without a report of its executor; `false` when it had ended already.
pub async fn end_run(
    tx: &mut Tx,
    run: LogId,
    ended: UnreportedEnd,
    said: &str,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE executor_run SET status = 'TOLD', result = ?, handle_msg = ?, end_time = ?, \
               update_time = ? WHERE log_id = ? AND status IN ('WAITING', 'ASKED', 'RUNNING')";
    let time = || SqlValue::from(now.to_utc());
    let values = [ended.as_str().into(), said.into(), time(), time(), run.0.into()];
    Ok(tx.execute(sql, &values).await.context("end a run")? == 1)
}

/// Marks the runs of these jobs as settled in their rows.
pub async fn settled(tx: &mut Tx, rows: &[i64], now: Millis) -> Result<()> {
    let sql = "UPDATE executor_run SET status = CASE WHEN result = 'UNCONFIRMED' AND handle_code IS NULL \
               THEN 'UNCONFIRMED' ELSE 'DONE' END, update_time = ? WHERE status = 'TOLD' AND queue_id";
    tx.execute_in(sql, &[now.to_utc().into()], rows, "", &[]).await.context("close runs")?;
    Ok(())
}
