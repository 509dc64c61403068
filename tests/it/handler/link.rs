//! The connection to a data source: away, lost, silent, and what is left behind on the server.

use crate::util::bench::Bench;
use crate::util::cut::{Flow, Relay, When, Whom};
use crate::util::{Scratch, query, session, with_scratch};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use procession::db::session_lock::Lock;
use procession::domain::job::SqlText;
use procession::domain::job::outcome::{AttemptEnd, AttemptStage, Stream};
use procession::domain::job::retry::ErrorClass;
use procession::domain::source::DialectName;
use procession::handler::{Claim, NOTHING_RUNS, StopReason, StoredApplication, UNCONFIRMED};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const SERVERS: [DialectName; 2] = [DialectName::Mysql, DialectName::Postgres];

/// Runs `test` on a database of each server.
async fn on_servers<F, Fut>(test: F)
where
    F: Fn(Arc<Scratch>) -> Fut,
    Fut: Future<Output = ()>,
{
    for dialect in SERVERS {
        with_scratch(dialect, &test).await;
    }
}

fn class(outcome: &procession::domain::job::outcome::AttemptOutcome) -> Option<ErrorClass> {
    outcome.error.as_ref().map(|e| e.class)
}

/// A table `fx` and a procedure `body` that writes B, works for `secs`, and writes E, each for good at
/// once.
async fn two_effects(db: &Scratch, secs: f32) {
    match db.dialect {
        DialectName::Postgres => {
            let body = format!(
                "CREATE PROCEDURE body() LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO fx (phase) VALUES ('B'); COMMIT; PERFORM pg_sleep({secs}); \
                 INSERT INTO fx (phase) VALUES ('E'); COMMIT; END $$"
            );
            let table =
                "CREATE TABLE fx (id serial, phase text, session int DEFAULT pg_backend_pid())";
            db.setup(&[table, &body]).await;
        }
        _ => {
            let body = format!(
                "CREATE PROCEDURE body() BEGIN \
                 INSERT INTO fx (phase, session) VALUES ('B', CONNECTION_ID()); DO SLEEP({secs}); \
                 INSERT INTO fx (phase, session) VALUES ('E', CONNECTION_ID()); END"
            );
            let table =
                "CREATE TABLE fx (id INT AUTO_INCREMENT PRIMARY KEY, phase TEXT, session INT)";
            db.setup(&[table, &body]).await;
        }
    }
}

/// `B1 E1 B2 E2`: the phases in their order, with sessions counted from 1 as they come.
async fn effects(db: &Scratch) -> String {
    let (mut sessions, mut words) = (Vec::new(), Vec::new());
    for row in query(&db.url, "SELECT phase, session FROM fx ORDER BY id").await {
        let (phase, session) = (row[0].clone().expect("phase"), row[1].clone());
        let at = sessions.iter().position(|s| *s == session).unwrap_or_else(|| {
            sessions.push(session);
            sessions.len() - 1
        });
        words.push(format!("{phase}{}", at + 1));
    }
    words.join(" ")
}

#[tokio::test]
async fn a_source_that_is_away_is_waited_for_and_the_row_says_so() {
    on_servers(|db| async move {
        let relay = Relay::before(&db.url).await;
        relay.now(Flow::Rst);
        let bench = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url));
        let bench = bench.set(|o| o.away = Duration::from_secs(20));
        let claim = bench.claim.clone();
        let (ran, said) = tokio::join!(bench.run(), async {
            let said = claim.waits_on("source 'ledger' is away since 20").await;
            relay.now(Flow::Pass);
            said
        });
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        assert!(said.contains("Z: "), "{said}");
        assert_eq!(claim.1.borrow().len(), 2, "said once");
        assert_eq!(claim.1.borrow().last(), Some(&None), "and taken back");
        let lines = ran.of(Stream::System);
        assert_eq!(lines.iter().filter(|l| l.contains("is away, waits up to 20.0 s")).count(), 1);
        assert!(lines.iter().any(|l| l.starts_with("source 'ledger' is back after ")));
    })
    .await;
}

