//! `tx: ledger`: each row of its protocol, seen in the data source by another connection.

use crate::preflight::is_mariadb;
use crate::util::bench::{Bench, Ran, Recorded};
use crate::util::{Scratch, migrated, query, session, with_scratch};
use procession::db::session::Session;
use procession::domain::job::check::CheckGrade;
use procession::domain::job::check::SuccessRule;
use procession::domain::job::outcome::{AttemptEnd, AttemptStage, Retry};
use procession::domain::job::retry::ErrorClass;
use procession::domain::job::secret::MaskedValue;
use procession::domain::job::{ParamMode, ParamType, TransactionMode};
use procession::domain::source::DialectName;
use procession::domain::source::tx_class::TxClass;
use procession::domain::value::expr::Expr;
use procession::handler::StopReason;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EACH: [DialectName; 3] = [DialectName::Sqlite, DialectName::Mysql, DialectName::Postgres];
const SERVERS: [DialectName; 2] = [DialectName::Mysql, DialectName::Postgres];

/// A scratch database with a ledger and a table that counts effects.
async fn prepared(db: &Scratch) {
    db.setup(&[&migrated(db.dialect, "procession_ledger"), "CREATE TABLE fx (who VARCHAR(200))"])
        .await;
}

/// The bench as the `attempt`-th try of the run that `key` names.
fn recorded(mut bench: Bench, key: &str, attempt: u32) -> Bench {
    bench.task.job.tx = TxClass::Ledger;
    bench.task.idem_key = key.to_owned();
    bench.task.attempt = attempt;
    bench
}

fn sql(db: &Scratch, text: &str, key: &str, attempt: u32) -> Bench {
    recorded(Bench::sql(db, text), key, attempt)
}

fn proc(db: &Scratch, name: &str, key: &str, attempt: u32) -> Bench {
    recorded(Bench::proc(db, name), key, attempt)
}

async fn effects(db: &Scratch) -> String {
    db.value("SELECT COUNT(*) FROM fx").await
}

/// `state#attempt` of each key, in order.
async fn ledger(db: &Scratch) -> String {
    let sql = "SELECT idem_key, state, attempt FROM procession_ledger ORDER BY idem_key";
    let rows = query(&db.url, sql).await;
    let word = |row: &[Option<String>], at: usize| row[at].clone().unwrap_or_default();
    let words: Vec<String> =
        rows.iter().map(|r| format!("{}={}#{}", word(r, 0), word(r, 1), word(r, 2))).collect();
    words.join(" ")
}

fn assert_end(ran: &Ran, end: AttemptEnd) {
    assert_eq!(ran.outcome.end, end, "{:?}\n{}", ran.outcome, ran.text());
}

fn assert_caught(ran: &Ran, end: AttemptEnd) {
    assert_end(ran, end);
    assert!(ran.outcome.breach.is_some(), "{:?}", ran.outcome);
    assert_eq!(ran.outcome.retry, Retry::Never);
}

fn assert_says(ran: &Ran, words: &str) {
    let text = format!("{}\n{}", ran.message(), ran.text());
    assert!(text.contains(words), "{words}: {text}");
}

#[tokio::test]
async fn the_key_decides_whether_a_body_runs() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            let body = "INSERT INTO fx VALUES ('one'); SELECT COUNT(*) AS n FROM fx";
            db.setup(&["CREATE TABLE fx (who VARCHAR(200))"]).await;
            let ran = sql(&db, body, "k1", 1).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_eq!(
                (ran.outcome.reach, ran.outcome.retry),
                (AttemptStage::Before, Retry::Never)
            );
            assert_says(&ran, "has no procession_ledger; run: procession source prepare ledger");
            db.setup(&[&migrated(dialect, "procession_ledger")]).await;

            let first = sql(&db, body, "k1", 1).run().await;
            assert_end(&first, AttemptEnd::Success);
            assert_eq!(
                (effects(&db).await.as_str(), ledger(&db).await.as_str()),
                ("1", "k1=done#1")
            );

            let again = sql(&db, body, "k1", 2).run().await;
            assert_end(&again, AttemptEnd::Success);
            assert_says(&again, "took effect in try 1 (ledger); not run again");
            assert_eq!(again.outcome.outputs, first.outcome.outputs);
            assert_eq!(again.value("n"), "1");
            assert_eq!(effects(&db).await, "1");

            let next = sql(&db, body, "k2", 3).run().await;
            assert_end(&next, AttemptEnd::Success);
            assert_eq!((effects(&db).await.as_str(), next.value("n").as_str()), ("2", "2"));

            let failing = "INSERT INTO fx VALUES ('three'); INSERT INTO nowhere VALUES (1)";
            let ran = sql(&db, failing, "k3", 1).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_says(&ran, "rolled back");
            assert_eq!(effects(&db).await, "2");
            assert_eq!(ledger(&db).await, "k1=done#1 k2=done#3");
        })
        .await;
    }
}

