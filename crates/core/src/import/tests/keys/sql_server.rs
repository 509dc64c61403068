//! Columns of SQL Server Agent's tables.

use super::{Sample, heard};
use crate::import::System;
use crate::import::keys::KnownKey;
use crate::import::sql_server::columns;
use crate::import::tests::given;
use std::collections::BTreeSet;

const TABLES: [(&str, &str); 7] = [
    ("sysjobs", r#""job_id": "a", "name": "close", "enabled": "1", "start_step_id": "1""#),
    (
        "sysjobsteps",
        r#""job_id": "a", "step_id": "1", "step_name": "one", "subsystem": "CmdExec", "command": "run it",
           "on_success_action": "3", "on_fail_action": "2""#,
    ),
    (
        "sysschedules",
        r#""schedule_id": "1", "name": "s", "enabled": "1", "freq_type": "4", "freq_interval": "1",
           "freq_subday_type": "4", "freq_subday_interval": "30", "active_start_date": "20260101",
           "active_end_date": "99991231", "active_start_time": "80000", "active_end_time": "100000""#,
    ),
    ("sysjobschedules", r#""schedule_id": "1", "job_id": "a""#),
    ("sysjobservers", r#""job_id": "a", "server_id": "0""#),
    ("syscategories", r#""category_id": "3", "name": "GL""#),
    (
        "sysoperators",
        r#""id": "1", "name": "ops", "enabled": "1", "email_address": "ops@bank.example""#,
    ),
];

/// The tables, with one column of one of them other than it was, and more of others.
fn hears(table: &str, around: &[(&str, Sample<'_>)], more: Option<Sample<'_>>) -> String {
    let mut parts = Vec::new();
    for (name, row) in TABLES {
        let mut pairs: Vec<String> = row.split(',').map(|pair| pair.trim().to_owned()).collect();
        let mut set = |(key, value): Sample<'_>| {
            pairs.retain(|pair| !pair.starts_with(&format!("\"{key}\"")));
            pairs.push(format!("\"{key}\": \"{value}\""));
        };
        around.iter().filter(|(of, _)| *of == name).for_each(|(_, sample)| set(*sample));
        more.filter(|_| table == name).into_iter().for_each(&mut set);
        let mut rows = format!("{{{}}}", pairs.join(", "));
        if name == "sysjobsteps" {
            rows.push_str(
                r#", {"job_id": "a", "step_id": "2", "step_name": "two", "subsystem": "CmdExec", "command": "run two",
                    "on_success_action": "1", "on_fail_action": "2"}, {"job_id": "a", "step_id": "3",
                    "step_name": "three", "subsystem": "CmdExec", "command": "run", "on_success_action": "1"}"#,
            );
        }
        parts.push(format!("\"{name}\": [{rows}]"));
    }
    heard(System::SqlServerAgent, &[given("agent.json", &format!("{{{}}}", parts.join(", ")))])
}

fn assert_columns(
    table: &str,
    known: &[KnownKey],
    around: &[(&str, Sample<'_>)],
    samples: &[Sample<'_>],
) {
    let names: BTreeSet<&str> = known.iter().map(|known| known.name).collect();
    let tried: BTreeSet<&str> = samples.iter().map(|(column, _)| *column).collect();
    assert_eq!(names, tried, "each known column of {table} has a sample, and no other");
    let before = hears(table, around, None);
    assert!(!before.starts_with("refused"), "{before}");
    for sample in samples {
        assert_ne!(hears(table, around, Some(*sample)), before, "{table}: {sample:?} is ignored");
    }
    let unknown = hears(table, around, Some(("zz_unknown", "1")));
    assert!(unknown.contains("zz_unknown"), "{unknown}");
}

fn records<'a>(names: &[&'a str]) -> Vec<Sample<'a>> {
    names.iter().map(|name| (*name, "7")).collect()
}

#[test]
fn columns_of_jobs_and_what_is_around_them() {
    let mut jobs = records(&[
        "notify_netsend_operator_id",
        "notify_page_operator_id",
        "originating_server_id",
        "originating_server",
        "master_server",
        "owner_sid",
        "date_created",
        "date_modified",
        "version_number",
    ]);
    jobs.extend([
        ("job_id", "b"),
        ("name", "open"),
        ("enabled", "0"),
        ("description", "Closes"),
        ("start_step_id", "2"),
        ("category_id", "3"),
        ("notify_level_email", "3"),
        ("notify_email_operator_id", "1"),
        ("notify_level_eventlog", "1"),
        ("notify_level_netsend", "2"),
        ("notify_level_page", "2"),
        ("delete_level", "1"),
    ]);
    let mail = [("sysjobs", ("notify_level_email", "2"))];
    assert_columns("sysjobs", columns::JOBS, &mail, &jobs);
    let around = [
        ("sysjobs", ("category_id", "3")),
        ("sysjobs", ("notify_level_email", "2")),
        ("sysjobs", ("notify_email_operator_id", "1")),
    ];
    let mut of_category = records(&["category_class", "category_type"]);
    of_category.extend([("category_id", "4"), ("name", "HR")]);
    assert_columns("syscategories", columns::CATEGORIES, &around, &of_category);
    let mut operators =
        records(&columns::OPERATORS.iter().map(|known| known.name).skip(4).collect::<Vec<_>>());
    // The name stands beside what is told of the row.
    operators.extend([("id", "2"), ("enabled", "0"), ("email_address", "x@bank.example")]);
    let named: Vec<KnownKey> =
        columns::OPERATORS.iter().copied().filter(|known| known.name != "name").collect();
    assert_columns("sysoperators", &named, &around, &operators);
    let mut servers = records(&[
        "last_run_outcome",
        "last_outcome_message",
        "last_run_date",
        "last_run_time",
        "last_run_duration",
    ]);
    servers.extend([("job_id", "b"), ("server_id", "2")]);
    let target = [("sysjobservers", ("server_id", "1"))];
    assert_columns("sysjobservers", columns::JOB_SERVERS, &target, &servers);
}

#[test]
fn columns_of_steps() {
    let mut samples = records(&[
        "flags",
        "step_uid",
        "last_run_outcome",
        "last_run_duration",
        "last_run_retries",
        "last_run_date",
        "last_run_time",
        "additional_parameters",
        "server",
        "os_run_priority",
        "output_file_name",
        "proxy_id",
    ]);
    samples.extend([
        ("job_id", "b"),
        ("step_id", "9"),
        ("step_name", "other"),
        ("subsystem", "TSQL"),
        ("command", "run that"),
        ("cmdexec_success_code", "3"),
        ("on_success_action", "1"),
        ("on_fail_action", "1"),
        ("retry_attempts", "2"),
    ]);
    let known = |names: &[&str]| -> Vec<KnownKey> {
        columns::STEPS.iter().copied().filter(|known| names.contains(&known.name)).collect()
    };
    let others = [
        "on_success_step_id",
        "on_fail_step_id",
        "database_name",
        "database_user_name",
        "retry_interval",
    ];
    let plain: Vec<KnownKey> =
        columns::STEPS.iter().copied().filter(|known| !others.contains(&known.name)).collect();
    assert_columns("sysjobsteps", &plain, &[], &samples);
    // These count beside another column alone.
    let sql = [("sysjobsteps", ("subsystem", "TSQL"))];
    assert_columns(
        "sysjobsteps",
        &known(&["database_name", "database_user_name"]),
        &sql,
        &[("database_name", "x"), ("database_user_name", "x")],
    );
    let goes = [
        ("sysjobsteps", ("on_success_action", "4")),
        ("sysjobsteps", ("on_fail_action", "4")),
        ("sysjobsteps", ("on_success_step_id", "2")),
        ("sysjobsteps", ("on_fail_step_id", "2")),
        ("sysjobsteps", ("retry_attempts", "2")),
    ];
    let samples = [("on_success_step_id", "3"), ("on_fail_step_id", "3"), ("retry_interval", "3")];
    assert_columns(
        "sysjobsteps",
        &known(&["on_success_step_id", "on_fail_step_id", "retry_interval"]),
        &goes,
        &samples,
    );
}

#[test]
fn columns_of_schedules() {
    let mut samples = records(&[
        "schedule_uid",
        "originating_server_id",
        "owner_sid",
        "date_created",
        "date_modified",
        "version_number",
    ]);
    samples.extend([
        ("schedule_id", "2"),
        ("name", "t"),
        ("enabled", "0"),
        ("freq_type", "64"),
        ("freq_interval", "2"),
        ("freq_subday_type", "8"),
        ("freq_subday_interval", "20"),
        ("active_start_date", "20280101"),
        ("active_end_date", "20270101"),
        ("active_start_time", "90000"),
        ("active_end_time", "110000"),
    ]);
    let counted = ["freq_relative_interval", "freq_recurrence_factor"];
    let plain: Vec<KnownKey> =
        columns::SCHEDULES.iter().copied().filter(|known| !counted.contains(&known.name)).collect();
    assert_columns("sysschedules", &plain, &[], &samples);
    let known: Vec<KnownKey> =
        columns::SCHEDULES.iter().copied().filter(|known| counted.contains(&known.name)).collect();
    let around =
        [("sysschedules", ("freq_type", "32")), ("sysschedules", ("freq_relative_interval", "1"))];
    assert_columns(
        "sysschedules",
        &known,
        &around,
        &[("freq_relative_interval", "2"), ("freq_recurrence_factor", "3")],
    );
    let samples = [
        ("schedule_id", "2"),
        ("job_id", "b"),
        ("next_run_date", "20260930"),
        ("next_run_time", "70000"),
    ];
    let next = [
        ("sysjobschedules", ("next_run_date", "20260922")),
        ("sysjobschedules", ("next_run_time", "80000")),
        // Which of three days it is.
        ("sysschedules", ("freq_interval", "3")),
    ];
    assert_columns("sysjobschedules", columns::JOB_SCHEDULES, &next, &samples);
}
