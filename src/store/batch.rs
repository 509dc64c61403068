//! `job_batch`: one run of a group for one batch number.

mod batch_lock;
mod batch_query;
mod finish;
mod opening;

pub use batch_lock::{hold_all, lock_owned, lock_statements, revise};
pub(in crate::store) use batch_query::containing;
pub use batch_query::{BatchFilter, counts_of, list_page};
pub use finish::finish_all;
pub use opening::{PackedSnapshot, ROWS_PER_STEP, StillOpening, count_written, refuse_opening};

use crate::db::{Row, SqlValue};
use crate::domain::batch::{Batch, BatchPlan, BatchStatus, Snapshot, deadline};
use crate::domain::id::{BatchId, BatchNo, GroupCode, NodeId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::params::BatchValues;
use crate::domain::schedule::firing::FiringId;
use crate::domain::time::Millis;
use crate::store::hint::{self, HintTopic};
use crate::store::long_computation::compute;
use crate::store::{Tx, packed};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) const COLUMNS: &str = "batch_id, batch_no, group_code, batch_type, status, business_date, params, \
                       owner, started_by, reason, create_time, end_time, deadline, revision, \
                       is_paused, remove_time, unwritten_jobs";

/// A new batch.
#[derive(Clone, Copy, Debug)]
pub struct NewBatch<'a> {
    pub plan: &'a BatchPlan,
    pub snapshot: &'a PackedSnapshot,
    /// Number of its jobs whose queue rows are written later.
    pub unwritten_jobs: usize,
    /// The node that dispatches it; without one any serving process claims it.
    pub owner: Option<&'a NodeId>,
    pub started_by: &'a str,
}

/// Inserts a batch as RUNNING; fails with a duplicate key when it exists.
pub async fn insert(tx: &mut Tx, new: NewBatch<'_>, now: Millis) -> Result<BatchId> {
    let NewBatch { plan, snapshot, unwritten_jobs, owner, started_by } = new;
    let values = &plan.values;
    check_fits(tx, &values.group, snapshot).await?;
    let id = tx
        .insert_id(
            "INSERT INTO job_batch (batch_no, group_code, batch_type, status, business_date, params, \
             snapshot, owner, started_by, create_time, update_time, deadline, unwritten_jobs) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "batch_id",
            &[
                values.batch_no.as_str().into(),
                values.group.as_str().into(),
                plan.batch_type.as_deref().into(),
                BatchStatus::Running.as_str().into(),
                values.business_date.map(|d| d.to_string()).into(),
                serde_json::to_string(&values.params)?.into(),
                snapshot.text.as_str().into(),
                owner.map(|o| o.0.as_str()).into(),
                started_by.into(),
                now.to_utc().into(),
                now.to_utc().into(),
                deadline(plan.snapshot.group.batch_timeout_sec, now).map(Millis::to_utc).into(),
                i64::try_from(unwritten_jobs)?.into(),
            ],
        )
        .await
        .with_context(|| format!("write batch {} of group {}", values.batch_no, values.group))?;
    if owner.is_none() {
        hint::send_hint(tx, HintTopic::Batch).await?;
    }
    Ok(BatchId(id))
}

/// Size of the definitions in one statement: a fourth of the smallest packet that MySQL and MariaDB
/// accept by default.
const TOGETHER_MAX_BYTES: usize = 1 << 20;

/// A batch opened by a firing.
#[derive(Debug)]
pub struct FiredBatch<'a> {
    pub plan: &'a BatchPlan,
    /// The firing that opens it; a firing opens at most one of these.
    pub firing: FiringId,
    pub started_by: String,
}

