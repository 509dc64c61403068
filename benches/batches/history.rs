//! Batches of long ago, so that a scene can be measured on tables that are not new.

use anyhow::Result;
use chrono::{DateTime, Utc};
use procession::db::{Db, SqlValue};

/// Jobs of one of them.
const JOBS: usize = 10_000;
const OWNER: &str = "a process of long ago";

/// Writes batches of 10,000 jobs that have ended well, `rows` in all, each with two changes on record, and
/// changes each row once more, as its end did.
pub(crate) async fn write(db: &Db, rows: usize) -> Result<()> {
    let then = DateTime::<Utc>::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
    for number in 0..rows.div_ceil(JOBS) {
        let batch_no = format!("H{number:05}");
        let mut tx = db.begin().await?;
        let sql = "INSERT INTO job_batch (batch_no, group_code, batch_type, status, params, snapshot, \
                   started_by, create_time, end_time, update_time) \
                   VALUES (?, 'H', 'bench', 'SUCCESS', '{}', '{}', 'bench', ?, ?, ?)";
        let values = [batch_no.as_str().into(), then.into(), then.into(), then.into()];
        let batch = tx.insert_id(sql, "batch_id", &values).await?;
        let columns = [
            "batch_id",
            "batch_no",
            "job_code",
            "status",
            "attempt",
            "owner",
            "create_time",
            "update_time",
            "start_time",
            "end_time",
        ];
        let queued = (0..JOBS).map(|n| -> Vec<SqlValue> {
            let code = format!("H_{n:05}");
            let (status, owner) = ("RUNNING".into(), OWNER.into());
            let times = || SqlValue::from(then);
            vec![
                batch.into(),
                batch_no.as_str().into(),
                code.into(),
                status,
                1_i64.into(),
                owner,
                times(),
                times(),
                times(),
                times(),
            ]
        });
        tx.insert_many("job_queue", &columns, queued).await?;
        let sql = "SELECT queue_id FROM job_queue WHERE batch_id = ?";
        let ids = tx.fetch_all(sql, &[batch.into()]).await?;
        let ids = ids.iter().map(|row| row.get_int("queue_id")).collect::<Result<Vec<i64>, _>>()?;
        let columns = ["queue_id", "status", "attempt", "owner", "log_time"];
        let changes = ids.iter().flat_map(|id| {
            ["RUNNING", "SUCCESS"].map(|status| -> Vec<SqlValue> {
                vec![(*id).into(), status.into(), 1_i64.into(), OWNER.into(), then.into()]
            })
        });
        tx.insert_many("job_execution_logs", &columns, changes).await?;
        tx.commit().await?;
        let mut tx = db.begin().await?;
        let sql = "UPDATE job_queue SET status = 'SUCCESS' WHERE batch_id = ?";
        tx.execute(sql, &[batch.into()]).await?;
        tx.commit().await?;
    }
    Ok(())
}
