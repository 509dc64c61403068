//! Actions of people on schedules. Each action holds the schedule lock, so that no pass sees half
//! of it, recomputes the next time, and is recorded with its reason.

mod firing_now;
mod metadata_gap;
mod refused;
mod schedule_rows;

pub use firing_now::{EventFiringResult, Fired, event, fire_now};
pub use metadata_gap::{
    Accepted, OpenBatchesPolicy, PastTimes, accept_gap, declare_gap, refuse_while_suspended,
};
pub use refused::NotDone;
pub(crate) use schedule_rows::{apply_in, refuse_foreign};

use crate::domain::calendar::Calendars;
use crate::domain::id::{CalendarCode, GroupCode, TriggerCode};
use crate::domain::schedule::firing::FiringStatus;
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerStatus, WordFault, WordFaults};
use crate::domain::schedule::{Anchor, FiringRule, Occurrence};
use crate::domain::text::did_you_mean::nearest;
use crate::domain::time::Millis;
use crate::domain::trigger_check::{self, TriggerCheckContext, TriggerFinding, TriggerGrade};
use crate::store::audit::{AuditEntry, Operator};
use crate::store::hint::{self, HintTopic};
use crate::store::lock::{self, SCHEDULE_LOCK};
use crate::store::next_run::{self, StaleGroups};
use crate::store::trigger::ScheduleProgress;
use crate::store::{self, Db, Tx, audit, calendar, firing, job, trigger};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Origin of a schedule that a definition file contains.
pub const FROM_FILE: &str = "file";
/// Origin of a schedule that a person created by a command.
pub const FROM_PERSON: &str = "person";

/// Who acts, why and when.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleActionOrigin<'a> {
    pub by: &'a Operator,
    pub reason: Option<&'a str>,
    /// The time, by the database's clock.
    pub now: Millis,
}

/// A schedule after an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStanding {
    pub trigger: Trigger,
    /// Its next firing by the clock.
    pub next: Option<Occurrence>,
    /// Settings that are allowed but probably unintended.
    pub warnings: Vec<WordFault>,
}

/// Begins a transaction that holds the schedule lock, which is always taken before any other lock.
/// A missing lock row is restored first.
pub(crate) async fn locked(db: &Db, now: Millis) -> Result<Tx> {
    let mut tx = db.begin().await?;
    if lock::hold_lock(&mut tx, SCHEDULE_LOCK).await?.is_some() {
        return Ok(tx);
    }
    lock::restore_row(&mut tx, SCHEDULE_LOCK, now).await?;
    tx.commit().await.context("put the lock row back")?;
    tracing::error!("the row schedule_lock was gone from job_lock; it has been put back");
    let mut tx = db.begin().await?;
    lock::hold_lock(&mut tx, SCHEDULE_LOCK)
        .await?
        .context("the row schedule_lock is gone again")?;
    Ok(tx)
}

/// Adds a schedule. `expected` are the known durations of batches, in milliseconds.
pub async fn add_schedule(
    db: &Db,
    def: &TriggerDef,
    expected: &BTreeMap<GroupCode, i64>,
    deed: ScheduleActionOrigin<'_>,
) -> Result<ScheduleStanding> {
    let mut tx = locked(db, deed.now).await?;
    if trigger::find_trigger(&mut tx, &def.code).await?.is_some() {
        return Err(NotDone::Exists(def.code.clone()).into());
    }
    let warnings = sound(&mut tx, def, expected, deed.now).await?;
    schedule_rows::insert(&mut tx, def, FROM_PERSON, deed).await?;
    finish(tx, &def.code, warnings, deed.now).await
}

/// Changes the definition of a schedule. A paused schedule stays paused.
pub async fn edit_schedule(
    db: &Db,
    code: &TriggerCode,
    change: &(dyn Fn(TriggerDef) -> Result<TriggerDef> + Sync),
    expected: &BTreeMap<GroupCode, i64>,
    deed: ScheduleActionOrigin<'_>,
) -> Result<ScheduleStanding> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    let def = change(was.def.clone()).map_err(|error| match error.downcast::<WordFaults>() {
        Ok(faults) => NotDone::Unsound { code: code.clone(), faults: faults.0 }.into(),
        Err(other) => other,
    })?;
    let warnings = sound(&mut tx, &def, expected, deed.now).await?;
    schedule_rows::replace(&mut tx, &was, &def, &was.origin, deed).await?;
    next_run::refresh(&mut tx, &StaleGroups::of_schedules([&was.def])).await?;
    finish(tx, code, warnings, deed.now).await
}

