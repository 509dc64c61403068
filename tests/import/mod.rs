//! Other systems' jobs, imported: every edge arrives and none is made up, what comes out is a sound
//! definition, and what is not as it was is said.

use procession::app::job_kinds;
use procession::definition::load_definition;
use procession::domain::id::JobCode;
use procession::domain::job::trigger_rule::EdgeCondition;
use procession::domain::job::{Definition, JobDef};
use procession::domain::time::Millis;
use procession::import::{
    CountedKind, Given, ImportError, ImportRequest, Imported, ImportedFiring, ItemOutcome, Level,
    System, import, markdown,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// 2026-09-21, a Monday.
const NOW: Millis = Millis(1_789_948_800_000);

fn asked() -> ImportRequest {
    ImportRequest {
        group: None,
        zone: Some(chrono_tz::Asia::Shanghai),
        crontab_users: None,
        firing: ImportedFiring::AsThere,
        now: NOW,
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import")
}

fn fixture(name: &str) -> Vec<Given> {
    let path = folder().join(name);
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder") {
            let entry = entry.expect("a file").file_name();
            found.extend(fixture(&format!("{name}/{}", entry.to_string_lossy())));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        return found;
    }
    vec![Given { path: name.to_owned(), bytes: std::fs::read(path).expect("a fixture") }]
}

fn text(system: System, path: &str, text: &str) -> Result<Imported, ImportError> {
    let given = [Given { path: path.to_owned(), bytes: text.as_bytes().to_vec() }];
    import(system, &given, &asked(), &job_kinds())
}

fn taken(system: System, name: &str) -> Imported {
    let made = import(system, &fixture(name), &asked(), &job_kinds());
    made.unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn refused(system: System, path: &str, given: &str) -> String {
    text(system, path, given).expect_err("it cannot be read").to_string()
}

/// Edges as `parent>child`, with what is asked where that is not success.
fn edges(defs: &Definition) -> BTreeSet<String> {
    let one = |d: &procession::domain::job::JobDependency| {
        let when =
            if d.when == EdgeCondition::Success { String::new() } else { format!(" {}", d.when) };
        format!("{}>{}{when}", d.depends_on, d.job_code)
    };
    defs.dependencies.iter().map(one).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn job<'a>(made: &'a Imported, code: &str) -> &'a JobDef {
    let found = made.definition.jobs.iter().find(|j| j.code.as_str() == code);
    found.unwrap_or_else(|| panic!("no job {code} in\n{}", made.text))
}

/// The text and the files beside it are read as the very same definition.
fn assert_sound(made: &Imported) {
    let read = |path: &Path| {
        if path == Path::new("definition.yaml") {
            return Ok(made.text.clone());
        }
        let file = made.files.iter().find(|f| Path::new(&f.path) == path);
        let bytes = file.map(|f| f.bytes.clone()).unwrap_or_default();
        Ok(String::from_utf8(bytes).expect("scripts are text"))
    };
    let loaded = load_definition(Path::new("definition.yaml"), &read, &job_kinds());
    let loaded = loaded.unwrap_or_else(|e| panic!("{e}\n{}", made.text));
    assert_eq!(loaded.definition.jobs, made.definition.jobs);
    assert_eq!(edges(&loaded.definition), edges(&made.definition));
    assert_eq!(loaded.definition.schedules, made.definition.schedules);
    let expected = std::collections::BTreeMap::new();
    let look = procession::definition::ScheduleCheckContext {
        calendars: None,
        now: NOW,
        expected: &expected,
        stored: &[],
    };
    loaded.look_at_schedules(look).unwrap_or_else(|e| panic!("{e}\n{}", made.text));
}

#[test]
fn every_fixture_becomes_a_sound_definition() {
    for (system, name) in [
        (System::Crontab, "crontab"),
        (System::Crontab, "etc_crontab"),
        (System::PgTimetable, "pg_timetable.yaml"),
        (System::Azkaban, "azkaban1"),
        (System::Azkaban, "azkaban1.zip"),
        (System::Azkaban, "azkaban2"),
        (System::DolphinScheduler, "dolphinscheduler_1.json"),
        (System::DolphinScheduler, "dolphinscheduler_3.json"),
        (System::Airflow, "airflow_2.json"),
        (System::Airflow, "airflow_3.json"),
    ] {
        let made = taken(system, name);
        assert_sound(&made);
        for lang in procession::domain::text::lang::Lang::ALL {
            let report = markdown(&made, name, lang);
            for note in &made.notes {
                assert!(!note.message.pick(lang).is_empty(), "{name}: {note:?}");
            }
            assert!(report.lines().count() > 5, "{report}");
        }
    }
}

/// What stands in each fixture, counted by hand: jobs and schedules.
#[test]
fn all_that_was_read_is_counted_once() {
    for (system, name, jobs, schedules) in [
        (System::Crontab, "crontab", 8, 8),
        (System::Crontab, "etc_crontab", 2, 2),
        (System::PgTimetable, "pg_timetable.yaml", 6, 2),
        (System::Azkaban, "azkaban1", 4, 0),
        (System::Azkaban, "azkaban1.zip", 4, 0),
        (System::Azkaban, "azkaban2", 5, 0),
        (System::DolphinScheduler, "dolphinscheduler_1.json", 2, 1),
        (System::DolphinScheduler, "dolphinscheduler_3.json", 12, 1),
        (System::Airflow, "airflow_2.json", 6, 1),
        (System::Airflow, "airflow_3.json", 3, 2),
    ] {
        let made = taken(system, name);
        let counts = made.item_counts();
        let read = |kind: CountedKind| counts.iter().find(|c| c.kind == kind).map_or(0, |c| c.read);
        assert_eq!(
            (read(CountedKind::Job), read(CountedKind::Schedule)),
            (jobs, schedules),
            "{name}"
        );
        for count in counts {
            assert_eq!(count.read, count.carried + count.changed + count.left_out, "{name}");
        }
        for item in made.items.iter().filter(|item| item.outcome != ItemOutcome::Carried) {
            let noted = made.notes.iter().any(|n| n.origin == item.origin);
            assert!(noted, "{name}: {item:?} is in no note");
        }
    }
}

#[test]
fn a_crontab_becomes_a_group_and_a_schedule_for_each_line() {
    let made = taken(System::Crontab, "crontab");
    let defs = &made.definition;
    assert_eq!((defs.jobs.len(), defs.groups.len(), defs.schedules.len()), (7, 7, 6));
    assert!(defs.dependencies.is_empty());
    let when: Vec<(String, String, &str)> = defs
        .schedules
        .iter()
        .map(|s| {
            let number = s.order.as_ref().map(|o| o.batch_no.to_string()).unwrap_or_default();
            (s.schedule_conf(), number, s.timing.zone.name())
        })
        .collect();
    let wanted = [
        ("30 1 * * *", "day(0)", "Asia/Shanghai"),
        ("*/5 * * * *", "time(%Y%m%d-%H%M)", "Asia/Shanghai"),
        ("0 6,18 * * 1-5", "time(%Y%m%d-%H%M)", "Asia/Shanghai"),
        ("0 0 1,15 * fri", "day(0)", "Asia/Shanghai"),
        ("0 * * * *", "time(%Y%m%d-%H%M)", "Asia/Shanghai"),
        ("15 17 * * mon-fri", "day(0)", "America/New_York"),
    ];
    let wanted: Vec<(String, String, &str)> =
        wanted.iter().map(|(c, n, z)| ((*c).to_owned(), (*n).to_owned(), *z)).collect();
    assert_eq!(when, wanted);
    assert_eq!(defs.jobs[0].code.as_str(), "总账夜间备份");
    let script = defs.jobs[4].script.clone().unwrap_or_default();
    assert!(
        script.contains("<<'END_OF_INPUT'\nfirst line\nsecond line\nEND_OF_INPUT\n"),
        "{script}"
    );
    let out = |l: Level| made.notes.iter().filter(|n| n.level == l).count();
    assert_eq!(out(Level::LeftOut), 2, "@reboot, and the 31st of February: {:?}", made.notes);
}

#[test]
fn the_machines_crontab_names_users() {
    let made = taken(System::Crontab, "etc_crontab");
    let tags: Vec<&[String]> = made.definition.jobs.iter().map(|j| j.tags.as_slice()).collect();
    assert_eq!(tags, [["user:root".to_owned()], ["user:ledger".to_owned()]]);
    assert!(job(&made, "月末对账").script.as_deref().unwrap_or_default().contains("date +%Y%m"));
}

#[test]
fn the_tasks_of_a_chain_run_in_its_order() {
    let made = taken(System::PgTimetable, "pg_timetable.yaml");
    let wanted = [
        "stage>notify",
        "notify>nightly_load_3_Sleep done",
        // notify has an end as well when it never ran.
        "stage>nightly_load_3_Sleep",
        "nightly_load_3_Sleep>vac",
        "refresh_1>refresh_2_SendMail",
    ];
    assert_eq!(edges(&made.definition), set(&wanted));
    assert!(!made.text.contains("secret"), "no password of a connect_string:\n{}", made.text);
    assert_eq!(job(&made, "stage").params.len(), 2);
    let failing = job(&made, "refresh_2_SendMail").script.clone().unwrap_or_default();
    assert!(failing.ends_with("exit 1\n"), "{failing}");
    let off = made.definition.schedules.iter().find(|s| s.code.as_str() == "refresh");
    assert_eq!(off.map(|s| s.timing.schedule.kind()), Some("manual"), "live is false there");
}

#[test]
fn a_zip_and_its_folder_are_the_same_project() {
    let (zip, folder) =
        (taken(System::Azkaban, "azkaban1.zip"), taken(System::Azkaban, "azkaban1"));
    assert_eq!(edges(&zip.definition), edges(&folder.definition));
    let wanted = ["extract>load", "extract>check", "load>done", "check>done"];
    assert_eq!(edges(&zip.definition), set(&wanted));
    let paths: Vec<&str> = zip.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["files/load.sh"]);
}

