//! Load of the node that dispatches a batch, and the resource that a startable job lacks.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::cluster::node_placement::{
    Bodies, JobPlacement, PlacementFailure, Site, Want, place,
};
use crate::domain::dispatch::ready::ReadyRank;
use crate::domain::dispatch::slots::{Resource, SlotNeeds, Slots};
use crate::domain::dispatch::why::{BatchRelation, WaitReason};
use crate::domain::id::JobCode;
use crate::domain::job::JobDef;
use crate::domain::job::job_kind::Takes;
use crate::domain::job::queue::{QueueEntry, QueueStatus};

/// Jobs running in the process that dispatches a batch, over all its batches.
#[derive(Clone, Debug)]
pub struct ProcessLoad {
    slots: Slots,
    running: Vec<(String, SlotNeeds)>,
    pub(super) ageing_ms: i64,
    /// Deferral of each job of the explained batch; empty when none is deferred.
    pub(super) deferrals: Vec<i64>,
    /// The dispatching node, and the other nodes.
    sites: Option<(Site, Vec<Site>)>,
}

impl ProcessLoad {
    /// A load without running jobs; `total` and `ageing_ms` are settings of the process.
    pub fn new(total: u32, ageing_ms: i64) -> Self {
        let (running, deferrals) = (Vec::new(), Vec::new());
        Self { slots: Slots::new(total), running, ageing_ms, deferrals, sites: None }
    }

    /// Adds the nodes on which jobs may run: the dispatching node, and the others.
    #[must_use]
    pub fn with_sites(self, here: Site, others: Vec<Site>) -> Self {
        Self { sites: Some((here, others)), ..self }
    }

    /// Adds the deferrals of the explained batch.
    #[must_use]
    pub fn deferring(self, deferrals: Vec<i64>) -> Self {
        Self { deferrals, ..self }
    }

    /// The node that a startable job lacks.
    fn missing_node(&self, job: &JobDef) -> Option<WaitReason> {
        let (here, others) = self.sites.as_ref()?;
        let is_elsewhere = job.executor.is_some() || job.is_submitted();
        let waits = job.sensor.is_some() || is_elsewhere || job.approval.is_some();
        let takes = if waits { Takes::Nothing } else { Takes::Slots };
        let want = Want { label: job.worker.as_deref(), takes };
        let JobPlacement::Nowhere(lack) = place(want, here, others) else { return None };
        // A full resource of the only node explains more than the lack of other nodes.
        let alone = lack == PlacementFailure::Room && job.worker.is_none() && others.is_empty();
        let name = |site: &Site| match (site.bodies, site.labels.is_empty()) {
            (Bodies::Run, true) => site.name.clone(),
            (Bodies::Run, false) => format!("{} ({})", site.name, site.labels.join(", ")),
            (Bodies::Elsewhere, _) => format!("{} (takes no work)", site.name),
        };
        let nodes = std::iter::once(here).chain(others).map(name).collect();
        (!alone && job.sub_batch.is_none())
            .then(|| WaitReason::Node(job.worker.clone(), lack, nodes))
    }

    /// Counts the running jobs of a batch. Jobs of other batches than the explained one are named
    /// with their batch number.
    pub fn count_running(
        &mut self,
        batch: &Batch,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        whose: BatchRelation,
    ) {
        self.slots.limit_as(snapshot);
        let runs = |s: QueueStatus| matches!(s, QueueStatus::Running | QueueStatus::Killing);
        for row in rows.iter().filter(|r| runs(r.status)) {
            let Some(job) = snapshot.jobs.iter().find(|j| j.code == row.job_code) else { continue };
            let name = match whose {
                BatchRelation::This => job.code.to_string(),
                BatchRelation::Other => format!("{}@{}", job.code, batch.values.batch_no),
            };
            let needs = SlotNeeds::for_job(job);
            self.slots.acquire(&needs);
            self.running.push((name, needs));
        }
    }

    /// Whether no other node is known.
    fn is_alone(&self) -> bool {
        self.sites.as_ref().is_none_or(|(_, others)| others.is_empty())
    }

    fn holders(&self, what: &Resource) -> Vec<String> {
        let holding = self.running.iter().filter(|(_, needs)| needs.amount_of(what) > 0);
        holding.map(|(name, _)| name.clone()).collect()
    }

    /// Why a job does not start although its parents and start time permit it. `ready` are all such
    /// jobs.
    pub(super) fn explain_wait(
        &self,
        turn: ReadyRank,
        job: &JobDef,
        ready: &[(ReadyRank, JobCode, SlotNeeds)],
    ) -> WaitReason {
        let (needs, lack) = (&SlotNeeds::for_job(job), self.missing_node(job));
        let full = self.slots.what_is_full(needs);
        // Where the nodes are known, their capacity is explained by the missing node.
        let full = full.filter(|full| !full.what.is_place() || self.is_alone());
        if let Some(full) = full {
            let holders = self.holders(&full.what);
            return WaitReason::Slot(full, holders);
        }
        if let Some(lack) = lack {
            return lack;
        }
        let before = ready.iter().filter(|(t, ..)| *t < turn);
        for (_, code, others) in before.filter(|(_, _, n)| !self.slots.is_free(n)) {
            let kept = others.iter().find(|(what, amount)| {
                let ours = needs.amount_of(what);
                let matters = ours > 0 && !what.is_place();
                matters && !self.slots.has_room(what, ours, u64::from(*amount))
            });
            if let Some((what, _)) = kept {
                return WaitReason::KeptFor(what.clone(), code.clone());
            }
        }
        WaitReason::NextTurn
    }
}