/// Removes a schedule. Its firings stay on record; decided ones that have not fired are skipped.
pub async fn remove(
    db: &Db,
    code: &TriggerCode,
    deed: ScheduleActionOrigin<'_>,
) -> Result<Trigger> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    schedule_rows::remove(&mut tx, &was, deed).await?;
    next_run::refresh(&mut tx, &StaleGroups::of_schedules([&was.def])).await?;
    hint::send_hint(&mut tx, HintTopic::Trigger).await?;
    tx.commit().await.context("remove the schedule")?;
    Ok(was)
}

/// Pauses a schedule: nothing is planned, and decided firings are skipped.
pub async fn pause(
    db: &Db,
    code: &TriggerCode,
    deed: ScheduleActionOrigin<'_>,
) -> Result<ScheduleStanding> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    if was.status == TriggerStatus::Paused {
        return Err(NotDone::Already(code.clone(), "paused").into());
    }
    let words = format!("paused by {}: {}", deed.by.actor, deed.reason.unwrap_or_default());
    schedule_rows::leave_overdue(&mut tx, &was, &words, deed.now).await?;
    set_status(&mut tx, &was, TriggerStatus::Paused, Some(&words), deed.now).await?;
    stand(&mut tx, &was, was.revision, None, deed.now).await?;
    let ahead = firing::ahead(&mut tx, was.trigger_id, deed.now).await?;
    firing::withhold(&mut tx, &ahead, FiringStatus::Skipped, &words, deed.now).await?;
    record(&mut tx, "schedule pause", &was.def, None, deed).await?;
    finish(tx, code, Vec::new(), deed.now).await
}

/// Resumes a schedule from now on: planned times during the pause were skipped on purpose and are
/// no misfires.
pub async fn resume(
    db: &Db,
    code: &TriggerCode,
    deed: ScheduleActionOrigin<'_>,
) -> Result<ScheduleStanding> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    if was.status == TriggerStatus::Enabled {
        return Err(NotDone::Already(code.clone(), "enabled").into());
    }
    let next = next_of(&mut tx, &was, &was.def, deed.now).await?;
    if next.is_none() && was.ends_without_next() {
        return Err(NotDone::NeverAgain(code.clone()).into());
    }
    set_status(&mut tx, &was, TriggerStatus::Enabled, None, deed.now).await?;
    let from_now = from_now(&was, deed.now);
    stand(&mut tx, &from_now, was.revision, next.map(|o| o.planned), deed.now).await?;
    record(&mut tx, "schedule resume", &was.def, None, deed).await?;
    finish(tx, code, Vec::new(), deed.now).await
}

/// Skips the next planned time; returns it, and the schedule afterwards.
pub async fn skip_next(
    db: &Db,
    code: &TriggerCode,
    deed: ScheduleActionOrigin<'_>,
) -> Result<(Occurrence, ScheduleStanding)> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    match was.status {
        TriggerStatus::Enabled => {}
        TriggerStatus::Paused => return Err(NotDone::Already(code.clone(), "paused").into()),
        TriggerStatus::Ended => return Err(NotDone::NeverAgain(code.clone()).into()),
    }
    let calendars = calendar::list_calendars(&mut tx).await?;
    let anchor = anchor(&mut tx, &was, deed.now).await?;
    // A firing that was decided ahead precedes the next planned time.
    let ahead = firing::ahead(&mut tx, was.trigger_id, deed.now).await?;
    let first = ahead.first().map(|f| f.planned_at).or(was.next_time);
    let from = first.map_or(deed.now, |at| at.plus_ms(-1));
    let next_after = |after| {
        let next = was.def.timing.next_after(&calendars, after, anchor);
        next.map_err(|error| NotDone::Calendar { code: code.clone(), error: Box::new(error) })
    };
    let Some(skipped) = next_after(from)? else {
        let kind = was.def.timing.schedule.kind();
        return Err(NotDone::NoClock { code: code.clone(), kind }.into());
    };
    if let Some(first) = ahead.first() {
        let first = std::slice::from_ref(first);
        let why = schedule_rows::left_out(deed);
        firing::withhold(&mut tx, first, FiringStatus::Skipped, &why, deed.now).await?;
    } else {
        schedule_rows::leave_out(&mut tx, &was, &skipped, deed).await?;
        let next_time = next_after(skipped.planned)?.map(|o| o.planned);
        let (trigger_id, revision) = (was.trigger_id, was.revision);
        let last_time = Some(skipped.planned);
        let standing = ScheduleProgress { trigger_id, revision, next_time, last_time };
        trigger::advance(&mut tx, &[standing], deed.now).await?;
    }
    let detail = serde_json::json!({"skipped": skipped.planned.to_string()});
    record(&mut tx, "schedule skip-next", &was.def, Some(detail), deed).await?;
    Ok((skipped, finish(tx, code, Vec::new(), deed.now).await?))
}

