//! Metrics of retention: removed rows, and the last pass.

use super::{Counters, Meter, Seconds, add_metric, seconds};
use crate::domain::time::Millis;
use crate::store::retention::ByTable;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(super) struct RetentionMetrics {
    removed: Counters<1>,
    passes: Counter,
    last_pass: Seconds,
    last_failure: Seconds,
}

impl RetentionMetrics {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            removed: add_metric(
                to,
                "retention_rows_removed",
                "Old rows that were removed, by table",
                Family::default(),
            ),
            passes: add_metric(
                to,
                "retention_passes",
                "Passes of retention that came to their end",
                Counter::default(),
            ),
            last_pass: add_metric(
                to,
                "retention_last_pass_seconds",
                "When retention came to its end last, in seconds since 1970; 0: never here",
                Gauge::default(),
            ),
            last_failure: add_metric(
                to,
                "retention_last_failure_seconds",
                "When retention failed last, in seconds since 1970; 0: never here",
                Gauge::default(),
            ),
        }
    }
}

impl Meter {
    /// Counts removed rows.
    pub fn retention_removed(&self, rows: &ByTable) {
        for (table, n) in rows {
            self.retention.removed.get_or_create(&[("table", table)]).inc_by(*n);
        }
    }

    /// Notes that a pass has ended.
    pub fn retention_passed(&self, now: Millis) {
        self.retention.passes.inc();
        self.retention.last_pass.set(seconds(now.0));
    }

    /// Notes that a pass has failed and starts over.
    pub fn retention_failed(&self, now: Millis) {
        self.retention.last_failure.set(seconds(now.0));
    }
}
