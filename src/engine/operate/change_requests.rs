//! Change requests: filed in place of a change that needs a second person, decided by people,
//! expired after their time limit. Each step is a row, an audit record and its notifications in one
//! transaction.

use crate::domain::access::Grants;
use crate::domain::access::user::UserId;
use crate::domain::id::GroupCode;
use crate::domain::notice::notice_change::{ChangeAudience, ChangeNotice};
use crate::domain::permission::four_eyes::{
    ChangeDecider, ChangeDecisionRefused, ChangeRequestId, ChangeRequestStatus, ChangeVerdict,
    DecidedChange, FourEyesRules, GuardedAction, SecondPersonRule,
};
use crate::domain::permission::required_permissions::Demands;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::store::audit::{AuditEntry, Operator};
use crate::store::change_request::{self, ChangeDecision, ChangeRequest, NewChangeRequest};
use crate::store::{Db, Tx, audit, job, outbox};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Maximum number of pending requests per user: each may hold a body of 16 MiB.
const WAITING_MAX: usize = 50;

/// Maximum number of requests that one user may file per hour: each notifies those who may approve
/// it.
const FILED_PER_HOUR: usize = 100;

/// The user has filed too many requests in the last hour.
#[derive(Debug, thiserror::Error)]
#[error(
    "you have asked for {FILED_PER_HOUR} changes that need a second person within an hour; ask for further ones later"
)]
pub struct TooManyFiled;

/// The user has too many pending requests.
#[derive(Debug, thiserror::Error)]
#[error(
    "{WAITING_MAX} changes of yours wait for a second person; have some approved or rejected, or withdraw them: \
     procession change-request list"
)]
pub struct TooManyWaiting;

/// There is no such request, or the caller may not see it.
#[derive(Debug, thiserror::Error)]
#[error("there is no change request {0}")]
pub struct NoChangeRequest(pub ChangeRequestId);

/// Stores a change as a request, and notifies those who may approve it. The change itself is not
/// made.
pub async fn file_request(
    db: &Db,
    new: &NewChangeRequest<'_>,
    rule: &SecondPersonRule,
    now: Millis,
) -> Result<ChangeRequest> {
    let mut tx = db.begin().await?;
    if change_request::count_waiting(&mut tx, new.author.0).await? >= WAITING_MAX {
        return Err(TooManyWaiting.into());
    }
    let an_hour_ago = now.plus_ms(-3_600_000);
    if change_request::count_since(&mut tx, new.author.0, an_hour_ago).await? >= FILED_PER_HOUR {
        return Err(TooManyFiled.into());
    }
    let id = change_request::insert(&mut tx, new, now).await?;
    let made = get(&mut tx, id).await?;
    let (groups, owners) = job::audience(&mut tx).await?;
    let touched = |code: &GroupCode| new.demands.groups.contains_key(code);
    let audience = ChangeAudience {
        groups: groups.iter().filter(|group| touched(&group.code)).collect(),
        owners: &owners,
        notify: &rule.notify,
    };
    let notice = notice_of(&made, audience);
    outbox::enqueue_plain(&mut tx, &notice.wanted(), now).await?;
    let entry = act_on(&made, "change-request", Some(new.reason));
    audit::record(&mut tx, new.author.1, &[entry], now).await?;
    tx.commit().await.context("file a change request")?;
    Ok(made)
}

/// A decision about a change request.
#[derive(Clone, Copy, Debug)]
pub struct ChangeDecisionRequest<'a> {
    pub id: ChangeRequestId,
    pub verdict: ChangeVerdict,
    pub comment: Option<&'a str>,
    pub by: &'a Operator,
    /// The account and its permissions; `None` on the command line.
    pub account: Option<(UserId, &'a Grants)>,
}

/// Stores a decision, and returns the request afterwards. The caller carries out an approved
/// request after that.
///
/// # Errors
///
/// `ChangeDecisionRefused` and `NoChangeRequest` are answers to the decision.
pub async fn decide(
    db: &Db,
    rules: &FourEyesRules,
    request: &ChangeDecisionRequest<'_>,
    now: Millis,
) -> Result<ChangeRequest> {
    let comment = request.comment.map(str::trim).filter(|text| !text.is_empty());
    let comment = comment.map(|text| storable(text.as_bytes(), MESSAGE_MAX));
    let mut tx = db.begin().await?;
    let there = get(&mut tx, request.id).await?;
    let rule = rules.of_change(there.action, &there.demands);
    let change = decided_change(&there, rule.as_ref());
    let by = ChangeDecider { account: request.account, name: &request.by.actor };
    let status = change.decide(request.verdict, by, comment.as_deref(), now)?;
    let is_alone = request.verdict == ChangeVerdict::BreakGlass;
    let decision = ChangeDecision { status, by: request.by, comment: comment.as_deref(), is_alone };
    if !change_request::decide(&mut tx, there.id, &decision, now).await? {
        // Another decision came first.
        let after = get(&mut tx, there.id).await?;
        tx.rollback().await?;
        return Err(ChangeDecisionRefused::Over(after.status).into());
    }
    let word = match status {
        ChangeRequestStatus::Withdrawn => "withdraw",
        _ => request.verdict.as_str(),
    };
    let entry = act_on(&there, &format!("change-request {word}"), comment.as_deref());
    audit::record(&mut tx, request.by, &[entry], now).await?;
    if is_alone {
        let (groups, owners) = job::audience(&mut tx).await?;
        let notify = rule.map(|rule| rule.notify).unwrap_or_default();
        let touched = |code: &GroupCode| there.demands.groups.contains_key(code);
        let audience = ChangeAudience {
            groups: groups.iter().filter(|group| touched(&group.code)).collect(),
            owners: &owners,
            notify: &notify,
        };
        let notice = notice_of(&there, audience);
        let said = comment.as_deref().unwrap_or_default();
        let notices = notice.carried_out_alone(&request.by.actor, said);
        outbox::enqueue_plain(&mut tx, &notices, now).await?;
    }
    let after = get(&mut tx, there.id).await?;
    tx.commit().await.context("write a decision about a change")?;
    Ok(after)
}

