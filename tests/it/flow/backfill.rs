//! A range of batches run as one thing, on the real engine.

use crate::flow::{Bench, defs, on, on_each_database};
use procession::domain::backfill::{
    BackfillFailurePolicy, BackfillOptions, BackfillSelection, BackfillStatus, EntryStatus,
    RangeOrder,
};
use procession::domain::batch::BatchOrder;
use procession::domain::batch_no::range;
use procession::domain::id::{BackfillId, BatchNo, GroupCode};
use procession::domain::source::DialectName;
use procession::engine::dispatch::backfill::{Request, Resumption, stop_backfill};
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;
use procession::store::audit::{self, Operator};
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;

fn operator() -> Operator {
    Operator::new("test".to_owned(), "here".to_owned())
}

fn go_on(id: BackfillId, parallel: Option<u32>) -> Resumption {
    Resumption { id, parallel, by: operator(), reason: Some("cured".to_owned()) }
}

fn request(text: &str, parallel: u32) -> Request {
    Request {
        group: GroupCode::parse("g").expect("group"),
        range: text.to_owned(),
        numbers: range(text).expect("range"),
        options: BackfillOptions {
            parallel,
            order: None,
            only: BackfillSelection::Undone,
            on_failure: BackfillFailurePolicy::Stop,
            params: BTreeMap::new(),
            free_text: false,
        },
        by: operator(),
        reason: Some("a new column".to_owned()),
    }
}

/// Two jobs, the second of which needs `repaired` in the batches named in `broken`; what ran is
/// written down in `ran`.
fn yaml(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "
groups: {{ g: {{}} }}
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: 'echo $PROCESSION_BATCH_NO A $PROCESSION_ATTEMPT >> {folder}/ran' }}
  B:
    depends_on: [A]
    script: |
      echo $PROCESSION_BATCH_NO B $PROCESSION_ATTEMPT >> {folder}/ran
      test -e {folder}/repaired || ! grep -q $PROCESSION_BATCH_NO {folder}/broken
"
    )
}

/// The folder with these batch numbers broken.
fn broken(numbers: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("broken"), numbers).expect("file");
    folder
}

fn repair(folder: &tempfile::TempDir) {
    std::fs::write(folder.path().join("repaired"), "").expect("file");
}

fn ran(folder: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What was most at any beat.
#[derive(Debug, Default, PartialEq, Eq)]
struct Most {
    batches: i64,
    jobs: i64,
}

impl Most {
    async fn look(&mut self, bench: &Bench) {
        let open = "SELECT COUNT(*) AS n FROM job_batch WHERE status = 'RUNNING'";
        self.batches = self.batches.max(bench.number(open).await);
        let running = "SELECT COUNT(*) AS n FROM job_queue WHERE status = 'RUNNING'";
        self.jobs = self.jobs.max(bench.number(running).await);
    }
}

/// Beats until all is done, or `beats` times; gives what was most.
async fn drive(bench: &Bench, process: &mut QueueDispatcher, beats: usize) -> Most {
    let mut most = Most::default();
    for _ in 0..beats {
        if process.is_idle() {
            break;
        }
        let moved = process.run_tick().await.expect("beat");
        most.look(bench).await;
        if !moved && process.running() > 0 {
            process.wait_for_report().await;
        }
    }
    most
}

async fn to_its_end(bench: &Bench, process: &mut QueueDispatcher) -> Most {
    let most = drive(bench, process, 2_000).await;
    assert!(process.is_idle(), "it does not end");
    most
}

/// `202401=SUCCESS 202402=PENDING …`, and the state of the whole.
async fn states(bench: &Bench, id: BackfillId) -> (BackfillStatus, String) {
    let mut tx = bench.db.begin_read().await.expect("read");
    let row = store::backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    let entries = store::backfill::entries(&mut tx, id).await.expect("entries");
    let words: Vec<String> =
        entries.iter().map(|e| format!("{}={}", e.batch_no, e.status)).collect();
    (row.status, words.join(" "))
}

/// The numbers of the batches there are, in the order in which they were opened.
async fn opened(bench: &Bench) -> Vec<String> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let mut all = store::batch::list_batches(&mut tx, None, 1_000).await.expect("list");
    all.reverse();
    all.iter().map(|b| b.values.batch_no.to_string()).collect()
}

