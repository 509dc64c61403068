//! `job_firing`: planned times and their results. A status changes only by compare-and-set.

use crate::db::{Row, SqlValue};
use crate::domain::id::{BatchId, NodeId};
use crate::domain::schedule::firing::{
    Firing, FiringId, FiringStatus, NewFiring, Source, TriggerId,
};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};

const COLUMNS: &str = "firing_id, trigger_id, planned_at, nominal_date, source, handler, status, fire_at, owner, \
     attempt, params, parent_batch_id, missed_until, batch_no, reason, fired_at";

/// Inserts firings; pending ones belong to `owner`, or are unowned and go to the first process that
/// polls. Fails with a duplicate key, and then inserts none, when a schedule has a row for one of
/// these times.
pub async fn append(
    tx: &mut Tx,
    rows: &[NewFiring],
    owner: Option<&NodeId>,
    now: Millis,
) -> Result<()> {
    let columns = [
        "trigger_id",
        "planned_at",
        "nominal_date",
        "source",
        "handler",
        "status",
        "fire_at",
        "owner",
        "params",
        "parent_batch_id",
        "missed_until",
        "reason",
        "create_time",
        "update_time",
    ];
    let values: Vec<Vec<SqlValue>> = rows
        .iter()
        .map(|row| {
            let is_open = row.status == FiringStatus::Pending;
            let owner = owner.filter(|_| is_open).map(|owner| owner.0.as_str());
            vec![
                row.trigger_id.0.into(),
                row.planned_at.to_utc().into(),
                row.nominal_date.map(|d| d.to_string()).into(),
                row.source.as_str().into(),
                row.handler.as_str().into(),
                row.status.as_str().into(),
                row.fire_at.to_utc().into(),
                owner.into(),
                row.params.as_deref().into(),
                row.parent_batch_id.map(|id| id.0).into(),
                row.missed_until.map(Millis::to_utc).into(),
                row.reason.as_deref().into(),
                now.to_utc().into(),
                now.to_utc().into(),
            ]
        })
        .collect();
    tx.insert_many("job_firing", &columns, values).await.context("write job_firing")
}

/// The newest key, or 0. Later rows have greater ones.
pub async fn last_key(tx: &mut Tx) -> Result<FiringId> {
    let sql = "SELECT MAX(firing_id) AS newest FROM job_firing";
    let row = tx.fetch_optional(sql, &[]).await.context("read job_firing")?;
    let newest = row.map(|row| row.opt_int("newest")).transpose()?.flatten();
    Ok(FiringId(newest.unwrap_or(0)))
}

/// The pending ones of `rows`, which `owner` has just inserted after the key `newest`, with their
/// keys; by time. Only keys are read back: the rest is known, and 5,000 rows of 16 columns cost
/// time.
pub async fn written(
    tx: &mut Tx,
    rows: Vec<NewFiring>,
    newest: FiringId,
    owner: &NodeId,
) -> Result<Vec<Firing>> {
    let sql = "SELECT firing_id, trigger_id, planned_at FROM job_firing \
               WHERE firing_id > ? AND owner = ?";
    let values = [newest.0.into(), owner.0.as_str().into()];
    let found = tx.fetch_all(sql, &values).await.context("read the keys of firings")?;
    let key = |row: &Row| -> Result<_> {
        let of = (TriggerId(row.get_int("trigger_id")?), Millis::from(row.get_time("planned_at")?));
        Ok((of, FiringId(row.get_int("firing_id")?)))
    };
    let keys: HashMap<_, _> = found.iter().map(key).collect::<Result<_>>()?;
    let pending = rows.into_iter().filter(|row| row.status == FiringStatus::Pending);
    let with_key = |row: NewFiring| {
        let key = keys.get(&(row.trigger_id, row.planned_at));
        let key = *key.context("a firing that was just written is not there")?;
        Ok(row.stored(key, owner.clone()))
    };
    let mut firings = pending.map(with_key).collect::<Result<Vec<Firing>>>()?;
    firings.sort_by_key(|firing| (firing.fire_at, firing.firing_id));
    Ok(firings)
}