/// An archive may name any path; what is written stays in the folder that was asked for.
#[test]
fn files_stay_below_their_folder() {
    let file = |path: &str, text: &str| Given { path: path.to_owned(), bytes: text.into() };
    let given = [
        file("p/a.job", "type=command\ncommand=sh x.sh\n"),
        file("p/sub/x.sh", "echo"),
        file("p/../../etc/cron.d/evil", "x"),
    ];
    let made = import(System::Azkaban, &given, &asked(), &job_kinds()).expect("a project");
    let paths: Vec<&str> = made.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["files/sub/x.sh", "files/etc/cron.d/evil"]);
}

/// Nobody may think that a failure's branch ran because of a stand-in.
#[test]
fn nothing_follows_the_failure_of_a_condition_that_was_not_carried_over() {
    let text = std::fs::read_to_string(folder().join("dolphinscheduler_3.json")).expect("fixture");
    let text = text.replace(
        "\"depTaskCode\": 4, \"status\": \"SUCCESS\"",
        "\"depTaskCode\": 4, \"status\": \"FAILURE\"",
    );
    let given = [Given { path: "d.json".to_owned(), bytes: text.into_bytes() }];
    let made = import(System::DolphinScheduler, &given, &asked(), &job_kinds()).expect("read");
    assert!(edges(&made.definition).contains("decide>repair"), "{:?}", edges(&made.definition));
    let failing = job(&made, "decide").script.clone().unwrap_or_default();
    assert!(failing.ends_with("exit 1\n"), "{failing}");
}

