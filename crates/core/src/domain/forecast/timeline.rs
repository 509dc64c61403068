//! Simulates when each open job will run within the limits of slots.
//!
//! It applies the dispatcher's own rule: whenever a slot is free, the best-ranked ready job takes
//! it. Costs n log n for n jobs, their dependencies, and the number of different needs per start.

use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::ready::{ReadyList, SetAside};
use crate::domain::dispatch::slots::{SlotNeeds, Slots};
use crate::domain::forecast::slack::{RemainingWork, Stage};
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An open job with its resource needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Remaining work.
    pub left: RemainingWork,
    /// Higher starts first.
    pub priority: i32,
    /// Resources occupied while it runs.
    pub needs: SlotNeeds,
    /// Deferral in milliseconds.
    pub deferral: i64,
}

/// Milliseconds of waiting worth one point of priority: the default of `engine.ageing_sec`.
pub const AGEING_MS: i64 = 600_000;

/// Expected run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedRun {
    /// Start, or the current moment if it is running.
    pub start: Millis,
    /// End.
    pub end: Millis,
    /// Position in the starting order, from 0; running jobs come first.
    pub turn: usize,
}

/// Expected runs of all jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Parallel to the jobs; `None` for those that have ended.
    pub runs: Vec<Option<ExpectedRun>>,
    /// End of the last job.
    pub end: Millis,
    /// End of the last job in a bad case, by adding up the spreads; used for a batch too large to
    /// be simulated often. See `docs/plan-and-eta.md`.
    pub bad_end: Millis,
}

/// Simulates the batch from `now`. `jobs` is parallel to the jobs of `dag`, with `None` for those
/// that have ended; `slots` holds the limits with nothing in use.
pub fn simulate_batch(dag: &Dag, jobs: &[Option<Open>], slots: Slots, now: Millis) -> Timeline {
    let open = |n: &Node| jobs[n.index()].is_some();
    let needs = jobs.iter().map(|job| job.as_ref().map_or(SlotNeeds::empty(), |j| j.needs.clone()));
    let deferrals = jobs.iter().map(|job| job.as_ref().map_or(0, |j| j.deferral)).collect();
    let mut play = Play {
        dag,
        jobs,
        slots,
        ready: ReadyList::new(BatchId(0), needs, AGEING_MS).with_deferrals(deferrals),
        ends: BinaryHeap::new(),
        wakes: BinaryHeap::new(),
        waits_for: vec![0; dag.len()],
        runs: vec![None; dag.len()],
        spread: vec![0; dag.len()],
        since: vec![now; dag.len()],
        turn: 0,
    };
    for &node in dag.in_order().iter().filter(|n| open(n)) {
        let parents = dag.parents(node).filter(open).count();
        play.waits_for[node.index()] = match jobs[node.index()].as_ref().map(|j| j.left.stage) {
            Some(Stage::AfterAll) => parents,
            Some(Stage::AfterFirst) => parents.min(1),
            Some(Stage::Ready | Stage::Running) | None => 0,
        };
    }
    // In the order of the batch, the starting order among equals.
    for node in (0..jobs.len()).map(|i| Node(i as u32)).filter(open) {
        match jobs[node.index()].as_ref().map(|j| j.left.stage) {
            Some(Stage::Running) => play.start(node, now, 0),
            _ if play.waits_for[node.index()] == 0 => play.let_go(node, now, 0),
            _ => {}
        }
    }
    play.run_to_end(now)
}

struct Play<'a> {
    dag: &'a Dag,
    jobs: &'a [Option<Open>],
    slots: Slots,
    ready: ReadyList,
    ends: BinaryHeap<Reverse<(Millis, Node)>>,
    wakes: BinaryHeap<Reverse<(Millis, Node)>>,
    waits_for: Vec<usize>,
    runs: Vec<Option<ExpectedRun>>,
    /// Sum of the squared spreads along what each job waited for.
    spread: Vec<u128>,
    /// Since when each job has been ready.
    since: Vec<Millis>,
    turn: usize,
}

