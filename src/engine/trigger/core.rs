//! The two loops of the trigger core: one plans ahead under the schedule lock, the other runs the
//! timer ring and fires.
//!
//! They are connected by a channel of committed firings, so that a pass that hangs at the database
//! delays no firing that was decided before. Memory is never the truth: firings that this process
//! drops, or another left behind, are found by polling and fired once.

use crate::domain::cluster::lease::Uptime;
use crate::domain::schedule::firing::{Firing, FiringId};
use crate::domain::schedule::misfire::is_missed;
use crate::domain::schedule::ring::TimeRing;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::hints::Hints;
use crate::engine::observe::metrics::{Meter, PLANNER};
use crate::engine::trigger::calendars;
use crate::engine::trigger::planner::{AHEAD_MS, Planner};
use crate::engine::trigger::pools::FiringPools;
use crate::store::batch_end_schedules::{self, Following};
use crate::store::hint::HintTopic;
use crate::store::trigger::{self, TriggerForecast};
use crate::store::{Db, firing, metadata_gap};
use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A firing overdue by this many milliseconds counts as abandoned: its process is dead or stalled.
const LOST_MS: i64 = 2_000;
/// Number of firings taken over in one poll.
const LOST_MOST: u32 = 5_000;
/// Maximum number of firings in memory; further ones stay rows until there is capacity.
const HELD_MAX: usize = 100_000;
/// Poll intervals in milliseconds: while a planned time is near, and otherwise.
const LOOK_MS: (i64, i64) = (1_000, 2_500);
/// Poll interval for firings that wait for a batch, unless a batch ends, in milliseconds.
const WAIT_MS: i64 = 2_000;
/// Poll interval for batches whose end fires a schedule, in milliseconds.
const FOLLOW_MS: i64 = 2_000;
/// The same after a hint that a batch has ended, in milliseconds; many may end in a second.
const SOON_MS: i64 = 200;

/// Interval between two checks of the calendars in use, in milliseconds.
const CALENDARS_MS: i64 = 6 * 3_600_000;

/// The planning loop: polls for near planned times, runs passes, finds abandoned firings.
pub struct Planning {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
    planner: Planner,
    hints: Hints,
    heart: Arc<Heart>,
    /// On the monotonic clock, which does not stop when the database's clock goes back.
    waited_at: Uptime,
    followed_at: Uptime,
    calendars_at: Uptime,
}

/// The result of one planning tick.
#[derive(Debug, Default)]
pub struct PlanningResult {
    /// Firings for the ring; those that wait for a batch are due at once.
    pub firings: Vec<Firing>,
    /// When to poll again.
    pub again_at: Millis,
    /// The first error.
    pub failed: Option<anyhow::Error>,
}

