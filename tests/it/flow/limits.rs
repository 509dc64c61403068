//! Limits that jobs of several groups share, and what stops or watches a batch.

use crate::flow::{Bench, START, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{Batch, BatchOrder, BatchStatus};
use procession::domain::id::BatchId;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;
use std::path::Path;

/// A script that ends when the test opens its gate.
fn gated(folder: &Path, name: &str) -> String {
    format!("while [ ! -e {}/{name} ]; do sleep 0.02; done", folder.display())
}

fn open_gate(folder: &Path, name: &str) {
    std::fs::write(folder.join(name), "").expect("gate");
}

async fn batch(bench: &Bench, id: BatchId) -> Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

/// Waits for a report and takes it in.
async fn next(process: &mut QueueDispatcher) {
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
}

async fn weights_and_locks_hold(mut bench: Bench) {
    bench.options.max_parallel = 20;
    let yaml = "
pools: { ORA_DW: 4 }
groups: { g: {} }
defaults: { type: NOOP }
jobs:
  P3: { pools: { ORA_DW: 3 } }
  P2: { pools: { ORA_DW: 2 } }
  P1: { pools: [ORA_DW] }
  SHARED_1: { locks: { GL: shared } }
  SHARED_2: { locks: { GL: shared } }
  ALONE: { locks: { GL: exclusive } }
  SHARED_3: { locks: { GL: shared } }
  OTHER: { locks: [AP] }
  FREE: {}
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    // P2 does not fit beside P3, and what it lacks is kept from P1, which comes after it; the same for
    // ALONE and SHARED_3. Nobody else is held up.
    assert_eq!(
        bench.states(ids[0]).await,
        "P3=RUNNING P2=QUEUED P1=QUEUED SHARED_1=RUNNING SHARED_2=RUNNING ALONE=QUEUED \
         SHARED_3=QUEUED OTHER=RUNNING FREE=RUNNING"
    );
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    // ALONE ran when nobody shared the lock.
    let overlaps = "SELECT COUNT(*) AS n FROM job_queue a JOIN job_queue s ON s.batch_id = a.batch_id \
                    WHERE a.job_code = 'ALONE' AND s.job_code LIKE 'SHARED%' \
                    AND s.start_time < a.end_time AND a.start_time < s.end_time";
    assert_eq!(bench.number(overlaps).await, 0);
}

async fn two_batches_share_a_pool_and_its_room(mut bench: Bench) {
    bench.options.max_parallel = 20;
    let folder = tempfile::tempdir().expect("folder");
    let (runs, path) = (gated(folder.path(), "go"), folder.path());
    let yaml = format!(
        "
pools: {{ ORA_DW: 2 }}
groups: {{ one: {{ type: demo }}, two: {{ type: demo }} }}
defaults: {{ type: NOOP, pools: [ORA_DW] }}
jobs:
  ONE_A: {{ group: one, type: SCRIPT, interpreter: sh, script: '{runs}' }}
  ONE_B: {{ group: one, schedule_time: '00:01' }}
  TWO_A: {{ group: two, pools: {{ ORA_DW: 2 }}, schedule_time: '00:00:30' }}
"
    );
    let order = BatchOrder::parse(r#"{"batchNo":"1","type":"demo"}"#).expect("order");
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&yaml), &order, "test").await.expect("open");
    process.run_tick().await.expect("beat");
    bench.clock.advance(60_000);
    process.run_tick().await.expect("beat");
    // A slot is free for ONE_B, but TWO_A of the other batch waits longer and needs both.
    assert_eq!(bench.states(ids[0]).await, "ONE_A=RUNNING ONE_B=QUEUED");
    assert_eq!(bench.states(ids[1]).await, "TWO_A=QUEUED");
    open_gate(path, "go");
    next(&mut process).await;
    assert_eq!(bench.states(ids[0]).await, "ONE_A=SUCCESS ONE_B=QUEUED");
    assert_eq!(bench.states(ids[1]).await, "TWO_A=RUNNING");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "ONE_A=SUCCESS ONE_B=SUCCESS");
}

/// Slots come free one by one; the batch that was opened first does not get all of them.
async fn two_batches_take_turns(mut bench: Bench) {
    bench.options.max_parallel = 1;
    let yaml = "
groups: { one: { type: demo }, two: { type: demo } }
defaults: { type: NOOP }
jobs:
  ONE_A: { group: one }
  ONE_B: { group: one }
  ONE_C: { group: one }
  TWO_A: { group: two }
  TWO_B: { group: two }
";
    let order = BatchOrder::parse(r#"{"batchNo":"1","type":"demo"}"#).expect("order");
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order, "test").await.expect("open");
    process.run_tick().await.expect("beat");
    while !process.is_idle() {
        bench.clock.advance(1_000);
        next(&mut process).await;
    }
    let mut starts = bench.rows(ids[0]).await;
    starts.extend(bench.rows(ids[1]).await);
    starts.sort_by_key(|r| r.start_time);
    let order: Vec<&str> = starts.iter().map(|r| r.job_code.as_str()).collect();
    assert_eq!(order, ["ONE_A", "TWO_A", "ONE_B", "TWO_B", "ONE_C"]);
}