/// Inserts unowned batches of firings as RUNNING, in two statements; returns their keys by firing.
/// Fails with a duplicate key when one exists.
pub async fn insert_fired(
    tx: &mut Tx,
    batches: &[FiredBatch<'_>],
    now: Millis,
) -> Result<HashMap<FiringId, BatchId>> {
    let columns = [
        "batch_no",
        "group_code",
        "batch_type",
        "status",
        "business_date",
        "params",
        "snapshot",
        "started_by",
        "create_time",
        "update_time",
        "deadline",
        "firing_id",
    ];
    let (mut rows, mut bytes): (Vec<Vec<SqlValue>>, usize) = (Vec::new(), 0);
    for FiredBatch { plan, firing, started_by } in batches {
        let values = &plan.values;
        let snapshot = PackedSnapshot::new(&plan.snapshot)?;
        check_fits(tx, &values.group, &snapshot).await?;
        bytes += snapshot.text.len();
        ensure!(
            bytes <= TOGETHER_MAX_BYTES,
            "the definitions of these batches are too large for one statement"
        );
        rows.push(vec![
            values.batch_no.as_str().into(),
            values.group.as_str().into(),
            plan.batch_type.as_deref().into(),
            BatchStatus::Running.as_str().into(),
            values.business_date.map(|d| d.to_string()).into(),
            serde_json::to_string(&values.params)?.into(),
            snapshot.text.into(),
            started_by.as_str().into(),
            now.to_utc().into(),
            now.to_utc().into(),
            deadline(plan.snapshot.group.batch_timeout_sec, now).map(Millis::to_utc).into(),
            firing.0.into(),
        ]);
    }
    tx.insert_many("job_batch", &columns, rows).await.context("write batches of firings")?;
    hint::send_hint(tx, HintTopic::Batch).await?;
    let places = vec!["?"; batches.len()].join(", ");
    let sql = format!("SELECT batch_id, firing_id FROM job_batch WHERE firing_id IN ({places})");
    let values: Vec<SqlValue> = batches.iter().map(|batch| batch.firing.0.into()).collect();
    let rows = tx.fetch_all(&sql, &values).await.context("read the keys of batches")?;
    rows.iter()
        .map(|row| Ok((FiringId(row.get_int("firing_id")?), BatchId(row.get_int("batch_id")?))))
        .collect()
}

/// The existing batches with one of these numbers in one of these groups.
pub async fn existing(
    tx: &mut Tx,
    batches: &[(&BatchNo, &GroupCode)],
) -> Result<HashSet<(BatchNo, GroupCode)>> {
    let places = vec!["?"; batches.len()].join(", ");
    // Combinations of one batch's number and another's group match too; such batches exist, and
    // returning them does no harm.
    let sql = format!(
        "SELECT batch_no, group_code FROM job_batch \
         WHERE batch_no IN ({places}) AND group_code IN ({places})"
    );
    let mut values: Vec<SqlValue> = batches.iter().map(|(no, _)| no.as_str().into()).collect();
    values.extend(batches.iter().map(|(_, group)| SqlValue::from(group.as_str())));
    let rows = tx.fetch_all(&sql, &values).await.context("look for batches")?;
    let key = |row: &Row| -> Result<_> {
        Ok((
            BatchNo::parse(&row.get_text("batch_no")?)?,
            GroupCode::parse(&row.get_text("group_code")?)?,
        ))
    };
    rows.iter().map(key).collect()
}

/// Batches, newest first; only those of `batch_no` if given.
pub async fn list_batches(
    tx: &mut Tx,
    batch_no: Option<&BatchNo>,
    limit: u32,
) -> Result<Vec<Batch>> {
    let rows = match batch_no {
        Some(no) => {
            let sql =
                format!("SELECT {COLUMNS} FROM job_batch WHERE batch_no = ? ORDER BY batch_id");
            tx.fetch_all(&sql, &[no.as_str().into()]).await?
        }
        None => {
            let sql = format!("SELECT {COLUMNS} FROM job_batch ORDER BY batch_id DESC LIMIT ?");
            tx.fetch_all(&sql, &[limit.into()]).await?
        }
    };
    rows.iter().map(batch).collect()
}

/// The batches that have not ended, oldest first.
pub async fn list_open(tx: &mut Tx) -> Result<Vec<Batch>> {
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE status IN (?, ?) ORDER BY batch_id");
    let open = [BatchStatus::Running.as_str().into(), BatchStatus::Killing.as_str().into()];
    let rows = tx.fetch_all(&sql, &open).await.context("list the open batches")?;
    rows.iter().map(batch).collect()
}

/// The batch of this number and group.
pub async fn find_batch(tx: &mut Tx, no: &BatchNo, group: &GroupCode) -> Result<Option<Batch>> {
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE batch_no = ? AND group_code = ?");
    let row = tx.fetch_optional(&sql, &[no.as_str().into(), group.as_str().into()]).await?;
    row.as_ref().map(batch).transpose()
}

/// A batch by its key.
pub async fn get(tx: &mut Tx, id: BatchId) -> Result<Batch> {
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE batch_id = ?");
    let row = tx.fetch_optional(&sql, &[id.0.into()]).await?;
    batch(&row.with_context(|| is_gone(id))?)
}

pub(super) fn batch(row: &Row) -> Result<Batch> {
    let word = row.get_text("status")?;
    let params: BTreeMap<String, String> = serde_json::from_str(&row.get_text("params")?)?;
    Ok(Batch {
        batch_id: BatchId(row.get_int("batch_id")?),
        values: BatchValues {
            batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
            group: GroupCode::parse(&row.get_text("group_code")?)?,
            business_date: row.opt_text("business_date")?.map(|d| d.parse()).transpose()?,
            params,
        },
        batch_type: row.opt_text("batch_type")?,
        status: BatchStatus::parse(&word)
            .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?,
        owner: row.opt_text("owner")?.map(NodeId),
        started_by: row.get_text("started_by")?,
        create_time: row.get_time("create_time")?.into(),
        end_time: row.opt_time("end_time")?.map(Millis::from),
        reason: row.opt_text("reason")?,
        deadline: row.opt_time("deadline")?.map(Millis::from),
        revision: row.get_int("revision")?,
        is_paused: row.get_flag("is_paused")?,
        removing: row.opt_time("remove_time")?.map(Millis::from),
        unwritten_jobs: u32::try_from(row.get_int("unwritten_jobs")?)?,
    })
}

async fn check_fits(tx: &mut Tx, group: &GroupCode, snapshot: &PackedSnapshot) -> Result<()> {
    let what = format!("the definition of group {group}, which each batch keeps,");
    packed::check_fits(tx, &what, &snapshot.text).await
}

/// The definition that a batch runs. It must match the queue rows: a batch that is still being
/// opened is refused (`StillOpening`).
pub async fn snapshot(tx: &mut Tx, id: BatchId) -> Result<Snapshot> {
    let (batch, packed) = get_with_packed_snapshot(tx, id).await?;
    refuse_opening(tx, &batch).await?;
    packed.unpack()
}

/// The packed definition that a batch runs. Decisions that need only the batch row are made before
/// it is unpacked: 100,000 jobs take another 60 MB.
pub struct StoredSnapshot {
    id: BatchId,
    text: String,
}

impl StoredSnapshot {
    fn from_row(id: BatchId, row: &Row) -> Result<Self> {
        Ok(Self { id, text: row.get_text("snapshot")? })
    }

    /// Unpacks the definition.
    pub fn unpack(self) -> Result<Snapshot> {
        // A packed job takes about twenty bytes.
        compute(self.text.len() / 20, || packed::unpack(&self.text).map(Snapshot::shared))
            .with_context(|| format!("read the snapshot of batch {}", self.id.0))
    }
}

/// Takes a batch over from its owner; `false` when its owner or state changed meanwhile.
pub async fn take_over(
    tx: &mut Tx,
    seen: &Batch,
    owner: &NodeId,
    status: BatchStatus,
    now: Millis,
) -> Result<bool> {
    // A pause ends with the batch.
    let paused = if seen.status.is_final() { ", is_paused = 0" } else { "" };
    let sql = format!(
        "UPDATE job_batch SET owner = ?, status = ?, end_time = NULL, update_time = ?{paused} \
         WHERE batch_id = ? AND status = ? AND COALESCE(owner, '') = ?"
    );
    let found = tx
        .execute(
            &sql,
            &[
                owner.0.as_str().into(),
                status.as_str().into(),
                now.to_utc().into(),
                seen.batch_id.0.into(),
                seen.status.as_str().into(),
                seen.owner.as_ref().map_or("", |o| o.0.as_str()).into(),
            ],
        )
        .await?;
    Ok(found == 1)
}

/// Some rows of the batch may be removed already; it can no longer be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "batch {0} of group {1} is old and is being removed since {2}; nothing can be done with it any more \
     (procession audit --batch {0}). Its number is free again when the next pass of retention has ended"
)]
pub struct BeingRemoved(pub BatchNo, pub GroupCode, pub Millis);

