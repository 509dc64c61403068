//! `job_def.run_mode`: the run mode that operators set for a job in every new batch. No definition
//! file contains it, so `apply` does not change it.

use crate::domain::id::{BatchId, GroupCode, JobCode, QueueId};
use crate::domain::job::job_key::JobKey;
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::domain::time::Millis;
use crate::store::{Tx, queue};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// The jobs with a standing run mode.
pub async fn standing(tx: &mut Tx) -> Result<BTreeMap<JobKey, RunMode>> {
    let sql = "SELECT group_code, job_code, run_mode FROM job_def WHERE run_mode IS NOT NULL";
    let mut modes = BTreeMap::new();
    for row in tx.fetch_all(sql, &[]).await? {
        if let Some(mode) = queue::run_mode(&row)? {
            let group = GroupCode::parse(&row.get_text("group_code")?)?;
            let key = JobKey { group, code: JobCode::parse(&row.get_text("job_code")?)? };
            modes.insert(key, mode);
        }
    }
    Ok(modes)
}

/// Sets or clears the standing run mode of a job; `false` when there is no such job.
pub async fn set_standing(
    tx: &mut Tx,
    job: &JobKey,
    mode: Option<RunMode>,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE job_def SET run_mode = ?, update_time = ? WHERE group_code = ? \
               AND job_code = ?";
    let mode = mode.map(RunMode::as_str);
    let (group, code) = (job.group.as_str(), job.code.as_str());
    let values = [mode.into(), now.to_utc().into(), group.into(), code.into()];
    let found = tx.execute(sql, &values).await.with_context(|| format!("write job {job}"))?;
    Ok(found == 1)
}

/// Copies the standing run modes of the jobs into the rows of a new batch of `group`; jobs on ice
/// are skipped at once. Returns their rows.
pub async fn take_over(
    tx: &mut Tx,
    batch: BatchId,
    group: &GroupCode,
    note: &str,
    now: Millis,
) -> Result<Vec<QueueId>> {
    if standing(tx).await?.keys().all(|job| job.group != *group) {
        return Ok(Vec::new());
    }
    tx.execute(
        "UPDATE job_queue SET run_mode = \
         (SELECT d.run_mode FROM job_def d WHERE d.group_code = ? AND d.job_code = job_queue.job_code) \
         WHERE batch_id = ? AND EXISTS (SELECT 1 FROM job_def d WHERE d.group_code = ? \
         AND d.job_code = job_queue.job_code AND d.run_mode IS NOT NULL)",
        &[group.as_str().into(), batch.0.into(), group.as_str().into()],
    )
    .await
    .context("give a batch the standing modes of its jobs")?;
    let ice = [batch.0.into(), RunMode::Ice.as_str().into()];
    let rows = tx
        .fetch_all("SELECT queue_id FROM job_queue WHERE batch_id = ? AND run_mode = ?", &ice)
        .await?;
    let ids: Vec<i64> = rows.iter().map(|r| r.get_int("queue_id")).collect::<Result<_, _>>()?;
    tx.execute(
        "UPDATE job_queue SET status = ?, skip_kind = ?, error_message = ?, end_time = ? \
         WHERE batch_id = ? AND run_mode = ?",
        &[
            QueueStatus::Skipped.as_str().into(),
            QueueStatus::Skipped.skip_kind().into(),
            note.into(),
            now.to_utc().into(),
            batch.0.into(),
            RunMode::Ice.as_str().into(),
        ],
    )
    .await
    .context("leave out the jobs on ice")?;
    Ok(ids.into_iter().map(QueueId).collect())
}
