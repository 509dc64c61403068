//! What operators do to a batch, and the rules of the specification about it, each on the real
//! engine: the name of a test is the rule.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::action::refusal::Refusals;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::action::{OperatorAction, Parents};
use procession::domain::batch::{Batch, BatchStatus};
use procession::domain::id::{BatchId, GroupCode, JobCode};
use procession::domain::job::Definition;
use procession::domain::job::job_key::JobKey;
use procession::domain::job::queue::RunMode;
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::operator_actions::{self, Acted, Command, Moved};
use procession::engine::operate::pause;
use procession::store;
use procession::store::audit::Operator;
use procession::store::batch::Going;

fn li() -> Operator {
    Operator::new("li".to_owned(), "desk".to_owned())
}

fn codes(words: &[&str]) -> Vec<JobCode> {
    words.iter().map(|w| JobCode::parse(w).expect("code")).collect()
}

async fn try_act(
    bench: &Bench,
    batch: BatchId,
    action: OperatorAction,
    jobs: &[&str],
    latest: Option<&Definition>,
) -> anyhow::Result<Acted> {
    let (jobs, by) = (codes(jobs), li());
    let command = Command { batch, action, jobs: &jobs, latest, by: &by, reason: "月末 rates" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await?;
    operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await
}

/// Does it and gives the list: `A FAILED>FORCED B UPSTREAM_FAILED>PENDING`.
async fn act(bench: &Bench, batch: BatchId, action: OperatorAction, jobs: &[&str]) -> String {
    let acted = try_act(bench, batch, action, jobs, None).await.expect("act");
    let words = acted.lines.iter().map(|l| format!("{} {}>{}", l.job_code, l.from, l.to));
    words.collect::<Vec<_>>().join(" ")
}

async fn open(bench: &Bench, yaml: &str) -> (QueueDispatcher, BatchId) {
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    (process, ids[0])
}

/// Runs to the end; gives the batch and its result.
async fn ran(bench: &Bench, yaml: &str) -> (BatchId, BatchStatus) {
    let (mut process, id) = open(bench, yaml).await;
    finish(bench, &mut process).await;
    (id, process.results()[&id])
}

async fn batch(bench: &Bench, id: BatchId) -> Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

/// Another process goes on with it to its end.
async fn carried(bench: &Bench, id: BatchId) -> BatchStatus {
    let mut process = bench.process().await;
    let there = batch(bench, id).await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(bench, &mut process).await;
    process.results()[&id]
}

const RERUN: OperatorAction = OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave);

/// BAD fails on its first start only.
fn once(folder: &tempfile::TempDir) -> String {
    format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  A: {{ script: 'exit 0' }}
  BAD: {{ depends_on: [A], script: 'test -e {0}/cured' }}
  BELOW: {{ depends_on: [BAD], script: 'exit 0' }}
  DEEPER: {{ depends_on: [BELOW], script: 'exit 0' }}
  OTHER: {{ depends_on: [A], script: 'exit 0' }}
",
        folder.path().display()
    )
}

fn cure(folder: &tempfile::TempDir) {
    std::fs::write(folder.path().join("cured"), "").expect("cure");
}

// --- skip, hold, ice, no-exec ----------------------------------------------------------------------

async fn operator_skip_goes_on_without_it_and_children_run(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let (id, result) = ran(&bench, &once(&folder)).await;
    assert_eq!(result, BatchStatus::Failed);
    let list = act(&bench, id, OperatorAction::Skip, &["BAD"]).await;
    let freed = "BELOW UPSTREAM_FAILED>PENDING DEEPER UPSTREAM_FAILED>PENDING";
    assert_eq!(list, format!("BAD FAILED>SKIPPED {freed}"));
    let open = batch(&bench, id).await;
    assert_eq!((open.status, open.owner, open.end_time), (BatchStatus::Running, None, None));
    assert_eq!(carried(&bench, id).await, BatchStatus::Warning);
    let states = "A=SUCCESS BAD=SKIPPED BELOW=SUCCESS DEEPER=SUCCESS OTHER=SUCCESS";
    assert_eq!(bench.states(id).await, states);
    let kind = "SELECT COUNT(*) AS n FROM job_queue WHERE skip_kind = 'operator'";
    assert_eq!(bench.number(kind).await, 1);
}

