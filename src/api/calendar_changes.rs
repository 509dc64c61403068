//! Changes of business calendars. They belong to no group: schedules of all groups may use them.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::Noun;
use crate::api::second_person::{GuardedChange, changed_since, fingerprint_of};
use crate::app::{Apply, CalendarAct, CalendarChange};
use crate::definition::{CalendarForm, read_calendar};
use crate::domain::access::Permission;
use crate::domain::calendar::{
    Calendar, CalendarDayRule, DayKind, DayOrigin, Difference, ImportScope, Weekend, merged,
};
use crate::domain::id::CalendarCode;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::domain::permission::required_permissions::Demands;
use anyhow::Result as Done;
use axum::http::Method;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn routes() -> Noun {
    let edits = CallerNeeds::Everywhere(Permission::Edit);
    Noun::new("calendars")
        .change(
            "putCalendar",
            Method::PUT,
            "/calendars/{code}",
            edits,
            "Create or replace a calendar, from settings or from the days of a file",
            put_calendar,
        )
        .guarded()
        .change(
            "setCalendarDay",
            Method::POST,
            "/calendars/{code}/days",
            edits,
            "Set one day of a calendar by hand; imports do not overwrite it",
            set_day,
        )
        .guarded()
        .change(
            "deleteCalendar",
            Method::DELETE,
            "/calendars/{code}",
            edits,
            "Delete a calendar that nothing uses",
            remove,
        )
        .guarded()
}

/// A calendar change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CalendarRequest {
    /// A file with its days; without one, only name and weekend change.
    text: Option<String>,
    /// The format of `text`; default JSON.
    format: Option<CalendarFormat>,
    /// The years that a CSV or ICS file covers completely; default are the years of its days.
    #[serde(default)]
    years: Vec<i32>,
    /// Replace the whole calendar, removing other years and days set by hand.
    #[serde(default)]
    replace: bool,
    /// The display name.
    name: Option<String>,
    /// Days of the week that are off: `sat,sun`, `fri,sat`, `none`.
    weekend: Option<String>,
    /// The reason, for the audit log.
    reason: Option<String>,
    /// Only preview the changes.
    #[serde(default)]
    dry_run: bool,
}

/// The format of a file of days.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CalendarFormat {
    /// Procession's format, or that of holiday-cn.
    Json,
    /// `date,kind,label`.
    Csv,
    /// iCalendar.
    Ics,
}

/// The changes, planned or made.
#[derive(Debug, Serialize, JsonSchema)]
struct CalendarChangeResult {
    /// The calendar code.
    calendar: String,
    /// Whether they are stored.
    applied: bool,
    /// What differs.
    changes: Difference,
    /// Schedules whose next time has moved with it.
    moved_schedules: Vec<String>,
}

fn parse_code(at: &CodePath) -> Result<CalendarCode, Problem> {
    CalendarCode::parse(&at.code).map_err(|_| Problem::not_found(format!("calendar {}", at.code)))
}

/// Replaces a calendar by the result of `make`, with an audit record.
async fn change(
    ask: &ApiRequest,
    at: &CodePath,
    make: &(dyn Fn(Option<&Calendar>) -> Done<Option<Calendar>> + Sync),
    action: &str,
    how: Apply,
    reason: Option<&str>,
) -> Result<CalendarChangeResult, Problem> {
    let by = ask.operator()?;
    let act = CalendarAct { action, by: &by, reason };
    let (app, code) = (&ask.house.app, parse_code(at)?);
    let passed = match how == Apply::Write && ask.is_guarded() {
        false => None,
        true => {
            let ahead = app.change_calendar(&code, make, Apply::DryRun, act).await?;
            let change = guarded_calendar(&code, &ahead, act)?;
            let fingerprint = change.fingerprint.clone();
            // A change without an effect writes nothing, and needs no approval.
            if ahead.before != ahead.after {
                ask.pass_four_eyes(change)?;
            }
            Some(fingerprint)
        }
    };
    // Within the transaction: what is written is exactly what was checked.
    let make_the_same = |old: Option<&Calendar>| -> Done<Option<Calendar>> {
        let made = make(old)?;
        let fingerprint = fingerprint_of_calendar(action, old, made.as_ref())?;
        match passed.as_ref().is_none_or(|passed| *passed == fingerprint) {
            true => Ok(made),
            false => Err(changed_since().into()),
        }
    };
    let done: CalendarChange = app.change_calendar(&code, &make_the_same, how, act).await?;
    Ok(CalendarChangeResult {
        calendar: code.to_string(),
        applied: how == Apply::Write,
        changes: done.difference,
        moved_schedules: done.moved.iter().map(|t| t.def.code.to_string()).collect(),
    })
}

fn fingerprint_of_calendar(
    action: &str,
    before: Option<&Calendar>,
    after: Option<&Calendar>,
) -> Done<String> {
    let text = |calendar: Option<&Calendar>| calendar.map(|c| format!("{c:?}")).unwrap_or_default();
    Ok(fingerprint_of(&[action, &text(before), &text(after)]))
}

