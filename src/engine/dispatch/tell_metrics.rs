//! Metrics of the dispatcher.

use crate::domain::cluster::node_placement::NodeRole;
use crate::domain::id::QueueId;
use crate::domain::job::JobDef;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::engine::cluster::health::HealthMonitor;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::hints::Hints;
use crate::engine::observe::metrics::Meter;
use crate::engine::operate::audit_chain::AuditSealer;
use crate::engine::operate::audit_watch::AuditWatch;
use crate::handler;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The name of the dispatcher loop in metrics.
pub(super) const NAME: &str = "dispatcher";

impl QueueDispatcher {
    /// The metrics of this process.
    pub fn meter(&self) -> Arc<Meter> {
        self.process.meter.clone()
    }

    /// A waiter for hints of this process; hints arrive while it serves.
    pub fn hints(&self) -> Hints {
        self.process.hints.clone()
    }

    /// Whether this process may fire schedules: its lease is valid, and the present time is
    /// certain.
    pub fn may_schedule(&self) -> bool {
        self.process.heart.may_schedule()
    }

    /// Records that the loop runs, and the present amount of work.
    pub(super) fn measure(&self) {
        self.process.meter.loop_turned(NAME, self.process.clock.uptime());
        self.process.meter.batches(self.batches.active.len());
        let ready = self.batches.active.values().map(|a| a.ready.len()).sum();
        self.process.meter.record_jobs(
            self.running(),
            ready,
            self.reports.waiting.len() + self.reports.channel.len(),
        );
    }

    /// Records an ended attempt whose end is committed.
    pub(super) fn measure_end(&self, row: QueueId, outcome: &AttemptOutcome) {
        if let Some(body) = self.running.bodies.get(&row) {
            let took = self.process.clock.uptime().since(body.began);
            self.process.meter.job_ended(body.job_type, end_label(&outcome.end), took);
        }
    }
}

/// The job type as a metric label: a closed set, whatever the row contains.
pub(super) fn kind_word(job: &JobDef) -> &'static str {
    match handler::kind_of(job).name {
        "" => "unknown",
        name => name,
    }
}

fn end_label(end: &AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Success => "success",
        AttemptEnd::Warning => "warning",
        AttemptEnd::Failed => "failed",
        AttemptEnd::TimedOut => "timeout",
        AttemptEnd::Killed => "killed",
        AttemptEnd::Returned => "returned",
        AttemptEnd::Unknown => "unknown",
    }
}

impl QueueDispatcher {
    /// State shared by every loop of this process.
    pub(in crate::engine) fn process(&self) -> &ClusterProcess {
        &self.process
    }

    /// Whether this process fires schedules: a node with only the worker role does not.
    pub fn fires_schedules(&self) -> bool {
        self.fleet.roles.is_empty() || self.fleet.roles.contains(&NodeRole::Scheduler)
    }

    /// The health monitor of this process. `leaves` is the shutdown token; `stalled` is the maximum
    /// duration of one turn of a loop, and must be longer than the database may take for two
    /// answers.
    pub fn vitals(&self, leaves: &CancellationToken, stalled: Duration) -> HealthMonitor {
        HealthMonitor::new(&self.process, leaves, stalled)
    }

    /// The audit sealer of this process.
    pub fn audit_sealer(&self) -> AuditSealer {
        AuditSealer::new(&self.process)
    }

    /// The verifier of the audit chain in this process.
    pub fn audit_watch(&self) -> AuditWatch {
        AuditWatch::new(&self.process)
    }
}
