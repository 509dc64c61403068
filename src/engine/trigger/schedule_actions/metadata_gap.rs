//! Operators' decisions after the metadata was restored to an earlier state: declaring, showing and
//! accepting a gap.

use super::{NotDone, ScheduleActionOrigin, from_now, locked, next_of, schedule_rows, stand};
use crate::domain::cluster::metadata_gap::MetadataGap;
use crate::domain::schedule::firing::FiringStatus;
use crate::domain::schedule::trigger::TriggerStatus;
use crate::domain::time::Millis;
use crate::engine::operate::operator_actions::of_batch;
use crate::store::audit::AuditEntry;
use crate::store::batch::Going;
use crate::store::hint::{self, HintTopic};
use crate::store::next_run::{self, StaleGroups};
use crate::store::{Db, Tx, audit, batch, firing, metadata_gap, trigger};
use anyhow::{Context as _, Result};

/// What to do with past planned times that have no firing in the restored rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastTimes {
    /// They were fired before the restore, or are not wanted: each schedule continues from now.
    MarkFired,
    /// They were not fired: the misfire policy of each schedule decides, as after an outage.
    Fire,
}

/// What to do with batches that are open in the restored rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenBatchesPolicy {
    /// Pause them, so that nothing starts twice before an operator has checked.
    Pause,
    /// Continue from the state of the restored rows.
    GoOn,
}

/// The result of accepting a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub gap: MetadataGap,
    /// Schedules that continue from now, without past planned times.
    pub schedules: usize,
    /// Decided firings that are skipped.
    pub firings: u64,
    /// Batches that were paused.
    pub batches: usize,
}

/// Firings skipped in one statement.
const FIRINGS_MOST: u32 = 5_000;

/// Records that the metadata was restored, before a process detects it: for a restore while none
/// ran.
pub async fn declare_gap(db: &Db, deed: ScheduleActionOrigin<'_>) -> Result<MetadataGap> {
    let mut tx = db.begin().await?;
    let mark = metadata_gap::read_mark(&mut tx).await?;
    if let Some(gap) = mark.gap {
        return Err(NotDone::Suspended(gap.restored_to).into());
    }
    let newest = mark.newest.unwrap_or(Millis(0));
    let found_by = deed.by.actor.clone();
    let gap =
        MetadataGap { restored_to: newest, known_until: newest, found_at: deed.now, found_by };
    metadata_gap::open_gap(&mut tx, &gap).await?;
    record(&mut tx, "metadata restored", &gap, serde_json::json!({}), deed).await?;
    tx.commit().await.context("declare the restored metadata")?;
    Ok(gap)
}

/// Accepts the gap: decides about planned times and open batches, and lets work continue, in one
/// transaction.
pub async fn accept_gap(
    db: &Db,
    past: PastTimes,
    open: OpenBatchesPolicy,
    deed: ScheduleActionOrigin<'_>,
) -> Result<Accepted> {
    let mut tx = locked(db, deed.now).await?;
    let gap = metadata_gap::lock_gap(&mut tx).await?.ok_or(NotDone::NoGap)?;
    let mut accepted = Accepted { gap, schedules: 0, firings: 0, batches: 0 };
    if past == PastTimes::MarkFired {
        accepted.firings = leave_out_firings(&mut tx, deed).await?;
        accepted.schedules = leave_out_planned(&mut tx, deed).await?;
    }
    if open == OpenBatchesPolicy::Pause {
        accepted.batches = pause_open(&mut tx, deed).await?;
    }
    metadata_gap::close(&mut tx).await?;
    // The lost time known from the ledgers of data sources is accepted with it, also when no
    // process runs.
    let mark = metadata_gap::read_mark(&mut tx).await?;
    metadata_gap::raise_start(&mut tx, &mark, deed.now).await?;
    let detail = serde_json::json!({
        "past_times": match past { PastTimes::MarkFired => "marked as fired", PastTimes::Fire => "fired by policy" },
        "schedules": accepted.schedules, "firings": accepted.firings, "paused_batches": accepted.batches,
    });
    record(&mut tx, "metadata accept", &accepted.gap, detail, deed).await?;
    hint::send_hint(&mut tx, HintTopic::Trigger).await?;
    tx.commit().await.context("accept the restored metadata")?;
    Ok(accepted)
}

