//! Who asks: the caller of a request, and what the caller may do to which thing.

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

/// What a route asks of its caller before anything else is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerNeeds {
    /// Nothing; who asks is not looked at.
    Nothing,
    /// That somebody is logged in: what is done is the caller's own affair.
    Login,
    /// A permission in at least one group; the handler asks again for the group of each thing it touches.
    Somewhere(Permission),
    /// A permission in all groups: what is touched belongs to none.
    Everywhere(Permission),
}

/// Somebody who is known.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account's number; the tables' key.
    pub user_id: i64,
    /// The account's name.
    pub name: String,
    /// What the caller may do.
    pub grants: Grants,
    /// Where the request comes from: an address.
    pub from: String,
    /// How it was proved who asks.
    pub proof: CallerProof,
    /// The account, and what was shown.
    pub(super) known: Arc<KnownCaller>,
}

/// How it was proved who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerProof {
    /// A session of the console, by its number.
    Session(i64),
    /// A token, by its number.
    Token(i64),
    /// Nothing: an approved change request of the caller is carried out.
    Approved,
}

/// A request that is let in: who asks, and the house it asks of.
#[derive(Clone)]
pub struct ApiRequest {
    /// The house.
    pub house: Arc<ApiState>,
    /// Who asks; none only where a route needs nothing.
    caller: Option<Caller>,
    /// The way the request came.
    pub(super) way: RequestOrigin,
    /// In which language the answer's sentences are.
    pub lang: Lang,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The approved change that is carried out by this request.
    pub(super) approved: Option<Arc<ReplayedChange>>,
    /// Where a refusal is noted for the audit log.
    request_caller: RequestCaller,
}

impl Caller {
    /// Whether the caller has to choose a password before anything else. A token was made by somebody who
    /// had, or for a program.
    pub(super) fn must_change(&self) -> bool {
        self.known.user.must_change && matches!(self.proof, CallerProof::Session(_))
    }

    /// The name, as a name.
    pub(super) fn user_name(&self) -> &UserName {
        &self.known.user.name
    }
}

impl ApiRequest {
    /// Lets a request in, or says why not.
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

    /// Who asks.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(Problem::stranger)
    }

    /// Who asks, as the audit log names it.
    pub fn operator(&self) -> Result<Operator, Problem> {
        let caller = self.caller()?;
        let change = self.approved.as_ref().map(|approved| approved.change.clone());
        Ok(Operator { change, ..Operator::new(caller.name.clone(), caller.from.clone()) })
    }

    /// On whose authority something about users is done.
    pub(super) fn authority(&self) -> Result<Authority, Problem> {
        let caller = self.caller()?;
        let user = Some((UserId(caller.user_id), caller.grants.clone()));
        Ok(Authority { operator: self.operator()?, user })
    }

    /// Passes when the caller may do this in the group; a group that the caller does not see is not there,
    /// and `what` names the thing in that answer: `batch 202407`.
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

    /// Whether the caller may do this in the group.
    pub fn allows(&self, permission: Permission, group: &GroupCode) -> bool {
        self.caller.as_ref().is_some_and(|c| c.grants.allow(permission, group))
    }
}

/// The first language that the caller accepts and we speak.
fn lang_of(headers: &HeaderMap) -> Lang {
    let accepted = headers.get("accept-language").and_then(|v| v.to_str().ok()).unwrap_or_default();
    accepted.split([',', ';']).find_map(|word| Lang::from_code(word.trim())).unwrap_or_default()
}
