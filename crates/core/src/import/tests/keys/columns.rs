//! The columns of schedulers whose tables are read: each has an effect, and an unknown one is reported.

use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTable, SchedulerTables,
};
use crate::import::keys::KnownKey;
use crate::import::pg_timetable::tables as chain_tables;
use crate::import::tests::{KINDS, asked};
use crate::import::{TableSystem, import_tables, mysql_events, pg_cron, pgagent};
use std::collections::BTreeSet;

/// A column and its value.
pub(in crate::import::tests) type Sample<'a> = (&'a str, &'a str);

/// A row of one table, of which every column is tested.
#[derive(Clone, Copy)]
pub(super) struct ColumnCase<'a> {
    pub(super) system: TableSystem,
    /// All tables; the first row of the tested table is the subject.
    pub(super) tables: &'a SchedulerTables,
    pub(super) table: &'a str,
    pub(super) known: &'a [KnownKey],
    /// A value for each column, different from the current one.
    pub(super) samples: &'a [Sample<'a>],
}

impl ColumnCase<'_> {
    fn heard(&self, more: Option<&Sample<'_>>) -> String {
        let mut tables = self.tables.clone();
        let table = tables.tables.iter_mut().find(|table| table.name == self.table);
        let row = table
            .and_then(|table| table.rows.first_mut())
            .unwrap_or_else(|| panic!("no row in {}", self.table));
        if let Some((column, value)) = more {
            row.0.insert((*column).to_owned(), Some((*value).to_owned()));
        }
        match import_tables(self.system, &tables, &asked(), KINDS) {
            Ok(made) => format!("{}\n{:?}\n{:?}", made.text, made.notes, made.files),
            Err(error) => format!("refused: {error}"),
        }
    }

    pub(super) fn assert_each_column_is_heard(&self) {
        let known: BTreeSet<&str> = self.known.iter().map(|known| known.name).collect();
        let tried: BTreeSet<&str> = self.samples.iter().map(|(column, _)| *column).collect();
        assert_eq!(known, tried, "each known column has a sample, and no other");
        let before = self.heard(None);
        assert!(!before.starts_with("refused"), "{before}");
        for sample in self.samples {
            assert_ne!(self.heard(Some(sample)), before, "{}: {sample:?} is ignored", self.table);
        }
        let unknown = self.heard(Some(&("zz_unknown", "1")));
        assert!(unknown.contains("zz_unknown"), "an unknown column is ignored\n{unknown}");
    }
}

