//! The truth after a crash: what a dead worker left running is ended when somebody wants it stopped,
//! what kills its workers is parked, what came too late is kept, and nothing open is called harmless.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use crate::util::query;
use procession::db::Dialect;
use procession::domain::action::OperatorAction;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::batch::{Batch, BatchStatus};
use procession::domain::id::{BatchId, JobCode};
use procession::domain::job::queue::{QueueEntry, QueueStatus};
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::operator_actions::{self, Command};
use procession::store;
use procession::store::audit::Operator;
use procession::store::log::LogPosition;
use std::path::Path;

/// A job LONG that never ends by itself and swallows cancels, where the server allows that.
async fn endless(bench: &Bench, pid: &Path) -> String {
    let (setup, job) = match bench.db.dialect() {
        Dialect::Sqlite => {
            let script = format!("sleep 300 & echo $! > {}; wait", pid.display());
            ("", format!("type: SCRIPT, interpreter: sh, script: '{script}'"))
        }
        Dialect::Mysql => (
            "CREATE PROCEDURE stuck () BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; \
             WHILE 1 = 1 DO DO SLEEP(1); END WHILE; END",
            "type: PROC, source: s, proc_name: stuck".to_owned(),
        ),
        Dialect::Postgres => (
            "CREATE PROCEDURE stuck () LANGUAGE plpgsql AS $$ BEGIN LOOP BEGIN PERFORM pg_sleep(1); \
             EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$",
            "type: PROC, source: s, proc_name: stuck".to_owned(),
        ),
    };
    if !setup.is_empty() {
        query(&bench.url, setup).await;
    }
    format!(
        "
sources: {{ s: {{ url: '{}' }} }}
groups: {{ default: {{ notify_email: [ops@bank.example] }} }}
jobs:
  LONG: {{ {job} }}
  BELOW: {{ type: NOOP, depends_on: [LONG] }}
",
        bench.url
    )
}

async fn alive(bench: &Bench, pid: &Path) -> bool {
    let sql = match bench.db.dialect() {
        Dialect::Sqlite => {
            let pid = std::fs::read_to_string(pid).unwrap_or_default();
            let pid = pid.trim();
            return !pid.is_empty() && Path::new("/proc").join(pid).join("exe").exists();
        }
        Dialect::Mysql => {
            "SELECT COUNT(*) AS n FROM information_schema.processlist \
             WHERE info LIKE 'DO SLEEP(1)%' AND db = DATABASE()"
        }
        Dialect::Postgres => {
            "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'active' AND query LIKE 'CALL%stuck%'"
        }
    };
    bench.number(sql).await > 0
}

