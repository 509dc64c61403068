//! What runs on the node that dispatches a batch, and what a job lacks that could start otherwise.

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

/// What runs in the process that dispatches a batch, in all its batches.
#[derive(Clone, Debug)]
pub struct ProcessLoad {
    slots: Slots,
    running: Vec<(String, SlotNeeds)>,
    pub(super) ageing_ms: i64,
    /// By how much each job of the batch that is asked about is deferred; empty when none is.
    pub(super) deferrals: Vec<i64>,
    /// The node that dispatches the batch, and the others.
    sites: Option<(Site, Vec<Site>)>,
}

impl ProcessLoad {
    /// Nothing runs yet; `total` and `ageing_ms` are the settings of the process.
    pub fn new(total: u32, ageing_ms: i64) -> Self {
        let (running, deferrals) = (Vec::new(), Vec::new());
        Self { slots: Slots::new(total), running, ageing_ms, deferrals, sites: None }
    }

    /// With the nodes that jobs may run on: the one that dispatches the batch, and the others.
    #[must_use]
    pub fn with_sites(self, here: Site, others: Vec<Site>) -> Self {
        Self { sites: Some((here, others)), ..self }
    }

    /// With what defers the jobs of the batch that is asked about.
    #[must_use]
    pub fn deferring(self, deferrals: Vec<i64>) -> Self {
        Self { deferrals, ..self }
    }

    /// Which node a job lacks that could start otherwise.
    fn missing_node(&self, job: &JobDef) -> Option<WaitReason> {
        let (here, others) = self.sites.as_ref()?;
        let is_elsewhere = job.executor.is_some() || job.application.is_some();
        let waits = job.sensor.is_some() || is_elsewhere || job.approval.is_some();
        let takes = if waits { Takes::Nothing } else { Takes::Slots };
        let want = Want { label: job.worker.as_deref(), takes };
        let JobPlacement::Nowhere(lack) = place(want, here, others) else { return None };
        // What is full here says more than that nothing else is there.
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

    /// Counts the running jobs of a batch. A job of another batch than the one that is asked about is
    /// called by its batch number too.
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

    /// Why a job that could start as far as its parents and the time go does not. `ready` are all
    /// such jobs.
    pub(super) fn explain_wait(
        &self,
        turn: ReadyRank,
        job: &JobDef,
        ready: &[(ReadyRank, JobCode, SlotNeeds)],
    ) -> WaitReason {
        let (needs, lack) = (&SlotNeeds::for_job(job), self.missing_node(job));
        let full = self.slots.what_is_full(needs);
        // Rooms of nodes are theirs to say, where they are known.
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
