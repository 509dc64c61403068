//! Classes `same` and `ledger` in whole batches: whatever dies whenever, each job's effect is there
//! exactly once. The table `fx` has no unique key, because it is to count and not to prevent.

use crate::flow::{Bench, defs, finish, on, on_each_database};
use crate::util::{query, session};
use procession::domain::action::OperatorAction;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::batch::{Batch, BatchOrder, BatchStatus};
use procession::domain::id::{BatchId, JobCode};
use procession::domain::job::Definition;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::domain::source::tx_class::TxClass;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::operator_actions::{self, Command};
use procession::store;
use procession::store::audit::Operator;
use std::time::Duration;

const FX: &str = "CREATE TABLE fx (no VARCHAR(50), job VARCHAR(50))";

/// Jobs on the bench's own database, all of one class. `{no}` is the batch number.
fn jobs(bench: &Bench, tx: TxClass, yaml: &str, no: &str) -> Definition {
    let head = format!("sources: {{ here: {{ url: \"{}\" }} }}\n", bench.url);
    let mut defs = defs(&(head + &yaml.replace("{no}", no)));
    let on_source = defs.jobs.iter_mut().filter(|job| job.source.is_some());
    on_source.for_each(|job| job.tx = tx);
    defs
}

/// A diamond.
const DIAMOND: &str = "
defaults: { type: SQL, source: here }
jobs:
  A: { sql: \"INSERT INTO fx VALUES ('{no}', 'A')\" }
  B: { depends_on: [A], sql: \"INSERT INTO fx VALUES ('{no}', 'B')\" }
  C: { depends_on: [A], sql: \"INSERT INTO fx VALUES ('{no}', 'C')\" }
  D: { depends_on: [B, C], sql: \"INSERT INTO fx VALUES ('{no}', 'D')\" }
";

const ONE: &str = "
jobs:
  A: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'A')\" }
  END: { type: NOOP, depends_on: [A] }
";

fn order(no: &str) -> BatchOrder {
    BatchOrder::parse(&format!(r#"{{"batchNo":"{no}"}}"#)).expect("order")
}

async fn opened(bench: &Bench, defs: &Definition, no: &str) -> (QueueDispatcher, BatchId) {
    let mut process = bench.process().await;
    let ids = process.open_batches(defs, &order(no), "test").await.expect("open");
    (process, ids[0])
}

async fn batch(bench: &Bench, id: BatchId) -> Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

/// Another process goes on with it to its end.
async fn carried(bench: &Bench, id: BatchId, unknown: UnknownJobs) -> BatchStatus {
    let mut process = bench.process().await;
    process.resume(&batch(bench, id).await, unknown, None).await.expect("resume");
    finish(bench, &mut process).await;
    process.results()[&id]
}

async fn rerun(bench: &Bench, id: BatchId, job: &str, unknown: UnknownJobs) {
    let by = Operator::new("li".to_owned(), "desk".to_owned());
    let jobs = [JobCode::parse(job).expect("code")];
    let action = OperatorAction::Rerun(RerunScope::These, unknown);
    let command =
        Command { batch: id, action, jobs: &jobs, latest: None, by: &by, reason: "again" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await.expect("look");
    operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await.expect("act");
}

/// `A1 B1`: how often each job took effect.
async fn effects(bench: &Bench, no: &str) -> String {
    let sql =
        format!("SELECT CONCAT(job, COUNT(*)) FROM fx WHERE no = '{no}' GROUP BY job ORDER BY job");
    let sql = if bench.url.starts_with("sqlite") {
        sql.replace("CONCAT(job, COUNT(*))", "job || COUNT(*)")
    } else {
        sql
    };
    let rows = query(&bench.url, &sql).await;
    let words: Vec<String> = rows.into_iter().filter_map(|r| r[0].clone()).collect();
    words.join(" ")
}

async fn died_at_any_beat(bench: &Bench, tx: TxClass) {
    bench.by_hand(FX).await;
    let mut ended = None;
    for beats in 0..40 {
        let no = format!("kill-{beats}");
        let (mut first, id) = opened(bench, &jobs(bench, tx, DIAMOND, &no), &no).await;
        for _ in 0..beats {
            if !first.is_idle() && !first.run_tick().await.expect("beat") {
                first.wait_for_report().await;
            }
        }
        let was_open = !first.is_idle();
        // Its bodies are not told: they go on beside those of the next process.
        drop(first);
        if !was_open {
            ended = Some(beats);
            break;
        }
        bench.clock.advance(16_000);
        let result = carried(bench, id, UnknownJobs::Leave).await;
        let states = bench.states(id).await;
        assert_eq!(result, BatchStatus::Success, "killed after {beats} beats: {states}");
        assert_eq!(effects(bench, &no).await, "A1 B1 C1 D1", "killed after {beats} beats");
    }
    let ended = ended.expect("the batch ends within 40 beats");
    assert!(ended > 4, "too few places to die at");
    for beats in 0..=ended {
        let no = format!("kill-{beats}");
        assert_eq!(effects(bench, &no).await, "A1 B1 C1 D1", "an orphan came late in {no}");
    }
}

async fn ledger_jobs_take_effect_once_wherever_the_process_dies(bench: Bench) {
    died_at_any_beat(&bench, TxClass::Ledger).await;
}

async fn same_jobs_take_effect_once_wherever_the_process_dies(bench: Bench) {
    died_at_any_beat(&bench, TxClass::Same).await;
}

/// The row of a `same` job is written by its body, and looks as if the dispatcher had written it.
async fn a_same_job_ends_its_row_with_its_effect(bench: Bench) {
    bench.by_hand(FX).await;
    let yaml = "
jobs:
  A: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'A'); SELECT 7 AS n\" }
  WARN: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'WARN')\",
          success: [{ rule: rows_affected > 1, else: warning }] }
  NO: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'NO')\",
        success: [rows_affected > 1] }
  LATER: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'LATER')\",
           checks: [{ name: some, sql: SELECT COUNT(*) FROM fx, expect: { between: [1, 9] } }] }
  TOLD: { type: SCRIPT, interpreter: sh, depends_on: [A], params: [{ name: n, value: '${jobs.A.n}' }],
          script: 'test \"$PROCESSION_PARAM_N\" = 7' }
