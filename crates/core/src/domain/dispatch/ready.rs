//! Chooses the next job when more jobs are ready than may run.
//!
//! Jobs wait in lanes, one per set of needs, so that a choice costs the number of lanes and not of
//! jobs. A full resource blocks only the jobs that need it; what a better-ranked job lacks is
//! reserved for it, because otherwise many light jobs would overtake a heavy one forever.

use crate::domain::dag::Node;
use crate::domain::dispatch::slots::{Resource, SlotNeeds, Slots};
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use std::collections::{BTreeSet, HashMap};

/// Rank among all ready jobs: a point of priority weighs as much as `ageing_ms` of waiting, so the
/// order does not change while jobs wait and no job is overtaken forever. Jobs with slack are
/// deferred, by less than a point (`deferral`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyRank {
    due: i64,
    batch: BatchId,
    node: Node,
}

impl ReadyRank {
    /// The rank of a job that is ready `since` a moment.
    pub fn new(priority: i32, since: Millis, ageing_ms: i64, batch: BatchId, node: Node) -> Self {
        let ahead = i64::from(priority).saturating_mul(ageing_ms);
        Self { due: since.0.saturating_sub(ahead), batch, node }
    }

    /// The rank of a job that became ready this many milliseconds later.
    #[must_use]
    pub fn deferred_by(self, ms: i64) -> Self {
        Self { due: self.due.saturating_add(ms), ..self }
    }
}

/// Reservations for jobs that cannot start yet, over all batches of a process.
#[derive(Clone, Debug, Default)]
pub struct SetAside(HashMap<Resource, Vec<(ReadyRank, u32)>>);

impl SetAside {
    fn reserve(&mut self, what: &Resource, turn: ReadyRank, amount: u32) {
        let kept = self.0.entry(what.clone()).or_default();
        if kept.iter().all(|(of, _)| *of != turn) {
            kept.push((turn, amount));
        }
    }

    /// The amount reserved for jobs ranked before this one.
    fn before(&self, what: &Resource, turn: ReadyRank) -> u64 {
        let kept = self.0.get(what).into_iter().flatten();
        kept.filter(|(of, _)| *of < turn).map(|(_, amount)| u64::from(*amount)).sum()
    }
}

#[derive(Clone, Debug)]
struct ReadyLane {
    needs: SlotNeeds,
    waiting: BTreeSet<ReadyRank>,
    /// Which needs the lane's first job has lacked while it ranked first of all blocked jobs.
    lacked: Vec<bool>,
}

impl ReadyLane {
    fn lacks(&self, slots: &Slots, aside: &SetAside, turn: ReadyRank) -> Vec<bool> {
        let room = |(what, amount)| slots.has_room(what, amount, aside.before(what, turn));
        self.needs.iter().map(|need| !room(need)).collect()
    }

    fn has_no_place(&self, lacks: &[bool]) -> bool {
        self.needs.iter().zip(lacks).any(|((what, _), lacks)| *lacks && what.is_place())
    }

