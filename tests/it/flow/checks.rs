//! Success rules and checks on the real engine: grades, retries, mails, drift from batch to batch.

use crate::flow::{Bench, defs, finish, on, on_each_database};
use crate::util::{Scratch, with_scratch};
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::id::BatchId;
use procession::domain::job::outcome::JobOutputs;
use procession::domain::source::DialectName;
use procession::store;

async fn run(bench: &Bench, yaml: &str, batch_no: &str) -> (BatchId, BatchStatus) {
    let order = BatchOrder::parse(&format!(r#"{{"batchNo":"{batch_no}"}}"#)).expect("order");
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order, "test").await.expect("open");
    finish(bench, &mut process).await;
    (ids[0], process.results()[&ids[0]])
}

async fn outputs(bench: &Bench, id: BatchId, code: &str) -> JobOutputs {
    let rows = bench.rows(id).await;
    let row = rows.iter().find(|r| r.job_code.as_str() == code).expect("job");
    let mut tx = bench.db.begin_read().await.expect("read");
    let found = store::queue::outputs(&mut tx, &[row.queue_id]).await.expect("outputs");
    serde_json::from_str(&found[0].1).expect("JSON")
}

async fn message(bench: &Bench, id: BatchId, code: &str) -> String {
    let rows = bench.rows(id).await;
    let row = rows.into_iter().find(|r| r.job_code.as_str() == code).expect("job");
    row.error_message.unwrap_or_default()
}

/// A ledger of its own, on SQLite: what is tested here is the engine on each metadata database.
async fn ledger(test: impl AsyncFnOnce(&Scratch)) {
    with_scratch(DialectName::Sqlite, |db| async move { test(&db).await }).await;
}

async fn grades_make_states_and_a_warning_lets_children_run(bench: Bench) {
    ledger(async |db| {
        let yaml = format!(
            "
sources: {{ ledger: {{ url: '{}' }} }}
groups: {{ g: {{ notify_email: [ops@bank.example] }} }}
defaults: {{ type: SQL, retry_count: 2, retry_delay_sec: 60 }}
jobs:
  FINE: {{ sql: SELECT 1 AS n, checks: {{ one: {{ sql: SELECT 1, expect: {{ between: [1, 1] }} }} }} }}
  ODD:
    sql: SELECT 1 AS n
    success: {{ rule: result.n == 2, else: warning }}
    checks: {{ rows: {{ sql: SELECT 5, expect: zero_rows, else: warning }} }}
  AFTER_ODD: {{ type: NOOP, depends_on: [ODD] }}
  BAD: {{ sql: SELECT 1 AS n, checks: {{ balance: {{ sql: SELECT 5, expect: zero_rows }} }} }}
  AFTER_BAD: {{ type: NOOP, depends_on: [BAD] }}
  WORST:
    sql: SELECT 1 AS n
    checks:
      balance: {{ sql: SELECT 5, expect: zero_rows, else: fatal }}
      other: {{ sql: SELECT 7, expect: zero_rows, else: warning }}
",
            db.url
        );
        let (id, result) = run(&bench, &yaml, "202407").await;
        assert_eq!(result, BatchStatus::Failed);
        assert_eq!(
            bench.states(id).await,
            "FINE=SUCCESS ODD=WARNING AFTER_ODD=SUCCESS BAD=FAILED AFTER_BAD=UPSTREAM_FAILED \
             WORST=FAILED"
        );
        // An error is tried again like any failure, what is fatal never.
        let rows = bench.rows(id).await;
        assert_eq!((rows[3].attempt, rows[5].attempt), (3, 1));
        assert_eq!(
            message(&bench, id, "ODD").await,
            "success rule 'result.n == 2' does not hold (result.n = 1); check 'rows' found 1 row \
             (5); expected no row"
        );
        let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE subject LIKE '%WORST%' \
                    AND body LIKE '%check ''balance'' found 1 row (5)%' \
                    AND body LIKE '%check ''other'' found 1 row (7)%'";
        assert_eq!(bench.number(told).await, 1);
        let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = ";
        assert_eq!(bench.number(&format!("{told} 'failed'")).await, 2);
        assert_eq!(bench.number(&format!("{told} 'checks_warned'")).await, 1, "of ODD");
        let kept = outputs(&bench, id, "WORST").await;
        let balance = &kept.checks["balance"];
        assert_eq!((balance.ok, balance.value.as_deref()), (false, Some("1")));
        let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE stream = 'system' \
                     AND line_text LIKE 'check ''balance'' found 1 row (5)%broken (fatal)'";
        assert_eq!(bench.number(lines).await, 1);
    })
    .await;
}

async fn a_batch_with_a_warning_ends_with_one(bench: Bench) {
    let yaml = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: exit 3, success: ['exit_code in (0, 3)', { rule: exit_code == 0, else: warning }] }
  B: { type: NOOP, depends_on: [A] }
";
    let (id, result) = run(&bench, yaml, "202407").await;
    assert_eq!(result, BatchStatus::Warning);
    assert_eq!(bench.states(id).await, "A=WARNING B=SUCCESS");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM email_notifications").await, 0);
}

