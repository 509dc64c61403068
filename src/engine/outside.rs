//! What jobs wait for in other batches: worked out when a batch is read, looked at again while it runs.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node;
use crate::domain::external::{Expired, Missing, Wait, Waiting, judge};
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::domain::trigger_rule::{Edge, Tally};
use crate::engine::changes::Changes;
use crate::engine::dispatcher::QueueDispatcher;
use crate::engine::serving::OfBatch;
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// The dependencies of one batch on others, each with the job that waits.
pub(super) type Outside = Vec<(Node, Waiting)>;

/// Reads how the batches stand that this one's jobs wait for.
pub async fn read(tx: &mut Tx, batch: &Batch, snapshot: &Snapshot, now: Millis) -> Result<Outside> {
    if snapshot.externals.is_empty() {
        return Ok(Vec::new());
    }
    let places: HashMap<_, _> =
        (0..).zip(&snapshot.jobs).map(|(i, job)| (&job.code, Node(i))).collect();
    let mut outside = Vec::new();
    for external in &snapshot.externals {
        let Some(node) = places.get(&external.job_code) else { continue };
        let values = &batch.values;
        let wanted = external.batch.from(&values.batch_no, values.business_date);
        let wanted = wanted.with_context(|| {
            format!("job {}: which batch of {} it waits for", external.job_code, external.target())
        })?;
        let mut waiting =
            Waiting { external: external.clone(), wanted, edge: None, waits: Vec::new() };
        let said = look(tx, batch, &waiting, now).await?;
        keep(&mut waiting, said);
        outside.push((*node, waiting));
    }
    Ok(outside)
}

/// What one says now, or what it waits for.
async fn look(
    tx: &mut Tx,
    batch: &Batch,
    waiting: &Waiting,
    now: Millis,
) -> Result<Result<Edge, Vec<Wait>>> {
    let external = &waiting.external;
    let seen = store::outside::seen(tx, external, &waiting.wanted, batch.batch_id).await?;
    let expired = match deadline(batch, waiting) {
        Some(at) if at <= now => Expired::Yes,
        Some(_) | None => Expired::No,
    };
    Ok(judge(external, &seen, expired))
}

/// Keeps what was seen; gives the edge when it has spoken.
fn keep(waiting: &mut Waiting, said: Result<Edge, Vec<Wait>>) -> Option<Edge> {
    match said {
        Ok(edge) => waiting.edge = Some(edge),
        Err(waits) => waiting.waits = waits,
    }
    waiting.edge
}

/// When waiting is over.
pub(super) fn deadline(batch: &Batch, waiting: &Waiting) -> Option<Millis> {
    let limit = waiting.external.wait_sec?;
    Some(batch.create_time.plus(i64::from(limit) * 1_000))
}

/// Why a job that waits for other batches is given up, when it is one of them that failed.
pub(super) fn reason(outside: &Outside, node: Node) -> Option<String> {
    let failed = outside.iter().filter(|(n, _)| *n == node).map(|(_, waiting)| waiting);
    let failed = failed.filter(|w| matches!(w.edge, Some(Edge::Failed | Edge::Lost)));
    let said: Vec<String> = failed
        .map(|waiting| {
            let external = &waiting.external;
            let what = format!("{} in batch {}", external.target(), external.batch);
            match external.missing {
                Missing::Wait => {
                    let seconds = external.wait_sec.unwrap_or_default();
                    format!("{what} had not ended well after {seconds} s (wait_sec)")
                }
                Missing::Fail => format!("{what} is not there, or ended badly (missing: fail)"),
                Missing::Pass => format!("{what} ended badly"),
            }
        })
        .collect();
    let cure = "run that batch, then this one again with --resume";
    (!said.is_empty()).then(|| format!("not started: {}; {cure}", said.join("; ")))
}

/// What the edges from outside say of each job that has any, to begin its tally with.
pub(super) fn tallies(outside: &Outside) -> HashMap<Node, Tally> {
    let mut tallies: HashMap<Node, Tally> = HashMap::new();
    for (node, waiting) in outside {
        let tally = tallies.entry(*node).or_default();
        tally.open += 1;
        if let Some(edge) = waiting.edge {
            tally.add(edge);
        }
    }
    tallies
}

impl QueueDispatcher {
    /// Whether a job that has just ended here is one that another batch of this process waits for; it
    /// then need not wait for the next look.
    pub(super) fn is_awaited(&self, ended: &[(BatchId, Node)]) -> bool {
        let waiting = || self.active.values().filter(|a| a.waits_outside());
        if waiting().next().is_none() {
            return false;
        }
        ended.iter().filter_map(|(id, node)| Some((self.active.get(id)?, *node))).any(
            |(a, node)| {
                let (group, code) = (&a.batch.values.group, &a.job(node).code);
                waiting().flat_map(|w| &w.outside).any(|(_, w)| {
                    let external = &w.external;
                    external.group == *group
                        && external.depends_on.as_ref().is_none_or(|on| on == code)
                })
            },
        )
    }

    /// Looks at the batches that jobs here still wait for. Costs a few reads per open dependency,
    /// none when there is none.
    pub async fn look_outside(&mut self) -> Result<()> {
        let open: Vec<BatchId> =
            self.active.iter().filter(|(_, a)| a.waits_outside()).map(|(id, _)| *id).collect();
        for id in open {
            let now = self.clock.now();
            let Some(active) = self.active.get_mut(&id) else { continue };
            // All are read before any is kept: one that an error kept from being counted would not
            // be asked again, and its job would wait for ever.
            let mut said = Vec::new();
            let mut tx = self.db.read().await?;
            for (_, waiting) in active.outside.iter().filter(|(_, w)| w.edge.is_none()) {
                let seen = look(&mut tx, &active.batch, waiting, now).await;
                said.push(seen.context(OfBatch(id))?);
            }
            drop(tx);
            let open = active.outside.iter_mut().filter(|(_, w)| w.edge.is_none());
            let heard: Vec<(Node, Edge)> = open
                .zip(said)
                .filter_map(|((node, waiting), said)| Some((*node, keep(waiting, said)?)))
                .collect();
            let mut changes = Changes::default();
            for (node, edge) in heard {
                active.hear(node, edge, &mut changes, now);
            }
            if !changes.is_empty() {
                self.commit(&changes, now).await?;
                self.tell(changes.news);
            }
        }
        Ok(())
    }
}