async fn condition_skip_is_a_branch_not_taken_and_all_parents_decide(bench: Bench) {
    let yaml = "
jobs:
  A: { type: NOOP }
  OFF: { type: NOOP, depends_on: [{ job: A, when: failure }] }
  BELOW: { type: NOOP, depends_on: [OFF] }
  JOIN: { type: NOOP, depends_on: [OFF, A] }
";
    let (id, result) = ran(&bench, yaml).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS OFF=SKIPPED BELOW=SKIPPED JOIN=SUCCESS");
    assert_eq!(result, BatchStatus::Success, "a branch not taken is as planned");
    let kind = "SELECT COUNT(*) AS n FROM job_queue WHERE skip_kind = 'branch'";
    assert_eq!(bench.number(kind).await, 2);
}

/// Four twins that differ only in what is done to them.
async fn hold_is_not_ice_is_not_no_exec_is_not_skip(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let mark = format!("echo $PROCESSION_JOB_CODE >> {}/ran", folder.path().display());
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  FIRST: {{ script: &mark '{mark}' }}
  HELD: {{ script: *mark, depends_on: [FIRST] }}
  ICED: {{ script: *mark, depends_on: [FIRST] }}
  PRETENDS: {{ script: *mark, depends_on: [FIRST] }}
  SKIPPED: {{ script: *mark, depends_on: [FIRST] }}
  AFTER_HELD: {{ script: *mark, depends_on: [HELD] }}
  AFTER_ICED: {{ script: *mark, depends_on: [ICED] }}
  AFTER_PRETENDS: {{ script: *mark, depends_on: [PRETENDS] }}
  ONE_OF: {{ script: *mark, depends_on: [ICED, HELD], trigger_rule: one_success }}
"
    );
    let (mut process, id) = open(&bench, &yaml).await;
    for (action, job) in [
        (OperatorAction::Hold, "HELD"),
        (OperatorAction::Ice, "ICED"),
        (OperatorAction::NoExec, "PRETENDS"),
        (OperatorAction::Skip, "SKIPPED"),
    ] {
        act(&bench, id, action, &[job]).await;
    }
    process.poll_changes().await.expect("look");
    process.run_tick().await.expect("beat");
    // Ice is absence: its child waits for nobody. No-exec waits for its parents like any other.
    let rows = bench.states(id).await;
    assert!(rows.starts_with("FIRST=RUNNING HELD=HELD ICED=SKIPPED PRETENDS=PENDING"), "{rows}");
    assert!(
        rows.contains("AFTER_ICED=RUNNING") && rows.contains("AFTER_PRETENDS=PENDING"),
        "{rows}"
    );
    while process.running() > 0 {
        process.wait_for_report().await;
        process.run_tick().await.expect("beat");
    }
    let rows = bench.states(id).await;
    assert!(rows.contains("HELD=HELD") && rows.contains("AFTER_HELD=PENDING"), "{rows}");
    assert!(rows.contains("ONE_OF=PENDING"), "one on ice is not one that did well: {rows}");
    assert!(!process.is_idle(), "what is held keeps the batch open");
    act(&bench, id, OperatorAction::Release, &["HELD"]).await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&id], BatchStatus::Warning, "something was skipped");
    let ran = std::fs::read_to_string(folder.path().join("ran")).expect("ran");
    let lines: Vec<&str> = ran.lines().collect();
    for (job, times) in
        [("HELD", 1), ("ICED", 0), ("PRETENDS", 0), ("SKIPPED", 0), ("AFTER_ICED", 1)]
    {
        assert_eq!(lines.iter().filter(|l| **l == job).count(), times, "{job}: {ran}");
    }
    assert_eq!(bench.history(id, "PRETENDS").await, ["RUNNING#1", "SUCCESS#1"]);
    let said = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE 'no-exec%'";
    assert_eq!(bench.number(said).await, 1, "its log says so");
}