/// Abandoned pending firings, oldest first: those whose time was at `before` or earlier, because
/// their process is dead, stalled, or lost them; and unowned ones due `soon`.
pub async fn unattended(
    tx: &mut Tx,
    before: Millis,
    soon: Millis,
    limit: u32,
) -> Result<Vec<Firing>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_firing WHERE status = ? AND fire_at <= ? \
         AND (owner IS NULL OR fire_at <= ?) ORDER BY fire_at, firing_id LIMIT ?"
    );
    let values = [
        FiringStatus::Pending.as_str().into(),
        soon.to_utc().into(),
        before.to_utc().into(),
        limit.into(),
    ];
    read_firings(tx, &sql, &values).await
}

/// Decided firings of a schedule whose time has not come.
pub async fn ahead(tx: &mut Tx, trigger: TriggerId, now: Millis) -> Result<Vec<Firing>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_firing WHERE trigger_id = ? AND planned_at > ? AND status = ? \
         AND source = ? ORDER BY planned_at"
    );
    let values = [
        trigger.0.into(),
        now.to_utc().into(),
        FiringStatus::Pending.as_str().into(),
        Source::Cron.as_str().into(),
    ];
    read_firings(tx, &sql, &values).await
}

/// The planned times of these schedules later than `after`, up to `until`, unordered.
pub async fn planned_between(
    tx: &mut Tx,
    triggers: &[TriggerId],
    after: Millis,
    until: Millis,
) -> Result<Vec<(TriggerId, Millis)>> {
    let mut found = Vec::new();
    for chunk in triggers.chunks(1_000) {
        let places = vec!["?"; chunk.len()].join(", ");
        let sql = format!(
            "SELECT trigger_id, planned_at FROM job_firing WHERE trigger_id IN ({places}) \
             AND planned_at > ? AND planned_at <= ?"
        );
        let mut values: Vec<SqlValue> = chunk.iter().map(|id| id.0.into()).collect();
        values.extend([after.to_utc().into(), until.to_utc().into()]);
        for row in tx.fetch_all(&sql, &values).await.context("read job_firing")? {
            found.push((TriggerId(row.get_int("trigger_id")?), row.get_time("planned_at")?.into()));
        }
    }
    Ok(found)
}

/// Marks pending firings as late but to be fired, and sets their owner.
pub async fn mark_late(
    tx: &mut Tx,
    firings: &[Firing],
    reason: &str,
    owner: &NodeId,
    now: Millis,
) -> Result<u64> {
    let set = "source = ?, reason = ?, owner = ?, update_time = ?";
    let values = [
        Source::Misfire.as_str().into(),
        reason.into(),
        owner.0.as_str().into(),
        now.to_utc().into(),
    ];
    let ids = firings.iter().map(|f| f.firing_id);
    let pending = FiringStatus::Pending;
    change_undecided(tx, pending, set, values.into(), ids).await.context("mark late firings")
}

/// Removes pending firings from every ring: they become `SKIPPED` or `MISFIRED`, for this reason.
pub async fn withhold(
    tx: &mut Tx,
    firings: &[Firing],
    status: FiringStatus,
    reason: &str,
    now: Millis,
) -> Result<u64> {
    let set = "status = ?, reason = ?, update_time = ?";
    let values = [status.as_str().into(), reason.into(), now.to_utc().into()];
    let ids = firings.iter().map(|f| f.firing_id);
    let pending = FiringStatus::Pending;
    change_undecided(tx, pending, set, values.into(), ids).await.context("withhold firings")
}

/// Skips firings that wait for the end of a batch, for this reason.
pub async fn skip_waiting(
    tx: &mut Tx,
    firings: &[Firing],
    reason: &str,
    now: Millis,
) -> Result<u64> {
    let set = "status = ?, reason = ?, update_time = ?";
    let values = [FiringStatus::Skipped.as_str().into(), reason.into(), now.to_utc().into()];
    let ids = firings.iter().map(|f| f.firing_id);
    let waiting = FiringStatus::Waiting;
    change_undecided(tx, waiting, set, values.into(), ids).await.context("skip waiting firings")
}

/// Changes those of these firings that still have this status; returns their number.
async fn change_undecided(
    tx: &mut Tx,
    status: FiringStatus,
    set: &str,
    mut values: Vec<SqlValue>,
    ids: impl Iterator<Item = FiringId>,
) -> Result<u64> {
    let ids: Vec<i64> = ids.map(|id| id.0).collect();
    values.push(status.as_str().into());
    let sql = format!("UPDATE job_firing SET {set} WHERE status = ? AND firing_id");
    Ok(tx.execute_in(&sql, &values, &ids, "", &[]).await?)
}

