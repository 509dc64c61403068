//! PROC on MariaDB, PostgreSQL and SQLite.

use crate::util::bench::Bench;
use crate::util::{session, with_scratch};
use procession::db::routine::{Routine, RoutineParamMode};
use procession::db::session_lock::Lock;
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::secret::MaskedValue;
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;
use procession::handler::sessions::SessionPool;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const IN: ParamMode = ParamMode::In;
const OUT: ParamMode = ParamMode::Out;
const INOUT: ParamMode = ParamMode::InOut;
const TEXT: ParamType = ParamType::Text;

#[tokio::test]
async fn mariadb_in_out_inout_and_exact_values() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE sp (IN p_no VARCHAR(20), IN p_amount DECIMAL(30,10), IN p_day DATE, \
             OUT p_text VARCHAR(100), INOUT p_sum DECIMAL(30,10), OUT p_next DATE, OUT p_none INT) \
             BEGIN SET p_text = CONCAT(p_no, '·月末🧾'); SET p_sum = p_sum + p_amount; \
             SET p_next = p_day + INTERVAL 1 DAY; END",
        ])
        .await;
        let ran = Bench::proc(&db, "sp")
            .param("p_no", IN, TEXT, Some("二〇二四'\\;--"))
            .param("p_amount", IN, ParamType::Decimal, Some("12345678901234567.1234567891"))
            .param("p_day", IN, ParamType::Date, Some("2024-02-28"))
            .param("p_text", OUT, TEXT, None)
            .param("p_sum", INOUT, ParamType::Decimal, Some("0.0000000009"))
            .param("p_next", OUT, ParamType::Date, None)
            .param("p_none", OUT, ParamType::Int, None)
            .run()
            .await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("p_text"), "二〇二四'\\;--·月末🧾");
        assert_eq!(ran.value("p_sum"), "12345678901234567.1234567900");
        assert_eq!(ran.value("p_next"), "2024-02-29");
        assert_eq!(ran.outcome.outputs.values["p_none"], None);
    })
    .await;
}

#[tokio::test]
async fn postgres_in_out_inout_and_exact_values() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE SCHEMA fin",
            "CREATE PROCEDURE fin.sp (p_no varchar, p_amount numeric(30,10), p_day date, \
             OUT p_text text, INOUT p_sum numeric, OUT p_next date, p_id int DEFAULT 7, \
             p_ok boolean DEFAULT true) LANGUAGE plpgsql AS $$ BEGIN \
             p_text := p_no || '·月末🧾' || p_id || p_ok; p_sum := p_sum + p_amount; \
             p_next := p_day + 1; END $$",
        ])
        .await;
        let bench = || {
            Bench::proc(&db, "FIN.sp")
                .param("p_no", IN, TEXT, Some("二〇二四'\\;--"))
                .param("p_amount", IN, ParamType::Decimal, Some("12345678901234567.1234567891"))
                .param("p_day", IN, ParamType::Date, Some("2024-02-28"))
                .param("p_text", OUT, TEXT, None)
                .param("p_sum", INOUT, ParamType::Decimal, Some("0.0000000009"))
                .param("p_next", OUT, ParamType::Date, None)
        };
        let ran = bench().run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("p_text"), "二〇二四'\\;--·月末🧾7true");
        assert_eq!(ran.value("p_sum"), "12345678901234567.1234567900");
        assert_eq!(ran.value("p_next"), "2024-02-29");
        let ran = bench().param("p_ok", IN, ParamType::Bool, Some("false")).run().await;
        assert_eq!(ran.value("p_text"), "二〇二四'\\;--·月末🧾7false");
    })
    .await;
}