async fn ice_is_thawed_while_the_batch_is_open(bench: Bench) {
    let yaml = "
jobs:
  ICED: { type: NOOP }
  LATE: { type: NOOP, schedule_time: '01:00', depends_on: [ICED] }
";
    let (mut process, id) = open(&bench, yaml).await;
    act(&bench, id, OperatorAction::Ice, &["ICED"]).await;
    process.poll_changes().await.expect("look");
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "ICED=SKIPPED LATE=PENDING");
    assert_eq!(act(&bench, id, OperatorAction::Thaw, &["ICED"]).await, "ICED SKIPPED>PENDING");
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "ICED=SUCCESS LATE=SUCCESS");
    assert_eq!(process.results()[&id], BatchStatus::Success);
    let refused =
        try_act(&bench, id, OperatorAction::Thaw, &["ICED"], None).await.expect_err("over");
    assert!(refused.downcast_ref::<Refusals>().is_some(), "{refused:#}");
}

async fn standing_ice_and_no_exec_hold_for_every_new_batch(bench: Bench) {
    let yaml = "
jobs:
  ICED: { type: SCRIPT, interpreter: sh, script: 'exit 9' }
  PRETENDS: { type: SCRIPT, interpreter: sh, script: 'exit 9', depends_on: [ICED] }
";
    let defs = defs(yaml);
    let mut tx = bench.db.begin().await.expect("begin");
    store::job::apply(&mut tx, &Definition::default(), &defs, bench.clock.now())
        .await
        .expect("apply");
    tx.commit().await.expect("commit");
    let (by, now) = (li(), bench.clock.now());
    let key = |code: &str| {
        let code = JobCode::parse(code).expect("code");
        JobKey { group: GroupCode::parse("default").expect("group"), code }
    };
    for (job, mode) in [("ICED", RunMode::Ice), ("PRETENDS", RunMode::NoExec)] {
        let keys = [key(job)];
        let set = pause::set_standing(&bench.db, &keys, Some(mode), &by, "no rates this year", now);
        set.await.expect("set");
    }
    let (id, result) = ran(&bench, yaml).await;
    assert_eq!(result, BatchStatus::Success, "what is absent and what pretends change no result");
    assert_eq!(bench.states(id).await, "ICED=SKIPPED PRETENDS=SUCCESS");
    let none = pause::set_standing(&bench.db, &[key("NONE")], None, &by, "x", now).await;
    assert_eq!(none.expect("answer"), [key("NONE")]);
    let acts =
        "SELECT COUNT(*) AS n FROM audit_log WHERE batch_id IS NULL AND reason LIKE 'no rates%'";
    assert_eq!(bench.number(acts).await, 2);
}

// --- force, rerun ----------------------------------------------------------------------------------

async fn force_success_lets_the_batch_go_on_by_itself(bench: Bench) {
    // Once while a living process has the batch, once after it has ended.
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  BAD: { script: 'exit 3' }
  BELOW: { depends_on: [BAD], script: 'exit 0' }
  SLOW: { script: 'sleep 60' }
";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "BAD=FAILED BELOW=UPSTREAM_FAILED SLOW=RUNNING");
    let list = act(&bench, id, OperatorAction::ForceSuccess, &["BAD"]).await;
    assert_eq!(list, "BAD FAILED>FORCED BELOW UPSTREAM_FAILED>PENDING");
    process.poll_changes().await.expect("look");
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "BAD=FORCED BELOW=RUNNING SLOW=RUNNING");
    assert_eq!(bench.history(id, "SLOW").await, ["RUNNING#1"], "what ran was left alone");
    act(&bench, id, OperatorAction::Kill, &["SLOW"]).await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "BAD=FORCED BELOW=SUCCESS SLOW=KILLED");
    assert_eq!(process.results()[&id], BatchStatus::Killed);
    act(&bench, id, OperatorAction::ForceSuccess, &["SLOW"]).await;
    assert_eq!(carried(&bench, id).await, BatchStatus::Warning, "FORCED is shown differently");
    let row = bench.rows(id).await.remove(0);
    let why = row.error_message.expect("who and why");
    assert_eq!(why, "forced to success by li: 月末 rates");
}

