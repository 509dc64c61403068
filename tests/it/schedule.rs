//! `schedule …`, `event …` and `apply` of schedules, with the real program.

use crate::cli::said;
use serde_json::Value;
use std::path::Path;

const CN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dag-examples/calendars/cn.json");

const FILE: &str = "\
groups:
  close: {type: monthly, time_zone: Asia/Shanghai}
jobs:
  A: {type: NOOP}
schedules:
  MONTH: {group: close, batch_no: month(-1), cron: 0 0 2 1 * ?}
  SAMPLE: {group: close, batch_no: adhoc, free_text: true, manual: true}
";

/// Runs a verb that must do what it is asked.
fn well(path: &Path, args: &[&str]) -> (String, String) {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 0, "{args:?}: {shown}{told}");
    (shown, told)
}

fn json(path: &Path, args: &[&str]) -> Value {
    let (shown, _) = well(path, &[&["--json"], args].concat());
    serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{args:?}: {e}: {shown}"))
}

/// Runs a verb that must be refused as the user's fault, with these words.
fn refused(path: &Path, args: &[&str], words: &str) {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 2, "{args:?}: {shown}{told}");
    assert!(told.contains(words), "{args:?}: {told}");
}

fn home(file: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    std::fs::write(home.path().join("d.yaml"), file).expect("file");
    home
}

/// Code, revision and status of each schedule.
fn standing(path: &Path) -> String {
    let list = json(path, &["schedule", "list"]);
    let words = |s: &Value| {
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        format!(
            "{} {} {} {}",
            text(&s["schedule"]["code"]),
            s["revision"],
            text(&s["status"]),
            text(&s["origin"])
        )
    };
    let all = list.as_array().expect("a list");
    all.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[test]
fn apply_makes_changes_and_removes_the_schedules_of_its_groups() {
    let home = home(FILE);
    let path = home.path();
    let (shown, _) = well(path, &["apply", "d.yaml"]);
    assert!(shown.contains("+ schedule MONTH") && shown.contains("+ schedule SAMPLE"), "{shown}");
    let (shown, _) = well(path, &["apply", "d.yaml"]);
    assert_eq!(shown.trim(), "no changes");
    well(path, &["schedule", "pause", "MONTH", "--reason", "audit"]);
    well(
        path,
        &[
            "schedule",
            "add",
            "MINE",
            "--group",
            "close",
            "--batch-no",
            "x",
            "--free-text",
            "--manual",
        ],
    );
    let before = json(path, &["schedule", "show", "MONTH"]);
    // One is changed, one is gone, one is new; what is paused stays so, what a person made stays.
    let changed = FILE.replace("0 0 2 1 * ?", "0 0 3 1 * ?").replace(
        "  SAMPLE: {group: close, batch_no: adhoc, free_text: true, manual: true}\n",
        "  NEW: {type: monthly, batch_no: same, after: other}\n",
    );
    std::fs::write(path.join("d.yaml"), &changed).expect("file");
    let (code, shown, told) = said(path, &["diff", "d.yaml"]);
    assert_eq!(code, 1, "{shown}{told}");
    assert!(shown.contains("cron: 0 0 2 1 * ? -> 0 0 3 1 * ?"), "{shown}");
    assert!(told.contains("d.yaml:7: schedule NEW: after: group other is not defined"), "{told}");
    let (shown, _) = well(path, &["apply", "d.yaml", "--remark", "later"]);
    assert!(shown.contains("- schedule SAMPLE") && shown.contains("3 changes applied"), "{shown}");
    let wanted = "MINE 1 ENABLED person, MONTH 2 PAUSED file, NEW 1 ENABLED file";
    assert_eq!(standing(path), wanted);
    assert!(before["next_time"].is_null(), "{before}");
    let audit = json(path, &["audit"]);
    assert_eq!(audit[0]["action"], "schedule remove");
    assert_eq!(audit[0]["reason"], "later");
    // What is exported is what is stored.
    let (text, _) = well(path, &["export"]);
    std::fs::write(path.join("again.yaml"), text).expect("file");
    let (shown, _) = well(path, &["diff", "again.yaml"]);
    assert_eq!(shown.trim(), "no changes");
    // A code that a person has is not taken over in silence.
    let clash =
        format!("{changed}  MINE: {{group: close, batch_no: y, free_text: true, manual: true}}\n");
    std::fs::write(path.join("d.yaml"), clash).expect("file");
    refused(
        path,
        &["apply", "d.yaml"],
        "schedule MINE was made by a command and says something else",
    );
}

#[test]
fn run_leaves_schedules_alone_and_says_so() {
    let home = home(FILE);
    let (_, told) = well(home.path(), &["run", "d.yaml", "--batch-no", "202407"]);
    assert!(
        told.contains("d.yaml: 2 schedules left as stored; to store: procession apply"),
        "{told}"
    );
    assert_eq!(standing(home.path()), "");
}

#[test]
fn a_schedule_is_made_changed_and_seen_by_command() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    well(path, &["calendar", "import", CN]);
    let (shown, _) = well(
        path,
        &[
            "schedule",
            "add",
            "Q",
            "--group",
            "close",
            "--rule",
            "last working day of quarter",
            "--at",
            "18:00",
            "--calendar",
            "cn",
            "--batch-no",
            "month(0)",
            "--misfire",
            "newest:2",
            "--blackout",
            "22:00-06:00 sat,sun",
            "--retry-delay",
            "1m",
            "--notify",
            "a@b.example",
        ],
    );
    assert!(shown.contains("Asia/Shanghai") && shown.contains("last working day of 20"), "{shown}");
    let show = json(path, &["schedule", "show", "Q"]);
    assert_eq!(show["schedule"]["misfire"]["newest"], 2);
    assert_eq!(show["schedule"]["retry_delay_sec"], 60);
    assert_eq!(show["schedule"]["blackouts"][0]["days"], "sat,sun");
    well(
        path,
        &["schedule", "edit", "Q", "--at", "17:30", "--clear", "blackouts", "--reason", "r"],
    );
    let show = json(path, &["schedule", "show", "Q"]);
    assert_eq!(show["schedule"]["at"], "17:30");
    assert!(show["schedule"].get("blackouts").is_none(), "{show}");
    assert_eq!(show["schedule"]["rule"], "last working day of quarter", "the rest is left");
    refused(path, &["calendar", "remove", "cn", "--reason", "r"], "schedule Q");
    its_next_times_are_seen(path);
}

