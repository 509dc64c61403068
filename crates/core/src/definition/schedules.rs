//! Builds schedules, and checks them against the rest of the definition.

use crate::definition::fault::{DefinitionFault, FaultReport, Faults, Located, SourcePlace};
use crate::definition::load::Loaded;
use crate::definition::near::did_you_mean;
use crate::definition::read_schedules::{FormValidity, RawSchedule};
use crate::domain::calendar::Calendars;
use crate::domain::id::{CalendarCode, GroupCode, TriggerCode};
use crate::domain::job::{Definition, Group};
use crate::domain::schedule::read_zone;
use crate::domain::schedule::trigger::{TriggerDef, TriggerWords, WordFault};
use crate::domain::time::Millis;
use crate::domain::trigger_check::{self, TriggerCheckContext, TriggerFinding, TriggerGrade};
use chrono_tz::Tz;
use std::collections::{BTreeMap, HashMap};

/// The place of each key of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePlaces(HashMap<TriggerCode, (SourcePlace, HashMap<&'static str, SourcePlace>)>);

impl SchedulePlaces {
    /// The place of a key; for an absent key, the place of the schedule.
    fn place_of(&self, code: &TriggerCode, key: &str) -> Option<&SourcePlace> {
        let (own, keys) = self.0.get(code)?;
        // If handler_param is written, it contains the keys of the order.
        let order = ["batch_no", "group", "type", "params"].contains(&key);
        let raw = || keys.get("handler_param").filter(|_| order);
        Some(keys.get(key).or_else(raw).unwrap_or(own))
    }
}

/// Builds schedules from the raw definition.
pub(crate) fn schedules(
    raw: Vec<RawSchedule>,
    groups: &[Group],
    report: &mut FaultReport,
) -> (Vec<TriggerDef>, SchedulePlaces) {
    let (mut made, mut places) = (Vec::new(), SchedulePlaces::default());
    for raw in raw {
        let RawSchedule { code, mut words, places: keys, form, .. } = raw;
        let needs_days = words.timing.rule.is_some() || words.timing.shift.is_some();
        if needs_days && words.timing.calendar.is_none() {
            words.timing.calendar = calendar(&words, groups);
        }
        unknown_group(&code, &words, &keys, groups, report);
        match words.clone().parse_trigger(group_zone(&words, groups)) {
            Ok(_) if form == FormValidity::Wrong => {}
            Ok(def) => {
                places.0.insert(def.code.clone(), (code.at, keys));
                made.push(def);
            }
            Err(faults) => {
                for fault in faults.0 {
                    // A value that could not be read is missing now; that is already reported.
                    if form == FormValidity::Wrong && !names(&fault, &keys) {
                        continue;
                    }
                    let at = keys.get(fault.key).unwrap_or(&code.at);
                    let what = format!("schedule {}: {}", code.value, fault.what);
                    report.fault(at, what, fault.cure);
                }
            }
        }
    }
    (made, places)
}

/// The groups that it opens.
fn opened<'a>(words: &'a TriggerWords, groups: &'a [Group]) -> impl Iterator<Item = &'a Group> {
    groups.iter().filter(|g| words.opens(&g.code, g.batch_type.as_deref()))
}

/// The calendar of the opened groups, if they share one.
fn calendar(words: &TriggerWords, groups: &[Group]) -> Option<CalendarCode> {
    let mut all = opened(words, groups).map(|g| g.calendar.as_ref());
    let first = all.next()?;
    all.all(|other| other == first).then(|| first.cloned())?
}

/// Whether a fault concerns a written key, and not a missing one.
fn names(fault: &WordFault, keys: &HashMap<&'static str, SourcePlace>) -> bool {
    fault.key != "code" && keys.contains_key(fault.key)
}

