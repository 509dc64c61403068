//! A parameter of a later job gets exactly the value that an earlier one returned.

use super::table::{MYSQL, POSTGRES, POSTGRES_SETUP, SQLITE, TypedValue};
use super::{check_row, mysql_table};
use crate::util::bench::{Bench, Ran};
use crate::util::with_scratch;
use procession::domain::calendar::WorkingDays;
use procession::domain::id::JobCode;
use procession::domain::job::outcome::{AttemptEnd, OutputValue};
use procession::domain::job::{Param, ParamMode, ParamType};
use procession::domain::params::{BoundParam, Layers, ParamSources, resolve};
use procession::domain::source::DialectName;
use procession::domain::value::ValueType;

/// Parameters whose values are the outputs of that name of an earlier job.
pub(super) fn taken(
    earlier: &Ran,
    params: &[(String, ParamType)],
) -> Result<Vec<BoundParam>, String> {
    let bench = Bench::new("SQL");
    let mut job = bench.task.job.clone();
    let param = |(name, ty): &(String, ParamType)| {
        let value = Some(format!("${{jobs.EARLIER.{name}}}"));
        Param { name: name.clone(), ty: *ty, value, ..Param::default() }
    };
    job.params = params.iter().map(param).collect();
    let parents = [JobCode::parse("EARLIER").expect("a code")];
    let layers = Layers {
        start: None,
        batch: &bench.task.batch,
        parents: &parents,
        group: &[],
        global: &[],
        days: WorkingDays::NONE,
    };
    let output = |_: &JobCode, name: &str| earlier.outcome.outputs.output(name);
    let outside = ParamSources { output: &output, secret: Some(&|_| None) };
    resolve(&job, layers, outside).map_err(|error| error.to_string())
}

pub(super) fn with(mut bench: Bench, params: &[BoundParam]) -> Bench {
    bench.task.params.extend_from_slice(params);
    bench
}

/// The type of a parameter for a value of that type.
fn param_type(value: &TypedValue) -> ParamType {
    let name = value.ty.split('(').next().unwrap_or_default();
    match name {
        "boolean" => ParamType::Bool,
        "bytea" | "BINARY" | "VARBINARY" | "BLOB" | "POINT" => ParamType::Bytes,
        "BIT" | "INTEGER" => ParamType::Int,
        "REAL" => ParamType::Decimal,
        _ => ParamType::Text,
    }
}

/// Parameters whose values the definition gives, in the text of the table.
pub(super) fn literals(values: &[TypedValue]) -> Vec<BoundParam> {
    let params = values.iter().zip(params_of(values)).map(|(value, (name, ty))| Param {
        name,
        ty,
        // No definition can say that number.
        value: (value.text != "Infinity").then(|| value.text.to_owned()),
        ..Param::default()
    });
    let bench = Bench::new("SQL");
    let mut job = bench.task.job.clone();
    job.params = params.collect();
    let layers = Layers {
        start: None,
        batch: &bench.task.batch,
        parents: &[],
        group: &[],
        global: &[],
        days: WorkingDays::NONE,
    };
    let outside = ParamSources { output: &|_, _| None, secret: Some(&|_| None) };
    resolve(&job, layers, outside).expect("literals")
}

pub(super) fn params_of(values: &[TypedValue]) -> Vec<(String, ParamType)> {
    let one = |(at, value): (usize, &TypedValue)| (format!("c{at}"), param_type(value));
    values.iter().enumerate().map(one).collect()
}

