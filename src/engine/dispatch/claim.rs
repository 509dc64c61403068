//! Decides what starts next, and where: assigns ready jobs of all batches here to free slots of
//! this node and of the others. No I/O.

use crate::domain::cluster::node_placement::Want;
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::ready::SetAside;
use crate::domain::dispatch::slots::{SlotNeeds, Slots};
use crate::domain::dispatch::why::ready_since;
use crate::domain::id::{BatchId, JobCode, NodeId};
use crate::domain::job::queue::{QueueEntry, QueueStatus, RunMode};
use crate::domain::job::{JobDef, Takes};
use crate::domain::time::Millis;
use crate::engine::cluster::registry::AttemptRunner;
use crate::engine::cluster::registry::Sites;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::handler;

impl QueueDispatcher {
    /// Fills free slots, one job per batch in turn so that no batch starves another; what a waiting
    /// job of any batch needs is reserved against those after it.
    pub(super) fn claim(
        &mut self,
        changes: &mut Changes,
        freed: &[(BatchId, Node)],
        now: Millis,
    ) -> Vec<(BatchId, Node, AttemptRunner)> {
        let mut starts = Vec::new();
        let mut any = true;
        let mut sites = self.sites(freed);
        sites.offer(&mut self.batches.slots);
        // Slots become free one by one; a fixed first batch would get all of them.
        let mut order: Vec<BatchId> = self.batches.active.keys().copied().collect();
        let next =
            order.iter().position(|id| self.batches.last_served.is_none_or(|last| *id > last));
        order.rotate_left(next.unwrap_or(0));
        while any
            && !self.course.draining
            && !self.process.heart.lease_state().is_fenced
            && !self.process.heart.is_suspended()
        {
            any = false;
            let mut aside = SetAside::default();
            if order.len() > 1 {
                for active in self.batches.active.values_mut() {
                    active.set_aside(&self.batches.slots, &mut aside);
                }
            }
            for id in &order {
                let Some(active) = self.batches.active.get_mut(id) else { continue };
                let (slots, me) = (&mut self.batches.slots, self.process.node.id());
                let Some((place, runner)) =
                    active.claim_ready_job(slots, &mut aside, &mut sites, me, changes, now)
                else {
                    continue;
                };
                starts.push((*id, place, runner));
                self.batches.last_served = Some(*id);
                sites.offer(&mut self.batches.slots);
                any = true;
            }
        }
        for active in self.batches.active.values_mut() {
            active.queue_the_rest(changes, now);
        }
        starts
    }
}

impl Active {
    /// Starts one ready job if there is capacity for it and the batch is not paused.
    pub(super) fn claim_ready_job(
        &mut self,
        slots: &mut Slots,
        aside: &mut SetAside,
        sites: &mut Sites,
        me: &NodeId,
        changes: &mut Changes,
        now: Millis,
    ) -> Option<(Node, AttemptRunner)> {
        if self.batch.is_paused {
            return None;
        }
        let node = self.ready.take_startable(slots, aside)?;
        let runner = sites.assign(self.placement_of(node));
        slots.acquire(self.ready.needs(node));
        let owner = match &runner {
            AttemptRunner::Here => me.clone(),
            AttemptRunner::There(there) => there.clone(),
        };
        let row = &mut self.rows[node.index()];
        let from = row.status;
        row.status = QueueStatus::Running;
        row.attempt += 1;
        row.owner = Some(owner);
        (row.start_time, row.end_time, row.error_message) = (Some(now), None, None);
        changes.claimed.entry((from, runner.clone())).or_default().push(row.queue_id.0);
        self.change(node, QueueStatus::Running);
        self.watch(node);
        self.log_change(node, changes, now);
        Some((node, runner))
    }

    /// The requirements of a job on a node; `None` when the job stays with the process that
    /// dispatches it, because it runs no body, or a sub-batch.
    fn placement_of(&self, node: Node) -> Option<Want<'_>> {
        let (job, row) = (self.job_at(node), self.row_at(node));
        if stays(job, row) || self.fixed_params(node).is_some() {
            return None;
        }
        Some(Want { label: job.worker.as_deref(), takes: handler::kind_of(job).takes })
    }

    pub(super) fn ready_now(&mut self, node: Node, now: Millis) {
        if self.lists.is_wanted(node, &self.snapshot.jobs[node.index()]) {
            return;
        }
        let since = ready_since(&self.dag, &self.rows, node).max(self.since).min(now);
        let row = &self.rows[node.index()];
        let priority = row.priority.unwrap_or(self.snapshot.jobs[node.index()].priority);
        self.ready.push(node, priority, since);
        self.fresh.push(node);
    }

    /// Newly ready jobs without a free slot become QUEUED rows. Costs nothing for those that are
    /// QUEUED already. While the batch is paused they do not wait for a slot.
    pub(super) fn queue_the_rest(&mut self, changes: &mut Changes, now: Millis) {
        if self.batch.is_paused {
            return;
        }
        for node in std::mem::take(&mut self.fresh) {
            if self.rows[node.index()].status == QueueStatus::Pending {
                self.change(node, QueueStatus::Queued);
                self.move_row(node, QueueStatus::Pending, QueueStatus::Queued, changes, now);
            }
        }
    }
}

/// The direct dependencies of a job, in the order of their codes.
pub(super) fn parents_of(dag: &Dag, node: Node) -> Vec<JobCode> {
    let mut parents: Vec<JobCode> = dag.parents(node).map(|p| dag.job_code(p).clone()).collect();
    parents.sort();
    parents
}

/// Whether no body of the job runs on a node: the job is only marked successful, or it runs a
/// sub-batch.
fn stays(job: &JobDef, row: &QueueEntry) -> bool {
    row.run_mode == Some(RunMode::NoExec) || job.sub_batch.is_some()
}

/// What a job takes while it runs; a job that only waits for others takes no slots, but has to be
/// on a node.
pub(super) fn needs(job: &JobDef, row: &QueueEntry) -> SlotNeeds {
    if stays(job, row) {
        return SlotNeeds::empty();
    }
    match handler::kind_of(job).takes {
        Takes::Slots | Takes::Elsewhere => SlotNeeds::for_job(job),
        Takes::Nothing => SlotNeeds::node_only(job.worker.as_deref()),
    }
}
