//! `tx_breach`: jobs that committed by themselves although they are declared `same` or `ledger`
//! (transaction-class violation).
//!
//! A mark belongs to a job's definition, not to one batch: the procedure is the same in all. It
//! lasts until the job is declared `tx: none`, or an operator states that it is fixed.

use crate::domain::id::{BatchNo, GroupCode, JobCode, QueueId};
use crate::domain::job::job_key::JobKey;
use crate::domain::job::{Definition, JobDef};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashSet};

/// The violation of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub job: JobKey,
    /// The batch it ran in.
    pub batch_no: BatchNo,
    pub queue_id: QueueId,
    pub attempt: u32,
    /// The observation.
    pub said: String,
    pub at: Millis,
}

/// Marks a job, by the code of its definition (`JobDef::defined_as`). Replaces an earlier mark.
pub async fn mark_job(tx: &mut Tx, breach: &Breach) -> Result<()> {
    let Breach { job, batch_no, queue_id, attempt, said: message, at } = breach;
    let values = [
        batch_no.as_str().into(),
        queue_id.0.into(),
        (*attempt).into(),
        message.as_str().into(),
        at.to_utc().into(),
        job.group.as_str().into(),
        job.code.as_str().into(),
    ];
    let again = "UPDATE tx_breach SET batch_no = ?, queue_id = ?, attempt = ?, said = ?, \
                 create_time = ? WHERE group_code = ? AND job_code = ?";
    let first = "INSERT INTO tx_breach (batch_no, queue_id, attempt, said, create_time, group_code, \
                 job_code) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let what = || format!("mark job {job} as one that commits by itself");
    if tx.execute(again, &values).await.with_context(what)? == 0 {
        tx.execute(first, &values).await.with_context(what)?;
    }
    Ok(())
}

/// All marks, by job.
pub async fn list_marks(tx: &mut Tx) -> Result<BTreeMap<JobKey, Breach>> {
    // A row of an earlier version may have lost its job and its batch, and with them its group.
    let sql = "SELECT * FROM tx_breach WHERE group_code <> ''";
    let rows = tx.fetch_all(sql, &[]).await.context("read tx_breach")?;
    let one = |row: &crate::db::Row| -> Result<(JobKey, Breach)> {
        let group = GroupCode::parse(&row.get_text("group_code")?)?;
        let job = JobKey { group, code: JobCode::parse(&row.get_text("job_code")?)? };
        let breach = Breach {
            job: job.clone(),
            batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
            queue_id: QueueId(row.get_int("queue_id")?),
            attempt: u32::try_from(row.get_int("attempt")?)?,
            said: row.get_text("said")?,
            at: row.get_time("create_time")?.into(),
        };
        Ok((job, breach))
    };
    rows.iter().map(one).collect()
}

/// The mark of a job, by the code of its definition.
pub async fn of_job(tx: &mut Tx, job: &JobKey) -> Result<Option<Breach>> {
    Ok(list_marks(tx).await?.remove(job))
}

/// The marks of these jobs that still contradict their class.
pub async fn of_jobs(tx: &mut Tx, defs: &Definition) -> Result<Vec<Breach>> {
    let marks = list_marks(tx).await?;
    let jobs = defs.jobs.iter().filter(|job| job.tx.is_recorded());
    Ok(jobs.filter_map(|job| marks.get(&JobKey::of_definition(job)).cloned()).collect())
}

/// Removes a mark; returns whether there was one.
pub async fn clear(tx: &mut Tx, job: &JobKey) -> Result<bool> {
    let sql = "DELETE FROM tx_breach WHERE group_code = ? AND job_code = ?";
    let found = tx.execute(sql, &[job.group.as_str().into(), job.code.as_str().into()]).await;
    Ok(found.with_context(|| format!("clear the mark of job {job}"))? > 0)
}

/// Removes the marks of jobs that a definition no longer has, or declares `tx: none`.
pub(super) async fn clear_settled(
    tx: &mut Tx,
    stored: &Definition,
    wanted: &Definition,
) -> Result<()> {
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let kept: HashSet<JobKey> =
        wanted.jobs.iter().filter(|j| j.tx.is_recorded()).map(JobDef::key).collect();
    let before = stored.jobs.iter().filter(|j| groups.contains(&j.group));
    let gone: HashSet<JobKey> =
        before.chain(&wanted.jobs).map(JobDef::key).filter(|job| !kept.contains(job)).collect();
    for job in list_marks(tx).await?.keys().filter(|job| gone.contains(job)) {
        clear(tx, job).await?;
    }
    Ok(())
}
