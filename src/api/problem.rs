//! Refusals in one format (RFC 9457, `application/problem+json`).

use crate::api::refusal;
use crate::api::second_person::HeldChange;
use crate::app::{self, LostUpdate};
use crate::definition::Faults;
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::job_key::{JobKey, JobNameError};
use crate::engine::operate::operator_actions::Moved;
use crate::store;
use crate::store::batch::StillOpening;
use crate::view::change::FaultAt;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// A refusal. `detail` contains the fault and a hint.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// The kind, for programs: `not-found`, `moved`; the end of its `type`.
    pub kind: &'static str,
    /// The message for people.
    pub detail: String,
    /// Further members: faults with their lines, the present state.
    pub more: Map<String, Value>,
    /// Seconds after which the request may be repeated.
    pub retry_after: Option<u32>,
    /// The change that was not made because it needs a second person: its route files it and
    /// answers 202.
    pub(super) held: Option<Box<HeldChange>>,
}

/// Where a permission is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PermissionScope<'a> {
    /// In this group.
    Group(&'a GroupCode),
    /// In any group.
    AnyGroup,
    /// In all groups.
    AllGroups,
}

impl Problem {
    /// A refusal of this kind.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            detail: detail.into(),
            more: Map::new(),
            retry_after: None,
            held: None,
        }
    }

    /// 400: the request cannot be parsed.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "unreadable", detail)
    }

    /// 401: not logged in.
    pub fn stranger() -> Self {
        let detail = "log in, or send a token: Authorization: Bearer …";
        Self::new(StatusCode::UNAUTHORIZED, "not-logged-in", detail)
    }

    /// 403: the caller lacks a permission. An object that the caller may not even see is
    /// `not_found`.
    pub(super) fn forbidden(needed: Permission, scope: PermissionScope<'_>) -> Self {
        let detail = match scope {
            PermissionScope::Group(group) => format!(
                "this needs the permission `{needed}` in group {group}; an administrator of that group can grant it"
            ),
            PermissionScope::AnyGroup => format!(
                "this needs the permission `{needed}` in a group; an administrator of the group can grant it"
            ),
            PermissionScope::AllGroups => format!(
                "this needs the permission `{needed}` for all groups; an administrator of all groups can grant it"
            ),
        };
        let mut problem = Self::new(StatusCode::FORBIDDEN, "forbidden", detail);
        problem.more.insert("permission".to_owned(), json!(needed));
        problem
    }

    /// 403: a foreign page may have sent it.
    pub fn not_meant() -> Self {
        let detail = "a change with a session needs the header X-CSRF-Token as GET /api/v1/session gives it, \
                      and comes from our own page; reload the page, or send a token instead of a cookie";
        Self::new(StatusCode::FORBIDDEN, "not-meant", detail)
    }

    /// 403: the password was set by an administrator and must be changed.
    pub fn must_change() -> Self {
        let detail = "choose a password of your own first: POST /api/v1/session/password";
        Self::new(StatusCode::FORBIDDEN, "must-change-password", detail)
    }

    /// 403: a second factor is required.
    pub fn must_enrol() -> Self {
        let detail = "enrol a second factor first: POST /api/v1/session/second-factor/enrol";
        Self::new(StatusCode::FORBIDDEN, "must-enrol-second-factor", detail)
    }

    /// 404: missing, or invisible to the caller; the two answers are the same.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", format!("there is no {what}"))
    }

    /// 409: the state differs from what the request assumes.
    pub fn conflict(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, kind, detail)
    }

    /// 422: the request is valid but cannot be carried out; for the user to fix.
    pub fn refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", detail)
    }

    /// A change that needs a second person. If its route does not file it, it is refused.
    pub(super) fn held_change(change: HeldChange) -> Self {
        let detail = "this change needs the approval of a second person, and cannot be asked for in this way";
        let held = Some(Box::new(change));
        Self { held, ..Self::new(StatusCode::FORBIDDEN, "second-person", detail) }
    }

    /// Adds a member.
    #[must_use]
    pub fn with_member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// The problem document.
    pub fn document(&self) -> Value {
        let title = self.status.canonical_reason().unwrap_or("Refused");
        let mut all = self.more.clone();
        all.insert("type".to_owned(), json!(format!("urn:procession:problem:{}", self.kind)));
        all.insert("title".to_owned(), json!(title));
        all.insert("status".to_owned(), json!(self.status.as_u16()));
        all.insert("detail".to_owned(), json!(self.detail));
        Value::Object(all)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// So that a refusal can be returned from within a transaction, which is rolled back with it.
impl std::error::Error for Problem {}

/// 422: a definition with faults, each with its line.
fn faulty(faults: &Faults) -> Problem {
    let all: Vec<FaultAt> = faults.as_slice().iter().map(FaultAt::from_fault).collect();
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "faults", faults.to_string()).with_member("faults", json!(all))
}

/// 412: another author came first, and who.
fn lost_update(update: &LostUpdate) -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "changed-meanwhile", update.to_string())
        .with_member("group", update.group.as_str())
        .with_member("version", update.is)
        .with_member("changed_by", update.author.as_str())
        .with_member("changed_at", update.at.to_string())
        .with_member("remark", json!(update.remark))
}

impl From<anyhow::Error> for Problem {
    /// Faults for the user to fix are returned; internal failures are logged under an id that is
    /// returned.
    fn from(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(problem) => return problem,
            Err(error) => error,
        };
        if let Some(refusal) = refusal::problem_of(&error) {
            return refusal;
        }
        if let Some(faults) = error.chain().find_map(|e| e.downcast_ref::<Faults>()) {
            return faulty(faults);
        }
        if let Some(update) = error.chain().find_map(|e| e.downcast_ref::<LostUpdate>()) {
            return lost_update(update);
        }
        match error.chain().find_map(|e| e.downcast_ref::<JobNameError>()) {
            Some(JobNameError::Unknown(word)) => return Self::not_found(format!("job {word}")),
            Some(ambiguous @ JobNameError::Ambiguous { candidates, .. }) => {
                let keys: Vec<String> = candidates.iter().map(JobKey::to_string).collect();
                return Self::conflict("ambiguous", ambiguous.to_string())
                    .with_member("candidates", keys);
            }
            None => {}
        }
        if error.chain().any(|e| e.is::<Moved>()) {
            return Self::conflict("moved", error.to_string());
        }
        if let Some(opening) = error.downcast_ref::<StillOpening>() {
            let mut problem = Self::conflict("opening", opening.to_string());
            problem.retry_after = Some(2);
            return problem;
        }
        if store::is_transient(&error) {
            tracing::warn!(error = format!("{error:#}"), "a request met a database that was busy");
            let detail = "the database did not answer; ask again in a few seconds";
            let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "try-again", detail);
            problem.retry_after = Some(2);
            return problem;
        }
        if app::is_users(&error) {
            return Self::refused(format!("{error:#}"));
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        tracing::error!(error = format!("{error:#}"), error_id = id, "a request failed");
        let detail = format!("Procession failed; the reason is in its log, under {id}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail).with_member("error_id", id)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.document().to_string();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, body).into_response();
        response.headers_mut().insert(CONTENT_TYPE, kind);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
