//! The loop around the tick: when to tick, when to wait, what to do when the database is
//! unavailable.

use crate::domain::batch::BatchStatus;
use crate::domain::cluster::poll_interval;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::engine::cluster::heartbeat::Beating;
use crate::engine::dispatch::backfill::BackfillTaken;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::open::TakenOver;
use crate::engine::dispatch::writes::Changes;
use crate::store::batch::BatchRevision;
use crate::store::{self, Stale, batch};
use anyhow::Result;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl QueueDispatcher {
    /// Polls for operators' changes to batches of this process: changed ones are read again, those
    /// with a stop request are stopped.
    pub async fn poll_changes(&mut self) -> Result<()> {
        let mut tx = self.process.db.begin_read().await?;
        let pulses = batch::pulses(&mut tx, self.process.node.id()).await?;
        drop(tx);
        let changed = |p: &&BatchRevision| {
            self.batches.active.get(&p.batch_id).is_some_and(|a| a.batch.revision != p.revision)
        };
        let changed: Vec<BatchId> = pulses.iter().filter(changed).map(|p| p.batch_id).collect();
        if !changed.is_empty() {
            self.course.stale = true;
            for id in changed {
                self.load_batch(id).await?;
            }
            self.recount();
            self.course.stale = false;
        }
        for pulse in pulses.iter().filter(|p| p.status == BatchStatus::Killing) {
            self.stop_batch(pulse.batch_id, self.process.clock.now()).await?;
        }
        Ok(())
    }

    /// Stops a batch of this process whose row requests it.
    pub(super) async fn stop_batch(&mut self, id: BatchId, now: Millis) -> Result<()> {
        let Some(active) = self.batches.active.get_mut(&id).filter(|a| !a.is_killing()) else {
            return Ok(());
        };
        let mut changes = Changes::default();
        active.kill_jobs(&mut changes, now);
        self.commit(&changes, now).await?;
        if let Some(active) = self.batches.active.get(&id) {
            active.stop_bodies();
        }
        self.publish_events(changes.news);
        Ok(())
    }

    /// Renews this process's lease until the returned handle is ended: for the work before
    /// `run_until_done`. Opening 100,000 jobs takes longer than a lease on a busy machine.
    pub fn keep_lease(&self) -> LeaseRenewals {
        LeaseRenewals(self.process.heart.start())
    }

    /// Waits, and renews this process's lease meanwhile: waiting for another's lease takes as long
    /// as the own lease lasts.
    pub async fn pass_time(&self, time: Duration) {
        let beating = self.process.heart.start();
        tokio::time::sleep(time).await;
        beating.end_and_wait().await;
    }

    /// One heartbeat by hand, for callers without the heartbeat task: fences the process if
    /// necessary, then renews.
    pub async fn heartbeat(&mut self) -> Result<()> {
        self.process.heart.beat_once().await
    }

    /// After a doubt about the lease everything is read again before anything is written: other
    /// processes may have taken batches over. Bodies of lost batches are stopped then.
    ///
    /// Idle sessions are dropped as well: a new owner may be about to end a session by its number,
    /// and no new body may be on it.
    pub(super) async fn heed_lease(&mut self) {
        let doubts = self.process.heart.lease_state().doubts;
        if doubts != self.course.heeded {
            self.course.stale = true;
            self.running.around.sessions.clear().await;
        }
        self.course.heeded = doubts;
    }

    /// Runs until every open batch has ended or, once `stop` is cancelled, until what runs has
    /// ended or was handed back; nothing new starts then. An unavailable database and transient
    /// errors are waited out without limit; any other error is returned after some attempts.
    pub async fn run_until_done(&mut self, stop: &CancellationToken) -> Result<()> {
        let (beating, keeping) = (self.process.heart.start(), self.admin.start());
        let ended = self.turn_until_done(stop).await;
        keeping.end_and_wait().await;
        beating.end_and_wait().await;
        ended
    }

    async fn turn_until_done(&mut self, stop: &CancellationToken) -> Result<()> {
        // What was read a moment ago is not polled again before the first jobs start; only the
        // batches that others wait for are, because nothing has read them yet.
        let mut rounds = Rounds::after_read(self.process.clock.now());
        self.course.look_soon = true;
        let mut lost = None;
        while !self.is_idle() {
            self.measure();
            self.set_course(stop);
            let round = self.round(&mut rounds).await;
            self.note_round(&round);
            match round {
                Ok(true) => rounds.pause = Pause::default(),
                Ok(false) => {
                    let until = rounds.next();
                    self.rest_until(&mut rounds, until, stop).await;
                }
                // The other batches of this process continue.
                Err(error) if is_lost(&error) => lost = lost.or(Some(error)),
                // An operator's change came first; the next turn reads the present rows.
                Err(error) if is_revised(&error) => tracing::debug!("{error:#}"),
                Err(error) if rounds.pause.is_worth_another(&error) => {
                    self.process.meter.beat_failed(error_label(&error));
                    rounds.pause.after(&error).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.put_backfill_down().await?;
        lost.map_or(Ok(()), Err)
    }

    /// Notes for health checks whether a round succeeded. A change by another process or an
    /// operator that came first is no failure.
    pub(super) fn note_round<T>(&self, round: &Result<T>) {
        match round {
            Ok(_) => self.process.meter.dispatch_succeeded(),
            Err(error) if is_lost(error) || is_stale(error) => {}
            Err(error) => {
                self.process
                    .meter
                    .dispatch_failed(store::obstacle(error), self.process.clock.uptime());
            }
        }
    }

    /// One round: the polls that are due, then a tick. `false` when there was nothing to do.
    pub(super) async fn round(&mut self, rounds: &mut Rounds) -> Result<bool> {
        self.heed_lease().await;
        self.announce().await?;
        if self.may_part() {
            self.release_batches().await?;
            return Ok(true);
        }
        let now = self.process.clock.now();
        rounds.follow_clock(now);
        if now >= rounds.look_at && !self.course.stale && !self.is_idle() {
            self.poll_changes().await?;
            self.look_for_stop().await?;
            self.course.look_soon = true;
        }
        if now >= rounds.look_at {
            rounds.look_at = now.plus_ms(LOOK_MS);
        }
        if now >= rounds.around_at && !self.course.stale {
            self.look_around().await?;
            rounds.around_at = self.process.clock.now().plus_ms(self.around_again());
        }
        if self.course.look_soon && !self.course.stale {
            self.look_outside().await?;
            self.course.look_soon = false;
        }
        let beaten = self.run_tick().await?;
        // What the beat gave away, or told of, may be answered before the look that was planned.
        rounds.look_around_by(self.process.clock.now().plus_ms(self.around_again()));
        Ok(beaten)
    }

    /// Milliseconds to the next poll of the other nodes: short after an exchange with them, or
    /// while jobs of this process run there; shorter still where no hints are delivered.
    pub fn around_again(&self) -> i64 {
        let quiet = self.fleet.quiet_ms(self.process.clock.uptime());
        let is_busy = quiet < AROUND_BUSY_MS || self.running.hosted.count() > 0;
        let is_awaited = self.batches.active.values().any(|active| !active.away.is_empty());
        let most = match (is_busy || is_awaited, self.batches.active.is_empty()) {
            (true, _) => AROUND_BUSY_MS,
            (false, false) => LOOK_MS,
            (false, true) => AROUND_IDLE_MS,
        };
        self.process
            .hints
            .poll_interval(poll_interval::pause(quiet, self.fleet.look_ms(), most), most)
    }

    pub(super) async fn rest_until(
        &mut self,
        rounds: &mut Rounds,
        until: Millis,
        stop: &CancellationToken,
    ) {
        let now = self.process.clock.now();
        rounds.follow_clock(now);
        let until = until.min(rounds.next());
        let until = self.next_wake().map_or(until, |wake| wake.min(until));
        let rest = Duration::from_millis(u64::try_from(until.since(now)).unwrap_or(0).max(1));
        let rest = self
            .course
            .patience
            .time_left(self.process.clock.uptime())
            .map_or(rest, |left| left.min(rest));
        let draining = self.course.draining;
        tokio::select! {
            () = self.wait_for_report() => {}
            () = tokio::time::sleep(rest) => {}
            () = stop.cancelled(), if !draining => {}
        }
    }

    /// Ends this process's lease, so that no process waits for its expiry.
    pub async fn leave(self) -> Result<()> {
        self.running.around.sessions.clear().await;
        self.process.node.leave(&self.process.db, self.process.clock.now()).await
    }
}

/// Renews a lease until this is dropped.
pub struct LeaseRenewals(Beating);

impl LeaseRenewals {
    /// Stops the renewals, and waits for the one under way.
    pub async fn end_and_wait(self) {
        self.0.end_and_wait().await;
    }
}

/// When the next polls are due, and the state of the error pause.
pub(super) struct Rounds {
    /// When to poll for operators' changes.
    pub(super) look_at: Millis,
    /// When to poll the other nodes.
    pub(super) around_at: Millis,
    pub(super) pause: Pause,
}

impl Rounds {
    pub(super) fn new(now: Millis) -> Self {
        Self { look_at: now, around_at: now, pause: Pause::default() }
    }

    /// For batches that were read just now.
    fn after_read(now: Millis) -> Self {
        Self { look_at: now.plus_ms(LOOK_MS), ..Self::new(now) }
    }

    /// The database's clock may have been set back: no poll is further away than its interval.
    pub(super) fn follow_clock(&mut self, now: Millis) {
        self.look_at = self.look_at.min(now.plus_ms(LOOK_MS));
        self.around_at = self.around_at.min(now.plus_ms(AROUND_IDLE_MS));
    }

    /// Polls the other nodes no later than `at`.
    fn look_around_by(&mut self, at: Millis) {
        self.around_at = self.around_at.min(at);
    }

    /// When the next poll is due.
    pub(super) fn next(&self) -> Millis {
        self.look_at.min(self.around_at)
    }
}

/// Longest poll interval for the other nodes while they run jobs of this process, in milliseconds.
const AROUND_BUSY_MS: i64 = 200;
/// The same for a process that owns no batch, and may be given something to run.
const AROUND_IDLE_MS: i64 = 1_000;

/// Poll interval for operators' changes to batches, in milliseconds.
const LOOK_MS: i64 = 1_000;

/// Whether another process owns the batch now.
pub(super) fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<TakenOver>() || e.is::<BackfillTaken>())
}

/// Whether an operator's change came first.
pub(super) fn is_revised(error: &anyhow::Error) -> bool {
    error.chain().any(|e| matches!(e.downcast_ref(), Some(Stale::Revised)))
}

pub(super) fn is_stale(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<Stale>())
}

