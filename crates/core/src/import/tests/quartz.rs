//! Quartz: its jobs, the times of its triggers, and what is not carried over.

use super::keys::columns::{Sample, on_server, table};
use super::{KINDS, NOW, asked, has_note, job, script};
use crate::domain::source::scheduler_tables::{SchedulerTable, SchedulerTables};
use crate::domain::text::lang::Lang;
use crate::import::{CountedKind, ImportRequest, Imported, TableSystem, import_tables, markdown};

pub(super) const JOBS: &str = "QRTZ_JOB_DETAILS";
pub(super) const TRIGGERS: &str = "QRTZ_TRIGGERS";

pub(super) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn job_row<'a>(name: &'a str, class: &'a str, data: &'a str) -> Vec<Sample<'a>> {
    vec![
        ("sched_name", "core"),
        ("job_name", name),
        ("job_group", "DEFAULT"),
        ("job_class_name", class),
        ("is_nonconcurrent", "0"),
        ("is_update_data", "0"),
        ("requests_recovery", "0"),
        ("job_data", data),
    ]
}

/// A trigger of the job of the same name.
fn trigger_row<'a>(name: &'a str, job: &'a str, kind: &'a str, next: &'a str) -> Vec<Sample<'a>> {
    vec![
        ("sched_name", "core"),
        ("trigger_name", name),
        ("trigger_group", "DEFAULT"),
        ("job_name", job),
        ("job_group", "DEFAULT"),
        ("next_fire_time", next),
        ("priority", "5"),
        ("trigger_state", "WAITING"),
        ("trigger_type", kind),
        // 2026-01-01T00:00:00Z
        ("start_time", "1767225600000"),
        ("end_time", "0"),
        ("misfire_instr", "0"),
    ]
}

