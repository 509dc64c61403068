//! Batch numbers that do not fit the type of their group, with the real program: refused alike at every
//! entry point, opened as free text on record.

use crate::cli::said;
use serde_json::Value;
use std::path::Path;

const FILE: &str = "\
groups:
  close: {type: monthly}
  quarter: {type: quarterly}
defaults: {type: NOOP}
jobs:
  A: {group: close}
  Z: {group: close, type: SCRIPT, interpreter: sh, script: 'true', depends_on: [A]}
  Q: {group: quarter}
schedules:
  HOLE: {group: close, event: rates}
";

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    let file = FILE.replace("event: rates", "event: rates, batch_no: month(-1)");
    std::fs::write(home.path().join("d.yaml"), file).expect("file");
    home
}

fn well(path: &Path, args: &[&str]) -> String {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 0, "{args:?}: {shown}{told}");
    shown
}

fn json(path: &Path, args: &[&str]) -> Value {
    let shown = well(path, &[&["--json"], args].concat());
    serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{args:?}: {e}: {shown}"))
}

fn refused(path: &Path, args: &[&str], words: &str) {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 2, "{args:?}: {shown}{told}");
    assert!(format!("{shown}{told}").contains(words), "{args:?}: {shown}{told}");
}

#[test]
fn every_entry_refuses_a_wrong_period_in_the_same_words() {
    let home = home();
    let path = home.path();
    for (number, meant) in [
        ("202413", "202413 is not the number of a month; write one of 202401 to 202412"),
        ("2024-07", "2024-07 is not the number of a month; did you mean 202407?"),
        ("2024-13", "2024-13 is not the number of a month; write one of 202401 to 202412"),
    ] {
        let words = format!("group close is monthly, and {meant}");
        for verb in ["plan", "run"] {
            refused(path, &[verb, "d.yaml", "--batch-no", number, "--group", "close"], &words);
        }
        refused(
            path,
            &["batch", "open", "d.yaml", "--batch-no", number, "--group", "close"],
            &words,
        );
        refused(path, &["backfill", number, "d.yaml", "--group", "close"], &words);
        let order = format!(r#"{{"batchNo":"{number}","group":"close"}}"#);
        refused(path, &["run", "d.yaml", "--order", &order], &words);
    }
    well(path, &["apply", "d.yaml"]);
    let batches = json(path, &["batch", "list"]);
    assert_eq!(batches.as_array().map(Vec::len), Some(0), "nothing was opened: {batches}");
    let add = ["schedule", "add", "S", "--group", "close", "--manual", "--batch-no"];
    refused(path, &[&add[..], &["day(0)"]].concat(), "group close is monthly, and 20");
    refused(path, &[&add[..], &["quarter(-1)"]].concat(), "is not the number of a month");
    // A schedule that follows a quarter: its number is seen from one.
    let after = ["schedule", "add", "T", "--group", "close", "--after", "quarter", "--batch-no"];
    refused(path, &[&after[..], &["same"]].concat(), "2024Q3 is not the number of a month");
    // In a file the fault has its line.
    let day = FILE.replace("event: rates", "event: rates, batch_no: day(0)");
    std::fs::write(path.join("day.yaml"), &day).expect("file");
    refused(path, &["check", "day.yaml"], "day.yaml:10:");
    // A repeated run keeps its period.
    well(path, &["run", "--batch-no", "202407-rerun2", "--group", "close", "-q"]);
    let shown = json(path, &["batch", "show", "202407-rerun2", "--group", "close"]);
    assert_eq!(
        (&shown["business_date"], &shown["free_text"]),
        (&"2024-07-31".into(), &false.into())
    );
}

#[test]
fn free_text_is_opened_on_record() {
    let home = home();
    let path = home.path();
    well(
        path,
        &["run", "d.yaml", "--batch-no", "trial-1", "--group", "close", "--free-text", "-q"],
    );
    let order = r#"{"batchNo":"trial-2","group":"close","freeText":true}"#;
    well(path, &["run", "--order", order, "-q"]);
    well(path, &["backfill", "trial-3,trial-4", "--group", "close", "--free-text", "-q"]);
    well(path, &["run", "--batch-no", "202407", "--group", "close", "--free-text", "-q"]);
    let audit = json(path, &["audit"]);
    let on_record = |no: &str| {
        let all = audit.as_array().expect("a list").iter();
        all.filter(|e| e["action"] == "open-free-text" && e["batch_no"] == no).count()
    };
    for number in ["trial-1", "trial-2", "trial-3", "trial-4"] {
        assert_eq!(on_record(number), 1, "{number}: {audit}");
        let shown = json(path, &["batch", "show", number, "--group", "close"]);
        assert_eq!((&shown["free_text"], &shown["business_date"]), (&true.into(), &Value::Null));
    }
    // One that fits is none, whatever was allowed.
    assert_eq!(on_record("202407"), 0, "{audit}");
    // What has been opened goes on without the flag.
    refused(
        path,
        &["run", "--batch-no", "trial-1", "--group", "close", "--resume"],
        "nothing left",
    );
}

#[test]
fn a_missing_value_is_found_before_the_first_job() {
    let home = home();
    let path = home.path();
    let text = FILE
        .replace("event: rates", "event: rates, batch_no: month(-1)")
        .replace("depends_on: [A]", "depends_on: [A], params: [{name: D, value: '${last_day}'}]");
    std::fs::write(path.join("d.yaml"), text).expect("file");
    let order = ["d.yaml", "--batch-no", "trial", "--group", "close", "--free-text"];
    let words = "job Z: parameter D: ${last_day} has no value";
    refused(path, &[&["plan"], &order[..]].concat(), words);
    refused(path, &[&["run"], &order[..]].concat(), words);
    let batches = json(path, &["batch", "list"]);
    assert_eq!(batches.as_array().map(Vec::len), Some(0), "no job has run: {batches}");
}

#[test]
fn an_order_by_type_opens_each_group_for_itself() {
    let home = home();
    let path = home.path();
    let both = FILE
        .replace("quarterly", "monthly")
        .replace("event: rates", "event: rates, batch_no: month(-1)");
    std::fs::write(path.join("d.yaml"), both).expect("file");
    well(path, &["run", "d.yaml", "--batch-no", "202407", "--group", "close", "-q"]);
    let order = ["--batch-no", "202407", "--type", "monthly"];
    let words = "batch 202407 of group close exists already (SUCCESS) and is left as it is";
    let (code, shown, told) = said(path, &[&["plan", "d.yaml"], &order[..]].concat());
    assert!(code == 0 && told.contains(words), "{shown}{told}");
    assert!(shown.contains("group quarter") && !shown.contains("group close (monthly)"), "{shown}");
    let (code, shown, told) = said(path, &[&["run", "d.yaml"], &order[..]].concat());
    assert!(code == 0 && told.contains(words), "{shown}{told}");
    assert!(shown.contains("Batch 202407 of quarter: SUCCESS"), "{shown}");
    // When there is nothing left to open, that is the answer.
    refused(
        path,
        &[&["run", "d.yaml"], &order[..]].concat(),
        "batch 202407 of group close exists already",
    );
    refused(path, &[&["plan"], &order[..]].concat(), "batch 202407 of group close exists already");
}

#[test]
fn who_loses_a_race_for_a_batch_hears_that_it_exists() {
    let home = home();
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    let open = ["batch", "open", "--batch-no", "202407", "--group", "close"];
    let ends: Vec<(i32, String, String)> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| said(path, &open))).collect();
        all.into_iter().map(|one| one.join().expect("an end")).collect()
    });
    assert_eq!(ends.iter().filter(|(code, ..)| *code == 0).count(), 1, "{ends:?}");
    for (_, shown, told) in ends.iter().filter(|(code, ..)| *code != 0) {
        let words = "batch 202407 of group close exists already (RUNNING)";
        assert!(told.contains(words), "{shown}{told}");
    }
    assert!(ends.iter().all(|(code, ..)| [0, 2].contains(code)), "{ends:?}");
}