#[tokio::test]
async fn a_source_that_stays_away_fails_the_try_before_it_began() {
    on_servers(|db| async move {
        let relay = Relay::before(&db.url).await;
        for flow in [Flow::Rst, Flow::Silent] {
            relay.now(flow);
            let bench = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url)).set(|o| {
                (o.away, o.connect_timeout) =
                    (Duration::from_millis(700), Duration::from_millis(300));
            });
            let start = Instant::now();
            let ran = bench.run().await;
            assert_eq!(
                (ran.outcome.end.clone(), ran.outcome.reach),
                (AttemptEnd::Failed, AttemptStage::Before)
            );
            assert_eq!(class(&ran.outcome), Some(ErrorClass::ConnectionLost), "{}", ran.message());
            assert!(ran.message().contains(" attempts); nothing was run"), "{}", ran.message());
            assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
        }
    })
    .await;
}

#[tokio::test]
async fn what_waiting_cannot_mend_fails_at_once() {
    on_servers(|db| async move {
        let elsewhere = db.url.replace(&db.name, "procession_no_such_database");
        let stranger = db.url.replace("root@", "nobody:hunter2@").replace("postgres@", "nobody@");
        for url in [elsewhere, stranger] {
            let bench = Bench::sql(&db, "SELECT 1").at(&url);
            let claim = bench.claim.clone();
            let ran = bench.set(|o| o.away = Duration::from_secs(300)).run().await;
            assert_eq!(
                (ran.outcome.end.clone(), ran.outcome.reach),
                (AttemptEnd::Failed, AttemptStage::Before)
            );
            assert_eq!(class(&ran.outcome), Some(ErrorClass::Other), "{}", ran.message());
            assert!(ran.outcome.error.as_ref().is_some_and(|e| e.sqlstate.is_some()));
            assert!(!ran.message().contains("connection lost"), "{}", ran.message());
            assert!(claim.1.borrow().is_empty(), "it does not wait");
        }
        let mut url = url::Url::parse(&db.url).expect("url");
        url.set_host(Some("no-such-host.invalid")).expect("host");
        let bench = Bench::sql(&db, "SELECT 1").at(url.as_str());
        let ran = bench.set(|o| o.away = Duration::from_secs(300)).run().await;
        assert_eq!(class(&ran.outcome), Some(ErrorClass::ConnectionLost), "{}", ran.message());
        assert!(ran.message().contains(", 2 attempts)"), "{}", ran.message());
    })
    .await;
}

