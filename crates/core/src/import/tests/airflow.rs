//! Airflow: the jobs for its tasks, their data day, and what is not carried over.

use super::keys::columns::{on_server, table};
use super::{KINDS, asked, has_note, import_files, import_text, job, script};
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::domain::text::lang::Lang;
use crate::import::{
    CountedKind, Given, ImportRequest, Imported, System, TableSystem, import_tables, markdown,
};

fn fixture(path: &str, text: &str) -> Imported {
    import_text(System::Airflow, path, text)
}

fn version_2() -> Imported {
    fixture("airflow_2.json", include_str!("../../../../../tests/data/import/airflow_2.json"))
}

fn version_3() -> Imported {
    fixture("airflow_3.json", include_str!("../../../../../tests/data/import/airflow_3.json"))
}

fn numbers(made: &Imported, kind: CountedKind) -> [usize; 4] {
    let counts = made.item_counts();
    let found = counts.iter().find(|count| count.kind == kind);
    found.map_or([0; 4], |c| [c.read, c.carried, c.changed, c.left_out])
}

fn edges(made: &Imported) -> Vec<String> {
    let edge = |d: &crate::domain::job::JobDependency| format!("{}>{}", d.depends_on, d.job_code);
    let mut all: Vec<String> = made.definition.dependencies.iter().map(edge).collect();
    all.sort();
    all
}

fn sql(made: &Imported, code: &str) -> String {
    match &job(made, code).sql {
        Some(SqlText::Same(text)) => text.clone(),
        other => panic!("{code}: {other:?}"),
    }
}

