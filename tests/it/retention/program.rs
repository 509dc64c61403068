//! `procession retention` as a user meets it.

use crate::cli::{folder, said};
use std::path::Path;

const GROUP: &str = "
groups: { g: {} }
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'echo hello' }
";

/// Batches 1 to `n`, all of which ended long ago.
fn old_batches(path: &Path, n: u32) {
    for no in 1..=n {
        let ran = said(path, &["run", "dag.yaml", "--batch-no", &no.to_string(), "--quiet"]);
        assert_eq!(ran.0, 0, "{}", ran.2);
    }
    let url = format!("sqlite:{}", path.join("procession.db").display());
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(crate::util::query(
        &url,
        "UPDATE job_batch SET end_time = '2020-01-01T00:00:00.000Z' WHERE 1 = 1",
    ));
}

fn settings(path: &Path, text: &str) {
    std::fs::write(path.join("procession.toml"), format!("[retention]\n{text}")).expect("settings");
}

#[test]
fn a_user_looks_first_and_then_lets_go() {
    let folder = folder(GROUP);
    let path = folder.path();
    old_batches(path, 4);
    let (code, out, _) = said(path, &["retention", "preview"]);
    assert_eq!(code, 0);
    assert!(out.contains("nothing is ever to go"), "{out}");
    let reason = ["--reason", "disk is full"];
    let run = |more: &[&str]| said(path, &[&["retention", "run"], &reason[..], more].concat());
    assert_eq!(run(&["--yes", "--now"]).0, 2, "it is off");

    settings(path, "batches_days = 90\nkeep_batches = 1\n");
    let (code, out, _) = said(path, &["retention", "preview"]);
    assert_eq!(code, 0);
    for part in ["BATCHES GO", "2020-01-01", "among the newest that ended well", "job_log_line"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, zh, _) = said(path, &["retention", "preview", "--lang", "zh"]);
    assert!(zh.contains("属于最近成功的批次"), "{zh}");
    let (code, json, _) = said(path, &["retention", "preview", "--json"]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["groups"][0]["removable"]["batches"], 3);
    assert_eq!(json["groups"][0]["kept"]["newest"], 1);

    let (code, _, error) = run(&["--now"]);
    assert_eq!(code, 2);
    assert!(error.contains("say --yes"), "{error}");
    let (code, _, error) = said(path, &["retention", "run", "--now", "--yes"]);
    assert_eq!(code, 2);
    assert!(error.contains("--reason"), "{error}");
    let (code, out, _) = said(path, &["retention", "run", "--dry-run", "--json"]);
    let dry: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &dry["rows"]), (0, &json["rows"]));

    let (code, out, error) = run(&["--now", "--yes", "--json", "--limit", "2"]);
    assert_eq!(code, 0, "{error}");
    let removed: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(removed["removed"]["job_batch"], 2);
    let (code, out, error) = run(&["--now", "--yes"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("1 job_batch"), "{out}");
    let (_, out, _) = said(path, &["retention", "preview"]);
    assert!(out.contains("Last pass"), "{out}");
    let (_, out, _) = said(path, &["batch", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    let (code, _, error) = said(path, &["batch", "show", "1"]);
    assert_eq!(code, 2);
    assert!(error.contains("there is no batch 1") && error.contains("was removed"), "{error}");
    let (_, out, _) = said(path, &["audit", "--batch", "1"]);
    assert!(out.contains("batch remove") && out.contains("disk is full"), "{out}");
    assert!(run(&["--now", "--yes"]).1.contains("Nothing to remove"));
}

#[test]
fn a_closed_window_says_when_it_opens() {
    let folder = folder(GROUP);
    let path = folder.path();
    old_batches(path, 2);
    // Whatever time it is, one of the two is closed; the first once more, for noon may come in between.
    let mut refused = 0;
    for window in ["00:00-12:00", "12:00-00:00", "00:00-12:00"] {
        settings(path, &format!("batches_days = 90\nwindow = '{window}'\n"));
        let (code, _, error) = said(path, &["retention", "run", "--yes", "--reason", "x"]);
        if code == 2 {
            refused += 1;
            assert!(error.contains("is closed until") && error.contains("--now"), "{error}");
        }
    }
    assert!(refused >= 1);
    let (code, _, error) = said(path, &["retention", "run", "--yes", "--now", "--reason", "x"]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn lines_that_are_gone_are_told() {
    let folder = folder(GROUP);
    let path = folder.path();
    old_batches(path, 1);
    settings(path, "log_lines_days = 30\n");
    let (_, before, _) = said(path, &["logs", "1", "A"]);
    assert!(before.contains("hello"), "{before}");
    let (code, out, error) = said(path, &["retention", "run", "--yes", "--now", "--reason", "x"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("job_log_line"), "{out}");
    let (_, after, error) = said(path, &["logs", "1", "A"]);
    assert!(!after.contains("hello") && after.contains("SUCCESS"), "{after}");
    assert!(error.contains("were removed at"), "{error}");
}
