//! Control-M: days, dependencies, and what is not carried over.

use super::{has_note, import_files, import_text, job, script};
use crate::domain::job::pool::LockMode;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::text::lang::Lang;
use crate::import::{Given, Imported, System, markdown};

fn fixture() -> Imported {
    let bytes = include_bytes!("../../../../../tests/data/import/control_m.json").to_vec();
    let given = [Given { path: "control_m.json".to_owned(), bytes }];
    import_files(System::ControlM, &given).unwrap_or_else(|error| panic!("{error}"))
}

/// `A>B when`, also across groups: `GROUP.A@batch>B when`.
fn edges(made: &Imported) -> Vec<String> {
    let inner = made.definition.dependencies.iter().map(|d| {
        let when =
            if d.when == EdgeCondition::Success { String::new() } else { format!(" {}", d.when) };
        format!("{}>{}{when}", d.depends_on, d.job_code)
    });
    let outer = made.definition.externals.iter().map(|e| {
        let job = e.depends_on.as_ref().map_or("*", |job| job.as_str());
        format!("{}.{job}@{}>{}", e.group, e.batch, e.job_code)
    });
    let mut all: Vec<String> = inner.chain(outer).collect();
    all.sort();
    all
}

#[test]
fn events_are_dependencies_also_across_days_and_folders() {
    let made = fixture();
    assert_eq!(
        edges(&made),
        [
            "GL_CLOSE.POST@day(-1)>REPORT",
            "GL_CLOSE.POST@day(0)>MONTHLY",
            "LOAD>ALARM failure",
            "LOAD>POST",
            "POST>WAITING",
            "wait_FROM_ELSEWHERE_WAITING>WAITING",
        ]
    );
    let groups: Vec<&str> = made.definition.groups.iter().map(|g| g.code.as_str()).collect();
    assert_eq!(
        groups,
        ["GL_CLOSE", "GL_CLOSE_day1", "GL_CLOSE_EVERY15", "REPORTS", "REPORTS_calendar"]
    );
}

#[test]
fn jobs_run_what_they_ran() {
    let made = fixture();
    let load = script(&made, "LOAD");
    assert_eq!(
        load,
        "_ODATE=\"$PROCESSION_PARAM__ODATE\"\nregion=\"$PROCESSION_PARAM_REGION\"\nload.sh ${_ODATE} ${region}\n"
    );
    let load = job(&made, "LOAD");
    let values: Vec<_> = load.params.iter().map(|p| p.value.as_deref()).collect();
    assert_eq!(values, [Some("${format(business_date, %Y%m%d)}"), Some("EU")]);
    assert_eq!((load.retry_count, load.retry_delay_sec, load.priority), (3, 300, 10));
    assert_eq!(load.notify_email, ["ops@bank.example"]);
    assert_eq!(load.schedule_time.map(|t| t.to_string()).as_deref(), Some("02:00:00"));
    assert_eq!((load.pools[0].pool.as_str(), load.pools[0].weight), ("LoadSlots", 2));
    let post = job(&made, "POST");
    assert_eq!(
        (post.proc_name.as_deref(), post.locks[0].mode),
        (Some("gl.post"), LockMode::Shared)
    );
    assert_eq!(post.params[0].value.as_deref(), Some("${format(business_date, %Y%m%d)}"));
    assert_eq!(script(&made, "ALARM"), "'/opt/alarm.sh' 'a b'\n");
    assert_eq!(script(&made, "MONTHLY"), "#!/bin/bash\necho month\n");
    for code in ["REPORT", "SEND", "wait_FROM_ELSEWHERE_WAITING"] {
        assert!(script(&made, code).ends_with("exit 1\n"), "{code} fails until somebody writes it");
    }
    assert!(has_note(&made, "REPORT", "%%NOSUCH"), "{:?}", made.notes);
    assert!(!format!("{}{:?}", made.text, made.notes).contains("geheim"));
}

