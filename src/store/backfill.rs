//! `backfill` and `backfill_batch`: runs of a range of batches.

mod view;

pub use view::{BackfillBatchRow, ShownBatch, shown};

use crate::db::Row;
use crate::domain::backfill::{
    BackfillEntry, BackfillOptions, BackfillStatus, BatchHolder, EntryStatus,
};
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BackfillId, BatchId, BatchNo, GroupCode, NodeId};
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::seen::among;
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const COLUMNS: &str = "backfill_id, group_code, range_text, status, options, owner, started_by, \
                       reason, create_time, end_time";

/// A `backfill` row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    pub id: BackfillId,
    pub group: GroupCode,
    /// The range as the user wrote it.
    pub range: String,
    pub status: BackfillStatus,
    pub options: BackfillOptions,
    /// The process that runs it; `None` when none does.
    pub owner: Option<NodeId>,
    pub started_by: String,
    pub reason: Option<String>,
    pub create_time: Millis,
    /// When it ended or was stopped.
    pub end_time: Option<Millis>,
}

/// A new backfill.
#[derive(Clone, Debug)]
pub struct NewBackfill<'a> {
    pub group: &'a GroupCode,
    /// The range as the user wrote it.
    pub range: &'a str,
    pub options: &'a BackfillOptions,
    pub started_by: &'a str,
    pub reason: Option<&'a str>,
}

/// Inserts a backfill as RUNNING and owned, with its batches in order.
pub async fn insert(
    tx: &mut Tx,
    new: &NewBackfill<'_>,
    entries: &[BackfillEntry],
    owner: &NodeId,
    now: Millis,
) -> Result<BackfillId> {
    let id = tx
        .insert_id(
            "INSERT INTO backfill (group_code, range_text, status, options, owner, started_by, reason, \
             create_time, update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "backfill_id",
            &[
                new.group.as_str().into(),
                new.range.into(),
                BackfillStatus::Running.as_str().into(),
                serde_json::to_string(new.options)?.into(),
                owner.0.as_str().into(),
                new.started_by.into(),
                new.reason.into(),
                now.to_utc().into(),
                now.to_utc().into(),
            ],
        )
        .await
        .context("write a backfill")?;
    let columns = ["backfill_id", "place", "batch_no", "status", "message", "update_time"];
    let rows = (0i64..).zip(entries).map(|(place, entry)| {
        vec![
            id.into(),
            place.into(),
            entry.batch_no.as_str().into(),
            entry.status.as_str().into(),
            entry.message.as_deref().into(),
            now.to_utc().into(),
        ]
    });
    tx.insert_many("backfill_batch", &columns, rows).await.context("write backfill_batch")?;
    Ok(BackfillId(id))
}

fn backfill(row: &Row) -> Result<Backfill> {
    let word = row.get_text("status")?;
    Ok(Backfill {
        id: BackfillId(row.get_int("backfill_id")?),
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        range: row.get_text("range_text")?,
        status: BackfillStatus::parse(&word)
            .with_context(|| format!("backfill.status holds {word:?}, which is no state"))?,
        options: serde_json::from_str(&row.get_text("options")?)
            .context("read backfill.options")?,
        owner: row.opt_text("owner")?.map(NodeId),
        started_by: row.get_text("started_by")?,
        reason: row.opt_text("reason")?,
        create_time: row.get_time("create_time")?.into(),
        end_time: row.opt_time("end_time")?.map(Millis::from),
    })
}

pub async fn find_backfill(tx: &mut Tx, id: BackfillId) -> Result<Option<Backfill>> {
    let sql = format!("SELECT {COLUMNS} FROM backfill WHERE backfill_id = ?");
    tx.fetch_optional(&sql, &[id.0.into()]).await?.as_ref().map(backfill).transpose()
}