/// The time zone of the opened groups; if they have several, the schedule must state one.
fn group_zone(words: &TriggerWords, groups: &[Group]) -> Option<Tz> {
    let mut zones: Vec<&str> =
        opened(words, groups).map(|g| g.time_zone.as_deref().unwrap_or("UTC")).collect();
    zones.sort_unstable();
    zones.dedup();
    match zones[..] {
        // A fault in the group's own zone is reported there.
        [one] => Some(read_zone(one).unwrap_or(Tz::UTC)),
        [] => Some(Tz::UTC),
        [_, _, ..] => None,
    }
}

fn unknown_group(
    code: &Located<String>,
    words: &TriggerWords,
    keys: &HashMap<&'static str, SourcePlace>,
    groups: &[Group],
    report: &mut FaultReport,
) {
    let Some(group) = &words.group else { return };
    if groups.iter().any(|g| g.code == *group) {
        return;
    }
    let hint = did_you_mean(group.as_str(), groups.iter().map(|g| g.code.as_str()));
    let what = format!("schedule {}: group {group} is not defined in this file", code.value);
    let at = keys.get("group").unwrap_or(&code.at);
    report.fault(at, what, format!("{hint}define it here, or use procession schedule add"));
}

/// What the schedules of a file are checked against.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleCheckContext<'a> {
    /// The calendars; without them, weekends replace each named calendar.
    pub calendars: Option<&'a Calendars>,
    pub now: Millis,
    /// Expected duration of the batches of groups in milliseconds, as far as known.
    pub expected: &'a BTreeMap<GroupCode, i64>,
    /// The stored schedules: those that stay next to the schedules of the file, and those that are in both. A stored
    /// schedule is not refused because its time is over.
    pub stored: &'a [TriggerDef],
}

impl Loaded {
    /// The faults of the schedules that the definition alone does not show: whether they ever fire, give each batch its
    /// own number, and leave batches time to end. Returns warnings.
    ///
    /// # Errors
    /// Every fault, on the line of its key.
    pub fn look_at_schedules(
        &self,
        look: ScheduleCheckContext<'_>,
    ) -> Result<Vec<DefinitionFault>, Faults> {
        let mut report = FaultReport::default();
        let ScheduleCheckContext { calendars, now, expected, stored } = look;
        if self.definition.schedules.is_empty() && stored.is_empty() {
            return report.finish();
        }
        let known = calendars.cloned().unwrap_or_default();
        let defs = &Definition { calendars: known, ..self.definition.clone() };
        let around = TriggerCheckContext { defs, calendars, now, expected };
        for def in &defs.schedules {
            let is_new = stored.iter().all(|s| s != def);
            // A calendar that lacks days is reported once for all schedules that use it, when the definition is
            // applied.
            let lacks =
                |f: &TriggerFinding| f.fault.key == "calendar" && f.grade == TriggerGrade::Warned;
            let found = trigger_check::check(def, &around).into_iter();
            for finding in found.filter(|f| !lacks(f)) {
                let grade = if is_new { finding.grade } else { TriggerGrade::Warned };
                self.report_finding(&def.code, &TriggerFinding { grade, ..finding }, &mut report);
            }
        }
        let is_other = |s: &&TriggerDef| defs.schedules.iter().all(|d| d.code != s.code);
        let all: Vec<TriggerDef> =
            defs.schedules.iter().chain(stored.iter().filter(is_other)).cloned().collect();
        for (code, finding) in trigger_check::rings(&all, defs) {
            self.report_finding(&code, &finding, &mut report);
        }
        report.finish()
    }

    fn report_finding(
        &self,
        code: &TriggerCode,
        finding: &TriggerFinding,
        report: &mut FaultReport,
    ) {
        let TriggerFinding { fault, grade } = finding;
        let whole = SourcePlace::new(&"schedules".into(), 0);
        let at = self.places.place_of(code, fault.key).unwrap_or(&whole);
        let what = format!("schedule {code}: {}", fault.what);
        match grade {
            TriggerGrade::Refused => report.fault(at, what, fault.cure.clone()),
            TriggerGrade::Warned => report.add_warning(at, what, fault.cure.clone()),
        }
    }
}

#[cfg(test)]
#[path = "schedules_tests.rs"]
mod tests;
