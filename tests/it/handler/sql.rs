//! SQL on all three.

use crate::util::bench::Bench;
use crate::util::with_scratch;
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::job::{ParamMode, ParamType, TransactionMode};
use procession::domain::source::DialectName;

const IN: ParamMode = ParamMode::In;

#[tokio::test]
async fn transaction_modes_undo_what_they_promise() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT PRIMARY KEY)"]).await;
            let text =
                "INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2);\n\nINSERT INTO t VALUES (1)";
            for (mode, left) in [
                (TransactionMode::One, "0"),
                (TransactionMode::Each, "2"),
                (TransactionMode::None, "2"),
            ] {
                db.setup(&["DELETE FROM t"]).await;
                let mut bench = Bench::sql(&db, text);
                bench.task.job.transaction = mode;
                let ran = bench.run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Failed);
                assert!(
                    ran.message().starts_with("statement 3 (line 4): error "),
                    "{}",
                    ran.message()
                );
                assert!(
                    ran.text().contains("statement 2 (line 2): 1 row changed in "),
                    "{}",
                    ran.text()
                );
                // The log alone says what failed, and how.
                let lines = ["statement 3 (line 4) failed: error ", "    INSERT INTO t VALUES (1)"];
                for line in lines {
                    assert!(ran.text().contains(line), "{line}: {}", ran.text());
                }
                assert_eq!(db.value("SELECT COUNT(*) FROM t").await, left, "{dialect} {mode:?}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn transactions_that_the_text_handles_itself() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)"]).await;
            let bench = |text: &str, mode| {
                let mut bench = Bench::sql(&db, text);
                bench.task.job.transaction = mode;
                bench
            };
            let good = "BEGIN; INSERT INTO t VALUES (1); ROLLBACK; BEGIN; INSERT INTO t VALUES (2); COMMIT";
            let ran = bench(good, TransactionMode::None).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
            let ran = bench(good, TransactionMode::One).run().await;
            assert!(ran.message().contains("needs transaction: none"), "{}", ran.message());
            let open = "BEGIN; INSERT INTO t VALUES (3)";
            let ran = bench(open, TransactionMode::None).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{dialect}");
            assert!(ran.message().contains("left a transaction open"), "{}", ran.message());
            assert_eq!(db.value("SELECT MIN(a) * 10 + COUNT(*) FROM t").await, "21");
        })
        .await;
    }
}

#[tokio::test]
async fn parameters_are_bound_by_type() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (no VARCHAR(40), amount DECIMAL(20,2), d DATE, n BIGINT)"]).await;
            let text = "INSERT INTO t VALUES (:no, :amount, :day, :n);\n\
                        SELECT no AS got, amount, d, n FROM t WHERE no = :no AND amount < :limit AND n = :n \
                        AND d = :day AND ':no' <> :no AND :none IS NULL;";
            let ran = Bench::sql(&db, text)
                .param("no", IN, ParamType::Text, Some("O'Brien 月\\ 🧾"))
                .param("amount", IN, ParamType::Decimal, Some("1234.50"))
                .param("limit", IN, ParamType::Decimal, Some("1234.51"))
                .param("day", IN, ParamType::Date, Some("2024-07-31"))
                .param("n", IN, ParamType::Int, Some("9007199254740993"))
                .param("none", IN, ParamType::Int, None)
                .run()
                .await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect}: {}", ran.message());
            assert_eq!(ran.value("got"), "O'Brien 月\\ 🧾");
            assert_eq!(ran.value("n"), "9007199254740993");
            assert_eq!(ran.value("d"), "2024-07-31");
            let amount = if dialect == DialectName::Sqlite { "1234.5" } else { "1234.50" };
            assert_eq!(ran.value("amount"), amount);
            assert_eq!(ran.outcome.outputs.rows_affected, 1);
            let ran = Bench::sql(&db, "SELECT 1;\nSELECT :x").param("y", IN, ParamType::Text, None).run().await;
            assert_eq!(ran.message(), "statement 2 (line 2): :x is not among the job's parameters (y)");
        })
        .await;
    }
}

