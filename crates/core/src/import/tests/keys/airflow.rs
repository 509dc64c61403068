//! Keys of serialised DAGs.

use super::{KeyCase, Sample};
use crate::import::System;
use crate::import::airflow::keys;
use crate::import::keys::{KeyRule, KnownKey};

/// A sample of each key: the given one for keys that are read, a word for the others.
fn samples<'a>(known: &[KnownKey], read: &'a [Sample<'a>]) -> Vec<Sample<'a>> {
    let sample = |known: &KnownKey| match known.rule {
        KeyRule::Read => *read.iter().find(|(key, _)| *key == known.name).expect("a sample"),
        KeyRule::Record | KeyRule::Noted { .. } => (known.name, r#""x""#),
    };
    known.iter().map(sample).collect()
}

fn assert_heard(case: KeyCase<'_>) {
    case.assert_each_key_is_heard();
}

const TASKS: &str = r#"[{"task_id": "a", "task_type": "EmptyOperator"}]"#;

#[test]
fn keys_of_a_dag() {
    let read = [
        ("dag_id", r#""other""#),
        ("_dag_id", r#""other""#),
        ("tasks", r#"[{"task_id": "b", "task_type": "EmptyOperator"}]"#),
        ("params", r#"{"a": {"default": "1"}}"#),
        ("timezone", r#""Asia/Tokyo""#),
        ("schedule_interval", r#""0 3 * * *""#),
        ("timetable", r#"{"__type": "airflow.timetables.simple.NullTimetable", "__var": {}}"#),
        ("catchup", "true"),
        ("start_date", "1893456000.0"),
        ("end_date", "1893456000.0"),
        ("description", r#""Closes""#),
        ("_description", r#""Closes""#),
        ("max_active_tasks", "3"),
        ("_max_active_tasks", "3"),
        ("_concurrency", "3"),
        ("max_active_runs", "1"),
        ("dagrun_timeout", "3600.0"),
        ("fail_fast", "true"),
        ("fail_stop", "true"),
        ("is_paused_upon_creation", "true"),
    ];
    assert_heard(KeyCase {
        system: System::Airflow,
        path: "d.json",
        tables: &[keys::DAG],
        around: &|map| format!(r#"{{"dag": {map}}}"#),
        base: &[("dag_id", r#""d""#), ("schedule_interval", r#""0 2 * * *""#), ("tasks", TASKS)],
        samples: &samples(keys::DAG, &read),
        aliases: &[("_dag_id", "dag_id")],
    });
}

#[test]
fn keys_of_a_task() {
    let read = [
        ("task_id", r#""other""#),
        ("task_type", r#""EmptyOperator""#),
        ("_task_type", r#""EmptyOperator""#),
        ("_task_module", r#""x.y""#),
        ("downstream_task_ids", r#"["b"]"#),
        ("_downstream_task_ids", r#"["b"]"#),
        ("template_fields", r#"["a"]"#),
        ("owner", r#""finance""#),
        ("trigger_rule", r#""all_done""#),
        ("retries", "5"),
        ("retry_delay", "60.0"),
        ("execution_timeout", "60.0"),
        ("email", r#"["dba@bank.example"]"#),
        ("email_on_failure", "false"),
        ("pool", r#""q""#),
        ("pool_slots", "2"),
        ("params", r#"{"a": {"default": "1"}}"#),
        ("_is_mapped", "true"),
        ("is_teardown", "true"),
    ];
    let around = |map: &str| {
        format!(
            r#"{{"dag": {{"dag_id": "d", "tasks": [{map}, {{"task_id": "b", "task_type": "EmptyOperator"}}]}}}}"#
        )
    };
    let base = [
        ("task_id", r#""a""#),
        ("_task_type", r#""PythonOperator""#),
        ("retries", "2"),
        ("email", r#"["ops@bank.example"]"#),
        ("pool", r#""p""#),
    ];
    assert_heard(KeyCase {
        system: System::Airflow,
        path: "d.json",
        tables: &[keys::TASK],
        around: &around,
        base: &base,
        samples: &samples(keys::TASK, &read),
        aliases: &[],
    });
}

#[test]
fn keys_of_a_document_and_of_a_row() {
    let dag = |id: &str| format!(r#"{{"dag_id": "{id}", "tasks": {TASKS}}}"#);
    let (one, other) = (dag("d"), dag("other"));
    let read = [("dag", other.as_str()), ("client_defaults", r#"{"tasks": {"owner": "finance"}}"#)];
    assert_heard(KeyCase {
        system: System::Airflow,
        path: "d.json",
        tables: &[keys::DOCUMENT],
        around: &str::to_owned,
        base: &[("dag", one.as_str())],
        samples: &samples(keys::DOCUMENT, &read),
        aliases: &[],
    });
    let data = |dag: &str| format!(r#"{{"dag": {dag}}}"#);
    let (one, other) = (data(&one), data(&other));
    let read = [("data", other.as_str())];
    assert_heard(KeyCase {
        system: System::Airflow,
        path: "d.json",
        tables: &[keys::ROW],
        around: &str::to_owned,
        base: &[("data", one.as_str())],
        samples: &samples(keys::ROW, &read),
        aliases: &[],
    });
}
