//! Traces of real batches, taken by a collector.

use crate::ops::collector::{Collector, text};
use crate::ops::program::{procession, said, write};
use axum::http::StatusCode;
use opentelemetry_proto::tonic::trace::v1::Span;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

const DEFINITION: &str = r#"
groups: { traced: { name: Traced } }
defaults: { group: traced, type: SCRIPT, interpreter: sh, timeout_sec: 30, idempotent: true }
jobs:
  LOAD: { script: 'echo "parent $TRACEPARENT secret-of-the-body"' }
  CHECK: { depends_on: [LOAD], retry_count: 1, script: 'test -e mended' }
"#;

fn settings(endpoint: &str) -> String {
    format!("[trace]\nendpoint = \"{endpoint}\"\nservice = \"close\"\n")
}

fn fact(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|a| a.key == format!("procession.{key}"));
    text(found.and_then(|a| a.value.clone()).and_then(|v| v.value))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn run(dir: &Path, more: &[&str]) -> (bool, String) {
    let mut command = procession(dir);
    let output = command.args(["run", "d.yaml", "--batch-no", "202407"]).args(more).output();
    let output = output.expect("it runs");
    (output.status.success(), said(&output))
}

#[test]
fn a_batch_is_one_trace_over_processes_and_a_try_is_a_span() {
    let dir = tempfile::tempdir().expect("folder");
    // The first request is refused for now and comes again.
    let collector = Collector::open(&[StatusCode::SERVICE_UNAVAILABLE]);
    write(dir.path(), "d.yaml", &DEFINITION.replace("mended", "/nonexistent/x"));
    write(dir.path(), "procession.toml", &settings(&collector.endpoint));
    let (is_well, words) = run(dir.path(), &[]);
    assert!(!is_well && words.contains("FAILED"), "{words}");
    // Mended, and gone on with by another process.
    write(dir.path(), "d.yaml", &DEFINITION.replace("test -e mended", "true"));
    let (is_well, words) = run(dir.path(), &["--resume", "--latest"]);
    assert!(is_well, "{words}");

    let spans = collector.spans();
    let traces: BTreeSet<_> = spans.iter().map(|s| s.trace_id.clone()).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let tries: Vec<_> = spans.iter().filter(|s| !s.parent_span_id.is_empty()).collect();
    let ids: BTreeSet<_> = tries.iter().map(|s| &s.span_id).collect();
    assert_eq!(ids.len(), tries.len(), "each try has a span of its own");
    let told: Vec<_> = tries
        .iter()
        .map(|s| (s.name.as_str(), fact(s, "attempt"), fact(s, "status"), s.status.clone()))
        .map(|(name, attempt, status, said)| (name, attempt, status, said.expect("status").code))
        .collect();
    let (ok, error) = (1, 2);
    let wanted = [
        ("LOAD", "1", "SUCCESS", ok),
        ("CHECK", "1", "RETRY_WAIT", error),
        ("CHECK", "2", "FAILED", error),
        ("CHECK", "3", "SUCCESS", ok),
    ];
    let wanted = wanted.map(|(name, n, s, code)| (name, n.to_owned(), s.to_owned(), code));
    assert_eq!(told, wanted);

    // The batch ended twice: the same span, with the later end.
    let batches: Vec<_> = spans.iter().filter(|s| s.parent_span_id.is_empty()).collect();
    assert_eq!(batches.len(), 2, "{spans:#?}");
    assert_eq!(batches[0].span_id, batches[1].span_id);
    let statuses: Vec<_> = batches.iter().map(|s| fact(s, "status")).collect();
    assert_eq!(statuses, ["FAILED", "SUCCESS"]);
    for span in &spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert!(span.start_time_unix_nano >= batches[0].start_time_unix_nano, "{span:?}");
        assert_eq!(
            (fact(span, "batch_no").as_str(), fact(span, "group").as_str()),
            ("202407", "traced")
        );
        assert!(!format!("{span:?}").contains("secret-of-the-body"), "{span:?}");
    }
    assert!(tries.iter().all(|s| s.parent_span_id == batches[0].span_id));
    assert!(collector.senders().iter().all(|(_, service)| service == "close"));

    // What the body was given is its own span.
    let logs = procession(dir.path()).args(["logs", "202407", "LOAD"]).output().expect("it runs");
    let parent = format!("00-{}-{}-01", hex(&tries[0].trace_id), hex(&tries[0].span_id));
    assert!(said(&logs).contains(&parent), "{parent} is not in {}", said(&logs));
    collector.close();
}

#[test]
fn a_collector_that_is_away_or_refuses_holds_nothing_up() {
    let dir = tempfile::tempdir().expect("folder");
    write(dir.path(), "d.yaml", &DEFINITION.replace("test -e mended", "true"));
    // Nobody listens on port 9 of this machine.
    write(dir.path(), "procession.toml", &settings("http://127.0.0.1:9/v1/traces"));
    let begun = Instant::now();
    let (is_well, words) = run(dir.path(), &[]);
    assert!(is_well, "{words}");
    assert!(words.contains("could not be sent in time"), "{words}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());

    let collector = Collector::open(&[StatusCode::UNAUTHORIZED]);
    let dir = tempfile::tempdir().expect("folder");
    write(dir.path(), "d.yaml", &DEFINITION.replace("test -e mended", "true"));
    write(dir.path(), "procession.toml", &settings(&collector.endpoint));
    let (is_well, words) = run(dir.path(), &[]);
    assert!(is_well && words.contains("answered 401"), "{words}");
    collector.close();
}

#[test]
fn headers_come_from_the_environment_and_nothing_is_traced_by_default() {
    let dir = tempfile::tempdir().expect("folder");
    let collector = Collector::open(&[]);
    write(dir.path(), "d.yaml", &DEFINITION.replace("test -e mended", "true"));
    let (is_well, words) = run(dir.path(), &[]);
    assert!(is_well, "{words}");
    let logs = procession(dir.path()).args(["logs", "202407", "LOAD"]).output().expect("it runs");
    assert!(said(&logs).contains("parent  secret"), "no TRACEPARENT: {}", said(&logs));

    write(dir.path(), "procession.toml", &settings(&collector.endpoint));
    let mut command = procession(dir.path());
    command.env("PROCESSION_TRACE_HEADERS", "authorization=Bearer t0ken, x-scope=close");
    let output = command.args(["run", "d.yaml", "--batch-no", "202408"]).output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let (headers, _) = collector.senders().pop().expect("a request");
    assert_eq!(headers["authorization"], "Bearer t0ken");
    assert_eq!(headers["x-scope"], "close");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    collector.close();
}
