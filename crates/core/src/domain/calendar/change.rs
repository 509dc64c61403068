//! Computes the calendar that an import produces, and the difference between two states of a calendar.

use super::{Calendar, CalendarDayRule, DayOrigin};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How much of a calendar an import replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportScope {
    /// The years in the file; other years, and days set by hand, stay.
    Years,
    /// Every year and every day.
    Whole,
}

/// Change of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CalendarDayChange")]
pub enum DayChange {
    /// The day has a rule that it did not have.
    Added(CalendarDayRule),
    /// The day lost its rule.
    Removed(CalendarDayRule),
    /// The rule changed from the first to the second.
    Changed(CalendarDayRule, CalendarDayRule),
}

/// The difference between two states of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[schemars(rename = "CalendarDifference")]
pub struct Difference {
    /// Changed days, ascending. A day that only moved to another list is not a change.
    #[schemars(with = "BTreeMap<String, DayChange>")]
    pub days: BTreeMap<NaiveDate, DayChange>,
    /// Years that became complete.
    pub years_added: BTreeSet<i32>,
    /// Years that are no longer complete.
    pub years_removed: BTreeSet<i32>,
    /// Changes of the name, weekend or members.
    pub head: Vec<HeadChange>,
}

/// A change of something other than a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CalendarHeadChange")]
pub struct HeadChange {
    /// `name`, `weekend` or `combines`.
    pub what: &'static str,
    /// Old value.
    pub old: String,
    /// New value.
    pub new: String,
}

impl Difference {
    /// Whether the states are equal.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
            && self.years_added.is_empty()
            && self.years_removed.is_empty()
            && self.head.is_empty()
    }
}

/// The calendar after `imported` was imported over `old`.
pub fn merged(old: &Calendar, imported: &Calendar, scope: ImportScope) -> Calendar {
    let mut made = imported.clone();
    match scope {
        ImportScope::Whole => {}
        ImportScope::Years => {
            for (date, day) in &old.days {
                let stays = match day.origin {
                    DayOrigin::List(year) => !imported.years.contains(&year),
                    DayOrigin::Hand => true,
                };
                let is_hand = day.origin == DayOrigin::Hand;
                if stays && (is_hand || !imported.days.contains_key(date)) {
                    made.days.insert(*date, day.clone());
                }
            }
            made.years.extend(&old.years);
        }
    }
    made
}

/// The difference from `old` to `new`.
pub fn difference(old: &Calendar, new: &Calendar) -> Difference {
    let mut days = BTreeMap::new();
    for date in old.days.keys().chain(new.days.keys()) {
        let change = match (old.days.get(date), new.days.get(date)) {
            (Some(old), Some(new)) if is_unchanged(old, new) => continue,
            (Some(old), Some(new)) => DayChange::Changed(old.clone(), new.clone()),
            (Some(old), None) => DayChange::Removed(old.clone()),
            (None, Some(new)) => DayChange::Added(new.clone()),
            (None, None) => continue,
        };
        days.insert(*date, change);
    }
    let head = [
        ("name", old.name.clone(), new.name.clone()),
        ("weekend", old.weekend.to_string(), new.weekend.to_string()),
        ("combines", combined(old), combined(new)),
    ];
    let head = head.into_iter().filter(|(_, old, new)| old != new);
    Difference {
        days,
        years_added: new.years.difference(&old.years).copied().collect(),
        years_removed: old.years.difference(&new.years).copied().collect(),
        head: head.map(|(what, old, new)| HeadChange { what, old, new }).collect(),
    }
}

fn is_unchanged(old: &CalendarDayRule, new: &CalendarDayRule) -> bool {
    old.kind == new.kind && old.label == new.label
}

fn combined(calendar: &Calendar) -> String {
    let Some(combine) = &calendar.combines else { return String::new() };
    let members: Vec<&str> = combine.members.iter().map(|m| m.as_str()).collect();
    format!("{} {}", combine.how.as_str(), members.join(","))
}