/// Whether the account may decide on the request in its present state.
pub fn may_decide(
    request: &ChangeRequest,
    rules: &FourEyesRules,
    verdict: ChangeVerdict,
    by: ChangeDecider<'_>,
    now: Millis,
) -> Result<(), ChangeDecisionRefused> {
    let rule = rules.of_change(request.action, &request.demands);
    let comment = Some("a comment that is asked for with the decision");
    decided_change(request, rule.as_ref()).decide(verdict, by, comment, now).map(drop)
}

/// Expires the requests that were not decided in time, with an audit record.
pub async fn expire_overdue(db: &Db, by: &Operator, now: Millis) -> Result<()> {
    let overdue = change_request::overdue(&mut db.begin_read().await?, now).await?;
    for request in overdue {
        let mut tx = db.begin().await?;
        if change_request::expire(&mut tx, request.id, now).await? {
            let entry = act_on(&request, "change-request expire", None);
            audit::record(&mut tx, by, &[entry], now).await?;
        }
        tx.commit().await.context("let a change request expire")?;
    }
    Ok(())
}

/// A change made directly on the database, where no second person is required.
#[derive(Clone, Copy, Debug)]
pub struct BypassedChange<'a> {
    /// The kind of change.
    pub action: GuardedAction,
    /// The permissions that it would require.
    pub demands: &'a Demands,
    /// The change in one line.
    pub summary: &'a str,
    pub reason: &'a str,
}

/// Records a change that needs a second person elsewhere, and notifies those who would have
/// decided; `false` when it needs none. Called before the change: a process that dies in between
/// has recorded one too many.
pub async fn record_bypass(
    db: &Db,
    rules: &FourEyesRules,
    change: &BypassedChange<'_>,
    by: &Operator,
    now: Millis,
) -> Result<bool> {
    let Some(rule) = rules.of_change(change.action, change.demands) else { return Ok(false) };
    let mut tx = db.begin().await?;
    let (groups, owners) = job::audience(&mut tx).await?;
    let touched = |code: &GroupCode| change.demands.groups.contains_key(code);
    let audience = ChangeAudience {
        groups: groups.iter().filter(|group| touched(&group.code)).collect(),
        owners: &owners,
        notify: &rule.notify,
    };
    let notices = audience.bypassed(&by.actor, change.summary, change.reason);
    outbox::enqueue_plain(&mut tx, &notices, now).await?;
    let codes: Vec<&GroupCode> = change.demands.groups.keys().collect();
    let entry = AuditEntry {
        action: "four-eyes bypassed".to_owned(),
        group: codes.first().map(|code| (*code).clone()),
        batch: None,
        job: None,
        detail: Some(json!({
            "kind": change.action, "summary": change.summary, "groups": codes,
        })),
        reason: Some(storable(change.reason.as_bytes(), MESSAGE_MAX)),
    };
    audit::record(&mut tx, by, &[entry], now).await?;
    tx.commit().await.context("record a change without a second person")?;
    Ok(true)
}

/// The audit entry of an action on a change request.
pub fn act_on(request: &ChangeRequest, action: &str, reason: Option<&str>) -> AuditEntry {
    let groups: Vec<&GroupCode> = request.demands.groups.keys().collect();
    AuditEntry {
        action: action.to_owned(),
        // A change of several groups is visible to those who may see the first group, and names the
        // others.
        group: groups.first().map(|code| (*code).clone()),
        batch: None,
        job: None,
        detail: Some(json!({
            "change_request": request.id.0, "kind": request.action, "author": request.author.actor,
            "summary": request.summary, "groups": groups, "fingerprint": request.fingerprint,
        })),
        reason: reason.map(|text| storable(text.as_bytes(), MESSAGE_MAX)),
    }
}

async fn get(tx: &mut Tx, id: ChangeRequestId) -> Result<ChangeRequest> {
    change_request::find_request(tx, id).await?.ok_or_else(|| NoChangeRequest(id).into())
}

fn decided_change<'a>(
    request: &'a ChangeRequest,
    rule: Option<&'a SecondPersonRule>,
) -> DecidedChange<'a> {
    DecidedChange {
        author: request.user,
        author_name: &request.author.actor,
        status: request.status,
        expires: request.expires,
        demands: &request.demands,
        rule,
    }
}

fn notice_of<'a>(request: &'a ChangeRequest, audience: ChangeAudience<'a>) -> ChangeNotice<'a> {
    ChangeNotice {
        id: request.id,
        author: &request.author.actor,
        action: request.action,
        summary: &request.summary,
        reason: &request.reason,
        expires: request.expires,
        audience,
    }
}
