//! Encodes spans as OTLP: one request, in protobuf.

use crate::domain::batch::span::{Span, SpanAttribute, SpanOutcome};
use crate::domain::time::Millis;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self, ResourceSpans, ScopeSpans, Status};
use prost::Message as _;

/// The flag "sampled" of W3C Trace Context.
const SAMPLED: u32 = 1;

/// The body of a request with these spans.
pub(super) fn request(service: &str, node: &str, spans: &[Span]) -> Vec<u8> {
    let word =
        |key: &'static str, text: &str| encode_fact(key, SpanAttribute::Word(text.to_owned()));
    let resource = Resource {
        attributes: vec![
            word("service.name", service),
            word("service.version", env!("CARGO_PKG_VERSION")),
            word("service.instance.id", node),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "procession".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = spans.iter().map(encode_span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let whole = ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![whole] }.encode_to_vec()
}

fn encode_span(span: &Span) -> v1::Span {
    let status = match span.went {
        SpanOutcome::Well => Status { code: StatusCode::Ok.into(), message: String::new() },
        SpanOutcome::Badly(word) => {
            Status { code: StatusCode::Error.into(), message: word.to_owned() }
        }
    };
    v1::Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span.parent.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        flags: SAMPLED,
        name: span.name.clone(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end.max(span.start)),
        attributes: span.facts.iter().map(|(key, said)| encode_fact(key, said.clone())).collect(),
        status: Some(status),
        ..v1::Span::default()
    }
}

fn encode_fact(key: &'static str, said: SpanAttribute) -> KeyValue {
    let value = match said {
        SpanAttribute::Word(text) => Value::StringValue(text),
        SpanAttribute::Number(number) => Value::IntValue(number),
    };
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn nanos(at: Millis) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000_000)
}