async fn waiting_counts_as_priority(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let runs = gated(folder.path(), "go");
    // A point of priority is ten minutes here.
    let yaml = format!(
        "
pools: {{ ONE: 1 }}
groups: {{ g: {{}} }}
defaults: {{ type: NOOP, pools: [ONE] }}
jobs:
  FIRST: {{ priority: 9, type: SCRIPT, interpreter: sh, script: '{runs}' }}
  LATE_1: {{ priority: 1, schedule_time: '00:15' }}
  OLD: {{}}
  LATE_2: {{ priority: 2, schedule_time: '00:15' }}
"
    );
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    bench.clock.advance(16 * 60_000);
    process.run_tick().await.expect("beat");
    open_gate(folder.path(), "go");
    let mut order = Vec::new();
    for _ in 0..3 {
        bench.clock.advance(1_000);
        next(&mut process).await;
        let rows = bench.rows(ids[0]).await;
        let running = rows.iter().filter(|r| r.status == QueueStatus::Running);
        order.extend(running.map(|r| r.job_code.to_string()));
    }
    assert_eq!(order, ["LATE_2", "OLD", "LATE_1"]);
    finish(&bench, &mut process).await;
}

/// BAD fails at its first try while RUNS and FLAKY run, WAITS_SLOT waits for a slot, and AGAIN waits
/// for its second try.
fn fail_fast(folder: &Path) -> String {
    let (runs, bad, flaky) = (gated(folder, "run"), gated(folder, "bad"), gated(folder, "flaky"));
    format!(
        "
pools: {{ ONE: 1 }}
groups: {{ g: {{ fail_fast: true, notify_email: [ops@bank.example] }} }}
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  AGAIN: {{ retry_count: 3, retry_delay_sec: 600, script: 'exit 4' }}
  RUNS: {{ pools: [ONE], script: '{runs}' }}
  FLAKY: {{ retry_count: 3, script: '{flaky}; exit 5' }}
  BAD: {{ script: '{bad}; exit 3' }}
  WAITS_SLOT: {{ type: NOOP, pools: [ONE] }}
  WAITS_TIME: {{ type: NOOP, schedule_time: '20:00' }}
  BELOW: {{ type: NOOP, depends_on: [RUNS] }}
  TIDY_UP: {{ type: NOOP, depends_on: [BAD], trigger_rule: all_done }}
"
    )
}

async fn nothing_starts_after_a_failure_that_stops(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let mut process = bench.process().await;
    let defs = defs(&fail_fast(folder.path()));
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    next(&mut process).await;
    assert!(bench.states(ids[0]).await.starts_with("AGAIN=RETRY_WAIT"));
    open_gate(folder.path(), "bad");
    next(&mut process).await;
    assert_eq!(
        bench.states(ids[0]).await,
        "AGAIN=UPSTREAM_FAILED RUNS=RUNNING FLAKY=RUNNING BAD=FAILED WAITS_SLOT=UPSTREAM_FAILED \
         WAITS_TIME=UPSTREAM_FAILED BELOW=UPSTREAM_FAILED TIDY_UP=UPSTREAM_FAILED"
    );
    let rows = bench.rows(ids[0]).await;
    let said = |i: usize| rows[i].error_message.clone().unwrap_or_default();
    assert_eq!(said(4), "not started: job BAD ended FAILED, and its group stops at a failure");
    assert!(said(0).starts_with("not started again: job BAD ended FAILED"), "{}", said(0));
    assert!(said(0).ends_with("its last try: exit code 4"), "{}", said(0));
    // What runs ends by itself: well, or without another try.
    open_gate(folder.path(), "flaky");
    next(&mut process).await;
    open_gate(folder.path(), "run");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Failed);
    assert!(bench.states(ids[0]).await.contains("RUNS=SUCCESS FLAKY=FAILED BAD=FAILED"));
    assert_eq!(bench.history(ids[0], "FLAKY").await, ["RUNNING#1", "FAILED#1"]);
    assert_eq!(bench.history(ids[0], "TIDY_UP").await, ["UPSTREAM_FAILED#0"]);
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE subject LIKE '%BAD failed%' \
                AND body LIKE '%WAITS_SLOT%'";
    assert_eq!(bench.number(told).await, 1);
    // Going on with it starts all of them over; BAD is good now.
    let there = batch(&bench, ids[0]).await;
    let mut second = bench.process().await;
    let mut latest = defs.clone();
    for job in latest.jobs.iter_mut().filter(|j| j.script.is_some()) {
        job.script = Some("exit 0".to_owned());
    }
    second.resume(&there, UnknownJobs::Leave, Some(&latest)).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(second.results()[&ids[0]], BatchStatus::Success, "{}", bench.states(ids[0]).await);
}