/// Of the schedule Q, which fires on the last working day of each quarter.
fn its_next_times_are_seen(path: &Path) {
    let next = json(path, &["schedule", "next", "Q", "-n", "4", "--from", "2025-01-01"]);
    let lines: Vec<String> = next["next"]
        .as_array()
        .expect("next")
        .iter()
        .map(|n| {
            format!(
                "{} {}",
                n["planned_local"].as_str().expect("local"),
                n["batch_no"].as_str().expect("no")
            )
        })
        .collect();
    let wanted = [
        "2025-03-31 17:30:00 +08:00 202503",
        "2025-06-30 17:30:00 +08:00 202506",
        "2025-09-30 17:30:00 +08:00 202509",
        "2025-12-31 17:30:00 +08:00 202512",
    ];
    assert_eq!(lines, wanted);
    let (shown, _) = well(path, &["--lang", "zh", "schedule", "next", "Q", "-n", "1"]);
    assert!(shown.contains("计划时间"), "{shown}");
    let (shown, _) = well(path, &["schedule", "list"]);
    assert!(shown.contains("last working day of quarter, 17:30"), "{shown}");
    refused(path, &["schedule", "show", "QQ"], "there is no schedule QQ");
    refused(
        path,
        &["schedule", "add", "Z", "--group", "close", "--batch-no", "month(0)", "--every", "5s"],
        "schedule Z is not saved",
    );
    refused(
        path,
        &["schedule", "add", "Z", "--group", "close", "--batch-no", "day(0)", "--cron", "x"],
        "cron 'x'",
    );
}