/// Locks a batch's row until the end of the transaction and returns it: no other process writes
/// into the batch until then. Call it before anything else is read, because earlier reads may be
/// older than the lock. A batch that is being removed is refused.
pub async fn lock_batch(tx: &mut Tx, id: BatchId) -> Result<Batch> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {COLUMNS} FROM job_batch WHERE batch_id = ?{lock}");
    let row = tx.fetch_optional(&sql, &[id.0.into()]).await?;
    whole(batch(&row.with_context(|| is_gone(id))?)?)
}

/// A batch with the definition that it runs, without a lock.
pub async fn get_with_snapshot(tx: &mut Tx, id: BatchId) -> Result<(Batch, Snapshot)> {
    let (batch, packed) = get_with_packed_snapshot(tx, id).await?;
    Ok((batch, packed.unpack()?))
}

/// Like [`get_with_snapshot`], with the definition still packed.
pub async fn get_with_packed_snapshot(tx: &mut Tx, id: BatchId) -> Result<(Batch, StoredSnapshot)> {
    let sql = format!("SELECT {COLUMNS}, snapshot FROM job_batch WHERE batch_id = ?");
    let row = tx.fetch_optional(&sql, &[id.0.into()]).await?.with_context(|| is_gone(id))?;
    Ok((batch(&row)?, StoredSnapshot::from_row(id, &row)?))
}

