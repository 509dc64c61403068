//! A collector of traces: an HTTP server of this test's own, which answers as it is told.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::sync::{Arc, Mutex};

/// What it got, and how it answers first.
#[derive(Clone, Default)]
struct Got {
    requests: Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>,
    refusals: Arc<Mutex<Vec<StatusCode>>>,
}

/// A collector that listens until it is dropped.
pub(crate) struct Collector {
    /// Where.
    pub(crate) endpoint: String,
    got: Got,
    runtime: tokio::runtime::Runtime,
}

impl Collector {
    /// One that answers its first requests with these refusals.
    pub(crate) fn open(refusals: &[StatusCode]) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
        let got = Got::default();
        *got.refusals.lock().expect("lock") = refusals.to_vec();
        let app = Router::new().route("/v1/traces", post(take)).with_state(got.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { endpoint: format!("http://{address}/v1/traces"), got, runtime }
    }

    /// All spans that were taken, and what was said of the process that sent them.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let got = self.got.requests.lock().expect("lock");
        let all = got.iter().flat_map(|(_, request)| &request.resource_spans);
        all.flat_map(|r| &r.scope_spans).flat_map(|s| s.spans.clone()).collect()
    }

    /// Headers of the requests, and `service.name` of each.
    pub(crate) fn senders(&self) -> Vec<(HeaderMap, String)> {
        let got = self.got.requests.lock().expect("lock");
        let service = |request: &ExportTraceServiceRequest| {
            let resource = request.resource_spans[0].resource.clone().expect("a resource");
            let named = resource.attributes.iter().find(|a| a.key == "service.name");
            text(named.and_then(|a| a.value.clone()).and_then(|v| v.value))
        };
        got.iter().map(|(headers, request)| (headers.clone(), service(request))).collect()
    }

    /// Closes it.
    pub(crate) fn close(self) {
        self.runtime.shutdown_background();
    }
}

async fn take(State(got): State<Got>, headers: HeaderMap, body: Bytes) -> StatusCode {
    if let Some(refusal) = got.refusals.lock().expect("lock").pop() {
        return refusal;
    }
    match ExportTraceServiceRequest::decode(body) {
        Ok(request) => got.requests.lock().expect("lock").push((headers, request)),
        Err(_) => return StatusCode::BAD_REQUEST,
    }
    StatusCode::OK
}

/// A value in words.
pub(crate) fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}