#[tokio::test]
async fn an_open_key_is_never_run_over() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            db.setup(&[
                "INSERT INTO procession_ledger (idem_key, state, batch_no, job_code, attempt, \
                        opened_at) VALUES ('k', 'open', '202407', 'GL', 1, '2024-08-01 00:00:00')",
            ])
            .await;
            let ran = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 2).run().await;
            assert_caught(&ran, AttemptEnd::Unknown);
            assert_says(&ran, "try 1 committed before it was done");
            assert_eq!(
                (effects(&db).await.as_str(), ledger(&db).await.as_str()),
                ("0", "k=open#1")
            );
        })
        .await;
    }
}

#[tokio::test]
async fn a_body_whose_rules_do_not_hold_is_undone() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let with_rule = |key: &str, grade| {
                let mut bench = sql(&db, "INSERT INTO fx VALUES ('x')", key, 1);
                let rule = Expr::parse("rows_affected > 1").expect("rule");
                bench.task.job.success = vec![SuccessRule { rule, grade, message: None }];
                bench
            };
            let ran = with_rule("k1", CheckGrade::Error).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_says(&ran, "success rule 'rows_affected > 1' does not hold (rows_affected = 1)");
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
            // A warning is kept with its effect, also when it is found again.
            for attempt in 1..=2 {
                let mut bench = with_rule("k2", CheckGrade::Warning);
                bench.task.attempt = attempt;
                let ran = bench.run().await;
                assert_end(&ran, AttemptEnd::Warning);
                assert_says(&ran, "does not hold");
                assert_eq!(effects(&db).await, "1");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn words_that_end_a_transaction_are_refused() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let ran = sql(&db, "INSERT INTO fx VALUES ('x'); COMMIT", "k", 1).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            let mut each = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 1);
            each.task.job.transaction = TransactionMode::Each;
            let ran = each.run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_says(&ran, "tx: ledger needs transaction: one");
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
        })
        .await;
    }
}

/// The connection is ended by somebody else while the body runs: nothing of it stays, the outcome is
/// open, and the next try runs it.
#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_leaves_nothing() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let (sleep, kill) = match dialect {
                DialectName::Mysql => ("DO SLEEP(20)", "KILL CONNECTION"),
                _ => ("SELECT pg_sleep(20)", "SELECT pg_terminate_backend"),
            };
            let body = format!("INSERT INTO fx VALUES ('x'); {sleep}");
            let find = match dialect {
                DialectName::Mysql => {
                    "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE \
                     'DO SLEEP%'"
                }
                _ => {
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = \
                     'active' AND query LIKE 'SELECT pg_sleep%'"
                }
            };
            let cut = async {
                let id = loop {
                    let rows = query(&db.url, find).await;
                    if let Some(id) = rows.first().and_then(|r| r[0].clone()) {
                        break id;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                };
                query(&db.url, &format!("{kill}({id})").replace("CONNECTION(", "CONNECTION (")).await;
            };
            let (ran, ()) = tokio::join!(sql(&db, &body, "k", 1).run(), cut);
            assert_end(&ran, AttemptEnd::Unknown);
            assert_eq!(ran.outcome.retry, Retry::Allowed);
            assert_eq!(ran.outcome.error.as_ref().map(|e| e.class), Some(ErrorClass::ConnectionLost));
            let ran = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 2).run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("1", "k=done#2"));
        })
        .await;
    }
}

/// A COMMIT whose answer never came: the first connection goes without a word right behind it.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_found() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let mut first = session(&db.url).await;
            first.begin().await.expect("begin");
            for text in [
                "INSERT INTO procession_ledger (idem_key, state, batch_no, job_code, attempt, opened_at) \
                 VALUES ('k', 'open', '202407', 'GL', 1, '2024-08-01 00:00:00')",
                "INSERT INTO fx VALUES ('x')",
                "UPDATE procession_ledger SET state = 'done' WHERE idem_key = 'k'",
                "COMMIT",
            ] {
                first.run_statement(text, &[]).await.expect(text);
            }
            drop(first);
            let ran = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 2).run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("1", "k=done#1"));
        })
        .await;
    }
}