fn is_gone(id: BatchId) -> String {
    format!("batch {} is gone from job_batch", id.0)
}

/// Locks the rows of batches until the end of the transaction, in the order of their keys, and
/// returns them; missing ones and those being removed are left out.
pub async fn lock_all(tx: &mut Tx, ids: &[BatchId]) -> Result<Vec<Batch>> {
    let (places, values) = key_list(ids);
    let lock = tx.dialect().for_update();
    let sql = format!(
        "SELECT {COLUMNS} FROM job_batch WHERE batch_id IN ({places}) ORDER BY batch_id{lock}"
    );
    let rows = tx.fetch_all(&sql, &values).await.context("lock batches")?;
    let mut all = rows.iter().map(batch).collect::<Result<Vec<Batch>>>()?;
    all.retain(|batch| batch.removing.is_none());
    Ok(all)
}

/// The definitions that batches run.
pub async fn snapshots(tx: &mut Tx, ids: &[BatchId]) -> Result<HashMap<BatchId, Snapshot>> {
    let (places, values) = key_list(ids);
    let sql = format!("SELECT batch_id, snapshot FROM job_batch WHERE batch_id IN ({places})");
    let mut all = HashMap::new();
    for row in tx.fetch_all(&sql, &values).await.context("read the snapshots of batches")? {
        let id = BatchId(row.get_int("batch_id")?);
        all.insert(id, StoredSnapshot::from_row(id, &row)?.unpack()?);
    }
    Ok(all)
}

/// Placeholders and values for `IN (…)`.
pub(super) fn key_list(ids: &[BatchId]) -> (String, Vec<SqlValue>) {
    (vec!["?"; ids.len()].join(", "), ids.iter().map(|id| id.0.into()).collect())
}

/// Sets the owner of open batches that this transaction has locked.
pub async fn take_all(tx: &mut Tx, ids: &[BatchId], owner: &NodeId, now: Millis) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let (places, keys) = key_list(ids);
    let sql = format!(
        "UPDATE job_batch SET owner = ?, end_time = NULL, update_time = ? WHERE batch_id IN ({places})"
    );
    let mut values = vec![owner.0.as_str().into(), now.to_utc().into()];
    values.extend(keys);
    tx.execute(&sql, &values).await.context("take batches")?;
    Ok(())
}

/// Refuses a batch that is being removed.
pub fn whole(there: Batch) -> Result<Batch> {
    match there.removing {
        None => Ok(there),
        Some(at) => Err(BeingRemoved(there.values.batch_no, there.values.group, at).into()),
    }
}

/// Whether a batch starts jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Jobs are started.
    On,
    /// Running jobs may end; none is started.
    Paused,
}

/// Pauses or resumes a batch. The caller holds its lock.
pub async fn set_going(tx: &mut Tx, id: BatchId, going: Going, now: Millis) -> Result<()> {
    tx.execute(
        "UPDATE job_batch SET is_paused = ?, revision = revision + 1, update_time = ? \
         WHERE batch_id = ?",
        &[(going == Going::Paused).into(), now.to_utc().into(), id.0.into()],
    )
    .await
    .context("pause a batch, or let it go on")?;
    hint::send_hint(tx, HintTopic::Batch).await
}

/// Sets the time at which the batch is stopped if it still runs.
pub async fn set_deadline(tx: &mut Tx, id: BatchId, deadline: Option<Millis>) -> Result<()> {
    tx.execute(
        "UPDATE job_batch SET deadline = ? WHERE batch_id = ?",
        &[deadline.map(Millis::to_utc).into(), id.0.into()],
    )
    .await
    .context("set the deadline of a batch")?;
    Ok(())
}

