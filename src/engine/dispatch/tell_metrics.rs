//! What the dispatcher tells the meter.

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

/// The word under which the loop of the dispatcher is known to the meter.
pub(super) const NAME: &str = "dispatcher";

impl QueueDispatcher {
    /// The meters of this process.
    pub fn meter(&self) -> Arc<Meter> {
        self.process.meter.clone()
    }

    /// A waiter for hints of this process; heard while it serves.
    pub fn hints(&self) -> Hints {
        self.process.hints.clone()
    }

    /// Whether schedules may be fired by this process: its lease holds, and what time it is, is sure.
    pub fn may_schedule(&self) -> bool {
        self.process.heart.may_schedule()
    }

    /// Says that the loop turns, and what there is to do.
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

    /// A try has ended, and its end is in the rows.
    pub(super) fn measure_end(&self, row: QueueId, outcome: &AttemptOutcome) {
        if let Some(body) = self.running.bodies.get(&row) {
            let took = self.process.clock.uptime().since(body.began);
            self.process.meter.job_ended(body.job_type, end_label(&outcome.end), took);
        }
    }
}

/// The type of a job for the meter: a closed set, whatever stands in the row.
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
    /// What every loop of this process shares.
    pub(in crate::engine) fn process(&self) -> &ClusterProcess {
        &self.process
    }

    /// Whether this process fires schedules: one that only works does not.
    pub fn fires_schedules(&self) -> bool {
        self.fleet.roles.is_empty() || self.fleet.roles.contains(&NodeRole::Scheduler)
    }

    /// The vitals of this process: `leaves` is what tells it to stop, `stalled` how long a loop may
    /// take for a turn, which must be more than the database may take for two answers.
    pub fn vitals(&self, leaves: &CancellationToken, stalled: Duration) -> HealthMonitor {
        HealthMonitor::new(&self.process, leaves, stalled)
    }

    /// What seals acts in the process that this dispatcher is.
    pub fn audit_sealer(&self) -> AuditSealer {
        AuditSealer::new(&self.process)
    }

    /// What verifies the chain of acts in this process.
    pub fn audit_watch(&self) -> AuditWatch {
        AuditWatch::new(&self.process)
    }
}
