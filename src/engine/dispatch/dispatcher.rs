//! queueDispatcher: opens batches, decides what goes next, settles what ended.
//!
//! One beat gathers everything that is waiting — outcomes, jobs whose time has come, kills — and
//! writes it in one transaction: settled rows, released children, claims, logs, mails. So a hop
//! from parent to child costs one durable commit, and ten outcomes that wait together cost one as
//! well; nothing ever waits in order to be grouped. Bodies start after the commit.
//!
//! When a beat fails, memory is thrown away and rebuilt from the rows: the row is the truth, and
//! after a lost COMMIT only the row knows.

use crate::domain::batch::BatchStatus;
use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::Takes;
use crate::domain::lease::Uptime;
use crate::domain::params::BatchValues;
use crate::domain::slots::Slots;
use crate::domain::time::Millis;
use crate::engine::attempt::claim_ack::Claiming;
use crate::engine::attempt::claim_check::Asker;
use crate::engine::attempt::record::recorded;
use crate::engine::attempt::run::{Report, Surroundings, What, dated};
use crate::engine::attempt::start_gate::Gate;
use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::cluster::late_results::Late;
use crate::engine::cluster::node::Node;
use crate::engine::cluster::registry::Fleet;
use crate::engine::cluster::remote_attempts::Hosted;
use crate::engine::dispatch::acquire::Serving;
use crate::engine::dispatch::backfill::Backfill;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::shutdown::Patience;
use crate::engine::dispatch::writes::{Changes, Runner};
use crate::engine::hints::Hints;
use crate::engine::observe::metrics::Meter;
use crate::engine::observe::traces::Traces;
use crate::engine::operate::approvals::ApprovalPoll;
use crate::engine::xxl::admin::Admin;
use crate::engine::{News, Options};
use crate::handler;
use crate::handler::log::RunLog;
use crate::handler::sessions::Sessions;
use crate::store::Db;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Dispatches the batches of one process.
pub struct QueueDispatcher {
    pub(in crate::engine) db: Db,
    pub(in crate::engine) clock: Clock,
    pub(in crate::engine) node: Node,
    pub(in crate::engine) slots: Slots,
    pub(in crate::engine) active: BTreeMap<BatchId, Active>,
    pub(in crate::engine) places: HashMap<QueueId, (BatchId, Place)>,
    /// Logs of the tries that run here, by row.
    pub(in crate::engine) bodies: HashMap<QueueId, Body>,
    /// The batch that started a job last; the next one has the first choice.
    pub(in crate::engine) last_served: Option<BatchId>,
    pub(in crate::engine) ageing_ms: i64,
    /// A job is parked when so many workers in a row have died while it ran.
    pub(in crate::engine) park_after: u32,
    /// Renews the lease, and says when it is in doubt.
    pub(in crate::engine) heart: Arc<Heart>,
    /// The doubts about the lease that have been heeded.
    pub(in crate::engine) heeded: u64,
    /// Reports that are not yet committed; kept over a failed beat.
    pub(in crate::engine) waiting: Vec<Report>,
    /// Tries whose end is in memory while the answer to its commit is awaited.
    pub(in crate::engine) heard: HashSet<(QueueId, u32)>,
    /// Results that no row took, to be kept as evidence.
    pub(in crate::engine) late: Vec<Late>,
    /// What running bodies wish of other batches, until it is done; kept over a failed beat.
    pub(in crate::engine) asks: Vec<Report>,
    /// Who waits for the end of a batch.
    pub(in crate::engine) waiters: HashMap<BatchId, Vec<oneshot::Sender<BatchStatus>>>,
    pub(in crate::engine) reports: mpsc::UnboundedReceiver<Report>,
    pub(in crate::engine) around: Arc<Surroundings>,
    pub(in crate::engine) news: Option<mpsc::UnboundedSender<News>>,
    pub(in crate::engine) results: BTreeMap<BatchId, BatchStatus>,
    /// A beat failed, so memory may differ from the rows and is read anew before anything else.
    pub(in crate::engine) stale: bool,
    /// Nothing new is started any more; what runs ends.
    pub(in crate::engine) draining: bool,
    /// When what runs is not waited for any longer, once this process leaves.
    pub(in crate::engine) patience: Patience,
    /// Batches that were taken because nobody had them.
    pub(in crate::engine) serving: Serving,
    /// Something has ended that a batch here waits for.
    pub(in crate::engine) look_soon: bool,
    /// The other nodes.
    pub(in crate::engine) fleet: Fleet,
    /// What runs here for them.
    pub(in crate::engine) hosted: Hosted,
    /// The range whose batches are opened here, one after the other ends.
    pub(in crate::engine) backfill: Option<Backfill>,
    pub(in crate::engine) meter: Arc<Meter>,
    pub(in crate::engine) hints: Hints,
    pub(in crate::engine) traces: Traces,
}

