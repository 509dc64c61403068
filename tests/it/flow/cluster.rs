//! Jobs of one batch on several nodes: where they go, how their ends come back, and what becomes of
//! them when a node dies, is fenced, leaves or is full, at whatever moment.

use crate::flow::lease::until;
use crate::flow::{Bench, defs, on, on_each_database, order};
use procession::domain::batch::BatchStatus;
use procession::domain::cluster::node_placement::NodeRole;
use procession::domain::id::{BatchId, NodeId};
use procession::domain::source::DialectName;
use procession::engine::NodeOptions;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::store;
use procession::store::node::Stay;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) const BOTH: &[NodeRole] = &[NodeRole::Scheduler, NodeRole::Worker];

/// A new process with a name, roles and labels; `room` jobs at once.
pub(super) async fn node(
    bench: &Bench,
    name: &str,
    roles: &[NodeRole],
    labels: &[&str],
    room: u32,
) -> QueueDispatcher {
    let mut options = bench.options.clone();
    options.max_parallel = room;
    options.node = NodeOptions {
        name: name.to_owned(),
        roles: roles.iter().copied().collect(),
        labels: labels.iter().map(|l| (*l).to_owned()).collect(),
        address: None,
    };
    let (db, clock, url) = (bench.db.clone(), bench.clock.clone(), bench.url.clone());
    Bench { db, clock, options, url }.process().await
}

/// One turn of each, in this order.
async fn turn(nodes: &mut [&mut QueueDispatcher]) {
    for node in nodes {
        node.look_around().await.expect("look around");
        while node.run_tick().await.expect("beat") {}
    }
}