#[tokio::test]
async fn postgres_hands_values_on_unchanged() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(POSTGRES_SETUP).await;
        let list = |write: &dyn Fn(usize, &TypedValue) -> String| {
            let all: Vec<String> =
                POSTGRES.iter().enumerate().map(|(at, value)| write(at, value)).collect();
            all.join(", ")
        };
        let columns = list(&|at, value| format!("CAST({} AS {}) AS c{at}", value.sql, value.ty));
        let earlier = Bench::sql(&db, &format!("SELECT {columns}")).run().await;
        let params = taken(&earlier, &params_of(POSTGRES)).expect("all are taken");
        let back = list(&|at, value| format!("CAST(:c{at} AS {}) AS c{at}", value.ty));
        let ran = with(Bench::sql(&db, &format!("SELECT {back}")), &params).run().await;
        check_row(&ran, POSTGRES, "bound in SQL");
        let declared = list(&|at, value| format!("c{at} {}", value.ty));
        let other = list(&|at, value| {
            let same = format!("CAST(CAST({} AS {}) AS text)", value.sql, value.ty);
            format!("CASE WHEN CAST(c{at} AS text) = {same} THEN NULL ELSE '{at}' END")
        });
        db.setup(&[&format!(
            "CREATE PROCEDURE compare ({declared}, INOUT bad text) LANGUAGE plpgsql AS $$ BEGIN \
             bad := concat_ws(' ', {other}); END $$"
        )])
        .await;
        let bench = with(Bench::proc(&db, "compare"), &params);
        let ran = bench.param("bad", ParamMode::InOut, ParamType::Text, None).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("bad"), "", "places in the table of values that came otherwise");
    })
    .await;
}

#[tokio::test]
async fn mysql_hands_values_on_unchanged() {
    with_scratch(DialectName::Mysql, |db| async move {
        mysql_table(&db).await;
        let earlier = Bench::sql(&db, "SELECT * FROM t").run().await;
        let params = taken(&earlier, &params_of(MYSQL)).expect("all are taken");
        let mut given = params.clone();
        given.iter_mut().for_each(|param| param.name = param.name.replace('c', "i"));
        let declared = |(at, value): (usize, &TypedValue)| format!("IN i{at} {}", value.ty);
        let declared = MYSQL.iter().enumerate().map(declared).collect::<Vec<_>>().join(", ");
        // MySQL takes arguments by the settings of the session, which refuse a zero date.
        let is_zero_date = |at: usize| MYSQL[at].text == "0000-00-00";
        given.iter_mut().enumerate().filter(|(at, _)| is_zero_date(*at)).for_each(|(_, param)| {
            param.value = None;
        });
        let other = |at: usize| match is_zero_date(at) {
            true => "NULL".to_owned(),
            false => format!("IF(i{at} <=> c{at}, NULL, '{at}')"),
        };
        let other = (0..MYSQL.len()).map(other).collect::<Vec<_>>().join(", ");
        let script = format!(
            "SET sql_mode = ''; CREATE PROCEDURE compare ({declared}, OUT bad TEXT) \
             SELECT CONCAT_WS(' ', {other}) INTO bad FROM t"
        );
        let ran = Bench::sql(&db, &script).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let bench = with(Bench::proc(&db, "compare"), &given);
        let ran = bench.param("bad", ParamMode::Out, ParamType::Text, None).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.value("bad"), "", "places in the table of values that came otherwise");
        let names = (0..MYSQL.len()).map(|at| format!(":c{at}")).collect::<Vec<_>>().join(", ");
        let script = format!(
            "SET sql_mode = ''; CREATE TABLE u LIKE t; INSERT INTO u VALUES ({names}); SELECT * FROM u"
        );
        let ran = with(Bench::sql(&db, &script), &params).run().await;
        check_row(&ran, MYSQL, "bound in SQL");
    })
    .await;
}

#[tokio::test]
async fn sqlite_hands_values_on_unchanged() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let column = |(at, value): (usize, &TypedValue)| format!("{} AS c{at}", value.sql);
        let columns = SQLITE.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
        let earlier = Bench::sql(&db, &format!("SELECT {columns}")).run().await;
        for (at, value) in SQLITE.iter().enumerate().filter(|(_, value)| value.text != "Infinity") {
            let params = [(format!("c{at}"), param_type(value))];
            let params = taken(&earlier, &params).expect("it is taken");
            let same = format!(
                "SELECT (:c{at} IS {0}) + (typeof(:c{at}) = typeof({0})) AS same",
                value.sql
            );
            let ran = with(Bench::sql(&db, &same), &params).run().await;
            assert_eq!(ran.value("same"), "2", "{} {}", value.ty, value.sql);
        }
    })
    .await;
}