/// Killed after any commit, whoever goes on starts nothing that the failure forbids.
async fn a_stop_outlives_a_crash_after_any_commit(bench: Bench) {
    let mut stopped = 0;
    for beats in 0..12 {
        let folder = tempfile::tempdir().expect("folder");
        let no = format!(r#"{{"batchNo":"stop-{beats}"}}"#);
        let order = BatchOrder::parse(&no).expect("order");
        let mut first = bench.process().await;
        let defs = defs(&fail_fast(folder.path()));
        let ids = first.open_batches(&defs, &order, "test").await.expect("open");
        for beat in 0..beats {
            if beat == 2 {
                open_gate(folder.path(), "bad");
            }
            if first.run_tick().await.expect("beat") || first.running() == 0 {
                continue;
            }
            if bench.states(ids[0]).await.contains("BAD=FAILED") {
                open_gate(folder.path(), "flaky");
                open_gate(folder.path(), "run");
            }
            first.wait_for_report().await;
        }
        let before = bench.rows(ids[0]).await;
        let result = first.results().get(&ids[0]).copied();
        drop(first);
        for gate in ["bad", "flaky", "run"] {
            open_gate(folder.path(), gate);
        }
        if result.is_some() {
            stopped += 1;
            continue;
        }
        bench.clock.advance(16_000);
        let there = batch(&bench, ids[0]).await;
        let mut second = bench.process().await;
        second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
        finish(&bench, &mut second).await;
        assert_eq!(second.results()[&ids[0]], BatchStatus::Failed, "killed after {beats} beats");
        let had_failed = before.iter().any(|r| r.status == QueueStatus::Failed);
        stopped += usize::from(had_failed);
        for (before, after) in before.iter().zip(bench.rows(ids[0]).await) {
            assert!(after.status.is_final(), "{} {}", after.job_code, after.status);
            if had_failed {
                assert_eq!(before.attempt, after.attempt, "{} started again", after.job_code);
            }
        }
    }
    assert!(stopped >= 3, "a crash after the failure was tried {stopped} times only");
}

async fn a_batch_past_its_time_is_stopped(bench: Bench) {
    let yaml = "
groups: { g: { batch_timeout_sec: 600, notify_email: [ops@bank.example, gl@bank.example] } }
jobs:
  RUNS: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  BELOW: { type: NOOP, depends_on: [RUNS] }
  LATER: { type: NOOP, schedule_time: '20:00' }
";
    let defs = defs(yaml);
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    assert_eq!(process.next_wake(), Some(START.plus_ms(600_000)));
    bench.clock.advance(599_999);
    assert!(!process.run_tick().await.expect("beat"), "not yet");
    bench.clock.advance(1);
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(ids[0]).await, "RUNS=KILLING BELOW=KILLED LATER=KILLED");
    let there = batch(&bench, ids[0]).await;
    assert_eq!(there.status, BatchStatus::Killing);
    assert_eq!(there.reason.as_deref(), Some("ran past its 600 s"));
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Killed);
    let said = bench.rows(ids[0]).await[0].error_message.clone();
    assert_eq!(bench.states(ids[0]).await, "RUNS=KILLED BELOW=KILLED LATER=KILLED", "{said:?}");
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'batch_timeout'";
    assert_eq!(bench.number(told).await, 2, "each owner once");
    // Who goes on with it means it: it gets its whole time again.
    bench.clock.advance(3_600_000);
    let there = batch(&bench, ids[0]).await;
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    let again = bench.clock.now().plus_ms(600_000);
    assert_eq!(batch(&bench, ids[0]).await.deadline, Some(again));
    second.run_tick().await.expect("beat");
    assert!(bench.states(ids[0]).await.starts_with("RUNS=RUNNING"));
    bench.clock.advance(600_000);
    finish(&bench, &mut second).await;
    assert_eq!(second.results()[&ids[0]], BatchStatus::Killed);
}

