//! What forecasts were worth: batches are played with durations like those of life, and at moments of each
//! the forecast is held against the end that came. Beside it the rule of before, which knew a running job only
//! by its median and its p95.
//!
//! The graphs are recorded ones (tests/data) and generated ones; durations are generated, because no graph that
//! may be shipped has them. `cargo nextest run -p procession-core --no-capture -E 'test(eta_accuracy)'` prints the
//! table of docs/plan-and-eta.md.

use procession_core::domain::batch::history::{Durations, History};
use procession_core::domain::batch::{BatchOrder, BatchPlan, plan};
use procession_core::domain::dag::{Dag, Node};
use procession_core::domain::dispatch::slots::SlotNeeds;
use procession_core::domain::forecast::certainty::Certainty;
use procession_core::domain::forecast::eta::{Forecast, JobProgress, forecast, limits};
use procession_core::domain::forecast::slack::{RemainingWork, Stage};
use procession_core::domain::forecast::timeline::{ExpectedRun, Open, simulate_batch};
use procession_core::domain::id::{GroupCode, JobCode, JobType};
use procession_core::domain::job::queue::QueueStatus;
use procession_core::domain::job::{Definition, Group, JobDef, JobDependency};
use procession_core::domain::time::Millis;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const NOW: Millis = Millis(1_000_000_000);
const SLOTS: u32 = 8;
/// Batches of the past of each graph.
const PAST: usize = 20;
/// Batches of each graph that are forecast.
const ROUNDS: u64 = 10;
/// At these parts of its time, in percent, a batch is looked at.
const MOMENTS: [i64; 5] = [0, 25, 50, 75, 90];

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
    size: usize,
    edges: Vec<(usize, usize)>,
}

fn recorded(file: &str) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(file);
    let text = std::fs::read_to_string(&path).expect("a file of tests/data");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let list = |key: &str| all[key].as_array().expect("a list").clone();
    let codes: Vec<Value> = list("jobs").iter().map(|job| job["job_code"].clone()).collect();
    let place = |code: &Value| codes.iter().position(|c| c == code).expect("a job of the graph");
    let edges = list("dependencies");
    let edges = edges.iter().map(|e| (place(&e["depends_on"]), place(&e["job_code"]))).collect();
    Graph { size: codes.len(), edges }
}

/// Waves of different widths; each job waits for up to three of the wave before.
fn waves(dice: &mut Dice) -> Graph {
    let (mut size, mut edges, mut before) = (0, Vec::new(), 0..0_usize);
    for _ in 0..4 + dice.below(7) {
        let wave = size..size + 2 + dice.below(24);
        for job in wave.clone().filter(|_| !before.is_empty()) {
            edges.extend(
                (0..=dice.below(3)).map(|_| (before.start + dice.below(before.len()), job)),
            );
        }
        (size, before) = (wave.end, wave);
    }
    edges.sort_unstable();
    edges.dedup();
    Graph { size, edges }
}

