//! Work for others: tries that this node runs for batches which another node dispatches.
//!
//! A row names this node as its owner, and as the one that hosts it, by which it is found. It is taken in a
//! transaction before anything of its body begins, so that one which was never taken can be given to
//! another at once when this node dies. Its body runs as any other, under the same lease, claim and
//! fence; its end goes into `job_report`, where whoever has the batch finds it. A try whose batch was
//! lost while it ran ends the same way.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::cluster::node_placement::{NodeRole, Roles};
use crate::domain::dag::Dag;
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::job::{JobDef, Takes};
use crate::engine::attempt::run::request_stop;
use crate::handler::{self, StopReason};
use crate::store::hosted::HostedRow;
use crate::store::{Tx, batch};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::watch;

/// What this node runs for others.
#[derive(Default)]
pub(in crate::engine) struct Hosted {
    tries: HashMap<QueueId, HostedAttempt>,
    /// Batches of others that it ran something of lately.
    known: HashMap<BatchId, RemoteBatch>,
    /// Tries that were given to it and wait for room.
    queued: HashSet<(QueueId, u32)>,
    /// A batch was lost while jobs of it were being started: their rows may name this node.
    is_owing: bool,
}

/// A try that runs here for another node.
pub(in crate::engine) struct HostedAttempt {
    pub(in crate::engine) batch_id: BatchId,
    pub(in crate::engine) attempt: u32,
    pub(in crate::engine) def: JobDef,
    pub(in crate::engine) stop: watch::Sender<Option<StopReason>>,
}

/// A batch of another node, as far as its jobs need it.
pub(in crate::engine) struct RemoteBatch {
    pub(in crate::engine) revision: i64,
    pub(in crate::engine) batch: Arc<Batch>,
    pub(in crate::engine) snapshot: Arc<Snapshot>,
    pub(in crate::engine) dag: Dag,
    pub(in crate::engine) places: HashMap<JobCode, u32>,
}

/// Batches of others that are kept in memory, at most.
const KNOWN: usize = 16;

impl Hosted {
    /// Whether a try runs here.
    pub(in crate::engine) fn runs_here(&self, row: QueueId, attempt: u32) -> bool {
        self.tries.get(&row).is_some_and(|this| this.attempt == attempt)
    }

    /// Whether any try of a row runs here.
    pub(in crate::engine) fn runs_any(&self, row: QueueId) -> bool {
        self.tries.contains_key(&row)
    }

    /// The tries that run here, by row.
    pub(in crate::engine) fn iter(&self) -> impl Iterator<Item = (QueueId, &HostedAttempt)> {
        self.tries.iter().map(|(row, this)| (*row, this))
    }

    /// The try of a row that runs here.
    pub(in crate::engine) fn get(&self, row: QueueId) -> Option<&HostedAttempt> {
        self.tries.get(&row)
    }

    /// A try has ended here.
    pub(in crate::engine) fn end_attempt(&mut self, row: QueueId) {
        self.tries.remove(&row);
    }

    /// Whether rows may name this node, as far as what was lost here tells.
    pub(in crate::engine) fn is_owing(&self) -> bool {
        self.is_owing || !self.tries.is_empty()
    }

    /// A batch was lost while jobs of it were being started.
    pub(in crate::engine) fn note_owing(&mut self) {
        self.is_owing = true;
    }

    /// A try waits for room.
    pub(in crate::engine) fn wait_for_room(&mut self, queue_id: QueueId, attempt: u32) {
        self.queued.insert((queue_id, attempt));
    }

    /// Those that wait for room; none do from here on.
    pub(in crate::engine) fn take_queued(&mut self) -> HashSet<(QueueId, u32)> {
        std::mem::take(&mut self.queued)
    }

    /// The batch of a try that was given to this node, read anew when it has changed or lacks the job.
    pub(in crate::engine) async fn batch_of(
        &mut self,
        tx: &mut Tx,
        given: &HostedRow,
        job: &JobCode,
    ) -> Result<&RemoteBatch> {
        let id = given.batch_id;
        let is_known = self.known.get(&id).is_some_and(|known| {
            known.revision == given.revision && known.places.contains_key(job)
        });
        if !is_known {
            if self.known.len() >= KNOWN {
                self.known.clear();
            }
            self.known.insert(id, RemoteBatch::read_batch(tx, id).await?);
        }
        self.known.get(&id).context("a batch that was just read")
    }

    /// The snapshot of a batch whose try was begun.
    pub(in crate::engine) fn snapshot_of(&self, id: BatchId) -> Option<Arc<Snapshot>> {
        self.known.get(&id).map(|known| known.snapshot.clone())
    }

    /// How many jobs run here for others.
    pub(in crate::engine) fn count(&self) -> usize {
        self.tries.len()
    }

    /// How many of them do work of their own.
    pub(in crate::engine) fn working(&self) -> usize {
        let works = |this: &&HostedAttempt| handler::kind_of(&this.def).takes == Takes::Slots;
        self.tries.values().filter(works).count()
    }

    /// How many wait for room.
    pub(in crate::engine) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// How much room they take, and those that wait for it.
    pub(in crate::engine) fn slots_used(&self) -> usize {
        self.working() + self.queued.len()
    }

    /// Tries of a batch, with their switches.
    pub(in crate::engine) fn of_batch(
        &self,
        id: BatchId,
    ) -> HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>> {
        let tries = self.tries.iter().filter(|(_, this)| this.batch_id == id);
        tries.map(|(row, this)| ((*row, this.attempt), this.stop.clone())).collect()
    }

    /// A batch is dispatched here now, and so are its tries; one that its row does not know any more is
    /// stopped.
    pub(in crate::engine) fn come_home(&mut self, id: BatchId, is_known: impl Fn(QueueId) -> bool) {
        for (row, this) in self.tries.extract_if(|_, this| this.batch_id == id) {
            if !is_known(row) {
                request_stop(&this.stop, StopReason::Disowned);
            }
        }
    }

    /// A try of a batch that is not ours any more still runs.
    pub(in crate::engine) fn keep_attempt(&mut self, row: QueueId, this: HostedAttempt) {
        self.tries.insert(row, this);
    }
}

impl RemoteBatch {
    async fn read_batch(tx: &mut Tx, id: BatchId) -> Result<Self> {
        let batch = batch::get(tx, id).await?;
        let snapshot = batch::snapshot(tx, id).await?;
        let dag = snapshot.build_dag()?;
        let places = (0..).zip(&snapshot.jobs).map(|(at, job)| (job.code.clone(), at)).collect();
        let (revision, batch, snapshot) = (batch.revision, Arc::new(batch), Arc::new(snapshot));
        Ok(Self { revision, batch, snapshot, dag, places })
    }
}

/// Whether a node with these roles runs bodies of others.
pub(in crate::engine) fn takes_work(roles: &Roles) -> bool {
    roles.contains(&NodeRole::Worker)
}
