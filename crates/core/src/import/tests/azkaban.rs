//! Azkaban: triggers of Flow 2.0.

use super::{given, has_note, import_files, import_text, job, script};
use crate::import::{Given, Level, System};

const FLOW: &str = "\
trigger:
  maxWaitMins: 90
  schedule: {type: cron, value: '0 30 2 ? * MON-FRI'}
  triggerDependencies:
  - {name: orders, type: kafka, params: {topic: orders, match: 'closed'}}
nodes:
- {name: load, type: command, config: {command: echo load}}
- {name: report, type: command, config: {command: echo report}, dependsOn: [load]}
";

#[test]
fn a_trigger_is_a_schedule_and_a_wait() {
    let made = import_text(System::Azkaban, "p/close.flow", FLOW);
    let schedule = &made.definition.schedules[0];
    assert_eq!(
        (schedule.code.as_str(), schedule.schedule_conf().as_str()),
        ("close", "0 30 2 ? * MON-FRI")
    );
    let edges: Vec<String> = made
        .definition
        .dependencies
        .iter()
        .map(|d| format!("{}>{}", d.depends_on, d.job_code))
        .collect();
    assert_eq!(edges, ["wait_for_orders>load", "load>report"]);
    assert_eq!(job(&made, "wait_for_orders").timeout_sec, 5_400);
    assert!(script(&made, "wait_for_orders").ends_with("exit 1\n"));
    let said = "once kafka topic=orders, match=closed is there: write a SENSOR";
    assert!(has_note(&made, "wait_for_orders", said), "{:?}", made.notes);
    assert!(!made.notes.iter().any(|n| n.message.en.contains("no trigger")), "{:?}", made.notes);
}

#[test]
fn flows_without_a_trigger_are_named() {
    let other = "nodes:\n- {name: a, type: noop}\n";
    let files = [given("p/close.flow", FLOW), given("p/other.flow", other)];
    let made = import_files(System::Azkaban, &files).expect("two flows");
    let note = made.notes.iter().find(|n| n.message.en.contains("no trigger"));
    assert!(note.is_some_and(|n| n.message.en.contains("starts other;")), "{:?}", made.notes);
}

#[test]
fn triggers_that_azkaban_refuses_are_refused() {
    for (schedule, said) in [
        ("{type: cron}", "x.flow:2: this trigger has no schedule of type cron"),
        ("{type: fixed, value: '0 0 2 ? * *'}", "has no schedule of type cron"),
        ("{type: cron, value: '0 99 2 ? * *'}", "x.flow:2: trigger: "),
    ] {
        let text = format!("trigger:\n  schedule: {schedule}\nnodes:\n- {{name: a, type: noop}}\n");
        let error = import_files(System::Azkaban, &[given("x.flow", &text)]).expect_err(schedule);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_wait_without_dependencies_and_an_inner_trigger_are_told() {
    let text = "trigger:\n  maxWaitMins: 5\n  schedule: {type: cron, value: '0 0 2 ? * *'}\nnodes:\n\
                - name: inner\n  type: flow\n  trigger: {schedule: {type: cron, value: '0 0 3 ? * *'}}\n  \
                nodes: [{name: a, type: noop}]\n";
    let made = import_text(System::Azkaban, "x.flow", text);
    assert!(has_note(&made, "x", "maxWaitMins limits"), "{:?}", made.notes);
    assert!(has_note(&made, "inner", "its trigger is left out"), "{:?}", made.notes);
    assert_eq!(made.count(Level::LeftOut), 2);
}

/// Created by the Finder: resource forks next to each file, which are not text.
#[test]
fn entries_that_macos_adds_are_left_out_and_counted_once() {
    let mac = |path: &str| Given { path: path.to_owned(), bytes: vec![0, 5, 0x16, 7, 0xff] };
    let files = [
        given("p.zip/p/a.job", "type=command\ncommand=sh x.sh\n"),
        given("p.zip/p/x.sh", "echo\n"),
        mac("p.zip/p/.DS_Store"),
        mac("p.zip/p/._x.sh"),
        mac("p.zip/__MACOSX/p/._a.job"),
    ];
    let made = import_files(System::Azkaban, &files).expect("a project");
    assert_eq!(made.definition.jobs.len(), 1);
    let paths: Vec<&str> = made.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["files/p/x.sh"]);
    let notes: Vec<&str> = made
        .notes
        .iter()
        .filter(|n| n.level == Level::LeftOut)
        .map(|n| n.message.en.as_str())
        .collect();
    assert_eq!(notes, ["3 entries that macOS adds are left out: __MACOSX/, ._*, .DS_Store"]);
}

#[test]
fn passwords_stay_behind_and_a_command_may_be_that_of_the_folder() {
    let shared = "db.password=geheim\ncommand=echo shared\nenv.PGPASSWORD=geheim2\nregion=EU\n";
    let files = [
        given("p/common.properties", shared),
        given(
            "p/a.job",
            "type=command\ncommand=load -p ${db.password} -e 'x ${db.password}' ${region}\n",
        ),
        given("p/b.job", "type=command\ndependencies=a\n"),
    ];
    let made = import_files(System::Azkaban, &files).unwrap_or_else(|error| panic!("{error}"));
    let everything = format!("{}{:?}{:?}", made.text, made.notes, made.files);
    assert!(!everything.contains("geheim"), "{everything}");
    let first = script(&made, "a");
    assert!(
        first.contains("load -p ${db_password} -e 'x '\"${db_password}\"'' ${region}\n"),
        "{first}"
    );
    assert!(first.contains("export PGPASSWORD=\"${PGPASSWORD}\"\n"), "{first}");
    let values: Vec<_> =
        job(&made, "a").params.iter().map(|p| (p.name.as_str(), p.value.as_deref())).collect();
    assert!(values.contains(&("db_password", Some("${secret.DB_PASSWORD}"))), "{values:?}");
    assert!(script(&made, "b").ends_with("echo shared\n"), "{}", script(&made, "b"));
    let secrets: Vec<&str> =
        made.definition.shared.secrets.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(secrets, ["DB_PASSWORD", "PGPASSWORD"]);
    assert!(has_note(&made, "db.password", "seems to hold a password"), "{:?}", made.notes);
}
