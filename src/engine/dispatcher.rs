//! queueDispatcher: opens batches, decides what goes next, settles what ended.
//!
//! One beat gathers everything that is waiting — outcomes, jobs whose time has come, kills — and
//! writes it in one transaction: settled rows, released children, claims, logs, mails. So a hop
//! from parent to child costs one durable commit, and ten outcomes that wait together cost one as
//! well; nothing ever waits in order to be grouped. Bodies start after the commit.
//!
//! When a beat fails, memory is thrown away and rebuilt from the rows: the row is the truth, and
//! after a lost COMMIT only the row knows.

use crate::domain::batch::{Batch, BatchOrder, BatchPlan, BatchStatus, plan};
use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::job::Definition;
use crate::domain::params;
use crate::domain::rerun::{self, UnknownJobs};
use crate::domain::slots::Slots;
use crate::domain::time::Millis;
use crate::engine::active::Active;
use crate::engine::changes::Changes;
use crate::engine::clock::Clock;
use crate::engine::node::Node;
use crate::engine::worker::{Job, Report, Surroundings, What, run_task};
use crate::engine::{News, Options};
use crate::handler;
use crate::store::{self, Db, Tx, batch, node, queue};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Dispatches the batches of one process.
pub struct QueueDispatcher {
    db: Db,
    clock: Clock,
    node: Node,
    slots: Slots,
    active: BTreeMap<BatchId, Active>,
    places: HashMap<QueueId, (BatchId, Place)>,
    /// Reports that are not yet committed; kept over a failed beat.
    waiting: Vec<Report>,
    reports: mpsc::UnboundedReceiver<Report>,
    around: Arc<Surroundings>,
    news: Option<mpsc::UnboundedSender<News>>,
    results: BTreeMap<BatchId, BatchStatus>,
}

/// Why an order did not become a batch of this process.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It exists.
    #[error(
        "batch {0} of group {1} exists already ({2}); it never runs silently twice. To go on with \
         it: --resume"
    )]
    Exists(String, String, BatchStatus),
    /// There is nothing to resume.
    #[error("there is no batch {0} of group {1} to resume; leave out --resume to start it")]
    NotThere(String, String),
    /// A living process has it.
    #[error(
        "batch {batch_no} of group {group} is in the hands of another process ({host}, pid {pid}), \
         alive until at least {until}; wait for it, or end it with: procession batch kill {batch_no} \
         --group {group} --reason WHY"
    )]
    Owned {
        /// The batch number.
        batch_no: String,
        /// The group.
        group: String,
        /// Where its process is.
        host: String,
        /// Which process.
        pid: i64,
        /// When its lease ends unless it is renewed.
        until: Millis,
    },
    /// It ended well.
    #[error("batch {0} of group {1} ended {2}; there is nothing left to resume")]
    Ended(String, String, BatchStatus),
    /// It ended badly, and nothing of it may start over by itself.
    #[error(
        "batch {0} of group {1} has only jobs of unknown outcome ({2}) left; look at their data, \
         then: --resume --rerun-unknown"
    )]
    OnlyUnknown(String, String, String),
}

/// A batch that was resumed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The batch.
    pub batch_id: BatchId,
    /// Jobs that start over, when it had ended.
    pub again: Vec<JobCode>,
}

impl QueueDispatcher {
    /// Joins the cluster as a new process.
    pub async fn start(
        db: Db,
        clock: Clock,
        options: &Options,
        handlers: handler::Options,
        news: Option<mpsc::UnboundedSender<News>>,
    ) -> Result<Self> {
        let node = Node::join(&db, &clock, options.lease_ms).await?;
        let (sender, reports) = mpsc::unbounded_channel();
        let around = Arc::new(Surroundings {
            db: db.clone(),
            clock: clock.clone(),
            owner: node.id().clone(),
            reports: sender,
            handlers: Arc::new(handlers),
            log_flush: Duration::from_millis(options.log_flush_ms),
            log_max_bytes: options.log_max_bytes,
        });
        Ok(Self {
            db,
            clock,
            node,
            slots: Slots::new(options.max_parallel),
            active: BTreeMap::new(),
            places: HashMap::new(),
            waiting: Vec::new(),
            reports,
            around,
            news,
            results: BTreeMap::new(),
        })
    }

    /// Opens the batches an order asks for: snapshot and one queue row per active job, in one
    /// transaction for all of them. Nothing is written when any of them exists.
    pub async fn open(
        &mut self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
    ) -> Result<Vec<BatchId>> {
        let now = self.clock.now();
        let plans = plan(defs, order, now)?;
        let mut tx = self.db.begin().await?;
        let mut opened = Vec::new();
        for plan in &plans {
            let values = &plan.values;
            if let Some(there) = batch::find(&mut tx, &values.batch_no, &values.group).await? {
                return Err(exists(&there).into());
            }
            opened.push(self.write_plan(&mut tx, plan, by, now).await?);
        }
        tx.commit().await.context("open the batch")?;
        for id in &opened {
            self.load(*id).await?;
        }
        Ok(opened)
    }

