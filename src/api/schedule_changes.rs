//! Changes of schedules.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::definitions::require_all;
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::second_person::{GuardedChange, fingerprint_of};
use crate::app::FromGroups;
use crate::domain::access::Permission;
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::job::Definition;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::domain::permission::required_permissions::Demands;
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerWords};
use crate::domain::time::Millis;
use crate::engine::trigger::schedule_actions::{
    self, NotDone, ScheduleActionOrigin, ScheduleStanding,
};
use crate::store;
use crate::store::audit::Operator;
use crate::view::schedule::{ScheduleDetail, opens};
use anyhow::Result as Done;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let (edits, runs) =
        (CallerNeeds::Somewhere(Permission::Edit), CallerNeeds::Somewhere(Permission::Run));
    Noun::new("schedules")
        .change("addSchedule", Method::POST, "/schedules", edits, "Add a schedule", add_schedule)
        .guarded()
        .change(
            "replaceSchedule",
            Method::PUT,
            "/schedules/{code}",
            edits,
            "Replace the definition of a schedule",
            edit_schedule,
        )
        .guarded()
        .change(
            "deleteSchedule",
            Method::DELETE,
            "/schedules/{code}",
            edits,
            "Delete a schedule; its firings stay on record",
            remove,
        )
        .guarded()
        .change(
            "pauseSchedule",
            Method::POST,
            "/schedules/{code}/pause",
            runs,
            "Pause a schedule",
            async |ask, at, why| stand(ask, at, why, ScheduleActionRequest::Pause).await,
        )
        .change(
            "resumeSchedule",
            Method::POST,
            "/schedules/{code}/resume",
            runs,
            "Resume a paused schedule from now on",
            async |ask, at, why| stand(ask, at, why, ScheduleActionRequest::Resume).await,
        )
        .change(
            "skipNextFiring",
            Method::POST,
            "/schedules/{code}/skip-next",
            runs,
            "Skip the next planned firing of a schedule",
            async |ask, at, why| stand(ask, at, why, ScheduleActionRequest::SkipNext).await,
        )
}

/// A schedule to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleRequest {
    /// The code of a new schedule.
    code: Option<String>,
    /// Its keys, as in `schedules:` of a definition file: `{"group":"gl","batch_no":
    /// "month(-1)","cron":"0 0 2 1 * ?"}`. Omitted keys get their defaults, not their previous
    /// values.
    words: BTreeMap<String, Value>,
    /// The reason, for the audit log.
    reason: Option<String>,
    /// The `revision` that the author has seen; refused (412) when it is no longer the present one.
    if_revision: Option<i64>,
    /// Only check for faults.
    #[serde(default)]
    dry_run: bool,
}

/// A schedule after a change.
#[derive(Debug, Serialize, JsonSchema)]
struct ScheduleState {
    #[serde(flatten)]
    outcome: ScheduleOutcome,
    /// Settings that are allowed but probably unintended.
    warnings: Vec<String>,
    /// The planned time that was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
}

/// The result of a change of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum ScheduleOutcome {
    /// Stored as shown here.
    Stored(Box<ScheduleDetail>),
    /// Only checked.
    Checked {
        /// Its keys, including defaults.
        schedule: Box<TriggerWords>,
    },
    /// Removed.
    Removed {
        /// The code of the schedule.
        removed: String,
        /// The key of the schedule, by which its firings are found.
        id: i64,
    },
}

impl ScheduleState {
    fn from_stands(stands: &ScheduleStanding, skipped: Option<Millis>) -> Self {
        let outcome =
            ScheduleOutcome::Stored(ScheduleDetail::from_trigger(&stands.trigger, None).into());
        let warnings = stands.warnings.iter().map(ToString::to_string).collect();
        Self { outcome, warnings, skipped: skipped.map(|at| at.to_string()) }
    }

    fn checked(def: &TriggerDef) -> Self {
        let schedule = Box::new(def.clone().into());
        Self { outcome: ScheduleOutcome::Checked { schedule }, warnings: Vec::new(), skipped: None }
    }
}

impl ScheduleRequest {
    fn parse_words(&self, code: &str) -> Result<TriggerWords, Problem> {
        let mut all = self.words.clone();
        all.insert("code".to_owned(), code.into());
        let sent: Vec<String> = all.keys().cloned().collect();
        let is_said = |value: &Value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(items) => !items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        let given_keys: Vec<&String> =
            sent.iter().filter(|key| all.get(*key).is_some_and(is_said)).collect();
        let value = Value::Object(all.clone().into_iter().collect());
        let words: TriggerWords = serde_json::from_value(value)
            .map_err(|error| Problem::refused(format!("words: {error}")))?;
        let read = serde_json::to_value(&words).map_err(anyhow::Error::from)?;
        // An unknown key is not parsed, so it is missing in what is written again.
        match given_keys.into_iter().find(|key| read.get(key.as_str()).is_none()) {
            None => Ok(words),
            Some(key) => {
                let message = format!("words: a schedule has no key {key}; see docs/schedules.md");
                Err(Problem::refused(message))
            }
        }
    }
}