#[test]
fn a_dag_of_2_is_a_group_with_its_edges_and_bodies() {
    let made = version_2();
    assert_eq!(
        edges(&made),
        ["load>post", "post>alarm", "post>report", "start>load", "start>wait", "wait>post"]
    );
    assert_eq!(
        script(&made, "load"),
        "/opt/load.sh --day ${PROCESSION_PARAM_DS} --region \"${PROCESSION_PARAM_REGION}\"\n"
    );
    let load = job(&made, "load");
    assert_eq!((load.retry_count, load.retry_delay_sec, load.timeout_sec), (2, 60, 1_800));
    assert_eq!(
        (load.owner.as_deref(), &load.notify_email[..]),
        (Some("finance"), &["ops@bank.example".to_owned()][..])
    );
    let post = job(&made, "post");
    assert_eq!(sql(&made, "post"), "INSERT INTO gl SELECT * FROM staging WHERE day = :ds\n");
    assert_eq!(post.transaction, TransactionMode::One);
    assert_eq!(post.params[0].value.as_deref(), Some("${format(business_date, %Y-%m-%d)}"));
    assert_eq!(job(&made, "alarm").trigger_rule, TriggerRule::OneFailed);
    for code in ["wait", "report"] {
        assert!(script(&made, code).ends_with("exit 1\n"), "{code}");
    }
    assert!(has_note(&made, "report", "PythonOperator of airflow.operators.python"));
    assert!(has_note(&made, "report", "pool: reports (2 slots)"));
    // 10:30 in Shanghai is the same day in UTC; {{ ds }} is the day before it.
    for line in
        ["cron: 30 10 * * *", "batch_no: day(-1)", "batch_timeout_sec: 14400", "max_parallel: 4"]
    {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    assert_eq!(
        numbers(&made, CountedKind::Job),
        [6, 4, 0, 2],
        "{}",
        markdown(&made, "a", Lang::En)
    );
    assert_eq!(numbers(&made, CountedKind::Schedule), [1, 1, 0, 0]);
}

#[test]
fn dags_of_3_have_defaults_of_their_own_and_wrapped_tasks() {
    let made = version_3();
    assert_eq!(
        sql(&made, "build"),
        "DELETE FROM weekly WHERE day = :ds;\nINSERT INTO weekly SELECT * FROM facts\n"
    );
    let build = job(&made, "build");
    assert_eq!((build.retry_count, build.owner.as_deref()), (1, Some("reporting")));
    assert!(has_note(&made, "build", "because of its name"));
    assert_eq!(job(&made, "mail").retry_count, 3);
    assert!(has_note(&made, "mail", "SmtpNotifier"));
    assert!(has_note(&made, "each", "task_instance.try_number"));
    assert!(has_note(&made, "on_orders", "AssetTriggeredTimetable"));
    for line in ["cron: 0 6 * * 1", "batch_no: day(0)", "misfire: all", "on_failure: stop"] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    assert_eq!(
        numbers(&made, CountedKind::Job),
        [3, 0, 1, 2],
        "{}",
        markdown(&made, "a", Lang::En)
    );
    assert_eq!(numbers(&made, CountedKind::Schedule), [2, 1, 0, 1]);
}

#[test]
fn tables_say_which_dags_are_paused_and_keep_versions() {
    let data = |cron: &str| {
        format!(
            r##"{{"__version": 1, "dag": {{"dag_id": "d", "schedule_interval": "{cron}", "tasks": [{{"task_id": "t", "task_type": "EmptyOperator"}}]}}}}"##
        )
    };
    let (old, new) = (data("0 1 * * *"), data("0 2 * * *"));
    let tables = |paused: &str| {
        on_server(
            "postgres://reader@db.bank.example:5432/airflow",
            vec![
                table(
                    "serialized_dag",
                    &[
                        &[("dag_id", "d"), ("created_at", "2026-02-01"), ("data", &new)],
                        &[("dag_id", "d"), ("created_at", "2026-01-01"), ("data", &old)],
                    ],
                ),
                table("dag", &[&[("dag_id", "d"), ("is_paused", paused)]]),
            ],
            &[],
        )
    };
    let request = ImportRequest { zone: None, ..asked() };
    let import = |paused: &str| {
        let made = import_tables(TableSystem::Airflow, &tables(paused), &request, KINDS);
        made.unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(import("f").text.contains("cron: 0 2 * * *"), "{}", import("f").text);
    assert!(import("t").text.contains("manual: true"));
    let mut compressed = tables("f");
    compressed.tables[0].rows[0].0.insert("data".to_owned(), None);
    let made = import_tables(TableSystem::Airflow, &compressed, &request, KINDS);
    let error = made.expect_err("it cannot be read").to_string();
    assert!(
        error.contains("serialized_dag:1") && error.contains("compress_serialized_dags"),
        "{error}"
    );
}

#[test]
fn parameters_are_those_of_the_dag_or_none() {
    let dag = |params: &str, own: &str, command: &str| {
        let text = format!(
            r#"{{"dag": {{"dag_id": "d", "params": {params}, "tasks": [{{"task_id": "t", "_task_type": "BashOperator",
               "template_fields": ["bash_command"], "params": {own}, "bash_command": "{command}"}}]}}}}"#
        );
        fixture("d.json", &text)
    };
    let one = r#"{"day": {"default": "a$b"}}"#;
    let made = dag(one, one, "echo {{ params.day }}");
    assert_eq!(made.definition.groups[0].params[0].value.as_deref(), Some("a$b"));
    assert_eq!(job(&made, "t").params[0].value.as_deref(), Some("${params.day}"));
    for (params, own) in [("{}", "{}"), (one, r#"{"day": {"default": "other"}}"#)] {
        let made = dag(params, own, "echo {{ params.day }}");
        assert!(has_note(&made, "t", "no parameter of the DAG"), "{:?}", made.notes);
    }
    let made = dag(r#"{"day": {"default": "${x}"}}"#, "{}", "echo");
    assert_eq!(made.definition.groups[0].params[0].value, None);
    assert!(has_note(&made, "d", "default of parameter day"), "{:?}", made.notes);
}

#[test]
fn owners_and_addresses_that_are_cut_are_told_of() {
    let task = |owner: &str, email: &str| {
        let text = format!(
            r#"{{"dag": {{"dag_id": "d", "tasks": [{{"task_id": "t", "task_type": "EmptyOperator", "owner": "{owner}",
               "email": {email}}}]}}}}"#
        );
        fixture("d.json", &text)
    };
    let made = task(&"x".repeat(101), r#"["ops@bank.example", "not an address"]"#);
    assert_eq!(job(&made, "t").owner.as_deref(), Some("x".repeat(100).as_str()));
    assert_eq!(job(&made, "t").notify_email, ["ops@bank.example"]);
    assert!(has_note(&made, "t", "owner: 100 characters"), "{:?}", made.notes);
    assert!(has_note(&made, "t", "more than 50: not an address"), "{:?}", made.notes);
    let many: Vec<String> = (0..51).map(|n| format!("\"a{n}@bank.example\"")).collect();
    let made = task("ops", &format!("[{}]", many.join(",")));
    assert_eq!(job(&made, "t").notify_email.len(), 50);
    assert!(has_note(&made, "t", "a50@bank.example"), "{:?}", made.notes);
    let made = task("ops", r#""a@bank.example, b@bank.example""#);
    assert_eq!(job(&made, "t").notify_email.len(), 2);
    assert!(!has_note(&made, "t", "email"), "{:?}", made.notes);
}

#[test]
fn what_is_no_dag_is_refused_with_its_line() {
    let task = r#"{"task_id": "a", "task_type": "EmptyOperator"}"#;
    for (text, words) in [
        ("{\"a\": 1}", "d.json:1"),
        ("[\n{\"dag\": {\"tasks\": []}}]", "no dag_id"),
        ("{\"dag\":\n{\"dag_id\": \"d\", \"tasks\": []}}", "d.json:2"),
        (&format!("{{\"dag\": {{\"dag_id\": \"d\", \"tasks\": [{task},\n{task}]}}}}"), "d.json:2"),
        (
            "{\"dag\": {\"dag_id\": \"d\", \"tasks\": [{\"task_id\": \"a\", \"downstream_task_ids\": [\"b\"]}]}}",
            "task b is not there",
        ),
        ("{", "d.json"),
    ] {
        let given = [Given { path: "d.json".to_owned(), bytes: text.as_bytes().to_vec() }];
        let error = import_files(System::Airflow, &given).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_queue_that_could_grow_without_end_is_none() {
    // Three tasks one after the other may take 90 days here, which is more than 60 days of a daily run.
    let task = |name: &str, next: &str| {
        format!(
            r#"{{"task_id": "{name}", "_task_type": "BashOperator", "_task_module": "airflow.operators.bash",
                "template_fields": ["bash_command"], "bash_command": "x", "downstream_task_ids": [{next}]}}"#
        )
    };
    let text = format!(
        r#"{{"__version": 1, "dag": {{"_dag_id": "d", "max_active_runs": 1, "timezone": "UTC", "start_date": 1704067200.0,
            "timetable": {{"__type": "airflow.timetables.interval.CronDataIntervalTimetable",
                "__var": {{"expression": "0 2 * * *", "timezone": "UTC"}}}}, "tasks": [{}, {}, {}]}}}}"#,
        task("a", "\"b\""),
        task("b", "\"c\""),
        task("c", "")
    );
    let made = import_text(System::Airflow, "d.json", &text);
    assert!(made.text.contains("overlap: skip"), "{}\n{:?}", made.text, made.notes);
    assert!(has_note(&made, "d", "could grow without end"), "{:?}", made.notes);
}
