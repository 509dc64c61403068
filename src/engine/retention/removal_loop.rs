//! The loops that remove old rows: one for a serving process, one for a caller that waits for the
//! result.

use super::{Beat, ByTable, RetentionIdleReason, Sweeper};
use crate::domain::time::Millis;
use crate::store;
use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The name of this loop in metrics.
const NAME: &str = "retention";
/// The longest pause, in milliseconds: a loop without a turn for longer counts as stalled.
const REST_MS: i64 = 30_000;
/// Pause after a failure, in milliseconds.
const AGAIN_MS: i64 = 10_000;
/// Maximum number of consecutive transient database failures before a waiting caller gets the
/// error.
const TRIES: u32 = 10;
/// Pause before such a step is repeated.
const BUSY: Duration = Duration::from_secs(1);

/// The result of removing old rows for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepOutcome {
    /// The pass has ended: the total of removed rows.
    Ended(ByTable),
    /// The time has passed: the rows removed in it.
    Left(ByTable),
    /// Nothing to do before this time.
    Rests(RetentionIdleReason, Millis),
}

impl Sweeper {
    /// Removes rows until the pass has ended or for so many milliseconds, with at least one step.
    /// `went` is called with the rows removed by each step. The lock is released afterwards in any
    /// case. It runs in a task of its own, so that this also holds when the caller is cancelled.
    pub async fn sweep_for(
        self,
        ms: Option<i64>,
        went: impl FnMut(u64) + Send + 'static,
    ) -> Result<SweepOutcome> {
        tokio::spawn(self.sweep(ms, went)).await.context("remove old rows")?
    }

    async fn sweep(
        mut self,
        ms: Option<i64>,
        went: impl FnMut(u64) + Send,
    ) -> Result<SweepOutcome> {
        let swept = AssertUnwindSafe(self.beats(ms, went)).catch_unwind().await;
        self.leave_turn().await;
        swept.unwrap_or_else(|_| Err(anyhow::anyhow!("retention broke down")))
    }

    async fn beats(&mut self, ms: Option<i64>, mut went: impl FnMut(u64)) -> Result<SweepOutcome> {
        let begun = self.clock.uptime();
        let mut removed = ByTable::new();
        let mut failed = 0;
        loop {
            let asked = self.clock.uptime();
            let dropped = match self.run_step(self.clock.now()).await {
                Ok(Beat::Ended(all)) => return Ok(SweepOutcome::Ended(all)),
                Ok(Beat::Rests(rest, until)) => return Ok(SweepOutcome::Rests(rest, until)),
                Ok(Beat::Did(dropped)) => dropped,
                Err(error) if store::is_transient(&error) && failed < TRIES => {
                    failed += 1;
                    tokio::time::sleep(BUSY).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failed = 0;
            dropped.iter().for_each(|(table, n)| *removed.entry(table).or_default() += n);
            went(dropped.values().sum());
            if ms.is_some_and(|ms| self.clock.uptime().since(begun) >= ms) {
                return Ok(SweepOutcome::Left(removed));
            }
            if !dropped.is_empty() {
                tokio::time::sleep(self.pause(self.clock.uptime().since(asked))).await;
            }
        }
    }

    /// Releases the lock; if that fails, another process can take it a minute later.
    async fn leave_turn(&self) {
        if let Err(error) = self.end_turn().await {
            let error = format!("{error:#}");
            tracing::debug!(error, "the turn of retention runs out by itself");
        }
    }

    /// Runs until it is stopped, in a task of its own, so that the dispatcher never waits for it.
    /// No error ends it.
    pub async fn run(self, stop: CancellationToken) {
        if let Err(error) = tokio::spawn(self.run_loop(stop)).await {
            tracing::error!(%error, "what removes old rows broke down");
        }
    }

    async fn run_loop(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.meter.loop_turned(NAME, self.clock.uptime());
            let pause = self.run_once().await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
        self.leave_turn().await;
        self.meter.loop_ended(NAME);
    }

    /// One step; returns how long to wait after it.
    async fn run_once(&mut self) -> Duration {
        let (now, asked) = (self.clock.now(), self.clock.uptime());
        let beaten = AssertUnwindSafe(self.run_step(now)).catch_unwind().await;
        let beaten = beaten.unwrap_or_else(|_| Err(anyhow::anyhow!("retention broke down")));
        let ms = match beaten {
            Ok(Beat::Did(rows)) if rows.is_empty() => 0,
            Ok(Beat::Did(_)) => return self.pause(self.clock.uptime().since(asked)),
            Ok(Beat::Ended(removed)) => {
                tracing::info!(?removed, "old rows were removed");
                0
            }
            Ok(Beat::Rests(rest, until)) => {
                if let RetentionIdleReason::Theirs(owner) = &rest {
                    tracing::debug!(owner = owner.0, "another process removes old rows");
                }
                until.since(now).clamp(1_000, REST_MS)
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "old rows were not removed; trying again");
                self.meter.retention_failed(now);
                self.meter.beat_failed(NAME);
                AGAIN_MS
            }
        };
        Duration::from_millis(ms.unsigned_abs())
    }
}
