//! Writes schedule rows under the lock: new, changed and removed ones, and those of a whole file.

use super::{
    FROM_FILE, FROM_PERSON, NotDone, ScheduleActionOrigin, from_now, next_of, record, set_status,
    stand, taken,
};
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::schedule::Occurrence;
use crate::domain::schedule::firing::{FiringStatus, NewFiring, Source};
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerStatus};
use crate::domain::time::Millis;
use crate::engine::trigger::planner::AHEAD_MS;
use crate::store::hint::{self, HintTopic};
use crate::store::next_run::{self, StaleGroups};
use crate::store::{Tx, calendar, firing, trigger};
use anyhow::{Context as _, Result};

/// Inserts a schedule with its next time.
pub(super) async fn insert(
    tx: &mut Tx,
    def: &TriggerDef,
    origin: &str,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    trigger::insert(tx, def, origin, deed.now).await.map_err(|e| taken(e, &def.code))?;
    let made = trigger::find_trigger(tx, &def.code).await?.context("it was just written")?;
    if def.starts_paused {
        let reason = "its definition says paused: true";
        set_status(tx, &made, TriggerStatus::Paused, Some(reason), deed.now).await?;
        stand(tx, &made, made.revision, None, deed.now).await?;
    } else {
        settle(tx, &made, def, made.revision, deed).await?;
    }
    let detail = serde_json::json!({ "after": serde_json::to_value(def)? });
    record(tx, "schedule add", def, Some(detail), deed).await
}

/// Replaces the definition of a schedule, with its next time.
pub(super) async fn replace(
    tx: &mut Tx,
    was: &Trigger,
    def: &TriggerDef,
    origin: &str,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    let revision = trigger::replace(tx, was, def, origin, deed.now).await?;
    settle(tx, was, def, revision, deed).await?;
    withhold_moved(tx, was, def, deed).await?;
    let before = serde_json::to_value(&was.def)?;
    let detail = serde_json::json!({ "before": before, "after": serde_json::to_value(def)? });
    record(tx, "schedule edit", def, Some(detail), deed).await
}

/// Decided firings of the old definition fire only if the new one has the same planned time, with
/// the new order; otherwise they are skipped.
async fn withhold_moved(
    tx: &mut Tx,
    was: &Trigger,
    def: &TriggerDef,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    if def.timing == was.def.timing {
        return Ok(());
    }
    let mut moved = firing::ahead(tx, was.trigger_id, deed.now).await?;
    if moved.is_empty() {
        return Ok(());
    }
    let calendars = calendar::list_calendars(tx).await?;
    let as_now = Trigger { def: def.clone(), ..was.clone() };
    moved.retain(|f| {
        let same = as_now.next_after(&calendars, f.planned_at.plus_ms(-1));
        !same.is_ok_and(|next| next.is_some_and(|next| next.at == f.planned_at))
    });
    let reason = format!("the schedule was changed by {}", deed.by.actor);
    firing::withhold(tx, &moved, FiringStatus::Skipped, &reason, deed.now).await.map(drop)
}

/// The next time of a schedule that was just written, and whether it fires at all.
async fn settle(
    tx: &mut Tx,
    was: &Trigger,
    def: &TriggerDef,
    revision: i64,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    if was.status == TriggerStatus::Paused {
        return stand(tx, was, revision, None, deed.now).await;
    }
    if was.is_overdue(deed.now) {
        if def.timing == was.def.timing {
            // The next pass decides about it, as if the change had not been made.
            return stand(tx, was, revision, was.next_time, deed.now).await;
        }
        let words = format!("it was due when {} changed the schedule", deed.by.actor);
        leave_overdue(tx, was, &words, deed.now).await?;
    }
    // By the new definition: a rate becomes a delay, and its open firing counts at once.
    let mut as_now = Trigger { def: def.clone(), ..was.clone() };
    if def.timing != was.def.timing {
        // Times skipped far ahead have no meaning for another timing.
        as_now.last_time = was.last_time.map(|last| last.min(deed.now.plus_ms(AHEAD_MS)));
    }
    if def.timing.schedule != was.def.timing.schedule {
        as_now = from_now(&as_now, deed.now);
    }
    let next = next_of(tx, &as_now, def, deed.now).await?.map(|o| o.planned);
    let is_over = next.is_none() && as_now.ends_without_next();
    if is_over {
        let reason = "it has no planned time any more";
        set_status(tx, was, TriggerStatus::Ended, Some(reason), deed.now).await?;
    } else if was.status == TriggerStatus::Ended {
        set_status(tx, was, TriggerStatus::Enabled, None, deed.now).await?;
    }
    stand(tx, &as_now, revision, next, deed.now).await
}

