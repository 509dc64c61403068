//! `plan` and `run` refuse what `check --connect` finds, before anything is stored.

use crate::cli::said;
use crate::util::with_scratch;
use procession::domain::source::DialectName;
use serde_json::Value;
use std::path::Path;

fn write(folder: &Path, yaml: &str) {
    std::fs::write(folder.join("dag.yaml"), yaml).expect("file");
}

fn refuses(folder: &Path) {
    let said = |args: &[&str]| said(folder, args);
    let order = ["--batch-no", "1"];
    let (code, _, error) = said(&[&["run", "dag.yaml", "-q"], &order[..]].concat());
    assert_eq!(code, 2, "{error}");
    for part in
        ["error: WRONG (source s)", "did you mean sp_close?", "nothing is opened", "--no-connect"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (_, list, _) = said(&["batch", "list", "--json"]);
    let (_, jobs, _) = said(&["job", "list", "--json"]);
    assert_eq!((list.trim(), jobs.trim()), ("[]", "[]"), "nothing is opened or stored");
    let (code, text, error) = said(&[&["plan", "dag.yaml", "--json"], &order[..]].concat());
    let plan: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{error}"));
    assert_eq!(code, 2, "{text}");
    assert_eq!(
        (&plan["refused"][0]["job"], &plan["refused"][1]),
        (&"WRONG".into(), &Value::Null),
        "{text}"
    );
    assert_eq!(plan["preflight"]["errors"], 1, "{text}");
    let (code, _, error) = said(&[&["plan", "dag.yaml", "--no-connect"], &order[..]].concat());
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = said(&[&["run", "dag.yaml", "-q", "--lang", "zh"], &order[..]].concat());
    assert!(code == 2 && error.contains("是否为 sp_close?"), "{error}");
    // A fault in a group that is not meant is none of this order.
    let (code, _, error) =
        said(&[&["run", "dag.yaml", "-q", "--group", "good"], &order[..]].concat());
    assert_eq!(code, 0, "{error}");
    // What exists is said first, and a batch that exists goes on.
    let (code, _, error) = said(&[&["run", "dag.yaml", "-q", "--no-connect"], &order[..]].concat());
    assert_eq!(code, 1, "{error}");
    let (code, _, error) =
        said(&[&["run", "dag.yaml", "-q", "--group", "bad"], &order[..]].concat());
    assert!(code == 2 && error.contains("exists already") && !error.contains("WRONG"), "{error}");
    let (code, _, error) =
        said(&[&["run", "-q", "--resume", "--group", "bad"], &order[..]].concat());
    assert!(code == 1 && !error.contains("error: WRONG (source s)"), "{error}");
}

async fn an_order_with_a_hopeless_job_is_refused(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        db.setup(&[match dialect {
            DialectName::Postgres => "CREATE PROCEDURE sp_close () LANGUAGE sql AS 'SELECT 1'",
            DialectName::Mysql | DialectName::Sqlite => "CREATE PROCEDURE sp_close () DO 1",
        }])
        .await;
        let folder = tempfile::tempdir().expect("folder");
        let yaml = format!(
            "sources: {{s: {{url: '{}'}}}}
groups: {{good: {{}}, bad: {{}}}}
defaults: {{type: PROC, source: s}}
jobs:
  RIGHT: {{group: good, proc_name: sp_close}}
  WRONG: {{group: bad, proc_name: sp_clsoe}}
",
            db.url
        );
        write(folder.path(), &yaml);
        tokio::task::spawn_blocking(move || refuses(folder.path())).await.expect("refused");
    })
    .await;
}

mod mariadb {
    #[tokio::test]
    async fn an_order_with_a_hopeless_job_is_refused() {
        super::an_order_with_a_hopeless_job_is_refused(super::DialectName::Mysql).await;
    }
}

mod postgres {
    #[tokio::test]
    async fn an_order_with_a_hopeless_job_is_refused() {
        super::an_order_with_a_hopeless_job_is_refused(super::DialectName::Postgres).await;
    }
}

/// A source that is away keeps nothing from being opened; the jobs of others run.
#[test]
fn a_source_that_is_away_keeps_no_batch_from_being_opened() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    std::fs::write(path.join("procession.toml"), "[source]\naway_sec = 0\n").expect("settings");
    write(
        path,
        "sources: {away: {url: 'mysql://nobody@127.0.0.1:1/x'}}
jobs: {A: {type: PROC, proc_name: sp, source: away}, B: {type: NOOP}}
",
    );
    let (code, _, error) = said(path, &["plan", "dag.yaml", "--batch-no", "1"]);
    assert!(code == 0 && error.contains("unreachable: source away: not reached"), "{error}");
    let (code, _, error) = said(path, &["run", "dag.yaml", "--batch-no", "1", "-q"]);
    assert!(code == 1 && error.contains("unreachable: source away: not reached"), "{error}");
    let (_, text, _) = said(path, &["batch", "show", "1", "--json"]);
    assert!(text.contains("\"SUCCESS\""), "{text}");
}

/// What an earlier job makes is not missed; nor is a file made that a job would make.
#[test]
fn what_jobs_make_for_each_other_is_not_missed() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    write(
        path,
        "sources: {s: {url: 'sqlite:data.db'}}
defaults: {type: SQL, source: s}
jobs:
  A: {sql: 'CREATE TABLE IF NOT EXISTS t (a INT)'}
  B: {sql: 'INSERT INTO t VALUES (1)', depends_on: [A]}
",
    );
    let (code, _, error) = said(path, &["plan", "dag.yaml", "--batch-no", "1"]);
    assert!(code == 0 && !path.join("data.db").exists(), "{error}");
    // Who asks whether it can be reached wants to know.
    let (code, _, error) = said(path, &["check", "dag.yaml", "--connect"]);
    assert!(code == 2 && error.contains("there is no file sqlite:data.db"), "{error}");
    assert!(!path.join("data.db").exists(), "a look makes no file");
    assert_eq!(said(path, &["run", "dag.yaml", "--batch-no", "1", "-q"]).0, 0);
    let yaml = std::fs::read_to_string(path.join("dag.yaml")).expect("file");
    write(path, &yaml.replace("EXISTS t ", "EXISTS u ").replace("INTO t", "INTO u"));
    let (code, _, error) = said(path, &["run", "dag.yaml", "--batch-no", "2", "-q"]);
    assert!(code == 0 && !error.contains("warning"), "{error}");
    let (code, _, error) = said(path, &["check", "dag.yaml", "--connect"]);
    assert_eq!(code, 0, "{error}");
    write(path, &yaml.replace("EXISTS t ", "EXISTS v ").replace("INTO t", "INTO v"));
    let (code, _, error) = said(path, &["check", "dag.yaml", "--connect"]);
    assert!(code == 0 && error.contains("warning: B (source s)"), "{error}");
    write(path, &yaml.replace("INSERT INTO", "INSRET INTO"));
    let (code, _, error) = said(path, &["run", "dag.yaml", "--batch-no", "3", "-q"]);
    assert!(code == 2 && error.contains("error: B (source s): statement 1"), "{error}");
}