#[test]
fn what_is_left_out_and_what_clocks_do_is_shown() {
    let home = home(FILE);
    let path = home.path();
    // Nothing is stored, and no database is made.
    let next = |args: &[&str]| {
        let (shown, _) = well(path, &[&["schedule", "next"], args].concat());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = next(&[
        "--cron",
        "0 30 2 * * ?",
        "--zone",
        "America/New_York",
        "--from",
        "2025-03-08",
        "-n",
        "3",
        "--batch-no",
        "day(-1)",
    ]);
    assert!(
        shown.contains(
            "2025-03-09 03:00:00 -04:00 Sun 20250308 2025-03-09 02:30:00 does not exist that day"
        ),
        "{shown}"
    );
    let shown = next(&[
        "--every",
        "1h",
        "--zone",
        "Asia/Shanghai",
        "--start",
        "2025-01-01",
        "--from",
        "2025-01-01",
        "-n",
        "3",
        "--blackout",
        "01:00-03:00",
    ]);
    assert!(shown.contains("(2025-01-01 01:00:00 +08:00)"), "{shown}");
    assert!(shown.contains("left out: blackout 01:00-03:00"), "{shown}");
    assert!(!path.join("procession.db").exists(), "asking makes no database");
    refused(path, &["schedule", "next"], "say which: procession schedule next CODE");
    refused(
        path,
        &["schedule", "next", "--cron", "0 0 2 1 * ?", "--zone", "Asia/Shangai"],
        "did you mean Asia/Shanghai?",
    );
}

#[test]
fn firings_by_hand_and_events_are_on_record_and_keys_fire_once() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    well(
        path,
        &["schedule", "fire-now", "SAMPLE", "--batch-no", "t1", "--param", "a=1", "--reason", "r"],
    );
    let firings = json(path, &["schedule", "firings", "SAMPLE"]);
    assert_eq!(firings["firings"][0]["source"], "MANUAL");
    assert_eq!(firings["firings"][0]["status"], "PENDING");
    well(
        path,
        &[
            "schedule",
            "add",
            "E",
            "--group",
            "close",
            "--batch-no",
            "time(%s)",
            "--free-text",
            "--event",
            "closed",
        ],
    );
    let month = ["schedule", "fire-now", "MONTH", "--reason", "r", "--batch-no"];
    refused(path, &[&month[..], &["2024-07"]].concat(), "did you mean 202407?");
    assert_eq!(json(path, &["schedule", "firings", "MONTH"])["firings"], serde_json::json!([]));
    well(path, &[&month[..], &["2024-07", "--free-text"]].concat());
    let send = ["event", "send", "closed", "--key", "202407"];
    let (shown, _) = well(path, &send);
    assert!(shown.starts_with("E: fires as soon as a node serves"), "{shown}");
    let (shown, _) = well(path, &send);
    assert!(shown.contains("was sent under key 202407 before"), "{shown}");
    let firings = json(path, &["schedule", "firings", "E"]);
    assert_eq!(firings["firings"].as_array().map(Vec::len), Some(1));
    refused(path, &["event", "send", "close"], "did you mean closed?");
    let (shown, _) = well(path, &["schedule", "next", "E"]);
    assert!(shown.contains("not fired by the clock"), "{shown}");
}

const TWO: &str = "\
groups:
  me: {type: monthly, time_zone: Asia/Shanghai, calendar: cn}
  far: {type: monthly, time_zone: America/New_York}
jobs:
  A: {group: me, type: NOOP}
  B: {group: far, type: NOOP}
";

#[test]
fn zone_and_calendar_are_the_groups_as_in_a_file() {
    let home = home(TWO);
    let path = home.path();
    well(path, &["calendar", "import", CN]);
    well(path, &["apply", "d.yaml"]);
    let rule = ["--rule", "last working day of quarter", "--at", "18:00"];
    let number = ["--batch-no", "month(0)"];
    let add = |code: &'static str, of: &[&'static str]| {
        [&["schedule", "add", code], &rule[..], of, &number[..]].concat()
    };
    well(path, &add("RUL", &["--group", "me"]));
    let show = json(path, &["schedule", "show", "RUL"]);
    assert_eq!(show["schedule"]["calendar"], "cn", "{show}");
    assert_eq!(show["schedule"]["time_zone"], "Asia/Shanghai", "{show}");
    // One that counts no days needs none, and one that changes to days gets it then.
    let plain = ["schedule", "add", "CRON", "--cron", "0 0 2 1 * ?", "--group", "me"];
    well(path, &[&plain[..], &["--batch-no", "month(-1)"]].concat());
    let show = json(path, &["schedule", "show", "CRON"]);
    assert!(show["schedule"].get("calendar").is_none(), "{show}");
    well(path, &["schedule", "edit", "CRON", "--shift", "next", "--reason", "r"]);
    let show = json(path, &["schedule", "show", "CRON"]);
    assert_eq!(show["schedule"]["calendar"], "cn", "{show}");
    refused(path, &add("NONE", &["--group", "far"]), "needs a calendar");
    // Groups of several zones do not choose one.
    refused(path, &add("BOTH", &["--type", "monthly", "--calendar", "cn"]), "time_zone is missing");
    let said = ["--type", "monthly", "--calendar", "cn", "--zone", "Asia/Shanghai"];
    well(path, &add("BOTH", &said));
}

#[test]
fn the_audit_table_names_what_was_acted_on() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    well(path, &["calendar", "import", CN]);
    well(path, &["schedule", "pause", "MONTH", "--reason", "books are open"]);
    let (shown, _) = well(path, &["audit"]);
    let lines: Vec<String> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(lines[0].contains("DID ON BATCH"), "{shown}");
    assert!(lines.iter().any(|l| l.contains("schedule pause MONTH")), "{shown}");
    assert!(lines.iter().any(|l| l.contains("calendar import cn")), "{shown}");
}