/// Removes a schedule.
pub(super) async fn remove(
    tx: &mut Tx,
    was: &Trigger,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    trigger::remove(tx, was.trigger_id).await?;
    let detail = serde_json::json!({ "before": serde_json::to_value(&was.def)? });
    record(tx, "schedule remove", &was.def, Some(detail), deed).await
}

/// Writes one row for the past planned times of a schedule that have no row: they will not be
/// planned any more, because the schedule is paused or changed.
pub(super) async fn leave_overdue(
    tx: &mut Tx,
    was: &Trigger,
    why: &str,
    now: Millis,
) -> Result<()> {
    let Some(planned_at) = was.next_time.filter(|_| was.is_overdue(now)) else { return Ok(()) };
    if firing::is_there(tx, was.trigger_id, planned_at).await? {
        return Ok(());
    }
    let row = NewFiring {
        trigger_id: was.trigger_id,
        planned_at,
        nominal_date: None,
        source: Source::Cron,
        handler: was.def.handler.clone(),
        status: FiringStatus::Skipped,
        fire_at: planned_at,
        params: None,
        parent_batch_id: None,
        missed_until: Some(now),
        reason: Some(why.to_owned()),
    };
    firing::append(tx, &[row], None, now).await
}

/// Why a planned time is skipped.
pub(super) fn left_out(deed: ScheduleActionOrigin<'_>) -> String {
    match deed.reason {
        Some(why) => format!("left out by {}: {why}", deed.by.actor),
        None => format!("left out by {}", deed.by.actor),
    }
}

/// Writes the row of a planned time that an operator skips.
pub(super) async fn leave_out(
    tx: &mut Tx,
    was: &Trigger,
    skipped: &Occurrence,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    let reason = left_out(deed);
    let row = NewFiring {
        trigger_id: was.trigger_id,
        planned_at: skipped.planned,
        nominal_date: Some(skipped.nominal),
        source: Source::Cron,
        handler: was.def.handler.clone(),
        status: FiringStatus::Skipped,
        fire_at: skipped.planned,
        params: None,
        parent_batch_id: None,
        missed_until: None,
        reason: Some(reason),
    };
    firing::append(tx, &[row], None, deed.now).await
}

/// Makes the stored schedules match a file: writes those in `wanted`, removes those in `spoken_of`
/// that it lacks. Unchanged schedules are not touched, so their next time stays. The caller holds
/// the schedule lock and has checked `refuse_foreign`.
pub(crate) async fn apply_in(
    tx: &mut Tx,
    stored: &[Trigger],
    wanted: &Definition,
    spoken_of: &[TriggerDef],
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    let there = |def: &TriggerDef| stored.iter().find(|t| t.def.code == def.code);
    let mut stale = StaleGroups::default();
    let mut changed = 0usize;
    for def in &wanted.schedules {
        match there(def) {
            None => insert(tx, def, FROM_FILE, deed).await?,
            Some(was) if was.def == *def => continue,
            Some(was) => {
                replace(tx, was, def, FROM_FILE, deed).await?;
                stale.add_schedule(&was.def);
            }
        }
        stale.add_schedule(def);
        changed += 1;
    }
    let is_gone = |def: &&TriggerDef| wanted.schedules.iter().all(|w| w.code != def.code);
    for was in spoken_of.iter().filter(is_gone).filter_map(there) {
        remove(tx, was, deed).await?;
        stale.add_schedule(&was.def);
        changed += 1;
    }
    next_run::refresh(tx, &stale).await?;
    if changed > 0 {
        hint::send_hint(tx, HintTopic::Trigger).await?;
    }
    Ok(())
}

/// Refuses schedules of a file whose codes belong to others: to a person, or to a group in another
/// file.
pub(crate) fn refuse_foreign(
    stored: &[Trigger],
    wanted: &Definition,
    sees: &dyn Fn(&GroupCode) -> bool,
) -> Result<(), NotDone> {
    let has = |code: &GroupCode| wanted.groups.iter().any(|g| g.code == *code);
    for def in &wanted.schedules {
        let Some(was) = stored.iter().find(|t| t.def.code == def.code && t.def != *def) else {
            continue;
        };
        let code = def.code.clone();
        // Codes are unique in the installation, so it must be reported that one is taken; the owner
        // only to those who may see it.
        if was.def.group().is_some_and(|group| !has(group) && !sees(group)) {
            let whose = "has a code that is taken".to_owned();
            return Err(NotDone::Foreign { code, whose });
        }
        if was.origin == FROM_PERSON {
            let whose = "was made by a command and says something else".to_owned();
            return Err(NotDone::Foreign { code, whose });
        }
        if let Some(group) = was.def.group().filter(|group| !has(group)) {
            let whose = format!("belongs to group {group}, which this file does not define");
            return Err(NotDone::Foreign { code, whose });
        }
    }
    Ok(())
}