async fn run_one(bench: &Bench, yaml: &str, no: &str) {
    let mut process = bench.process().await;
    let json = format!(r#"{{"batchNo":"{no}","group":"g"}}"#);
    let order = BatchOrder::parse(&json).expect("order");
    process.open_batches(&defs(yaml), &order, "test").await.expect("open");
    to_its_end(bench, &mut process).await;
}

async fn twelve_months_one_after_the_other(bench: Bench) {
    let folder = broken("none");
    let mut process = bench.process().await;
    let request = request("202401..202412", 1);
    let id =
        process.start_backfill(&defs(&yaml(folder.path())), &request, None).await.expect("start");
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Running);
    assert_eq!(words.matches("=PENDING").count(), 12);
    let most = to_its_end(&bench, &mut process).await;
    assert_eq!(most, Most { batches: 1, jobs: 1 });
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words.matches("=SUCCESS").count(), 12, "{words}");
    let wanted: Vec<String> =
        (1..=12).flat_map(|m| [format!("2024{m:02} A 1"), format!("2024{m:02} B 1")]).collect();
    assert_eq!(ran(&folder), wanted);
    let carried = format!("SELECT COUNT(*) AS n FROM job_batch WHERE backfill_id = {id}");
    assert_eq!(bench.number(&carried).await, 12);
    let owned = "SELECT COUNT(*) AS n FROM backfill WHERE owner IS NULL AND end_time IS NOT NULL";
    assert_eq!(bench.number(owned).await, 1);
}

async fn twelve_months_three_at_a_time_newest_first(bench: Bench) {
    let folder = broken("none");
    let mut process = bench.process().await;
    let mut request = request("202401..202412", 3);
    request.options.order = Some(RangeOrder::Desc);
    let id =
        process.start_backfill(&defs(&yaml(folder.path())), &request, None).await.expect("start");
    assert_eq!(to_its_end(&bench, &mut process).await.batches, 3);
    assert_eq!(states(&bench, id).await.0, BackfillStatus::Success);
    let newest_first: Vec<String> = (1..=12).rev().map(|m| format!("2024{m:02}")).collect();
    assert_eq!(opened(&bench).await, newest_first);
    assert_eq!(ran(&folder).len(), 24);
}

async fn limits_hold_over_all_batches(bench: Bench) {
    let yaml = "
groups: { g: { max_parallel: 2 } }
defaults: { type: SCRIPT, interpreter: sh }
jobs: { A: { script: 'true' }, B: { script: 'true' }, C: { script: 'true' } }
";
    let mut process = bench.process().await;
    let request = request("202401..202406", 3);
    process.start_backfill(&defs(yaml), &request, None).await.expect("start");
    let most = to_its_end(&bench, &mut process).await;
    assert_eq!(most, Most { batches: 3, jobs: 2 });
}

async fn only_what_failed_and_only_what_is_missing(bench: Bench) {
    let folder = broken("202402 202404");
    let yaml = yaml(folder.path());
    for no in ["202401", "202402", "202404"] {
        run_one(&bench, &yaml, no).await;
    }
    repair(&folder);
    let before = ran(&folder);
    let mut process = bench.process().await;
    let mut request = request("202401..202405", 1);
    request.options.only = BackfillSelection::Missing;
    let id = process.start_backfill(&defs(&yaml), &request, None).await.expect("start");
    to_its_end(&bench, &mut process).await;
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words, "202401=LEFT 202402=LEFT 202403=SUCCESS 202404=LEFT 202405=SUCCESS");
    request.options.only = BackfillSelection::Failed;
    request.options.order = Some(RangeOrder::Desc);
    let id = process.start_backfill(&defs(&yaml), &request, None).await.expect("start");
    to_its_end(&bench, &mut process).await;
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words, "202405=LEFT 202404=SUCCESS 202403=LEFT 202402=SUCCESS 202401=LEFT");
    // From its failures: A ran well and does not run again.
    let wanted =
        ["202403 A 1", "202403 B 1", "202405 A 1", "202405 B 1", "202404 B 2", "202402 B 2"];
    assert_eq!(ran(&folder)[before.len()..], wanted);
    // Those that it opened carry its number, those it went on with keep their own.
    let carried = "SELECT COUNT(*) AS n FROM job_batch WHERE backfill_id IS NOT NULL";
    assert_eq!(bench.number(carried).await, 2);
}