fn planned(graph: &Graph) -> (BatchPlan, Dag) {
    let group = GroupCode::parse("g").expect("group");
    let code = |at: usize| JobCode::parse(&format!("J{at}")).expect("code");
    let kind = JobType::parse("NOOP").expect("type");
    let mut defs = Definition::default();
    defs.groups.push(Group::with_defaults(group.clone()));
    defs.jobs.extend(
        (0..graph.size).map(|at| JobDef::with_defaults(code(at), group.clone(), kind.clone())),
    );
    let edge = |(parent, child): &(usize, usize)| {
        JobDependency::plain(&group, code(*child), code(*parent), 0)
    };
    defs.dependencies.extend(graph.edges.iter().map(edge));
    let order = BatchOrder::parse(r#"{"batchNo":"202407"}"#).expect("order");
    let plan = plan(&defs, &order, NOW).expect("plan").remove(0);
    let dag = plan.snapshot.build_dag().expect("acyclic");
    (plan, dag)
}

/// One batch of the past or the present: all its jobs a little slower or faster, each by itself more so, and one
/// try in fifty several times as long.
fn durations(usual: &[f64], dice: &mut Dice) -> Vec<i64> {
    let month = (0.08 * dice.normal()).exp();
    let mut took = |usual: &f64| {
        let stuck = if dice.below(50) == 0 { 2.0 + dice.below(8) as f64 } else { 1.0 };
        (usual * month * stuck * (0.2 * dice.normal()).exp()) as i64 + 1
    };
    usual.iter().map(&mut took).collect()
}

/// A batch that was played to its end.
struct Played {
    plan: BatchPlan,
    dag: Dag,
    history: History,
    runs: Vec<ExpectedRun>,
    end: Millis,
}

impl Played {
    /// `stuck`: the longest job of the batch takes twenty times as long as usual.
    fn of(graph: &Graph, dice: &mut Dice, stuck: bool) -> Self {
        let (plan, dag) = planned(graph);
        let usual: Vec<f64> =
            (0..graph.size).map(|_| 20_000.0 * (1.2 * dice.normal()).exp()).collect();
        let mut tries = Vec::new();
        for _ in 0..PAST {
            let took = durations(&usual, dice);
            tries.extend(plan.snapshot.jobs.iter().map(|j| j.code.clone()).zip(took));
        }
        let mut took = durations(&usual, dice);
        if stuck {
            let longest = (0..took.len()).max_by_key(|i| usual[*i] as i64).expect("jobs");
            took[longest] = (usual[longest] * 20.0) as i64;
        }
        let open = |at: usize| {
            let left = RemainingWork { stage: Stage::AfterAll, from: NOW, ms: took[at], spread: 0 };
            Some(Self::open(&plan, at, left))
        };
        let open: Vec<_> = (0..graph.size).map(open).collect();
        let timeline = simulate_batch(&dag, &open, limits(&plan.snapshot, SLOTS), NOW);
        let runs = timeline.runs.into_iter().flatten().collect();
        Self { history: History::from_tries(tries), runs, end: timeline.end, plan, dag }
    }

    fn open(plan: &BatchPlan, at: usize, left: RemainingWork) -> Open {
        let needs = SlotNeeds::for_job(&plan.snapshot.jobs[at]);
        Open { left, priority: 0, needs, deferral: 0 }
    }

    /// How it stood at a moment.
    fn standing(&self, at: Millis) -> Vec<JobProgress> {
        let one = |run: &ExpectedRun| {
            let (status, start, end) = match (run.start <= at, run.end <= at) {
                (_, true) => (QueueStatus::Success, Some(run.start), Some(run.end)),
                (true, false) => (QueueStatus::Running, Some(run.start), None),
                (false, false) => (QueueStatus::Pending, None, None),
            };
            JobProgress { status, start, end, not_before: None }
        };
        self.runs.iter().map(one).collect()
    }

    fn forecast(&self, at: Millis) -> Forecast {
        let (snapshot, standing) = (&self.plan.snapshot, self.standing(at));
        forecast(snapshot, &self.dag, &standing, &self.history, SLOTS, at).expect("a past")
    }

    /// The rule of before: of a running job what is left to its median, then to its p95, then a tenth of its
    /// median for ever; spreads added up by squares.
    fn as_before(&self, at: Millis) -> (Millis, Millis) {
        let standing = self.standing(at);
        let past = |i: usize| *self.history.get(self.dag.job_code(Node(i as u32))).expect("a past");
        let open = |i: usize| {
            let Durations { p50, p95, .. } = past(i);
            let (stage, ms, spread) = match standing[i].status {
                QueueStatus::Success => return None,
                QueueStatus::Running => {
                    let ran = at.since(standing[i].start.expect("a start"));
                    let ms = if ran < p50 { p50 - ran } else { (p95 - ran).max(p50 / 10) };
                    (Stage::Running, ms, (p95 - ran - ms).max(0))
                }
                _ => (Stage::AfterAll, p50, p95 - p50),
            };
            Some(Self::open(&self.plan, i, RemainingWork { stage, from: at, ms, spread }))
        };
        let open: Vec<_> = (0..standing.len()).map(open).collect();
        let found = simulate_batch(&self.dag, &open, limits(&self.plan.snapshot, SLOTS), at);
        (found.end, found.bad_end)
    }
}

/// What a rule was worth over many forecasts.
#[derive(Clone, Copy, Default)]
struct Score {
    forecasts: usize,
    /// Of what the batch took in all; their sum, in percent.
    error: f64,
    in_time: usize,
    in_bad_time: usize,
    /// It said a tenth of what was left, or less.
    said_now: usize,
}

impl Score {
    fn add(&mut self, end: Millis, bad: Millis, at: Millis, came: Millis) {
        let (left, said) = (came.since(at).max(1), end.since(at));
        self.forecasts += 1;
        self.error += 100.0 * (said - left).abs() as f64 / came.since(NOW) as f64;
        self.in_time += usize::from(came <= end);
        self.in_bad_time += usize::from(came <= bad);
        self.said_now += usize::from(said * 10 <= left);
    }

    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.forecasts.max(1) as f64
    }

    fn mean_error(&self) -> f64 {
        self.error / self.forecasts.max(1) as f64
    }

    fn row(&self, name: &str, words: &mut String) {
        let [in_time, bad, now] =
            [self.in_time, self.in_bad_time, self.said_now].map(|n| self.percent(n));
        let (all, error) = (self.forecasts, self.mean_error());
        writeln!(
            words,
            "| {name} | {all} | {error:.0} % | {in_time:.0} % | {bad:.0} % | {now:.0} % |"
        )
        .expect("words");
    }
}

