//! Several processes share the batches of one database: each batch goes to one of them, an error of one
//! does not stop the others, and what a process leaves another goes on with.

use crate::flow::lease::until;
use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::db::session::{Session, SessionTarget, let_all_through};
use procession::db::session_lock::Lock;
use procession::db::{ConnectSettings, Db};
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::id::{BatchId, BatchNo, GroupCode};
use procession::domain::source::DialectName;
use procession::engine::dispatch::acquire::BatchOutcome;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::store;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) fn numbered(number: &str) -> BatchOrder {
    BatchOrder { batch_no: BatchNo::parse(number).expect("number"), ..order() }
}

/// Opens a batch that nobody has.
async fn opened(bench: &Bench, yaml: &str, number: &str) -> BatchId {
    let (defs, order) = (defs(yaml), numbered(number));
    let ids = open_for_anyone(&bench.db, &defs, &order, "test", bench.clock.now()).await;
    ids.expect("open")[0]
}

async fn get(bench: &Bench, id: BatchId) -> procession::domain::batch::Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

/// The same database through connections of its own, as another machine would have.
async fn elsewhere(bench: &Bench) -> Bench {
    let settings = ConnectSettings {
        url: bench.url.clone().into(),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: procession::db::SessionTimeouts::Usual,
    };
    let db = Db::connect(&settings).await.expect("connect");
    let (clock, options) = (bench.clock.clone(), bench.options.clone());
    Bench { db, clock, options, url: bench.url.clone() }
}

/// Takes, and tries again as often as the database asks, as `serve` does.
async fn take(process: &mut QueueDispatcher) -> usize {
    loop {
        match process.take_batches().await {
            Ok(taken) => return taken,
            Err(error) => assert!(store::is_transient(&error), "{error:#}"),
        }
    }
}

async fn of_two_processes_one_gets_a_batch(bench: Bench) {
    let other = elsewhere(&bench).await;
    let (mut here, mut there) = (bench.process().await, other.process().await);
    let mut won = [0, 0];
    for round in 0..30 {
        let id = opened(&bench, "jobs: { A: { type: NOOP } }", &format!("r{round}")).await;
        let taken = tokio::join!(take(&mut here), take(&mut there));
        assert_eq!(taken.0 + taken.1, 1, "round {round}");
        won[0] += taken.0;
        won[1] += taken.1;
        let winner = if taken.0 == 1 { &mut here } else { &mut there };
        assert_eq!(winner.running(), 0);
        finish(&bench, winner).await;
        let history = bench.history(id, "A").await;
        assert_eq!(history, ["RUNNING#1", "SUCCESS#1"], "round {round}");
    }
    assert_eq!(won[0] + won[1], 30);
    drop((here, there));
    other.db.close().await;
}

/// Room for four jobs is room for 64 batches: half of what is left at each look; never more.
async fn a_process_takes_what_it_has_room_for(bench: Bench) {
    let yaml = "jobs: { A: { type: NOOP, schedule_time: '09:00' } }";
    let mut ids = Vec::new();
    for number in 0..66 {
        ids.push(opened(&bench, yaml, &format!("b{number}")).await);
    }
    let mut here = bench.process().await;
    for taken in [32, 16, 8, 4, 2, 1, 1, 0, 0] {
        assert_eq!(take(&mut here).await, taken);
    }
    let mut there = bench.process().await;
    assert_eq!(take(&mut there).await, 2);
    let mut owners = Vec::new();
    for id in &ids {
        owners.push(get(&bench, *id).await.owner);
    }
    let (first, second) = (owners[0].clone(), owners[64].clone());
    assert!(first.is_some() && second.is_some() && first != second);
    assert!(owners[..64].iter().all(|owner| *owner == first), "oldest first: {owners:?}");
    assert_eq!(owners[64..], [second.clone(), second]);
    // One that is paused runs nothing and keeps no other out.
    let last = opened(&bench, yaml, "b66").await;
    bench.by_hand("UPDATE job_batch SET is_paused = 1, revision = 1 WHERE batch_no = 'b0'").await;
    here.poll_changes().await.expect("look");
    assert_eq!(take(&mut here).await, 1);
    assert_eq!(get(&bench, last).await.owner, first);
}

/// A process that is dead is one whose lease ran out while this one renewed its own.
async fn what_a_dead_process_had_is_taken_over(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let go = folder.path().join("go");
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: 'test -e {go} || sleep 60' }}
  B: {{ type: NOOP, depends_on: [A] }}