#[test]
fn an_embedded_flow_is_waited_for_by_its_last_jobs() {
    let made = taken(System::Azkaban, "azkaban2");
    let wanted =
        ["prepare>check", "prepare>inner.a", "inner.a>inner.b", "inner.b>report", "check>report"];
    assert_eq!(edges(&made.definition), set(&wanted));
    assert_eq!(job(&made, "report").trigger_rule.to_string(), "one_success");
    let condition = job(&made, "check").condition.as_ref().map(ToString::to_string);
    assert_eq!(condition.as_deref(), Some("prepare.rows > 0"));
}

#[test]
fn a_workflow_keeps_its_relations_past_what_is_switched_off() {
    let made = taken(System::DolphinScheduler, "dolphinscheduler_3.json");
    let wanted = [
        "抽取>过账",
        "过账>skip_me",
        "过账>check",
        "过账>proc",
        "check>decide done",
        "过账>decide",
        "decide>decide_failed",
        "check>decide_failed failure",
        "decide>tell",
        "decide_failed>tell skipped",
        "decide_failed>repair",
        "抽取>spark",
        "spark>sub",
        "wait_for_the_close>check_2",
    ];
    assert_eq!(edges(&made.definition), set(&wanted));
    assert!(!job(&made, "skip_me").is_active);
    let waits: Vec<String> = made
        .definition
        .externals
        .iter()
        .map(|e| {
            let job = e.depends_on.as_ref().map_or("", JobCode::as_str);
            format!("{} {} {job}", e.group, e.batch)
        })
        .collect();
    assert_eq!(waits, ["总账日终 day(0) 过账", "总账日终 day(-1) ", "总账日终 day(-2) "]);
}

