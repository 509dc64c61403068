//! Airflow's and DolphinScheduler's tables, on MariaDB and PostgreSQL.

use super::{count, definition, has_note, imported, next_times, text};
use crate::util::{query, with_scratch};
use crate::xxl_import::said;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;

/// 2026-11-27 00:00 UTC.
const NOW: Millis = Millis(1_795_737_600_000);

const DAG: &str = r#"{"__version": 1, "dag": {"_dag_id": "close", "fileloc": "/dags/close.py", "timezone": "UTC", "catchup": false,
  "timetable": {"__type": "airflow.timetables.interval.CronDataIntervalTimetable", "__var": {"expression": "0 2 * * *", "timezone": "UTC"}},
  "tasks": [
    {"task_id": "load", "_task_type": "BashOperator", "template_fields": ["bash_command"], "bash_command": "test \"{{ ds }}\" = 2026-11-26",
     "downstream_task_ids": ["end"]},
    {"task_id": "end", "_task_type": "EmptyOperator", "template_fields": []}]}}"#;

/// Statements in which texts of JSON are quoted for a database.
fn airflow(dialect: DialectName) -> Vec<String> {
    let quoted = |text: &str| match dialect {
        DialectName::Mysql => text.replace('\\', "\\\\"),
        DialectName::Postgres | DialectName::Sqlite => text.to_owned(),
    };
    let dag = quoted(DAG);
    let other = quoted(&DAG.replace("\"close\"", "\"idle\""));
    vec![
        "CREATE TABLE serialized_dag (dag_id VARCHAR(250) PRIMARY KEY, fileloc VARCHAR(2000), data JSON, last_updated TIMESTAMP NULL)".to_owned(),
        "CREATE TABLE dag (dag_id VARCHAR(250) PRIMARY KEY, is_paused BOOLEAN, is_active BOOLEAN)".to_owned(),
        format!("INSERT INTO serialized_dag VALUES ('close', '/dags/close.py', '{dag}', '2026-01-01 00:00:00')"),
        format!("INSERT INTO serialized_dag VALUES ('idle', '/dags/close.py', '{other}', '2026-01-01 00:00:00')"),
        "INSERT INTO dag VALUES ('close', false, true), ('idle', true, true)".to_owned(),
    ]
}