/// Refuses to start anything from rows of an earlier state.
pub async fn refuse_while_suspended(tx: &mut Tx) -> Result<()> {
    match metadata_gap::read_mark(tx).await?.gap {
        Some(gap) => Err(NotDone::Suspended(gap.restored_to).into()),
        None => Ok(()),
    }
}

fn reason(deed: ScheduleActionOrigin<'_>) -> String {
    format!("before the metadata was restored; left out by {}", deed.by.actor)
}

/// Skips every decided firing whose time has come, also those that wait for a batch of the earlier state to end: what
/// they wait for has ended in the lost time, and they may have fired then.
async fn leave_out_firings(tx: &mut Tx, deed: ScheduleActionOrigin<'_>) -> Result<u64> {
    let mut count = leave_out_pending(tx, deed).await?;
    loop {
        let firings = firing::waiting_first(tx, FIRINGS_MOST).await?;
        if firings.is_empty() {
            return Ok(count);
        }
        let left = firing::skip_waiting(tx, &firings, &reason(deed), deed.now).await?;
        anyhow::ensure!(left > 0, "waiting firings cannot be left out");
        count += left;
    }
}

async fn leave_out_pending(tx: &mut Tx, deed: ScheduleActionOrigin<'_>) -> Result<u64> {
    let mut count = 0;
    loop {
        let firings = firing::unattended(tx, deed.now, deed.now, FIRINGS_MOST).await?;
        if firings.is_empty() {
            return Ok(count);
        }
        let (status, why) = (FiringStatus::Skipped, reason(deed));
        let left = firing::withhold(tx, &firings, status, &why, deed.now).await?;
        anyhow::ensure!(left > 0, "pending firings cannot be left out");
        count += left;
    }
}

/// Continues every schedule from now that has past planned times without a firing.
async fn leave_out_planned(tx: &mut Tx, deed: ScheduleActionOrigin<'_>) -> Result<usize> {
    let mut count = 0;
    for was in trigger::readable(tx).await? {
        if was.status != TriggerStatus::Enabled || !was.is_overdue(deed.now) {
            continue;
        }
        schedule_rows::leave_overdue(tx, &was, &reason(deed), deed.now).await?;
        let next = next_of(tx, &was, &was.def, deed.now).await?;
        let from_now = from_now(&was, deed.now);
        stand(tx, &from_now, was.revision, next.map(|o| o.planned), deed.now).await?;
        next_run::refresh(tx, &StaleGroups::of_schedules([&was.def])).await?;
        count += 1;
    }
    Ok(count)
}

/// Pauses open batches, whose rows may be older than what has run.
async fn pause_open(tx: &mut Tx, deed: ScheduleActionOrigin<'_>) -> Result<usize> {
    let mut count = 0;
    for found in batch::list_open(tx).await? {
        let there = batch::lock_batch(tx, found.batch_id).await?;
        if there.status.is_final() || there.is_paused {
            continue;
        }
        batch::set_going(tx, there.batch_id, Going::Paused, deed.now).await?;
        let why = "the metadata was restored: look at what its jobs did, then batch resume";
        audit::record(tx, deed.by, &[of_batch(&there, "pause", why)], deed.now).await?;
        count += 1;
    }
    Ok(count)
}

async fn record(
    tx: &mut Tx,
    action: &str,
    gap: &MetadataGap,
    mut detail: serde_json::Value,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    detail["restored_to"] = gap.restored_to.to_string().into();
    detail["known_until"] = gap.known_until.to_string().into();
    let reason = deed.reason.map(str::to_owned);
    let action = action.to_owned();
    let entry =
        AuditEntry { action, group: None, batch: None, job: None, detail: Some(detail), reason };
    audit::record(tx, deed.by, &[entry], deed.now).await
}