    /// Reserves what the first job lacks. The `Foremost` job also keeps its earlier reservations: a
    /// job that needs two things which are never free together would otherwise wait forever.
    fn reserve_lacked(
        &mut self,
        lacks: &[bool],
        rank: Rank,
        turn: ReadyRank,
        aside: &mut SetAside,
    ) {
        for (i, (what, amount)) in self.needs.iter().enumerate() {
            let lacked = match rank {
                Rank::Foremost => {
                    self.lacked[i] |= lacks[i];
                    self.lacked[i]
                }
                Rank::Behind => lacks[i],
            };
            if lacked && !what.is_place() {
                aside.reserve(what, turn, amount);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Foremost,
    Behind,
}

/// Ready jobs of one batch.
#[derive(Clone, Debug)]
pub struct ReadyList {
    batch: BatchId,
    ageing_ms: i64,
    /// Deferral of each job; empty when none is deferred.
    deferrals: Vec<i64>,
    lanes: Vec<ReadyLane>,
    lane_of: Vec<usize>,
    /// The first job of each non-empty lane.
    heads: BTreeSet<(ReadyRank, usize)>,
    /// Whether some lane needs no slot at all.
    has_idle_lane: bool,
}

impl ReadyList {
    /// An empty list for a batch whose jobs have these needs, in the order of the batch.
    pub fn new(batch: BatchId, needs: impl Iterator<Item = SlotNeeds>, ageing_ms: i64) -> Self {
        let mut lanes: Vec<ReadyLane> = Vec::new();
        let mut known: HashMap<SlotNeeds, usize> = HashMap::new();
        let mut lane_of = Vec::new();
        for needs in needs {
            let lane = *known.entry(needs).or_insert_with_key(|needs| {
                let lacked = needs.iter().map(|_| false).collect();
                lanes.push(ReadyLane { needs: needs.clone(), waiting: BTreeSet::new(), lacked });
                lanes.len() - 1
            });
            lane_of.push(lane);
        }
        let has_idle_lane = known.keys().any(|n| n.amount_of(&Resource::Total) == 0);
        let (deferrals, heads) = (Vec::new(), BTreeSet::new());
        Self { batch, ageing_ms, deferrals, lanes, lane_of, heads, has_idle_lane }
    }

    /// The same empty list with the deferrals of the jobs in milliseconds, in the order of the
    /// batch.
    #[must_use]
    pub fn with_deferrals(self, deferrals: Vec<i64>) -> Self {
        Self { deferrals, ..self }
    }

    /// Deferral of each job in milliseconds; empty when none is deferred.
    pub fn deferrals(&self) -> &[i64] {
        &self.deferrals
    }

    /// The resources that a job occupies while it runs.
    pub fn needs(&self, node: Node) -> &SlotNeeds {
        &self.lanes[self.lane_of[node.index()]].needs
    }

    /// Adds a job that is ready `since` a moment.
    pub fn push(&mut self, node: Node, priority: i32, since: Millis) {
        let at = self.lane_of[node.index()];
        let deferral = self.deferrals.get(node.index()).copied().unwrap_or(0);
        let turn =
            ReadyRank::new(priority, since, self.ageing_ms, self.batch, node).deferred_by(deferral);
        self.change(at, |waiting| waiting.insert(turn));
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut BTreeSet<ReadyRank>) -> bool) {
        let lane = &mut self.lanes[at];
        let before = lane.waiting.first().copied();
        change(&mut lane.waiting);
        let after = lane.waiting.first().copied();
        if before != after {
            before.map(|turn| self.heads.remove(&(turn, at)));
            after.map(|turn| self.heads.insert((turn, at)));
        }
    }

    /// Removes all jobs.
    pub fn clear(&mut self) {
        self.heads.clear();
        for lane in &mut self.lanes {
            lane.waiting.clear();
            lane.lacked.fill(false);
        }
    }

    /// Number of waiting jobs.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.waiting.len()).sum()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Takes the best-ranked job that can start beside the reservations of better ones.
    pub fn take_startable(&mut self, slots: &Slots, aside: &mut SetAside) -> Option<Node> {
        let (turn, at) = self.find_startable(slots, aside, WalkStop::AtFirst)?;
        self.change(at, |waiting| waiting.remove(&turn));
        self.lanes[at].lacked.fill(false);
        Some(turn.node)
    }

    /// Reserves what the first jobs of this batch need, before any batch picks: the better job may
    /// be in a batch that picks later.
    pub fn set_aside(&mut self, slots: &Slots, aside: &mut SetAside) {
        self.find_startable(slots, aside, WalkStop::Nowhere);
    }

    fn find_startable(
        &mut self,
        slots: &Slots,
        aside: &mut SetAside,
        stop: WalkStop,
    ) -> Option<(ReadyRank, usize)> {
        let is_full = !slots.has_room(&Resource::Total, 1, 0);
        if is_full && !self.has_idle_lane {
            return None;
        }
        let mut rank = Rank::Foremost;
        for &(turn, at) in &self.heads {
            let lane = &mut self.lanes[at];
            if is_full && lane.needs.amount_of(&Resource::Total) > 0 {
                continue;
            }
            let lacks = lane.lacks(slots, aside, turn);
            if lane.has_no_place(&lacks) {
                // A job without a node to run on reserves nothing.
                continue;
            }
            if lacks.contains(&true) {
                lane.reserve_lacked(&lacks, rank, turn, aside);
                rank = Rank::Behind;
            } else if stop == WalkStop::AtFirst {
                return Some((turn, at));
            } else {
                let needs = lane.needs.iter().filter(|(what, _)| !what.is_place());
                needs.for_each(|(what, amount)| aside.reserve(what, turn, amount));
            }
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkStop {
    AtFirst,
    Nowhere,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::slots::tests::user;
    use crate::domain::job::pool::LockMode;
    use proptest::prelude::*;

    const AGEING: i64 = 600_000;

    fn list(needs: &[SlotNeeds]) -> ReadyList {
        ReadyList::new(BatchId(1), needs.iter().cloned(), AGEING)
    }

    fn pool(weight: u32) -> SlotNeeds {
        SlotNeeds::for_job(&user(&[("P", weight)], &[]))
    }

    fn slots(pool: u32) -> Slots {
        let mut slots = Slots::new(100);
        slots.limit(Resource::Pool("P".into()), Some(pool));
        slots
    }

    /// Starts every job that can start; returns the nodes in starting order.
    fn start(list: &mut ReadyList, slots: &mut Slots) -> Vec<u32> {
        let mut aside = SetAside::default();
        let mut started = Vec::new();
        while let Some(node) = list.take_startable(slots, &mut aside) {
            slots.acquire(list.needs(node));
            started.push(node.0);
        }
        started
    }

    #[test]
    fn priority_first_then_the_order_of_the_batch() {
        let mut list = list(&[pool(1), pool(1), pool(1), SlotNeeds::empty()]);
        let mut slots = slots(2);
        for (node, priority) in [(0, 0), (1, 0), (2, 9), (3, -9)] {
            list.push(Node(node), priority, Millis(0));
        }
        assert_eq!(start(&mut list, &mut slots), [2, 0, 3]);
        slots.give_back(&pool(1));
        assert_eq!(start(&mut list, &mut slots), [1]);
    }

    #[test]
    fn waiting_counts_as_priority() {
        let needs = vec![pool(1); 3];
        let mut list = list(&needs);
        let mut slots = slots(1);
        slots.acquire(&pool(1));
        list.push(Node(0), 0, Millis(0));
        // Two points are worth twenty minutes: not enough for a job that came 21 minutes later.
        list.push(Node(1), 2, Millis(21 * 60_000));
        list.push(Node(2), 2, Millis(19 * 60_000));
        let mut order = Vec::new();
        for _ in 0..3 {
            slots.give_back(&pool(1));
            order.extend(start(&mut list, &mut slots));
        }
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_heavy_job_is_not_passed_by_light_ones_for_ever() {
        let needs = vec![pool(4), pool(1), pool(1), SlotNeeds::for_job(&user(&[("Q", 1)], &[]))];
        let mut list = list(&needs);
        let mut slots = slots(4);
        slots.acquire(&pool(1));
        for node in 0..4 {
            list.push(Node(node), 0, Millis(i64::from(node)));
        }
        assert_eq!(start(&mut list, &mut slots), [3], "its pool is kept for it, others go on");
        slots.give_back(&pool(1));
        assert_eq!(start(&mut list, &mut slots), [0]);
        slots.give_back(&pool(4));
        assert_eq!(start(&mut list, &mut slots), [1, 2]);
    }

    #[test]
    fn two_things_that_are_never_free_together_are_collected() {
        let both = SlotNeeds::for_job(&user(
            &[],
            &[("A", LockMode::Exclusive), ("B", LockMode::Exclusive)],
        ));
        let [a, b] =
            ["A", "B"].map(|l| SlotNeeds::for_job(&user(&[], &[(l, LockMode::Exclusive)])));
        let mut list = list(&[both.clone(), a.clone(), b.clone(), b.clone()]);
        let mut slots = Slots::new(9);
        slots.acquire(&a);
        list.push(Node(0), 0, Millis(0));
        list.push(Node(1), 0, Millis(1));
        list.push(Node(2), 0, Millis(2));
        assert_eq!(start(&mut list, &mut slots), [2], "A is full, which does not block B");
        slots.give_back(&a);
        list.push(Node(3), 0, Millis(3));
        assert!(start(&mut list, &mut slots).is_empty(), "A stays kept while B is collected");
        slots.give_back(&b);
        assert_eq!(start(&mut list, &mut slots), [0]);
    }

    #[test]
    fn what_another_batch_needs_is_kept_too() {
        let mut slots = slots(2);
        slots.acquire(&pool(1));
        let mut heavy = ReadyList::new(BatchId(2), [pool(2)].into_iter(), AGEING);
        heavy.push(Node(0), 0, Millis(0));
        let mut light = ReadyList::new(BatchId(1), [pool(1)].into_iter(), AGEING);
        light.push(Node(0), 0, Millis(5));
        let mut aside = SetAside::default();
        heavy.set_aside(&slots, &mut aside);
        assert_eq!(light.take_startable(&slots, &mut aside), None);
        // Reserved only against lower-ranked jobs: an urgent job goes first.
        let mut urgent = ReadyList::new(BatchId(3), [pool(1)].into_iter(), AGEING);
        urgent.push(Node(0), 1, Millis(5));
        assert_eq!(urgent.take_startable(&slots, &mut aside), Some(Node(0)));
        slots.give_back(&pool(1));
        // What it needs is free now; the other batch picks first and still leaves it.
        let mut aside = SetAside::default();
        heavy.set_aside(&slots, &mut aside);
        light.set_aside(&slots, &mut aside);
        assert_eq!(light.take_startable(&slots, &mut aside), None);
        assert_eq!(heavy.take_startable(&slots, &mut aside), Some(Node(0)));
    }

    fn any_needs() -> impl Strategy<Value = SlotNeeds> {
        let names = ["P", "Q", "R"];
        let pools = prop::collection::btree_map(0usize..3, 1u32..=4, 0..3);
        let locks = prop::collection::btree_map(0usize..3, prop::bool::ANY, 0..3);
        (pools, locks, prop::bool::weighted(0.1)).prop_map(move |(pools, locks, is_idle)| {
            if is_idle {
                return SlotNeeds::empty();
            }
            let pools: Vec<_> = pools.into_iter().map(|(p, w)| (names[p], w)).collect();
            let mode = |alone| if alone { LockMode::Exclusive } else { LockMode::Shared };
            let locks: Vec<_> = locks.into_iter().map(|(l, a)| (names[l], mode(a))).collect();
            SlotNeeds::for_job(&user(&pools, &locks))
        })
    }

    fn is_over(running: &[SlotNeeds]) -> Option<Resource> {
        let mut used: HashMap<&Resource, u64> = HashMap::new();
        for (what, amount) in running.iter().flat_map(SlotNeeds::iter) {
            *used.entry(what).or_default() += u64::from(amount);
        }
        let limit = |what: &Resource| match what {
            Resource::Total => 5,
            Resource::Pool(_) => 4,
            Resource::Lock(_) => u64::from(u32::MAX),
            Resource::Group(_) | Resource::Source(_) | Resource::Host(_) => u64::MAX,
            Resource::Label(_) | Resource::Node(_) => u64::MAX,
        };
        used.into_iter().find(|(what, used)| *used > limit(what)).map(|(what, _)| what.clone())
    }

    proptest! {
        /// For any needs, priorities and ends: no limit is exceeded; nothing waits while nothing
        /// runs; a job that shares no resource with a waiting job starts at once; and a job is
        /// overtaken only by a bounded number of others, however many more arrive.
        #[test]
        fn limits_hold_and_nobody_starves(
            needs in prop::collection::vec((any_needs(), -2i32..3), 1..12),
            ends in prop::collection::vec(0usize..8, 400),
            watched in 0usize..12,
        ) {
            // Each kind of need once, then the same needs again and again.
            let many: Vec<SlotNeeds> = (0..200).map(|i| needs[i % needs.len()].0.clone()).collect();
            let mut list = list(&many);
            let mut slots = Slots::new(5);
            for name in ["P", "Q", "R"] {
                slots.limit(Resource::Pool(name.into()), Some(4));
            }
            let mut running: Vec<SlotNeeds> = Vec::new();
            let mut waiting: Vec<Node> = Vec::new();
            let (mut next, mut watched_for) = (0, 0);
            let watched = Node((watched % needs.len()) as u32);
            for (round, end) in ends.into_iter().enumerate() {
                // Waiting earns a point of priority per round.
                let now = Millis(round as i64 * AGEING);
                while next < many.len() && waiting.len() < 12 {
                    let node = Node(next as u32);
                    list.push(node, needs[next % needs.len()].1, now);
                    waiting.push(node);
                    next += 1;
                }
                for node in start(&mut list, &mut slots) {
                    waiting.retain(|w| w.0 != node);
                    running.push(many[node as usize].clone());
                }
                prop_assert_eq!(is_over(&running), None);
                prop_assert!(!running.is_empty() || waiting.is_empty());
                watched_for += usize::from(waiting.contains(&watched));
                let taken: Vec<&Resource> = waiting.iter().chain(&[]).flat_map(|w| many[w.index()].iter())
                    .map(|(what, _)| what)
                    .filter(|w| !matches!(w, Resource::Total | Resource::Group(_))).collect();
                let alone = waiting.iter().find(|w| {
                    let own = many[w.index()].iter().map(|(what, _)| what);
                    let mut own = own.filter(|w| !matches!(w, Resource::Total | Resource::Group(_)));
                    own.all(|w| taken.iter().filter(|t| **t == w).count() == 1)
                        && slots.is_free(&many[w.index()])
                });
                prop_assert_eq!(alone, None, "free, wanted by nobody else, and not started");
                if !running.is_empty() {
                    slots.give_back(&running.remove(end % running.len()));
                }
            }
            prop_assert!(watched_for <= 60, "{watched:?} waited for {watched_for} rounds");
        }
    }
}