async fn force_failure_stops_what_waits_for_it(bench: Bench) {
    let yaml =
        "jobs: { A: { type: NOOP, schedule_time: '09:00' }, B: { type: NOOP, depends_on: [A] } }";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    act(&bench, id, OperatorAction::ForceFailure, &["A"]).await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=FAILED B=UPSTREAM_FAILED");
    assert_eq!(process.results()[&id], BatchStatus::Failed);
}

async fn rerun_from_failure_is_the_failed_ones_and_their_not_succeeded_descendants(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let (id, _) = ran(&bench, &once(&folder)).await;
    cure(&folder);
    let from_failure = OperatorAction::Rerun(RerunScope::FromFailure, UnknownJobs::Leave);
    let list = act(&bench, id, from_failure, &[]).await;
    let wanted = "BAD FAILED>PENDING BELOW UPSTREAM_FAILED>PENDING DEEPER UPSTREAM_FAILED>PENDING";
    assert_eq!(list, wanted);
    assert_eq!(carried(&bench, id).await, BatchStatus::Success);
    let starts: Vec<u32> = bench.rows(id).await.iter().map(|r| r.attempt).collect();
    assert_eq!(starts, [1, 2, 1, 1, 1], "what succeeded was not touched");
}

async fn rerun_with_downstream_is_the_job_and_all_descendants(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    cure(&folder);
    let (id, _) = ran(&bench, &once(&folder)).await;
    let down = OperatorAction::Rerun(RerunScope::Downstream, UnknownJobs::Leave);
    let list = act(&bench, id, down, &["BAD"]).await;
    assert_eq!(list, "BAD SUCCESS>PENDING BELOW SUCCESS>PENDING DEEPER SUCCESS>PENDING");
    assert_eq!(carried(&bench, id).await, BatchStatus::Success);
    let starts: Vec<u32> = bench.rows(id).await.iter().map(|r| r.attempt).collect();
    assert_eq!(starts, [1, 2, 2, 2, 1]);
    assert_eq!(act(&bench, id, RERUN, &["BELOW"]).await, "BELOW SUCCESS>PENDING", "one is one");
    assert_eq!(carried(&bench, id).await, BatchStatus::Success);
    let starts: Vec<u32> = bench.rows(id).await.iter().map(|r| r.attempt).collect();
    assert_eq!(starts, [1, 2, 3, 2, 1]);
}

async fn try_count_resets_on_a_rerun_the_attempt_number_never_does(bench: Bench) {
    let yaml = "
jobs:
  BAD: { type: SCRIPT, interpreter: sh, script: 'exit 3', retry_count: 1, retry_delay_sec: 60 }
";
    let (id, _) = ran(&bench, yaml).await;
    act(&bench, id, RERUN, &["BAD"]).await;
    let row = bench.rows(id).await.remove(0);
    assert_eq!((row.try_count, row.attempt), (0, 2));
    carried(&bench, id).await;
    let row = bench.rows(id).await.remove(0);
    assert_eq!((row.try_count, row.attempt), (1, 4), "one retry again");
    let starts = bench.history(id, "BAD").await;
    let starts: Vec<_> = starts.iter().filter(|h| h.starts_with("RUNNING")).collect();
    assert_eq!(starts, ["RUNNING#1", "RUNNING#2", "RUNNING#3", "RUNNING#4"]);
}

async fn a_rerun_takes_the_snapshot_unless_latest_is_asked_for(bench: Bench) {
    let broken = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'exit 3' } }";
    let mended = defs(&broken.replace("exit 3", "exit 0"));
    let (id, _) = ran(&bench, broken).await;
    act(&bench, id, RERUN, &["A"]).await;
    assert_eq!(carried(&bench, id).await, BatchStatus::Failed, "the snapshot");
    let other = defs(&broken.replace("} }", "}, NEW: { type: NOOP } }"));
    let refused = try_act(&bench, id, RERUN, &["A"], Some(&other)).await.expect_err("shape");
    assert!(refused.to_string().contains("+ NEW"), "{refused:#}");
    try_act(&bench, id, RERUN, &["A"], Some(&mended)).await.expect("rerun");
    assert_eq!(carried(&bench, id).await, BatchStatus::Success);
}

