//! The uses that the other tests of the table leave out: literals, INOUT of MySQL, checks and NULL of each
//! type; and values of one MiB and of five through every use.

use super::handed_on::{literals, params_of, taken, with};
use super::table::{MYSQL, POSTGRES, POSTGRES_SETUP, SQLITE, TypedValue};
use super::uses::quoted;
use super::{TEXT, mysql_table};
use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, with_scratch};
use procession::domain::job::check::{CheckGrade, DataCheck, Expect, SuccessRule};
use procession::domain::job::outcome::{AttemptEnd, OutputValue};
use procession::domain::job::{ParamMode, ParamType, SqlText};
use procession::domain::params::BoundParam;
use procession::domain::source::DialectName;
use procession::domain::value::ValueType;
use procession::domain::value::expr::Expr;

fn list(values: &[TypedValue], write: impl Fn(usize, &TypedValue) -> String) -> String {
    let all: Vec<String> = values.iter().enumerate().map(|(at, value)| write(at, value)).collect();
    all.join(", ")
}

fn zero_rows(sql: String) -> DataCheck {
    DataCheck {
        name: "same".to_owned(),
        source: None,
        sql: SqlText::Same(sql),
        expect: Expect::ZeroRows,
        grade: CheckGrade::Error,
    }
}

fn assert_well(ran: &Ran, what: &str) {
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{what}: {}", ran.message());
}

/// What the definition says in the value's own text arrives as the value.
#[tokio::test]
async fn a_literal_of_each_type_is_the_value() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(POSTGRES_SETUP).await;
        let declared = list(POSTGRES, |at, value| format!("c{at} {}", value.ty));
        let other = list(POSTGRES, |at, value| {
            let same = format!("CAST(CAST({} AS {}) AS text)", value.sql, value.ty);
            format!("CASE WHEN CAST(c{at} AS text) = {same} THEN NULL ELSE '{at}' END")
        });
        db.setup(&[&format!(
            "CREATE PROCEDURE compare ({declared}, INOUT bad text) LANGUAGE plpgsql AS $$ BEGIN \
             bad := concat_ws(' ', {other}); END $$"
        )])
        .await;
        let bench = with(Bench::proc(&db, "compare"), &literals(POSTGRES));
        let ran = bench.param("bad", ParamMode::InOut, TEXT, None).run().await;
        assert_well(&ran, "IN");
        assert_eq!(ran.value("bad"), "", "places in the table of values that came otherwise");
        let other = list(POSTGRES, |at, value| {
            let same = format!("CAST(CAST({} AS {}) AS text)", value.sql, value.ty);
            format!(
                "CASE WHEN CAST(CAST(:c{at} AS {}) AS text) = {same} THEN NULL ELSE '{at}' END",
                value.ty
            )
        });
        let sql = format!("SELECT concat_ws(' ', {other}) AS bad");
        let ran = with(Bench::sql(&db, &sql), &literals(POSTGRES)).run().await;
        assert_eq!(ran.value("bad"), "", "in SQL: {}", ran.message());
    })
    .await;
    with_scratch(DialectName::Mysql, |db| async move {
        mysql_table(&db).await;
        let names = list(MYSQL, |at, _| format!(":c{at}"));
        let other = list(MYSQL, |at, _| format!("IF(u.c{at} <=> t.c{at}, NULL, '{at}')"));
        let script = format!(
            "SET sql_mode = ''; CREATE TABLE u LIKE t; INSERT INTO u VALUES ({names}); \
             SELECT CONCAT_WS(' ', {other}) AS bad FROM t, u"
        );
        let ran = with(Bench::sql(&db, &script), &literals(MYSQL)).run().await;
        assert_eq!(ran.value("bad"), "", "in SQL: {}", ran.message());
    })
    .await;
    with_scratch(DialectName::Sqlite, |db| async move {
        // No literal is an infinite number.
        let finite: Vec<usize> =
            (0..SQLITE.len()).filter(|at| SQLITE[*at].text != "Infinity").collect();
        let params: Vec<BoundParam> = literals(SQLITE);
        for at in finite {
            let sql = format!("SELECT :c{at} IS {} AS same", SQLITE[at].sql);
            let ran = with(Bench::sql(&db, &sql), &params[at..=at]).run().await;
            assert_eq!(ran.value("same"), "1", "{}: {}", SQLITE[at].sql, ran.message());
        }
    })
    .await;
}

