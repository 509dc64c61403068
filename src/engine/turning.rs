//! The loop around the beat: when to beat, when to rest, what to do when the database is away.

use crate::domain::time::Millis;
use crate::engine::changes::Changes;
use crate::engine::dispatcher::QueueDispatcher;
use crate::store::{self, batch, queue};
use anyhow::Result;
use std::time::Duration;

impl QueueDispatcher {
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
