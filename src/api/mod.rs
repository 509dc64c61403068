//! api: the HTTP API. In: requests. Out: documents, pictures, the console, and the health and metrics of this process.
//! May name: domain, wire, definition, picture, store, engine, config, app, view. Never: SQL, a secret, a decision.
//! Invariant: a route that does not declare what it needs of its caller cannot be written; without
//! a login nothing but health is shown. `route` declares routes, `caller` identifies the caller,
//! one file per noun answers. `executor` is a separate API for an admin of XXL-JOB; `admin` is one
//! for its executors.

pub mod admin;
mod approvals;
mod audit;
mod authorize;
mod backfill_changes;
mod background_tasks;
mod batch_actions;
mod batch_control;
mod batch_dag;
mod batch_jobs;
mod batch_times;
mod batches;
mod calendar_changes;
mod calendars;
pub mod caller;
mod carry_out;
mod change_requests;
mod client_address;
mod connection;
mod connection_limit;
mod console;
mod console_bundle;
mod dashboard;
mod definitions;
mod denied_requests;
mod events;
pub mod executor;
mod executor_groups;
mod failures;
mod fire;
mod group_access;
mod groups;
mod health;
mod idempotency;
mod insights;
mod job_modes;
mod jobs;
mod listener;
mod maintenance;
mod nodes;
mod notice_changes;
mod oidc;
mod openapi;
mod outbox;
pub mod page;
mod params;
mod path_params;
pub mod problem;
mod read_limits;
mod refusal;
mod request_runtime;
mod response_cache;
mod response_encoding;
pub mod route;
mod runs;
mod schedule_changes;
mod schedules;
mod search;
mod second_factor;
mod second_person;
mod secret_route;
mod session;
mod sources;
pub mod state;
mod stream_access;
mod tls;
mod tokens;
mod uploaded_definition;
mod users;
mod versions;
mod watch;

pub use connection_limit::Peer;
pub use listener::{Attended, Door, Front, ListenerSetting, NoListener};
pub use state::ApiState;
pub use tls::ListenerTls;

use crate::api::client_address::{RequestOrigin, TransportSecurity};
use crate::api::denied_requests::{DeniedRequest, RequestCaller};
use crate::api::problem::Problem;
use crate::api::route::Noun;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get};
use serde_json::Value;
use std::sync::Arc;

/// All routes below `/api/v1`, by subject.
pub fn nouns() -> Vec<Noun> {
    vec![
        approvals::routes(),
        audit::routes(),
        backfill_changes::routes(),
        batch_actions::routes(),
        batch_dag::routes(),
        batch_control::routes(),
        batch_jobs::routes(),
        batch_times::routes(),
        batches::routes(),
        calendar_changes::routes(),
        calendars::routes(),
        change_requests::routes(),
        dashboard::routes(),
        definitions::routes(),
        events::routes(),
        executor_groups::routes(),
        failures::routes(),
        fire::routes(),
        groups::routes(),
        insights::routes(),
        job_modes::routes(),
        jobs::routes(),
        background_tasks::routes(),
        nodes::routes(),
        notice_changes::routes(),
        oidc::routes(),
        outbox::routes(),
        params::routes(),
        runs::routes(),
        schedule_changes::routes(),
        schedules::routes(),
        search::routes(),
        second_factor::routes(),
        session::routes(),
        sources::routes(),
        tokens::routes(),
        maintenance::routes(),
        users::routes(),
        versions::routes(),
    ]
}

/// The OpenAPI 3.1 description of the API.
pub fn description() -> Value {
    openapi::describe(&nouns())
}

/// The router of all requests.
pub fn router(house: Arc<ApiState>) -> Router {
    let mut api = Router::new();
    for route in nouns().into_iter().flat_map(|noun| noun.routes) {
        api = api.route(&format!("/api/v1{}", route.operation.path), route.service);
    }
    for path in admin::PATHS {
        api = api.route(path, any(admin::asked));
    }
    api.route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/api/v1/openapi.json", get(health::described))
        .route("/", get(console::serve_page))
        .route("/api", get(console::about_api))
        .route("/console/{*file}", get(console::serve_file))
        .method_not_allowed_fallback(async || {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Problem::new(status, "method", "this path has no such method; see /api/v1/openapi.json")
        })
        .fallback(async || Problem::not_found("such page; see /api/v1/openapi.json"))
        .layer(from_fn_with_state(house.clone(), guarded))
        .with_state(house)
}

/// The router of probes.
fn probe_router(house: Arc<ApiState>) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(async || Problem::not_found("such page; this address answers probes alone"))
        .layer(from_fn_with_state(house.clone(), guarded))
        .with_state(house)
}

/// The content security policy of our pages: nothing from elsewhere, nothing inline, no frames.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
                      frame-ancestors 'none'; form-action 'self'";

/// Adds the headers of every answer, including refusals.
async fn guarded(State(house): State<Arc<ApiState>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let way = RequestOrigin::from_parts(&parts, &house.doorway);
    let caller = RequestCaller::default();
    parts.extensions.insert(caller.clone());
    let route = parts.extensions.get::<MatchedPath>().cloned();
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let shows_token = parts.headers.contains_key(AUTHORIZATION);
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let status = response.status();
    if let Some(name) = caller.denied(status, shows_token) {
        // Limited separately, so that clients without an account cannot use up the records of
        // users.
        let record =
            if status == StatusCode::UNAUTHORIZED { &house.denied_tokens } else { &house.denied };
        let denied = DeniedRequest {
            caller: name,
            status,
            address: way.address.clone(),
            method: method.as_str(),
            route: route.as_ref().map_or(uri.path(), MatchedPath::as_str),
            path: uri.path(),
        };
        if let Err(error) = record.record(&house.app, denied).await {
            tracing::warn!(error = format!("{error:#}"), "a refusal is not on record");
        }
    }
    let transport = way.transport;
    let headers = response.headers_mut();
    if transport == TransportSecurity::Tls {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(STRICT_TRANSPORT_SECURITY, year);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let policy = HeaderName::from_static("content-security-policy");
    headers.insert(policy, HeaderValue::from_static(POLICY));
    response
}
