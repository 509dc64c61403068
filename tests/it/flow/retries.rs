//! What is tried again and when, with errors of real servers.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use crate::util::{Scratch, session, with_migrated_scratch};
use procession::domain::batch::BatchStatus;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use std::sync::Arc;

/// Two transactions that lock two rows crosswise. The gate, a lock of the server that the test holds,
/// is between their two updates: once both wait there, a deadlock is certain.
fn crosswise(scratch: &Scratch) -> String {
    let (url, name) = (&scratch.url, &scratch.name);
    let gate = match scratch.dialect {
        DialectName::Postgres => "SELECT pg_advisory_xact_lock_shared(42)".to_owned(),
        _ => format!("SELECT GET_LOCK('{name}', 60); SELECT RELEASE_LOCK('{name}')"),
    };
    let body = |first: u32, second: u32| {
        format!(
            "UPDATE pair SET n = n + 1 WHERE id = {first}; {gate}; \
             UPDATE pair SET n = n + 1 WHERE id = {second}"
        )
    };
    format!(
        "
sources: {{ s: {{ url: '{url}' }} }}
groups: {{ g: {{}} }}
defaults: {{ type: SQL, source: s, retry_count: 3, retry_delay_sec: 20, retry: {{ backoff: 2, on: [deadlock] }} }}
jobs:
  ONE: {{ sql: \"{}\" }}
  TWO: {{ sql: \"{}\" }}
  WRONG: {{ sql: 'SELEC 1' }}
",
        body(1, 2),
        body(2, 1),
    )
}

/// Takes the gate; counts who waits at it; opens it.
fn gate(scratch: &Scratch) -> (String, String, String) {
    match scratch.dialect {
        DialectName::Postgres => (
            "SELECT pg_advisory_lock(42)".to_owned(),
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
             AND objid = 42 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                .to_owned(),
            "SELECT pg_advisory_unlock(42)".to_owned(),
        ),
        _ => (
            format!("SELECT GET_LOCK('{}', 60)", scratch.name),
            format!(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock' \
                 AND db = '{}'",
                scratch.name
            ),
            format!("SELECT RELEASE_LOCK('{}')", scratch.name),
        ),
    }
}

async fn a_deadlock_is_tried_again(scratch: Arc<Scratch>) {
    let bench = Bench::open(&scratch).await;
    scratch
        .setup(&[
            "CREATE TABLE pair (id INT PRIMARY KEY, n INT)",
            "INSERT INTO pair VALUES (1, 0), (2, 0)",
        ])
        .await;
    let (take, waiting, give) = gate(&scratch);
    let mut keeper = session(&scratch.url).await;
    keeper.run_statement(&take, &[]).await.expect("take the gate");
    let mut process = bench.process().await;
    let defs = defs(&crosswise(&scratch));
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    scratch.wait_for(&waiting, "2").await;
    keeper.run_statement(&give, &[]).await.expect("open the gate");
    keeper.close().await;
    let before = bench.clock.now();
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Failed, "WRONG fails");
    assert_eq!(bench.states(ids[0]).await, "ONE=SUCCESS TWO=SUCCESS WRONG=FAILED");
    assert_eq!(scratch.value("SELECT SUM(n) FROM pair").await, "4", "each ran whole and once");
    let rows = bench.rows(ids[0]).await;
    let tries: u32 = rows[..2].iter().map(|r| r.attempt).sum();
    assert_eq!(tries, 3, "one victim");
    let victim = rows.iter().find(|r| r.attempt == 2).expect("a victim");
    let history = bench.history(ids[0], victim.job_code.as_str()).await;
    assert_eq!(history, ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "SUCCESS#2"]);
    assert!(bench.clock.now().since(before) >= 20_000, "after its delay");
    let said = format!(
        "SELECT COUNT(*) AS n FROM job_execution_logs WHERE queue_id = {} AND status = 'RETRY_WAIT' \
         AND LOWER(error_message) LIKE '%deadlock%'",
        victim.queue_id.0
    );
    assert_eq!(bench.number(&said).await, 1);
    // Each try has a log of its own: both sent the first update.
    let logs = format!(
        "SELECT COUNT(DISTINCT attempt) AS n FROM job_log_line WHERE queue_id = {} \
         AND line_text LIKE 'statement 1%'",
        victim.queue_id.0
    );
    assert_eq!(bench.number(&logs).await, 2);
    assert_eq!(bench.history(ids[0], "WRONG").await, ["RUNNING#1", "FAILED#1"], "not a deadlock");
}

#[tokio::test]
async fn a_deadlock_is_tried_again_on_mariadb() {
    with_migrated_scratch(DialectName::Mysql, a_deadlock_is_tried_again).await;
}

#[tokio::test]
async fn a_deadlock_is_tried_again_on_postgres() {
    with_migrated_scratch(DialectName::Postgres, a_deadlock_is_tried_again).await;
}

/// A procedure's own SQLSTATE, by lists of states.
async fn states_decide(scratch: Arc<Scratch>) {
    let bench = Bench::open(&scratch).await;
    let raise = match scratch.dialect {
        DialectName::Postgres => {
            "DO $$ BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = 'XB001'; END $$"
        }
        _ => "SIGNAL SQLSTATE 'XB001' SET MESSAGE_TEXT = 'busy'",
    };
    let url = &scratch.url;
    let yaml = format!(
        "
sources: {{ s: {{ url: '{url}' }} }}
groups: {{ g: {{}} }}
defaults: {{ type: SQL, source: s, retry_count: 2 }}
jobs:
  CODE: {{ sql: &raise \"{raise}\", retry: {{ on_sqlstate: [XB001] }} }}
  CLASS: {{ sql: *raise, retry: {{ on_sqlstate: [XB], on: [deadlock] }} }}
  NEVER: {{ sql: *raise, retry: {{ never_on_sqlstate: [XB001] }} }}
  OTHER: {{ sql: *raise, retry: {{ on_sqlstate: ['40001'] }} }}
  ALL: {{ sql: *raise }}
"
    );
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let rows = bench.rows(ids[0]).await;
    let tries: Vec<String> = rows.iter().map(|r| format!("{}:{}", r.job_code, r.attempt)).collect();
    assert_eq!(tries, ["CODE:3", "CLASS:3", "NEVER:1", "OTHER:1", "ALL:3"]);
    assert!(rows.iter().all(|r| r.status == QueueStatus::Failed));
}

#[tokio::test]
async fn states_decide_on_mariadb() {
    with_migrated_scratch(DialectName::Mysql, states_decide).await;
}

#[tokio::test]
async fn states_decide_on_postgres() {
    with_migrated_scratch(DialectName::Postgres, states_decide).await;
}

/// Nobody listens there: nothing was run, so it may be tried again, if it is to be.
async fn a_source_that_is_away(bench: Bench) {
    let yaml = "
sources: { s: { url: 'postgres://nobody@127.0.0.1:1/x' } }
groups: { g: {} }
defaults: { type: SQL, source: s, retry_count: 1 }
jobs:
  AWAY: { sql: SELECT 1, retry: { on: connection_lost } }
  LEFT: { sql: SELECT 1, retry: { on: deadlock } }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let rows = bench.rows(ids[0]).await;
    assert_eq!(bench.states(ids[0]).await, "AWAY=FAILED LEFT=FAILED");
    assert_eq!((rows[0].attempt, rows[1].attempt), (2, 1));
}

async fn delays_grow_to_their_cap(bench: Bench) {
    let yaml = "
groups: { g: {} }
jobs:
  GROWS:
    type: SCRIPT
    interpreter: sh
    retry_count: 4
    retry_delay_sec: 10
    retry: { backoff: 3, max_delay_sec: 60, on: exit_code }
    script: 'exit 1'
  JITTERS:
    type: SCRIPT
    interpreter: sh
    retry_count: 1
    retry_delay_sec: 1000
    retry: { jitter: 0.5 }
    script: 'exit 1'
  NOT_THAT:
    type: SCRIPT
    interpreter: sh
    retry_count: 4
    retry: { on: [deadlock, timeout] }
    script: 'exit 1'
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    let (mut waits, mut jitter) = (Vec::new(), None);
    loop {
        if process.run_tick().await.expect("beat") {
            let rows = bench.rows(ids[0]).await;
            let wait = |i: usize| {
                let row = rows.get(i).filter(|r| r.status == QueueStatus::RetryWait)?;
                Some((row.attempt, row.not_before?.since(row.end_time?)))
            };
            if let Some(wait) = wait(0).filter(|w| waits.last() != Some(w)) {
                waits.push(wait);
            }
            jitter = jitter.or(wait(1));
        }
        if process.is_idle() {
            break;
        }
        match process.next_wake() {
            Some(at) if process.running() == 0 => bench.clock.advance(at.since(bench.clock.now())),
            _ if process.running() > 0 => process.wait_for_report().await,
            _ => {}
        }
    }
    assert_eq!(waits, [(1, 10_000), (2, 30_000), (3, 60_000), (4, 60_000)]);
    let (_, jitter) = jitter.expect("a delay");
    assert!((500_000..=1_500_000).contains(&jitter) && jitter != 1_000_000, "{jitter}");
    assert_eq!(bench.rows(ids[0]).await[2].attempt, 1);
}

on_each_database! {
    a_source_that_is_away
    delays_grow_to_their_cap
}
