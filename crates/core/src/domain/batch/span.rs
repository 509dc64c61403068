//! Trace spans of a batch and of attempts of its jobs. Derived from stored facts, never from a
//! running timer: another process computes the same spans with the same ids.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::JobDef;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use ring::digest::{SHA256, digest};

/// Trace id of a batch: the same in every process, and different in every installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Span id within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// Outcome of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOutcome {
    /// Success.
    Well,
    /// Failure, with the word of its status.
    Badly(&'static str),
}

/// Value of a span attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanAttribute {
    /// A word.
    Word(String),
    /// A number.
    Number(i64),
}

/// A completed span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The batch's trace.
    pub trace: TraceId,
    /// Span id.
    pub id: SpanId,
    /// Parent span; none for the batch.
    pub parent: Option<SpanId>,
    /// The job's code, or the batch's group: low cardinality, as tracing backends expect of names.
    pub name: String,
    /// When it began.
    pub start: Millis,
    /// When it ended.
    pub end: Millis,
    /// Outcome.
    pub went: SpanOutcome,
    /// Further attributes. No parameter, no message, nothing that could contain a secret.
    pub facts: Vec<(&'static str, SpanAttribute)>,
}

/// A completed attempt of a job, from its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryEnd {
    /// Row of the job.
    pub queue_id: QueueId,
    /// Attempt number.
    pub attempt: u32,
    /// State after the attempt.
    pub status: QueueStatus,
    /// When the try began.
    pub start: Millis,
    /// When it ended.
    pub end: Millis,
}

impl TraceId {
    /// Trace id of a batch of this installation. A batch number that is reused after the old batch
    /// was removed has another opening time.
    pub fn for_batch(installation: &str, batch: BatchId, opened: Millis) -> Self {
        Self(hash(&[installation.as_bytes(), &batch.0.to_be_bytes(), &opened.0.to_be_bytes()]))
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl SpanId {
    /// Span id of the batch itself.
    pub fn of_batch(trace: TraceId) -> Self {
        Self(hash(&[&trace.0, b"batch"]))
    }

    /// Span id of one attempt.
    pub fn of_try(trace: TraceId, row: QueueId, attempt: u32) -> Self {
        Self(hash(&[&trace.0, &row.0.to_be_bytes(), &attempt.to_be_bytes()]))
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }
}

/// The first bytes of a SHA-256 over the parts, each preceded by its length.
fn hash<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.len().to_be_bytes());
        all.extend(*part);
    }
    let mut first = [0; N];
    first.copy_from_slice(&digest(&SHA256, &all).as_ref()[..N]);
    first
}

/// The header `traceparent` of W3C Trace Context, sent with an attempt's calls so that they
/// continue this trace.
pub fn traceparent(trace: TraceId, span: SpanId) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    format!("00-{}-{}-01", hex(&trace.0), hex(&span.0))
}

/// The span of a batch that has ended.
pub fn of_batch(installation: &str, batch: &Batch, status: BatchStatus, end: Millis) -> Span {
    let trace = TraceId::for_batch(installation, batch.batch_id, batch.create_time);
    let mut facts = about(batch);
    facts.push(("procession.status", SpanAttribute::Word(status.as_str().to_owned())));
    facts.extend(
        batch.batch_type.clone().map(|t| ("procession.batch_type", SpanAttribute::Word(t))),
    );
    Span {
        trace,
        id: SpanId::of_batch(trace),
        parent: None,
        name: format!("batch {}", batch.values.group),
        start: batch.create_time,
        end,
        went: match status.is_success() {
            true => SpanOutcome::Well,
            false => SpanOutcome::Badly(status.as_str()),
        },
        facts,
    }
}

/// The span of an attempt that has ended.
pub fn of_try(installation: &str, batch: &Batch, job: &JobDef, ended: TryEnd) -> Span {
    let trace = TraceId::for_batch(installation, batch.batch_id, batch.create_time);
    let mut facts = about(batch);
    facts.extend([
        ("procession.job_code", SpanAttribute::Word(job.code.to_string())),
        ("procession.job_type", SpanAttribute::Word(job.job_type.to_string())),
        ("procession.status", SpanAttribute::Word(ended.status.as_str().to_owned())),
        ("procession.attempt", SpanAttribute::Number(ended.attempt.into())),
        ("procession.queue_id", SpanAttribute::Number(ended.queue_id.0)),
    ]);
    Span {
        trace,
        id: SpanId::of_try(trace, ended.queue_id, ended.attempt),
        parent: Some(SpanId::of_batch(trace)),
        name: job.code.to_string(),
        start: ended.start,
        end: ended.end,
        went: span_outcome(ended.status),
        facts,
    }
}

/// A retried attempt counts as a failure: that is what users look for in a trace.
fn span_outcome(status: QueueStatus) -> SpanOutcome {
    match status {
        QueueStatus::Success
        | QueueStatus::Warning
        | QueueStatus::Forced
        | QueueStatus::Skipped
        | QueueStatus::NotTaken => SpanOutcome::Well,
        QueueStatus::Pending
        | QueueStatus::Queued
        | QueueStatus::Running
        | QueueStatus::Killing
        | QueueStatus::RetryWait
        | QueueStatus::Held
        | QueueStatus::Failed
        | QueueStatus::Timeout
        | QueueStatus::Killed
        | QueueStatus::UpstreamFailed
        | QueueStatus::Unknown => SpanOutcome::Badly(status.as_str()),
    }
}

fn about(batch: &Batch) -> Vec<(&'static str, SpanAttribute)> {
    let values = &batch.values;
    let mut facts = vec![
        ("procession.group", SpanAttribute::Word(values.group.to_string())),
        ("procession.batch_no", SpanAttribute::Word(values.batch_no.to_string())),
    ];
    let day = values.business_date;
    facts.extend(day.map(|day| ("procession.business_date", SpanAttribute::Word(day.to_string()))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_for_every_process_and_differ_for_all_else() {
        let of = |home: &str, batch, at| TraceId::for_batch(home, BatchId(batch), Millis(at));
        assert_eq!(of("a", 1, 5), of("a", 1, 5));
        let all = [of("a", 1, 5), of("b", 1, 5), of("a", 2, 5), of("a", 1, 6)];
        let trace = all[0];
        let spans = [
            SpanId::of_batch(trace),
            SpanId::of_try(trace, QueueId(1), 1),
            SpanId::of_try(trace, QueueId(1), 2),
            SpanId::of_try(trace, QueueId(2), 1),
            SpanId::of_try(all[1], QueueId(1), 1),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        for (i, a) in spans.iter().enumerate() {
            assert!(spans[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn a_traceparent_is_as_w3c_wants_it() {
        let text = traceparent(TraceId([0xab; 16]), SpanId([1; 8]));
        assert_eq!(text, "00-abababababababababababababababab-0101010101010101-01");
    }
}
