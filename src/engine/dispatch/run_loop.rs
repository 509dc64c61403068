//! The loop around the beat: when to beat, when to rest, what to do when the database is away.

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
    /// Looks what operators did to batches of ours: those they changed are read anew, those they want
    /// stopped are stopped.
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

    /// Stops a batch of ours whose row says that it is to be stopped.
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

    /// Renews this process's lease from now on, until the answer is told to end: for what comes before
    /// `run_until_done`. Opening 100,000 jobs takes longer than a lease on a busy machine.
    pub fn keep_lease(&self) -> LeaseRenewals {
        LeaseRenewals(self.process.heart.start())
    }

    /// Lets time pass and renews this process's lease meanwhile: the wait for another's lease is as
    /// long as our own.
    pub async fn pass_time(&self, time: Duration) {
        let beating = self.process.heart.start();
        tokio::time::sleep(time).await;
        beating.end_and_wait().await;
    }

    /// One heartbeat by hand, for whoever does not let the heart beat by itself: the fence if it must
    /// fall, then a renewal.
    pub async fn heartbeat(&mut self) -> Result<()> {
        self.process.heart.beat_once().await
    }

    /// After a doubt about the lease everything is read anew before anything is written: others may
    /// have taken over what was ours. Bodies of what they took are stopped then.
    ///
    /// Sessions that wait for a body are given up then: whoever took over what was ours may be about to
    /// end a session by its number, and no new body is to be on it.
    pub(super) async fn heed_lease(&mut self) {
        let doubts = self.process.heart.lease_state().doubts;
        if doubts != self.course.heeded {
            self.course.stale = true;
            self.running.around.sessions.clear().await;
        }
        self.course.heeded = doubts;
    }

    /// Runs until every open batch has ended, or, once `stop` is cancelled, until what runs has ended
    /// or was handed back; nothing new starts then. A database that is away or asks to try again is
    /// waited for without end; any other error is given up on after some tries.
    pub async fn run_until_done(&mut self, stop: &CancellationToken) -> Result<()> {
        let (beating, keeping) = (self.process.heart.start(), self.admin.start());
        let ended = self.turn_until_done(stop).await;
        keeping.end_and_wait().await;
        beating.end_and_wait().await;
        ended
    }

    async fn turn_until_done(&mut self, stop: &CancellationToken) -> Result<()> {
        // What was read a moment ago is not looked at again before the first jobs start; only where other batches
        // are waited for, which nobody has looked at.
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
                // The other batches of this process go on.
                Err(error) if is_lost(&error) => lost = lost.or(Some(error)),
                // An operator was faster; the next turn reads what is there now.
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

    /// Notes for health whether a round went well. What another process or an operator did first is no failure.
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

    /// One round: the looks that are due, then a beat. `false` when there was nothing to do.
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

    /// Milliseconds to the next look at the other nodes: soon after something has happened, or while
    /// something of ours runs there; sooner still where they cannot tell us.
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

    /// Ends this process's lease, so that nobody has to wait for it to run out.
    pub async fn leave(self) -> Result<()> {
        self.running.around.sessions.clear().await;
        self.process.node.leave(&self.process.db, self.process.clock.now()).await
    }
}

/// Renewals of a lease, as long as this lives.
pub struct LeaseRenewals(Beating);

impl LeaseRenewals {
    /// Ends them, and waits for the one that is under way.
    pub async fn end_and_wait(self) {
        self.0.end_and_wait().await;
    }
}

/// When the next looks are due, and how it went lately.
pub(super) struct Rounds {
    /// When it is looked what operators did.
    pub(super) look_at: Millis,
    /// When it is looked what other nodes have to say.
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

    /// The database's clock may have been set back: no look waits longer than its pause.
    pub(super) fn follow_clock(&mut self, now: Millis) {
        self.look_at = self.look_at.min(now.plus_ms(LOOK_MS));
        self.around_at = self.around_at.min(now.plus_ms(AROUND_IDLE_MS));
    }

    /// The other nodes are looked at by then, if not before.
    fn look_around_by(&mut self, at: Millis) {
        self.around_at = self.around_at.min(at);
    }

    /// When the next of them is.
    pub(super) fn next(&self) -> Millis {
        self.look_at.min(self.around_at)
    }
}

/// How long a process does not look what other nodes have to say, at most, while they have.
const AROUND_BUSY_MS: i64 = 200;
/// The same of a process that has no batch, and may be given something to run.
const AROUND_IDLE_MS: i64 = 1_000;

/// How often a process looks what operators did to its batches.
const LOOK_MS: i64 = 1_000;

/// Whether another process has what was ours.
pub(super) fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<TakenOver>() || e.is::<BackfillTaken>())
}

/// Whether an operator was faster.
pub(super) fn is_revised(error: &anyhow::Error) -> bool {
    error.chain().any(|e| matches!(e.downcast_ref(), Some(Stale::Revised)))
}

pub(super) fn is_stale(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<Stale>())
}

/// Whether it passes by itself: the database is away or asks to try again, or memory was old.
pub(super) fn will_pass(error: &anyhow::Error) -> bool {
    store::is_transient(error) || is_stale(error)
}

/// Why a beat failed, as the meter has it.
pub(super) fn error_label(error: &anyhow::Error) -> &'static str {
    match error {
        _ if store::is_transient(error) => "database",
        _ if is_stale(error) => "stale",
        _ => "other",
    }
}

/// Tries of a beat that fails for another reason than a database that is away.
const TRIES: u32 = 10;

/// Growing pauses between tries, with jitter so that two nodes do not march in step: from 50 ms to
/// 5 s; to 1 s when the database is away, so that work goes on within a second of its return.
#[derive(Default)]
pub(super) struct Pause {
    tries: u32,
}

impl Pause {
    fn is_worth_another(&self, error: &anyhow::Error) -> bool {
        will_pass(error) || self.tries < TRIES
    }

    /// Says what went wrong and waits.
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