",
        go = go.display()
    );
    let mut dead = bench.process().await;
    let id = dead.open_batches(&defs(&yaml), &order(), "test").await.expect("open")[0];
    let killed = numbered("killed");
    let killed = dead.open_batches(&defs(&yaml), &killed, "test").await.expect("open")[0];
    dead.run_tick().await.expect("beat");
    drop(dead);
    std::fs::write(go, "").expect("file");
    let mut tx = bench.db.begin().await.expect("begin");
    let now = bench.clock.now();
    assert!(store::batch::request_kill(&mut tx, killed, "wrong", now).await.expect("kill"));
    tx.commit().await.expect("commit");
    let mut heir = bench.process().await;
    bench.clock.advance(5_000);
    heir.heartbeat().await.expect("heartbeat");
    assert_eq!(take(&mut heir).await, 0, "its lease still holds");
    bench.clock.advance(11_000);
    heir.heartbeat().await.expect("heartbeat");
    let mut newcomer = bench.process().await;
    assert_eq!(take(&mut newcomer).await, 0, "perhaps the database was away until just now");
    assert_eq!(take(&mut heir).await, 2);
    finish(&bench, &mut heir).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS B=SUCCESS");
    assert_eq!(get(&bench, killed).await.status, BatchStatus::Killed);
    assert_eq!(bench.history(id, "A").await.last().expect("a row"), "SUCCESS#2");
}

/// A sub-batch belongs to the job that opened it: taken by another process it would look like
/// somebody else's to that job.
async fn a_sub_batch_stays_with_its_parent(bench: Bench) {
    let yaml = "
groups: { close: {}, detail: {} }
jobs:
  SUB: { group: close, type: BATCH, sub_batch: { group: detail } }
  D: { group: detail, type: NOOP, idempotent: true }
";
    let parsed = defs(yaml);
    bench.apply(&parsed).await;
    let close = Some(GroupCode::parse("close").expect("group"));
    let order = BatchOrder { group: close, ..order() };
    let mut dead = bench.process().await;
    dead.open_batches(&parsed, &order, "test").await.expect("open");
    while bench.batch_of("202407", "detail").await.is_none() {
        if !dead.run_tick().await.expect("beat") {
            dead.wait_for_report().await;
        }
    }
    let dead_id = bench.batch("detail").await.owner.expect("an owner");
    drop(dead);
    let mut heir = bench.process().await;
    for _ in 0..4 {
        bench.clock.advance(5_000);
        heir.heartbeat().await.expect("heartbeat");
    }
    assert_eq!(take(&mut heir).await, 1);
    assert_eq!(bench.batch("detail").await.owner, Some(dead_id), "left to its parent");
    finish(&bench, &mut heir).await;
    assert_eq!(bench.batch("close").await.status, BatchStatus::Success);
    assert_eq!(bench.batch("detail").await.status, BatchStatus::Success);
}

/// Serves until `done`, then leaves; gives what it told.
async fn served(
    process: &mut QueueDispatcher,
    done: impl Future<Output = ()>,
) -> Vec<(String, BatchOutcome)> {
    let (sender, mut news) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let halt = async {
        done.await;
        stop.cancel();
    };
    tokio::join!(process.serve(&stop, Some(sender)), halt);
    let mut told = Vec::new();
    while let Ok(item) = news.try_recv() {
        told.push((item.batch_no.to_string(), item.what));
    }
    told
}

