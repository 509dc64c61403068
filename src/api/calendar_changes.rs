//! Calendars of working days, changed. They belong to no group: every schedule of any may count by them.

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
    Calendar, CalendarDayRule, DayKind, DayOrigin, ImportScope, Weekend, merged,
};
use crate::domain::id::CalendarCode;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::domain::permission::required_permissions::Demands;
use anyhow::Result as Done;
use axum::http::Method;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn routes() -> Noun {
    let edits = CallerNeeds::Everywhere(Permission::Edit);
    Noun::new("changes of calendars")
        .change(
            Method::PUT,
            "/calendars/{code}",
            edits,
            "Make a calendar, or store the days of a file in it",
            put_calendar,
        )
        .guarded()
        .change(
            Method::POST,
            "/calendars/{code}/days",
            edits,
            "Set one day by hand; imports leave it alone",
            set_day,
        )
        .guarded()
        .change(
            Method::DELETE,
            "/calendars/{code}",
            edits,
            "Remove a calendar that nothing uses",
            remove,
        )
        .guarded()
}

/// What a calendar is to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CalendarRequest {
    /// A file with its days; without one, name and weekend alone change.
    text: Option<String>,
    /// The form of `text`; JSON when it is left out.
    format: Option<CalendarFormat>,
    /// Years that a CSV or ICS file is complete for; those of its days when there are none.
    #[serde(default)]
    years: Vec<i32>,
    /// Replace the whole calendar: other years and days set by hand go.
    #[serde(default)]
    replace: bool,
    /// Name for people.
    name: Option<String>,
    /// Days of the week that are off: `sat,sun`, `fri,sat`, `none`.
    weekend: Option<String>,
    /// Why; the audit log keeps it.
    reason: Option<String>,
    /// Only look what would change.
    #[serde(default)]
    dry_run: bool,
}

/// The form of a file of days.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CalendarFormat {
    /// Ours, or holiday-cn.
    Json,
    /// `date,kind,label`.
    Csv,
    /// iCalendar.
    Ics,
}

/// What changed, or would.
#[derive(Debug, Serialize, JsonSchema)]
struct CalendarChangeResult {
    /// The calendar.
    calendar: String,
    /// Whether it is stored.
    applied: bool,
    /// What differs.
    changes: Value,
    /// Schedules whose next time has moved with it.
    moved_schedules: Vec<String>,
}

fn parse_code(at: &CodePath) -> Result<CalendarCode, Problem> {
    CalendarCode::parse(&at.code).map_err(|_| Problem::not_found(format!("calendar {}", at.code)))
}

/// Makes a calendar what `make` says, on record.
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
            // A change to what is there already writes nothing, and needs nobody.
            if ahead.before != ahead.after {
                ask.pass_four_eyes(change)?;
            }
            Some(fingerprint)
        }
    };
    // Where nobody else writes: what is done is what passed.
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
        changes: serde_json::to_value(&done.difference).map_err(anyhow::Error::from)?,
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

/// A change of a calendar, as a second person is shown it. Calendars belong to no group.
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
                    let said =
                        "this calendar is combined of others; store the days in one of those";
                    return Err(Problem::refused(said).into());
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

/// One day.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneDay {
    /// The day, `2026-12-31`.
    #[schemars(with = "String")]
    date: NaiveDate,
    /// What it is.
    kind: RequestedDayKind,
    /// What the day is called.
    label: Option<String>,
    /// Why; it is what others will read.
    reason: Option<String>,
}

/// What a day is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RequestedDayKind {
    /// A day off.
    Off,
    /// A working day.
    Work,
    /// What its weekday says.
    Clear,
}

async fn set_day(
    ask: ApiRequest,
    at: CodePath,
    sent: OneDay,
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
