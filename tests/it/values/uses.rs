//! What looks at values: success rules, checks and lists for `for_each`.

use super::table::{MYSQL, POSTGRES, POSTGRES_SETUP, SQLITE, TypedValue};
use super::{TEXT, mysql_table};
use crate::util::bench::Bench;
use crate::util::{Scratch, with_scratch};
use procession::domain::job::check::{CheckGrade, DataCheck, Expect, SuccessRule};
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::job::{ParamMode, ParamType, SqlText};
use procession::domain::source::DialectName;
use procession::domain::value::expr::Expr;

/// A table `t` with the values of the server in columns c0, c1 and so on.
async fn with_values(db: &Scratch) -> &'static [TypedValue] {
    let (values, setup): (&[TypedValue], &[&str]) = match db.dialect {
        DialectName::Postgres => (POSTGRES, POSTGRES_SETUP),
        DialectName::Sqlite => (SQLITE, &[]),
        DialectName::Mysql => {
            mysql_table(db).await;
            return MYSQL;
        }
    };
    db.setup(setup).await;
    let column = |(at, value): (usize, &TypedValue)| match db.dialect {
        DialectName::Postgres => format!("CAST({} AS {}) AS c{at}", value.sql, value.ty),
        _ => format!("{} AS c{at}", value.sql),
    };
    let columns = values.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
    db.setup(&[&format!("CREATE TABLE t AS SELECT {columns}")]).await;
    values
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[tokio::test]
async fn rules_lists_and_checks_see_the_text_of_the_table() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let values = with_values(&db).await;
            for condition in ["", " WHERE :p = 'x'"] {
                let rule = |(at, value): (usize, &TypedValue)| {
                    let rule = format!(
                        "result.c{at} is not null and result.c{at} == {}",
                        quoted(value.text)
                    );
                    let rule = Expr::parse(&rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
                    SuccessRule { rule, grade: CheckGrade::Error, message: None }
                };
                let mut bench = Bench::sql(&db, &format!("SELECT * FROM t{condition}"));
                bench.task.job.success = values.iter().enumerate().map(rule).collect();
                let ran = bench.param("p", ParamMode::In, TEXT, Some("x")).run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect}: {}", ran.message());
                assert_eq!(ran.outcome.outputs.rules.len(), values.len(), "{dialect}");
            }
            let twice = "INSERT INTO t SELECT * FROM t";
            let twice = match dialect {
                DialectName::Mysql => format!("SET sql_mode = ''; {twice}"),
                DialectName::Postgres | DialectName::Sqlite => twice.to_owned(),
            };
            assert_eq!(
                Bench::sql(&db, &twice).run().await.outcome.end,
                AttemptEnd::Success,
                "{dialect}"
            );
            for (at, value) in values.iter().enumerate() {
                let ran = Bench::sql(&db, &format!("SELECT c{at} AS item FROM t")).run().await;
                let items = ran.outcome.outputs.items("item");
                // No job can be named after an empty text: it is refused, and never left out in silence.
                let empty = "row 1 of item is empty, and no job can be made of it; leave it out of the list \
                             (WHERE item <> ''), or give it a name";
                let expected = match value.text {
                    "" => Err(empty.to_owned()),
                    text => Ok(vec![text.to_owned(); 2]),
                };
                assert_eq!(items, expected, "{dialect}: {} {}", value.ty, value.sql);
            }
        })
        .await;
    }
}

/// A check gets the value of an OUT parameter, bytes as bytes.
#[tokio::test]
async fn checks_take_what_came_back() {
    for (dialect, create, sql) in [
        (
            DialectName::Postgres,
            "CREATE PROCEDURE p (INOUT b bytea, INOUT n numeric) LANGUAGE plpgsql AS $$ BEGIN \
             b := '\\x00ff'; n := 12.50; END $$",
            "SELECT 1 WHERE :b <> '\\x00ff'::bytea OR :n <> 12.5",
        ),
        (
            DialectName::Mysql,
            "CREATE PROCEDURE p (INOUT b BLOB, INOUT n DECIMAL(9,2)) BEGIN SET b = x'00ff'; SET n = 12.5; END",
            "SELECT 1 FROM DUAL WHERE :b <> x'00ff' OR :n <> 12.5",
        ),
    ] {
        with_scratch(dialect, |db| async move {
            db.setup(&[create]).await;
            let mut bench = Bench::proc(&db, "p");
            bench.task.job.checks = vec![DataCheck {
                name: "same".to_owned(),
                source: None,
                sql: SqlText::Same(sql.to_owned()),
                expect: Expect::ZeroRows,
                grade: CheckGrade::Error,
            }];
            let ran = bench
                .param("b", ParamMode::InOut, ParamType::Text, None)
                .param("n", ParamMode::InOut, ParamType::Decimal, None)
                .run()
                .await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect}: {}", ran.message());
            assert!(ran.outcome.outputs.checks["same"].ok, "{dialect}");
        })
        .await;
    }
}

#[tokio::test]
async fn values_of_a_mebibyte_are_whole() {
    let most = 1_048_576;
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let half = most / 4;
            let text = match dialect {
                DialectName::Postgres => format!("repeat('月\u{1}', {half})"),
                DialectName::Mysql => format!("REPEAT('月\u{1}', {half})"),
                DialectName::Sqlite => format!("replace(hex(zeroblob({half})), '00', '月\u{1}')"),
            };
            for condition in ["", " WHERE :p = 'x'"] {
                let sql = format!("SELECT {text} AS v{condition}");
                let ran =
                    Bench::sql(&db, &sql).param("p", ParamMode::In, TEXT, Some("x")).run().await;
                assert_eq!(ran.value("v"), "月\u{1}".repeat(half), "{dialect}");
            }
        })
        .await;
    }
}