/// The latest backfills, newest first.
pub async fn list_backfills(tx: &mut Tx, limit: u32) -> Result<Vec<Backfill>> {
    let sql = format!("SELECT {COLUMNS} FROM backfill ORDER BY backfill_id DESC LIMIT ?");
    tx.fetch_all(&sql, &[limit.into()]).await?.iter().map(backfill).collect()
}

fn entry_status(word: &str) -> Result<EntryStatus> {
    EntryStatus::parse(word)
        .with_context(|| format!("backfill_batch.status holds {word:?}, which is no state"))
}

/// Backfills of visible groups, newest first, older than the backfill `before`.
pub async fn list_page(
    tx: &mut Tx,
    seen: Option<&BTreeSet<GroupCode>>,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Backfill>> {
    let (whose, mut values) = among("group_code", seen);
    let behind = before.map_or("", |_| " AND backfill_id < ?");
    values.extend(before.map(Into::into));
    let sql = format!(
        "SELECT {COLUMNS} FROM backfill WHERE 1 = 1{whose}{behind} ORDER BY backfill_id DESC LIMIT ?"
    );
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read backfill")?;
    rows.iter().map(backfill).collect()
}

/// The batches of a backfill, in order.
pub async fn entries(tx: &mut Tx, id: BackfillId) -> Result<Vec<BackfillEntry>> {
    let rows = tx
        .fetch_all(
            "SELECT batch_no, status, message FROM backfill_batch WHERE backfill_id = ? \
             ORDER BY place",
            &[id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(BackfillEntry {
                batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
                status: entry_status(&row.get_text("status")?)?,
                message: row.opt_text("message")?,
            })
        })
        .collect()
}

/// Number of batches of a backfill in each state.
pub async fn counts(tx: &mut Tx, id: BackfillId) -> Result<BTreeMap<EntryStatus, u64>> {
    let sql =
        "SELECT status, COUNT(*) AS n FROM backfill_batch WHERE backfill_id = ? GROUP BY status";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await?;
    let count = |row: &Row| {
        Ok((entry_status(&row.get_text("status")?)?, u64::try_from(row.get_int("n")?)?))
    };
    rows.iter().map(count).collect()
}

/// Moves one batch of a backfill from one state to another; `false` when it was in a different one.
pub async fn set_entry_status(
    tx: &mut Tx,
    id: BackfillId,
    place: usize,
    from: EntryStatus,
    to: EntryStatus,
    message: Option<&str>,
    now: Millis,
) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE backfill_batch SET status = ?, message = ?, update_time = ? \
             WHERE backfill_id = ? AND place = ? AND status = ?",
            &[
                to.as_str().into(),
                message.into(),
                now.to_utc().into(),
                id.0.into(),
                i64::try_from(place)?.into(),
                from.as_str().into(),
            ],
        )
        .await
        .context("write the state of a batch of a backfill")?;
    Ok(found == 1)
}

/// Stores in a batch which backfill opened it.
pub async fn adopt(tx: &mut Tx, batch: BatchId, id: BackfillId) -> Result<()> {
    let sql = "UPDATE job_batch SET backfill_id = ? WHERE batch_id = ?";
    let found = tx.execute(sql, &[id.0.into(), batch.0.into()]).await?;
    ensure!(found == 1, "batch {} is gone from job_batch", batch.0);
    Ok(())
}

/// The backfill that opened a batch.
pub async fn opened_by(tx: &mut Tx, batch: BatchId) -> Result<Option<BackfillId>> {
    let sql = "SELECT backfill_id FROM job_batch WHERE batch_id = ?";
    let row = tx.fetch_optional(sql, &[batch.0.into()]).await?;
    Ok(row.map(|r| r.opt_int("backfill_id")).transpose()?.flatten().map(BackfillId))
}

