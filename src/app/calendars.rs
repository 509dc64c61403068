//! Calendars: read, changed one at a time, and checked for missing years.

use crate::app::{App, Apply};
use crate::domain::calendar::{
    Calendar, CalendarError, CalendarWarning, Calendars, Difference, difference, warnings,
};
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::job::Definition;
use crate::domain::params::{AskedCalendar, calendars_asked};
use crate::domain::schedule::trigger::Trigger;
use crate::engine::trigger::schedule_actions as schedules;
use crate::store::audit::{self, AuditEntry, Operator};
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};
use chrono::NaiveDate;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Calendars that a definition needs and that do not exist.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct NoCalendar(Vec<String>);

/// A calendar that cannot be removed, with its users.
#[derive(Debug, thiserror::Error)]
#[error("calendar {code} is in use by {users}; change these first")]
pub struct CalendarInUse {
    code: CalendarCode,
    users: String,
}

/// A calendar that contradicts the others.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct BadCalendar(Vec<CalendarError>);

/// An action on a calendar, for the audit log.
#[derive(Clone, Copy, Debug)]
pub struct CalendarAct<'a> {
    /// The name of the action, such as `calendar import`.
    pub action: &'a str,
    pub by: &'a Operator,
    pub reason: Option<&'a str>,
}

/// The result of an action on a calendar.
#[derive(Clone, Debug)]
pub struct CalendarChange {
    /// The calendar before, if it existed.
    pub before: Option<Calendar>,
    /// The calendar after, if it exists.
    pub after: Option<Calendar>,
    pub difference: Difference,
    /// All calendars after the action.
    pub all: Calendars,
    /// Schedules whose next time has changed.
    pub moved: Vec<Trigger>,
}

/// Computes the new calendar from the present one; `None` removes it.
pub type MakeCalendar<'a> = &'a (dyn Fn(Option<&Calendar>) -> Result<Option<Calendar>> + Sync);

impl App {
    pub async fn calendars(&self) -> Result<Calendars> {
        let mut tx = self.db.begin_read().await?;
        store::calendar::list_calendars(&mut tx).await
    }

    /// The calendars in use, with the groups and schedules that name them.
    pub async fn calendars_used(&self) -> Result<BTreeMap<CalendarCode, BTreeSet<String>>> {
        let mut tx = self.db.begin_read().await?;
        let defs = store::job::without_dependencies(&mut tx).await?;
        users(&mut tx, &defs).await
    }

    /// What the calendars in use lack on this day.
    pub async fn calendar_warnings(&self, today: NaiveDate) -> Result<Vec<CalendarWarning>> {
        let mut tx = self.db.begin_read().await?;
        let defs = store::job::without_dependencies(&mut tx).await?;
        let used: BTreeSet<CalendarCode> = users(&mut tx, &defs).await?.into_keys().collect();
        Ok(warnings(&defs.calendars, &used, today))
    }

    /// Changes one calendar and records that, in one transaction; with `DryRun` nothing is written.
    pub async fn change_calendar(
        &self,
        code: &CalendarCode,
        make: MakeCalendar<'_>,
        how: Apply,
        act: CalendarAct<'_>,
    ) -> Result<CalendarChange> {
        let now = self.server_now().await?;
        // Schedules are planned again with it, and their lock comes before any other.
        let mut tx = schedules::locked(&self.db, now).await?;
        // Two concurrent changes could otherwise each remove a calendar that the other combines.
        store::calendar::lock_calendars(&mut tx).await?;
        let all = store::calendar::list_calendars(&mut tx).await?;
        if make(all.get(code).ok())?.is_none() {
            refuse_used(&mut tx, &all, code).await?;
        }
        let mut change = changed(&all, code, make)?;
        let CalendarChange { before, after, difference, .. } = &change;
        // A difference in the origin of a day matters only to the next import.
        if how == Apply::Write && before != after {
            match after {
                Some(calendar) => store::calendar::put_calendar(&mut tx, calendar, now).await?,
                None => drop(store::calendar::remove(&mut tx, code).await?),
            }
            audit::record(&mut tx, act.by, &[entry(code, difference, act)], now).await?;
            let moved = schedules::replan_in(&mut tx, code, now).await?;
            tx.commit().await.context("write the calendar")?;
            change.moved = moved;
        }
        Ok(change)
    }
}

