//! How fast a million old rows go, and what somebody else's commits cost meanwhile. For the table in
//! docs/retention.md: `cargo test --test it -- --ignored --nocapture retention::figures`.

#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use super::plans::fill;
use super::seed::{Old, old, options, put};
use crate::flow::{Bench, on};
use procession::domain::id::{BatchId, NodeId};
use procession::domain::source::DialectName;
use procession::engine::retention::{Beat, RemovalOrder, RetentionOptions, Sweeper};
use procession::store::Db;
use procession::store::audit::Operator;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BATCHES: i64 = 10_000;
const JOBS: i64 = 100;

/// Commits a change of a live row and its log every few milliseconds until it is told to stop; gives how
/// long each took.
async fn commits(db: Db, live: BatchId, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let mut tx = db.begin().await.expect("begin");
        let sql = "UPDATE job_queue SET try_count = try_count + 1 WHERE batch_id = ?";
        tx.execute(sql, &[live.0.into()]).await.expect("update");
        let sql = "INSERT INTO job_execution_logs (queue_id, status, log_time) \
                   SELECT queue_id, 'RUNNING', update_time FROM job_queue WHERE batch_id = ?";
        tx.execute(sql, &[live.0.into()]).await.expect("insert");
        tx.commit().await.expect("commit");
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    took
}

fn at(sorted: &[Duration], share: usize) -> f64 {
    let place = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |d| d.as_secs_f64() * 1_000.0)
}

fn say(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let (p50, p99) = (at(&took, 50), at(&took, 99));
    let most = took.last().map_or(0.0, |d| d.as_secs_f64() * 1_000.0);
    println!(
        "  {what}: {} commits, p50 {p50:.2} ms, p99 {p99:.2} ms, max {most:.1} ms",
        took.len()
    );
}

async fn with_commits<T>(
    bench: &Bench,
    live: BatchId,
    what: &str,
    work: impl Future<Output = T>,
) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(commits(bench.db.clone(), live, stop.clone()));
    let done = work.await;
    stop.store(true, Ordering::Relaxed);
    say(what, writer.await.expect("writer"));
    done
}

async fn remove(bench: &Bench, pause_ms: i64, batches: u64) -> (u64, u64, Duration) {
    let options = RetentionOptions { pause_ms, ..options() };
    let by = Operator::new("figures".to_owned(), "here".to_owned());
    let wish = RemovalOrder { by, reason: None, limit: Some(batches) };
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    let mut sweeper = Sweeper::new(db, clock, NodeId("figures".to_owned()), options, wish);
    let (began, mut steps) = (Instant::now(), 0);
    loop {
        let asked = Instant::now();
        match sweeper.run_step(bench.clock.now()).await.expect("beat") {
            Beat::Ended(removed) => return (removed.values().sum(), steps, began.elapsed()),
            Beat::Did(rows) if rows.is_empty() => {}
            Beat::Did(_) => {
                steps += 1;
                let took = i64::try_from(asked.elapsed().as_millis()).expect("short");
                tokio::time::sleep(sweeper.pause(took)).await;
            }
            Beat::Rests(rest, _) => panic!("{rest:?}"),
        }
    }
}

async fn a_million(bench: Bench) {
    let began = Instant::now();
    // A million rows of job_queue, and with each two changes of status and a line.
    fill(&bench, BATCHES, JOBS, 1, 200).await;
    let live = put(&bench, Old { jobs: 1, lines: 0, ..old("live", 1) }).await;
    println!("{:?}: seeded in {:.0} s", bench.db.dialect(), began.elapsed().as_secs_f64());
    with_commits(&bench, live, "alone", tokio::time::sleep(Duration::from_secs(15))).await;
    for (pause, batches) in [(100, 2_000), (0, 8_000)] {
        let what = format!("pause {pause} ms");
        let gone = with_commits(&bench, live, &what, remove(&bench, pause, batches)).await;
        let (rows, steps, took) = gone;
        let seconds = took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "millions")]
        let rate = rows as f64 / seconds;
        println!("  {what}: {rows} rows in {steps} steps, {seconds:.1} s, {rate:.0} rows/s");
    }
    let left = bench.number("SELECT COUNT(*) AS n FROM job_queue").await;
    assert_eq!(left, 1, "the live one, which is the newest that ended well");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes; for the figures in docs/retention.md"]
async fn postgres() {
    on(DialectName::Postgres, a_million).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes; for the figures in docs/retention.md"]
async fn mariadb() {
    on(DialectName::Mysql, a_million).await;
}