/// The change for the approval by a second person. Calendars belong to no group.
fn guarded_calendar(
    code: &CalendarCode,
    ahead: &CalendarChange,
    act: CalendarAct<'_>,
) -> Result<GuardedChange, Problem> {
    let demands = Demands { everywhere: [Permission::Edit].into(), ..Demands::default() };
    let changes = serde_json::to_value(&ahead.difference).map_err(anyhow::Error::from)?;
    Ok(GuardedChange {
        action: GuardedAction::Edit,
        demands,
        summary: format!("{} {code}", act.action),
        reason: act.reason.unwrap_or_default().to_owned(),
        effect: serde_json::json!({ "calendar": code, "changes": changes }),
        fingerprint: fingerprint_of_calendar(
            act.action,
            ahead.before.as_ref(),
            ahead.after.as_ref(),
        )?,
    })
}

async fn put_calendar(
    ask: ApiRequest,
    at: CodePath,
    sent: CalendarRequest,
) -> Result<CalendarChangeResult, Problem> {
    let how = if sent.dry_run { Apply::DryRun } else { Apply::Write };
    let reason = match how {
        Apply::Write => Some(authorize::reason(sent.reason.as_deref())?),
        Apply::DryRun => None,
    };
    let weekend = sent.weekend.as_deref().map(Weekend::parse).transpose();
    let weekend = weekend.map_err(|error| Problem::refused(error.to_string()))?;
    let code = parse_code(&at)?;
    let file = match &sent.text {
        None => None,
        Some(text) => {
            let path = Path::new(match sent.format {
                Some(CalendarFormat::Csv) => "calendar.csv",
                Some(CalendarFormat::Ics) => "calendar.ics",
                Some(CalendarFormat::Json) | None => "calendar.json",
            });
            let form =
                CalendarForm::from_path(path).ok_or_else(|| Problem::refused("no such form"))?;
            let years: BTreeSet<i32> = sent.years.iter().copied().collect();
            let read = read_calendar(path, text, form, &years).map_err(anyhow::Error::from)?;
            Some(read)
        }
    };
    let scope = if sent.replace { ImportScope::Whole } else { ImportScope::Years };
    let make = |old: Option<&Calendar>| -> Done<Option<Calendar>> {
        let mut made = match &file {
            None => old.cloned().unwrap_or_else(|| Calendar::with_defaults(code.clone())),
            Some(file) => {
                if old.is_some_and(|old| old.combines.is_some()) && file.combines.is_none() {
                    let message =
                        "this calendar is combined of others; store the days in one of those";
                    return Err(Problem::refused(message).into());
                }
                file.calendar(&code, old)
            }
        };
        made.name = sent.name.clone().unwrap_or(made.name);
        made.weekend = weekend.unwrap_or(made.weekend);
        Ok(Some(match (old, &file) {
            (Some(old), Some(_)) => merged(old, &made, scope),
            _ => made,
        }))
    };
    let action = if file.is_some() { "calendar import" } else { "calendar add" };
    change(&ask, &at, &make, action, how, reason).await
}

/// A change of one day.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetCalendarDayRequest {
    /// The day, `2026-12-31`.
    #[schemars(with = "String")]
    date: NaiveDate,
    /// The kind of the day.
    kind: RequestedDayKind,
    /// The name of the day.
    label: Option<String>,
    /// The reason, which others will read.
    reason: Option<String>,
}

/// The kind of a day.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RequestedDayKind {
    /// A day off.
    Off,
    /// A working day.
    Work,
    /// The default of its weekday.
    Clear,
}

async fn set_day(
    ask: ApiRequest,
    at: CodePath,
    sent: SetCalendarDayRequest,
) -> Result<CalendarChangeResult, Problem> {
    let reason = authorize::reason(sent.reason.as_deref())?;
    let missing = || Problem::not_found(format!("calendar {}", at.code));
    let make = |old: Option<&Calendar>| -> Done<Option<Calendar>> {
        let mut made = old.cloned().ok_or_else(missing)?;
        let kind = match sent.kind {
            RequestedDayKind::Off => Some(DayKind::Off),
            RequestedDayKind::Work => Some(DayKind::Work),
            RequestedDayKind::Clear => None,
        };
        match kind {
            Some(kind) => {
                let (label, origin) = (sent.label.clone(), DayOrigin::Hand);
                made.days.insert(sent.date, CalendarDayRule { kind, label, origin });
            }
            None => drop(made.days.remove(&sent.date)),
        }
        Ok(Some(made))
    };
    change(&ask, &at, &make, "calendar day", Apply::Write, Some(reason)).await
}

async fn remove(
    ask: ApiRequest,
    at: CodePath,
    why: ReasonBody,
) -> Result<CalendarChangeResult, Problem> {
    let reason = authorize::reason(why.reason.as_deref())?;
    let missing = || Problem::not_found(format!("calendar {}", at.code));
    let make = |old: Option<&Calendar>| -> Done<Option<Calendar>> {
        old.map(|_| None).ok_or_else(|| missing().into())
    };
    change(&ask, &at, &make, "calendar remove", Apply::Write, Some(reason)).await
}