/// Checks the permission in every group whose batches a schedule opens.
pub(super) fn touch(
    ask: &ApiRequest,
    permission: Permission,
    def: &TriggerDef,
    defs: &Definition,
    what: &str,
) -> Result<(), Problem> {
    let groups: Vec<&GroupCode> = opens(def, &defs.groups);
    if groups.is_empty() {
        // A schedule that opens nothing, or nothing yet, needs the permission in all groups.
        return match &def.order.as_ref().and_then(|o| o.group.clone()) {
            Some(group) => ask.require(permission, group, what),
            None => authorize::everywhere(ask, permission),
        };
    }
    authorize::require_all(ask, permission, groups, what)
}

/// Refuses parameters that name secrets which the groups of the schedule may not be given.
pub(super) async fn may_give(
    ask: &ApiRequest,
    def: &TriggerDef,
    defs: &Definition,
    params: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    authorize::secret_params(ask, &opens(def, &defs.groups), params).await
}

/// Finds a schedule and checks the permission.
pub(super) async fn found(
    ask: &ApiRequest,
    permission: Permission,
    word: &str,
) -> Result<Trigger, Problem> {
    let what = format!("schedule {word}");
    let code = TriggerCode::parse(word).map_err(|_| Problem::not_found(&what))?;
    let app = &ask.house.app;
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let found = store::trigger::find_trigger(&mut tx, &code).await?;
    let found = found.ok_or_else(|| Problem::not_found(&what))?;
    drop(tx);
    touch(ask, permission, &found.def, &app.definition().await?, &what)?;
    Ok(found)
}

pub(super) fn schedule_deed<'a>(
    by: &'a Operator,
    reason: &'a str,
    now: Millis,
) -> ScheduleActionOrigin<'a> {
    ScheduleActionOrigin { by, reason: Some(reason), now }
}

async fn add_schedule(
    ask: ApiRequest,
    _: Nothing,
    sent: ScheduleRequest,
) -> Result<ScheduleState, Problem> {
    let code = sent
        .code
        .clone()
        .or_else(|| sent.words.get("code").and_then(Value::as_str).map(str::to_owned));
    let code = code.ok_or_else(|| Problem::refused("code: name the schedule"))?;
    let words = sent.parse_words(&code)?;
    let app = &ask.house.app;
    let (defs, now) = (app.definition().await?, authorize::now(&ask).await?);
    let from_groups = FromGroups::from_words(&words, &defs);
    let zone = from_groups.zone;
    let def = from_groups.calendar_into(words).parse_trigger(zone).map_err(anyhow::Error::from)?;
    require_all(&ask, &Demands::of_schedule(&def, &defs))?;
    if let Some(order) = &def.order {
        may_give(&ask, &def, &defs, &order.params).await?;
    }
    let expected = app.expected(&defs, std::slice::from_ref(&def), now).await?;
    if sent.dry_run {
        return Ok(ScheduleState::checked(&def));
    }
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    pass_four_eyes(&ask, None, Some(&def), &defs, reason)?;
    let stands =
        schedule_actions::add_schedule(&app.db, &def, &expected, schedule_deed(&by, reason, now))
            .await;
    Ok(ScheduleState::from_stands(&stands.map_err(unsound)?, None))
}

async fn edit_schedule(
    ask: ApiRequest,
    at: CodePath,
    sent: ScheduleRequest,
) -> Result<ScheduleState, Problem> {
    let was = found(&ask, Permission::Edit, &at.code).await?;
    if sent.if_revision.is_some_and(|seen| seen != was.revision) {
        return Err(changed(&was));
    }
    let words = sent.parse_words(&at.code)?;
    let app = &ask.house.app;
    let (defs, now) = (app.definition().await?, authorize::now(&ask).await?);
    let make = |there: TriggerDef| -> Done<TriggerDef> {
        if there != was.def {
            return Err(changed(&was).into());
        }
        let words = words.clone();
        let from_groups = FromGroups::from_words(&words, &defs);
        let zone = from_groups.zone.or(Some(was.def.timing.zone));
        let def = from_groups.calendar_into(words).parse_trigger(zone)?;
        require_all(&ask, &Demands::of_schedule(&def, &defs))?;
        Ok(def)
    };
    let def = make(was.def.clone())?;
    if let Some(order) = &def.order {
        may_give(&ask, &def, &defs, &order.params).await?;
    }
    let expected = app.expected(&defs, std::slice::from_ref(&def), now).await?;
    if sent.dry_run {
        return Ok(ScheduleState::checked(&def));
    }
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    pass_four_eyes(&ask, Some(&was), Some(&def), &defs, reason)?;
    let deed = schedule_deed(&by, reason, now);
    let stands =
        schedule_actions::edit_schedule(&app.db, &was.def.code, &make, &expected, deed).await;
    Ok(ScheduleState::from_stands(&stands.map_err(unsound)?, None))
}