// --- kill, pause, priority, now --------------------------------------------------------------------

/// KILLING ends only when the server session or the process tree is really gone; the rest of the
/// batch goes on.
async fn killing_ends_when_the_body_is_gone_and_the_rest_goes_on(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let pid = folder.path().join("pid");
    let (kind, sql) = match bench.db.dialect() {
        procession::db::Dialect::Sqlite => {
            let script = format!("sleep 60 & echo $! > {}; wait", pid.display());
            ("type: SCRIPT, interpreter: sh, retry_count: 5", format!("script: '{script}'"))
        }
        procession::db::Dialect::Mysql => ("type: SQL, source: s", "sql: SELECT SLEEP(61)".into()),
        procession::db::Dialect::Postgres => {
            ("type: SQL, source: s", "sql: SELECT pg_sleep(61)".into())
        }
    };
    let yaml = format!(
        "
sources: {{ s: {{ url: '{}' }} }}
jobs:
  LONG: {{ {kind}, {sql} }}
  BELOW: {{ type: NOOP, depends_on: [LONG] }}
  OTHER: {{ type: NOOP, schedule_time: '00:01' }}
",
        bench.url
    );
    let (mut process, id) = open(&bench, &yaml).await;
    process.run_tick().await.expect("beat");
    body_runs(&bench, &pid).await;
    assert_eq!(act(&bench, id, OperatorAction::Kill, &["LONG"]).await, "LONG RUNNING>KILLING");
    assert_eq!(
        act(&bench, id, OperatorAction::Kill, &["LONG"]).await,
        "LONG KILLING>KILLING",
        "harmless"
    );
    process.poll_changes().await.expect("look");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "LONG=KILLED BELOW=UPSTREAM_FAILED OTHER=PENDING");
    assert_eq!(bench.history(id, "LONG").await, ["RUNNING#1", "KILLING#1", "KILLED#1"]);
    assert!(!alive(&bench, &pid).await, "the body is gone");
    let message = bench.rows(id).await[0].error_message.clone().expect("who, why and how");
    assert!(message.starts_with("killed by li: 月末 rates; "), "{message}");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "LONG=KILLED BELOW=UPSTREAM_FAILED OTHER=SUCCESS");
}

async fn body_runs(bench: &Bench, pid: &std::path::Path) {
    for _ in 0..400 {
        if alive(bench, pid).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the body never ran");
}

async fn alive(bench: &Bench, pid: &std::path::Path) -> bool {
    let query = match bench.db.dialect() {
        procession::db::Dialect::Sqlite => {
            let pid = std::fs::read_to_string(pid).unwrap_or_default();
            let pid = pid.trim();
            return !pid.is_empty() && std::path::Path::new("/proc").join(pid).join("exe").exists();
        }
        procession::db::Dialect::Mysql => {
            "SELECT COUNT(*) AS n FROM information_schema.processlist \
             WHERE info = 'SELECT SLEEP(61)' AND db = DATABASE()"
        }
        procession::db::Dialect::Postgres => {
            "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'active' AND query LIKE 'SELECT pg_sleep(61)%'"
        }
    };
    bench.number(query).await > 0
}

async fn what_waits_is_killed_without_starting(bench: Bench) {
    let yaml = "
jobs:
  LATER: { type: NOOP, schedule_time: '09:00' }
  BELOW: { type: NOOP, depends_on: [LATER] }
";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    act(&bench, id, OperatorAction::Kill, &["LATER"]).await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "LATER=KILLED BELOW=UPSTREAM_FAILED");
    assert_eq!(bench.history(id, "LATER").await, ["KILLED#0"]);
}

/// The body fails by itself just before the stop reaches it: it is not tried again all the same.
async fn a_kill_wins_over_a_retry(bench: Bench) {
    let yaml = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'exit 3', retry_count: 5, retry_delay_sec: 60 }
";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    act(&bench, id, OperatorAction::Kill, &["A"]).await;
    let error = process.run_tick().await.expect_err("worked out from older rows");
    assert!(matches!(error.downcast_ref(), Some(store::Stale::Revised)), "{error:#}");
    finish(&bench, &mut process).await;
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "KILLING#1", "KILLED#1"]);
}

