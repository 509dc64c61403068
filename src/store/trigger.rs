//! `job_trigger` and `job_trigger_time`: schedules, and their progress.
//!
//! Every writer of either holds the schedule lock, so that a planner pass and an operator never
//! change one schedule at once.

use crate::db::Row;
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::schedule::firing::{FiringStatus, TriggerId};
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerStatus};
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::seen::holds;
use anyhow::{Context as _, Result};

const COLUMNS: &str = "t.trigger_id, t.trigger_status, t.reason, t.origin, t.revision, t.body, \
     t.create_time, s.next_time, s.last_time";

const FROM: &str = "FROM job_trigger t LEFT JOIN job_trigger_time s ON s.trigger_id = t.trigger_id";

/// A schedule whose next time is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTrigger {
    pub trigger_id: TriggerId,
    pub revision: i64,
    /// Its next planned time.
    pub next_time: Millis,
    /// Its newest planned time that has a row.
    pub last_time: Option<Millis>,
}

/// The progress of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleProgress {
    pub trigger_id: TriggerId,
    pub revision: i64,
    /// Its next planned time.
    pub next_time: Option<Millis>,
    /// Its newest planned time that has a row.
    pub last_time: Option<Millis>,
}

/// Schedules whose next time is at `horizon` or earlier, in the order of those times: none starves
/// behind others with smaller keys.
pub async fn list_due(tx: &mut Tx, horizon: Millis, limit: u32) -> Result<Vec<DueTrigger>> {
    let rows = tx
        .fetch_all(
            "SELECT trigger_id, revision, next_time, last_time FROM job_trigger_time WHERE next_time <= ? \
             ORDER BY next_time, trigger_id LIMIT ?",
            &[horizon.to_utc().into(), limit.into()],
        )
        .await
        .context("read the schedules that are due")?;
    let due = |row: &Row| {
        Ok(DueTrigger {
            trigger_id: TriggerId(row.get_int("trigger_id")?),
            revision: row.get_int("revision")?,
            next_time: row.get_time("next_time")?.into(),
            last_time: row.opt_time("last_time")?.map(Into::into),
        })
    };
    rows.iter().map(due).collect()
}

/// The pending work of the trigger core, from one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriggerForecast {
    /// The next planned time of all schedules.
    pub next: Option<Millis>,
    /// When the first of the pending firings is due.
    pub pending: Option<Millis>,
    /// When the first of the unowned firings is due.
    pub unowned: Option<Millis>,
    /// Since when the first of the firings that wait for a batch has waited.
    pub waiting: Option<Millis>,
}

impl TriggerForecast {
    /// How long the firing or planned time that has waited longest is overdue, in milliseconds; 0
    /// when nothing is.
    pub fn delay_ms(&self, now: Millis) -> i64 {
        let oldest = [self.next, self.pending].into_iter().flatten().min();
        oldest.map_or(0, |at| now.since(at).max(0))
    }
}

/// Reads the pending work; called every second or two by every node, so it is one statement over
/// indexes.
pub async fn outlook(tx: &mut Tx) -> Result<TriggerForecast> {
    let sql = "SELECT 1 AS what, MIN(next_time) AS at FROM job_trigger_time \
         UNION ALL SELECT 2, MIN(fire_at) FROM job_firing WHERE status = ? \
         UNION ALL SELECT 3, MIN(fire_at) FROM job_firing WHERE status = ? AND owner IS NULL \
         UNION ALL SELECT 4, MIN(fire_at) FROM job_firing WHERE status = ?";
    let pending = || FiringStatus::Pending.as_str().into();
    let values = [pending(), pending(), FiringStatus::Waiting.as_str().into()];
    let mut found = TriggerForecast::default();
    for row in tx.fetch_all(sql, &values).await.context("look at schedules and firings")? {
        let at = row.opt_time("at")?.map(Millis::from);
        match row.get_int("what")? {
            1 => found.next = at,
            2 => found.pending = at,
            3 => found.unowned = at,
            _ => found.waiting = at,
        }
    }
    Ok(found)
}