#[tokio::test]
async fn a_wait_ends_when_the_row_is_not_ours_any_more() {
    on_servers(|db| async move {
        let relay = Relay::before(&db.url).await;
        relay.now(Flow::Rst);
        let away = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url));
        let away = away.set(|o| o.away = Duration::from_secs(300));
        let orphan = Bench::sql(&db, "SELECT 1");
        let mut other = session(&db.url).await;
        assert_eq!(other.try_lock(&orphan.task.lock_name).await, Ok(Lock::Gained));
        for (bench, what) in [(away, "source 'ledger' is away"), (orphan, "an earlier start of it")]
        {
            let claim = bench.claim.clone();
            let begun = || claim.2.load(Ordering::SeqCst);
            let (ran, start) = tokio::join!(bench.run(), async {
                claim.waits_on(what).await;
                claim.0.store(false, Ordering::SeqCst);
                Instant::now()
            });
            assert!(
                ran.message().starts_with("the row belongs to another start"),
                "{}",
                ran.text()
            );
            assert_eq!(
                (ran.outcome.end.clone(), ran.outcome.reach),
                (AttemptEnd::Failed, AttemptStage::Before)
            );
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
            // Who is taken for begun is not handed back by a process that leaves.
            assert_eq!(begun(), 0, "who waits has not begun");
        }
        other.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_row_says_which_session_of_an_earlier_start_it_waits_for() {
    on_servers(|db| async move {
        let bench = Bench::sql(&db, "SELECT 1");
        let claim = bench.claim.clone();
        let mut other = session(&db.url).await;
        assert_eq!(other.try_lock(&bench.task.lock_name).await, Ok(Lock::Gained));
        let held = other.lock_holder(&bench.task.lock_name).await.expect("holder").expect("one");
        assert_eq!(Some(&held.id), other.id(), "as it calls itself");
        let number = held.id.number;
        let (ran, said) = tokio::join!(bench.run(), async {
            let said = claim.waits_on("an earlier start").await;
            other.close().await;
            said
        });
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        let wanted =
            format!("an earlier start of it still runs on source 'ledger' (session {number})");
        assert_eq!(said, wanted);
        assert_eq!(claim.1.borrow().last(), Some(&None));
        assert!(ran.text().contains("the earlier start is gone after "), "{}", ran.text());
        assert_eq!(claim.2.load(Ordering::SeqCst), 1, "asked once, last of all");
        let mut after = session(&db.url).await;
        assert_eq!(after.lock_holder("nobody's").await.expect("holder"), None);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_sits_idle_loses_its_lock() {
    on_servers(|db| async move {
        for is_in_transaction in [false, true] {
            // What a worker that is stopped (SIGSTOP) behind its lock looks like to the server.
            let bench = Bench::sql(&db, "SELECT 1");
            let mut stalled = session(&db.url).await;
            stalled.limit_idle(Duration::from_secs(1)).await.expect("limit");
            assert_eq!(stalled.try_lock(&bench.task.lock_name).await, Ok(Lock::Gained));
            if is_in_transaction {
                stalled.begin().await.expect("begin");
            }
            let start = Instant::now();
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
            let (at_least, at_most) = (Duration::from_millis(500), Duration::from_secs(8));
            let took = start.elapsed();
            assert!(took > at_least && took < at_most, "{took:?}\n{}", ran.text());
            stalled.run_statement("SELECT 1", &[]).await.expect_err("its session is gone");
        }
    })
    .await;
}

#[tokio::test]
async fn who_waits_and_who_asks_are_not_idle() {
    on_servers(|db| async move {
        // The wait is longer than the limit.
        let bench = Bench::sql(&db, "SELECT 1").set(|o| o.idle = Duration::from_secs(1));
        let claim = bench.claim.clone();
        let mut other = session(&db.url).await;
        assert_eq!(other.try_lock(&bench.task.lock_name).await, Ok(Lock::Gained));
        let (ran, ()) = tokio::join!(bench.run(), async {
            claim.waits_on("an earlier start").await;
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            other.close().await;
        });
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        let connected =
            ran.of(Stream::System).iter().filter(|l| l.starts_with("connected")).count();
        assert_eq!(connected, 1, "{}", ran.text());
    })
    .await;
}

#[tokio::test]
async fn the_session_of_a_body_has_the_limit() {
    on_servers(|db| async move {
        let (sql, limit) = match db.dialect {
            DialectName::Postgres => (
                "SELECT current_setting('idle_session_timeout') || ' ' || \
                 current_setting('idle_in_transaction_session_timeout') || ' ' || \
                 current_setting('tcp_keepalives_count') AS l",
                "7s 7s 3",
            ),
            _ if db.value("SELECT VERSION()").await.contains("MariaDB") => {
                ("SELECT CONCAT(@@wait_timeout, ' ', @@idle_transaction_timeout) AS l", "7 7")
            }
            _ => ("SELECT @@wait_timeout AS l", "7"),
        };
        let ran = Bench::sql(&db, sql).set(|o| o.idle = Duration::from_millis(6_500)).run().await;
        let found = ran.value("l").replace("6500ms", "7s");
        assert_eq!(found, limit);
    })
    .await;
}

/// A claim that is not answered at first, then with an error, and then well.
#[derive(Default)]
struct SlowClaim(AtomicU32);

impl Claim for SlowClaim {
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        async {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => std::future::pending().await,
                2 => Err(anyhow::anyhow!("our own database is away")),
                _ => Ok(true),
            }
        }
        .boxed()
    }

    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        self.still_ours()
    }

    fn waits_on(&self, _what: Option<String>) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn store_application(&self, _made: StoredApplication) -> BoxFuture<'_, anyhow::Result<()>> {
        async { Ok(()) }.boxed()
    }

    fn stored_application(&self) -> BoxFuture<'_, anyhow::Result<Option<StoredApplication>>> {
        async { Ok(None) }.boxed()
    }
}

#[tokio::test]
async fn a_claim_that_is_slow_to_be_answered_does_not_cost_the_lock() {
    on_servers(|db| async move {
        let mut bench = Bench::sql(&db, "SELECT 1").set(|o| {
            (o.idle, o.away) = (Duration::from_secs(1), Duration::from_secs(20));
        });
        bench.ctx.claim = Arc::new(SlowClaim::default());
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        let connected =
            ran.of(Stream::System).iter().filter(|l| l.starts_with("connected")).count();
        assert_eq!(connected, 1, "{}", ran.text());
        let mut bench = Bench::sql(&db, "SELECT 1").set(|o| o.idle = Duration::from_secs(1));
        bench.ctx.claim = Arc::new(SlowClaim::default());
        let ran = bench.run().await;
        assert!(ran.message().starts_with("cannot ask whether the row is"), "{}", ran.message());
        assert_eq!(
            (ran.outcome.end.clone(), ran.outcome.reach),
            (AttemptEnd::Failed, AttemptStage::Before)
        );
    })
    .await;
}

