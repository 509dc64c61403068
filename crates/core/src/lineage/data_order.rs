//! Orders jobs without declared dependencies by their data: the job that creates rows comes before the job that reads
//! them.
//!
//! A draft always orders two jobs that touch the same rows, so that neither reads an intermediate state of the other.
//! If the data does not decide the order, the draft asks a question and orders them by name until it is answered.

use crate::lineage::access::AccessMode;
use crate::lineage::conflict::{JobLineage, accesses_meet};
use crate::lineage::reading::JobAccess;
use std::collections::{BTreeMap, BTreeSet};

/// The order that the data implies for two jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataDirection {
    /// The first job creates rows that the second reads or changes.
    Certain,
    /// The first job changes rows that the second reads; the second may be meant to read the old values.
    Likely,
    /// Both change the same rows, or each reads what the other creates.
    Open,
}

/// Two jobs that touch the same rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeetingPair {
    /// Index of the job that comes first.
    pub(super) first: usize,
    /// Index of the other job.
    pub(super) second: usize,
    /// How certain the order is.
    pub(super) direction: DataDirection,
    /// A table that both touch.
    pub(super) table: String,
}

/// An order by data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DataOrder {
    /// Indexes in an order that respects all pairs.
    pub(super) sequence: Vec<usize>,
    /// All pairs, in the direction of the sequence.
    pub(super) pairs: Vec<MeetingPair>,
    /// Cycles of jobs in which each creates what the next reads.
    pub(super) cycles: Vec<Vec<usize>>,
}

/// Computes the order. Jobs without an order between them keep the order of `jobs`.
pub(super) fn order_by_data(jobs: &[JobLineage]) -> DataOrder {
    let by_table: Vec<BTreeMap<String, Vec<&JobAccess>>> =
        jobs.iter().map(accesses_by_table).collect();
    let mut pairs = Vec::new();
    for one in 0..jobs.len() {
        for two in one + 1..jobs.len() {
            pairs.extend(compare((one, &by_table[one]), (two, &by_table[two])));
        }
    }
    let (sequence, cycles) = sequence_of(jobs.len(), &pairs);
    let mut place = vec![0; jobs.len()];
    for (at, job) in sequence.iter().enumerate() {
        place[*job] = at;
    }
    for pair in &mut pairs {
        if place[pair.first] > place[pair.second] {
            std::mem::swap(&mut pair.first, &mut pair.second);
            pair.direction = DataDirection::Open;
        }
    }
    DataOrder { sequence, pairs, cycles }
}

/// The certain accesses of a job, and those that its dynamic statements suggest.
fn accesses_by_table(job: &JobLineage) -> BTreeMap<String, Vec<&JobAccess>> {
    let mut found: BTreeMap<String, Vec<&JobAccess>> = BTreeMap::new();
    for one in job.reading.accesses.iter().chain(&job.reading.guesses) {
        found.entry(one.access.table.to_string()).or_default().push(one);
    }
    found
}

/// The index of a job, and its accesses per table.
type PlacedAccesses<'a> = (usize, &'a BTreeMap<String, Vec<&'a JobAccess>>);

fn compare(one: PlacedAccesses<'_>, two: PlacedAccesses<'_>) -> Option<MeetingPair> {
    let mut table = None;
    // Votes by certainty, for one before two and for two before one.
    let mut votes = [[false; 2]; 2];
    for (name, mine) in one.1 {
        let Some(theirs) = two.1.get(name) else { continue };
        for a in mine {
            for b in theirs.iter().filter(|b| accesses_meet(a, b)) {
                table.get_or_insert_with(|| name.clone());
                for (way, (x, y)) in [(a, b), (b, a)].into_iter().enumerate() {
                    match vote_for(x.access.mode, y.access.mode) {
                        Some(DataDirection::Certain) => votes[way][0] = true,
                        Some(DataDirection::Likely) => votes[way][1] = true,
                        Some(DataDirection::Open) | None => {}
                    }
                }
            }
        }
    }
    let table = table?;
    let [forth, back] = votes;
    let (is_forth, direction) = match (forth[0], back[0], forth[1], back[1]) {
        (true, false, _, _) => (true, DataDirection::Certain),
        (false, true, _, _) => (false, DataDirection::Certain),
        (false, false, true, false) => (true, DataDirection::Likely),
        (false, false, false, true) => (false, DataDirection::Likely),
        _ => (true, DataDirection::Open),
    };
    let (first, second) = if is_forth { (one.0, two.0) } else { (two.0, one.0) };
    Some(MeetingPair { first, second, direction, table })
}

/// The order implied by two accesses to the same rows.
fn vote_for(first: AccessMode, second: AccessMode) -> Option<DataDirection> {
    use AccessMode::{Delete, Insert, Read, Update, Upsert, Whole};
    match (first, second) {
        (Insert | Upsert | Whole, Read) | (Insert, Update) => Some(DataDirection::Certain),
        (Update | Delete, Read) => Some(DataDirection::Likely),
        _ => None,
    }
}

