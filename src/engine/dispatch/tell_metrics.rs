//! What the dispatcher tells the meter.

use crate::domain::id::QueueId;
use crate::domain::job::JobDef;
use crate::domain::outcome::{End, Outcome};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::hints::Hints;
use crate::engine::observe::metrics::Meter;
use crate::handler;
use std::sync::Arc;

/// The word under which the loop of the dispatcher is known to the meter.
pub(in crate::engine) const NAME: &str = "dispatcher";

impl QueueDispatcher {
    /// The meters of this process.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// A waiter for hints of this process; heard while it serves.
    pub fn hints(&self) -> Hints {
        self.hints.clone()
    }

    /// Whether schedules may be fired by this process: its lease holds, and what time it is, is sure.
    pub fn may_schedule(&self) -> bool {
        self.heart.may_schedule()
    }

    /// Says that the loop turns, and what there is to do.
    pub(in crate::engine) fn measure(&self) {
        self.meter.loop_turned(NAME, self.clock.uptime());
        self.meter.batches(self.active.len());
        let ready = self.active.values().map(|a| a.ready.len()).sum();
        self.meter.jobs(self.running(), ready, self.waiting.len() + self.reports.len());
    }

    /// A try has ended, and its end is in the rows.
    pub(in crate::engine) fn measure_end(&self, row: QueueId, outcome: &Outcome) {
        if let Some(body) = self.bodies.get(&row) {
            let took = self.clock.uptime().since(body.began);
            self.meter.job_ended(body.job_type, word(&outcome.end), took);
        }
    }
}

/// The type of a job for the meter: a closed set, whatever stands in the row.
pub(in crate::engine) fn kind_word(job: &JobDef) -> &'static str {
    match handler::kind_of(job).name {
        "" => "unknown",
        name => name,
    }
}

fn word(end: &End) -> &'static str {
    match end {
        End::Success => "success",
        End::Warning => "warning",
        End::Failed => "failed",
        End::TimedOut => "timeout",
        End::Killed => "killed",
        End::Returned => "returned",
        End::Unknown => "unknown",
    }
}
