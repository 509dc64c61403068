//! Trigger rules, conditions, branches, and dependencies on other batches, on the real engine.

use crate::flow::{Bench, START, defs, finish, on, on_each_database};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::id::BatchId;
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;

fn order(batch_no: &str, group: &str) -> BatchOrder {
    let json = format!(r#"{{"batchNo":"{batch_no}","group":"{group}"}}"#);
    BatchOrder::parse(&json).expect("order")
}

async fn open(process: &mut QueueDispatcher, yaml: &str, no: &str, group: &str) -> BatchId {
    process.open_batches(&defs(yaml), &order(no, group), "test").await.expect("open")[0]
}

async fn run(bench: &Bench, yaml: &str, no: &str, group: &str) -> (BatchId, BatchStatus) {
    let mut process = bench.process().await;
    let id = open(&mut process, yaml, no, group).await;
    finish(bench, &mut process).await;
    (id, process.results()[&id])
}

/// Beats and looks until nothing moves any more.
pub(super) async fn settle(process: &mut QueueDispatcher) {
    loop {
        process.look_outside().await.expect("look");
        if process.run_tick().await.expect("beat") {
            continue;
        }
        if process.running() == 0 {
            return;
        }
        process.wait_for_report().await;
    }
}

const SHELL: &str = "
groups: { g: {} }
defaults: { type: SCRIPT, interpreter: sh }
jobs:
";

fn script(code: &str, body: &str, more: &str) -> String {
    format!("  {code}: {{ script: \"{body}\"{more} }}\n")
}

async fn each_trigger_rule_decides_its_job(bench: Bench) {
    let mut yaml = SHELL.to_owned();
    yaml += &script("WELL", "true", "");
    yaml += &script("BAD", "exit 1", "");
    for rule in
        ["all_success", "all_done", "one_success", "all_failed", "one_failed", "none_failed"]
    {
        for (name, parents) in [("W", "WELL"), ("B", "BAD"), ("WB", "WELL, BAD")] {
            let more = format!(", trigger_rule: {rule}, depends_on: [{parents}]");
            yaml += &script(&format!("{rule}.{name}"), "true", &more);
        }
    }
    let (id, result) = run(&bench, &yaml, "202407", "g").await;
    assert_eq!(result, BatchStatus::Failed);
    assert_eq!(
        bench
            .states(id)
            .await
            .replace("=", " ")
            .split_whitespace()
            .skip(4)
            .collect::<Vec<_>>()
            .join(" "),
        "all_success.W SUCCESS all_success.B UPSTREAM_FAILED all_success.WB UPSTREAM_FAILED \
         all_done.W SUCCESS all_done.B SUCCESS all_done.WB SUCCESS \
         one_success.W SUCCESS one_success.B UPSTREAM_FAILED one_success.WB SUCCESS \
         all_failed.W SKIPPED all_failed.B SUCCESS all_failed.WB SKIPPED \
         one_failed.W SKIPPED one_failed.B SUCCESS one_failed.WB SUCCESS \
         none_failed.W SUCCESS none_failed.B UPSTREAM_FAILED none_failed.WB UPSTREAM_FAILED"
    );
}

const BRANCHES: &str = "
groups: { g: {} }
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  COUNT: { script: 'echo ::output rows=0' }
  SOME: { script: 'true', depends_on: [{ job: COUNT, when: 'rows > 0' }] }
  SOME_MORE: { script: 'true', depends_on: [SOME] }
  NONE: { script: 'true', depends_on: [{ job: COUNT, when: 'rows == 0' }] }
  JOIN: { script: 'true', depends_on: [SOME_MORE, NONE] }
  REPAIR: { script: 'true', depends_on: [{ job: COUNT, when: failure }] }
  TOLD: { script: 'true', depends_on: [{ job: SOME, when: skipped }] }
  AFTER: { script: 'true', depends_on: [{ job: REPAIR, when: done }] }
  IF_TRUE: { script: 'true', depends_on: [JOIN], if: 'COUNT.rows == 0' }
  IF_FALSE: { script: 'true', depends_on: [JOIN], if: 'COUNT.rows != 0' }
  IF_ABSENT: { script: 'true', depends_on: [JOIN], if: 'COUNT.nothing == 0' }
";

async fn a_branch_not_taken_skips_what_hangs_on_it_alone(bench: Bench) {
    let (id, result) = run(&bench, BRANCHES, "202407", "g").await;
    assert_eq!(
        bench.states(id).await,
        "COUNT=SUCCESS SOME=SKIPPED SOME_MORE=SKIPPED NONE=SUCCESS JOIN=SUCCESS REPAIR=SKIPPED \
         TOLD=SUCCESS AFTER=SUCCESS IF_TRUE=SUCCESS IF_FALSE=SKIPPED IF_ABSENT=SKIPPED"
    );
    // A branch that was not taken is as planned as one that was.
    assert_eq!(result, BatchStatus::Success);
    let kinds =
        "SELECT COUNT(*) AS n FROM job_queue WHERE skip_kind = 'branch' AND status = 'SKIPPED'";
    assert_eq!(bench.number(kinds).await, 5);
    assert_eq!(bench.history(id, "SOME_MORE").await, ["SKIPPED#0"]);
}

async fn branches_are_the_same_after_a_crash(bench: Bench) {
    let mut first = bench.process().await;
    let id = open(&mut first, BRANCHES, "202407", "g").await;
    // COUNT has run and nothing else: the process dies between the two.
    while first.running() == 0 {
        first.run_tick().await.expect("beat");
    }
    first.wait_for_report().await;
    drop(first);
    bench.clock.advance(60_000);
    bench.by_hand("UPDATE job_queue SET status = 'SUCCESS', outputs = '{\"values\":{\"rows\":\"0\"}}' WHERE job_code = 'COUNT'").await;
    let mut second = bench.process().await;
    let there = {
        let mut tx = bench.db.begin_read().await.expect("read");
        store::batch::get(&mut tx, id).await.expect("batch")
    };
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    let states = bench.states(id).await;
    assert!(
        states.contains("SOME=SKIPPED SOME_MORE=SKIPPED NONE=SUCCESS JOIN=SUCCESS"),
        "{states}"
    );
}

const QUARTER: &str = "
groups: { month: {}, quarter: {} }
jobs:
  CLOSE: { type: NOOP, group: month }
  REPORT: { type: NOOP, group: month, depends_on: [CLOSE] }
  CONSOLIDATE:
    type: NOOP
    group: quarter
    depends_on: [{ group: month, job: CLOSE, batch: months }]
  PUBLISH: { type: NOOP, group: quarter, depends_on: [CONSOLIDATE, { group: month, batch: months }] }
";

async fn a_quarter_waits_for_its_three_months(bench: Bench) {
    let mut process = bench.process().await;
    let quarter = open(&mut process, QUARTER, "2024Q3", "quarter").await;
    settle(&mut process).await;
    for month in ["202407", "202408"] {
        open(&mut process, QUARTER, month, "month").await;
        settle(&mut process).await;
        assert_eq!(bench.states(quarter).await, "CONSOLIDATE=PENDING PUBLISH=PENDING");
    }
    // A month of another quarter is nothing to it.
    open(&mut process, QUARTER, "202410", "month").await;
    settle(&mut process).await;
    assert_eq!(bench.states(quarter).await, "CONSOLIDATE=PENDING PUBLISH=PENDING");
    // The third comes from another process.
    run(&bench, QUARTER, "202409", "month").await;
    settle(&mut process).await;
    assert_eq!(bench.states(quarter).await, "CONSOLIDATE=SUCCESS PUBLISH=SUCCESS");
    assert_eq!(process.results()[&quarter], BatchStatus::Success);
}

fn own_predecessor(missing: &str) -> String {
    format!(
        "
groups: {{ month: {{}} }}
jobs:
  OPENING: {{ type: NOOP, depends_on: [{{ job: CLOSE, batch: prev, missing: {missing} }}] }}
  CLOSE: {{ type: NOOP, depends_on: [OPENING] }}
"
    )
}

async fn a_batch_that_is_not_there_waits_fails_or_passes(bench: Bench) {
    let (first, _) = run(&bench, &own_predecessor("pass"), "202401", "month").await;
    assert_eq!(bench.states(first).await, "OPENING=SUCCESS CLOSE=SUCCESS");
    let (no_march, result) = run(&bench, &own_predecessor("fail"), "202404", "month").await;
    assert_eq!(bench.states(no_march).await, "OPENING=UPSTREAM_FAILED CLOSE=UPSTREAM_FAILED");
    let said = bench.rows(no_march).await[0].error_message.clone().expect("a reason");
    assert!(said.contains("job CLOSE of group month in batch prev is not there"), "{said}");
    assert_eq!(result, BatchStatus::Failed);

    let mut process = bench.process().await;
    let march = open(&mut process, &own_predecessor("wait"), "202403", "month").await;
    settle(&mut process).await;
    assert_eq!(bench.states(march).await, "OPENING=PENDING CLOSE=PENDING");
    let february = open(&mut process, &own_predecessor("wait"), "202402", "month").await;
    settle(&mut process).await;
    assert_eq!(process.results()[&february], BatchStatus::Success);
    assert_eq!(process.results()[&march], BatchStatus::Success);
}

async fn waiting_has_an_end(bench: Bench) {
    let yaml = "
groups: { month: {} }
jobs:
  OPENING: { type: NOOP, depends_on: [{ job: CLOSE, batch: prev, wait_sec: 60 }] }
  CLOSE: { type: NOOP, depends_on: [OPENING] }
";
    let mut process = bench.process().await;
    let id = open(&mut process, yaml, "202407", "month").await;
    settle(&mut process).await;
    assert_eq!(process.next_wake(), Some(START.plus_ms(60_000)));
    bench.clock.advance(59_999);
    settle(&mut process).await;
    assert_eq!(bench.states(id).await, "OPENING=PENDING CLOSE=PENDING");
    bench.clock.advance(1);
    settle(&mut process).await;
    assert_eq!(bench.states(id).await, "OPENING=UPSTREAM_FAILED CLOSE=UPSTREAM_FAILED");
    let said = bench.rows(id).await[0].error_message.clone().expect("a reason");
    assert!(said.contains("had not ended well after 60 s (wait_sec)"), "{said}");
}

async fn the_latest_batch_up_to_this_one_is_found(bench: Bench) {
    let yaml = "
groups: { rates: {}, use: {} }
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  LOAD: { group: rates, script: 'echo ::output n=1' }
  USE: { group: use, script: 'true', depends_on: [{ group: rates, job: LOAD, batch: latest, when: 'n == 1' }] }
";
    let mut process = bench.process().await;
    let id = open(&mut process, yaml, "20240315", "use").await;
    open(&mut process, yaml, "20240316", "rates").await;
    settle(&mut process).await;
    assert_eq!(bench.states(id).await, "USE=PENDING", "a later one does not count");
    open(&mut process, yaml, "20240310", "rates").await;
    settle(&mut process).await;
    assert_eq!(bench.states(id).await, "USE=SUCCESS");
}

async fn a_failed_batch_that_is_run_again_lets_those_who_wait_go(bench: Bench) {
    let failing = |body: &str| {
        format!(
            "
groups: {{ month: {{}}, quarter: {{}} }}
jobs:
  CLOSE: {{ type: SCRIPT, interpreter: sh, group: month, script: '{body}' }}
  SUM: {{ type: NOOP, group: quarter, depends_on: [{{ group: month, job: CLOSE, batch: '202407' }}] }}
"
        )
    };
    let (month, result) = run(&bench, &failing("exit 1"), "202407", "month").await;
    assert_eq!(result, BatchStatus::Failed);
    let mut process = bench.process().await;
    let quarter = open(&mut process, &failing("exit 1"), "2024Q3", "quarter").await;
    settle(&mut process).await;
    assert_eq!(bench.states(quarter).await, "SUM=PENDING", "a failed batch may be run again");
    let there = {
        let mut tx = bench.db.begin_read().await.expect("read");
        store::batch::get(&mut tx, month).await.expect("batch")
    };
    let latest = defs(&failing("true"));
    process.resume(&there, UnknownJobs::Leave, Some(&latest)).await.expect("resume");
    settle(&mut process).await;
    assert_eq!(bench.states(quarter).await, "SUM=SUCCESS");
}

async fn an_answer_read_before_an_error_is_not_lost(bench: Bench) {
    let yaml = "
groups: { month: {}, sum: {} }
jobs:
  CLOSE: { type: NOOP, group: month }
  A: { type: NOOP, group: sum, depends_on: [{ group: month, batch: '202407' }] }
  B: { type: NOOP, group: sum, depends_on: [{ group: month, job: CLOSE, batch: '202407' }] }
";
    let mut process = bench.process().await;
    let id = open(&mut process, yaml, "2024Q3", "sum").await;
    settle(&mut process).await;
    run(&bench, yaml, "202407", "month").await;
    // The batch of A can be read, the job of B cannot: the look fails between the two.
    bench.by_hand("ALTER TABLE job_queue RENAME TO job_queue_away").await;
    process.look_outside().await.expect_err("no job_queue");
    bench.by_hand("ALTER TABLE job_queue_away RENAME TO job_queue").await;
    settle(&mut process).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS B=SUCCESS");
}

on_each_database! {
    an_answer_read_before_an_error_is_not_lost
    each_trigger_rule_decides_its_job
    a_branch_not_taken_skips_what_hangs_on_it_alone
    branches_are_the_same_after_a_crash
    a_quarter_waits_for_its_three_months
    a_batch_that_is_not_there_waits_fails_or_passes
    waiting_has_an_end
    the_latest_batch_up_to_this_one_is_found
    a_failed_batch_that_is_run_again_lets_those_who_wait_go
}
