//! Time-outs and kills: after the outcome nothing runs on the server, seen by another connection.

use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, query, session, with_scratch};
use procession::domain::job::TransactionMode;
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::source::DialectName;
use procession::handler::StopReason;
use procession::handler::log::JobLogLine;
use procession::handler::sessions::SessionPool;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A CALL that inserts a row every 50 ms for ten seconds, in the given way of sleeping.
fn loop_of(sleep: &str) -> String {
    format!(
        "CREATE PROCEDURE body () BEGIN DECLARE i INT DEFAULT 0; WHILE i < 200 DO {sleep}; \
         INSERT INTO t (a) VALUES (i); SET i = i + 1; END WHILE; END"
    )
}

/// Stops a body after its second row and checks that nothing is left and nothing is added.
async fn stopped(db: &Scratch, bench: Bench, reason: StopReason) -> Ran {
    let ready =
        db.wait_for("SELECT CASE WHEN COUNT(*) >= 2 THEN 'go' ELSE 'wait' END FROM t", "go");
    let start = Instant::now();
    let ran = bench.stop_when(reason, ready).await;
    let is_listed = db.is_listed(&ran.session()).await;
    let rows = db.value("SELECT COUNT(*) FROM t").await;
    assert!(!is_listed, "the session is left: {}", ran.text());
    assert!(start.elapsed() < Duration::from_secs(9), "it ended by itself: {:?}", start.elapsed());
    // Long enough for several more rows, if anything still ran.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, rows, "rows were added after the end");
    assert!(ran.text().contains("is gone after"), "{}", ran.text());
    ran
}

#[tokio::test]
async fn mariadb_loops_are_stopped_whatever_they_swallow() {
    for sleep in [
        "DO SLEEP(0.05)",
        "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; SELECT SLEEP(0.05) INTO @x; END",
        "SELECT SLEEP(0.05) INTO @x",
    ] {
        with_scratch(DialectName::Mysql, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)", &loop_of(sleep)]).await;
            let ran = stopped(&db, Bench::proc(&db, "body"), StopReason::TimedOut).await;
            assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{sleep}: {}", ran.message());
            assert!(ran.text().contains("KILL CONNECTION"), "{}", ran.text());
        })
        .await;
    }
}

#[tokio::test]
async fn mariadb_long_query_and_open_transaction() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)", "CREATE TABLE u (a INT) ENGINE=InnoDB"]).await;
        let mut bench = Bench::sql(
            &db,
            "INSERT INTO t VALUES (1), (2);\nSTART TRANSACTION; INSERT INTO u VALUES (1);\n\
             SELECT BENCHMARK(5000000000, SHA2('x', 512));\nCOMMIT; INSERT INTO t VALUES (3)",
        );
        bench.task.job.transaction = TransactionMode::None;
        let ran = stopped(&db, bench, StopReason::Killed).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
        assert_eq!(db.value("SELECT COUNT(*) FROM u").await, "0");
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "2", "no statement after the stop");
    })
    .await;
}

#[tokio::test]
async fn mariadb_a_swallowed_kill_does_not_let_the_next_statement_run() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        let mut bench = Bench::sql(
            &db,
            "INSERT INTO t VALUES (1), (2); DO SLEEP(30); INSERT INTO t VALUES (3)",
        );
        bench.task.job.transaction = TransactionMode::Each;
        let ran = stopped(&db, bench, StopReason::TimedOut).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "2");
        // Nor is a CALL whose last statement swallowed it a success, though what is asked behind it in the
        // same text is answered.
        db.setup(&[
            "DELETE FROM t",
            "CREATE PROCEDURE body () BEGIN INSERT INTO t VALUES (1), (2); DO SLEEP(30); END",
        ])
        .await;
        let ran = stopped(&db, Bench::proc(&db, "body"), StopReason::Killed).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
        // Nor does a procedure go on to what stands behind the statement that it was stopped in.
        for sleep in [
            "DO SLEEP(30)",
            "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; DO SLEEP(30); END",
            "SELECT BENCHMARK(5000000000, SHA2('x', 512)) INTO @x",
        ] {
            db.setup(&[
                "DELETE FROM t",
                "DROP PROCEDURE body",
                &format!(
                    "CREATE PROCEDURE body () BEGIN INSERT INTO t VALUES (1), (2); {sleep}; \
                     INSERT INTO t VALUES (3); END"
                ),
            ])
            .await;
            let ran = stopped(&db, Bench::proc(&db, "body"), StopReason::TimedOut).await;
            assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{sleep}: {}", ran.message());
            assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "2", "{sleep}");
        }
    })
    .await;
}

