//! The shipped examples by the commands of dag-examples/README.md, on servers: no look beforehand refuses them.
//! What they compute is looked at by `examples`, which opens them without that look.

use crate::cli::procession;
use crate::util::{Scratch, with_scratch};
use procession::domain::source::DialectName;
use std::process::Output;

/// File, batch number, and the variable that names its server.
const SHIPPED: [(&str, &str, &str); 5] = [
    ("month-end-close.yaml", "202407", "PROCESSION_SOURCE_LEDGER"),
    ("quarter-end-consolidation.yaml", "2024Q3", "PROCESSION_SOURCE_CONSOLIDATION"),
    ("fan-out-fan-in.yaml", "202407", "PROCESSION_SOURCE_FAN"),
    ("pools-and-locks.yaml", "202407", "PROCESSION_SOURCE_POOLS"),
    ("success-and-checks.yaml", "202407", "PROCESSION_SOURCE_CHECKED"),
];

/// What the first of them has computed: 623405.35.
const NET_INCOME: &str =
    "SELECT value FROM close_figure WHERE batch_no = '202407' AND figure = 'net_income'";

async fn run(db: &Scratch, file: &str, batch_no: &str, variable: &str) -> (Output, Output) {
    let folder = tempfile::tempdir().expect("folder");
    let path = format!("{}/dag-examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let command = |verb: &str| {
        let mut program = procession(folder.path());
        program.args([verb, &path, "--batch-no", batch_no]).env(variable, &db.url);
        program
    };
    let (mut plan, mut run) = (command("plan"), command("run"));
    let ran = tokio::task::spawn_blocking(move || {
        (plan.output().expect("plan"), run.output().expect("run"))
    });
    ran.await.expect("ran")
}

async fn shipped_examples_run_as_their_page_says(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        for (file, batch_no, variable) in SHIPPED {
            let (plan, run) = run(&db, file, batch_no, variable).await;
            for (verb, output) in [("plan", plan), ("run", run)] {
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(0), "{verb} {file} on {dialect}: {said}");
            }
        }
        assert_eq!(db.value(NET_INCOME).await, "623405.35", "{dialect}");
    })
    .await;
}

mod mariadb {
    #[tokio::test]
    async fn shipped_examples_run_as_their_page_says() {
        super::shipped_examples_run_as_their_page_says(super::DialectName::Mysql).await;
    }
}

mod postgres {
    #[tokio::test]
    async fn shipped_examples_run_as_their_page_says() {
        super::shipped_examples_run_as_their_page_says(super::DialectName::Postgres).await;
    }
}
