//! When owners hear that something still runs: a job past its `warn_after_sec`, a batch past its
//! group's. Timers, not questions asked again and again. No I/O.

use crate::domain::dag::Node;
use crate::domain::id::{BatchId, QueueId};
use crate::domain::notice;
use crate::domain::queue::QueueStatus;
use crate::domain::time::{Millis, span_words};
use crate::engine::active::Active;
use crate::engine::changes::Changes;
use std::collections::BTreeSet;

/// Moments at which owners hear that something still runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    jobs: BTreeSet<(Millis, Node)>,
    /// Kept until the commit that tells of it, so that a failed beat tells of it again.
    pub(super) batch: Option<Millis>,
}

/// What owners were told of, for whoever notes it after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// That a try runs long: its row, and what its log says of it.
    Job(QueueId, String),
    /// That a batch runs long.
    Batch(BatchId),
}

impl Watch {
    /// Nothing runs yet; owners hear of the batch then.
    pub(super) fn of(batch: Option<Millis>) -> Self {
        Self { batch, jobs: BTreeSet::new() }
    }
}

impl Active {
    /// Its try has started, and its owners have not been told that it runs long.
    pub(super) fn watch(&mut self, node: Node) {
        if let Some(at) = self.warn_at(node) {
            self.watch.jobs.insert((at, node));
        }
    }

    /// Its try has ended.
    pub(super) fn unwatch(&mut self, node: Node) {
        if let Some(at) = self.warn_at(node) {
            self.watch.jobs.remove(&(at, node));
        }
    }

    fn warn_at(&self, node: Node) -> Option<Millis> {
        let after = self.job(node).warn_after_sec?;
        Some(self.row(node).start_time?.plus(i64::from(after) * 1_000))
    }

    /// The next moment at which `tell_long` has something to tell.
    pub(super) fn next_long(&self) -> Option<Millis> {
        let job = self.watch.jobs.first().map(|(at, _)| *at);
        job.into_iter().chain(self.watch.batch).min()
    }

    /// Tells owners of what runs long by now.
    pub(super) fn tell_long(&mut self, changes: &mut Changes, now: Millis) {
        let id = self.batch.batch_id;
        while let Some(&(at, node)) = self.watch.jobs.first().filter(|(at, _)| *at <= now) {
            self.watch.jobs.remove(&(at, node));
            let (row, job) = (self.row(node), self.job(node));
            if row.status != QueueStatus::Running {
                continue;
            }
            let took = now.since(row.start_time.unwrap_or(now));
            let (group, attempt) = (&self.snapshot.group, row.attempt);
            let notices = notice::running_long(&self.batch, group, job, attempt, took);
            let told = match notices.len() {
                0 => "nobody is named to hear of it".to_owned(),
                1 => "told 1 address".to_owned(),
                many => format!("told {many} addresses"),
            };
            let said = format!("still runs after {}; {told}", span_words(took));
            changes.told.push(Told::Job(row.queue_id, said));
            if !notices.is_empty() {
                changes.notices.push((id, Some(row.queue_id), notices));
            }
            changes.batches.insert(id);
        }
        if self.watch.batch.is_some_and(|at| at <= now) && !self.readiness.is_done() {
            let notices = notice::batch_long(&self.batch, &self.snapshot.group);
            if !notices.is_empty() {
                changes.notices.push((id, None, notices));
            }
            changes.told.push(Told::Batch(id));
            changes.batches.insert(id);
        }
    }
}
