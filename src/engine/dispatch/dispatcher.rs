//! queueDispatcher: opens batches, decides what starts next, settles what ended.
//!
//! One tick gathers all pending work (outcomes, jobs whose time has come, kills) and writes it in
//! one transaction: settled rows, released children, claims, logs, notifications. So a hop from
//! parent to child costs one durable commit, and ten outcomes that wait together cost one as well;
//! nothing is ever delayed in order to be grouped. Bodies start after the commit.
//!
//! When a tick fails, memory is discarded and rebuilt from the rows: the row is the truth, and
//! after a lost COMMIT only the row knows the outcome.

use crate::domain::batch::BatchStatus;
use crate::domain::cluster::lease::Uptime;
use crate::domain::dag::Node as Place;
use crate::domain::dispatch::slots::Slots;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::Takes;
use crate::domain::params::BatchValues;
use crate::domain::time::Millis;
use crate::engine::attempt::approvals::ApprovalPoll;
use crate::engine::attempt::claim_ack::Claiming;
use crate::engine::attempt::claim_check::Asker;
use crate::engine::attempt::record::recorded;
use crate::engine::attempt::run::{AttemptReport, Surroundings, What, dated};
use crate::engine::attempt::start_gate::Gate;
use crate::engine::clock::Clock;
use crate::engine::cluster::late_results::Late;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::cluster::registry::AttemptRunner;
use crate::engine::cluster::registry::Fleet;
use crate::engine::cluster::remote_attempts::Hosted;
use crate::engine::dispatch::acquire::Serving;
use crate::engine::dispatch::backfill::ActiveBackfill;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::shutdown::ShutdownTimeout;
use crate::engine::dispatch::writes::Changes;
use crate::engine::news::ProgressEvent;
use crate::engine::observe::traces::TraceQueue;
use crate::engine::options::EngineOptions;
use crate::engine::xxl::admin::Admin;
use crate::handler;
use crate::handler::log::RunLog;
use crate::handler::sessions::SessionPool;
use crate::store::Db;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Dispatches the batches of one process.
pub struct QueueDispatcher {
    pub(super) process: ClusterProcess,
    pub(super) batches: DispatchedBatches,
    pub(super) running: RunningHere,
    pub(super) reports: AttemptReports,
    pub(super) ends: EndedBatches,
    pub(super) course: DispatcherCourse,
    /// State of the serving loop: batches claimed because no process owned them.
    pub(super) serving: Serving,
    /// The other nodes.
    pub(super) fleet: Fleet,
    /// The backfill whose batches are opened here one after the other.
    pub(super) backfill: Option<ActiveBackfill>,
    /// The admin side of the XXL-JOB protocol.
    pub(super) admin: Arc<Admin>,
    pub(super) news: Option<mpsc::UnboundedSender<ProgressEvent>>,
    pub(super) traces: TraceQueue,
}

/// The batches that this process dispatches, and the slots for their jobs.
pub(super) struct DispatchedBatches {
    pub(super) active: BTreeMap<BatchId, Active>,
    /// The batch and DAG node of each row.
    pub(super) places: HashMap<QueueId, (BatchId, Place)>,
    pub(super) slots: Slots,
    /// The batch that started a job last; the next batch picks first.
    pub(super) last_served: Option<BatchId>,
    pub(super) ageing_ms: i64,
    /// Number of consecutive worker deaths after which a job is parked.
    pub(super) park_after: u32,
}

/// What runs in this process, for its own batches and for other nodes.
pub(super) struct RunningHere {
    pub(super) around: Arc<Surroundings>,
    /// Attempts that run here, by row.
    pub(super) bodies: HashMap<QueueId, LocalAttempt>,
    /// Attempts that run here for other nodes.
    pub(super) hosted: Hosted,
}

/// Reports of attempts, until they are written to the rows.
pub(super) struct AttemptReports {
    pub(super) channel: mpsc::UnboundedReceiver<AttemptReport>,
    /// Reports that are not yet committed; kept after a failed tick.
    pub(super) waiting: Vec<AttemptReport>,
    /// Attempts whose end is in memory while the answer to its commit is awaited.
    pub(super) heard: HashSet<(QueueId, u32)>,
    /// Results that no row accepted, to be stored as evidence.
    pub(super) late: Vec<Late>,
    /// Requests of running bodies about other batches, until they are handled; kept after a failed
    /// tick.
    pub(super) asks: Vec<AttemptReport>,
}