async fn pause_starts_nothing_and_lets_end_what_runs(bench: Bench) {
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { script: 'exit 0' }
  B: { script: 'exit 0', depends_on: [A] }
";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    let (by, now) = (li(), bench.clock.now());
    let pause = pause::set_going(&bench.db, id, Going::Paused, &by, "rates are late", now).await;
    assert!(pause.expect("pause"));
    let twice = pause::set_going(&bench.db, id, Going::Paused, &by, "x", now).await;
    assert!(!twice.expect("is paused"));
    process.poll_changes().await.expect("look");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "A=SUCCESS B=PENDING");
    for _ in 0..3 {
        assert!(!process.run_tick().await.expect("beat"), "nothing to do");
    }
    // A process that takes the batch over finds it paused as well.
    drop(process);
    bench.clock.advance(16_000);
    let mut process = bench.process().await;
    let there = batch(&bench, id).await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    assert!(!process.run_tick().await.expect("beat"));
    let now = bench.clock.now();
    let on = pause::set_going(&bench.db, id, Going::On, &by, "they are in", now).await;
    assert!(on.expect("resume"));
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&id], BatchStatus::Success);
    let acts = "SELECT COUNT(*) AS n FROM audit_log WHERE action IN ('pause', 'resume') AND job_code IS NULL";
    assert_eq!(bench.number(acts).await, 2);
}

async fn priority_decides_who_goes_first(bench: Bench) {
    let yaml = "
groups: { g: { max_parallel: 1 } }
jobs:
  A: { type: NOOP }
  B: { type: NOOP }
  C: { type: NOOP, priority: 1 }
";
    let (mut process, id) = open(&bench, yaml).await;
    act(&bench, id, OperatorAction::Priority(9), &["B"]).await;
    process.poll_changes().await.expect("look");
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "A=QUEUED B=RUNNING C=QUEUED");
    act(&bench, id, OperatorAction::Priority(2), &["A"]).await;
    process.poll_changes().await.expect("look");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "A=RUNNING B=SUCCESS C=QUEUED");
    finish(&bench, &mut process).await;
}

async fn not_waiting_for_time_is_not_not_waiting_for_parents(bench: Bench) {
    let yaml = "
jobs:
  SLOW: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  LATE: { type: NOOP, schedule_time: '09:00' }
  LATE_TOO: { type: NOOP, schedule_time: '09:00', depends_on: [SLOW] }
  FREE: { type: NOOP, schedule_time: '09:00', depends_on: [SLOW] }
";
    let (mut process, id) = open(&bench, yaml).await;
    process.run_tick().await.expect("beat");
    act(&bench, id, OperatorAction::StartNow(Parents::Wait), &["LATE", "LATE_TOO"]).await;
    act(&bench, id, OperatorAction::StartNow(Parents::Ignore), &["FREE"]).await;
    process.poll_changes().await.expect("look");
    process.run_tick().await.expect("beat");
    assert_eq!(bench.states(id).await, "SLOW=RUNNING LATE=RUNNING LATE_TOO=PENDING FREE=RUNNING");
    act(&bench, id, OperatorAction::Kill, &["SLOW"]).await;
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(
        bench.states(id).await,
        "SLOW=KILLED LATE=SUCCESS LATE_TOO=UPSTREAM_FAILED FREE=SUCCESS"
    );
}

// --- how a command reaches the process that has the batch ------------------------------------------