fn of_trigger<'a>(name: &'a str, more: &[Sample<'a>]) -> Vec<Sample<'a>> {
    let key = [("sched_name", "core"), ("trigger_name", name), ("trigger_group", "DEFAULT")];
    key.into_iter().chain(more.iter().copied()).collect()
}

fn rows(name: &str, rows: &[Vec<Sample<'_>>]) -> SchedulerTable {
    let rows: Vec<&[Sample<'_>]> = rows.iter().map(Vec::as_slice).collect();
    table(name, &rows)
}

fn at_server(tables: Vec<SchedulerTable>) -> SchedulerTables {
    on_server("mysql://reader@db.bank.example:3306/quartz", tables, &[])
}

/// One job with a trigger of each kind.
pub(super) fn store() -> SchedulerTables {
    at_server(vec![
        rows(JOBS, &[job_row("close", "com.bank.CloseDay", "")]),
        rows(
            TRIGGERS,
            &[
                trigger_row("nightly", "close", "CRON", ""),
                trigger_row("hourly", "close", "SIMPLE", "1789952400000"),
                trigger_row("monthly", "close", "CAL_INT", ""),
            ],
        ),
        rows(
            "QRTZ_CRON_TRIGGERS",
            &[of_trigger(
                "nightly",
                &[("cron_expression", "0 30 2 * * ?"), ("time_zone_id", "Asia/Shanghai")],
            )],
        ),
        rows(
            "QRTZ_SIMPLE_TRIGGERS",
            &[of_trigger(
                "hourly",
                &[("repeat_count", "-1"), ("repeat_interval", "3600000"), ("times_triggered", "7")],
            )],
        ),
        rows(
            "QRTZ_SIMPROP_TRIGGERS",
            &[of_trigger(
                "monthly",
                &[("str_prop_1", "DAY"), ("str_prop_2", "Asia/Shanghai"), ("int_prop_1", "1")],
            )],
        ),
        rows("QRTZ_CALENDARS", &[vec![("calendar_name", "holidays")]]),
    ])
}

/// A trigger of daily times.
pub(super) fn daily_store() -> SchedulerTables {
    at_server(vec![
        rows(JOBS, &[job_row("close", "com.bank.CloseDay", "")]),
        rows(TRIGGERS, &[trigger_row("office", "close", "DAILY_I", "")]),
        rows(
            "QRTZ_SIMPROP_TRIGGERS",
            &[of_trigger(
                "office",
                &[
                    ("str_prop_1", "MINUTE"),
                    ("int_prop_1", "30"),
                    ("str_prop_2", "2,3,4,5,6"),
                    ("str_prop_3", "8,0,0,18,0,0"),
                    ("long_prop_1", "-1"),
                ],
            )],
        ),
    ])
}

fn import(tables: &SchedulerTables) -> Imported {
    import_tables(TableSystem::Quartz, tables, &asked(), KINDS).unwrap_or_else(|e| panic!("{e}"))
}

fn numbers(made: &Imported, kind: CountedKind) -> [usize; 4] {
    let counts = made.item_counts();
    let found = counts.iter().find(|count| count.kind == kind);
    found.map_or([0; 4], |c| [c.read, c.carried, c.changed, c.left_out])
}

#[test]
fn classes_are_handlers_or_what_quartz_itself_runs() {
    let command = hex("command=/opt/load.sh\nparameters=-d today\n");
    let properties = hex("region=EU\n");
    let dotted = hex("gl.region=EU\n");
    let opaque = "aced0005737200";
    let rest: Vec<Vec<Sample<'_>>> = vec![
        job_row("load", "org.quartz.jobs.NativeJob", &command),
        job_row("post", "com.bank.PostJob", &properties),
        job_row("hidden", "com.bank.PostJob", opaque),
        job_row("nothing", "org.quartz.jobs.NoOpJob", ""),
        job_row("bare", "org.quartz.jobs.NativeJob", ""),
        job_row("dotted", "com.bank.PostJob", &dotted),
    ];
    let tables =
        at_server(vec![rows(JOBS, &rest), rows(TRIGGERS, &[]), rows("QRTZ_CRON_TRIGGERS", &[])]);
    let made = import(&tables);
    assert_eq!(script(&made, "load"), "/opt/load.sh -d today\n");
    let post = job(&made, "post");
    let call = post.executor.as_ref().expect("a handler");
    assert_eq!((call.app.as_str(), call.handler.as_deref()), ("core", Some("PostJob")));
    assert_eq!(post.params[0].value.as_deref(), Some("EU"));
    assert_eq!(job(&made, "nothing").job_type.as_str(), "NOOP");
    for code in ["hidden", "bare", "dotted"] {
        assert!(script(&made, code).ends_with("exit 1\n"), "{code}");
    }
    assert!(has_note(&made, "hidden", "serialised"), "{:?}", made.notes);
    assert_eq!(numbers(&made, CountedKind::Job), [6, 2, 1, 3]);
}

#[test]
fn triggers_are_schedules_at_the_same_times_or_left_out() {
    let mut tables = store();
    let add = |tables: &mut SchedulerTables, name: &str, row: Vec<Sample<'_>>| {
        let table = tables.tables.iter_mut().find(|t| t.name == name).expect("a table");
        table.rows.extend(rows(name, &[row]).rows);
    };
    for (name, kind) in [("once", "SIMPLE"), ("blob", "BLOB"), ("rule", "RRULE")] {
        add(&mut tables, TRIGGERS, trigger_row(name, "close", kind, "1798761600000"));
    }
    add(
        &mut tables,
        "QRTZ_SIMPLE_TRIGGERS",
        of_trigger(
            "once",
            &[("repeat_count", "0"), ("repeat_interval", "0"), ("times_triggered", "0")],
        ),
    );
    let mut over = trigger_row("over", "close", "CRON", "0");
    over.push(("trigger_state", "COMPLETE"));
    add(&mut tables, TRIGGERS, over);
    let mut excluded = trigger_row("workdays", "close", "CRON", "");
    excluded.push(("calendar_name", "holidays"));
    add(&mut tables, TRIGGERS, excluded);
    let mut other = trigger_row("east", "close", "CRON", "");
    let data = hex("region=EU\n");
    other.extend([("job_data", data.as_str()), ("trigger_state", "PAUSED")]);
    add(&mut tables, TRIGGERS, other);
    let cron = [("cron_expression", "0 0 4 ? * MON"), ("time_zone_id", "GMT+08:00")];
    for name in ["over", "workdays", "east"] {
        add(&mut tables, "QRTZ_CRON_TRIGGERS", of_trigger(name, &cron));
    }
    let made = import(&tables);
    for line in [
        "cron: 0 30 2 * * ?",
        "every_sec: 3600",
        "cron: 0 0 8 * * ?",
        "once_at: \"2027-01-01T08:00:00\"",
        "manual: true",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    for (about, words) in [
        ("blob", "BLOB"),
        ("rule", "RRULE"),
        ("over", "it is over"),
        ("workdays", "calendar holidays"),
        ("holidays", "calendar_name: holidays is left out"),
    ] {
        assert!(has_note(&made, about, words), "{about}: {:?}", made.notes);
    }
    // Data of a trigger becomes a separate job.
    let codes: Vec<&str> = made.definition.groups.iter().map(|g| g.code.as_str()).collect();
    assert_eq!(codes, ["close", "close_east"]);
    assert_eq!(job(&made, "close_east").params[0].value.as_deref(), Some("EU"));
    assert!(job(&made, "close").params.is_empty());
    assert_eq!(numbers(&made, CountedKind::Job), [1, 0, 1, 0]);
    assert_eq!(
        numbers(&made, CountedKind::Schedule),
        [9, 4, 1, 4],
        "{}",
        markdown(&made, "q", Lang::En)
    );
}

#[test]
fn daily_times_and_next_times() {
    let mut tables = daily_store();
    let made = import(&tables);
    assert!(
        made.text.contains("cron: 0 0,30 8,9,10,11,12,13,14,15,16,17 ? * 2,3,4,5,6"),
        "{}",
        made.text
    );
    assert!(made.text.contains("cron: 0 0 18 ? * 2,3,4,5,6"), "{}", made.text);
    assert_eq!(numbers(&made, CountedKind::Schedule), [1, 1, 0, 0]);
    // Monday 08:30 in Shanghai is one of its times, 08:15 is not.
    for (next, is_told) in [(NOW.0 + 1_800_000, false), (NOW.0 + 900_000, true)] {
        let value = Some(next.to_string());
        tables.tables[1].rows[0].0.insert("next_fire_time".to_owned(), value);
        let made = import(&tables);
        assert_eq!(has_note(&made, "office", "next time in the table"), is_told, "{next}");
    }
}

#[test]
fn repeats_end_with_the_last_one_or_with_the_trigger() {
    // 2026-09-21T01:00:00Z is 09:00 in Shanghai; three repeats are left.
    for (end, wanted) in
        [("0", "end: \"2026-09-21T11:00:01\""), ("1789956000000", "end: \"2026-09-21T10:00:00\"")]
    {
        let mut tables = store();
        let mut set = |table: &str, at: usize, column: &str, value: &str| {
            let found = tables.tables.iter_mut().find(|t| t.name == table).expect("a table");
            found.rows[at].0.insert(column.to_owned(), Some(value.to_owned()));
        };
        set("QRTZ_SIMPLE_TRIGGERS", 0, "repeat_count", "9");
        set(TRIGGERS, 1, "end_time", end);
        let made = import(&tables);
        assert!(made.text.contains(wanted), "{wanted}\n{}", made.text);
    }
}

#[test]
fn months_from_the_end_of_a_month_and_unknown_zones_are_left_out() {
    let mut tables = store();
    let set = |tables: &mut SchedulerTables, table: &str, at: usize, pairs: &[Sample<'_>]| {
        let found = tables.tables.iter_mut().find(|t| t.name == table).expect("a table");
        found.rows[at]
            .0
            .extend(pairs.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))));
    };
    set(&mut tables, "QRTZ_SIMPROP_TRIGGERS", 0, &[("str_prop_1", "MONTH")]);
    // 2026-01-31T00:00:00Z
    set(&mut tables, TRIGGERS, 2, &[("start_time", "1769817600000")]);
    set(&mut tables, "QRTZ_CRON_TRIGGERS", 0, &[("time_zone_id", "Nowhere/City")]);
    set(&mut tables, "QRTZ_SIMPLE_TRIGGERS", 0, &[("repeat_interval", "1500")]);
    let made = import(&tables);
    assert!(has_note(&made, "monthly", "from day 31"), "{:?}", made.notes);
    assert!(has_note(&made, "nightly", "Nowhere/City"));
    assert!(has_note(&made, "hourly", "1500 ms"));
    assert_eq!(numbers(&made, CountedKind::Schedule), [3, 0, 0, 3]);
}

#[test]
fn a_store_without_jobs_is_refused() {
    let tables = at_server(vec![rows(JOBS, &[])]);
    let request = ImportRequest { zone: None, ..asked() };
    let made = import_tables(TableSystem::Quartz, &tables, &request, KINDS);
    let error = made.expect_err("there is no job").to_string();
    assert!(error.contains(JOBS) && error.contains("JobStore"), "{error}");
}