#[tokio::test]
async fn mariadb_result_sets_are_read_to_the_end_and_late_errors_seen() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a INT)",
            "CREATE PROCEDURE many () BEGIN SELECT 1 AS x UNION SELECT 2; INSERT INTO t VALUES (1),(2); \
             SELECT 'z' AS y; END",
            "CREATE PROCEDURE late () BEGIN SELECT 1 AS x; \
             SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31001, MESSAGE_TEXT = '差额不为零'; END",
            "CREATE PROCEDURE more (OUT n INT) BEGIN SET n = 0; \
             WHILE n < 30 DO SET n = n + 1; SELECT n; END WHILE; DO CAST('3x' AS SIGNED); END",
        ])
        .await;
        // More sets than are kept, and then what is asked behind a CALL.
        let ran = Bench::proc(&db, "more").param("n", OUT, ParamType::Int, None).run().await;
        assert_eq!(ran.value("n"), "30", "{}", ran.message());
        assert_eq!(ran.outcome.outputs.results.len(), 20);
        let said = ran.of(Stream::Database);
        assert!(said.len() == 1 && said[0].starts_with("Warning 1292"), "{}", ran.text());
        let ran = Bench::proc(&db, "many").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let sets = &ran.outcome.outputs.results;
        assert_eq!((sets.len(), sets[0].row_count, sets[1].columns[0].as_str()), (2, 2, "y"));
        assert_eq!(sets[0].rows, [[Some("1".to_owned())], [Some("2".to_owned())]]);
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "2");
        let ran = Bench::proc(&db, "late").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(ran.message().contains(".late: error 31001 (45000): 差额不为零"), "{}", ran.message());
    })
    .await;
}

#[tokio::test]
async fn mariadb_warnings_and_postgres_notices_reach_the_log() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE PROCEDURE w () BEGIN SELECT CAST('12x' AS SIGNED) AS n; END"]).await;
        let ran = Bench::proc(&db, "w").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success);
        let said = ran.of(Stream::Database);
        assert!(said.len() == 1 && said[0].starts_with("Warning 1292"), "{}", ran.text());
    })
    .await;
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE PROCEDURE w (p_no text) LANGUAGE plpgsql AS $$ BEGIN \
                    RAISE NOTICE 'step of %', p_no; RAISE WARNING '余额'; RAISE INFO 'i'; END $$"])
            .await;
        let one = Bench::proc(&db, "w").param("p_no", IN, TEXT, Some("one"));
        let two = Bench::proc(&db, "w").param("p_no", IN, TEXT, Some("two"));
        let (one, two) = tokio::join!(one.run(), two.run());
        assert_eq!(one.of(Stream::Database), ["NOTICE: step of one", "WARNING: 余额", "INFO: i"]);
        assert_eq!(two.of(Stream::Database)[0], "NOTICE: step of two");
    })
    .await;
}

#[tokio::test]
async fn what_does_not_fit_is_told_with_the_real_signature() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE sp (IN p_a INT, OUT p_b VARCHAR(9)) SET p_b = p_a",
            "CREATE FUNCTION fn () RETURNS INT RETURN 1",
        ])
        .await;
        // `int(11)` on MariaDB, `int` on MySQL.
        let int = "SELECT dtd_identifier FROM information_schema.parameters \
                   WHERE specific_schema = DATABASE() AND parameter_name = 'p_a'";
        let int = db.value(int).await;
        let signature = format!("procedure {}.sp(IN p_a {int}, OUT p_b varchar(9))", db.name);
        for (name, params, said) in [
            ("sp", vec![], format!("gives 0 parameters, but 2 are in {signature}")),
            ("sp", vec!["p_x", "p_b"], format!("there is no parameter p_x in {signature}")),
            ("nope", vec![], "there is no procedure 'nope'".to_owned()),
            ("fn", vec!["p_x"], "there is no parameter p_x in function".to_owned()),
            ("a.b.c", vec![], "no procedure 'c' in a package 'a.b'".to_owned()),
            ("a.b.c.d", vec![], "use name or schema.name".to_owned()),
            ("sp; DROP TABLE x", vec![], "use name or schema.name".to_owned()),
        ] {
            let mut bench = Bench::proc(&db, name);
            for param in params {
                bench = bench.param(param, IN, TEXT, None);
            }
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed);
            assert!(ran.message().contains(&said), "{}", ran.message());
        }
    })
    .await;
}

/// A text for a BIT parameter would be stored as its bytes: `5` became 53, with SUCCESS.
#[tokio::test]
async fn mysql_bits_are_not_given_as_text() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a BIT(8))",
            "CREATE PROCEDURE sp (IN b BIT(8)) INSERT INTO t VALUES (b)",
        ])
        .await;
        let ran = Bench::proc(&db, "sp").param("b", IN, TEXT, Some("5")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(ran.message().contains("declare it type: int"), "{}", ran.message());
        let ran = Bench::proc(&db, "sp").param("b", IN, ParamType::Int, Some("5")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let ran = Bench::proc(&db, "sp").param("b", IN, TEXT, None).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(db.value("SELECT GROUP_CONCAT(COALESCE(a + 0, 'null')) FROM t").await, "5,null");
    })
    .await;
}

