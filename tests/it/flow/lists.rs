//! Fan-out: lists that are written down, given with the batch, or found by a job above.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use std::collections::BTreeMap;

const LISTED: &str = "
defaults: { type: SCRIPT, interpreter: sh }
groups: { g: { params: { none: '' } } }
jobs:
  FIRST: { type: NOOP }
  LOAD:
    depends_on: [FIRST]
    for_each: [SH, 'BJ east', GZ]
    script: 'test \"$PROCESSION_PARAM_BRANCH\" != SH'
    params: [{ name: branch, value: '${item}' }]
  BELOW: { type: NOOP, depends_on: [LOAD] }
  CLEAN:
    depends_on: [{ job: LOAD, when: failure }]
    script: 'test \"$PROCESSION_PARAM_ALL/$PROCESSION_PARAM_BAD\" = \"SH,BJ east,GZ/SH\"'
    params: [{ name: all, value: '${jobs.LOAD.items}' }, { name: bad, value: '${jobs.LOAD.failed}' }]
  NOTHING: { for_each: { param: none }, script: 'exit 1' }
";

async fn a_list_makes_jobs_when_the_batch_is_opened(bench: Bench) {
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(LISTED), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let states = "FIRST=SUCCESS LOAD=FAILED BELOW=UPSTREAM_FAILED CLEAN=SUCCESS NOTHING=SUCCESS \
                  LOAD.SH=FAILED LOAD.BJ_east=SUCCESS LOAD.GZ=SUCCESS";
    assert_eq!(bench.states(ids[0]).await, states);
    let said = bench.rows(ids[0]).await[1].error_message.clone();
    assert_eq!(said.as_deref(), Some("1 of 3 items did not end well: SH (FAILED)"));
    let nothing = bench.outputs(ids[0], "NOTHING").await;
    assert_eq!(
        (nothing.value("items").as_deref(), nothing.value("count").as_deref()),
        (Some(""), Some("0"))
    );
    // From its failure, with a mended body: the failed item, the milestone and what hangs below it.
    let mended = defs(&LISTED.replace("!= SH", "!= X"));
    let there = bench.batch("g").await;
    let resumed = process.resume(&there, UnknownJobs::Leave, Some(&mended)).await.expect("resume");
    let again: Vec<&str> = resumed.again.iter().map(|c| c.as_str()).collect();
    assert_eq!(again, ["LOAD", "BELOW", "LOAD.SH"]);
    finish(&bench, &mut process).await;
    let rows = bench.rows(ids[0]).await;
    let starts: Vec<u32> = rows.iter().map(|r| r.attempt).collect();
    assert_eq!(starts, [1, 2, 1, 1, 1, 2, 1, 1]);
    assert_eq!((rows[1].status, rows[2].status), (QueueStatus::Success, QueueStatus::Success));
}

async fn lists_that_cannot_be_are_refused_before_anything_is_written(bench: Bench) {
    let mut process = bench.process().await;
    let text = "jobs: { LOAD: { type: NOOP, for_each: { param: branches } } }";
    let refused = process.open_batches(&defs(text), &order(), "test").await.expect_err("no value");
    assert!(refused.to_string().contains("--param branches=A,B"), "{refused}");
    let given = |list: &str| {
        let mut order = order();
        order.params.insert("branches".to_owned(), list.to_owned());
        order
    };
    let refused =
        process.open_batches(&defs(text), &given("A,B,A"), "test").await.expect_err("twice");
    assert!(refused.to_string().contains("list each item once"), "{refused}");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 0);
    let ids = process.open_batches(&defs(text), &given("A, B"), "test").await.expect("open");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "LOAD=SUCCESS LOAD.A=SUCCESS LOAD.B=SUCCESS");
}

/// FIND says which branches there are; every body leaves a mark.
fn found(folder: &str) -> String {
    format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  FIND: {{ script: 'echo ::output branches=SH,BJ; echo FIND $PROCESSION_ATTEMPT >> {folder}/ran' }}
  OTHER: {{ type: NOOP }}
  LOAD:
    depends_on: [FIND, OTHER]
    for_each: {{ output: FIND.branches, max_parallel: 1 }}
    script: 'echo $PROCESSION_PARAM_BRANCH $PROCESSION_ATTEMPT >> {folder}/ran'
    params: [{{ name: branch, value: '${{item}}' }}]
  END: {{ type: NOOP, depends_on: [LOAD] }}
"
    )
}

