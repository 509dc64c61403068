//! Chaos, short in every test run and long in `make chaos`.

use crate::trust::chaos::{Plan, run};
use crate::trust::nemesis::Temper;
use procession::domain::source::DialectName;
use std::time::Duration;

/// Takes a whole number from the environment.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no whole number")))
}

/// A new one each time it is not given, so that over time much is tried; it is printed.
fn seed() -> u64 {
    setting("SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 % 1_000_000)
}

#[expect(clippy::print_stdout, reason = "the seed and the table are what a run is for")]
async fn judge(plan: Plan) {
    println!("chaos on {:?}: SEED={}, {} jobs", plan.home, plan.seed, plan.effects);
    let report = run(&plan).await;
    println!("SEED={}\n{report}", plan.seed);
    assert!(
        report.verdict.is_clean() && report.times.is_clean(),
        "SEED={} on {:?}\n{report}\n{}",
        plan.seed,
        plan.home,
        report.said
    );
    assert!(
        report.verdict.effects() > 0 && report.times.fired > 0 && !report.troubles.is_empty(),
        "nothing was tried:\n{report}"
    );
}

async fn short(home: DialectName) {
    let temper = Temper {
        every_ms: (500, 2_000),
        lease: Duration::from_secs(2),
        restart_every: Duration::from_secs(8),
        leaves: true,
    };
    let (seed, drain) = (seed(), Duration::from_secs(120));
    let (effects, jobs_per_batch, at_once) = (500, 25, 6);
    judge(Plan { seed, home, effects, jobs_per_batch, at_once, temper, drain }).await;
}

async fn long(home: DialectName) {
    let temper = Temper {
        every_ms: (3_000, 9_000),
        lease: Duration::from_secs(2),
        restart_every: Duration::from_secs(90),
        leaves: true,
    };
    let effects = setting("EFFECTS").map_or(22_000, |n| usize::try_from(n).expect("a count"));
    let (seed, drain) = (seed(), Duration::from_secs(120));
    let (jobs_per_batch, at_once) = (40, 12);
    judge(Plan { seed, home, effects, jobs_per_batch, at_once, temper, drain }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_on_sqlite() {
    short(DialectName::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_on_mysql() {
    short(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_on_postgres() {
    short(DialectName::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some ten minutes; make chaos runs it"]
async fn long_on_sqlite() {
    long(DialectName::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some ten minutes; make chaos runs it"]
async fn long_on_mysql() {
    long(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some ten minutes; make chaos runs it"]
async fn long_on_postgres() {
    long(DialectName::Postgres).await;
}