#[tokio::test]
async fn binary_rows_read_as_the_server_would_write_them() {
    with_scratch(DialectName::Mysql, |db| async move {
        let columns = "CAST(-5 AS SIGNED) AS i, CAST(18446744073709551615 AS UNSIGNED) AS u, 1.50 AS dec_, \
             CAST(1.5 AS DOUBLE) AS f, DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 10:11:12.000500' AS ts, \
             TIMESTAMP '2024-02-29 10:11:12' AS ts0, TIME '10:11:12' AS t, TRUE AS b, 'é月' AS s, x'00ff' AS bin, \
             NULL AS n, JSON_OBJECT('a', 1) AS j, _utf8mb4'bin月' COLLATE utf8mb4_bin AS sb, b'101' AS bit_";
        same_both_ways(&db, columns).await;
    })
    .await;
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE TYPE mood AS ENUM ('ok', '坏')", "CREATE DOMAIN amt AS numeric(10,3)"]).await;
        let columns = "-5::smallint AS i2, 5::int AS i4, 9007199254740993::bigint AS i8, 1.50::numeric AS n, \
             12300::numeric AS n0, 0.00010::numeric AS n1, -123456789.123456789::numeric AS n2, 'NaN'::numeric AS nan, \
             1.5::float8 AS f, date '2024-02-29' AS d, timestamp '2024-02-29 10:11:12.0005' AS ts, \
             timestamp '1999-12-31 23:59:59' AS ts0, time '10:11:12' AS t, 'é月'::text AS s, '坏'::mood AS e, \
             1.5::amt AS dom, '{\"a\": 1}'::jsonb AS j, gen_random_uuid() IS NULL AS no, \
             'infinity'::date AS inf, NULL::int AS nu, 'x'::char(3) AS c, 26::oid AS o, 'nm'::name AS nm";
        same_both_ways(&db, columns).await;
        let odd = "SELECT ARRAY[1,2] AS a, '1 day'::interval AS i, '\\x00ff'::bytea AS b, :p AS p";
        let ran = Bench::sql(&db, odd).param("p", IN, ParamType::Bool, Some("true")).run().await;
        assert_eq!((ran.value("a").as_str(), ran.value("i").as_str()), ("{1,2}", "1 day"));
        assert_eq!((ran.value("b").as_str(), ran.value("p").as_str()), ("0x00ff", "true"));
    })
    .await;
}

/// The same values by the text protocol and, because of the parameter, by the binary one.
async fn same_both_ways(db: &crate::util::Scratch, columns: &str) {
    let text = Bench::sql(db, &format!("SELECT {columns}")).run().await;
    let binary = Bench::sql(db, &format!("SELECT {columns} WHERE :p = 'x'"))
        .param("p", IN, ParamType::Text, Some("x"))
        .run()
        .await;
    assert_eq!(binary.outcome.end, AttemptEnd::Success, "{}", binary.message());
    let (text, binary) = (&text.outcome.outputs.results[0], &binary.outcome.outputs.results[0]);
    for (at, column) in text.columns.iter().enumerate() {
        assert_eq!(text.rows[0][at], binary.rows[0][at], "{column}");
    }
}

#[tokio::test]
async fn routines_of_each_dialect_can_be_created() {
    with_scratch(DialectName::Mysql, |db| async move {
        let text = "CREATE PROCEDURE a () BEGIN DECLARE lbl INT; l1:LOOP LEAVE l1; END LOOP; SELECT 1; END;\n\
                    DELIMITER //\nCREATE PROCEDURE b ()\nIF 1 THEN SELECT 2; END IF//\nDELIMITER ;\nCALL b();";
        let ran = Bench::sql(&db, text).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("2"), "2");
    })
    .await;
    with_scratch(DialectName::Sqlite, |db| async move {
        let text = "CREATE TABLE t (a); CREATE TABLE l (a);\nCREATE TRIGGER tr AFTER INSERT ON t BEGIN \
                    INSERT INTO l VALUES (CASE WHEN NEW.a THEN 1 END); END;\nINSERT INTO t VALUES (5);";
        let ran = Bench::sql(&db, text).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(db.value("SELECT a FROM l").await, "1");
        assert_eq!(ran.outcome.outputs.rows_affected, 1, "CREATE repeats no count");
    })
    .await;
}

#[tokio::test]
async fn copy_from_stdin_is_refused_before_it_hangs_the_connection() {
    with_scratch(DialectName::Postgres, |db| async move {
        let ran = Bench::sql(&db, "CREATE TABLE t (a int);\nCOPY t FROM STDIN;").run().await;
        assert!(
            ran.message().starts_with("statement 2 (line 2): COPY FROM STDIN"),
            "{}",
            ran.message()
        );
    })
    .await;
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_a_failure_that_may_be_retried() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let mut bench = Bench::sql(&db, "SELECT 1");
        let source = bench.task.source.as_mut().expect("a source");
        source.url = "mysql://u:secret@127.0.0.1:1/x".to_owned();
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(
            ran.message().contains("cannot connect to source 'ledger' at 127.0.0.1:1: "),
            "{}",
            ran.message()
        );
        assert!(!ran.message().contains("secret"));
        let mut bench = Bench::sql(&db, "SELECT 1");
        bench.task.source.as_mut().expect("a source").password_env =
            Some("PROCESSION_NOT_SET".to_owned());
        assert!(bench.run().await.message().contains("PROCESSION_NOT_SET, which is not set"));
    })
    .await;
}