#[tokio::test]
async fn mariadb_a_definers_procedure_without_the_right_to_kill_is_unconfirmed() {
    with_scratch(DialectName::Mysql, |db| async move {
        let user = format!("u{}", &db.name[db.name.len() - 20..]);
        db.setup(&[
            "CREATE TABLE t (a INT)",
            &loop_of("SELECT SLEEP(0.05) INTO @x").replace("200", "60"),
            &format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'p'"),
            &format!("GRANT EXECUTE ON {}.* TO '{user}'@'%'", db.name),
        ])
        .await;
        let run = |confirm: u64| {
            let mut bench = Bench::proc(&db, "body");
            let mut options = (*bench.ctx.options).clone();
            options.kill_grace = Duration::from_millis(300);
            options.kill_confirm = Duration::from_millis(confirm);
            bench.ctx.options = std::sync::Arc::new(options);
            let url = db.url.replace("root@", &format!("{user}:p@"));
            bench.task.source.as_mut().expect("a source").url = url;
            bench
        };
        let ready = || db.wait_for("SELECT CASE WHEN COUNT(*) >= 2 THEN 'go' ELSE 'no' END FROM t", "go");
        let ran = run(700).stop_when(StopReason::TimedOut, ready()).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.text());
        assert!(ran.message().contains("kill unconfirmed: session"), "{}", ran.message());
        assert!(ran.text().contains("1095") && ran.text().contains("CONNECTION ADMIN"), "{}", ran.text());
        // With the right it is stopped. The first one first has to end by itself.
        db.wait_for(&format!("SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND id <> CONNECTION_ID()", db.name), "0").await;
        let right = match db.value("SELECT VERSION()").await.contains("MariaDB") {
            true => "CONNECTION ADMIN",
            false => "CONNECTION_ADMIN, SYSTEM_USER",
        };
        db.setup(&["DELETE FROM t", &format!("GRANT {right} ON *.* TO '{user}'@'%'")]).await;
        let ran = run(5_000).stop_when(StopReason::TimedOut, ready()).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.text());
        db.setup(&[&format!("DROP USER '{user}'@'%'")]).await;
    })
    .await;
}

#[tokio::test]
async fn postgres_bodies_are_stopped_whatever_they_catch() {
    let committing = "CREATE PROCEDURE body () LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..200 LOOP \
                      PERFORM pg_sleep(0.05); INSERT INTO t VALUES (i); COMMIT; END LOOP; END $$";
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE TABLE t (a int)", committing]).await;
        let ran = stopped(&db, Bench::proc(&db, "body"), StopReason::TimedOut).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert!(ran.text().contains("pg_cancel_backend"), "{}", ran.text());
    })
    .await;
    // Nearly all its time is inside the block that catches, so every cancel is swallowed.
    let catching = "CREATE PROCEDURE body () LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..60 LOOP \
                    BEGIN PERFORM pg_sleep(1); EXCEPTION WHEN query_canceled THEN \
                    RAISE NOTICE 'swallowed'; END; END LOOP; END $$";
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[catching]).await;
        let ready = db.wait_for(
            "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event = 'PgSleep'",
            "1",
        );
        let ran = Bench::proc(&db, "body").stop_when(StopReason::TimedOut, ready).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert!(ran.text().contains("NOTICE: swallowed"), "{}", ran.text());
        assert!(ran.text().contains("pg_terminate_backend"), "{}", ran.text());
        assert!(!db.is_listed(&ran.session()).await, "{}", ran.text());
    })
    .await;
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE TABLE t (a int)"]).await;
        let bench = Bench::sql(&db, "INSERT INTO t VALUES (1); SELECT pg_sleep(60)");
        let ready = db.wait_for(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' \
             AND datname = current_database() AND application_name = 'procession:202407:GL'",
            "1",
        );
        let ran = bench.stop_when(StopReason::Killed, ready).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.text());
        assert!(!db.is_listed(&ran.session()).await, "{}", ran.text());
        assert_eq!(db.value("SELECT count(*) FROM t").await, "0", "one transaction");
    })
    .await;
}