#[tokio::test]
async fn null_and_truth_go_from_each_server_to_each() {
    for from in DialectName::ALL {
        let text = "SELECT 1 = 1 AS fits, 1 = 0 AS fails, NULL AS absent";
        let (send, receive) = tokio::sync::oneshot::channel();
        with_scratch(from, |db| async move {
            let _sent = send.send(Bench::sql(&db, text).run().await);
        })
        .await;
        let earlier = receive.await.expect("it ran");
        let wanted = ["fits", "fails", "absent"].map(|name| (name.to_owned(), ParamType::Bool));
        let params = taken(&earlier, &wanted).expect("truth values");
        for to in DialectName::ALL {
            let params = params.clone();
            with_scratch(to, |db| async move {
                let text =
                    "SELECT CASE WHEN :fits AND NOT :fails AND :absent IS NULL THEN 'same' END AS v";
                let ran = with(Bench::sql(&db, text), &params).run().await;
                assert_eq!(ran.value("v"), "same", "{from} to {to}");
            })
            .await;
        }
    }
}

#[tokio::test]
async fn bytes_are_taken_by_parameters_of_their_type_alone() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let bytes = if dialect == DialectName::Postgres { "'\\x00ff'::bytea" } else { "x'00ff'" };
            let earlier = Bench::sql(&db, &format!("SELECT {bytes} AS b, 'text' AS t")).run().await;
            let found = earlier.outcome.outputs.output("b");
            let typed = OutputValue::Typed(ValueType::Bytes, "0x00ff".to_owned());
            assert_eq!(found, Some(typed), "{dialect}");
            let said = taken(&earlier, &[("b".to_owned(), ParamType::Text)]).expect_err("text");
            assert_eq!(
                said,
                "job GL, parameter b (type text): ${jobs.EARLIER.b} cannot be handed on: it is bytes; \
                 declare the parameter type: bytes"
            );
            let said = taken(&earlier, &[("t".to_owned(), ParamType::Bytes)]).expect_err("bytes");
            assert!(said.contains("it is of type text"), "{said}");
            // In a definition both forms may stand.
            for literal in ["0x00FF", "base64:AP8="] {
                let text = match dialect {
                    DialectName::Postgres => "SELECT encode(:b, 'hex') AS v",
                    DialectName::Mysql | DialectName::Sqlite => "SELECT lower(hex(:b)) AS v",
                };
                let bench = Bench::sql(&db, text);
                let ran = bench.param("b", ParamMode::In, ParamType::Bytes, Some(literal)).run().await;
                assert_eq!(ran.value("v"), "00ff", "{dialect} {literal}");
            }
        })
        .await;
    }
}

/// Extremes of PostgreSQL with the type of a parameter that takes them, and their text.
const POSTGRES_EXTREMES: &[(&str, ParamType, &str)] = &[
    ("'NaN'::float8", ParamType::Decimal, "NaN"),
    ("'Infinity'::float8", ParamType::Decimal, "Infinity"),
    ("'-Infinity'::float8", ParamType::Decimal, "-Infinity"),
    ("'infinity'::date", ParamType::Date, "infinity"),
    ("'0044-03-15 BC'::date", ParamType::Date, "0044-03-15 BC"),
    ("'5874897-12-31'::date", ParamType::Date, "5874897-12-31"),
    ("'-infinity'::timestamp", ParamType::Datetime, "-infinity"),
    ("'0001-01-01 00:00:00 BC'::timestamp", ParamType::Datetime, "0001-01-01 00:00:00 BC"),
    (
        "'294276-12-31 23:59:59.999999'::timestamp",
        ParamType::Datetime,
        "294276-12-31 23:59:59.999999",
    ),
    ("18446744073709551615::numeric", ParamType::Int, "18446744073709551615"),
];