/// The change of a calendar among these, checked against the others.
pub fn changed(
    all: &Calendars,
    code: &CalendarCode,
    make: MakeCalendar<'_>,
) -> Result<CalendarChange> {
    let before = all.get(code).ok().cloned();
    let after = make(before.as_ref())?;
    let others = all.iter().filter(|c| c.code != *code).cloned();
    let all = Calendars::new(others.chain(after.clone()).collect()).map_err(BadCalendar)?;
    let empty = Calendar::with_defaults(code.clone());
    let (old, new) = (before.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty));
    let difference = difference(old, new);
    Ok(CalendarChange { before, after, difference, all, moved: Vec::new() })
}

fn entry(code: &CalendarCode, difference: &Difference, act: CalendarAct<'_>) -> AuditEntry {
    AuditEntry {
        action: act.action.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(json!({ "calendar": code, "changes": difference })),
        reason: act.reason.map(str::to_owned),
    }
}

async fn refuse_used(tx: &mut Tx, all: &Calendars, code: &CalendarCode) -> Result<()> {
    let defs = store::job::without_dependencies(tx).await?;
    let combined = all.users_of(code).into_iter().map(|user| format!("calendar {user}"));
    let others = users(tx, &defs).await?.remove(code).unwrap_or_default();
    let users: Vec<String> = combined.chain(others).collect();
    if users.is_empty() {
        return Ok(());
    }
    Err(CalendarInUse { code: code.clone(), users: users.join(", ") }.into())
}

/// Who names which calendar: `group month_end`, `schedule nightly`.
async fn users(tx: &mut Tx, defs: &Definition) -> Result<BTreeMap<CalendarCode, BTreeSet<String>>> {
    let mut found: BTreeMap<CalendarCode, BTreeSet<String>> = BTreeMap::new();
    for (code, groups) in used_by(defs) {
        found.entry(code).or_default().extend(groups.iter().map(|g| format!("group {g}")));
    }
    for trigger in store::trigger::list_triggers(tx).await? {
        if let Some(calendar) = trigger.def.timing.calendar {
            found.entry(calendar).or_default().insert(format!("schedule {}", trigger.def.code));
        }
    }
    Ok(found)
}

/// The calendars that a definition names: those of groups, and those in the values of parameters.
pub(super) fn used_by(defs: &Definition) -> BTreeMap<CalendarCode, BTreeSet<GroupCode>> {
    let mut found: BTreeMap<CalendarCode, BTreeSet<GroupCode>> = BTreeMap::new();
    let mut add = |value: Option<&str>, group: &GroupCode| {
        for asked in calendars_asked(value) {
            if let AskedCalendar::Named(code) = asked {
                found.entry(code).or_default().insert(group.clone());
            }
        }
    };
    for job in &defs.jobs {
        job.params.iter().for_each(|p| add(p.value.as_deref(), &job.group));
    }
    for group in &defs.groups {
        let params = group.params.iter().chain(&defs.shared.params);
        params.for_each(|p| add(p.value.as_deref(), &group.code));
    }
    for group in &defs.groups {
        if let Some(calendar) = &group.calendar {
            found.entry(calendar.clone()).or_default().insert(group.code.clone());
        }
    }
    found
}

/// Refuses a definition that needs calendars, for an installation without a database.
///
/// # Errors
///
/// [`NoCalendar`] with every calendar that it names.
pub fn refuse_absent_calendars(wanted: &Definition) -> Result<()> {
    refuse_absent(&Calendars::default(), wanted)
}

/// Refuses a definition that needs missing calendars; reports all of them at once.
pub(super) fn refuse_absent(all: &Calendars, wanted: &Definition) -> Result<()> {
    let mut faults = Vec::new();
    for (code, groups) in used_by(wanted) {
        if let Err(error) = all.get(&code) {
            let groups: Vec<&str> = groups.iter().map(GroupCode::as_str).collect();
            faults.push(format!("group {}: {error}", groups.join(", ")));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(NoCalendar(faults).into()) }
}