#[tokio::test]
async fn a_long_body_is_left_alone_and_its_watcher_is_shared() {
    on_servers(|db| async move {
        let relay = Relay::before(&db.url).await;
        let sleep = match db.dialect {
            DialectName::Postgres => "SELECT pg_sleep(3.5)",
            _ => "SELECT SLEEP(3.5)",
        };
        let one = Bench::sql(&db, sleep).at(&relay.url(&db.url));
        // A look may take as long as the pause between two; on a loaded machine 100 ms were too few
        // (a connection given up, and one more counted).
        let one = one.set(|o| o.look_every = Duration::from_secs(1));
        let mut two = Bench::sql(&db, sleep).at(&relay.url(&db.url));
        (two.ctx.options, two.ctx.watchers) = (one.ctx.options.clone(), one.ctx.watchers.clone());
        let (one, two) = tokio::join!(one.run(), two.run());
        assert_eq!(one.outcome.end, AttemptEnd::Success, "{}", one.text());
        assert_eq!(two.outcome.end, AttemptEnd::Success, "{}", two.text());
        // Three looks each; who ends in the middle of one takes the connection along.
        let so_far = relay.accepted();
        assert!((3..=4).contains(&so_far), "two bodies and one who looks after both: {so_far}");
        let quick = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url)).run().await;
        assert_eq!(quick.outcome.end, AttemptEnd::Success);
        assert_eq!(relay.accepted(), so_far + 1, "a body that ends soon costs nothing");
    })
    .await;
}

/// A body on a connection that breaks as planned; how it ended and how long after the break.
async fn broken(
    db: &Arc<Scratch>,
    plan: (&str, When, Whom, Flow),
) -> (crate::util::bench::Ran, Duration) {
    let relay = Relay::before(&db.url).await;
    relay.when(plan.0, plan.1, plan.2, plan.3);
    let bench = Bench::proc(db, "body").at(&relay.url(&db.url)).set(|o| {
        (o.look_every, o.connect_timeout) =
            (Duration::from_millis(300), Duration::from_millis(500));
    });
    let (ran, start) = tokio::join!(bench.run(), async {
        relay.struck().await;
        Instant::now()
    });
    (ran, start.elapsed())
}

#[tokio::test]
async fn a_connection_that_is_cut_before_the_call_was_sent() {
    on_servers(|db| async move {
        two_effects(&db, 0.1).await;
        for flow in [Flow::Rst, Flow::Fin] {
            let (ran, took) = broken(&db, ("CALL ", When::Before, Whom::One, flow)).await;
            // The client cannot know that it did not arrive.
            assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
            assert_eq!(class(&ran.outcome), Some(ErrorClass::ConnectionLost));
            assert_eq!(ran.outcome.reach, AttemptStage::Body);
            assert!(ran.text().contains("is gone from the server"), "{}", ran.text());
            assert!(took < Duration::from_secs(5), "{took:?}");
        }
        assert_eq!(effects(&db).await, "");
    })
    .await;
}