#[tokio::test]
async fn mariadb_a_procedure_that_commits_is_caught() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        let fail = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'";
        for (name, text) in [
            ("ends", "INSERT INTO fx VALUES ('a'); COMMIT; INSERT INTO fx VALUES ('b')"),
            ("begins", "START TRANSACTION; INSERT INTO fx VALUES ('a'); COMMIT"),
            ("ddl", "INSERT INTO fx VALUES ('a'); CREATE TABLE IF NOT EXISTS made (a INT)"),
            ("undoes", "ROLLBACK; INSERT INTO fx VALUES ('a'); COMMIT"),
            ("sets", "INSERT INTO fx VALUES ('a'); COMMIT; SAVEPOINT procession_canary"),
        ] {
            let well = format!("CREATE PROCEDURE {name} () BEGIN {text}; END");
            let badly = format!("CREATE PROCEDURE {name}_badly () BEGIN {text}; {fail}; END");
            db.setup(&["DELETE FROM fx", "DELETE FROM procession_ledger", &well, &badly]).await;
            let ran = proc(&db, name, "well", 1).run().await;
            assert_caught(&ran, AttemptEnd::Warning);
            let count = effects(&db).await;
            assert_eq!(count, if name == "ends" { "2" } else { "1" }, "{name}");
            assert_eq!(ledger(&db).await, "well=open#1", "{name}: the key stays as evidence");
            let ran = proc(&db, name, "well", 2).run().await;
            assert_caught(&ran, AttemptEnd::Unknown);

            let ran = proc(&db, &format!("{name}_badly"), "badly", 1).run().await;
            assert_caught(&ran, AttemptEnd::Unknown);
            assert_says(&ran, "had committed a part of its work by itself");
            let ran = proc(&db, &format!("{name}_badly"), "badly", 2).run().await;
            assert_caught(&ran, AttemptEnd::Unknown);
            let after = effects(&db).await.parse::<u32>().expect("a number");
            assert_eq!(after, count.parse::<u32>().expect("a number") + 1, "{name}: once each");
        }
    })
    .await;
}

#[tokio::test]
async fn mariadb_a_rollback_inside_keeps_nothing_and_is_no_breach() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        db.setup(&[
            // The usual handler: undo, note, pass on.
            "CREATE PROCEDURE usual () BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; \
             INSERT INTO fx VALUES ('noted'); RESIGNAL; END; INSERT INTO fx VALUES ('a'); \
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '差额不为零'; END",
            "CREATE PROCEDURE swallowed () BEGIN INSERT INTO fx VALUES ('a'); ROLLBACK; \
             INSERT INTO fx VALUES ('b'); END",
        ])
        .await;
        let ran = proc(&db, "usual", "k", 1).run().await;
        assert_end(&ran, AttemptEnd::Failed);
        assert_eq!((ran.outcome.retry, ran.outcome.breach.is_some()), (Retry::Allowed, false));
        assert_says(&ran, "差额不为零");
        let ran = proc(&db, "swallowed", "k", 2).run().await;
        assert_end(&ran, AttemptEnd::Failed);
        assert_eq!((ran.outcome.retry, ran.outcome.breach.is_some()), (Retry::Allowed, false));
        assert_says(&ran, "was rolled back inside the body");
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
    })
    .await;
}

/// What a body does behind a ROLLBACK of its own is kept when a statement commits without saying so. It
/// was taken for undone: three attempts left three effects.
#[tokio::test]
async fn mysql_a_commit_by_ddl_behind_a_rollback_is_caught() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        let fail = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'";
        for (name, statement) in [
            ("truncates", "TRUNCATE TABLE spare"),
            ("alters", "ALTER TABLE spare COMMENT 'seen'"),
            ("analyzes", "ANALYZE TABLE spare"),
            ("switches", "SET autocommit = 1"),
            ("makes", "CREATE TABLE IF NOT EXISTS made (a INT)"),
        ] {
            let text = format!("ROLLBACK; INSERT INTO fx VALUES ('a'); {statement}");
            db.setup(&[
                "DELETE FROM fx",
                "DELETE FROM procession_ledger",
                "CREATE TABLE IF NOT EXISTS spare (a INT)",
                &format!("CREATE PROCEDURE {name} () BEGIN {text}; END"),
                &format!("CREATE PROCEDURE {name}_badly () BEGIN {text}; {fail}; END"),
            ])
            .await;
            let is_told_apart = name != "makes" || is_mariadb(&db).await;
            for (key, procedure, end) in [
                ("well", name.to_owned(), AttemptEnd::Warning),
                ("badly", format!("{name}_badly"), AttemptEnd::Unknown),
            ] {
                let ran = proc(&db, &procedure, key, 1).run().await;
                match is_told_apart {
                    true => assert_caught(&ran, end),
                    false => {
                        assert_end(&ran, AttemptEnd::Unknown);
                        assert!(ran.outcome.breach.is_some(), "it may have been a temporary table");
                        assert_says(
                            &ran,
                            "MySQL does not tell whether a CREATE TABLE of it committed",
                        );
                    }
                }
                assert_eq!(ran.outcome.retry, Retry::Never, "{procedure}");
                // The key is there, so no later attempt has a second effect.
                let ran = proc(&db, &procedure, key, 2).run().await;
                assert_end(&ran, AttemptEnd::Unknown);
            }
            assert_eq!(effects(&db).await, "2", "{name}: once each");
            assert_eq!(ledger(&db).await, "badly=open#1 well=open#1", "{name}");
        }
    })
    .await;
}

