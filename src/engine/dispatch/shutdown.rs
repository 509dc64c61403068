//! How a process shuts down: it starts nothing new, lets running bodies end for a while, then stops
//! and hands back those that may start again elsewhere, and releases its batches.
//!
//! A clean shutdown leaves no unknown outcome: a body that must not be started twice is waited for,
//! however long it takes. Sending the signal again does not wait, and equals a crash.

use crate::domain::cluster::lease::{BodyProgress, Uptime, may_be_handed_back};
use crate::domain::id::BatchId;
use crate::engine::attempt::run::request_stop;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::handler::{self, StopReason};
use crate::store::claim;
use anyhow::{Context as _, Result};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a shutdown waits for running bodies.
pub(super) struct ShutdownTimeout {
    drain_ms: i64,
    ends: Option<Uptime>,
}

impl ShutdownTimeout {
    pub(super) fn new(drain_ms: i64) -> Self {
        Self { drain_ms, ends: None }
    }

    /// Starts the time limit at the first call.
    fn begin(&mut self, now: Uptime) {
        self.ends.get_or_insert(now.plus_ms(self.drain_ms));
    }

    /// The remaining time; `None` when nothing happens at its end.
    pub(super) fn time_left(&self, now: Uptime) -> Option<Duration> {
        let left = self.ends.map(|ends| ends.since(now)).filter(|ms| *ms > 0)?;
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    fn is_over(&self, now: Uptime) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

impl QueueDispatcher {
    /// Applies a shutdown request, and stops bodies when the time limit has passed. Jobs that only
    /// wait for something are not waited for once nothing else runs.
    pub(super) fn set_course(&mut self, stop: &CancellationToken) {
        let now = self.process.clock.uptime();
        if stop.is_cancelled() {
            self.course.patience.begin(now);
        }
        self.course.draining = stop.is_cancelled() || self.backfill_ends();
        if self.course.draining && (self.course.patience.is_over(now) || self.working() == 0) {
            self.hand_back_bodies();
            self.hand_back_hosted();
        }
    }

    fn hand_back_bodies(&self) {
        for active in self.batches.active.values() {
            for (node, stop) in &active.stops {
                let (job, row) = (active.job_at(*node), active.row_at(*node).queue_id);
                let after_crash = handler::kind_of(job).after_crash;
                let shut = || {
                    self.running
                        .bodies
                        .get(&row)
                        .map_or(BodyProgress::Begun, |b| b.gate.close_gate())
                };
                if may_be_handed_back(job, after_crash, BodyProgress::Begun)
                    || may_be_handed_back(job, after_crash, shut())
                {
                    request_stop(stop, StopReason::HandedBack);
                }
            }
        }
    }

    /// Whether nothing is left to wait for.
    pub(super) fn may_part(&self) -> bool {
        let runs = self.running() > 0 || self.serving.is_running() || self.has_late();
        self.course.draining && !runs && !self.course.stale
    }

    /// Whether no body and no batch of anyone is left here.
    pub(super) fn has_put_all_down(&self) -> bool {
        self.serving.put_down().is_empty() && self.running() == 0 && !self.has_late()
    }

    /// Announces that this process takes nothing new, before it hands anything back.
    pub(super) async fn announce(&mut self) -> Result<()> {
        if self.course.draining && !self.fleet.roles.is_empty() && self.process.heart.set_leaving()
        {
            self.say_load();
            self.process.heart.say_now().await?;
        }
        Ok(())
    }

    /// Releases all batches of this process, so that another claims them at once and need not wait
    /// for a lease to expire.
    pub(super) async fn release_batches(&mut self) -> Result<()> {
        self.put_backfill_down().await?;
        let now = self.process.clock.now();
        let mut ids: Vec<BatchId> = self.batches.active.keys().copied().collect();
        ids.extend(self.serving.put_down());
        if !ids.is_empty() {
            let mut tx = self.process.db.begin().await?;
            for id in &ids {
                claim::give_back(&mut tx, *id, self.process.node.id(), now).await?;
            }
            tx.commit().await.context("give the batches back")?;
        }
        self.batches.active.clear();
        self.batches.places.clear();
        self.ends.waiters.clear();
        self.serving.is_put_down(now);
        Ok(())
    }
}
