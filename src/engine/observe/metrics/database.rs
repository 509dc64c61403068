//! What the door to the database has counted.

use super::{put, set};
use crate::store::Counts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;

pub(super) struct Database {
    statements: Counter,
    errors: Counter,
    losses: Counter,
    used: Gauge,
    idle: Gauge,
}

impl Database {
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            statements: put(
                to,
                "database_statements",
                "Statements sent to the metadata database, BEGIN and COMMIT among them",
                Counter::default(),
            ),
            errors: put(
                to,
                "database_errors",
                "Statements of the metadata database that failed or had no answer",
                Counter::default(),
            ),
            losses: put(
                to,
                "database_losses",
                "Times that connections to the metadata database were found lost",
                Counter::default(),
            ),
            used: put(
                to,
                "database_connections_used",
                "Connections to the metadata database that are in use",
                Gauge::default(),
            ),
            idle: put(
                to,
                "database_connections_idle",
                "Connections to the metadata database that wait to be used",
                Gauge::default(),
            ),
        }
    }

    /// The door counts; here it is only shown.
    pub(super) fn set(&self, now: &Counts) {
        self.statements.inner().store(now.statements, Ordering::Relaxed);
        self.errors.inner().store(now.errors, Ordering::Relaxed);
        self.losses.inner().store(now.losses, Ordering::Relaxed);
        set(&self.used, now.used);
        set(&self.idle, now.idle);
    }
}