/// Clears the owner of a process's pending firings, so that no firing waits for the process.
pub async fn release(tx: &mut Tx, owner: &NodeId, now: Millis) -> Result<u64> {
    tx.execute(
        "UPDATE job_firing SET owner = NULL, update_time = ? WHERE status = ? AND owner = ?",
        &[now.to_utc().into(), FiringStatus::Pending.as_str().into(), owner.0.as_str().into()],
    )
    .await
    .context("release the firings of this process")
}

/// The first firing of each schedule that waits for a batch to end; later ones wait for it.
pub async fn waiting_first(tx: &mut Tx, limit: u32) -> Result<Vec<Firing>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_firing f WHERE status = ? AND NOT EXISTS \
         (SELECT 1 FROM job_firing e WHERE e.status = ? AND e.trigger_id = f.trigger_id \
         AND e.planned_at < f.planned_at) ORDER BY planned_at, firing_id LIMIT ?"
    );
    let waiting = || FiringStatus::Waiting.as_str().into();
    read_firings(tx, &sql, &[waiting(), waiting(), limit.into()]).await
}

/// The firings of a schedule, latest planned time first.
pub async fn of_trigger(tx: &mut Tx, trigger: TriggerId, limit: u32) -> Result<Vec<Firing>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_firing WHERE trigger_id = ? \
         ORDER BY planned_at DESC, firing_id DESC LIMIT ?"
    );
    read_firings(tx, &sql, &[trigger.0.into(), limit.into()]).await
}

/// The firings of a schedule planned before one of them, latest first.
pub async fn of_trigger_before(
    tx: &mut Tx,
    trigger: TriggerId,
    planned: Millis,
    id: FiringId,
    limit: u32,
) -> Result<Vec<Firing>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_firing WHERE trigger_id = ? AND planned_at <= ? \
         AND (planned_at < ? OR firing_id < ?) ORDER BY planned_at DESC, firing_id DESC LIMIT ?"
    );
    let at = planned.to_utc();
    read_firings(tx, &sql, &[trigger.0.into(), at.into(), at.into(), id.0.into(), limit.into()])
        .await
}

pub async fn find_firing(tx: &mut Tx, id: FiringId) -> Result<Option<Firing>> {
    let sql = format!("SELECT {COLUMNS} FROM job_firing WHERE firing_id = ?");
    Ok(read_firings(tx, &sql, &[id.0.into()]).await?.pop())
}

/// Whether an earlier firing of the same schedule is still open: it waits, or is being fired. A
/// missed one does not count: its policy has still to decide whether it fires at all, and under
/// overload every schedule has some, for which no newer firing must wait or be skipped. `pending_from` is the earliest planned time at which a pending firing of the clock
/// counts ([`overlap::pending_counts_from`]).
///
/// [`overlap::pending_counts_from`]: crate::domain::schedule::overlap::pending_counts_from
pub async fn waits_before(tx: &mut Tx, firing: &Firing, pending_from: Millis) -> Result<bool> {
    let sql = "SELECT COUNT(*) AS n FROM job_firing \
               WHERE trigger_id = ? AND status IN (?, ?) AND planned_at < ? \
               AND (status = ? OR source <> ? OR attempt > 0 OR planned_at >= ?)";
    let values = [
        firing.trigger_id.0.into(),
        FiringStatus::Waiting.as_str().into(),
        FiringStatus::Pending.as_str().into(),
        firing.planned_at.to_utc().into(),
        FiringStatus::Waiting.as_str().into(),
        Source::Cron.as_str().into(),
        pending_from.to_utc().into(),
    ];
    let row = tx.fetch_optional(sql, &values).await.context("read job_firing")?;
    Ok(row.map(|row| row.get_int("n")).transpose()?.unwrap_or(0) > 0)
}

