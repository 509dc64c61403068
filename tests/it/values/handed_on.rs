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
