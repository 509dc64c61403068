//! Success rules and checks after a body, each on the databases it is made for.

use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, with_scratch};
use procession::domain::id::SourceName;
use procession::domain::job::check::{CheckGrade, DataCheck, Expect, SuccessRule};
use procession::domain::job::outcome::{AttemptEnd, Retry, Stream};
use procession::domain::job::{ParamMode, ParamType, SqlText};
use procession::domain::source::{DataSource, DialectName};
use procession::domain::value::expr::Expr;
use procession::handler::StopReason;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

const TOTAL: ParamType = ParamType::Decimal;

fn check(name: &str, sql: &str, expect: Expect) -> DataCheck {
    let sql = SqlText::Same(sql.to_owned());
    DataCheck { name: name.to_owned(), source: None, sql, expect, grade: CheckGrade::Error }
}

fn between(min: &str, max: &str) -> Expect {
    Expect::Between { min: Some(min.to_owned()), max: Some(max.to_owned()) }
}

fn rule(text: &str, grade: CheckGrade) -> SuccessRule {
    SuccessRule { rule: Expr::parse(text).expect(text), grade, message: None }
}

/// What each check of a job said: `name=value ok`, in the order of their names.
fn found(ran: &Ran) -> Vec<String> {
    let checks = ran.outcome.outputs.checks.iter();
    let word = |ok: bool| if ok { "ok" } else { "broken" };
    checks
        .map(|(name, f)| format!("{name}={} {}", f.value.as_deref().unwrap_or("-"), word(f.ok)))
        .collect()
}

async fn everywhere<Fut>(test: impl Fn(Arc<Scratch>) -> Fut + Copy)
where
    Fut: Future<Output = ()>,
{
    for dialect in DialectName::ALL {
        with_scratch(dialect, test).await;
    }
}

async fn ledger(db: &Scratch) {
    db.setup(&[
        "CREATE TABLE ledger (account VARCHAR(10), amount DECIMAL(18,2))",
        "INSERT INTO ledger VALUES ('1001', 5.00), ('1002', 7.25), ('1003', NULL)",
    ])
    .await;
}

fn expectations() -> Vec<DataCheck> {
    let one = |account: &str| format!("SELECT amount FROM ledger WHERE account = '{account}'");
    let same = |sql: &str, tolerance: Option<&str>| Expect::Equals {
        source: None,
        sql: SqlText::Same(sql.to_owned()),
        tolerance: tolerance.map(str::to_owned),
    };
    vec![
        check("a", "SELECT * FROM ledger WHERE amount > 100", Expect::ZeroRows),
        check("b", "SELECT account FROM ledger WHERE amount > 5", Expect::ZeroRows),
        check("c", &one("1001"), between("5", "5.00")),
        check("d", &one("1002"), between("5", "7.24")),
        check("e", &one("1003"), between("0", "9")),
        check("f", &one("none"), between("0", "9")),
        check("g", "SELECT amount FROM ledger", between("0", "9")),
        check("h", &one("1001"), same("SELECT 5", None)),
        check("i", &one("1001"), same("SELECT 5.02", Some("0.02"))),
        check("j", &one("1001"), same("SELECT 5.02", Some("0.01"))),
        check("k", &one("1003"), same("SELECT NULL", None)),
        check(
            "l",
            "SELECT COUNT(*) FROM ledger WHERE account = :account AND amount >= :least",
            between("1", "1"),
        ),
        check(
            "m",
            "SELECT :batch_no, :group, :job_code",
            same("SELECT '202407', 'month_end', 'GL'", None),
        ),
    ]
}