#[test]
fn a_timing_by_flags_is_checked_as_one_that_is_saved() {
    let home = home(FILE);
    let path = home.path();
    let cron = ["schedule", "next", "--cron", "0 0 2 1 * ?"];
    let with = |more: &[&'static str]| [&cron[..], more].concat();
    for with_database in ["none", "one"] {
        if with_database == "one" {
            well(path, &["apply", "d.yaml"]);
        }
        refused(path, &["schedule", "next", "--cron", "0 0 2 30 2 ?"], "never fires");
        refused(path, &with(&["--calendar", "nope"]), "nope");
        refused(path, &with(&["--shift", "next"]), "needs a calendar");
        refused(path, &["schedule", "next", "--event", "x", "--calendar", "nope"], "nope");
        refused(path, &["schedule", "next", "--once-at", "2020-01-01T00:00"], "is over");
        refused(path, &with(&["--zone", "CST"]), "Asia/Shanghai, America/Chicago");
        // Who looks back sees what was.
        let back = ["--once-at", "2020-01-01T00:00", "--from", "2019-12-01"];
        let (shown, _) = well(path, &[&["schedule", "next"], &back[..]].concat());
        assert!(shown.contains("2020-01-01 00:00:00"), "{shown}");
    }
    refused(path, &["schedule", "next", "MONTH", "--shift", "next"], "needs a calendar");
    well(path, &["schedule", "next", "MONTH"]);
}

#[test]
fn what_was_left_out_by_hand_is_marked_and_does_not_count() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    let first = json(path, &["schedule", "next", "MONTH", "-n", "2"]);
    well(path, &["schedule", "skip-next", "MONTH", "--reason", "books are open"]);
    let then = json(path, &["schedule", "next", "MONTH", "-n", "1"]);
    assert_eq!(then["next"][0]["planned_at"], first["next"][1]["planned_at"], "{then}");
    assert_eq!(then["skipped"][0]["planned_at"], first["next"][0]["planned_at"], "{then}");
    let (shown, _) = well(path, &["schedule", "next", "MONTH", "-n", "1"]);
    let skipped = first["next"][0]["planned_local"].as_str().expect("local");
    assert!(shown.contains(&format!("({skipped})")), "{shown}");
    assert!(shown.contains("books are open"), "{shown}");
}

#[test]
fn a_list_says_what_is_so_when_nothing_is_listed_and_nobody_fires() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    let (shown, _) = well(path, &["schedule", "list"]);
    assert!(shown.contains("no node with the role scheduler lives"), "{shown}");
    let (shown, _) = well(path, &["schedule", "list", "--group", "nope"]);
    assert_eq!(shown.trim(), "no schedule of group nope");
    well(
        path,
        &[
            "schedule",
            "add",
            "ALL",
            "--type",
            "monthly",
            "--batch-no",
            "adhoc",
            "--free-text",
            "--manual",
        ],
    );
    let list = json(path, &["schedule", "list", "--group", "close"]);
    assert_eq!(list.as_array().map(Vec::len), Some(3), "by its type too: {list}");
    for verb in [&["schedule", "list"][..], &["schedule", "firings", "MONTH"]] {
        assert_eq!(said(path, &[verb, &["--limit", "0"]].concat()).0, 2, "{verb:?}");
    }
}

#[test]
fn the_firings_of_a_removed_schedule_are_found_by_its_number() {
    let home = home(FILE);
    let path = home.path();
    well(path, &["apply", "d.yaml"]);
    let (shown, _) = well(path, &["schedule", "fire-now", "SAMPLE", "--reason", "r"]);
    assert!(shown.starts_with("SAMPLE: fires as soon as a node serves"), "{shown}");
    let gone = json(path, &["schedule", "remove", "SAMPLE", "--reason", "r"]);
    let id = gone["id"].as_i64().expect("a number").to_string();
    refused(path, &["schedule", "firings", "SAMPLE"], "schedule SAMPLE was removed");
    refused(path, &["schedule", "firings", "NEVER"], "there is no schedule NEVER");
    let firings = json(path, &["schedule", "firings", "--id", &id]);
    assert_eq!(firings["firings"][0]["source"], "MANUAL", "{firings}");
    refused(path, &["schedule", "firings", "--id", "999"], "no schedule has the number 999");
    assert_eq!(said(path, &["schedule", "firings"]).0, 2);
}
