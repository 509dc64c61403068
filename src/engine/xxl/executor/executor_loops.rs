//! The loops of an executor. No error ends them: failed work is repeated later.

use super::Executor;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Poll interval for runs, and for ends to report, without a wake-up.
const LOOK: Duration = Duration::from_secs(1);
/// Pause after a database failure.
const AWAY: Duration = Duration::from_secs(5);
/// Registration interval; an admin forgets an executor after 90 s.
const REGISTER: Duration = Duration::from_secs(30);
/// Number of registrations between two removals of old runs.
const FORGET_EVERY: u32 = 120;
/// How long a process that ends continues to report.
const LAST_WORDS: Duration = Duration::from_secs(10);

impl Executor {
    /// Follows runs until it is stopped.
    pub async fn keep_following(&self, stop: &CancellationToken) {
        loop {
            let pause = match self.follow().await {
                Ok(followed) if followed.moved > 0 => continue,
                Ok(_) => LOOK,
                Err(error) => {
                    Self::log_failure("runs of XXL-JOB could not be followed", &error);
                    AWAY
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.nudge.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reports ends of runs until it is stopped, and then once more those that are due.
    pub async fn keep_telling(&self, stop: &CancellationToken) {
        let mut is_away = false;
        while !stop.is_cancelled() {
            let pause = match self.report_ends().await {
                Ok(told) => {
                    if told.again > 0 && !is_away {
                        let runs = told.again;
                        tracing::warn!(runs, "no admin of XXL-JOB takes ends of runs; trying on");
                    } else if told.taken > 0 && is_away {
                        tracing::warn!(
                            runs = told.taken,
                            "an admin of XXL-JOB takes ends of runs again"
                        );
                    }
                    is_away = told.again > 0 || (is_away && told.taken == 0);
                    if told.taken > 0 {
                        continue;
                    }
                    LOOK
                }
                Err(error) => {
                    Self::log_failure("ends of runs could not be told to XXL-JOB", &error);
                    AWAY
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.news.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let last = async {
            let _told_by_the_next_process = self.follow().await;
            self.report_ends().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(LAST_WORDS, last).await {
            Self::log_failure("the last ends of runs wait for the next process", &error);
        }
    }

    /// Registers this executor repeatedly until it is stopped, and then deregisters it.
    pub async fn keep_registered(&self, stop: &CancellationToken) {
        let mut was_taken = true;
        let mut round = 0_u32;
        loop {
            let answer = tokio::select! {
                () = stop.cancelled() => break,
                answer = self.register() => answer,
            };
            match &answer {
                Err(error) if was_taken => {
                    tracing::warn!(%error, "no admin of XXL-JOB takes the registration; trying on");
                }
                Ok(()) if !was_taken => tracing::warn!("registered with XXL-JOB again"),
                Ok(()) | Err(_) => {}
            }
            was_taken = answer.is_ok();
            if round.is_multiple_of(FORGET_EVERY)
                && let Err(error) = self.forget().await
            {
                Self::log_failure("old runs could not be removed", &error);
            }
            round = round.wrapping_add(1);
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(REGISTER) => {}
            }
        }
        if let Ok(Err(error)) = tokio::time::timeout(LAST_WORDS, self.deregister()).await {
            tracing::warn!(%error, "no admin of XXL-JOB heard that this executor goes");
        }
    }
}