async fn until_alive(bench: &Bench, pid: &Path) {
    for _ in 0..400 {
        if alive(bench, pid).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the body never ran");
}

async fn batch(bench: &Bench, id: BatchId) -> Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

async fn heir(bench: &Bench, id: BatchId) -> QueueDispatcher {
    bench.clock.advance(16_000);
    let there = batch(bench, id).await;
    let mut heir = bench.process().await;
    heir.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    heir
}

async fn act(bench: &Bench, batch: BatchId, action: OperatorAction, job: &str) -> String {
    let by = Operator::new("li".to_owned(), "desk".to_owned());
    let jobs = [JobCode::parse(job).expect("code")];
    let command = Command { batch, action, jobs: &jobs, latest: None, by: &by, reason: "wrong" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await.expect("look ahead");
    let acted =
        operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await.expect("act");
    let words = acted.lines.iter().map(|l| format!("{} {}>{}", l.job_code, l.from, l.to));
    words.collect::<Vec<_>>().join(" ")
}

async fn row(bench: &Bench, id: BatchId, at: usize) -> QueueEntry {
    bench.rows(id).await.swap_remove(at)
}

async fn said(bench: &Bench, id: BatchId, at: usize) -> String {
    row(bench, id, at).await.error_message.unwrap_or_default()
}

/// What a job printed, over all tries.
async fn lines(bench: &Bench, id: BatchId, at: usize) -> Vec<String> {
    let row = row(bench, id, at).await;
    let mut tx = bench.db.begin_read().await.expect("read");
    let lines = store::log::lines_after(&mut tx, row.queue_id, LogPosition::default(), 1_000)
        .await
        .expect("log");
    lines.into_iter().map(|l| format!("{}: {}", l.attempt, l.text)).collect()
}

async fn ask_for_a_kill(bench: &Bench, id: BatchId) {
    let mut tx = bench.db.begin().await.expect("begin");
    let now = bench.clock.now();
    assert!(store::batch::request_kill(&mut tx, id, "wrong month", now).await.expect("ask"));
    tx.commit().await.expect("commit");
}

/// LONG runs in a process that is dead.
async fn orphaned(bench: &Bench, pid: &Path) -> BatchId {
    let defs = defs(&endless(bench, pid).await);
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs, &order(), "test").await.expect("open");
    first.run_tick().await.expect("beat");
    until_alive(bench, pid).await;
    drop(first);
    ids[0]
}

async fn a_kill_after_the_crash_ends_the_orphan(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let id = orphaned(&bench, &pid).await;
    let dead = row(&bench, id, 0).await.owner;
    ask_for_a_kill(&bench, id).await;
    let mut heir = heir(&bench, id).await;
    let taken = row(&bench, id, 0).await;
    assert_eq!((taken.status, taken.attempt, taken.crash_count), (QueueStatus::Killing, 1, 1));
    assert!(taken.owner.is_some() && taken.owner != dead, "the row is the heir's");
    finish(&bench, &mut heir).await;
    assert!(!alive(&bench, &pid).await, "the orphan is left");
    assert_eq!(heir.results()[&id], BatchStatus::Killed);
    assert_eq!(bench.states(id).await, "LONG=KILLED BELOW=KILLED");
    assert!(said(&bench, id, 0).await.starts_with("its worker died; "));
    assert_eq!(bench.history(id, "LONG").await, ["RUNNING#1", "KILLING#1", "KILLED#1"]);
    let log = lines(&bench, id, 0).await;
    assert!(log.iter().any(|l| l.contains("ending what is left of it")), "{log:?}");
}

async fn a_job_that_was_killed_before_the_crash_is_ended_by_the_heir(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let id = orphaned(&bench, &pid).await;
    assert_eq!(act(&bench, id, OperatorAction::Kill, "LONG").await, "LONG RUNNING>KILLING");
    assert_eq!(
        act(&bench, id, OperatorAction::Kill, "LONG").await,
        "LONG KILLING>KILLING",
        "harmless"
    );
    let mut heir = heir(&bench, id).await;
    finish(&bench, &mut heir).await;
    assert!(!alive(&bench, &pid).await, "the orphan is left");
    assert_eq!(bench.states(id).await, "LONG=KILLED BELOW=UPSTREAM_FAILED");
    let said = said(&bench, id, 0).await;
    assert!(said.starts_with("killed by li: wrong; its worker died; "), "{said}");
}

/// What was being stopped for its time limit ends as a time-out, also by the heir's hand.
async fn a_time_limit_outlives_the_crash(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let id = orphaned(&bench, &pid).await;
    bench.by_hand("UPDATE job_queue SET status = 'KILLING' WHERE job_code = 'LONG'").await;
    let mut heir = heir(&bench, id).await;
    finish(&bench, &mut heir).await;
    assert!(!alive(&bench, &pid).await, "the orphan is left");
    assert_eq!(bench.states(id).await, "LONG=TIMEOUT BELOW=UPSTREAM_FAILED");
}

/// Each heir dies right after it took the row over; the last one finds what is there, and says no more
/// than it knows.
async fn five_heirs_that_die_while_they_end_an_orphan(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let id = orphaned(&bench, &pid).await;
    ask_for_a_kill(&bench, id).await;
    for dead in 1..=5 {
        drop(heir(&bench, id).await);
        let taken = row(&bench, id, 0).await;
        assert_eq!((taken.status, taken.crash_count), (QueueStatus::Killing, dead));
    }
    let mut last = heir(&bench, id).await;
    finish(&bench, &mut last).await;
    assert!(!alive(&bench, &pid).await, "the orphan is left");
    let ended = row(&bench, id, 0).await;
    let known = matches!(ended.status, QueueStatus::Killed | QueueStatus::Unknown);
    assert!(known, "{ended:?}");
    assert_eq!((ended.attempt, ended.crash_count), (1, 0));
    let history = bench.history(id, "LONG").await;
    assert_eq!(history.iter().filter(|h| *h == "KILLING#1").count(), 6, "{history:?}");
}

/// A kill that could not be confirmed is given once more, when the server answers again.
async fn what_may_still_run_is_killed_again(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let id = orphaned(&bench, &pid).await;
    bench
        .by_hand(
            "UPDATE job_queue SET status = 'UNKNOWN', error_message = 'kill unconfirmed: session 4 \
             may still run' WHERE job_code = 'LONG'",
        )
        .await;
    let mut second = heir(&bench, id).await;
    finish(&bench, &mut second).await;
    assert!(alive(&bench, &pid).await);
    assert_eq!(second.results()[&id], BatchStatus::Failed);
    let list = act(&bench, id, OperatorAction::Kill, "LONG").await;
    assert_eq!(list, "LONG UNKNOWN>KILLING BELOW UPSTREAM_FAILED>PENDING");
    let mut third = heir(&bench, id).await;
    finish(&bench, &mut third).await;
    assert!(!alive(&bench, &pid).await, "the orphan is left");
    assert_eq!(bench.states(id).await, "LONG=KILLED BELOW=UPSTREAM_FAILED");
}

async fn what_kills_its_workers_is_parked(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
defaults: { type: SCRIPT, interpreter: sh, group: g }
jobs:
  POISON: { idempotent: true, script: 'exit 0' }
  OTHER: { type: NOOP, schedule_time: '00:30' }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    for crashes in 1..=3 {
        process.run_tick().await.expect("beat");
        assert_eq!(row(&bench, ids[0], 0).await.status, QueueStatus::Running);
        drop(process);
        process = heir(&bench, ids[0]).await;
        assert_eq!(row(&bench, ids[0], 0).await.crash_count, crashes);
    }
    assert_eq!(bench.states(ids[0]).await, "POISON=HELD OTHER=PENDING");
    let said = said(&bench, ids[0], 0).await;
    assert_eq!(
        said,
        "3 workers in a row died while it ran; parked. Look at it, then: procession job release \
         202407 POISON --group g --reason WHY"
    );
    let told = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'parked'";
    assert_eq!(bench.number(told).await, 1);
    // Others go on.
    bench.clock.advance(3_600_000);
    process.heartbeat().await.expect("heartbeat");
    for _ in 0..4 {
        if bench.states(ids[0]).await == "POISON=HELD OTHER=SUCCESS" {
            break;
        }
        if !process.run_tick().await.expect("beat") {
            process.wait_for_report().await;
        }
    }
    assert_eq!(bench.states(ids[0]).await, "POISON=HELD OTHER=SUCCESS");
    act(&bench, ids[0], OperatorAction::Release, "POISON").await;
    assert_eq!(row(&bench, ids[0], 0).await.crash_count, 0);
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "POISON=SUCCESS OTHER=SUCCESS");
    assert_eq!(row(&bench, ids[0], 0).await.attempt, 4);
}

