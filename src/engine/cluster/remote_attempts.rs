//! Attempts that this node runs for batches which another node dispatches.
//!
//! A row names this node as its owner and as its host, by which the node finds it. The node takes
//! the row in a transaction before the body begins, so that a row which was never taken can be
//! given to another node at once when this one dies. The body runs like any other, under the same
//! lease, claim and fence; its result goes into `job_report`, where the owner of the batch finds
//! it. An attempt whose batch was lost while it ran ends in the same way.

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

/// Attempts that this node runs for other nodes.
#[derive(Default)]
pub(in crate::engine) struct Hosted {
    tries: HashMap<QueueId, HostedAttempt>,
    /// Batches of other nodes for which it ran attempts recently.
    known: HashMap<BatchId, RemoteBatch>,
    /// Attempts that were given to this node and wait for a free slot.
    queued: HashSet<(QueueId, u32)>,
    /// A batch was lost while its jobs were being started: their rows may name this node.
    is_owing: bool,
}

/// An attempt that runs here for another node.
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

/// Maximum number of batches of other nodes kept in memory.
const KNOWN: usize = 16;

impl Hosted {
    /// Whether an attempt runs here.
    pub(in crate::engine) fn runs_here(&self, row: QueueId, attempt: u32) -> bool {
        self.tries.get(&row).is_some_and(|this| this.attempt == attempt)
    }

    /// Whether any attempt of a row runs here.
    pub(in crate::engine) fn runs_any(&self, row: QueueId) -> bool {
        self.tries.contains_key(&row)
    }

    /// The attempts that run here, by row.
    pub(in crate::engine) fn iter(&self) -> impl Iterator<Item = (QueueId, &HostedAttempt)> {
        self.tries.iter().map(|(row, this)| (*row, this))
    }

    /// The attempt of a row that runs here.
    pub(in crate::engine) fn get(&self, row: QueueId) -> Option<&HostedAttempt> {
        self.tries.get(&row)
    }

    /// Removes an attempt that has ended here.
    pub(in crate::engine) fn end_attempt(&mut self, row: QueueId) {
        self.tries.remove(&row);
    }

    /// Whether rows may name this node because of a batch that was lost here.
    pub(in crate::engine) fn is_owing(&self) -> bool {
        self.is_owing || !self.tries.is_empty()
    }

    /// Notes that a batch was lost while its jobs were being started.
    pub(in crate::engine) fn note_owing(&mut self) {
        self.is_owing = true;
    }

    /// A try waits for room.
    pub(in crate::engine) fn wait_for_room(&mut self, queue_id: QueueId, attempt: u32) {
        self.queued.insert((queue_id, attempt));
    }

    /// Takes the attempts that wait for a free slot out of the queue.
    pub(in crate::engine) fn take_queued(&mut self) -> HashSet<(QueueId, u32)> {
        std::mem::take(&mut self.queued)
    }

    /// The batch of an attempt that was given to this node; read again when it has changed or lacks
    /// the job.
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

    /// The snapshot of a batch of which an attempt was begun.
    pub(in crate::engine) fn snapshot_of(&self, id: BatchId) -> Option<Arc<Snapshot>> {
        self.known.get(&id).map(|known| known.snapshot.clone())
    }

    /// Number of attempts that run here for other nodes.
    pub(in crate::engine) fn count(&self) -> usize {
        self.tries.len()
    }

    /// Number of these that use a slot.
    pub(in crate::engine) fn working(&self) -> usize {
        let works = |this: &&HostedAttempt| handler::kind_of(&this.def).takes == Takes::Slots;
        self.tries.values().filter(works).count()
    }

    /// Number of attempts that wait for a slot.
    pub(in crate::engine) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Number of slots in use, including those that are waited for.
    pub(in crate::engine) fn slots_used(&self) -> usize {
        self.working() + self.queued.len()
    }

    /// Attempts of a batch, with their stop switches.
    pub(in crate::engine) fn of_batch(
        &self,
        id: BatchId,
    ) -> HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>> {
        let tries = self.tries.iter().filter(|(_, this)| this.batch_id == id);
        tries.map(|(row, this)| ((*row, this.attempt), this.stop.clone())).collect()
    }

    /// Hands the attempts of a batch over to the local dispatcher, which owns the batch now; an
    /// attempt that its row no longer knows is stopped.
    pub(in crate::engine) fn come_home(&mut self, id: BatchId, is_known: impl Fn(QueueId) -> bool) {
        for (row, this) in self.tries.extract_if(|_, this| this.batch_id == id) {
            if !is_known(row) {
                request_stop(&this.stop, StopReason::Disowned);
            }
        }
    }

    /// Keeps an attempt of a lost batch that still runs.
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

/// Whether a node with these roles runs bodies for others.
pub(in crate::engine) fn takes_work(roles: &Roles) -> bool {
    roles.contains(&NodeRole::Worker)
}