/// Turns until something can be observed.
async fn turns(
    nodes: &mut [&mut QueueDispatcher],
    what: &str,
    mut is_so: impl AsyncFnMut() -> bool,
) {
    for _ in 0..1_500 {
        turn(nodes).await;
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: it never came");
}

pub(super) async fn until_states(
    bench: &Bench,
    nodes: &mut [&mut QueueDispatcher],
    id: BatchId,
    wanted: &str,
) {
    let mut last = String::new();
    for _ in 0..1_500 {
        turn(nodes).await;
        last = bench.states(id).await;
        if last == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{wanted} never came, it is {last}");
}

/// The name of the node that a row names.
async fn owner(bench: &Bench, id: BatchId, code: &str) -> String {
    let rows = bench.rows(id).await;
    let row = rows.iter().find(|r| r.job_code.as_str() == code).expect("job");
    let Some(NodeId(owner)) = &row.owner else { return String::new() };
    let mut tx = bench.db.begin_read().await.expect("read");
    let members = store::node::members(&mut tx, procession::domain::time::Millis(0)).await;
    let members = members.expect("members");
    let found = members.iter().find(|m| m.node.node_id.0 == *owner).expect("a node");
    found.offer.name.clone()
}

async fn get(bench: &Bench, id: BatchId) -> procession::domain::batch::Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

async fn reports(bench: &Bench) -> i64 {
    bench.number("SELECT COUNT(*) AS n FROM job_report").await
}

pub(super) async fn pass(bench: &Bench, ms: i64, living: &mut [&mut QueueDispatcher]) {
    for _ in 0..(ms / 3_000) {
        bench.clock.advance(3_000);
        for node in living.iter_mut() {
            node.heartbeat().await.expect("heartbeat");
        }
    }
}

/// `{f}` is a folder of its own; `HOLD x` makes a script that says it has begun and waits for the file `go`.
fn with_folder(yaml: &str, folder: &Path) -> String {
    yaml.replace(
        "HOLD",
        "echo x >> {f}/begun.$PROCESSION_JOB_CODE; while ! test -e {f}/go; do sleep 0.02; done",
    )
    .replace("{f}", &folder.display().to_string())
}

fn begun(folder: &Path, code: &str) -> usize {
    let text = std::fs::read_to_string(folder.join(format!("begun.{code}")));
    text.map_or(0, |text| text.lines().count())
}

fn go(folder: &Path) {
    std::fs::write(folder.join("go"), "").expect("file");
}

async fn a_labelled_job_runs_where_its_label_is(bench: Bench) {
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { worker: etl, script: 'echo \"::output n=41\"' }
  B: { depends_on: [A], script: 'test \"$PROCESSION_PARAM_V\" = 41', params: [{ name: v, value: '${jobs.A.n}' }] }
  C: { worker: etl, depends_on: [A], script: 'test \"$PROCESSION_PARAM_V\" = 41', params: [{ name: v, value: '${jobs.A.n}' }] }
  END: { type: NOOP, depends_on: [B, C] }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let id = o.open_batches(&defs(yaml), &order(), "test").await.expect("open")[0];
    let wanted = "A=SUCCESS B=SUCCESS C=SUCCESS END=SUCCESS";
    until_states(&bench, &mut [&mut o, &mut w], id, wanted).await;
    for (code, name) in [("A", "w"), ("B", "o"), ("C", "w"), ("END", "o")] {
        assert_eq!(owner(&bench, id, code).await, name, "{code}");
        assert_eq!(bench.history(id, code).await, ["RUNNING#1", "SUCCESS#1"]);
    }
    assert_eq!(get(&bench, id).await.status, BatchStatus::Success);
    assert_eq!((reports(&bench).await, o.running(), w.running()), (0, 0, 0));
    // What it printed is in the log of its try.
    let lines =
        bench.number("SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE '%n=41%'").await;
    assert!(lines > 0);
}

/// One slot here, two there: three of four jobs run at once, and nobody runs more than it may.
async fn what_has_no_room_here_goes_to_the_node_with_most(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs: { A: { script: 'HOLD' }, B: { script: 'HOLD' }, C: { script: 'HOLD' }, D: { script: 'HOLD' } }
";
    let defs = defs(&with_folder(yaml, folder.path()));
    let mut o = node(&bench, "o", BOTH, &[], 1).await;
    let mut w = node(&bench, "w", BOTH, &[], 2).await;
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "three begin", async || {
        ["A", "B", "C", "D"].iter().filter(|c| begun(folder.path(), c) > 0).count() == 3
    })
    .await;
    assert_eq!((o.running(), w.running()), (1, 2));
    assert_eq!(bench.states(id).await, "A=RUNNING B=RUNNING C=RUNNING D=QUEUED");
    // A new process sees at once that the other is full, by what that says of itself.
    w.heartbeat().await.expect("heartbeat");
    o.heartbeat().await.expect("heartbeat");
    let mut other = node(&bench, "p", &[NodeRole::Scheduler], &[], 1).await;
    let second = procession::domain::batch::BatchOrder::parse(r#"{"batchNo":"202408"}"#);
    let second = other.open_batches(&defs, &second.expect("order"), "test").await.expect("open")[0];
    turn(&mut [&mut other]).await;
    assert_eq!(bench.states(second).await, "A=QUEUED B=QUEUED C=QUEUED D=QUEUED");
    go(folder.path());
    let wanted = "A=SUCCESS B=SUCCESS C=SUCCESS D=SUCCESS";
    until_states(&bench, &mut [&mut o, &mut w, &mut other], id, wanted).await;
    w.heartbeat().await.expect("heartbeat");
    until_states(&bench, &mut [&mut o, &mut w, &mut other], second, wanted).await;
    assert_eq!(owner(&bench, second, "A").await, "w", "a scheduler runs no body itself");
}

/// Two that give at the same time may give too much: what has no room waits there, and nothing is lost.
async fn a_node_that_was_given_too_much_lets_it_wait(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'HOLD', worker: etl } }";
    let defs = defs(&with_folder(yaml, folder.path()));
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 1).await;
    let mut o = [node(&bench, "o", BOTH, &[], 1).await, node(&bench, "p", BOTH, &[], 1).await];
    let mut ids = Vec::new();
    for (no, o) in ["1", "2"].iter().zip(&mut o) {
        let order =
            procession::domain::batch::BatchOrder::parse(&format!(r#"{{"batchNo":"{no}"}}"#));
        ids.push(o.open_batches(&defs, &order.expect("order"), "test").await.expect("open")[0]);
        o.look_around().await.expect("look around");
    }
    for o in &mut o {
        while o.run_tick().await.expect("beat") {}
    }
    for id in &ids {
        assert_eq!(bench.states(*id).await, "A=RUNNING", "both gave it");
    }
    turns(&mut [&mut w], "one begins", async || begun(folder.path(), "A") == 1).await;
    turn(&mut [&mut w]).await;
    assert_eq!((w.running(), begun(folder.path(), "A")), (1, 1));
    go(folder.path());
    let [first, second] = &mut o;
    for id in ids {
        until_states(&bench, &mut [first, second, &mut w], id, "A=SUCCESS").await;
    }
}

async fn failures_and_time_outs_come_back(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  A: { retry_count: 1, script: 'test -e {f}/a && exit 0; echo x > {f}/a; exit 3' }
  B: { script: 'exit 3' }
  C: { timeout_sec: 1, script: 'sleep 60' }
  D: { type: NOOP, depends_on: [B] }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    let wanted = "A=SUCCESS B=FAILED C=TIMEOUT D=UPSTREAM_FAILED";
    until_states(&bench, &mut [&mut o, &mut w], id, wanted).await;
    let history = bench.history(id, "A").await;
    assert_eq!(history, ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "SUCCESS#2"]);
    assert_eq!(bench.history(id, "C").await, ["RUNNING#1", "TIMEOUT#1"]);
    let said = bench.rows(id).await[2].error_message.clone().expect("a message");
    assert!(said.contains("ran past its 1 s"), "{said}");
    assert_eq!(reports(&bench).await, 0);
}