async fn a_failure_stops_it_and_it_goes_on_after_the_cure(bench: Bench) {
    let folder = broken("202402");
    let defs = defs(&yaml(folder.path()));
    let mut process = bench.process().await;
    let id =
        process.start_backfill(&defs, &request("202401..202404", 1), None).await.expect("start");
    to_its_end(&bench, &mut process).await;
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Failed);
    assert_eq!(words, "202401=SUCCESS 202402=FAILED 202403=PENDING 202404=PENDING");
    repair(&folder);
    // The same process or another; its row belongs to nobody now.
    process.resume_backfill(&defs, &go_on(id, Some(2)), None).await.expect("resume");
    assert_eq!(to_its_end(&bench, &mut process).await.batches, 2);
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words, "202401=SUCCESS 202402=SUCCESS 202403=SUCCESS 202404=SUCCESS");
    assert_eq!(ran(&folder).iter().filter(|l| l.starts_with("202402 A")).count(), 1);
    let error = process.resume_backfill(&defs, &go_on(id, None), None).await.expect_err("all done");
    assert!(error.to_string().contains("ended SUCCESS"), "{error:#}");
}

async fn a_failure_stays_in_its_batch_when_the_others_go_on(bench: Bench) {
    let folder = broken("202402");
    let mut yaml = yaml(folder.path());
    // 202403 needs all of 202402, and so on; 202405 is asked for on its own.
    yaml += "  FIRST: { type: NOOP, depends_on: [{ group: g, batch: prev, missing: wait }] }\n";
    run_one(&bench, &yaml.replace("wait", "pass"), "202401").await;
    run_one(&bench, &yaml.replace("wait", "pass"), "202405").await;
    let mut process = bench.process().await;
    let mut request = request("202402,202403,202404,202406", 1);
    request.options.on_failure = BackfillFailurePolicy::GoOn;
    let id = process.start_backfill(&defs(&yaml), &request, None).await.expect("start");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Failed);
    assert_eq!(words, "202402=FAILED 202403=UPSTREAM_FAILED 202404=UPSTREAM_FAILED 202406=SUCCESS");
    repair(&folder);
    process.leave().await.expect("leave");
    let mut process = bench.process().await;
    process.resume_backfill(&defs(&yaml), &go_on(id, None), None).await.expect("resume");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words, "202402=SUCCESS 202403=SUCCESS 202404=SUCCESS 202406=SUCCESS");
}

/// Batches that are open already and wait for one that has failed would be waited for without end.
async fn what_waits_for_a_failure_is_put_down(bench: Bench) {
    let folder = broken("202402");
    let mut yaml = yaml(folder.path());
    yaml += "  FIRST: { type: NOOP, depends_on: [{ group: g, batch: prev, missing: wait }] }\n";
    run_one(&bench, &yaml.replace("wait", "pass"), "202401").await;
    let mut process = bench.process().await;
    let id = process
        .start_backfill(&defs(&yaml), &request("202402..202405", 3), None)
        .await
        .expect("start");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Failed);
    assert_eq!(words, "202402=FAILED 202403=OPEN 202404=OPEN 202405=PENDING");
    process.leave().await.expect("leave");
    repair(&folder);
    let mut process = bench.process().await;
    // One at a time: those that were left open must not take the place of the one they wait for.
    process.resume_backfill(&defs(&yaml), &go_on(id, Some(1)), None).await.expect("resume");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    assert_eq!(states(&bench, id).await.0, BackfillStatus::Success);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 5);
}

async fn an_order_that_would_wait_for_ever_writes_nothing(bench: Bench) {
    let yaml = "
groups: { g: {} }
jobs: { A: { type: NOOP, depends_on: [{ group: g, batch: prev, missing: wait }] } }
";
    let mut process = bench.process().await;
    let request = request("202403..202401", 1);
    let error = process.start_backfill(&defs(yaml), &request, None).await.expect_err("desc");
    assert!(error.to_string().contains("batch 202403 waits for batch 202402"), "{error:#}");
    assert!(process.is_idle());
    for table in ["backfill", "backfill_batch", "job_batch"] {
        assert_eq!(bench.number(&format!("SELECT COUNT(*) AS n FROM {table}")).await, 0);
    }
}

