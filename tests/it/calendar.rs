//! `calendar …`, with the real program: what is stored, shown, refused and on record.

use crate::cli::said;
use serde_json::Value;
use std::path::Path;

const CN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/calendar/07_holiday_cn_2023_2026.json");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dag-examples/calendars/cn.json");

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("folder")
}

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

fn with_cn() -> tempfile::TempDir {
    let home = home();
    well(home.path(), &["calendar", "import", CN, "--code", "cn", "--name", "中国"]);
    home
}

#[test]
fn an_import_is_stored_shown_and_on_record() {
    let home = home();
    let path = home.path();
    let import = ["calendar", "import", CN, "--code", "cn"];
    let (shown, _) = well(path, &[&import[..], &["--dry-run"]].concat());
    assert!(shown.contains("calendar cn would be stored (new): 142 days added"), "{shown}");
    assert!(!path.join("procession.db").exists(), "asking makes no database");
    let (shown, _) = well(path, &[&import[..], &["--reason", "the notice"]].concat());
    assert!(shown.contains("+ 2022-12-31 Sa off 元旦"), "{shown}");
    assert!(shown.contains("+ years 2023, 2024, 2025, 2026"), "{shown}");
    let (shown, _) = well(path, &import);
    assert_eq!(shown.trim(), "no changes");
    let audit = json(path, &["audit"]);
    assert_eq!(audit.as_array().map(Vec::len), Some(1), "what changes nothing is not on record");
    assert_eq!(audit[0]["action"], "calendar import");
    assert_eq!(audit[0]["reason"], "the notice");
    assert_eq!(audit[0]["detail"]["calendar"], "cn");
    assert_eq!(audit[0]["detail"]["changes"]["days"].as_object().map(|d| d.len()), Some(142));
    let list = json(path, &["calendar", "list"]);
    assert_eq!((&list[0]["code"], &list[0]["days"]), (&Value::from("cn"), &Value::from(142)));
    let (code, ..) = said(path, &["calendar", "show", "de"]);
    assert_eq!(code, 2);
}

