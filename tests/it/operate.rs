//! What operators do, with the real program: one process runs a batch, another acts on it.

use crate::cli::{folder, procession, said};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const FAILS: &str = "
jobs:
  A: { type: NOOP }
  BAD: { type: SCRIPT, interpreter: sh, script: 'test -e cured', working_dir: '.', depends_on: [A] }
  BELOW: { type: NOOP, depends_on: [BAD] }
";

fn shown(path: &Path, batch: &str) -> Value {
    let (_, shown, error) = said(path, &["--json", "batch", "show", batch]);
    serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{e}: {error}"))
}

fn states(batch: &Value) -> Vec<&str> {
    batch["jobs"].as_array().expect("jobs").iter().filter_map(|j| j["status"].as_str()).collect()
}

#[test]
fn the_list_comes_first_and_the_batch_goes_on_by_itself() {
    let folder = folder(FAILS);
    let path = folder.path();
    assert_eq!(said(path, &["run", "dag.yaml", "--batch-no", "1"]).0, 1);
    let force = ["job", "force-success", "1", "BAD", "--reason", "rates are in"];
    let (code, list, told) = said(path, &[&force[..], &["--dry-run"]].concat());
    assert_eq!(code, 0);
    let row = |word: &str| {
        let line = list.lines().find(|l| l.trim_start().starts_with(word)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("BAD"), "BAD FAILED FORCED asked for", "{list}");
    assert_eq!(row("BELOW"), "BELOW UPSTREAM_FAILED PENDING follows", "{list}");
    assert!(list.contains("force-success in batch 1 of default: 2 rows"), "{list}");
    assert!(told.contains("nothing was written"), "{told}");
    assert_eq!(states(&shown(path, "1")), ["SUCCESS", "FAILED", "UPSTREAM_FAILED"]);
    let (code, list, _) = said(path, &force);
    assert_eq!(code, 0, "{list}");
    assert!(list.contains("Batch 1 of default: WARNING"), "{list}");
    assert_eq!(states(&shown(path, "1")), ["SUCCESS", "FORCED", "SUCCESS"]);
    let (code, audit, _) = said(path, &["audit", "--batch", "1", "--job", "BAD"]);
    assert_eq!(code, 0);
    assert!(audit.contains("force-success") && audit.contains("rates are in"), "{audit}");
    assert!(audit.contains("FAILED → FORCED") && !audit.contains("BELOW"), "{audit}");
    let (_, audit, _) = said(path, &["--json", "audit", "-n", "1"]);
    let audit: Value = serde_json::from_str(&audit).expect("JSON");
    assert_eq!(audit[0]["reason"], "rates are in");
}

#[test]
fn what_is_refused_says_why_and_changes_nothing() {
    let folder = folder(FAILS);
    let path = folder.path();
    assert_eq!(said(path, &["run", "dag.yaml", "--batch-no", "1"]).0, 1);
    let before = (shown(path, "1"), said(path, &["--json", "audit"]).1);
    for (args, words) in [
        (
            &["job", "hold", "1", "A", "--reason", "x"][..],
            "A is SUCCESS; hold is for jobs that are",
        ),
        (&["job", "hold", "1", "A"], "--reason"),
        (&["job", "hold", "1", "A", "--reason", " "], "say why"),
        (&["job", "hold", "1", "bad", "--reason", "x"], "did you mean BAD?"),
        (&["job", "hold", "9", "A", "--reason", "x"], "there is no batch 9"),
        (&["job", "ice", "1", "--reason", "x"], "name the batch and the jobs"),
        (&["job", "ice", "--every-batch", "NO", "--reason", "x"], "there is no job NO"),
        (&["batch", "pause", "1", "--reason", "x"], "batch 1 has ended (FAILED)"),
        (&["batch", "rerun", "1", "--reason", "x"], "--from-failure"),
        (
            &["batch", "rerun", "1", "--from-failure", "--downstream", "--reason", "x"],
            "leave out --downstream",
        ),
    ] {
        let (code, _, error) = said(path, args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains(words), "{args:?}: {error}");
    }
    assert_eq!((shown(path, "1"), said(path, &["--json", "audit"]).1), before);
}

#[test]
fn a_rerun_runs_here_or_is_left_to_resume() {
    let folder = folder(FAILS);
    let path = folder.path();
    let run = |batch: &str| said(path, &["run", "dag.yaml", "--batch-no", batch]).0;
    assert_eq!(run("1"), 1);
    let rerun = ["batch", "rerun", "1", "--from-failure", "--reason", "again"];
    let (code, list, _) = said(path, &rerun);
    assert_eq!(code, 1, "it fails again: {list}");
    // The mended definition, by intent.
    let mended = FAILS.replace("test -e cured", "true");
    std::fs::write(path.join("dag.yaml"), mended).expect("file");
    assert_eq!(said(path, &["apply", "dag.yaml"]).0, 0);
    let (code, list, told) = said(path, &[&rerun[..], &["--latest", "--no-run"]].concat());
    assert_eq!(code, 0, "{list}{told}");
    assert!(told.contains("~ job BAD"), "the difference is shown: {told}");
    assert!(told.contains("procession run --batch-no 1 --group default --resume"), "{told}");
    assert_eq!(states(&shown(path, "1")), ["SUCCESS", "PENDING", "PENDING"]);
    let (code, _, error) =
        said(path, &["run", "--batch-no", "1", "--group", "default", "--resume"]);
    assert_eq!(code, 0, "{error}");
    let chosen = ["--json", "batch", "rerun", "1", "--jobs", "A,BAD", "--reason", "zh"];
    let (code, document, error) = said(path, &chosen);
    let document: Value =
        serde_json::from_str(&document).unwrap_or_else(|e| panic!("{e}: {error}"));
    assert_eq!((code, &document["batch"]["status"]), (0, &Value::from("SUCCESS")));
    assert_eq!(document["lines"].as_array().map(Vec::len), Some(2));
    let (_, list, told) = said(
        path,
        &["--lang", "zh", "job", "rerun", "1", "A", "--downstream", "--reason", "x", "--dry-run"],
    );
    assert!(list.contains("之后") && list.contains("操作指定"), "{list}");
    assert!(told.contains("未写入"), "{told}");
}

#[test]
fn a_standing_mode_is_shown_and_outlives_apply() {
    let folder = folder(FAILS);
    let path = folder.path();
    assert_eq!(said(path, &["apply", "dag.yaml"]).0, 0);
    let ice = ["job", "ice", "--every-batch", "BAD", "--reason", "no rates this year"];
    let (code, told, error) = said(path, &ice);
    assert_eq!(code, 0, "{error}");
    assert!(told.contains("BAD: ICE in every batch"), "{told}");
    std::fs::write(path.join("dag.yaml"), FAILS.replace("cured", "mended")).expect("file");
    let (code, shown_, error) = said(path, &["run", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0, "{error}");
    assert!(shown_.contains("SKIPPED (ice)"), "{shown_}");
    let (_, jobs, _) = said(path, &["--json", "job", "list"]);
    let jobs: Value = serde_json::from_str(&jobs).expect("JSON");
    assert_eq!(jobs[1]["run_mode"], "ICE");
    let normal = ["job", "normal", "--every-batch", "BAD", "--reason", "they are in"];
    assert_eq!(said(path, &normal).0, 0);
    assert_eq!(said(path, &["run", "--batch-no", "2"]).0, 1, "it runs, and fails");
}

fn run_apart(path: &Path) -> Child {
    let mut command = procession(path);
    command.args(["run", "dag.yaml", "--batch-no", "1", "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("spawn")
}

/// Looks until the batch is as wanted.
fn until(path: &Path, wanted: &[&str]) {
    for _ in 0..600 {
        let (code, shown, _) = said(path, &["--json", "batch", "show", "1"]);
        let batch: Value = serde_json::from_str(&shown).unwrap_or_default();
        if code == 0 && states(&batch) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never {wanted:?}: {}", shown(path, "1"));
}

/// One process has the batch, others act on it: it stops what it is told to stop, starts nothing
/// while it is paused, and goes on by itself.
#[test]
fn another_process_acts_on_a_batch_that_runs() {
    let folder = folder(
        "
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  LONG: { script: 'sleep 300' }
  NEXT: { script: 'exit 0', depends_on: [LONG] }
  SOON: { script: 'sleep 300' }
",
    );
    let path = folder.path();
    let mut run = run_apart(path);
    until(path, &["RUNNING", "PENDING", "RUNNING"]);
    let (code, _, told) = said(path, &["batch", "pause", "1", "--reason", "rates are late"]);
    assert_eq!(code, 0, "{told}");
    let (code, list, told) = said(path, &["job", "kill", "1", "LONG", "--reason", "wrong month"]);
    assert_eq!(code, 0, "{told}");
    assert!(list.contains("KILLING") && told.contains("picks it up"), "{list}{told}");
    until(path, &["KILLED", "UPSTREAM_FAILED", "RUNNING"]);
    let (code, _, told) = said(path, &["job", "skip", "1", "LONG", "--reason", "not needed"]);
    assert_eq!(code, 0, "{told}");
    until(path, &["SKIPPED", "PENDING", "RUNNING"]);
    let (_, why, _) = said(path, &["batch", "why", "1"]);
    assert!(why.contains("the batch is paused by an operator"), "{why}");
    let (_, list, _) = said(path, &["batch", "list"]);
    assert!(list.contains("RUNNING (paused)"), "{list}");
    assert_eq!(said(path, &["batch", "resume", "1", "--reason", "they are in"]).0, 0);
    until(path, &["SKIPPED", "SUCCESS", "RUNNING"]);
    assert_eq!(said(path, &["job", "kill", "1", "SOON", "--reason", "enough"]).0, 0);
    assert_eq!(run.wait().expect("wait").code(), Some(1));
    assert_eq!(shown(path, "1")["status"], "KILLED");
}