/// A stop reaches a body on another node by its row; one that was not taken yet never begins.
async fn a_stop_reaches_the_other_node(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs: { A: { script: 'HOLD' }, B: { script: 'HOLD' } }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 1).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "A begins", async || begun(folder.path(), "A") == 1).await;
    // Given by hand, as by another node that does not know how full it is.
    bench
        .by_hand(
            "UPDATE job_queue SET status = 'RUNNING', attempt = 1, is_taken = 0, \
         owner = (SELECT node_id FROM cluster_node WHERE node_name = 'w'), \
         hosted_by = (SELECT node_id FROM cluster_node WHERE node_name = 'w') WHERE job_code = 'B'",
        )
        .await;
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    o.poll_changes().await.expect("look");
    turn(&mut [&mut o, &mut w]).await;
    assert_eq!(bench.states(id).await, "A=RUNNING B=RUNNING");
    let mut tx = bench.db.begin().await.expect("begin");
    let now = bench.clock.now();
    assert!(store::batch::request_kill(&mut tx, id, "wrong", now).await.expect("kill"));
    tx.commit().await.expect("commit");
    o.poll_changes().await.expect("look");
    assert_eq!(bench.states(id).await, "A=KILLING B=KILLING");
    until_states(&bench, &mut [&mut o, &mut w], id, "A=KILLED B=KILLED").await;
    assert_eq!(get(&bench, id).await.status, BatchStatus::Killed);
    assert_eq!((begun(folder.path(), "B"), w.running()), (0, 0));
}

/// Before it took the job: goes to another, and nobody asks what it did. After: as any crash.
async fn a_worker_dies(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  AGAIN: { idempotent: true, script: 'HOLD' }
  ONCE: { script: 'HOLD' }
  NEVER: { script: 'HOLD' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 2).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "two begin", async || {
        begun(folder.path(), "AGAIN") == 1 && begun(folder.path(), "ONCE") == 1
    })
    .await;
    let never = "UPDATE job_queue SET status = 'RUNNING', attempt = 1, is_taken = 0, owner = \
                 (SELECT node_id FROM cluster_node WHERE node_name = 'w') WHERE job_code = 'NEVER'";
    bench.by_hand(never).await;
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    o.poll_changes().await.expect("look");
    drop(w);
    pass(&bench, 12_000, &mut [&mut o]).await;
    turn(&mut [&mut o]).await;
    assert_eq!(
        bench.states(id).await,
        "AGAIN=RUNNING ONCE=RUNNING NEVER=RUNNING",
        "its lease holds"
    );
    pass(&bench, 6_000, &mut [&mut o]).await;
    turn(&mut [&mut o]).await;
    assert_eq!(bench.states(id).await, "AGAIN=RETRY_WAIT ONCE=UNKNOWN NEVER=RETRY_WAIT");
    let rows = bench.rows(id).await;
    assert_eq!((rows[0].crash_count, rows[2].crash_count), (1, 0));
    assert!(rows[2].error_message.as_deref().is_some_and(|m| m.contains("before it took")));
    go(folder.path());
    let mut heir = node(&bench, "w", &[NodeRole::Worker], &["etl"], 2).await;
    let wanted = "AGAIN=SUCCESS ONCE=UNKNOWN NEVER=SUCCESS";
    until_states(&bench, &mut [&mut o, &mut heir], id, wanted).await;
    assert_eq!(begun(folder.path(), "ONCE"), 1);
    let mut tx = bench.db.begin_read().await.expect("read");
    let all =
        store::node::members(&mut tx, procession::domain::time::Millis(0)).await.expect("all");
    let lives: Vec<_> =
        all.iter().filter(|m| m.offer.name == "w").map(|m| m.offer.incarnation).collect();
    assert_eq!(lives, [1, 2]);
}

