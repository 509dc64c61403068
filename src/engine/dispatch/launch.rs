//! Turns a claimed row into an attempt: collects everything the worker needs. A body that needs a
//! session prepares it while its claim is being committed; any other begins after the commit.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::job::JobDef;
use crate::domain::job::check::DataCheck;
use crate::domain::job::queue::{QueueEntry, RunMode};
use crate::domain::params::BoundParam;
use crate::engine::attempt::claim_ack::{ClaimAck, Claiming};
use crate::engine::attempt::claim_check::LostRow;
use crate::engine::attempt::run::{AttemptOrder, UpstreamOutputs, run_task};
use crate::engine::attempt::start_gate::Gate;
use crate::engine::cluster::registry::AttemptRunner;
use crate::engine::dispatch::dispatcher::{LocalAttempt, QueueDispatcher};
use crate::engine::dispatch::tell_metrics::kind_word;
use crate::engine::dispatch::writes::Changes;
use crate::handler::log::RunLog;
use crate::handler::{self, StopReason};
use std::sync::Arc;
use tokio::sync::watch;

/// The two ends of a stop switch: one stops the body, the body watches the other.
type Switch = (watch::Sender<Option<StopReason>>, watch::Receiver<Option<StopReason>>);

/// The inputs of an attempt.
pub(super) struct LaunchParts {
    pub(super) batch: Arc<Batch>,
    pub(super) row: QueueEntry,
    pub(super) def: JobDef,
    pub(super) parents: Vec<JobCode>,
    pub(super) outputs: UpstreamOutputs,
    pub(super) fixed: Option<Result<Vec<BoundParam>, String>>,
}

/// A task that began before its claim was committed, and what to keep of it after the commit.
pub(super) struct EarlyLaunch {
    queue_id: QueueId,
    stopper: watch::Sender<Option<StopReason>>,
    body: LaunchContext,
}

/// What the dispatcher shares with the task of an attempt.
pub(super) struct LaunchContext {
    log: RunLog,
    gate: Arc<Gate>,
    job_type: &'static str,
}

impl LaunchContext {
    pub(super) fn from_job(job: &AttemptOrder) -> Self {
        Self { log: job.log.clone(), gate: job.gate.clone(), job_type: kind_word(&job.def) }
    }
}

impl QueueDispatcher {
    /// The same starts, with tasks begun where they can prepare before the commit that claims their
    /// rows.
    pub(super) fn begin_all_ahead(
        &self,
        starts: Vec<(BatchId, Place, AttemptRunner)>,
        changes: &Changes,
        claiming: &Claiming,
    ) -> Vec<(BatchId, Place, AttemptRunner, Option<EarlyLaunch>)> {
        // The claimed tasks read the marks that this commit may set.
        let may_begin = changes.breaches.is_empty();
        let begun = starts.into_iter().map(|(id, place, runner)| {
            let is_here = may_begin && matches!(runner, AttemptRunner::Here);
            let ahead = is_here.then(|| self.begin_ahead(id, place, claiming)).flatten();
            (id, place, runner, ahead)
        });
        begun.collect()
    }

    /// Begins the task of a row whose claim is about to be committed, if it is of a kind that can use the
    /// time. Nothing is kept here of it, so that a claim which fails leaves nothing to be undone.
    fn begin_ahead(&self, id: BatchId, place: Place, claiming: &Claiming) -> Option<EarlyLaunch> {
        let active = self.batches.active.get(&id)?;
        let kind = handler::find_handler(active.job_at(place).job_type.as_str())?;
        let has_body = active.row_at(place).run_mode != Some(RunMode::NoExec);
        // The commit under way may write the results of its last run.
        let looks_back = active.job_at(place).checks.iter().any(DataCheck::looks_back);
        if !kind.gets_ready() || !has_body || looks_back {
            return None;
        }
        let (mut job, snapshot) = self.job_at(id, place)?;
        job.claimed = claiming.awaited();
        let ahead = EarlyLaunch {
            queue_id: job.queue_id,
            stopper: job.stopper.clone(),
            body: LaunchContext::from_job(&job),
        };
        tokio::spawn(run_task(job, snapshot, self.running.around.clone()));
        Some(ahead)
    }

    /// Starts the body of a row whose claim is committed, or continues a task begun before.
    pub(super) fn spawn(&mut self, id: BatchId, place: Place, ahead: Option<EarlyLaunch>) {
        if let Some(EarlyLaunch { queue_id, stopper, body }) = ahead {
            if let Some(active) = self.batches.active.get_mut(&id) {
                active.started(place, stopper);
            }
            let body = self.body_of(body);
            self.running.bodies.insert(queue_id, body);
        } else if let Some((job, snapshot)) = self.put_together(id, place) {
            tokio::spawn(run_task(job, snapshot, self.running.around.clone()));
        }
    }

    /// Builds a task for a row; keeps its switch and its log here.
    pub(super) fn put_together(
        &mut self,
        id: BatchId,
        place: Place,
    ) -> Option<(AttemptOrder, Arc<Snapshot>)> {
        let (job, snapshot) = self.job_at(id, place)?;
        self.batches.active.get_mut(&id)?.started(place, job.stopper.clone());
        let body = self.body_of(LaunchContext::from_job(&job));
        self.running.bodies.insert(job.queue_id, body);
        Some((job, snapshot))
    }

    pub(super) fn job_at(
        &self,
        id: BatchId,
        place: Place,
    ) -> Option<(AttemptOrder, Arc<Snapshot>)> {
        let active = self.batches.active.get(&id)?;
        let (parents, outputs) = active.asked_for(place);
        let parts = LaunchParts {
            batch: Arc::new(active.batch.clone()),
            row: active.row_at(place).clone(),
            def: active.job_at(place).clone(),
            parents,
            outputs,
            fixed: active.fixed_params(place),
        };
        let (stopper, stop) = watch::channel(None);
        Some((self.job_of(parts, (stopper, stop)), active.snapshot.clone()))
    }

    /// The record of an attempt that is kept here from its start on.
    pub(super) fn body_of(
        &self,
        LaunchContext { log, gate, job_type }: LaunchContext,
    ) -> LocalAttempt {
        self.process.meter.job_started(job_type);
        let began = self.process.clock.uptime();
        LocalAttempt { log, gate, is_told: false, began, job_type }
    }

    /// Builds a task for a row of any batch, dispatched here or elsewhere.
    pub(super) fn job_of(&self, parts: LaunchParts, (stopper, stop): Switch) -> AttemptOrder {
        let LaunchParts { batch, row, def, parents, outputs, fixed } = parts;
        let installation = self.process.node.installation();
        AttemptOrder {
            queue_id: row.queue_id,
            attempt: row.attempt,
            try_count: row.try_count,
            began: row.start_time.unwrap_or(self.process.clock.now()),
            mode: row.run_mode,
            parents,
            outputs,
            fixed,
            lock_name: format!("procession:{installation}:{}", row.queue_id.0),
            idem_key: row.idem_key(installation, &batch.values.group, &batch.values.batch_no),
            is_unresolved: row.unresolved > 0,
            def,
            batch,
            stop,
            stopper,
            log: RunLog::new(self.running.around.log_max_bytes),
            gate: Arc::new(Gate::new()),
            lost: LostRow::default(),
            claimed: ClaimAck::before(),
        }
    }
}