#[tokio::test]
async fn what_another_process_has_by_now_is_stopped_without_a_grace() {
    let catching = "CREATE PROCEDURE body () LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..60 LOOP \
                    INSERT INTO t VALUES (i); COMMIT; BEGIN PERFORM pg_sleep(1); \
                    EXCEPTION WHEN query_canceled THEN INSERT INTO t VALUES (-i); END; END LOOP; END $$";
    let sleeping = "CREATE PROCEDURE body () BEGIN INSERT INTO t VALUES (1); DO SLEEP(30); \
                    INSERT INTO t VALUES (-1); END";
    for (dialect, body) in [(DialectName::Postgres, catching), (DialectName::Mysql, sleeping)] {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)", body]).await;
            let bench = Bench::proc(&db, "body").set(|o| o.kill_grace = Duration::from_secs(60));
            let ready =
                db.wait_for("SELECT CASE WHEN COUNT(*) > 0 THEN 'go' ELSE 'no' END FROM t", "go");
            let stop = bench.stop.clone();
            let (ran, start) = tokio::join!(bench.run(), async {
                ready.await;
                stop.send_replace(Some(StopReason::Disowned));
                Instant::now()
            });
            assert_eq!(ran.outcome.end, AttemptEnd::Returned, "{}", ran.text());
            assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
            assert!(ran.text().contains("is another process's by now"), "{}", ran.text());
            let is_ended =
                |l: &str| l.contains("pg_terminate_backend") || l.contains("KILL CONNECTION");
            assert!(is_ended(&ran.text()), "{}", ran.text());
            assert!(!db.is_listed(&ran.session()).await, "{}", ran.text());
            // A cancel would have let it go on to what stands behind the sleep.
            assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE a < 0").await, "0");
        })
        .await;
    }
}

/// Two seconds of work, and a row behind it.
const SLOW: [(DialectName, &str); 2] = [
    (
        DialectName::Postgres,
        "CREATE PROCEDURE body () LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); COMMIT; \
         PERFORM pg_sleep(2); INSERT INTO t VALUES (2); END $$",
    ),
    (
        DialectName::Mysql,
        "CREATE PROCEDURE body () BEGIN INSERT INTO t VALUES (1); DO SLEEP(2); INSERT INTO t VALUES (2); END",
    ),
];

/// As soon as there is a row the lease is lost; at the same moment the given thing happens.
async fn without_a_lease(db: &Scratch, bench: Bench, also: impl Future<Output = ()>) -> Ran {
    let ready = db.wait_for("SELECT CASE WHEN COUNT(*) > 0 THEN 'go' ELSE 'no' END FROM t", "go");
    let stop = bench.stop.clone();
    let (ran, ()) = tokio::join!(bench.run(), async {
        ready.await;
        stop.send_replace(Some(StopReason::Fenced));
        also.await;
    });
    ran
}

#[tokio::test]
async fn what_holds_its_lock_outlives_the_lease() {
    for (dialect, body) in SLOW {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)", body]).await;
            let ran = without_a_lease(&db, Bench::proc(&db, "body"), async {}).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
            assert!(ran.text().contains("holds the lock of this job"), "{}", ran.text());
            assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "2");
        })
        .await;
    }
}

/// A kill and the end of its time stop it all the same.
#[tokio::test]
async fn without_a_lease_it_can_be_stopped_for_another_reason() {
    for (dialect, body) in SLOW {
        with_scratch(dialect, |db| async move {
            let body = body.replace("sleep(2)", "sleep(60)").replace("SLEEP(2)", "SLEEP(60)");
            db.setup(&["CREATE TABLE t (a INT)", &body]).await;
            let bench = Bench::proc(&db, "body");
            let stop = bench.stop.clone();
            let killed = async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                stop.send_replace(Some(StopReason::Killed));
            };
            let ran = without_a_lease(&db, bench, killed).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.text());
            assert!(!db.is_listed(&ran.session()).await, "{}", ran.text());
        })
        .await;
    }
}

/// A procedure may free all locks of its session: then a second start could begin.
#[tokio::test]
async fn what_has_freed_its_lock_does_not_outlive_the_lease() {
    let postgres = "CREATE PROCEDURE body () LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_unlock_all(); \
                    INSERT INTO t VALUES (1); COMMIT; PERFORM pg_sleep(60); INSERT INTO t VALUES (2); END $$";
    let mysql = "CREATE PROCEDURE body () BEGIN DO RELEASE_ALL_LOCKS(); INSERT INTO t VALUES (1); \
                 DO SLEEP(60); INSERT INTO t VALUES (2); END";
    for (dialect, body) in [(DialectName::Postgres, postgres), (DialectName::Mysql, mysql)] {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)", body]).await;
            let ran = without_a_lease(&db, Bench::proc(&db, "body"), async {}).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Returned, "{}", ran.text());
            assert!(ran.text().contains("this process lost its lease"), "{}", ran.text());
            assert!(!db.is_listed(&ran.session()).await, "{}", ran.text());
        })
        .await;
    }
}

