//! Durations of jobs, read from `job_execution_logs`.

use crate::domain::batch::history::{Durations, History, TRIES};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Number of a group's latest batches that are read. A job that failed in half of them still has
/// its `TRIES` successes, and the cost does not grow over the years.
const BATCHES: u32 = 40;

/// Number of batches read to find which jobs have slack. This is read before a batch starts, so it
/// has to be quick; a slightly wrong duration does not spoil the order of jobs.
const RECENT_BATCHES: u32 = 5;

/// The usual duration of one job: its last successful attempts, counted as in `of_group`. Uses the
/// index of numbers and jobs, so that the cost is the same in a group of ten thousand.
pub async fn of_job(tx: &mut Tx, group: &str, job: &str) -> Result<Option<Durations>> {
    let rows = tx
        .fetch_all(
            "SELECT l.duration_ms AS duration_ms FROM (SELECT batch_id, batch_no FROM job_batch \
             WHERE group_code = ? ORDER BY batch_id DESC LIMIT ?) b \
             JOIN job_queue q ON q.batch_id = b.batch_id AND q.job_code = ? \
             JOIN job_execution_logs l ON l.queue_id = q.queue_id \
             WHERE l.status IN (?, ?) AND l.duration_ms IS NOT NULL AND q.run_mode IS NULL \
             ORDER BY l.log_id DESC LIMIT ?",
            &[
                group.into(),
                BATCHES.into(),
                job.into(),
                QueueStatus::Success.as_str().into(),
                QueueStatus::Warning.as_str().into(),
                i64::try_from(TRIES).unwrap_or(i64::MAX).into(),
            ],
        )
        .await
        .with_context(|| format!("read the durations of job {job}"))?;
    let tries: Vec<i64> =
        rows.iter().map(|row| row.get_int("duration_ms")).collect::<Result<_, _>>()?;
    Ok(Durations::from_newest_first(&tries))
}

/// The durations of the last successful attempts of each job of a group. Attempts that were
/// followed by another, failed, were forced or skipped do not count; those of a batch that still
/// runs do.
pub async fn of_group(tx: &mut Tx, group: &GroupCode) -> Result<History> {
    of_batches(tx, group, BATCHES).await
}

/// The same of the latest few batches.
pub async fn of_recent_batches(tx: &mut Tx, group: &GroupCode) -> Result<History> {
    of_batches(tx, group, RECENT_BATCHES).await
}

async fn of_batches(tx: &mut Tx, group: &GroupCode, batches: u32) -> Result<History> {
    // A row with a run mode did not really run. Joined through the batches, whose rows and logs are
    // found by indexes; by job code it read all of job_queue.
    let rows = tx
        .fetch_all(
            "SELECT t.job_code AS job_code, t.duration_ms AS duration_ms FROM \
             (SELECT q.job_code AS job_code, l.duration_ms AS duration_ms, \
             ROW_NUMBER() OVER (PARTITION BY q.job_code ORDER BY l.log_id DESC) AS place \
             FROM (SELECT batch_id FROM job_batch WHERE group_code = ? \
             ORDER BY batch_id DESC LIMIT ?) b \
             JOIN job_queue q ON q.batch_id = b.batch_id \
             JOIN job_execution_logs l ON l.queue_id = q.queue_id \
             WHERE l.status IN (?, ?) AND l.duration_ms IS NOT NULL AND q.run_mode IS NULL) t \
             WHERE t.place <= ? ORDER BY t.job_code, t.place",
            &[
                group.as_str().into(),
                batches.into(),
                QueueStatus::Success.as_str().into(),
                QueueStatus::Warning.as_str().into(),
                i64::try_from(TRIES).unwrap_or(i64::MAX).into(),
            ],
        )
        .await
        .with_context(|| format!("read the durations of group {group}"))?;
    let tries: Result<Vec<(JobCode, i64)>> = rows
        .iter()
        .map(|row| Ok((JobCode::parse(&row.get_text("job_code")?)?, row.get_int("duration_ms")?)))
        .collect();
    Ok(History::from_tries(tries?))
}
