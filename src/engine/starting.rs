//! A claimed row becomes a try: all that the worker needs is put together, after the commit.

use crate::domain::batch::Snapshot;
use crate::domain::dag::Node as Place;
use crate::domain::id::BatchId;
use crate::domain::tx_class::IdemKey;
use crate::engine::dispatcher::{Body, QueueDispatcher};
use crate::engine::gate::Gate;
use crate::engine::measuring::kind_word;
use crate::engine::worker::{Job, run_task};
use crate::handler::log::RunLog;
use std::sync::Arc;
use tokio::sync::watch;

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
        let (row, def) = (active.row(place), active.job(place));
        let (parents, outputs) = active.asked_for(place);
        let job = Job {
            queue_id: row.queue_id,
            attempt: row.attempt,
            try_count: row.try_count,
            began: row.start_time.unwrap_or(self.clock.now()),
            mode: row.run_mode,
            parents,
            outputs,
            fixed: active.fixed_params(place),
            def: def.clone(),
            batch: Arc::new(active.batch.clone()),
            lock_name: format!("procession:{}:{}", self.node.installation(), row.queue_id.0),
            idem_key: IdemKey::of(
                self.node.installation(),
                &active.batch.values.batch_no,
                &row.job_code,
                row.run_no,
            ),
            is_unresolved: row.unresolved > 0,
            stop,
            stopper,
            log: RunLog::new(self.around.log_max_bytes),
            gate: Arc::new(Gate::new()),
        };
        let body = Body {
            log: job.log.clone(),
            gate: job.gate.clone(),
            is_told: false,
            began: self.clock.uptime(),
            job_type: kind_word(&job.def),
        };
        self.meter.job_started(body.job_type);
        self.bodies.insert(job.queue_id, body);
        Some((job, active.snapshot.clone()))
    }
}