#[tokio::test]
async fn every_expectation_on_every_database() {
    everywhere(|db| async move {
        ledger(&db).await;
        let mut bench = Bench::sql(&db, "SELECT 1 AS n")
            .param("account", ParamMode::In, ParamType::Text, Some("1002"))
            .param("least", ParamMode::In, TOTAL, Some("7.25"));
        bench.task.job.checks = expectations();
        let ran = bench.run().await;
        assert_eq!(
            found(&ran),
            [
                "a=0 ok",
                "b=1 broken",
                "c=5.00 ok",
                "d=7.25 broken",
                "e=- broken",
                "f=- broken",
                "g=- broken",
                "h=5.00 ok",
                "i=5.00 ok",
                "j=5.00 broken",
                "k=NULL ok",
                "l=1 ok",
                "m=202407, month_end, GL ok",
            ]
            .map(|line| match db.dialect {
                // No exact decimals there: 5.00 is kept as 5.
                DialectName::Sqlite => line.replace("=5.00", "=5"),
                DialectName::Mysql | DialectName::Postgres => line.to_owned(),
            }),
            "{}",
            ran.text()
        );
        assert_eq!((&ran.outcome.end, ran.outcome.retry), (&AttemptEnd::Failed, Retry::Allowed));
        for said in [
            "check 'b' found 1 row (1002); expected no row",
            "check 'f' found no row",
            "check 'g' found 3 rows",
        ] {
            assert!(ran.message().contains(said), "{}", ran.message());
        }
        assert!(!ran.message().contains("check 'a'"), "{}", ran.message());
        let lines = ran.of(Stream::System);
        let of_checks = lines.iter().filter(|l| l.starts_with("check '")).count();
        assert_eq!(of_checks, 13, "{}", ran.text());
        assert!(lines.contains(&"check 'a' found no row; expected no row: ok"), "{}", ran.text());
    })
    .await;
}

fn other(name: &str, url: &str) -> DataSource {
    DataSource {
        name: SourceName::parse(name).expect("name"),
        url: url.to_owned(),
        password_env: None,
        password_file: None,
        password_secret: None,
        read_password: Default::default(),
        max_parallel: None,
        procedures: BTreeMap::new(),
        access: procession::domain::access::group_access::GroupAccess::default(),
    }
}

