//! SENSOR on all three.

use crate::util::bench::Bench;
use crate::util::with_scratch;
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;
use procession::handler::StopReason;
use std::time::Duration;

#[tokio::test]
async fn it_asks_until_the_answer_is_yes() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE arrived (no VARCHAR(20))"]).await;
            let sql = "SELECT COUNT(*) AS n FROM arrived WHERE no = :no";
            let bench =
                Bench::sensor(&db, sql).param("no", ParamMode::In, ParamType::Text, Some("202407"));
            let arrives = async {
                // It has asked at least once before the row comes: the log says so.
                db.setup(&["INSERT INTO arrived VALUES ('202406')"]).await;
                db.setup(&["INSERT INTO arrived VALUES ('202407')"]).await;
            };
            let (ran, ()) = tokio::join!(bench.run(), arrives);
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect}: {}", ran.message());
            assert_eq!(ran.value("n"), "1");
            assert!(ran.text().contains("yes, after "), "{}", ran.text());
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_yes_and_what_is_not() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (2)"]).await;
            for yes in
                ["SELECT 1 = 1", "SELECT 2.50", "SELECT 'READY'", "SELECT EXISTS (SELECT 1 FROM t)"]
            {
                let ran = Bench::sensor(&db, yes).run().await;
                assert_eq!(
                    ran.outcome.end,
                    AttemptEnd::Success,
                    "{dialect} {yes}: {}",
                    ran.message()
                );
                assert_eq!(ran.value("polls"), "1");
            }
            for no in [
                "SELECT 1 = 2",
                "SELECT 0.00",
                "SELECT NULL",
                "SELECT ''",
                "SELECT a FROM t WHERE a = 9",
            ] {
                let asked = tokio::time::sleep(Duration::ZERO);
                let ran = Bench::sensor(&db, no).stop_when(StopReason::TimedOut, asked).await;
                assert_eq!(
                    ran.outcome.end,
                    AttemptEnd::TimedOut,
                    "{dialect} {no}: {}",
                    ran.message()
                );
            }
            for (bad, said) in [
                ("SELECT a FROM t", "the query gave 2 rows"),
                ("SELECT 1; SELECT 1", "one query is wanted, and there are 2"),
                ("SELECT nothing FROM nowhere", "the query: error"),
                ("SELECT :x", ":x is not among the job's parameters"),
            ] {
                let ran = Bench::sensor(&db, bad).run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{dialect} {bad}");
                assert!(ran.message().contains(said), "{dialect} {bad}: {}", ran.message());
            }
        })
        .await;
    }
}

#[tokio::test]
async fn it_only_reads() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)"]).await;
            let ran = Bench::sensor(&db, "INSERT INTO t VALUES (1)").run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{dialect}: {}", ran.message());
            assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "0");
        })
        .await;
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_asked_again() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let mut bench = Bench::sensor(&db, "SELECT 1");
        let source = bench.task.source.as_mut().expect("a source");
        source.url = "mysql://u:secret@127.0.0.1:1/x".to_owned();
        let log = bench.ctx.log.clone();
        let away = async {
            while log_is_empty(&log) {
                tokio::task::yield_now().await;
            }
        };
        let ran = bench.stop_when(StopReason::TimedOut, away).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert!(ran.message().contains("the database at 127.0.0.1:1 is away"), "{}", ran.message());
        assert!(!ran.message().contains("secret") && !ran.text().contains("secret"));
    })
    .await;
}

/// Whether nothing was logged yet. The lines that are looked at are gone afterwards.
fn log_is_empty(log: &procession::handler::log::RunLog) -> bool {
    log.drain().is_empty()
}

#[tokio::test]
async fn a_kill_is_heard_between_questions_and_in_one() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let mut bench = Bench::sensor(&db, "SELECT 0");
            bench.task.job.sensor.as_mut().expect("a sensor").poll_sec = 3_600;
            let log = bench.ctx.log.clone();
            let waits = async {
                while log_is_empty(&log) {
                    tokio::task::yield_now().await;
                }
            };
            let ran = bench.stop_when(StopReason::Killed, waits).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
            assert!(ran.message().contains("after 1 questions"), "{}", ran.message());
            let (slow, seen) = match dialect {
                DialectName::Postgres => (
                    "SELECT pg_sleep(600) IS NULL",
                    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600) IS NULL%' AND state = 'active' AND datname = current_database()",
                ),
                _ => (
                    "SELECT SLEEP(600)",
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(600)' AND db = DATABASE()",
                ),
            };
            let ran = Bench::sensor(&db, slow).stop_when(StopReason::Killed, db.wait_for(seen, "1")).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{dialect}: {}", ran.message());
            assert!(ran.of(Stream::System).iter().any(|line| line.contains("stopping it on the server")));
            db.wait_for(seen, "0").await;
        })
        .await;
    }
}

#[tokio::test]
async fn the_log_of_a_long_wait_is_short() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (0)"]).await;
        let bench = Bench::sensor(&db, "SELECT a FROM t");
        let becomes_true = async {
            db.setup(&["UPDATE t SET a = 1"]).await;
        };
        let (ran, ()) = tokio::join!(bench.run(), becomes_true);
        let polls: usize = ran.value("polls").parse().expect("a number");
        let lines = ran.of(Stream::System).len();
        assert!(lines <= 2 + polls / 20, "{lines} lines for {polls} questions");
    })
    .await;
}
