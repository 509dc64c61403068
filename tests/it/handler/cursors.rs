//! Cursors that a CALL of PostgreSQL returns, and VARIADIC routines.

use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, migrated, with_scratch};
use procession::domain::job::outcome::{AttemptEnd, Retry};
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;
use procession::domain::source::tx_class::TxClass;

const IN: ParamMode = ParamMode::In;
const INOUT: ParamMode = ParamMode::InOut;
const TEXT: ParamType = ParamType::Text;

const TWO: &str = "CREATE PROCEDURE two (INOUT a refcursor, INOUT b refcursor, INOUT n int) \
    LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); \
    a := 'First \"one\"'; OPEN a FOR SELECT i AS x, 'v' || i AS y FROM generate_series(1, 3) i; \
    OPEN b FOR SELECT true AS z; n := 7; END $$";

async fn two(db: &Scratch, tx: TxClass) -> Ran {
    let mut bench = Bench::proc(db, "two");
    bench.task.job.tx = tx;
    let bench = bench.param("a", INOUT, TEXT, None).param("b", INOUT, TEXT, None);
    bench.param("n", INOUT, ParamType::Int, None).run().await
}

fn rows(ran: &Ran, set: usize) -> Vec<Vec<Option<&str>>> {
    let rows = ran.outcome.outputs.results[set].rows.iter();
    rows.map(|row| row.iter().map(Option::as_deref).collect()).collect()
}

#[tokio::test]
async fn the_rows_of_cursors_are_result_sets_in_their_order() {
    with_scratch(DialectName::Postgres, |db| async move {
        let ledger = migrated(DialectName::Postgres, "procession_ledger");
        db.setup(&["CREATE TABLE t (a int)", TWO, &ledger]).await;
        for (done, tx) in [TxClass::None, TxClass::Ledger].into_iter().enumerate() {
            let ran = two(&db, tx).await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{tx:?}: {}", ran.message());
            let sets = &ran.outcome.outputs.results;
            assert_eq!(sets.len(), 2, "{tx:?}");
            assert_eq!((sets[0].columns.join(","), sets[0].row_count), ("x,y".to_owned(), 3));
            assert_eq!(rows(&ran, 0)[2], [Some("3"), Some("v3")], "{tx:?}");
            assert_eq!(rows(&ran, 1), [[Some("true")]], "{tx:?}");
            assert_eq!((ran.value("a"), ran.value("n")), ("First \"one\"".into(), "7".into()));
            assert!(!ran.value("b").is_empty(), "its own name");
            assert_eq!(db.value("SELECT count(*) FROM t").await, (done + 1).to_string(), "{tx:?}");
        }
        assert_eq!(db.value("SELECT count(*) FROM pg_cursors").await, "0");
    })
    .await;
}

#[tokio::test]
async fn a_cursor_has_the_limits_of_other_result_sets() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE PROCEDURE p (INOUT c refcursor) LANGUAGE plpgsql AS $$ BEGIN \
             OPEN c FOR SELECT i AS item FROM generate_series(1, 5) i; END $$"])
            .await;
        let bench = Bench::proc(&db, "p").param("c", INOUT, TEXT, None);
        let ran = bench.options(|options| options.outputs.max_rows = 4).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        let set = &ran.outcome.outputs.results[0];
        assert_eq!((set.rows.len(), set.row_count), (4, 5));
        let said = ran.outcome.outputs.items("item").expect_err("one is missing");
        assert!(said.contains("outputs.max_rows"), "{said}");
    })
    .await;
}

/// How a body ended, and how many rows it left.
fn assert_ended(ran: &Ran, end: AttemptEnd, rows_left: &str, expected: &str) {
    assert_eq!((ran.outcome.end.clone(), rows_left), (end, expected), "{}", ran.message());
}

#[tokio::test]
async fn cursors_that_are_null_held_closed_or_cut_off_by_a_commit() {
    with_scratch(DialectName::Postgres, |db| async move {
        let create = |name: &str, body: &str| {
            format!(
                "CREATE PROCEDURE {name} (INOUT c refcursor) LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO t VALUES (1); {body} END $$"
            )
        };
        db.setup(&[
            "CREATE TABLE t (a int)",
            &create("nothing", "c := NULL;"),
            &create("held", "c := 'h'; EXECUTE 'DECLARE h CURSOR WITH HOLD FOR SELECT 5 AS v';"),
            &create("empty", "OPEN c FOR SELECT 1 AS v WHERE false;"),
            &create("closed", "OPEN c FOR SELECT 1; CLOSE c;"),
            &create("commits", "COMMIT; OPEN c FOR SELECT 1;"),
        ])
        .await;
        let run = async |name: &str| {
            let ran = Bench::proc(&db, name).param("c", INOUT, TEXT, None).run().await;
            (ran, db.value("WITH d AS (DELETE FROM t RETURNING a) SELECT count(*) FROM d").await)
        };
        let (ran, took) = run("nothing").await;
        assert_ended(&ran, AttemptEnd::Success, &took, "1");
        assert!(ran.outcome.outputs.results.is_empty(), "no cursor is no result set");
        assert_eq!(ran.outcome.outputs.look_up("c"), Some(None));
        let (ran, took) = run("held").await;
        assert_ended(&ran, AttemptEnd::Success, &took, "1");
        assert_eq!((rows(&ran, 0), ran.value("c")), (vec![vec![Some("5")]], "h".to_owned()));
        let (ran, took) = run("empty").await;
        assert_ended(&ran, AttemptEnd::Success, &took, "1");
        assert_eq!(ran.value("result_rows"), "0");
        assert_eq!(ran.outcome.outputs.results.len(), 1);
        let (ran, took) = run("closed").await;
        assert_ended(&ran, AttemptEnd::Failed, &took, "0");
        assert!(ran.message().contains("reading the rows of cursor"), "{}", ran.message());
        let (ran, took) = run("commits").await;
        assert_ended(&ran, AttemptEnd::Failed, &took, "0");
        assert_eq!(ran.outcome.retry, Retry::Never);
        assert!(ran.message().contains("take COMMIT and ROLLBACK out of it"), "{}", ran.message());
    })
    .await;
}

