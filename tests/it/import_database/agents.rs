//! pg_cron, pgAgent and pg_timetable's tables, on PostgreSQL.

use super::{count, definition, has_note, imported, next_times, text};
use crate::trust::servers::{Server, Stop};
use crate::util::{query, with_scratch};
use crate::xxl_import::said;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use std::time::Duration;

/// A server of this test alone with the extension pg_cron, which only a server that loads it at its start has.
async fn server_with_cron() -> (Server, String) {
    let mut server = Server::start(DialectName::Postgres).await;
    let url = format!("{}/postgres", server.url);
    let is_there =
        "SELECT count(*) FROM pg_available_extensions WHERE name IN ('pg_cron', 'pgagent')";
    let found = query(&url, is_there).await;
    assert_eq!(
        found[0][0].as_deref(),
        Some("2"),
        "pg_cron or pgAgent is missing; run scripts/test-schedulers.sh"
    );
    for sql in [
        "ALTER SYSTEM SET shared_preload_libraries = 'pg_cron'",
        "ALTER SYSTEM SET log_timezone = 'Asia/Shanghai'",
        "ALTER SYSTEM SET timezone = 'Asia/Shanghai'",
    ] {
        query(&url, sql).await;
    }
    server.stop(Stop::Orderly).await;
    server.start_again().await;
    (server, url)
}

async fn run(url: &str, statements: &[&str]) {
    for sql in statements {
        query(url, sql).await;
    }
}

