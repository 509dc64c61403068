//! Operators' commands on whole batches, and on jobs in all future batches.

use crate::domain::action::OperatorAction;
use crate::domain::id::BatchId;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::queue::RunMode;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::operate::operator_actions::of_batch;
use crate::store::audit::{AuditEntry, Operator};
use crate::store::batch::Going;
use crate::store::{self, Db, Tx, audit, batch};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Pauses or resumes a batch. `false` when it is in that state already.
pub async fn set_going(
    db: &Db,
    id: BatchId,
    going: Going,
    by: &Operator,
    reason: &str,
    now: Millis,
) -> Result<bool> {
    let mut tx = db.begin().await?;
    let there = batch::lock_batch(&mut tx, id).await?;
    if there.status.is_final() || there.is_paused == (going == Going::Paused) {
        tx.rollback().await?;
        return Ok(false);
    }
    batch::set_going(&mut tx, id, going, now).await?;
    let action = match going {
        Going::Paused => "pause",
        Going::On => "resume",
    };
    audit::record(&mut tx, by, &[of_batch(&there, action, reason)], now).await?;
    tx.commit().await.context("pause a batch, or let it go on")?;
    Ok(true)
}

/// Requests a stop of a batch; `false` when it is not running.
pub async fn stop_batch(
    db: &Db,
    id: BatchId,
    by: &Operator,
    reason: &str,
    now: Millis,
) -> Result<bool> {
    let mut tx = db.begin().await?;
    let asked = stop_in(&mut tx, id, by, reason, now).await?;
    tx.commit().await.context("ask for a batch to be stopped")?;
    Ok(asked)
}

/// The same within a transaction.
pub(in crate::engine) async fn stop_in(
    tx: &mut Tx,
    id: BatchId,
    by: &Operator,
    reason: &str,
    now: Millis,
) -> Result<bool> {
    let there = batch::lock_batch(tx, id).await?;
    let asked = batch::request_kill(tx, id, reason, now).await?;
    if asked {
        audit::record(tx, by, &[of_batch(&there, "kill", reason)], now).await?;
    }
    Ok(asked)
}

/// Clears the mark of jobs that committed by themselves, because an operator states that they are
/// fixed; returns those without a mark, and writes nothing then.
pub async fn trust(
    db: &Db,
    jobs: &[JobKey],
    by: &Operator,
    reason: &str,
    now: Millis,
) -> Result<Vec<JobKey>> {
    let mut tx = db.begin().await?;
    let marks = store::breach::list_marks(&mut tx).await?;
    let (found, unmarked): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| marks.contains_key(*job));
    if !unmarked.is_empty() {
        tx.rollback().await?;
        return Ok(unmarked.into_iter().cloned().collect());
    }
    let mut entries = Vec::new();
    for job in found {
        store::breach::clear(&mut tx, job).await?;
        let detail = marks.get(job).map(
            |mark| json!({"batch_no": mark.batch_no, "attempt": mark.attempt, "message": mark.said}),
        );
        entries.push(AuditEntry {
            action: "trust".to_owned(),
            group: Some(job.group.clone()),
            batch: None,
            job: Some(job.code.clone()),
            detail,
            reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
        });
    }
    audit::record(&mut tx, by, &entries, now).await?;
    tx.commit().await.context("take the marks off jobs that committed by themselves")?;
    Ok(Vec::new())
}

/// Sets or clears the run mode of jobs in every new batch; returns jobs that do not exist, and
/// writes nothing then.
pub async fn set_standing(
    db: &Db,
    jobs: &[JobKey],
    mode: Option<RunMode>,
    by: &Operator,
    reason: &str,
    now: Millis,
) -> Result<Vec<JobKey>> {
    let mut tx = db.begin().await?;
    let before = store::run_mode::standing(&mut tx).await?;
    let (mut entries, mut missing) = (Vec::new(), Vec::new());
    for job in jobs {
        if !store::run_mode::set_standing(&mut tx, job, mode, now).await? {
            missing.push(job.clone());
        }
        let word = |mode: Option<RunMode>| mode.map(RunMode::as_str);
        let action = match mode {
            Some(RunMode::Ice) => OperatorAction::Ice,
            Some(RunMode::NoExec | RunMode::NoWait) => OperatorAction::NoExec,
            None => OperatorAction::Normal,
        };
        entries.push(AuditEntry {
            action: action.as_str().to_owned(),
            group: Some(job.group.clone()),
            batch: None,
            job: Some(job.code.clone()),
            detail: Some(json!({
                "before": {"run_mode": word(before.get(job).copied())},
                "after": {"run_mode": word(mode)},
            })),
            reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
        });
    }
    if !missing.is_empty() {
        tx.rollback().await?;
        return Ok(missing);
    }
    audit::record(&mut tx, by, &entries, now).await?;
    tx.commit().await.context("set what is wanted with jobs in every batch")?;
    Ok(missing)
}
