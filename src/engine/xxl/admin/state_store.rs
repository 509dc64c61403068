//! The loop around the tick, and periodic maintenance: ends abandoned runs, removes old rows.

use super::dispatch::found;
use super::run_state::{ExecutorCallState, RunRegister};
use super::{Admin, CallId};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEvent, RunStatus, StopWhy, UnreportedEnd};
use crate::handler::log::RunLog;
use crate::store::executor_run::{self as rows, ExecutorRunRow};
use crate::store::hint::HintTopic;
use crate::store::{self, executor_registry};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Interval between two checks for abandoned runs, in milliseconds.
const TIDY_MS: i64 = 30_000;
/// Number of abandoned runs ended at once.
const TIDY_MOST: u32 = 200;
/// How long rows of deregistered executors and of expired uses are kept, in milliseconds.
const DAY_MS: i64 = 86_400_000;
/// Number of rows removed at once.
const FORGET_MOST: u32 = 500;
/// Pause after a database failure.
const AWAY: Duration = Duration::from_millis(500);
/// The longest pause, in milliseconds.
const REST_MS: i64 = 5_000;

/// A running loop; dropping this stops it.
pub(in crate::engine) struct AdminTask {
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl AdminTask {
    /// Stops the loop and waits for its end.
    pub(in crate::engine) async fn end_and_wait(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "what asks executors broke down");
        }
    }
}

impl Admin {
    /// Runs the loop in a task of its own until it is ended.
    pub(in crate::engine) fn start(self: &Arc<Self>) -> AdminTask {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.clone().keep_running(stop.clone()));
        AdminTask { task, stop: stop.drop_guard() }
    }

    async fn keep_running(self: Arc<Self>, stop: CancellationToken) {
        let mut hints = self.hints.clone();
        // Not for a process that runs one batch and ends.
        self.book.lock().await.tidy_at = self.clock.now().plus_ms(TIDY_MS);
        while !stop.is_cancelled() {
            match self.round().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    log_error(&error);
                    tokio::time::sleep(AWAY).await;
                    continue;
                }
            }
            let rest = self.idle_time().await;
            let is_told = tokio::select! {
                () = stop.cancelled() => false,
                () = self.nudge.notified() => false,
                () = hints.wait_for_topic(&[HintTopic::Run]) => true,
                () = tokio::time::sleep(rest) => false,
            };
            if is_told {
                self.look_soon().await;
            }
        }
    }

    async fn round(self: &Arc<Self>) -> Result<bool> {
        if self.run_tick().await? {
            return Ok(true);
        }
        let now = self.clock.now();
        let mut book = self.book.lock().await;
        if now < book.tidy_at {
            return Ok(false);
        }
        book.tidy_at = now.plus_ms(TIDY_MS);
        self.end_stale_runs(&mut book, now).await?;
        Ok(false)
    }

    /// Checks for abandoned runs at once.
    pub async fn tidy_now(&self) -> Result<()> {
        self.end_stale_runs(&mut *self.book.lock().await, self.clock.now()).await
    }

    /// How long there is nothing to do.
    async fn idle_time(&self) -> Duration {
        let (book, now) = (self.book.lock().await, self.clock.now());
        let until = if book.is_idle() { now.plus_ms(REST_MS) } else { book.look_at };
        let until = book.next().map_or(until, |next| next.min(until)).min(book.tidy_at);
        Duration::from_millis(u64::try_from(until.since(now)).unwrap_or(0).clamp(1, 5_000))
    }

    /// Ends runs whose jobs have ended while no attempt waited: they would block other runs of
    /// their jobs. Removes old rows.
    async fn end_stale_runs(&self, book: &mut RunRegister, now: Millis) -> Result<()> {
        let mut tx = self.db.begin_read().await?;
        let mut left = rows::left_over(&mut tx, TIDY_MOST).await?;
        drop(tx);
        left.retain(|run| !book.parts.contains_key(&run.log_id));
        let mut tx = self.db.begin().await?;
        executor_registry::forget(&mut tx, now.plus_ms(-DAY_MS), FORGET_MOST).await?;
        rows::forget_uses(&mut tx, now.plus_ms(-DAY_MS)).await?;
        let said = "its job is over";
        let (waiting, sent): (Vec<ExecutorRunRow>, Vec<ExecutorRunRow>) =
            left.into_iter().partition(|run| run.status == RunStatus::Waiting);
        for run in &waiting {
            let ended = UnreportedEnd::Stopped(StopWhy::Killed);
            rows::end_run(&mut tx, run.log_id, ended, said, now).await?;
        }
        let ids: Vec<i64> = sent.iter().map(|run| run.log_id.0).collect();
        rows::adopt(&mut tx, &ids, &self.me, now).await?;
        rows::stop_runs(&mut tx, &ids, StopWhy::Killed, now).await?;
        let sent = self.targets(&mut tx, sent, now).await?;
        tx.commit().await.context("end runs that nobody waits for")?;
        for (run, to) in sent {
            tracing::warn!(log_id = run.log_id.0, "a run is stopped whose job is over");
            let id = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
            book.calls.insert(id, orphan(&run));
            let part = found(id, &run, to, now);
            book.add_part(id, run.log_id, part);
            book.apply_event(run.log_id, &RunEvent::Stop(StopWhy::Killed), self.give_up_ms, now);
        }
        Ok(())
    }
}

/// A call that no attempt waits for.
fn orphan(run: &ExecutorRunRow) -> ExecutorCallState {
    ExecutorCallState {
        queue_id: run.queue_id,
        attempt: run.attempt,
        ask: None,
        log: RunLog::new(1_000),
        waits: watch::Sender::default(),
        answer: None,
        stop: Some(StopWhy::Killed),
        job_id: run.job_id,
        run_no: run.run_no,
        batch_id: run.batch_id,
        runs: Vec::new(),
        ends: Vec::new(),
        candidates: None,
    }
}

fn log_error(error: &anyhow::Error) {
    let text = format!("{error:#}");
    match store::asks_again(error) {
        true => tracing::debug!(error = text, "runs of executors could not be followed"),
        false => tracing::warn!(error = text, "runs of executors could not be followed; trying on"),
    }
}
