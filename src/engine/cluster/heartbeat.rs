//! The heartbeat: renews this process's lease independently of everything else, and fences the
//! process in time when it cannot.
//!
//! It runs in a task of its own: a tick of the dispatcher may wait half a minute for a database
//! that does not answer, and the lease must not expire unnoticed meanwhile. When the rule in
//! `domain/cluster/lease.rs` requires the fence, every body of this process is told to end; bodies
//! watch for that themselves, so the fence needs neither dispatcher nor database.

use crate::domain::cluster::lease::{Lease, LeaseStep, Uptime, Writers};
use crate::domain::cluster::metadata_gap::{HistoryMark, MetadataGap};
use crate::domain::cluster::skew::{ClockVerdict, Skew};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::node::LocalNode;
use crate::engine::cluster::suspension::Suspension;
use crate::engine::lease::Life;
use crate::engine::observe::metrics::Meter;
use crate::store::node::{HeartbeatReport, Stay};
use crate::store::{self, Db, Tx, metadata_gap, node};
use anyhow::Result;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The lease of this process and the state derived from it.
pub(in crate::engine) struct Heart {
    db: Db,
    /// A separate connection for the lease: no other statement delays a renewal.
    lease_db: Db,
    clock: Clock,
    node: LocalNode,
    held: Mutex<HeartbeatState>,
    /// Counts the renewals.
    pulse: watch::Sender<u64>,
    life: watch::Sender<Life>,
    meter: Arc<Meter>,
    /// The number of running jobs, sent with the next heartbeat.
    running: AtomicU32,
    /// This process is shutting down.
    is_leaving: AtomicBool,
    /// This node must not take new work.
    is_resting: AtomicBool,
    /// Whether the database has lost committed data (restored from a backup).
    suspension: Suspension,
}

struct HeartbeatState {
    lease: Lease,
    /// When the lease expires, by the database's clock.
    until: Millis,
    /// The measured clock difference; `None` for a clock that a test sets.
    skew: Option<Skew>,
    /// When the present time was last in doubt.
    doubted: Option<Uptime>,
    /// When the last write succeeded.
    written: Uptime,
    /// Why the last renewal was not written.
    obstacle: Option<&'static str>,
    /// What the renewal under way waits for.
    stage: RenewalStage,
    /// Since when it waits for that.
    stage_began: Uptime,
}

/// What a renewal waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenewalStage {
    /// Its turn to write to the SQLite file, or its connection.
    Access,
    /// The answers to its statements.
    Answers,
    /// Its commit.
    Commit,
}

impl RenewalStage {
    fn describe(self, writers: Writers) -> &'static str {
        match (self, writers) {
            (Self::Access, Writers::One) => "its turn to write: another transaction is writing",
            (Self::Access, Writers::Many) => "a connection to the database",
            (Self::Answers, _) => "the database to answer a statement",
            (Self::Commit, _) => "the database to commit it",
        }
    }
}

/// What one renewal has written, by the database's clock.
struct RenewedLease {
    at: Millis,
    until: Millis,
}

/// The name of this loop in metrics.
const NAME: &str = "heartbeat";

impl Heart {
    /// The heartbeat of a process that has just joined.
    pub(in crate::engine) fn new(db: Db, clock: Clock, node: LocalNode, meter: Arc<Meter>) -> Self {
        let lease = Lease::new(node.lease_ms(), store::writers(&db), node.asked_at());
        let skew = node.measured().map(Skew::new);
        let (until, written) = (node.lease_until(), node.asked_at());
        let held = HeartbeatState {
            lease,
            until,
            skew,
            doubted: None,
            written,
            obstacle: None,
            stage: RenewalStage::Access,
            stage_began: written,
        };
        let held = Mutex::new(held);
        let (pulse, life) = (watch::Sender::new(0), watch::Sender::new(Life::default()));
        let (is_leaving, is_resting) = (AtomicBool::new(false), AtomicBool::new(false));
        let running = AtomicU32::new(0);
        let suspension = Suspension::default();
        Self {
            lease_db: db.for_lease(),
            db,
            clock,
            node,
            held,
            pulse,
            life,
            meter,
            running,
            is_leaving,
            is_resting,
            suspension,
        }
    }

    /// A receiver of the renewal count.
    pub(in crate::engine) fn pulse(&self) -> watch::Receiver<u64> {
        self.pulse.subscribe()
    }