impl PlanningResult {
    /// The value of a step; its error is kept.
    fn take_result<T>(&mut self, step: Result<T>) -> Option<T> {
        match step {
            Ok(came) => Some(came),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

/// The firing loop: runs the timer ring and fires.
pub struct Ticking {
    clock: Clock,
    meter: Arc<Meter>,
    ring: TimeRing<Firing>,
    held: HashSet<FiringId>,
    pools: FiringPools,
    heart: Arc<Heart>,
}

/// The trigger core of one process.
pub struct TriggerCore {
    /// The planning loop.
    pub planning: Planning,
    /// The firing loop.
    pub ticking: Ticking,
}

impl Planning {
    pub(super) fn new(
        db: Db,
        clock: Clock,
        meter: Arc<Meter>,
        planner: Planner,
        hints: Hints,
        heart: Arc<Heart>,
    ) -> Self {
        Self {
            db,
            clock,
            meter,
            planner,
            hints,
            heart,
            waited_at: Uptime(0),
            followed_at: Uptime(0),
            calendars_at: Uptime(0),
        }
    }

    /// One poll and the steps that it requires. An error of one step does not stop the others.
    pub async fn run_tick(&mut self) -> Result<PlanningResult> {
        let (now, up) = (self.clock.now(), self.clock.uptime());
        let mut found =
            PlanningResult { again_at: now.plus_ms(LOOK_MS.0), ..PlanningResult::default() };
        // A drained node plans nothing new; firings that it decided before still fire.
        if !self.heart.may_schedule() || self.heart.is_resting() {
            return Ok(found);
        }
        let (look, ends) = self.outlook(up).await?;
        // A database restored from a backup shows past work as due: nothing of it is decided.
        if self.heart.is_suspended() {
            return Ok(found);
        }
        self.meter.firing_delay(look.delay_ms(now));
        let mut late = Vec::new();
        let left = self.left_behind(look, now).await;
        for firing in found.take_result(left).unwrap_or_default() {
            if is_missed(&firing, now) { late.push(firing) } else { found.firings.push(firing) }
        }
        if look.waiting.is_some() && up >= self.waited_at {
            let waiting = self.waiting().await;
            let waiting = found.take_result(waiting).unwrap_or_default();
            found.firings.extend(waiting);
            self.waited_at = up.plus_ms(WAIT_MS);
        }
        if let Some(ends) = ends {
            if ends != Following::default() {
                found.take_result(self.planner.follow().await);
            }
            self.followed_at = up.plus_ms(FOLLOW_MS);
        }
        if up >= self.calendars_at {
            found.take_result(
                calendars::warn_of_calendars(&self.db, now).await.context("look at calendars"),
            );
            self.planner.doubt_next_runs();
            self.calendars_at = up.plus_ms(CALENDARS_MS);
        }
        let mut more = false;
        if look.next.is_some_and(|at| at <= now.plus_ms(AHEAD_MS)) {
            let pass = self.planner.run_pass().await;
            let pass = found.take_result(pass).unwrap_or_default();
            more = pass.more;
            found.firings.extend(pass.firings);
        }
        // Once the newest planned times have rows.
        if !late.is_empty() && !more && found.failed.is_none() {
            let fires = self.planner.decide_late(late).await;
            let fires = found.take_result(fires).unwrap_or_default();
            found.firings.extend(fires);
        }
        let written = self.planner.write_next_runs().await;
        found.take_result(written);
        let near =
            look.next.is_some_and(|at| at <= now.plus_ms(2 * AHEAD_MS)) || look.pending.is_some();
        if more {
            found.again_at = now;
        } else if !near {
            found.again_at = now.plus_ms(LOOK_MS.1);
        }
        Ok(found)
    }

    /// Abandoned firings.
    async fn left_behind(&self, look: TriggerForecast, now: Millis) -> Result<Vec<Firing>> {
        let (lost, soon) = (now.plus_ms(-LOST_MS), now.plus_ms(AHEAD_MS));
        let is_any =
            look.pending.is_some_and(|at| at <= lost) || look.unowned.is_some_and(|at| at <= soon);
        if !is_any {
            return Ok(Vec::new());
        }
        let mut tx = self.db.begin_read().await?;
        let found = firing::unattended(&mut tx, lost, soon, LOST_MOST).await?;
        self.meter.overdue(found.len());
        Ok(found)
    }

    async fn waiting(&self) -> Result<Vec<Firing>> {
        let mut tx = self.db.begin_read().await?;
        firing::waiting_first(&mut tx, LOST_MOST).await
    }

    /// Releases decided firings that have not fired to other processes.
    pub async fn leave(self) -> Result<()> {
        self.planner.leave().await
    }

    /// Reads the pending work and, when a poll for it is due, the ended batches; in one
    /// transaction, because this is most of what an idle process queries.
    async fn outlook(&self, up: Uptime) -> Result<(TriggerForecast, Option<Following>)> {
        let committed = self.heart.committed();
        let mut tx = self.db.begin_read().await?;
        self.heart.observe_history(&metadata_gap::read_mark(&mut tx).await?, committed);
        let outlook = trigger::outlook(&mut tx).await?;
        let ends = match up >= self.followed_at {
            true => Some(batch_end_schedules::find_following(&mut tx).await?),
            false => None,
        };
        Ok((outlook, ends))
    }

    /// Runs until it is stopped. No error ends it.
    async fn run(
        mut self,
        ring: mpsc::UnboundedSender<Vec<Firing>>,
        stop: CancellationToken,
    ) -> Self {
        let mut failures = 0u32;
        let mut ended = self.hints.clone();
        while !stop.is_cancelled() {
            self.meter.loop_turned(PLANNER, self.clock.uptime());
            let beaten = AssertUnwindSafe(self.run_tick()).catch_unwind().await;
            let beaten = beaten.unwrap_or_else(|_| Err(anyhow::anyhow!("the planner broke down")));
            let (found, failed) = match beaten {
                Ok(PlanningResult { firings, again_at, failed }) => {
                    (Some((firings, again_at)), failed)
                }
                Err(error) => (None, Some(error)),
            };
            failures = if failed.is_some() { failures + 1 } else { 0 };
            if let Some(error) = failed {
                let error = format!("{error:#}");
                tracing::warn!(error, "not all that is due was planned; trying again");
                self.meter.beat_failed(PLANNER);
            }
            let (firings, mut again_at) = found.unwrap_or((Vec::new(), self.clock.now()));
            if !firings.is_empty() && ring.send(firings).is_err() {
                break;
            }
            if failures > 0 {
                // 200 ms, 400 ms, then each second: a firing must not be late by more than that.
                again_at = self.clock.now().plus_ms((100i64 << failures.min(4)).min(1_000));
            }
            tokio::select! {
                _ = self.hints.wait_until(&[HintTopic::Trigger], again_at) => {}
                () = ended.wait_for_topic(&[HintTopic::Batch]) => {
                    // Firings may wait for the end of that batch, or follow it.
                    let soon = self.clock.uptime().plus_ms(SOON_MS);
                    self.waited_at = self.waited_at.min(soon);
                    self.followed_at = self.followed_at.min(soon);
                }
                () = stop.cancelled() => {}
            }
        }
        self.meter.loop_ended(PLANNER);
        self
    }
}

impl Ticking {
    pub(super) fn new(
        clock: Clock,
        meter: Arc<Meter>,
        pools: FiringPools,
        heart: Arc<Heart>,
    ) -> Self {
        let ring = TimeRing::new(clock.now());
        Self { clock, meter, ring, held: HashSet::new(), pools, heart }
    }

    /// Puts firings on the ring; those already there stay as they are.
    pub fn add_firings(&mut self, firings: Vec<Firing>) {
        for firing in firings {
            if self.held.len() < HELD_MAX && self.held.insert(firing.firing_id) {
                self.ring.push(firing.fire_at, firing);
            }
        }
        self.meter.record_ring(self.ring.len());
    }

    /// Hands due firings to the pools. Does nothing while the lease is lost, because other
    /// processes fire then, or while the present time is in doubt.
    pub fn fire_due(&mut self) {
        if !self.heart.may_schedule() {
            return;
        }
        failpoint!("ring.tick");
        for (_, firing) in self.ring.take_due(self.clock.now()) {
            self.pools.enqueue(firing);
        }
        self.meter.record_ring(self.ring.len());
    }

    /// One tick, and waits for everything it starts; for callers that tick by hand.
    pub async fn run_tick(&mut self) {
        self.fire_due();
        while let Some((ended, again)) = self.pools.next().await {
            self.settle(ended, again);
        }
    }

    fn settle(&mut self, ended: Vec<FiringId>, again: Vec<Firing>) {
        for id in ended {
            self.held.remove(&id);
        }
        self.add_firings(again);
    }

    /// Runs until it is stopped; handlers under way are waited for. All other firings are rows,
    /// which other processes find.
    async fn run(
        mut self,
        mut from: mpsc::UnboundedReceiver<Vec<Firing>>,
        stop: CancellationToken,
    ) {
        loop {
            self.meter.loop_turned("ring", self.clock.uptime());
            if stop.is_cancelled() {
                break;
            }
            self.fire_due();
            self.meter.firings_waiting(self.pools.waiting());
            let now = self.clock.now();
            let until = self.ring.next().map_or(1_000, |at| at.since(now).clamp(1, 1_000));
            // Due firings that may not fire are checked again periodically.
            let until = if self.heart.may_schedule() { until } else { until.max(200) };
            tokio::select! {
                Some(firings) = from.recv() => self.add_firings(firings),
                Some((ended, again)) = self.pools.next() => self.settle(ended, again),
                () = tokio::time::sleep(Duration::from_millis(until.unsigned_abs())) => {}
                () = stop.cancelled() => {}
            }
        }
        self.pools.close();
        while self.pools.next().await.is_some() {}
        self.meter.loop_ended("ring");
    }
}

impl TriggerCore {
    /// One tick of each loop, by hand: polls, passes, fires, and waits for all that fires.
    pub async fn run_tick(&mut self) -> Result<()> {
        let found = self.planning.run_tick().await.context("plan")?;
        self.ticking.add_firings(found.firings);
        self.ticking.run_tick().await;
        found.failed.map_or(Ok(()), Err)
    }

    /// Runs until it is stopped, then shuts down in order.
    pub async fn run(self, stop: CancellationToken) {
        let (ring, from) = mpsc::unbounded_channel();
        let planning = tokio::spawn(self.planning.run(ring, stop.clone()));
        self.ticking.run(from, stop).await;
        let left = match planning.await {
            Ok(planning) => planning.leave().await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = left {
            let error = format!("{error:#}");
            tracing::warn!(
                error,
                "firings of this process are not released; others find them late"
            );
        }
    }

    /// Number of firings in memory.
    pub fn firings_held(&self) -> usize {
        self.ticking.held.len()
    }
}
