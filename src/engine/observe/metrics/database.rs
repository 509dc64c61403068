//! Metrics of database access, from the counters of `db`.

use super::{add_metric, set_gauge};
use crate::store::Counts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;

pub(super) struct DatabaseMetrics {
    statements: Counter,
    errors: Counter,
    losses: Counter,
    used: Gauge,
    idle: Gauge,
}

impl DatabaseMetrics {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            statements: add_metric(
                to,
                "database_statements",
                "Statements sent to the metadata database, BEGIN and COMMIT among them",
                Counter::default(),
            ),
            errors: add_metric(
                to,
                "database_errors",
                "Statements of the metadata database that failed or had no answer",
                Counter::default(),
            ),
            losses: add_metric(
                to,
                "database_losses",
                "Times that connections to the metadata database were found lost",
                Counter::default(),
            ),
            used: add_metric(
                to,
                "database_connections_used",
                "Connections to the metadata database that are in use",
                Gauge::default(),
            ),
            idle: add_metric(
                to,
                "database_connections_idle",
                "Connections to the metadata database that wait to be used",
                Gauge::default(),
            ),
        }
    }

    /// Copies the counters.
    pub(super) fn set(&self, now: &Counts) {
        self.statements.inner().store(now.statements, Ordering::Relaxed);
        self.errors.inner().store(now.errors, Ordering::Relaxed);
        self.losses.inner().store(now.losses, Ordering::Relaxed);
        set_gauge(&self.used, now.used);
        set_gauge(&self.idle, now.idle);
    }
}
