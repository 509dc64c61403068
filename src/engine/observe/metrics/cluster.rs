//! What this process knows of itself and the others as members of a cluster.

use super::{Counters, Seconds, put};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(super) struct Cluster {
    pub(super) renewals_failed: Counter,
    pub(super) fences: Counter,
    pub(super) beats_failed: Counters<1>,
    pub(super) nodes: Gauge,
    pub(super) skew: Seconds,
    pub(super) uncertainty: Seconds,
}

impl Cluster {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            renewals_failed: put(
                to,
                "lease_renewals_failed",
                "Renewals of this process's lease that failed",
                Counter::default(),
            ),
            fences: put(
                to,
                "fences",
                "Times that all that ran here was stopped for want of a lease",
                Counter::default(),
            ),
            beats_failed: put(
                to,
                "beats_failed",
                "Turns of a loop that failed and were tried again",
                Family::default(),
            ),
            nodes: put(
                to,
                "nodes_alive",
                "Processes whose lease held when this one renewed its own last",
                Gauge::default(),
            ),
            skew: put(
                to,
                "clock_skew_seconds",
                "How far the database's clock is ahead of this machine's",
                Gauge::default(),
            ),
            uncertainty: put(
                to,
                "clock_skew_uncertainty_seconds",
                "Half of the round trip in which the skew was measured",
                Gauge::default(),
            ),
        }
    }
}
