//! Values of each type of each server on each way that they take, against one table, from which
//! docs/values.md is written as well.

mod handed_on;
mod matrix;
pub(crate) mod page;
pub(crate) mod table;
mod uses;

use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, with_scratch};
use procession::domain::job::outcome::{AttemptEnd, OutputValue, Retry};
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;
use procession::domain::value::ValueType;
use table::{MYSQL, POSTGRES, POSTGRES_NOT_CARRIED, POSTGRES_SETUP, SQLITE, TypedValue};

const TEXT: ParamType = ParamType::Text;

/// Settings of a body that change how PostgreSQL writes values.
const SETTINGS: &str = "SET DateStyle = 'German'; SET IntervalStyle = 'sql_standard'; \
    SET TimeZone = 'Asia/Kolkata'; SET bytea_output = 'escape'; SET extra_float_digits = 0";

/// The values of the last result set against the table.
fn check_row(ran: &Ran, values: &[TypedValue], way: &str) {
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{way}: {}", ran.message());
    let set = ran.outcome.outputs.results.last().expect("a result set");
    assert!(set.unusable.is_empty(), "{way}: {:?}", set.unusable);
    for (at, value) in values.iter().enumerate() {
        let found = set.rows[0][at].as_deref();
        assert_eq!(
            found,
            Some(value.text),
            "{way}: {} {} ({})",
            value.ty,
            value.sql,
            set.types[at]
        );
        // JSON of MariaDB is a text.
        let is_a_text = value.kind == ValueType::Json && set.types[at].ends_with("TEXT");
        let kind = if is_a_text { ValueType::Text } else { value.kind };
        assert_eq!(set.value_types[at], Some(kind), "{way}: {} ({})", value.ty, set.types[at]);
    }
}

/// A query of all values, without a bound parameter and with one.
async fn check_both_ways(db: &Scratch, values: &[TypedValue], columns: &str, before: &str) {
    let plain = format!("{before}SELECT {columns}");
    check_row(&Bench::sql(db, &plain).run().await, values, "without a parameter");
    let bound = Bench::sql(db, &format!("{plain} WHERE :p = 'x'"));
    check_row(
        &bound.param("p", ParamMode::In, TEXT, Some("x")).run().await,
        values,
        "with a parameter",
    );
}

#[tokio::test]
async fn postgres_values_have_one_text_whatever_a_body_sets() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(POSTGRES_SETUP).await;
        let column = |(at, value): (usize, &TypedValue)| {
            format!("CAST({} AS {}) AS c{at}", value.sql, value.ty)
        };
        let columns = POSTGRES.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
        check_both_ways(&db, POSTGRES, &columns, "").await;
        check_both_ways(&db, POSTGRES, &columns, &format!("{SETTINGS}; ")).await;
        let server =
            |value: &TypedValue| format!("CAST(CAST({} AS {}) AS text)", value.sql, value.ty);
        let texts = POSTGRES.iter().map(server).collect::<Vec<_>>().join(", ");
        let own = Bench::sql(&db, &format!("SET TimeZone = 'UTC'; SELECT {texts}")).run().await;
        for (value, text) in POSTGRES.iter().zip(&own.outcome.outputs.results[0].rows[0]) {
            let expected = value.server.unwrap_or(value.text);
            assert_eq!(text.as_deref(), Some(expected), "{} {}", value.ty, value.sql);
        }
    })
    .await;
}