/// A body that ended our transaction, had an effect, committed it by a statement that does so in silence, and is a
/// deadlock's victim then. It ran six times in each attempt, and each run left an effect.
#[tokio::test]
async fn mysql_a_deadlock_behind_a_commit_by_ddl_is_not_run_again() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        db.setup(&["CREATE PROCEDURE victim () BEGIN ROLLBACK; INSERT INTO fx VALUES ('a'); \
             CREATE TABLE IF NOT EXISTS made (a INT); \
             SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'; END"])
            .await;
        for attempt in [1, 2] {
            let ran = proc(&db, "victim", "key", attempt).run().await;
            assert_end(&ran, AttemptEnd::Unknown);
            assert!(ran.outcome.breach.is_some(), "the next batch must not run it");
            assert_eq!(effects(&db).await, "1", "attempt {attempt}");
        }
    })
    .await;
}

/// A temporary table commits nothing: a body that uses one and is rolled back is tried again.
#[tokio::test]
async fn mysql_temporary_tables_are_no_commit() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        let table = "CREATE TEMPORARY TABLE draft (a INT); INSERT INTO draft VALUES (1); \
                     DROP TEMPORARY TABLE draft";
        db.setup(&[
            &format!(
                "CREATE PROCEDURE fails () BEGIN INSERT INTO fx VALUES ('a'); {table}; \
                 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END"
            ),
            &format!(
                "CREATE PROCEDURE victim () BEGIN INSERT INTO fx VALUES ('a'); {table}; \
                 SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'; END"
            ),
            &format!("CREATE PROCEDURE undoes () BEGIN INSERT INTO fx VALUES ('a'); ROLLBACK; {table}; END"),
        ])
        .await;
        for name in ["fails", "victim"] {
            let ran = proc(&db, name, name, 1).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_eq!((ran.outcome.retry, ran.outcome.breach), (Retry::Allowed, None), "{name}");
        }
        // Its rule is judged after it was found that the transaction is still ours.
        db.setup(&[&format!("CREATE PROCEDURE breaks () BEGIN INSERT INTO fx VALUES ('a'); {table}; END")])
            .await;
        let mut bench = proc(&db, "breaks", "breaks", 1);
        let rule = Expr::parse("rows_affected > 1000").expect("rule");
        bench.task.job.success = vec![SuccessRule { rule, grade: CheckGrade::Error, message: None }];
        let ran = bench.run().await;
        assert_end(&ran, AttemptEnd::Failed);
        assert_eq!(ran.outcome.breach, None);
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
        let ran = proc(&db, "undoes", "k", 1).run().await;
        let is_told_apart = is_mariadb(&db).await;
        assert_eq!(ran.outcome.breach.is_some(), !is_told_apart);
        assert_end(&ran, if is_told_apart { AttemptEnd::Failed } else { AttemptEnd::Unknown });
        assert_eq!(effects(&db).await, "0");
    })
    .await;
}

#[tokio::test]
async fn mariadb_out_values_come_before_the_commit_and_ddl_in_sql_is_caught() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        db.setup(&["CREATE PROCEDURE sp (IN a VARCHAR(10), OUT n INT) BEGIN \
                    INSERT INTO fx VALUES (a); SELECT COUNT(*) INTO n FROM fx; END"])
            .await;
        for attempt in 1..=2 {
            let ran = proc(&db, "sp", "k", attempt)
                .param("a", ParamMode::In, ParamType::Text, Some("x"))
                .param("n", ParamMode::Out, ParamType::Int, None)
                .run()
                .await;
            assert_end(&ran, AttemptEnd::Success);
            assert_eq!(ran.value("n"), "1");
        }
        let ddl =
            "INSERT INTO fx VALUES ('x'); CREATE TABLE IF NOT EXISTS made (a INT); INSERT INTO fx VALUES ('y')";
        let ran = sql(&db, ddl, "ddl", 1).run().await;
        assert_caught(&ran, AttemptEnd::Warning);
        assert_eq!(effects(&db).await, "3");
    })
    .await;
}

