//! Sessions that go from body to body: as new, or not at all.

use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, query, session, with_scratch};
use procession::db::MysqlServer;
use procession::db::results::Results;
use procession::db::session::{Arg, Session};
use procession::db::session_lock::Lock;
use procession::db::session_reset::Renewal;
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::job::{ParamMode, ParamType, TransactionMode};
use procession::domain::source::DialectName;
use procession::handler::sessions::SessionPool;
use std::sync::Arc;
use std::time::Duration;

/// Runs bodies one after the other with the same sessions; what is being made as new is so before the next.
async fn after_another(db: &Scratch, texts: &[&str]) -> Vec<Ran> {
    let sessions = Arc::new(SessionPool::new(4));
    let mut all = Vec::new();
    for text in texts {
        let mut bench = Bench::sql(db, text);
        bench.ctx.sessions = sessions.clone();
        bench.task.job.transaction = TransactionMode::Each;
        all.push(bench.run().await);
        sessions.settled().await;
    }
    sessions.clear().await;
    all
}

fn is_kept(ran: &Ran) -> bool {
    ran.text().contains(", kept)")
}

#[tokio::test]
async fn a_body_goes_on_in_the_session_of_the_one_before() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            db.setup(&["CREATE TABLE t (a INT)"]).await;
            let texts = ["SELECT 1", "INSERT INTO t VALUES (1)", "SELECT 2", "SELECT 3"];
            let all = after_another(&db, &texts).await;
            assert!(all.iter().all(|ran| ran.outcome.end == AttemptEnd::Success));
            assert!(!is_kept(&all[0]), "{dialect} {}", all[0].text());
            for ran in &all[1..] {
                assert!(is_kept(ran), "{dialect} {}", ran.text());
            }
            if dialect != DialectName::Sqlite {
                assert_eq!(all[3].session(), all[0].session(), "{dialect}");
            }
        })
        .await;
    }
}

/// One change waits for other writers in short steps, so that it can be stopped; the next body on its
/// session waits as long as on a new one.
#[tokio::test]
async fn sqlite_waits_as_long_as_on_a_new_session() {
    with_scratch(DialectName::Sqlite, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        let sessions = Arc::new(SessionPool::new(4));
        let mut waits = Vec::new();
        for text in
            ["SELECT timeout FROM pragma_busy_timeout", "INSERT INTO t VALUES (1)"].repeat(2)
        {
            let mut bench = Bench::sql(&db, text);
            bench.ctx.sessions = sessions.clone();
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{text}: {}", ran.message());
            sessions.settled().await;
            let rows = ran.outcome.outputs.results.first().map(|set| set.rows[0][0].clone());
            waits.extend(rows.map(|wait| (is_kept(&ran), wait)));
        }
        sessions.clear().await;
        let new = Some("5000".to_owned());
        assert_eq!(waits, [(false, new.clone()), (true, new)]);
    })
    .await;
}

