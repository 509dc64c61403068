//! How often the program goes to its database and to a data source and back. What is counted here is what a
//! slow network multiplies: with 5 ms of it 0.1 needed 1.25 s to its first job, 27 ms for each job of a
//! chain, and 45 round trips for a lone firing.

use crate::util::relay::Relay;
use crate::util::{Scratch, with_migrated_scratch};
use procession::domain::source::DialectName;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How the rows of jobs are claimed, on every server.
const CLAIM: &str = "UPDATE job_queue SET status";

/// A database behind a relay that can read along.
async fn behind_relay(scratch: &Scratch) -> (Relay, String) {
    let at = url::Url::parse(&scratch.url).expect("a URL");
    let port = at.port().expect("a port");
    let relay = Relay::to(&format!("{}:{port}", at.host_str().expect("a host"))).await;
    let plain = match scratch.dialect {
        DialectName::Postgres => "sslmode=disable",
        DialectName::Mysql | DialectName::Sqlite => "ssl-mode=DISABLED",
    };
    let url = relay.url(&scratch.url);
    let mark = if url.contains('?') { '&' } else { '?' };
    (relay, format!("{url}{mark}{plain}"))
}

fn command(folder: &Path, metadata: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.args(args).current_dir(folder).env("PROCESSION_DB", metadata);
    command.stdout(Stdio::null()).kill_on_drop(true);
    command
}

async fn succeed(mut command: Command) {
    let ended = command.output().await.expect("start the program");
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// Round trips of one command. The limits leave room for renewals of the lease, which a busy machine adds: some ten
/// round trips every five seconds.
struct Trips {
    to_first_claim: u64,
    on_metadata: u64,
    on_source: u64,
}

/// Runs a file whose jobs are stored as they stand, on a source S that is behind a relay too.
async fn count_run(scratch: &Scratch, file: &str) -> Trips {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("jobs.yaml"), file).expect("write");
    let (source, source_url) = behind_relay(scratch).await;
    let run = |url: &str, number| {
        let args = ["run", "jobs.yaml", "--quiet", "--no-connect", "--batch-no", number];
        let mut run = command(folder.path(), url, &args);
        run.env("PROCESSION_SOURCE_S", &source_url);
        run
    };
    succeed(run(&scratch.url, "202401")).await;
    let before = source.round_trips();
    let (metadata, metadata_url) = behind_relay(scratch).await;
    metadata.mark(CLAIM);
    succeed(run(&metadata_url, "202402")).await;
    Trips {
        to_first_claim: metadata.trips_to_mark().expect("jobs are claimed"),
        on_metadata: metadata.round_trips(),
        on_source: source.round_trips() - before,
    }
}

/// A chain of jobs that do `what`, a line of YAML.
fn chain(head: &str, group: &str, count: usize, what: &str) -> String {
    let group = format!("{group}_{count}");
    let mut text = format!("{head}groups:\n  {group}: {{}}\ndefaults: {{group: {group}}}\njobs:\n");
    for n in 1..=count {
        let after = if n == 1 { String::new() } else { format!(", depends_on: [J{}]", n - 1) };
        let _ = writeln!(text, "  J{n}: {{{what}{after}}}");
    }
    text
}

fn per_job(many: u64, one: u64, more: u32) -> f64 {
    f64::from(u32::try_from(many.saturating_sub(one)).expect("few")) / f64::from(more)
}

async fn a_run_goes_seldom_to_its_database(dialect: DialectName, to_first: u64, hop: (f64, f64)) {
    with_migrated_scratch(dialect, |scratch| async move {
        let noop = |count| chain("", "N", count, "type: NOOP");
        let one = count_run(&scratch, &noop(1)).await;
        let many = count_run(&scratch, &noop(21)).await;
        assert!(one.to_first_claim <= to_first, "{dialect}: {}", one.to_first_claim);
        // Nothing grows with the jobs; what the progress shows is read beside, before or after.
        assert!(
            many.to_first_claim <= one.to_first_claim + 20,
            "{dialect}: {}",
            many.to_first_claim
        );
        let noop_hop = per_job(many.on_metadata, one.on_metadata, 20);

        let body = match dialect {
            DialectName::Postgres => "CREATE PROCEDURE once () LANGUAGE sql AS 'SELECT 1'",
            DialectName::Mysql | DialectName::Sqlite => "CREATE PROCEDURE once () DO 1",
        };
        scratch.setup(&[body]).await;
        let head = format!("sources:\n  S: {{url: \"{}\"}}\n", scratch.url);
        let call = |count| chain(&head, "P", count, "type: PROC, source: S, proc_name: once");
        let one = count_run(&scratch, &call(1)).await;
        let many = count_run(&scratch, &call(21)).await;
        let metadata = per_job(many.on_metadata, one.on_metadata, 20);
        let source = per_job(many.on_source, one.on_source, 20);
        assert!(noop_hop <= hop.0, "{dialect}: {noop_hop} for a NOOP");
        // With the question whether the row is still its own, once it has the session lock (ADR 25).
        assert!(metadata <= hop.0 + 1.0, "{dialect}: {metadata} for a PROC on the metadata");
        assert!(source <= hop.1, "{dialect}: {source} for a PROC on its source");
    })
    .await;
}

#[tokio::test]
async fn postgres_a_run_goes_seldom_to_its_database() {
    a_run_goes_seldom_to_its_database(DialectName::Postgres, 60, (2.0, 3.5)).await;
}

#[tokio::test]
async fn mysql_a_run_goes_seldom_to_its_database() {
    // MySQL, unlike MariaDB, takes no statements together: 6.4 for a NOOP and 9.5 for a PROC on 9.7.
    a_run_goes_seldom_to_its_database(DialectName::Mysql, 90, (10.0, 6.0)).await;
}

/// How often a serving process goes to its database within `time`.
async fn count_serving(relay: &Relay, time: Duration) -> u64 {
    let before = relay.round_trips();
    tokio::time::sleep(time).await;
    relay.round_trips() - before
}

async fn serve(folder: &Path, metadata: &str) -> Child {
    let child = command(folder, metadata, &["serve"]).stderr(Stdio::null()).spawn().expect("serve");
    // Until it has found its pace.
    tokio::time::sleep(Duration::from_secs(6)).await;
    child
}

#[tokio::test]
async fn a_lone_firing_goes_seldom_to_the_database() {
    with_migrated_scratch(DialectName::Postgres, |scratch| async move {
        scratch.setup(&["CREATE PROCEDURE once () LANGUAGE sql AS 'SELECT 1'"]).await;
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!(
            "sources:\n  S: {{url: \"{}\"}}\n{}schedules:\n  E: {{cron: \"*/2 * * * * ?\", \
             batch_no: \"time(%Y%m%d-%H%M%S)\", group: S_1}}\n",
            scratch.url,
            chain("", "S", 1, "type: PROC, source: S, proc_name: once, timeout_sec: 1"),
        );
        std::fs::write(folder.path().join("jobs.yaml"), file).expect("write");
        let (relay, url) = behind_relay(&scratch).await;
        let (time, firings) = (Duration::from_secs(12), 6);
        let mut serving = serve(folder.path(), &url).await;
        let idle = count_serving(&relay, time).await;
        serving.kill().await.expect("stop");
        succeed(command(folder.path(), &scratch.url, &["apply", "jobs.yaml"])).await;
        let _serving = serve(folder.path(), &url).await;
        let busy = count_serving(&relay, time).await;
        let each = per_job(busy, idle, firings);
        assert!(each <= 80.0, "{each} for each firing");
    })
    .await;
}