#[tokio::test]
async fn two_databases_are_compared() {
    for there in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(DialectName::Sqlite, |here| async move {
            with_scratch(there, |there| async move {
                ledger(&there).await;
                here.setup(&[
                    "CREATE TABLE copy (cents INTEGER)",
                    "INSERT INTO copy VALUES (1225)",
                ])
                .await;
                let run = async |tolerance: Option<&str>, sql: &str| {
                    let mut bench = Bench::sql(&here, "SELECT 1");
                    bench.task.check_sources = vec![other("core", &there.url)];
                    bench.task.job.checks = vec![check(
                        "sums",
                        "SELECT cents / 100.0 FROM copy",
                        Expect::Equals {
                            source: Some(SourceName::parse("core").expect("name")),
                            sql: SqlText::Same(sql.to_owned()),
                            tolerance: tolerance.map(str::to_owned),
                        },
                    )];
                    bench.run().await
                };
                let ran = run(None, "SELECT SUM(amount) FROM ledger").await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
                assert_eq!(found(&ran), ["sums=12.25 ok"]);
                let ran = run(None, "SELECT SUM(amount) + 0.01 FROM ledger").await;
                assert_eq!(
                    ran.message(),
                    "check 'sums' found 12.25; expected 12.26, which the other query gave"
                );
                let ran = run(Some("0.01"), "SELECT SUM(amount) + 0.01 FROM ledger").await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
            })
            .await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_check_changes_nothing() {
    everywhere(|db| async move {
        ledger(&db).await;
        if db.dialect == DialectName::Postgres {
            db.setup(&["CREATE FUNCTION sneaky () RETURNS int LANGUAGE sql AS \
                        'DELETE FROM ledger; SELECT 1'"])
                .await;
        }
        let mut texts = vec![
            "INSERT INTO ledger VALUES ('x', 1)",
            "DELETE FROM ledger",
            "DROP TABLE ledger",
            "CREATE TABLE other (a INT)",
        ];
        match db.dialect {
            DialectName::Sqlite => {}
            DialectName::Mysql => texts.push("TRUNCATE TABLE ledger"),
            DialectName::Postgres => {
                texts.extend([
                    "TRUNCATE TABLE ledger",
                    "SELECT sneaky()",
                    "CREATE INDEX i ON ledger (amount)",
                ]);
            }
        }
        for text in texts {
            let mut bench = Bench::sql(&db, "SELECT 1");
            bench.task.job.checks = vec![DataCheck {
                grade: CheckGrade::Warning,
                ..check("writes", text, Expect::ZeroRows)
            }];
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{text}: {}", ran.text());
            let said = "; a check may only read, what changes data belongs in the body of a job";
            assert!(
                ran.message().starts_with("check 'writes' could not be run: error ")
                    && ran.message().ends_with(said),
                "{text}: {}",
                ran.message()
            );
        }
        assert_eq!(db.value("SELECT COUNT(*) FROM ledger").await, "3");
    })
    .await;
}

#[tokio::test]
async fn a_check_that_cannot_be_run_is_an_error_with_the_databases_words() {
    with_scratch(DialectName::Mysql, |db| async move {
        for (sql, said) in [
            ("SELECT * FROM nowhere", "error 1146 (42S02): Table"),
            ("SELECT 1; SELECT 2", "it must be one query, and is 2 statements"),
            ("SELECT :lost", ":lost is not among the job's parameters"),
        ] {
            let mut bench = Bench::sql(&db, "SELECT 1");
            let broken = check("there", sql, Expect::ZeroRows);
            bench.task.job.checks = vec![DataCheck { grade: CheckGrade::Warning, ..broken }];
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed);
            assert!(ran.message().contains(said), "{}", ran.message());
            assert_eq!(ran.outcome.outputs.checks["there"].grade, CheckGrade::Error);
        }
        let mut bench = Bench::sql(&db, "SELECT 1");
        bench.task.check_sources = vec![other("core", "mysql://root@127.0.0.1:1/none")];
        let mut far = check("far", "SELECT 1", Expect::ZeroRows);
        far.source = SourceName::parse("core").ok();
        far.grade = CheckGrade::Fatal;
        bench.task.job.checks = vec![far];
        let ran = bench.run().await;
        assert_eq!(
            (ran.outcome.end.clone(), ran.outcome.retry),
            (AttemptEnd::Failed, Retry::Never)
        );
        assert!(ran.message().contains("cannot connect to source 'core' at"), "{}", ran.message());
    })
    .await;
}

#[tokio::test]
async fn a_status_that_raised_nothing_is_a_failure_by_rule() {
    everywhere(|db| async move {
        let mut bench = Bench::proc(&db, "load_rates")
            .param("p_rows", ParamMode::Out, ParamType::Int, None)
            .param("p_status", ParamMode::Out, ParamType::Int, None);
        match db.dialect {
            DialectName::Sqlite => {
                let source = bench.task.source.as_mut().expect("a source");
                let body = "SELECT 3 AS p_rows, 1 AS p_status".to_owned();
                source.procedures.insert("load_rates".to_owned(), body);
            }
            DialectName::Mysql => {
                db.setup(&["CREATE PROCEDURE load_rates (OUT p_rows INT, OUT p_status INT) \
                            BEGIN SET p_rows = 3; SET p_status = 1; END"])
                    .await;
            }
            DialectName::Postgres => {
                db.setup(&["CREATE PROCEDURE load_rates (OUT p_rows int, OUT p_status int) \
                            LANGUAGE plpgsql AS $$ BEGIN p_rows := 3; p_status := 1; END $$"])
                    .await;
            }
        }
        bench.task.job.success = vec![
            rule("p_rows >= 3", CheckGrade::Warning),
            rule("p_status == 0", CheckGrade::Fatal),
        ];
        // Not run: what it looks at was not made by a success.
        bench.task.job.checks = vec![check("late", "SELECT 1", Expect::ZeroRows)];
        let ran = bench.run().await;
        assert_eq!(
            (ran.outcome.end.clone(), ran.outcome.retry),
            (AttemptEnd::Failed, Retry::Never)
        );
        assert_eq!(ran.message(), "success rule 'p_status == 0' does not hold (p_status = 1)");
        assert_eq!(ran.value("p_rows"), "3");
        let rules = &ran.outcome.outputs.rules;
        assert!(rules["p_rows >= 3"].ok && !rules["p_status == 0"].ok);
        assert!(ran.outcome.outputs.checks.is_empty());
        assert!(ran.text().contains("its checks are not run"), "{}", ran.text());
    })
    .await;
}

#[tokio::test]
async fn checks_see_what_came_back() {
    with_scratch(DialectName::Postgres, |db| async move {
        ledger(&db).await;
        db.setup(&["CREATE PROCEDURE total (OUT p_total numeric) LANGUAGE plpgsql AS $$ BEGIN \
                    SELECT sum(amount) INTO p_total FROM ledger; END $$"])
            .await;
        let mut bench = Bench::proc(&db, "total").param("p_total", ParamMode::Out, TOTAL, None);
        let sql = "SELECT sum(amount) - :p_total FROM ledger";
        bench.task.job.checks = vec![check("difference", sql, between("0", "0"))];
        let ran = bench.run().await;
        assert_eq!(
            (found(&ran), &ran.outcome.end),
            (vec!["difference=0.00 ok".into()], &AttemptEnd::Success)
        );
    })
    .await;
}

#[tokio::test]
async fn a_stop_reaches_a_check_and_not_the_body_that_was_done() {
    for (dialect, sql, began) in [
        (
            DialectName::Mysql,
            "SELECT SLEEP(30) AS slow_check",
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(30) AS slow%'",
        ),
        (
            DialectName::Postgres,
            "SELECT pg_sleep(30)",
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30)%' \
             AND datname = current_database() AND state = 'active'",
        ),
    ] {
        with_scratch(dialect, |db| async move {
            ledger(&db).await;
            let mut bench = Bench::sql(&db, "INSERT INTO ledger VALUES ('done', 1)");
            bench.task.job.checks = vec![
                check("quick", "SELECT 1", between("1", "1")),
                check("slow", sql, Expect::ZeroRows),
            ];
            let ran = bench.stop_when(StopReason::TimedOut, db.wait_for(began, "1")).await;
            assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.text());
            let said = "check 'slow': stopped on the server; the body had ended well";
            assert_eq!(ran.message(), said, "{}", ran.text());
            db.wait_for(began, "0").await;
            assert_eq!(db.value("SELECT COUNT(*) FROM ledger").await, "4");
            assert_eq!(found(&ran), ["quick=1 ok"]);
        })
        .await;
    }
}