/// Locks a backfill's row until the end of the transaction; `false` when it does not belong to this
/// owner.
pub async fn lock_owned(tx: &mut Tx, id: BackfillId, owner: &NodeId) -> Result<bool> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT owner FROM backfill WHERE backfill_id = ?{lock}");
    let row = tx.fetch_optional(&sql, &[id.0.into()]).await?;
    let found = row.map(|r| r.opt_text("owner")).transpose()?.flatten();
    Ok(found.as_deref() == Some(owner.0.as_str()))
}

/// Takes a backfill over from its owner, as RUNNING and with these options; `false` when its owner
/// or state changed meanwhile.
pub async fn take_over(
    tx: &mut Tx,
    seen: &Backfill,
    options: &BackfillOptions,
    owner: &NodeId,
    now: Millis,
) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE backfill SET owner = ?, status = ?, options = ?, end_time = NULL, update_time = ? \
             WHERE backfill_id = ? AND status = ? AND COALESCE(owner, '') = ?",
            &[
                owner.0.as_str().into(),
                BackfillStatus::Running.as_str().into(),
                serde_json::to_string(options)?.into(),
                now.to_utc().into(),
                seen.id.0.into(),
                seen.status.as_str().into(),
                seen.owner.as_ref().map_or("", |o| o.0.as_str()).into(),
            ],
        )
        .await
        .context("take a backfill over")?;
    Ok(found == 1)
}

/// Requests a stop of a backfill; `false` when no process runs it.
pub async fn request_stop(tx: &mut Tx, id: BackfillId, now: Millis) -> Result<bool> {
    let (running, stopping) = (BackfillStatus::Running, BackfillStatus::Stopping);
    let found = tx
        .execute(
            "UPDATE backfill SET status = ?, update_time = ? \
             WHERE backfill_id = ? AND status IN (?, ?)",
            &[
                stopping.as_str().into(),
                now.to_utc().into(),
                id.0.into(),
                running.as_str().into(),
                stopping.as_str().into(),
            ],
        )
        .await
        .context("ask for a backfill to be stopped")?;
    Ok(found == 1)
}

/// Ends or releases a backfill: sets its state and clears its owner. `false` when it does not
/// belong to this owner.
pub async fn finish(
    tx: &mut Tx,
    id: BackfillId,
    owner: &NodeId,
    status: BackfillStatus,
    now: Millis,
) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE backfill SET status = ?, owner = NULL, end_time = ?, update_time = ? \
             WHERE backfill_id = ? AND owner = ?",
            &[
                status.as_str().into(),
                now.to_utc().into(),
                now.to_utc().into(),
                id.0.into(),
                owner.0.as_str().into(),
            ],
        )
        .await
        .context("end a backfill")?;
    Ok(found == 1)
}

/// The present state of a batch, with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillBatchState {
    pub status: BatchStatus,
    /// Its owner according to `cluster_node`; the lease may have expired.
    pub holder: Option<BatchHolder>,
}

/// All batches of a group.
pub async fn standing(
    tx: &mut Tx,
    group: &GroupCode,
) -> Result<HashMap<BatchNo, BackfillBatchState>> {
    let rows = tx
        .fetch_all(
            "SELECT b.batch_no AS batch_no, b.status AS status, n.host AS host, n.pid AS pid, \
             n.lease_until AS lease_until FROM job_batch b \
             LEFT JOIN cluster_node n ON n.node_id = b.owner WHERE b.group_code = ?",
            &[group.as_str().into()],
        )
        .await
        .with_context(|| format!("look which batches of group {group} there are"))?;
    rows.iter()
        .map(|row| {
            let word = row.get_text("status")?;
            let status = BatchStatus::parse(&word)
                .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?;
            let holder = match row.opt_text("host")? {
                Some(host) => Some(BatchHolder {
                    host,
                    pid: row.get_int("pid")?,
                    until: row.get_time("lease_until")?.into(),
                }),
                None => None,
            };
            Ok((BatchNo::parse(&row.get_text("batch_no")?)?, BackfillBatchState { status, holder }))
        })
        .collect()
}