#[tokio::test]
async fn postgres_a_procedure_that_commits_is_refused_by_the_server() {
    with_scratch(DialectName::Postgres, |db| async move {
        prepared(&db).await;
        db.setup(&[
            "CREATE PROCEDURE ends () LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fx VALUES ('a'); \
             COMMIT; END $$",
            "CREATE PROCEDURE fine (OUT n int) LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO fx VALUES ('a'); SELECT count(*) INTO n FROM fx; END $$",
        ])
        .await;
        let ran = proc(&db, "ends", "k1", 1).run().await;
        assert_caught(&ran, AttemptEnd::Failed);
        assert_says(&ran, "which the server refused; nothing took effect");
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
        let bench = proc(&db, "fine", "k2", 1);
        let ran = bench.param("n", ParamMode::Out, ParamType::Int, None).run().await;
        assert_end(&ran, AttemptEnd::Success);
        assert_eq!((ran.value("n").as_str(), effects(&db).await.as_str()), ("1", "1"));
    })
    .await;
}

/// What is rolled back for another's sake is run once more within the same try, up to five times.
/// The counter is of a kind that no rollback takes back.
#[tokio::test]
async fn a_victim_runs_again_within_its_try() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let body = |times: u32| match dialect {
                DialectName::Mysql => format!(
                    "CREATE PROCEDURE sp () BEGIN INSERT INTO fx VALUES ('a'); \
                     SET @n = COALESCE(@n, 0) + 1; IF @n <= {times} THEN SIGNAL SQLSTATE '40001' \
                     SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'; END IF; END"
                ),
                _ => format!(
                    "CREATE OR REPLACE PROCEDURE sp () LANGUAGE plpgsql AS $$ BEGIN \
                     INSERT INTO fx VALUES ('a'); IF nextval('s') <= {times} THEN \
                     RAISE 'not now' USING ERRCODE = '40001'; END IF; END $$"
                ),
            };
            if dialect == DialectName::Postgres {
                db.setup(&["CREATE SEQUENCE s"]).await;
            }
            db.setup(&["DROP PROCEDURE IF EXISTS sp", &body(2)]).await;
            let ran = proc(&db, "sp", "k1", 1).run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert_says(&ran, "runs once more in");
            assert_eq!(ran.text().matches("runs once more").count(), 2, "{}", ran.text());
            assert_eq!(
                (effects(&db).await.as_str(), ledger(&db).await.as_str()),
                ("1", "k1=done#1")
            );
            db.setup(&["DROP PROCEDURE IF EXISTS sp", &body(1_000)]).await;
            let ran = proc(&db, "sp", "k2", 1).run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_eq!(ran.outcome.retry, Retry::Allowed);
            assert_eq!(ran.text().matches("runs once more").count(), 5, "{}", ran.text());
            assert_eq!(effects(&db).await, "1");
        })
        .await;
    }
}

/// The CALL of a victim has ended well and given its INOUT value back: it is called with the first one
/// again, whichever way that travelled.
#[tokio::test]
async fn mariadb_a_victim_is_called_with_the_same_values_again() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        db.setup(&[
            "CREATE PROCEDURE sp (IN a INT, INOUT n INT) \
             BEGIN SET n = n + a; INSERT INTO fx VALUES (n); END",
            "CREATE TRIGGER victim BEFORE UPDATE ON procession_ledger FOR EACH ROW BEGIN \
             SET @tries = COALESCE(@tries, 0) + 1; IF @tries = 1 THEN SIGNAL SQLSTATE '40001' \
             SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'; END IF; END",
        ])
        .await;
        for (key, value) in [
            ("open", MaskedValue::from("5")),
            // Not told with the lock.
            ("secret", MaskedValue::from("5").hidden()),
        ] {
            let mut bench = proc(&db, "sp", key, 1)
                .param("a", ParamMode::In, ParamType::Int, Some("1"))
                .param("n", ParamMode::InOut, ParamType::Int, None);
            bench.task.params[1].value = Some(value);
            let ran = bench.run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert_eq!(ran.text().matches("runs once more").count(), 1, "{}", ran.text());
            assert_eq!(ran.value("n"), "6", "{key}");
            let effects = db.value("SELECT GROUP_CONCAT(who) FROM fx").await;
            assert_eq!(effects, "6", "{key}");
            db.setup(&["DELETE FROM fx"]).await;
        }
    })
    .await;
}