#[tokio::test]
async fn an_exit_code_is_judged_by_the_rule_that_names_it() {
    for (script, rules, end, message) in [
        ("exit 3", vec![], AttemptEnd::Failed, "exit code 3"),
        ("exit 3", vec![rule("exit_code in (0, 3)", CheckGrade::Error)], AttemptEnd::Success, ""),
        (
            "exit 3",
            vec![
                rule("exit_code in (0, 3)", CheckGrade::Error),
                rule("exit_code == 0", CheckGrade::Warning),
            ],
            AttemptEnd::Warning,
            "success rule 'exit_code == 0' does not hold (exit_code = 3); exit code 3",
        ),
        (
            "echo 'disk full' >&2; exit 4",
            vec![rule("exit_code in (0, 3)", CheckGrade::Fatal)],
            AttemptEnd::Failed,
            "success rule 'exit_code in (0, 3)' does not hold (exit_code = 4); exit code 4: disk full",
        ),
        (
            "echo '::output rows=0'",
            vec![rule("rows > 0", CheckGrade::Error)],
            AttemptEnd::Failed,
            "success rule 'rows > 0' does not hold (rows = 0)",
        ),
        (
            "exit 3",
            vec![rule("rows is null", CheckGrade::Error)],
            AttemptEnd::Failed,
            "exit code 3",
        ),
        (
            "kill -9 $$",
            vec![rule("exit_code != 0", CheckGrade::Error)],
            AttemptEnd::Failed,
            "ended by signal 9 (SIGKILL)",
        ),
    ] {
        let mut bench = Bench::script(script);
        bench.task.job.interpreter = Some("sh".to_owned());
        bench.task.job.success = rules;
        let ran = bench.run().await;
        assert_eq!((&ran.outcome.end, ran.message()), (&end, message), "{script}");
    }
}

/// A try that its rules fail may be tried again at once, so it leaves no lock on the session that it was done with.
#[tokio::test]
async fn a_try_that_its_rules_fail_has_given_its_lock_back() {
    with_scratch(DialectName::Mysql, |db| async move {
        let mut bench = Bench::sql(&db, "SELECT 1");
        bench.task.job.success = vec![rule("p_rows >= 3", CheckGrade::Error)];
        let (lock, sessions) = (bench.task.lock_name.clone(), bench.ctx.sessions.clone());
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.message());
        let asked = format!("SELECT IS_USED_LOCK('{lock}') IS NULL");
        assert_eq!(db.value(&asked).await, "1", "{}", ran.text());
        sessions.clear().await;
    })
    .await;
}