#[tokio::test]
async fn mysql_inout_values_come_back_as_they_went() {
    with_scratch(DialectName::Mysql, |db| async move {
        let declared = list(MYSQL, |at, value| format!("INOUT c{at} {}", value.ty));
        let script = format!("SET sql_mode = ''; CREATE PROCEDURE back ({declared}) BEGIN END");
        assert_well(&Bench::sql(&db, &script).run().await, "create");
        let mut params = literals(MYSQL);
        // MySQL takes arguments by the settings of the session, which refuse a zero date; a POINT is bytes
        // that no client sends.
        let is_sent = |at: usize| MYSQL[at].text != "0000-00-00" && MYSQL[at].ty != "POINT";
        for (at, param) in params.iter_mut().enumerate() {
            param.mode = ParamMode::InOut;
            if !is_sent(at) {
                param.value = None;
            }
        }
        let ran = with(Bench::proc(&db, "back"), &params).run().await;
        assert_well(&ran, "INOUT");
        for (at, value) in MYSQL.iter().enumerate().filter(|(at, _)| is_sent(*at)) {
            assert_eq!(ran.value(&format!("c{at}")), value.text, "{} {}", value.ty, value.sql);
            let kind = ran.outcome.outputs.types.get(&format!("c{at}"));
            assert_eq!(kind, Some(&value.kind), "{} {}", value.ty, value.sql);
        }
    })
    .await;
}

/// A check is bound the values that came back in OUT parameters, of each type.
#[tokio::test]
async fn checks_of_postgres_see_the_value_of_each_type() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(POSTGRES_SETUP).await;
        let declared = list(POSTGRES, |at, value| format!("INOUT c{at} {}", value.ty));
        let sets: Vec<String> = POSTGRES
            .iter()
            .enumerate()
            .map(|(at, value)| format!("c{at} := CAST({} AS {});", value.sql, value.ty))
            .collect();
        db.setup(&[&format!(
            "CREATE PROCEDURE p ({declared}) LANGUAGE plpgsql AS $$ BEGIN {} END $$",
            sets.join(" ")
        )])
        .await;
        // A parameter of a procedure has no length, a cast has.
        let other = POSTGRES.iter().enumerate().filter(|(_, value)| !value.ty.contains('('));
        let other: Vec<String> = other
            .map(|(at, value)| {
                let cast = |what: &str| format!("CAST(CAST({what} AS {}) AS text)", value.ty);
                format!("{} IS DISTINCT FROM {}", cast(&format!(":c{at}")), cast(value.sql))
            })
            .collect();
        let mut bench = Bench::proc(&db, "p");
        bench.task.job.checks = vec![zero_rows(format!("SELECT 1 WHERE {}", other.join(" OR ")))];
        for at in 0..POSTGRES.len() {
            bench = bench.param(&format!("c{at}"), ParamMode::InOut, TEXT, None);
        }
        let ran = bench.run().await;
        assert_well(&ran, "check");
        assert!(ran.outcome.outputs.checks["same"].ok);
    })
    .await;
}