";
    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::Same, yaml, "1"), "1").await;
    bench.clock.advance(250);
    finish(&bench, &mut process).await;
    let states = bench.states(id).await;
    assert_eq!(states, "A=SUCCESS WARN=WARNING NO=FAILED LATER=SUCCESS TOLD=SUCCESS");
    assert_eq!(effects(&bench, "1").await, "A1 LATER1 WARN1");
    assert_eq!(bench.outputs(id, "A").await.value("n").as_deref(), Some("7"));
    for row in bench.rows(id).await {
        let code = row.job_code.as_str();
        assert!(row.end_time == Some(bench.clock.now()), "{row:?}");
        let history = bench.history(id, code).await;
        assert_eq!(history, ["RUNNING#1".to_owned(), format!("{}#1", row.status)], "{code}");
    }
    let rows = bench.rows(id).await;
    let warned = rows.iter().find(|r| r.job_code.as_str() == "WARN").expect("WARN");
    assert!(warned.error_message.as_ref().is_some_and(|m| m.contains("does not hold")));
    // The time of the body's own rows is written as all others are.
    let kinds = "SELECT COUNT(DISTINCT log_time) AS n FROM job_execution_logs WHERE status IN \
                 ('SUCCESS', 'WARNING', 'FAILED')";
    assert_eq!(bench.number(kinds).await, 1);
    let ledger = "SELECT COUNT(*) AS n FROM procession_ledger WHERE state = 'done'";
    assert_eq!(bench.number(ledger).await, 3);
    let lines = "SELECT COUNT(DISTINCT queue_id) AS n FROM job_log_line WHERE line_text LIKE \
                 'statement 1%'";
    assert_eq!(bench.number(lines).await, 4, "their lines are kept too");
}

/// The process dies between the commit of the body and the beat that would have taken it in.
async fn a_same_job_that_ended_unseen_is_not_run_again(bench: Bench) {
    bench.by_hand(FX).await;
    let (mut first, id) = opened(&bench, &jobs(&bench, TxClass::Same, ONE, "1"), "1").await;
    first.run_tick().await.expect("beat");
    for _ in 0..400 {
        if bench.rows(id).await[0].status == QueueStatus::Success {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(bench.states(id).await, "A=SUCCESS END=PENDING");
    drop(first);
    bench.clock.advance(16_000);
    assert_eq!(carried(&bench, id, UnknownJobs::Leave).await, BatchStatus::Success);
    assert_eq!(effects(&bench, "1").await, "A1");
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"]);
}

/// Its memory is read anew at that moment: the batch is not closed under the body's report.
async fn a_same_job_that_ended_unseen_is_awaited_after_memory_is_read_anew(bench: Bench) {
    bench.by_hand(FX).await;
    let yaml =
        "jobs:\n  A: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'A')\" }\n";
    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::Same, yaml, "1"), "1").await;
    process.run_tick().await.expect("beat");
    for _ in 0..400 {
        if bench.rows(id).await[0].status == QueueStatus::Success {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&id], BatchStatus::Success);
    assert_eq!(process.running(), 0);
    let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE 'statement 1%'";
    assert_eq!(bench.number(lines).await, 1, "its lines came with its report");
}