async fn a_crash_does_not_move_the_deadline(bench: Bench) {
    let yaml = "
groups: { g: { batch_timeout_sec: 600 } }
jobs: { LATER: { type: NOOP, schedule_time: '20:00' } }
";
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    first.run_tick().await.expect("beat");
    drop(first);
    bench.clock.advance(300_000);
    let there = batch(&bench, ids[0]).await;
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    let kept = START.plus_ms(600_000);
    assert_eq!(batch(&bench, ids[0]).await.deadline, Some(kept), "it is the same run");
    drop(second);
    bench.clock.advance(600_000);
    let there = batch(&bench, ids[0]).await;
    let mut third = bench.process().await;
    third.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    let fresh = START.plus_ms(1_500_000);
    assert_eq!(batch(&bench, ids[0]).await.deadline, Some(fresh), "or it would be stopped at once");
    third.run_tick().await.expect("beat");
    assert_eq!(bench.states(ids[0]).await, "LATER=PENDING");
    finish(&bench, &mut third).await;
    assert_eq!(bench.states(ids[0]).await, "LATER=KILLED");
}

async fn owners_hear_once_that_something_runs_long(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let runs = gated(folder.path(), "go");
    let yaml = format!(
        "
groups: {{ g: {{ warn_after_sec: 120, notify_email: [ops@bank.example] }} }}
defaults: {{ type: SCRIPT, interpreter: sh, warn_after_sec: 60, idempotent: true }}
jobs:
  SLOW: {{ script: '{runs}', notify_email: [gl@bank.example] }}
  QUICK: {{ script: 'exit 0' }}
"
    );
    let told = async |kind: &str| {
        let sql = format!("SELECT COUNT(*) AS n FROM email_notifications WHERE type = '{kind}'");
        bench.number(&sql).await
    };
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    next(&mut process).await;
    assert_eq!(process.next_wake(), Some(START.plus_ms(60_000)), "nothing is asked before");
    bench.clock.advance(60_000);
    // The commit that tells fails: it is told by the next.
    bench.by_hand("ALTER TABLE email_notifications RENAME TO away").await;
    process.run_tick().await.expect_err("a table is away");
    bench.by_hand("ALTER TABLE away RENAME TO email_notifications").await;
    assert!(process.run_tick().await.expect("beat"));
    assert_eq!(told("running_long").await, 2);
    assert!(!process.run_tick().await.expect("beat"), "once");
    // Memory that is read anew does not tell it again.
    bench.by_hand("ALTER TABLE email_notifications RENAME TO away").await;
    bench.clock.advance(60_000);
    process.run_tick().await.expect_err("a table is away");
    bench.by_hand("ALTER TABLE away RENAME TO email_notifications").await;
    process.run_tick().await.expect("beat");
    assert!(!process.run_tick().await.expect("beat"), "once");
    assert_eq!((told("running_long").await, told("batch_long").await), (2, 1));
    assert_eq!(process.next_wake(), None);
    // A process that takes over may tell it once more.
    drop(process);
    bench.clock.advance(16_000);
    let there = batch(&bench, ids[0]).await;
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    second.run_tick().await.expect("beat");
    bench.clock.advance(60_000);
    second.run_tick().await.expect("beat");
    open_gate(folder.path(), "go");
    finish(&bench, &mut second).await;
    assert_eq!((told("running_long").await, told("batch_long").await), (4, 1));
    let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE stream = 'system' \
                 AND attempt = 2 AND line_text = 'still runs after 1 min 00 s; told 2 addresses'";
    assert_eq!(bench.number(lines).await, 1, "in the log of the try that ended here");
}

/// The page's own example is a definition, and says what the page says it does.
#[test]
fn the_page_shows_a_definition() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/limits-and-retries.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (yaml, _) = rest.split_once("```").expect("its end");
    let defs = defs(yaml);
    let job = &defs.jobs[0];
    let delays = [1, 2, 3, 4].map(|n| job.retry.delay_ms(job.retry_delay_sec, n, 0));
    assert_eq!(delays, [9_000, 18_000, 36_000, 54_000], "10, 20, 40, 60 s less a tenth");
    use procession::domain::job::retry::ErrorClass::{ConnectionLost, Other};
    assert!(job.retry.may_retry(ConnectionLost, Some("57P01")));
    assert!(!job.retry.may_retry(Other, Some("57014")));
}

on_each_database! {
    weights_and_locks_hold
    two_batches_share_a_pool_and_its_room
    two_batches_take_turns
    waiting_counts_as_priority
    nothing_starts_after_a_failure_that_stops
    a_stop_outlives_a_crash_after_any_commit
    a_batch_past_its_time_is_stopped
    a_crash_does_not_move_the_deadline
    owners_hear_once_that_something_runs_long
}