#[tokio::test]
async fn a_second_try_waits_for_the_orphan_of_a_connection_that_was_cut_in_the_middle_of_the_call()
{
    on_servers(|db| async move {
        two_effects(&db, 2.0).await;
        let relay = Relay::before(&db.url).await;
        relay.when("CALL ", When::Sent, Whom::One, Flow::Rst);
        let first = Bench::proc(&db, "body").at(&relay.url(&db.url));
        let mut second = Bench::proc(&db, "body");
        (second.task, second.task.attempt) = (first.task.clone(), 2);
        second = second.at(&db.url);
        let ran = first.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
        assert!(ran.text().contains(" still runs; a second start waits for it"), "{}", ran.text());
        let orphan = ran.session();
        let claim = second.claim.clone();
        let (again, said) = tokio::join!(second.run(), claim.waits_on("an earlier start"));
        assert!(said.ends_with(&format!("(session {orphan})")), "{said}, not {orphan}");
        assert_eq!(again.outcome.end, AttemptEnd::Success, "{}", again.text());
        assert_eq!(effects(&db).await, "B1 E1 B2 E2", "one after the other");
        assert!(again.text().contains("the earlier start is gone after "), "{}", again.text());
    })
    .await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_and_took_effect() {
    on_servers(|db| async move {
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        for (when, flow, rows) in [
            (When::Answered, Flow::Rst, "1"),
            (When::Answered, Flow::Silent, "1"),
            (When::Before, Flow::Rst, "0"),
        ] {
            let relay = Relay::before(&db.url).await;
            relay.when("COMMIT", when, Whom::One, flow);
            let mut bench = Bench::sql(&db, "").at(&relay.url(&db.url)).set(|o| {
                (o.look_every, o.idle) = (Duration::from_millis(300), Duration::from_secs(1));
            });
            bench.task.job.sql = Some(SqlText::Same("INSERT INTO t VALUES (1)".to_owned()));
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{when:?} {flow:?}: {}", ran.text());
            assert_eq!(class(&ran.outcome), Some(ErrorClass::ConnectionLost));
            db.wait_for("SELECT COUNT(*) FROM t", rows).await;
            db.setup(&["DELETE FROM t"]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_black_hole_in_the_middle_of_a_call_is_noticed_within_the_bound() {
    on_servers(|db| async move {
        two_effects(&db, 30.0).await;
        for flow in [Flow::Silent, Flow::Deaf, Flow::Mute] {
            let (ran, took) = broken(&db, ("CALL ", When::Sent, Whom::All, flow)).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.text());
            assert_eq!(class(&ran.outcome), Some(ErrorClass::ConnectionLost));
            assert!(ran.message().contains("the server cannot be reached"), "{}", ran.message());
            // 3E + L, one look at what became of it, and a slow machine.
            let bound = Duration::from_millis(3 * 300 + 300 + 500 + 3_000);
            assert!(took >= Duration::from_millis(600) && took < bound, "{took:?}");
            assert!(ran.text().contains("could not be learnt"), "{}", ran.text());
            db.wait_for("SELECT CASE WHEN COUNT(*) > 0 THEN 'y' ELSE 'n' END FROM fx", "y").await;
            query(&db.url, &kill(&db, &ran.session())).await;
            db.setup(&["DELETE FROM fx"]).await;
        }
    })
    .await;
}

fn kill(db: &Scratch, session: &str) -> String {
    match db.dialect {
        DialectName::Postgres => format!("SELECT pg_terminate_backend({session})"),
        _ => format!("KILL CONNECTION {session}"),
    }
}

#[tokio::test]
async fn a_session_that_is_gone_behind_a_silent_connection_is_noticed() {
    on_servers(|db| async move {
        two_effects(&db, 30.0).await;
        let relay = Relay::before(&db.url).await;
        relay.when("CALL ", When::Sent, Whom::One, Flow::Silent);
        let bench = Bench::proc(&db, "body").at(&relay.url(&db.url));
        let bench = bench.set(|o| o.look_every = Duration::from_millis(200));
        let (ran, start) = tokio::join!(bench.run(), async {
            db.wait_for("SELECT CASE WHEN COUNT(*) > 0 THEN 'y' ELSE 'n' END FROM fx", "y").await;
            // It must have been seen once.
            tokio::time::sleep(Duration::from_millis(600)).await;
            let orphan = db.value("SELECT MAX(session) FROM fx").await;
            query(&db.url, &kill(&db, &orphan)).await;
            Instant::now()
        });
        assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.text());
        assert!(ran.message().contains("its session is gone from the server"), "{}", ran.message());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    })
    .await;
}

#[tokio::test]
async fn a_slow_network_is_no_dead_one() {
    on_servers(|db| async move {
        two_effects(&db, 1.5).await;
        let relay = Relay::before(&db.url).await;
        relay.delay(Duration::from_millis(20));
        let bench = Bench::proc(&db, "body").at(&relay.url(&db.url));
        let ran = bench.set(|o| o.look_every = Duration::from_millis(500)).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        assert_eq!(effects(&db).await, "B1 E1");
    })
    .await;
}

#[tokio::test]
async fn an_orphan_is_ended_by_who_finds_its_row_to_be_stopped() {
    on_servers(|db| async move {
        two_effects(&db, 30.0).await;
        let relay = Relay::before(&db.url).await;
        relay.when("CALL ", When::Sent, Whom::One, Flow::Fin);
        let first = Bench::proc(&db, "body").at(&relay.url(&db.url));
        let mut cleaner = Bench::proc(&db, "body");
        cleaner.task = first.task.clone();
        let ran = first.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
        db.wait_for("SELECT CASE WHEN COUNT(*) > 0 THEN 'y' ELSE 'n' END FROM fx", "y").await;
        let ended = cleaner.at(&db.url).end_orphan().await;
        assert_eq!(ended.outcome.end, AttemptEnd::Killed, "{}\n{}", ended.message(), ended.text());
        assert!(ended.message().contains(&format!("session {}", ran.session())));
        assert!(ended.message().contains("what it had committed stays"), "{}", ended.message());
        assert!(!db.is_listed(&ran.session()).await, "{}", ended.text());
        assert_eq!(effects(&db).await, "B1");
    })
    .await;
}

#[tokio::test]
async fn an_orphan_that_is_not_there_and_one_that_cannot_be_asked_for() {
    on_servers(|db| async move {
        let ended = Bench::sql(&db, "SELECT 1").end_orphan().await;
        assert_eq!(ended.outcome.end, AttemptEnd::Unknown);
        assert!(ended.message().starts_with(NOTHING_RUNS), "{}", ended.message());
        let relay = Relay::before(&db.url).await;
        relay.now(Flow::Rst);
        let bench = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url));
        let ended = bench.end_orphan().await;
        assert_eq!(ended.outcome.end, AttemptEnd::Unknown);
        assert!(ended.message().starts_with(UNCONFIRMED), "{}", ended.message());
        // Away for a while, and this process has to go.
        let bench = Bench::sql(&db, "SELECT 1").at(&relay.url(&db.url));
        let bench = bench.set(|o| o.away = Duration::from_secs(300));
        bench.stop.send_replace(Some(StopReason::Killed));
        let (stop, claim) = (bench.stop.clone(), bench.claim.clone());
        let (ended, _) = tokio::join!(bench.end_orphan(), async {
            claim.waits_on("source 'ledger' is away").await;
            stop.send_replace(Some(StopReason::HandedBack));
        });
        assert!(ended.message().starts_with(UNCONFIRMED), "{}", ended.message());
    })
    .await;
}

#[tokio::test]
async fn a_script_that_a_dead_worker_left_is_killed() {
    let bench = Bench::script("true");
    let mut orphan = Command::new("/bin/sh")
        .args(["-c", "sleep 300; :"])
        .env("PROCESSION_RUN", format!("{}:1", bench.task.lock_name))
        .spawn()
        .expect("an orphan");
    // Reaped at once, as init would.
    let reaper = std::thread::spawn(move || orphan.wait());
    let mut nothing = Bench::script("true");
    nothing.task = bench.task.clone();
    let ended = bench.end_orphan().await;
    assert_eq!(ended.outcome.end, AttemptEnd::Killed, "{}", ended.message());
    assert!(!reaper.join().expect("reaper").expect("its end").success());
    let ended = nothing.end_orphan().await;
    assert_eq!(ended.outcome.end, AttemptEnd::Unknown);
    assert!(ended.message().starts_with(NOTHING_RUNS), "{}", ended.message());
    let other = Bench::new("NOOP").end_orphan().await;
    assert_eq!(other.outcome.end, AttemptEnd::Unknown);
}

#[tokio::test]
async fn a_kill_while_the_target_is_away_is_unconfirmed_and_says_why() {
    on_servers(|db| async move {
        two_effects(&db, 30.0).await;
        let relay = Relay::before(&db.url).await;
        relay.when("CALL ", When::Sent, Whom::All, Flow::Silent);
        let bench = Bench::proc(&db, "body").at(&relay.url(&db.url)).set(|o| {
            (o.kill_grace, o.kill_confirm) =
                (Duration::from_millis(300), Duration::from_millis(900));
            o.connect_timeout = Duration::from_millis(200);
        });
        let stop = bench.stop.clone();
        let (ran, ()) = tokio::join!(bench.run(), async {
            relay.struck().await;
            stop.send_replace(Some(StopReason::Killed));
        });
        assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.text());
        assert!(ran.message().starts_with(UNCONFIRMED), "{}", ran.message());
        assert!(ran.message().contains("no connection within 200ms"), "{}", ran.message());
        let said =
            ran.of(Stream::System).iter().filter(|l| l.contains("no second connection")).count();
        assert_eq!(said, 1, "{}", ran.text());
        query(&db.url, &kill(&db, &ran.session())).await;
    })
    .await;
}
