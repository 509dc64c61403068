//! Schedules that are fired by hand, and events that fire them.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::{CodePath, NamePath};
use crate::api::problem::Problem;
use crate::api::route::Noun;
use crate::api::schedule_changes::{found, may_give, schedule_deed, touch};
use crate::domain::access::Permission;
use crate::domain::id::BatchNo;
use crate::domain::job::secret::name_a_secret;
use crate::domain::schedule::FiringRule;
use crate::domain::schedule::trigger::{FiringOverrides, Trigger};
use crate::domain::time::Millis;
use crate::engine::trigger::schedule_actions::{self, EventFiringResult};
use crate::store;
use crate::store::event_key::KEY_MAX;
use axum::http::Method;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let runs = CallerNeeds::Somewhere(Permission::Run);
    Noun::new("firing by hand")
        .change(
            Method::POST,
            "/schedules/{code}/fire-now",
            runs,
            "Fire a schedule once, now, whatever its timing says",
            fire_schedule,
        )
        .change(
            Method::POST,
            "/events/{name}",
            runs,
            "Send an event: every schedule that waits for it fires",
            send_firing,
        )
}

/// A firing by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByHand {
    /// Batch number in place of the schedule's.
    batch_no: Option<String>,
    /// Accounting day.
    #[schemars(with = "Option<String>")]
    business_date: Option<NaiveDate>,
    /// Parameters; they win over the schedule's.
    #[serde(default)]
    params: BTreeMap<String, String>,
    /// Open it although its number does not fit the type of the group; that is put on record.
    #[serde(default)]
    free_text: bool,
    /// Of an event: under the same key it fires once, however often it is sent within a month.
    key: Option<String>,
    /// Why; the audit log keeps it.
    reason: Option<String>,
}

/// What fires.
#[derive(Debug, Serialize, JsonSchema)]
struct FireRequest {
    /// The schedule.
    schedule: String,
    /// Its planned time.
    planned_at: String,
    /// Why it does not fire after all.
    left_out: Option<String>,
}

/// What became of a firing by hand.
#[derive(Debug, Serialize, JsonSchema)]
struct FiredNow {
    /// The schedule.
    schedule: String,
    /// Its planned time.
    planned_at: String,
    /// Whether a process that fires schedules lives; otherwise it fires as soon as one does.
    served: bool,
}

/// What became of an event.
#[derive(Debug, Serialize, JsonSchema)]
struct FireResult {
    /// Its name.
    event: String,
    /// What fires with it.
    fired: Vec<FireRequest>,
    /// When it had been sent before under the same key; then nothing fires.
    sent_before: Option<String>,
    /// Whether a process that fires schedules lives; otherwise they fire as soon as one does.
    served: bool,
}

impl ByHand {
    fn given(&self) -> Result<FiringOverrides, Problem> {
        let batch_no = self.batch_no.as_deref().map(BatchNo::parse).transpose();
        Ok(FiringOverrides {
            batch_no: batch_no.map_err(anyhow::Error::from)?,
            business_date: self.business_date,
            params: self.params.clone(),
            free_text: self.free_text,
        })
    }
}

/// Whether a process lives that fires schedules.
async fn is_served(ask: &ApiRequest, now: Millis) -> Result<bool, Problem> {
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let members = store::node::members(&mut tx, now).await?;
    let role = crate::domain::cluster::node_placement::NodeRole::Scheduler;
    Ok(members.iter().any(|m| m.offer.roles.contains(&role)))
}

async fn fire_schedule(ask: ApiRequest, at: CodePath, sent: ByHand) -> Result<FiredNow, Problem> {
    let was = found(&ask, Permission::Run, &at.code).await?;
    if name_a_secret(&sent.params) {
        found(&ask, Permission::Script, &at.code).await?;
        let defs = ask.house.app.definition().await?;
        may_give(&ask, &was.def, &defs, &sent.params).await?;
    }
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let (given, now) = (sent.given()?, authorize::now(&ask).await?);
    let db = &ask.house.app.db;
    let fired =
        schedule_actions::fire_now(db, &was.def.code, &given, schedule_deed(&by, reason, now))
            .await?;
    Ok(FiredNow {
        schedule: fired.code.to_string(),
        planned_at: fired.planned.to_string(),
        served: is_served(&ask, now).await?,
    })
}

async fn send_firing(ask: ApiRequest, at: NamePath, sent: ByHand) -> Result<FireResult, Problem> {
    let fits =
        |key: &str| (1..=KEY_MAX).contains(&key.chars().count()) && !key.contains(char::is_control);
    if sent.key.as_deref().is_some_and(|key| !fits(key)) {
        return Err(Problem::refused(format!("key: write 1 to {KEY_MAX} characters on one line")));
    }
    let app = &ask.house.app;
    let defs = app.definition().await?;
    let waiting = {
        let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
        store::trigger::of_event(&mut tx, Some(&at.name)).await?
    };
    let waits = |t: &&Trigger| matches!(&t.def.timing.schedule, FiringRule::Event { name } if *name == at.name);
    let what = format!("event {} of schedules that you may fire", at.name);
    let mine: Vec<&Trigger> = waiting.iter().filter(waits).collect();
    if mine.is_empty() {
        return Err(Problem::not_found(what));
    }
    let needed = match name_a_secret(&sent.params) {
        true => &[Permission::Run, Permission::Script][..],
        false => &[Permission::Run],
    };
    for permission in needed {
        mine.iter().try_for_each(|t| touch(&ask, *permission, &t.def, &defs, &what))?;
    }
    for trigger in &mine {
        may_give(&ask, &trigger.def, &defs, &sent.params).await?;
    }
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let (given, now) = (sent.given()?, authorize::now(&ask).await?);
    let deed = schedule_deed(&by, reason, now);
    let event =
        schedule_actions::event(&app.db, &at.name, &given, sent.key.as_deref(), deed).await?;
    let (fired, sent_before) = match event {
        EventFiringResult::Before(at) => (Vec::new(), Some(at.to_string())),
        EventFiringResult::Fired(fired) => (fired, None),
    };
    let firing = |f: schedule_actions::Fired| FireRequest {
        schedule: f.code.to_string(),
        planned_at: f.planned.to_string(),
        left_out: f.left_out,
    };
    Ok(FireResult {
        event: at.name,
        fired: fired.into_iter().map(firing).collect(),
        sent_before,
        served: is_served(&ask, now).await?,
    })
}
