//! What the pure core costs, without any database: graphs, readiness, the time ring, cron (`make
//! bench-core`).

#[path = "../common/shape.rs"]
mod shape;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use procession::domain::dag::Dag;
use procession::domain::dispatch::readiness::{Gates, Readiness, Rules};
use procession::domain::id::JobType;
use procession::domain::id::{GroupCode, JobCode};
use procession::domain::job::JobDef;
use procession::domain::job::dependency::JobDependency;
use procession::domain::job::queue::QueueStatus;
use procession::domain::job::trigger_rule::EdgeTally;
use procession::domain::schedule::cron::Cron;
use procession::domain::schedule::ring::TimeRing;
use procession::domain::time::Millis;
use shape::Shape;
use std::hint::black_box;
use std::time::Duration;

/// A graph with the rules of its jobs.
struct Graph {
    codes: Vec<JobCode>,
    dependencies: Vec<JobDependency>,
    dag: Dag,
    rules: Rules,
}

impl Graph {
    fn of(shape: &Shape) -> Self {
        let code = |n: usize| JobCode::parse(&format!("J{n:05}")).expect("a code");
        let codes: Vec<JobCode> = (0..shape.jobs).map(code).collect();
        let group = GroupCode::parse("bench").expect("a group");
        let dependencies: Vec<JobDependency> = shape
            .edges
            .iter()
            .map(|(parent, job)| {
                JobDependency::plain(&group, codes[*job].clone(), codes[*parent].clone(), 1)
            })
            .collect();
        let dag = Dag::build(&codes, &dependencies).expect("a graph");
        let noop = JobType::parse("NOOP").expect("a type");
        let jobs: Vec<JobDef> = codes
            .iter()
            .map(|c| JobDef::with_defaults(c.clone(), group.clone(), noop.clone()))
            .collect();
        let rules = Rules::from_jobs(&jobs, &dependencies);
        Self { codes, dependencies, dag, rules }
    }

    fn gates(&self) -> Gates<'_> {
        Gates { dag: &self.dag, rules: &self.rules, holds: &|_, _| true, allows: &|_| true }
    }

    /// All of it waiting.
    fn waiting(&self) -> Readiness {
        let pending = vec![QueueStatus::Pending; self.codes.len()];
        Readiness::rebuild(self.gates(), &pending, &|_| EdgeTally::default()).0
    }
}

/// The shapes of `make bench`.
fn shapes() -> [(&'static str, Shape); 5] {
    [
        ("chain-10000", Shape::chain(10_000)),
        ("fan-1000", Shape::fan(1_000)),
        ("many-100", Shape::layered(10, 10, 270).times(100)),
        ("layered-10000", Shape::layered(100, 100, 29_700)),
        ("full-100x100", Shape::full(100, 100)),
    ]
}

fn graphs(c: &mut Criterion) {
    for (name, shape) in shapes() {
        let graph = Graph::of(&shape);
        let mut group = c.benchmark_group(name);
        group.sample_size(10).measurement_time(Duration::from_secs(4));
        let size = graph.codes.len() + graph.dependencies.len();
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function("build the graph, each job and edge", |b| {
            b.iter(|| Dag::build(black_box(&graph.codes), &graph.dependencies));
        });
        group.bench_function("count what stands before each job, each job and edge", |b| {
            b.iter(|| black_box(graph.waiting()));
        });
        group.throughput(Throughput::Elements(graph.codes.len() as u64));
        group.bench_function("a whole batch, each job", |b| {
            let run = |mut readiness: Readiness| {
                for node in graph.dag.in_order() {
                    readiness.change(graph.gates(), *node, QueueStatus::Running);
                    black_box(readiness.change(graph.gates(), *node, QueueStatus::Success));
                }
                assert!(readiness.is_done());
            };
            b.iter_batched(|| graph.waiting(), run, BatchSize::LargeInput);
        });
        group.finish();
    }
}

fn ring(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    let start = Millis(1_700_000_000_000);
    group.throughput(Throughput::Elements(10_000));
    group.bench_function("in and out again within a minute, each of 10,000", |b| {
        b.iter(|| {
            let mut ring = TimeRing::new(start);
            for n in 0..10_000 {
                ring.push(start.plus_ms(n * 7 % 60_000), n);
            }
            let out: usize = (0..=60).map(|s| ring.take_due(start.plus_ms(s * 1_000)).len()).sum();
            assert_eq!(out, 10_000);
        });
    });
    group.finish();
}

fn cron(c: &mut Criterion) {
    let mut group = c.benchmark_group("cron");
    let zone = chrono_tz::Asia::Shanghai;
    for text in ["0 30 2 * * ?", "0 0 3 L * ?", "0 15 10 ? * 6#3", "0 0 0 29 2 ?"] {
        let cron = Cron::parse(text).expect("a cron expression");
        group.bench_function(format!("the next of '{text}'"), |b| {
            b.iter(|| cron.next_after(black_box(Millis(1_700_000_000_000)), zone));
        });
    }
    group.finish();
}

criterion_group!(core, graphs, ring, cron);
criterion_main!(core);
