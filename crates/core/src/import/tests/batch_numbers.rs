//! As many batches are opened as runs were started: batch numbers of all schedules of a group, over some weeks.

use super::keys::columns::{agent_tables, on_server, table};
use super::{KINDS, NOW, asked, given, import_files, import_text, quartz};
use crate::domain::calendar::Calendars;
use crate::domain::schedule::Anchor;
use crate::domain::schedule::trigger::PlannedInstant;
use crate::domain::source::scheduler_tables::SchedulerTables;
use crate::domain::text::lang::Lang;
use crate::import::{Imported, System, TableSystem, import_tables, markdown};
use std::collections::{BTreeMap, BTreeSet};

/// Firings of all schedules of all groups within so many days, and the batches that they open.
fn firings_and_batches(made: &Imported, days: i64) -> (usize, usize) {
    let until = NOW.plus_ms(days * 86_400_000);
    let mut batches = BTreeSet::new();
    let mut firings = 0;
    for schedule in &made.definition.schedules {
        let calendars = Calendars::default();
        let order = schedule.order.as_ref().unwrap_or_else(|| panic!("no order\n{}", made.text));
        let ahead = schedule.timing.preview(&calendars, NOW.plus_ms(-1), Anchor::new(NOW));
        for one in ahead.map_while(Result::ok).take_while(|one| one.planned < until) {
            let at = PlannedInstant {
                schedule: schedule.code.as_str(),
                planned: one.planned,
                nominal: one.nominal,
                zone: schedule.timing.zone,
                parent: None,
            };
            let number = order.batch_no.number(at).unwrap_or_else(|error| panic!("{error}"));
            batches.insert((schedule.group().map(ToString::to_string), number));
            firings += 1;
        }
    }
    (firings, batches.len())
}

fn rules(made: &Imported) -> BTreeMap<String, usize> {
    made.batch_numbers().into_iter().map(|one| (one.batch_no, one.schedules.len())).collect()
}

fn rule(words: &[(&str, usize)]) -> BTreeMap<String, usize> {
    words.iter().map(|(rule, count)| ((*rule).to_owned(), *count)).collect()
}

