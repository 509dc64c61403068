//! Plans one due schedule: its rows and its next time, or why it has none any more. No I/O.

use crate::domain::schedule::firing::{FiringStatus, NewFiring, Source};
use crate::domain::schedule::misfire;
use crate::domain::time::Millis;
use crate::engine::trigger::planner::{AHEAD_MS, PlannedWrites, Planner};
use crate::store::trigger::{DueTrigger, ScheduleProgress};

impl Planner {
    /// Adds what is to be written for a due schedule.
    pub(super) fn plan_one(&self, due: &DueTrigger, now: Millis, work: &mut PlannedWrites) {
        let standing = |next_time, last_time| ScheduleProgress {
            trigger_id: due.trigger_id,
            revision: due.revision,
            next_time,
            last_time,
        };
        // Unreadable, or removed by a statement from outside: its time row is cleared.
        let Some(known) = self.known.get(&due.trigger_id) else {
            work.standings.push(standing(None, due.last_time));
            return;
        };
        let next_after = |after: Millis| known.goes_on(&self.calendars.1, after);
        let plan = match known.planned_at(&self.calendars.1, due.next_time) {
            Ok(Some(first)) => {
                let (id, handler) = (due.trigger_id, known.def.handler.as_str());
                let (horizon, misfire) = (now.plus_ms(AHEAD_MS), known.def.misfire);
                misfire::plan_firings(id, handler, first, now, horizon, misfire, next_after)
            }
            Ok(None) => Ok(misfire::MisfirePlan { rows: Vec::new(), next: None, last: None }),
            Err(error) => Err(error),
        };
        match plan {
            Ok(plan) => {
                // The rest of many missed times follows in the next pass, immediately.
                work.more |= plan.next.is_some_and(|next| next <= now);
                work.standings.push(standing(plan.next, plan.last.or(due.last_time)));
                if plan.next.is_none() && known.ends_without_next() {
                    work.ended.push((due.trigger_id, "it has no planned time any more".to_owned()));
                }
                work.rows.extend(plan.rows);
            }
            Err(said) => {
                let reason = format!("it cannot be planned: {said}");
                work.rows.push(failed(due, &known.def.handler, &reason));
                work.standings.push(standing(None, Some(due.next_time)));
                work.ended.push((due.trigger_id, reason));
            }
        }
    }
}

/// The failed row of a planned time of a schedule that can no longer be planned.
fn failed(due: &DueTrigger, handler: &str, reason: &str) -> NewFiring {
    NewFiring {
        trigger_id: due.trigger_id,
        planned_at: due.next_time,
        nominal_date: None,
        source: Source::Cron,
        handler: handler.to_owned(),
        status: FiringStatus::Failed,
        fire_at: due.next_time,
        params: None,
        parent_batch_id: None,
        missed_until: None,
        reason: Some(reason.to_owned()),
    }
}