/// The open batches of a process.
pub async fn of_owner(tx: &mut Tx, owner: &NodeId) -> Result<Vec<Batch>> {
    // The condition on the state selects the index; ended batches have no owner.
    let sql = format!(
        "SELECT {COLUMNS} FROM job_batch WHERE status IN (?, ?) AND owner = ? ORDER BY batch_id"
    );
    let values = [
        BatchStatus::Running.as_str().into(),
        BatchStatus::Killing.as_str().into(),
        owner.0.as_str().into(),
    ];
    let rows = tx.fetch_all(&sql, &values).await?;
    rows.iter().map(batch).collect()
}

/// Replaces the definition with which a batch continues.
pub async fn replace_snapshot(tx: &mut Tx, id: BatchId, snapshot: &Snapshot) -> Result<()> {
    let packed = PackedSnapshot::new(snapshot)?;
    check_fits(tx, &snapshot.group.code, &packed).await?;
    tx.execute(
        "UPDATE job_batch SET snapshot = ? WHERE batch_id = ?",
        &[packed.text.into(), id.0.into()],
    )
    .await
    .context("replace the definition of a batch")?;
    Ok(())
}

/// Requests a stop of a batch; `false` when it is not running.
pub async fn request_kill(tx: &mut Tx, id: BatchId, reason: &str, now: Millis) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE job_batch SET status = ?, reason = ?, update_time = ? \
             WHERE batch_id = ? AND status IN (?, ?)",
            &[
                BatchStatus::Killing.as_str().into(),
                reason.into(),
                now.to_utc().into(),
                id.0.into(),
                BatchStatus::Running.as_str().into(),
                BatchStatus::Killing.as_str().into(),
            ],
        )
        .await?;
    hint::send_hint(tx, HintTopic::Batch).await?;
    Ok(found == 1)
}

/// The part of a batch that operators may change, for polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRevision {
    pub batch_id: BatchId,
    pub status: BatchStatus,
    /// The number of changes by operators.
    pub revision: i64,
}

/// State and revision of the open batches of a process.
pub async fn pulses(tx: &mut Tx, owner: &NodeId) -> Result<Vec<BatchRevision>> {
    let rows = tx
        .fetch_all(
            "SELECT batch_id, status, revision FROM job_batch WHERE status IN (?, ?) AND owner = ?",
            &[
                BatchStatus::Running.as_str().into(),
                BatchStatus::Killing.as_str().into(),
                owner.0.as_str().into(),
            ],
        )
        .await?;
    let pulse = |row: &Row| -> Result<BatchRevision> {
        let word = row.get_text("status")?;
        Ok(BatchRevision {
            batch_id: BatchId(row.get_int("batch_id")?),
            status: BatchStatus::parse(&word)
                .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?,
            revision: row.get_int("revision")?,
        })
    };
    rows.iter().map(pulse).collect()
}

/// Stores which row of another batch opened this one.
pub async fn set_parent(tx: &mut Tx, id: BatchId, parent: QueueId) -> Result<()> {
    tx.execute(
        "UPDATE job_batch SET parent_queue_id = ? WHERE batch_id = ?",
        &[parent.0.into(), id.0.into()],
    )
    .await
    .context("note the parent of a batch")?;
    Ok(())
}

/// The row of another batch that opened this one.
pub async fn parent_of(tx: &mut Tx, id: BatchId) -> Result<Option<QueueId>> {
    let sql = "SELECT parent_queue_id FROM job_batch WHERE batch_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await?;
    Ok(row.map(|r| r.opt_int("parent_queue_id")).transpose()?.flatten().map(QueueId))
}

/// The batch of a queue row.
pub async fn of_entry(tx: &mut Tx, row: QueueId) -> Result<Batch> {
    let sql = "SELECT batch_id FROM job_queue WHERE queue_id = ?";
    let found = tx.fetch_optional(sql, &[row.0.into()]).await?;
    let found = found.with_context(|| format!("row {} is gone from job_queue", row.0))?;
    get(tx, BatchId(found.get_int("batch_id")?)).await
}

/// Number of jobs of a batch in each state.
pub async fn counts(tx: &mut Tx, id: BatchId) -> Result<Vec<(QueueStatus, u64)>> {
    let rows = tx
        .fetch_all(
            "SELECT status, COUNT(*) AS n FROM job_queue WHERE batch_id = ? GROUP BY status",
            &[id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let word = row.get_text("status")?;
            let status = QueueStatus::parse(&word)
                .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
            Ok((status, u64::try_from(row.get_int("n")?)?))
        })
        .collect()
}
