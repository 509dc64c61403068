//! Actions on notifications: resend, acknowledge, snooze, test.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::IdPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::job_key::find_named;
use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::outbox_schedule::Snooze;
use crate::engine::host_name;
use crate::store::outbox::NotificationRow;
use crate::store::{audit, outbox};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) fn routes() -> Noun {
    let runs = CallerNeeds::Somewhere(Permission::Run);
    Noun::new("notifications")
        .change(
            "resendNotification",
            Method::POST,
            "/outbox/{id}/resend",
            runs,
            "Send a notification again",
            resend,
        )
        .change(
            "acknowledgeNotification",
            Method::POST,
            "/outbox/{id}/ack",
            runs,
            "Acknowledge a notification, so that it is not sent or escalated",
            acknowledge,
        )
        .change(
            "addSnooze",
            Method::POST,
            "/snoozes",
            runs,
            "Snooze the notifications of a group or a job for a while",
            snooze,
        )
        .change("endSnooze", Method::DELETE, "/snoozes/{id}", runs, "End a snooze now", wake_notice)
        .change(
            "sendTestNotification",
            Method::POST,
            "/notify/test",
            CallerNeeds::Everywhere(Permission::Admin),
            "Send a test notification now",
            send_test,
        )
}

/// The result of an action on a notification.
#[derive(Debug, Serialize, JsonSchema)]
struct NotificationChangeResult {
    /// Number of changed notifications: 1 or 0.
    changed: u64,
    /// Number of unchanged ones.
    left: u64,
}

/// Finds a notification and checks the permission.
async fn notice(ask: &ApiRequest, id: i64) -> Result<NotificationRow, Problem> {
    let what = format!("notice {id}");
    let found = outbox::find_notification(&mut authorize::open_read(ask).await?, id).await?;
    let found = found.ok_or_else(|| Problem::not_found(&what))?;
    match found.letter.topic.group.as_deref().and_then(|g| GroupCode::parse(g).ok()) {
        Some(group) => ask.require(Permission::Run, &group, what)?,
        // About a process, or a schedule of several groups: it belongs to no group.
        None => authorize::everywhere(ask, Permission::Run)?,
    }
    Ok(found)
}

#[derive(Clone, Copy)]
enum NoticeAction {
    Resend,
    Ack,
}

async fn resend(
    ask: ApiRequest,
    at: IdPath,
    why: ReasonBody,
) -> Result<NotificationChangeResult, Problem> {
    change_notice(ask, at, why, NoticeAction::Resend).await
}

async fn acknowledge(
    ask: ApiRequest,
    at: IdPath,
    why: ReasonBody,
) -> Result<NotificationChangeResult, Problem> {
    change_notice(ask, at, why, NoticeAction::Ack).await
}

async fn change_notice(
    ask: ApiRequest,
    at: IdPath,
    why: ReasonBody,
    wish: NoticeAction,
) -> Result<NotificationChangeResult, Problem> {
    let found = notice(&ask, at.id).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let now = authorize::now(&ask).await?;
    let mut tx = authorize::begin(&ask).await?;
    let (action, changed) = match wish {
        NoticeAction::Resend => ("outbox resend", outbox::resend(&mut tx, &[at.id], now).await?),
        NoticeAction::Ack => {
            let message = format!("acknowledged by {}: {reason}", by.actor);
            ("outbox ack", outbox::acknowledge(&mut tx, &[at.id], &message, now).await?)
        }
    };
    let group = found.letter.topic.group.as_deref().and_then(|g| GroupCode::parse(g).ok());
    let detail = json!({"notices": [at.id], "changed": changed});
    let entry = audit::AuditEntry { group, ..authorize::entry(action, detail, reason) };
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, action).await?;
    Ok(NotificationChangeResult { changed, left: 1 - changed.min(1) })
}

/// A snooze.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SnoozeRequest {
    /// The group.
    group: String,
    /// The job; default the whole group.
    job: Option<String>,
    /// The event; default all events.
    event: Option<String>,
    /// Duration in minutes; at most 43,200 (30 days).
    minutes: u32,
    /// The reason, which others will read.
    reason: Option<String>,
}

/// A stored snooze.
#[derive(Debug, Serialize, JsonSchema)]
struct SnoozeResult {
    /// The number of the snooze.
    id: i64,
    /// When it ends.
    until: String,
}

/// Maximum duration of a snooze, in minutes: 30 days.
const LONGEST: u32 = 43_200;