impl Play<'_> {
    fn run_to_end(mut self, now: Millis) -> Timeline {
        let (mut at, mut freed_by) = (now, 0);
        loop {
            self.start_ready_jobs(at, freed_by);
            let ends = self.ends.peek().map(|Reverse((at, _))| *at);
            let wakes = self.wakes.peek().map(|Reverse((at, _))| *at);
            let Some(next) = [ends, wakes].into_iter().flatten().min() else { break };
            (at, freed_by) = (next, 0);
            while let Some(Reverse((_, node))) = self.ends.peek().filter(|e| e.0.0 == at).copied() {
                self.ends.pop();
                freed_by = freed_by.max(self.spread[node.index()]);
                self.finish_job(node, at);
            }
            while let Some(Reverse((_, node))) = self.wakes.peek().filter(|e| e.0.0 == at).copied()
            {
                self.wakes.pop();
                self.enqueue_ready(node, at);
            }
        }
        let ended = self.runs.iter().zip(&self.spread);
        let bad =
            ended.filter_map(|(run, spread)| Some(run.as_ref()?.end.plus_ms(square_root(*spread))));
        let end = self.runs.iter().flatten().map(|r| r.end).max().unwrap_or(now);
        Timeline { bad_end: bad.max().unwrap_or(now).max(end), end, runs: self.runs }
    }

    /// Starts every job that the slots permit. A limit of zero would stop the simulation;
    /// definitions refuse it, and here the job starts anyway when nothing else can.
    fn start_ready_jobs(&mut self, at: Millis, freed_by: u128) {
        let stuck = self.ends.is_empty() && self.wakes.is_empty();
        let mut aside = SetAside::default();
        let mut next = self.ready.take_startable(&self.slots, &mut aside);
        if next.is_none() && stuck {
            next = self.ready.take_startable(&Slots::new(u32::MAX), &mut SetAside::default());
        }
        while let Some(node) = next {
            self.start(node, at, freed_by);
            next = self.ready.take_startable(&self.slots, &mut aside);
        }
    }

    fn start(&mut self, node: Node, at: Millis, freed_by: u128) {
        let Some(job) = &self.jobs[node.index()] else { return };
        self.slots.acquire(&job.needs);
        let end = at.plus_ms(job.left.ms);
        self.runs[node.index()] = Some(ExpectedRun { start: at, end, turn: self.turn });
        self.turn += 1;
        let own = u128::from(job.left.spread.unsigned_abs()).pow(2);
        // A job that waited for a slot is late when the previous job in that slot is.
        let waited = at > self.since[node.index()];
        let before = if waited { freed_by } else { self.spread[node.index()] };
        self.spread[node.index()] = before.saturating_add(own);
        self.ends.push(Reverse((end, node)));
    }

    fn finish_job(&mut self, node: Node, at: Millis) {
        if let Some(job) = &self.jobs[node.index()] {
            self.slots.give_back(&job.needs);
        }
        let dag = self.dag;
        for child in dag.children(node).filter(|c| self.jobs[c.index()].is_some()) {
            let waits = &mut self.waits_for[child.index()];
            if *waits == 0 {
                continue;
            }
            *waits -= 1;
            if *waits == 0 {
                let last = self.spread[node.index()];
                self.let_go(child, at, last);
            }
        }
    }

    /// Releases a job whose parents have all ended; the last of them contributes `spread`.
    fn let_go(&mut self, node: Node, at: Millis, spread: u128) {
        let Some(job) = &self.jobs[node.index()] else { return };
        if job.left.from > at {
            // A start at a time of day absorbs the lateness of the parents, as far as it lies after
            // them.
            let late = at.plus_ms(square_root(spread)).since(job.left.from).max(0);
            self.spread[node.index()] = u128::from(late.unsigned_abs()).pow(2);
            self.wakes.push(Reverse((job.left.from, node)));
        } else {
            self.spread[node.index()] = spread;
            self.enqueue_ready(node, at);
        }
    }

    fn enqueue_ready(&mut self, node: Node, at: Millis) {
        self.since[node.index()] = at;
        if let Some(job) = &self.jobs[node.index()] {
            self.ready.push(node, job.priority, at);
        }
    }
}