/// A real one on MariaDB, with a handler that swallows it: the rest of the body runs in nobody's
/// transaction, and nothing of it may stay.
#[tokio::test]
async fn mariadb_a_deadlock_that_is_swallowed_keeps_nothing() {
    with_scratch(DialectName::Mysql, |db| async move {
        prepared(&db).await;
        db.setup(&[
            "CREATE TABLE gate (a INT PRIMARY KEY, n INT)",
            "INSERT INTO gate VALUES (1, 0), (2, 0)",
            "CREATE TABLE heavy (a INT)",
            "CREATE PROCEDURE sp () BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; \
             INSERT INTO fx VALUES ('before'); UPDATE gate SET n = n + 1 WHERE a = 1; \
             UPDATE gate SET n = n + 1 WHERE a = 2; INSERT INTO fx VALUES ('after'); END",
        ])
        .await;
        let mut other = session(&db.url).await;
        other.begin().await.expect("begin");
        // The lighter transaction is the victim.
        let fill = "INSERT INTO heavy WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n";
        other.run_statement(fill, &[]).await.expect(fill);
        other.run_statement("UPDATE gate SET n = 9 WHERE a = 2", &[]).await.expect("lock 2");
        let cross = async {
            // Not innodb_trx: it shows what it showed last when it is asked again within 100 ms.
            let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() \
                         AND info LIKE 'UPDATE gate%a = 2' AND time > 0";
            db.wait_for(waits, "1").await;
            other.run_statement("UPDATE gate SET n = 9 WHERE a = 1", &[]).await.expect("lock 1");
            other.run_statement("COMMIT", &[]).await.expect("commit");
        };
        let (ran, ()) = tokio::join!(proc(&db, "sp", "k", 1).run(), cross);
        assert_end(&ran, AttemptEnd::Failed);
        assert_says(&ran, "was rolled back inside the body");
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_stopped_leaves_nothing() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let (sleep, busy) = match dialect {
                DialectName::Mysql => (
                    "DO SLEEP(20)",
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND \
                     info LIKE 'DO SLEEP%'",
                ),
                _ => (
                    "SELECT pg_sleep(20)",
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                     state = 'active' AND query LIKE 'SELECT pg_sleep%'",
                ),
            };
            let body = format!("INSERT INTO fx VALUES ('x'); {sleep}; INSERT INTO fx VALUES ('y')");
            let bench = sql(&db, &body, "k", 1);
            let ran = bench.stop_when(StopReason::TimedOut, db.wait_for(busy, "1")).await;
            assert_end(&ran, AttemptEnd::TimedOut);
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
        })
        .await;
    }
}

/// The stop comes while COMMIT runs (a deferred trigger that swallows the cancel): the effect is
/// there, and the outcome says so.
#[tokio::test]
async fn postgres_a_commit_that_wins_against_a_stop_is_a_success() {
    with_scratch(DialectName::Postgres, |db| async move {
        prepared(&db).await;
        db.setup(&[
            "CREATE FUNCTION slow () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM pg_sleep(20); RETURN NULL; EXCEPTION WHEN query_canceled THEN RETURN NULL; END $$",
            "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON fx DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION slow()",
        ])
        .await;
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                    state = 'active' AND query = 'COMMIT'";
        let bench = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 1);
        let ran = bench.stop_when(StopReason::Killed, db.wait_for(busy, "1")).await;
        assert_end(&ran, AttemptEnd::Success);
        assert_says(&ran, "it had ended by itself before the stop reached it");
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("1", "k=done#1"));
    })
    .await;
}

#[tokio::test]
async fn a_row_that_is_not_ours_is_not_looked_up() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let bench = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 1);
            bench.claim.0.store(false, Ordering::SeqCst);
            let ran = bench.run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("0", ""));
        })
        .await;
    }
}

#[tokio::test]
async fn class_same_needs_processions_own_database() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let same = |question: &str| {
                let mut bench = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 1);
                bench.task.job.tx = TxClass::Same;
                let home = (question.to_owned(), "0123".to_owned());
                bench.ctx.record = Arc::new(Recorded { home });
                bench
            };
            for question in ["SELECT 'abcdef'", "SELECT value FROM procession_meta"] {
                let ran = same(question).run().await;
                assert_end(&ran, AttemptEnd::Failed);
                assert_eq!(
                    (ran.outcome.reach, ran.outcome.retry),
                    (AttemptStage::Before, Retry::Never)
                );
                assert_says(&ran, "tx: same needs a source on Procession's own database");
                assert_eq!(effects(&db).await, "0");
            }
            let ran = same("SELECT '0123456789'").run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert!(ran.outcome.is_recorded);
        })
        .await;
    }
}