/// Writes the progress of many schedules in few statements.
pub async fn advance(tx: &mut Tx, rows: &[ScheduleProgress], now: Millis) -> Result<()> {
    let columns = ["trigger_id", "revision", "next_time", "last_time", "update_time"];
    let values: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                row.trigger_id.0.into(),
                row.revision.into(),
                row.next_time.map(Millis::to_utc).into(),
                row.last_time.map(Millis::to_utc).into(),
                now.to_utc().into(),
            ]
        })
        .collect();
    let written = tx.upsert_many("job_trigger_time", "trigger_id", &columns, values).await;
    written.context("write job_trigger_time")
}

/// A schedule, or why it cannot be read.
pub type TriggerRow = (TriggerId, std::result::Result<Trigger, String>);

/// Schedules by their keys. One that cannot be read is returned with the reason, so that it does
/// not stop the others.
pub async fn by_ids(tx: &mut Tx, ids: &[TriggerId]) -> Result<Vec<TriggerRow>> {
    let mut found = Vec::new();
    for chunk in ids.chunks(1_000) {
        let places = vec!["?"; chunk.len()].join(", ");
        let sql = format!("SELECT {COLUMNS} {FROM} WHERE t.trigger_id IN ({places})");
        let values: Vec<_> = chunk.iter().map(|id| id.0.into()).collect();
        let rows = tx.fetch_all(&sql, &values).await.context("read job_trigger")?;
        for row in &rows {
            let id = TriggerId(row.get_int("trigger_id")?);
            found.push((id, trigger(row).map_err(|e| format!("{e:#}"))));
        }
    }
    Ok(found)
}

/// The schedules that an event of this name fires, or any event when none is named.
pub async fn of_event(tx: &mut Tx, name: Option<&str>) -> Result<Vec<Trigger>> {
    let mut sql = format!("SELECT {COLUMNS} {FROM} WHERE t.schedule_type = 'event'");
    let mut values = Vec::new();
    if let Some(name) = name {
        sql.push_str(" AND t.schedule_conf = ?");
        values.push(clipped(name).into());
    }
    let rows = tx.fetch_all(&sql, &values).await.context("read job_trigger")?;
    Ok(rows.iter().filter_map(|row| trigger(row).ok()).collect())
}

/// Every schedule that can be read, unordered.
pub async fn readable(tx: &mut Tx) -> Result<Vec<Trigger>> {
    let sql = format!("SELECT {COLUMNS} {FROM}");
    let rows = tx.fetch_all(&sql, &[]).await.context("read job_trigger")?;
    Ok(rows.iter().filter_map(|row| trigger(row).ok()).collect())
}

/// The codes of all schedules.
pub async fn codes(tx: &mut Tx) -> Result<Vec<String>> {
    let sql = "SELECT trigger_code FROM job_trigger ORDER BY trigger_code";
    let rows = tx.fetch_all(sql, &[]).await.context("read job_trigger")?;
    rows.iter().map(|row| Ok(row.get_text("trigger_code")?)).collect()
}

/// Every schedule, by code.
pub async fn list_triggers(tx: &mut Tx) -> Result<Vec<Trigger>> {
    let sql = format!("SELECT {COLUMNS} {FROM} ORDER BY t.trigger_code");
    let rows = tx.fetch_all(&sql, &[]).await.context("read job_trigger")?;
    rows.iter().map(trigger).collect()
}

/// Schedules by code, after the code `after`.
pub async fn list_page(tx: &mut Tx, after: &str, limit: u32) -> Result<Vec<Trigger>> {
    let sql =
        format!("SELECT {COLUMNS} {FROM} WHERE t.trigger_code > ? ORDER BY t.trigger_code LIMIT ?");
    let rows = tx.fetch_all(&sql, &[after.into(), limit.into()]).await;
    rows.context("read job_trigger")?.iter().map(trigger).collect()
}

/// Schedules whose code or name contains a text, by code.
pub async fn holding(tx: &mut Tx, text: &str, limit: u32) -> Result<Vec<Trigger>> {
    let (found, mut values) = holds(&["t.trigger_code", "t.trigger_name"], text);
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE 1 = 1{found} ORDER BY t.trigger_code LIMIT ?");
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("look for schedules")?;
    Ok(rows.iter().filter_map(|row| trigger(row).ok()).collect())
}

