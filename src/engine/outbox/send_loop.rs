//! The loop that sends the outbox in a serving process, and the final pass of a process that runs
//! one batch.

use super::{DeliverySummary, Sender};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The name of this loop in metrics.
pub(super) const NAME: &str = "outbox";
/// Poll interval when nothing is due, in milliseconds: the longest delay of a first delivery
/// attempt.
const LOOK_MS: u64 = 2_000;
/// Pause after a database failure, in milliseconds.
const AGAIN_MS: u64 = 5_000;
/// How long a process that is told to stop waits for sends under way.
const LAST_SENDS: Duration = Duration::from_secs(5);
/// How long a process that ends waits for its last notifications.
const LAST: Duration = Duration::from_secs(30);

/// Ends when the time for sends under way has passed after `stop`. Notifications left then are sent
/// by another process, or by this one after a restart.
async fn patience(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(LAST_SENDS).await;
}

impl Sender {
    /// Sends until it is stopped, in a task of its own, so that the dispatcher never waits for it.
    /// No error ends it.
    pub async fn run(self, stop: CancellationToken) {
        if let Err(error) = tokio::spawn(self.run_loop(stop)).await {
            tracing::error!(%error, "what sends mails broke down");
        }
    }

    async fn run_loop(mut self, stop: CancellationToken) {
        if let Err(error) = self.begin().await {
            tracing::debug!(error = format!("{error:#}"), "letters that waited wait on");
        }
        self.beats(&stop).await;
        self.release_claims().await;
        self.meter.loop_ended(NAME);
    }

    /// Sends until it is stopped, and then once more: for a process that ends with its batch.
    pub async fn run_to_the_end(mut self, stop: CancellationToken) {
        self.beats(&stop).await;
        match tokio::time::timeout(LAST, self.flush()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "mails wait in the outbox: procession outbox list");
            }
            Err(_) => tracing::warn!("mails wait in the outbox: procession outbox list"),
        }
        self.release_claims().await;
        self.meter.loop_ended(NAME);
    }

    async fn beats(&mut self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            self.meter.loop_turned(NAME, self.clock.uptime());
            let pause = tokio::select! {
                pause = self.run_once() => pause,
                () = patience(stop) => break,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// One pass; returns how long to wait after it.
    async fn run_once(&mut self) -> Duration {
        if self.heart.as_ref().is_some_and(|heart| heart.is_resting()) {
            return Duration::from_millis(LOOK_MS);
        }
        let beaten = AssertUnwindSafe(self.send_due(self.clock.now())).catch_unwind().await;
        let beaten = beaten.unwrap_or_else(|_| Err(anyhow::anyhow!("the outbox broke down")));
        let ms = match beaten {
            Ok(DeliverySummary { .. }) => LOOK_MS,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "mails were not sent; trying again");
                self.meter.beat_failed(NAME);
                AGAIN_MS
            }
        };
        Duration::from_millis(ms)
    }

    /// Sends all due notifications, for a process that ends afterwards; returns the result.
    pub async fn flush(&mut self) -> anyhow::Result<DeliverySummary> {
        self.begin().await?;
        self.send_due(self.clock.now()).await
    }

    /// Releases notifications that will not be sent by this process, so that others send them at
    /// once.
    async fn release_claims(&self) {
        if let Err(error) = self.let_go().await {
            let error = format!("{error:#}");
            tracing::warn!(error, "mails that were taken are due again in some minutes");
        }
    }
}