/// What a function returns is the value of the one OUT parameter, or a result set.
#[tokio::test]
async fn mysql_functions_may_be_called() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a INT)",
            "CREATE FUNCTION add_up (a INT, b INT) RETURNS INT MODIFIES SQL DATA \
             BEGIN INSERT INTO t VALUES (a); RETURN a + b; END",
            "CREATE FUNCTION both_kinds () RETURNS INT DETERMINISTIC RETURN 1",
            "CREATE PROCEDURE both_kinds () INSERT INTO t VALUES (99)",
        ])
        .await;
        let call = || {
            let bench = Bench::proc(&db, "add_up").param("b", IN, ParamType::Int, Some("40"));
            bench.param("a", IN, ParamType::Int, Some("2"))
        };
        let ran = call().param("total", OUT, ParamType::Int, None).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("total"), "42");
        let ran = call().run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let set = &ran.outcome.outputs.results[0];
        assert_eq!((set.columns[0].as_str(), set.row_count), ("add_up", 1));
        assert_eq!(db.value("SELECT CONCAT(COUNT(*), ' ', SUM(a)) FROM t").await, "2 4");
        // The procedure comes first.
        let ran = Bench::proc(&db, "both_kinds").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(db.value("SELECT MAX(a) FROM t").await, "99");
    })
    .await;
}

/// MariaDB's own: packages, and defaults since 11.8. Other servers refuse to make them.
#[tokio::test]
async fn mariadb_packages_and_defaults() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE t (a VARCHAR(20))"]).await;
        let mut session = session(&db.url).await;
        let package = "CREATE PACKAGE pk AS -- what is public\n \
                       PROCEDURE p1(a IN INT, b OUT VARCHAR2(20)); FUNCTION twice(a INT) RETURN INT; END";
        let body = "CREATE PACKAGE BODY pk AS PROCEDURE p1(a IN INT, b OUT VARCHAR2(20)) AS \
                    BEGIN INSERT INTO t VALUES (a); b := CONCAT('v', a); END; \
                    FUNCTION twice(a INT) RETURN INT AS BEGIN RETURN 2 * a; END; END";
        let is_mariadb = db.value("SELECT VERSION()").await.contains("MariaDB");
        let call = |name: &str| Bench::proc(&db, name).param("a", IN, ParamType::Int, Some("3"));
        if is_mariadb {
            for sql in ["SET sql_mode = ORACLE", package, body] {
                session.run_statement(sql, &[]).await.expect(sql);
            }
            for name in ["pk.p1", "PK.P1", &format!("{}.pk.p1", db.name)] {
                let ran = call(name).param("b", OUT, TEXT, None).run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{name}: {}", ran.message());
                assert_eq!(ran.value("b"), "v3", "{name}");
            }
            let ran = call("pk.twice").param("n", OUT, ParamType::Int, None).run().await;
            assert_eq!(ran.value("n"), "6", "{}", ran.message());
            assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "3");
            let ran = call("pk.nope").run().await;
            assert!(ran.message().contains("package 'pk' declares no 'nope'"), "{}", ran.message());
            let ran = call("pk.p1").run().await;
            assert!(ran.message().contains("pk.p1(IN a INT, OUT b VARCHAR2(20))"), "{}", ran.message());
        } else {
            let ran = call("pk.p1").run().await;
            assert!(ran.message().contains("no procedure 'p1' in schema 'pk'"), "{}", ran.message());
        }
        session.run_statement("SET sql_mode = DEFAULT", &[]).await.expect("a mode");
        let defaults = "CREATE PROCEDURE d (a INT, b INT DEFAULT 5, c VARCHAR(9) DEFAULT 'x,y') \
                        INSERT INTO t VALUES (CONCAT(a, '-', b, '-', c))";
        if session.run_statement(defaults, &[]).await.is_ok() {
            db.setup(&["DELETE FROM t"]).await;
            let one = call("d").run().await;
            assert_eq!(one.outcome.end, AttemptEnd::Success, "{}", one.message());
            let two = call("d").param("b", IN, ParamType::Int, Some("6")).run().await;
            assert_eq!(two.outcome.end, AttemptEnd::Success, "{}", two.message());
            let rows = db.value("SELECT GROUP_CONCAT(a ORDER BY a SEPARATOR ' ') FROM t").await;
            assert_eq!(rows, "3-5-x,y 3-6-x,y");
            let gap = call("d").param("c", IN, TEXT, Some("z")).run().await;
            assert_eq!(gap.outcome.end, AttemptEnd::Failed);
            assert!(gap.message().contains("give b a value, because c behind it has one"), "{}", gap.message());
        } else {
            let version = db.value("SELECT VERSION()").await;
            assert!(!version.starts_with("11.8"), "{version} takes defaults");
        }
        session.close().await;
    })
    .await;
}

