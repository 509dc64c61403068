//! Traces: a task of its own sends spans in groups. The dispatcher never waits for it: when the
//! collector is unavailable or slow, spans are dropped and counted.

use crate::domain::batch::span::Span;
use crate::engine::observe::metrics::Meter;
use crate::trace::{Exporter, TraceExportError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Capacity of the queue; further spans are dropped.
const WAITING_MOST: usize = 16_384;
/// Maximum number of spans per request.
const TOGETHER_MOST: usize = 512;
/// How long a span waits for others to be sent with it.
const COMPANY: Duration = Duration::from_secs(1);
/// Attempts per request, with growing pauses: 1, 2, 4 and 8 s.
const TRIES: u32 = 5;
/// How long a process that ends waits until its last spans are sent.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The queue of spans to send; closed when tracing is off.
#[derive(Default)]
pub(in crate::engine) struct TraceQueue {
    to: Option<mpsc::Sender<Span>>,
    /// The exporter until its task is started.
    tracer: Option<SpanExporter>,
}

/// Sends spans to a collector.
pub struct SpanExporter {
    spans: mpsc::Receiver<Span>,
    exporter: Exporter,
    meter: Arc<Meter>,
}

impl TraceQueue {
    /// A queue that sends to this collector.
    pub(in crate::engine) fn to_exporter(exporter: Exporter, meter: Arc<Meter>) -> Self {
        let (sender, spans) = mpsc::channel(WAITING_MOST);
        Self { to: Some(sender), tracer: Some(SpanExporter { spans, exporter, meter }) }
    }

    /// The task that sends the spans; returned once.
    pub(in crate::engine) fn take_tracer(&mut self) -> Option<SpanExporter> {
        self.tracer.take()
    }

    /// Whether tracing is on.
    pub(in crate::engine) fn is_on(&self) -> bool {
        self.to.is_some()
    }

    /// Queues spans without waiting; returns how many were dropped.
    pub(in crate::engine) fn send_spans(&self, spans: impl Iterator<Item = Span>) -> usize {
        let Some(sender) = &self.to else { return 0 };
        spans.filter_map(|span| sender.try_send(span).err()).count()
    }
}

impl SpanExporter {
    /// Sends spans until the dispatcher is gone; the rest must be sent within five seconds after
    /// `done`.
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
            self.export_spans(&spans).await;
        }
    }

    async fn export_spans(&self, spans: &[Span]) {
        let mut pause = Duration::from_secs(1);
        for tried in 1..=TRIES {
            match self.exporter.send_spans(spans).await {
                Ok(()) => {
                    self.meter.spans("sent", spans.len());
                    return;
                }
                Err(TraceExportError::Later(why)) if tried < TRIES => {
                    tracing::debug!(%why, "spans were not taken; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(TraceExportError::Later(why) | TraceExportError::Never(why)) => {
                    tracing::warn!(%why, "{} spans were not taken and are dropped", spans.len());
                    self.meter.spans("dropped", spans.len());
                    return;
                }
            }
        }
    }
}