fn square_root(square: u128) -> i64 {
    i64::try_from(square.isqrt()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::slots::Resource;
    use crate::domain::forecast::slack::passes;
    use crate::domain::id::{GroupCode, JobCode, JobType, SourceName};
    use crate::domain::job::{JobDef, JobDependency};
    use proptest::prelude::*;

    const NOW: Millis = Millis(1_000);
    const SIZE: usize = 9;

    fn dag(pairs: &[(usize, usize)]) -> Dag {
        let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
        let jobs: Vec<JobCode> = (0..SIZE).map(code).collect();
        let edge = |(child, parent): &(usize, usize)| {
            JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                code(*child),
                code(*parent),
                0,
            )
        };
        let edges: Vec<JobDependency> = pairs.iter().map(edge).collect();
        Dag::build(&jobs, &edges).expect("acyclic")
    }

    fn open(ms: i64, spread: i64, wait: i64) -> Option<Open> {
        let left = RemainingWork { stage: Stage::AfterAll, from: NOW.plus_ms(wait), ms, spread };
        Some(Open { left, priority: 0, needs: needs_of(None), deferral: 0 })
    }

    fn needs_of(source: Option<&str>) -> SlotNeeds {
        let code = |word: &str| JobCode::parse(word).expect("code");
        let group = GroupCode::parse("g").expect("group");
        let mut job =
            JobDef::with_defaults(code("J"), group, JobType::parse("NOOP").expect("type"));
        job.source = source.map(|name| SourceName::parse(name).expect("source"));
        SlotNeeds::for_job(&job)
    }

    fn played(dag: &Dag, jobs: &[Option<Open>], slots: u32) -> Timeline {
        simulate_batch(dag, jobs, Slots::new(slots), NOW)
    }

    /// `J0 0-10`, … in the order of starting.
    fn shown(timeline: &Timeline) -> Vec<String> {
        let mut runs: Vec<(usize, String)> = timeline
            .runs
            .iter()
            .enumerate()
            .filter_map(|(i, run)| {
                let run = run.as_ref()?;
                let (start, end) = (run.start.since(NOW), run.end.since(NOW));
                Some((run.turn, format!("J{i} {start}-{end}")))
            })
            .collect();
        runs.sort();
        runs.into_iter().map(|(_, words)| words).collect()
    }

    fn dag_of_either() -> Dag {
        dag(&[(3, 0), (3, 1)])
    }

    #[test]
    fn slots_go_to_the_urgent_then_in_order() {
        let dag = dag(&[(3, 0)]);
        let mut jobs = vec![None; SIZE];
        for (place, ms) in [(0, 10), (1, 20), (2, 30), (3, 5)] {
            jobs[place] = open(ms, 0, 0);
        }
        jobs[2].as_mut().expect("open").priority = 7;
        assert_eq!(shown(&played(&dag, &jobs, 1)), ["J2 0-30", "J0 30-40", "J1 40-60", "J3 60-65"]);
        assert_eq!(shown(&played(&dag, &jobs, 2)), ["J2 0-30", "J0 0-10", "J1 10-30", "J3 30-35"]);
        assert_eq!(shown(&played(&dag, &jobs, 9)), ["J2 0-30", "J0 0-10", "J1 0-20", "J3 10-15"]);
        // A running job keeps its slot, whatever is more urgent.
        jobs[1].as_mut().expect("open").left.stage = Stage::Running;
        assert_eq!(shown(&played(&dag, &jobs, 1)), ["J1 0-20", "J2 20-50", "J0 50-60", "J3 60-65"]);
        // J3 after J0 or J1, and J1 is the first to end.
        let either = dag_of_either();
        jobs[3].as_mut().expect("open").left.stage = Stage::AfterFirst;
        jobs[1].as_mut().expect("open").left.ms = 2;
        let found = shown(&played(&either, &jobs, 9));
        assert_eq!(found, ["J1 0-2", "J2 0-30", "J0 0-10", "J3 2-7"]);
        jobs[3].as_mut().expect("open").left.stage = Stage::Ready;
        assert_eq!(shown(&played(&either, &jobs, 9))[3], "J3 0-5");
        // A limit of zero is invalid and must not hang.
        assert_eq!(shown(&played(&dag, &jobs, 0)).len(), 4);
    }

    #[test]
    fn a_full_source_leaves_the_others_alone() {
        let source = SourceName::parse("slow").expect("source");
        let mut jobs = vec![None; SIZE];
        for (place, job) in jobs.iter_mut().enumerate().take(4) {
            let needs = needs_of((place < 3).then_some("slow"));
            *job = open(10, 0, 0).map(|open| Open { needs, ..open });
        }
        let mut slots = Slots::new(9);
        slots.limit(Resource::Source(source), Some(1));
        let timeline = simulate_batch(&dag(&[]), &jobs, slots, NOW);
        assert_eq!(shown(&timeline), ["J0 0-10", "J3 0-10", "J1 10-20", "J2 20-30"]);
    }

    #[test]
    fn a_bad_case_adds_up_along_what_was_waited_for() {
        // Two jobs in a row, 30 and 40 late in a bad case: 50 together. The third stands alone.
        let mut jobs = vec![None; SIZE];
        (jobs[0], jobs[1], jobs[2]) = (open(10, 30, 0), open(10, 40, 0), open(20, 45, 0));
        let timeline = played(&dag(&[(1, 0)]), &jobs, 9);
        assert_eq!((timeline.end, timeline.bad_end), (NOW.plus_ms(20), NOW.plus_ms(70)));
        // By one slot all three are in a row: 30² + 45² + 40² is 67².
        let timeline = played(&dag(&[(1, 0)]), &jobs, 1);
        assert_eq!((timeline.end, timeline.bad_end), (NOW.plus_ms(40), NOW.plus_ms(107)));
        // A job that did not wait for a slot is not delayed by another that ends at the same
        // moment.
        (jobs[0], jobs[1], jobs[2]) = (open(10, 0, 0), open(10, 0, 0), open(10, 1_000, 0));
        let timeline = played(&dag(&[(1, 0)]), &jobs, 9);
        assert_eq!(timeline.bad_end, NOW.plus_ms(1_010));
        // A start at a time of day absorbs what came before.
        (jobs[0], jobs[1], jobs[2]) = (open(10, 30, 0), open(10, 40, 500), open(20, 45, 0));
        let timeline = played(&dag(&[(1, 0)]), &jobs, 9);
        assert_eq!((timeline.end, timeline.bad_end), (NOW.plus_ms(510), NOW.plus_ms(550)));
        // Up to that time: 610 is 110 late, and 110² + 40² is 117².
        jobs[0] = open(10, 600, 0);
        let timeline = played(&dag(&[(1, 0)]), &jobs, 9);
        assert_eq!(timeline.bad_end, NOW.plus_ms(627));
    }

    #[test]
    fn nothing_left_ends_now() {
        let timeline = played(&dag(&[]), &vec![None; SIZE], 1);
        assert_eq!((timeline.end, timeline.bad_end), (NOW, NOW));
    }

    #[test]
    fn five_thousand_jobs_are_played_at_once() {
        let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
        let jobs: Vec<JobCode> = (0..5_000).map(code).collect();
        let edge = |(child, parent): (usize, usize)| {
            JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                code(child),
                code(parent),
                0,
            )
        };
        // A hundred lanes of fifty, each job also after its neighbour's one.
        let edges: Vec<JobDependency> = (100..5_000)
            .flat_map(|i| [(i, i - 100), (i, i - if i % 100 == 0 { 1 } else { 101 })])
            .map(edge)
            .collect();
        let dag = Dag::build(&jobs, &edges).expect("acyclic");
        let open: Vec<Option<Open>> = (0..5_000i64).map(|i| open(i % 7 + 1, 1, 0)).collect();
        let timeline = simulate_batch(&dag, &open, Slots::new(8), NOW);
        assert!(timeline.runs.iter().all(Option::is_some));
        let work: i64 = (0..5_000i64).map(|i| i % 7 + 1).sum();
        assert!(timeline.end.since(NOW) >= work / 8);
    }

    type Case = (Vec<(usize, usize)>, Vec<Option<(i64, i64, i64, bool)>>);

    fn cases() -> impl Strategy<Value = Case> {
        let pairs = prop::collection::hash_set((0..SIZE, 0..SIZE), 0..25).prop_map(|raw| {
            let down = raw.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b)));
            down.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
        });
        let job = (0i64..100, 0i64..30, 0i64..50, prop::bool::weighted(0.2));
        (pairs, prop::collection::vec(prop::option::weighted(0.8, job), SIZE))
    }

    /// Running jobs have no earliest start; an open parent (of a rule that needs one of several)
    /// does not concern them.
    fn opens(jobs: &[Option<(i64, i64, i64, bool)>]) -> Vec<Option<Open>> {
        let one = |(i, job): (usize, &Option<(i64, i64, i64, bool)>)| {
            let (ms, spread, wait, running) = (*job)?;
            let mut open = open(ms, spread, wait)?;
            if running {
                (open.left.stage, open.left.from) = (Stage::Running, NOW);
            }
            open.priority = (i % 3) as i32;
            Some(open)
        };
        jobs.iter().enumerate().map(one).collect()
    }

    proptest! {
        #[test]
        fn no_job_starts_early_and_no_slot_is_used_twice((pairs, jobs) in cases(), slots in 1u32..4) {
            let dag = dag(&pairs);
            let open = opens(&jobs);
            let timeline = played(&dag, &open, slots);
            let running = open.iter().flatten().filter(|o| o.left.stage == Stage::Running).count();
            for (i, job) in open.iter().enumerate() {
                let (Some(job), Some(run)) = (job, timeline.runs[i]) else {
                    prop_assert!(job.is_none() && timeline.runs[i].is_none());
                    continue;
                };
                prop_assert_eq!(run.end.since(run.start), job.left.ms);
                prop_assert!(run.start >= job.left.from && run.start >= NOW);
                let waits = job.left.stage == Stage::AfterAll;
                for parent in dag.parents(Node(i as u32)).filter(|_| waits) {
                    prop_assert!(timeline.runs[parent.index()].is_none_or(|p| p.end <= run.start));
                }
                let beside = timeline.runs.iter().flatten();
                let beside = beside.filter(|r| r.start <= run.start && run.start < r.end).count();
                prop_assert!(beside <= running.max(slots as usize));
            }
            prop_assert!(timeline.bad_end >= timeline.end);
            let left: Vec<Option<RemainingWork>> = open.iter().map(|o| Some(o.as_ref()?.left)).collect();
            prop_assert!(timeline.end >= passes(&dag, &left, NOW).end);
        }

        /// Both methods agree where both apply, and there a longer job never makes anything
        /// earlier. (With limits it may: Graham's anomaly.)
        #[test]
        fn without_limits_it_is_the_forward_pass((pairs, jobs) in cases(), which in 0..SIZE, more in 0i64..50) {
            let dag = dag(&pairs);
            let mut open = opens(&jobs);
            let left: Vec<Option<RemainingWork>> = open.iter().map(|o| Some(o.as_ref()?.left)).collect();
            let before = played(&dag, &open, u32::MAX);
            prop_assert_eq!(before.end, passes(&dag, &left, NOW).end);
            if let Some(job) = &mut open[which] {
                job.left.ms += more;
            }
            let after = played(&dag, &open, u32::MAX);
            prop_assert!(after.end >= before.end);
            for (a, b) in after.runs.iter().zip(&before.runs) {
                prop_assert_eq!(a.is_some(), b.is_some());
                prop_assert!(a.is_none_or(|a| b.is_some_and(|b| a.end >= b.end)));
            }
        }
    }
}
