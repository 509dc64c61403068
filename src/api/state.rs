//! What requests are answered from.

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

/// Connections to a database server that requests share.
const CONNECTIONS: u32 = 6;

/// What requests are answered from: an open database with connections of its own, and how this process is.
pub struct ApiState {
    /// The database, the settings and the clock.
    pub app: App,
    /// How this process is.
    pub vitals: Arc<HealthMonitor>,
    /// Who looks at passwords, sessions and tokens.
    pub porter: Porter,
    /// As who stands outside sees the front door.
    pub(super) doorway: Doorway,
    /// What reading remembers.
    pub(super) reads: Reads,
    /// How much expensive work there may be at once.
    pub(super) read_limits: ReadLimits,
    /// Streams that end with the access of their callers.
    pub(super) streams: OpenStreams,
    /// Refusals that were put on record of late.
    pub(super) denied: DeniedRequests,
    /// Requests with tokens that are not known, that were put on record of late.
    pub(super) denied_tokens: DeniedRequests,
    /// Changes that need a second person.
    pub(super) four_eyes: FourEyesRules,
    /// What this process runs beside what it serves.
    pub aside: Aside,
    /// Where executors of XXL-JOB are heard.
    pub executors: ExecutorApi,
    /// Whether they have to show a certificate.
    pub(super) needs_executor_certificate: bool,
    /// What a request of theirs may take.
    pub executor_limits: AdminRequestLimits,
    /// The description of the API, made once.
    pub(super) described: Value,
}

impl ApiState {
    /// A house of an open database; with connections of its own on a server, so that whoever asks much
    /// takes none from the work.
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

    /// Looks what has happened to batches, for those who listen to events. Done once a second while the door
    /// is open; costs nothing while nobody listens.
    pub async fn poll_changes(&self) -> Result<()> {
        self.reads.events.poll_changes(&self.app).await
    }

    /// Ends the streams whose callers may not see them any more. Done twice a second while the listener is
    /// open; costs nothing while there are no streams.
    pub async fn end_revoked_streams(&self) -> Result<()> {
        self.streams.end_revoked(&self.porter).await
    }

    /// Who sent a request. A token counts before a session: who shows one means it.
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

    /// Whoever asked for an approved change, as the account is now; the address is the one it was asked from.
    pub(super) async fn author_of(&self, replayed: &ReplayedChange) -> Result<Caller, Problem> {
        let request = &replayed.request;
        let known = self.porter.by_author(request.user, request.token).await?;
        let known = known.ok_or_else(|| {
            let said = format!(
                "{} may not log in any more, or the token that the change was asked for with is gone",
                request.author.actor
            );
            Problem::new(StatusCode::FORBIDDEN, "author-gone", said)
        })?;
        let name = known.user.name.to_string();
        let (user_id, from) = (known.user.id.0, request.author.host.clone());
        let (grants, proof) = (known.grants.clone(), CallerProof::Approved);
        Ok(Caller { user_id, name, grants, from, proof, known: Arc::new(known) })
    }

    /// The other provider that people may log in at.
    pub(super) fn oidc_provider(&self) -> Option<&Oidc> {
        Some(&self.app.config.http.oidc).filter(|oidc| oidc.is_on())
    }

    /// The directory whose passwords are taken.
    pub(super) fn ldap_directory(&self) -> Option<&Ldap> {
        Some(&self.app.config.ldap).filter(|ldap| ldap.is_on())
    }
}

/// What a page of ours sends with every change, and no other page can.
pub(super) fn csrf_token(session: &SecretString) -> String {
    secret::derived(session, "csrf")
}

/// Refuses a change that a page of somebody else's sent with a browser's cookie.
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
