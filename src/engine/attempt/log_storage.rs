//! Stores the log lines of a running attempt in bounded groups, and keeps each group until its
//! commit.
//!
//! A group is small so that on SQLite, which has one writer, the lease is renewed between two of
//! them: the lines of three talkative scripts in one transaction each delayed it by ten seconds.

use crate::domain::time::Millis;
use crate::engine::attempt::run::{AttemptOrder, Surroundings, dated};
use crate::engine::db_retry::answered_at_last;
use crate::handler::log::{GroupLimit, JobLogLine, LogGroup};
use crate::store::log::{self, NewLine};
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// Maximum size of one transaction.
const GROUP: GroupLimit = GroupLimit { lines: 500, bytes: 256 * 1_024 };

/// Stores the log of one attempt.
pub(super) struct LogStorage<'a> {
    job: &'a AttemptOrder,
    around: &'a Surroundings,
    /// The answer to a commit was lost, so lines may be stored without being acknowledged.
    is_in_doubt: AtomicBool,
    /// The last group was not stored, and a warning was logged.
    has_failed: AtomicBool,
}

impl<'a> LogStorage<'a> {
    pub(in crate::engine) fn new(job: &'a AttemptOrder, around: &'a Surroundings) -> Self {
        Self { job, around, is_in_doubt: false.into(), has_failed: false.into() }
    }

    /// Stores new lines repeatedly until `done`.
    pub(super) async fn store_while_running(&self, done: &CancellationToken) {
        loop {
            tokio::select! {
                () = done.cancelled() => return,
                () = tokio::time::sleep(self.around.log_flush) => {}
            }
            self.job.claimed.wait_until_committed().await;
            self.store_groups(done).await;
        }
    }

    /// Stores the available lines group by group, until one cannot be stored.
    async fn store_groups(&self, done: &CancellationToken) {
        while !done.is_cancelled() {
            let group = self.job.log.next_group(GROUP);
            if group.lines.is_empty() {
                return;
            }
            let has_more = group.has_more;
            if !self.try_to_store(group).await || !has_more {
                return;
            }
        }
    }

    async fn try_to_store(&self, group: LogGroup) -> bool {
        let stored = self.store(group).await;
        let had_failed = self.has_failed.swap(stored.is_err(), Ordering::Relaxed);
        match stored {
            Ok(()) => true,
            Err(error) => {
                if !had_failed {
                    tracing::warn!(
                        queue_id = self.job.queue_id.0,
                        error = format!("{error:#}"),
                        "log lines could not be stored; they are kept and sent again"
                    );
                }
                false
            }
        }
    }

    /// Stores one group and acknowledges it.
    async fn store(&self, mut group: LogGroup) -> Result<()> {
        let mut tx = self.around.log_db.begin().await?;
        if self.is_in_doubt.load(Ordering::Relaxed) {
            let last = log::last_line(&mut tx, self.job.queue_id, self.job.attempt).await?;
            self.job.log.acknowledge(last.map_or(0, |(number, _)| number));
            self.is_in_doubt.store(false, Ordering::Relaxed);
            group = self.job.log.next_group(GROUP);
        }
        let Some(last) = group.lines.last().map(|line| line.number) else { return Ok(()) };
        let lines = dated_all(group.lines, self.job.began);
        log::append_lines(&mut tx, self.job.queue_id, self.job.attempt, &lines).await?;
        self.is_in_doubt.store(true, Ordering::Relaxed);
        log::commit_lines(tx).await?;
        self.is_in_doubt.store(false, Ordering::Relaxed);
        self.job.log.acknowledge(last);
        Ok(())
    }

    /// The lines left for the transaction that ends the attempt: one group at most, unless the
    /// database refuses lines. None of them is stored already, because a duplicate line would make
    /// that transaction fail.
    pub(in crate::engine) async fn finish(&self) -> Vec<JobLogLine> {
        self.job.log.finish_lines();
        loop {
            let group = self.job.log.next_group(GROUP);
            let is_in_doubt = self.is_in_doubt.load(Ordering::Relaxed);
            let stored = match (is_in_doubt, group.has_more) {
                (true, _) => answered_at_last(|| self.store(group.clone())).await.is_ok(),
                (false, true) => self.try_to_store(group).await,
                (false, false) => false,
            };
            if !stored && !self.is_in_doubt_after(is_in_doubt) {
                return self.job.log.finish();
            }
        }
    }

    /// Whether the doubt about stored lines is new.
    fn is_in_doubt_after(&self, before: bool) -> bool {
        !before && self.is_in_doubt.load(Ordering::Relaxed)
    }
}

fn dated_all(lines: Vec<JobLogLine>, began: Millis) -> Vec<NewLine> {
    lines.into_iter().map(|line| dated(line, began)).collect()
}

/// Appends to the log of an attempt whose process died, after the last line that the dead process
/// stored.
pub(super) async fn append_of_orphan(job: &AttemptOrder, around: &Surroundings) -> Result<()> {
    loop {
        let group = job.log.next_group(GROUP);
        let Some(last) = group.lines.last().map(|line| line.number) else { return Ok(()) };
        let lines = dated_all(group.lines, job.began);
        let mut tx = around.log_db.begin().await?;
        log::append_after(&mut tx, job.queue_id, job.attempt, &lines).await?;
        log::commit_lines(tx).await?;
        job.log.acknowledge(last);
    }
}
