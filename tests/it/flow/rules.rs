//! The rules of a batch, each on the real engine.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::BatchStatus;
use procession::domain::id::BatchId;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::engine::opening::refused::OpeningRefusal;
use procession::store;

async fn run(bench: &Bench, yaml: &str) -> (BatchId, BatchStatus) {
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    finish(bench, &mut process).await;
    (ids[0], process.results()[&ids[0]])
}

async fn find(bench: &Bench) -> procession::domain::batch::Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    let found = store::batch::list_batches(&mut tx, None, 1).await.expect("list");
    found.into_iter().next().expect("a batch")
}

const BRANCHES: &str = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs:
  A: { type: NOOP }
  BAD:
    type: SCRIPT
    interpreter: sh
    depends_on: [A]
    script: |
      echo \"no rate for $PROCESSION_BATCH_NO\" >&2
      exit 3
    notify_email: [gl@bank.example]
  BELOW: { type: NOOP, depends_on: [BAD] }
  DEEPER: { type: NOOP, depends_on: [BELOW] }
  OTHER: { type: NOOP, depends_on: [A] }
";

async fn a_failure_stays_in_its_branch_and_is_mailed(bench: Bench) {
    let (id, result) = run(&bench, BRANCHES).await;
    assert_eq!(result, BatchStatus::Failed);
    assert_eq!(
        bench.states(id).await,
        "A=SUCCESS BAD=FAILED BELOW=UPSTREAM_FAILED DEEPER=UPSTREAM_FAILED OTHER=SUCCESS"
    );
    assert_eq!(bench.history(id, "BAD").await, ["RUNNING#1", "FAILED#1"]);
    assert_eq!(bench.history(id, "DEEPER").await, ["UPSTREAM_FAILED#0"]);
    let row = &bench.rows(id).await[1];
    let message = row.error_message.clone().expect("a message");
    assert!(message.contains("no rate for 202407"), "{message}");
    // Two addresses, one failure; children are summed up in it and not mailed one by one.
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM email_notifications").await, 2);
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE status = 'pending' \
                AND type = 'failed' AND body LIKE '%BELOW, DEEPER%' AND subject LIKE '%BAD failed%'";
    assert_eq!(bench.number(told).await, 2);
    let noted = "SELECT COUNT(*) AS n FROM job_execution_logs WHERE notify_status = 'NOTIFIED'";
    assert_eq!(bench.number(noted).await, 0, "no mail has gone yet");
    let reported = "SELECT COUNT(*) AS n FROM email_notifications m JOIN job_execution_logs l \
                    ON l.log_id = m.log_id WHERE l.status = 'FAILED' AND l.queue_id = m.queue_id";
    assert_eq!(bench.number(reported).await, 2, "each mail names the change that it reports");
    let last = "SELECT COUNT(*) AS n FROM job_batch WHERE status = 'FAILED' AND owner IS NULL \
                AND end_time IS NOT NULL";
    assert_eq!(bench.number(last).await, 1);
}

async fn retries_wait_and_are_counted(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs:
  THIRD:
    type: SCRIPT
    interpreter: sh
    retry_count: 2
    retry_delay_sec: 600
    script: 'test \"$PROCESSION_ATTEMPT\" = 3'
  NEVER: { type: SCRIPT, interpreter: sh, retry_count: 1, retry_delay_sec: 60, script: 'exit 1' }
  AFTER: { type: NOOP, depends_on: [THIRD] }
";
    let before = bench.clock.now();
    let (id, result) = run(&bench, yaml).await;
    assert_eq!(result, BatchStatus::Failed);
    assert_eq!(bench.states(id).await, "THIRD=SUCCESS NEVER=FAILED AFTER=SUCCESS");
    assert_eq!(
        bench.history(id, "THIRD").await,
        ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "RETRY_WAIT#2", "RUNNING#3", "SUCCESS#3"]
    );
    let rows = bench.rows(id).await;
    assert_eq!((rows[0].try_count, rows[0].attempt), (2, 3));
    assert_eq!((rows[1].try_count, rows[1].attempt), (1, 2), "one retry, then it is given up");
    // Two delays of ten minutes lie between start and end; nothing started early.
    assert!(bench.clock.now().since(before) >= 1_200_000);
    // The owners hear of the final failure, not of each try.
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM email_notifications").await, 1);
}

