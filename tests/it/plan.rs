//! `plan`, `batch eta` and `job stats`, as a user calls them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CLOSE: &str = "
groups:
  month_end: { type: monthly, max_parallel: 2, params: { rate: '0.25' } }
defaults: { group: month_end }
jobs:
  LOAD: { type: SCRIPT, interpreter: sh, script: 'echo ::output rows=7; sleep 0.05', timeout_sec: 60 }
  TAX:
    type: SCRIPT
    interpreter: sh
    depends_on: [LOAD]
    params:
      - { name: NO, value: '${batch_no}' }
      - { name: RATE, type: decimal, value: '${params.rate}' }
      - { name: ROWS, type: int, value: '${jobs.LOAD.rows}' }
    script: 'sleep 0.02'
  SIDE: { type: NOOP, priority: 5 }
";

fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C");
    let Output { status, stdout, stderr } = command.args(args).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

fn json(folder: &Path, args: &[&str]) -> (i32, Value) {
    let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
    let (code, shown, error) = said(folder, &args);
    (
        code,
        serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{args:?}: {e}\n{shown}\n{error}")),
    )
}

fn folder(yaml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    folder
}

/// Every file of a folder with its bytes.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path());
    entries.map(|path| (path.clone(), std::fs::read(path).expect("file"))).collect()
}