/// The one that dispatches dies: the next leaves alone what runs elsewhere, and settles how it ended,
/// whether that was reported before or after it took the batch.
async fn the_owner_dies(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  A: { script: 'HOLD' }
  B: { script: 'true' }
  END: { type: NOOP, worker: o, depends_on: [A, B] }
";
    let mut o = node(&bench, "o", BOTH, &["o"], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    o.look_around().await.expect("look around");
    while o.run_tick().await.expect("beat") {}
    assert_eq!(bench.states(id).await, "A=RUNNING B=RUNNING END=PENDING");
    drop(o);
    turns(&mut [&mut w], "B is reported", async || reports(&bench).await == 1).await;
    until("A begins", async || begun(folder.path(), "A") == 1).await;
    let mut heir = node(&bench, "heir", BOTH, &["o"], 4).await;
    pass(&bench, 18_000, &mut [&mut w, &mut heir]).await;
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    turn(&mut [&mut heir, &mut w]).await;
    assert_eq!(bench.states(id).await, "A=RUNNING B=SUCCESS END=PENDING");
    go(folder.path());
    until_states(&bench, &mut [&mut heir, &mut w], id, "A=SUCCESS B=SUCCESS END=SUCCESS").await;
    for code in ["A", "B"] {
        assert_eq!(bench.history(id, code).await, ["RUNNING#1", "SUCCESS#1"], "{code}");
    }
    assert_eq!((begun(folder.path(), "A"), reports(&bench).await), (1, 0));
}

/// Both die: what was reported is settled, what was not is a crash.
async fn both_die(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  A: { script: 'HOLD' }
  B: { script: 'true' }
  C: { script: 'HOLD', idempotent: true }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    o.look_around().await.expect("look around");
    while o.run_tick().await.expect("beat") {}
    drop(o);
    turns(&mut [&mut w], "B is reported", async || reports(&bench).await == 1).await;
    until("they begin", async || begun(folder.path(), "A") == 1 && begun(folder.path(), "C") == 1)
        .await;
    drop(w);
    let mut heir = node(&bench, "heir", BOTH, &["etl"], 4).await;
    pass(&bench, 18_000, &mut [&mut heir]).await;
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    go(folder.path());
    until_states(&bench, &mut [&mut heir], id, "A=UNKNOWN B=SUCCESS C=SUCCESS").await;
    assert_eq!(bench.history(id, "B").await, ["RUNNING#1", "SUCCESS#1"]);
    assert_eq!(bench.history(id, "C").await.last().expect("a row"), "SUCCESS#2");
}

/// A worker takes the very batch over whose jobs it runs: they go on, as its own.
async fn a_worker_becomes_the_owner(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { worker: etl, script: 'HOLD' }
  B: { worker: etl, script: 'true' }
  END: { depends_on: [A, B], script: 'true' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", BOTH, &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    drop(o);
    turns(&mut [&mut w], "B is reported", async || reports(&bench).await == 1).await;
    until("A begins", async || begun(folder.path(), "A") == 1).await;
    pass(&bench, 18_000, &mut [&mut w]).await;
    assert_eq!(w.take_batches().await.expect("take"), 1);
    assert_eq!(w.running(), 1);
    go(folder.path());
    until_states(&bench, &mut [&mut w], id, "A=SUCCESS B=SUCCESS END=SUCCESS").await;
    for code in ["A", "B", "END"] {
        assert_eq!(bench.history(id, code).await, ["RUNNING#1", "SUCCESS#1"], "{code}");
    }
    assert_eq!((begun(folder.path(), "A"), reports(&bench).await), (1, 0));
}

/// The same when a job of it has ended and the report could not be written before: it has run.
async fn a_worker_becomes_the_owner_before_it_could_report(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, worker: etl, script: 'echo x >> {f}/begun.A' } }";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", BOTH, &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    drop(o);
    w.look_around().await.expect("it takes the job");
    while w.running() > 0 {
        w.wait_for_report().await;
    }
    pass(&bench, 18_000, &mut [&mut w]).await;
    assert_eq!(w.take_batches().await.expect("take"), 1);
    until_states(&bench, &mut [&mut w], id, "A=SUCCESS").await;
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"]);
    assert_eq!((begun(folder.path(), "A"), reports(&bench).await), (1, 0));
}

