//! An order becomes rows: snapshot and one queue row per active job.

use crate::domain::batch::{BatchOrder, BatchPlan, plan};
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::Definition;
use crate::domain::queue::QueueStatus;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::opening::Refused;
use crate::store::audit::{Entry, Operator};
use crate::store::{self, Db, Tx, audit, batch, queue, run_mode};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Opens the batches an order asks for without having them: the next process that serves takes them.
/// Refused as `QueueDispatcher::open` refuses.
pub async fn open_for_anyone(
    db: &Db,
    defs: &Definition,
    order: &BatchOrder,
    by: &str,
    now: Millis,
) -> Result<Vec<BatchId>> {
    open_as(db, None, defs, order, by, now).await
}

/// As [`open_for_anyone`], on record: who opened them and why. Values of parameters are not written.
pub async fn open_on_record(
    db: &Db,
    defs: &Definition,
    order: &BatchOrder,
    (by, reason): (&Operator, &str),
    now: Millis,
) -> Result<Vec<BatchId>> {
    let plans = plan(defs, order, now)?;
    let mut tx = db.begin().await?;
    let opened = open_in(&mut tx, None, &plans, &by.actor, now).await?;
    let names: Vec<&String> = order.params.keys().collect();
    let entry = |(id, plan): (&BatchId, &BatchPlan)| Entry {
        action: "open".to_owned(),
        group: Some(plan.values.group.clone()),
        batch: Some((*id, plan.values.batch_no.clone())),
        job: None,
        detail: Some(json!({"type": order.batch_type, "params": names})),
        reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
    };
    let entries: Vec<Entry> = opened.iter().zip(&plans).map(entry).collect();
    audit::record(&mut tx, by, &entries, now).await?;
    tx.commit().await.context("open the batch")?;
    Ok(opened)
}

/// Opens them for `owner`, or for nobody; in one transaction for all of them. Nothing is written when
/// any of them exists.
pub(super) async fn open_as(
    db: &Db,
    owner: Option<&NodeId>,
    defs: &Definition,
    order: &BatchOrder,
    by: &str,
    now: Millis,
) -> Result<Vec<BatchId>> {
    let plans = plan(defs, order, now)?;
    for warning in plans.iter().flat_map(|p| &p.warnings) {
        tracing::warn!("{warning}");
    }
    let mut tx = db.begin().await?;
    let opened = open_in(&mut tx, owner, &plans, by, now).await?;
    tx.commit().await.context("open the batch")?;
    Ok(opened)
}

/// Opens batches within a transaction; an error is a reason to undo it.
pub(super) async fn open_in(
    tx: &mut Tx,
    owner: Option<&NodeId>,
    plans: &[BatchPlan],
    by: &str,
    now: Millis,
) -> Result<Vec<BatchId>> {
    let mut opened = Vec::new();
    for plan in plans {
        let values = &plan.values;
        if let Some(there) = batch::find(tx, &values.batch_no, &values.group).await? {
            return Err(Refused::exists(&there).into());
        }
        opened.push(write_plan(tx, plan, owner, by, now).await?);
        failpoint!("batch.mid");
    }
    Ok(opened)
}

/// Writes one batch with its rows.
pub(super) async fn write_plan(
    tx: &mut Tx,
    plan: &BatchPlan,
    owner: Option<&NodeId>,
    by: &str,
    now: Millis,
) -> Result<BatchId> {
    let id = batch::insert(tx, plan, owner, by, now).await?;
    let entries: Vec<queue::NewEntry<'_>> = plan
        .snapshot
        .jobs
        .iter()
        .zip(&plan.not_before)
        .map(|(job, not_before)| queue::NewEntry { job_code: &job.code, not_before: *not_before })
        .collect();
    let values = &plan.values;
    match queue::generate(tx, id, values.batch_no.as_str(), &entries, now).await {
        Err(error) if store::is_taken(&error) => {
            Err(Refused::JobTaken(values.batch_no.to_string(), values.group.to_string()).into())
        }
        other => other,
    }?;
    // Jobs on ice in every batch are left out from the start.
    let note = "on ice in every batch, by an operator (procession job list shows it)";
    let iced = run_mode::take_over(tx, id, note, now).await?;
    let log = |queue_id: &QueueId| store::log::ExecutionLog {
        queue_id: *queue_id,
        status: QueueStatus::Skipped,
        start_time: None,
        end_time: None,
        error_message: Some(note.to_owned()),
        notified: false,
        try_count: 0,
        attempt: 0,
        owner: None,
    };
    store::log::append(tx, &iced.iter().map(log).collect::<Vec<_>>(), now).await?;
    Ok(id)
}