/// Whatever the moment of the crash and of the action, the batch ends as if nothing had happened, and
/// nothing starts twice.
async fn an_action_and_a_crash_between_any_two_commits(bench: Bench) {
    for beats in 0..40 {
        if !held_at(&bench, beats).await {
            assert!(beats > 3, "the last job starts after the others");
            return;
        }
    }
    panic!("the last job never started, so the last beats were not tried");
}

/// Holds the last job after some beats and kills the process; `false` when it had started by then.
async fn held_at(bench: &Bench, beats: u32) -> bool {
    let folder = tempfile::tempdir().expect("folder");
    let ran = folder.path().join("ran");
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: &mark 'echo $PROCESSION_JOB_CODE $PROCESSION_ATTEMPT >> {}' }}
  B: {{ script: *mark, depends_on: [A] }}
  C: {{ script: *mark, depends_on: [A] }}
  END: {{ script: *mark, depends_on: [B, C] }}
",
        ran.display()
    );
    let order = format!(r#"{{"batchNo":"act-{beats}"}}"#);
    let order = procession::domain::batch::BatchOrder::parse(&order).expect("order");
    let mut first = bench.process().await;
    let id = first.open_batches(&defs(&yaml), &order, "test").await.expect("open")[0];
    for _ in 0..beats {
        if !first.is_idle() && !first.run_tick().await.expect("beat") {
            first.wait_for_report().await;
        }
    }
    if !bench.states(id).await.ends_with("END=PENDING") {
        return false;
    }
    act(bench, id, OperatorAction::Hold, &["END"]).await;
    if beats.is_multiple_of(2) {
        first.poll_changes().await.expect("look");
    }
    drop(first);
    bench.clock.advance(16_000);
    let mut second = bench.process().await;
    let there = batch(bench, id).await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    while second.run_tick().await.expect("beat") || second.running() > 0 {
        if second.running() > 0 {
            second.wait_for_report().await;
        }
    }
    let states = bench.states(id).await;
    assert_eq!(states, "A=SUCCESS B=SUCCESS C=SUCCESS END=HELD", "after {beats} beats");
    act(bench, id, OperatorAction::Release, &["END"]).await;
    second.poll_changes().await.expect("look");
    finish(bench, &mut second).await;
    assert_eq!(second.results()[&id], BatchStatus::Success);
    let ran = std::fs::read_to_string(ran).expect("ran");
    let mut lines: Vec<&str> = ran.lines().collect();
    lines.sort_unstable();
    let all = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), all, "a try ran twice: {ran}");
    true
}

/// A process that has not looked yet writes nothing that was worked out from older rows; its bodies
/// run on, once, and their results are kept.
async fn nothing_is_lost_or_doubled_when_a_command_comes_in_between(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  A: {{ script: 'echo A >> {0}/ran' }}
  B: {{ depends_on: [A], script: 'echo B >> {0}/ran' }}
  C: {{ depends_on: [A], script: 'echo C >> {0}/ran' }}
",
        folder.path().display()
    );
    let (mut process, id) = open(&bench, &yaml).await;
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    act(&bench, id, OperatorAction::Skip, &["B"]).await;
    let error = process.run_tick().await.expect_err("the rows have moved");
    assert!(matches!(error.downcast_ref(), Some(store::Stale::Revised)), "{error:#}");
    assert_eq!(bench.states(id).await, "A=RUNNING B=SKIPPED C=PENDING");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS B=SKIPPED C=SUCCESS");
    let ran = std::fs::read_to_string(folder.path().join("ran")).expect("ran");
    assert_eq!(ran, "A\nC\n");
    assert_eq!(process.running(), 0);
}

