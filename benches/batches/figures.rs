//! What one cell came to, figure by figure.

use crate::capture::{Hops, Spread};
use crate::cell::Cell;
use serde_json::{Value, json};
use std::time::Duration;

/// What one run of the product came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) took: Duration,
    /// Until all rows were there and in memory.
    pub(crate) opened: Option<Duration>,
    /// Of Procession's own database.
    pub(crate) statements: Option<u64>,
    pub(crate) commits: Option<u64>,
    /// Of this process, with the measuring in it.
    pub(crate) cpu: Option<Duration>,
    /// Of the server, whoever else used it.
    pub(crate) server_cpu: Option<Duration>,
    /// Peak of this process's memory, and how far that was above what it had before.
    pub(crate) peak_kib: Option<i64>,
    pub(crate) grown_kib: Option<i64>,
    pub(crate) hops: Hops,
    /// Of batches at once: the slowest's time over the fastest's.
    pub(crate) unfairness: Option<f64>,
}

/// Which of the tables a figure stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// How fast, beside the floors.
    Speed,
    /// What a hop consists of.
    Hop,
    /// What it costs.
    Cost,
}

/// One figure: its name in JSON, its head in the table.
pub(crate) struct Figure {
    pub(crate) part: Part,
    pub(crate) key: &'static str,
    pub(crate) head: &'static str,
    pub(crate) value: Option<f64>,
}

impl Cell {
    /// The run whose makespan is the median.
    fn run(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.took);
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// All of them, in the order of the tables.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let Some(run) = self.run() else { return Vec::new() };
        let mut all = self.speed(run);
        all.extend(hop(run));
        all.extend(self.cost(run));
        all
    }

    fn speed(&self, run: &Run) -> Vec<Figure> {
        let f = |key, head, value| Figure { part: Part::Speed, key, head, value };
        let (took, jobs) = (ms(run.took), count(self.jobs));
        let (bare, apart, fused) = (mean(&self.bare), mean(&self.apart), mean(&self.fused));
        let trusted = Some(&self.trusted).filter(|runs| !runs.is_empty()).map(|runs| mean(runs));
        let made: Vec<Duration> = self.runs.iter().map(|r| r.took).collect();
        let [p50, p99, max] = run.hops.latency.map(thousandth);
        let [c50, c99] = [self.commit.0, self.commit.1].map(thousandth);
        vec![
            f("makespan_ms", "ms", Some(took)),
            f("spread_pct", "±%", Some(spread(&made))),
            f("fused_ms", "F ms", Some(fused)),
            f("fused_spread_pct", "±%", Some(spread(&self.fused))),
            f("apart_ms", "F3 ms", Some(apart)),
            f("bare_ms", "bare ms", Some(bare)),
            f("x_fused", "x F", Some(took / fused)),
            f("x_apart", "x F3", Some(took / apart)),
            f("trusted_ms", "FT ms", trusted),
            f("trusted_spread_pct", "±%", trusted.map(|_| spread(&self.trusted))),
            f("x_trusted", "x FT", trusted.map(|trusted| took / trusted)),
            f("over_us_per_job", "over µs/job", Some((took - bare) * 1_000.0 / jobs)),
            f("fused_over_us_per_job", "F over", Some((fused - bare) * 1_000.0 / jobs)),
            f("commit_p50_ms", "C p50 ms", Some(c50)),
            f("commit_p99_ms", "C p99", Some(c99)),
            f("latency_p50_ms", "hop p50 ms", Some(p50)),
            f("latency_p99_ms", "hop p99", Some(p99)),
            f("latency_max_ms", "hop max", Some(max)),
            f("latency_p50_x_commit", "p50 x C", Some(p50 / c50)),
            f("latency_p99_x_commit", "p99 x C", Some(p99 / c50)),
            f("unfairness", "slow/fast", run.unfairness),
        ]
    }

    fn cost(&self, run: &Run) -> Vec<Figure> {
        let f = |key, head, value| Figure { part: Part::Cost, key, head, value };
        let jobs = count(self.jobs);
        let mib = |kib: Option<i64>| kib.map(|n| thousandth(n) * 1_000.0 / 1_024.0);
        let commits = run.commits.map(whole);
        vec![
            f("statements_per_job", "statements/job", run.statements.map(|n| whole(n) / jobs)),
            f("commits_per_job", "commits/job", commits.map(|n| n / jobs)),
            f("jobs_per_commit", "jobs/commit", commits.map(|n| jobs / n.max(1.0))),
            f("cpu_s", "cpu s", run.cpu.map(|d| d.as_secs_f64())),
            f("server_cpu_s", "server cpu s", run.server_cpu.map(|d| d.as_secs_f64())),
            f("peak_mib", "peak MiB", mib(run.peak_kib)),
            f("grown_mib", "grown MiB", mib(run.grown_kib)),
            f("open_ms", "open ms", run.opened.map(ms)),
        ]
    }

    /// One line.
    pub(crate) fn json(&self) -> Value {
        let mut line = json!({
            "scene": self.scene.word(), "body": self.body.word(), "db": self.database.name(),
            "jobs": self.jobs, "edges": self.edges, "batches": self.batches, "tasks": self.tasks,
            "load_before": self.load.0, "load_after": self.load.1, "durability": self.durability,
        });
        for figure in self.figures() {
            let value = figure.value.map(|v| (v * 1_000.0).round() / 1_000.0);
            line[figure.key] = value.map_or(Value::Null, |v| json!(v));
        }
        line
    }
}

fn hop(run: &Run) -> Vec<Figure> {
    let f = |key, head, value| Figure { part: Part::Hop, key, head, value };
    let trust: Option<Spread> = run.hops.trust;
    let part = |name: &str| {
        let found = run.hops.parts.iter().find(|(part, _)| *part == name);
        found.and_then(|(_, us)| *us).map(|us| thousandth(us) * 1_000.0)
    };
    vec![
        f("trust_p50_us", "trust µs", trust.map(|t| thousandth(t[0]) * 1_000.0)),
        f("trust_p99_us", "p99", trust.map(|t| thousandth(t[1]) * 1_000.0)),
        f("part_connect_us", "connect", part("connect")),
        f("part_lock_us", "lock", part("lock")),
        f("part_fence_us", "fence", part("fence")),
        f("part_body_us", "body", part("body")),
        f("part_close_us", "close", part("close")),
        f("part_commit_us", "end→commit", part("commit")),
        f("part_start_us", "commit→start", part("start")),
    ]
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

fn mean(all: &[Duration]) -> f64 {
    all.iter().map(|d| ms(*d)).sum::<f64>() / count(all.len().max(1))
}

/// How far apart the least and the greatest are, of their mean, in per cent.
fn spread(all: &[Duration]) -> f64 {
    let least = all.iter().min().copied().unwrap_or_default();
    let most = all.iter().max().copied().unwrap_or_default();
    100.0 * ms(most.saturating_sub(least)) / mean(all)
}

fn count(n: usize) -> f64 {
    whole(u64::try_from(n).unwrap_or(0))
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn whole(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "microseconds and KiB of one run are few")]
fn thousandth(n: i64) -> f64 {
    n as f64 / 1_000.0
}
