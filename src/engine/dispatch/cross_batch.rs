//! Polls the batches that jobs of this process wait for.

use crate::domain::dag::Node;
use crate::domain::id::BatchId;
use crate::engine::dispatch::acquire::OfBatch;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::engine::opening::cross_batch::find_awaited;
use anyhow::{Context as _, Result};

impl QueueDispatcher {
    /// Whether a job that has just ended here is awaited by another batch of this process, which
    /// then need not wait for the next poll.
    pub(super) fn is_awaited(&self, ended: &[(BatchId, Node)]) -> bool {
        let waiting = || self.batches.active.values().filter(|a| a.outside.is_open());
        if waiting().next().is_none() {
            return false;
        }
        ended.iter().filter_map(|(id, node)| Some((self.batches.active.get(id)?, *node))).any(
            |(a, node)| {
                let (group, code) = (&a.batch.values.group, &a.job_at(node).code);
                waiting().flat_map(|w| w.outside.questions()).any(|(_, w)| {
                    let external = &w.external;
                    external.group == *group
                        && external.depends_on.as_ref().is_none_or(|on| on == code)
                })
            },
        )
    }

    /// Polls the batches that jobs here still wait for. Costs a few reads per distinct question,
    /// however many jobs ask it; none when no job waits.
    pub async fn look_outside(&mut self) -> Result<()> {
        let open: Vec<BatchId> = self
            .batches
            .active
            .iter()
            .filter(|(_, a)| a.outside.is_open())
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            let now = self.process.clock.now();
            let Some(active) = self.batches.active.get_mut(&id) else { continue };
            // All are read before any is applied: a result that was applied but not counted because
            // of an error would not be read again, and its job would wait forever.
            let mut said = Vec::new();
            let mut tx = self.process.db.begin_read().await?;
            for (at, waiting) in active.outside.questions() {
                let seen = find_awaited(&mut tx, &active.batch, waiting).await;
                said.push((at, seen.context(OfBatch(id))?));
            }
            drop(tx);
            let heard = active.outside.take_news(said, &active.batch, now);
            let mut changes = Changes::default();
            for (node, edge) in heard {
                active.apply_edge(node, edge, &mut changes, now);
            }
            if !changes.is_empty() {
                self.commit(&changes, now).await?;
                self.publish_events(changes.news);
            }
        }
        Ok(())
    }
}