/// Recomputes the next times of all schedules that use this calendar, or one derived from it; for a
/// caller that has changed it in the same transaction and holds the schedule lock. Returns the
/// schedules whose next time has changed.
pub async fn replan_in(tx: &mut Tx, code: &CalendarCode, now: Millis) -> Result<Vec<Trigger>> {
    let calendars = calendar::list_calendars(tx).await?;
    let users = calendars.users_of(code);
    let uses = |t: &Trigger| {
        t.def.timing.calendar.as_ref().is_some_and(|c| c == code || users.contains(&c))
    };
    let (mut moved, mut standings) = (Vec::new(), Vec::new());
    for was in trigger::readable(tx).await?.into_iter().filter(uses) {
        // The next pass decides about overdue times, by the calendar at that time.
        if was.status != TriggerStatus::Enabled || was.is_overdue(now) {
            continue;
        }
        let anchor = anchor(tx, &was, now).await?;
        let after = was.last_time.map_or(now, |last| last.max(now));
        let next_time = next_in(&was.def, &calendars, after, anchor)?.map(|o| o.planned);
        if next_time != was.next_time {
            let Trigger { trigger_id, revision, last_time, .. } = was;
            standings.push(ScheduleProgress { trigger_id, revision, next_time, last_time });
            moved.push(Trigger { next_time, ..was });
        }
    }
    trigger::advance(tx, &standings, now).await?;
    next_run::refresh(tx, &StaleGroups::of_schedules(moved.iter().map(|t| &t.def))).await?;
    if !moved.is_empty() {
        hint::send_hint(tx, HintTopic::Trigger).await?;
    }
    Ok(moved)
}

/// Like [`replan_in`], in a transaction of its own.
pub async fn replan(db: &Db, code: &CalendarCode, now: Millis) -> Result<Vec<Trigger>> {
    let mut tx = locked(db, now).await?;
    let moved = replan_in(&mut tx, code, now).await?;
    tx.commit().await.context("plan the schedules of a calendar anew")?;
    Ok(moved)
}

/// The schedule with this code.
pub async fn found(tx: &mut Tx, code: &TriggerCode) -> Result<Trigger> {
    if let Some(found) = trigger::find_trigger(tx, code).await? {
        return Ok(found);
    }
    let codes = trigger::codes(tx).await?;
    let cure = match nearest(code.as_str(), codes.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None if codes.is_empty() => {
            "there is none at all; make one: procession schedule add".to_owned()
        }
        None => "see: procession schedule list".to_owned(),
    };
    Err(NotDone::Unknown { code: code.clone(), cure }.into())
}

/// Checks a schedule before it is saved: returns an error, or warnings.
async fn sound(
    tx: &mut Tx,
    def: &TriggerDef,
    expected: &BTreeMap<GroupCode, i64>,
    now: Millis,
) -> Result<Vec<WordFault>> {
    let (defs, calendars) = (job::definition(tx).await?, calendar::list_calendars(tx).await?);
    let around = TriggerCheckContext { defs: &defs, calendars: Some(&calendars), now, expected };
    let mut findings = trigger_check::check(def, &around);
    let mut all: Vec<TriggerDef> = vec![def.clone()];
    if let FiringRule::After { .. } = def.timing.schedule {
        all.extend(
            trigger::list_triggers(tx)
                .await?
                .into_iter()
                .map(|t| t.def)
                .filter(|d| d.code != def.code),
        );
        let rings = trigger_check::rings(&all, &defs).into_iter();
        findings.extend(rings.filter(|(code, _)| *code == def.code).map(|(_, found)| found));
    }
    let is_refused = |f: &TriggerFinding| f.grade == TriggerGrade::Refused;
    let (refused, warned): (Vec<TriggerFinding>, Vec<TriggerFinding>) =
        findings.into_iter().partition(is_refused);
    let faults = |all: Vec<TriggerFinding>| all.into_iter().map(|f| f.fault).collect();
    if refused.is_empty() {
        return Ok(faults(warned));
    }
    Err(NotDone::Unsound { code: def.code.clone(), faults: faults(refused) }.into())
}