#[tokio::test]
async fn postgres_overloads_are_chosen_by_type() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a text)",
            "CREATE PROCEDURE post (a int) LANGUAGE sql AS $$INSERT INTO t VALUES ('int')$$",
            "CREATE PROCEDURE post (a bigint) LANGUAGE sql AS $$INSERT INTO t VALUES ('bigint')$$",
            "CREATE PROCEDURE post (a text) LANGUAGE sql AS $$INSERT INTO t VALUES ('text')$$",
            "CREATE PROCEDURE post (a date) LANGUAGE sql AS $$INSERT INTO t VALUES ('date')$$",
        ])
        .await;
        let run = async |name: &str, ty, value| {
            let ran = Bench::proc(&db, name).param("a", IN, ty, Some(value)).run().await;
            match ran.outcome.end {
                AttemptEnd::Success => db.value("DELETE FROM t RETURNING a").await,
                _ => ran.message().to_owned(),
            }
        };
        assert_eq!(run("post", TEXT, "x").await, "text");
        assert_eq!(run("post", ParamType::Date, "2024-07-31").await, "date");
        assert_eq!(run("post(int8)", ParamType::Int, "7").await, "bigint");
        assert_eq!(run("public.post(integer)", ParamType::Int, "7").await, "int");
        let said = run("post", ParamType::Int, "7").await;
        assert!(
            said.contains("fit more than one") && said.contains("public.post(integer)"),
            "{said}"
        );
        let said = run("post(boolean)", ParamType::Int, "7").await;
        assert!(said.contains("none has the types that the job names"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn postgres_procedures_may_commit_and_functions_may_be_called() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a int)",
            "CREATE PROCEDURE step (n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP \
             INSERT INTO t VALUES (i); COMMIT; END LOOP; RAISE EXCEPTION 'at the end' \
             USING DETAIL = '细节', HINT = 'look'; END $$",
            "CREATE FUNCTION add (a int, b int) RETURNS int LANGUAGE sql AS 'SELECT a + b'",
            "CREATE FUNCTION pair (OUT x int, OUT y text) LANGUAGE sql AS $$SELECT 1, 'b'$$",
            "CREATE FUNCTION \"Odd Name\" (bigint) RETURNS SETOF bigint LANGUAGE sql \
             AS 'SELECT generate_series(1, $1)'",
        ])
        .await;
        let ran = Bench::proc(&db, "step").param("n", IN, ParamType::Int, Some("3")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        let said = ran.message();
        for part in ["error P0001: at the end; DETAIL: 细节; HINT: look; WHERE: PL/pgSQL", "line 1"]
        {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(db.value("SELECT count(*) FROM t").await, "3", "each row was committed");
        let ran = Bench::proc(&db, "add")
            .param("b", IN, ParamType::Int, Some("40"))
            .param("a", IN, ParamType::Int, Some("2"))
            .param("total", OUT, ParamType::Int, None)
            .run()
            .await;
        assert_eq!(ran.value("total"), "42");
        let ran = Bench::proc(&db, "pair").param("y", OUT, TEXT, None).run().await;
        assert_eq!(ran.value("y"), "b");
        let ran = Bench::proc(&db, "\"Odd Name\"").param("n", IN, TEXT, Some("250")).run().await;
        let set = &ran.outcome.outputs.results[0];
        assert_eq!((set.row_count, set.rows.len()), (250, 250), "{}", ran.message());
    })
    .await;
}