async fn a_list_that_a_job_finds_survives_a_kill_between_any_two_beats(bench: Bench) {
    for beats in 0..40 {
        let folder = tempfile::tempdir().expect("folder");
        let no = format!(r#"{{"batchNo":"kill-{beats}"}}"#);
        let defs = defs(&found(&folder.path().display().to_string()));
        let order = BatchOrder::parse(&no).expect("order");
        let mut first = bench.process().await;
        let ids = first.open_batches(&defs, &order, "test").await.expect("open");
        let mut was_open = true;
        for _ in 0..beats {
            was_open = !first.is_idle();
            if was_open && !first.run_tick().await.expect("beat") {
                first.wait_for_report().await;
            }
        }
        drop(first);
        if !was_open {
            assert!(beats > 4, "a list takes some beats");
            return;
        }
        bench.clock.advance(16_000);
        let mut second = bench.process().await;
        let there = bench.batch_of(&format!("kill-{beats}"), "default").await.expect("the batch");
        if !there.status.is_final() {
            second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
            finish(&bench, &mut second).await;
            assert_eq!(second.results()[&ids[0]], BatchStatus::Success, "killed after {beats}");
        }
        let states =
            "FIND=SUCCESS OTHER=SUCCESS LOAD=SUCCESS END=SUCCESS LOAD.SH=SUCCESS LOAD.BJ=SUCCESS";
        assert_eq!(bench.states(ids[0]).await, states, "killed after {beats} beats");
        let text = std::fs::read_to_string(folder.path().join("ran")).expect("marks");
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        text.lines().for_each(|line| *seen.entry(line).or_default() += 1);
        assert!(seen.values().all(|times| *times == 1), "killed after {beats} beats: {seen:?}");
    }
    panic!("the batch never ended within 40 beats, so the last beats were not tried");
}

/// The list is made in a transaction of its own; when that fails, nothing of it is there, and it is
/// made when the database is well again.
async fn a_list_is_made_whole_or_not_at_all(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&found(&folder.path().display().to_string()));
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    bench.by_hand("ALTER TABLE job_batch RENAME COLUMN snapshot TO away").await;
    while bench.rows(ids[0]).await[0].status != QueueStatus::Success {
        // The beat that settles FIND fails only where it goes on to make the list.
        if !process.run_tick().await.unwrap_or(true) {
            process.wait_for_report().await;
        }
    }
    process.run_tick().await.expect_err("a column is away");
    assert_eq!(bench.rows(ids[0]).await.len(), 4);
    bench.by_hand("ALTER TABLE job_batch RENAME COLUMN away TO snapshot").await;
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    assert_eq!(bench.rows(ids[0]).await.len(), 6);
}

async fn a_list_that_cannot_be_made_fails_its_job(bench: Bench) {
    for (line, said) in [
        ("branches=SH,SH", "list each item once"),
        ("brunches=SH", "for_each: job FIND: there is no output named branches"),
        ("nothing-at-all", "for_each: job FIND: there is no output named branches"),
    ] {
        let folder = tempfile::tempdir().expect("folder");
        let text = found(&folder.path().display().to_string()).replace("branches=SH,BJ", line);
        let no = format!(r#"{{"batchNo":"{}"}}"#, line.replace([',', '='], "-"));
        let mut process = bench.process().await;
        let order = BatchOrder::parse(&no).expect("order");
        let ids = process.open_batches(&defs(&text), &order, "test").await.expect("open");
        finish(&bench, &mut process).await;
        let states = "FIND=SUCCESS OTHER=SUCCESS LOAD=FAILED END=UPSTREAM_FAILED";
        assert_eq!(bench.states(ids[0]).await, states);
        let why = bench.rows(ids[0]).await[2].error_message.clone().expect("why");
        assert!(why.contains(said), "{why}");
    }
}

async fn a_query_lists_its_rows_and_none_is_a_list_too(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let url = format!("sqlite:{}", folder.path().join("s.db").display());
    crate::util::query(&url, "CREATE TABLE branch (code VARCHAR(9), open INT)").await;
    crate::util::query(&url, "INSERT INTO branch VALUES ('SH', 1), ('BJ,2', 1), ('GZ', 0)").await;
    let text = format!(
        "
sources: {{ s: {{ url: '{url}' }} }}
jobs:
  OPEN: {{ type: SQL, sql: SELECT code FROM branch WHERE open = 1 ORDER BY code DESC }}
  NONE: {{ type: SQL, sql: SELECT code FROM branch WHERE open = 7 }}
  EACH: {{ type: NOOP, depends_on: [OPEN], for_each: {{ output: OPEN.code }} }}
  ZERO: {{ type: NOOP, depends_on: [NONE], for_each: {{ output: NONE.code }} }}
"
    );
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&text), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let states =
        "OPEN=SUCCESS NONE=SUCCESS EACH=SUCCESS ZERO=SUCCESS EACH.SH=SUCCESS EACH.BJ_2=SUCCESS";
    assert_eq!(bench.states(ids[0]).await, states);
    let count = bench.outputs(ids[0], "ZERO").await.value("count");
    assert_eq!(count.as_deref(), Some("0"));
}

/// A job of another group may have the code that an item makes.
async fn an_item_may_have_the_code_of_a_job_of_another_group(bench: Bench) {
    let mut process = bench.process().await;
    let other = "groups: { other: {} }\njobs: { LOAD.SH: { type: NOOP } }";
    process.open_batches(&defs(other), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let folder = tempfile::tempdir().expect("folder");
    let text = found(&folder.path().display().to_string());
    let ids = process.open_batches(&defs(&text), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let row = &bench.rows(ids[0]).await[2];
    assert_eq!(row.status, QueueStatus::Success);
    let same =
        "SELECT COUNT(*) AS n FROM job_queue WHERE job_code = 'LOAD.SH' AND status = 'SUCCESS'";
    assert_eq!(bench.number(same).await, 2);
}

on_each_database! {
    a_list_makes_jobs_when_the_batch_is_opened
    lists_that_cannot_be_are_refused_before_anything_is_written
    a_list_that_a_job_finds_survives_a_kill_between_any_two_beats
    a_list_is_made_whole_or_not_at_all
    a_list_that_cannot_be_made_fails_its_job
    a_query_lists_its_rows_and_none_is_a_list_too
    an_item_may_have_the_code_of_a_job_of_another_group
}