/// Those of these firings that must wait for an earlier one of their schedule, like
/// [`waits_before`].
pub async fn waiting_among(
    tx: &mut Tx,
    ids: &[FiringId],
    pending_from: Millis,
) -> Result<HashSet<FiringId>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let places = vec!["?"; ids.len()].join(", ");
    let sql = format!(
        "SELECT f.firing_id FROM job_firing f WHERE f.firing_id IN ({places}) AND EXISTS \
         (SELECT 1 FROM job_firing e WHERE e.trigger_id = f.trigger_id AND e.status IN (?, ?) \
         AND e.planned_at < f.planned_at \
         AND (e.status = ? OR e.source <> ? OR e.attempt > 0 OR e.planned_at >= ?))"
    );
    let mut values: Vec<SqlValue> = ids.iter().map(|id| id.0.into()).collect();
    values.extend([
        FiringStatus::Waiting.as_str().into(),
        FiringStatus::Pending.as_str().into(),
        FiringStatus::Waiting.as_str().into(),
        Source::Cron.as_str().into(),
        pending_from.to_utc().into(),
    ]);
    find_ids(tx, &sql, &values).await
}

/// Locks those of these firings that are pending and at the expected attempt, until the end of the
/// transaction.
pub async fn hold_pending(tx: &mut Tx, firings: &[&Firing]) -> Result<HashSet<FiringId>> {
    let lock = tx.dialect().for_update();
    let places = vec!["?"; firings.len()].join(", ");
    let sql = format!(
        "SELECT firing_id, attempt FROM job_firing WHERE status = ? AND firing_id IN ({places}) \
         ORDER BY firing_id{lock}"
    );
    let mut values: Vec<SqlValue> = vec![FiringStatus::Pending.as_str().into()];
    values.extend(firings.iter().map(|firing| SqlValue::from(firing.firing_id.0)));
    let attempts: HashMap<FiringId, u32> =
        firings.iter().map(|firing| (firing.firing_id, firing.attempt)).collect();
    let mut held = HashSet::new();
    for row in tx.fetch_all(&sql, &values).await.context("read job_firing")? {
        let (id, attempt) =
            (FiringId(row.get_int("firing_id")?), u32::try_from(row.get_int("attempt")?)?);
        if attempts.get(&id) == Some(&attempt) {
            held.insert(id);
        }
    }
    Ok(held)
}

async fn find_ids(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<HashSet<FiringId>> {
    let rows = tx.fetch_all(sql, values).await.context("read job_firing")?;
    rows.iter().map(|row| Ok(FiringId(row.get_int("firing_id")?))).collect()
}

/// Marks pending firings as fired, each with the number of the one batch that it has opened in this
/// transaction.
pub async fn fire_with_batches(
    tx: &mut Tx,
    ids: &[FiringId],
    by: &NodeId,
    now: Millis,
) -> Result<u64> {
    let set = "status = ?, fired_at = ?, owner = ?, update_time = ?, reason = NULL, \
               attempt = attempt + 1, batch_no = (SELECT b.batch_no FROM job_batch b \
               WHERE b.firing_id = job_firing.firing_id)";
    let values = [
        FiringStatus::Fired.as_str().into(),
        now.to_utc().into(),
        by.0.as_str().into(),
        now.to_utc().into(),
    ];
    let pending = FiringStatus::Pending;
    change_undecided(tx, pending, set, values.into(), ids.iter().copied()).await.context("fire")
}

/// Whether a schedule has a row for this planned time.
pub async fn is_there(tx: &mut Tx, trigger: TriggerId, planned: Millis) -> Result<bool> {
    let sql = "SELECT firing_id FROM job_firing WHERE trigger_id = ? AND planned_at = ?";
    let found = tx.fetch_optional(sql, &[trigger.0.into(), planned.to_utc().into()]).await?;
    Ok(found.is_some())
}

/// Marks pending firings as fired, all in one statement; returns how many of them were still
/// pending.
pub async fn fire_all(tx: &mut Tx, ids: &[FiringId], by: &NodeId, now: Millis) -> Result<u64> {
    let set = "status = ?, fired_at = ?, owner = ?, update_time = ?, attempt = attempt + 1";
    let values = [
        FiringStatus::Fired.as_str().into(),
        now.to_utc().into(),
        by.0.as_str().into(),
        now.to_utc().into(),
    ];
    let pending = FiringStatus::Pending;
    change_undecided(tx, pending, set, values.into(), ids.iter().copied()).await.context("fire")
}

/// The result of one firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledFiring<'a> {
    /// The new state.
    pub status: FiringStatus,
    /// The earliest time of the next attempt, if there is one.
    pub fire_at: Millis,
    /// Number of attempts so far.
    pub attempt: u32,
    /// The number of the batch it opened.
    pub batch_no: Option<&'a str>,
    pub reason: Option<&'a str>,
}