/// sqlx always asks MySQL for found rows, not changed ones, and `ROW_COUNT()` in a procedure obeys:
/// the mysql client shows 0 for the second call. Documented here, because it cannot be changed.
#[tokio::test]
async fn mariadb_row_count_in_a_procedure_counts_found_rows() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1), (1)",
            "CREATE PROCEDURE p (OUT p_rows INT) BEGIN UPDATE t SET a = 1; \
             SET p_rows = ROW_COUNT(); END",
        ])
        .await;
        let ran = Bench::proc(&db, "p").param("p_rows", OUT, ParamType::Int, None).run().await;
        assert_eq!(ran.value("p_rows"), "2");
    })
    .await;
}

#[tokio::test]
async fn a_transaction_left_open_is_a_failure_not_a_silent_loss() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a INT)",
            "CREATE PROCEDURE forgot () BEGIN START TRANSACTION; INSERT INTO t VALUES (1); END",
        ])
        .await;
        let ran = Bench::proc(&db, "forgot").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(ran.message().contains("left a transaction open"), "{}", ran.message());
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "0");
        // Without a BEGIN, and together with values, sets and warnings that come back in the same answer.
        db.setup(&[
            "CREATE PROCEDURE off () BEGIN SET autocommit = 0; INSERT INTO t VALUES (2); END",
            "CREATE PROCEDURE ended (OUT n INT, OUT m INT) BEGIN START TRANSACTION; \
             INSERT INTO t VALUES (3); COMMIT; SELECT 'Warning' AS Level, 1 AS Code, 'x' AS Message; \
             SET m = 7, n = 5; SELECT CAST('5x' AS SIGNED); END",
        ])
        .await;
        let ran = Bench::proc(&db, "off").run().await;
        assert!(ran.message().contains("left a transaction open"), "{}", ran.message());
        let ended = Bench::proc(&db, "ended").param("n", OUT, ParamType::Int, None);
        let ran = ended.param("m", OUT, ParamType::Int, None).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!((ran.value("n").as_str(), ran.value("m").as_str()), ("5", "7"));
        assert_eq!(ran.outcome.outputs.results.len(), 2);
        let said = ran.of(Stream::Database);
        assert!(said.len() == 1 && said[0].starts_with("Warning 1292"), "{}", ran.text());
        assert_eq!(db.value("SELECT GROUP_CONCAT(a) FROM t").await, "3");
    })
    .await;
}

#[tokio::test]
async fn sqlite_bodies_stand_in_for_procedures() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["CREATE TABLE fx (no TEXT, rate NUMERIC)"]).await;
        let body = "INSERT INTO fx VALUES (:p_no, :p_rate), (:p_no, 2);\n\
                    SELECT count(*) AS p_rows, sum(rate) > :p_rate AS over FROM fx;\n";
        let bench = |body: &str| {
            let mut bench = Bench::proc(&db, "sp_load")
                .param("p_no", IN, TEXT, Some("202407"))
                .param("p_rate", IN, ParamType::Decimal, Some("7.25"))
                .param("p_rows", OUT, ParamType::Int, None);
            let source = bench.task.source.as_mut().expect("a source");
            source.procedures.insert("sp_load".to_owned(), body.to_owned());
            bench
        };
        let ran = bench(body).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!((ran.value("p_rows").as_str(), ran.value("over").as_str()), ("2", "1"));
        assert_eq!(ran.outcome.outputs.rows_affected, 2);
        // A missing OUT column and an error undo everything.
        let ran = bench("DELETE FROM fx; SELECT 1 AS other").run().await;
        assert!(ran.message().contains("gives no p_rows"), "{}", ran.message());
        let ran = bench("DELETE FROM fx;\nINSERT INTO nowhere VALUES (1)").run().await;
        assert!(
            ran.message().starts_with("statement 2 (line 2): error 1: no such table"),
            "{}",
            ran.message()
        );
        assert_eq!(db.value("SELECT count(*) FROM fx").await, "2");
    })
    .await;
}