fn typed_params() -> Vec<(String, ParamType)> {
    let one = |(at, (_, ty, _)): (usize, &(&str, ParamType, &str))| (format!("c{at}"), *ty);
    POSTGRES_EXTREMES.iter().enumerate().map(one).collect()
}

/// What PostgreSQL returns, once.
async fn postgres_extremes() -> Ran {
    let (send, receive) = tokio::sync::oneshot::channel();
    with_scratch(DialectName::Postgres, |db| async move {
        let column = |(at, (sql, ..)): (usize, &(&str, ParamType, &str))| format!("{sql} AS c{at}");
        let columns: Vec<String> = POSTGRES_EXTREMES.iter().enumerate().map(column).collect();
        let sql = format!("SELECT {}", columns.join(", "));
        let _sent = send.send(Bench::sql(&db, &sql).run().await);
    })
    .await;
    receive.await.expect("it ran")
}

#[tokio::test]
async fn typed_parameters_take_the_extremes_of_their_server() {
    let earlier = postgres_extremes().await;
    let params = taken(&earlier, &typed_params()).expect("all are taken");
    with_scratch(DialectName::Postgres, |db| async move {
        let names: Vec<String> = (0..params.len()).map(|at| format!(":c{at} AS c{at}")).collect();
        let sql = format!("SELECT {}", names.join(", "));
        let ran = with(Bench::sql(&db, &sql), &params).run().await;
        let types = ["float8", "date", "timestamp", "numeric"];
        let type_of = |ty: ParamType| match ty {
            ParamType::Date => types[1],
            ParamType::Datetime => types[2],
            ParamType::Int => types[3],
            ParamType::Text | ParamType::Decimal | ParamType::Bool | ParamType::Bytes => types[0],
        };
        let declared: Vec<String> = POSTGRES_EXTREMES
            .iter()
            .enumerate()
            .map(|(at, (_, ty, _))| format!("INOUT c{at} {}", type_of(*ty)))
            .collect();
        db.setup(&[&format!(
            "CREATE PROCEDURE back ({}) LANGUAGE plpgsql AS $$ BEGIN END $$",
            declared.join(", ")
        )])
        .await;
        let mut both = params.clone();
        both.iter_mut().for_each(|param| param.mode = ParamMode::InOut);
        let called = with(Bench::proc(&db, "back"), &both).run().await;
        for (way, ran) in [("SQL", ran), ("INOUT", called)] {
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{way}: {}", ran.message());
            for (at, (sql, _, text)) in POSTGRES_EXTREMES.iter().enumerate() {
                assert_eq!(ran.value(&format!("c{at}")), *text, "{way}: {sql}");
            }
        }
    })
    .await;
}

/// One parameter at a time, on a server that has no such value: nothing is run, and the error names what is wrong.
async fn assert_refused(earlier: &Ran, to: DialectName, (at, ty): (usize, ParamType), said: &str) {
    let params = taken(earlier, &[(format!("c{at}"), ty)]).expect("it is taken");
    let said = said.to_owned();
    with_scratch(to, |db| async move {
        db.setup(&["CREATE TABLE done (n INT)"]).await;
        let sql = format!("INSERT INTO done VALUES (1); SELECT :c{at} AS v");
        let mut bench = with(Bench::sql(&db, &sql), &params);
        bench.task.job.transaction = procession::domain::job::TransactionMode::Each;
        let ran = bench.run().await;
        let (message, ty) = (ran.message(), ty.as_str());
        assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{to} c{at}: {message}");
        let whose = format!("job GL, parameter c{at} (type {ty}): ${{jobs.EARLIER.c{at}}} cannot");
        assert!(message.contains(&whose) && message.contains(&said), "{to}: {message}");
        assert!(message.contains("declare it type: text"), "{to}: {message}");
        assert_eq!(Bench::sql(&db, "SELECT count(*) AS n FROM done").run().await.value("n"), "0");
    })
    .await;
}

