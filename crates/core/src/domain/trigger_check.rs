//! Checks a schedule against the definition, the calendars and the current time before it is saved, because a saved
//! schedule is examined again only when it fails.

mod hurry;
mod numbers;
mod ring;

pub use ring::rings;

use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{BatchError, BatchPlan};
use crate::domain::calendar::{Calendar, Calendars, warnings};
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::job::Definition;
use crate::domain::schedule::trigger::{
    FiringOverrides, OrderError, PlannedInstant, ScheduledOrder, TriggerDef, WordFault,
};
use crate::domain::schedule::{Anchor, FiringRule, Occurrence};
use crate::domain::text::did_you_mean::nearest;
use crate::domain::time::{Millis, day_in};
use std::collections::{BTreeMap, BTreeSet};

/// Number of firings examined: 40 weeks of a weekly schedule, three years of a monthly one.
const LOOKED_AT: usize = 40;

/// Whether a schedule with a finding may be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerGrade {
    /// It may not.
    Refused,
    /// It may, but is probably not intended.
    Warned,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFinding {
    /// The key, the problem and the hint.
    pub fault: WordFault,
    /// Severity.
    pub grade: TriggerGrade,
}

impl TriggerFinding {
    fn refused(key: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { fault: WordFault::new(key, what, cure), grade: TriggerGrade::Refused }
    }

    fn warned(key: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { grade: TriggerGrade::Warned, ..Self::refused(key, what, cure) }
    }
}

/// What a schedule is checked against.
#[derive(Clone, Copy, Debug)]
pub struct TriggerCheckContext<'a> {
    /// The definition.
    pub defs: &'a Definition,
    /// The calendars; without them weekends are used, and no calendar counts as unknown.
    pub calendars: Option<&'a Calendars>,
    /// The current time.
    pub now: Millis,
    /// Expected duration of the batches of groups in milliseconds, as far as known.
    pub expected: &'a BTreeMap<GroupCode, i64>,
}

/// All findings about one schedule.
pub fn check(def: &TriggerDef, around: &TriggerCheckContext<'_>) -> Vec<TriggerFinding> {
    let stand_in;
    let calendars = match around.calendars {
        Some(calendars) => calendars,
        None => {
            stand_in = weekends(def.timing.calendar.as_ref());
            &stand_in
        }
    };
    let mut found = Vec::new();
    if let Err(faults) = def.timing.check(around.now, calendars) {
        let kind = def.timing.schedule.kind();
        let refused = |e| TriggerFinding {
            fault: WordFault::of_timing(&e, kind),
            grade: TriggerGrade::Refused,
        };
        found.extend(faults.into_iter().map(refused));
    }
    let is_timed = found.is_empty();
    found.extend(second_opinion(def, around.now).filter(|_| is_timed));
    if let (Some(code), Some(calendars), true) = (&def.timing.calendar, around.calendars, is_timed)
    {
        let today = day_in(around.now, def.timing.zone);
        let lacks = warnings(calendars, &BTreeSet::from([code.clone()]), today);
        found.extend(lacks.iter().map(|w| TriggerFinding::warned("calendar", w.to_string(), "")));
    }
    found.extend(unknown_parent(def, around.defs));
    let Some(order) = &def.order else { return found };
    let anchor = Anchor::new(around.now);
    let ahead: Vec<Occurrence> = if is_timed {
        def.timing
            .preview(calendars, around.now, anchor)
            .map_while(Result::ok)
            .take(LOOKED_AT)
            .collect()
    } else {
        Vec::new()
    };
    found.extend(numbers::check(def, order, &ahead, around.defs, around.now));
    if is_timed {
        found.extend(numbers::clock_back(def, order, calendars, around.now));
    }
    match plans(def, order, &ahead, around) {
        // A delay is counted from the end of the previous batch, so two never overlap.
        Ok(_) if matches!(def.timing.schedule, FiringRule::FixedDelay { .. }) => {}
        Ok(plans) => found.extend(hurry::check(def, &ahead, &plans, around.expected)),
        Err(finding) => found.extend(finding),
    }
    found
}

