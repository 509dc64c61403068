//! Effects of the end of a batch: a firing of a schedule of kind `after`, or the start of a fixed
//! delay.

use crate::domain::calendar::Calendars;
use crate::domain::schedule::firing::{FiringStatus, NewFiring, Source, TriggerId};
use crate::domain::schedule::trigger::Trigger;
use crate::domain::schedule::{Anchor, BatchEndFilter, FiringRule};
use crate::domain::time::{Millis, day_in};
use crate::engine::trigger::planner::PlannedWrites;
use crate::store::batch_end_schedules::{BatchEndRow, Delay, Following, mark_after};
use crate::store::trigger::ScheduleProgress;
use crate::store::{Tx, firing};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The rows to write for the ended batches.
pub(super) fn plan_followers(
    found: &Following,
    known: &HashMap<TriggerId, Trigger>,
    calendars: &Calendars,
    now: Millis,
    work: &mut PlannedWrites,
) {
    let mut marks: BTreeMap<TriggerId, (i64, Millis)> = BTreeMap::new();
    for end in &found.ends {
        let Some(trigger) = known.get(&end.trigger_id) else { continue };
        let counts = match trigger.def.timing.schedule {
            FiringRule::After { on: BatchEndFilter::Success, .. } => end.status.is_success(),
            FiringRule::After { on: BatchEndFilter::End, .. } => true,
            FiringRule::Cron(_)
            | FiringRule::FixedRate { .. }
            | FiringRule::FixedDelay { .. }
            | FiringRule::Once { .. }
            | FiringRule::Rule { .. }
            | FiringRule::Event { .. }
            | FiringRule::Manual => false,
        };
        if counts {
            work.rows.push(answer(trigger, end, now));
        }
        let (_, mark) = marks.entry(end.trigger_id).or_insert((end.revision, end.mark));
        *mark = mark_after(*mark, end.at);
        if !counts && *mark == end.mark {
            // No firing is to be written for it.
            marks.remove(&end.trigger_id);
        }
    }
    work.standings.extend(marks.into_iter().map(|(trigger_id, (revision, at))| ScheduleProgress {
        trigger_id,
        revision,
        next_time: None,
        last_time: Some(at),
    }));
    for delay in &found.delays {
        if let Some(trigger) = known.get(&delay.trigger_id) {
            match begin(trigger, delay, calendars, now) {
                Ok(standing) => work.standings.push(standing),
                Err(why) => work.ended.push((delay.trigger_id, why)),
            }
        }
    }
}

fn answer(trigger: &Trigger, end: &BatchEndRow, now: Millis) -> NewFiring {
    NewFiring {
        trigger_id: trigger.trigger_id,
        planned_at: end.at,
        nominal_date: Some(day_in(end.at, trigger.def.timing.zone)),
        source: Source::Parent,
        handler: trigger.def.handler.clone(),
        status: FiringStatus::Pending,
        fire_at: now,
        params: None,
        parent_batch_id: Some(end.batch_id),
        missed_until: None,
        reason: None,
    }
}

/// When a fixed delay is next due, or why it never is again.
fn begin(
    trigger: &Trigger,
    delay: &Delay,
    calendars: &Calendars,
    now: Millis,
) -> Result<ScheduleProgress, String> {
    let finished = delay.finished.unwrap_or(trigger.create_time);
    let anchor = Anchor {
        created: trigger.create_time,
        last_planned: delay.last_time,
        last_finished: Some(finished),
    };
    let after = delay.last_time.map_or(finished, |last| last.max(finished));
    let next = trigger.def.timing.next_after(calendars, after, anchor);
    let next = next.map_err(|error| format!("it cannot be planned: {error}"))?;
    let next = next.ok_or("it has no planned time any more")?.planned;
    let (trigger_id, revision, last_time) = (delay.trigger_id, delay.revision, delay.last_time);
    // What was due while no process was running is due now: a delay cannot miss planned times.
    Ok(ScheduleProgress { trigger_id, revision, next_time: Some(next.max(now)), last_time })
}

/// Two batches may end in the same millisecond, and a schedule has one row per time: the second is
/// dated a millisecond later.
pub(super) async fn shift_taken(tx: &mut Tx, rows: &mut [NewFiring]) -> anyhow::Result<()> {
    let mut taken = HashSet::new();
    for row in rows {
        while !taken.insert((row.trigger_id, row.planned_at))
            || firing::is_there(tx, row.trigger_id, row.planned_at).await?
        {
            row.planned_at = row.planned_at.plus_ms(1);
        }
    }
    Ok(())
}