impl AttemptReports {
    fn new(channel: mpsc::UnboundedReceiver<AttemptReport>) -> Self {
        let (waiting, heard) = (Vec::new(), HashSet::new());
        Self { channel, waiting, heard, late: Vec::new(), asks: Vec::new() }
    }
}

/// Results of the batches of this process.
#[derive(Default)]
pub(super) struct EndedBatches {
    pub(super) results: BTreeMap<BatchId, BatchStatus>,
    /// Receivers waiting for the end of a batch.
    pub(super) waiters: HashMap<BatchId, Vec<oneshot::Sender<BatchStatus>>>,
}

/// The course of this process, and what it must do first.
pub(super) struct DispatcherCourse {
    /// A tick failed, so memory may differ from the rows and is read again before anything else.
    pub(super) stale: bool,
    /// The number of lease doubts already handled.
    pub(super) heeded: u64,
    /// Nothing new is started; what runs may end.
    pub(super) draining: bool,
    /// How long a shutdown waits for running bodies.
    pub(super) patience: ShutdownTimeout,
    /// A job has ended that a batch here waits for.
    pub(super) look_soon: bool,
}

impl DispatcherCourse {
    fn new(drain_ms: i64) -> Self {
        let patience = ShutdownTimeout::new(drain_ms);
        Self { stale: false, heeded: 0, draining: false, patience, look_soon: false }
    }
}

/// An attempt that runs in this process.
pub(super) struct LocalAttempt {
    pub(super) log: RunLog,
    pub(super) gate: Arc<Gate>,
    /// Whether its owners were notified that it runs long.
    pub(super) is_told: bool,
    pub(super) began: Uptime,
    pub(super) job_type: &'static str,
}

/// The progress of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStanding {
    /// Its number, group and the other values it was opened with.
    pub values: BatchValues,
    pub jobs: u64,
    /// Number of its jobs that have ended.
    pub ended: u64,
}

fn admin_of(
    ClusterProcess { db, clock, node, hints, .. }: &ClusterProcess,
    handlers: &handler::HandlerOptions,
    options: &EngineOptions,
) -> Result<Arc<Admin>> {
    let give_up = i64::try_from((handlers.kill_grace + handlers.kill_confirm).as_millis())?;
    Ok(Arc::new(Admin::new(
        db.clone(),
        clock.clone(),
        node.id().clone(),
        hints.clone(),
        give_up,
        options.executor_tls.clone(),
    )))
}

fn fleet_of(options: &EngineOptions) -> Fleet {
    let node = &options.node;
    Fleet::new(node.roles.clone(), node.labels.clone(), options.max_parallel)
}

impl QueueDispatcher {
    /// Joins the cluster as a new process.
    pub async fn start(
        db: Db,
        clock: Clock,
        options: &EngineOptions,
        handlers: handler::HandlerOptions,
        news: Option<mpsc::UnboundedSender<ProgressEvent>>,
    ) -> Result<Self> {
        let process = ClusterProcess::join_cluster(db.clone(), clock.clone(), options).await?;
        let ClusterProcess { node, heart, meter, .. } = &process;
        let (sender, reports) = mpsc::unbounded_channel();
        let admin = admin_of(&process, &handlers, options)?;
        let around = Arc::new(Surroundings {
            remote_runs: Arc::new(admin.clone()),
            db: db.clone(),
            log_db: db.for_log_lines(),
            clock: clock.clone(),
            installation: node.installation().to_owned(),
            owner: node.id().clone(),
            reports: sender,
            handlers: Arc::new(handlers),
            pulse: heart.pulse(),
            life: heart.watch(),
            watchers: Arc::default(),
            sessions: Arc::new(SessionPool::new(usize::try_from(options.max_parallel)?)),
            log_flush: Duration::from_millis(options.log_flush_ms),
            log_max_bytes: options.log_max_bytes,
            asker: Asker::new(db.clone(), node.id().clone()),
            approvals: ApprovalPoll::new(db.clone()),
            traced: false.into(),
            secret_stores: options.secret_stores.clone(),
        });
        let batches = DispatchedBatches {
            active: BTreeMap::new(),
            places: HashMap::new(),
            slots: Slots::new(options.max_parallel),
            last_served: None,
            ageing_ms: options.ageing_ms,
            park_after: options.park_after,
        };
        Ok(Self {
            batches,
            running: RunningHere { around, bodies: HashMap::new(), hosted: Hosted::default() },
            reports: AttemptReports::new(reports),
            ends: EndedBatches::default(),
            course: DispatcherCourse::new(options.drain_ms),
            serving: Serving::new(options.max_parallel, meter.clone()),
            fleet: fleet_of(options),
            backfill: None,
            admin,
            news,
            traces: TraceQueue::default(),
            process,
        })
    }

