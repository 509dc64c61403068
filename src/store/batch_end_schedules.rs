//! Schedules that depend on the end of a batch, and the ends that they have not handled yet.

use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::id::BatchId;
use crate::domain::schedule::firing::{FiringStatus, TriggerId};
use crate::domain::schedule::trigger::TriggerStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// How long after its own time the end of a batch may become visible, in milliseconds: the commit
/// of another node.
const MARGIN_MS: i64 = 60_000;

/// The end of a batch that a schedule may react to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEndRow {
    pub trigger_id: TriggerId,
    pub revision: i64,
    pub batch_id: BatchId,
    pub status: BatchStatus,
    /// When it ended.
    pub at: Millis,
    /// The time from which the schedule reacts to ends.
    pub mark: Millis,
}

/// A schedule with a fixed delay whose delay may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub trigger_id: TriggerId,
    pub revision: i64,
    /// Its newest planned time.
    pub last_time: Option<Millis>,
    /// When the newest of its batches ended, or its newest firing was settled without one.
    pub finished: Option<Millis>,
}

/// The ends and delays to handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// Ends of batches, oldest first.
    pub ends: Vec<BatchEndRow>,
    pub delays: Vec<Delay>,
}

impl Following {
    /// The schedules concerned.
    pub fn trigger_ids(&self) -> impl Iterator<Item = TriggerId> {
        let ends = self.ends.iter().map(|end| end.trigger_id);
        ends.chain(self.delays.iter().map(|delay| delay.trigger_id))
    }
}

/// Reads both; two statements over indexes.
pub async fn find_following(tx: &mut Tx) -> Result<Following> {
    Ok(Following { ends: list_ends(tx).await?, delays: delays(tx).await? })
}

/// Ends for which schedules of kind `after` have no firing, from the mark of the schedule on: the
/// time of its creation or resumption, and later always a while before the newest end it has seen
/// (`mark_after`). The schedule decides which of them count (`success`, `end`).
async fn list_ends(tx: &mut Tx) -> Result<Vec<BatchEndRow>> {
    let finals: Vec<SqlValue> = BatchStatus::ALL
        .into_iter()
        .filter(|status| status.is_final())
        .map(|status| status.as_str().into())
        .collect();
    let sql = format!(
        "SELECT t.trigger_id, t.revision, t.create_time, s.last_time, b.batch_id, b.status, b.end_time \
         FROM job_trigger t LEFT JOIN job_trigger_time s ON s.trigger_id = t.trigger_id \
         JOIN job_batch b ON b.group_code = t.schedule_conf \
         WHERE t.schedule_type = 'after' AND t.trigger_status = ? AND b.status IN ({}) \
         AND b.end_time >= COALESCE(s.last_time, t.create_time) AND NOT EXISTS (SELECT 1 FROM job_firing f \
         WHERE f.parent_batch_id = b.batch_id AND f.trigger_id = t.trigger_id) ORDER BY b.end_time",
        vec!["?"; finals.len()].join(", ")
    );
    let mut values = vec![TriggerStatus::Enabled.as_str().into()];
    values.extend(finals);
    let rows = tx.fetch_all(&sql, &values).await.context("look for the ends of batches")?;
    rows.iter().map(end_of_row).collect()
}

fn end_of_row(row: &Row) -> Result<BatchEndRow> {
    let word = row.get_text("status")?;
    let status = BatchStatus::parse(&word);
    let mark = row.opt_time("last_time")?.map(Millis::from);
    Ok(BatchEndRow {
        trigger_id: TriggerId(row.get_int("trigger_id")?),
        revision: row.get_int("revision")?,
        batch_id: BatchId(row.get_int("batch_id")?),
        status: status.with_context(|| format!("job_batch.status '{word}'"))?,
        at: row.get_time("end_time")?.into(),
        mark: mark.unwrap_or(row.get_time("create_time")?.into()),
    })
}

/// The new mark of a schedule of kind `after` that has seen an end at `at`. The mark never goes
/// back, so that a resumed schedule does not handle ends during its pause.
pub fn mark_after(mark: Millis, at: Millis) -> Millis {
    mark.max(at.plus_ms(-MARGIN_MS))
}

/// Schedules with a fixed delay that have no open firing or batch.
async fn delays(tx: &mut Tx) -> Result<Vec<Delay>> {
    let sql = "SELECT t.trigger_id, t.revision, s.last_time, \
         (SELECT MAX(b.end_time) FROM job_firing f JOIN job_batch b ON b.firing_id = f.firing_id \
         WHERE f.trigger_id = t.trigger_id) AS batch_end, \
         (SELECT MAX(f.update_time) FROM job_firing f WHERE f.trigger_id = t.trigger_id) AS settled \
         FROM job_trigger t JOIN job_trigger_time s ON s.trigger_id = t.trigger_id \
         WHERE t.schedule_type = 'delay_sec' AND t.trigger_status = ? AND s.next_time IS NULL \
         AND NOT EXISTS (SELECT 1 FROM job_firing f WHERE f.trigger_id = t.trigger_id \
         AND f.status IN (?, ?)) \
         AND NOT EXISTS (SELECT 1 FROM job_batch b JOIN job_firing f ON f.firing_id = b.firing_id \
         WHERE b.status IN (?, ?) AND f.trigger_id = t.trigger_id)";
    let values = [
        TriggerStatus::Enabled.as_str().into(),
        FiringStatus::Pending.as_str().into(),
        FiringStatus::Waiting.as_str().into(),
        BatchStatus::Running.as_str().into(),
        BatchStatus::Killing.as_str().into(),
    ];
    let rows = tx.fetch_all(sql, &values).await.context("look for delays that begin")?;
    rows.iter().map(delay).collect()
}

fn delay(row: &Row) -> Result<Delay> {
    let end = row.opt_time("batch_end")?.map(Millis::from);
    let settled = row.opt_time("settled")?.map(Millis::from);
    Ok(Delay {
        trigger_id: TriggerId(row.get_int("trigger_id")?),
        revision: row.get_int("revision")?,
        last_time: row.opt_time("last_time")?.map(Into::into),
        finished: end.max(settled),
    })
}
