//! pg_cron and pgAgent: statements, databases and order of their jobs.

use super::keys::columns::{agent_tables, on_server, table};
use super::{KINDS, asked, has_note, job, jobs_that_run, script};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::source::scheduler_tables::SchedulerTables;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::domain::text::lang::Lang;
use crate::import::{ImportRequest, Imported, TableSystem, import_tables, markdown};

fn import(system: TableSystem, tables: &SchedulerTables) -> Imported {
    let made = import_tables(system, tables, &ImportRequest { zone: None, ..asked() }, KINDS);
    made.unwrap_or_else(|error| panic!("{error}"))
}

/// Jobs of each kind.
fn cron_tables() -> SchedulerTables {
    let row = |id: &'static str, schedule: &'static str, command: &'static str| {
        vec![
            ("jobid", id),
            ("schedule", schedule),
            ("command", command),
            ("nodename", "localhost"),
            ("nodeport", "5432"),
            ("database", "bank"),
            ("username", "batch"),
            ("active", "t"),
        ]
    };
    let rows = [
        row("1", "0 2 * * *", "CALL close_day(1)"),
        row("2", "0 12 $ * *", "VACUUM ANALYZE ledger"),
        row("3", "30 seconds", "DELETE FROM a; DELETE FROM b"),
        row("4", "@reboot", "SELECT warm_up()"),
        row("5", "0 3 * * *", "SELECT x::date, ':y' FROM t WHERE z = :z"),
        row("6", "0 4 * * *", "DO $$ BEGIN PERFORM tidy(); COMMIT; END $$"),
    ];
    let rows: Vec<&[(&str, &str)]> = rows.iter().map(Vec::as_slice).collect();
    on_server(
        "postgres://reader@db.bank.example:5432/bank",
        vec![
            table("cron.job", &rows),
            table(
                "information_schema.parameters",
                &[&[
                    ("specific_schema", "public"),
                    ("specific_name", "close_day_77"),
                    ("parameter_name", "n"),
                ]],
            ),
        ],
        &[("cron.timezone", "Asia/Shanghai"), ("is_superuser", "off")],
    )
}

#[test]
fn jobs_of_pg_cron_run_where_and_as_whom_they_ran() {
    let tables = cron_tables();
    let made = import(TableSystem::PgCron, &tables);
    assert_eq!(job(&made, "job_1").proc_name.as_deref(), Some("close_day"));
    let mode = |code: &str| job(&made, code).transaction;
    let modes = ["job_2", "job_3", "job_4", "job_6"].map(mode);
    let wanted =
        [TransactionMode::None, TransactionMode::One, TransactionMode::Each, TransactionMode::None];
    assert_eq!(modes, wanted);
    assert_eq!(made.definition.sources.len(), 1);
    assert_eq!(made.definition.sources[0].url, "postgres://batch@db.bank.example:5432/bank");
    for line in [
        "cron: 0 2 * * *",
        "cron: 0 0 12 L * ?",
        "every_sec: 30",
        "batch_no: time(%Y%m%d-%H%M%S)",
        "Asia/Shanghai",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    assert!(has_note(&made, "job_4", "@reboot"), "{:?}", made.notes);
    assert!(has_note(&made, "job_5", "its SQL has :z"), "{:?}", made.notes);
    assert!(has_note(&made, "", "shows a user their own jobs alone"), "{:?}", made.notes);
    let report = markdown(&made, "pg_cron", Lang::En);
    assert!(
        report.contains("jobs: 6 read = 5 carried over + 0 carried over with changes + 1 left out"),
        "{report}"
    );
    assert!(
        report.contains(
            "schedules: 6 read = 4 carried over + 1 carried over with changes + 1 left out"
        ),
        "{report}"
    );
}

#[test]
fn steps_of_pgagent_follow_one_another() {
    let mut tables = agent_tables();
    let made = import(TableSystem::PgAgent, &tables);
    // The parameters of a procedure in another database are unknown, so its call stays a statement.
    assert_eq!(job(&made, "close_a").sql, Some(SqlText::Same("CALL close_day(1)\n".to_owned())));
    assert_eq!(script(&made, "close_b"), "#!/bin/bash\necho done\n");
    assert_eq!(job(&made, "close_b").interpreter.as_deref(), Some("bash"));
    assert_eq!(job(&made, "close_a").tags, ["class:Routine_Maintenance"]);
    let edges = |made: &Imported| -> Vec<(String, String, EdgeCondition)> {
        let all = made.definition.dependencies.iter();
        all.map(|d| (d.depends_on.to_string(), d.job_code.to_string(), d.when.clone())).collect()
    };
    assert_eq!(
        edges(&made),
        [("close_a".to_owned(), "close_b".to_owned(), EdgeCondition::Success)]
    );
    assert!(made.text.contains("cron: 0 30 2 * * ?"), "{}", made.text);
    assert!(made.text.contains("2026-12-31"), "the exception is a blackout\n{}", made.text);
    assert!(has_note(&made, "UTC", "which no table names"), "{:?}", made.notes);
    let set = |tables: &mut SchedulerTables, table: usize, column: &str, value: &str| {
        tables.tables[table].rows[0].0.insert(column.to_owned(), Some(value.to_owned()));
    };
    // The next run tells the time zone of the times.
    set(&mut tables, 0, "jobnextrun", "2026-11-27 18:30:00+00");
    tables.server.zone = Some("Asia/Shanghai".to_owned());
    let made = import(TableSystem::PgAgent, &tables);
    assert!(made.text.contains("Asia/Shanghai"), "{}", made.text);
    assert!(!has_note(&made, "Asia/Shanghai", "which no table names"), "{:?}", made.notes);
    set(&mut tables, 1, "jstonerror", "i");
    let made = import(TableSystem::PgAgent, &tables);
    assert_eq!(edges(&made)[0].2, EdgeCondition::Done);
    set(&mut tables, 1, "jstcode", "");
    set(&mut tables, 1, "jstenabled", "f");
    let made = import(TableSystem::PgAgent, &tables);
    assert_eq!(edges(&made), []);
    let report = markdown(&made, "pgAgent", Lang::En);
    assert!(
        report.contains("jobs: 2 read = 1 carried over + 0 carried over with changes + 1 left out"),
        "{report}"
    );
}

#[test]
fn a_failure_that_pgagent_ignores_is_one_of_a_step_that_ran() {
    let import = |on_error: &'static str| {
        let mut tables = agent_tables();
        let step = tables.tables[1].rows[0].clone();
        let steps = [("1", "a", "f"), ("2", "b", on_error), ("3", "c", "f")];
        tables.tables[1].rows = steps
            .map(|(id, name, on_error)| {
                let mut row = step.clone();
                for (column, value) in
                    [("jstid", id), ("jstname", name), ("jstonerror", on_error), ("jstkind", "s")]
                {
                    row.0.insert(column.to_owned(), Some(value.to_owned()));
                }
                row
            })
            .to_vec();
        import(TableSystem::PgAgent, &tables)
    };
    for on_error in ["s", "i"] {
        let made = import(on_error);
        // There: a fails, the job ends with it; b fails, c runs; c fails, the job ends.
        assert_eq!(jobs_that_run(&made, &["close_a"]), ["close_a"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["close_b"]), ["close_a", "close_b", "close_c"]);
        assert_eq!(jobs_that_run(&made, &["close_c"]), ["close_a", "close_b", "close_c"]);
    }
    assert_eq!(jobs_that_run(&import("f"), &["close_b"]), ["close_a", "close_b"]);
}
