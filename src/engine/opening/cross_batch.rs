//! Dependencies on jobs in other batches: computed when a batch is read, polled while it runs.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::batch_no::RelativeBatch;
use crate::domain::dag::Node;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::external::{
    AwaitedBatch, CrossBatchDependency, Expired, ExternalDependency, Missing, judge,
};
use crate::domain::job::trigger_rule::{Edge, EdgeCondition, EdgeTally};
use crate::domain::time::Millis;
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

/// The dependencies of one batch on others, each with the waiting job.
type AwaitedBatchList = Vec<(Node, CrossBatchDependency)>;

/// The key of a database query for a dependency: which group, which job, which condition and which
/// batch numbers. Jobs with the same key share the query.
type AwaitedQuery = (GroupCode, Option<JobCode>, EdgeCondition, RelativeBatch);

/// Reads the state of the batches that jobs of this one wait for; one query per distinct key.
pub async fn read_awaited(
    tx: &mut Tx,
    batch: &Batch,
    snapshot: &Snapshot,
    now: Millis,
) -> Result<AwaitedBatchList> {
    if snapshot.externals.is_empty() {
        return Ok(Vec::new());
    }
    let places: HashMap<_, _> =
        (0..).zip(&snapshot.jobs).map(|(i, job)| (&job.code, Node(i))).collect();
    let mut outside = Vec::new();
    let mut known: HashMap<AwaitedQuery, Vec<AwaitedBatch>> = HashMap::new();
    for external in &snapshot.externals {
        let Some(node) = places.get(&external.job_code) else { continue };
        let values = &batch.values;
        let wanted = external.batch.from(&values.batch_no, values.business_date);
        let wanted = wanted.with_context(|| {
            format!("job {}: which batch of {} it waits for", external.job_code, external.target())
        })?;
        let mut waiting = CrossBatchDependency {
            external: external.clone(),
            wanted,
            edge: None,
            waits: Vec::new(),
        };
        let seen = match known.entry(question(&waiting)) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(find_awaited(tx, batch, &waiting).await?),
        };
        answer(&mut waiting, seen, batch, now);
        outside.push((*node, waiting));
    }
    Ok(outside)
}

fn question(waiting: &CrossBatchDependency) -> AwaitedQuery {
    let ExternalDependency { group, depends_on, when, .. } = &waiting.external;
    (group.clone(), depends_on.clone(), when.clone(), waiting.wanted.clone())
}

pub(in crate::engine) async fn find_awaited(
    tx: &mut Tx,
    batch: &Batch,
    waiting: &CrossBatchDependency,
) -> Result<Vec<AwaitedBatch>> {
    store::outside::find_awaited(tx, &waiting.external, &waiting.wanted, batch.batch_id).await
}

/// Stores what follows from the state that was read; returns the edge once it is decided.
fn answer(
    waiting: &mut CrossBatchDependency,
    seen: &[AwaitedBatch],
    batch: &Batch,
    now: Millis,
) -> Option<Edge> {
    let expired = match deadline(batch, waiting) {
        Some(at) if at <= now => Expired::Yes,
        Some(_) | None => Expired::No,
    };
    match judge(&waiting.external, seen, expired) {
        Ok(edge) => waiting.edge = Some(edge),
        Err(waits) => waiting.waits = waits,
    }
    waiting.edge
}

/// The dependencies of a running batch. The cost of a poll depends on what differs from the
/// previous one, not on the number of waiting jobs: 100,000 jobs that wait for one batch are one
/// query.
pub(in crate::engine) struct CrossBatchDependencies {
    all: AwaitedBatchList,
    of: HashMap<Node, Vec<usize>>,
    asked: Vec<CrossBatchQuestion>,
    /// Of open dependencies: when the wait for them is over.
    deadlines: BTreeSet<(Millis, usize)>,
    open: usize,
}

/// A query, with the indexes of the dependencies that share it.
struct CrossBatchQuestion {
    who: Vec<usize>,
    open: usize,
    seen: Option<Vec<AwaitedBatch>>,
}

