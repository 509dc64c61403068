//! Chooses batch numbers, so that as many batches run as runs did in the other system: each firing of each schedule of a group has
//! a number of its own.

use crate::domain::calendar::Calendars;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::Definition;
use crate::domain::schedule::Anchor;
use crate::domain::schedule::trigger::{PlannedInstant, TriggerDef, TriggerWords};
use crate::domain::time::Millis;
use crate::import::schedule::{Pending, group_zone};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rules from the most readable to the finest.
pub(crate) const RULES: [&str; 3] = ["day(0)", "time(%Y%m%d-%H%M)", "time(%Y%m%d-%H%M%S)"];
/// Firings of each schedule that are compared: three years of a monthly one.
const COMPARED: usize = 40;

/// What the other system does when two schedules of a job fire at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum SameMoment {
    /// The job runs once.
    OneRun,
    /// It runs once for each.
    #[default]
    EachRuns,
}

/// Schedules that number their batches alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchNumberCount {
    /// The expression.
    pub batch_no: String,
    /// Codes of the schedules.
    pub schedules: Vec<String>,
}

impl BatchNumberCount {
    /// The rules of all schedules that open batches.
    pub fn of_all(schedules: &[TriggerDef]) -> Vec<Self> {
        let mut by_rule: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for schedule in schedules {
            if let Some(order) = &schedule.order {
                let codes = by_rule.entry(order.batch_no.to_string()).or_default();
                codes.push(schedule.code.to_string());
            }
        }
        by_rule.into_iter().map(|(batch_no, schedules)| Self { batch_no, schedules }).collect()
    }
}

/// The rules to try for each schedule, in their order. A schedule that has a rule keeps it.
pub(crate) fn choose_rules(
    pending: &[Pending],
    same: SameMoment,
    defs: &Definition,
    now: Millis,
) -> Vec<Vec<String>> {
    let mut by_group: BTreeMap<Option<&GroupCode>, Vec<usize>> = BTreeMap::new();
    for (at, one) in pending.iter().enumerate() {
        by_group.entry(one.words.group.as_ref()).or_default().push(at);
    }
    let mut chosen: Vec<Vec<String>> = vec![Vec::new(); pending.len()];
    for members in by_group.values() {
        let all: Vec<&Pending> = members.iter().map(|at| &pending[*at]).collect();
        for (at, rules) in members.iter().zip(rules_of_group(&all, same, defs, now)) {
            chosen[*at] = rules;
        }
    }
    for (rules, one) in chosen.iter_mut().zip(pending) {
        if let Some(own) = &one.words.batch_no {
            *rules = vec![own.clone()];
        }
    }
    chosen
}

fn rules_of_group(
    all: &[&Pending],
    same: SameMoment,
    defs: &Definition,
    now: Millis,
) -> Vec<Vec<String>> {
    let names = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>();
    let mut items = Vec::new();
    for one in all {
        if !items.contains(&one.item) {
            items.push(one.item);
        }
    }
    if items.len() < 2 {
        // Schedules that together say one of the other system.
        let words: Vec<&TriggerWords> = all.iter().map(|one| &one.words).collect();
        let is_distinct = |rule: &&str| all.len() < 2 || are_distinct(&words, rule, defs, now);
        let first = RULES.iter().position(is_distinct).unwrap_or(RULES.len() - 1);
        return vec![names(&RULES[first..]); all.len()];
    }
    let zones: BTreeSet<Option<&str>> =
        all.iter().map(|one| one.words.timing.time_zone.as_deref()).collect();
    let is_apart = same == SameMoment::EachRuns || zones.len() > 1;
    let rule = |one: &&Pending| {
        let finest = RULES[RULES.len() - 1];
        match items.iter().position(|item| *item == one.item) {
            Some(place) if is_apart && place > 0 => {
                vec![format!("{}-{})", finest.trim_end_matches(')'), place + 1)]
            }
            _ => names(&[finest]),
        }
    };
    all.iter().map(rule).collect()
}

/// Whether a rule gives the next firings of all schedules together a number each.
fn are_distinct(all: &[&TriggerWords], rule: &str, defs: &Definition, now: Millis) -> bool {
    let mut seen: HashMap<BatchNo, Millis> = HashMap::new();
    for words in all {
        let zone = group_zone(words.group.as_ref(), defs);
        let words = TriggerWords { batch_no: Some(rule.to_owned()), ..(*words).clone() };
        // What cannot be read is reported where the schedule is made.
        let Ok(made) = words.parse_trigger(Some(zone)) else { continue };
        let Some(order) = &made.order else { continue };
        let calendars = Calendars::default();
        let ahead = made.timing.preview(&calendars, now, Anchor::new(now)).map_while(Result::ok);
        for one in ahead.take(COMPARED) {
            let at = PlannedInstant {
                schedule: made.code.as_str(),
                planned: one.planned,
                nominal: one.nominal,
                zone: made.timing.zone,
                parent: None,
            };
            let Ok(number) = order.batch_no.number(at) else { continue };
            if seen.insert(number, one.planned).is_some_and(|known| known != one.planned) {
                return false;
            }
        }
    }
    true
}