async fn snooze(ask: ApiRequest, _: Nothing, sent: SnoozeRequest) -> Result<SnoozeResult, Problem> {
    let group = authorize::group(&ask, Permission::Run, &sent.group)?;
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let event = match &sent.event {
        None => None,
        Some(word) => Some(event(word)?),
    };
    if !(1..=LONGEST).contains(&sent.minutes) {
        return Err(Problem::refused(format!("minutes: write 1 to {LONGEST}, which is 30 days")));
    }
    let defs = ask.house.app.definition().await?;
    if defs.groups.iter().all(|g| g.code != group) {
        return Err(Problem::not_found(format!("group {group}")));
    }
    let job = match &sent.job {
        Some(word) => {
            let found = find_named(defs.jobs.iter().filter(|j| j.group == group), word);
            let missing = |_| Problem::not_found(format!("job {word} in group {group}"));
            Some(found.map_err(missing)?.code.clone())
        }
        None => None,
    };
    let now = authorize::now(&ask).await?;
    let row = Snooze {
        id: 0,
        group: group.to_string(),
        job: job.as_ref().map(ToString::to_string),
        event,
        until: now.plus_ms(i64::from(sent.minutes) * 60_000),
        by: by.actor.clone(),
        reason: reason.to_owned(),
    };
    let mut tx = authorize::begin(&ask).await?;
    let id = outbox::snooze(&mut tx, &row, now).await?;
    let detail = json!({"snooze": id, "event": event, "until": row.until.to_string()});
    let entry = authorize::entry("notify snooze", detail, reason);
    let entry = audit::AuditEntry { group: Some(group), job, ..entry };
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "write a snooze").await?;
    Ok(SnoozeResult { id, until: row.until.to_string() })
}

fn event(word: &str) -> Result<NotificationEvent, Problem> {
    let of_batch = NotificationEvent::ALL.into_iter().filter(|e| e.is_of_batch());
    let found = of_batch.clone().find(|event| event.as_str() == word);
    found.ok_or_else(|| {
        let words: Vec<&str> = of_batch.map(NotificationEvent::as_str).collect();
        Problem::refused(format!("event: {word} is none of {}", words.join(", ")))
    })
}

async fn wake_notice(
    ask: ApiRequest,
    at: IdPath,
    why: ReasonBody,
) -> Result<SnoozeResult, Problem> {
    let what = format!("snooze {} that lasts", at.id);
    let now = authorize::now(&ask).await?;
    let all = outbox::snoozes(&mut authorize::open_read(&ask).await?, now).await?;
    let found = all.into_iter().find(|s| s.id == at.id);
    let found = found.ok_or_else(|| Problem::not_found(&what))?;
    let group = GroupCode::parse(&found.group).map_err(anyhow::Error::from)?;
    ask.require(Permission::Run, &group, &what)?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let mut tx = authorize::begin(&ask).await?;
    if outbox::end_snooze(&mut tx, at.id, now).await?.is_none() {
        return Err(Problem::not_found(what));
    }
    let job = found.job.as_deref().and_then(|job| JobCode::parse(job).ok());
    let entry = authorize::entry("notify wake", json!({"snooze": at.id}), reason);
    let entry = audit::AuditEntry { group: Some(group), job, ..entry };
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "end a snooze").await?;
    Ok(SnoozeResult { id: at.id, until: now.to_string() })
}

/// A test notification.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendTestRequest {
    /// Addresses, or `channel:NAME`; default every channel and the operators of the settings.
    #[serde(default)]
    recipients: Vec<String>,
    /// The reason, for the audit log.
    reason: Option<String>,
}

/// The result of a test.
#[derive(Debug, Serialize, JsonSchema)]
struct SendTestResult {
    /// One result per recipient.
    tests: Vec<TestNotificationResult>,
}

/// The result of one test notification.
#[derive(Debug, Serialize, JsonSchema)]
struct TestNotificationResult {
    /// The recipient.
    to: String,
    /// The channel.
    kind: &'static str,
    /// Whether it was accepted.
    ok: bool,
    /// Why it was not.
    reason: Option<String>,
    /// The Message-ID.
    message_id: String,
}

async fn send_test(
    ask: ApiRequest,
    _: Nothing,
    sent: SendTestRequest,
) -> Result<SendTestResult, Problem> {
    let app = &ask.house.app;
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let mut to = sent.recipients;
    if to.is_empty() {
        to.extend(app.config.notify.channels.keys().map(|name| format!("channel:{name}")));
        to.extend(app.config.notify.operators.iter().cloned());
    }
    for one in &to {
        let read = crate::domain::notification::recipient::Recipient::parse(one);
        read.map_err(|fault| Problem::refused(fault.to_string()))?;
    }
    if to.is_empty() {
        let message =
            "nobody to send to: give an address, or set notify.channels or notify.operators";
        return Err(Problem::refused(message));
    }
    let now = authorize::now(&ask).await?;
    let mut tx = authorize::begin(&ask).await?;
    let entry = authorize::entry("notify test", json!({"to": to}), reason);
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "put a test on record").await?;
    let mut tests = Vec::new();
    for one in to {
        let sent = app.send_test(&one, ask.lang, &host_name()).await?;
        let reason = sent.ended.as_ref().err().map(ToString::to_string);
        tests.push(TestNotificationResult {
            to: one,
            kind: sent.kind.unwrap_or("-"),
            ok: reason.is_none(),
            reason,
            message_id: sent.message_id,
        });
    }
    Ok(SendTestResult { tests })
}
