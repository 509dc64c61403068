//! A claimed row becomes a try: all that the worker needs is put together, after the commit.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::JobDef;
use crate::domain::params::BoundParam;
use crate::domain::queue::QueueEntry;
use crate::domain::tx_class::IdemKey;
use crate::engine::dispatcher::{Body, QueueDispatcher};
use crate::engine::gate::Gate;
use crate::engine::measuring::kind_word;
use crate::engine::worker::{Given, Job, run_task};
use crate::handler::StopReason;
use crate::handler::log::RunLog;
use std::sync::Arc;
use tokio::sync::watch;

/// What stops a body, and what the body looks at.
type Switch = (watch::Sender<Option<StopReason>>, watch::Receiver<Option<StopReason>>);

/// What a try is put together from.
pub(super) struct Parts {
    pub(super) batch: Arc<Batch>,
    pub(super) row: QueueEntry,
    pub(super) def: JobDef,
    pub(super) parents: Vec<JobCode>,
    pub(super) outputs: Given,
    pub(super) fixed: Option<Result<Vec<BoundParam>, String>>,
}

impl QueueDispatcher {
    /// Starts the body of a row whose claim is committed.
    pub(super) fn spawn(&mut self, id: BatchId, place: Place) {
        if let Some((job, snapshot)) = self.put_together(id, place) {
            tokio::spawn(run_task(job, snapshot, self.around.clone()));
        }
    }

    /// What a task about a row needs, with its switch and its log kept here.
    pub(super) fn put_together(
        &mut self,
        id: BatchId,
        place: Place,
    ) -> Option<(Job, Arc<Snapshot>)> {
        let active = self.active.get_mut(&id)?;
        let (stopper, stop) = watch::channel(None);
        active.started(place, stopper.clone());
        let (parents, outputs) = active.asked_for(place);
        let parts = Parts {
            batch: Arc::new(active.batch.clone()),
            row: active.row(place).clone(),
            def: active.job(place).clone(),
            parents,
            outputs,
            fixed: active.fixed_params(place),
        };
        let snapshot = active.snapshot.clone();
        let job = self.job_of(parts, (stopper, stop));
        let body = self.body_of(&job);
        self.bodies.insert(job.queue_id, body);
        Some((job, snapshot))
    }

    /// What is kept here of a try, from its start on.
    pub(super) fn body_of(&self, job: &Job) -> Body {
        let job_type = kind_word(&job.def);
        self.meter.job_started(job_type);
        let began = self.clock.uptime();
        Body { log: job.log.clone(), gate: job.gate.clone(), is_told: false, began, job_type }
    }

    /// A task about a row, whosever batch it is of.
    pub(super) fn job_of(&self, parts: Parts, (stopper, stop): Switch) -> Job {
        let Parts { batch, row, def, parents, outputs, fixed } = parts;
        let installation = self.node.installation();
        Job {
            queue_id: row.queue_id,
            attempt: row.attempt,
            try_count: row.try_count,
            began: row.start_time.unwrap_or(self.clock.now()),
            mode: row.run_mode,
            parents,
            outputs,
            fixed,
            lock_name: format!("procession:{installation}:{}", row.queue_id.0),
            idem_key: IdemKey::of(installation, &batch.values.batch_no, &row.job_code, row.run_no),
            is_unresolved: row.unresolved > 0,
            def,
            batch,
            stop,
            stopper,
            log: RunLog::new(self.around.log_max_bytes),
            gate: Arc::new(Gate::new()),
        }
    }
}