/// Refuses a cron expression that a second parser reads differently: the author may mean either.
fn second_opinion(def: &TriggerDef, now: Millis) -> Option<TriggerFinding> {
    let FiringRule::Cron(cron) = &def.timing.schedule else { return None };
    let differs = cron.compare_with_crate(now, def.timing.zone).err()?;
    let cure = "write the times as a list, or use rule:, and report the expression as a fault of Procession";
    Some(TriggerFinding::refused("cron", differs.to_string(), cure))
}

/// A schedule that follows batches of an unknown group never fires; another file may define the group.
fn unknown_parent(def: &TriggerDef, defs: &Definition) -> Option<TriggerFinding> {
    let FiringRule::After { group, .. } = &def.timing.schedule else { return None };
    if defs.groups.iter().any(|g| g.code == *group) {
        return None;
    }
    let near = nearest(group.as_str(), defs.groups.iter().map(|g| g.code.as_str()));
    let hint = near.map_or_else(String::new, |near| format!("did you mean {near}? otherwise "));
    let what = format!("after: group {group} is not defined here, and until it is nothing fires");
    Some(TriggerFinding::warned("after", what, format!("{hint}apply the file that defines it")))
}

/// Replaces the named calendar by one with weekends only, while calendars are unknown.
fn weekends(code: Option<&CalendarCode>) -> Calendars {
    let bare = code.map(|code| Calendar::with_defaults(code.clone()));
    Calendars::new(bare.into_iter().collect()).unwrap_or_default()
}

/// The batches that the first firing would open.
fn plans(
    def: &TriggerDef,
    order: &ScheduledOrder,
    ahead: &[Occurrence],
    around: &TriggerCheckContext<'_>,
) -> Result<Vec<BatchPlan>, Option<TriggerFinding>> {
    let planned = ahead.first().map_or(around.now, |o| o.planned);
    let nominal = ahead.first().map_or_else(|| day_in(planned, def.timing.zone), |o| o.nominal);
    let parent = numbers::example_parent(def, order, around.defs);
    let at = PlannedInstant {
        schedule: def.code.as_str(),
        planned,
        nominal,
        zone: def.timing.zone,
        parent: parent.as_ref().map(|no| (no, None)),
    };
    let order =
        order.resolve_order(at, FiringOverrides::default()).map_err(|error| match error {
            OrderError::Unknown { .. } | OrderError::Open(_) | OrderError::Given(_) => {
                Some(TriggerFinding::refused("params", error.to_string(), ""))
            }
            // Reported already by the check of numbers.
            OrderError::Expr(_) | OrderError::Format(_) | OrderError::Number(..) => None,
        })?;
    plan_opening(around.defs, &order, planned).map_err(|error| match error {
        // Calendars are not known here.
        BatchError::Calendar(..) if around.calendars.is_none() => None,
        error => Some(refusal(def, &error)),
    })
}

fn refusal(def: &TriggerDef, error: &BatchError) -> TriggerFinding {
    let target = if def.group().is_some() { "group" } else { "type" };
    let key = match error {
        BatchError::Params { .. } | BatchError::Values { .. } => "params",
        BatchError::BadOrder(_)
        | BatchError::Number(_)
        | BatchError::WrongNumber { .. }
        | BatchError::TwoDays { .. } => "batch_no",
        BatchError::NoGroup(..)
        | BatchError::Empty(_)
        | BatchError::Forbidden { .. }
        | BatchError::Inactive { .. }
        | BatchError::BadZone(..)
        | BatchError::Calendar(..)
        | BatchError::Dag(_)
        | BatchError::FanOut(_) => target,
    };
    let by_hand = matches!(def.timing.schedule, FiringRule::Event { .. } | FiringRule::Manual);
    // The parameters of an event or a manual firing are not known yet.
    if by_hand && key == "params" {
        return TriggerFinding::warned(key, error.to_string(), "");
    }
    TriggerFinding::refused(key, error.to_string(), "")
}

#[cfg(test)]
mod tests;