#[tokio::test]
async fn large_outputs_come_back_whole() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let one = match dialect {
                DialectName::Sqlite => "SELECT hex(zeroblob(30000)) AS t",
                DialectName::Mysql | DialectName::Postgres => "SELECT REPEAT('月', 20000) AS t",
            };
            let body = format!("{one}; {one}; {one}");
            let first = sql(&db, &body, "k", 1).run().await;
            assert_end(&first, AttemptEnd::Success);
            let again = sql(&db, &body, "k", 2).run().await;
            assert_eq!(again.outcome.outputs, first.outcome.outputs);
            assert_eq!(again.outcome.outputs.results.len(), 3);
        })
        .await;
    }
}

/// Every body may ask its session who it is, of whatever class.
#[tokio::test]
async fn a_body_can_ask_its_session_for_its_key() {
    let asked = [
        (
            DialectName::Mysql,
            "SELECT @procession_idem_key AS k, @procession_batch_no AS b, @procession_job_code AS j, \
             @procession_attempt AS a",
        ),
        (
            DialectName::Postgres,
            "SELECT current_setting('procession.idem_key') AS k, \
             current_setting('procession.batch_no') AS b, current_setting('procession.job_code') AS j, \
             current_setting('procession.attempt') AS a",
        ),
    ];
    for (dialect, question) in asked {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let mut plain = Bench::sql(&db, question);
            plain.task.idem_key = "in/202407/GL/1".to_owned();
            plain.task.attempt = 3;
            for bench in [plain, sql(&db, question, "in/202407/GL/1", 3)] {
                let ran = bench.run().await;
                assert_end(&ran, AttemptEnd::Success);
                let row = ["k", "b", "j", "a"].map(|name| ran.value(name));
                assert_eq!(row, ["in/202407/GL/1", "202407", "GL", "3"]);
            }
        })
        .await;
    }
}

/// How somebody else takes the whole ledger, and how to see that he waits for it.
fn seizure(dialect: DialectName) -> (&'static str, &'static str) {
    match dialect {
        DialectName::Mysql => (
            "LOCK TABLES procession_ledger WRITE",
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state \
             LIKE 'Waiting for table metadata lock%'",
        ),
        _ => (
            "LOCK TABLE procession_ledger IN ACCESS EXCLUSIVE MODE",
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
             wait_event_type = 'Lock'",
        ),
    }
}

async fn seize(db: &Scratch) -> Session {
    let mut other = session(&db.url).await;
    if db.dialect == DialectName::Postgres {
        other.begin().await.expect("begin");
    }
    other.run_statement(seizure(db.dialect).0, &[]).await.expect("the lock");
    other
}

/// A look that nobody answers ends, and says so.
#[tokio::test]
async fn a_ledger_that_somebody_holds_keeps_no_row_waiting() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let bench = |body: &str| {
                let short = Duration::from_secs(2);
                sql(&db, body, "k", 1).options(|options| options.kill_confirm = short)
            };
            let other = seize(&db).await;
            let looks = bench("SELECT 1").end_orphan();
            let ran = tokio::time::timeout(Duration::from_secs(20), looks).await.expect("an end");
            assert_end(&ran, AttemptEnd::Unknown);
            assert_says(
                &ran,
                "could not be looked up what became of it (source 'ledger'): no answer",
            );
            assert_says(&ran, "looks in the ledger");
            other.close().await;

            let sleep = match dialect {
                DialectName::Mysql => "DO SLEEP(20)",
                _ => "SELECT pg_sleep(20)",
            };
            let busy = match dialect {
                DialectName::Mysql => {
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND \
                     info LIKE 'DO SLEEP%'"
                }
                _ => {
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                     state = 'active' AND query LIKE 'SELECT pg_sleep%'"
                }
            };
            // Granted when the body's transaction is gone, so before the look.
            let lock = async {
                db.wait_for(busy, "1").await;
                seize(&db).await
            };
            let waits = db.wait_for(seizure(dialect).1, "1");
            let stopped = bench(&format!("INSERT INTO fx VALUES ('x'); {sleep}"))
                .stop_when(StopReason::TimedOut, waits);
            let (ran, other) = tokio::join!(stopped, lock);
            assert_end(&ran, AttemptEnd::Unknown);
            assert_says(&ran, "stopped on the server; it could not be looked up");
            other.close().await;
            assert_eq!(effects(&db).await, "0");
        })
        .await;
    }
}

