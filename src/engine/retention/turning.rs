//! The loop that removes old rows in a process that serves.

use super::{Beat, Rest, Sweeper};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Its name among the loops of a process.
const NAME: &str = "retention";
/// The longest sleep: a loop that does not turn for longer is taken for stalled.
const REST_MS: i64 = 30_000;
/// Before another try when something failed.
const AGAIN_MS: i64 = 10_000;

impl Sweeper {
    /// Beats until it is told to stop, in a task of its own: whoever dispatches batches waits for nothing
    /// here. No error ends it.
    pub async fn run(self, stop: CancellationToken) {
        if let Err(error) = tokio::spawn(self.turn(stop)).await {
            tracing::error!(%error, "what removes old rows broke down");
        }
    }

    async fn turn(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.meter.loop_turned(NAME, self.clock.uptime());
            let pause = self.once().await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
        if let Err(error) = self.end_turn().await {
            let error = format!("{error:#}");
            tracing::debug!(error, "the turn of retention runs out by itself");
        }
        self.meter.loop_ended(NAME);
    }

    /// One beat; gives how long to wait after it.
    async fn once(&mut self) -> Duration {
        let (now, asked) = (self.clock.now(), self.clock.uptime());
        let beaten = AssertUnwindSafe(self.beat(now)).catch_unwind().await;
        let beaten = beaten.unwrap_or_else(|_| Err(anyhow::anyhow!("retention broke down")));
        let ms = match beaten {
            Ok(Beat::Did(rows)) if rows.is_empty() => 0,
            Ok(Beat::Did(_)) => return self.pause(self.clock.uptime().since(asked)),
            Ok(Beat::Ended(removed)) => {
                tracing::info!(?removed, "old rows were removed");
                0
            }
            Ok(Beat::Rests(rest, until)) => {
                if let Rest::Theirs(owner) = &rest {
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
