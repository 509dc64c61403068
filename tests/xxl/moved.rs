//! From the database of an admin to a batch that runs: its jobs, executors and users come over, and the
//! executors do what they did, in the order of a DAG.

use crate::util::with_scratch;
use crate::xxl::admin_program::{Running, ask, procession};
use crate::xxl::program_of_others::{Program, TOKEN};
use crate::xxl_import::tables::{DEFAULT, Release, Row, add_groups, add_jobs, add_users, make};
use procession::domain::source::DialectName;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn well(dir: &Path, args: &[&str]) -> String {
    let (code, out, err) = ask(dir, args);
    assert_eq!(code, Some(0), "{args:?}: {out} {err}");
    out
}

/// A `serve` and where it hears executors.
fn serve(dir: &Path) -> (Running, String) {
    let mut command = procession(dir, &["serve", "--http", "127.0.0.1:0"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("start"));
    let mut lines = BufReader::new(running.0.stderr.take().expect("stderr")).lines();
    let port = |line: String| -> Option<String> {
        let rest = line.split("http://127.0.0.1:").nth(1)?.to_owned();
        Some(rest.chars().take_while(char::is_ascii_digit).collect())
    };
    let port = lines.by_ref().map_while(Result::ok).find_map(port).expect("a port");
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    (running, format!("127.0.0.1:{port}"))
}

fn status(dir: &Path) -> Value {
    let shown = well(dir, &["--json", "batch", "show", "202407"]);
    serde_json::from_str::<Value>(&shown).expect("JSON")["status"].clone()
}

#[expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_an_admin_run_here_on_the_executors_that_they_had() {
    with_scratch(DialectName::Mysql, async |xxl| {
        let program = Program::begin().await;
        let release = Release::ALL[4];
        make(&xxl, release).await;
        add_groups(&xxl, release, &[(1, "pay-executor", "支付", &program.url(), "")]).await;
        let jobs = [
            Row {
                children: "2,3",
                param: "a,b",
                ..Row::new(1, "月末结账").cron("0 0 2 1 1 ? 2190")
            },
            Row { handler: "second", children: "4", ..Row::new(2, "总账") },
            Row { handler: "third", children: "4", ..Row::new(3, "应收") },
            Row { handler: "last", ..Row::new(4, "报表") },
        ];
        add_jobs(&xxl, release, &jobs).await;
        add_users(&xxl, &[(1, "admin", DEFAULT[1], 1, "")]).await;
        let folder = tempfile::tempdir().expect("folder");
        let dir = folder.path();
        std::fs::write(dir.join("token"), TOKEN).expect("file");
        well(dir, &["migrate"]);
        let url = xxl.url.as_str();
        let import = [
            "import",
            "xxl-job",
            "--url",
            url,
            "--out",
            "out",
            "--apply",
            "--executor-token-file",
            "token",
        ];
        well(dir, &import);
        well(dir, &["check", "out/definition.yaml"]);
        well(dir, &["apply", "out/definition.yaml"]);
        let (_serving, door) = serve(dir);
        well(dir, &["batch", "open", "--batch-no", "202407", "--group", "月末结账"]);
        let (mut told, end) = (BTreeSet::new(), Instant::now() + Duration::from_secs(60));
        while status(dir) != "SUCCESS" {
            for ask in program.heard("/run") {
                let log = ask["logId"].as_i64().expect("a key");
                if told.insert(log) {
                    assert_eq!(program.tells(&door, log, 200).await, Some(200));
                }
            }
            assert!(Instant::now() < end, "{}: {:?}", status(dir), program.heard("/run"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let asked = program.heard("/run");
        let handlers: Vec<&str> =
            asked.iter().filter_map(|ask| ask["executorHandler"].as_str()).collect();
        assert_eq!((handlers.len(), handlers[0], handlers[3]), (4, "demoJobHandler", "last"));
        assert_eq!(asked[0]["executorParams"], "a,b", "as it is");
    })
    .await;
}