/// MySQL lets a user see the variables of a session only with a right of its own, and without them nobody knows
/// what a body left behind.
#[tokio::test]
async fn a_plain_user_keeps_sessions_on_mysql_with_one_grant() {
    with_scratch(DialectName::Mysql, |db| async move {
        let user = format!("u{}", &db.name[db.name.len() - 20..]);
        db.setup(&[
            &format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'p'"),
            &format!("GRANT ALL ON {}.* TO '{user}'@'%'", db.name),
        ])
        .await;
        let is_mariadb = db.value("SELECT VERSION()").await.contains("MariaDB");
        let run_two = async || {
            let sessions = Arc::new(SessionPool::new(4));
            let mut kept = Vec::new();
            for text in ["SELECT 1", "SELECT 2"] {
                let mut bench = Bench::sql(&db, text);
                bench.ctx.sessions = sessions.clone();
                let url = db.url.replace("root@", &format!("{user}:p@"));
                bench.task.source.as_mut().expect("a source").url = url;
                let ran = bench.run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
                kept.push(is_kept(&ran));
                sessions.settled().await;
            }
            sessions.clear().await;
            kept
        };
        assert_eq!(run_two().await, [false, is_mariadb]);
        if !is_mariadb {
            let grant = "GRANT SELECT ON performance_schema.user_variables_by_thread TO";
            db.setup(&[&format!("{grant} '{user}'@'%'")]).await;
        }
        assert_eq!(run_two().await, [false, true]);
        query(&db.url, &format!("DROP USER '{user}'@'%'")).await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_fails_ends_its_session() {
    for dialect in DialectName::ALL {
        with_scratch(dialect, |db| async move {
            let all = after_another(&db, &["SELECT 1", "SELECT * FROM nowhere", "SELECT 1"]).await;
            assert_eq!(all[1].outcome.end, AttemptEnd::Failed);
            assert!(!is_kept(&all[2]), "{dialect} {}", all[2].text());
        })
        .await;
    }
}

/// What one body leaves on its session, no other finds.
async fn nothing_stays(dialect: DialectName, setup: &[&str], cases: &[(&str, &str, &str)]) {
    with_scratch(dialect, |db| async move {
        db.setup(setup).await;
        for (leaves, asks, as_new) in cases {
            let all = after_another(&db, &["SELECT 1", leaves, asks]).await;
            let [_, left, asked] = &all[..] else { panic!("three bodies") };
            assert_eq!(left.outcome.end, AttemptEnd::Success, "{leaves}: {}", left.message());
            assert_eq!(asked.outcome.end, AttemptEnd::Success, "{asks}: {}", asked.message());
            let found = &asked.outcome.outputs.results[0].rows[0][0];
            assert_eq!(found.as_deref(), Some(*as_new), "{dialect}: {leaves}, then {asks}");
            // A kept one that turns out to be of no use is given up for a second.
            let connected = asked.text().matches("connected to source").count();
            assert_eq!(connected, 1, "{dialect}: {leaves}, then {}", asked.text());
            assert!(!asked.text().contains("waits for"), "{dialect}: {}", asked.text());
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_of_a_body_stays_on_postgres() {
    let cases = [
        ("SET work_mem = '77MB'", "SELECT current_setting('work_mem') = '77MB'", "false"),
        (
            "SET TIME ZONE 'Asia/Tokyo'",
            "SELECT current_setting('TimeZone') = 'Asia/Tokyo'",
            "false",
        ),
        (
            "SELECT set_config('my.x', '1', false)",
            "SELECT coalesce(current_setting('my.x', true), '')",
            "",
        ),
        ("CREATE TEMP TABLE tt (a INT)", "SELECT to_regclass('tt') IS NULL", "true"),
        (
            "PREPARE mine AS SELECT 1",
            "SELECT count(*) FROM pg_prepared_statements WHERE from_sql",
            "0",
        ),
        (
            "SELECT pg_advisory_lock(77)",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND pid = pg_backend_pid()",
            "0",
        ),
        (
            "DEALLOCATE ALL",
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%advisory_lock(%' \
             AND statement NOT LIKE 'SELECT count%'",
            "1",
        ),
        ("LISTEN mine", "SELECT count(*) FROM pg_listening_channels()", "0"),
        ("SET search_path = pg_catalog", "SELECT current_schemas(false)::text", "{public}"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SHOW default_transaction_read_only",
            "off",
        ),
    ];
    nothing_stays(DialectName::Postgres, &[], &cases).await;
}

#[tokio::test]
async fn nothing_of_a_body_stays_on_mysql() {
    let setup = [
        "CREATE PROCEDURE leaves() BEGIN SET SESSION group_concat_max_len = 77; \
         CREATE TEMPORARY TABLE tt (a INT); SET @mine = 3; END",
        "CREATE FUNCTION quietly() RETURNS INT DETERMINISTIC BEGIN SET @mine = 4; RETURN 1; END",
        "CREATE TABLE real_one (a INT)",
    ];
    let cases = [
        ("CALL leaves()", "SELECT @@group_concat_max_len = 77", "0"),
        ("CALL leaves()", "SELECT @mine IS NULL", "1"),
        ("SELECT quietly()", "SELECT @mine IS NULL", "1"),
        ("SELECT 5 INTO @mine", "SELECT @mine IS NULL", "1"),
        ("SELECT @mine := 6", "SELECT @mine IS NULL", "1"),
        ("SET time_zone = '+09:00'", "SELECT @@session.time_zone = '+09:00'", "0"),
        ("SET sql_mode = 'ANSI_QUOTES'", "SELECT @@sql_mode LIKE '%ANSI_QUOTES%'", "0"),
        ("USE information_schema", "SELECT DATABASE() = 'information_schema'", "0"),
        (
            "SELECT GET_LOCK('mine', 0)",
            "SELECT COALESCE(IS_USED_LOCK('mine') = CONNECTION_ID(), 0)",
            "0",
        ),
    ];
    nothing_stays(DialectName::Mysql, &setup, &cases).await;
}

#[tokio::test]
async fn nothing_of_a_body_stays_on_sqlite() {
    let cases = [
        ("CREATE TEMP TABLE tt (a INT)", "SELECT count(*) FROM sqlite_temp_schema", "0"),
        ("PRAGMA foreign_keys = OFF", "SELECT foreign_keys FROM pragma_foreign_keys", "1"),
    ];
    nothing_stays(DialectName::Sqlite, &[], &cases).await;
}

/// The arguments of a CALL, of which one may be a secret, are not there for the next body.
#[tokio::test]
async fn arguments_of_a_call_are_taken_back() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let (setup, asks) = match dialect {
                DialectName::Postgres => (
                    "CREATE PROCEDURE p(a text) LANGUAGE plpgsql AS $$ BEGIN PERFORM a; END $$",
                    "SELECT coalesce(current_setting('procession.p0', true), '') = ''",
                ),
                DialectName::Mysql | DialectName::Sqlite => {
                    ("CREATE PROCEDURE p(IN a TEXT) SELECT 1", "SELECT @procession_p0 IS NULL")
                }
            };
            db.setup(&[setup]).await;
            let sessions = Arc::new(SessionPool::new(4));
            let secret = Some("s3cret");
            let mut call = Bench::proc(&db, "p").param("a", ParamMode::In, ParamType::Text, secret);
            call.ctx.sessions = sessions.clone();
            let called = call.run().await;
            assert_eq!(called.outcome.end, AttemptEnd::Success, "{}", called.message());
            sessions.settled().await;
            let mut next = Bench::sql(&db, asks);
            next.ctx.sessions = sessions.clone();
            let asked = next.run().await;
            assert!(is_kept(&asked), "{dialect} {}", asked.text());
            let found = asked.outcome.outputs.results[0].rows[0][0].clone();
            assert!(matches!(found.as_deref(), Some("1" | "t" | "true")), "{dialect} {found:?}");
            sessions.clear().await;
        })
        .await;
    }
}

/// Leaves it to the next lock to make a session as new, which MariaDB can; MySQL is asked at once.
async fn give_back(session: &mut Session) {
    if session.server() == Some(MysqlServer::MariaDb) {
        assert!(session.put_renewal_off());
    } else {
        assert!(!session.put_renewal_off());
        assert_eq!(session.renew().await, Ok(Renewal::AsNew));
    }
}

/// The lock that makes a session as new is held when it is, and that of the body before is not.
#[tokio::test]
async fn the_lock_that_makes_a_session_as_new_is_held() {
    with_scratch(DialectName::Mysql, |db| async move {
        let (mut kept, mut other) = (session(&db.url).await, session(&db.url).await);
        kept.limit_idle(Duration::from_secs(60)).await.expect("settings");
        let value = |text: &str| Some(Arg::Text(text.to_owned()));
        kept.introduce(Vec::new(), "202407:A", vec![value("1"), value("2")]);
        assert_eq!(kept.try_lock("a").await, Ok(Lock::Gained));
        give_back(&mut kept).await;
        kept.introduce(Vec::new(), "202407:B", vec![value("3")]);
        assert_eq!(kept.try_lock("b").await, Ok(Lock::Gained));
        assert_eq!(other.try_lock("b").await, Ok(Lock::Taken));
        assert_eq!(other.try_lock("a").await, Ok(Lock::Gained));
        let told = "SELECT @procession_p0, COALESCE(@procession_p1, 'none')";
        let told = kept.run_statement(told, &[]).await.expect("asked");
        assert_eq!((told.sets[0].first(0), told.sets[0].first(1)), (Some("3"), Some("none")));
        give_back(&mut kept).await;
        kept.introduce(Vec::new(), "202407:C", Vec::new());
        assert_eq!(kept.try_lock("a").await, Ok(Lock::Taken), "the other one has it");
        kept.run_into("SET @mine = 1", &[], &mut Results::default()).await.expect("set");
        if kept.put_renewal_off() {
            assert_eq!(kept.try_lock("c").await, Ok(Lock::Spent));
        } else {
            assert_eq!(kept.renew().await, Ok(Renewal::Spent));
        }
        kept.close().await;
        other.close().await;
    })
    .await;
}

/// On MariaDB the next lock makes a session as new. One that no body takes is made as new all the same, and
/// gives back what the last one left on it.
#[tokio::test]
async fn what_no_body_takes_is_made_as_new_too() {
    with_scratch(DialectName::Mysql, |db| async move {
        for (leaves, stays) in [
            ("SELECT GET_LOCK('mine', 0)", true),
            ("SELECT GET_LOCK('mine', 0), @mine := 1", false),
        ] {
            let sessions = Arc::new(SessionPool::new(4));
            let run = async |text: &str| {
                let mut bench = Bench::sql(&db, text);
                bench.ctx.sessions = sessions.clone();
                bench.run().await
            };
            let left = run(leaves).await;
            assert_eq!(left.outcome.end, AttemptEnd::Success, "{}", left.message());
            sessions.renew_put_off(Duration::ZERO);
            sessions.settled().await;
            // The server frees it some time after the session was closed.
            db.wait_for("SELECT IS_USED_LOCK('mine') IS NOT NULL", "0").await;
            assert_eq!(is_kept(&run("SELECT 1").await), stays, "{leaves}");
            sessions.clear().await;
        }
    })
    .await;
}

/// Bodies with values leave what is ours prepared, and find no plan of each other's: the same text reads a
/// table whose column has another type by then. So many of them that plans are forgotten in between.
#[tokio::test]
async fn what_bodies_have_prepared_serves_no_other_on_postgres() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)"]).await;
        let sessions = Arc::new(SessionPool::new(4));
        let run = async |text: &str| {
            let mut bench =
                Bench::sql(&db, text).param("a", ParamMode::In, ParamType::Text, Some("7"));
            bench.ctx.sessions = sessions.clone();
            let ran = bench.run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Success, "{text}: {}", ran.message());
            sessions.settled().await;
            let cell = ran.outcome.outputs.results.first().and_then(|set| set.rows[0][0].clone());
            (is_kept(&ran), cell.unwrap_or_default())
        };
        let lock = "SELECT name FROM pg_prepared_statements \
                    WHERE statement LIKE '%advisory_lock(%' AND statement NOT LIKE 'SELECT name%'";
        let count = "SELECT count(*) FROM pg_prepared_statements";
        let first = run(lock).await.1;
        assert!(!first.is_empty());
        let (mut most, mut locks) = (0, Vec::new());
        for ty in ["BIGINT", "TEXT", "NUMERIC", "INT"].repeat(6) {
            let read = "SELECT a FROM t WHERE a::text = :a -- to the end of the line";
            assert_eq!(run(read).await, (true, "7".to_owned()), "{ty}");
            db.setup(&[&format!("ALTER TABLE t ALTER a TYPE {ty} USING a::{ty}")]).await;
            most = most.max(run(count).await.1.parse::<u32>().expect("a count"));
            locks.push(run(lock).await.1);
        }
        locks.dedup();
        sessions.clear().await;
        assert!(most <= 10, "{most} statements are kept");
        // 73 queries, and all are forgotten behind each ninth.
        assert_eq!((locks.first(), locks.len()), (Some(&first), 9), "prepared anew: {locks:?}");
    })
    .await;
}

/// The next body does not open a session while one is being made as new (PostgreSQL) or is left to its lock to
/// be made so (MariaDB), and does when that one turns out to be spent.
#[tokio::test]
async fn a_session_that_is_being_made_as_new_is_waited_for() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |db| async move {
            let sessions = Arc::new(SessionPool::new(4));
            let texts = ["SELECT 1", "SELECT 2", "PREPARE mine FROM 'SELECT 1'", "SELECT 3"];
            let mut kept = Vec::new();
            for text in texts {
                let text = match dialect {
                    DialectName::Postgres => text.replace("FROM 'SELECT 1'", "AS SELECT 1"),
                    DialectName::Mysql | DialectName::Sqlite => text.to_owned(),
                };
                let mut bench = Bench::sql(&db, &text);
                bench.ctx.sessions = sessions.clone();
                bench.task.job.transaction = TransactionMode::Each;
                let ran = bench.run().await;
                assert_eq!(ran.outcome.end, AttemptEnd::Success, "{text}: {}", ran.message());
                kept.push(is_kept(&ran));
            }
            sessions.clear().await;
            assert_eq!(kept, [false, true, true, false], "{dialect}");
        })
        .await;
    }
}
