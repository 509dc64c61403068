//! The API for executors of XXL-JOB, for which this installation is the admin. Executors have no
//! login and no session: they send the token that their group shares with this installation.
//!
//! A request without a valid token is answered before its body is read. Every answer has HTTP
//! status 200 and a JSON result, because some clients look at nothing else. While the database is
//! unavailable no answer is sent at all: some clients take a refusal as final, and turn a
//! successful run into a failed one; all of them repeat a broken request.

use crate::api::client_address::RequestOrigin;
use crate::api::state::ApiState;
use crate::api::tls::ConnectionSecurity;
use crate::domain::executor::LogId;
use crate::engine::xxl::admin::registry_api::{AdminApiRefusal, VerifiedToken};
use crate::store::executor_run::ReportedRunEnd;
use crate::wire::xxl::{
    APP_NAME_HEADER, EXECUTOR_GROUP, Registry, Reply, TOKEN_HEADER, read_callbacks,
};
use anyhow::Result;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// The paths of executors' requests: below the path of admins up to 3.4.0, and below the root of
/// later ones, where only these endpoints are reserved.
pub const PATHS: [&str; 6] = [
    "/xxl-job-admin/api",
    "/xxl-job-admin/api/",
    "/xxl-job-admin/api/{*word}",
    "/api/registry",
    "/api/registryRemove",
    "/api/callback",
];

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct AdminRequestLimits {
    /// Maximum size of a body in bytes.
    pub body: usize,
    /// Time limit for receiving a body.
    pub patience: Duration,
}

impl Default for AdminRequestLimits {
    /// Five thousand ends of runs with short messages.
    fn default() -> Self {
        Self { body: 4 * 1024 * 1024, patience: Duration::from_secs(10) }
    }
}

/// Maximum number of ends of runs in one body.
const ENDS_MAX: usize = 5_000;
/// Time limit of the database: executors wait 3 s for an answer.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// Pause between two lookups of a token while the database is unavailable.
const AGAIN: Duration = Duration::from_millis(200);

/// Handles a request of an executor.
pub(super) async fn asked(State(house): State<Arc<ApiState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // Behind a trusted proxy the address that it forwards counts. Without a connection there is no
    // address and no client.
    let peer = RequestOrigin::from_parts(&parts, &house.doorway)
        .client_ip()
        .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    // Some clients send a second slash before the endpoint, or one after it.
    let word = parts.uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let security = parts.extensions.get().copied().unwrap_or(ConnectionSecurity::Clear);
    let asked = AdminRequest { house: &house, peer, security, word, method: &parts.method };
    let reply = match asked.answer(&parts.headers, body).await {
        Ok(reply) => reply,
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "an executor got no answer; it asks again"
            );
            return no_answer();
        }
    };
    // Each request uses a connection of its own: thousands of executors with kept connections would
    // leave none for others.
    let headers = [(CONTENT_TYPE, "application/json;charset=UTF-8"), (CONNECTION, "close")];
    (headers, reply.to_json()).into_response()
}

/// Closes the connection before anything is sent.
fn no_answer() -> Response {
    let broken = futures_util::stream::once(async {
        Err::<Bytes, _>(io::Error::other("there is no answer for now"))
    });
    Body::from_stream(broken).into_response()
}

struct AdminRequest<'a> {
    house: &'a ApiState,
    peer: IpAddr,
    security: ConnectionSecurity,
    word: &'a str,
    method: &'a Method,
}

