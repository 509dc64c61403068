//! The loop around the beat: when to beat, when to rest, what to do when the database is away.

use crate::domain::batch::BatchStatus;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::engine::backfill::BackfillTaken;
use crate::engine::changes::Changes;
use crate::engine::dispatcher::QueueDispatcher;
use crate::engine::opening::TakenOver;
use crate::store::batch::Pulse;
use crate::store::{self, Stale, batch};
use anyhow::Result;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl QueueDispatcher {
    /// Looks what operators did to batches of ours: those they changed are read anew, those they want
    /// stopped are stopped.
    pub async fn look(&mut self) -> Result<()> {
        let mut tx = self.db.read().await?;
        let pulses = batch::pulses(&mut tx, self.node.id()).await?;
        drop(tx);
        let changed = |p: &&Pulse| {
            self.active.get(&p.batch_id).is_some_and(|a| a.batch.revision != p.revision)
        };
        let changed: Vec<BatchId> = pulses.iter().filter(changed).map(|p| p.batch_id).collect();
        if !changed.is_empty() {
            self.stale = true;
            for id in changed {
                self.load(id).await?;
            }
            self.recount();
            self.stale = false;
        }
        for pulse in pulses.iter().filter(|p| p.status == BatchStatus::Killing) {
            self.stop_batch(pulse.batch_id, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Stops a batch of ours whose row says that it is to be stopped.
    pub(super) async fn stop_batch(&mut self, id: BatchId, now: Millis) -> Result<()> {
        let Some(active) = self.active.get_mut(&id).filter(|a| !a.is_killing()) else {
            return Ok(());
        };
        let mut changes = Changes::default();
        active.kill(&mut changes, now);
        self.commit(&changes, now).await?;
        if let Some(active) = self.active.get(&id) {
            active.stop_bodies();
        }
        self.tell(changes.news);
        Ok(())
    }

    /// Renews this process's lease. When it had run out, the next beat reads everything anew, and
    /// bodies of a batch that another process has taken over meanwhile are stopped.
    pub async fn heartbeat(&mut self) -> Result<()> {
        if !self.node.beat(&self.db, &self.clock).await? {
            self.stale = true;
        }
        self.pulse.send_modify(|beats| *beats += 1);
        Ok(())
    }

    /// Runs until every open batch has ended, or, once `stop` is cancelled, until what runs has
    /// ended; nothing new starts then. What only waits for something is not waited for: whoever resumes
    /// starts it again. A database that is away or asks to try again is waited for
    /// without end; any other error is given up on after some tries.
    pub async fn run_until_done(&mut self, stop: &CancellationToken) -> Result<()> {
        let mut pause = Pause::default();
        let mut lost = None;
        let mut heartbeat_at = self.clock.now().plus(self.node.heartbeat_ms());
        let mut look_at = self.clock.now();
        while !self.is_idle() {
            self.draining = stop.is_cancelled() || self.backfill_ends();
            if self.draining && self.working() == 0 && !self.stale {
                break;
            }
            let now = self.clock.now();
            let turn = async {
                if now >= heartbeat_at {
                    self.heartbeat().await?;
                    heartbeat_at = now.plus(self.node.heartbeat_ms());
                }
                if now >= look_at && !self.stale {
                    self.look().await?;
                    self.look_for_stop().await?;
                    self.look_soon = true;
                    look_at = now.plus(LOOK_MS);
                }
                if self.look_soon && !self.stale {
                    self.look_outside().await?;
                    self.look_soon = false;
                }
                self.beat().await
            };
            match turn.await {
                Ok(true) => pause = Pause::default(),
                Ok(false) => self.rest(heartbeat_at.min(look_at), stop).await,
                // The other batches of this process go on.
                Err(error)
                    if error.chain().any(|e| e.is::<TakenOver>() || e.is::<BackfillTaken>()) =>
                {
                    lost = lost.or(Some(error));
                }
                // An operator was faster; the next turn reads what is there now.
                Err(error) if is_revised(&error) => {
                    tracing::debug!("{error:#}");
                }
                Err(error) if pause.is_worth_another(&error) => {
                    tracing::warn!(error = format!("{error:#}"), "a beat failed; trying again");
                    tokio::time::sleep(pause.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.put_backfill_down().await?;
        lost.map_or(Ok(()), Err)
    }

    async fn rest(&mut self, until: Millis, stop: &CancellationToken) {
        let now = self.clock.now();
        let until = self.next_wake().map_or(until, |wake| wake.min(until));
        let rest = Duration::from_millis(u64::try_from(until.since(now)).unwrap_or(0).max(1));
        let draining = self.draining;
        tokio::select! {
            () = self.wait() => {}
            () = tokio::time::sleep(rest) => {}
            () = stop.cancelled(), if !draining => {}
        }
    }

    /// Ends this process's lease, so that nobody has to wait for it to run out.
    pub async fn leave(self) -> Result<()> {
        self.node.leave(&self.db, self.clock.now()).await
    }
}

/// How often a process looks what operators did to its batches.
const LOOK_MS: i64 = 1_000;

fn is_revised(error: &anyhow::Error) -> bool {
    error.chain().any(|e| matches!(e.downcast_ref(), Some(Stale::Revised)))
}

pub(super) fn is_stale(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<Stale>())
}

/// Tries of a beat that fails for another reason than a database that is away.
const TRIES: u32 = 10;

/// Growing pauses between tries, 50 ms to 5 s, with jitter so that two nodes do not march in step.
#[derive(Default)]
struct Pause {
    tries: u32,
}

impl Pause {
    fn is_worth_another(&self, error: &anyhow::Error) -> bool {
        store::is_transient(error) || is_stale(error) || self.tries < TRIES
    }

    fn next(&mut self) -> Duration {
        let base = 50u64 << self.tries.min(6);
        self.tries += 1;
        let jitter = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * base / 512;
        Duration::from_millis(base.min(5_000) + jitter)
    }
}