/// The rule of before, and the one of now by how sure it was.
#[derive(Default)]
struct Scores {
    before: Score,
    now: Score,
    by_certainty: [Score; 3],
}

impl Scores {
    fn add(&mut self, played: &Played, at: Millis) {
        let (end, bad) = played.as_before(at);
        self.before.add(end, bad, at, played.end);
        let found = played.forecast(at);
        self.now.add(found.end, found.bad_end, at, played.end);
        let place = match found.confidence.certainty {
            Certainty::Sure => 0,
            Certainty::Rough => 1,
            Certainty::Unknown => 2,
        };
        self.by_certainty[place].add(found.end, found.bad_end, at, played.end);
    }
}

fn graphs(dice: &mut Dice) -> Vec<Graph> {
    vec![
        recorded("01_netsuite_period_close.json"),
        recorded("06_airflow_example_complex.json"),
        waves(dice),
        waves(dice),
        waves(dice),
    ]
}

fn scores(stuck: bool) -> Scores {
    let mut scores = Scores::default();
    for round in 0..ROUNDS {
        let mut dice = Dice(round);
        for graph in graphs(&mut dice) {
            let played = Played::of(&graph, &mut dice, stuck);
            for percent in MOMENTS {
                scores.add(&played, NOW.plus_ms(played.end.since(NOW) * percent / 100));
            }
        }
    }
    scores
}

#[test]
fn eta_accuracy() {
    let (usual, stuck) = (scores(false), scores(true));
    let mut words = String::new();
    for (name, scores) in [("usual", &usual), ("one job stuck", &stuck)] {
        scores.before.row(&format!("{name}: before"), &mut words);
        scores.now.row(&format!("{name}: now"), &mut words);
        for (certainty, score) in ["sure", "rough", "unknown"].iter().zip(&scores.by_certainty) {
            score.row(&format!("{name}: now, {certainty}"), &mut words);
        }
    }
    // Nextest shows it with --no-capture, and where the test fails.
    use std::io::Write as _;
    std::io::stdout().write_all(words.as_bytes()).expect("a table");
    // Half of the batches end by p50 and nine of ten by p90, within what fifty batches can show.
    let in_time = usual.now.percent(usual.now.in_time);
    let in_bad_time = usual.now.percent(usual.now.in_bad_time);
    assert!((40.0..=65.0).contains(&in_time), "{words}");
    assert!((82.0..=98.0).contains(&in_bad_time), "{words}");
    // No worse where all goes as usual, and much better where a job is stuck.
    assert!(usual.now.mean_error() <= usual.before.mean_error() * 1.1, "{words}");
    assert!(stuck.now.mean_error() < stuck.before.mean_error(), "{words}");
    assert!(stuck.now.said_now * 5 < stuck.before.said_now, "{words}");
}
