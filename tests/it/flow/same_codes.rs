//! Two groups that have jobs of the same codes, under the same batch number.

use crate::flow::dependencies::settle;
use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use crate::util::query;
use procession::domain::action::OperatorAction;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::batch::BatchOrder;
use procession::domain::id::{BatchId, GroupCode, JobCode};
use procession::domain::job::Definition;
use procession::domain::job::job_key::JobKey;
use procession::domain::job::queue::RunMode;
use procession::domain::source::DialectName;
use procession::engine::operate::operator_actions::{self, Command};
use procession::engine::operate::pause;
use procession::store;
use procession::store::audit::Operator;

const FX: &str = "CREATE TABLE fx (job VARCHAR(50))";

/// Groups `a` and `b` with the same two codes; `X` in the text is the group.
fn both(text: &str) -> Definition {
    let jobs = ["a", "b"].map(|group| text.replace('X', group)).concat();
    defs(&format!("groups: {{ a: {{}}, b: {{}} }}\njobs:\n{jobs}"))
}

async fn open(
    bench: &Bench,
    defs: &Definition,
) -> (procession::engine::dispatch::dispatcher::QueueDispatcher, [BatchId; 2]) {
    let mut process = bench.process().await;
    let mut ids = Vec::new();
    for group in ["a", "b"] {
        let text = format!(r#"{{"batchNo":"202407","group":"{group}"}}"#);
        let order = BatchOrder::parse(&text).expect("order");
        ids.extend(process.open_batches(defs, &order, "test").await.expect("open"));
    }
    (process, [ids[0], ids[1]])
}

async fn effects(bench: &Bench) -> Vec<String> {
    let rows = query(&bench.url, "SELECT job FROM fx ORDER BY job").await;
    rows.into_iter().filter_map(|row| row[0].clone()).collect()
}

fn by() -> Operator {
    Operator::new("li".to_owned(), "desk".to_owned())
}

async fn act(bench: &Bench, id: BatchId, action: OperatorAction, job: &str) {
    let (jobs, by) = ([JobCode::parse(job).expect("code")], by());
    let command = Command { batch: id, action, jobs: &jobs, latest: None, by: &by, reason: "test" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await.expect("look");
    operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await.expect("act");
}

/// Each body takes effect in its own group, also again after a rerun of one of them.
async fn each_group_has_its_own_effect(bench: Bench, tx: &str) {
    bench.by_hand(FX).await;
    let jobs = format!(
        "  - {{ code: LOAD, group: X, type: SQL, source: s, tx: {tx}, sql: \"INSERT INTO fx VALUES ('X')\" }}\n  \
         - {{ code: END, group: X, type: NOOP, depends_on: [LOAD] }}\n"
    );
    let jobs = ["a", "b"].map(|group| jobs.replace('X', group)).concat();
    let url = &bench.url;
    let text = format!(
        "sources: {{ s: {{ url: '{url}' }} }}\ngroups: {{ a: {{}}, b: {{}} }}\njobs:\n{jobs}"
    );
    let (mut process, [a, b]) = open(&bench, &defs(&text)).await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(a).await, "LOAD=SUCCESS END=SUCCESS");
    assert_eq!(bench.states(b).await, "LOAD=SUCCESS END=SUCCESS");
    assert_eq!(effects(&bench).await, ["a", "b"]);
    let keys = "SELECT COUNT(*) AS n FROM procession_ledger WHERE state = 'done'";
    assert_eq!(bench.number(keys).await, 2);
    act(&bench, b, OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave), "b.LOAD").await;
    let mut process = bench.process().await;
    let there = bench.batch("b").await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut process).await;
    assert_eq!(effects(&bench).await, ["a", "b", "b"], "a rerun is of one group");
}

async fn ledger_jobs_take_effect_in_both_groups(bench: Bench) {
    each_group_has_its_own_effect(bench, "ledger").await;
}

async fn same_jobs_take_effect_in_both_groups(bench: Bench) {
    each_group_has_its_own_effect(bench, "same").await;
}