async fn schedule_time_is_a_not_before(bench: Bench) {
    let yaml = "
groups: { g: { time_zone: Asia/Shanghai } }
jobs:
  LATE: { type: NOOP, schedule_time: '22:30' }
  SOON: { type: NOOP, schedule_time: '06:00' }
";
    let (id, _) = run(&bench, yaml).await;
    let rows = bench.rows(id).await;
    // The batch is opened at 08:00 in Shanghai: 06:00 is past, 22:30 is 14:30 UTC.
    assert_eq!(rows[0].start_time.expect("start").to_string(), "2024-08-01T14:30:00.000Z");
    assert_eq!(rows[1].start_time.expect("start").to_string(), "2024-08-01T00:00:00.000Z");
}

async fn limits_and_priority_hold(bench: Bench) {
    let yaml = "
sources: { s: { url: 'sqlite::memory:', max_parallel: 1 } }
groups: { g: { max_parallel: 3 } }
jobs:
  S1: { type: SQL, source: s, sql: SELECT 1 }
  S2: { type: SQL, source: s, sql: SELECT 1, priority: 5 }
  S3: { type: SQL, source: s, sql: SELECT 1 }
  N1: { type: NOOP }
  N2: { type: NOOP }
  N3: { type: NOOP }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    // One of the source's three, the most urgent; two others fill the group; the rest wait as rows.
    assert_eq!(
        bench.states(ids[0]).await,
        "S1=QUEUED S2=RUNNING S3=QUEUED N1=RUNNING N2=RUNNING N3=QUEUED"
    );
    finish(&bench, &mut process).await;
    assert!(bench.rows(ids[0]).await.iter().all(|r| r.status == QueueStatus::Success));
    assert_eq!(bench.history(ids[0], "S3").await, ["QUEUED#0", "RUNNING#1", "SUCCESS#1"]);
}

async fn outputs_reach_the_children(bench: Bench) {
    let yaml = "
sources: { s: { url: 'sqlite::memory:' } }
jobs:
  FIRST: { type: SQL, source: s, sql: 'SELECT 40 AS answer' }
  SECOND:
    type: SQL
    source: s
    depends_on: [FIRST]
    sql: 'SELECT :given + 2 AS more'
    params: [{ name: given, type: int, value: '${jobs.FIRST.answer}' }]
  NONE:
    type: SQL
    source: s
    depends_on: [FIRST]
    sql: 'SELECT :given'
    params: [{ name: given, value: '${jobs.FIRST.question}' }]
";
    let (id, _) = run(&bench, yaml).await;
    assert_eq!(bench.states(id).await, "FIRST=SUCCESS SECOND=SUCCESS NONE=FAILED");
    let found =
        "SELECT COUNT(*) AS n FROM job_queue WHERE job_code = 'SECOND' AND outputs LIKE '%42%'";
    assert_eq!(bench.number(found).await, 1);
    let rows = bench.rows(id).await;
    assert!(
        rows[2].error_message.clone().expect("why").contains("without an output named question")
    );
}

async fn the_same_batch_never_runs_twice(bench: Bench) {
    let (id, _) = run(&bench, BRANCHES).await;
    let logs = bench.number("SELECT COUNT(*) AS n FROM job_execution_logs").await;
    let mut process = bench.process().await;
    let refused =
        process.open_batches(&defs(BRANCHES), &order(), "test").await.expect_err("exists");
    assert!(matches!(refused.downcast_ref(), Some(OpeningRefusal::Exists(..))), "{refused:#}");
    assert!(process.is_idle());
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_execution_logs").await, logs);
    // By intent it goes on from its failure: the failed one and what hangs below, nothing else.
    let resumed =
        process.resume(&find(&bench).await, UnknownJobs::Leave, None).await.expect("resume");
    let again: Vec<&str> = resumed.again.iter().map(|c| c.as_str()).collect();
    assert_eq!(again, ["BAD", "BELOW", "DEEPER"]);
    finish(&bench, &mut process).await;
    let rows = bench.rows(id).await;
    let starts: Vec<u32> = rows.iter().map(|r| r.attempt).collect();
    assert_eq!(starts, [1, 2, 0, 0, 1]);
    assert_eq!(rows[1].try_count, 0, "a rerun counts its retries anew");
}

