//! Among ready jobs of one priority those with the least slack start first, once a history says which these are.

use crate::flow::{Bench, defs, finish, on, on_each_database};
use procession::domain::batch::BatchOrder;
use procession::domain::id::BatchId;
use procession::domain::source::DialectName;
use procession::engine::EngineOptions;

/// HEAD is last in the file and begins the longest path; FIRST has a point more of priority.
const JOBS: &str = "
jobs:
  FIRST: { type: NOOP, priority: 1 }
  SHORT: { type: NOOP }
  MIDDLE: { type: NOOP }
  HEAD: { type: NOOP }
  TAIL: { type: NOOP, depends_on: [HEAD] }
";

/// Runs a batch to its end, one job at a time; the jobs in the order of their start.
async fn run(bench: &Bench, no: &str) -> (BatchId, String) {
    let mut process = bench.process().await;
    let order = BatchOrder::parse(&format!(r#"{{"batchNo":"{no}"}}"#)).expect("order");
    let id = process.open_batches(&defs(JOBS), &order, "test").await.expect("open")[0];
    finish(bench, &mut process).await;
    let sql = format!(
        "SELECT q.job_code AS code FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
         WHERE q.batch_id = {} AND l.status = 'RUNNING' ORDER BY l.log_id",
        id.0
    );
    let mut tx = bench.db.begin_read().await.expect("read");
    let rows = tx.fetch_all(&sql, &[]).await.expect("started jobs");
    let codes: Vec<String> = rows.iter().map(|row| row.get_text("code").expect("a code")).collect();
    (id, codes.join(" "))
}

/// As if these jobs had taken so long.
async fn set_durations(bench: &Bench, id: BatchId) {
    for (code, ms) in
        [("FIRST", 1_000), ("SHORT", 1_000), ("MIDDLE", 30_000), ("HEAD", 60_000), ("TAIL", 60_000)]
    {
        let sql = format!(
            "UPDATE job_execution_logs SET duration_ms = {ms} WHERE status = 'SUCCESS' AND queue_id IN \
             (SELECT queue_id FROM job_queue WHERE batch_id = {} AND job_code = '{code}')",
            id.0
        );
        bench.by_hand(&sql).await;
    }
}

async fn the_critical_path_starts_first_once_there_is_a_history(bench: Bench) {
    let options = EngineOptions { max_parallel: 1, ..bench.options.clone() };
    let bench = Bench { options, ..bench };
    let (first, started) = run(&bench, "202405").await;
    assert_eq!(started, "FIRST SHORT MIDDLE HEAD TAIL", "without a history: the order of the file");
    set_durations(&bench, first).await;
    let (second, started) = run(&bench, "202406").await;
    assert_eq!(started, "FIRST HEAD TAIL MIDDLE SHORT", "priority first, then the least slack");
    // Where all jobs may run at once nothing waits, and nothing is asked.
    set_durations(&bench, second).await;
    let options = EngineOptions { max_parallel: 5, ..bench.options.clone() };
    let bench = Bench { options, ..bench };
    let (_, started) = run(&bench, "202407").await;
    assert_eq!(started, "FIRST SHORT MIDDLE HEAD TAIL");
}

on_each_database! {
    the_critical_path_starts_first_once_there_is_a_history
}
