//! Metrics of the last verification of the audit log's hash chain.

use super::{Seconds, add_metric};
use crate::domain::time::Millis;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::{PoisonError, RwLock};

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditChainState {
    /// Whether the chain is broken.
    pub is_broken: bool,
    /// Records that match their seals.
    pub verified: u64,
    /// When the verification ended.
    pub at: Millis,
}

pub(super) struct AuditChain {
    broken: Gauge,
    verified_at: Seconds,
    last: RwLock<Option<AuditChainState>>,
}

impl AuditChain {
    pub(super) fn register(to: &mut Registry) -> Self {
        let help = "1 when the hash chain of the audit log did not hold when this process verified it last";
        let broken = add_metric(to, "audit_chain_broken", help, Gauge::default());
        let help =
            "When this process verified it last, in seconds since 1970; 0 before the first time";
        let verified_at =
            add_metric(to, "audit_chain_verified_timestamp_seconds", help, Seconds::default());
        Self { broken, verified_at, last: RwLock::default() }
    }

    pub(super) fn set(&self, state: AuditChainState) {
        self.broken.set(i64::from(state.is_broken));
        self.verified_at.set(seconds(state.at));
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    pub(super) fn last_state(&self) -> Option<AuditChainState> {
        *self.last.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exact for any date that a clock can show.
#[expect(clippy::cast_precision_loss, reason = "seconds until the year 9999 fit")]
fn seconds(at: Millis) -> f64 {
    (at.0 / 1_000) as f64
}