/// A sequence that respects all certain orders, and likely ones where possible; and the cycles of certain ones.
fn sequence_of(count: usize, pairs: &[MeetingPair]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let before = |wanted: DataDirection| -> Vec<BTreeSet<usize>> {
        let mut before = vec![BTreeSet::new(); count];
        for pair in pairs.iter().filter(|pair| pair.direction == wanted) {
            before[pair.second].insert(pair.first);
        }
        before
    };
    let (mut certain, mut likely) = (before(DataDirection::Certain), before(DataDirection::Likely));
    let mut left: BTreeSet<usize> = (0..count).collect();
    let (mut sequence, mut cycles) = (Vec::new(), Vec::new());
    while let Some(first) = left.first().copied() {
        let is_free = |at: &&usize| certain[**at].is_empty();
        let all_fit = |at: &&usize| certain[**at].is_empty() && likely[**at].is_empty();
        let next = left.iter().find(all_fit).or_else(|| left.iter().find(is_free)).copied();
        let next = next.unwrap_or_else(|| {
            let cycle = find_cycle(first, &certain);
            let least = cycle.iter().min().copied().unwrap_or(first);
            cycles.push(cycle);
            least
        });
        left.remove(&next);
        sequence.push(next);
        for waits in certain.iter_mut().chain(likely.iter_mut()) {
            waits.remove(&next);
        }
    }
    (sequence, cycles)
}

/// A cycle on the way back from an index; each job comes before the next.
fn find_cycle(from: usize, before: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut way = vec![from];
    loop {
        let last = way.last().copied().unwrap_or(from);
        let Some(parent) = before[last].first().copied() else { return way };
        if let Some(start) = way.iter().position(|at| *at == parent) {
            let mut cycle = way.split_off(start);
            cycle.reverse();
            return cycle;
        }
        way.push(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobCode;
    use crate::lineage::access::{Access, ObjectName};
    use crate::lineage::reading::{JobReading, TextPlace};

    fn job(code: &str, accesses: &[(AccessMode, &str)]) -> JobLineage {
        let one = |(mode, table): &(AccessMode, &str)| {
            let mut access = Access::new(ObjectName::bare(table), *mode, 1);
            // As the reader reports it: an UPDATE reads the columns of its WHERE.
            access.read.add_column("*");
            let place = TextPlace { text: code.to_owned(), line: 1 };
            JobAccess { access, server: "s".to_owned(), place }
        };
        let reading =
            JobReading { accesses: accesses.iter().map(one).collect(), ..JobReading::default() };
        JobLineage {
            code: JobCode::parse(code).expect("a code"),
            reading,
            locks: BTreeSet::new(),
            ignored: BTreeSet::new(),
            accepts_opaque: false,
        }
    }

    use AccessMode::{Delete, Insert, Read, Update};

    #[test]
    fn who_makes_rows_comes_before_who_reads_them() {
        let jobs = [
            job("A_REPORT", &[(Read, "ledger"), (Delete, "report"), (Insert, "report")]),
            job("B_POST", &[(Read, "journal"), (Delete, "ledger"), (Insert, "ledger")]),
            job("C_LOAD", &[(Delete, "journal"), (Insert, "journal")]),
            job("D_ALONE", &[(Insert, "other")]),
        ];
        let order = order_by_data(&jobs);
        assert_eq!(order.sequence, [2, 1, 0, 3]);
        assert_eq!(order.cycles, Vec::<Vec<usize>>::new());
        let pairs: Vec<_> = order.pairs.iter().map(|one| (one.first, one.second)).collect();
        assert_eq!(pairs, [(1, 0), (2, 1)]);
        assert!(order.pairs.iter().all(|one| one.direction == DataDirection::Certain));
    }

    #[test]
    fn a_change_of_what_another_reads_is_only_likely_to_come_first() {
        let jobs = [job("CLOSE", &[(Update, "period")]), job("OPEN", &[(Read, "period")])];
        let order = order_by_data(&jobs);
        assert_eq!(order.sequence, [0, 1]);
        assert_eq!(order.pairs[0].direction, DataDirection::Likely);
    }

    #[test]
    fn two_that_change_the_same_rows_are_a_question_and_ordered_by_name() {
        let jobs = [job("A", &[(Update, "t")]), job("B", &[(Update, "t")])];
        let order = order_by_data(&jobs);
        assert_eq!(order.sequence, [0, 1]);
        assert_eq!(order.pairs[0].direction, DataDirection::Open);
        let both =
            [job("A", &[(Insert, "t"), (Read, "u")]), job("B", &[(Insert, "u"), (Read, "t")])];
        assert_eq!(order_by_data(&both).pairs[0].direction, DataDirection::Open);
    }

    #[test]
    fn a_circle_is_told_and_every_pair_in_it_is_ordered() {
        let jobs = [
            job("A", &[(Insert, "t"), (Read, "v")]),
            job("B", &[(Insert, "u"), (Read, "t")]),
            job("C", &[(Insert, "v"), (Read, "u")]),
        ];
        let order = order_by_data(&jobs);
        assert_eq!(order.cycles.len(), 1);
        assert_eq!(
            order.cycles[0].iter().copied().collect::<BTreeSet<_>>(),
            BTreeSet::from([0, 1, 2])
        );
        assert_eq!(order.sequence, [0, 1, 2]);
        let place = |job: usize| order.sequence.iter().position(|at| *at == job);
        assert_eq!(order.pairs.len(), 3);
        assert!(order.pairs.iter().all(|one| place(one.first) < place(one.second)));
        let open = order.pairs.iter().filter(|one| one.direction == DataDirection::Open).count();
        assert_eq!(open, 1, "the one that is turned round");
    }

    #[test]
    fn a_likely_order_gives_way_to_a_certain_one() {
        let jobs =
            [job("A", &[(Update, "t"), (Read, "v")]), job("B", &[(Read, "t"), (Insert, "v")])];
        let order = order_by_data(&jobs);
        assert_eq!(order.sequence, [1, 0]);
        assert_eq!(order.pairs[0].direction, DataDirection::Certain);
    }
}