#[tokio::test]
async fn a_second_start_waits_for_the_lock_and_then_asks_for_its_claim() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let (nap, lock) = match dialect {
                DialectName::Mysql => {
                    ("DO SLEEP(0.5)", "SELECT GET_LOCK('held', 1) AS l; DO SLEEP(1)")
                }
                _ => (
                    "SELECT pg_sleep(0.5)",
                    "SELECT pg_advisory_lock(hashtextextended('held', 0)); SELECT pg_sleep(1)",
                ),
            };
            let mut first = Bench::sql(&db, lock);
            first.task.job.transaction = procession::domain::job::TransactionMode::None;
            let mut second = Bench::sql(&db, nap);
            second.task.lock_name = "held".to_owned();
            let claim = second.claim.clone();
            let second = async {
                let held = match dialect {
                    DialectName::Mysql => "SELECT IS_USED_LOCK('held') IS NOT NULL",
                    _ => {
                        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                          WHERE locktype = 'advisory' AND datname = current_database() \
                          AND (classid::bigint << 32 | objid::bigint) = hashtextextended('held', 0)"
                    }
                };
                db.wait_for(held, "1").await;
                claim.0.store(false, Ordering::SeqCst);
                second.run().await
            };
            let (first, second) = tokio::join!(first.run(), second);
            assert_eq!(first.outcome.end, AttemptEnd::Success, "{}", first.message());
            assert!(second.text().contains("waits for an earlier start"), "{}", second.text());
            assert_eq!(second.outcome.end, AttemptEnd::Failed);
            assert!(second.message().contains("belongs to another start"), "{}", second.message());
        })
        .await;
    }
}

/// What a procedure's own text says of its parameters is what the catalogue says, or nothing.
#[tokio::test]
async fn mariadb_texts_of_procedures_say_what_the_catalogue_says() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE none () SELECT 1",
            "CREATE PROCEDURE plain (a INT, IN b VARCHAR(10) , OUT c DECIMAL(30,10),\n\tInOut d DATE) \
             SET c = a",
            "CREATE PROCEDURE `odd ``name(` (`in` INT, OUT `b, c` ENUM('x)','y''z,') CHARSET utf8mb4, \
             金额 BIGINT UNSIGNED) SET @x = `in`",
            "CREATE PROCEDURE told (a INT /* of what, (b INT) */, b INT) SELECT a",
        ])
        .await;
        let mut session = session(&db.url).await;
        for (name, is_understood) in
            [("none", true), ("plain", true), ("odd `name(", true), ("told", false)]
        {
            let shown = session.shown_procedure(None, name).await.expect("asked");
            let found = session.routines(None, name).await.expect("asked");
            let [found] = &found[..] else { panic!("{name}: {found:?}") };
            assert_eq!(shown.is_some(), is_understood, "{name}");
            let Some(shown) = shown else { continue };
            let params = |routine: &Routine| -> Vec<(String, RoutineParamMode)> {
                routine.params.iter().map(|p| (p.name.clone(), p.mode)).collect()
            };
            assert_eq!(params(&shown), params(found), "{name}");
            assert_eq!((&shown.schema, &shown.name), (&found.schema, &found.name));
        }
        assert_eq!(session.shown_procedure(None, "nowhere").await.expect("asked"), None);
        session.close().await;
    })
    .await;
}