#[tokio::test]
async fn sqlite_is_stopped_by_the_brake() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["PRAGMA journal_mode = WAL", "CREATE TABLE t (a INT)"]).await;
        let endless = "INSERT INTO t VALUES (1);\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";
        let bench = Bench::sql(&db, endless);
        let log = bench.ctx.log.clone();
        let ready = async move {
            let mut seen = Vec::new();
            while !seen.iter().any(|l: &procession::handler::log::JobLogLine| l.text.starts_with("statement 1")) {
                seen.extend(log.drain());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let start = Instant::now();
        let ran = bench.stop_when(StopReason::TimedOut, ready).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert!(start.elapsed() < Duration::from_secs(3));
        assert_eq!(db.value("SELECT count(*) FROM t").await, "0");
    })
    .await;
}

#[tokio::test]
async fn sqlite_stops_while_it_waits_for_another_writer() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        let mut other = session(&db.url).await;
        other.begin().await.expect("the writer");
        let bench = Bench::sql(&db, "INSERT INTO t VALUES (1)");
        let log = bench.ctx.log.clone();
        let ready = async move {
            while log.drain().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let start = Instant::now();
        let ran = bench.stop_when(StopReason::Killed, ready).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        other.commit().await.expect("the writer ends");
        let ran = Bench::sql(&db, "INSERT INTO t VALUES (2)").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(db.value("SELECT sum(a) FROM t").await, "2");
    })
    .await;
}

/// The same when the other writer is of this process, which it waits for in another way.
#[tokio::test]
async fn sqlite_stops_while_it_waits_for_its_turn() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["PRAGMA journal_mode = WAL", "CREATE TABLE t (a INT)"]).await;
        let sessions = Arc::new(SessionPool::new(4));
        let bench = |text: &str| {
            let mut bench = Bench::sql(&db, text);
            bench.ctx.sessions = sessions.clone();
            bench
        };
        let holder = bench(
            "INSERT INTO t VALUES (1);\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
             SELECT count(*) FROM n",
        );
        let (log, stop) = (holder.ctx.log.clone(), holder.stop.clone());
        let others = async {
            let mut seen = Vec::new();
            while !seen.iter().any(|l: &JobLogLine| l.text.starts_with("statement 1")) {
                seen.extend(log.drain());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            for text in ["INSERT INTO t VALUES (2)", "DELETE FROM t; INSERT INTO t VALUES (3)"] {
                let waiting = bench(text);
                let log = waiting.ctx.log.clone();
                let ready = async move {
                    while log.drain().is_empty() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                let start = Instant::now();
                let ran = waiting.stop_when(StopReason::Killed, ready).await;
                assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{text}: {}", ran.message());
                assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
            }
            stop.send_replace(Some(StopReason::TimedOut));
        };
        let (ran, ()) = tokio::join!(holder.run(), others);
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        // Whoever held the turn has passed it on, and nothing of any of them is there.
        for text in ["INSERT INTO t VALUES (4)", "INSERT INTO t VALUES (5); INSERT INTO t VALUES (6)"] {
            let ran = bench(text).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        }
        assert_eq!(db.value("SELECT sum(a) FROM t").await, "15");
        sessions.clear().await;
    })
    .await;
}

#[tokio::test]
async fn a_lost_connection_is_unknown_and_says_whether_the_session_lives() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)"]).await;
            let nap =
                if dialect == DialectName::Mysql { "DO SLEEP(30)" } else { "SELECT pg_sleep(30)" };
            let bench = Bench::sql(&db, nap);
            let (list, kill) = match dialect {
                DialectName::Mysql => (
                    "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist \
                     WHERE db = DATABASE() AND info LIKE 'DO SLEEP%'",
                    "KILL ?",
                ),
                _ => (
                    "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE state = 'active' \
                     AND datname = current_database() AND query LIKE 'SELECT pg_sleep%'",
                    "SELECT pg_terminate_backend(?)",
                ),
            };
            let cut = async {
                let mut id = "0".to_owned();
                while id == "0" {
                    id = db.value(list).await;
                }
                query(&db.url, &kill.replace('?', &id)).await;
            };
            let (ran, ()) = tokio::join!(bench.run(), cut);
            assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
            assert!(
                ran.message().starts_with("statement 1 (line 1): connection lost ("),
                "{}",
                ran.message()
            );
            assert!(ran.text().contains("is gone from the server"), "{}", ran.text());
        })
        .await;
    }
}

#[tokio::test]
async fn a_stop_before_the_body_began_sends_nothing() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        let bench = Bench::sql(&db, "INSERT INTO t VALUES (1)");
        bench.stop.send_replace(Some(StopReason::Killed));
        let ran = bench.run().await;
        assert_eq!(
            (ran.outcome.end.clone(), ran.message()),
            (AttemptEnd::Killed, "stopped before it began")
        );
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "0");
    })
    .await;
}