/// A worker that died now and then does not park a job: a try that ends by itself counts anew.
async fn a_try_that_ends_by_itself_forgets_the_crashes(bench: Bench) {
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { idempotent: true, retry_count: 1, script: 'test \"$PROCESSION_ATTEMPT\" -ge 4' }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    for crashes in 1..=2 {
        process.run_tick().await.expect("beat");
        drop(process);
        process = heir(&bench, ids[0]).await;
        assert_eq!(row(&bench, ids[0], 0).await.crash_count, crashes);
    }
    // The third start fails by itself, and is tried again.
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(row(&bench, ids[0], 0).await.crash_count, 0);
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "A=SUCCESS");
}

/// Five processes die, each between two beats of its recovery; the sixth ends the batch, and every row
/// has counted its dead.
async fn a_crash_in_the_middle_of_a_recovery(mut bench: Bench) {
    bench.options.park_after = 100;
    for beats in 0..6 {
        let folder = tempfile::tempdir().expect("folder");
        let yaml = format!(
            "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: &mark 'echo $PROCESSION_JOB_CODE $PROCESSION_ATTEMPT >> {0}/ran' }}
  B: {{ depends_on: [A], script: *mark }}
  C: {{ depends_on: [A], script: *mark }}
  JOIN: {{ depends_on: [B, C], script: *mark }}
",
            folder.path().display()
        );
        let no = format!(r#"{{"batchNo":"again-{beats}"}}"#);
        let order = procession::domain::batch::BatchOrder::parse(&no).expect("order");
        let mut process = bench.process().await;
        let id = process.open_batches(&defs(&yaml), &order, "test").await.expect("open")[0];
        for n in 0..5 {
            for _ in 0..(beats + n) % 4 {
                if !process.is_idle() && !process.run_tick().await.expect("beat") {
                    process.wait_for_report().await;
                }
            }
            if process.is_idle() {
                break;
            }
            drop(process);
            process = heir(&bench, id).await;
            counts_its_dead(&bench, id).await;
        }
        finish(&bench, &mut process).await;
        for row in bench.rows(id).await {
            assert_eq!((row.status, row.crash_count), (QueueStatus::Success, 0), "{row:?}");
            let history = bench.history(id, row.job_code.as_str()).await;
            let starts = history.iter().filter(|h| h.starts_with("RUNNING")).count();
            assert_eq!(starts as u32, row.attempt, "one log row per start: {history:?}");
        }
    }
}

/// The count in each row is how often in a row its start was followed by a death.
async fn counts_its_dead(bench: &Bench, id: BatchId) {
    for row in bench.rows(id).await {
        let mut tx = bench.db.begin_read().await.expect("read");
        let changes = store::log::of_entry(&mut tx, row.queue_id).await.expect("log");
        let died = |said: &Option<String>| said.as_ref().is_some_and(|m| m.contains("died"));
        let of_deaths = changes.iter().rev().filter(|c| c.log.status != QueueStatus::Running);
        let dead = of_deaths.take_while(|c| died(&c.log.error_message)).count();
        assert_eq!(row.crash_count as usize, dead, "{}: {changes:?}", row.job_code);
    }
}

/// The body of a process that was silent too long ends well after all: its row is another start's by
/// then and stays as it is, and what came is in the log of its try.
async fn a_late_result_is_evidence(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let go = folder.path().join("go");
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: 'touch {1}; until test -e {0}; do sleep 0.05; done; echo here I am' }}
",
        go.display(),
        folder.path().join("runs").display()
    );
    let mut silent = bench.process().await;
    let ids = silent.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    silent.run_tick().await.expect("beat");
    while !folder.path().join("runs").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let mut heir = heir(&bench, ids[0]).await;
    // Its body has ended before the heir starts another, which would kill it.
    std::fs::write(&go, "").expect("go");
    silent.wait_for_report().await;
    heir.run_tick().await.expect("beat");
    assert!(silent.run_tick().await.is_err(), "the batch is another's");
    assert!(silent.run_tick().await.is_err(), "and stays so");
    silent.run_tick().await.expect("nothing is left but evidence");
    assert_eq!(silent.running(), 0, "it takes no room any more");
    finish(&bench, &mut heir).await;
    assert_eq!(
        bench.history(ids[0], "A").await,
        ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "SUCCESS#2"]
    );
    let lines = lines(&bench, ids[0], 0).await;
    let late = "1: late result, changes nothing: SUCCESS (the row belongs to attempt 2 of node ";
    assert_eq!(lines.iter().filter(|l| l.starts_with(late)).count(), 1, "{lines:?}");
    assert_eq!(lines.iter().filter(|l| *l == "1: here I am").count(), 1, "{lines:?}");
    // Once more changes nothing.
    silent.run_tick().await.expect("beat");
    assert_eq!(lines, self::lines(&bench, ids[0], 0).await);
}

