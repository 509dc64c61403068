//! A backup of Procession's database is restored while no process runs: the ledger of a data source remembers what the
//! rows do not.

use crate::util::{Scratch, query, with_migrated_scratch, with_scratch};
use procession::domain::source::DialectName;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use tokio::process::Command;

async fn call(folder: &Path, scratch: &Scratch, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.args(args).current_dir(folder).env("PROCESSION_DB", &scratch.url).env("LANG", "C");
    let Output { status, stdout, stderr } = command.output().await.expect("start the program");
    let text = [stdout, stderr].concat();
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

async fn effects(scratch: &Scratch) -> Option<String> {
    let count = query(&scratch.url, "SELECT CAST(COUNT(*) AS CHAR(9)) FROM effect").await;
    count[0][0].as_ref().map(|count| count.trim().to_owned())
}

async fn a_restore_while_nothing_ran_is_noticed(dialect: DialectName) {
    with_migrated_scratch(dialect, |scratch| async move {
        with_scratch(dialect, |target| async move { notice(scratch, target).await }).await;
    })
    .await;
}

async fn notice(scratch: Arc<Scratch>, target: Arc<Scratch>) {
    target.setup(&["CREATE TABLE effect (n INTEGER)"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!(
        "sources:\n  S: {{url: \"{}\"}}\ngroups:\n  G: {{}}\ndefaults: {{group: G}}\njobs:\n  \
             POST: {{type: SQL, source: S, tx: ledger, sql: \"INSERT INTO effect VALUES (1)\"}}\n",
        target.url
    );
    std::fs::write(folder.path().join("jobs.yaml"), file).expect("write");
    let call = async |args: &[&str]| call(folder.path(), &scratch, args).await;
    for args in [&["apply", "jobs.yaml"][..], &["source", "prepare"]] {
        let (code, said) = call(args).await;
        assert_eq!(code, 0, "{args:?}: {said}");
    }
    let run = async |number: &str| {
        call(&["run", "jobs.yaml", "--quiet", "--no-connect", "--batch-no", number]).await
    };
    let (code, said) = run("202401").await;
    assert_eq!((code, effects(&target).await.as_deref()), (0, Some("1")), "{said}");

    // What a backup of ten minutes ago holds.
    let start = "SELECT value FROM procession_meta WHERE name = 'newest_start'";
    let start = query(&scratch.url, start).await[0][0].clone().expect("a start");
    let before = start.parse::<i64>().expect("a number") - 600_000;
    let set = format!(
        "UPDATE procession_meta SET value = '{before:013}' WHERE name IN ('newest_start', 'newest_heartbeat')"
    );
    let forget = ["UPDATE job_queue SET status = 'PENDING'", "DELETE FROM job_execution_logs"];
    scratch.setup(&[set.as_str(), forget[0], forget[1]]).await;

    let (code, said) = run("202402").await;
    assert_eq!((code, effects(&target).await.as_deref()), (2, Some("1")), "{said}");
    assert!(said.contains("metadata show"), "{said}");
    let (code, said) = call(&["metadata", "show"]).await;
    assert!(code == 0 && said.contains("a ledger of a data source"), "{said}");
    let accept = ["metadata", "accept", "--mark-fired", "--reason", "compared by hand"];
    let (code, said) = call(&accept).await;
    assert_eq!(code, 0, "{said}");
    let (code, said) = run("202402").await;
    assert_eq!((code, effects(&target).await.as_deref()), (0, Some("2")), "{said}");
}

#[tokio::test]
async fn sqlite_a_restore_while_nothing_ran_is_noticed() {
    a_restore_while_nothing_ran_is_noticed(DialectName::Sqlite).await;
}

#[tokio::test]
async fn mysql_a_restore_while_nothing_ran_is_noticed() {
    a_restore_while_nothing_ran_is_noticed(DialectName::Mysql).await;
}

#[tokio::test]
async fn postgres_a_restore_while_nothing_ran_is_noticed() {
    a_restore_while_nothing_ran_is_noticed(DialectName::Postgres).await;
}
