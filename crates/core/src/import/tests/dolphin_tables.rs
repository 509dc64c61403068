//! DolphinScheduler's own tables give the same result as its exports.

use super::keys::columns::{Sample, on_server, table};
use super::{KINDS, asked, has_note, job, script};
use crate::domain::source::scheduler_tables::{SchedulerTable, SchedulerTables};
use crate::import::{Imported, TableSystem, import_tables};

fn import(tables: &SchedulerTables) -> Imported {
    let made = import_tables(TableSystem::DolphinScheduler, tables, &asked(), KINDS);
    made.unwrap_or_else(|error| panic!("{error}"))
}

fn task<'a>(code: &'a str, name: &'a str, priority: &'a str) -> Vec<Sample<'a>> {
    vec![
        ("id", code),
        ("code", code),
        ("name", name),
        ("task_type", "SHELL"),
        ("task_params", r#"{"rawScript": "echo done"}"#),
        ("flag", "1"),
        ("task_priority", priority),
        ("timeout_flag", "1"),
        ("timeout_notify_strategy", "1"),
        ("timeout", "5"),
        ("fail_retry_times", "2"),
        ("fail_retry_interval", "1"),
        ("delay_time", "0"),
    ]
}

fn rows(name: &str, rows: &[Vec<Sample<'_>>]) -> SchedulerTable {
    let rows: Vec<&[Sample<'_>]> = rows.iter().map(Vec::as_slice).collect();
    table(name, &rows)
}

/// The tables of a version, by its word for a workflow.
fn tables(word: &str) -> SchedulerTables {
    let code = format!("{word}_definition_code");
    let version = format!("{word}_definition_version");
    let edge = |id: &'static str, from: &'static str, to: &'static str, at: &'static str| {
        vec![
            ("id", id),
            (code.as_str(), "7"),
            (version.as_str(), at),
            ("pre_task_code", from),
            ("post_task_code", to),
            ("condition_type", "0"),
        ]
    };
    let workflow = vec![
        ("id", "1"),
        ("code", "7"),
        ("name", "close"),
        ("version", "2"),
        ("release_state", "1"),
        (
            "global_params",
            r#"[{"prop": "region", "value": "EU", "direct": "IN", "type": "VARCHAR"}]"#,
        ),
        ("timeout", "0"),
        ("execution_type", "1"),
        ("flag", "1"),
    ];
    let schedule = vec![
        ("id", "1"),
        (code.as_str(), "7"),
        ("crontab", "0 0 2 * * ? *"),
        ("timezone_id", "Asia/Shanghai"),
        ("start_time", "2026-01-01 00:00:00"),
        ("end_time", "2126-01-01 00:00:00"),
        ("release_state", "0"),
        ("failure_strategy", "0"),
    ];
    on_server(
        "mysql://reader@db.bank.example:3306/dolphinscheduler",
        vec![
            rows(&format!("t_ds_{word}_definition"), &[workflow]),
            rows(
                &format!("t_ds_{word}_task_relation"),
                // The third one belongs to a deleted version.
                &[
                    edge("1", "0", "11", "2"),
                    edge("2", "11", "12", "2"),
                    edge("3", "12", "13", "1"),
                ],
            ),
            rows(
                "t_ds_task_definition",
                &[task("11", "load", "0"), task("12", "post", "2"), task("13", "old", "2")],
            ),
            rows("t_ds_schedules", &[schedule]),
        ],
        &[],
    )
}

#[test]
fn tables_of_2_and_of_3_3_are_read_alike() {
    for word in ["process", "workflow"] {
        let made = import(&tables(word));
        let codes: Vec<&str> = made.definition.jobs.iter().map(|job| job.code.as_str()).collect();
        assert_eq!(codes, ["load", "post"], "{word}");
        let load = job(&made, "load");
        assert_eq!((load.priority, load.retry_count, load.timeout_sec), (20, 2, 300), "{word}");
        assert_eq!(script(&made, "load"), "echo done\n", "{word}");
        assert_eq!(made.definition.dependencies.len(), 1, "{word}");
        assert_eq!(made.definition.groups[0].params[0].name, "region", "{word}");
        for line in ["on_failure: stop", "manual: true"] {
            assert!(made.text.contains(line), "{word}: {line}\n{}", made.text);
        }
    }
}

#[test]
fn tables_of_1_3_have_their_tasks_in_the_definition() {
    let json = r#"{"globalParams": [], "tasks": [{"name": "load", "type": "SHELL", "params": {"rawScript": "echo 1"}, "preTasks": []}], "timeout": 0}"#;
    let tables = on_server(
        "mysql://reader@db.bank.example:3306/dolphinscheduler",
        vec![
            table(
                "t_ds_process_definition",
                &[&[("id", "3"), ("name", "old"), ("process_definition_json", json)]],
            ),
            table(
                "t_ds_schedules",
                &[&[
                    ("id", "1"),
                    ("process_definition_id", "3"),
                    ("crontab", "0 0 3 * * ? *"),
                    ("release_state", "1"),
                ]],
            ),
        ],
        &[],
    );
    let made = import(&tables);
    assert_eq!(script(&made, "load"), "echo 1\n");
    assert!(made.text.contains("cron: 0 0 3 * * ? *"), "{}", made.text);
}

#[test]
fn a_column_that_no_list_knows_is_told_of_and_no_workflow_is_refused() {
    let mut changed = tables("process");
    let table =
        changed.tables.iter_mut().find(|t| t.name == "t_ds_task_definition").expect("tasks");
    table.rows[0].0.insert("zz_unknown".to_owned(), Some("1".to_owned()));
    let made = import(&changed);
    assert!(has_note(&made, "load", "zzUnknown"), "{:?}", made.notes);
    let empty = on_server("mysql://reader@db.bank.example:3306/x", Vec::new(), &[]);
    let error = import_tables(TableSystem::DolphinScheduler, &empty, &asked(), KINDS);
    let error = error.expect_err("there is no workflow").to_string();
    assert!(error.contains("t_ds_process_definition"), "{error}");
}