    pub fn node_id(&self) -> &NodeId {
        self.process.node.id()
    }

    /// The XXL-JOB admin of this process.
    pub fn executors(&self) -> &Arc<Admin> {
        &self.admin
    }

    /// Results of the batches that have ended.
    pub fn results(&self) -> &BTreeMap<BatchId, BatchStatus> {
        &self.ends.results
    }

    /// The progress of an open batch of this process, from memory.
    pub fn standing(&self, id: BatchId) -> Option<BatchStanding> {
        let active = self.batches.active.get(&id)?;
        let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
        Some(BatchStanding {
            values: active.batch.values.clone(),
            jobs: count(active.rows.len()),
            ended: count(active.rows.iter().filter(|row| row.status.is_final()).count()),
        })
    }

    /// Whether no batch is open, and no backfill will open one.
    pub fn is_idle(&self) -> bool {
        self.batches.active.is_empty() && self.backfill.is_none()
    }

    /// When the next tick has work without an event: the next not-before time, deadline or warning.
    pub fn next_wake(&self) -> Option<Millis> {
        self.batches.active.values().filter_map(Active::next_wake).min()
    }

    /// Number of bodies that this process runs.
    pub fn running(&self) -> usize {
        let ours: usize = self.batches.active.values().map(|a| a.in_hand().count()).sum();
        ours + self.running.hosted.count()
    }

    /// Number of bodies that use a slot, not counting those that only wait.
    pub(super) fn working(&self) -> usize {
        let works = |a: &Active| {
            a.in_hand().filter(|n| handler::kind_of(a.job_at(*n)).takes == Takes::Slots).count()
        };
        self.batches.active.values().map(works).sum::<usize>() + self.running.hosted.working()
    }

    /// Waits for one report of a worker.
    pub async fn wait_for_report(&mut self) {
        if let Some(report) = self.reports.channel.recv().await {
            self.take_report(report);
        }
    }

    /// One tick: all pending work in one transaction. Requests about other batches, and lists that
    /// become jobs, have transactions of their own. `true` when anything changed.
    pub async fn run_tick(&mut self) -> Result<bool> {
        self.heed_lease().await;
        if self.course.stale {
            self.recover().await.context("read the open batches again after a failed beat")?;
        }
        self.advance().await?;
        while let Ok(report) = self.reports.channel.try_recv() {
            self.take_report(report);
        }
        let answered = self.answer().await?;
        let turned = self.take_turn().await?;
        self.keep_late().await;
        let listed = self.make_lists().await?;
        self.say_load();
        Ok(answered || turned || listed)
    }

    async fn take_turn(&mut self) -> Result<bool> {
        let now = self.process.clock.now();
        let mut changes = Changes::default();
        let mut freed = Vec::new();
        self.load_reported_values().await?;
        self.absorb(&mut changes, &mut freed, now);
        let starts = self.claim(&mut changes, &freed, now);
        self.finish(&mut changes, now);
        if changes.is_empty() {
            self.settled();
            self.forget(freed);
            return Ok(false);
        }
        let claiming = Claiming::new();
        let starts = self.begin_all_ahead(starts, &changes, &claiming);
        self.commit(&changes, now).await?;
        self.settled();
        self.course.look_soon |= self.is_awaited(&freed);
        self.forget(freed);
        for (id, place, runner, ahead) in starts {
            match runner {
                AttemptRunner::Here => self.spawn(id, place, ahead),
                AttemptRunner::There(node) => self.send_away(id, place, node),
            }
        }
        claiming.committed();
        for active in self.batches.active.values() {
            active.stop_bodies();
        }
        self.note_told(&changes.told);
        for (batch, result) in &changes.finished {
            self.close(batch.batch_id, *result);
        }
        self.publish_events(changes.news);
        Ok(true)
    }

