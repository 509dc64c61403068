//! Kill the process between any two beats: whoever resumes ends the batch as if nothing had
//! happened, and no job that had ended starts again.

use crate::flow::{Bench, START, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::BatchStatus;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::store;
use std::collections::BTreeMap;

/// Two layers with a join, a job that fails once, and one that is not idempotent. The marker file
/// counts what really ran.
fn yaml(folder: &str) -> String {
    format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: &mark 'echo $PROCESSION_JOB_CODE $PROCESSION_ATTEMPT >> {folder}/ran' }}
  B: {{ depends_on: [A], script: *mark }}
  C: {{ depends_on: [A], script: *mark }}
  ONCE: {{ depends_on: [A], retry_count: 1, script: 'echo ONCE $PROCESSION_ATTEMPT >> {folder}/ran; test \"$PROCESSION_ATTEMPT\" != 1' }}
  JOIN: {{ depends_on: [B, C, ONCE], script: *mark }}
  END: {{ type: NOOP, depends_on: [JOIN] }}
"
    )
}

/// Beats `beats` times as far as there is something to do; `false` when the batch ended before.
async fn some_beats(
    process: &mut procession::engine::dispatch::dispatcher::QueueDispatcher,
    beats: u32,
) -> bool {
    for _ in 0..beats {
        if process.is_idle() {
            return false;
        }
        if !process.run_tick().await.expect("beat") {
            process.wait_for_report().await;
        }
    }
    !process.is_idle()
}

async fn killed_between_any_two_beats(bench: Bench) {
    for beats in 0..40 {
        let folder = tempfile::tempdir().expect("folder");
        let no = format!(r#"{{"batchNo":"kill-{beats}"}}"#);
        let order = procession::domain::batch::BatchOrder::parse(&no).expect("order");
        let mut first = bench.process().await;
        let defs = defs(&yaml(&folder.path().display().to_string()));
        let ids = first.open_batches(&defs, &order, "test").await.expect("open");
        let was_open = some_beats(&mut first, beats).await;
        let before = bench.rows(ids[0]).await;
        drop(first);
        if !was_open {
            return;
        }
        bench.clock.advance(16_000);
        let mut tx = bench.db.begin_read().await.expect("read");
        let there = store::batch::get(&mut tx, ids[0]).await.expect("batch");
        drop(tx);
        let mut second = bench.process().await;
        second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
        finish(&bench, &mut second).await;
        assert_eq!(second.results()[&ids[0]], BatchStatus::Success, "killed after {beats} beats");
        let after = bench.rows(ids[0]).await;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after.status, QueueStatus::Success);
            if before.status == QueueStatus::Success {
                assert_eq!(before.attempt, after.attempt, "{} ran again", after.job_code);
            }
            let history = bench.history(ids[0], after.job_code.as_str()).await;
            let starts = history.iter().filter(|h| h.starts_with("RUNNING")).count();
            assert_eq!(starts as u32, after.attempt, "one log row per start: {history:?}");
        }
        each_try_ran_once(folder.path());
    }
    panic!("the batch never ended within 40 beats, so the last beats were not tried");
}

fn each_try_ran_once(folder: &std::path::Path) {
    let ran = std::fs::read_to_string(folder.join("ran")).expect("marker");
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    ran.lines().for_each(|line| *seen.entry(line).or_default() += 1);
    for (line, times) in seen {
        assert_eq!(times, 1, "{line} ran {times} times");
    }
}

async fn a_job_that_is_not_idempotent_is_not_guessed(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs:
  PAY: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  BELOW: { type: NOOP, depends_on: [PAY] }
";
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    first.run_tick().await.expect("beat");
    drop(first);
    bench.clock.advance(16_000);
    let mut tx = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut tx, ids[0]).await.expect("batch");
    drop(tx);
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(second.results()[&ids[0]], BatchStatus::Failed);
    assert_eq!(bench.states(ids[0]).await, "PAY=UNKNOWN BELOW=UPSTREAM_FAILED");
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'unknown'";
    assert_eq!(bench.number(told).await, 1);
    assert!(bench.clock.now() > START);
}

/// A process that was silent for longer than its lease (a stopped machine, a long pause) wakes up
/// after another has taken its batch over: it must notice, write nothing and stop its bodies.
async fn a_stalled_process_writes_nothing(bench: Bench) {
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, idempotent: true }
jobs:
  A: { script: 'sleep 1' }
  B: { depends_on: [A], script: 'exit 0' }
  LATER: { type: NOOP, schedule_time: '00:00:20' }