pub async fn find_trigger(tx: &mut Tx, code: &TriggerCode) -> Result<Option<Trigger>> {
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE t.trigger_code = ?");
    let row = tx.fetch_optional(&sql, &[code.as_str().into()]).await.context("read job_trigger")?;
    row.as_ref().map(trigger).transpose()
}

/// Inserts a new schedule, without a next time; fails with a duplicate key when its code exists.
pub async fn insert(tx: &mut Tx, def: &TriggerDef, origin: &str, now: Millis) -> Result<TriggerId> {
    let kind = def.timing.schedule.kind();
    let id = tx
        .insert_id(
            "INSERT INTO job_trigger (trigger_code, trigger_name, group_code, schedule_type, \
             schedule_conf, time_zone, handler, trigger_status, origin, revision, body, create_time, \
             update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "trigger_id",
            &[
                def.code.as_str().into(),
                def.name.as_str().into(),
                def.group().map(GroupCode::as_str).into(),
                kind.into(),
                clipped(&def.schedule_conf()).into(),
                def.timing.zone.name().into(),
                def.handler.as_str().into(),
                TriggerStatus::Enabled.as_str().into(),
                origin.into(),
                1i64.into(),
                serde_json::to_string(def)?.into(),
                now.to_utc().into(),
                now.to_utc().into(),
            ],
        )
        .await
        .with_context(|| format!("write schedule {}", def.code))?;
    Ok(TriggerId(id))
}

/// Replaces the definition of a schedule; returns its new revision.
pub async fn replace(
    tx: &mut Tx,
    was: &Trigger,
    def: &TriggerDef,
    origin: &str,
    now: Millis,
) -> Result<i64> {
    let kind = def.timing.schedule.kind();
    let revision = was.revision + 1;
    tx.execute(
        "UPDATE job_trigger SET trigger_name = ?, group_code = ?, schedule_type = ?, \
         schedule_conf = ?, time_zone = ?, handler = ?, origin = ?, revision = ?, body = ?, \
         update_time = ? WHERE trigger_id = ?",
        &[
            def.name.as_str().into(),
            def.group().map(GroupCode::as_str).into(),
            kind.into(),
            clipped(&def.schedule_conf()).into(),
            def.timing.zone.name().into(),
            def.handler.as_str().into(),
            origin.into(),
            revision.into(),
            serde_json::to_string(def)?.into(),
            now.to_utc().into(),
            was.trigger_id.0.into(),
        ],
    )
    .await
    .with_context(|| format!("write schedule {}", def.code))?;
    Ok(revision)
}

/// Sets whether schedules fire, and why not.
pub async fn set_status(
    tx: &mut Tx,
    ids: &[TriggerId],
    status: TriggerStatus,
    reason: Option<&str>,
    now: Millis,
) -> Result<u64> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    tx.execute_in(
        "UPDATE job_trigger SET trigger_status = ?, reason = ?, update_time = ? WHERE trigger_id",
        &[status.as_str().into(), reason.into(), now.to_utc().into()],
        &ids,
        "",
        &[],
    )
    .await
    .context("set the status of a schedule")
}

/// Removes a schedule. Its firings are kept as a record.
pub async fn remove(tx: &mut Tx, id: TriggerId) -> Result<()> {
    for table in ["job_trigger_time", "job_trigger"] {
        let sql = format!("DELETE FROM {table} WHERE trigger_id = ?");
        tx.execute(&sql, &[id.0.into()]).await.context("remove a schedule")?;
    }
    Ok(())
}

fn clipped(text: &str) -> String {
    text.chars().take(250).collect()
}

fn trigger(row: &Row) -> Result<Trigger> {
    let status = row.get_text("trigger_status")?;
    let known = TriggerStatus::ALL.into_iter().find(|s| s.as_str() == status);
    Ok(Trigger {
        trigger_id: TriggerId(row.get_int("trigger_id")?),
        revision: row.get_int("revision")?,
        def: serde_json::from_str(&row.get_text("body")?).context("job_trigger.body")?,
        status: known.with_context(|| format!("job_trigger.trigger_status '{status}'"))?,
        reason: row.opt_text("reason")?,
        origin: row.get_text("origin")?,
        create_time: row.get_time("create_time")?.into(),
        next_time: row.opt_time("next_time")?.map(Into::into),
        last_time: row.opt_time("last_time")?.map(Into::into),
    })
}
