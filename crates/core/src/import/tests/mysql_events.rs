//! Events of MySQL and MariaDB: what they run, and when.

use super::keys::columns::{on_server, table};
use super::{KINDS, asked, has_note, job};
use crate::domain::source::scheduler_tables::SchedulerTables;
use crate::domain::source::sql_text::SqlText;
use crate::domain::text::lang::Lang;
use crate::import::{ImportRequest, Imported, TableSystem, import_tables, markdown};
use chrono_tz::Tz;

type Pairs<'a> = &'a [(&'a str, &'a str)];

const DAILY: Pairs<'_> = &[
    ("event_schema", "bank"),
    ("event_type", "RECURRING"),
    ("interval_value", "1"),
    ("interval_field", "DAY"),
    ("starts", "2026-01-01 02:00:00"),
    ("status", "ENABLED"),
    ("on_completion", "PRESERVE"),
    ("time_zone", "Asia/Shanghai"),
];

/// The called procedure, as the server describes it.
const PARAMETERS: &[Pairs<'_>] = &[
    &[("specific_schema", "bank"), ("specific_name", "close_day"), ("parameter_name", "n")],
    &[("specific_schema", "bank"), ("specific_name", "close_day"), ("parameter_name", "word")],
];

fn tables(events: &[Pairs<'_>]) -> SchedulerTables {
    let rows: Vec<Vec<(&str, &str)>> =
        events.iter().map(|event| DAILY.iter().chain(*event).copied().collect()).collect();
    let rows: Vec<Pairs<'_>> = rows.iter().map(Vec::as_slice).collect();
    on_server(
        "mysql://reader@db.bank.example:3306/bank",
        vec![
            table("information_schema.EVENTS", &rows),
            table("information_schema.PARAMETERS", PARAMETERS),
        ],
        &[("event_scheduler", "ON"), ("sql_mode", "")],
    )
}

fn import(events: &[Pairs<'_>]) -> Imported {
    let made = import_tables(TableSystem::MysqlEvents, &tables(events), &asked(), KINDS);
    made.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn bodies_are_calls_statements_and_procedures_to_be_made() {
    let made = import(&[
        &[("event_name", "close"), ("event_definition", "CALL close_day(1, 'x')")],
        &[("event_name", "tidy"), ("event_definition", "DELETE FROM t WHERE a < NOW()")],
        &[("event_name", "roll"), ("event_definition", "BEGIN DELETE FROM a; DELETE FROM b; END")],
        &[("event_name", "hidden"), ("event_definition", "")],
    ]);
    let close = job(&made, "close");
    assert_eq!((close.job_type.as_str(), close.proc_name.as_deref()), ("PROC", Some("close_day")));
    let values: Vec<_> =
        close.params.iter().map(|p| (p.name.as_str(), p.value.as_deref())).collect();
    assert_eq!(values, [("n", Some("1")), ("word", Some("x"))]);
    assert_eq!(
        job(&made, "tidy").sql,
        Some(SqlText::Same("DELETE FROM t WHERE a < NOW()\n".to_owned()))
    );
    assert_eq!(job(&made, "roll").proc_name.as_deref(), Some("event_roll"));
    assert_eq!(made.files.len(), 1);
    let file = String::from_utf8_lossy(&made.files[0].bytes);
    assert_eq!(made.files[0].path, "procedures/roll.sql");
    assert!(
        file.contains("DELIMITER //\nCREATE PROCEDURE `event_roll`()\nBEGIN DELETE FROM a; DELETE FROM b; END\n//\n"),
        "{file}"
    );
    assert!(has_note(&made, "bank.roll", "has to be created first"), "{:?}", made.notes);
    assert!(has_note(&made, "hidden", "this user may not see it"), "{:?}", made.notes);
    assert_eq!(made.definition.sources[0].url, "mysql://reader@db.bank.example:3306/bank");
    assert_eq!(made.definition.sources.len(), 1);
    let report = markdown(&made, "events", Lang::En);
    assert!(
        report.contains("jobs: 4 read = 2 carried over + 1 carried over with changes + 1 left out"),
        "{report}"
    );
    assert!(report.contains("schedules: 4 read = 4 carried over + 0"), "{report}");
}

#[test]
fn times_are_those_of_the_zone_of_each_event() {
    let body = ("event_definition", "CALL p()");
    let made = import(&[
        &[
            ("event_name", "monthly"),
            body,
            ("interval_field", "MONTH"),
            ("starts", "2026-01-30 02:00:00"),
        ],
        &[
            ("event_name", "once"),
            body,
            ("event_type", "ONE TIME"),
            ("execute_at", "2027-03-01 10:00:00"),
            ("on_completion", "NOT PRESERVE"),
        ],
        &[("event_name", "offset"), body, ("time_zone", "+05:30"), ("ends", "2027-01-01 00:00:00")],
        &[
            ("event_name", "system"),
            body,
            ("time_zone", "SYSTEM"),
            ("status", "SLAVESIDE_DISABLED"),
        ],
        &[("event_name", "odd"), body, ("interval_field", "FORTNIGHT")],
    ]);
    let text = &made.text;
    for line in [
        "cron: 0 0 2 30 1,3,4,5,6,7,8,9,10,11,12 ?",
        "cron: 0 0 2 L 2 ?",
        "once_at: \"2027-03-01T10:00:00\"",
        "time_zone: Asia/Kolkata",
        "end: \"2027-01-01T00:00:01\"",
        "manual: true",
    ] {
        let plain = line.replace('"', "");
        assert!(text.contains(line) || text.contains(&plain), "{line}\n{text}");
    }
    assert!(has_note(&made, "bank.monthly", "is 2 schedules here"), "{:?}", made.notes);
    assert!(has_note(&made, "bank.once", "the event is dropped"), "{:?}", made.notes);
    assert!(has_note(&made, "bank.system", "this server is a replica"), "{:?}", made.notes);
    assert!(has_note(&made, "bank.odd", "EVERY 1 FORTNIGHT"), "{:?}", made.notes);
    let report = markdown(&made, "events", Lang::En);
    assert!(
        report.contains(
            "schedules: 5 read = 1 carried over + 3 carried over with changes + 1 left out"
        ),
        "{report}"
    );
}

#[test]
fn the_zone_of_the_server_is_told_where_it_is_a_guess() {
    let event: Pairs<'_> =
        &[("event_name", "a"), ("event_definition", "CALL p()"), ("time_zone", "SYSTEM")];
    let mut tables = tables(&[event]);
    let import = |tables: &SchedulerTables, zone: Option<Tz>| {
        let asked = ImportRequest { zone, ..asked() };
        import_tables(TableSystem::MysqlEvents, tables, &asked, KINDS)
            .unwrap_or_else(|e| panic!("{e}"))
    };
    tables.server.utc_offset_sec = Some(28_800);
    tables.server.zone = Some("CST".to_owned());
    let made = import(&tables, None);
    assert!(has_note(&made, "Etc/GMT-8", "as its clock is now"), "{:?}", made.notes);
    assert!(made.text.contains("Etc/GMT-8"), "{}", made.text);
    assert!(import(&tables, Some(Tz::Asia__Shanghai)).text.contains("Asia/Shanghai"));
    tables.server.settings.insert("event_scheduler".to_owned(), "OFF".to_owned());
    assert!(has_note(&import(&tables, None), "", "event_scheduler is OFF"));
}