#[test]
fn schedules_fire_on_their_days_or_not_at_all() {
    let made = fixture();
    for line in [
        "cron: 0 0 0 ? * MON,TUE,WED,THU,FRI",
        "cron: 0 0 0 1 * ?",
        "every_sec: 900",
        "daily: \"18:00-08:00\"",
        "manual: true",
    ] {
        let plain = line.replace('"', "");
        assert!(made.text.contains(line) || made.text.contains(&plain), "{line}\n{}", made.text);
    }
    assert!(
        has_note(&made, "REPORTS_calendar", "WeekDaysCalendar names a calendar"),
        "{:?}",
        made.notes
    );
    let report = markdown(&made, "Control-M", Lang::En);
    assert!(report.contains("jobs: 10 read = "), "{report}");
    assert!(report.contains("schedules: 5 read = "), "{report}");
    for (when, wanted) in [
        (r#"{"WeekDays": ["MON"], "MonthDays": ["1"], "DaysRelation": "OR"}"#, "cron: 0 0 1 * MON"),
        (
            r#"{"WeekDays": ["MON"], "MonthDays": ["1"], "DaysRelation": "AND"}"#,
            "cron: 0 0 0 1 * ?",
        ),
        (r#"{"Months": ["JAN", "JUL"], "MonthDays": ["31"]}"#, "cron: 0 0 0 31 1,7 ?"),
        (r#"{"WeekDays": ["ALL"]}"#, "cron: 0 0 0 * * ?"),
        (r#"{"Schedule": "Never"}"#, "manual: true"),
        (r#"{"RuleBasedCalendars": {"Included": ["EVERYDAY"]}}"#, "cron: 0 0 0 * * ?"),
    ] {
        let text = format!(
            r#"{{"F": {{"Type": "Folder", "J": {{"Type": "Job:Command", "Command": "a", "When": {when}}}}}}}"#
        );
        let made = import_text(System::ControlM, "f.json", &text);
        assert!(made.text.contains(wanted), "{when}: {wanted}\n{}", made.text);
    }
}

#[test]
fn what_is_no_export_is_refused() {
    let refused = |text: &str| {
        let given = [Given { path: "f".to_owned(), bytes: text.as_bytes().to_vec() }];
        import_files(System::ControlM, &given).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(refused("<DEFTABLE/>").contains("no folder"));
    assert!(refused("<DEFTABLE>\n<FOLDER>").contains("f:2: this is not readable as XML"));
    assert!(refused("{}").contains("no folder"));
}

#[test]
fn older_xml_follows_the_same_rules() {
    let text = include_str!("../../../../../tests/data/import/control_m.xml");
    let made = import_text(System::ControlM, "gl.xml", text);
    assert_eq!(
        edges(&made),
        ["LOAD>ALARM failure", "LOAD>POST", "wait_FROM_HR_POST>POST"],
        "{}",
        made.text
    );
    let load = job(&made, "LOAD");
    assert!(script(&made, "LOAD").ends_with("load.sh ${_ODATE} ${REGION}\n"));
    assert_eq!((load.retry_count, load.retry_delay_sec), (3, 300));
    assert_eq!(load.notify_email, ["ops@bank.example"]);
    assert_eq!((load.pools[0].pool.as_str(), load.pools[0].weight), ("LOADERS", 2));
    assert_eq!(load.locks[0].mode, LockMode::Exclusive);
    assert_eq!(load.tags, ["user:batch", "app:LEDGER", "subapp:CLOSE"]);
    assert_eq!(script(&made, "POST"), "'/opt/gl/post.sh'\n");
    for line in [
        "cron: 0 0 0 ? * MON,TUE,WED,THU,FRI",
        "every_sec: 900",
        "cron: 0 0 0 1 1,4,7,10 ?",
        "manual: true",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    assert!(made.text.contains("18:00-08:00"), "{}", made.text);
    for (about, words) in [
        ("GL_calendar", "MonthDaysCalendar names a calendar"),
        ("POST", "Confirm: true is left out"),
        ("POST", "Shout on its own condition"),
        ("SAP", "its type Job:SAP has no counterpart"),
    ] {
        assert!(has_note(&made, about, words), "{about}: {words}\n{:?}", made.notes);
    }
    let report = markdown(&made, "Control-M", Lang::En);
    assert!(report.contains("jobs: 9 read = "), "{report}");
    assert!(report.contains("schedules: 5 read = "), "{report}");
}

#[test]
fn jobs_of_a_smart_folder_run_on_its_days() {
    let import = |job: &str, more: &str| {
        let text = format!(
            r#"<DEFTABLE><SMART_FOLDER FOLDER_NAME="F" FOLDER_ORDER_METHOD="SYSTEM" WEEKDAYS="0,6">
            <JOB JOBNAME="A" TASKTYPE="Command" CMDLINE="a" {job}><RULE_BASED_CALENDARS NAME="*"/></JOB>{more}
            </SMART_FOLDER></DEFTABLE>"#
        );
        import_text(System::ControlM, "f.xml", &text)
    };
    let made = import(r#"TIMEFROM="02:30""#, "");
    assert!(made.text.contains("cron: 0 0 0 ? * SUN,SAT"), "{}", made.text);
    assert_eq!(job(&made, "A").schedule_time.map(|t| t.to_string()).as_deref(), Some("02:30:00"));
    let made = import(r#"WEEKDAYS="1""#, "");
    assert!(made.text.contains("cron: 0 0 0 ? * MON"), "{}", made.text);
    let made = import("", r#"<RULE_BASED_CALENDAR NAME="R" WEEKDAYS="2"/>"#);
    assert!(made.text.contains("cron: 0 0 0 ? * TUE"), "{}", made.text);
    let made = import("", r#"<SHOUT WHEN="LATESUB"/>"#);
    assert!(has_note(&made, "F", "SHOUT"), "{:?}", made.notes);
}
