//! The database's clock jumps: nothing is taken over or scheduled by what the old clock or the new one
//! says alone, and afterwards all goes on.

use crate::flow::lease::until;
use crate::flow::serving::numbered;
use crate::flow::{Bench, defs};
use crate::util::{query, with_scratch};
use procession::db::{ConnectSettings, Db};
use procession::domain::batch::BatchStatus;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use std::time::Duration;

/// Long enough that a test is through before a lease runs out that nobody renews.
const LEASE_MS: i64 = 6_000;

/// A database whose clock a test sets: its own `clock_timestamp` stands before the system's.
async fn on_a_clock_that_jumps<F, Fut>(test: F)
where
    F: FnOnce(Bench) -> Fut,
    Fut: Future<Output = ()>,
{
    with_scratch(DialectName::Postgres, |scratch| async move {
        for sql in [
            "CREATE SCHEMA bent",
            "CREATE TABLE bent.shift (ms BIGINT NOT NULL)",
            "INSERT INTO bent.shift VALUES (0)",
            "CREATE FUNCTION bent.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
             'SELECT pg_catalog.clock_timestamp() + ms * interval ''1 ms'' FROM bent.shift'",
        ] {
            query(&scratch.url, sql).await;
        }
        let url = format!("{}?options=-csearch_path%3Dbent,pg_catalog", scratch.url);
        let settings = ConnectSettings {
            url: url.into(),
            password: None,
            rotated_password: None,
            max_connections: 4,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            may_create: false,
            keeping: procession::db::SessionTimeouts::Usual,
        };
        let db = Db::connect(&settings).await.expect("connect");
        db.migrate().await.expect("migrate");
        let mut bench = Bench::of(db, Clock::system(), &scratch.url);
        bench.options.lease_ms = LEASE_MS;
        test(bench).await;
    })
    .await;
}

async fn jump(bench: &Bench, ms: i64) {
    query(&bench.url, &format!("UPDATE bent.shift SET ms = {ms}")).await;
}

/// Another machine: it has a clock of its own.
async fn machine(bench: &Bench) -> (QueueDispatcher, Clock) {
    let clock = Clock::system();
    let (db, options) = (bench.db.clone(), bench.options.clone());
    let apart = Bench { db, clock: clock.clone(), options, url: bench.url.clone() };
    (apart.process().await, clock)
}

/// Whether a clock shows what the database's does; a second either way.
fn shows(clock: &Clock, shift_ms: i64) -> bool {
    let real = Clock::system().now().plus_ms(shift_ms);
    clock.now().since(real).abs() < 1_000
}

async fn renew(process: &mut QueueDispatcher) {
    process.heartbeat().await.expect("a renewal");
}

#[tokio::test]
async fn after_a_jump_nothing_is_sure_until_two_answers_agree() {
    on_a_clock_that_jumps(async |bench: Bench| {
        let (mut process, clock) = machine(&bench).await;
        let mut before = 0;
        for shift in [3_600_000, -3_600_000, 0] {
            renew(&mut process).await;
            assert!(process.may_schedule() && shows(&clock, before));
            jump(&bench, shift).await;
            renew(&mut process).await;
            assert!(!process.may_schedule(), "one answer is none");
            assert!(shows(&clock, before), "and moves nothing");
            renew(&mut process).await;
            assert!(process.may_schedule() && shows(&clock, shift));
            before = shift;
        }
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_goes_wrong_is_put_right_by_a_renewal() {
    on_a_clock_that_jumps(async |bench: Bench| {
        let (mut process, clock) = machine(&bench).await;
        clock.follow(0);
        assert!(clock.now() < Millis(3_600_000));
        renew(&mut process).await;
        assert!(process.may_schedule() && shows(&clock, 0));
    })
    .await;
}

/// By the new clock every lease has run out; by the old one all of them hold.
#[tokio::test]
async fn a_jump_takes_no_batch_from_a_process_that_lives() {
    on_a_clock_that_jumps(async |bench: Bench| {
        let ((mut owner, _), (mut other, clock)) = (machine(&bench).await, machine(&bench).await);
        let (owner, other, joined) = (&mut owner, &mut other, clock.uptime());
        let yaml = "jobs: { A: { type: NOOP } }";
        let ids = owner.open_batches(&defs(yaml), &numbered("1"), "test").await.expect("open");
        let mine = async || {
            let mut tx = bench.db.begin_read().await.expect("read");
            let batch = procession::store::batch::get(&mut tx, ids[0]).await.expect("batch");
            (batch.status, batch.owner)
        };
        let (status, before) = mine().await;
        assert_eq!(status, BatchStatus::Running);
        // So that it may take over at all.
        until("it has renewed for a while", async || {
            renew(owner).await;
            renew(other).await;
            clock.uptime().since(joined) > LEASE_MS / 3
        })
        .await;
        for shift in [3_600_000, -3_600_000] {
            jump(&bench, shift).await;
            for doubt in ["one answer", "another lease may still be renewed"] {
                renew(other).await;
                assert_eq!(other.take_batches().await.expect("look"), 0, "{doubt}");
            }
            renew(owner).await;
            renew(owner).await;
            assert!(other.may_schedule() && owner.may_schedule());
            assert_eq!(mine().await.1, before);
        }
        // From one that is dead it takes all the same, in the new time.
        until("the dead one's lease runs out", async || {
            renew(other).await;
            other.take_batches().await.expect("look") == 1
        })
        .await;
        assert_ne!(mine().await.1, before);
    })
    .await;
}