/// The list that was shown is the list that is written, or nothing is.
async fn a_batch_that_went_on_since_the_list_was_shown_is_left_alone(bench: Bench) {
    let yaml = "
jobs:
  A: { type: NOOP }
  B: { type: NOOP, depends_on: [A], schedule_time: '09:00' }
";
    let (mut process, id) = open(&bench, yaml).await;
    let (jobs, by) = (codes(&["A"]), li());
    let command = Command {
        batch: id,
        action: OperatorAction::Kill,
        jobs: &jobs,
        latest: None,
        by: &by,
        reason: "x",
    };
    let now = bench.clock.now();
    let shown = operator_actions::look_ahead(&bench.db, &command, now).await.expect("list").lines;
    assert_eq!(
        bench.number("SELECT COUNT(*) AS n FROM audit_log").await,
        0,
        "a look writes nothing"
    );
    process.run_tick().await.expect("beat");
    let late =
        operator_actions::carry_out(&bench.db, &command, &shown, now).await.expect_err("moved");
    assert!(late.downcast_ref::<Moved>().is_some(), "{late:#}");
    assert!(bench.states(id).await.starts_with("A=RUNNING"));
    finish(&bench, &mut process).await;
    let late = try_act(&bench, id, OperatorAction::Kill, &["A", "NOBODY", "b"], None).await;
    let said = late.expect_err("three reasons").to_string();
    assert!(said.contains("has no job NOBODY") && said.contains("did you mean B?"), "{said}");
}

async fn every_act_is_stored_with_its_reason(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let (id, _) = ran(&bench, &once(&folder)).await;
    act(&bench, id, OperatorAction::ForceSuccess, &["BAD"]).await;
    let mut tx = bench.db.begin_read().await.expect("read");
    let records = store::audit::list_records(&mut tx, &store::audit::AuditFilter::default(), 9)
        .await
        .expect("list");
    drop(tx);
    let told: Vec<String> = records
        .iter()
        .rev()
        .map(|r| {
            let detail = r.entry.detail.as_ref().expect("detail");
            let job = r.entry.job.as_ref().expect("job");
            format!("{job} {} {}", detail["before"]["status"], detail["after"]["status"])
        })
        .collect();
    let wanted = [
        r#"BAD "FAILED" "FORCED""#,
        r#"BELOW "UPSTREAM_FAILED" "PENDING""#,
        r#"DEEPER "UPSTREAM_FAILED" "PENDING""#,
    ];
    assert_eq!(told, wanted);
    assert!(records.iter().all(|r| r.by == li() && r.entry.action == "force-success"));
    assert!(records.iter().all(|r| r.entry.reason.as_deref() == Some("月末 rates")));
    assert_eq!(bench.history(id, "BAD").await.last().map(String::as_str), Some("FORCED#1"));
    let logged = "SELECT COUNT(*) AS n FROM job_execution_logs WHERE status = 'PENDING' \
                  AND error_message LIKE 'waits again, because another job was forced to success by li%'";
    assert_eq!(bench.number(logged).await, 2);
    let refused = try_act(&bench, id, OperatorAction::Hold, &["A"], None).await.expect_err("done");
    assert!(refused.downcast_ref::<Refusals>().is_some());
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM audit_log").await, 3, "refused: not done");
    assert_eq!(batch(&bench, id).await.revision, 1);
    carried(&bench, id).await;
}

on_each_database! {
    operator_skip_goes_on_without_it_and_children_run
    condition_skip_is_a_branch_not_taken_and_all_parents_decide
    hold_is_not_ice_is_not_no_exec_is_not_skip
    ice_is_thawed_while_the_batch_is_open
    standing_ice_and_no_exec_hold_for_every_new_batch
    force_success_lets_the_batch_go_on_by_itself
    force_failure_stops_what_waits_for_it
    rerun_from_failure_is_the_failed_ones_and_their_not_succeeded_descendants
    rerun_with_downstream_is_the_job_and_all_descendants
    try_count_resets_on_a_rerun_the_attempt_number_never_does
    a_rerun_takes_the_snapshot_unless_latest_is_asked_for
    killing_ends_when_the_body_is_gone_and_the_rest_goes_on
    what_waits_is_killed_without_starting
    a_kill_wins_over_a_retry
    pause_starts_nothing_and_lets_end_what_runs
    priority_decides_who_goes_first
    not_waiting_for_time_is_not_not_waiting_for_parents
    an_action_and_a_crash_between_any_two_commits
    nothing_is_lost_or_doubled_when_a_command_comes_in_between
    a_batch_that_went_on_since_the_list_was_shown_is_left_alone
    every_act_is_stored_with_its_reason
}