fn run(folder: &Path, number: &str) {
    let (code, _, error) = said(folder, &["run", "dag.yaml", "--batch-no", number, "-q"]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn a_file_is_planned_before_there_is_a_database() {
    let folder = folder(CLOSE);
    let path = folder.path();
    let before = bytes(path);
    let (code, shown, error) = said(path, &["plan", "dag.yaml", "--batch-no", "202407"]);
    assert_eq!((code, error.as_str()), (0, ""), "{shown}");
    for words in [
        "Plan of batch 202407 of group month_end (monthly), business date 2024-07-31: 3 jobs in 2 waves",
        "No job has a history yet",
        "(output rows of LOAD)",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let places: Vec<usize> = ["SIDE", "LOAD", "TAX"].iter().filter_map(|c| shown.find(c)).collect();
    assert!(places.is_sorted() && places.len() == 3, "{shown}");
    let (_, shown) =
        json(path, &["plan", "dag.yaml", "--batch-no", "202407", "--param", "rate=0.3"]);
    let batch = &shown["batches"][0];
    assert_eq!(batch["waves"], serde_json::json!([["SIDE", "LOAD"], ["TAX"]]));
    assert_eq!(batch["jobs"][1]["params"][1]["value"], "0.3");
    assert_eq!(batch["expected"], Value::Null);
    // An empty file is no database either; and nothing of all this left a trace.
    std::fs::write(path.join("empty.db"), "").expect("file");
    let with_empty = bytes(path);
    assert_eq!(
        said(path, &["--db", "sqlite:empty.db", "plan", "dag.yaml", "--batch-no", "202401"]).0,
        0
    );
    assert_eq!(bytes(path), with_empty);
    assert_eq!(with_empty.len(), before.len() + 1);
    // What is stored cannot be planned where nothing is stored.
    assert_eq!(said(path, &["plan", "--batch-no", "1"]).0, 2);
    let (code, _, error) =
        said(path, &["plan", "dag.yaml", "--batch-no", "202401", "--against-batch", "0"]);
    assert!(code == 2 && error.contains("there is no database yet"), "{error}");
    let (code, _, error) = said(
        path,
        &["--db", "mysql://nobody@127.0.0.1:1/x", "plan", "dag.yaml", "--batch-no", "202401"],
    );
    assert!(code == 3 && error.contains("is the server running there?"), "{error}");
}

/// The plan that the document shows, word for word.
#[test]
fn the_document_shows_what_the_program_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/plan-and-eta.md")).expect("page");
    let (_, after) = page.split_once("```text\n$ procession ").expect("an example");
    let (block, _) = after.split_once("```").expect("its end");
    let (command, wanted) = block.split_once('\n').expect("a command");
    let folder = tempfile::tempdir().expect("folder");
    let db = format!("sqlite:{}", folder.path().join("none.db").display());
    let args: Vec<&str> = ["--db", &db].into_iter().chain(command.split(' ')).collect();
    let (code, shown, error) = said(root, &args);
    assert_eq!(code, 0, "{error}");
    let trimmed: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, wanted.lines().collect::<Vec<_>>());
}

#[test]
fn a_plan_changes_no_byte_and_knows_the_past() {
    let folder = folder(CLOSE);
    let path = folder.path();
    run(path, "202405");
    run(path, "202406");
    let before = bytes(path);
    let (code, shown) = json(path, &["plan", "dag.yaml", "--batch-no", "202407"]);
    assert_eq!((code, &shown["refused"]), (0, &serde_json::json!([])));
    let expected = &shown["batches"][0]["expected"];
    assert_eq!(expected["critical_path"], serde_json::json!(["LOAD", "TAX"]));
    let of = |job: usize, key: &str| expected["jobs"][job][key].as_i64().expect("a number");
    assert!(of(0, "p50_ms") >= 50 && of(1, "p50_ms") >= 20, "{expected}");
    assert_eq!(of(2, "slack_ms"), of(0, "p50_ms") + of(1, "p50_ms") - of(2, "p50_ms"));
    // Of two tries either may be the next: half of all sums are no longer than this.
    let left = expected["remaining_ms"].as_i64().expect("a number");
    assert!(left >= of(0, "p50_ms") + of(1, "p50_ms"), "{expected}");
    assert!(left <= of(0, "p95_ms") + of(1, "p95_ms"), "{expected}");
    assert!(expected["remaining_p90_ms"].as_i64() >= Some(left));
    // Two batches are no past to rely on.
    let jobs = serde_json::json!(["LOAD", "TAX"]);
    assert_eq!(
        (&expected["certainty"], &expected["certainty_reason"], &expected["certainty_jobs"]),
        (&"rough".into(), &"few_tries".into(), &jobs)
    );
    for args in [
        &["plan", "dag.yaml", "--batch-no", "202407", "--against-batch", "202406"][..],
        &["plan", "--batch-no", "202407", "--type", "monthly"],
        &["--lang", "zh", "plan", "dag.yaml", "--batch-no", "202407", "--group", "month_end"],
    ] {
        let (code, shown, error) = said(path, args);
        assert_eq!(code, 0, "{args:?}: {error}");
        assert!(shown.contains("LOAD -> TAX"), "{args:?}: {shown}");
    }
    // A batch that is there, and a stored definition that lacks what the file has.
    let (code, shown, error) = said(path, &["plan", "dag.yaml", "--batch-no", "202406"]);
    assert!(shown.contains("batch 202406 of group month_end exists already (SUCCESS)"), "{shown}");
    assert!(code == 2 && error.contains("would be refused, for 1 reason"), "{error}");
    assert_eq!(bytes(path), before, "a plan wrote something");
}

#[test]
fn every_reason_is_told_at_once() {
    let folder = folder(CLOSE);
    let path = folder.path();
    run(path, "202406");
    std::fs::write(
        path.join("dag.yaml"),
        "groups: { new: {}, month_end: { time_zone: UTC } }\n\
         jobs:\n  TAX: { type: NOOP, group: new }\n  OFF: { type: NOOP, group: month_end, is_active: false }\n  \
         ON: { type: SCRIPT, interpreter: sh, script: x, group: month_end, depends_on: [OFF], \
         params: [{ name: A, value: '${params.none}' }, { name: B, value: '${business_date}' }] }\n",
    )
    .expect("file");
    let before = bytes(path);
    let (code, shown) = json(path, &["plan", "dag.yaml", "--batch-no", "free"]);
    assert_eq!(code, 2);
    let reasons: Vec<&str> = shown["refused"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|r| r["reason"].as_str().expect("a reason"))
        .collect();
    let about = [
        "job ON depends on OFF, which is not active",
        "job ON: parameter A: ${params.none} has no value",
        "job ON: parameter B: ${business_date} has no value",
    ];
    assert_eq!(reasons.len(), about.len(), "{reasons:?}");
    for (reason, about) in reasons.iter().zip(about) {
        assert!(reason.contains(about), "{reason}");
    }
    // Another group may have the code, under the same number and in another file.
    let (code, _) = json(path, &["plan", "dag.yaml", "--batch-no", "202406", "--group", "new"]);
    assert_eq!(code, 0);
    std::fs::write(
        path.join("other.yaml"),
        "groups: { z: {} }\njobs: { TAX: { type: NOOP, group: z } }\n",
    )
    .expect("file");
    let (code, shown) = json(path, &["plan", "other.yaml", "--batch-no", "202407"]);
    assert_eq!(code, 0, "{shown}");
    let (code, shown) = json(path, &["plan", "--batch-no", "1", "--group", "nobody"]);
    let reason = shown["refused"][0]["reason"].as_str().expect("a reason").to_owned();
    assert!(code == 2 && reason.contains("no group nobody; groups that exist"), "{reason}");
    std::fs::remove_file(path.join("other.yaml")).expect("file");
    assert_eq!(bytes(path), before, "a plan wrote something");
}

#[test]
fn what_has_changed_since_a_batch_is_told() {
    let folder = folder(CLOSE);
    let path = folder.path();
    run(path, "202406");
    let mended = CLOSE.replace("timeout_sec: 60", "timeout_sec: 90").replace("'0.25'", "'0.28'")
        + "  NEW: { type: NOOP, depends_on: [TAX] }\n";
    std::fs::write(path.join("dag.yaml"), mended).expect("file");
    let args = ["plan", "dag.yaml", "--batch-no", "202407", "--against-batch", "202406"];
    let (code, shown, error) = said(path, &args);
    assert_eq!(code, 0, "{error}");
    for words in [
        "Since batch 202406 (SUCCESS in ",
        "~ job LOAD",
        "timeout_sec: 60 -> 90",
        "+ job NEW",
        "+ dependency NEW <- TAX",
        "~ parameter RATE of TAX: 0.25 -> 0.28",
        "duration in all: took ",
        "Without history: 1 of 4 open jobs (NEW)",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // The number itself differs between any two batches and is not a change.
    assert!(!shown.contains("parameter NO"), "{shown}");
    let (_, shown) = json(path, &args);
    let since = &shown["batches"][0]["since"];
    let said: Vec<String> = since["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|c| format!("{} {} {}", c["how"], c["entity"], c["code"]).replace('"', ""))
        .collect();
    let group = "changed group month_end";
    assert_eq!(said, [group, "changed job LOAD", "added job NEW", "added dependency NEW <- TAX"]);
    assert_eq!(since["durations"].as_array().map(Vec::len), Some(3));
    let (code, _, error) = said_against(path, "209901");
    assert!(code == 2 && error.contains("there is no batch 209901 of month_end"), "{error}");
}

fn said_against(path: &Path, number: &str) -> (i32, String, String) {
    said(path, &["plan", "dag.yaml", "--batch-no", "202407", "--against-batch", number])
}

#[test]
fn the_past_of_jobs_and_the_end_of_a_batch_are_shown() {
    let folder = folder(CLOSE);
    let path = folder.path();
    run(path, "202405");
    run(path, "202406");
    let (code, shown) = json(path, &["job", "stats"]);
    assert_eq!((code, shown.as_array().map(Vec::len)), (0, Some(3)));
    assert_eq!(
        (&shown[0]["job_code"], &shown[0]["successful_attempts"]),
        (&"LOAD".into(), &2.into())
    );
    let load = shown[0]["p50_ms"].as_i64().expect("a number");
    assert!(load >= 50 && shown[0]["p95_ms"].as_i64() >= Some(load));
    let (code, shown, _) = said(path, &["job", "stats", "LOAD", "--group", "month_end"]);
    assert!(code == 0 && shown.contains("LOAD") && !shown.contains("TAX"), "{shown}");
    let (code, _, error) = said(path, &["job", "stats", "NOBODY"]);
    assert!(code == 2 && error.contains("there is no job NOBODY"), "{error}");

    let (code, shown, _) = said(path, &["batch", "eta", "202406"]);
    assert!(code == 0 && shown.contains("SUCCESS, 3 of 3 jobs are over"), "{shown}");
    let (_, shown) = json(path, &["batch", "eta", "202406"]);
    assert_eq!((&shown["status"], &shown["expected"]), (&"SUCCESS".into(), &Value::Null));
    assert_eq!(said(path, &["batch", "eta", "1"]).0, 2);
}

/// A batch whose process was killed while TAX ran.
#[test]
fn a_running_batch_tells_its_end_and_the_path_to_it() {
    let folder = folder(CLOSE);
    let path = folder.path();
    run(path, "202405");
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(path).env_remove("PROCESSION_DB").env("LANG", "C");
    let pid = path.join("pid");
    let waits = format!("echo $$ > {}; exec sleep 60", pid.display());
    std::fs::write(path.join("dag.yaml"), CLOSE.replace("sleep 0.02", &waits)).expect("file");
    // For the number that the script writes.
    let settings = "[script]\nisolation = 'off'\n";
    std::fs::write(path.join("procession.toml"), settings).expect("settings");
    let mut child = command
        .args(["run", "dag.yaml", "--batch-no", "202406", "-q"])
        .spawn()
        .expect("the program runs");
    while !std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
        assert!(child.try_wait().expect("wait").is_none(), "it ended before TAX ran");
        std::thread::yield_now();
    }
    let (code, shown, error) = said(path, &["batch", "eta", "202406"]);
    assert_eq!(code, 0, "{error}");
    for words in ["RUNNING, 2 of 3 jobs are over", "Expected end: ", "Critical path: TAX", "(p90: "]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let (_, document) = json(path, &["batch", "eta", "202406"]);
    assert_eq!(document["dispatched"], true);
    let expected = &document["expected"];
    assert_eq!(
        (&expected["open_jobs"], &expected["jobs"][1]["critical"]),
        (&1.into(), &true.into())
    );
    let (_, shown, _) = said(path, &["batch", "show", "202406"]);
    assert!(shown.contains("Expected end: "), "{shown}");
    let (_, shown, _) = said(path, &["--lang", "zh", "batch", "eta", "202406"]);
    assert!(shown.contains("预计结束：") && shown.contains("关键路径：TAX"), "{shown}");
    child.kill().expect("kill");
    child.wait().expect("wait");
    let orphan = std::fs::read_to_string(&pid).expect("pid");
    // Its keeper ends it too, and may be faster.
    let _no_longer_there = Command::new("kill").args(["-9", orphan.trim()]).status().expect("kill");
}

#[test]
fn progress_in_lines_tells_the_expected_end() {
    let folder = folder(CLOSE);
    let path = folder.path();
    let (_, _, told) = said(path, &["run", "dag.yaml", "--batch-no", "202405"]);
    assert!(!told.contains("expected end in"), "{told}");
    let (_, _, told) = said(path, &["run", "dag.yaml", "--batch-no", "202406"]);
    assert!(told.contains("expected end in ") && told.contains("(p90 "), "{told}");
}

#[test]
fn a_picture_shows_what_decided_the_end_and_what_is_expected() {
    let folder = folder(CLOSE);
    run(folder.path(), "202406");
    let (_, ended) = json(folder.path(), &["dag", "--batch", "202406"]);
    let critical = |picture: &Value| -> Vec<String> {
        let nodes = picture["nodes"].as_array().expect("nodes").iter();
        let critical = nodes.filter(|n| n["critical"] == true);
        critical.map(|n| n["code"].as_str().expect("code").to_owned()).collect()
    };
    assert_eq!(critical(&ended), ["LOAD", "TAX"]);
    let (_, planned) = json(folder.path(), &["dag", "month_end"]);
    assert_eq!(critical(&planned), ["LOAD", "TAX"]);
    let estimate = planned["nodes"][0]["est_sec"].as_f64().expect("an estimate");
    assert!(estimate >= 0.05, "LOAD sleeps that long: {estimate}");
}

/// One slot: B waits for A, and fails once.
const LATE: &str = "
groups: { g: { max_parallel: 1, due: '00:00' } }
defaults: { group: g, type: SCRIPT, interpreter: sh, timeout_sec: 60 }
jobs:
  A: { priority: 9, script: 'sleep 1.2' }
  B:
    idempotent: true
    retry_count: 1
    retry_delay_sec: 1
    script: 'test \"$PROCESSION_ATTEMPT\" -gt 1'
";

#[test]
fn a_late_batch_names_the_jobs_that_made_it_late() {
    let folder = folder(LATE);
    let path = folder.path();
    run(path, "202407");
    let (code, shown) = json(path, &["batch", "eta", "202407"]);
    let why = &shown["why_late"];
    assert_eq!((code, why["status"].as_str()), (0, Some("SUCCESS")));
    assert!(why["late_by_ms"].as_i64() > Some(0), "{why}");
    let chain = why["chain"].as_array().expect("a list");
    assert_eq!((chain.len(), &chain[0]["job"]), (1, &Value::from("B")), "{why}");
    let causes = why["causes"].as_array().expect("a list");
    let cause = |kind: &str| {
        causes.iter().find(|c| c["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {why}"))
    };
    assert_eq!((&cause("slot")["job"], &cause("slot")["held_by"]), (&"B".into(), &"A".into()));
    for kind in ["slot", "retries"] {
        assert!(cause(kind)["delay_ms"].as_i64() >= Some(1_000), "{kind}: {why}");
    }
    let (_, shown, _) = said(path, &["batch", "eta", "202407"]);
    assert!(shown.contains("Late by ") && shown.contains("for a slot, in use by A"), "{shown}");
    let (_, shown, _) = said(path, &["--lang", "zh", "batch", "eta", "202407"]);
    assert!(shown.contains("B 等待并发名额") && shown.contains("（A 占用）"), "{shown}");
}