/// A try that runs in this process.
pub(in crate::engine) struct Body {
    pub(in crate::engine) log: RunLog,
    pub(in crate::engine) gate: Arc<Gate>,
    /// Whether its owners were told that it runs long.
    pub(in crate::engine) is_told: bool,
    pub(in crate::engine) began: Uptime,
    pub(in crate::engine) job_type: &'static str,
}

/// How far a batch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStanding {
    /// Its number, group and what else it was opened with.
    pub values: BatchValues,
    /// How many jobs it has.
    pub jobs: u64,
    /// How many of them have ended.
    pub ended: u64,
}

fn admin_of(
    (db, clock): (&Db, &Clock),
    node: &Node,
    hints: &Hints,
    handlers: &handler::Options,
    options: &Options,
) -> Result<Arc<Admin>> {
    let give_up = i64::try_from((handlers.kill_grace + handlers.kill_confirm).as_millis())?;
    let place = (db.clone(), clock.clone());
    Ok(Arc::new(Admin::new(
        place,
        node.id().clone(),
        hints.clone(),
        give_up,
        options.executor_tls.clone(),
    )))
}

fn fleet_of(options: &Options) -> Fleet {
    let node = &options.node;
    Fleet::new(node.roles.clone(), node.labels.clone(), options.max_parallel)
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
        let node = Node::join(&db, &clock, options).await?;
        let (sender, reports) = mpsc::unbounded_channel();
        let (meter, hints) = (Arc::<Meter>::default(), Hints::new(db.clone(), clock.clone()));
        let heart = Arc::new(Heart::new(db.clone(), clock.clone(), node.clone(), meter.clone()));
        let around = Arc::new(Surroundings {
            admin: admin_of((&db, &clock), &node, &hints, &handlers, options)?,
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
            sessions: Arc::new(Sessions::new(usize::try_from(options.max_parallel)?)),
            log_flush: Duration::from_millis(options.log_flush_ms),
            log_max_bytes: options.log_max_bytes,
            asker: Asker::new(db.clone(), node.id().clone()),
            approvals: ApprovalPoll::new(db.clone()),
            traced: false.into(),
            secret_stores: options.secret_stores.clone(),
        });
        Ok(Self {
            hints,
            db,
            clock,
            node,
            slots: Slots::new(options.max_parallel),
            active: BTreeMap::new(),
            places: HashMap::new(),
            bodies: HashMap::new(),
            last_served: None,
            ageing_ms: options.ageing_ms,
            park_after: options.park_after,
            heart,
            heeded: 0,
            waiting: Vec::new(),
            heard: HashSet::new(),
            late: Vec::new(),
            asks: Vec::new(),
            waiters: HashMap::new(),
            reports,
            around,
            news,
            results: BTreeMap::new(),
            stale: false,
            draining: false,
            patience: Patience::new(options.drain_ms),
            serving: Serving::new(options.max_parallel, meter.clone()),
            look_soon: false,
            fleet: fleet_of(options),
            hosted: Hosted::default(),
            backfill: None,
            meter,
            traces: Traces::default(),
        })
    }

    /// The identity of this process.
    pub fn node_id(&self) -> &NodeId {
        self.node.id()
    }

    /// The admin of executors in this process.
    pub fn executors(&self) -> &Arc<Admin> {
        &self.around.admin
    }

    /// Results of the batches that have ended.
    pub fn results(&self) -> &BTreeMap<BatchId, BatchStatus> {
        &self.results
    }

    /// How far an open batch of this process is, by what memory holds.
    pub fn standing(&self, id: BatchId) -> Option<BatchStanding> {
        let active = self.active.get(&id)?;
        let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
        Some(BatchStanding {
            values: active.batch.values.clone(),
            jobs: count(active.rows.len()),
            ended: count(active.rows.iter().filter(|row| row.status.is_final()).count()),
        })
    }

    /// Whether no batch is open, and none is going to be.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.backfill.is_none()
    }

    /// When the next beat has something to do without being told: the next not-before, deadline or
    /// warning.
    pub fn next_wake(&self) -> Option<Millis> {
        self.active.values().filter_map(Active::next_wake).min()
    }

    /// How many bodies this process runs.
    pub fn running(&self) -> usize {
        let ours: usize = self.active.values().map(|a| a.in_hand().count()).sum();
        ours + self.hosted.count()
    }

    /// How many of them do work of their own, and are not only waiting for something.
    pub(in crate::engine) fn working(&self) -> usize {
        let works = |a: &Active| {
            a.in_hand().filter(|n| handler::kind_of(a.job(*n)).takes == Takes::Slots).count()
        };
        self.active.values().map(works).sum::<usize>() + self.hosted.working()
    }

    /// Waits for a report of a worker.
    pub async fn wait(&mut self) {
        if let Some(report) = self.reports.recv().await {
            self.hear(report);
        }
    }

    /// One turn: everything that waits, in one transaction. Wishes about other batches and lists that
    /// become jobs have transactions of their own. `true` when anything changed.
    pub async fn beat(&mut self) -> Result<bool> {
        self.heed_lease().await;
        if self.stale {
            self.recover().await.context("read the open batches again after a failed beat")?;
        }
        self.advance().await?;
        while let Ok(report) = self.reports.try_recv() {
            self.hear(report);
        }
        let answered = self.answer().await?;
        let turned = self.turn().await?;
        self.keep_late().await;
        let listed = self.make_lists().await?;
        self.say_load();
        Ok(answered || turned || listed)
    }

    async fn turn(&mut self) -> Result<bool> {
        let now = self.clock.now();
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
        self.look_soon |= self.is_awaited(&freed);
        self.forget(freed);
        for (id, place, runner, ahead) in starts {
            match runner {
                Runner::Here => self.spawn(id, place, ahead),
                Runner::There(node) => self.send_away(id, place, node),
            }
        }
        claiming.committed();
        for active in self.active.values() {
            active.stop_bodies();
        }
        self.note_told(&changes.told);
        for (batch, result) in &changes.finished {
            self.close(batch.batch_id, *result);
        }
        self.tell(changes.news);
        Ok(true)
    }

    /// Takes the workers' reports in; a row that ended itself is not stopped any more. Slots are freed
    /// here, so that the same transaction that ends a job starts the next.
    fn absorb(&mut self, changes: &mut Changes, freed: &mut Vec<(BatchId, Place)>, now: Millis) {
        let ended: Vec<_> = self.waiting.iter().filter_map(recorded).collect();
        for report in &self.waiting {
            if let What::Ended(..) = report.what {
                self.serving.hear(report.queue_id);
            }
            let place = self.places.get(&report.queue_id);
            let Some((id, place, active)) =
                place.and_then(|&(id, place)| Some((id, place, self.active.get_mut(&id)?)))
            else {
                // Heard, but the batch was lost before it was committed.
                self.heard.remove(&(report.queue_id, report.attempt));
                continue;
            };
            match &report.what {
                What::Stopping if ended.contains(&report.queue_id) => {}
                What::Stopping => active.begin_stop(place, changes, now),
                // Was taken out before.
                What::Asks(_) => {}
                What::Ended(outcome, lines) => {
                    if report.by.is_some() && active.away.get(&place) != report.by.as_ref() {
                        continue;
                    }
                    // A late end of another start must not free what runs here now.
                    if active.row(place).attempt == report.attempt && active.is_out(place) {
                        self.slots.give_back(active.needs(place));
                        freed.push((id, place));
                    }
                    let began = active.row(place).start_time.unwrap_or(now);
                    if active.end(place, report.attempt, outcome, changes, now) {
                        self.heard.insert((report.queue_id, report.attempt));
                        if report.by.is_some() {
                            changes.reported.push((report.queue_id, report.attempt));
                        }
                        let lines = lines.iter().map(|l| dated(l.clone(), began)).collect();
                        changes.lines.push((report.queue_id, report.attempt, lines));
                    }
                }
            }
        }
        for active in self.active.values_mut() {
            active.wake(now);
            active.tell_long(changes, now);
            active.stop_overdue(changes, now);
            if active.is_killing() {
                active.kill(changes, now);
            }
        }
        self.tell_late(changes, now);
    }

    fn finish(&self, changes: &mut Changes, now: Millis) {
        for active in self.active.values() {
            if let Some(result) = active.result() {
                active.tell_end(result, changes, now);
                // An operator may start a job of it over at this very moment.
                changes.batches.insert(active.batch.batch_id, active.batch.revision);
                changes.finished.push((active.batch.clone(), result));
            }
        }
    }

    fn forget(&mut self, freed: Vec<(BatchId, Place)>) {
        for (id, place) in freed {
            if let Some(active) = self.active.get_mut(&id) {
                self.bodies.remove(&active.row(place).queue_id);
                active.forget(place);
            }
        }
    }

    pub(in crate::engine) fn close(&mut self, id: BatchId, result: BatchStatus) {
        if let Some(active) = self.active.remove(&id) {
            for (row, _) in active.places() {
                self.places.remove(&row);
            }
        }
        for waiter in self.waiters.remove(&id).unwrap_or_default() {
            // Whoever waited may have been stopped.
            let _ = waiter.send(result);
        }
        self.results.insert(id, result);
    }

    /// After a failed beat: memory of all open batches anew from their rows, slots recounted.
    async fn recover(&mut self) -> Result<()> {
        let ids: Vec<BatchId> = self.active.keys().copied().collect();
        for id in ids {
            self.load(id).await?;
        }
        self.recount();
        self.stale = false;
        Ok(())
    }

    /// Slots by what runs here.
    pub(in crate::engine) fn recount(&mut self) {
        self.slots.clear();
        for active in self.active.values() {
            for place in active.out() {
                self.slots.take(active.needs(place));
            }
        }
    }
}
