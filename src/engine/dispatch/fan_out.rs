//! Fan-out: expands a job into one job per item of a list, once the job is ready and its parent has
//! returned the list.
//!
//! One transaction adds the rows and replaces the snapshot; then memory is read from the rows
//! again, as after a crash. So a crash on either side of the commit leaves a list that is still to
//! be expanded, or one that has been.

use crate::domain::batch::Snapshot;
use crate::domain::dag::Node;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::body::{FanOut, Items};
use crate::domain::params::BoundParam;
use crate::domain::params::fan_out;
use crate::domain::time::Millis;
use crate::engine::dispatch::acquire::OfBatch;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::store::{self, batch, queue};
use anyhow::{Context as _, Result};
use std::collections::{BTreeSet, HashMap};

/// Ready jobs with a list.
#[derive(Debug, Default)]
pub(super) struct Lists {
    wanted: BTreeSet<Node>,
    /// Lists that cannot be expanded: such a job is started, so that it fails with this message.
    refused: HashMap<Node, String>,
}

impl Lists {
    /// Notes a ready job whose list is still to be expanded.
    pub(super) fn is_wanted(&mut self, node: Node, job: &JobDef) -> bool {
        let is_wanted = job.for_each.is_some() && !self.refused.contains_key(&node);
        if is_wanted {
            self.wanted.insert(node);
        }
        is_wanted
    }
}

impl Active {
    /// The parameters of a starting job, where no query is needed: the items a milestone reports,
    /// or why a list cannot be expanded.
    pub(super) fn fixed_params(&self, node: Node) -> Option<Result<Vec<BoundParam>, String>> {
        if let Some(said) = self.lists.refused.get(&node) {
            return Some(Err(said.clone()));
        }
        match self.job_at(node).fan_out.as_deref() {
            Some(FanOut::Milestone { items }) => {
                let parents =
                    self.dag.parents(node).map(|p| (self.job_at(p), self.row_at(p).status));
                Some(Ok(fan_out::summary(items, parents)))
            }
            Some(FanOut::Item { .. }) | None => None,
        }
    }

    /// The snapshot with the job expanded, or why that is not possible.
    fn spread(&self, node: Node) -> Result<Snapshot, String> {
        let job = self.job_at(node);
        let items = match job.for_each.as_ref().map(|f| &f.items) {
            Some(Items::Output(from, name)) => {
                self.items(from, name).map_err(|why| format!("for_each: job {from}: {why}"))?
            }
            // Expanded when the batch was opened.
            Some(Items::List(_) | Items::Param(_)) | None => Vec::new(),
        };
        let mut snapshot = (*self.snapshot).clone();
        fan_out::spread(&mut snapshot.parts(), &job.code, &items).map_err(|e| e.to_string())?;
        Ok(snapshot)
    }

    /// The items that a job has returned. A job without any output counts as an empty list only if
    /// it succeeded and queried a database: a query without rows leaves no output.
    fn items(&self, from: &JobCode, name: &str) -> Result<Vec<String>, String> {
        if let Some(found) = self.outputs.get(from) {
            return found.items(name);
        }
        let asked = self.snapshot.jobs.iter().zip(&self.rows).any(|(job, row)| {
            job.code == *from
                && (job.sql.is_some() || job.proc_name.is_some())
                && row.status.lets_children_run()
        });
        if asked { Ok(Vec::new()) } else { Err(format!("there is no output named {name}")) }
    }

    fn refuse_list(&mut self, node: Node, said: String, now: Millis) {
        self.lists.refused.insert(node, said);
        self.ready_now(node, now);
    }
}

impl QueueDispatcher {
    /// Expands every list whose job is ready. `true` when there was one.
    pub(super) async fn make_lists(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some((id, node)) = self.next_list() {
            any = true;
            let Some(active) = self.batches.active.get(&id) else { continue };
            let code = active.job_at(node).code.clone();
            let done = match active.spread(node) {
                Ok(snapshot) => self.write_list(id, &snapshot).await,
                Err(said) => Ok(Err(said)),
            };
            let done = done.with_context(|| format!("make jobs of the list of {code}"));
            let refused = done.context(OfBatch(id))?.err();
            let now = self.process.clock.now();
            if let Some(active) = self.batches.active.get_mut(&id) {
                active.lists.wanted.remove(&node);
                if let Some(said) = refused {
                    active.refuse_list(node, said, now);
                }
            }
        }
        Ok(any)
    }

    fn next_list(&self) -> Option<(BatchId, Node)> {
        if self.course.draining {
            return None;
        }
        self.batches.active.iter().find_map(|(id, a)| Some((*id, *a.lists.wanted.first()?)))
    }

    /// Adds the rows that the snapshot has and the batch lacks, and stores the snapshot; the inner
    /// error is the message of a refusal.
    async fn write_list(&mut self, id: BatchId, snapshot: &Snapshot) -> Result<Result<(), String>> {
        let Some(active) = self.batches.active.get(&id) else { return Ok(Ok(())) };
        let (values, before) = (active.batch.values.clone(), active.snapshot.jobs.len());
        let entries: Vec<queue::NewEntry<'_>> = snapshot.jobs[before..]
            .iter()
            .map(|job| queue::NewEntry { job_code: &job.code, not_before: None })
            .collect();
        let (now, revision) = (self.process.clock.now(), active.batch.revision);
        // Until it is read again, memory lacks the new rows.
        self.course.stale = true;
        let mut tx = self.process.db.begin().await?;
        batch::lock_owned(&mut tx, id, self.process.node.id(), revision).await?;
        let no = values.batch_no.as_str();
        match queue::generate(&mut tx, id, no, &entries, now).await {
            Err(error) if store::is_taken(&error) => {
                tx.rollback().await?;
                self.course.stale = false;
                return Ok(Err(format!(
                    "for_each: a job of these items is in batch {no} already; let the items differ"
                )));
            }
            other => other?,
        }
        batch::replace_snapshot(&mut tx, id, snapshot).await?;
        tx.commit().await?;
        self.load_batch(id).await?;
        self.course.stale = false;
        Ok(Ok(()))
    }
}
