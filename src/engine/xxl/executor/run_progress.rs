//! Follows runs: starts those whose turn it is, opens their batches, stops them after their time
//! limit, and notes their ends.

use super::Executor;
use crate::domain::batch::Batch;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{
    EndedBatch, FAILURES_MOST, RunResult, Stopping, XxlJobId, XxlRun, XxlRunId, XxlStatus, result,
};
use crate::store::{self, batch, xxl_run};
use anyhow::{Context as _, Result};
use std::collections::{BTreeSet, HashMap};

/// The result of one poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Runs that have not ended.
    pub open: usize,
    /// Runs that were started or have ended.
    pub moved: usize,
}

impl Executor {
    /// Polls all unfinished runs once. An error of one does not stop the others; the first error is
    /// returned after all were polled.
    pub async fn follow(&self) -> Result<Followed> {
        let now = self.clock.now();
        let (open, batches) = self.read_runs().await?;
        let mut followed = Followed { open: open.len(), moved: 0 };
        let mut failed = None;
        let mut count = |moved: Result<usize>| match moved {
            Ok(moved) => followed.moved += moved,
            Err(error) => {
                failed.get_or_insert(error);
            }
        };
        for run in open.iter().filter(|run| run.status == XxlStatus::Running) {
            count(self.follow_one(run, &batches, now).await);
        }
        // After those that have just ended have freed capacity.
        match self.give_turns(&open, now).await {
            Ok(runs) => {
                for run in &runs {
                    count(self.open_batches(run, now).await.map(|()| 1));
                }
            }
            Err(error) => count(Err(error)),
        }
        failed.map_or(Ok(followed), Err)
    }

    async fn read_runs(&self) -> Result<(Vec<XxlRun>, HashMap<BatchId, Batch>)> {
        let mut tx = self.db.begin_read().await?;
        let open = xxl_run::list_open(&mut tx, self.app_name(), None).await?;
        let ids: Vec<BatchId> =
            open.iter().flat_map(|run| run.batches.iter().flatten()).copied().collect();
        let found = xxl_run::batches(&mut tx, &ids).await?;
        Ok((open, found.into_iter().map(|batch| (batch.batch_id, batch)).collect()))
    }

    async fn follow_one(
        &self,
        run: &XxlRun,
        batches: &HashMap<BatchId, Batch>,
        now: Millis,
    ) -> Result<usize> {
        let Some(ids) = &run.batches else {
            return match run.stopping {
                // A process died after the run was started.
                None => self.open_batches(run, now).await.map(|()| 1),
                Some(why) => self.end_run(run, &RunResult::failed(why.words()), now).await,
            };
        };
        // A missing batch was old, and retention removes only ended ones.
        let there: Vec<&Batch> = ids.iter().filter_map(|id| batches.get(id)).collect();
        if there.iter().all(|batch| batch.status.is_final()) {
            let result = self.result_of(run, &there).await?;
            return self.end_run(run, &result, now).await;
        }
        if run.stopping.is_none() && run.deadline.is_some_and(|at| at <= now) {
            let mut tx = self.db.begin().await?;
            self.stop_run(&mut tx, run, Stopping::TimedOut, now).await?;
            tx.commit().await.context("stop a run whose time is over")?;
            return Ok(1);
        }
        Ok(0)
    }

    async fn result_of(&self, run: &XxlRun, there: &[&Batch]) -> Result<RunResult> {
        let mut tx = self.db.begin_read().await?;
        let mut ended = Vec::new();
        for batch in there {
            let mut counts = batch::counts(&mut tx, batch.batch_id).await?;
            counts.sort_unstable();
            let failures = match batch.status.is_success() {
                true => Vec::new(),
                false => xxl_run::failures(&mut tx, batch.batch_id, FAILURES_MOST).await?,
            };
            ended.push(EndedBatch { batch: (*batch).clone(), counts, failures });
        }
        Ok(result(run.stopping, &ended))
    }

    async fn end_run(&self, run: &XxlRun, result: &RunResult, now: Millis) -> Result<usize> {
        let mut tx = self.db.begin().await?;
        let is_ours = xxl_run::end_run(&mut tx, run, result, now).await?;
        tx.commit().await.context("end a run")?;
        self.news.notify_one();
        Ok(usize::from(is_ours))
    }

    /// Starts the oldest waiting run of each job without a running one; one commit for all of them.
    async fn give_turns(&self, seen: &[XxlRun], now: Millis) -> Result<Vec<XxlRun>> {
        if !seen.iter().any(|run| run.status == XxlStatus::Waiting) {
            return Ok(Vec::new());
        }
        let mut tx = self.db.begin().await?;
        xxl_run::lock_runs(&mut tx, now).await?;
        let open = xxl_run::list_open(&mut tx, self.app_name(), None).await?;
        let mut next = Vec::new();
        for id in next_turns(&open) {
            if xxl_run::begin(&mut tx, id, now).await? {
                next.extend(open.iter().filter(|run| run.run_id == id).cloned());
            }
        }
        tx.commit().await.context("give runs their turn")?;
        next.iter_mut().for_each(|run| run.status = XxlStatus::Running);
        Ok(next)
    }

    /// Transient database errors are not worth a warning.
    pub(super) fn log_failure(what: &str, error: &anyhow::Error) {
        let error_text = format!("{error:#}");
        match store::asks_again(error) {
            true => tracing::debug!(error = error_text, "{what}"),
            false => tracing::warn!(error = error_text, "{what}; trying again"),
        }
    }
}

/// The first run of each job, oldest first, if it waits.
fn next_turns(open: &[XxlRun]) -> Vec<XxlRunId> {
    let busy = open.iter().filter(|run| run.status == XxlStatus::Running).map(|run| run.job_id);
    let mut busy: BTreeSet<XxlJobId> = busy.collect();
    let waiting = open.iter().filter(|run| run.status == XxlStatus::Waiting);
    waiting.filter(|run| busy.insert(run.job_id)).map(|run| run.run_id).collect()
}