#[tokio::test]
async fn checks_of_mysql_see_the_value_of_each_type() {
    with_scratch(DialectName::Mysql, |db| async move {
        mysql_table(&db).await;
        let declared = list(MYSQL, |at, value| format!("OUT o{at} {}", value.ty));
        let names = |letter: char| list(MYSQL, |at, _| format!("{letter}{at}"));
        let script = format!(
            "SET sql_mode = ''; CREATE PROCEDURE p ({declared}) SELECT {} INTO {} FROM t",
            names('c'),
            names('o')
        );
        assert_well(&Bench::sql(&db, &script).run().await, "create");
        let other: Vec<String> = MYSQL
            .iter()
            .enumerate()
            .map(|(at, value)| match value.kind {
                ValueType::Bytes => {
                    format!("NOT (HEX(:o{at}) <=> '{}')", value.text[2..].to_uppercase())
                }
                _ => format!("NOT (BINARY :o{at} <=> BINARY {})", quoted(value.text)),
            })
            .collect();
        let mut bench = Bench::proc(&db, "p");
        bench.task.job.checks =
            vec![zero_rows(format!("SELECT 1 FROM t WHERE {}", other.join(" OR ")))];
        for at in 0..MYSQL.len() {
            bench = bench.param(&format!("o{at}"), ParamMode::Out, TEXT, None);
        }
        let ran = bench.run().await;
        assert_well(&ran, "check");
        assert!(ran.outcome.outputs.checks["same"].ok);
    })
    .await;
}

/// NULL of each type, as a column, an OUT value, a parameter of a later job, for a rule and as a list.
#[tokio::test]
async fn null_of_each_type_is_null_in_each_use() {
    for dialect in [DialectName::Postgres, DialectName::Mysql] {
        with_scratch(dialect, |db| async move {
            let (values, mode) = match dialect {
                DialectName::Postgres => (POSTGRES, "INOUT"),
                DialectName::Mysql | DialectName::Sqlite => (MYSQL, "OUT"),
            };
            if dialect == DialectName::Postgres {
                db.setup(POSTGRES_SETUP).await;
            }
            let columns = list(values, |at, value| format!("c{at} {} NULL", value.ty));
            db.setup(&[&format!("CREATE TABLE n ({columns})"), "INSERT INTO n (c0) VALUES (NULL)"])
                .await;
            let mut bench = Bench::sql(&db, "SELECT * FROM n");
            let rule = |at: usize| SuccessRule {
                rule: Expr::parse(&format!("result.c{at} is null")).expect("a rule"),
                grade: CheckGrade::Error,
                message: None,
            };
            bench.task.job.success = (0..values.len()).map(rule).collect();
            let columns = bench.run().await;
            assert_well(&columns, "columns");
            let declared = list(values, |at, value| format!("{mode} c{at} {}", value.ty));
            let body = match dialect {
                DialectName::Postgres => "LANGUAGE plpgsql AS $$ BEGIN END $$",
                DialectName::Mysql | DialectName::Sqlite => "BEGIN END",
            };
            db.setup(&[&format!("CREATE PROCEDURE p ({declared}) {body}")]).await;
            let mut bench = Bench::proc(&db, "p");
            let out = if mode == "OUT" { ParamMode::Out } else { ParamMode::InOut };
            for at in 0..values.len() {
                bench = bench.param(&format!("c{at}"), out, TEXT, None);
            }
            let called = bench.run().await;
            assert_well(&called, "OUT");
            for ran in [&columns, &called] {
                for (at, value) in values.iter().enumerate() {
                    let found = ran.outcome.outputs.output(&format!("c{at}"));
                    assert_eq!(found, Some(OutputValue::Null), "{dialect}: {}", value.ty);
                }
                let params = taken(ran, &params_of(values)).expect("NULL is taken");
                assert!(params.iter().all(|param| param.value.is_none()), "{dialect}");
            }
            assert_eq!(called.outcome.outputs.items("c0"), Ok(Vec::new()));
        })
        .await;
    }
}

/// An expression for a text of so many times four bytes.
fn repeated(dialect: DialectName, count: usize) -> String {
    match dialect {
        DialectName::Postgres => format!("repeat('月' || chr(1), {count})"),
        DialectName::Mysql => format!("REPEAT(CONCAT('月', CHAR(1 USING utf8mb4)), {count})"),
        DialectName::Sqlite => format!("replace(hex(zeroblob({count})), '00', '月' || char(1))"),
    }
}

#[tokio::test]
async fn a_mebibyte_and_five_are_whole_in_every_use() {
    for count in [262_144, 1_310_720] {
        for dialect in DialectName::ALL {
            with_scratch(dialect, |db| large_in_each_use(db, dialect, count)).await;
        }
    }
}

