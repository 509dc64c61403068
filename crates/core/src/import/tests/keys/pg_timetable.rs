//! The keys of pg_timetable's YAML.

use super::{KeyCase, Sample};
use crate::import::System;
use crate::import::pg_timetable::task::{OTHER_KEYS, SQL_KEYS, TASK_KEYS};
use crate::import::pg_timetable::{CHAIN_KEYS, FILE_KEYS};

const CHAINS: &str = "[{name: c, schedule: '0 1 * * *', live: true, tasks: [{command: SELECT 1}]}]";

#[test]
fn keys_of_a_file_and_of_a_chain() {
    let case = KeyCase {
        system: System::PgTimetable,
        path: "p.yaml",
        aliases: &[],
        tables: &[FILE_KEYS],
        around: &str::to_owned,
        base: &[("chains", CHAINS)],
        samples: &[("chains", "[{name: d, tasks: [{command: SELECT 2}]}]")],
    };
    case.assert_each_key_is_heard();
    KeyCase {
        tables: &[CHAIN_KEYS],
        around: &|map| format!("{{chains: [{map}]}}"),
        base: &[("name", "c"), ("schedule", "'0 1 * * *'"), ("tasks", "[{command: SELECT 1}]")],
        samples: &[
            ("name", "d"),
            ("schedule", "'0 2 * * *'"),
            ("live", "true"),
            ("max_instances", "7"),
            ("timeout", "60000"),
            ("self_destruct", "true"),
            ("exclusive", "true"),
            ("client_name", "worker"),
            ("on_error", "SELECT 1"),
            ("tasks", "[{command: SELECT 2}]"),
        ],
        ..case
    }
    .assert_each_key_is_heard();
}

/// A value for each key of a task.
const SAMPLES: &[Sample<'_>] = &[
    ("name", "d"),
    ("command", "other"),
    ("parameters", "[[a, b]]"),
    ("ignore_error", "true"),
    ("timeout", "60000"),
    ("live", "false"),
    ("run_as", "etl"),
    ("connect_string", "'host=db2 sslmode=require'"),
    ("autonomous", "true"),
];

#[test]
fn keys_of_a_task() {
    for (kind, of_kind, other) in [
        ("SQL", SQL_KEYS, "PROGRAM"),
        ("PROGRAM", OTHER_KEYS, "SQL"),
        ("BUILTIN", OTHER_KEYS, "SQL"),
    ] {
        let command = if kind == "BUILTIN" { "Log" } else { "x" };
        let samples = [SAMPLES, &[("kind", other)]].concat();
        KeyCase {
            system: System::PgTimetable,
            path: "p.yaml",
            aliases: &[],
            tables: &[TASK_KEYS, of_kind],
            around: &|map| {
                format!("{{chains: [{{name: c, live: true, schedule: '0 1 * * *', tasks: [{map}, {{command: SELECT 2}}]}}]}}")
            },
            base: &[("name", "t"), ("kind", kind), ("command", command)],
            samples: &samples,
        }
        .assert_each_key_is_heard();
    }
}