/// The source of AGREES' check is used by nothing else.
async fn a_source_of_checks_alone_is_in_the_batch(bench: Bench) {
    ledger(async |here| {
        ledger(async |there| {
            there.setup(&["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"]).await;
            let yaml = format!(
                "
sources: {{ here: {{ url: '{}' }}, there: {{ url: '{}' }}, nobodys: {{ url: 'sqlite:none.db' }} }}
jobs:
  AGREES:
    type: NOOP
    checks:
      same: {{ source: here, sql: SELECT 1, expect: {{ equals: {{ source: there, sql: SELECT a FROM t }} }} }}
",
                here.url, there.url
            );
            let (id, result) = run(&bench, &yaml, "202407").await;
            assert_eq!(result, BatchStatus::Success, "{}", message(&bench, id, "AGREES").await);
            let mut tx = bench.db.begin_read().await.expect("read");
            let snapshot = store::batch::snapshot(&mut tx, id).await.expect("snapshot");
            let names: Vec<&str> = snapshot.sources.iter().map(|s| s.name.as_str()).collect();
            assert_eq!(names, ["here", "there"]);
        })
        .await;
    })
    .await;
}

async fn drift_is_measured_from_the_batch_before_by_number(bench: Bench) {
    ledger(async |db| {
        db.setup(&["CREATE TABLE t (no TEXT, total TEXT)"]).await;
        let yaml = format!(
            "
sources: {{ ledger: {{ url: '{}' }} }}
jobs:
  LOAD:
    type: NOOP
    checks:
      total:
        sql: 'SELECT total FROM t WHERE no = :batch_no'
        expect: {{ drift: {{ max_percent: 10 }} }}
",
            db.url
        );
        // Not in the order of their numbers: what counts is 202404 < 202405 < …
        for (no, total, result, said) in [
            ("202405", "100", BatchStatus::Success, ""),
            ("202407", "140", BatchStatus::Failed, "within 10 % of 100, the value of batch 202405"),
            ("202406", "110", BatchStatus::Success, ""),
            ("202404", "5", BatchStatus::Success, ""),
            // 202407 failed, so what it found is nobody's measure.
            ("202408", "125", BatchStatus::Failed, "found 125 (13.64 % away); expected a value within 10 % of 110, the value of batch 202406"),
            ("202409", "120.9999", BatchStatus::Success, ""),
            // Of another kind: no earlier batch.
            ("2024Q3", "9000", BatchStatus::Success, ""),
        ] {
            db.setup(&[&format!("INSERT INTO t VALUES ('{no}', '{total}')")]).await;
            let (id, found) = run(&bench, &yaml, no).await;
            let message = message(&bench, id, "LOAD").await;
            assert_eq!(found, result, "{no}: {message}");
            assert!(message.contains(said), "{no}: {message}");
            let kept = outputs(&bench, id, "LOAD").await;
            assert_eq!(kept.checks["total"].value.as_deref(), Some(total), "{no}");
        }
        let first = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE '%no earlier batch%'";
        assert_eq!(bench.number(first).await, 3);
    })
    .await;
}

/// The commit that ends the job in one batch claims it in the next.
async fn drift_is_measured_from_what_ends_as_it_is_claimed(bench: Bench) {
    ledger(async |db| {
        db.setup(&["CREATE TABLE t (no TEXT, total TEXT)"]).await;
        db.setup(&["INSERT INTO t VALUES ('202405', '100'), ('202406', '140')"]).await;
        let yaml = format!(
            "
sources: {{ ledger: {{ url: '{}' }} }}
groups: {{ g: {{ max_parallel: 1 }} }}
jobs:
  LOAD:
    type: SQL
    source: ledger
    sql: SELECT 1 AS n
    checks:
      total:
        sql: 'SELECT total FROM t WHERE no = :batch_no'
        expect: {{ drift: {{ max_percent: 10 }} }}
",
            db.url
        );
        let mut process = bench.process().await;
        let mut ids = Vec::new();
        for no in ["202405", "202406"] {
            let order = BatchOrder::parse(&format!(r#"{{"batchNo":"{no}"}}"#)).expect("order");
            ids.extend(process.open_batches(&defs(&yaml), &order, "test").await.expect("open"));
        }
        finish(&bench, &mut process).await;
        assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
        let said = message(&bench, ids[1], "LOAD").await;
        assert!(said.contains("within 10 % of 100, the value of batch 202405"), "{said}");
    })
    .await;
}

on_each_database! {
    drift_is_measured_from_what_ends_as_it_is_claimed
    grades_make_states_and_a_warning_lets_children_run
    a_batch_with_a_warning_ends_with_one
    a_source_of_checks_alone_is_in_the_batch
    drift_is_measured_from_the_batch_before_by_number
}