/// Its name on the session may be that of another cursor a moment before.
#[tokio::test]
async fn a_function_may_return_a_cursor_too() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE FUNCTION f (columns int) RETURNS refcursor LANGUAGE plpgsql AS $$ \
             DECLARE c refcursor := 'same'; BEGIN \
             IF columns = 1 THEN OPEN c FOR SELECT 1 AS a; ELSE OPEN c FOR SELECT 'x' AS a, 2 AS b; END IF; \
             RETURN c; END $$",
        ])
        .await;
        for (columns, expected) in [("1", vec![Some("1")]), ("2", vec![Some("x"), Some("2")])] {
            let bench = Bench::proc(&db, "f").param("columns", IN, ParamType::Int, Some(columns));
            let ran = bench.param("c", ParamMode::Out, TEXT, None).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
            assert_eq!(ran.value("c"), "same");
            assert_eq!(rows(&ran, 1), [expected]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_variadic_routine_takes_a_list() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE TABLE t (a text)",
            "CREATE PROCEDURE post (head text, VARIADIC items int[]) LANGUAGE sql AS \
             $$INSERT INTO t VALUES (head || items::text)$$",
            "CREATE FUNCTION join_all (VARIADIC words text[]) RETURNS text LANGUAGE sql AS \
             $$SELECT array_to_string(words, '|', 'none')$$",
            "CREATE FUNCTION count_all (VARIADIC words \"any\") RETURNS int LANGUAGE internal AS 'pg_num_nonnulls'",
        ])
        .await;
        for (list, stored) in
            [("{1,2,NULL}", "h{1,2,NULL}"), ("[3, 4]", "h{3,4}"), ("[]", "h{}"), ("{}", "h{}")]
        {
            let bench = Bench::proc(&db, "post").param("items", IN, TEXT, Some(list));
            let ran = bench.param("head", IN, TEXT, Some("h")).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{list}: {}", ran.message());
            assert_eq!(db.value("DELETE FROM t RETURNING a").await, stored, "{list}");
        }
        let list = r#"["a b", "NULL", null, "q\"\\,}", 12.50]"#;
        let bench = Bench::proc(&db, "join_all").param("words", IN, TEXT, Some(list));
        let ran = bench.param("all", ParamMode::Out, TEXT, None).run().await;
        assert_eq!(ran.value("all"), "a b|NULL|none|q\"\\,}|12.50", "{}", ran.message());
        let ran = Bench::proc(&db, "post").param("head", IN, TEXT, Some("h")).run().await;
        assert!(ran.message().contains("VARIADIC items integer[]"), "{}", ran.message());
        let ran = Bench::proc(&db, "count_all").param("words", IN, TEXT, Some("[1]")).run().await;
        assert_eq!((ran.outcome.end.clone(), ran.outcome.retry), (AttemptEnd::Failed, Retry::Never));
        assert!(ran.message().contains("call it by a SQL job"), "{}", ran.message());
    })
    .await;
}

#[tokio::test]
async fn quoted_names_are_found_as_they_are_written() {
    let text = |name: &str| format!("CREATE PROCEDURE {name} () INSERT INTO t VALUES (1)");
    for (dialect, setup, names, wrong) in [
        (
            DialectName::Postgres,
            vec![
                "CREATE SCHEMA \"Odd One\"".to_owned(),
                "CREATE PROCEDURE \"My Proc\" () LANGUAGE sql AS 'INSERT INTO t VALUES (1)'".to_owned(),
                "CREATE PROCEDURE \"Odd One\".\"Weird.Name(x)\" () LANGUAGE sql AS 'INSERT INTO t VALUES (1)'"
                    .to_owned(),
            ],
            vec!["\"My Proc\"", "public.\"My Proc\"", "\"Odd One\".\"Weird.Name(x)\"", "`My Proc`"],
            ("\"My Prok\"", "did you mean \"My Proc\"?"),
        ),
        (
            DialectName::Mysql,
            vec![text("`My Proc`"), text("`Weird.Name(x)`")],
            vec!["`My Proc`", "\"My Proc\"", "`Weird.Name(x)`"],
            ("`My Prok`", "did you mean `My Proc`?"),
        ),
    ] {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a int)"]).await;
            db.setup(&setup.iter().map(String::as_str).collect::<Vec<_>>()).await;
            for name in names {
                let ran = Bench::proc(&db, name).run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect} {name}: {}", ran.message());
                assert_eq!(db.value("SELECT count(*) FROM t").await, "1", "{dialect} {name}");
                db.setup(&["DELETE FROM t"]).await;
            }
            let (name, said) = wrong;
            let ran = Bench::proc(&db, name).run().await;
            assert!(ran.message().contains(said), "{dialect}: {}", ran.message());
        })
        .await;
    }
}
