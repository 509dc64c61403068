//! Verifies the hash chain of the audit log while a process serves, so that a break is not found
//! first by an auditor.

use crate::engine::clock::Clock;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::observe::metrics::{AuditChainState, Meter};
use crate::engine::operate::audit_chain::{ChainReport, verify_slowly};
use crate::store::Db;
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Delay after the start of the process, which has other work first.
const FIRST_AFTER: Duration = Duration::from_secs(10);
/// Pause between two verifications.
const EVERY: Duration = Duration::from_secs(6 * 3_600);
/// Pause after each page of 1,000 records: a million of them take about five minutes with little
/// load on the database.
const PAUSE: Duration = Duration::from_millis(200);

/// Verifies the chain repeatedly.
pub struct AuditWatch {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
}

impl AuditWatch {
    /// The verifier of this process.
    pub(in crate::engine) fn new(process: &ClusterProcess) -> Self {
        let ClusterProcess { db, clock, meter, .. } = process.clone();
        Self { db, clock, meter }
    }

    /// Verifies until it is stopped. No error ends it.
    pub async fn run(self, stop: CancellationToken) {
        let mut wait = FIRST_AFTER;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                checked = self.check(PAUSE) => {
                    if let Err(error) = checked {
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "the hash chain of the audit log could not be verified; trying again later"
                        );
                    }
                }
            }
            wait = EVERY;
        }
    }

    /// One round over the whole chain. A break is logged, and shown by metrics and `/readyz`.
    pub async fn check(&self, pause: Duration) -> Result<ChainReport> {
        let report = verify_slowly(&self.db, &[], pause).await?;
        if let Some(fault) = &report.first_break {
            tracing::error!(
                "the hash chain of the audit log is broken: {fault}; procession audit verify shows it again; \
                 keep a copy of the database, and compare with an export (docs/audit.md)"
            );
        }
        let (is_broken, at) = (report.first_break.is_some(), self.clock.now());
        self.meter.set_audit_chain(AuditChainState { is_broken, verified: report.verified, at });
        Ok(report)
    }
}
