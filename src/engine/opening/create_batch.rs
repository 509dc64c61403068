//! Turns an order into rows: the snapshot and one queue row per active job.

use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{Batch, BatchOrder, BatchPlan, start_times};
use crate::domain::id::{BatchId, GroupCode, NodeId, QueueId};
use crate::domain::job::Definition;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::host::host_name;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::audit::{AuditEntry, Operator};
use crate::store::batch::{NewBatch, PackedSnapshot, ROWS_PER_STEP};
use crate::store::long_computation::compute;
use crate::store::{self, Db, Tx, audit, batch, queue, run_mode};
use anyhow::{Context as _, Result};
use serde_json::json;

/// The result of an order for several groups, each of which is opened separately.
#[derive(Clone, Debug, Default)]
pub struct OpeningResult {
    /// The batches that were opened.
    pub opened: Vec<BatchId>,
    /// Batches that exist already; they were not changed.
    pub existing: Vec<Batch>,
}

/// How often opening is retried after a lost race for a batch. The winner has committed by then, so
/// that the second attempt finds its batch.
const RACES: u32 = 5;

/// Opens the batches of an order without an owner: the next serving process claims them. Refused
/// under the same conditions as `QueueDispatcher::open_batches`.
pub async fn open_for_anyone(
    db: &Db,
    defs: &Definition,
    order: &BatchOrder,
    by: &str,
    now: Millis,
) -> Result<Vec<BatchId>> {
    Ok(open_unowned(db, defs, order, by, now).await?.opened)
}

/// Like [`open_for_anyone`], and returns the batches that exist already.
pub async fn open_unowned(
    db: &Db,
    defs: &Definition,
    order: &BatchOrder,
    by: &str,
    now: Millis,
) -> Result<OpeningResult> {
    let plans = compute(defs.jobs.len(), || plan_opening(defs, order, now))?;
    open_plans(db, None, plans, by, now).await
}

/// Like [`open_for_anyone`], with an audit record of who opened them and why. Parameter values are
/// not recorded.
pub async fn open_on_record(
    db: &Db,
    defs: &Definition,
    order: &BatchOrder,
    (by, reason): (&Operator, &str),
    now: Millis,
) -> Result<OpeningResult> {
    let plans =
        PackedPlan::pack_plans(compute(defs.jobs.len(), || plan_opening(defs, order, now))?)?;
    let (mut tx, made) = begin_opening(db, None, &plans, by.into(), now).await?;
    let names: Vec<&String> = order.params.keys().collect();
    let exists =
        |plan: &&BatchPlan| made.existing.iter().any(|b| b.values.group == plan.values.group);
    let opened = plans.iter().map(|packed| &packed.plan).filter(|plan| !exists(plan));
    let entry = |(id, plan): (&BatchId, &BatchPlan)| AuditEntry {
        action: "open".to_owned(),
        group: Some(plan.values.group.clone()),
        batch: Some((*id, plan.values.batch_no.clone())),
        job: None,
        detail: Some(json!({"type": order.batch_type, "params": names})),
        reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
    };
    let entries: Vec<AuditEntry> = made.opened.iter().zip(opened).map(entry).collect();
    audit::record(&mut tx, by, &entries, now).await?;
    tx.commit().await.context("open the batch")?;
    Ok(made)
}

/// Opens them for `owner`, or unowned; in one transaction for all of them. Those that exist are left as
/// they are; when all exist, that is the refusal.
pub(in crate::engine) async fn open_plans(
    db: &Db,
    owner: Option<&NodeId>,
    plans: Vec<BatchPlan>,
    by: &str,
    now: Millis,
) -> Result<OpeningResult> {
    for warning in plans.iter().flat_map(|p| &p.warnings) {
        tracing::warn!("{warning}");
    }
    let plans = PackedPlan::pack_plans(plans)?;
    let (tx, made) = begin_opening(db, owner, &plans, by.into(), now).await?;
    tx.commit().await.context("open the batch")?;
    Ok(made)
}

/// Opens batches in a transaction for the caller to commit. Of two processes that open the same
/// batch at once, the second gets a duplicate key; it retries and finds the batch.
async fn begin_opening(
    db: &Db,
    owner: Option<&NodeId>,
    plans: &[PackedPlan],
    by: BatchOpener<'_>,
    now: Millis,
) -> Result<(Tx, OpeningResult)> {
    let mut races = 0;
    loop {
        let mut tx = db.begin().await?;
        match open_in(&mut tx, owner, plans, by, now).await {
            Err(error) if store::is_taken(&error) && races < RACES => {
                races += 1;
                tx.rollback().await?;
            }
            made => return Ok((tx, made?)),
        }
    }
}

