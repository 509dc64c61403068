//! Finds conflicts: jobs that may run at the same time and touch the same rows, and jobs for which this is unknown.

use crate::domain::dag::{Dag, Node};
use crate::domain::id::JobCode;
use crate::lineage::access::{Access, AccessMode};
use crate::lineage::reading::{JobAccess, JobReading, OpaquePart, TextPlace};
use serde::Serialize;
use std::collections::BTreeSet;

/// A job with its lineage.
#[derive(Clone, Debug)]
pub struct JobLineage {
    pub code: JobCode,
    /// Its lineage.
    pub reading: JobReading,
    /// Locks that it holds exclusively.
    pub locks: BTreeSet<String>,
    /// Tables that its owner excludes, with or without schema.
    pub ignored: BTreeSet<String>,
    /// Whether its owner accepts unknown parts.
    pub accepts_opaque: bool,
}

impl JobLineage {
    fn is_whole(&self) -> bool {
        self.accepts_opaque || self.reading.is_whole()
    }

    fn has_data(&self) -> bool {
        !self.reading.accesses.is_empty() || !self.reading.is_whole()
    }

    fn ignores(&self, access: &Access) -> bool {
        let (full, bare) = (access.table.to_string(), &access.table.name);
        self.ignored
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(bare))
    }
}

/// One side of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictSide {
    pub job: JobCode,
    /// The verb of the access: `updates`, `reads` …
    pub verb: &'static str,
    /// The rows as text; empty for all.
    pub rows: String,
    /// Place of the access in a text.
    pub place: TextPlace,
}

/// How certain a conflict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Both accesses are in the texts, and their rows may overlap.
    Race,
    /// Each job empties and refills the table: a lock helps, an order does not.
    StagingTable,
    /// A literal of a dynamic statement names the table.
    Possible,
}

/// Two jobs without a defined order that touch the same rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobConflict {
    /// How certain the conflict is.
    pub kind: ConflictKind,
    /// The table.
    pub table: String,
    /// One side; if one job writes and the other reads, the writer.
    pub first: ConflictSide,
    /// The other side.
    pub second: ConflictSide,
}

/// A job whose lineage is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownJob {
    pub job: JobCode,
    /// Places of dynamic statements.
    pub dynamic: Vec<TextPlace>,
    /// Unknown parts.
    pub opaque: Vec<OpaquePart>,
    /// Jobs without an order relative to it, so that conflicts with them are unknown.
    pub pairs: Vec<JobCode>,
}

/// An order between two jobs that share no data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderWithoutData {
    /// The waiting job.
    pub job: JobCode,
    /// The job that it depends on.
    pub depends_on: JobCode,
}

/// How complete the lineage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineageCoverage {
    /// Number of jobs that access data, or may.
    pub jobs: usize,
    /// Number of those with complete lineage.
    pub whole_jobs: usize,
    /// Number of pairs of them without a defined order.
    pub pairs: usize,
    /// Number of those pairs with complete lineage and without a conflict.
    pub safe_pairs: usize,
    /// Number of pairs with a certain or possible conflict.
    pub conflicting_pairs: usize,
    /// Number of pairs whose conflicts are unknown.
    pub unknown_pairs: usize,
}

/// The conflicts among a group's jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConflictReport {
    /// Conflicts, certain ones first.
    pub conflicts: Vec<JobConflict>,
    /// Jobs with incomplete lineage that may conflict with another.
    pub unknown: Vec<UnknownJob>,
    /// Dependencies between jobs that share no data.
    pub without_data: Vec<OrderWithoutData>,
    /// How complete the lineage is.
    pub coverage: LineageCoverage,
}

