//! Metrics of the cluster membership of this process.

use super::{Counters, Seconds, add_metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(super) struct ClusterMetrics {
    pub(super) renewals_failed: Counter,
    pub(super) fences: Counter,
    pub(super) beats_failed: Counters<1>,
    pub(super) nodes: Gauge,
    pub(super) skew: Seconds,
    pub(super) uncertainty: Seconds,
}

impl ClusterMetrics {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            renewals_failed: add_metric(
                to,
                "lease_renewals_failed",
                "Renewals of this process's lease that failed",
                Counter::default(),
            ),
            fences: add_metric(
                to,
                "fences",
                "Times that all that ran here was stopped for want of a lease",
                Counter::default(),
            ),
            beats_failed: add_metric(
                to,
                "beats_failed",
                "Turns of a loop that failed and were tried again",
                Family::default(),
            ),
            nodes: add_metric(
                to,
                "nodes_alive",
                "Processes whose lease held when this one renewed its own last",
                Gauge::default(),
            ),
            skew: add_metric(
                to,
                "clock_skew_seconds",
                "How far the database's clock is ahead of this machine's",
                Gauge::default(),
            ),
            uncertainty: add_metric(
                to,
                "clock_skew_uncertainty_seconds",
                "Half of the round trip in which the skew was measured",
                Gauge::default(),
            ),
        }
    }
}
