//! Changes that need the approval of a second person. A handler computes its change and calls this
//! module before it writes: the change is allowed, or it is filed as a change request and the
//! answer is 202.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerProof};
use crate::api::problem::Problem;
use crate::domain::access::Permission;
use crate::domain::access::user::UserId;
use crate::domain::id::GroupCode;
use crate::domain::permission::four_eyes::{GuardedAction, SecondPersonRule};
use crate::domain::permission::required_permissions::Demands;
use crate::domain::text::truncate_text;
use crate::engine::operate::change_requests::{TooManyFiled, TooManyWaiting, file_request};
use crate::store::change_request::NewChangeRequest;
use crate::view::change_request::ChangeRequestView;
use axum::http::{Method, StatusCode, Uri};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Maximum length of path and query of a request that can wait, as in the column.
const PATH_MAX: usize = 1_000;
/// Maximum length of a summary, in characters.
const SUMMARY_MAX: usize = 500;

/// A change that a handler is about to make.
#[derive(Debug)]
pub(super) struct GuardedChange {
    pub(super) action: GuardedAction,
    /// The permissions that it requires.
    pub(super) demands: Demands,
    /// The change in one line.
    pub(super) summary: String,
    /// The author's reason.
    pub(super) reason: String,
    /// What it changes, for the approver.
    pub(super) effect: Value,
    /// A digest of the present state and of the resulting one: see `fingerprint_of`.
    pub(super) fingerprint: String,
}

/// A change that is not made because it needs a second person.
#[derive(Debug)]
pub(super) struct HeldChange {
    change: GuardedChange,
    rule: SecondPersonRule,
}

/// The answer to a change that waits.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitingChange {
    /// The change request; `GET /change-requests/{id}` shows its progress.
    change_request: ChangeRequestView,
}

/// A digest of texts that describe the whole present state and the whole resulting one.
pub(super) fn fingerprint_of(parts: &[&str]) -> String {
    let mut all = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        all.update(&part.len().to_be_bytes());
        all.update(part.as_bytes());
    }
    all.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The demand of one permission in these groups.
pub(super) fn demands_in<'a>(
    permission: Permission,
    groups: impl IntoIterator<Item = &'a GroupCode>,
) -> Demands {
    let one = |group: &GroupCode| (group.clone(), [permission].into());
    Demands { groups: groups.into_iter().map(one).collect(), ..Demands::default() }
}

impl ApiRequest {
    /// Whether changes must be computed before they are written: some need a second person, or this
    /// one has been approved.
    pub(super) fn is_guarded(&self) -> bool {
        self.house.four_eyes.is_on() || self.approved.is_some()
    }

    /// Allows a change that needs no second person, or that was approved in exactly this form.
    /// Called by handlers after all other checks, and before anything is written.
    pub(super) fn pass_four_eyes(&self, change: GuardedChange) -> Result<(), Problem> {
        if let Some(approved) = &self.approved {
            return match approved.fingerprint == change.fingerprint {
                true => Ok(()),
                false => Err(changed_since()),
            };
        }
        match self.house.four_eyes.of_change(change.action, &change.demands) {
            None => Ok(()),
            Some(rule) => Err(Problem::held_change(HeldChange { change, rule })),
        }
    }
}

/// 409: the change differs from the approved one.
pub(super) fn changed_since() -> Problem {
    let message = "what this change is made to, or what it would do, is not what it was when it was asked for; nothing \
                was changed. Look at it again, and ask for the change again";
    Problem::conflict("changed-since-approval", message)
}

/// Files a held change; returns the answer.
pub(super) async fn file_change(
    ask: &ApiRequest,
    method: &Method,
    uri: &Uri,
    body: &[u8],
    held: HeldChange,
) -> Result<(StatusCode, Vec<u8>), Problem> {
    let HeldChange { change, rule } = held;
    let path = uri.path_and_query().map_or(uri.path(), |path| path.as_str());
    if path.chars().count() > PATH_MAX {
        let message =
            format!("the path is longer than {PATH_MAX} characters, and this change has to wait");
        return Err(Problem::refused(message));
    }
    let body: Value = match body {
        [] => Value::Object(serde_json::Map::new()),
        body => serde_json::from_slice(body).map_err(anyhow::Error::from)?,
    };
    let caller = ask.caller()?;
    let now = authorize::now(ask).await?;
    let operator = ask.operator()?;
    let new = NewChangeRequest {
        author: (UserId(caller.user_id), &operator),
        token: match caller.proof {
            CallerProof::Token(id) => Some(id),
            CallerProof::Session(_) | CallerProof::Approved => None,
        },
        action: change.action,
        demands: &change.demands,
        method: method.as_str(),
        path,
        body: &body,
        summary: &truncate_text(&change.summary, SUMMARY_MAX),
        effect: &change.effect,
        fingerprint: &change.fingerprint,
        reason: &change.reason,
        expires: now.plus_ms(rule.expire_ms),
    };
    let made = file_request(&ask.house.app.db, &new, &rule, now).await.map_err(|error| {
        if let Some(refused) = error.downcast_ref::<TooManyWaiting>() {
            return Problem::conflict("too-many-waiting", refused.to_string());
        }
        match error.downcast_ref::<TooManyFiled>() {
            Some(refused) => Problem::conflict("too-many-changes", refused.to_string()),
            None => error.into(),
        }
    })?;
    let change_request = ChangeRequestView::from_request(&made, ask.change_reader(now)?);
    let answer = serde_json::to_vec(&WaitingChange { change_request });
    Ok((StatusCode::ACCEPTED, answer.map_err(anyhow::Error::from)?))
}