/// Checks that a schedule may be added, changed or removed now. The revision is part of what is
/// approved: after any other change of the schedule the request must be filed again.
fn pass_four_eyes(
    ask: &ApiRequest,
    was: Option<&Trigger>,
    is: Option<&TriggerDef>,
    defs: &Definition,
    reason: &str,
) -> Result<(), Problem> {
    let of = |def: &TriggerDef| Demands::of_schedule(def, defs);
    let old = was.map(|was| &was.def);
    let demands = old.map(of).unwrap_or_default().merge(is.map(of).unwrap_or_default());
    let verb = match (old, is) {
        (None, _) => "make",
        (Some(_), Some(_)) => "change",
        (Some(_), None) => "remove",
    };
    let code = is.or(old).map(|def| def.code.to_string()).unwrap_or_default();
    let effect = serde_json::json!({
        "schedule": code, "before": old, "after": is, "revision": was.map(|was| was.revision),
    });
    ask.pass_four_eyes(GuardedChange {
        action: GuardedAction::Edit,
        demands,
        summary: format!("{verb} schedule {code}"),
        reason: reason.to_owned(),
        fingerprint: fingerprint_of(&[verb, &effect.to_string()]),
        effect,
    })
}

/// 412: it differs from what the author has seen.
fn changed(was: &Trigger) -> Problem {
    let message = format!(
        "schedule {} was changed meanwhile; look at it again, and then make the change",
        was.def.code
    );
    let status = axum::http::StatusCode::PRECONDITION_FAILED;
    Problem::new(status, "changed-meanwhile", message).with_member("revision", was.revision)
}

/// A schedule with faults, each with its key.
fn unsound(error: anyhow::Error) -> Problem {
    let faults = match error.downcast_ref::<NotDone>() {
        Some(NotDone::Unsound { faults, .. }) => faults
            .iter()
            .map(|f| serde_json::json!({"key": f.key, "what": f.what, "fix": f.cure}))
            .collect::<Vec<_>>(),
        Some(_) | None => return error.into(),
    };
    Problem::refused(error.to_string()).with_member("faults", faults)
}

async fn remove(ask: ApiRequest, at: CodePath, why: ReasonBody) -> Result<ScheduleState, Problem> {
    let was = found(&ask, Permission::Edit, &at.code).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    pass_four_eyes(&ask, Some(&was), None, &ask.house.app.definition().await?, reason)?;
    let now = authorize::now(&ask).await?;
    schedule_actions::remove(&ask.house.app.db, &was.def.code, schedule_deed(&by, reason, now))
        .await?;
    let (removed, id) = (was.def.code.to_string(), was.trigger_id.0);
    let outcome = ScheduleOutcome::Removed { removed, id };
    Ok(ScheduleState { outcome, warnings: Vec::new(), skipped: None })
}

#[derive(Clone, Copy)]
enum ScheduleActionRequest {
    Pause,
    Resume,
    SkipNext,
}

async fn stand(
    ask: ApiRequest,
    at: CodePath,
    why: ReasonBody,
    wish: ScheduleActionRequest,
) -> Result<ScheduleState, Problem> {
    let was = found(&ask, Permission::Run, &at.code).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let now = authorize::now(&ask).await?;
    let (db, code, deed) = (&ask.house.app.db, &was.def.code, schedule_deed(&by, reason, now));
    let (stands, skipped) = match wish {
        ScheduleActionRequest::Pause => (schedule_actions::pause(db, code, deed).await?, None),
        ScheduleActionRequest::Resume => (schedule_actions::resume(db, code, deed).await?, None),
        ScheduleActionRequest::SkipNext => {
            let (skipped, stands) = schedule_actions::skip_next(db, code, deed).await?;
            (stands, Some(skipped.planned))
        }
    };
    Ok(ScheduleState::from_stands(&stands, skipped))
}