impl AdminRequest<'_> {
    /// An error is a database error.
    async fn answer(&self, headers: &HeaderMap, body: Body) -> Result<Reply> {
        if self.house.needs_executor_certificate && self.security != ConnectionSecurity::MutualTls {
            return Ok(self.refuse(&AdminApiRefusal::Certificate, None).await);
        }
        let pass = match self.admitted(headers).await? {
            Ok(pass) => pass,
            Err(refused) => return Ok(self.refuse(&refused, None).await),
        };
        Ok(match self.handle_request(&pass, body).await? {
            Ok(()) => Reply::success(Value::Null),
            Err(refused) => self.refuse(&refused, Some(&pass)).await,
        })
    }

    async fn refuse(&self, refused: &AdminApiRefusal, pass: Option<&VerifiedToken>) -> Reply {
        // The request is answered in any case, and in time.
        let noted = self.house.executors.note_refused(refused, self.peer, pass);
        if tokio::time::timeout(PATIENCE, noted).await.is_err() {
            tracing::error!(peer = %self.peer, why = refused.audit_label(), "a refusal is not on record");
        }
        Reply::failure(refused.to_string())
    }

    async fn admitted(
        &self,
        headers: &HeaderMap,
    ) -> Result<Result<VerifiedToken, AdminApiRefusal>> {
        let token = headers.get(TOKEN_HEADER).map(|value| value.as_bytes()).unwrap_or_default();
        let name = headers.get(APP_NAME_HEADER).map(|value| value.as_bytes());
        let looked = async {
            loop {
                match self.house.executors.admit(token, name).await {
                    Ok(admitted) => return admitted,
                    Err(error) => {
                        tracing::debug!(error = format!("{error:#}"), "tokens cannot be looked at");
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        Ok(tokio::time::timeout(PATIENCE, looked).await?)
    }

    async fn handle_request(
        &self,
        pass: &VerifiedToken,
        body: Body,
    ) -> Result<Result<(), AdminApiRefusal>> {
        let word = match self.known_word() {
            Ok(word) => word,
            Err(refused) => return Ok(Err(refused)),
        };
        let bytes = match read_body(body, self.house.executor_limits).await {
            Ok(bytes) => bytes,
            Err(refused) => return Ok(Err(refused)),
        };
        let work = async {
            match word {
                AdminEndpoint::Registry | AdminEndpoint::Remove => {
                    self.registry(pass, word, &bytes).await
                }
                AdminEndpoint::Callback => self.callback(pass, &bytes).await,
            }
        };
        tokio::time::timeout(PATIENCE, work).await?
    }

    fn known_word(&self) -> Result<AdminEndpoint, AdminApiRefusal> {
        if self.method != Method::POST {
            return Err(AdminApiRefusal::Method);
        }
        match self.word {
            "registry" => Ok(AdminEndpoint::Registry),
            "registryRemove" => Ok(AdminEndpoint::Remove),
            "callback" => Ok(AdminEndpoint::Callback),
            _ => Err(AdminApiRefusal::Path),
        }
    }

    async fn registry(
        &self,
        pass: &VerifiedToken,
        word: AdminEndpoint,
        bytes: &[u8],
    ) -> Result<Result<(), AdminApiRefusal>> {
        let registry: Registry = match serde_json::from_slice(bytes) {
            Ok(registry) => registry,
            Err(error) => return Ok(Err(unreadable(&error))),
        };
        if registry.registry_group != EXECUTOR_GROUP {
            let message = format!("registryGroup is not {EXECUTOR_GROUP}");
            return Ok(Err(AdminApiRefusal::Unreadable(message)));
        }
        let (key, value) = (registry.registry_key.as_str(), registry.registry_value.as_str());
        match word {
            AdminEndpoint::Remove => self.house.executors.remove(pass, key, value, self.peer).await,
            AdminEndpoint::Registry | AdminEndpoint::Callback => {
                self.house.executors.register(pass, key, value, self.peer).await
            }
        }
    }

    async fn callback(
        &self,
        pass: &VerifiedToken,
        bytes: &[u8],
    ) -> Result<Result<(), AdminApiRefusal>> {
        let items = match read_callbacks(bytes) {
            Ok(items) => items,
            Err(error) => return Ok(Err(unreadable(&error))),
        };
        if items.len() > ENDS_MAX {
            return Ok(Err(AdminApiRefusal::TooMany(items.len(), ENDS_MAX)));
        }
        let ends = items.into_iter().map(|item| ReportedRunEnd {
            log_id: LogId(item.log_id),
            code: item.handle_code,
            msg: item.handle_msg,
        });
        self.house.executors.callback(pass, ends.collect()).await
    }
}

/// The endpoints for executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdminEndpoint {
    Registry,
    Remove,
    Callback,
}

async fn read_body(body: Body, limits: AdminRequestLimits) -> Result<Bytes, AdminApiRefusal> {
    match tokio::time::timeout(limits.patience, to_bytes(body, limits.body)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(AdminApiRefusal::TooLong(limits.body)),
        Err(_) => Err(AdminApiRefusal::TooSlow),
    }
}

/// The parser's message may repeat what was sent; a position is sufficient.
fn unreadable(error: &serde_json::Error) -> AdminApiRefusal {
    AdminApiRefusal::Unreadable(format!("line {}, column {}", error.line(), error.column()))
}
