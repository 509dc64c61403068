//! Values that come back: whole, or an error that names them.

use crate::util::bench::Bench;
use crate::util::with_scratch;
use procession::domain::job::check::{CheckGrade, SuccessRule};
use procession::domain::job::outcome::{AttemptEnd, OutputValue, Retry};
use procession::domain::job::output_limits::OutputLimits;
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;
use procession::domain::value::expr::Expr;

const IN: ParamMode = ParamMode::In;
const OUT: ParamMode = ParamMode::Out;
// In place of OUT on PostgreSQL 13, whose procedures have none.
const INOUT: ParamMode = ParamMode::InOut;
const TEXT: ParamType = ParamType::Text;

fn tight(bench: Bench) -> Bench {
    bench.options(|options| {
        options.outputs = OutputLimits { max_value_bytes: 1_000, ..OutputLimits::default() };
    })
}

fn rule(text: &str) -> SuccessRule {
    SuccessRule { rule: Expr::parse(text).expect(text), grade: CheckGrade::Error, message: None }
}

#[tokio::test]
async fn postgres_char_and_bit_parameters_keep_their_length() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE p (c char(3), b bit(4), v varbit(9), cs char(3)[], INOUT seen text) \
                    LANGUAGE plpgsql AS $$ BEGIN \
                    seen := concat_ws(' ', '[' || c || ']', b::text, v::text, cs::text); END $$",
        ])
        .await;
        let values = [("c", "CNY"), ("b", "0101"), ("v", "111000111"), ("cs", "{EUR,USD}")];
        for name in ["p", "p(char(3), bit(4), varbit, char[], text)"] {
            let mut bench = Bench::proc(&db, name);
            for (name, value) in values {
                bench = bench.param(name, IN, TEXT, Some(value));
            }
            let ran = bench.param("seen", INOUT, TEXT, Some("")).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
            assert_eq!(ran.value("seen"), "[CNY] 0101 111000111 {EUR,USD}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_last_result_set_decides_however_many_there_are() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let many: Vec<String> = (1..=25).map(|_| "SELECT 0 AS bad".to_owned()).collect();
            let many = many.join("; ");
            let mut bench = Bench::sql(&db, &format!("{many}; SELECT 17 AS bad"));
            bench.task.job.success = vec![rule("result.bad == 0")];
            let ran = bench.run().await;
            assert_eq!(
                ran.outcome.end,
                AttemptEnd::Failed,
                "{dialect}: 17 bad rows are no success"
            );
            assert!(ran.message().contains("result.bad = 17"), "{}", ran.message());
            assert_eq!(ran.outcome.outputs.sets_left_out, 6);
            // A last set without rows is a set: nothing before it stands in.
            let empty = "SELECT 0 AS bad; SELECT 1 AS bad FROM (SELECT 1 AS x) AS t WHERE x = 2";
            let ran = Bench::sql(&db, empty).run().await;
            assert_eq!(ran.value("result_rows"), "0", "{dialect}");
            assert_eq!(ran.outcome.outputs.output("bad"), None, "{dialect}");
        })
        .await;
    }
}

#[tokio::test]
async fn mysql_counts_the_sets_without_rows_of_a_call() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE sets (OUT n INT) BEGIN SELECT 1 AS a; SELECT 2 AS a FROM DUAL WHERE 1 = 0; \
             SET n = 5; SELECT 3 AS b UNION SELECT 4; SELECT 5 AS a FROM DUAL WHERE 1 = 0; END",
            "CREATE PROCEDURE none () BEGIN DO 1; END",
        ])
        .await;
        let ran = Bench::proc(&db, "sets").param("n", OUT, ParamType::Int, None).run().await;
        let sets = &ran.outcome.outputs.results;
        let counts: Vec<u64> = sets.iter().map(|set| set.row_count).collect();
        assert_eq!((counts, ran.value("n").as_str()), (vec![1, 0, 2, 0], "5"), "{}", ran.text());
        assert_eq!((ran.value("result_rows").as_str(), ran.outcome.outputs.output("a")), ("0", None));
        let ran = Bench::sql(&db, "CALL sets(@n)").run().await;
        let counts: Vec<u64> = ran.outcome.outputs.results.iter().map(|set| set.row_count).collect();
        assert_eq!(counts, [1, 0, 2, 0]);
        let ran = Bench::proc(&db, "none").run().await;
        assert_eq!(ran.outcome.outputs.results, [], "a CALL's own end is no set");
    })
    .await;
}