async fn large_in_each_use(db: std::sync::Arc<Scratch>, dialect: DialectName, count: usize) {
    let (sql, text) = (repeated(dialect, count), "月\u{1}".repeat(count));
    let is_whole = |found: &str, what: &str| {
        assert!(found == text, "{dialect} {what}: {} bytes of {}", found.len(), text.len());
    };
    let same = format!("SELECT CASE WHEN :v = {sql} THEN 'same' ELSE 'other' END AS found");
    let mut bench = Bench::sql(&db, &format!("SELECT {sql} AS v, {sql} AS w, 'x' AS y"));
    let rule = Expr::parse("result.v == result.w and result.v != result.y").expect("a rule");
    bench.task.job.success = vec![SuccessRule { rule, grade: CheckGrade::Error, message: None }];
    let earlier = bench.run().await;
    assert_well(&earlier, "column and rule");
    is_whole(&earlier.value("v"), "column");
    let items = earlier.outcome.outputs.items("v").expect("a list");
    is_whole(&items[0], "for_each");
    let upstream = taken(&earlier, &[("v".to_owned(), TEXT)]).expect("it is taken");
    let ran = with(Bench::sql(&db, &same), &upstream).run().await;
    assert_eq!(ran.value("found"), "same", "{dialect} IN from upstream");
    let ran = Bench::sql(&db, &same).param("v", ParamMode::In, TEXT, Some(&text)).run().await;
    assert_eq!(ran.value("found"), "same", "{dialect} IN literal");
    let (create, out) = match dialect {
        DialectName::Sqlite => return,
        DialectName::Postgres => (
            format!(
                "CREATE PROCEDURE p (INOUT v text, INOUT w text) LANGUAGE plpgsql AS $$ BEGIN \
                 w := v; v := {sql}; END $$"
            ),
            ParamMode::InOut,
        ),
        DialectName::Mysql => (
            format!("CREATE PROCEDURE p (OUT v LONGTEXT, INOUT w LONGTEXT) SET v = {sql}"),
            ParamMode::Out,
        ),
    };
    db.setup(&[&create]).await;
    let mut bench = Bench::proc(&db, "p");
    let from = if dialect == DialectName::Mysql { " FROM DUAL" } else { "" };
    bench.task.job.checks =
        vec![zero_rows(format!("SELECT 1{from} WHERE NOT (:v = {sql} AND :w = {sql})"))];
    let sent = (out == ParamMode::InOut).then_some(text.as_str());
    let ran = bench
        .param("v", out, TEXT, sent)
        .param("w", ParamMode::InOut, TEXT, Some(&text))
        .run()
        .await;
    assert_well(&ran, "OUT, INOUT and check");
    assert!(ran.outcome.outputs.checks["same"].ok, "{dialect}");
    is_whole(&ran.value("v"), "OUT");
    is_whole(&ran.value("w"), "INOUT");
    let empty = Bench::proc(&db, "p").param(
        "v",
        out,
        ParamType::Text,
        Some("").filter(|_| out == ParamMode::InOut),
    );
    let ran = empty.param("w", ParamMode::InOut, TEXT, Some("")).run().await;
    // On PostgreSQL it takes what went in by the other.
    assert_eq!(ran.value("w"), "", "{dialect}: {}", ran.message());
}

/// What Linux puts into one variable is whole; more is refused by name before anything is started.
#[tokio::test]
async fn a_script_refuses_a_parameter_that_no_variable_holds() {
    let most = 128 * 1024 - "PROCESSION_PARAM_P=".len() - 1;
    let script = "echo \"::output length=${#PROCESSION_PARAM_P}\"";
    let run = async |length: usize| {
        let text = "x".repeat(length);
        Bench::script(script).param("p", ParamMode::In, TEXT, Some(&text)).run().await
    };
    let ran = run(most).await;
    assert_eq!(ran.value("length"), most.to_string(), "{}", ran.message());
    let ran = run(most + 1).await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    let said = format!("PROCESSION_PARAM_P has {} bytes", most + 1);
    assert!(ran.message().contains(&said), "{}", ran.message());
}