/// Whether the error passes by itself: the database is unavailable, the error is transient, or
/// memory was out of date.
pub(super) fn will_pass(error: &anyhow::Error) -> bool {
    store::is_transient(error) || is_stale(error)
}

/// Label of a failed tick in metrics.
pub(super) fn error_label(error: &anyhow::Error) -> &'static str {
    match error {
        _ if store::is_transient(error) => "database",
        _ if is_stale(error) => "stale",
        _ => "other",
    }
}

/// Attempts of a tick that fails for another reason than an unavailable database.
const TRIES: u32 = 10;

/// Growing pauses between attempts, with jitter so that two nodes do not synchronise: from 50 ms to
/// 5 s; to 1 s when the database is unavailable, so that work resumes within a second of its
/// return.
#[derive(Default)]
pub(super) struct Pause {
    tries: u32,
}

impl Pause {
    fn is_worth_another(&self, error: &anyhow::Error) -> bool {
        will_pass(error) || self.tries < TRIES
    }

    /// Logs the error and waits.
    pub(super) async fn after(&mut self, error: &anyhow::Error) {
        let pause = self.next(if will_pass(error) { 1_000 } else { 5_000 });
        tracing::warn!(error = format!("{error:#}"), "a beat failed; trying again");
        tokio::time::sleep(pause).await;
    }

