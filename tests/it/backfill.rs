//! `backfill`, as a user calls it.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Each batch says that it has begun and waits until it may end.
const GATED: &str = "
groups: { g: {} }
jobs:
  A: { type: SCRIPT, interpreter: sh, idempotent: true, script: 'touch FOLDER/began.$PROCESSION_BATCH_NO; while ! test -e FOLDER/go; do sleep 0.02; done' }
  B: { type: SCRIPT, interpreter: sh, depends_on: [A], script: 'test $PROCESSION_BATCH_NO != 202403 || test -e FOLDER/cured' }
";

fn procession(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C");
    command
}

fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        procession(folder).args(args).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

fn json(folder: &Path, args: &[&str]) -> (i32, Value) {
    let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
    let (code, shown, error) = said(folder, &args);
    let read = serde_json::from_str(&shown);
    (code, read.unwrap_or_else(|e| panic!("{args:?}: {e}\n{shown}\n{error}")))
}

fn gated() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = GATED.replace("FOLDER", &folder.path().display().to_string());
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    folder
}

fn touch(folder: &Path, name: &str) {
    std::fs::write(folder.join(name), "").expect("file");
}

/// Starts a backfill whose first batch is running when this returns; a bounded loop, not a sleep.
fn started(folder: &Path, args: &[&str]) -> Child {
    let mut command = procession(folder);
    let mut child =
        command.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("spawn");
    for _ in 0..1_000 {
        if folder.join("began.202401").exists() {
            return child;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    panic!("202401 never began");
}

fn states(document: &Value) -> Vec<&str> {
    let batches = document["batches"].as_array().expect("batches");
    batches.iter().map(|b| b["status"].as_str().expect("status")).collect()
}

/// The example of docs/backfill.md.
#[test]
fn twelve_months_of_an_example() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("dag-examples/fan-out-fan-in.yaml");
    let file = file.to_str().expect("UTF-8");
    let dry = ["backfill", "202401..202412", file, "--parallel", "3", "--dry-run"];
    let (code, shown, _) = said(path, &dry);
    assert_eq!((code, shown.matches("missing").count()), (0, 12), "{shown}");
    assert!(!path.join("procession.db").exists(), "a dry run makes no file");
    let run = ["backfill", "202401..202412", file, "--parallel", "3", "--reason", "a new column"];
    let (code, shown, told) = said(path, &run);
    assert_eq!(code, 0, "{told}");
    assert!(shown.contains("12 of 12 batches of fan_out_fan_in are run, 3 at a time"), "{shown}");
    assert!(shown.contains("SUCCESS in") && shown.contains("12 of 12 batches (12 SUCCESS)"));
    assert!(shown.contains("Reason: a new column"), "{shown}");
    assert!(told.contains("202401 begins, 22 jobs  (0 of 12 batches)"), "{told}");
    assert!(told.contains("(12 of 12 batches)"), "{told}");
    let (_, shown) = json(path, &["backfill", "show", "1"]);
    assert_eq!(states(&shown), ["SUCCESS"; 12]);
    assert_eq!((&shown["done"], &shown["parallel"]), (&12.into(), &3.into()));
    assert_eq!((&shown["owner"], &shown["order"]), (&Value::Null, &Value::Null));
    assert_eq!(shown["batches"][0]["jobs_done"], 22);
    // Each batch number ran for itself.
    let (_, july) = json(path, &["batch", "show", "202407"]);
    assert_eq!(
        (&july["status"], &july["business_date"]),
        (&"SUCCESS".into(), &"2024-07-31".into())
    );
    // Once more: all is done, and nothing is touched.
    let (code, shown, _) = said(path, &["backfill", "202401..202412"]);
    assert_eq!((code, shown.matches("left alone: done").count()), (0, 12), "{shown}");
    assert_eq!(json(path, &["backfill", "list"]).1.as_array().map(Vec::len), Some(1));
    let (_, shown, _) = said(path, &["--lang", "zh", "backfill", "show", "1"]);
    assert!(shown.contains("补跑 1（作业组 fan_out_fan_in，202401..202412）：SUCCESS"), "{shown}");
}

#[test]
fn a_failure_is_shown_and_gone_on_from() {
    let folder = gated();
    let path = folder.path();
    touch(path, "go");
    let (code, shown, told) =
        said(path, &["backfill", "202401..202404", "dag.yaml", "--group", "g"]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("202403 B FAILED") && told.contains("202403 FAILED"), "{told}");
    assert!(shown.contains("To go on: procession backfill resume 1"), "{shown}");
    let (_, shown) = json(path, &["backfill", "show", "1"]);
    assert_eq!(states(&shown), ["SUCCESS", "SUCCESS", "FAILED", "PENDING"]);
    assert_eq!(shown["batches"][2]["failed"][0]["job_code"], "B");
    let (_, list) = json(path, &["backfill", "202404..202402", "--only", "failed", "--dry-run"]);
    let actions: Vec<&str> = list["batches"]
        .as_array()
        .expect("batches")
        .iter()
        .map(|b| b["action"].as_str().expect("action"))
        .collect();
    assert_eq!(actions, ["leave", "resume", "leave"]);
    touch(path, "cured");
    let (code, shown) =
        json(path, &["backfill", "resume", "1", "--parallel", "2", "--reason", "cured"]);
    assert_eq!((code, states(&shown)), (0, vec!["SUCCESS"; 4]));
    let b = |no: &str| json(path, &["batch", "show", no]).1["jobs"][0]["attempt"].clone();
    assert_eq!(b("202403"), 1, "what had succeeded is not run again");
    let (_, audit) = json(path, &["audit", "--group", "g"]);
    let acts: Vec<&str> =
        audit.as_array().expect("acts").iter().filter_map(|a| a["action"].as_str()).collect();
    let acts: Vec<&str> = acts.into_iter().filter(|a| a.starts_with("backfill")).collect();
    assert_eq!(acts, ["backfill resume", "backfill"], "{audit}");
}

#[test]
fn a_signal_stops_it_when_what_runs_has_ended() {
    let folder = gated();
    let path = folder.path();
    touch(path, "cured");
    let mut child = started(path, &["backfill", "202401..202404", "dag.yaml"]);
    let (_, shown) = json(path, &["backfill", "show", "1"]);
    assert_eq!((&shown["status"], &shown["owner"]["pid"]), (&"RUNNING".into(), &child.id().into()));
    let (code, _, told) = said(path, &["backfill", "202401", "dag.yaml"]);
    assert!(code == 2 && told.contains("in the hands of another process"), "{told}");
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let told = BufReader::new(child.stderr.take().expect("stderr"));
    let heard = told.lines().any(|line| line.expect("text").contains("no new jobs are started"));
    assert!(heard, "it ended without a word");
    touch(path, "go");
    assert_eq!(child.wait().expect("wait").code(), Some(1));
    let (_, shown) = json(path, &["backfill", "show", "1"]);
    assert_eq!(shown["status"], "STOPPED", "{shown}");
    assert_eq!(states(&shown)[1..], ["PENDING", "PENDING", "PENDING"]);
    let (code, shown) = json(path, &["backfill", "resume", "1"]);
    assert_eq!((code, states(&shown)), (0, vec!["SUCCESS"; 4]));
}

/// Five years of batches of at least a tenth of a second each: at one look a second the wish is seen
/// long before the last.
#[test]
fn an_operator_stops_it_from_another_terminal() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let yaml = format!(
        "jobs: {{ A: {{ type: SCRIPT, interpreter: sh, script: 'touch {}/began.202401; sleep 0.1' }} }}",
        path.display()
    );
    std::fs::write(path.join("dag.yaml"), yaml).expect("file");
    let mut child = started(path, &["backfill", "202001..202412", "dag.yaml"]);
    let (code, stopped, told) = said(path, &["backfill", "stop", "1"]);
    assert_eq!(code, 0, "{told}");
    assert!(stopped.contains("STOPPED in") && stopped.contains("PENDING"), "{stopped}");
    assert_eq!(child.wait().expect("wait").code(), Some(1));
    let (code, shown) = json(path, &["backfill", "resume", "1", "--parallel", "8"]);
    assert_eq!((code, states(&shown)), (0, vec!["SUCCESS"; 60]));
}