#[test]
fn a_source_of_another_team_is_not_changed_by_a_run() {
    let home = home();
    let path = home.path();
    let file = |group: &str, url: &str| {
        format!(
            "sources: {{dw: {{url: '{url}'}}}}\ngroups: {{{group}: {{}}}}\n\
             jobs: {{J_{group}: {{type: SQL, source: dw, sql: SELECT 1}}}}\n"
        )
    };
    let write = |name: &str, text: String| std::fs::write(path.join(name), text).expect("file");
    write("one.yaml", file("one", "sqlite:one.db"));
    write("two.yaml", file("two", "sqlite:two.db"));
    well(path, &["apply", "one.yaml"]);
    let words =
        "source dw is defined otherwise by another file (its url), and jobs of group one run on it";
    refused(path, &["plan", "two.yaml", "--batch-no", "1"], words);
    refused(path, &["run", "two.yaml", "--batch-no", "1"], words);
    refused(path, &["batch", "open", "two.yaml", "--batch-no", "1"], words);
    let shown = well(path, &["apply", "two.yaml", "--dry-run"]);
    assert!(shown.contains("~ source dw\n    url: sqlite:one.db -> sqlite:two.db"), "{shown}");
}

#[test]
fn a_pool_or_a_host_of_another_team_is_not_changed_by_a_run() {
    let home = home();
    let path = home.path();
    let file = |group: &str, shared: &str, job: &str| {
        format!("{shared}\ngroups: {{{group}: {{}}}}\njobs: {{J: {{group: {group}, {job}}}}}\n")
    };
    let pool = |slots: u32| format!("pools: {{cpu: {slots}}}");
    let host = |url: &str| format!("hosts: {{core: {{base_url: '{url}'}}}}");
    let write = |name: &str, text: String| std::fs::write(path.join(name), text).expect("file");
    let (pooled, calls) =
        ("type: NOOP, pools: {cpu: 1}", "type: HTTP, http: {host: core, method: GET, path: /x}");
    write("one.yaml", file("one", &pool(4), pooled));
    write("two.yaml", file("two", &pool(9), pooled));
    write("three.yaml", file("three", &host("https://a.example"), calls));
    write("four.yaml", file("four", &host("https://b.example"), calls));
    well(path, &["apply", "one.yaml"]);
    well(path, &["apply", "three.yaml"]);
    let pools = "pool cpu is defined otherwise by another file (4 slots there, 9 here), and job J of group one uses it";
    let hosts = "host core is defined otherwise by another file, and job J of group three uses it";
    for (name, words) in [("two.yaml", pools), ("four.yaml", hosts)] {
        refused(path, &["plan", name, "--batch-no", "1"], words);
        refused(path, &["run", name, "--batch-no", "1"], words);
    }
    let shown = well(path, &["apply", "two.yaml", "--dry-run"]);
    assert!(shown.contains("~ pool cpu\n    slots: 4 -> 9"), "{shown}");
}