#[tokio::test]
async fn what_a_server_cannot_hold_is_refused_before_anything_runs() {
    let earlier = postgres_extremes().await;
    for (at, (_, ty, text)) in POSTGRES_EXTREMES.iter().enumerate() {
        if *ty != ParamType::Int {
            assert_refused(&earlier, DialectName::Mysql, (at, *ty), text).await;
        }
    }
    assert_refused(&earlier, DialectName::Sqlite, (0, ParamType::Decimal), "no NaN").await;
    assert_refused(&earlier, DialectName::Sqlite, (9, ParamType::Int), "9223372036854775807").await;
    let (send, receive) = tokio::sync::oneshot::channel();
    with_scratch(DialectName::Mysql, |db| async move {
        let sql = "SET sql_mode = ''; CREATE TABLE z (c0 DATE, c1 DATETIME, c2 DATE); \
                   INSERT INTO z VALUES ('0000-00-00', '0000-00-00', '2024-02-00'); SELECT * FROM z";
        let earlier = Bench::sql(&db, sql).run().await;
        let wanted = [("c0", ParamType::Date), ("c1", ParamType::Datetime), ("c2", ParamType::Date)];
        let wanted = wanted.map(|(name, ty)| (name.to_owned(), ty));
        let params = taken(&earlier, &wanted).expect("they are taken");
        let sql = "SET sql_mode = ''; CREATE TABLE y LIKE z; INSERT INTO y VALUES (:c0, :c1, :c2); SELECT * FROM y";
        let ran = with(Bench::sql(&db, sql), &params).run().await;
        let values = ["c0", "c1", "c2"].map(|name| ran.value(name));
        assert_eq!(values, ["0000-00-00", "0000-00-00 00:00:00", "2024-02-00"], "{}", ran.message());
        let _sent = send.send(earlier);
    })
    .await;
    let zeros = receive.await.expect("it ran");
    let postgres = DialectName::Postgres;
    assert_refused(&zeros, postgres, (0, ParamType::Date), "only days that exist").await;
    assert_refused(&zeros, postgres, (1, ParamType::Datetime), "0000-00-00 00:00:00").await;
    assert_refused(&zeros, postgres, (2, ParamType::Date), "2024-02-00").await;
}

#[tokio::test]
async fn numbers_beyond_an_exact_decimal_are_the_same_double_or_refused() {
    with_scratch(DialectName::Mysql, |db| async move {
        let earlier =
            Bench::sql(&db, "SELECT 1e300 AS c0, 1e-40 AS c1, 1.5e0 AS c2, 9e15 AS c3").run().await;
        let wanted: Vec<_> = (0..4).map(|at| (format!("c{at}"), ParamType::Decimal)).collect();
        let params = taken(&earlier, &wanted).expect("they are taken");
        let sql = "SELECT :c0 = 1e300 AS c0, :c1 = 1e-40 AS c1, :c2 = 1.5 AS c2, :c3 = 9e15 AS c3";
        let ran = with(Bench::sql(&db, sql), &params).run().await;
        for at in 0..4 {
            assert_eq!(ran.value(&format!("c{at}")), "1", "c{at}: {}", ran.message());
        }
    })
    .await;
    let (send, receive) = tokio::sync::oneshot::channel();
    with_scratch(DialectName::Postgres, |db| async move {
        let sql = format!("SELECT {}::numeric AS c0", "1234567".repeat(10));
        let _sent = send.send(Bench::sql(&db, &sql).run().await);
    })
    .await;
    let earlier = receive.await.expect("it ran");
    assert_refused(&earlier, DialectName::Mysql, (0, ParamType::Decimal), "65 digits").await;
    // SQLite has infinite numbers.
    let earlier = postgres_extremes().await;
    let params = taken(&earlier, &[("c1".to_owned(), ParamType::Decimal)]).expect("taken");
    with_scratch(DialectName::Sqlite, |db| async move {
        let ran = with(Bench::sql(&db, "SELECT :c1 = 9e999 AS same"), &params).run().await;
        assert_eq!(ran.value("same"), "1", "{}", ran.message());
    })
    .await;
}