#[test]
fn a_killed_process_is_waited_for_and_its_backfill_resumed() {
    let folder = gated();
    let path = folder.path();
    touch(path, "cured");
    std::fs::write(path.join("procession.toml"), "[engine]\nlease_sec = 1\n").expect("settings");
    let mut child = started(path, &["backfill", "202401..202403", "dag.yaml"]);
    child.kill().expect("kill -9");
    child.wait().expect("wait");
    touch(path, "go");
    let (code, shown) = json(path, &["backfill", "resume", "1"]);
    assert_eq!((code, states(&shown)), (0, vec!["SUCCESS"; 3]));
    let (_, first) = json(path, &["batch", "show", "202401"]);
    assert_eq!(first["jobs"][0]["attempt"], 2);
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_nothing_behind() {
    let folder = gated();
    let path = folder.path();
    let two = "groups: { g: {}, h: {} }\njobs:\n  A: { group: g, type: NOOP, depends_on: [{ batch: prev, group: g }] }\n  H: { group: h, type: NOOP }\n";
    std::fs::write(path.join("two.yaml"), two).expect("file");
    let cases: [(&[&str], &str); 7] = [
        (&["202401..2024", "dag.yaml"], "one end is a month, the other a year"),
        (&["202401,202401", "dag.yaml"], "twice"),
        (&["a..b", "dag.yaml"], "cannot be counted"),
        (&["202401", "dag.yaml", "--group", "nobody"], "no group nobody"),
        (&["202401", "two.yaml"], "which group? add --group, one of: g, h"),
        (&["202403..202401", "two.yaml", "--group", "g"], "waits for batch 202402 (job A"),
        (&["202401", "dag.yaml", "--param", "rate"], "write NAME=VALUE"),
    ];
    for (args, sentence) in cases {
        let args: Vec<&str> = ["backfill"].iter().chain(args).copied().collect();
        let (code, _, told) = said(path, &args);
        assert_eq!(code, 2, "{args:?}: {told}");
        assert!(told.contains(sentence), "{args:?}: {told}");
    }
    for verb in [&["show", "9"][..], &["stop", "9"], &["resume", "9"]] {
        let args: Vec<&str> = ["backfill"].iter().chain(verb).copied().collect();
        let (code, _, told) = said(path, &args);
        assert_eq!(code, 2, "{args:?}: {told}");
        assert!(told.contains("there is no backfill 9"), "{args:?}: {told}");
    }
    assert_eq!(json(path, &["batch", "list"]).1, Value::Array(Vec::new()));
    assert_eq!(json(path, &["job", "list"]).1, Value::Array(Vec::new()), "no file was stored");
    assert_eq!(json(path, &["backfill", "list"]).1, Value::Array(Vec::new()));
}
