//! Events of MySQL and MariaDB.

use super::{count, definition, has_note, imported, next_times, text};
use crate::trust::servers::Server;
use crate::util::{Scratch, connect, query, with_scratch};
use crate::xxl_import::said;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use std::time::Duration;

/// 2026-11-27 00:00 UTC.
const NOW: Millis = Millis(1_795_737_600_000);

/// Names and intervals of events, as they are written and as an INTERVAL of SQL.
const EVERY: [(&str, &str, i64, &str); 11] = [
    ("every_month", "1 MONTH", 1, "MONTH"),
    ("every_5_months", "5 MONTH", 5, "MONTH"),
    ("every_quarter", "1 QUARTER", 3, "MONTH"),
    ("every_year", "1 YEAR", 12, "MONTH"),
    ("every_14_months", "'1-2' YEAR_MONTH", 14, "MONTH"),
    ("every_week", "1 WEEK", 7, "DAY"),
    ("every_3_days", "3 DAY", 3, "DAY"),
    ("every_hour", "1 HOUR", 60, "MINUTE"),
    ("every_7_hours", "7 HOUR", 420, "MINUTE"),
    ("every_90_minutes", "'1:30' HOUR_MINUTE", 90, "MINUTE"),
    ("every_uneven", "'1 02:03:04' DAY_SECOND", 93_784, "SECOND"),
];