async fn dags_come_from_tables(dialect: DialectName) {
    with_scratch(dialect, async |scratch| {
        for sql in airflow(dialect) {
            query(&scratch.url, &sql).await;
        }
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let document = imported(path, &["airflow", "--url", &scratch.url]);
        assert_eq!(count(&document, "job"), [4, 4, 0, 0], "{document}");
        assert_eq!(count(&document, "schedule"), [2, 1, 1, 0], "{document}");
        assert!(has_note(&document, "idle", "switched off"), "{document}");
        let defs = definition(path);
        assert_eq!(
            next_times(&defs, "close", NOW, 2),
            ["2026-11-27 02:00:00", "2026-11-28 02:00:00"]
        );
        assert!(next_times(&defs, "idle", NOW, 2).is_empty());
        // The batch of the firing at 02:00 of the 27th is the 26th, which is what {{ ds }} was.
        let run = [
            "--db",
            "sqlite:ours.db",
            "run",
            "out/definition.yaml",
            "--group",
            "close",
            "--batch-no",
            "20261126",
        ];
        let (code, out, err) = said(path, &run);
        assert_eq!(code, 0, "{out}\n{err}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dags_of_airflow_come_from_tables_on_mysql() {
    dags_come_from_tables(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dags_of_airflow_come_from_tables_on_postgres() {
    dags_come_from_tables(DialectName::Postgres).await;
}

const DOLPHIN: [&str; 10] = [
    "CREATE TABLE t_ds_process_definition (id INT PRIMARY KEY, code BIGINT, name VARCHAR(255), version INT, project_code BIGINT, \
     release_state SMALLINT, user_id INT, global_params TEXT, flag SMALLINT, timeout INT, execution_type SMALLINT, create_time TIMESTAMP NULL)",
    "CREATE TABLE t_ds_process_task_relation (id INT PRIMARY KEY, name VARCHAR(255), project_code BIGINT, process_definition_code BIGINT, \
     process_definition_version INT, pre_task_code BIGINT, pre_task_version INT, post_task_code BIGINT, post_task_version INT, \
     condition_type SMALLINT, condition_params TEXT)",
    "CREATE TABLE t_ds_task_definition (id INT PRIMARY KEY, code BIGINT, name VARCHAR(255), version INT, project_code BIGINT, user_id INT, \
     task_type VARCHAR(50), task_params TEXT, flag SMALLINT, task_priority SMALLINT, worker_group VARCHAR(255), fail_retry_times INT, \
     fail_retry_interval INT, timeout_flag SMALLINT, timeout_notify_strategy SMALLINT, timeout INT, delay_time INT)",
    "CREATE TABLE t_ds_schedules (id INT PRIMARY KEY, process_definition_code BIGINT, start_time TIMESTAMP NULL, end_time TIMESTAMP NULL, \
     timezone_id VARCHAR(40), crontab VARCHAR(255), failure_strategy SMALLINT, user_id INT, release_state SMALLINT)",
    "INSERT INTO t_ds_process_definition VALUES (1, 7, 'close', 2, 5, 1, 1, '[]', 1, 0, 0, NULL)",
    "INSERT INTO t_ds_process_task_relation VALUES (1, '', 5, 7, 2, 0, 0, 11, 1, 0, '{}'), (2, '', 5, 7, 2, 11, 1, 12, 1, 0, '{}')",
    "INSERT INTO t_ds_task_definition VALUES (1, 11, 'load', 1, 5, 1, 'SHELL', '{\"rawScript\": \"echo load\"}', 1, 2, 'default', 0, 1, 0, \
     NULL, 0, 0)",
    "INSERT INTO t_ds_task_definition VALUES (2, 12, 'post', 1, 5, 1, 'SHELL', '{\"rawScript\": \"echo post\"}', 1, 0, 'default', 3, 1, 0, \
     NULL, 0, 0)",
    "INSERT INTO t_ds_task_definition VALUES (3, 13, 'of_nothing', 1, 5, 1, 'SHELL', '{}', 1, 2, 'default', 0, 1, 0, NULL, 0, 0)",
    "INSERT INTO t_ds_schedules VALUES (1, 7, '2026-01-01 00:00:00', '2036-01-01 00:00:00', 'Asia/Shanghai', '0 30 2 * * ? *', 1, 1, 1)",
];

async fn workflows_come_from_tables(dialect: DialectName) {
    with_scratch(dialect, async |scratch| {
        for sql in DOLPHIN {
            query(&scratch.url, sql).await;
        }
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let document = imported(path, &["dolphinscheduler", "--url", &scratch.url]);
        assert_eq!(count(&document, "job"), [2, 2, 0, 0], "{document}");
        assert_eq!(count(&document, "schedule")[0], 1, "{document}");
        let defs = definition(path);
        assert_eq!(
            next_times(&defs, "close", NOW, 2),
            ["2026-11-28 02:30:00", "2026-11-29 02:30:00"]
        );
        let edges: Vec<String> = defs
            .dependencies
            .iter()
            .map(|edge| format!("{}>{}", edge.depends_on, edge.job_code))
            .collect();
        assert_eq!(edges, ["load>post"]);
        let yaml = text(path, "out/definition.yaml");
        assert!(yaml.contains("priority: 20") && yaml.contains("retry_count: 3"), "{yaml}");
        let run = [
            "--db",
            "sqlite:ours.db",
            "run",
            "out/definition.yaml",
            "--group",
            "close",
            "--batch-no",
            "1",
        ];
        let (code, out, err) = said(path, &run);
        assert_eq!(code, 0, "{out}\n{err}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_of_dolphinscheduler_come_from_tables_on_mysql() {
    workflows_come_from_tables(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_of_dolphinscheduler_come_from_tables_on_postgres() {
    workflows_come_from_tables(DialectName::Postgres).await;
}