#[tokio::test]
async fn a_value_over_the_limit_is_an_error_and_never_a_part_of_it() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let long = "x".repeat(1_001);
            let text = format!("SELECT '{long}' AS doc, 7 AS n");
            let ran = tight(Bench::sql(&db, &text)).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{dialect}: nobody asked for it");
            let Some(OutputValue::Unusable(why)) = ran.outcome.outputs.output("doc") else {
                panic!("{dialect}: {:?}", ran.outcome.outputs)
            };
            assert!(why.starts_with("column doc (") && why.contains("1001 bytes"), "{why}");
            assert!(why.contains("outputs.max_value_bytes"), "{why}");
            assert_eq!(ran.value("n"), "7");
            assert!(ran.outcome.outputs.items("doc").is_err());
            let mut bench = tight(Bench::sql(&db, &text));
            bench.task.job.success = vec![rule("result.doc != 'y'")];
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{dialect}");
            assert!(
                ran.message().contains("cannot be answered: column doc ("),
                "{}",
                ran.message()
            );
            let exact = format!("SELECT '{}' AS doc", "月".repeat(333));
            let ran = tight(Bench::sql(&db, &exact)).run().await;
            assert_eq!(ran.value("doc"), "月".repeat(333), "{dialect}");
        })
        .await;
    }
    for (dialect, create) in [
        (DialectName::Mysql, "CREATE PROCEDURE p (INOUT doc LONGTEXT) SET doc = REPEAT('x', 1001)"),
        (
            DialectName::Postgres,
            "CREATE PROCEDURE p (INOUT doc text) LANGUAGE plpgsql AS $$ BEGIN doc := repeat('x', 1001); END $$",
        ),
    ] {
        with_scratch(dialect, |db| async move {
            db.setup(&[create]).await;
            let ran = tight(Bench::proc(&db, "p").param("doc", INOUT, TEXT, Some(""))).run().await;
            // Its work is done, so another try would do it twice.
            assert_eq!((ran.outcome.end, ran.outcome.retry), (AttemptEnd::Failed, Retry::Never));
            let said = ran.outcome.message.as_deref().unwrap_or_default();
            assert!(said.contains(" doc (") && said.contains("1001 bytes"), "{said}");
            assert!(ran.outcome.outputs.values.is_empty());
        })
        .await;
    }
}

#[tokio::test]
async fn a_list_has_all_its_rows_or_is_refused() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800) \
                        SELECT i AS branch FROM n ORDER BY i";
            let ran = Bench::sql(&db, text).run().await;
            let items = ran.outcome.outputs.items("branch").expect("a list");
            let all: Vec<String> = (1..=800).map(|i| i.to_string()).collect();
            assert_eq!(items, all, "{dialect}");
            let bench = Bench::sql(&db, text).options(|options| options.outputs.max_rows = 799);
            let ran = bench.run().await;
            let said = ran.outcome.outputs.items("branch").expect_err("one too many");
            assert!(said.contains("has 800 rows, of which 799 are kept"), "{said}");
            assert!(said.contains("outputs.max_rows"), "{said}");
        })
        .await;
    }
}

#[tokio::test]
async fn sqlite_refuses_a_decimal_that_it_would_change() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let bench = |value: &str| {
            Bench::sql(&db, "SELECT :amount AS amount").param(
                "amount",
                IN,
                ParamType::Decimal,
                Some(value),
            )
        };
        for exact in ["0.1", "-12.50", "9007199254740993", "100000000000000000000", "1234567890.12"]
        {
            let ran = bench(exact).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{exact}: {}", ran.message());
            let same = exact.trim_end_matches('0').len() < exact.len() && exact.contains('.');
            let expected = if same { exact.trim_end_matches('0') } else { exact };
            assert_eq!(ran.value("amount"), expected);
        }
        for inexact in ["12345678901234567.12", "9007199254740993.5", "0.12345678901234567890"] {
            let ran = bench(inexact).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{inexact} became {:?}", ran.outcome);
            assert!(ran.message().contains("parameter amount: SQLite has no exact decimals"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_script_hands_on_long_lists_whole_or_fails_by_name() {
    let list = "i=0; l=; while [ $i -lt 800 ]; do i=$((i+1)); l=\"$l,branch-number-$i\"; done; \
                echo \"::output branches=$l\"";
    let ran = Bench::script(list).run().await;
    let items = ran.outcome.outputs.items("branches").expect("a list");
    assert_eq!((items.len(), items[799].as_str()), (800, "branch-number-800"), "{}", ran.message());
    let ran = tight(Bench::script(list)).run().await;
    assert_eq!((ran.outcome.end.clone(), ran.outcome.retry), (AttemptEnd::Failed, Retry::Never));
    assert!(ran.message().starts_with("output branches has "), "{}", ran.message());
    assert!(ran.outcome.outputs.values.is_empty(), "nothing is handed on");
    let many = "i=0; while [ $i -lt 1001 ]; do i=$((i+1)); echo \"::output n$i=$i\"; done";
    let mut bench = Bench::script(many);
    bench.task.job.success = vec![rule("exit_code == 0")];
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "no rule makes a success of it");
    assert!(ran.message().contains("more than 1000 outputs"), "{}", ran.message());
}