/// An owner that was silent for too long comes back: what ran there is heard of by the next.
async fn a_fenced_owner_reports_to_the_next(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { worker: etl, idempotent: true, script: 'HOLD' }
  B: { worker: o, idempotent: true, script: 'HOLD' }
";
    let mut o = node(&bench, "o", BOTH, &["o"], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let mut heir = node(&bench, "heir", BOTH, &["o"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "both begin", async || {
        begun(folder.path(), "A") == 1 && begun(folder.path(), "B") == 1
    })
    .await;
    pass(&bench, 18_000, &mut [&mut w, &mut heir]).await;
    // Given to the next in the moment in which the old one is heard of again.
    bench.by_hand(
        "UPDATE job_batch SET owner = (SELECT node_id FROM cluster_node WHERE node_name = 'heir')",
    )
    .await;
    o.heartbeat().await.expect("renewed, too late");
    let there = get(&bench, id).await;
    assert!(there.owner.is_some());
    let mut tx = bench.db.begin().await.expect("begin");
    assert!(
        store::claim::give_back(&mut tx, id, &there.owner.expect("heir"), bench.clock.now())
            .await
            .expect("give back")
    );
    tx.commit().await.expect("commit");
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    assert_eq!(bench.states(id).await, "A=RUNNING B=RUNNING", "both nodes live");
    o.run_tick().await.expect_err("another has it");
    // Its body was stopped, which starts again where that is safe.
    turns(&mut [&mut o, &mut heir, &mut w], "B is heard of", async || {
        bench.rows(id).await[1].attempt == 2
    })
    .await;
    go(folder.path());
    until_states(&bench, &mut [&mut heir, &mut w, &mut o], id, "A=SUCCESS B=SUCCESS").await;
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"]);
    let history = bench.history(id, "B").await;
    assert_eq!(history[..2], ["RUNNING#1", "RETRY_WAIT#1"], "{history:?}");
    assert_eq!(reports(&bench).await, 0);
}

/// A report of a newer program is left until somebody can read it, also when its node has died; the
/// other jobs go on.
async fn a_report_that_cannot_be_read_stalls_nothing_else(bench: Bench) {
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs: { A: { script: 'true' }, B: { script: 'true', idempotent: true } }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let id = o.open_batches(&defs(yaml), &order(), "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    turns(&mut [&mut w], "both are reported", async || reports(&bench).await == 2).await;
    let rename = async |from: &str, to: &str| {
        let sql = format!(
            "UPDATE job_report SET report = REPLACE(report, '\"{from}\"', '\"{to}\"') WHERE queue_id = \
             (SELECT queue_id FROM job_queue WHERE job_code = 'B')"
        );
        bench.by_hand(&sql).await;
    };
    rename("reach", "came_to").await;
    until_states(&bench, &mut [&mut o, &mut w], id, "A=SUCCESS B=RUNNING").await;
    drop(w);
    pass(&bench, 18_000, &mut [&mut o]).await;
    turn(&mut [&mut o]).await;
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    o.poll_changes().await.expect("look");
    assert_eq!(bench.states(id).await, "A=SUCCESS B=RUNNING");
    rename("came_to", "reach").await;
    until_states(&bench, &mut [&mut o], id, "A=SUCCESS B=SUCCESS").await;
    assert_eq!(bench.history(id, "B").await, ["RUNNING#1", "SUCCESS#1"]);
}

/// A worker that cannot read what it was given says so; nothing of it begins and nothing waits for it.
async fn a_job_that_its_node_cannot_read_fails(bench: Bench) {
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, worker: etl, script: 'true' } }";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let id = o.open_batches(&defs(yaml), &order(), "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    bench
        .by_hand("UPDATE job_batch SET snapshot = REPLACE(snapshot, '\"jobs\"', '\"works\"')")
        .await;
    until_states(&bench, &mut [&mut o, &mut w], id, "A=FAILED").await;
    let said = bench.rows(id).await[0].error_message.clone().expect("a message");
    assert!(said.contains("node w cannot read the job"), "{said}");
    assert_eq!((reports(&bench).await, w.running()), (0, 0));
}

/// A worker that cannot renew stops what it runs; what it was is reported when it can.
async fn a_fenced_worker_reports_when_it_can(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  AGAIN: { idempotent: true, script: 'HOLD' }
  ONCE: { script: 'HOLD' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "both begin", async || {
        begun(folder.path(), "AGAIN") == 1 && begun(folder.path(), "ONCE") == 1
    })
    .await;
    bench.by_hand("ALTER TABLE cluster_node RENAME TO away").await;
    bench.clock.advance(11_250);
    w.heartbeat().await.expect_err("a table is away");
    while w.running() > 0 {
        w.wait_for_report().await;
    }
    bench.by_hand("ALTER TABLE away RENAME TO cluster_node").await;
    o.heartbeat().await.expect("heartbeat");
    w.heartbeat().await.expect("heartbeat");
    until_states(&bench, &mut [&mut w, &mut o], id, "AGAIN=RUNNING ONCE=UNKNOWN").await;
    go(folder.path());
    until_states(&bench, &mut [&mut w, &mut o], id, "AGAIN=SUCCESS ONCE=UNKNOWN").await;
    assert_eq!(bench.rows(id).await[0].crash_count, 0);
}

/// A worker that was declared dead wakes up: its result is evidence and changes nothing.
async fn a_result_that_comes_too_late_changes_nothing(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, worker: etl, script: 'HOLD' } }";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "it begins", async || begun(folder.path(), "A") == 1).await;
    pass(&bench, 18_000, &mut [&mut o]).await;
    turn(&mut [&mut o]).await;
    assert_eq!(bench.states(id).await, "A=UNKNOWN");
    go(folder.path());
    while w.running() > 0 {
        w.wait_for_report().await;
    }
    w.heartbeat().await.expect("heartbeat");
    turn(&mut [&mut w, &mut o]).await;
    assert_eq!(bench.states(id).await, "A=UNKNOWN");
    assert_eq!(reports(&bench).await, 0);
    let late = "SELECT COUNT(*) AS n FROM job_log_line WHERE line_text LIKE 'late result%'";
    assert_eq!(bench.number(late).await, 1);
}

/// A worker leaves: what may start elsewhere is handed back and goes to another at once; what may not
/// is waited for, and its end is settled.
async fn a_worker_leaves(mut bench: Bench) {
    bench.options.drain_ms = 0;
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  AGAIN: { idempotent: true, script: 'HOLD' }
  ONCE: { script: 'HOLD' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", BOTH, &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "both begin", async || {
        begun(folder.path(), "AGAIN") == 1 && begun(folder.path(), "ONCE") == 1
    })
    .await;
    let mut x = node(&bench, "x", &[NodeRole::Worker], &["etl"], 4).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let rest = async {
        turns(&mut [&mut o, &mut x], "AGAIN goes elsewhere", async || {
            begun(folder.path(), "AGAIN") == 2
        })
        .await;
        assert_eq!(bench.states(id).await, "AGAIN=RUNNING ONCE=RUNNING");
        assert_eq!(owner(&bench, id, "AGAIN").await, "x");
        go(folder.path());
        until_states(&bench, &mut [&mut o, &mut x], id, "AGAIN=SUCCESS ONCE=SUCCESS").await;
    };
    tokio::join!(w.serve(&stop, None), async {
        // Its looks are each 200 ms of this clock at most.
        let tick = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                bench.clock.advance(20);
            }
        };
        tokio::select! { () = rest => {}, () = tick => {} }
    });
    w.leave().await.expect("leave");
    for row in bench.rows(id).await {
        assert_eq!((row.try_count, row.crash_count), (0, 0), "{row:?}");
    }
    assert_eq!(begun(folder.path(), "ONCE"), 1);
}

