//! The state that requests are answered from.

use crate::api::admin::AdminRequestLimits;
use crate::api::caller::{Caller, CallerProof};
use crate::api::carry_out::ReplayedChange;
use crate::api::client_address::RequestOrigin;
use crate::api::denied_requests::DeniedRequests;
use crate::api::description;
use crate::api::problem::Problem;
use crate::api::read_limits::ReadLimits;
use crate::api::response_cache::Reads;
use crate::api::stream_access::OpenStreams;
use crate::app::access::{KnownCaller, Porter, PresentedCredential, secret};
use crate::app::{App, Aside};
use crate::config::{Doorway, Ldap, Oidc};
use crate::domain::permission::four_eyes::FourEyesRules;
use crate::engine::cluster::health::HealthMonitor;
use crate::engine::xxl::admin::registry_api::ExecutorApi;
use anyhow::Result;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use std::sync::Arc;

/// Maximum number of connections to a database server for requests.
const CONNECTIONS: u32 = 6;

/// The state that requests are answered from: an open database with connections of its own, and the
/// health of this process.
pub struct ApiState {
    pub app: App,
    pub vitals: Arc<HealthMonitor>,
    /// Checks passwords, sessions and tokens.
    pub porter: Porter,
    /// The public address and the trusted proxies.
    pub(super) doorway: Doorway,
    /// Caches and events.
    pub(super) reads: Reads,
    /// Limits of expensive requests.
    pub(super) read_limits: ReadLimits,
    /// Streams that end with their callers' access.
    pub(super) streams: OpenStreams,
    /// Recently recorded refusals.
    pub(super) denied: DeniedRequests,
    /// Recently recorded requests with unknown tokens.
    pub(super) denied_tokens: DeniedRequests,
    /// Which changes need a second person.
    pub(super) four_eyes: FourEyesRules,
    /// Background backfills of this process.
    pub aside: Aside,
    /// The API for executors of XXL-JOB.
    pub executors: ExecutorApi,
    /// Whether executors must present a certificate.
    pub(super) needs_executor_certificate: bool,
    /// Limits of executors' requests.
    pub executor_limits: AdminRequestLimits,
    /// The description of the API, built once.
    pub(super) described: Value,
}

impl ApiState {
    /// The state for an open database; with separate connections on a server, so that requests take
    /// none from the engine.
    pub async fn open_state(app: &App, vitals: HealthMonitor) -> Result<Self> {
        let aside = Aside::new(app);
        let app = app.for_requests(CONNECTIONS).await?;
        let (porter, doorway) = (app.porter(), app.config.http.doorway()?);
        let (vitals, reads) = (Arc::new(vitals), Reads::default());
        let described = description();
        let networks = app.config.executor_networks()?;
        let executors = ExecutorApi::new(app.db.clone(), app.clock.clone(), networks)
            .with_own_ports(app.config.own_ports()?);
        let needs_executor_certificate =
            app.config.http.listener_files().is_some_and(|files| files.client_rule().is_some());
        let executor_limits = AdminRequestLimits::default();
        let read_limits = ReadLimits::new(&app.config.limits)?;
        let four_eyes = app.config.four_eyes()?;
        Ok(Self {
            app,
            vitals,
            porter,
            doorway,
            reads,
            read_limits,
            streams: OpenStreams::default(),
            denied: DeniedRequests::default(),
            denied_tokens: DeniedRequests::default(),
            four_eyes,
            aside,
            executors,
            needs_executor_certificate,
            executor_limits,
            described,
        })
    }

    /// Polls for changes of batches, for listeners of events. Called once a second while the
    /// listener is open; costs nothing while there are no event streams.
    pub async fn poll_changes(&self) -> Result<()> {
        self.reads.events.poll_changes(&self.app).await
    }

    /// Ends streams whose callers have lost access. Called twice a second while the listener is
    /// open; costs nothing while there are no streams.
    pub async fn end_revoked_streams(&self) -> Result<()> {
        self.streams.end_revoked(&self.porter).await
    }

    /// Identifies the caller of a request. A token takes precedence over a session, because sending
    /// one is intentional.
    pub(super) async fn identify(
        &self,
        parts: &Parts,
        way: &RequestOrigin,
    ) -> Result<Caller, Problem> {
        let known = match parts.headers.get(AUTHORIZATION) {
            Some(shown) => {
                let token = shown.to_str().ok().and_then(|text| text.split_once(' '));
                let token = token.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
                let token = token.ok_or_else(Problem::stranger)?.1.trim();
                self.porter.by_token(token).await?
            }
            None => {
                let session = way.session(&parts.headers).ok_or_else(Problem::stranger)?;
                let known = self.porter.by_session(&session).await?;
                if known.is_some() && !matches!(parts.method, Method::GET | Method::HEAD) {
                    meant(parts, way, &session.into())?;
                }
                known
            }
        };
        known.map(|known| caller(known, way)).ok_or_else(Problem::stranger)
    }

    /// The author of an approved change, with the account's present state; the address is that of
    /// the original request.
    pub(super) async fn author_of(&self, replayed: &ReplayedChange) -> Result<Caller, Problem> {
        let request = &replayed.request;
        let known = self.porter.by_author(request.user, request.token).await?;
        let known = known.ok_or_else(|| {
            let message = format!(
                "{} may not log in any more, or the token that the change was asked for with is gone",
                request.author.actor
            );
            Problem::new(StatusCode::FORBIDDEN, "author-gone", message)
        })?;
        let name = known.user.name.to_string();
        let (user_id, from) = (known.user.id.0, request.author.host.clone());
        let (grants, proof) = (known.grants.clone(), CallerProof::Approved);
        Ok(Caller { user_id, name, grants, from, proof, known: Arc::new(known) })
    }

    /// The other provider for logins.
    pub(super) fn oidc_provider(&self) -> Option<&Oidc> {
        Some(&self.app.config.http.oidc).filter(|oidc| oidc.is_on())
    }

    /// The directory whose passwords are accepted.
    pub(super) fn ldap_directory(&self) -> Option<&Ldap> {
        Some(&self.app.config.ldap).filter(|ldap| ldap.is_on())
    }
}

/// The CSRF token that our pages send with every change, and no other page can.
pub(super) fn csrf_token(session: &SecretString) -> String {
    secret::derived(session, "csrf")
}

/// Refuses a change that a foreign page sent with a browser's cookie.
fn meant(parts: &Parts, way: &RequestOrigin, session: &SecretString) -> Result<(), Problem> {
    way.require_same_site(&parts.headers)?;
    let sent = parts.headers.get("x-csrf-token").and_then(|v| v.to_str().ok());
    match sent.is_some_and(|sent| secret::are_equal(sent, &csrf_token(session))) {
        true => Ok(()),
        false => Err(Problem::not_meant()),
    }
}

fn caller(known: KnownCaller, way: &RequestOrigin) -> Caller {
    let proof = match &known.by {
        PresentedCredential::Session(session) => CallerProof::Session(session.id),
        PresentedCredential::Token(token) => CallerProof::Token(token.id),
        PresentedCredential::Approval => CallerProof::Approved,
    };
    let name = known.user.name.to_string();
    let (user_id, from) = (known.user.id.0, way.address.clone());
    Caller { user_id, name, grants: known.grants.clone(), from, proof, known: Arc::new(known) }
}
