//! The caller of a request, and the caller's permissions.

use crate::api::carry_out::ReplayedChange;
use crate::api::client_address::RequestOrigin;
use crate::api::connection_limit::TrackedConnection;
use crate::api::denied_requests::RequestCaller;
use crate::api::problem::{PermissionScope, Problem};
use crate::api::state::ApiState;
use crate::app::access::{Authority, KnownCaller};
use crate::domain::access::user::{UserId, UserName};
use crate::domain::access::{Grants, Permission};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use crate::store::audit::Operator;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use std::sync::Arc;

/// What a route requires of its caller before anything else is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerNeeds {
    /// Nothing; the caller is not identified.
    Nothing,
    /// A login: the route concerns only the caller's own data.
    Login,
    /// A permission in at least one group; the handler checks again for the group of each object.
    Somewhere(Permission),
    /// A permission in all groups: the objects belong to none.
    Everywhere(Permission),
}

/// An identified caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key of the account.
    pub user_id: i64,
    /// The name of the account.
    pub name: String,
    /// The permissions.
    pub grants: Grants,
    /// The address of the request.
    pub from: String,
    /// How the caller was authenticated.
    pub proof: CallerProof,
    /// The account and the credential.
    pub(super) known: Arc<KnownCaller>,
}

/// How the caller was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerProof {
    /// A session of the console, by its key.
    Session(i64),
    /// An API token, by its key.
    Token(i64),
    /// None: an approved change request of the caller is carried out.
    Approved,
}

/// An admitted request: the caller and the state that it is answered from.
#[derive(Clone)]
pub struct ApiRequest {
    pub house: Arc<ApiState>,
    /// The caller; `None` only where a route requires nothing.
    caller: Option<Caller>,
    /// The origin of the request.
    pub(super) way: RequestOrigin,
    /// The language of sentences in the answer.
    pub lang: Lang,
    pub headers: HeaderMap,
    /// The approved change that this request carries out.
    pub(super) approved: Option<Arc<ReplayedChange>>,
    /// Where a refusal is noted for the audit log.
    request_caller: RequestCaller,
}

impl Caller {
    /// Whether the caller must choose a password before anything else. Not for tokens, which were
    /// created by a user who had, or for a program.
    pub(super) fn must_change(&self) -> bool {
        self.known.user.must_change && matches!(self.proof, CallerProof::Session(_))
    }

    /// The name as a `UserName`.
    pub(super) fn user_name(&self) -> &UserName {
        &self.known.user.name
    }
}

impl ApiRequest {
    /// Admits a request, or returns the refusal.
    pub(super) async fn from_request(
        house: &Arc<ApiState>,
        parts: &Parts,
        needs: CallerNeeds,
    ) -> Result<Self, Problem> {
        let way = RequestOrigin::from_parts(parts, &house.doorway);
        let approved = parts.extensions.get::<Arc<ReplayedChange>>().cloned();
        let caller = match (&approved, needs) {
            (Some(approved), _) => Some(house.author_of(approved).await?),
            (None, needs) => Self::caller_of(house, parts, &way, needs).await?,
        };
        let request_caller = parts.extensions.get::<RequestCaller>().cloned().unwrap_or_default();
        if let Some(caller) = &caller {
            if let Some(connection) = parts.extensions.get::<Arc<TrackedConnection>>() {
                connection.mark_known();
            }
            request_caller.set_name(&caller.name);
        }
        let scope = match needs {
            CallerNeeds::Everywhere(_) => PermissionScope::AllGroups,
            CallerNeeds::Nothing | CallerNeeds::Login | CallerNeeds::Somewhere(_) => {
                PermissionScope::AnyGroup
            }
        };
        let may = |p: Permission, has: &dyn Fn(&Grants) -> bool| match &caller {
            Some(caller) if caller.must_change() => Err(Problem::must_change()),
            Some(caller) if caller.known.must_enrol => Err(Problem::must_enrol()),
            Some(caller) if has(&caller.grants) => Ok(()),
            Some(caller) => {
                let (user, path) = (caller.name.as_str(), parts.uri.path());
                tracing::info!(user, path, permission = p.as_str(), "a request was refused");
                Err(Problem::forbidden(p, scope))
            }
            None => Err(Problem::forbidden(p, scope)),
        };
        match needs {
            CallerNeeds::Nothing | CallerNeeds::Login => {}
            CallerNeeds::Somewhere(p) => may(p, &|g| g.allow_somewhere(p))?,
            CallerNeeds::Everywhere(p) => may(p, &|g| g.allow_everywhere(p))?,
        }
        let lang = lang_of(&parts.headers);
        let headers = parts.headers.clone();
        Ok(Self { house: house.clone(), caller, way, lang, headers, approved, request_caller })
    }

    async fn caller_of(
        house: &Arc<ApiState>,
        parts: &Parts,
        way: &RequestOrigin,
        needs: CallerNeeds,
    ) -> Result<Option<Caller>, Problem> {
        match needs {
            CallerNeeds::Nothing => Ok(None),
            CallerNeeds::Login | CallerNeeds::Somewhere(_) | CallerNeeds::Everywhere(_) => {
                house.identify(parts, way).await.map(Some)
            }
        }
    }

    /// The caller of the request.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(Problem::stranger)
    }

    /// The caller as an operator for the audit log.
    pub fn operator(&self) -> Result<Operator, Problem> {
        let caller = self.caller()?;
        let change = self.approved.as_ref().map(|approved| approved.change.clone());
        Ok(Operator { change, ..Operator::new(caller.name.clone(), caller.from.clone()) })
    }

    /// The authority of the caller for changes of users.
    pub(super) fn authority(&self) -> Result<Authority, Problem> {
        let caller = self.caller()?;
        let user = Some((UserId(caller.user_id), caller.grants.clone()));
        Ok(Authority { operator: self.operator()?, user })
    }

    /// Checks the caller's permission in the group; a group that the caller does not see counts as
    /// missing, and `what` names the object in that answer: `batch 202407`.
    pub fn require(
        &self,
        permission: Permission,
        group: &GroupCode,
        what: impl std::fmt::Display,
    ) -> Result<(), Problem> {
        let grants = &self.caller()?.grants;
        if !grants.allow(Permission::View, group) {
            self.request_caller.note_hidden();
            return Err(Problem::not_found(what));
        }
        if !grants.allow(permission, group) {
            return Err(Problem::forbidden(permission, PermissionScope::Group(group)));
        }
        Ok(())
    }

    /// Whether the caller has the permission in the group.
    pub fn allows(&self, permission: Permission, group: &GroupCode) -> bool {
        self.caller.as_ref().is_some_and(|c| c.grants.allow(permission, group))
    }
}

/// The first supported language that the caller accepts.
fn lang_of(headers: &HeaderMap) -> Lang {
    let accepted = headers.get("accept-language").and_then(|v| v.to_str().ok()).unwrap_or_default();
    accepted.split([',', ';']).find_map(|word| Lang::from_code(word.trim())).unwrap_or_default()
}