async fn a_living_process_keeps_its_batch(bench: Bench) {
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'sleep 60' } }";
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    first.run_tick().await.expect("beat");
    let mut second = bench.process().await;
    let refused =
        second.resume(&find(&bench).await, UnknownJobs::Leave, None).await.expect_err("owned");
    assert!(matches!(refused.downcast_ref(), Some(OpeningRefusal::Owned { .. })), "{refused:#}");
    // Its heartbeat keeps the lease; only when it stops can another take over.
    bench.clock.advance(10_000);
    first.heartbeat().await.expect("heartbeat");
    bench.clock.advance(10_000);
    assert!(second.resume(&find(&bench).await, UnknownJobs::Leave, None).await.is_err());
    stop(&bench, &mut first, ids[0]).await;
}

async fn stop(
    bench: &Bench,
    process: &mut procession::engine::dispatch::dispatcher::QueueDispatcher,
    id: BatchId,
) {
    let mut tx = bench.db.begin().await.expect("begin");
    let asked = store::batch::request_kill(&mut tx, id, "a test", bench.clock.now()).await;
    assert!(asked.expect("ask"));
    tx.commit().await.expect("commit");
    process.poll_changes().await.expect("look");
    finish(bench, process).await;
}

async fn a_kill_ends_what_runs_and_what_waits(bench: Bench) {
    let yaml = "
jobs:
  RUNS: { type: SCRIPT, interpreter: sh, script: 'echo up; sleep 60', retry_count: 5 }
  WAITS: { type: NOOP, depends_on: [RUNS] }
  LATER: { type: NOOP, schedule_time: '23:00' }
  DONE: { type: NOOP }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    stop(&bench, &mut process, ids[0]).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Killed);
    assert_eq!(bench.states(ids[0]).await, "RUNS=KILLED WAITS=KILLED LATER=KILLED DONE=SUCCESS");
    assert_eq!(bench.history(ids[0], "RUNS").await, ["RUNNING#1", "KILLING#1", "KILLED#1"]);
    let reason =
        "SELECT COUNT(*) AS n FROM job_batch WHERE status = 'KILLED' AND reason = 'a test'";
    assert_eq!(bench.number(reason).await, 1);
}

async fn a_time_out_is_its_own_state(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs:
  SLOW: { type: SCRIPT, interpreter: sh, script: 'sleep 60', timeout_sec: 1 }
  BELOW: { type: NOOP, depends_on: [SLOW] }
";
    let (id, result) = run(&bench, yaml).await;
    assert_eq!(result, BatchStatus::Failed);
    assert_eq!(bench.states(id).await, "SLOW=TIMEOUT BELOW=UPSTREAM_FAILED");
    assert_eq!(bench.history(id, "SLOW").await, ["RUNNING#1", "KILLING#1", "TIMEOUT#1"]);
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'timeout'";
    assert_eq!(bench.number(told).await, 1);
}

async fn whatever_a_body_prints_is_stored(bench: Bench) {
    let yaml = r#"
jobs:
  DIRT:
    type: SCRIPT
    interpreter: sh
    script: |
      printf 'nul \000 bad \377\376 end\n'
      printf 'error \000 \377 here' >&2
      exit 9
"#;
    let (id, _) = run(&bench, yaml).await;
    assert_eq!(bench.states(id).await, "DIRT=FAILED");
    let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE 'nul % end'";
    assert_eq!(bench.number(lines).await, 1);
}

