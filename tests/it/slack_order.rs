//! What the order by slack is worth: batches are played forward by the dispatcher's own rule, once in the order in
//! which jobs become ready and once with those deferred that have slack.
//!
//! The graphs are recorded ones (tests/data) and generated ones. How long jobs take is generated, because no graph that
//! may be shipped has it: a few long jobs and many short ones. History is off by a fifth or so, as it is in life.
//! `cargo nextest run --no-capture -E 'test(slack_order)'` prints the table of docs/plan-and-eta.md.

use procession::domain::dag::Dag;
use procession::domain::dispatch::deferral::deferrals;
use procession::domain::dispatch::slots::{SlotNeeds, Slots};
use procession::domain::forecast::slack::{RemainingWork, Stage};
use procession::domain::forecast::timeline::{AGEING_MS, Open, simulate_batch};
use procession::domain::id::{GroupCode, JobCode, JobType};
use procession::domain::job::{JobDef, JobDependency};
use procession::domain::time::Millis;
use serde_json::Value;
use std::path::Path;

/// Sets of durations that each graph is played with.
const ROUNDS: u64 = 40;

/// Numbers that are the same in every run (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Of the normal distribution: the sum of twelve even ones, less six.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
    }
}

/// How many jobs there are, and which (the second) comes after which (the first).
struct Graph {
    name: &'static str,
    size: usize,
    edges: Vec<(usize, usize)>,
}

fn recorded(name: &'static str, file: &str) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let text = std::fs::read_to_string(&path).expect("a file of tests/data");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let list = |key: &str| all[key].as_array().expect("a list").clone();
    let codes: Vec<Value> = list("jobs").iter().map(|job| job["job_code"].clone()).collect();
    let place = |code: &Value| codes.iter().position(|c| c == code).expect("a job of the graph");
    let edges = list("dependencies");
    let edges = edges.iter().map(|e| (place(&e["depends_on"]), place(&e["job_code"]))).collect();
    Graph { name, size: codes.len(), edges }
}

/// Waves of different widths; each job waits for up to three of the wave before.
fn waves(dice: &mut Dice) -> Graph {
    let (mut size, mut edges, mut before) = (0, Vec::new(), 0..0_usize);
    for _ in 0..4 + dice.below(7) {
        let wave = size..size + 2 + dice.below(24);
        for job in wave.clone().filter(|_| !before.is_empty()) {
            for _ in 0..=dice.below(3) {
                edges.push((before.start + dice.below(before.len()), job));
            }
        }
        (size, before) = (wave.end, wave);
    }
    edges.sort_unstable();
    edges.dedup();
    Graph { name: "generated, waves", size, edges }
}

/// Chains of different lengths beside each other.
fn chains(dice: &mut Dice) -> Graph {
    let (mut size, mut edges) = (0, Vec::new());
    for _ in 0..12 + dice.below(19) {
        let chain = size..size + 1 + dice.below(12);
        edges.extend(chain.clone().skip(1).map(|job| (job - 1, job)));
        size = chain.end;
    }
    Graph { name: "generated, chains", size, edges }
}

/// The same graph with its jobs written in another order: the order of the file decides among equals.
fn shuffled(graph: &Graph, dice: &mut Dice) -> Dag {
    let mut place: Vec<usize> = (0..graph.size).collect();
    for at in (1..graph.size).rev() {
        place.swap(at, dice.below(at + 1));
    }
    let group = GroupCode::parse("g").expect("group");
    let code = |at: usize| JobCode::parse(&format!("J{at}")).expect("code");
    let jobs: Vec<JobCode> = (0..graph.size).map(code).collect();
    let edge = |(parent, child): &(usize, usize)| {
        JobDependency::plain(&group, code(place[*child]), code(place[*parent]), 0)
    };
    Dag::build(&jobs, &graph.edges.iter().map(edge).collect::<Vec<_>>()).expect("acyclic")
}