/// Compares every two jobs without a path between them in the DAG. `jobs` are in the order of the DAG's nodes.
pub fn find_conflicts(jobs: &[JobLineage], dag: &Dag) -> ConflictReport {
    let mut report = ConflictReport::default();
    let reach = reachable(dag);
    let with_data: Vec<usize> = (0..jobs.len()).filter(|at| jobs[*at].has_data()).collect();
    let is_ordered = |a: usize, b: usize| reach[a].contains(b) || reach[b].contains(a);
    let mut unknown_of: Vec<Vec<JobCode>> = vec![Vec::new(); jobs.len()];
    for (place, a) in with_data.iter().copied().enumerate() {
        for b in with_data[place + 1..].iter().copied().filter(|b| !is_ordered(a, *b)) {
            report.coverage.pairs += 1;
            let found = conflicts_of(&jobs[a], &jobs[b]);
            if !found.is_empty() {
                report.coverage.conflicting_pairs += 1;
                report.conflicts.extend(found);
            } else if jobs[a].is_whole() && jobs[b].is_whole() {
                report.coverage.safe_pairs += 1;
            } else {
                report.coverage.unknown_pairs += 1;
            }
            for (one, other) in [(a, b), (b, a)] {
                if !jobs[one].is_whole() {
                    unknown_of[one].push(jobs[other].code.clone());
                }
            }
        }
    }
    report.conflicts.sort_by(|a, b| (a.kind, &a.first.job).cmp(&(b.kind, &b.first.job)));
    report.coverage.jobs = with_data.len();
    report.coverage.whole_jobs = with_data.iter().filter(|at| jobs[**at].is_whole()).count();
    for (job, pairs) in jobs.iter().zip(unknown_of) {
        if !job.is_whole() {
            report.unknown.push(UnknownJob {
                job: job.code.clone(),
                dynamic: job.reading.dynamic.clone(),
                opaque: job.reading.opaque.clone(),
                pairs,
            });
        }
    }
    report.without_data = orders_without_data(jobs, dag);
    report
}

/// The nodes that are reachable from a node, one bit each.
struct ReachableJobs(Vec<u64>);

impl ReachableJobs {
    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }
}

fn reachable(dag: &Dag) -> Vec<ReachableJobs> {
    let words = dag.len() / 64 + 1;
    let mut reach: Vec<ReachableJobs> =
        (0..dag.len()).map(|_| ReachableJobs(vec![0; words])).collect();
    for node in dag.in_order().iter().rev() {
        let children: Vec<Node> = dag.children(*node).collect();
        for child in children {
            let below = reach[child.index()].0.clone();
            let own = &mut reach[node.index()];
            own.insert(child.index());
            for (word, more) in own.0.iter_mut().zip(below) {
                *word |= more;
            }
        }
    }
    reach
}

/// The conflicts of two jobs: per table, only the most serious.
fn conflicts_of(one: &JobLineage, two: &JobLineage) -> Vec<JobConflict> {
    let mut found: Vec<JobConflict> = Vec::new();
    let mut add = |conflict: JobConflict| match found
        .iter_mut()
        .find(|known| known.table == conflict.table)
    {
        Some(known) if conflict.kind < known.kind => *known = conflict,
        Some(_) => {}
        None => found.push(conflict),
    };
    let tables: BTreeSet<String> =
        one.reading.accesses.iter().map(|access| access.access.table.to_string()).collect();
    for table in &tables {
        let of = |job: &JobLineage| -> Vec<JobAccess> {
            let its = |one: &&JobAccess| one.access.table.to_string() == *table;
            let kept = job.reading.accesses.iter().filter(its);
            kept.filter(|one| !job.ignores(&one.access)).cloned().collect()
        };
        let (mine, theirs) = (of(one), of(two));
        if mine
            .iter()
            .chain(&theirs)
            .any(|access| one.ignores(&access.access) || two.ignores(&access.access))
        {
            continue;
        }
        let best = best_pair(&mine, &theirs);
        let Some((a, b)) = best else { continue };
        let kind = if refills(&mine) && refills(&theirs) {
            if one.locks.intersection(&two.locks).next().is_some() {
                continue;
            }
            ConflictKind::StagingTable
        } else {
            ConflictKind::Race
        };
        let (a, b) = (AccessOfJob { job: one, access: a }, AccessOfJob { job: two, access: b });
        add(conflict(kind, &a, &b));
    }
    for (guesser, other) in [(one, two), (two, one)] {
        let all = other.reading.accesses.iter().chain(&other.reading.guesses);
        for access in all.filter(|access| !guesser.ignores(&access.access)) {
            let guesses = guesser.reading.guesses.iter();
            let met = guesses.filter(|guess| !other.ignores(&guess.access));
            for guess in met.filter(|guess| accesses_meet(guess, access)) {
                if !guesser.accepts_opaque {
                    let guess = AccessOfJob { job: guesser, access: guess };
                    let access = AccessOfJob { job: other, access };
                    add(conflict(ConflictKind::Possible, &guess, &access));
                }
            }
        }
    }
    found
}