/// A value of each type is the same to a procedure, told with the lock or, as a secret, with the CALL. On
/// MariaDB that is one SET more.
#[tokio::test]
async fn values_of_each_type_arrive_alike_by_both_ways() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let is_mariadb = dialect == DialectName::Mysql
                && db.value("SELECT VERSION()").await.contains("MariaDB");
            let (moment, text, sets) = match dialect {
                DialectName::Postgres => ("timestamp", "text", "0"),
                // No query of MySQL can read what it counts.
                DialectName::Mysql if !is_mariadb => ("datetime", "char", "0"),
                DialectName::Mysql | DialectName::Sqlite => (
                    "datetime",
                    "char",
                    "(SELECT variable_value FROM information_schema.session_status \
                     WHERE variable_name = 'COM_SET_OPTION')",
                ),
            };
            db.setup(&["CREATE TABLE seen (v varchar(99), sets int)"]).await;
            for (ty, column, value, seen) in [
                (ParamType::Int, "bigint", "-9007199254740993", ["-9007199254740993"; 2]),
                (
                    ParamType::Decimal,
                    "numeric(30,10)",
                    "12345678901234567.1234567891",
                    ["12345678901234567.1234567891"; 2],
                ),
                (ParamType::Bool, "boolean", "true", ["true", "1"]),
                (ParamType::Date, "date", "2024-02-29", ["2024-02-29"; 2]),
                (ParamType::Datetime, moment, "2024-02-29 23:59:58", ["2024-02-29 23:59:58"; 2]),
                (TEXT, "varchar(30)", "0012 '\\", ["0012 '\\"; 2]),
            ] {
                let (begin, end) = match dialect {
                    DialectName::Postgres => ("LANGUAGE sql AS $$", "$$"),
                    DialectName::Mysql | DialectName::Sqlite => ("", ""),
                };
                let put = format!(
                    "CREATE PROCEDURE put (v {column}) {begin} \
                     INSERT INTO seen VALUES (CAST(v AS {text}), {sets}) {end}"
                );
                db.setup(&["DELETE FROM seen", "DROP PROCEDURE IF EXISTS put", &put]).await;
                let mut counted = Vec::new();
                for value in [MaskedValue::from(value), MaskedValue::from(value).hidden()] {
                    let mut bench = Bench::proc(&db, "put").param("v", IN, ty, None);
                    bench.task.params[0].value = Some(value);
                    let ran = bench.run().await;
                    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
                    let found = db.value("SELECT v FROM seen").await;
                    let seen = seen[usize::from(dialect == DialectName::Mysql)];
                    assert_eq!(found, seen, "{dialect} {ty:?}");
                    counted.push(db.value("SELECT sets FROM seen").await.parse::<u32>());
                    db.setup(&["DELETE FROM seen"]).await;
                }
                let counted: Vec<u32> = counted.into_iter().map(|n| n.expect("a count")).collect();
                let more = u32::from(is_mariadb);
                assert_eq!(counted[1] - counted[0], more, "{dialect} {ty:?}");
            }
        })
        .await;
    }
}

/// Values of all kinds arrive, on one session after the other. On PostgreSQL it is seen which of them are
/// told with the lock; none of them stays for the next body, and no secret stands there at all.
#[tokio::test]
async fn values_reach_a_call_whatever_they_are() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let (table, put) = match dialect {
                DialectName::Postgres => (
                    "CREATE TABLE seen (a text, n numeric, told text)",
                    "CREATE PROCEDURE put (n numeric, a text) LANGUAGE sql AS $$ INSERT INTO seen \
                     VALUES (a, n, coalesce(current_setting('procession.p0', true), '')) $$",
                ),
                DialectName::Mysql | DialectName::Sqlite => (
                    "CREATE TABLE seen (a text, n numeric(30, 10), told text)",
                    "CREATE PROCEDURE put (IN n numeric(30, 10), IN a text) \
                     INSERT INTO seen VALUES (a, n, '')",
                ),
            };
            db.setup(&[table, put]).await;
            let sessions = Arc::new(SessionPool::new(4));
            let long = "x".repeat(257);
            let secret = || Some(MaskedValue::from("s3cret").hidden());
            for (value, is_told) in [
                (Some(MaskedValue::from("plain '\\; -- $1 :a ${b}")), true),
                (secret(), false),
                (Some(MaskedValue::from("")), true),
                (None, false),
                (Some(MaskedValue::from("月末🧾")), false),
                (Some(MaskedValue::from(long.as_str())), false),
                (Some(MaskedValue::from(&long[1..])), true),
            ] {
                db.setup(&["DELETE FROM seen"]).await;
                let mut bench = Bench::proc(&db, "put").param("a", IN, TEXT, None).param(
                    "n",
                    IN,
                    ParamType::Decimal,
                    Some("12345678901234567.1234567891"),
                );
                bench.task.params[0].value = value.clone();
                bench.ctx.sessions = sessions.clone();
                let ran = bench.run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
                sessions.settled().await;
                let text = value.as_ref().map_or("NULL", MaskedValue::expose);
                assert_eq!(db.value("SELECT COALESCE(a, 'NULL') FROM seen").await, text);
                let number = db.value("SELECT n FROM seen").await;
                assert_eq!(number, "12345678901234567.1234567891");
                if dialect == DialectName::Postgres {
                    let told = db.value("SELECT told FROM seen").await;
                    assert_eq!(told, if is_told { text } else { "" }, "{text}");
                }
            }
            sessions.clear().await;
        })
        .await;
    }
}