    /// Applies the workers' reports; a row that has ended itself is not stopped any more. Slots are
    /// freed here, so that the transaction that ends a job also starts the next.
    fn absorb(&mut self, changes: &mut Changes, freed: &mut Vec<(BatchId, Place)>, now: Millis) {
        let ended: Vec<_> = self.reports.waiting.iter().filter_map(recorded).collect();
        for report in &self.reports.waiting {
            if let What::Ended(..) = report.what {
                self.serving.note_end(report.queue_id);
            }
            let place = self.batches.places.get(&report.queue_id);
            let Some((id, place, active)) =
                place.and_then(|&(id, place)| Some((id, place, self.batches.active.get_mut(&id)?)))
            else {
                // The report was received, but the batch was lost before it was committed.
                self.reports.heard.remove(&(report.queue_id, report.attempt));
                continue;
            };
            match &report.what {
                What::Stopping if ended.contains(&report.queue_id) => {}
                What::Stopping => active.begin_stop(place, changes, now),
                // Removed from the list before.
                What::Asks(_) => {}
                What::Ended(outcome, lines) => {
                    if report.by.is_some() && active.away.get(&place) != report.by.as_ref() {
                        continue;
                    }
                    // A late end of another start must not free the slot of the present one.
                    if active.row_at(place).attempt == report.attempt && active.is_out(place) {
                        self.batches.slots.give_back(active.needs(place));
                        freed.push((id, place));
                    }
                    let began = active.row_at(place).start_time.unwrap_or(now);
                    if active.settle_attempt(place, report.attempt, outcome, changes, now) {
                        self.reports.heard.insert((report.queue_id, report.attempt));
                        if report.by.is_some() {
                            changes.reported.push((report.queue_id, report.attempt));
                        }
                        let lines = lines.iter().map(|l| dated(l.clone(), began)).collect();
                        changes.lines.push((report.queue_id, report.attempt, lines));
                    }
                }
            }
        }
        for active in self.batches.active.values_mut() {
            active.wake_due_jobs(now);
            active.tell_long(changes, now);
            active.stop_overdue(changes, now);
            if active.is_killing() {
                active.kill_jobs(changes, now);
            }
        }
        self.tell_late(changes, now);
    }

    fn finish(&self, changes: &mut Changes, now: Millis) {
        for active in self.batches.active.values() {
            if let Some(result) = active.result() {
                active.tell_end(result, changes, now);
                // An operator may rerun a job of it at this moment.
                changes.batches.insert(active.batch.batch_id, active.batch.revision);
                changes.finished.push((active.batch.clone(), result));
            }
        }
    }

    fn forget(&mut self, freed: Vec<(BatchId, Place)>) {
        for (id, place) in freed {
            if let Some(active) = self.batches.active.get_mut(&id) {
                self.running.bodies.remove(&active.row_at(place).queue_id);
                active.forget(place);
            }
        }
    }

    pub(super) fn close(&mut self, id: BatchId, result: BatchStatus) {
        if let Some(active) = self.batches.active.remove(&id) {
            for (row, _) in active.places() {
                self.batches.places.remove(&row);
            }
        }
        for waiter in self.ends.waiters.remove(&id).unwrap_or_default() {
            // The receiver may be gone.
            let _ = waiter.send(result);
        }
        self.ends.results.insert(id, result);
    }

    /// After a failed tick: reads all open batches again and recounts the slots.
    async fn recover(&mut self) -> Result<()> {
        let ids: Vec<BatchId> = self.batches.active.keys().copied().collect();
        for id in ids {
            self.load_batch(id).await?;
        }
        self.recount();
        self.course.stale = false;
        Ok(())
    }

    /// Recounts the slots from what runs here.
    pub(super) fn recount(&mut self) {
        self.batches.slots.clear();
        for active in self.batches.active.values() {
            for place in active.running_nodes() {
                self.batches.slots.acquire(active.needs(place));
            }
        }
    }
}
