//! Traces: what is committed becomes spans, which a task of its own sends, many at a time. Whoever dispatches
//! never waits for it: when the collector is away or slow, spans are dropped, and counted.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::dag::Node as Place;
use crate::domain::id::BatchId;
use crate::domain::span::{self, Span, SpanId, TraceId, TryEnd};
use crate::domain::time::Millis;
use crate::engine::attempt::run::{Job, Surroundings};
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::engine::observe::metrics::Meter;
use crate::trace::{Exporter, NotTaken};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Spans that may wait; more are dropped.
const WAITING_MOST: usize = 16_384;
/// Spans of one request, at most.
const TOGETHER_MOST: usize = 512;
/// How long a span waits for company.
const COMPANY: Duration = Duration::from_secs(1);
/// Tries of one request, further and further apart: 1, 2, 4 and 8 s.
const TRIES: u32 = 5;
/// How long a process that ends waits for its last spans to go.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A try that has ended, and where memory has its job.
pub(in crate::engine) type Ended = (BatchId, Place, TryEnd);

/// Where spans go; nowhere when nobody wants them.
#[derive(Default)]
pub(in crate::engine) struct Traces {
    to: Option<mpsc::Sender<Span>>,
    /// Until somebody lets it run.
    tracer: Option<Tracer>,
}

/// Sends spans.
pub struct Tracer {
    spans: mpsc::Receiver<Span>,
    exporter: Exporter,
    meter: Arc<Meter>,
}

impl Active {
    /// The try of a row that has just ended, for its span.
    pub(in crate::engine) fn note_end(&self, place: Place, changes: &mut Changes, now: Millis) {
        let row = self.row(place);
        let ended = TryEnd {
            queue_id: row.queue_id,
            attempt: row.attempt,
            status: row.status,
            start: row.start_time.unwrap_or(now),
            end: row.end_time.unwrap_or(now),
        };
        changes.ended.push((self.batch.batch_id, place, ended));
    }
}

impl QueueDispatcher {
    /// From now on spans are made, if there is somewhere to send them to.
    pub fn trace_to(&mut self, exporter: Option<Exporter>) {
        let Some(exporter) = exporter else { return };
        let (sender, spans) = mpsc::channel(WAITING_MOST);
        let tracer = Tracer { spans, exporter, meter: self.meter.clone() };
        self.traces = Traces { to: Some(sender), tracer: Some(tracer) };
        self.around.traced.store(true, Ordering::Relaxed);
    }

    /// What sends them, to be run beside this dispatcher; there is one, once.
    pub fn tracer(&mut self) -> Option<Tracer> {
        self.traces.tracer.take()
    }

    /// What is committed becomes spans.
    pub(in crate::engine) fn trace(
        &self,
        ended: &[Ended],
        finished: &[(Batch, BatchStatus)],
        now: Millis,
    ) {
        let Some(sender) = &self.traces.to else { return };
        let home = self.node.installation();
        let tries = ended.iter().filter_map(|(id, place, ended)| {
            let active = self.active.get(id)?;
            Some(span::of_try(home, &active.batch, active.job(*place), *ended))
        });
        let batches =
            finished.iter().map(|(batch, status)| span::of_batch(home, batch, *status, now));
        let dropped = tries.chain(batches).filter_map(|span| sender.try_send(span).err()).count();
        if dropped > 0 {
            self.meter.spans("dropped", dropped);
        }
    }
}

/// The header `traceparent` for what a try calls; none when nothing is traced.
pub(in crate::engine) fn traceparent(job: &Job, around: &Surroundings) -> Option<String> {
    around.traced.load(Ordering::Relaxed).then(|| {
        let batch = &job.batch;
        let trace = TraceId::of(&around.installation, batch.batch_id, batch.create_time);
        span::traceparent(trace, SpanId::of_try(trace, job.queue_id, job.attempt))
    })
}

impl Tracer {
    /// Sends what comes until the dispatcher is gone; what is left has five seconds from `done` on.
    pub async fn run(mut self, done: CancellationToken) {
        let too_long = async {
            done.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            () = self.send_all() => {}
            () = too_long => tracing::warn!("the last spans could not be sent in time; they are lost"),
        }
    }

    async fn send_all(&mut self) {
        while let Some(first) = self.spans.recv().await {
            let mut spans = vec![first];
            let company = tokio::time::sleep(COMPANY);
            tokio::pin!(company);
            while spans.len() < TOGETHER_MOST {
                tokio::select! {
                    next = self.spans.recv() => match next {
                        Some(span) => spans.push(span),
                        None => break,
                    },
                    () = &mut company => break,
                }
            }
            self.send(&spans).await;
        }
    }

    async fn send(&self, spans: &[Span]) {
        let mut pause = Duration::from_secs(1);
        for tried in 1..=TRIES {
            match self.exporter.send(spans).await {
                Ok(()) => {
                    self.meter.spans("sent", spans.len());
                    return;
                }
                Err(NotTaken::Later(why)) if tried < TRIES => {
                    tracing::debug!(%why, "spans were not taken; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(NotTaken::Later(why) | NotTaken::Never(why)) => {
                    tracing::warn!(%why, "{} spans were not taken and are dropped", spans.len());
                    self.meter.spans("dropped", spans.len());
                    return;
                }
            }
        }
    }
}