/// The first read is cut off: as if the connection had broken in the middle.
#[tokio::test]
async fn a_connection_that_breaks_while_the_key_is_read_is_not_charged() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let other = seize(&db).await;
            let cut = async {
                db.wait_for(seizure(dialect).1, "1").await;
                let cut = match dialect {
                    DialectName::Mysql => {
                        let find = "SELECT id FROM information_schema.processlist WHERE db = \
                                    DATABASE() AND state LIKE 'Waiting for table metadata lock%'";
                        format!("KILL CONNECTION {}", db.value(find).await)
                    }
                    _ => "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \
                          current_database() AND wait_event_type = 'Lock'"
                        .to_owned(),
                };
                query(&db.url, &cut).await;
            };
            let (ran, ()) = tokio::join!(sql(&db, "SELECT 1", "k", 1).run(), cut);
            other.close().await;
            assert_end(&ran, AttemptEnd::Unknown);
            assert_says(&ran, "reading procession_ledger: connection lost");
            assert_eq!(
                (ran.outcome.reach, ran.outcome.retry),
                (AttemptStage::Body, Retry::Allowed)
            );
        })
        .await;
    }
}

#[tokio::test]
async fn an_open_try_is_looked_up_or_nothing_is_advised_that_would_lose_it() {
    for dialect in EACH {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let open = || {
                let mut bench = sql(&db, "INSERT INTO fx VALUES ('x')", "k", 3);
                bench.task.is_unresolved = true;
                bench
            };
            db.setup(&["ALTER TABLE procession_ledger RENAME TO away"]).await;
            let ran = open().run().await;
            assert_end(&ran, AttemptEnd::Failed);
            assert_eq!(
                (ran.outcome.reach, ran.outcome.retry),
                (AttemptStage::Before, Retry::Never)
            );
            assert_says(&ran, "procession_ledger is gone from source 'ledger', and what became of");
            assert!(!ran.message().contains("prepare"), "{}", ran.message());
            db.setup(&["ALTER TABLE away RENAME TO procession_ledger"]).await;
            let ran = open().run().await;
            assert_end(&ran, AttemptEnd::Success);
            assert_says(&ran, "no earlier try took effect (ledger); runs it");
            assert_eq!(effects(&db).await, "1");
        })
        .await;
    }
}

#[tokio::test]
async fn a_user_who_may_not_write_the_ledger_is_told_the_cure() {
    for dialect in SERVERS {
        with_scratch(dialect, |db| async move {
            prepared(&db).await;
            let user = format!("u{}", &db.name[db.name.len() - 12..]);
            let (make, to, away) = match dialect {
                DialectName::Postgres => (
                    format!("CREATE ROLE {user} LOGIN"),
                    user.clone(),
                    vec![format!("DROP OWNED BY {user}"), format!("DROP ROLE {user}")],
                ),
                _ => (
                    format!("CREATE USER {user}@'%'"),
                    format!("{user}@'%'"),
                    vec![format!("DROP USER {user}@'%'")],
                ),
            };
            db.setup(&[&make, &format!("GRANT SELECT, INSERT ON fx TO {to}")]).await;
            let before =
                db.url.split_once("://").expect("a URL").1.split_once('@').expect("a user").0;
            let url = db.url.replacen(&format!("://{before}@"), &format!("://{user}@"), 1);
            let mut found = Vec::new();
            for right in [None, Some("SELECT"), Some("INSERT"), Some("UPDATE")] {
                if let Some(right) = right {
                    db.setup(&[&format!("GRANT {right} ON procession_ledger TO {to}")]).await;
                }
                found.push(sql(&db, "INSERT INTO fx VALUES ('x')", "k", 1).at(&url).run().await);
            }
            for statement in &away {
                db.setup(&[statement]).await;
            }
            let well = found.pop().expect("the last");
            for (ran, verb) in found.iter().zip(["read", "write", "write"]) {
                assert_end(ran, AttemptEnd::Failed);
                assert_eq!(ran.outcome.retry, Retry::Never);
                assert_says(
                    ran,
                    &format!("not allowed to {verb} procession_ledger in source 'ledger'"),
                );
                assert_says(ran, "procession source check ledger tells what to grant");
            }
            assert_end(&well, AttemptEnd::Success);
            assert_eq!(effects(&db).await, "1");
        })
        .await;
    }
}

/// A body that points its session elsewhere, even to a table of the same name.
#[tokio::test]
async fn postgres_the_ledger_is_that_of_before_the_body() {
    with_scratch(DialectName::Postgres, |db| async move {
        prepared(&db).await;
        let body = "CREATE SCHEMA other; SET search_path TO other; \
                    CREATE TABLE procession_ledger (a int); INSERT INTO public.fx VALUES ('x')";
        let ran = sql(&db, body, "k", 1).run().await;
        assert_end(&ran, AttemptEnd::Success);
        assert_eq!((effects(&db).await.as_str(), ledger(&db).await.as_str()), ("1", "k=done#1"));
    })
    .await;
}