/// Milliseconds from the start of the batch to its end.
fn makespan(dag: &Dag, took_ms: &[i64], deferrals: &[i64], slots: u32) -> i64 {
    let group = GroupCode::parse("g").expect("group");
    let code = JobCode::parse("J").expect("code");
    let needs = SlotNeeds::for_job(&JobDef::with_defaults(
        code,
        group,
        JobType::parse("NOOP").expect("type"),
    ));
    let open = |(ms, deferral): (&i64, &i64)| {
        let left = RemainingWork { stage: Stage::AfterAll, from: Millis(0), ms: *ms, spread: 0 };
        Some(Open { left, priority: 0, needs: needs.clone(), deferral: *deferral })
    };
    let open: Vec<_> = took_ms.iter().zip(deferrals).map(open).collect();
    simulate_batch(dag, &open, Slots::new(slots), Millis(0)).end.0
}

/// How two orders compare over many durations.
#[derive(Debug, Default)]
struct Comparison {
    by_readiness_ms: i64,
    by_slack_ms: i64,
    /// What no order can be better than: the longest path, or all work in all slots.
    bound_ms: i64,
    worst_percent: f64,
}

impl Comparison {
    fn percent(&self, ms: i64) -> f64 {
        100.0 * (ms as f64 / self.by_readiness_ms as f64 - 1.0)
    }
}

fn compare(
    graph: &dyn Fn(&mut Dice) -> Graph,
    slots: u32,
    median_ms: f64,
) -> (&'static str, Comparison) {
    let (mut found, mut name) =
        (Comparison { worst_percent: f64::MIN, ..Comparison::default() }, "");
    for round in 0..ROUNDS {
        let mut dice = Dice(round);
        let graph = graph(&mut dice);
        let dag = shuffled(&graph, &mut dice);
        let mut around = |ms: f64, sigma: f64| (ms * (sigma * dice.normal()).exp()) as i64 + 1;
        let usual_ms: Vec<i64> = (0..graph.size).map(|_| around(median_ms, 1.2)).collect();
        let took_ms: Vec<i64> = usual_ms.iter().map(|ms| around(*ms as f64, 0.2)).collect();
        let by_readiness = makespan(&dag, &took_ms, &vec![0; graph.size], slots);
        let by_slack = makespan(&dag, &took_ms, &deferrals(&dag, &usual_ms, AGEING_MS), slots);
        let path = makespan(&dag, &took_ms, &vec![0; graph.size], u32::MAX);
        found.by_readiness_ms += by_readiness;
        found.by_slack_ms += by_slack;
        found.bound_ms += path.max(took_ms.iter().sum::<i64>() / i64::from(slots));
        let percent = 100.0 * (by_slack as f64 / by_readiness as f64 - 1.0);
        found.worst_percent = found.worst_percent.max(percent);
        name = graph.name;
    }
    (name, found)
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/plan-and-eta.md")]
fn batches_end_sooner_by_slack() {
    let close = |_: &mut Dice| recorded("period close, 69 jobs", "01_netsuite_period_close.json");
    let complex =
        |_: &mut Dice| recorded("airflow complex, 36 jobs", "06_airflow_example_complex.json");
    let graphs: [&dyn Fn(&mut Dice) -> Graph; 4] = [&close, &complex, &waves, &chains];
    println!(
        "| graph | slots | median of a job | by slack | worst of {ROUNDS} | no order can do better than |"
    );
    println!("|---|---|---|---|---|---|");
    for graph in graphs {
        for (slots, median_ms) in [(8, 1e3), (8, 20e3), (8, 300e3), (4, 20e3)] {
            let (name, found) = compare(graph, slots, median_ms);
            let (gain, bound) = (found.percent(found.by_slack_ms), found.percent(found.bound_ms));
            println!(
                "| {name} | {slots} | {} s | {gain:+.1} % | {:+.1} % | {bound:+.1} % |",
                median_ms / 1e3,
                found.worst_percent
            );
            assert!(gain <= 0.0 && gain >= bound, "{name}: {found:?}");
            // Short beside a point of priority: most of what can be gained is.
            if median_ms < 30e3 {
                assert!(gain < 0.5 * bound, "{name} on {slots} slots: {found:?}");
            }
        }
    }
}