fn tables(system: TableSystem, tables: &SchedulerTables) -> Imported {
    import_tables(system, tables, &asked(), KINDS).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn lines_of_a_crontab_are_groups_of_their_own() {
    let text = "30 2 * * * /bin/a\n30 2 * * * /bin/b\n*/15 * * * * /bin/c\n0 8,20 * * * /bin/d\n";
    let made = import_text(System::Crontab, "crontab", text);
    // A day: one, one, 96, two.
    assert_eq!(firings_and_batches(&made, 10), (1_000, 1_000));
    assert_eq!(rules(&made), rule(&[("day(0)", 2), ("time(%Y%m%d-%H%M)", 2)]));
    let report = markdown(&made, "crontab", Lang::En);
    assert!(report.contains("\n## Batch numbers\n\n- `day(0)` (2): a, b\n"), "{report}");
}

#[test]
fn schedules_of_a_pgagent_job_open_a_batch_each_time() {
    let bits = |count: usize, set: &[usize]| {
        let bit = |at: usize| if set.contains(&at) { "t" } else { "f" };
        format!("{{{}}}", (0..count).map(bit).collect::<Vec<_>>().join(","))
    };
    let mut agent = agent_tables();
    let nightly = agent.tables[2].rows[0].clone();
    for (id, hours) in [("2", &[14][..]), ("3", &[2, 20])] {
        let mut row = nightly.clone();
        for (column, value) in [("jscid", id.to_owned()), ("jschours", bits(24, hours))] {
            row.0.insert(column.to_owned(), Some(value));
        }
        agent.tables[2].rows.push(row);
    }
    let made = tables(TableSystem::PgAgent, &agent);
    // A day: 02:30 of two schedules, which is one run there, 14:30 and 20:30.
    assert_eq!(firings_and_batches(&made, 10), (40, 30), "{}", made.text);
    assert_eq!(rules(&made), rule(&[("time(%Y%m%d-%H%M%S)", 3)]));
    agent.tables[2].rows.truncate(1);
    assert_eq!(rules(&tables(TableSystem::PgAgent, &agent)), rule(&[("day(0)", 1)]));
}

#[test]
fn each_trigger_of_quartz_runs_its_job() {
    let made = tables(TableSystem::Quartz, &quartz::store());
    // A day: 02:30, each hour, and 08:00 as well, at which the hourly trigger fires, too: 26 runs. That one begins at 09:00.
    assert_eq!(firings_and_batches(&made, 10), (259, 259), "{}", made.text);
    assert_eq!(
        rules(&made),
        rule(&[
            ("time(%Y%m%d-%H%M%S)", 1),
            ("time(%Y%m%d-%H%M%S-2)", 1),
            ("time(%Y%m%d-%H%M%S-3)", 1)
        ])
    );
}

#[test]
fn schedules_that_say_one_together_do_not_share_a_number() {
    let event =
        |name: &'static str, value: &'static str, field: &'static str, starts: &'static str| {
            vec![
                ("event_schema", "bank"),
                ("event_name", name),
                ("event_definition", "DELETE FROM t"),
                ("event_type", "RECURRING"),
                ("interval_value", value),
                ("interval_field", field),
                ("starts", starts),
                ("status", "ENABLED"),
                ("on_completion", "PRESERVE"),
                ("time_zone", "Asia/Shanghai"),
            ]
        };
    let import = |row: Vec<(&str, &str)>| {
        let events = table("information_schema.EVENTS", &[&row]);
        let url = "mysql://reader@db.bank.example:3306/bank";
        tables(
            TableSystem::MysqlEvents,
            &on_server(url, vec![events], &[("event_scheduler", "ON")]),
        )
    };
    // The 30th, and the last day of February: a day has one run.
    let made = import(event("monthly", "1", "MONTH", "2026-01-30 02:00:00"));
    assert_eq!(firings_and_batches(&made, 730), (24, 24), "{}", made.text);
    assert_eq!(rules(&made), rule(&[("day(0)", 2)]));
    let made = import(event("hours", "6", "HOUR", "2026-01-01 02:00:00"));
    assert_eq!(firings_and_batches(&made, 10), (40, 40), "{}", made.text);
    assert_eq!(rules(&made), rule(&[("time(%Y%m%d-%H%M)", 1)]));
}

#[test]
fn jobs_of_pg_cron_open_a_batch_each_time() {
    let row = |id: &'static str, schedule: &'static str| {
        vec![
            ("jobid", id),
            ("schedule", schedule),
            ("command", "VACUUM"),
            ("database", "bank"),
            ("username", "batch"),
            ("active", "t"),
        ]
    };
    let rows = [row("1", "0 2 * * *"), row("2", "0 8,20 * * *"), row("3", "30 seconds")];
    let rows: Vec<&[(&str, &str)]> = rows.iter().map(Vec::as_slice).collect();
    let url = "postgres://reader@db.bank.example:5432/bank";
    let made = tables(TableSystem::PgCron, &on_server(url, vec![table("cron.job", &rows)], &[]));
    assert_eq!(firings_and_batches(&made, 1), (2_882, 2_882), "{}", made.text);
}

#[test]
fn schedules_of_sql_server_agent_open_a_batch_each_time() {
    let import = |schedules: &str, links: &str| {
        let files = [
            given("sysjobs.csv", "job_id,name,enabled,start_step_id\na,Close,1,1\n"),
            given(
                "sysjobsteps.csv",
                "job_id,step_id,step_name,subsystem,command\na,1,one,TSQL,EXEC p\n",
            ),
            given("sysschedules.csv", schedules),
            given("sysjobschedules.csv", links),
        ];
        import_files(System::SqlServerAgent, &files).unwrap_or_else(|error| panic!("{error}"))
    };
    let columns = "schedule_id,name,enabled,freq_type,freq_interval,freq_subday_type,freq_subday_interval,active_start_time,\
                   active_end_time\n";
    // Each day at 02:00; at 08:00, 09:30, 11:00: three crons; on the first of the month at 02:00, too, which is one run.
    let rows = "1,nightly,1,4,1,1,0,20000,235959\n2,office,1,4,1,4,90,80000,110000\n3,first,1,16,1,1,0,20000,235959\n";
    let made = import(&format!("{columns}{rows}"), "schedule_id,job_id\n1,a\n2,a\n3,a\n");
    // From Monday 2026-09-21 on: 20 days, with one first day of a month.
    assert_eq!(firings_and_batches(&made, 20), (81, 80), "{}", made.text);
    let made = import(&format!("{columns}{rows}"), "schedule_id,job_id\n2,a\n");
    assert_eq!(firings_and_batches(&made, 20), (60, 60), "{}", made.text);
    assert_eq!(rules(&made), rule(&[("time(%Y%m%d-%H%M)", 2)]));
}