/// The one that dispatches leaves: its batch is another's at once, and what runs elsewhere goes on.
async fn the_owner_leaves(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  A: { worker: etl, script: 'HOLD' }
  END: { depends_on: [A], script: 'true' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "it begins", async || begun(folder.path(), "A") == 1).await;
    let stop = CancellationToken::new();
    stop.cancel();
    o.serve(&stop, None).await;
    o.leave().await.expect("leave");
    assert_eq!(get(&bench, id).await.owner, None, "nothing runs there, so nothing is waited for");
    let mut heir = node(&bench, "heir", BOTH, &[], 4).await;
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    turn(&mut [&mut heir, &mut w]).await;
    assert_eq!(bench.states(id).await, "A=RUNNING END=PENDING");
    go(folder.path());
    until_states(&bench, &mut [&mut heir, &mut w], id, "A=SUCCESS END=SUCCESS").await;
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"]);
}

async fn a_label_is_missed_and_then_comes(bench: Bench) {
    let yaml = "
defaults: { type: NOOP }
jobs: { A: { worker: gpu }, B: {}, S: { type: SCRIPT, interpreter: sh, script: 'true', worker: gpu } }
";
    let mut o = node(&bench, "o", BOTH, &["etl"], 1).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["gpus"], 1).await;
    let id = o.open_batches(&defs(yaml), &order(), "test").await.expect("open")[0];
    until_states(&bench, &mut [&mut o, &mut w], id, "A=QUEUED B=SUCCESS S=QUEUED").await;
    let mut g = node(&bench, "g", &[NodeRole::Worker], &["gpu"], 1).await;
    // One that is to take nothing new counts as absent.
    let all = async || {
        let mut tx = bench.db.begin_read().await.expect("read");
        store::node::members(&mut tx, bench.clock.now()).await.expect("members")
    };
    let gpu = all().await.into_iter().find(|m| m.offer.name == "g").expect("g").node.node_id;
    let mark = async |stay: Stay| {
        let mut tx = bench.db.begin().await.expect("begin");
        assert!(store::node::set_draining(&mut tx, &gpu, stay).await.expect("mark"));
        tx.commit().await.expect("commit");
    };
    mark(Stay::Leaves).await;
    for _ in 0..3 {
        turn(&mut [&mut o, &mut w, &mut g]).await;
    }
    assert_eq!(bench.states(id).await, "A=QUEUED B=SUCCESS S=QUEUED");
    g.heartbeat().await.expect("heartbeat");
    assert_eq!(g.take_batches().await.expect("take"), 0);
    mark(Stay::Stays).await;
    g.heartbeat().await.expect("heartbeat");
    until_states(&bench, &mut [&mut o, &mut w, &mut g], id, "A=SUCCESS B=SUCCESS S=SUCCESS").await;
    assert_eq!(owner(&bench, id, "S").await, "g");
}

/// A scheduler runs nothing but what is no work, a worker takes no batch.
async fn one_dispatches_and_another_works(bench: Bench) {
    let source = bench.url.clone();
    let yaml = format!(
        "
sources: {{ here: {{ url: '{source}' }} }}
groups: {{ close: {{}}, detail: {{}} }}
jobs:
  SUB: {{ group: close, type: BATCH, sub_batch: {{ group: detail }} }}
  ASKS: {{ group: close, type: SENSOR, source: here, sql: SELECT 1, sensor: {{ poll_sec: 1 }} }}
  WORK: {{ group: close, type: SCRIPT, interpreter: sh, script: 'true', depends_on: [SUB, ASKS] }}
  D: {{ group: detail, type: SCRIPT, interpreter: sh, script: 'true' }}
"
    );
    let parsed = defs(&yaml);
    bench.apply(&parsed).await;
    let mut order = order();
    order.group = Some(procession::domain::id::GroupCode::parse("close").expect("group"));
    let ids = open_for_anyone(&bench.db, &parsed, &order, "test", bench.clock.now()).await;
    let id = ids.expect("open")[0];
    let mut w = node(&bench, "w", &[NodeRole::Worker], &[], 4).await;
    assert_eq!(w.take_batches().await.expect("take"), 0);
    let mut o = node(&bench, "o", &[NodeRole::Scheduler], &[], 4).await;
    assert_eq!(o.take_batches().await.expect("take"), 1);
    until_states(&bench, &mut [&mut o, &mut w], id, "SUB=SUCCESS ASKS=SUCCESS WORK=SUCCESS").await;
    let detail = bench.batch("detail").await.batch_id;
    for (batch, code, name) in
        [(id, "SUB", "o"), (id, "ASKS", "w"), (id, "WORK", "w"), (detail, "D", "w")]
    {
        assert_eq!(owner(&bench, batch, code).await, name, "{code}");
    }
}