async fn a_living_owner_is_refused(bench: Bench) {
    let yaml = "groups: { g: {} }\njobs: { A: { type: SCRIPT, interpreter: sh, idempotent: true, script: 'sleep 60' } }";
    let mut first = bench.process().await;
    let id = first.start_backfill(&defs(yaml), &request("202402", 1), None).await.expect("start");
    first.run_tick().await.expect("beat");
    let mut second = bench.process().await;
    let error =
        second.resume_backfill(&defs(yaml), &go_on(id, None), None).await.expect_err("living");
    let pid = format!("pid {}", std::process::id());
    assert!(error.to_string().contains(&pid), "{error:#}");
    let again = request("202401..202403", 1);
    let error = second.start_backfill(&defs(yaml), &again, None).await.expect_err("held");
    assert!(error.to_string().contains("batch 202402 of group g is in the hands"), "{error:#}");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM backfill").await, 1);
    assert_eq!(opened(&bench).await, ["202402"]);
    // Its lease runs out, and the late one notices that it has lost both.
    bench.clock.advance(16_000);
    second.resume_backfill(&defs(yaml), &go_on(id, None), None).await.expect("dead by now");
    second.run_tick().await.expect("beat");
    assert_eq!(states(&bench, id).await.1, "202402=OPEN");
    first.heartbeat().await.expect("heartbeat");
    for what in ["batch 202402", "backfill 1"] {
        let error = format!("{:#}", first.run_tick().await.expect_err("taken over"));
        assert!(error.contains(what) && error.contains("taken over"), "{error}");
    }
    assert!(first.is_idle());
    let nowhere = BackfillId(99);
    let error =
        second.resume_backfill(&defs(yaml), &go_on(nowhere, None), None).await.expect_err("none");
    assert!(error.to_string().contains("no backfill 99"), "{error:#}");
}

async fn an_operator_stops_it_and_it_is_resumed(bench: Bench) {
    let folder = broken("none");
    let defs = defs(&yaml(folder.path()));
    let mut process = bench.process().await;
    // Batches of its own that it left open are not what `missing` leaves alone.
    let mut request = request("202401..202406", 2);
    request.options.only = BackfillSelection::Missing;
    let id = process.start_backfill(&defs, &request, None).await.expect("start");
    // The first beat opens two and starts the first job of each.
    process.run_tick().await.expect("beat");
    let mut tx = bench.db.begin().await.expect("begin");
    assert!(store::backfill::request_stop(&mut tx, id, bench.clock.now()).await.expect("ask"));
    tx.commit().await.expect("commit");
    process.look_for_stop().await.expect("look");
    process.run_until_done(&CancellationToken::new()).await.expect("drain");
    process.leave().await.expect("leave");
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Stopped);
    assert!(words.starts_with("202401=OPEN 202402=OPEN 202403=PENDING"), "{words}");
    assert_eq!(ran(&folder).len(), 2, "what ran has ended, nothing else was started");
    let running = "SELECT COUNT(*) AS n FROM job_queue WHERE status = 'RUNNING'";
    assert_eq!(bench.number(running).await, 0);
    let mut tx = bench.db.begin().await.expect("begin");
    assert!(!store::backfill::request_stop(&mut tx, id, bench.clock.now()).await.expect("ask"));
    drop(tx);
    let mut second = bench.process().await;
    second.resume_backfill(&defs, &go_on(id, None), None).await.expect("resume");
    to_its_end(&bench, &mut second).await;
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Success);
    assert_eq!(words.matches("=SUCCESS").count(), 6, "{words}");
    each_ran_once(&folder, 6);
}

/// Every job of every batch ran, and none twice in one try.
fn each_ran_once(folder: &tempfile::TempDir, batches: usize) {
    let mut tries = ran(folder);
    tries.sort();
    let all = tries.len();
    tries.dedup();
    assert_eq!(tries.len(), all, "a try ran twice");
    let mut jobs: Vec<&str> = tries.iter().map(|t| &t[..t.len() - 2]).collect();
    jobs.dedup();
    assert_eq!(jobs.len(), batches * 2, "{tries:?}");
}

/// The process dies after any number of beats; whoever goes on neither loses a batch nor opens one
/// twice, and never has more open than allowed.
async fn killed_between_any_two_beats(bench: Bench) {
    for beats in 0.. {
        let folder = broken("none");
        let defs = defs(&yaml(folder.path()));
        // The year is another each time, because a batch number runs once.
        let year = 2000 + beats;
        let request = request(&format!("{year}01..{year}04"), 2);
        let mut first = bench.process().await;
        let id = first.start_backfill(&defs, &request, None).await.expect("start");
        drive(&bench, &mut first, beats).await;
        let was_open = !first.is_idle();
        drop(first);
        if !was_open {
            break;
        }
        bench.clock.advance(16_000);
        let mut second = bench.process().await;
        second.resume_backfill(&defs, &go_on(id, None), None).await.expect("resume");
        let most = to_its_end(&bench, &mut second).await;
        assert!(most.batches <= 2, "{most:?} after {beats} beats");
        let (status, words) = states(&bench, id).await;
        assert_eq!(status, BackfillStatus::Success, "after {beats} beats: {words}");
        assert_eq!(words.matches("=SUCCESS").count(), 4, "after {beats} beats: {words}");
        each_ran_once(&folder, 4);
        assert!(beats < 60, "the backfill never ended, so its last beats were not tried");
    }
}