    fn next(&mut self, most: u64) -> Duration {
        let base = (50u64 << self.tries.min(7)).min(most);
        self.tries += 1;
        let jitter = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * base / 512;
        Duration::from_millis(base - jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_freezes_no_look() {
        let mut rounds = Rounds::new(Millis(600_000));
        rounds.follow_clock(Millis(599_990));
        assert_eq!((rounds.look_at, rounds.around_at), (Millis(600_000), Millis(600_000)));
        rounds.follow_clock(Millis(10_000));
        assert_eq!(rounds.next(), Millis(11_000));
        rounds.follow_clock(Millis(10_500));
        assert_eq!((rounds.look_at, rounds.around_at), (Millis(11_000), Millis(11_000)));
    }

    #[test]
    fn a_planned_look_comes_sooner_and_never_later() {
        let mut rounds = Rounds::new(Millis(1_000));
        rounds.around_at = Millis(2_000);
        rounds.look_around_by(Millis(1_005));
        assert_eq!((rounds.next(), rounds.around_at), (Millis(1_000), Millis(1_005)));
        rounds.look_around_by(Millis(1_900));
        assert_eq!(rounds.around_at, Millis(1_005));
    }

    #[test]
    fn pauses_grow_to_their_limit_and_no_further() {
        for most in [1_000, 5_000] {
            let mut pause = Pause::default();
            let pauses: Vec<u128> = (0..50).map(|_| pause.next(most).as_millis()).collect();
            assert!(pauses.iter().all(|ms| *ms <= u128::from(most)), "{pauses:?}");
            assert!(pauses[0] <= 50 && pauses[49] >= u128::from(most) / 2, "{pauses:?}");
        }
    }
}