/// When pg_cron started a job for the first time, in UTC. A run has a row before it has a time.
async fn first_start(url: &str) -> String {
    let started = "SELECT to_char(date_trunc('second', start_time AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS') \
                   FROM cron.job_run_details WHERE start_time IS NOT NULL ORDER BY runid LIMIT 1";
    let mut first = Vec::new();
    for _ in 0..900 {
        first = query(url, started).await;
        if !first.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    first.first().and_then(|row| row[0].clone()).expect("pg_cron starts a job within a minute")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_the_real_pg_cron_on_postgres() {
    let (_server, url) = server_with_cron().await;
    run(
        &url,
        &[
            "CREATE EXTENSION pg_cron",
            "CREATE TABLE fired (at TIMESTAMPTZ)",
            "CREATE PROCEDURE close_day(n INT) LANGUAGE SQL AS $$ INSERT INTO fired VALUES (now()) $$",
            "SELECT cron.schedule('every minute', '* * * * *', 'INSERT INTO fired VALUES (now())')",
            "SELECT cron.schedule('close', '30 2 1,15 * 1', 'CALL close_day(7)')",
            "SELECT cron.schedule('0 3 * * sun', 'VACUUM fired')",
            "SELECT cron.schedule('start', '@reboot', 'SELECT 1')",
            "UPDATE cron.job SET active = false WHERE jobname = 'close'",
        ],
    )
    .await;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let document = imported(path, &["pg-cron", "--url", &url]);
    assert_eq!(count(&document, "job"), [4, 4, 0, 0], "{document}");
    assert_eq!(count(&document, "schedule"), [4, 1, 2, 1], "{document}");
    assert!(has_note(&document, "start", "@reboot"));
    let yaml = text(path, "out/definition.yaml");
    for line in ["proc_name: close_day", "transaction: none", "cron: 0 3 * * sun", "manual: true"] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
    let (code, out, err) = said(
        path,
        &[
            "--db",
            "sqlite:ours.db",
            "run",
            "out/definition.yaml",
            "--group",
            "close",
            "--batch-no",
            "1",
        ],
    );
    assert_eq!(code, 0, "{out}\n{err}");
    assert_eq!(query(&url, "SELECT count(*) FROM fired").await[0][0].as_deref(), Some("1"));
    // What pg_cron itself starts is a time of the schedule: the begin of a minute.
    let first = first_start(&url).await;
    let at = chrono::NaiveDateTime::parse_from_str(&first, "%Y-%m-%d %H:%M:%S").expect("a time");
    let minute = at.and_utc().timestamp_millis() / 60_000 * 60_000;
    let next = next_times(&definition(path), "every_minute", Millis(minute - 1), 1);
    assert_eq!(next[0][..16], first[..16], "{next:?} {first}");
    assert!(
        at.and_utc().timestamp_millis() - minute < 10_000,
        "it starts at the begin of the minute: {first}"
    );
}

/// Arrays of a schedule: places that are set of minutes, hours, weekdays, days of the month (32 is the last) and months,
/// counted from 1. Of day 29 of February pgAgent's own function fails in other years.
const SCHEDULES: [(&str, [&[usize]; 5]); 7] = [
    ("daily", [&[31], &[3], &[], &[], &[]]),
    ("quarters", [&[1, 16, 31, 46], &[], &[], &[], &[]]),
    ("weekdays", [&[1], &[19], &[2, 3, 4, 5, 6], &[], &[]]),
    ("month_end", [&[1], &[24], &[], &[32], &[]]),
    ("first_and_15th", [&[11], &[3], &[], &[1, 15], &[]]),
    ("mondays_that_are_firsts", [&[1], &[1], &[2], &[1, 2, 3, 4, 5, 6, 7], &[]]),
    ("quarter_end", [&[1], &[6], &[], &[32], &[3, 6, 9, 12]]),
];

fn array(size: usize, set: &[usize]) -> String {
    let bit = |at: usize| if set.contains(&at) { "t" } else { "f" };
    format!("'{{{}}}'", (1..=size).map(bit).collect::<Vec<_>>().join(","))
}

/// A job with two steps for each of the schedules, and two exceptions.
async fn add_jobs_of_agent(url: &str) {
    for (at, (name, [minutes, hours, weekdays, monthdays, months])) in SCHEDULES.iter().enumerate()
    {
        let id = at + 1;
        let arrays = [
            array(60, minutes),
            array(24, hours),
            array(7, weekdays),
            array(32, monthdays),
            array(12, months),
        ];
        let arrays = arrays.join(", ");
        run(
            url,
            &[
                &format!("INSERT INTO pgagent.pga_job (jobid, jobjclid, jobname) VALUES ({id}, 1, '{name}')"),
                &format!(
                    "INSERT INTO pgagent.pga_jobstep (jstjobid, jstname, jstkind, jstcode, jstdbname, jstonerror) VALUES \
                     ({id}, '1 load', 's', 'CALL load_day(1)', 'postgres', 'f')"
                ),
                &format!(
                    "INSERT INTO pgagent.pga_jobstep (jstjobid, jstname, jstkind, jstcode, jstonerror) VALUES \
                     ({id}, '2 say', 'b', E'#!/bin/sh\\necho done\\n', 'i')"
                ),
                &format!(
                    "SET timezone = 'Asia/Shanghai'; INSERT INTO pgagent.pga_schedule (jscjobid, jscname, jscstart, jscminutes, \
                     jschours, jscweekdays, jscmonthdays, jscmonths) VALUES ({id}, 's', '2026-01-01', {arrays})"
                ),
            ],
        )
        .await;
    }
    run(
        url,
        &[
            "SET timezone = 'Asia/Shanghai'; INSERT INTO pgagent.pga_exception (jexscid, jexdate, jextime) SELECT jscid, current_date + 1, NULL FROM \
             pgagent.pga_schedule WHERE jscjobid = 1",
            "SET timezone = 'Asia/Shanghai'; INSERT INTO pgagent.pga_exception (jexscid, jexdate, jextime) SELECT jscid, NULL, '12:15' FROM \
             pgagent.pga_schedule WHERE jscjobid = 2",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_of_the_real_pgagent_on_postgres() {
    let (_server, url) = server_with_cron().await;
    run(
        &url,
        &[
            "CREATE EXTENSION pgagent",
            "ALTER DATABASE postgres SET timezone = 'Asia/Shanghai'",
            "CREATE TABLE done (step TEXT)",
            "CREATE PROCEDURE load_day(n INT) LANGUAGE SQL AS $$ INSERT INTO done VALUES ('load') $$",
        ],
    )
    .await;
    add_jobs_of_agent(&url).await;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let document = imported(path, &["pgagent", "--url", &url]);
    let jobs = SCHEDULES.len() as u64;
    assert_eq!(count(&document, "job")[0], 2 * jobs, "{document}");
    assert_eq!(count(&document, "schedule"), [jobs, jobs, 0, 0], "{document}");
    assert!(
        !has_note(&document, "Asia/Shanghai", "which no table names"),
        "the next runs say the zone: {document}"
    );
    let defs = definition(path);
    for (at, (name, _)) in SCHEDULES.iter().enumerate() {
        let wanted = next_of_agent(&url, at + 1).await;
        let now =
            query(&url, "SELECT (extract(epoch FROM date_trunc('minute', now())) * 1000)::bigint")
                .await;
        let now =
            Millis(now[0][0].as_deref().and_then(|text| text.parse().ok()).expect("a moment"));
        // pgAgent looks from the next minute on.
        let found = next_times(&defs, name, now.plus_ms(59_999), wanted.len());
        assert_eq!(found, wanted, "{name}");
    }
    let (code, out, err) = said(
        path,
        &[
            "--db",
            "sqlite:ours.db",
            "run",
            "out/definition.yaml",
            "--group",
            "daily",
            "--batch-no",
            "1",
        ],
    );
    assert_eq!(code, 0, "{out}\n{err}");
    assert_eq!(query(&url, "SELECT count(*) FROM done").await[0][0].as_deref(), Some("1"));
}

/// The next times by pgAgent's own function, each from the one before it.
async fn next_of_agent(url: &str, job: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for _ in 0..6 {
        let start = found.last().map_or_else(
            || "jscstart".to_owned(),
            |last| format!("'{last}'::timestamp + interval '1 minute'"),
        );
        let sql = format!(
            "SET timezone = 'Asia/Shanghai'; SELECT to_char(pgagent.pga_next_schedule(jscid, ({start})::timestamptz, jscend, jscminutes, jschours, \
             jscweekdays, jscmonthdays, jscmonths), 'YYYY-MM-DD HH24:MI:SS') FROM pgagent.pga_schedule WHERE jscjobid = {job}"
        );
        let rows = query(url, &sql).await;
        found.extend(rows.into_iter().flatten().flatten());
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chains_of_pg_timetable_come_from_tables_on_postgres() {
    with_scratch(DialectName::Postgres, async |scratch| {
        run(
            &scratch.url,
            &[
                "CREATE SCHEMA timetable",
                "CREATE TYPE timetable.command_kind AS ENUM ('SQL', 'PROGRAM', 'BUILTIN')",
                "CREATE TABLE timetable.chain (chain_id BIGSERIAL PRIMARY KEY, chain_name TEXT NOT NULL UNIQUE, run_at TEXT, \
                 max_instances INTEGER, timeout INTEGER DEFAULT 0, live BOOLEAN DEFAULT FALSE, self_destruct BOOLEAN DEFAULT FALSE, \
                 exclusive_execution BOOLEAN DEFAULT FALSE, client_name TEXT, on_error TEXT)",
                "CREATE TABLE timetable.task (task_id BIGSERIAL PRIMARY KEY, chain_id BIGINT, task_order DOUBLE PRECISION NOT NULL, \
                 task_name TEXT, kind timetable.command_kind NOT NULL DEFAULT 'SQL', command TEXT NOT NULL, run_as TEXT, \
                 database_connection TEXT, ignore_error BOOLEAN NOT NULL DEFAULT FALSE, autonomous BOOLEAN NOT NULL DEFAULT FALSE, \
                 timeout INTEGER DEFAULT 0)",
                "CREATE TABLE timetable.parameter (task_id BIGINT, order_id INTEGER, value JSONB, PRIMARY KEY (task_id, order_id))",
                "INSERT INTO timetable.chain (chain_name, run_at, live, timeout) VALUES ('close', '30 2 * * *', true, 60000)",
                "INSERT INTO timetable.chain (chain_name, run_at) VALUES ('often', '@every 5 minutes')",
                "INSERT INTO timetable.task (chain_id, task_order, task_name, command) VALUES (1, 20, 'post', 'SELECT 2'), \
                 (1, 10, 'load', 'SELECT $1::text'), (2, 1, 'tick', 'SELECT 3')",
                "INSERT INTO timetable.parameter VALUES (2, 1, '[\"月末\"]'), (2, 2, '[\"b\"]')",
            ],
        )
        .await;
        let folder = tempfile::tempdir().expect("folder");
        let document = imported(folder.path(), &["pg-timetable", "--url", &scratch.url, "--zone", "Asia/Shanghai"]);
        assert_eq!(count(&document, "job"), [3, 3, 0, 0], "{document}");
        assert_eq!(count(&document, "schedule"), [2, 1, 1, 0], "{document}");
        let yaml = text(folder.path(), "out/definition.yaml");
        for line in ["cron: 30 2 * * *", "batch_timeout_sec: 60", "SELECT :p1::text;", "SELECT :p2::text", "value: 月末"] {
            assert!(yaml.contains(line), "{line}\n{yaml}");
        }
        let defs = definition(folder.path());
        let edges: Vec<String> =
            defs.dependencies.iter().map(|edge| format!("{}>{}", edge.depends_on, edge.job_code)).collect();
        assert_eq!(edges, ["load>post"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_tables_is_refused_with_a_sentence_on_postgres() {
    let folder = tempfile::tempdir().expect("folder");
    with_scratch(DialectName::Postgres, async |scratch| {
        for kind in ["pg-cron", "pgagent", "pg-timetable"] {
            let (code, _, err) =
                said(folder.path(), &["import", kind, "--url", &scratch.url, "--dry-run"]);
            assert!(code == 2 && err.contains("there is no table"), "{kind}: {code} {err}");
        }
    })
    .await;
}