/// Between the commit that opens a batch and the one that starts its first job, and between the
/// commit that takes batches over and the one that settles what their dead process left.
async fn killed_between_two_commits(bench: Bench) {
    let folder = broken("none");
    let defs = defs(&yaml(folder.path()));
    let mut first = bench.process().await;
    let id = first.start_backfill(&defs, &request("202401..202403", 2), None).await.expect("start");
    bench.by_hand("ALTER TABLE job_execution_logs RENAME TO away").await;
    first.run_tick().await.expect_err("the jobs cannot be claimed");
    assert_eq!(states(&bench, id).await.1, "202401=OPEN 202402=OPEN 202403=PENDING");
    assert_eq!(opened(&bench).await, ["202401", "202402"]);
    drop(first);
    bench.by_hand("ALTER TABLE away RENAME TO job_execution_logs").await;
    bench.clock.advance(16_000);
    let mut second = bench.process().await;
    second.resume_backfill(&defs, &go_on(id, None), None).await.expect("resume");
    second.run_tick().await.expect("the jobs are claimed");
    drop(second);
    bench.clock.advance(16_000);
    bench.by_hand("ALTER TABLE job_execution_logs RENAME TO away").await;
    let mut third = bench.process().await;
    third.resume_backfill(&defs, &go_on(id, None), None).await.expect("resume");
    third.run_tick().await.expect_err("what was left running cannot be settled");
    bench.by_hand("ALTER TABLE away RENAME TO job_execution_logs").await;
    // The same process goes on once the database is back.
    to_its_end(&bench, &mut third).await;
    assert_eq!(states(&bench, id).await.0, BackfillStatus::Success);
    assert_eq!(opened(&bench).await, ["202401", "202402", "202403"]);
}

async fn what_another_process_did_meanwhile_is_respected(bench: Bench) {
    let folder = broken("202402");
    let defs = defs(&yaml(folder.path()));
    let text = yaml(folder.path());
    let mut process = bench.process().await;
    let mut request = request("202401..202404", 1);
    request.options.on_failure = BackfillFailurePolicy::GoOn;
    let id = process.start_backfill(&defs, &request, None).await.expect("start");
    // All four were missing; now one is done, and another belongs to a living process.
    run_one(&bench, &text, "202403").await;
    let mut other = bench.process().await;
    let order = BatchOrder::parse(r#"{"batchNo":"202404","group":"g"}"#).expect("order");
    other.open_batches(&defs, &order, "test").await.expect("open");
    to_its_end(&bench, &mut process).await;
    let (status, words) = states(&bench, id).await;
    assert_eq!(status, BackfillStatus::Failed);
    assert_eq!(words, "202401=SUCCESS 202402=FAILED 202403=LEFT 202404=REFUSED");
    let mut tx = bench.db.begin_read().await.expect("read");
    let shown = store::backfill::shown(&mut tx, id).await.expect("shown");
    assert!(shown[3].entry.message.as_deref().is_some_and(|m| m.contains("in the hands")));
    assert_eq!(shown[1].entry.status, EntryStatus::Failed);
    let failed = &shown[1].batch.as_ref().expect("batch").failed;
    assert_eq!(failed.iter().map(|(code, _)| code.as_str()).collect::<Vec<_>>(), ["B"]);
    assert_eq!(shown[0].entry.batch_no, BatchNo::parse("202401").expect("no"));
}

/// What is on record: who, from where, what, to which group, why.
async fn on_record(bench: &Bench) -> Vec<String> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let mut all = audit::list_records(&mut tx, &Default::default(), 100).await.expect("list");
    all.reverse();
    let words = |r: &audit::AuditRecord| {
        let (entry, by) = (&r.entry, &r.by);
        let group = entry.group.as_ref().map_or("-", |g| g.as_str());
        let detail = entry.detail.as_ref().map(ToString::to_string).unwrap_or_default();
        let why = entry.reason.as_deref().unwrap_or("-");
        format!("{}@{} {} {group} {detail} {why}", by.actor, by.host, entry.action)
    };
    all.iter().map(words).collect()
}

