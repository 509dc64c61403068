//! The real program: exit codes, and readers that go away.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

const FAILS: &str = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'sleep 0.3' }
  B: { type: SCRIPT, interpreter: sh, script: 'exit 4', depends_on: [A] }
  C: { type: NOOP, depends_on: [A] }
";

fn folder(yaml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    folder
}

#[test]
fn exit_codes_tell_whose_fault_it_was() {
    let folder = folder(FAILS);
    let path = folder.path();
    let code = |args: &[&str]| said(path, args).0;
    assert_eq!(code(&["check", "dag.yaml"]), 0);
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "1"]), 1);
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "1"]), 2, "exists");
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "no/good"]), 2);
    assert_eq!(code(&["run", "missing.yaml", "--batch-no", "2"]), 2);
    assert_eq!(code(&["run"]), 2);
    assert_eq!(code(&["batch", "show", "999"]), 2);
    assert_eq!(code(&["batch", "kill", "1", "--reason", "x"]), 2, "ended already");
    assert_eq!(code(&["logs", "1", "NOBODY"]), 2);
    assert_eq!(code(&["--db", "mysql://nobody@127.0.0.1:1/x", "batch", "list"]), 3, "unreachable");
}

/// A closed pager or a dropped session must neither stop a batch nor change how it ends.
#[test]
fn a_reader_that_goes_away_changes_nothing() {
    for (number, json) in [("1", false), ("2", true)] {
        let folder = folder(FAILS);
        let mut command = procession(folder.path());
        command.args(["run", "dag.yaml", "--batch-no", number]);
        if json {
            command.arg("--json");
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
        if !json {
            // One byte proves that it speaks; then nobody listens any more.
            let mut first = [0u8; 1];
            child.stderr.as_mut().expect("stderr").read_exact(&mut first).expect("a byte");
        }
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().expect("wait").code(), Some(1));
        let (_, shown, _) = said(folder.path(), &["--json", "batch", "show", number]);
        let batch: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(batch["status"], "FAILED");
        assert_eq!(batch["jobs"][2]["status"], "SUCCESS");
    }
}

#[test]
fn what_a_script_reads_is_json_and_what_people_read_is_not_obeyed() {
    let folder = folder(
        "sources: { s: { url: 'sqlite::memory:' } }\n\
         jobs: { A: { type: SQL, source: s, sql: \"SELECT 'x' || char(27) || '[31m red' AS v\" } }\n",
    );
    let path = folder.path();
    let (code, shown, _) = said(path, &["run", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0);
    assert!(shown.contains("[31m red") && !shown.contains('\u{1b}'), "{shown}");
    for args in [
        &["--json", "batch", "list"][..],
        &["--json", "batch", "why", "1"],
        &["--json", "job", "list"],
        &["--json", "job", "show", "A"],
        &["--json", "check", "dag.yaml"],
        &["--json", "migrate"],
        &["dag", "dag.yaml"],
        &["dag", "--batch", "1"],
    ] {
        let (code, shown, error) = said(path, args);
        assert_eq!(code, 0, "{args:?}: {error}");
        serde_json::from_str::<serde_json::Value>(&shown)
            .unwrap_or_else(|e| panic!("{args:?}: {e}"));
    }
    std::fs::write(path.join("bad.yaml"), "jobs: { A: { type: NOPE } }\n").expect("file");
    let (code, shown, _) = said(path, &["--json", "check", "bad.yaml"]);
    let faults: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((code, &faults["ok"]), (2, &serde_json::Value::Bool(false)));
    assert_eq!(faults["faults"][0]["line"], 1);
}

#[test]
fn chinese_is_spoken_where_it_is_asked_for() {
    let folder = folder("jobs: { A: { type: NOOP } }\n");
    let (code, shown, told) =
        said(folder.path(), &["--lang", "zh", "run", "dag.yaml", "--batch-no", "202407"]);
    assert_eq!(code, 0);
    assert!(shown.contains("批次 202407(作业组 default):SUCCESS"), "{shown}");
    assert!(told.contains("业务日期 2024-07-31"), "{told}");
}

#[test]
fn what_does_not_hold_is_listed_and_a_warning_is_no_failure() {
    let folder = folder(
        "sources: { s: { url: 'sqlite:data.db' } }\n\
         jobs:\n  A:\n    type: SQL\n    sql: SELECT 1 AS n\n    success: { rule: result.n == 2, else: warning }\n    \
         checks: { tb: { sql: SELECT 5, expect: zero_rows, else: warning }, ok: { sql: SELECT 5, expect: { min: 5 } } }\n",
    );
    let path = folder.path();
    let (code, shown, _) = said(path, &["run", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0, "{shown}");
    for part in ["WARNING", "warning   check 'tb' found 1 row (5); expected no row"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("'ok'"), "{shown}");
    let (_, shown, _) = said(path, &["--lang", "zh", "batch", "show", "1"]);
    for part in ["未通过的成功条件或检查", "警告", "success rule 'result.n == 2' does not hold"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    let (_, shown, _) = said(path, &["--json", "batch", "show", "1"]);
    let batch: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let outputs = &batch["jobs"][0]["outputs"];
    assert_eq!(outputs["checks"]["tb"]["value"], "1");
    assert_eq!(outputs["checks"]["ok"]["ok"], true);
    assert_eq!(outputs["rules"]["result.n == 2"]["grade"], "warning");
    let (_, shown, _) = said(path, &["job", "show", "A"]);
    assert!(shown.contains("check ok:\n  expects a value of 5 or more, else error"), "{shown}");
}
