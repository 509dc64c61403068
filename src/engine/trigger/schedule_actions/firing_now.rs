//! Firings caused by a person or a program.

use super::{NotDone, ScheduleActionOrigin, found, locked, record};
use crate::domain::batch::BatchOrder;
use crate::domain::batch::open_check::check_batch_no;
use crate::domain::id::TriggerCode;
use crate::domain::job::Definition;
use crate::domain::schedule::firing::{FiringStatus, NewFiring, Source};
use crate::domain::schedule::trigger::{FiringOverrides, Trigger, TriggerStatus};
use crate::domain::schedule::{FiringRule, Swallowed};
use crate::domain::text::did_you_mean::nearest;
use crate::domain::time::{Millis, day_in};
use crate::store::hint::{self, HintTopic};
use crate::store::{Db, Tx, calendar, event_key, firing, job, trigger};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A firing that was created, or why it was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The code of the schedule.
    pub code: TriggerCode,
    /// Its planned time, which together with the schedule identifies the firing.
    pub planned: Millis,
    /// Why it was skipped: a blackout, a pause.
    pub left_out: Option<String>,
}

/// The result of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventFiringResult {
    /// The event created these firings.
    Fired(Vec<Fired>),
    /// The event was received before, at this time, under the same key; nothing was done.
    Before(Millis),
}

/// Fires a schedule once, at once, independently of its timing and also while it is paused.
pub async fn fire_now(
    db: &Db,
    code: &TriggerCode,
    given: &FiringOverrides,
    deed: ScheduleActionOrigin<'_>,
) -> Result<Fired> {
    let mut tx = locked(db, deed.now).await?;
    let was = found(&mut tx, code).await?;
    let row = new_row(&mut tx, &was, Source::Manual, given, deed.now).await?;
    let planned = row.planned_at;
    firing::append(&mut tx, &[row], None, deed.now).await?;
    let detail = serde_json::json!({ "planned_at": planned.to_string(), "batch_no": given.batch_no, "params": given.params.keys().collect::<Vec<_>>() });
    record(&mut tx, "schedule fire-now", &was.def, Some(detail), deed).await?;
    hint::send_hint(&mut tx, HintTopic::Trigger).await?;
    tx.commit().await.context("fire the schedule")?;
    Ok(Fired { code: code.clone(), planned, left_out: None })
}

/// Fires every schedule that waits for this event. An event with a key takes effect once: a sender
/// that does not know whether it was received sends it again. During a blackout a skipped firing is
/// recorded and returned.
pub async fn event(
    db: &Db,
    name: &str,
    given: &FiringOverrides,
    key: Option<&str>,
    deed: ScheduleActionOrigin<'_>,
) -> Result<EventFiringResult> {
    let mut tx = locked(db, deed.now).await?;
    let mut waiting = trigger::of_event(&mut tx, Some(name)).await?;
    waiting.retain(
        |t| matches!(&t.def.timing.schedule, FiringRule::Event { name: own } if own == name),
    );
    if waiting.is_empty() {
        let all = trigger::of_event(&mut tx, None).await?;
        return Err(no_such_event(name, &all).into());
    }
    if let Some(key) = key
        && let Some(before) = event_key::remember(&mut tx, name, key, deed.now).await?
    {
        tx.rollback().await?;
        return Ok(EventFiringResult::Before(before));
    }
    let calendars = calendar::list_calendars(&mut tx).await?;
    let (mut rows, mut fired) = (Vec::new(), Vec::new());
    for was in &waiting {
        let mut row = new_row(&mut tx, was, Source::Event, given, deed.now).await?;
        let swallowed = was.def.timing.swallows(&calendars, deed.now);
        let swallowed = swallowed.map_err(|error| NotDone::Calendar {
            code: was.def.code.clone(),
            error: Box::new(error),
        })?;
        let left_out = left_out(was, swallowed.as_ref());
        if let Some(why) = &left_out {
            (row.status, row.reason) = (FiringStatus::Skipped, Some(why.clone()));
        }
        fired.push(Fired { code: was.def.code.clone(), planned: row.planned_at, left_out });
        rows.push(row);
        let detail = serde_json::json!({ "event": name, "key": key, "batch_no": given.batch_no, "params": given.params.keys().collect::<Vec<_>>() });
        record(&mut tx, "event send", &was.def, Some(detail), deed).await?;
    }
    firing::append(&mut tx, &rows, None, deed.now).await?;
    hint::send_hint(&mut tx, HintTopic::Trigger).await?;
    tx.commit().await.context("fire the schedules of an event")?;
    Ok(EventFiringResult::Fired(fired))
}

fn left_out(was: &Trigger, swallowed: Option<&Swallowed>) -> Option<String> {
    match was.status {
        TriggerStatus::Paused => Some("the schedule is paused".to_owned()),
        TriggerStatus::Enabled | TriggerStatus::Ended => {
            swallowed.map(|why| why.words(crate::domain::text::lang::Lang::En))
        }
    }
}

/// Refuses a number that is none of the group's periods while the one who gave it still reads the
/// answer. The firing refuses it too, but in the row of a firing, after the command ended well.
async fn check_given_number(tx: &mut Tx, was: &Trigger, given: &FiringOverrides) -> Result<()> {
    let (Some(batch_no), Some(planned)) = (&given.batch_no, &was.def.order) else { return Ok(()) };
    let (groups, _) = job::audience(tx).await?;
    let order = BatchOrder {
        batch_no: batch_no.clone(),
        batch_type: planned.batch_type.clone(),
        group: planned.group.clone(),
        business_date: None,
        params: BTreeMap::new(),
        free_text: planned.free_text || given.free_text,
    };
    Ok(check_batch_no(&Definition { groups, ..Definition::default() }, &order)?)
}

/// A firing row for this time. Whole seconds belong to planned times, so a millisecond is added; no
/// two firings of a schedule share a time.
async fn new_row(
    tx: &mut Tx,
    was: &Trigger,
    source: Source,
    given: &FiringOverrides,
    now: Millis,
) -> Result<NewFiring> {
    check_given_number(tx, was, given).await?;
    let off_second = |at: Millis| if at.0.rem_euclid(1_000) == 0 { at.plus_ms(1) } else { at };
    let mut planned = off_second(now);
    while firing::is_there(tx, was.trigger_id, planned).await? {
        planned = off_second(planned.plus_ms(1));
    }
    let params =
        (*given != FiringOverrides::default()).then(|| serde_json::to_string(given)).transpose()?;
    Ok(NewFiring {
        trigger_id: was.trigger_id,
        planned_at: planned,
        nominal_date: Some(day_in(now, was.def.timing.zone)),
        source,
        handler: was.def.handler.clone(),
        status: FiringStatus::Pending,
        fire_at: planned,
        params,
        parent_batch_id: None,
        missed_until: None,
        reason: None,
    })
}

fn no_such_event(name: &str, all: &[Trigger]) -> NotDone {
    let events = all.iter().filter_map(|t| {
        let FiringRule::Event { name } = &t.def.timing.schedule else { return None };
        Some(name.as_str())
    });
    let events: std::collections::BTreeSet<&str> = events.collect();
    let cure = match nearest(name, events.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None if events.is_empty() => {
            "make one that does: procession schedule add CODE --event NAME".to_owned()
        }
        None => format!("events are {}", events.into_iter().collect::<Vec<_>>().join(", ")),
    };
    NotDone::NoSuchEvent { event: name.to_owned(), cure }
}
