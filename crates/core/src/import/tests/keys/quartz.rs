//! Columns of Quartz's tables.

use super::columns::{ColumnCase, Sample};
use crate::import::TableSystem;
use crate::import::keys::KnownKey;
use crate::import::quartz::columns;
use crate::import::tests::quartz::{JOBS, TRIGGERS, hex, store};

fn assert_heard(table: &str, known: &[KnownKey], base: &[Sample<'_>], samples: &[Sample<'_>]) {
    let mut tables = store();
    for row in tables
        .tables
        .iter_mut()
        .find(|found| found.name == table)
        .into_iter()
        .flat_map(|t| &mut t.rows)
        .take(1)
    {
        row.0.extend(base.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))));
    }
    ColumnCase { system: TableSystem::Quartz, tables: &tables, table, known, samples }
        .assert_each_column_is_heard();
}

#[test]
fn columns_of_a_job_of_quartz() {
    let data = hex("day=1\n");
    assert_heard(
        JOBS,
        columns::JOB_COLUMNS,
        &[],
        &[
            ("sched_name", "other"),
            ("job_name", "other"),
            ("job_group", "other"),
            ("description", "Closes the day"),
            ("job_class_name", "com.bank.Other"),
            ("is_durable", "1"),
            ("is_nonconcurrent", "1"),
            ("is_update_data", "1"),
            ("requests_recovery", "1"),
            ("job_data", &data),
        ],
    );
}

#[test]
fn columns_of_a_trigger_of_quartz() {
    let data = hex("day=1\n");
    assert_heard(
        TRIGGERS,
        columns::TRIGGER_COLUMNS,
        &[],
        &[
            ("sched_name", "other"),
            ("trigger_name", "other"),
            ("trigger_group", "other"),
            ("job_name", "other"),
            ("job_group", "other"),
            ("description", "At night"),
            ("next_fire_time", "1790000000000"),
            ("prev_fire_time", "1790000000000"),
            ("priority", "9"),
            ("trigger_state", "PAUSED"),
            ("trigger_type", "SIMPLE"),
            ("start_time", "1893456000000"),
            ("end_time", "1893456000000"),
            ("calendar_name", "holidays"),
            ("misfire_instr", "2"),
            ("misfire_orig_fire_time", "1790000000000"),
            ("execution_group", "heavy"),
            ("job_data", &data),
        ],
    );
}

#[test]
fn columns_of_kinds_of_triggers_of_quartz() {
    let key = [("sched_name", "other"), ("trigger_name", "other"), ("trigger_group", "other")];
    let with_key = |more: &[Sample<'static>]| [&key, more].concat();
    assert_heard(
        "QRTZ_CRON_TRIGGERS",
        columns::CRON_COLUMNS,
        &[],
        &with_key(&[("cron_expression", "0 0 3 * * ?"), ("time_zone_id", "Europe/Berlin")]),
    );
    assert_heard(
        "QRTZ_SIMPLE_TRIGGERS",
        columns::SIMPLE_COLUMNS,
        &[("repeat_count", "20")],
        &with_key(&[
            ("repeat_count", "-1"),
            ("repeat_interval", "7200000"),
            ("times_triggered", "3"),
        ]),
    );
    let of_interval = [
        ("str_prop_1", "MONTH"),
        ("str_prop_2", "Europe/Berlin"),
        ("int_prop_1", "2"),
        ("int_prop_2", "1"),
        ("long_prop_2", "1"),
        ("dec_prop_1", "1"),
        ("dec_prop_2", "1"),
        ("bool_prop_1", "1"),
        ("bool_prop_2", "1"),
    ];
    let of_daily = |name: &str| ["str_prop_3", "long_prop_1", "time_zone_id"].contains(&name);
    let known: Vec<KnownKey> =
        columns::PROPERTY_COLUMNS.iter().filter(|k| !of_daily(k.name)).copied().collect();
    assert_heard("QRTZ_SIMPROP_TRIGGERS", &known, &[], &with_key(&of_interval));
    // The columns for daily times are in the same table.
    let tables = crate::import::tests::quartz::daily_store();
    let known: Vec<KnownKey> =
        columns::PROPERTY_COLUMNS.iter().filter(|k| of_daily(k.name)).copied().collect();
    ColumnCase {
        system: TableSystem::Quartz,
        tables: &tables,
        table: "QRTZ_SIMPROP_TRIGGERS",
        known: &known,
        samples: &[
            ("str_prop_3", "9,0,0,17,0,0"),
            ("long_prop_1", "5"),
            ("time_zone_id", "Europe/Berlin"),
        ],
    }
    .assert_each_column_is_heard();
    assert_heard(
        "QRTZ_CALENDARS",
        columns::CALENDAR_COLUMNS,
        &[],
        &[("sched_name", "x"), ("calendar_name", "other"), ("calendar", "aced")],
    );
}
