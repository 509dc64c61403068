//! The lease: a process that cannot renew it stops what it runs before another may start it again,
//! and a slow beat does not keep it from being renewed.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use crate::util::query;
use procession::domain::batch::BatchStatus;
use procession::domain::id::BatchId;
use procession::domain::source::DialectName;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Waits for something that can be observed; a bounded loop.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2_400 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what}: it never came");
}

/// Two bodies that have begun: each has written its file.
fn yaml(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  AGAIN: {{ idempotent: true, script: 'echo $$ >> {folder}/again; test -e {folder}/go || sleep 60' }}
  ONCE: {{ script: 'echo $$ >> {folder}/once; sleep 60' }}
  LATER: {{ type: NOOP, depends_on: [AGAIN] }}
"
    )
}

async fn beats_until(process: &mut QueueDispatcher, bench: &Bench, id: BatchId, wanted: &str) {
    for _ in 0..200 {
        if bench.states(id).await == wanted {
            return;
        }
        if !process.run_tick().await.expect("beat") {
            process.wait_for_report().await;
        }
    }
    panic!("{wanted} never came, it is {}", bench.states(id).await);
}

async fn who_waits_for_another_lease_keeps_its_own(bench: Bench) {
    let mut options = bench.options.clone();
    options.lease_ms = 1_200;
    let bench = Bench { clock: Clock::system(), options, ..bench };
    let process = bench.process().await;
    let until = query(&bench.url, "SELECT lease_until FROM cluster_node").await;
    // As long as the lease that it waits for, and a little.
    process.pass_time(Duration::from_millis(1_300)).await;
    let now = query(&bench.url, "SELECT lease_until FROM cluster_node").await;
    assert_ne!(now, until, "nobody renewed it meanwhile");
}

async fn a_process_that_cannot_renew_stops_its_bodies_in_time(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let mut process = bench.process().await;
    let ids =
        process.open_batches(&defs(&yaml(folder.path())), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    let has = |name: &str| folder.path().join(name).exists();
    until("both bodies begin", async || has("again") && has("once")).await;
    bench.by_hand("ALTER TABLE cluster_node RENAME TO away").await;
    bench.clock.advance(11_249);
    process.heartbeat().await.expect_err("a table is away");
    assert!(!process.run_tick().await.expect("beat"), "a quarter of the lease is left");
    assert_eq!(bench.states(ids[0]).await, "AGAIN=RUNNING ONCE=RUNNING LATER=PENDING");
    bench.clock.advance(1);
    process.heartbeat().await.expect_err("a table is away");
    // Stopped, settled, and not started again while the lease is not renewed.
    beats_until(&mut process, &bench, ids[0], "AGAIN=RETRY_WAIT ONCE=UNKNOWN LATER=PENDING").await;
    assert!(!process.run_tick().await.expect("beat"), "nothing is started");
    bench.by_hand("ALTER TABLE away RENAME TO cluster_node").await;
    std::fs::write(folder.path().join("go"), "").expect("file");
    process.heartbeat().await.expect("renewed");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "AGAIN=SUCCESS ONCE=UNKNOWN LATER=SUCCESS");
    let row = &bench.rows(ids[0]).await[0];
    assert_eq!((row.attempt, row.try_count), (2, 0), "not charged");
    let said = bench.history(ids[0], "AGAIN").await;
    assert_eq!(said, ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "SUCCESS#2"]);
}

/// After a fence the batch is looked at anew: what another process has taken over is let go.
async fn a_fenced_process_finds_that_another_goes_on(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let mut fenced = bench.process().await;
    let ids =
        fenced.open_batches(&defs(&yaml(folder.path())), &order(), "test").await.expect("open");
    fenced.run_tick().await.expect("beat");
    let has = |name: &str| folder.path().join(name).exists();
    until("both bodies begin", async || has("again") && has("once")).await;
    bench.clock.advance(16_000);
    let mut heir = bench.process().await;
    bench.clock.advance(5_000);
    heir.heartbeat().await.expect("heartbeat");
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    fenced.heartbeat().await.expect("renewed, too late");
    let error = fenced.run_tick().await.expect_err("another has it");
    assert!(format!("{error:#}").contains("taken over"), "{error:#}");
    assert!(fenced.is_idle());
    std::fs::write(folder.path().join("go"), "").expect("file");
    finish(&bench, &mut heir).await;
    assert_eq!(bench.states(ids[0]).await, "AGAIN=SUCCESS ONCE=UNKNOWN LATER=SUCCESS");
    // The fence has stopped what it ran.
    for name in ["again", "once"] {
        let pids = std::fs::read_to_string(folder.path().join(name)).expect("marker");
        for pid in pids.split_whitespace() {
            let gone = async || !Path::new(&format!("/proc/{pid}")).exists();
            until("its processes are gone", gone).await;
        }
    }
}

on_each_database! {
    a_process_that_cannot_renew_stops_its_bodies_in_time
    a_fenced_process_finds_that_another_goes_on
    who_waits_for_another_lease_keeps_its_own
}

/// A beat hangs at a row that somebody has locked, for longer than the lease lasts; the lease is
/// renewed all the same. Not on SQLite: there a lock keeps everybody from writing.
async fn a_beat_that_hangs_does_not_cost_the_lease(bench: Bench) {
    let mut options = bench.options.clone();
    options.lease_ms = 1_500;
    let bench = Bench { clock: Clock::system(), options, ..bench };
    let mut process = bench.process().await;
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'exit 0' } }";
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    let renewed = async || {
        let at = &query(&bench.url, "SELECT lease_until FROM cluster_node").await[0][0];
        at.clone().expect("a time")
    };
    let mut tx = bench.db.begin().await.expect("begin");
    store::batch::lock_batch(&mut tx, ids[0]).await.expect("lock");
    let first = renewed().await;
    let stop = CancellationToken::new();
    let work = process.run_until_done(&stop);
    let watch = async {
        let mut last = first;
        let mut times = 0;
        // Longer than a lease: five renewals, each half a second after the one before.
        until("the lease is renewed", async || {
            let now = renewed().await;
            times += u32::from(now != last);
            last = now;
            times == 5
        })
        .await;
        assert_eq!(bench.states(ids[0]).await, "A=PENDING", "the beat hangs");
        drop(tx);
    };
    let (worked, ()) = tokio::join!(work, watch);
    worked.expect("run");
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    assert_eq!(bench.rows(ids[0]).await[0].attempt, 1);
}

mod beside {
    use super::*;

    #[tokio::test]
    async fn mariadb() {
        on(DialectName::Mysql, a_beat_that_hangs_does_not_cost_the_lease).await;
    }

    #[tokio::test]
    async fn postgres() {
        on(DialectName::Postgres, a_beat_that_hangs_does_not_cost_the_lease).await;
    }
}