/// What PostgreSQL is asked together with the lock is what it is asked by itself; and the lock is a lock.
#[tokio::test]
async fn postgres_routines_are_found_with_the_lock() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE SCHEMA fin",
            "CREATE PROCEDURE bare () LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE fin.sp (a int, OUT b text, INOUT c numeric, d date DEFAULT now(), \
             e int DEFAULT 1) LANGUAGE plpgsql AS $$ BEGIN b := a; END $$",
            "CREATE PROCEDURE fin.sp (a text) LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION listed (a int, VARIADIC rest int[] DEFAULT '{}') \
             RETURNS TABLE (x int, y text) LANGUAGE sql AS 'SELECT 1, NULL'",
            "CREATE FUNCTION all_left_out (int DEFAULT 1, text DEFAULT 'x') RETURNS int \
             LANGUAGE sql AS 'SELECT 1'",
        ])
        .await;
        let (mut session, mut other) = (session(&db.url).await, session(&db.url).await);
        let facts = vec![("job_code", "月末'".to_owned())];
        session.introduce(facts, "202407:A", Vec::new());
        for (schema, name, shown) in [
            (None, "bare", "procedure public.bare()"),
            (
                Some("fin"),
                "sp",
                "procedure fin.sp(IN a integer, OUT b text, INOUT c numeric, IN d date DEFAULT, \
                 IN e integer DEFAULT); procedure fin.sp(IN a text)",
            ),
            (None, "sp", ""),
            (
                None,
                "listed",
                "function public.listed(IN a integer, VARIADIC rest integer[] DEFAULT)",
            ),
            (
                Some("public"),
                "all_left_out",
                "function public.all_left_out(IN  integer DEFAULT, IN  text DEFAULT)",
            ),
        ] {
            let lock = format!("procession:{name}");
            let (has_lock, found) =
                session.try_lock_and_look(&lock, schema, name).await.expect("asked");
            let found = found.expect("PostgreSQL tells");
            let said: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!((has_lock, said.join("; ").as_str()), (Lock::Gained, shown));
            assert_eq!(found, session.routines(schema, name).await.expect("asked"));
            let (has_lock, also) =
                other.try_lock_and_look(&lock, schema, name).await.expect("asked");
            assert_eq!((has_lock, also), (Lock::Taken, Some(found)), "{name}");
        }
        let told =
            "SELECT current_setting('procession.job_code'), current_setting('application_name')";
        let told = session.run_statement(told, &[]).await.expect("asked");
        assert_eq!(
            (told.sets[0].first(0), told.sets[0].first(1)),
            (Some("月末'"), Some("procession:202407:A"))
        );
        session.close().await;
        other.close().await;
    })
    .await;
}

/// Who may call a procedure but not see its text finds its parameters all the same.
#[tokio::test]
async fn mariadb_who_may_only_call_may_call() {
    with_scratch(DialectName::Mysql, |db| async move {
        let user = format!("u_{}", &db.name[db.name.len() - 12..]);
        db.setup(&[
            "CREATE TABLE t (a INT)",
            "CREATE PROCEDURE put (IN p_a INT, OUT p_b INT) BEGIN INSERT INTO t VALUES (p_a); \
             SET p_b = p_a + 1; END",
            &format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'x'"),
            &format!("GRANT EXECUTE ON `{}`.* TO '{user}'@'%'", db.name),
        ])
        .await;
        let url = db.url.replace("root@", &format!("{user}:x@"));
        let ran = Bench::proc(&db, "put")
            .param("p_b", OUT, ParamType::Int, None)
            .param("p_a", IN, ParamType::Int, Some("41"))
            .at(&url)
            .run()
            .await;
        db.setup(&[&format!("DROP USER '{user}'@'%'")]).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("p_b"), "42");
        assert_eq!(db.value("SELECT a FROM t").await, "41");
    })
    .await;
}