/// A body that ends its row itself does so on another node as well, and its children go on; also when
/// that node dies before it can say so.
async fn a_body_that_ends_its_row_itself(bench: Bench) {
    bench.by_hand("CREATE TABLE fx (job VARCHAR(50))").await;
    let yaml = format!(
        "
sources: {{ here: {{ url: '{}' }} }}
jobs:
  A: {{ type: SQL, source: here, tx: same, worker: etl, sql: \"INSERT INTO fx VALUES ('A')\" }}
  B: {{ type: SQL, source: here, tx: same, worker: etl, depends_on: [A], sql: \"INSERT INTO fx VALUES ('B')\" }}
  END: {{ type: NOOP, depends_on: [B] }}
",
        bench.url
    );
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let id = o.open_batches(&defs(&yaml), &order(), "test").await.expect("open")[0];
    until_states(&bench, &mut [&mut o, &mut w], id, "A=SUCCESS B=SUCCESS END=SUCCESS").await;
    assert_eq!(bench.history(id, "B").await, ["RUNNING#1", "SUCCESS#1"]);
    assert_eq!(reports(&bench).await, 0);
    let again =
        procession::domain::batch::BatchOrder::parse(r#"{"batchNo":"202408"}"#).expect("order");
    let id = o.open_batches(&defs(&yaml), &again, "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    w.look_around().await.expect("it takes the job");
    until("its body ends its row", async || {
        bench.states(id).await == "A=SUCCESS B=PENDING END=PENDING"
    })
    .await;
    drop(w);
    pass(&bench, 18_000, &mut [&mut o]).await;
    let mut heir = node(&bench, "heir", &[NodeRole::Worker], &["etl"], 4).await;
    until_states(&bench, &mut [&mut o, &mut heir], id, "A=SUCCESS B=SUCCESS END=SUCCESS").await;
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM fx").await, 4);
}

/// Any of three nodes at any step, dying between any two: every job's effect is there exactly once.
async fn whatever_dies_whenever(bench: Bench) {
    bench.by_hand("CREATE TABLE fx (no VARCHAR(9), job VARCHAR(9))").await;
    for seed in 0..8u64 {
        let no = format!("s{seed}");
        one_life(&bench, &no, seed).await;
        let all = format!("SELECT COUNT(*) AS n FROM fx WHERE no = '{no}'");
        assert_eq!(bench.number(&all).await, 6, "seed {seed}");
        let each = format!("SELECT COUNT(DISTINCT job) AS n FROM fx WHERE no = '{no}'");
        assert_eq!(bench.number(&each).await, 6, "seed {seed}");
        assert_eq!(reports(&bench).await, 0, "seed {seed}");
    }
}

/// Opens a batch of six jobs that each leave a mark, spread over three labels.
async fn spread(bench: &Bench, no: &str) -> BatchId {
    let job = |code: &str, label: &str, after: &str| {
        format!(
            "  {code}: {{ worker: {label}, depends_on: [{after}], sql: \"INSERT INTO fx VALUES ('{no}', '{code}')\" }}\n"
        )
    };
    let jobs = [
        ("A", "x", ""),
        ("B", "y", ""),
        ("C", "x", "A"),
        ("D", "z", "A, B"),
        ("E", "y", "C"),
        ("F", "z", "D, E"),
    ];
    let jobs: String = jobs.iter().map(|(c, l, a)| job(c, l, a)).collect();
    let yaml = format!(
        "sources: {{ here: {{ url: '{}' }} }}\ndefaults: {{ type: SQL, source: here, tx: same }}\njobs:\n{jobs}",
        bench.url
    );
    let order = procession::domain::batch::BatchOrder::parse(&format!(r#"{{"batchNo":"{no}"}}"#));
    let order = order.expect("order");
    let ids = open_for_anyone(&bench.db, &defs(&yaml), &order, "test", bench.clock.now()).await;
    ids.expect("open")[0]
}

async fn one_life(bench: &Bench, no: &str, seed: u64) {
    let id = spread(bench, no).await;
    let label = ["x", "y", "z"];
    let mut nodes = Vec::new();
    for label in label {
        nodes.push(node(bench, label, BOTH, &[label], 2).await);
    }
    let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut roll = |sides: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    };
    for step in 0..3_000 {
        if get(bench, id).await.status.is_final() {
            break;
        }
        let at = usize::try_from(roll(3)).expect("small");
        // What goes wrong is that somebody else was faster: it is tried again.
        match roll(if step < 120 { 24 } else { 22 }) {
            0..=6 => drop(nodes[at].run_tick().await),
            7..=13 => drop(nodes[at].look_around().await),
            14..=15 => drop(nodes[at].take_batches().await),
            16..=17 => drop(nodes[at].heartbeat().await),
            18 => tokio::time::sleep(Duration::from_millis(5)).await,
            19..=21 => {
                bench.clock.advance(1_000);
                for node in &mut nodes {
                    node.heartbeat().await.expect("heartbeat");
                }
            }
            22 => {
                bench.clock.advance(i64::try_from(roll(9_000)).expect("small"));
            }
            _ => nodes[at] = node(bench, label[at], BOTH, &[label[at]], 2).await,
        }
    }
    let said = calm(bench, id, &mut nodes).await;
    let status = get(bench, id).await.status;
    let states = bench.states(id).await;
    assert_eq!(status, BatchStatus::Success, "seed {seed}: {states}; {said:?}");
}

/// Nothing goes wrong any more. Bodies run on a real server and take the time that it takes: as many steps
/// as wanted may pass meanwhile on a machine that is busy.
async fn calm(bench: &Bench, id: BatchId, nodes: &mut [QueueDispatcher]) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..400 {
        if get(bench, id).await.status.is_final() {
            break;
        }
        said.clear();
        bench.clock.advance(1_000);
        for node in &mut *nodes {
            // Somebody else may be faster; it is tried again.
            let steps = [
                node.heartbeat().await.map(|()| String::new()),
                node.look_around().await.map(|any| any.to_string()),
                node.take_batches().await.map(|count| count.to_string()),
                node.run_tick().await.map(|any| any.to_string()),
            ];
            said.push(format!("idle {} {steps:?}", node.is_idle()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    said
}

/// Nodes that are not told look soon after something went to another or came from one, and then ever
/// less often; what only waits, or is handed back, is no news.
async fn news_is_followed_by_looks(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "
defaults: { type: SCRIPT, interpreter: sh, worker: etl }
jobs:
  A: { script: 'HOLD' }
  B: { script: 'HOLD' }
";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 1).await;
    let mut second = node(&bench, "x", &[NodeRole::Scheduler], &[], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let again = |o: &QueueDispatcher, w: &QueueDispatcher| (o.around_again(), w.around_again());
    assert_eq!(again(&o, &w), (1_000, 1_000));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turn(&mut [&mut o]).await;
    assert_eq!(again(&o, &w), (5, 1_000), "what was given away may be answered soon");
    w.look_around().await.expect("it takes a job");
    assert_eq!(again(&o, &w), (5, 5), "and what was taken may end soon");
    until("a body begins", async || begun(folder.path(), "A") + begun(folder.path(), "B") == 1)
        .await;
    for (passes, at_owner, at_worker) in [(100, 20, 20), (400, 100, 100), (1_000, 200, 200)] {
        bench.clock.advance(passes);
        turn(&mut [&mut o, &mut w]).await;
        assert_eq!(again(&o, &w), (at_owner, at_worker), "{passes} ms later, one waits for room");
    }
    go(folder.path());
    while w.running() > 0 {
        w.wait_for_report().await;
        w.run_tick().await.expect("its end is reported");
    }
    assert_eq!(again(&o, &w), (200, 5), "the end of a body");
    o.look_around().await.expect("it is heard of");
    assert_eq!(again(&o, &w), (5, 5), "and what is heard");
    until_states(&bench, &mut [&mut o, &mut w], id, "A=SUCCESS B=SUCCESS").await;
    turn(&mut [&mut second]).await;
    assert_eq!(second.around_again(), 1_000, "others' news is none");
}

/// A body whose end could not be written has run: it is not begun again, and its end is written later.
async fn an_end_that_cannot_be_written_is_kept(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, worker: etl, script: 'HOLD' } }";
    let mut o = node(&bench, "o", BOTH, &[], 4).await;
    let mut w = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let defs = defs(&with_folder(yaml, folder.path()));
    let id = o.open_batches(&defs, &order(), "test").await.expect("open")[0];
    turns(&mut [&mut o, &mut w], "it begins", async || begun(folder.path(), "A") == 1).await;
    bench.by_hand("ALTER TABLE job_report RENAME TO job_report_away").await;
    go(folder.path());
    while w.running() > 0 {
        w.wait_for_report().await;
    }
    w.run_tick().await.expect("its end cannot be reported");
    bench.by_hand("ALTER TABLE job_report_away RENAME TO job_report").await;
    turn(&mut [&mut w, &mut o]).await;
    turn(&mut [&mut w, &mut o]).await;
    assert_eq!(bench.states(id).await, "A=RUNNING");
    assert_eq!((w.running(), begun(folder.path(), "A"), reports(&bench).await), (0, 1, 0));
    bench.clock.advance(10_000);
    turn(&mut [&mut w, &mut o]).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS");
    assert_eq!(bench.history(id, "A").await, ["RUNNING#1", "SUCCESS#1"]);
    assert_eq!((begun(folder.path(), "A"), reports(&bench).await), (1, 0));
}

on_each_database! {
    a_labelled_job_runs_where_its_label_is
    what_has_no_room_here_goes_to_the_node_with_most
    a_node_that_was_given_too_much_lets_it_wait
    failures_and_time_outs_come_back
    a_stop_reaches_the_other_node
    a_worker_dies
    the_owner_dies
    both_die
    a_worker_becomes_the_owner
    a_worker_becomes_the_owner_before_it_could_report
    a_fenced_owner_reports_to_the_next
    a_report_that_cannot_be_read_stalls_nothing_else
    a_job_that_its_node_cannot_read_fails
    a_fenced_worker_reports_when_it_can
    a_result_that_comes_too_late_changes_nothing
    an_end_that_cannot_be_written_is_kept
    news_is_followed_by_looks
    a_worker_leaves
    the_owner_leaves
    a_label_is_missed_and_then_comes
    one_dispatches_and_another_works
    a_body_that_ends_its_row_itself
    whatever_dies_whenever
}