/// Several statements on one session, so that its time zone counts.
async fn run(url: &str, statements: &[String]) {
    let mut session = crate::util::session(url).await;
    for sql in statements {
        session.run_statement(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    session.close().await;
}

fn events(starts: &str) -> Vec<String> {
    let event = |(name, every, ..): &(&str, &str, i64, &str)| {
        format!(
            "CREATE EVENT {name} ON SCHEDULE EVERY {every} STARTS '{starts}' ON COMPLETION PRESERVE DO CALL close_day(1, 'x')"
        )
    };
    std::iter::once("SET time_zone = '+08:00'".to_owned()).chain(EVERY.iter().map(event)).collect()
}

/// What the server's own arithmetic gives for the times after [`NOW`], in the zone of the events.
async fn times_of_server(scratch: &Scratch, starts: &str, step: i64, unit: &str) -> Vec<String> {
    let db = connect(&scratch.url).await;
    let sql = format!(
        "SELECT CAST(a AS CHAR) AS a FROM (SELECT CAST('{starts}' AS DATETIME) + INTERVAL ({step} * n) {unit} AS a FROM \
         (SELECT h.d * 1000 + i.d * 100 + j.d * 10 + k.d AS n FROM {ten} h, {ten} i, {ten} j, {ten} k) numbers) times \
         WHERE a > '2026-11-27 08:00:00' ORDER BY a LIMIT 12",
        ten = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
               SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
    );
    let rows = db.query_rows(&sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let found =
        rows.iter().map(|row| row.get_text("a").expect("a time")[..19].to_owned()).collect();
    db.close().await;
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_mysql_fire_when_the_server_says() {
    for starts in ["2026-08-31 02:10:05", "2026-01-30 23:30:00", "2026-11-15 00:00:00"] {
        with_scratch(DialectName::Mysql, async |scratch| {
            run(&scratch.url, &events(starts)).await;
            let folder = tempfile::tempdir().expect("folder");
            let document = imported(folder.path(), &["mysql-events", "--url", &scratch.url]);
            assert_eq!(count(&document, "job")[0], EVERY.len() as u64);
            assert_eq!(count(&document, "schedule")[3], 0, "{document}");
            let defs = definition(folder.path());
            for (name, _, step, unit) in EVERY {
                let wanted = times_of_server(&scratch, starts, step, unit).await;
                assert_eq!(wanted.len(), 12, "{name}");
                assert_eq!(next_times(&defs, name, NOW, 12), wanted, "{name} from {starts}");
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_mysql_become_calls_statements_and_procedures() {
    with_scratch(DialectName::Mysql, async |scratch| {
        let statements = [
            "SET SESSION sql_mode = @@global.sql_mode",
            "CREATE TABLE t (a DATETIME, b VARCHAR(20))",
            "CREATE PROCEDURE close_day(IN n INT, IN b VARCHAR(20)) INSERT INTO t VALUES (NOW(), b)",
            "CREATE EVENT called ON SCHEDULE EVERY 1 DAY COMMENT 'Close the day' DO CALL close_day(1, 'its')",
            "CREATE EVENT stated ON SCHEDULE EVERY 1 DAY DO DELETE FROM t WHERE b = ':x'",
            "CREATE EVENT compound ON SCHEDULE EVERY 1 DAY DO BEGIN DELETE FROM t; INSERT INTO t VALUES (NOW(), 'end'); END",
            "CREATE EVENT off ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM t",
            "CREATE EVENT once ON SCHEDULE AT '2037-03-01 10:00:00' DO DELETE FROM t",
        ];
        run(&scratch.url, &statements.map(str::to_owned)).await;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let document = imported(path, &["mysql-events", "--url", &scratch.url, "--zone", "UTC"]);
        assert_eq!(count(&document, "job"), [5, 4, 1, 0], "{document}");
        assert_eq!(count(&document, "schedule"), [5, 3, 2, 0], "{document}");
        assert!(has_note(&document, &format!("{}.compound", scratch.name), "has to be created first"));
        let yaml = text(path, "out/definition.yaml");
        for line in ["proc_name: close_day", "proc_name: event_compound", "manual: true", "once_at:", "Close the day"] {
            assert!(yaml.contains(line), "{line}\n{yaml}");
        }
        // The file is what the mysql client makes the procedure of; here its statement alone.
        let file = text(path, "out/procedures/compound.sql");
        let start = file.find("CREATE PROCEDURE").expect("a statement");
        let sql = file[start..].split("\n//").next().expect("its end").to_owned();
        run(&scratch.url, &[sql]).await;
        // It runs here: the source's address is in the file, and this server wants no password.
        let (code, out, err) = said(
            path,
            &["--db", "sqlite:ours.db", "run", "out/definition.yaml", "--group", "compound", "--batch-no", "1"],
        );
        assert_eq!(code, 0, "{out}\n{err}");
        let (code, out, err) = said(
            path,
            &["--db", "sqlite:ours.db", "run", "out/definition.yaml", "--group", "called", "--batch-no", "1"],
        );
        assert_eq!(code, 0, "{out}\n{err}");
        let rows = query(&scratch.url, "SELECT b FROM t ORDER BY b").await;
        let found: Vec<Option<String>> = rows.into_iter().flatten().collect();
        assert_eq!(found, [Some("end".to_owned()), Some("its".to_owned())]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_mysql_fires_at_the_times_of_its_schedule() {
    let server = Server::start(DialectName::Mysql).await;
    let url = format!("{}/bank", server.url);
    query(&server.url, "CREATE DATABASE bank").await;
    let statements = [
        "CREATE TABLE fired (at_sec BIGINT)",
        "SET GLOBAL event_scheduler = ON",
        "CREATE EVENT often ON SCHEDULE EVERY 5 SECOND STARTS '2026-01-01 00:00:01' DO INSERT INTO fired VALUES (UNIX_TIMESTAMP())",
    ];
    run(&url, &statements.map(str::to_owned)).await;
    let folder = tempfile::tempdir().expect("folder");
    let document = imported(folder.path(), &["mysql-events", "--url", &url]);
    assert!(!has_note(&document, "", "event_scheduler is"), "{document}");
    let defs = definition(folder.path());
    let mut fired = Vec::new();
    for _ in 0..200 {
        let rows = query(&url, "SELECT at_sec FROM fired ORDER BY at_sec").await;
        fired = rows.into_iter().flatten().flatten().collect();
        if fired.len() >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(fired.len() >= 2, "the event scheduler fires: {fired:?}");
    let trigger = &defs.schedules[0];
    for at in fired {
        let at = Millis(at.parse::<i64>().expect("seconds") * 1_000);
        let anchor = procession::domain::schedule::Anchor::new(at);
        let calendars = procession::domain::calendar::Calendars::default();
        // A busy machine starts it a second or two late; a grid of another phase is further off.
        let next = trigger.timing.next_after(&calendars, at.plus_ms(-2_001), anchor);
        let next = next.expect("it can be asked").map(|found| found.planned);
        assert!(next.is_some_and(|next| next <= at), "{next:?} {at:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_events_of_mysql_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("folder");
    let refused = |args: &[&str]| {
        let (code, _, err) = said(folder.path(), &[&["import"], args, &["--dry-run"]].concat());
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(
        refused(&["mysql-events", "--url", "sqlite:x.db"])
            .contains("mysql://user@host:3306/database")
    );
    assert!(
        refused(&["mysql-events", "--url", "postgres://a@b/c"])
            .contains("mysql://user@host:3306/database")
    );
    let secret = refused(&["mysql-events", "--url", "mysql://a:geheim@b/c"]);
    assert!(secret.contains("--password-file") && !secret.contains("geheim"), "{secret}");
    with_scratch(DialectName::Mysql, async |scratch| {
        assert!(refused(&["mysql-events", "--url", &scratch.url]).contains("GRANT EVENT ON"));
    })
    .await;
}