/// One table with its rows.
pub(in crate::import::tests) fn table(name: &str, rows: &[&[Sample<'_>]]) -> SchedulerTable {
    let rows: Vec<SchedulerRow> =
        rows.iter().map(|pairs| SchedulerRow::from_pairs(pairs)).collect();
    let columns = rows.iter().flat_map(|row| row.0.keys().cloned()).collect::<BTreeSet<_>>();
    SchedulerTable { name: name.to_owned(), columns: columns.into_iter().collect(), rows }
}

/// Tables on a server, with its settings.
pub(in crate::import::tests) fn on_server(
    url: &str,
    tables: Vec<SchedulerTable>,
    settings: &[Sample<'_>],
) -> SchedulerTables {
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let server =
        SchedulerServer { url: Some(url.to_owned()), settings, ..SchedulerServer::default() };
    SchedulerTables { tables, server }
}

/// A daily event.
fn event_tables() -> SchedulerTables {
    on_server(
        "mysql://reader@db.bank.example:3306/bank",
        vec![table(
            "information_schema.EVENTS",
            &[&[
                ("event_schema", "bank"),
                ("event_name", "close_day"),
                ("definer", "root@localhost"),
                ("time_zone", "SYSTEM"),
                ("event_definition", "CALL close_day(1)"),
                ("event_type", "RECURRING"),
                ("interval_value", "1"),
                ("interval_field", "DAY"),
                ("sql_mode", "STRICT_TRANS_TABLES"),
                ("starts", "2026-01-01 02:00:00"),
                ("status", "ENABLED"),
                ("on_completion", "NOT PRESERVE"),
                ("execute_at", "2027-01-01 00:00:00"),
            ]],
        )],
        &[("sql_mode", "STRICT_TRANS_TABLES"), ("event_scheduler", "ON")],
    )
}

#[test]
fn columns_of_an_event() {
    let tables = event_tables();
    let case = ColumnCase {
        system: TableSystem::MysqlEvents,
        tables: &tables,
        table: "information_schema.EVENTS",
        known: mysql_events::COLUMNS,
        samples: &[
            ("event_catalog", "def"),
            ("event_schema", "ledger"),
            ("event_name", "open_day"),
            ("definer", "batch@%"),
            ("time_zone", "Europe/Berlin"),
            ("event_body", "SQL"),
            ("event_definition", "DELETE FROM t"),
            ("event_type", "ONE TIME"),
            ("interval_value", "2"),
            ("interval_field", "MONTH"),
            ("sql_mode", "ANSI"),
            ("starts", "2026-01-01 03:00:00"),
            ("ends", "2027-01-01 03:00:00"),
            ("status", "DISABLED"),
            ("event_comment", "Close the day"),
            ("created", "2020-01-01 00:00:00"),
            ("last_altered", "2020-01-01 00:00:00"),
            ("last_executed", "2020-01-01 00:00:00"),
            ("originator", "1"),
            ("character_set_client", "utf8mb4"),
            ("collation_connection", "utf8mb4_bin"),
            ("database_collation", "utf8mb4_bin"),
        ],
    };
    // These two columns matter for an event that ends within a day.
    let of_once = [("on_completion", "PRESERVE"), ("execute_at", "2027-06-01 00:00:00")];
    let mut once = tables.clone();
    once.tables[0].rows[0].0.insert("event_type".to_owned(), Some("ONE TIME".to_owned()));
    let once = ColumnCase { tables: &once, ..case };
    for sample in &of_once {
        assert_ne!(once.heard(Some(sample)), once.heard(None), "{sample:?} is ignored");
    }
    let is_of_once = |known: &&KnownKey| of_once.iter().any(|(name, _)| *name == known.name);
    let others: Vec<KnownKey> =
        mysql_events::COLUMNS.iter().filter(|known| !is_of_once(known)).copied().collect();
    ColumnCase { known: &others, ..case }.assert_each_column_is_heard();
}

#[test]
fn columns_of_a_job_of_pg_cron() {
    let tables = on_server(
        "postgres://reader@db.bank.example:5432/postgres",
        vec![table(
            "cron.job",
            &[&[
                ("jobid", "7"),
                ("schedule", "0 2 * * *"),
                ("command", "CALL close_day(1)"),
                ("nodename", "localhost"),
                ("nodeport", "5432"),
                ("database", "bank"),
                ("username", "batch"),
                ("active", "t"),
            ]],
        )],
        &[("cron.timezone", "GMT")],
    );
    let case = ColumnCase {
        system: TableSystem::PgCron,
        tables: &tables,
        table: "cron.job",
        known: pg_cron::COLUMNS,
        samples: &[
            ("jobid", "8"),
            ("schedule", "0 3 * * *"),
            ("command", "VACUUM"),
            ("nodename", "worker.bank.example"),
            ("nodeport", "5433"),
            ("database", "ledger"),
            ("username", "postgres"),
            ("active", "f"),
            ("jobname", "close_day"),
        ],
    };
    // The port matters only on another node: for this one, the URL contains it.
    let mut away = tables.clone();
    let host = Some("worker.bank.example".to_owned());
    away.tables[0].rows[0].0.insert("nodename".to_owned(), host);
    let of_node = |name: &str| matches!(name, "nodeport" | "nodename");
    for sample in case.samples.iter().filter(|(name, _)| *name == "nodeport") {
        let case = ColumnCase { tables: &away, ..case };
        assert_ne!(case.heard(Some(sample)), case.heard(None), "{sample:?} is ignored");
    }
    assert_ne!(case.heard(Some(&("nodename", "worker.bank.example"))), case.heard(None));
    let known: Vec<KnownKey> =
        pg_cron::COLUMNS.iter().filter(|known| !of_node(known.name)).copied().collect();
    let samples: Vec<Sample<'_>> =
        case.samples.iter().filter(|(name, _)| !of_node(name)).copied().collect();
    ColumnCase { known: &known, samples: &samples, ..case }.assert_each_column_is_heard();
}

fn bits(count: usize, set: &[usize]) -> String {
    let bit = |at: usize| if set.contains(&at) { "t" } else { "f" };
    format!("{{{}}}", (0..count).map(bit).collect::<Vec<_>>().join(","))
}

/// A job of pgAgent with two steps, a schedule and an exception.
pub(in crate::import::tests) fn agent_tables() -> SchedulerTables {
    let (minutes, hours, none7, none32, none12) =
        (bits(60, &[30]), bits(24, &[2]), bits(7, &[]), bits(32, &[]), bits(12, &[]));
    on_server(
        "postgres://reader@db.bank.example:5432/postgres",
        vec![
            table(
                "pgagent.pga_job",
                &[&[("jobid", "1"), ("jobjclid", "1"), ("jobname", "close"), ("jobenabled", "t")]],
            ),
            table(
                "pgagent.pga_jobstep",
                &[
                    &[
                        ("jstid", "1"),
                        ("jstjobid", "1"),
                        ("jstname", "a"),
                        ("jstenabled", "t"),
                        ("jstkind", "s"),
                        ("jstcode", "CALL close_day(1)"),
                        ("jstdbname", "bank"),
                        ("jstonerror", "f"),
                    ],
                    &[
                        ("jstid", "2"),
                        ("jstjobid", "1"),
                        ("jstname", "b"),
                        ("jstenabled", "t"),
                        ("jstkind", "b"),
                        ("jstcode", "#!/bin/bash\necho done\n"),
                        ("jstonerror", "f"),
                    ],
                ],
            ),
            table(
                "pgagent.pga_schedule",
                &[&[
                    ("jscid", "1"),
                    ("jscjobid", "1"),
                    ("jscname", "nightly"),
                    ("jscenabled", "t"),
                    ("jscstart", "2026-01-01 00:00:00+00"),
                    ("jscminutes", &minutes),
                    ("jschours", &hours),
                    ("jscweekdays", &none7),
                    ("jscmonthdays", &none32),
                    ("jscmonths", &none12),
                ]],
            ),
            table("pgagent.pga_exception", &[&[("jexscid", "1"), ("jexdate", "2026-12-31")]]),
            table(
                "pgagent.pga_jobclass",
                &[
                    &[("jclid", "1"), ("jclname", "Routine Maintenance")],
                    &[("jclid", "2"), ("jclname", "Data Import")],
                ],
            ),
        ],
        &[],
    )
}

fn assert_columns_of_agent(
    tables: &SchedulerTables,
    table: &str,
    known: &[KnownKey],
    samples: &[Sample<'_>],
) {
    ColumnCase { system: TableSystem::PgAgent, tables, table, known, samples }
        .assert_each_column_is_heard();
}

#[test]
fn columns_of_jobs_and_steps_of_pgagent() {
    let tables = agent_tables();
    assert_columns_of_agent(
        &tables,
        "pgagent.pga_job",
        pgagent::JOB_COLUMNS,
        &[
            ("jobid", "2"),
            ("jobjclid", "2"),
            ("jobname", "open"),
            ("jobdesc", "Close the day"),
            ("jobhostagent", "host1"),
            ("jobenabled", "f"),
            ("jobcreated", "2020-01-01"),
            ("jobchanged", "2020-01-01"),
            ("jobagentid", "9"),
            ("jobnextrun", "2026-11-28 03:00:00+08"),
            ("joblastrun", "2020-01-01"),
        ],
    );
    assert_columns_of_agent(
        &tables,
        "pgagent.pga_jobstep",
        pgagent::STEP_COLUMNS,
        &[
            ("jstid", "3"),
            ("jstjobid", "2"),
            ("jstname", "c"),
            ("jstdesc", "First"),
            ("jstenabled", "f"),
            ("jstkind", "x"),
            ("jstcode", "VACUUM"),
            ("jstconnstr", "host=db2 dbname=gl"),
            ("jstdbname", "ledger"),
            ("jstonerror", "i"),
            ("jscnextrun", "2020-01-01"),
        ],
    );
}

#[test]
fn columns_of_schedules_of_pgagent() {
    let tables = agent_tables();
    let (three, all_week) = (bits(24, &[3]), bits(7, &[1]));
    let (first, january, zero) = (bits(32, &[0]), bits(12, &[0]), bits(60, &[0]));
    assert_columns_of_agent(
        &tables,
        "pgagent.pga_schedule",
        pgagent::SCHEDULE_COLUMNS,
        &[
            ("jscid", "2"),
            ("jscjobid", "2"),
            ("jscname", "weekly"),
            ("jscdesc", "At night"),
            ("jscenabled", "f"),
            ("jscstart", "2027-01-01 00:00:00+00"),
            ("jscend", "2027-01-01 00:00:00+00"),
            ("jscminutes", &zero),
            ("jschours", &three),
            ("jscweekdays", &all_week),
            ("jscmonthdays", &first),
            ("jscmonths", &january),
        ],
    );
    assert_columns_of_agent(
        &tables,
        "pgagent.pga_exception",
        pgagent::EXCEPTION_COLUMNS,
        &[("jexid", "2"), ("jexscid", "2"), ("jexdate", "2027-12-31"), ("jextime", "02:30:00")],
    );
}

/// A chain of pg_timetable with two tasks.
fn timetable_tables() -> SchedulerTables {
    let mut tables = on_server(
        "postgres://reader@db.bank.example:5432/bank",
        vec![
            table(
                "timetable.chain",
                &[
                    &[
                        ("chain_id", "1"),
                        ("chain_name", "close"),
                        ("run_at", "30 2 * * *"),
                        ("live", "true"),
                        ("run_at_time_zone", "Europe/Berlin"),
                    ],
                    &[("chain_id", "2"), ("chain_name", "idle")],
                ],
            ),
            table(
                "timetable.task",
                &[
                    &[
                        ("task_id", "1"),
                        ("chain_id", "1"),
                        ("task_order", "10"),
                        ("task_name", "load"),
                        ("kind", "SQL"),
                        ("command", "SELECT load($1)"),
                        ("autonomous", "false"),
                        ("ignore_error", "false"),
                    ],
                    &[
                        ("task_id", "2"),
                        ("chain_id", "1"),
                        ("task_order", "20"),
                        ("task_name", "say"),
                        ("kind", "PROGRAM"),
                        ("command", "echo"),
                    ],
                    &[
                        ("task_id", "3"),
                        ("task_order", "5"),
                        ("kind", "SQL"),
                        ("command", "SELECT 3"),
                    ],
                ],
            ),
            table(
                "timetable.parameter",
                &[&[("task_id", "1"), ("order_id", "1"), ("value", "[\"x\"]")]],
            ),
        ],
        &[],
    );
    tables.server.zone = Some("Asia/Tokyo".to_owned());
    tables
}

#[test]
fn columns_of_pg_timetable() {
    let tables = timetable_tables();
    let assert = |table: &str, known: &[KnownKey], samples: &[Sample<'_>]| {
        ColumnCase { system: TableSystem::PgTimetable, tables: &tables, table, known, samples }
            .assert_each_column_is_heard();
    };
    let zoned: Vec<KnownKey> = chain_tables::CHAIN_COLUMNS
        .iter()
        .filter(|known| known.name != "run_at_time_zone")
        .copied()
        .collect();
    assert(
        "timetable.chain",
        &zoned,
        &[
            ("chain_id", "7"),
            ("chain_name", "open"),
            ("run_at", "@every 5 minutes"),
            ("max_instances", "1"),
            ("timeout", "60000"),
            ("live", "false"),
            ("self_destruct", "true"),
            ("exclusive_execution", "true"),
            ("client_name", "worker1"),
            ("on_error", "SELECT 1"),
        ],
    );
    assert(
        "timetable.task",
        chain_tables::TASK_COLUMNS,
        &[
            ("task_id", "7"),
            ("chain_id", "2"),
            ("task_order", "30"),
            ("task_name", "unload"),
            ("kind", "BUILTIN"),
            ("command", "SELECT 1"),
            ("run_as", "batch"),
            ("database_connection", "host=db2 dbname=gl"),
            ("ignore_error", "true"),
            ("autonomous", "true"),
            ("timeout", "60000"),
        ],
    );
    assert("timetable.parameter", &chain_tables::PARAMETER_COLUMNS[..1], &[("task_id", "2")]);
    assert("timetable.parameter", &chain_tables::PARAMETER_COLUMNS[2..], &[("value", "[\"y\"]")]);
}

#[test]
fn chains_are_read_in_order_and_in_their_own_zone() {
    let mut tables = timetable_tables();
    let import = |tables: &SchedulerTables| {
        let asked = crate::import::ImportRequest { zone: None, ..asked() };
        import_tables(TableSystem::PgTimetable, tables, &asked, KINDS).map_err(|e| e.to_string())
    };
    let made = import(&tables).unwrap_or_else(|error| panic!("{error}"));
    assert!(made.text.contains("Europe/Berlin"), "{}", made.text);
    let edges: Vec<String> = made
        .definition
        .dependencies
        .iter()
        .map(|d| format!("{}>{}", d.depends_on, d.job_code))
        .collect();
    assert_eq!(edges, ["load>say"]);
    assert!(made.text.contains("SELECT load(:p1)"), "{}", made.text);
    let lines: Vec<String> =
        made.item_counts().iter().map(|c| c.line(crate::domain::text::lang::Lang::En)).collect();
    assert_eq!(
        lines[0],
        "jobs: 3 read = 2 carried over + 0 carried over with changes + 1 left out"
    );
    assert_eq!(
        lines[1],
        "schedules: 2 read = 1 carried over + 0 carried over with changes + 1 left out"
    );
    // A release without time zones of its own uses the server's.
    tables.tables[0].columns.retain(|column| column != "run_at_time_zone");
    for row in &mut tables.tables[0].rows {
        row.0.remove("run_at_time_zone");
    }
    let made = import(&tables).unwrap_or_else(|error| panic!("{error}"));
    assert!(made.text.contains("Asia/Tokyo"), "{}", made.text);
    tables.tables.push(table("timetable.command", &[]));
    assert!(import(&tables).is_err_and(|error| error.contains("before 4.0")));
}