/// The most informative pair of accesses: a write and a read rather than two writes.
fn best_pair<'a>(
    mine: &'a [JobAccess],
    theirs: &'a [JobAccess],
) -> Option<(&'a JobAccess, &'a JobAccess)> {
    let mut best = None;
    for a in mine {
        for b in theirs.iter().filter(|b| accesses_meet(a, b)) {
            let is_mixed = a.access.mode.is_write() != b.access.mode.is_write();
            match best {
                Some((_, _, true)) => {}
                Some(_) if !is_mixed => {}
                _ => best = Some((a, b, is_mixed)),
            }
        }
    }
    best.map(|(a, b, _)| (a, b))
}

/// One of two conflicting accesses, with its job.
struct AccessOfJob<'a> {
    job: &'a JobLineage,
    access: &'a JobAccess,
}

impl AccessOfJob<'_> {
    fn is_write(&self) -> bool {
        self.access.access.mode.is_write()
    }

    fn side(&self) -> ConflictSide {
        ConflictSide {
            job: self.job.code.clone(),
            verb: self.access.access.mode.as_verb(),
            rows: self.access.access.slice.to_string(),
            place: self.access.place.clone(),
        }
    }
}

fn conflict(kind: ConflictKind, one: &AccessOfJob<'_>, two: &AccessOfJob<'_>) -> JobConflict {
    let is_reader_first = !one.is_write() && two.is_write();
    let (first, second) = if is_reader_first { (two, one) } else { (one, two) };
    JobConflict {
        kind,
        table: first.access.access.table.to_string(),
        first: first.side(),
        second: second.side(),
    }
}

/// Whether a job empties a table and then fills it.
fn refills(accesses: &[JobAccess]) -> bool {
    let empties = |one: &JobAccess| {
        matches!(one.access.mode, AccessMode::Whole | AccessMode::Delete)
            && one.access.slice.is_everything()
    };
    let fills =
        |one: &JobAccess| matches!(one.access.mode, AccessMode::Insert | AccessMode::Upsert);
    accesses.iter().any(empties) && accesses.iter().any(fills)
}

/// Whether two accesses are on the same server and their order matters.
pub(super) fn accesses_meet(one: &JobAccess, two: &JobAccess) -> bool {
    one.server == two.server && collide(&one.access, &two.access)
}

/// Whether the order of two accesses on the same server matters.
pub fn collide(one: &Access, two: &Access) -> bool {
    use AccessMode::{Delete, Insert, Read, Update};
    if one.table != two.table || one.slice.is_apart_from(&two.slice) {
        return false;
    }
    match (one.mode, two.mode) {
        // Rows that are only inserted, or only deleted, give the same result in either order.
        (Read, Read) | (Insert, Insert) | (Delete, Delete) => false,
        (Update, Read) => one.written.meets(&two.read),
        (Read, Update) => two.written.meets(&one.read),
        (Update, Update) => {
            one.written.meets(&two.written)
                || one.written.meets(&two.read)
                || two.written.meets(&one.read)
        }
        _ => true,
    }
}

/// Dependencies between jobs with complete lineage that share no row.
fn orders_without_data(jobs: &[JobLineage], dag: &Dag) -> Vec<OrderWithoutData> {
    let mut found = Vec::new();
    for (at, parent) in jobs.iter().enumerate() {
        let place = Node(u32::try_from(at).unwrap_or(u32::MAX));
        for child in dag.children(place) {
            let child = &jobs[child.index()];
            let is_known = |job: &JobLineage| job.is_whole() && job.has_data();
            let meets = |a: &JobAccess| child.reading.accesses.iter().any(|b| accesses_meet(a, b));
            let shares = parent.reading.accesses.iter().any(meets);
            if is_known(parent) && is_known(child) && !shares {
                let (job, depends_on) = (child.code.clone(), parent.code.clone());
                found.push(OrderWithoutData { job, depends_on });
            }
        }
    }
    found
}