    async fn write_plan(
        &self,
        tx: &mut Tx,
        plan: &BatchPlan,
        by: &str,
        now: Millis,
    ) -> Result<BatchId> {
        let id = batch::insert(tx, plan, self.node.id(), by, now).await?;
        let entries: Vec<queue::NewEntry<'_>> = plan
            .snapshot
            .jobs
            .iter()
            .zip(&plan.not_before)
            .map(|(job, not_before)| queue::NewEntry {
                job_code: &job.code,
                not_before: *not_before,
            })
            .collect();
        queue::generate(tx, id, plan.values.batch_no.as_str(), &entries, now).await?;
        Ok(id)
    }

    /// Goes on with a batch: one that a dead process left, where its rows say; one that ended
    /// badly, from its failures. A living process's batch is refused.
    pub async fn resume(&mut self, there: &Batch, unknown: UnknownJobs) -> Result<Resumed> {
        let now = self.clock.now();
        let (no, group) = (there.values.batch_no.to_string(), there.values.group.to_string());
        let mut tx = self.db.begin().await?;
        if let Some(owner) = &there.owner
            && let Some(holder) = node::find(&mut tx, owner).await?
            && holder.lease_until > now
        {
            let (host, pid, until) = (holder.host, holder.pid, holder.lease_until);
            return Err(Refused::Owned { batch_no: no, group, host, pid, until }.into());
        }
        let mut again = Vec::new();
        let mut status = there.status;
        if status.is_final() {
            again = self.start_over(&mut tx, there, unknown, now).await?;
            status = BatchStatus::Running;
        }
        if !batch::take_over(&mut tx, there, self.node.id(), status, now).await? {
            tx.rollback().await?;
            anyhow::bail!("batch {no} of group {group} changed hands meanwhile; try again");
        }
        tx.commit().await.context("take the batch over")?;
        self.load(there.batch_id).await?;
        Ok(Resumed { batch_id: there.batch_id, again })
    }

    async fn start_over(
        &self,
        tx: &mut Tx,
        there: &Batch,
        unknown: UnknownJobs,
        now: Millis,
    ) -> Result<Vec<JobCode>> {
        let (no, group) = (there.values.batch_no.to_string(), there.values.group.to_string());
        if there.status.is_success() {
            return Err(Refused::Ended(no, group, there.status).into());
        }
        let snapshot = batch::snapshot(tx, there.batch_id).await?;
        let rows = queue::of_batch(tx, there.batch_id).await?;
        let status: Vec<_> = rows.iter().map(|r| r.status).collect();
        let nodes = rerun::from_failure(&snapshot.dag()?, &status, unknown);
        if nodes.is_empty() {
            let unknown: Vec<String> = rows
                .iter()
                .filter(|r| r.status == crate::domain::queue::QueueStatus::Unknown)
                .map(|r| r.job_code.to_string())
                .collect();
            return Err(Refused::OnlyUnknown(no, group, unknown.join(", ")).into());
        }
        let mut by_state: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for node in &nodes {
            by_state.entry(status[node.at()]).or_default().push(rows[node.at()].queue_id.0);
        }
        for (from, ids) in by_state {
            queue::reset(tx, &ids, from, now).await?;
        }
        let logs: Vec<store::log::ExecutionLog> = nodes
            .iter()
            .map(|node| store::log::ExecutionLog {
                queue_id: rows[node.at()].queue_id,
                status: crate::domain::queue::QueueStatus::Pending,
                start_time: None,
                end_time: None,
                error_message: Some("started over by an operator (--resume)".to_owned()),
                notified: false,
                try_count: 0,
                attempt: rows[node.at()].attempt,
                owner: Some(self.node.id().clone()),
            })
            .collect();
        store::log::append(tx, &logs, now).await?;
        Ok(nodes.iter().map(|n| rows[n.at()].job_code.clone()).collect())
    }