/// A batch that was opened before migration 19 keeps the key of its rows, under which the ledger knows what they did.
async fn a_row_of_an_earlier_version_keeps_its_key(bench: Bench) {
    bench.by_hand(FX).await;
    let url = &bench.url;
    let text = format!(
        "sources: {{ s: {{ url: '{url}' }} }}\njobs:\n  LOAD: {{ type: SQL, source: s, tx: ledger, \
         sql: \"INSERT INTO fx VALUES ('again')\" }}\n"
    );
    let mut process = bench.process().await;
    let id = process.open_batches(&defs(&text), &order(), "test").await.expect("open")[0];
    drop(process);
    bench.by_hand("UPDATE job_queue SET key_has_group = 0").await;
    let mut tx = bench.db.begin_read().await.expect("read");
    let installation = store::installation(&mut tx).await.expect("read").expect("a name");
    drop(tx);
    // What the earlier version did, and did not live to see.
    bench
        .by_hand(&format!(
            "INSERT INTO procession_ledger (idem_key, state, batch_no, job_code, attempt, opened_at) VALUES \
             ('{installation}/202407/LOAD/1', 'done', '202407', 'LOAD', 1, '2024-08-01 00:00:00')"
        ))
        .await;
    bench.clock.advance(16_000);
    let there = bench.batch("default").await;
    let mut process = bench.process().await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "LOAD=SUCCESS");
    assert!(effects(&bench).await.is_empty(), "it was done already");
}

/// A retry, a kill and a failure of one group leave the other alone; `b` waits for a job of `a` by its full name.
async fn states_are_kept_apart(bench: Bench) {
    let text = "groups: { a: {}, b: {} }
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  - { code: LOAD, group: a, script: 'exit 3', retry_count: 1 }
  - { code: POST, group: a, type: NOOP, depends_on: [LOAD] }
  - { code: OTHER, group: a, type: NOOP }
  - { code: LOAD, group: b, script: 'exit 0', depends_on: [a.OTHER] }
  - { code: POST, group: b, type: NOOP, depends_on: [LOAD] }
";
    let (mut process, [a, b]) = open(&bench, &defs(text)).await;
    settle(&mut process).await;
    assert_eq!(bench.states(a).await, "LOAD=FAILED POST=UPSTREAM_FAILED OTHER=SUCCESS");
    assert_eq!(bench.states(b).await, "LOAD=SUCCESS POST=SUCCESS");
    assert_eq!(bench.history(a, "LOAD").await.len(), 4);
    assert_eq!(bench.history(b, "LOAD").await, ["RUNNING#1", "SUCCESS#1"]);
    act(&bench, a, OperatorAction::ForceSuccess, "LOAD").await;
    assert_eq!(bench.states(b).await, "LOAD=SUCCESS POST=SUCCESS");
}

/// What operators want with a job in every batch is of one group, and on record there.
async fn a_run_mode_is_of_one_group(bench: Bench) {
    let defs = both(
        "  - { code: LOAD, group: X, type: NOOP }\n  - { code: POST, group: X, type: NOOP }\n",
    );
    bench.apply(&defs).await;
    let group = GroupCode::parse("a").expect("group");
    let keys = [JobKey { group, code: JobCode::parse("LOAD").expect("code") }];
    let (by, now) = (by(), bench.clock.now());
    let gone = pause::set_standing(&bench.db, &keys, Some(RunMode::Ice), &by, "test", now);
    assert!(gone.await.expect("set").is_empty());
    let (mut process, [a, b]) = open(&bench, &defs).await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(a).await, "LOAD=SKIPPED POST=SUCCESS");
    assert_eq!(bench.states(b).await, "LOAD=SUCCESS POST=SUCCESS");
    let record = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'ice' AND group_code = 'a' AND job_code = 'LOAD'";
    assert_eq!(bench.number(record).await, 1);
}

on_each_database! {
    ledger_jobs_take_effect_in_both_groups
    same_jobs_take_effect_in_both_groups
    a_row_of_an_earlier_version_keeps_its_key
    states_are_kept_apart
    a_run_mode_is_of_one_group
}