#[test]
fn plan_refuses_a_calendar_that_is_not_there_as_run_does() {
    let home = home();
    let path = home.path();
    let text = "groups: {g: {calendar: nowhere}}\njobs: {A: {type: NOOP, group: g}}\n";
    std::fs::write(path.join("calendar.yaml"), text).expect("file");
    let plan = ["plan", "calendar.yaml", "--batch-no", "1"];
    refused(path, &plan, "group g: there is no calendar nowhere");
    well(path, &["migrate"]);
    refused(path, &plan, "group g: there is no calendar nowhere");
    refused(
        path,
        &["run", "calendar.yaml", "--batch-no", "1"],
        "group g: there is no calendar nowhere",
    );
}

#[test]
fn words_of_other_tools_and_slips_are_faults_with_what_was_meant() {
    let home = home();
    let path = home.path();
    for (text, said) in [
        (
            "groups: {g: {type: Monthly}}\njobs: {A: {type: NOOP}}\n",
            "type is \"Monthly\"; write monthly",
        ),
        (
            "groups: {g: {timeout: 5}}\njobs: {A: {type: NOOP}}\n",
            "unknown key timeout; did you mean batch_timeout_sec?",
        ),
        ("jobs: {A: {type: NOOP, retries: 3}}\n", "unknown key retries; did you mean retry_count?"),
        ("jobs: {A: {type: NOOP, timeout: 3}}\n", "unknown key timeout; did you mean timeout_sec?"),
        (
            "jobs: {A: {type: NOOP}, B: {type: NOOP, dependencies: [A]}}\n",
            "did you mean depends_on?",
        ),
        ("jobs: {A: {type: SCRIPT, command: ls}}\n", "unknown key command; did you mean script?"),
        (
            "jobs: {A: {type: PROC, procedure: p}}\n",
            "unknown key procedure; did you mean proc_name?",
        ),
        (
            "sources: {s: {url: 'sqlite:s.db', procedures: {p: SELECT 1}}}\njobs:\n  \
             UPR: {type: PROC, source: s, proc_name: p, params: [{name: p_total, mode: out, type: int}]}\n  \
             B: {type: SQL, source: s, sql: 'SELECT :t', depends_on: [UPR], params: [{name: t, value: '${jobs.UPR.total}'}]}\n",
            "uses the output total of UPR, which UPR does not declare; did you mean p_total?",
        ),
        (
            "jobs:\n  A: {type: NOOP}\n  B: {type: SCRIPT, interpreter: sh, script: 'true', depends_on: [A], \
             params: [{name: t, value: '${jobs.A.total}'}]}\n",
            "which A does not declare; a job of type NOOP hands out nothing",
        ),
    ] {
        std::fs::write(path.join("x.yaml"), text).expect("file");
        refused(path, &["check", "x.yaml"], said);
    }
}

