//! Checks whether the batch numbers of a schedule's next firings are valid and distinct.

use super::TriggerFinding;
use crate::domain::batch::groups_of;
use crate::domain::batch::open_check::check_number;
use crate::domain::batch_no::{BatchExpr, BatchExprError, NumberGrammar};
use crate::domain::calendar::Calendars;
use crate::domain::id::BatchNo;
use crate::domain::job::Definition;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::{
    NumberRule, OrderError, PlannedInstant, ScheduledOrder, TriggerDef,
};
use crate::domain::schedule::{Anchor, FiringRule, Occurrence};
use crate::domain::time::{Millis, day_in};
use chrono::{NaiveDate, Offset as _};
use std::collections::HashMap;

/// Examples of the number of a followed batch, one of each kind.
const EXAMPLES: [&str; 4] = ["20240731", "202407", "2024Q3", "2024"];
/// How many days ahead to search for a day on which clocks are put back.
const DAYS_AHEAD: i64 = 400;
/// Maximum number of firings examined on that day.
const FIRINGS_OF_DAY: usize = 3_000;
const DAY_MS: i64 = 86_400_000;

/// An example number of the followed batch, for a schedule that follows other batches: of the kind that the followed
/// group's type requires, else one for which the rule gives a number.
pub(super) fn example_parent(
    def: &TriggerDef,
    order: &ScheduledOrder,
    defs: &Definition,
) -> Option<BatchNo> {
    let FiringRule::After { group, .. } = &def.timing.schedule else { return None };
    let followed = defs.groups.iter().find(|g| g.code == *group);
    let grammar = NumberGrammar::of_type(followed.and_then(|g| g.batch_type.as_deref()));
    let mut examples: Vec<BatchNo> =
        EXAMPLES.iter().filter_map(|no| BatchNo::parse(no).ok()).collect();
    examples.retain(|no| grammar.check(no).is_ok());
    let fits = |no: &&BatchNo| match &order.batch_no {
        NumberRule::Expr(expr) => expr.one_from(no, None).is_ok_and(|made| {
            groups_of(defs, order).into_iter().all(|group| check_number(group, &made).is_ok())
        }),
        NumberRule::Time(_) => true,
    };
    if let Some(fitting) = examples.iter().find(fits) {
        return Some(fitting.clone());
    }
    let works = |no: &&BatchNo| match &order.batch_no {
        NumberRule::Expr(expr) => expr.one_from(no, None).is_ok(),
        NumberRule::Time(_) => true,
    };
    examples.iter().find(works).or(examples.first()).cloned()
}

/// The batch number for one planned time.
fn number(
    def: &TriggerDef,
    order: &ScheduledOrder,
    planned: Millis,
    nominal: NaiveDate,
    parent: Option<&BatchNo>,
) -> Result<BatchNo, OrderError> {
    let at = PlannedInstant {
        schedule: def.code.as_str(),
        planned,
        nominal,
        zone: def.timing.zone,
        parent: parent.map(|no| (no, None)),
    };
    order.batch_no.number(at)
}

/// Checks that each of the next firings has a batch number and that no number occurs twice.
pub(super) fn check(
    def: &TriggerDef,
    order: &ScheduledOrder,
    ahead: &[Occurrence],
    defs: &Definition,
    now: Millis,
) -> Option<TriggerFinding> {
    let parent = example_parent(def, order, defs);
    let today = day_in(now, def.timing.zone);
    if let Err(error) = number(def, order, now, today, parent.as_ref()) {
        return Some(TriggerFinding::refused(
            "batch_no",
            format!("batch_no: {error}"),
            cure_of(&error),
        ));
    }
    let mut seen: HashMap<BatchNo, &Occurrence> = HashMap::new();
    for one in ahead {
        let no = match number(def, order, one.planned, one.nominal, None) {
            Ok(no) => no,
            Err(error) => {
                let what = format!("batch_no: {error}");
                return Some(TriggerFinding::refused("batch_no", what, cure_of(&error)));
            }
        };
        if let Some(first) = seen.insert(no.clone(), one) {
            return Some(twice(def, order, &no, first, one));
        }
    }
    None
}