    /// Reads a batch of ours from its rows into memory, replacing what memory held of it.
    async fn load(&mut self, id: BatchId) -> Result<()> {
        let stops = self.active.remove(&id).map(Active::into_stops).unwrap_or_default();
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let batch = batch::get(&mut tx, id).await?;
        let snapshot = batch::snapshot(&mut tx, id).await?;
        let rows = queue::of_batch(&mut tx, id).await?;
        let (mut active, owed) =
            Active::rebuild(batch, snapshot, rows, self.node.id(), stops, now)?;
        for (row, json) in queue::outputs(&mut tx, &active.outputs_to_load()).await? {
            active.keep_outputs(row, &json)?;
        }
        owed.write(&mut tx, self.node.id(), now).await?;
        tx.commit().await.context("read a batch from its rows")?;
        let group = &active.snapshot.group;
        self.slots.limit_group(&group.code, group.max_parallel);
        for source in &active.snapshot.sources {
            self.slots.limit_source(&source.name, source.max_parallel);
        }
        self.places.extend(active.places().map(|(row, place)| (row, (id, place))));
        self.active.insert(id, active);
        self.tell(owed.news);
        Ok(())
    }

    /// Results of the batches that have ended.
    pub fn results(&self) -> &BTreeMap<BatchId, BatchStatus> {
        &self.results
    }

    /// Whether no batch is open.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// When the next beat has something to do without being told: the next not-before.
    pub fn next_wake(&self) -> Option<Millis> {
        self.active.values().filter_map(Active::next_wake).min()
    }

    /// Waits for a report of a worker.
    pub async fn wait(&mut self) {
        if let Some(report) = self.reports.recv().await {
            self.waiting.push(report);
        }
    }

    /// One turn: everything that waits, in one transaction. `true` when anything changed.
    pub async fn beat(&mut self) -> Result<bool> {
        while let Ok(report) = self.reports.try_recv() {
            self.waiting.push(report);
        }
        let now = self.clock.now();
        let mut changes = Changes::default();
        let mut freed = Vec::new();
        self.absorb(&mut changes, &mut freed, now);
        let starts = self.claim(&mut changes, now);
        self.finish(&mut changes);
        if changes.is_empty() {
            self.waiting.clear();
            self.forget(freed);
            return Ok(false);
        }
        if let Err(error) = self.commit(&changes, now).await {
            self.recover().await.context("read the open batches again after a failed beat")?;
            return Err(error);
        }
        self.waiting.clear();
        self.forget(freed);
        for (id, place) in starts {
            self.spawn(id, place);
        }
        for active in self.active.values() {
            active.stop_bodies();
        }
        for (batch, result) in &changes.finished {
            self.close(batch.batch_id, *result);
        }
        self.tell(changes.news);
        Ok(true)
    }