/// Somebody changes a row under a running process: its memory is stale, so it reads anew and goes
/// on from what the rows say.
async fn rows_win_over_memory(bench: Bench) {
    let yaml = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  B: { type: NOOP, depends_on: [A] }
  C: { type: SCRIPT, interpreter: sh, script: 'exit 0' }
  D: { type: NOOP, depends_on: [C] }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    bench.by_hand("UPDATE job_queue SET status = 'SKIPPED' WHERE job_code = 'D'").await;
    process.wait_for_report().await;
    let error = process.run_tick().await.expect_err("stale");
    assert!(error.downcast_ref::<store::Stale>().is_some(), "{error:#}");
    process.run_tick().await.expect("goes on");
    assert_eq!(bench.states(ids[0]).await, "A=RUNNING B=PENDING C=SUCCESS D=SKIPPED");
    stop(&bench, &mut process, ids[0]).await;
    assert_eq!(bench.states(ids[0]).await, "A=KILLED B=KILLED C=SUCCESS D=SKIPPED");
}

async fn each_group_of_an_order_is_opened_for_itself(bench: Bench) {
    let yaml = "
groups: { one: { type: monthly }, two: { type: monthly } }
jobs:
  A: { type: NOOP, group: one }
  B: { type: NOOP, group: two }
";
    let defs = defs(yaml);
    let mut process = bench.process().await;
    let only =
        procession::domain::batch::BatchOrder::parse(r#"{"batchNo":"202407","group":"two"}"#);
    process.open_batches(&defs, &only.expect("order"), "test").await.expect("open two");
    let all =
        procession::domain::batch::BatchOrder::parse(r#"{"batchNo":"202407","type":"monthly"}"#);
    let all = all.expect("order");
    let made = process.open_each(&defs, &all, "test", &mut |_| ()).await.expect("open one");
    let existing: Vec<&str> = made.existing.iter().map(|b| b.values.group.as_str()).collect();
    assert_eq!((made.opened.len(), existing), (1, vec!["two"]));
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 2);
    // When all exist, that is the refusal.
    let refused = process.open_batches(&defs, &all, "test").await.expect_err("both exist");
    assert!(matches!(refused.downcast_ref(), Some(OpeningRefusal::Exists(..))), "{refused:#}");
    finish(&bench, &mut process).await;
}

async fn a_mended_body_is_used_by_intent(bench: Bench) {
    let (id, _) = run(&bench, BRANCHES).await;
    let mended = BRANCHES.replace("exit 3", "exit 0");
    let mut process = bench.process().await;
    let there = find(&bench).await;
    let other = format!("{mended}  NEW: {{ type: NOOP, depends_on: [A] }}\n");
    let refused = process.resume(&there, UnknownJobs::Leave, Some(&defs(&other))).await;
    let refused = refused.expect_err("another shape").to_string();
    assert!(refused.contains("+ NEW"), "{refused}");
    assert!(process.is_idle());
    process.resume(&there, UnknownJobs::Leave, Some(&defs(&mended))).await.expect("resume");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&id], BatchStatus::Success);
}

async fn of_two_that_resume_one_wins(bench: Bench) {
    run(&bench, BRANCHES).await;
    let there = find(&bench).await;
    let (mut one, mut two) = (bench.process().await, bench.process().await);
    one.resume(&there, UnknownJobs::Leave, None).await.expect("the first");
    let refused = two.resume(&there, UnknownJobs::Leave, None).await.expect_err("the second");
    assert!(
        refused.downcast_ref::<OpeningRefusal>().is_some() || store_is_stale(&refused),
        "{refused:#}"
    );
    finish(&bench, &mut one).await;
}

fn store_is_stale(error: &anyhow::Error) -> bool {
    error.downcast_ref::<store::Stale>().is_some()
}

on_each_database! {
    a_failure_stays_in_its_branch_and_is_mailed
    retries_wait_and_are_counted
    schedule_time_is_a_not_before
    limits_and_priority_hold
    outputs_reach_the_children
    the_same_batch_never_runs_twice
    a_living_process_keeps_its_batch
    a_kill_ends_what_runs_and_what_waits
    a_time_out_is_its_own_state
    whatever_a_body_prints_is_stored
    rows_win_over_memory
    a_mended_body_is_used_by_intent
    of_two_that_resume_one_wins
    each_group_of_an_order_is_opened_for_itself
}