fn cure_of(error: &OrderError) -> &'static str {
    match error {
        OrderError::Expr(BatchExprError::NeedsBatch(_)) => {
            "same, prev and next are for schedules with after:"
        }
        OrderError::Expr(_)
        | OrderError::Format(_)
        | OrderError::Number(..)
        | OrderError::Unknown { .. }
        | OrderError::Open(_)
        | OrderError::Given(_) => "",
    }
}

fn twice(
    def: &TriggerDef,
    order: &ScheduledOrder,
    no: &BatchNo,
    first: &Occurrence,
    second: &Occurrence,
) -> TriggerFinding {
    let local =
        |at: Millis| at.to_utc().with_timezone(&def.timing.zone).format("%Y-%m-%d %H:%M:%S");
    let gap = second.planned.since(first.planned);
    let rule = &order.batch_no;
    let what = format!(
        "batch_no {rule} is {no} at {} and again at {}; a batch never runs twice, so the second opens \
         nothing",
        local(first.planned),
        local(second.planned)
    );
    let other = match (gap, rule) {
        (..60_000, _) => "time(%Y%m%d-%H%M%S)",
        (..DAY_MS, _) => "time(%Y%m%d-%H%M)",
        (
            _,
            NumberRule::Expr(BatchExpr::Period(..) | BatchExpr::Day(..) | BatchExpr::Literal(_)),
        ) => "day(0)",
        (_, NumberRule::Expr(_) | NumberRule::Time(_)) => "time(%Y%m%d)",
    };
    let cure = format!("write batch_no: {other}, or let it fire less often");
    match def.overlap {
        // A schedule that skips overlapping firings on purpose fires until one finds its batch missing.
        Overlap::Skip => TriggerFinding::warned("batch_no", what, cure),
        Overlap::Queue | Overlap::Parallel | Overlap::Replace => {
            TriggerFinding::refused("batch_no", what, cure)
        }
    }
}

/// Checks numbers derived from local time on the next day on which clocks are put back: two firings an hour apart then
/// have the same number.
pub(super) fn clock_back(
    def: &TriggerDef,
    order: &ScheduledOrder,
    calendars: &Calendars,
    now: Millis,
) -> Option<TriggerFinding> {
    if !matches!(order.batch_no, NumberRule::Time(_)) || !def.timing.schedule.is_clocked() {
        return None;
    }
    let from = day_before_back(def, now)?;
    let mut seen: HashMap<BatchNo, Millis> = HashMap::new();
    let day = def.timing.preview(calendars, from, Anchor::new(now)).map_while(Result::ok);
    for one in
        day.take_while(|o| o.planned < from.plus_ms(DAY_MS + DAY_MS / 8)).take(FIRINGS_OF_DAY)
    {
        let no = number(def, order, one.planned, one.nominal, None).ok()?;
        if let Some(first) = seen.insert(no.clone(), one.planned) {
            let what = format!(
                "clocks of {} go back: {} and {} are both batch {no}, and the second opens nothing",
                def.timing.zone.name(),
                first,
                one.planned
            );
            let cure = "write time_zone: UTC, or %s (seconds since 1970) in the number";
            return Some(TriggerFinding::warned("batch_no", what, cure));
        }
    }
    None
}

/// Start of a span of at most one day within which the clocks of the schedule's zone are put back.
fn day_before_back(def: &TriggerDef, now: Millis) -> Option<Millis> {
    let offset =
        |at: Millis| at.to_utc().with_timezone(&def.timing.zone).offset().fix().local_minus_utc();
    let days = (0..DAYS_AHEAD).map(|day| now.plus_ms(day * DAY_MS));
    days.into_iter().find(|day| offset(*day) > offset(day.plus_ms(DAY_MS)))
}