/// A run that is known to have ended well has another key when it is started over; one whose outcome
/// is not known is found by the key it had.
async fn a_rerun_runs_again_and_an_unknown_one_is_looked_up(bench: Bench) {
    bench.by_hand(FX).await;
    let (mut first, id) = opened(&bench, &jobs(&bench, TxClass::Ledger, ONE, "1"), "1").await;
    finish(&bench, &mut first).await;
    assert_eq!(effects(&bench, "1").await, "A1");
    rerun(&bench, id, "A", UnknownJobs::Leave).await;
    assert_eq!(carried(&bench, id, UnknownJobs::Leave).await, BatchStatus::Success);
    assert_eq!(effects(&bench, "1").await, "A2");
    let keys = "SELECT COUNT(*) AS n FROM procession_ledger WHERE state = 'done'";
    assert_eq!(bench.number(keys).await, 2);
    bench.by_hand("UPDATE job_queue SET status = 'UNKNOWN' WHERE job_code = 'A'").await;
    rerun(&bench, id, "A", UnknownJobs::Rerun).await;
    assert_eq!(carried(&bench, id, UnknownJobs::Leave).await, BatchStatus::Success);
    assert_eq!(effects(&bench, "1").await, "A2", "what it did was found by its key");
    assert_eq!(bench.number(keys).await, 2);
}

/// Its task had begun by then, to get its session ready (ADR 25): it is as if it had never been.
async fn a_claim_that_is_refused_starts_nothing(bench: Bench) {
    bench.by_hand(FX).await;
    for (no, tx) in ["1", "2", "3"].into_iter().zip(TxClass::ALL) {
        let (mut process, id) = opened(&bench, &jobs(&bench, tx, ONE, no), no).await;
        bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
        let refused = process.run_tick().await.expect_err("an operator was there before");
        assert_eq!(bench.states(id).await, "A=PENDING END=PENDING", "{refused:#}");
        assert_eq!(process.running(), 0, "{tx:?}");
        // Nothing is ever heard of it.
        let heard =
            tokio::time::timeout(Duration::from_millis(100), process.wait_for_report()).await;
        assert!(heard.is_err(), "{tx:?}");
        finish(&bench, &mut process).await;
        assert_eq!(process.results()[&id], BatchStatus::Success, "{tx:?}");
        assert_eq!(effects(&bench, no).await, "A1", "{tx:?}");
        assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"], "{tx:?}");
        let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE 'connected to %'";
        assert_eq!(bench.number(lines).await.to_string(), no, "lines of its own try alone");
    }
}

on_each_database! {
    a_claim_that_is_refused_starts_nothing
    ledger_jobs_take_effect_once_wherever_the_process_dies
    same_jobs_take_effect_once_wherever_the_process_dies
    a_same_job_ends_its_row_with_its_effect
    a_same_job_that_ended_unseen_is_not_run_again
    a_same_job_that_ended_unseen_is_awaited_after_memory_is_read_anew
    a_rerun_runs_again_and_an_unknown_one_is_looked_up
}