/// The answer to a commit that settled a row is lost: what the row says already is not called late.
async fn what_is_written_already_is_no_evidence(mut bench: Bench) {
    // A line that is written while the script runs is not there to be written at its end.
    bench.options.log_flush_ms = 600_000;
    let yaml = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'echo here I am' }
  LATER: { type: NOOP, schedule_time: '00:00:20' }
";
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    bench.by_hand("ALTER TABLE job_log_line RENAME TO away").await;
    process.run_tick().await.expect_err("a table is away");
    bench.by_hand("ALTER TABLE away RENAME TO job_log_line").await;
    finish(&bench, &mut process).await;
    let lines = lines(&bench, ids[0], 0).await;
    assert_eq!(lines.iter().filter(|l| *l == "1: here I am").count(), 1, "{lines:?}");
    assert!(!lines.iter().any(|l| l.contains(" late")), "{lines:?}");
}

/// Whoever stops a job whose earlier try is open may not say that it did nothing; a rerun goes on under
/// the same key.
async fn what_is_open_is_not_called_killed(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
defaults: { type: SCRIPT, interpreter: sh, group: g }
jobs:
  A: { script: 'exit 1', retry_count: 9, retry_delay_sec: 86400 }
";
    for stop in ["job", "batch", "failure"] {
        let no = format!(r#"{{"batchNo":"{stop}"}}"#);
        let order = procession::domain::batch::BatchOrder::parse(&no).expect("order");
        let mut all = yaml.to_owned();
        if stop == "failure" {
            all = all.replace("{ notify", "{ on_failure: stop, notify");
            all.push_str("  BAD: { script: 'exit 2', schedule_time: '02:00' }\n");
        }
        let mut process = bench.process().await;
        let id = process.open_batches(&defs(&all), &order, "test").await.expect("open")[0];
        process.run_tick().await.expect("beat");
        process.wait_for_report().await;
        process.run_tick().await.expect("beat");
        assert_eq!(row(&bench, id, 0).await.status, QueueStatus::RetryWait);
        drop(process);
        bench
            .by_hand(&format!("UPDATE job_queue SET unresolved = 1 WHERE batch_id = {}", id.0))
            .await;
        match stop {
            "job" => {
                assert_eq!(act(&bench, id, OperatorAction::Kill, "A").await, "A RETRY_WAIT>UNKNOWN")
            }
            "batch" => ask_for_a_kill(&bench, id).await,
            _ => {
                let sql = "UPDATE job_queue SET unresolved = 0 WHERE job_code = 'BAD'";
                bench.by_hand(sql).await;
            }
        }
        let mut heir = heir(&bench, id).await;
        finish(&bench, &mut heir).await;
        let row = row(&bench, id, 0).await;
        assert_eq!((row.status, row.unresolved), (QueueStatus::Unknown, 1), "{stop}: {row:?}");
        let said = row.error_message.expect("why");
        assert!(said.contains("before it could be looked up"), "{said}");
        let again = OperatorAction::Rerun(RerunScope::These, UnknownJobs::Rerun);
        act(&bench, id, again, "A").await;
        let again = self::row(&bench, id, 0).await;
        assert_eq!((again.run_no, again.unresolved), (1, 1), "the same key: {again:?}");
    }
    let mut tx = bench.db.begin_read().await.expect("read");
    let sql = "SELECT subject FROM email_notifications WHERE type = 'unknown'";
    let told = tx.fetch_all(sql, &[]).await.expect(sql);
    let told: Vec<_> = told.iter().map(|r| r.get_text("subject").expect("subject")).collect();
    assert_eq!(told.len(), 2, "not what the operator did himself: {told:?}");
}

/// What became of a recorded job is open, and the present definition would have it looked up where it
/// is not: there it would run once more.
async fn what_is_open_is_not_looked_up_elsewhere(bench: Bench) {
    query(&bench.url, "CREATE TABLE fx (job VARCHAR(50))").await;
    let of = |url: &str, tx: &str| {
        defs(&format!(
            "
sources: {{ s: {{ url: '{url}' }} }}
jobs:
  A: {{ type: SQL, source: s, tx: {tx}, sql: \"INSERT INTO fx VALUES ('A')\" }}
"
        ))
    };
    let (here, elsewhere) = (bench.url.clone(), format!("{}_other", bench.url));
    let mut first = bench.process().await;
    let ids = first.open_batches(&of(&here, "ledger"), &order(), "test").await.expect("open");
    first.run_tick().await.expect("beat");
    drop(first);
    bench.clock.advance(16_000);
    let there = batch(&bench, ids[0]).await;
    let mut heir = bench.process().await;
    for latest in [of(&elsewhere, "ledger"), of(&here, "none")] {
        let refused = heir.resume(&there, UnknownJobs::Leave, Some(&latest)).await;
        let said = refused.expect_err("it would run twice").to_string();
        assert!(said.starts_with("what became of A is open"), "{said}");
    }
    let same = of(&here, "ledger");
    heir.resume(&there, UnknownJobs::Leave, Some(&same)).await.expect("resume");
    finish(&bench, &mut heir).await;
    assert_eq!(bench.states(ids[0]).await, "A=SUCCESS");
    let count = query(&bench.url, "SELECT COUNT(*) FROM fx").await;
    assert_eq!(count[0][0].as_deref(), Some("1"));
}

on_each_database! {
    what_is_open_is_not_looked_up_elsewhere
    a_kill_after_the_crash_ends_the_orphan
    a_job_that_was_killed_before_the_crash_is_ended_by_the_heir
    a_time_limit_outlives_the_crash
    five_heirs_that_die_while_they_end_an_orphan
    what_may_still_run_is_killed_again
    what_kills_its_workers_is_parked
    a_try_that_ends_by_itself_forgets_the_crashes
    a_crash_in_the_middle_of_a_recovery
    a_late_result_is_evidence
    what_is_written_already_is_no_evidence
    what_is_open_is_not_called_killed
}
