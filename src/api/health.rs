//! `/healthz`, `/readyz`, `/metrics`, and the description of the API.

use crate::api::state::ApiState;
use crate::engine::cluster::health::HealthReason;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;

/// The media type that Prometheus accepts since its version 2.5.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Liveness: 500 when a loop of this process does not run, so that the supervisor restarts the
/// process.
pub(super) async fn alive(State(house): State<Arc<ApiState>>, headers: HeaderMap) -> Response {
    reasons_response(&house.vitals.alive(), StatusCode::INTERNAL_SERVER_ERROR, &headers)
}

/// Readiness: 503 when this process cannot do its work now. A restart would not help.
pub(super) async fn ready(State(house): State<Arc<ApiState>>, headers: HeaderMap) -> Response {
    reasons_response(&house.vitals.ready().await, StatusCode::SERVICE_UNAVAILABLE, &headers)
}

pub(super) async fn metrics(State(house): State<Arc<ApiState>>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], house.vitals.metrics()).into_response()
}

/// The API description, for programs; it reveals nothing of the stored data.
pub(super) async fn described(State(house): State<Arc<ApiState>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], house.described.to_string()).into_response()
}

/// The reasons, as JSON for clients that accept it and as lines for others.
fn reasons_response(
    reasons: &[HealthReason],
    otherwise: StatusCode,
    headers: &HeaderMap,
) -> Response {
    let ok = reasons.iter().all(|reason| reason.ok);
    let status = if ok { StatusCode::OK } else { otherwise };
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let wants_json = accepts.flat_map(|value| value.split(',')).any(is_json);
    if wants_json {
        return (status, [(CONTENT_TYPE, "application/json")], as_json(ok, reasons))
            .into_response();
    }
    (status, as_text(ok, reasons)).into_response()
}

fn is_json(accepted: &str) -> bool {
    accepted.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
}

fn as_json(ok: bool, reasons: &[HealthReason]) -> String {
    let is_degraded = reasons.iter().any(|reason| reason.is_degraded);
    let reasons: Vec<_> =
        reasons.iter().map(|r| json!({ "name": r.name, "ok": r.ok, "degraded": r.is_degraded, "detail": r.detail })).collect();
    json!({ "ok": ok, "degraded": is_degraded, "reasons": reasons }).to_string()
}

fn as_text(ok: bool, reasons: &[HealthReason]) -> String {
    let is_degraded = reasons.iter().any(|reason| reason.is_degraded);
    let first = match (ok, is_degraded) {
        (true, false) => "ok",
        (true, true) => "ok, degraded",
        (false, _) => "not ok",
    };
    let mut text = format!("{first}\n");
    for reason in reasons {
        let word = match (reason.ok, reason.is_degraded) {
            (true, false) => "ok",
            (true, true) => "LOOK",
            (false, _) => "NOT OK",
        };
        writeln!(text, "{:<12} {word:<6} {}", reason.name, reason.detail)
            .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_reason_is_enough() {
        let reason =
            |ok| HealthReason { name: "lease", ok, is_degraded: false, detail: "held".to_owned() };
        let status = |reasons: &[HealthReason]| {
            reasons_response(reasons, StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new()).status()
        };
        assert_eq!(status(&[reason(true), reason(true)]), StatusCode::OK);
        assert_eq!(status(&[reason(true), reason(false)]), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(as_text(false, &[reason(false)]), "not ok\nlease        NOT OK held\n");
        assert_eq!(
            as_json(true, &[reason(true)]),
            r#"{"degraded":false,"ok":true,"reasons":[{"degraded":false,"detail":"held","name":"lease","ok":true}]}"#
        );
        let degraded = HealthReason { is_degraded: true, ..reason(true) };
        assert_eq!(status(std::slice::from_ref(&degraded)), StatusCode::OK);
        assert_eq!(as_text(true, &[degraded]), "ok, degraded\nlease        LOOK   held\n");
    }

    #[test]
    fn json_is_for_those_who_accept_it() {
        for (accepted, wanted) in [
            ("application/json", true),
            (" application/json;q=0.9", true),
            ("*/*", false),
            ("text/html", false),
            ("application/jsonp", false),
        ] {
            assert_eq!(is_json(accepted), wanted, "{accepted}");
        }
    }
}