    async fn commit(&self, changes: &Changes, now: Millis) -> Result<()> {
        let mut tx = self.db.begin().await?;
        changes.write(&mut tx, self.node.id(), now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes the workers' reports in. Slots are freed here, so that the same transaction that
    /// ends a job starts the next.
    fn absorb(&mut self, changes: &mut Changes, freed: &mut Vec<(BatchId, Place)>, now: Millis) {
        for report in &mut self.waiting {
            let Some(&(id, place)) = self.places.get(&report.queue_id) else { continue };
            let Some(active) = self.active.get_mut(&id) else { continue };
            match &mut report.what {
                What::Stopping => active.begin_stop(place, changes, now),
                What::Ended(outcome, lines) => {
                    let job = active.job(place);
                    self.slots.give_back(&active.batch.values.group, job.source.as_ref());
                    freed.push((id, place));
                    if !active.end(place, report.attempt, outcome, changes, now) {
                        tracing::warn!(
                            queue_id = report.queue_id.0,
                            report.attempt,
                            "a late result of an earlier try; the row belongs to another one now"
                        );
                    }
                    changes.lines.push((report.queue_id, report.attempt, lines.clone()));
                }
            }
        }
        for active in self.active.values_mut() {
            active.wake(now);
            if active.is_killing() {
                active.kill(changes, now);
            }
        }
    }

    /// Fills free slots, one job of each batch in turn so that none starves another.
    fn claim(&mut self, changes: &mut Changes, now: Millis) -> Vec<(BatchId, Place)> {
        let mut starts = Vec::new();
        loop {
            let before = starts.len();
            for (id, active) in &mut self.active {
                if let Some(place) = active.pick(&mut self.slots, self.node.id(), changes, now) {
                    starts.push((*id, place));
                }
            }
            if starts.len() == before {
                break;
            }
        }
        for active in self.active.values_mut() {
            active.queue_the_rest(changes, now);
        }
        starts
    }

    fn finish(&self, changes: &mut Changes) {
        for active in self.active.values() {
            if let Some(result) = active.result() {
                changes.finished.push((active.batch.clone(), result));
            }
        }
    }

    fn forget(&mut self, freed: Vec<(BatchId, Place)>) {
        for (id, place) in freed {
            if let Some(active) = self.active.get_mut(&id) {
                active.forget(place);
            }
        }
    }

    fn close(&mut self, id: BatchId, result: BatchStatus) {
        if let Some(active) = self.active.remove(&id) {
            for (row, _) in active.places() {
                self.places.remove(&row);
            }
        }
        self.results.insert(id, result);
    }

    /// After a failed beat: memory of all open batches anew from their rows, slots recounted.
    async fn recover(&mut self) -> Result<()> {
        let ids: Vec<BatchId> = self.active.keys().copied().collect();
        for id in ids {
            self.load(id).await?;
        }
        self.slots.clear();
        for active in self.active.values() {
            for place in active.in_hand() {
                let job = active.job(place);
                self.slots.take(&active.batch.values.group, job.source.as_ref());
            }
        }
        Ok(())
    }

    fn spawn(&mut self, id: BatchId, place: Place) {
        let Some(active) = self.active.get_mut(&id) else { return };
        let (stopper, stop) = watch::channel(None);
        active.started(place, stopper.clone());
        let (row, def) = (active.row(place), active.job(place));
        let output = |code: &JobCode, name: &str| active.output(code, name);
        let job = Job {
            queue_id: row.queue_id,
            attempt: row.attempt,
            params: params::resolve(def, &active.batch.values, &output),
            def: def.clone(),
            batch: Arc::new(active.batch.clone()),
            lock_name: format!("procession:{}:{}", self.node.installation(), row.queue_id.0),
            stop,
            stopper,
        };
        tokio::spawn(run_task(job, active.snapshot.clone(), self.around.clone()));
    }

    fn tell(&self, news: Vec<News>) {
        let Some(sender) = &self.news else { return };
        for item in news {
            // Whoever watched has gone; the rows say the same.
            let _ = sender.send(item);
        }
    }

    /// Looks for batches of ours that an operator wants stopped.
    pub async fn look_for_kills(&mut self) -> Result<()> {
        let mut tx = self.db.read().await?;
        let wanted = batch::kills_requested(&mut tx, self.node.id()).await?;
        drop(tx);
        let now = self.clock.now();
        for id in wanted {
            let Some(active) = self.active.get_mut(&id).filter(|a| !a.is_killing()) else {
                continue;
            };
            let mut changes = Changes::default();
            active.kill(&mut changes, now);
            if let Err(error) = self.commit(&changes, now).await {
                self.recover().await?;
                return Err(error);
            }
            if let Some(active) = self.active.get(&id) {
                active.stop_bodies();
            }
            self.tell(changes.news);
        }
        Ok(())
    }

    /// Renews this process's lease.
    pub async fn heartbeat(&self) -> Result<()> {
        self.node.beat(&self.db, &self.clock).await
    }

    /// Runs until every open batch has ended. Never gives up on a database that is away: it backs
    /// off and goes on from the rows when it is back.
    pub async fn run_until_done(&mut self) -> Result<()> {
        let mut pause = Pause::default();
        let mut heartbeat_at = self.clock.now().plus(self.node.heartbeat_ms());
        let mut look_at = self.clock.now();
        while !self.is_idle() {
            let now = self.clock.now();
            let turn = async {
                if now >= heartbeat_at {
                    self.heartbeat().await?;
                    heartbeat_at = now.plus(self.node.heartbeat_ms());
                }
                if now >= look_at {
                    self.look_for_kills().await?;
                    look_at = now.plus(LOOK_MS);
                }
                self.beat().await
            };
            match turn.await {
                Ok(true) => pause = Pause::default(),
                Ok(false) => self.rest(heartbeat_at.min(look_at)).await,
                Err(error) if store::is_transient(&error) || is_stale(&error) => {
                    tracing::warn!(error = format!("{error:#}"), "a beat failed; trying again");
                    tokio::time::sleep(pause.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn rest(&mut self, until: Millis) {
        let now = self.clock.now();
        let until = self.next_wake().map_or(until, |wake| wake.min(until));
        let rest = Duration::from_millis(u64::try_from(until.since(now)).unwrap_or(0).max(1));
        tokio::select! {
            () = self.wait() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }

    /// Ends this process's lease, so that nobody has to wait for it to run out.
    pub async fn leave(self) -> Result<()> {
        self.node.leave(&self.db, self.clock.now()).await
    }
}

/// How often a running batch looks whether an operator wants it stopped.
const LOOK_MS: i64 = 1_000;

fn is_stale(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<queue::Stale>().is_some())
}

fn exists(there: &Batch) -> Refused {
    let values = &there.values;
    Refused::Exists(values.batch_no.to_string(), values.group.to_string(), there.status)
}

/// Growing pauses between tries, 50 ms to 5 s, with jitter so that two nodes do not march in step.
#[derive(Default)]
struct Pause {
    tries: u32,
}

impl Pause {
    fn next(&mut self) -> Duration {
        let base = 50u64 << self.tries.min(6);
        self.tries += 1;
        let jitter = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * base / 512;
        Duration::from_millis(base.min(5_000) + jitter)
    }
}