";
    let mut stalled = bench.process().await;
    let ids = stalled.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    stalled.run_tick().await.expect("beat");
    bench.clock.advance(16_000);
    let mut tx = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut tx, ids[0]).await.expect("batch");
    drop(tx);
    let mut heir = bench.process().await;
    heir.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    heir.run_tick().await.expect("beat");
    // It wakes with a job whose time has come and a body that ended.
    bench.clock.advance(5_000);
    let before = bench.states(ids[0]).await;
    stalled.wait_for_report().await;
    assert!(stalled.run_tick().await.is_err(), "the batch is another's");
    let error = stalled.run_tick().await.expect_err("and stays so");
    assert!(
        error.to_string().contains("another") || format!("{error:#}").contains("taken over"),
        "{error:#}"
    );
    assert!(stalled.is_idle());
    assert_eq!(bench.states(ids[0]).await, before);
    finish(&bench, &mut heir).await;
    assert_eq!(bench.states(ids[0]).await, "A=SUCCESS B=SUCCESS LATER=SUCCESS");
    let row = &bench.rows(ids[0]).await[0];
    assert_eq!(row.attempt, 2);
}

/// The database refuses work for a while (here: a table is away, as with a full disk or a broken
/// upgrade). Nothing is lost and nothing runs twice; the process goes on when it is back.
async fn a_database_that_fails_for_a_while(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&yaml(&folder.path().display().to_string()));
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    bench.by_hand("ALTER TABLE job_execution_logs RENAME TO away").await;
    for _ in 0..3 {
        process.run_tick().await.expect_err("a table is away");
    }
    bench.by_hand("ALTER TABLE away RENAME TO job_execution_logs").await;
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    each_try_ran_once(folder.path());
}

/// A lease that ran out is noticed at the next heartbeat, not when a body happens to end.
async fn a_lapsed_lease_is_noticed_by_the_heartbeat(bench: Bench) {
    let yaml =
        "jobs: { A: { type: SCRIPT, interpreter: sh, idempotent: true, script: 'sleep 60' } }";
    let mut stalled = bench.process().await;
    let ids = stalled.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    stalled.run_tick().await.expect("beat");
    bench.clock.advance(16_000);
    let mut tx = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut tx, ids[0]).await.expect("batch");
    drop(tx);
    let mut heir = bench.process().await;
    heir.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    stalled.heartbeat().await.expect("heartbeat");
    let error = stalled.run_tick().await.expect_err("taken over");
    assert!(format!("{error:#}").contains("taken over"), "{error:#}");
    assert!(stalled.is_idle());
    // A lease that ran out with nobody taking over is only renewed.
    bench.clock.advance(16_000);
    heir.heartbeat().await.expect("heartbeat");
    heir.run_tick().await.expect("still ours");
    assert!(!heir.is_idle());
    let mut tx = bench.db.begin().await.expect("begin");
    store::batch::request_kill(&mut tx, ids[0], "done", bench.clock.now()).await.expect("ask");
    tx.commit().await.expect("commit");
    heir.poll_changes().await.expect("look");
    finish(&bench, &mut heir).await;
}

/// As above, with nothing to settle: a row that waits could be claimed by anybody, so the batch's own
/// row must say no.
async fn a_stalled_process_claims_nothing(bench: Bench) {
    let yaml = "jobs: { LATER: { type: NOOP, schedule_time: '00:00:20' } }";
    let mut stalled = bench.process().await;
    let ids = stalled.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    stalled.run_tick().await.expect("beat");
    bench.clock.advance(16_000);
    let mut tx = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut tx, ids[0]).await.expect("batch");
    drop(tx);
    let mut heir = bench.process().await;
    heir.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    bench.clock.advance(5_000);
    assert!(stalled.run_tick().await.is_err(), "the batch is another's");
    assert_eq!(bench.states(ids[0]).await, "LATER=PENDING");
    finish(&bench, &mut heir).await;
    assert_eq!(bench.history(ids[0], "LATER").await, ["RUNNING#1", "SUCCESS#1"]);
}

/// The database fails just when an operator's kill is written; the kill is not forgotten.
async fn a_kill_outlives_a_failing_database(bench: Bench) {
    let yaml = "
jobs:
  RUNS: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  WAITS: { type: NOOP, depends_on: [RUNS] }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    let mut tx = bench.db.begin().await.expect("begin");
    store::batch::request_kill(&mut tx, ids[0], "stop", bench.clock.now()).await.expect("ask");
    tx.commit().await.expect("commit");
    bench.by_hand("ALTER TABLE job_execution_logs RENAME TO away").await;
    process.poll_changes().await.expect_err("a table is away");
    bench.by_hand("ALTER TABLE away RENAME TO job_execution_logs").await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "RUNS=KILLED WAITS=KILLED");
}

on_each_database! {
    killed_between_any_two_beats
    a_job_that_is_not_idempotent_is_not_guessed
    a_stalled_process_writes_nothing
    a_stalled_process_claims_nothing
    a_kill_outlives_a_failing_database
    a_lapsed_lease_is_noticed_by_the_heartbeat
    a_database_that_fails_for_a_while
}
