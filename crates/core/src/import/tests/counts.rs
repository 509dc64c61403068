//! Each item is carried over, carried over with changes, or left out, and the report lists the last two.

use super::{KINDS, asked, given, import_files};
use crate::domain::text::lang::Lang;
use crate::domain::xxl::xxl_tables::{XxlGroup, XxlJob, XxlSchema, XxlTables, XxlUser};
use crate::import::{
    Beyond, ChildJoin, CountedKind, Given, Imported, ItemOutcome, System, XxlAsked, markdown,
    xxl_job,
};

/// Read, carried over, carried over with changes, left out.
type Numbers = [usize; 4];

fn numbers(made: &Imported, kind: CountedKind) -> Numbers {
    let counts = made.item_counts();
    let found = counts.iter().find(|count| count.kind == kind);
    found.map_or([0; 4], |c| [c.read, c.carried, c.changed, c.left_out])
}

/// Asserts that a note and the report name every item that was changed or left out.
fn assert_listed(made: &Imported) {
    for item in made.items.iter().filter(|item| item.outcome != ItemOutcome::Carried) {
        let is_of = |about: &str| about == item.title || about.starts_with(&item.title);
        let noted = made.notes.iter().any(|n| n.origin == item.origin || is_of(&n.about));
        assert!(noted, "{item:?} is in no note: {:?}", made.notes);
    }
    for lang in Lang::ALL {
        let report = markdown(made, "source", lang);
        for count in made.item_counts() {
            assert_eq!(count.read, count.carried + count.changed + count.left_out);
            let line = count.line(lang);
            assert!(report.contains(&line), "{line}\n{report}");
        }
    }
    for code in made.definition.jobs.iter().map(|job| &job.code) {
        assert!(
            made.items.iter().any(|item| item.kind == CountedKind::Job),
            "{code} was never read"
        );
    }
}

fn assert_numbers(system: System, files: &[Given], jobs: Numbers, schedules: Numbers) {
    let made = import_files(system, files).unwrap_or_else(|error| panic!("{error}"));
    assert_listed(&made);
    let found = (numbers(&made, CountedKind::Job), numbers(&made, CountedKind::Schedule));
    assert_eq!(found, (jobs, schedules), "{system:?}\n{}", markdown(&made, "source", Lang::En));
}

#[test]
fn the_counts_of_each_importer_add_up() {
    let crontab = "0 1 * * * /bin/a\n@reboot /bin/b\n0 0 31 2 * /bin/c\n0~9 2 * * * /bin/d\n";
    assert_numbers(System::Crontab, &[given("c", crontab)], [4, 3, 0, 1], [4, 1, 1, 2]);
    let chains = "chains:\n- name: a\n  schedule: '0 1 * * *'\n  live: true\n  tasks:\n  - {command: SELECT 1}\n  \
                  - {command: SELECT 2, ignore_error: true}\n  - {kind: BUILTIN, command: Download}\n\
                  - name: b\n  schedule: '@reboot'\n  tasks: [{command: SELECT 3}]\n\
                  - name: c\n  schedule: '0 2 * * *'\n  tasks: [{command: SELECT 4, live: false}]\n";
    assert_numbers(System::PgTimetable, &[given("p", chains)], [5, 2, 2, 1], [3, 1, 0, 2]);
    let flow = "trigger:\n  maxWaitMins: 5\n  schedule: {type: cron, value: '0 0 2 ? * *'}\n  \
                triggerDependencies: [{name: k, type: kafka}]\nnodes:\n- {name: a, type: noop}\n\
                - {name: s, type: spark}\n- name: f\n  type: flow\n  nodes:\n  \
                - {name: b, type: command, config: {command: 'echo ${nobody}'}}\n";
    assert_numbers(System::Azkaban, &[given("x.flow", flow)], [4, 1, 1, 2], [1, 1, 0, 0]);
    let workflow = r#"{"processDefinition": {"code": 1, "name": "w"},
        "processTaskRelationList": [{"preTaskCode": 0, "postTaskCode": 2}],
        "taskDefinitionList": [
          {"code": 2, "name": "a", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}},
          {"code": 3, "name": "b", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}, "flag": "NO"},
          {"code": 4, "name": "c", "taskType": "K8S", "taskParams": {}}],
        "schedule": {"crontab": "0 0 2 * * ? *", "releaseState": "OFFLINE", "timezoneId": "UTC"}}"#;
    assert_numbers(System::DolphinScheduler, &[given("d", workflow)], [3, 1, 1, 1], [1, 0, 1, 0]);
}

fn row(id: i64, children: &str, schedule: &str) -> XxlJob {
    let schedule_type = if schedule.is_empty() { "NONE" } else { "CRON" };
    XxlJob {
        id,
        job_group: 1,
        title: format!("job {id}"),
        handler: "run".to_owned(),
        glue_type: "BEAN".to_owned(),
        children: children.to_owned(),
        schedule_type: schedule_type.to_owned(),
        schedule_conf: schedule.to_owned(),
        trigger_status: 1,
        ..XxlJob::default()
    }
}

#[test]
fn the_counts_of_an_xxl_job_admin_add_up() {
    let group = XxlGroup {
        id: 1,
        app_name: "app-one".to_owned(),
        title: "one".to_owned(),
        address_type: 0,
        address_list: String::new(),
        access_token: None,
    };
    let user = XxlUser {
        id: 1,
        name: "管理员".to_owned(),
        password: None,
        role: 1,
        permission: String::new(),
    };
    let cron = "0 0 2 * * ?";
    let tables = XxlTables {
        schema: XxlSchema::V3_4,
        groups: vec![group],
        // A child of two, a schedule that never fires, an unknown kind.
        jobs: vec![
            row(1, "3", cron),
            row(2, "3", cron),
            row(3, "", ""),
            row(4, "", "0 0 2 31 2 ?"),
            XxlJob { glue_type: "COBOL".to_owned(), ..row(5, "", "") },
        ],
        users: Some(vec![user]),
        server_zone: None,
        unread: Vec::new(),
    };
    for (children, beyond, jobs, schedules, executors) in [
        (ChildJoin::Any, Beyond::Told, [5, 3, 2, 0], [3, 2, 0, 1], [1, 0, 0, 1]),
        (ChildJoin::All, Beyond::Written, [5, 3, 2, 0], [3, 2, 0, 1], [1, 1, 0, 0]),
    ] {
        let wish = XxlAsked { children, beyond };
        let made = xxl_job(&tables, &asked(), wish, KINDS).unwrap_or_else(|e| panic!("{e}"));
        assert_listed(&made.imported);
        let found = CountedKind::ALL.map(|kind| numbers(&made.imported, kind));
        assert_eq!(found, [jobs, schedules, executors, [1, 0, 0, 1]]);
    }
}