async fn who_begins_stops_and_goes_on_is_on_record(bench: Bench) {
    let folder = broken("none");
    let defs = defs(&yaml(folder.path()));
    let mut first = bench.process().await;
    let id = first.start_backfill(&defs, &request("202401..202404", 1), None).await.expect("start");
    let mut wanted = vec![
        "test@here backfill g {\"backfill\":1,\"range\":\"202401..202404\"} a new column"
            .to_owned(),
    ];
    assert_eq!(on_record(&bench).await, wanted);
    // What is refused is not done, and nothing is said of it.
    let mut second = bench.process().await;
    first.run_tick().await.expect("beat");
    second.start_backfill(&defs, &request("202401", 1), None).await.expect_err("held");
    second.resume_backfill(&defs, &go_on(id, None), None).await.expect_err("living");
    assert_eq!(on_record(&bench).await, wanted);
    drop(first);
    bench.clock.advance(16_000);
    let row = async || {
        let mut tx = bench.db.begin_read().await.expect("read");
        store::backfill::find_backfill(&mut tx, id).await.expect("find").expect("there")
    };
    let (by, reason) = (operator(), Some("the wrong year"));
    let now = bench.clock.now();
    assert!(stop_backfill(&bench.db, &row().await, &by, reason, now).await.expect("stop"));
    wanted.push("test@here backfill stop g {\"backfill\":1} the wrong year".to_owned());
    let stopped = row().await;
    // Its process is dead, so nobody else says that it has stopped.
    assert_eq!((stopped.status, &stopped.owner), (BackfillStatus::Stopped, &None));
    assert!(!stop_backfill(&bench.db, &stopped, &by, reason, now).await.expect("nothing to stop"));
    assert_eq!(on_record(&bench).await, wanted);
    second.resume_backfill(&defs, &go_on(id, Some(2)), None).await.expect("resume");
    wanted.push("test@here backfill resume g {\"backfill\":1,\"parallel\":2} cured".to_owned());
    assert_eq!(on_record(&bench).await, wanted);
    to_its_end(&bench, &mut second).await;
    assert_eq!(states(&bench, id).await.0, BackfillStatus::Success);
    assert_eq!(on_record(&bench).await, wanted);
}

/// The act and its record are one transaction: where the one cannot be written, the other is not.
async fn without_its_record_it_is_not_begun_stopped_or_gone_on_with(bench: Bench) {
    let folder = broken("none");
    let defs = defs(&yaml(folder.path()));
    let mut process = bench.process().await;
    let request = request("202401..202402", 1);
    let (hide, show) =
        ("ALTER TABLE audit_log RENAME TO away", "ALTER TABLE away RENAME TO audit_log");
    bench.by_hand(hide).await;
    process.start_backfill(&defs, &request, None).await.expect_err("no record");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM backfill").await, 0);
    assert!(process.is_idle());
    bench.by_hand(show).await;
    let id = process.start_backfill(&defs, &request, None).await.expect("start");
    drop(process);
    bench.clock.advance(16_000);
    let row = async || {
        let mut tx = bench.db.begin_read().await.expect("read");
        store::backfill::find_backfill(&mut tx, id).await.expect("find").expect("there")
    };
    let before = row().await;
    bench.by_hand(hide).await;
    let mut second = bench.process().await;
    second.resume_backfill(&defs, &go_on(id, None), None).await.expect_err("no record");
    stop_backfill(&bench.db, &before, &operator(), None, bench.clock.now())
        .await
        .expect_err("no record");
    assert_eq!(row().await, before);
    assert!(second.is_idle());
    bench.by_hand(show).await;
    second.resume_backfill(&defs, &go_on(id, None), None).await.expect("resume");
    to_its_end(&bench, &mut second).await;
    assert_eq!(states(&bench, id).await.0, BackfillStatus::Success);
}

on_each_database! {
    who_begins_stops_and_goes_on_is_on_record
    without_its_record_it_is_not_begun_stopped_or_gone_on_with
    twelve_months_one_after_the_other
    twelve_months_three_at_a_time_newest_first
    limits_hold_over_all_batches
    only_what_failed_and_only_what_is_missing
    a_failure_stops_it_and_it_goes_on_after_the_cure
    a_failure_stays_in_its_batch_when_the_others_go_on
    what_waits_for_a_failure_is_put_down
    an_order_that_would_wait_for_ever_writes_nothing
    a_living_owner_is_refused
    an_operator_stops_it_and_it_is_resumed
    killed_between_any_two_beats
    killed_between_two_commits
    what_another_process_did_meanwhile_is_respected
}