async fn a_batch_that_cannot_be_read_stops_no_other(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let folder = folder.path().display();
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs: {{ A: {{ script: 'echo $$ > {folder}/$PROCESSION_BATCH_NO; while ! test -e {folder}/go; do sleep 0.05; done' }} }}
"
    );
    let broken = opened(&bench, &yaml, "broken").await;
    let later = opened(&bench, &yaml, "later").await;
    let good = opened(&bench, &yaml, "good").await;
    bench.by_hand("UPDATE job_batch SET snapshot = '{' WHERE batch_no = 'broken'").await;
    let exists = |name: &str| std::path::Path::new(&format!("{folder}/{name}")).exists();
    let mut process = bench.process().await;
    let told = served(&mut process, async {
        let runs = async || exists("later") && exists("good");
        // Room is looked for each second of this clock.
        until("both run", async || {
            bench.clock.advance(100);
            runs().await
        })
        .await;
        let spoil = "UPDATE job_batch SET snapshot = '{', revision = revision + 1 \
                     WHERE batch_no = 'later'";
        bench.by_hand(spoil).await;
        until("it is nobody's", async || {
            bench.clock.advance(100);
            get(&bench, later).await.owner.is_none()
        })
        .await;
        std::fs::write(format!("{folder}/go"), "").expect("file");
        until("the other ends", async || get(&bench, good).await.status.is_final()).await;
    })
    .await;
    assert_eq!(get(&bench, good).await.status, BatchStatus::Success);
    for id in [broken, later] {
        let batch = get(&bench, id).await;
        assert_eq!((batch.status, batch.owner), (BatchStatus::Running, None));
    }
    let of = |number: &str| -> Vec<&BatchOutcome> {
        told.iter().filter(|(no, _)| no == number).map(|(_, fate)| fate).collect()
    };
    assert!(matches!(of("broken")[..], [BatchOutcome::CastOut(_), ..]), "{told:?}");
    assert!(matches!(of("later")[..], [BatchOutcome::Taken, BatchOutcome::CastOut(_)]), "{told:?}");
    assert_eq!(of("good"), [&BatchOutcome::Taken, &BatchOutcome::Ended(BatchStatus::Success)]);
    // Its body was stopped before it was given back.
    let pid = std::fs::read_to_string(format!("{folder}/later")).expect("marker");
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

/// A clean stop: what may start again is handed back, what may not is waited for, nothing is unknown,
/// and the next process goes on at once, with no lease to wait for.
async fn a_clean_stop_hands_back(mut bench: Bench) {
    bench.options.drain_ms = 0;
    let folder = tempfile::tempdir().expect("folder");
    let source = format!("sqlite:{}", folder.path().join("s.db").display());
    crate::util::query(&source, "CREATE TABLE arrived (a INT)").await;
    let folder = folder.path().display();
    let yaml = format!(
        "
sources: {{ s: {{ url: '{source}' }} }}
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  AGAIN: {{ idempotent: true, script: 'echo x > {folder}/again; test -e {folder}/go || sleep 60' }}
  ONCE: {{ script: 'echo x > {folder}/once; while ! test -e {folder}/go; do sleep 0.05; done' }}
  ASKS: {{ type: SENSOR, source: s, sql: SELECT COUNT(*) FROM arrived, sensor: {{ poll_sec: 1 }} }}
  LATER: {{ type: NOOP, depends_on: [AGAIN, ONCE, ASKS] }}
"
    );
    let id = opened(&bench, &yaml, "202407").await;
    let exists = |name: &str| std::path::Path::new(&format!("{folder}/{name}")).exists();
    let mut first = bench.process().await;
    let stop = CancellationToken::new();
    let watch = async {
        until("the bodies begin", async || exists("again") && exists("once")).await;
        stop.cancel();
        let handed = "AGAIN=RETRY_WAIT ONCE=RUNNING ASKS=RETRY_WAIT LATER=PENDING";
        until(handed, async || bench.states(id).await == handed).await;
        assert!(get(&bench, id).await.owner.is_some(), "until the last body has ended");
        std::fs::write(format!("{folder}/go"), "").expect("file");
    };
    tokio::join!(first.serve(&stop, None), watch);
    first.leave().await.expect("leave");
    assert_eq!(
        bench.states(id).await,
        "AGAIN=RETRY_WAIT ONCE=SUCCESS ASKS=RETRY_WAIT LATER=PENDING"
    );
    assert_eq!(get(&bench, id).await.owner, None);
    crate::util::query(&source, "INSERT INTO arrived VALUES (1)").await;
    let mut second = bench.process().await;
    assert_eq!(take(&mut second).await, 1, "at once");
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(id).await, "AGAIN=SUCCESS ONCE=SUCCESS ASKS=SUCCESS LATER=SUCCESS");
    for row in bench.rows(id).await {
        assert_eq!((row.try_count, row.crash_count), (0, 0), "{row:?}");
    }
}

/// While its time to leave has not come, what runs may end.
async fn what_runs_may_end_before_it_is_handed_back(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let folder = folder.path().display();
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: 'echo x > {folder}/a; while ! test -e {folder}/go; do sleep 0.05; done' }}
  SLOW: {{ script: 'echo x > {folder}/slow; sleep 60' }}