/// Opens batches within a transaction; after an error the caller must roll back.
pub(in crate::engine) async fn open_in(
    tx: &mut Tx,
    owner: Option<&NodeId>,
    plans: &[PackedPlan],
    by: BatchOpener<'_>,
    now: Millis,
) -> Result<OpeningResult> {
    let mut made = OpeningResult::default();
    for plan in plans {
        let values = &plan.plan.values;
        if let Some(there) = batch::find_batch(tx, &values.batch_no, &values.group).await? {
            made.existing.push(there);
            continue;
        }
        made.opened.push(write_plan(tx, plan, owner, by, now).await?);
        failpoint!("batch.mid");
    }
    match made.existing.first() {
        Some(there) if made.opened.is_empty() => Err(OpeningRefusal::exists(there).into()),
        _ => Ok(made),
    }
}

/// Who opens a batch.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct BatchOpener<'a> {
    actor: &'a str,
    /// From where; none is this host.
    host: Option<&'a str>,
}

impl<'a> From<&'a str> for BatchOpener<'a> {
    fn from(actor: &'a str) -> Self {
        Self { actor, host: None }
    }
}

impl<'a> From<&'a Operator> for BatchOpener<'a> {
    fn from(by: &'a Operator) -> Self {
        Self { actor: &by.actor, host: Some(&by.host) }
    }
}

/// A number that does not fit the type of its group was wanted; who wanted it is on record.
async fn record_free_text(
    tx: &mut Tx,
    (id, plan): (BatchId, &BatchPlan),
    by: BatchOpener<'_>,
    now: Millis,
) -> Result<()> {
    if !plan.is_free_text() {
        return Ok(());
    }
    let values = &plan.values;
    let entry = AuditEntry {
        action: "open-free-text".to_owned(),
        group: Some(values.group.clone()),
        batch: Some((id, values.batch_no.clone())),
        job: None,
        detail: Some(json!({"type": plan.batch_type, "business_date": values.business_date})),
        reason: None,
    };
    let host = by.host.map_or_else(host_name, str::to_owned);
    audit::record(tx, &Operator::new(by.actor.to_owned(), host), &[entry], now).await
}

/// A plan whose snapshot is packed for storage, which takes long for many jobs and needs no
/// transaction.
#[derive(Clone, Debug)]
pub(in crate::engine) struct PackedPlan {
    pub(in crate::engine) plan: BatchPlan,
    snapshot: PackedSnapshot,
}

impl PackedPlan {
    pub(in crate::engine) fn new(plan: BatchPlan) -> Result<Self> {
        let snapshot = PackedSnapshot::new(&plan.snapshot)?;
        Ok(Self { plan, snapshot })
    }

    /// Packs all plans of an order.
    pub(in crate::engine) fn pack_plans(plans: Vec<BatchPlan>) -> Result<Vec<Self>> {
        plans.into_iter().map(Self::new).collect()
    }
}

/// Writes one batch with its rows. Of a batch with many jobs most rows are left to its owner, who
/// writes them in steps (`UnfinishedOpening`).
pub(in crate::engine) async fn write_plan(
    tx: &mut Tx,
    PackedPlan { plan, snapshot }: &PackedPlan,
    owner: Option<&NodeId>,
    by: BatchOpener<'_>,
    now: Millis,
) -> Result<BatchId> {
    let values = &plan.values;
    let mut entries = new_entries(plan);
    let unwritten_jobs = entries.len().saturating_sub(ROWS_PER_STEP);
    if unwritten_jobs > 0 {
        entries.truncate(ROWS_PER_STEP);
        // The later rows know only the time of the batch, so the first ones use it too.
        let start_times = start_times(&plan.snapshot, now)?;
        entries.iter_mut().zip(start_times).for_each(|(entry, start)| entry.not_before = start);
    }
    let new = NewBatch { plan, snapshot, unwritten_jobs, owner, started_by: by.actor };
    let id = batch::insert(tx, new, now).await?;
    record_free_text(tx, (id, plan), by, now).await?;
    queue::generate(tx, id, values.batch_no.as_str(), &entries, now).await?;
    if unwritten_jobs == 0 {
        finish_rows(tx, id, &values.group, now).await?;
    }
    Ok(id)
}

/// Completes a batch whose rows are all written: jobs that are on ice in every batch are skipped
/// from the start.
pub(super) async fn finish_rows(
    tx: &mut Tx,
    id: BatchId,
    group: &GroupCode,
    now: Millis,
) -> Result<()> {
    let note = "on ice in every batch, by an operator (procession job list shows it)";
    let iced = run_mode::take_over(tx, (id, group), note, now).await?;
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
    store::log::append(tx, &iced.iter().map(log).collect::<Vec<_>>(), now).await
}

/// The rows of a plan.
pub(in crate::engine) fn new_entries(plan: &BatchPlan) -> Vec<queue::NewEntry<'_>> {
    let jobs = plan.snapshot.jobs.iter().zip(&plan.not_before);
    jobs.map(|(job, not_before)| queue::NewEntry { job_code: &job.code, not_before: *not_before })
        .collect()
}
