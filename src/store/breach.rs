//! `tx_breach`: jobs that ended their transaction by themselves although they are declared `same` or
//! `ledger`; they are not started until somebody trusts them again.

use crate::domain::id::{BatchNo, JobCode, QueueId};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// What was seen of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The job.
    pub job_code: JobCode,
    /// The batch in which it was seen.
    pub batch_no: BatchNo,
    /// The row.
    pub queue_id: QueueId,
    /// The try.
    pub attempt: u32,
    /// What was seen.
    pub said: String,
    /// When.
    pub at: Millis,
}

/// Marks a job; what was seen last counts.
pub async fn mark(
    tx: &mut Tx,
    job: &JobCode,
    batch_no: &BatchNo,
    queue_id: QueueId,
    attempt: u32,
    said: &str,
    now: Millis,
) -> Result<()> {
    clear(tx, job).await?;
    tx.execute(
        "INSERT INTO tx_breach (job_code, batch_no, queue_id, attempt, said, create_time) \
         VALUES (?, ?, ?, ?, ?, ?)",
        &[
            job.as_str().into(),
            batch_no.as_str().into(),
            queue_id.0.into(),
            attempt.into(),
            said.into(),
            now.to_utc().into(),
        ],
    )
    .await
    .context("mark a job that commits by itself")?;
    Ok(())
}

/// What is held against a job.
pub async fn of_job(tx: &mut Tx, job: &JobCode) -> Result<Option<Breach>> {
    let sql =
        "SELECT batch_no, queue_id, attempt, said, create_time FROM tx_breach WHERE job_code = ?";
    let row = tx.fetch_optional(sql, &[job.as_str().into()]).await.context("look for a mark")?;
    row.map(|row| {
        Ok(Breach {
            job_code: job.clone(),
            batch_no: BatchNo::parse(&row.text("batch_no")?)?,
            queue_id: QueueId(row.int("queue_id")?),
            attempt: u32::try_from(row.int("attempt")?)?,
            said: row.text("said")?,
            at: row.time("create_time")?.into(),
        })
    })
    .transpose()
}

/// Takes a mark away; whether there was one.
pub async fn clear(tx: &mut Tx, job: &JobCode) -> Result<bool> {
    let sql = "DELETE FROM tx_breach WHERE job_code = ?";
    Ok(tx.execute(sql, &[job.as_str().into()]).await.context("trust a job again")? > 0)
}