#[tokio::test]
async fn postgres_in_out_values_have_the_same_text() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(POSTGRES_SETUP).await;
        let list = |mode: &str, values: &[TypedValue]| {
            let one = |(at, value): (usize, &TypedValue)| format!("{mode} c{at} {}", value.ty);
            values.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
        };
        let set = |(at, value): (usize, &TypedValue)| {
            format!("c{at} := CAST({} AS {});", value.sql, value.ty)
        };
        let sets = POSTGRES.iter().enumerate().map(set).collect::<Vec<_>>().join(" ");
        // A parameter's type has no length: char(3) is that of a column alone.
        let has_length = |value: &TypedValue| value.ty.contains('(');
        for (name, kind, modes) in [
            ("pout", "PROCEDURE", "OUT"),
            ("pinout", "PROCEDURE", "INOUT"),
            ("fout", "FUNCTION", "OUT"),
        ] {
            let params = list(modes, POSTGRES);
            let body = format!(
                "CREATE {kind} {name} ({params}) LANGUAGE plpgsql AS $$ BEGIN {sets} END $$"
            );
            db.setup(&[&body]).await;
        }
        let back = format!(
            "CREATE PROCEDURE back ({}) LANGUAGE plpgsql AS $$ BEGIN END $$",
            list("INOUT", POSTGRES)
        );
        db.setup(&[&back]).await;
        for (name, mode) in [
            ("pout", ParamMode::Out),
            ("pinout", ParamMode::InOut),
            ("fout", ParamMode::Out),
            ("back", ParamMode::InOut),
        ] {
            let mut bench = Bench::proc(&db, name);
            for (at, value) in POSTGRES.iter().enumerate() {
                // What came is sent back as text; bytes would be their letters.
                let sent = (name == "back" && value.ty != "bytea").then_some(value.text);
                bench = bench.param(&format!("c{at}"), mode, TEXT, sent);
            }
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{name}: {}", ran.message());
            for (at, value) in POSTGRES.iter().enumerate() {
                if name == "back" && (value.ty == "bytea" || has_length(value)) {
                    continue;
                }
                let found = ran.value(&format!("c{at}"));
                assert_eq!(found, value.text, "{name}: {} {}", value.ty, value.sql);
                let kind = ran.outcome.outputs.types.get(&format!("c{at}"));
                assert_eq!(kind, Some(&value.kind), "{name}: {}", value.ty);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn postgres_values_that_are_not_carried_are_errors_that_name_them() {
    with_scratch(DialectName::Postgres, |db| async move {
        for (ty, sql, reason) in POSTGRES_NOT_CARRIED {
            for condition in ["", " WHERE :p = 'x'"] {
                let text = format!("SELECT {sql} AS v, 7 AS n{condition}");
                let ran =
                    Bench::sql(&db, &text).param("p", ParamMode::In, TEXT, Some("x")).run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{ty}: nobody asked for it");
                let Some(OutputValue::Unusable(why)) = ran.outcome.outputs.output("v") else {
                    panic!("{ty}: {:?}", ran.outcome.outputs)
                };
                let what = format!("column v ({ty}) {reason}").to_lowercase();
                assert!(why.to_lowercase().starts_with(&what), "{why}");
                assert_eq!(ran.value("n"), "7");
                let shown = ran.outcome.outputs.results[0].rows[0][0].clone().unwrap_or_default();
                assert!(shown.starts_with('<') && !shown.contains("cast"), "{shown}");
            }
            // A CALL reads the rows of the cursor: see handler::cursors.
            if *ty == "refcursor" {
                continue;
            }
            let body = format!(
                "CREATE PROCEDURE p (INOUT v {ty}) LANGUAGE plpgsql AS $$ BEGIN v := {sql}; END $$"
            );
            db.setup(&["DROP PROCEDURE IF EXISTS p", &body]).await;
            let ran = Bench::proc(&db, "p").param("v", ParamMode::InOut, TEXT, None).run().await;
            assert_eq!(
                (ran.outcome.end, ran.outcome.retry),
                (AttemptEnd::Failed, Retry::Never),
                "{ty}"
            );
            let said = ran.outcome.message.as_deref().unwrap_or_default();
            assert!(said.contains(&format!("OUT parameter v ({ty}) {reason}")), "{said}");
            assert!(ran.outcome.outputs.values.is_empty(), "{ty}");
        }
    })
    .await;
}

#[tokio::test]
async fn postgres_types_that_the_driver_does_not_know_do_not_lose_the_session() {
    with_scratch(DialectName::Postgres, |db| async move {
        let version = db.value("SELECT current_setting('server_version_num')").await;
        if version.as_str() < "140000" {
            return;
        }
        let text = "SELECT '{[1,3)}'::int4multirange AS v, 7 AS n";
        let ran = Bench::sql(&db, &format!("{text}; SELECT 8 AS m")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let set = &ran.outcome.outputs.results[0];
        assert!(set.unusable[0].reason.contains("settings decide"), "{set:?}");
        assert_eq!((set.rows[0][1].as_deref(), ran.value("m").as_str()), (Some("7"), "8"));
        let bound = Bench::sql(&db, &format!("{text} WHERE :p = 'x'"));
        let ran = bound.param("p", ParamMode::In, TEXT, Some("x")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{:?}", ran.outcome);
        assert!(ran.message().contains("cast it to text"), "{}", ran.message());
    })
    .await;
}

/// A table with a column for each type and one row.
async fn mysql_table(db: &Scratch) {
    let column = |(at, value): (usize, &TypedValue)| format!("c{at} {} NULL", value.ty);
    let columns = MYSQL.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
    let literals = MYSQL.iter().map(|value| value.sql).collect::<Vec<_>>().join(", ");
    let script =
        format!("CREATE TABLE t ({columns}); SET sql_mode = ''; INSERT INTO t VALUES ({literals})");
    let ran = Bench::sql(db, &script).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
}

#[tokio::test]
async fn mysql_values_have_one_text() {
    with_scratch(DialectName::Mysql, |db| async move {
        mysql_table(&db).await;
        let ran = Bench::sql(&db, "SELECT * FROM t").run().await;
        check_row(&ran, MYSQL, "without a parameter");
        let bound = Bench::sql(&db, "SELECT * FROM t WHERE :p = 'x'");
        let ran = bound.param("p", ParamMode::In, TEXT, Some("x")).run().await;
        check_row(&ran, MYSQL, "with a parameter");
        let server = |(at, value): (usize, &TypedValue)| match value.text.starts_with("0x") {
            true => format!("CONCAT('0x', LOWER(HEX(c{at})))"),
            false => format!("CAST(c{at} AS CHAR)"),
        };
        let texts = MYSQL.iter().enumerate().map(server).collect::<Vec<_>>().join(", ");
        let own = Bench::sql(&db, &format!("SELECT {texts} FROM t")).run().await;
        for (value, text) in MYSQL.iter().zip(&own.outcome.outputs.results[0].rows[0]) {
            // Of bytes, and of a text like them, the digits.
            let is_bytes = value.text.starts_with("0x");
            if !is_bytes {
                let expected = value.server.unwrap_or(value.text);
                assert_eq!(text.as_deref(), Some(expected), "{} {}", value.ty, value.sql);
            } else if value.server.is_some() {
                assert_eq!(text.as_deref(), Some(value.text), "{} {}", value.ty, value.sql);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn mysql_out_values_have_the_same_text() {
    with_scratch(DialectName::Mysql, |db| async move {
        mysql_table(&db).await;
        let param = |(at, value): (usize, &TypedValue)| format!("OUT o{at} {}", value.ty);
        let params = MYSQL.iter().enumerate().map(param).collect::<Vec<_>>().join(", ");
        let names = |letter: char| {
            let name = |at: usize| format!("{letter}{at}");
            (0..MYSQL.len()).map(name).collect::<Vec<_>>().join(", ")
        };
        let script = format!(
            "SET sql_mode = ''; CREATE PROCEDURE p ({params}) SELECT {} INTO {} FROM t",
            names('c'),
            names('o')
        );
        let ran = Bench::sql(&db, &script).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let mut bench = Bench::proc(&db, "p");
        for at in 0..MYSQL.len() {
            bench = bench.param(&format!("o{at}"), ParamMode::Out, TEXT, None);
        }
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        for (at, value) in MYSQL.iter().enumerate() {
            assert_eq!(ran.value(&format!("o{at}")), value.text, "{} {}", value.ty, value.sql);
            let kind = ran.outcome.outputs.types.get(&format!("o{at}"));
            assert_eq!(kind, Some(&value.kind), "{} {}", value.ty, value.sql);
        }
    })
    .await;
}

#[tokio::test]
async fn mysql_float_is_not_carried_because_the_server_writes_six_digits() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE f (v FLOAT)", "INSERT INTO f VALUES (16777215)"]).await;
        for condition in ["", " WHERE :p = 'x'"] {
            let text = format!("SELECT v, v + 0e0 AS whole FROM f{condition}");
            let ran = Bench::sql(&db, &text).param("p", ParamMode::In, TEXT, Some("x")).run().await;
            let Some(OutputValue::Unusable(why)) = ran.outcome.outputs.output("v") else {
                panic!("{:?}", ran.outcome.outputs)
            };
            assert!(why.starts_with("column v (FLOAT) has more digits"), "{why}");
            assert_eq!(ran.value("whole"), "16777215");
        }
    })
    .await;
}

#[tokio::test]
async fn sqlite_values_have_one_text() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let column = |(at, value): (usize, &TypedValue)| format!("{} AS c{at}", value.sql);
        let columns = SQLITE.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
        check_both_ways(&db, SQLITE, &columns, "").await;
        let types = SQLITE.iter().map(|value| format!("typeof({})", value.sql));
        let types = types.collect::<Vec<_>>().join(", ");
        let ran = Bench::sql(&db, &format!("SELECT {types}")).run().await;
        for (value, ty) in SQLITE.iter().zip(&ran.outcome.outputs.results[0].rows[0]) {
            assert_eq!(ty.as_deref().map(str::to_uppercase).as_deref(), Some(value.ty));
        }
        let mixed = "SELECT 'x' AS v UNION ALL SELECT x'78'";
        let ran = Bench::sql(&db, mixed).run().await;
        let said = ran.outcome.outputs.items("v").expect_err("two that look the same");
        assert!(said.contains("bytes as well as other values"), "{said}");
        let ran = Bench::sql(&db, "SELECT CAST(x'ff' AS TEXT) AS v").run().await;
        let Some(OutputValue::Unusable(why)) = ran.outcome.outputs.output("v") else {
            panic!("{:?}", ran.outcome.outputs)
        };
        assert!(why.contains("is not UTF-8"), "{why}");
    })
    .await;
}

#[tokio::test]
async fn null_is_null_on_every_way() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            for condition in ["", " WHERE :p = 'x'"] {
                let text = format!("SELECT NULL AS v, '' AS blank{condition}");
                let ran =
                    Bench::sql(&db, &text).param("p", ParamMode::In, TEXT, Some("x")).run().await;
                assert_eq!(ran.outcome.outputs.output("v"), Some(OutputValue::Null), "{dialect}");
                assert_eq!(ran.value("blank"), "", "{dialect}");
            }
        })
        .await;
    }
}