#[test]
fn placeholders_are_bound() {
    let made = taken(System::DolphinScheduler, "dolphinscheduler_3.json");
    let shell = job(&made, "抽取").script.clone().unwrap_or_default();
    let wanted = "bizday=\"$PROCESSION_PARAM_BIZDAY\"\nregion=\"$PROCESSION_PARAM_REGION\"\n\
                  time_yyyy_MM_dd=\"$PROCESSION_PARAM_TIME_YYYY_MM_DD\"\n\
                  echo \"day ${bizday} of ${region}\" ''\"${region}\"'' ${time_yyyy_MM_dd}\n\
                  echo $HOME\n";
    assert_eq!(shell, wanted.replace("\"${bizday}\"", "${bizday}"));
    let sql = format!("{:?}", job(&made, "过账").sql);
    assert!(sql.contains("DELETE FROM gl WHERE dt = :bizday;"), "{sql}");
    assert!(sql.contains("dt = :bizday AND n > :least"), "{sql}");
    let params = &made.definition.groups[0].params;
    let day = params.iter().find(|p| p.name == "bizday").and_then(|p| p.value.as_deref());
    assert_eq!(day, Some("${format(add_days(business_date, -1), %Y%m%d)}"));
}

#[test]
fn an_old_export_is_read_too() {
    let made = taken(System::DolphinScheduler, "dolphinscheduler_1.json");
    assert_eq!(edges(&made.definition), set(&["load>post"]));
    let load = job(&made, "load");
    assert_eq!((load.retry_count, load.retry_delay_sec, load.timeout_sec), (1, 120, 1_200));
    assert_eq!(made.definition.schedules[0].timing.schedule.kind(), "manual", "it was OFFLINE");
}

/// System, file, text, and what must be said of it.
const BROKEN: &[(System, &str, &str, &str)] = &[
    (System::Crontab, "c", "0 1 * * * ok\n0 25 * * * bad\n", "c:2: "),
    (System::Crontab, "c", "0 1 * *\n", "c:1: this line has 4 of five"),
    (System::Crontab, "c", "0 1 * * *\n", "c:1: this line has no command"),
    (System::Crontab, "c", "", "c: no line here starts anything"),
    (System::Crontab, "c", "CRON_TZ=Mars/Base\n0 1 * * * x\n", "c:1: CRON_TZ"),
    (System::PgTimetable, "p.yaml", "", "p.yaml"),
    (System::PgTimetable, "p.yaml", "chains: [\n", "p.yaml"),
    (System::PgTimetable, "p.yaml", "chains:\n  - name: a\n", "p.yaml:2: chain a has no tasks"),
    (
        System::PgTimetable,
        "p.yaml",
        "chains:\n- name: a\n  schedule: '@every soon'\n  tasks: [{command: SELECT 1}]\n",
        "p.yaml:3: chain a: ",
    ),
    (
        System::PgTimetable,
        "p.yaml",
        "chains:\n- {name: a, tasks: [{command: x}]}\n- {name: a, tasks: [{command: x}]}\n",
        "p.yaml:3: chain a is there twice",
    ),
    (System::Azkaban, "a.job", "type=command\n", "a.job:1: a has no command"),
    (
        System::Azkaban,
        "a.job",
        "type=noop\ndependencies=b\n",
        "a.job:2: a depends on b, which is not",
    ),
    (System::Azkaban, "a.job", "type=noop\ndependencies=a\n", "a.job:2: a depends on itself"),
    (System::Azkaban, "x.flow", "nodes: []\n", "x.flow:1: this flow has no nodes"),
    (
        System::Azkaban,
        "x.flow",
        "nodes:\n- {name: a, type: noop, dependsOn: [b]}\n- {name: b, type: noop, dependsOn: [a]}\n",
        "wait for one another in a circle",
    ),
    (
        System::Azkaban,
        "x.flow",
        "nodes:\n- {name: a, type: noop}\n- {name: a, type: noop}\n",
        "x.flow:3: node a is there twice, first at x.flow:2",
    ),
    (
        System::Azkaban,
        "x.flow",
        "nodes:\n- {name: a, type: noop}\n- name: b\n  type: noop\n  dependsOn: [a]\n  \
         condition: one_failed && all_done\n",
        "x.flow:6: b: its condition has 2 of the states' macros",
    ),
    (System::Azkaban, "x.zip", "PK\u{3}\u{4}xx", "x.zip: this zip has no end"),
    (System::DolphinScheduler, "d.json", "[{}]", "d.json:1: this is no workflow"),
    (System::DolphinScheduler, "d.json", "[{\"processDefinition\": ", "d.json"),
    (
        System::DolphinScheduler,
        "d.json",
        "{\"processDefinition\": {\"name\": \"w\", \"code\": 1},\n\"taskDefinitionList\": [],\n\
         \"processTaskRelationList\": [{\"preTaskCode\": 7,\n\"postTaskCode\": 8}]}",
        "names task 7, which is not there",
    ),
];

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    for (system, path, given, said) in BROKEN {
        let found = refused(*system, path, given);
        assert!(found.contains(said), "{given:?}: {found}");
    }
    let bytes = [b"0 1 * * * ok\n".to_vec(), vec![0xff, 0xfe]].concat();
    let given = [Given { path: "c".to_owned(), bytes }];
    let found = import(System::Crontab, &given, &asked(), &job_kinds()).expect_err("no UTF-8");
    assert!(found.to_string().starts_with("c:2: this is not UTF-8"), "{found}");
}