/// Settles one firing if its state and attempt are unchanged. Its row is then locked until the end
/// of the transaction. `false` when another process came first.
pub async fn settle(
    tx: &mut Tx,
    was: &Firing,
    to: &SettledFiring<'_>,
    by: &NodeId,
    now: Millis,
) -> Result<bool> {
    let fired_at = (to.status == FiringStatus::Fired).then(|| now.to_utc());
    let found = tx
        .execute(
            "UPDATE job_firing SET status = ?, fire_at = ?, batch_no = ?, reason = ?, fired_at = ?, \
             owner = ?, update_time = ?, attempt = ? \
             WHERE firing_id = ? AND status = ? AND attempt = ?",
            &[
                to.status.as_str().into(),
                to.fire_at.to_utc().into(),
                to.batch_no.into(),
                to.reason.into(),
                fired_at.into(),
                by.0.as_str().into(),
                now.to_utc().into(),
                to.attempt.into(),
                was.firing_id.0.into(),
                was.status.as_str().into(),
                was.attempt.into(),
            ],
        )
        .await
        .context("settle a firing")?;
    Ok(found == 1)
}

/// Whether a firing of this schedule is open: it is planned, waits, or its batch runs.
pub async fn is_open(tx: &mut Tx, trigger: TriggerId) -> Result<bool> {
    let found = tx
        .fetch_optional(
            // Two queries: as one with OR it read all batches there ever were.
            "SELECT f.firing_id FROM job_firing f \
             WHERE f.trigger_id = ? AND f.status IN ('PENDING', 'WAITING') \
             UNION SELECT f.firing_id FROM job_batch b JOIN job_firing f ON f.firing_id = b.firing_id \
             WHERE b.status IN ('RUNNING', 'KILLING') AND f.trigger_id = ? LIMIT 1",
            &[trigger.0.into(), trigger.0.into()],
        )
        .await
        .context("look for open firings")?;
    Ok(found.is_some())
}

/// The newest firing of each schedule.
pub async fn newest(tx: &mut Tx) -> Result<Vec<Firing>> {
    let columns: Vec<String> =
        COLUMNS.split(", ").map(|column| format!("f.{}", column.trim())).collect();
    let sql = format!(
        // One index lookup per schedule; grouped, or joined, it read all firings.
        "SELECT {} FROM job_firing f WHERE f.firing_id IN (SELECT (SELECT n.firing_id \
         FROM job_firing n WHERE n.trigger_id = t.trigger_id ORDER BY n.planned_at DESC LIMIT 1) \
         FROM job_trigger t)",
        columns.join(", ")
    );
    read_firings(tx, &sql, &[]).await
}

async fn read_firings(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Vec<Firing>> {
    let rows = tx.fetch_all(sql, values).await.context("read job_firing")?;
    rows.iter().map(firing).collect()
}

fn firing(row: &Row) -> Result<Firing> {
    let word = |name: &str| -> Result<String> { Ok(row.get_text(name)?) };
    let (status, source) = (word("status")?, word("source")?);
    let nominal = row.opt_text("nominal_date")?;
    Ok(Firing {
        firing_id: FiringId(row.get_int("firing_id")?),
        trigger_id: TriggerId(row.get_int("trigger_id")?),
        planned_at: row.get_time("planned_at")?.into(),
        nominal_date: nominal.map(|day| day.parse()).transpose().context("nominal_date")?,
        source: Source::parse(&source).with_context(|| format!("job_firing.source '{source}'"))?,
        handler: row.get_text("handler")?,
        status: FiringStatus::parse(&status)
            .with_context(|| format!("job_firing.status '{status}'"))?,
        fire_at: row.get_time("fire_at")?.into(),
        owner: row.opt_text("owner")?.map(NodeId),
        attempt: u32::try_from(row.get_int("attempt")?)?,
        params: row.opt_text("params")?,
        parent_batch_id: row.opt_int("parent_batch_id")?.map(BatchId),
        missed_until: row.opt_time("missed_until")?.map(Into::into),
        batch_no: row.opt_text("batch_no")?,
        reason: row.opt_text("reason")?,
        fired_at: row.opt_time("fired_at")?.map(Into::into),
    })
}