/// The next firing of a schedule with definition `def`: later than now and than every planned time
/// that has a row.
async fn next_of(
    tx: &mut Tx,
    was: &Trigger,
    def: &TriggerDef,
    now: Millis,
) -> Result<Option<Occurrence>> {
    let calendars = calendar::list_calendars(tx).await?;
    let anchor = anchor(tx, was, now).await?;
    let after = was.last_time.map_or(now, |last| last.max(now));
    next_in(def, &calendars, after, anchor)
}

fn next_in(
    def: &TriggerDef,
    calendars: &Calendars,
    after: Millis,
    anchor: Anchor,
) -> Result<Option<Occurrence>> {
    let next = def.timing.next_after(calendars, after, anchor);
    Ok(next.map_err(|error| NotDone::Calendar { code: def.code.clone(), error: Box::new(error) })?)
}

/// The start point of a rate or a delay. While a firing is open, the next time of a delay is set by
/// the end of its batch.
async fn anchor(tx: &mut Tx, was: &Trigger, now: Millis) -> Result<Anchor> {
    let mut anchor = Anchor { last_planned: was.last_time, ..Anchor::new(was.create_time) };
    let is_delay = matches!(was.def.timing.schedule, FiringRule::FixedDelay { .. });
    if is_delay && was.last_time.is_some() && !firing::is_open(tx, was.trigger_id).await? {
        anchor.last_finished = was.last_time.map(|last| last.max(now));
    }
    Ok(anchor)
}

/// A schedule that reacts to ends of batches reacts to those from now on.
fn from_now(was: &Trigger, now: Millis) -> Trigger {
    match was.def.timing.schedule {
        FiringRule::After { .. } => Trigger { last_time: Some(now), ..was.clone() },
        FiringRule::Cron(_)
        | FiringRule::FixedRate { .. }
        | FiringRule::FixedDelay { .. }
        | FiringRule::Once { .. }
        | FiringRule::Rule { .. }
        | FiringRule::Event { .. }
        | FiringRule::Manual => was.clone(),
    }
}

async fn set_status(
    tx: &mut Tx,
    was: &Trigger,
    status: TriggerStatus,
    reason: Option<&str>,
    now: Millis,
) -> Result<()> {
    trigger::set_status(tx, &[was.trigger_id], status, reason, now).await.map(drop)
}

async fn stand(
    tx: &mut Tx,
    was: &Trigger,
    revision: i64,
    next_time: Option<Millis>,
    now: Millis,
) -> Result<()> {
    let (trigger_id, last_time) = (was.trigger_id, was.last_time);
    trigger::advance(tx, &[ScheduleProgress { trigger_id, revision, next_time, last_time }], now)
        .await
}

/// Writes the audit record of an action.
async fn record(
    tx: &mut Tx,
    action: &str,
    def: &TriggerDef,
    detail: Option<serde_json::Value>,
    deed: ScheduleActionOrigin<'_>,
) -> Result<()> {
    let mut said = serde_json::json!({ "schedule": def.code });
    if let (Some(all), Some(serde_json::Value::Object(detail))) = (said.as_object_mut(), detail) {
        all.extend(detail);
    }
    let entry = AuditEntry {
        action: action.to_owned(),
        group: def.group().cloned(),
        batch: None,
        job: None,
        detail: Some(said),
        reason: deed.reason.map(str::to_owned),
    };
    audit::record(tx, deed.by, &[entry], deed.now).await
}

/// Commits, and returns the schedule.
async fn finish(
    mut tx: Tx,
    code: &TriggerCode,
    warnings: Vec<WordFault>,
    now: Millis,
) -> Result<ScheduleStanding> {
    hint::send_hint(&mut tx, HintTopic::Trigger).await?;
    let now_is = found(&mut tx, code).await?;
    next_run::refresh(&mut tx, &StaleGroups::of_schedules([&now_is.def])).await?;
    let next = match now_is.next_time {
        Some(at) => {
            let calendars = calendar::list_calendars(&mut tx).await?;
            let anchor = anchor(&mut tx, &now_is, now).await?;
            next_in(&now_is.def, &calendars, at.plus_ms(-1), anchor)?
        }
        None => None,
    };
    tx.commit().await.context("write the schedule")?;
    Ok(ScheduleStanding { trigger: now_is, next, warnings })
}

/// Turns a duplicate-key error into the message that the code is taken.
fn taken(error: anyhow::Error, code: &TriggerCode) -> anyhow::Error {
    if store::is_taken(&error) { NotDone::Exists(code.clone()).into() } else { error }
}