/// Flow 2.0 as YAML of a random graph: node n waits for some of the nodes before it.
fn flow(parents: &[Vec<usize>]) -> (String, BTreeSet<String>) {
    let mut text = "nodes:\n".to_owned();
    let mut edges = BTreeSet::new();
    for (n, own) in parents.iter().enumerate() {
        let own: BTreeSet<usize> = own.iter().map(|p| p % n.max(1)).filter(|p| *p < n).collect();
        let names: Vec<String> = own.iter().map(|p| format!("n{p}")).collect();
        edges.extend(names.iter().map(|p| format!("{p}>n{n}")));
        text.push_str(&format!(
            "- {{name: n{n}, type: noop, dependsOn: [{}]}}\n",
            names.join(", ")
        ));
    }
    (text, edges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a crontab holds, it is refused, or becomes a sound definition.
    #[test]
    fn any_crontab_is_refused_or_sound(
        lines in proptest::collection::vec(
            "([0-9*/,-]{1,4} ){5}[a-z %'\"$\\\\#=/月]{0,20}|@[a-z]{1,7} [ -~]{0,12}|[A-Z]{1,6}=[ -~]{0,9}|#[ -~]{0,9}",
            0..6,
        )
    ) {
        if let Ok(made) = text(System::Crontab, "crontab", &lines.join("\n")) {
            assert_sound(&made);
        }
    }

    #[test]
    fn the_edges_of_any_flow_arrive(
        parents in proptest::collection::vec(proptest::collection::vec(0_usize..12, 0..4), 1..12)
    ) {
        let (given, wanted) = flow(&parents);
        let made = text(System::Azkaban, "x.flow", &given).expect("a DAG");
        prop_assert_eq!(edges(&made.definition), wanted);
        assert_sound(&made);
    }

    /// Damaged files are refused or read; they never end the program.
    #[test]
    fn damage_is_no_panic(at in 0_usize..4_000, with in "[ -~]{0,3}", which in 0_usize..4) {
        let (system, name) = [
            (System::PgTimetable, "pg_timetable.yaml"),
            (System::DolphinScheduler, "dolphinscheduler_3.json"),
            (System::DolphinScheduler, "dolphinscheduler_1.json"),
            (System::Azkaban, "azkaban2/basic.flow"),
        ][which];
        let mut given = fixture(name).remove(0);
        let at = at % given.bytes.len();
        given.bytes.splice(at..at, with.bytes());
        if let Ok(made) = import(system, &[given], &asked(), &job_kinds()) {
            assert_sound(&made);
        }
    }
}