impl CrossBatchDependencies {
    pub(in crate::engine) fn from_awaited(batch: &Batch, all: AwaitedBatchList) -> Self {
        let mut this = Self {
            of: HashMap::new(),
            asked: Vec::new(),
            deadlines: BTreeSet::new(),
            open: 0,
            all: Vec::new(),
        };
        let mut known: HashMap<AwaitedQuery, usize> = HashMap::new();
        for (i, (node, waiting)) in all.iter().enumerate() {
            this.of.entry(*node).or_default().push(i);
            if waiting.edge.is_some() {
                continue;
            }
            let at = *known.entry(question(waiting)).or_insert(this.asked.len());
            if at == this.asked.len() {
                this.asked.push(CrossBatchQuestion { who: Vec::new(), open: 0, seen: None });
            }
            this.asked[at].who.push(i);
            this.asked[at].open += 1;
            this.deadlines.extend(deadline(batch, waiting).map(|when| (when, i)));
            this.open += 1;
        }
        this.all = all;
        this
    }

    pub(in crate::engine) fn iter(&self) -> impl Iterator<Item = &(Node, CrossBatchDependency)> {
        self.all.iter()
    }

    /// Whether a job still waits for another batch.
    pub(in crate::engine) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// When the wait for the next of them is over.
    pub(in crate::engine) fn next_deadline(&self) -> Option<Millis> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// One dependency of each open query.
    pub(in crate::engine) fn questions(
        &self,
    ) -> impl Iterator<Item = (usize, &CrossBatchDependency)> {
        let open = self.asked.iter().enumerate().filter(|(_, asked)| asked.open > 0);
        open.map(|(at, asked)| (at, &self.all[asked.who[0]].1))
    }

    /// Applies the state that was read; returns the decided edges, in the order of the batch.
    pub(in crate::engine) fn take_news(
        &mut self,
        said: Vec<(usize, Vec<AwaitedBatch>)>,
        batch: &Batch,
        now: Millis,
    ) -> Vec<(Node, Edge)> {
        let mut look_at: BTreeSet<usize> = BTreeSet::new();
        for (at, seen) in said {
            let asked = &mut self.asked[at];
            if asked.seen.as_ref() != Some(&seen) {
                look_at.extend(asked.who.iter().filter(|i| self.all[**i].1.edge.is_none()));
                asked.seen = Some(seen);
            }
        }
        let late = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        look_at.extend(late.map(|(_, i)| i));
        let by_question: HashMap<usize, usize> = match look_at.is_empty() {
            true => HashMap::new(),
            false => (0..)
                .zip(&self.asked)
                .flat_map(|(at, a)| a.who.iter().map(move |i| (*i, at)))
                .collect(),
        };
        let mut heard = Vec::new();
        for i in look_at {
            let asked = &mut self.asked[by_question[&i]];
            let (node, waiting) = &mut self.all[i];
            let Some(seen) = &asked.seen else { continue };
            let Some(edge) = answer(waiting, seen, batch, now) else { continue };
            asked.open -= 1;
            self.open -= 1;
            if let Some(at) = deadline(batch, waiting) {
                self.deadlines.remove(&(at, i));
            }
            heard.push((*node, edge));
        }
        heard
    }

    /// Why a job that waits for other batches is given up, if one of them failed.
    pub(in crate::engine) fn reason(&self, node: Node) -> Option<String> {
        let own = self.of.get(&node)?.iter().map(|i| &self.all[*i].1);
        let failed = own.filter(|w| matches!(w.edge, Some(Edge::Failed | Edge::Lost)));
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

    /// The decided edges from other batches per job, as the initial tallies.
    pub(in crate::engine) fn tallies(&self) -> HashMap<Node, EdgeTally> {
        tallies(&self.all)
    }
}

/// When the wait is over.
fn deadline(batch: &Batch, waiting: &CrossBatchDependency) -> Option<Millis> {
    let limit = waiting.external.wait_sec?;
    Some(batch.create_time.plus_ms(i64::from(limit) * 1_000))
}

/// The decided edges from other batches per job, as the initial tallies.
pub(in crate::engine) fn tallies(
    outside: &[(Node, CrossBatchDependency)],
) -> HashMap<Node, EdgeTally> {
    let mut tallies: HashMap<Node, EdgeTally> = HashMap::new();
    for (node, waiting) in outside {
        let tally = tallies.entry(*node).or_default();
        tally.open += 1;
        if let Some(edge) = waiting.edge {
            tally.count_edge(edge);
        }
    }
    tallies
}