"
    );
    let id = opened(&bench, &yaml, "202407").await;
    let exists = |name: &str| std::path::Path::new(&format!("{folder}/{name}")).exists();
    let mut process = bench.process().await;
    let stop = CancellationToken::new();
    let watch = async {
        until("they begin", async || exists("a") && exists("slow")).await;
        stop.cancel();
        // Told to leave, with a minute left on this clock: nothing is stopped.
        std::fs::write(format!("{folder}/go"), "").expect("file");
        let one = "A=SUCCESS SLOW=RUNNING";
        until(one, async || bench.states(id).await == one).await;
        bench.clock.advance(bench.options.drain_ms);
    };
    tokio::join!(process.serve(&stop, None), watch);
    assert_eq!(bench.states(id).await, "A=SUCCESS SLOW=RETRY_WAIT");
    assert_eq!(get(&bench, id).await.owner, None);
}

/// A job that must not start twice and waits for an earlier start of itself has not begun: it is
/// handed back and not waited for.
async fn what_has_not_begun_is_handed_back(mut bench: Bench) {
    bench.options.drain_ms = 0;
    let yaml = format!(
        "
sources: {{ s: {{ url: '{}' }} }}
jobs: {{ A: {{ type: SQL, source: s, sql: SELECT 1 }} }}
",
        bench.url
    );
    let id = opened(&bench, &yaml, "202407").await;
    let mut process = bench.process().await;
    let installation = "SELECT value FROM procession_meta WHERE name = 'installation'";
    let installation = crate::util::query(&bench.url, installation).await[0][0].clone();
    let installation: String = installation.expect("a value").chars().take(12).collect();
    let row = bench.rows(id).await[0].queue_id.0;
    let target = SessionTarget {
        url: bench.url.clone(),
        password: None,
        label: "earlier".to_owned(),
        timeout: Duration::from_secs(10),
        guard: let_all_through,
    };
    let mut earlier = Session::open_session(&target).await.expect("connect");
    assert_eq!(
        earlier.try_lock(&format!("procession:{installation}:{row}")).await,
        Ok(Lock::Gained)
    );
    served(&mut process, async {
        until("it runs", async || bench.states(id).await == "A=RUNNING").await;
    })
    .await;
    assert_eq!(bench.states(id).await, "A=RETRY_WAIT");
    earlier.close().await;
    let mut second = bench.process().await;
    assert_eq!(take(&mut second).await, 1);
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS");
}

/// Somebody else's `batch kill` reaches whoever has the batch.
async fn a_batch_that_is_served_is_killed_from_elsewhere(bench: Bench) {
    let yaml = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'sleep 60' }
  B: { type: NOOP, depends_on: [A] }
";
    let id = opened(&bench, yaml, "202407").await;
    let mut process = bench.process().await;
    let told = served(&mut process, async {
        until("it runs", async || bench.states(id).await == "A=RUNNING B=PENDING").await;
        let mut tx = bench.db.begin().await.expect("begin");
        let now = bench.clock.now();
        assert!(store::batch::request_kill(&mut tx, id, "wrong", now).await.expect("kill"));
        tx.commit().await.expect("commit");
        until("it ends", async || {
            bench.clock.advance(100);
            get(&bench, id).await.status.is_final()
        })
        .await;
    })
    .await;
    assert_eq!(bench.states(id).await, "A=KILLED B=KILLED");
    let fates: Vec<BatchOutcome> = told.into_iter().map(|(_, fate)| fate).collect();
    assert_eq!(fates, [BatchOutcome::Taken, BatchOutcome::Ended(BatchStatus::Killed)]);
}

on_each_database! {
    of_two_processes_one_gets_a_batch
    a_process_takes_what_it_has_room_for
    what_a_dead_process_had_is_taken_over
    a_sub_batch_stays_with_its_parent
    a_batch_that_cannot_be_read_stops_no_other
    a_clean_stop_hands_back
    what_runs_may_end_before_it_is_handed_back
    a_batch_that_is_served_is_killed_from_elsewhere
}

mod not_begun {
    use super::*;

    #[tokio::test]
    async fn mariadb() {
        on(DialectName::Mysql, what_has_not_begun_is_handed_back).await;
    }

    #[tokio::test]
    async fn postgres() {
        on(DialectName::Postgres, what_has_not_begun_is_handed_back).await;
    }
}