    /// A receiver of the lease state, from now on.
    pub(in crate::engine) fn watch(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// The present lease state.
    pub(in crate::engine) fn lease_state(&self) -> Life {
        *self.life.borrow()
    }

    /// Whether this node must not take new work: an operator drained it (read with each heartbeat),
    /// or the database has lost committed data.
    pub(in crate::engine) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Relaxed) || self.is_suspended()
    }

    /// Whether nothing may fire or start because the database has lost committed data.
    pub(in crate::engine) fn is_suspended(&self) -> bool {
        self.suspension.is_on()
    }

    /// The period whose data the database lacks.
    pub(in crate::engine) fn metadata_gap(&self) -> Option<MetadataGap> {
        self.suspension.metadata_gap()
    }

    /// The newest write that this process knows to be committed; read it before the database is
    /// queried.
    pub(in crate::engine) fn committed(&self) -> Option<Millis> {
        self.suspension.committed()
    }

    /// Evaluates the database's history mark, which another query has read; the next heartbeat
    /// records a gap that it reveals.
    pub(in crate::engine) fn observe_history(&self, mark: &HistoryMark, committed: Option<Millis>) {
        self.suspension.observe(mark, committed, self.clock.now(), self.node.name());
    }

    /// The lease duration in milliseconds.
    pub(in crate::engine) fn lease_ms(&self) -> i64 {
        self.node.lease_ms()
    }

    /// Milliseconds since the last write, and why the last renewal failed.
    pub(super) fn last_write(&self) -> (i64, Option<&'static str>) {
        let (held, now) = (self.lock_state(), self.clock.uptime());
        (now.since(held.written), held.obstacle)
    }

    /// Sets the number of running jobs for the next heartbeat.
    pub(in crate::engine) fn set_running(&self, running: u32) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Announces the shutdown with the next heartbeat. `true` the first time.
    pub(in crate::engine) fn set_leaving(&self) -> bool {
        !self.is_leaving.swap(true, Ordering::Relaxed)
    }

    /// Writes a heartbeat at once.
    pub(in crate::engine) async fn say_now(&self) -> Result<()> {
        let mut tx = self.db.begin().await?;
        self.write_state(&mut tx, self.clock.now()).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn write_state(&self, tx: &mut Tx, now: Millis) -> Result<()> {
        let leaves = self.is_leaving.load(Ordering::Relaxed);
        let said = HeartbeatReport {
            running: self.running.load(Ordering::Relaxed),
            skew_ms: self.clock_skew().map_or(0, |skew| skew.last_measurement().skew_ms),
            stay: if leaves { Stay::Leaves } else { Stay::Stays },
        };
        let rests = node::store_heartbeat(tx, self.node.id(), said, now).await?;
        self.is_resting.store(rests, Ordering::Relaxed);
        Ok(())
    }

    /// Whether batches of a dead process may be taken over now. After a jump of the database's
    /// clock all leases seem to have expired; every living process renews within two thirds of a
    /// lease.
    pub(in crate::engine) fn may_take_over(&self) -> bool {
        let (held, now) = (self.lock_state(), self.clock.uptime());
        let lately = held.doubted.is_some_and(|at| now.since(at) < self.node.lease_ms() / 3 * 2);
        held.lease.may_take_over(now) && held.is_sure() && !lately && !self.is_suspended()
    }

    /// Whether this process may fire schedules: its lease is valid, and the present time is
    /// certain.
    pub(in crate::engine) fn may_schedule(&self) -> bool {
        let held = self.lock_state();
        !held.lease.is_fenced() && held.is_sure() && !self.is_suspended()
    }

    /// The measured clock difference; `None` for a clock that a test sets.
    pub(in crate::engine) fn clock_skew(&self) -> Option<Skew> {
        self.lock_state().skew
    }

    /// One heartbeat, due or not: fences the process if necessary, then renews.
    pub(in crate::engine) async fn beat_once(&self) -> Result<()> {
        self.next_step();
        self.renew().await
    }

    /// Starts the heartbeat in a task of its own until it is ended.
    pub(in crate::engine) fn start(self: &Arc<Self>) -> Beating {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.clone().keep_beating(stop.clone()));
        Beating { task, stop: stop.drop_guard() }
    }

    async fn keep_beating(self: Arc<Self>, stop: CancellationToken) {
        let mut renewal: Option<BoxFuture<'_, ()>> = None;
        while !stop.is_cancelled() {
            self.meter.loop_turned(NAME, self.clock.uptime());
            let rest = match self.next_step() {
                LeaseStep::Fence => continue,
                LeaseStep::Renew => {
                    self.log_if_overdue();
                    renewal = Some(self.renew_or_say().boxed());
                    Duration::ZERO
                }
                LeaseStep::Rest(ms) => Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(1)),
            };
            tokio::select! {
                biased;
                () = answer(&mut renewal) => renewal = None,
                () = tokio::time::sleep(rest) => {}
                () = stop.cancelled() => {}
            }
        }
        // These writes are for other processes; the lease does not wait for them.
        if let Some(renewal) = renewal {
            renewal.await;
        }
        self.lease_db.close_idle().await;
        self.meter.loop_ended(NAME);
    }

    /// Decides what to do now, and fences the process if the lease has expired.
    fn next_step(&self) -> LeaseStep {
        let mut held = self.lock_state();
        let step = held.lease.next_step(self.clock.uptime());
        if step == LeaseStep::Fence {
            held.lease.fence();
            drop(held);
            self.meter.fenced();
            tracing::error!(
                node_id = %self.node.id().0,
                "the lease of this process could not be renewed in time; jobs that another process \
                 could start again are stopped before it may; a body whose lock in its database \
                 keeps others out runs on, and its end is written when the database answers"
            );
            self.life.send_modify(|life| {
                *life = Life { is_fenced: true, doubts: life.doubts + 1 };
            });
        }
        step
    }

    async fn renew_or_say(&self) {
        let was_steady = self.lock_state().lease.is_steady();
        match self.renew_or_log_lateness().await {
            Ok(()) if !was_steady => tracing::info!("the lease of this process is renewed again"),
            Ok(()) => {}
            // Logged once: the following renewals fail in the same way.
            Err(error) if was_steady => {
                tracing::warn!(error = format!("{error:#}"), "the lease is not renewed; trying on");
            }
            Err(error) => tracing::debug!("{error:#}"),
        }
    }

    /// The delay after which a renewal is logged as late: a third of the lease.
    fn late_after(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.node.lease_ms() / 3).unwrap_or(0))
    }

    /// Logs that the renewal begins late: the cause is this process itself.
    fn log_if_overdue(&self) {
        let overdue = self.lock_state().lease.overdue_ms(self.clock.uptime());
        if overdue > self.node.lease_ms() / 3 {
            tracing::warn!(
                overdue_ms = overdue,
                "the renewal of the lease begins late: this process got no processor time, or the \
                 machine was asleep"
            );
        }
    }

    /// Logs what the renewal waits for as soon as it is late, not at its end: it may never end.
    async fn renew_or_log_lateness(&self) -> Result<()> {
        let sent = self.clock.uptime();
        let mut renewal = pin!(self.renew());
        tokio::select! {
            biased;
            renewed = &mut renewal => return renewed,
            () = tokio::time::sleep(self.late_after()) => {}
        }
        let (stage, began) = {
            let held = self.lock_state();
            (held.stage, held.stage_began)
        };
        let now = self.clock.uptime();
        tracing::warn!(
            waited_ms = now.since(sent),
            stage_ms = now.since(began),
            "the renewal of the lease is late: it waits for {}",
            stage.describe(store::writers(&self.db))
        );
        let renewed = renewal.await;
        if renewed.is_ok() {
            let took = self.clock.uptime().since(sent);
            tracing::warn!(took_ms = took, "the late renewal of the lease is written");
        }
        renewed
    }

    fn enter(&self, stage: RenewalStage) {
        let now = self.clock.uptime();
        let mut held = self.lock_state();
        (held.stage, held.stage_began) = (stage, now);
    }

    /// Opens the transaction of a renewal. If its own connection cannot be had in time, because the
    /// server accepts no more, a connection of the pool is used, and the lease is kept.
    async fn begin_renewal(&self) -> Result<Tx> {
        self.enter(RenewalStage::Access);
        if store::writers(&self.db) == Writers::One {
            return Ok(self.lease_db.begin().await?);
        }
        match tokio::time::timeout(self.late_after() / 2, self.lease_db.begin()).await {
            Ok(Ok(tx)) => return Ok(tx),
            Ok(Err(error)) => tracing::debug!(%error, "the lease has no connection of its own"),
            Err(_) => tracing::debug!("the connection of the lease gives no answer"),
        }
        Ok(self.db.begin().await?)
    }

    async fn renew(&self) -> Result<()> {
        self.lock_state().lease.mark_sent(self.clock.uptime());
        let written = self.write().await;
        let mut held = self.lock_state();
        let now = self.clock.uptime();
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.meter.renewal_failed();
                held.obstacle = Some(store::obstacle(&error));
                match store::asks_again(&error) {
                    true => held.lease.mark_busy(now),
                    false => held.lease.failed(now),
                }
                return Err(error);
            }
        };
        // By the database's clock the lease had expired, whatever the local clock shows: the
        // machine was suspended.
        let had_lapsed = written.at >= held.until;
        held.until = written.until;
        (held.written, held.obstacle) = (now, None);
        held.lease.renewed(now);
        let is_fenced = held.lease.is_fenced();
        drop(held);
        let doubt = u64::from(had_lapsed);
        self.life.send_if_modified(|life| {
            let next = Life { is_fenced, doubts: life.doubts + doubt };
            std::mem::replace(life, next) != next
        });
        // An answer so late that the fence stays up extends no deadline.
        if !is_fenced {
            self.pulse.send_modify(|beats| *beats += 1);
        }
        Ok(())
    }

    /// Writes the renewal, and measures the database's clock with it.
    async fn write(&self) -> Result<RenewedLease> {
        let committed = self.committed();
        let mut tx = self.begin_renewal().await?;
        self.enter(RenewalStage::Answers);
        let asked = self.clock.uptime();
        let server: Millis = tx.server_time().await?.into();
        let at = self.measure(asked, server);
        // When the database's clock has gone back, others may still use the old time: the lease
        // must be valid by both.
        let until = at.max(self.clock.now()).plus_ms(self.node.lease_ms());
        if !node::renew(&mut tx, self.node.id(), at, until).await? {
            tracing::error!("the row of this process is gone from cluster_node; written again");
            self.node.register(&mut tx, at, until).await?;
        }
        self.meter.nodes(node::alive(&mut tx, at).await?);
        self.write_state(&mut tx, at).await?;
        let mark = metadata_gap::read_mark(&mut tx).await?;
        if let Some(gap) = self.suspension.observe(&mark, committed, at, self.node.name()) {
            metadata_gap::open_gap(&mut tx, &gap).await?;
        }
        metadata_gap::raise(&mut tx, &mark, at).await?;
        self.enter(RenewalStage::Commit);
        tx.commit().await?;
        self.suspension.remember(at);
        Ok(RenewedLease { at, until })
    }

    /// Evaluates the server's time; returns the time by the database's clock, certain or not.
    fn measure(&self, asked: Uptime, server: Millis) -> Millis {
        let Some(measured) = self.clock.measure(asked, server) else { return self.clock.now() };
        self.meter.record_skew(measured.skew_ms, measured.slack_ms);
        let mut held = self.lock_state();
        let skew = held.skew.get_or_insert_with(|| Skew::new(measured));
        let before = skew.verdict();
        let verdict = skew.observe(measured);
        self.clock.follow(skew.base_ms());
        if !verdict.is_sure() {
            held.doubted = Some(measured.at);
        }
        drop(held);
        log_clock_verdict(before, verdict);
        match verdict {
            ClockVerdict::Steady | ClockVerdict::Skewed(_) => self.clock.now(),
            ClockVerdict::Jumped(_) => server,
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, HeartbeatState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeartbeatState {
    fn is_sure(&self) -> bool {
        self.skew.is_none_or(|skew| skew.verdict().is_sure())
    }
}

/// Logs changes of the clock verdict.
fn log_clock_verdict(before: ClockVerdict, now: ClockVerdict) {
    match (before, now) {
        (ClockVerdict::Steady | ClockVerdict::Skewed(_), ClockVerdict::Jumped(ms)) => {
            tracing::warn!(
                jump_ms = ms,
                "the database's clock has jumped, or this machine was asleep; nothing is scheduled or \
             taken over here until two measurements agree"
            )
        }
        (ClockVerdict::Jumped(_), ClockVerdict::Steady | ClockVerdict::Skewed(_)) => {
            tracing::info!("what time it is, is sure again");
        }
        (ClockVerdict::Steady, ClockVerdict::Skewed(ms)) => tracing::warn!(
            skew_ms = ms,
            "the clock of this machine differs from the database's; the database's is gone by"
        ),
        (ClockVerdict::Steady, ClockVerdict::Steady)
        | (ClockVerdict::Skewed(_), ClockVerdict::Steady | ClockVerdict::Skewed(_))
        | (ClockVerdict::Jumped(_), ClockVerdict::Jumped(_)) => {}
    }
}

/// A heartbeat running in its task; dropping this stops it, except for a renewal under way.
pub(in crate::engine) struct Beating {
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl Beating {
    /// Stops the task and waits for its end.
    pub(in crate::engine) async fn end_and_wait(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the heartbeat broke down");
        }
    }
}

async fn answer(renewal: &mut Option<BoxFuture<'_, ()>>) {
    match renewal {
        Some(renewal) => renewal.await,
        None => std::future::pending().await,
    }
}
