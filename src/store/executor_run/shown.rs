//! Runs sent to executors, for display.

use crate::db::{Row, SqlValue};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// A run for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSeen {
    /// The log id that its executor knows.
    pub log_id: i64,
    pub batch_id: i64,
    pub batch_no: String,
    pub group: String,
    pub job_code: String,
    /// The attempt number.
    pub attempt: i64,
    /// The executor; `None` before one is chosen.
    pub address: Option<String>,
    /// The handler; `None` for a script.
    pub handler: Option<String>,
    /// `BEAN`, or the language of a script.
    pub glue_type: String,
    /// Index and number of parts of a broadcast.
    pub shard: (i64, i64),
    pub status: String,
    /// Why it is being stopped.
    pub stopping: Option<String>,
    /// When it was sent.
    pub trigger_time: Option<Millis>,
    /// The code that its executor reported.
    pub handle_code: Option<i64>,
    /// The message of its executor.
    pub handle_msg: Option<String>,
    /// How it ended when its executor did not report it.
    pub result: Option<String>,
    pub create_time: Millis,
    /// When its end was known.
    pub end_time: Option<Millis>,
}

/// The runs of a group, newest first, older than the run `before`.
pub async fn of_group(
    tx: &mut Tx,
    app: &AppName,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<RunSeen>> {
    let sql = "SELECT r.log_id, r.batch_id, r.job_code, r.attempt, r.address, r.handler, r.glue_type, \
               r.shard_index, r.shard_total, r.status, r.stopping, r.trigger_time, r.handle_code, r.handle_msg, \
               r.result, r.create_time, r.end_time, b.batch_no, b.group_code FROM executor_run r \
               JOIN job_batch b ON b.batch_id = r.batch_id \
               WHERE r.app_name = ? AND r.log_id < ? ORDER BY r.log_id DESC LIMIT ?";
    let limit = i64::try_from(limit)?;
    let values: [SqlValue; 3] =
        [app.as_str().into(), before.unwrap_or(i64::MAX).into(), limit.into()];
    let rows = tx.fetch_all(sql, &values).await.context("list runs of executors")?;
    rows.iter().map(of_row).collect()
}

fn of_row(row: &Row) -> Result<RunSeen> {
    Ok(RunSeen {
        log_id: row.get_int("log_id")?,
        batch_id: row.get_int("batch_id")?,
        batch_no: row.get_text("batch_no")?,
        group: row.get_text("group_code")?,
        job_code: row.get_text("job_code")?,
        attempt: row.get_int("attempt")?,
        address: row.opt_text("address")?,
        handler: row.opt_text("handler")?,
        glue_type: row.get_text("glue_type")?,
        shard: (row.get_int("shard_index")?, row.get_int("shard_total")?),
        status: row.get_text("status")?,
        stopping: row.opt_text("stopping")?,
        trigger_time: row.opt_time("trigger_time")?.map(Into::into),
        handle_code: row.opt_int("handle_code")?,
        handle_msg: row.opt_text("handle_msg")?,
        result: row.opt_text("result")?,
        create_time: row.get_time("create_time")?.into(),
        end_time: row.opt_time("end_time")?.map(Into::into),
    })
}
