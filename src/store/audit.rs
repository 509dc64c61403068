//! `audit_log`: who did what, when and why; rows are only ever added.

use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// One thing that somebody did.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Who.
    pub actor: &'a str,
    /// On which host.
    pub host: &'a str,
    /// What: `rollback`.
    pub action: &'a str,
    /// To which group.
    pub group: Option<&'a GroupCode>,
    /// To which batch.
    pub batch: Option<(BatchId, &'a BatchNo)>,
    /// To which job.
    pub job: Option<&'a JobCode>,
    /// What exactly.
    pub detail: Option<String>,
    /// Why.
    pub reason: Option<&'a str>,
}

/// Writes it down, in the transaction of the thing itself.
pub async fn record(tx: &mut Tx, entry: &Entry<'_>, now: Millis) -> Result<()> {
    tx.execute(
        "INSERT INTO audit_log \
         (actor, host, action, group_code, batch_id, batch_no, job_code, detail, reason, create_time) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &[
            entry.actor.into(),
            entry.host.into(),
            entry.action.into(),
            entry.group.map(GroupCode::as_str).into(),
            entry.batch.map(|(id, _)| id.0).into(),
            entry.batch.map(|(_, no)| no.as_str()).into(),
            entry.job.map(JobCode::as_str).into(),
            entry.detail.as_deref().into(),
            entry.reason.into(),
            now.to_utc().into(),
        ],
    )
    .await
    .context("write audit_log")?;
    Ok(())
}
