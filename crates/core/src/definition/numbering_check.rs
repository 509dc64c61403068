//! Warns of dependencies on batch numbers that the other group never has, for example the days of a month in a group
//! whose batches are months.

use crate::definition::fault::{FaultReport, Located};
use crate::domain::batch_no::{NumberGrammar, Period, PeriodKind};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::Group;
use crate::domain::job::external::ExternalDependency;
use crate::domain::schedule::trigger::{PlannedInstant as FiringAt, ScheduledOrder, TriggerDef};
use crate::domain::time::Millis;
use chrono::NaiveDate;

/// A planned time for an example batch number: 2024-07-31 12:34:56 UTC.
const EXAMPLE_MS: i64 = 1_722_429_296_000;

/// What decides the batch numbers of the groups of a definition.
pub(crate) struct Numbering<'a> {
    pub groups: &'a [Group],
    pub schedules: &'a [TriggerDef],
}

/// One origin of a group's batch numbers.
struct NumberSource {
    /// The kind of period of the numbers; none: free text.
    kind: Option<PeriodKind>,
    /// Description: `group month_end is monthly`.
    how: String,
}

impl Numbering<'_> {
    /// Warns of each dependency whose numbers are of a kind that the other group does not have.
    pub(crate) fn warn_of_mismatches(
        &self,
        found: &[Located<ExternalDependency>],
        report: &mut FaultReport,
    ) {
        for one in found {
            let external = &one.value;
            let own = self.kind_of(&external.waiting_group);
            let Some(wanted) = external.batch.number_kind(own) else { continue };
            let sources = self.sources(&external.group);
            let Some(first) = sources.first() else { continue };
            if sources.iter().any(|source| source.kind == Some(wanted)) {
                continue;
            }
            let what = format!(
                "job {}: batch {} gives numbers of {wanted}s, and {}; it has no such batches",
                external.job_code, external.batch, first.how
            );
            report.add_warning(&one.at, what, grammar_hint(first.kind));
        }
    }

    /// The kind of all batch numbers of a group, if it is known.
    fn kind_of(&self, group: &GroupCode) -> Option<PeriodKind> {
        let sources = self.sources(group);
        let kind = sources.first()?.kind?;
        sources.iter().all(|source| source.kind == Some(kind)).then_some(kind)
    }

    /// The origins of a group's batch numbers: its type, else its schedules. Empty if they cannot be known.
    fn sources(&self, code: &GroupCode) -> Vec<NumberSource> {
        let Some(group) = self.groups.iter().find(|group| group.code == *code) else {
            return Vec::new();
        };
        let batch_type = group.batch_type.as_deref();
        if let Some(kind) = NumberGrammar::of_type(batch_type).kind() {
            let how = format!("group {code} is {}", batch_type.unwrap_or_default());
            return vec![NumberSource { kind: Some(kind), how }];
        }
        let mut sources = Vec::new();
        for schedule in self.schedules {
            let Some(order) = schedule.order.as_ref().filter(|order| opens(order, group)) else {
                continue;
            };
            let Some(no) = example(schedule, order) else { return Vec::new() };
            let how = format!(
                "schedule {} numbers group {code} by {}, as in {no}",
                schedule.code, order.batch_no
            );
            sources.push(NumberSource { kind: Period::from_batch_no(&no).map(Period::kind), how });
        }
        sources
    }
}

fn opens(order: &ScheduledOrder, group: &Group) -> bool {
    order.group.as_ref().is_none_or(|code| *code == group.code)
        && order.batch_type.as_ref().is_none_or(|ty| group.batch_type.as_ref() == Some(ty))
}

/// An example number of a schedule; none if it depends on the followed batch.
fn example(schedule: &TriggerDef, order: &ScheduledOrder) -> Option<BatchNo> {
    let nominal = NaiveDate::from_ymd_opt(2024, 7, 31)?;
    let zone = schedule.timing.zone;
    let planned = Millis(EXAMPLE_MS);
    let at = FiringAt { schedule: schedule.code.as_str(), planned, nominal, zone, parent: None };
    order.batch_no.number(at).ok()
}

/// The suggested expression for a group with numbers of this kind.
fn grammar_hint(kind: Option<PeriodKind>) -> &'static str {
    match kind {
        Some(PeriodKind::Day) => {
            "write day(n), last_day_of_month(n), days_of_month(n) or another expression for days, or name \
             a group that has such batches"
        }
        Some(PeriodKind::Month) => {
            "write month(n), months or months_of_quarter, or name a group that has such batches"
        }
        Some(PeriodKind::Quarter) => {
            "write quarter(n) or quarters_of_year, or name a group that has such batches"
        }
        Some(PeriodKind::Year) => "write year(n), or name a group that has such batches",
        None => "give its schedule another batch_no, or name a group that has such batches",
    }
}