/// The row is given to another start while the body runs: its effect is undone with its claim.
async fn a_same_job_whose_row_was_taken_keeps_nothing(bench: Bench) {
    bench.by_hand(FX).await;
    bench.by_hand("CREATE TABLE gate (n INT)").await;
    bench.by_hand("INSERT INTO gate VALUES (0)").await;
    let yaml = "
jobs:
  A: { type: SQL, source: here, sql: \"INSERT INTO fx VALUES ('{no}', 'A'); UPDATE gate SET n = 1\" }
";
    let mut keeper = session(&bench.url).await;
    keeper.begin().await.expect("begin");
    keeper.run_statement("UPDATE gate SET n = 9", &[]).await.expect("lock the gate");
    let (mut stale, id) = opened(&bench, &jobs(&bench, TxClass::Same, yaml, "1"), "1").await;
    stale.run_tick().await.expect("beat");
    let waits = if bench.url.starts_with("mysql") {
        "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE \
         'UPDATE gate%'"
    } else {
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
         wait_event_type = 'Lock' AND query LIKE 'UPDATE gate%'"
    };
    for _ in 0..400 {
        if query(&bench.url, waits).await[0][0].as_deref() == Some("1") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    bench.by_hand("UPDATE job_queue SET attempt = 2, owner = 'another'").await;
    keeper.run_statement("COMMIT", &[]).await.expect("open the gate");
    stale.wait_for_report().await;
    let row = bench.rows(id).await.remove(0);
    assert_eq!((row.status, row.attempt), (QueueStatus::Running, 2), "not the late one's to end");
    assert_eq!(effects(&bench, "1").await, "");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM procession_ledger").await, 0);
}

/// A procedure that says COMMIT.
async fn make_one_that_commits(bench: &Bench) {
    let make = if bench.url.starts_with("mysql") {
        "CREATE PROCEDURE sp () BEGIN INSERT INTO fx VALUES ('x', 'A'); COMMIT; END"
    } else {
        "CREATE PROCEDURE sp () LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fx VALUES ('x', 'A'); \
         COMMIT; END $$"
    };
    query(&bench.url, make).await;
}

/// A procedure that commits by itself: caught once, marked with its owners told, refused afterwards
/// until somebody trusts it.
async fn a_job_that_commits_by_itself_is_marked_and_refused(bench: Bench) {
    bench.by_hand(FX).await;
    let is_mysql = bench.url.starts_with("mysql");
    make_one_that_commits(&bench).await;
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs:
  A: { type: PROC, source: here, proc_name: sp, retry_count: 3 }
";
    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::Ledger, yaml, "1"), "1").await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, if is_mysql { "A=WARNING" } else { "A=FAILED" });
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM tx_breach WHERE job_code = 'A'").await, 1);
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'tx_breach'";
    assert_eq!(bench.number(told).await, 1);
    let count = effects(&bench, "x").await;

    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::Ledger, yaml, "2"), "2").await;
    finish(&bench, &mut process).await;
    let row = bench.rows(id).await.remove(0);
    assert_eq!((row.status, row.attempt), (QueueStatus::Failed, 1), "refused, and not tried again");
    let said = row.error_message.unwrap_or_default();
    assert!(said.contains("was caught committing by itself in batch 1 (try 1"), "{said}");
    assert!(said.contains("procession job trust g.A --reason"), "{said}");
    assert_eq!(effects(&bench, "x").await, count);

    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::None, yaml, "3"), "3").await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS", "class none may commit");
}

/// The commit that puts the mark on record claims the next: that one is refused as well.
async fn a_mark_stops_what_its_own_commit_claims(bench: Bench) {
    bench.by_hand(FX).await;
    make_one_that_commits(&bench).await;
    let yaml = "
groups: { g: { max_parallel: 1 } }
jobs:
  A: { type: PROC, source: here, proc_name: sp }
";
    let defs = jobs(&bench, TxClass::Ledger, yaml, "1");
    let (mut process, first) = opened(&bench, &defs, "1").await;
    let second = process.open_batches(&defs, &order("2"), "test").await.expect("open")[0];
    finish(&bench, &mut process).await;
    let marked = bench.rows(first).await.remove(0);
    assert!(matches!(marked.status, QueueStatus::Warning | QueueStatus::Failed), "{marked:?}");
    let refused = bench.rows(second).await.remove(0);
    let said = refused.error_message.unwrap_or_default();
    assert!(said.contains("was caught committing by itself in batch 1 (try 1"), "{said}");
}

/// The connection breaks in the middle: no try is charged, and the next one knows.
async fn a_lost_connection_costs_no_try(bench: Bench) {
    bench.by_hand(FX).await;
    let is_mysql = bench.url.starts_with("mysql");
    let kill = if is_mysql {
        "INSERT INTO fx VALUES ('{no}', 'A'); KILL CONNECTION_ID()"
    } else {
        "INSERT INTO fx VALUES ('{no}', 'A'); SELECT pg_terminate_backend(pg_backend_pid())"
    };
    let yaml = format!("jobs:\n  A: {{ type: SQL, source: here, sql: \"{kill}\" }}\n");
    let (mut process, id) = opened(&bench, &jobs(&bench, TxClass::Same, &yaml, "1"), "1").await;
    for _ in 0..1_000 {
        if bench.rows(id).await[0].attempt == 3 {
            break;
        }
        if !process.run_tick().await.expect("beat") {
            match process.next_wake() {
                Some(at) if process.running() == 0 => {
                    bench.clock.advance(at.since(bench.clock.now()))
                }
                _ => process.wait_for_report().await,
            }
        }
    }
    let row = bench.rows(id).await.remove(0);
    assert_eq!((row.attempt, row.try_count, row.unresolved), (3, 0, 2), "{row:?}");
    assert_eq!(effects(&bench, "1").await, "");
}

/// What needs a server.
macro_rules! on_each_server {
    ($($name:ident)*) => {
        mod mariadb_only { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Mysql, super::$name).await;
        })* }
        mod postgres_only { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Postgres, super::$name).await;
        })* }
    };
}

on_each_server! {
    a_same_job_whose_row_was_taken_keeps_nothing
    a_job_that_commits_by_itself_is_marked_and_refused
    a_mark_stops_what_its_own_commit_claims
    a_lost_connection_costs_no_try
}