#[test]
fn the_example_loads_as_the_data_it_is_from() {
    let home = with_cn();
    let (shown, _) = well(home.path(), &["calendar", "import", EXAMPLE, "--dry-run"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "~ name: 中国 -> 中国法定节假日", "the days are the same: {shown}");
    assert_eq!(lines.len(), 2, "{shown}");
}

#[test]
fn a_year_is_drawn_as_it_hangs_on_the_wall() {
    let home = with_cn();
    let (shown, told) = well(home.path(), &["calendar", "show", "cn", "2025"]);
    assert!(shown.starts_with("cn 中国 2025: 248 working days\n"), "{shown}");
    for line in [
        "        2025-10 (18)                   2025-11 (20)                   2025-12 (23)",
        " Mo  Tu  We  Th  Fr  Sa  Su     Mo  Tu  We  Th  Fr  Sa  Su     Mo  Tu  We  Th  Fr  Sa  Su",
        "          1*  2*  3*  4*  5*                         1.  2.     1   2   3   4   5   6.  7.",
        "  6*  7*  8*  9  10  11+ 12.     3   4   5   6   7   8.  9.     8   9  10  11  12  13. 14.",
        "  2025-01-28 .. 02-04  off   春节",
        "  2025-10-11           work  国庆节、中秋节",
    ] {
        assert!(shown.lines().any(|l| l.trim_end() == line.trim_end()), "{line:?}\n{shown}");
    }
    assert!(told.is_empty() && !shown.contains('\u{1b}'), "{told}");
    let (shown, _) = well(home.path(), &["--lang", "zh", "calendar", "show", "cn", "2026"]);
    assert!(shown.contains(" 一  二  三  四  五  六  日"), "{shown}");
    assert!(shown.contains("+ 调休上班") && shown.contains("班  元旦"), "{shown}");
    let (_, told) = well(home.path(), &["calendar", "show", "cn", "2027"]);
    assert!(told.contains("calendar cn has no days for 2027"), "{told}");
    let year = json(home.path(), &["calendar", "show", "cn", "2026"]);
    assert_eq!(year["assumed"], false);
    assert_eq!(year["months"][1]["last_working_day"], "2026-02-28", "a worked Saturday");
    assert_eq!(year["months"][0]["first_working_day"], "2026-01-04", "a worked Sunday");
    assert_eq!(year["days"].as_array().map(Vec::len), Some(365));
    assert_eq!(json(home.path(), &["calendar", "show", "cn", "2027"])["assumed"], true);
}

#[test]
fn a_file_with_faults_leaves_the_calendar_as_it_was() {
    let home = with_cn();
    let path = home.path();
    let before = json(path, &["calendar", "show", "cn", "2025"]);
    std::fs::write(
        path.join("bad.csv"),
        "date,kind,label\n2025-01-02,off,x\n2025-02-30,off,x\n2025-03-01,rest,x\n",
    )
    .expect("file");
    let import = ["calendar", "import", "bad.csv", "--code", "cn"];
    refused(path, &import, "bad.csv:3: \"2025-02-30\" is no date; write one that exists");
    refused(path, &import, "bad.csv:4: \"rest\" is no kind of day; write off");
    assert_eq!(json(path, &["calendar", "show", "cn", "2025"]), before);
    std::fs::write(path.join("days.txt"), "x").expect("file");
    refused(
        path,
        &["calendar", "import", "days.txt", "--code", "cn"],
        "name it .json, .csv or .ics",
    );
    refused(path, &["calendar", "import", "none.csv", "--code", "cn"], "none.csv: cannot be read");
    std::fs::write(path.join("d.csv"), "date,kind\n2025-01-02,off\n").expect("file");
    refused(path, &["calendar", "import", "d.csv"], "add --code CODE");
    refused(path, &["calendar", "import", "d.csv", "--code", "a b"], "calendar code 'a b'");
}

#[test]
fn an_import_replaces_its_years_and_keeps_what_was_set_by_hand() {
    let home = with_cn();
    let path = home.path();
    let day =
        ["calendar", "day", "cn", "2025-12-24", "off", "--label", "closing", "--reason", "board"];
    let (shown, _) = well(path, &day);
    assert!(shown.contains("+ 2025-12-24 We off closing"), "{shown}");
    std::fs::write(
        path.join("2025.csv"),
        "date,kind,label\n2025-01-01,off,元旦\n2025-05-10,work,x\n",
    )
    .expect("file");
    let (shown, _) = well(path, &["calendar", "import", "2025.csv", "--code", "cn"]);
    assert!(shown.contains("1 day added, 32 removed, 0 changed"), "{shown}");
    let list = json(path, &["calendar", "list"]);
    assert_eq!(list[0]["days"], 142 - 33 + 2 + 1);
    assert_eq!(list[0]["years"], serde_json::json!([2023, 2024, 2025, 2026]));
    let (shown, _) =
        well(path, &["calendar", "day", "cn", "2025-12-24", "clear", "--reason", "no"]);
    assert!(shown.contains("- 2025-12-24 We off closing"), "{shown}");
    refused(
        path,
        &["calendar", "day", "cn", "2025-12-24", "clear", "--reason", "no"],
        "but its weekday",
    );
    refused(
        path,
        &["calendar", "day", "de", "2025-12-24", "off", "--reason", "x"],
        "procession calendar add de",
    );
    let (code, _, told) = said(path, &["calendar", "day", "cn", "2025-12-24", "off"]);
    assert!(code == 2 && told.contains("--reason"), "{told}");
    let (shown, _) = well(path, &["calendar", "import", "2025.csv", "--code", "cn", "--replace"]);
    assert!(shown.contains("- years 2023, 2024, 2026"), "{shown}");
    // Kinds that are mixed up show in what would be worked anyway.
    std::fs::write(path.join("m.csv"), "date,kind\n2025-10-01,work\n").expect("file");
    let (_, told) = well(path, &["calendar", "import", "m.csv", "--code", "cn", "--dry-run"]);
    assert!(
        told.contains("2025-10-01 is no day of the weekend (sat,sun) and worked anyway"),
        "{told}"
    );
}

#[test]
fn calendars_are_combined_and_cannot_lose_their_members() {
    let home = with_cn();
    let path = home.path();
    well(path, &["calendar", "add", "company"]);
    let combine = ["calendar", "combine", "acme", "--all-of", "cn,company"];
    let (_, told) = well(path, &combine);
    assert!(
        told.contains("is worked in cn and a weekend day of company, so it is off in acme"),
        "{told}"
    );
    well(path, &["calendar", "add", "company", "--weekend", "none"]);
    well(path, &["calendar", "day", "company", "2025-10-10", "off", "--reason", "party"]);
    let (_, told) = well(path, &combine);
    assert_eq!(told, "", "nothing to warn of");
    let year = json(path, &["calendar", "show", "acme", "2025"]);
    assert_eq!(year["working_days"], 247);
    let at = |date: &str| {
        let days = year["days"].as_array().expect("days");
        days.iter().find(|d| d["date"] == date).expect("a day").clone()
    };
    assert_eq!(
        (&at("2025-10-10")["working"], &at("2025-10-10")["by"]),
        (&Value::Bool(false), &"company".into())
    );
    assert_eq!(at("2025-10-11")["mark"], "made_up");
    refused(
        path,
        &["calendar", "remove", "cn", "--reason", "x"],
        "calendar cn is in use by calendar acme",
    );
    refused(
        path,
        &["calendar", "combine", "acme", "--all-of", "acme"],
        "calendar acme is made of itself",
    );
    refused(
        path,
        &["calendar", "combine", "x", "--any-of", "cn,de"],
        "combines de, which is not there",
    );
    refused(
        path,
        &["calendar", "combine", "cn", "--all-of", "company"],
        "give the combined one another code",
    );
    refused(
        path,
        &["calendar", "import", CN, "--code", "acme"],
        "calendar acme is combined of others",
    );
    refused(path, &["calendar", "remove", "none", "--reason", "x"], "there is no calendar none");
    well(path, &["calendar", "remove", "acme", "--reason", "over"]);
    well(path, &["calendar", "remove", "cn", "--reason", "over"]);
    assert_eq!(json(path, &["calendar", "list"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_exported_is_imported_again() {
    let home = with_cn();
    let path = home.path();
    well(path, &["calendar", "day", "cn", "2025-12-24", "off", "--reason", "x"]);
    well(path, &["calendar", "export", "cn", "-o", "cn.json"]);
    let (shown, _) = well(path, &["calendar", "import", "cn.json", "--replace"]);
    assert_eq!(shown.trim(), "no changes");
    let (shown, _) = well(path, &["calendar", "export", "cn"]);
    assert_eq!(shown, std::fs::read_to_string(path.join("cn.json")).expect("file"));
}

const DUE: &str = "
groups: { month_end: { type: monthly, calendar: cn } }
jobs:
  CLOSE:
    type: SCRIPT
    interpreter: sh
    script: 'true'
    group: month_end
    params:
      - { name: due, type: date, value: '${add_workdays(business_date, 3)}' }
      - { name: last, type: date, value: '${nth_workday(-1)}' }
";

/// The values of the parameters of CLOSE.
fn params(path: &Path, no: &str) -> Vec<String> {
    let shown = json(path, &["params", "show", "CLOSE", "--batch-no", no]);
    let values = shown.as_array().expect("params").iter();
    values.map(|p| p["value"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_batch_keeps_the_days_it_was_opened_with() {
    let home = with_cn();
    let path = home.path();
    std::fs::write(path.join("dag.yaml"), DUE).expect("file");
    let (code, shown, told) = said(path, &["plan", "dag.yaml", "--batch-no", "202602"]);
    assert_eq!(code, 0, "{shown}{told}");
    assert!(shown.contains("2026-02-28") && shown.contains("2026-03-04"), "{shown}");
    well(path, &["run", "dag.yaml", "--batch-no", "202602", "--quiet"]);
    assert_eq!(params(path, "202602"), ["2026-03-04", "2026-02-28"]);
    for day in ["2026-02-28", "2026-03-03", "2026-03-31"] {
        well(path, &["calendar", "day", "cn", day, "off", "--reason", "flood"]);
    }
    assert_eq!(params(path, "202602"), ["2026-03-04", "2026-02-28"], "as it was opened");
    assert_eq!(params(path, "202603"), ["2026-04-03", "2026-03-30"], "a batch there might be");
    well(
        path,
        &["batch", "rerun", "202602", "--jobs", "CLOSE", "--latest", "--yes", "--reason", "x"],
    );
    assert_eq!(params(path, "202602"), ["2026-03-05", "2026-02-27"], "the present days, as asked");
    refused(path, &["calendar", "remove", "cn", "--reason", "x"], "in use by group month_end");
}

#[test]
fn a_calendar_that_is_not_there_is_refused_before_anything_is_stored() {
    let home = home();
    let path = home.path();
    std::fs::write(path.join("dag.yaml"), DUE).expect("file");
    let said_so = "there is no calendar cn; import it: procession calendar import FILE --code cn";
    well(path, &["check", "dag.yaml"]);
    refused(path, &["apply", "dag.yaml"], said_so);
    refused(path, &["run", "dag.yaml", "--batch-no", "202602"], said_so);
    let (code, shown, told) = said(path, &["plan", "dag.yaml", "--batch-no", "202602"]);
    assert!(code == 2 && format!("{shown}{told}").contains(said_so), "{shown}{told}");
    assert_eq!(json(path, &["job", "list"]).as_array().map(Vec::len), Some(0));
    std::fs::write(path.join("bare.yaml"), DUE.replace(", calendar: cn", "")).expect("file");
    refused(
        path,
        &["check", "bare.yaml"],
        "bare.yaml:10: job CLOSE: parameter due counts working days, and no calendar says which these are; \
         give group month_end one (calendar: cn), or name one: ${add_workdays(business_date, 3, cn)}",
    );
    std::fs::write(path.join("code.yaml"), DUE.replace("calendar: cn", "calendar: 'c n'"))
        .expect("file");
    refused(
        path,
        &["check", "code.yaml"],
        "code.yaml:2: group month_end: calendar code 'c n' is not usable",
    );
}

#[test]
fn a_list_that_ended_is_warned_of_where_it_is_used() {
    let home = home();
    let path = home.path();
    std::fs::write(path.join("old.csv"), "date,kind\n2001-01-01,off\n").expect("file");
    well(path, &["calendar", "import", "old.csv", "--code", "cn"]);
    assert_eq!(
        well(path, &["calendar", "check"]).0.trim(),
        "the calendars in use have all their days"
    );
    std::fs::write(path.join("dag.yaml"), DUE).expect("file");
    let (_, told) = well(path, &["apply", "dag.yaml"]);
    assert!(told.contains("warning: calendar cn has no days for 20"), "{told}");
    let (code, shown, _) = said(path, &["calendar", "check"]);
    assert!(code == 1 && shown.contains("procession calendar import FILE --code cn"), "{shown}");
    let (code, shown, _) = said(path, &["--json", "calendar", "check"]);
    let warnings: Value = serde_json::from_str(&shown).expect("JSON");
    assert!(code == 1 && warnings[0]["lack"]["this_year"].is_number(), "{shown}");
    // A calendar that is kept by hand waits for no list.
    std::fs::write(path.join("hand.csv"), "date,kind\n2001-01-01,off\n").expect("file");
    well(path, &["calendar", "import", "hand.csv", "--code", "cn", "--by-hand", "--replace"]);
    well(path, &["calendar", "check"]);
}