/// Two teams with the same codes, in files of their own.
fn two_teams() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    for group in ["a", "b"] {
        let text = format!(
            "groups: {{ {group}: {{}} }}\ndefaults: {{ type: NOOP }}\njobs:\n  LOAD: {{}}\n  \
             POST_{group}: {{ depends_on: [LOAD] }}\n"
        );
        let file = home.path().join(format!("{group}.yaml"));
        std::fs::write(file, text).expect("file");
    }
    home
}

#[test]
fn a_code_of_two_groups_is_asked_back_and_a_full_one_always_works() {
    let home = two_teams();
    let path = home.path();
    for group in ["a", "b"] {
        let file = format!("{group}.yaml");
        well(path, &["apply", &file]);
        well(path, &["run", &file, "--batch-no", "202407", "-q"]);
        assert!(
            well(path, &["apply", &file]).contains("no changes"),
            "the same file changes nothing"
        );
    }
    let several = "LOAD is in groups a and b; write a.LOAD or b.LOAD";
    refused(path, &["job", "show", "LOAD"], several);
    refused(path, &["job", "stats", "LOAD"], several);
    refused(path, &["params", "show", "LOAD", "--batch-no", "202407"], several);
    refused(path, &["job", "ice", "LOAD", "--every-batch", "--reason", "x"], several);
    refused(path, &["job", "trust", "LOAD", "--reason", "x"], several);
    for group in ["a", "b"] {
        let name = format!("{group}.LOAD");
        let shown = json(path, &["job", "show", &name]);
        assert_eq!(
            (&shown["job"]["group"], &shown["children"][0]),
            (&group.into(), &format!("POST_{group}").into())
        );
        let stats = json(path, &["job", "stats", &name]);
        assert_eq!(
            (stats[0]["group"].as_str(), stats.as_array().map(Vec::len)),
            (Some(group), Some(1))
        );
        well(path, &["logs", "202407", &name, "--group", group]);
    }
    // A plain code that one group has keeps working.
    assert_eq!(json(path, &["job", "show", "POST_b"])["job"]["group"], "b");
    well(path, &["job", "ice", "a.LOAD", "--every-batch", "--reason", "x"]);
    let jobs = json(path, &["job", "list"]);
    let modes: Vec<&Value> =
        jobs.as_array().expect("jobs").iter().map(|job| &job["run_mode"]).collect();
    assert_eq!(modes.iter().filter(|mode| !mode.is_null()).count(), 1, "{jobs}");
}
