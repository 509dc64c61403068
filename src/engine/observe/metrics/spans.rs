//! Metrics of trace spans.

use super::{Counters, Meter, add_metric};
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub(super) struct SpanMetrics {
    spans: Counters<1>,
}

impl SpanMetrics {
    pub(super) fn register(to: &mut Registry) -> Self {
        let about = "Spans for the collector of traces, by what became of them: sent, dropped";
        Self { spans: add_metric(to, "trace_spans", about, Family::default()) }
    }
}

impl Meter {
    /// Counts spans that were `sent` or `dropped`.
    pub fn spans(&self, result: &'static str, count: usize) {
        let n = u64::try_from(count).unwrap_or(u64::MAX);
        self.spans.spans.get_or_create(&[("result", result)]).inc_by(n);
    }
}
