//! P-20, an outage of Procession's own database that is longer than the lease, while jobs run on servers that are well.
//! A statement or procedure whose session holds the job's lock runs on, ends once and is settled when the database is
//! back. A script holds no such lock and is ended.

use crate::trust::judge::Class;
use crate::trust::nodes::{Life, Worker};
use crate::trust::oracle::{Job, Keys};
use crate::trust::proxy::{Orders, Proxy};
use crate::trust::scene::{Plot, Scene, prepare, until_mid};
use crate::trust::targets::with_database;
use futures_util::FutureExt;
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;
use tokio::time::sleep;

const SETTINGS: &str = "
[engine]
lease_sec = 3
[stop]
grace_sec = 1
confirm_sec = 10
[script.interpreters]
sh = \"/bin/sh\"
";

/// Longer than the lease and its fence.
const OUTAGE: Duration = Duration::from_secs(8);
/// Most tasks end after it; one ends within it, without a lease and without a database that could be told.
const LONG_MS: u64 = 14_000;
const SHORT_MS: u64 = 6_000;

const MID: [(&str, Class, u64); 4] = [
    ("PROC_NONE", Class::Once, LONG_MS),
    ("PROC_AGAIN", Class::Repeat, LONG_MS),
    ("PROC_LEDGER", Class::Ledger, LONG_MS),
    ("PROC_SHORT", Class::Once, SHORT_MS),
];

fn plot(dialect: DialectName, target: &str, scene: &Scene) -> Plot {
    let mut plot = Plot::default();
    plot.source("target", target);
    for (code, class, takes_ms) in MID {
        plot.mid(code, class, "target", takes_ms);
    }
    let fx_file = scene.fx_file.as_path();
    let (code, class, keys) = ("SCRIPT", Class::Script, Keys::Given);
    let job = Job { code, class, dialect, body: 1, takes_ms: LONG_MS, parents: &[], fx_file, keys };
    plot.job(code, class, &[], &job.yaml());
    plot
}

/// How the metadata is away from a process.
enum Outage {
    /// The way to its server swallows everything.
    BlackHole(Proxy),
    /// Another program holds the write lock of the file: nothing can be written.
    LockedFile(String),
}

impl Outage {
    /// It, and the URL through which it is felt.
    async fn prepare(home: &str) -> (Self, String) {
        if home.starts_with("sqlite:") {
            return (Self::LockedFile(home.to_owned()), home.to_owned());
        }
        let (proxy, through) = Proxy::of_url(home).await;
        (Self::BlackHole(proxy), through)
    }

    /// Lasts from now on for [`OUTAGE`].
    async fn happen(&self) {
        match self {
            Self::BlackHole(proxy) => {
                proxy.order(Orders::black_hole());
                sleep(OUTAGE).await;
                proxy.heal();
            }
            Self::LockedFile(url) => {
                let mut file = SqliteConnection::connect(url).await.expect("open the file");
                sqlx::query("BEGIN IMMEDIATE").execute(&mut file).await.expect("lock the file");
                sleep(OUTAGE).await;
                sqlx::query("ROLLBACK").execute(&mut file).await.expect("unlock the file");
                file.close().await.expect("close the file");
            }
        }
    }
}

async fn outage(home: String, dialect: DialectName, target: String) {
    let mut scene = Scene::on(&home, SETTINGS);
    prepare(dialect, &target).await;
    let plot = plot(dialect, &target, &scene);
    scene.stage(plot);
    let (away, through) = Outage::prepare(&home).await;
    let life = move |_| Some(Life::of(&["serve"]).with("PROCESSION_DB", &through));
    let mut worker = Worker::start(&scene.house, "worker", Box::new(life));
    scene.open("202407");
    for (code, _, _) in MID {
        until_mid(dialect, &target, "202407", code).await;
    }
    let running = "SELECT COUNT(*) FROM job_queue WHERE status = 'RUNNING'";
    scene.until(running, "5", || worker.said()).await;
    away.happen().await;
    let end = scene.until_ended("202407", || worker.said()).await;
    assert_eq!(end, "FAILED", "the script is in doubt: {}\n{}", scene.rows().await, worker.said());
    assert!(worker.all_said().contains("could not be renewed in time"), "{}", worker.all_said());
    // A renewal waits for the lock of a file, and only when it has it is the lease known to be lost.
    let is_told = |takes_ms| !home.starts_with("sqlite:") || takes_ms == LONG_MS;
    for (code, _, takes_ms) in MID {
        let of = async |column: &str| scene.of("202407", code, column).await;
        let found = (of("status").await, of("attempt").await);
        let log = scene.log("202407", code);
        assert_eq!(found, ("SUCCESS".to_owned(), "1".to_owned()), "{code}: {log}");
        assert!(!is_told(takes_ms) || log.contains("holds the lock of this job"), "{code}: {log}");
    }
    assert_eq!(scene.of("202407", "SCRIPT", "status").await, "UNKNOWN");
    assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    scene.judge(&[&target], || worker.all_said()).await;
}

/// The jobs run on another kind of server than the one that is away.
async fn on(home: DialectName, target: DialectName) {
    with_database(target, |target_url| async move {
        with_database(home, |url| async move { outage(url, target, target_url).await }).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_its_server_locks_runs_on() {
    let both =
        [(DialectName::Mysql, DialectName::Postgres), (DialectName::Postgres, DialectName::Mysql)]
            .map(|(home, target)| AssertUnwindSafe(on(home, target)).catch_unwind());
    for ended in futures_util::future::join_all(both).await {
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_its_server_locks_runs_on_while_the_file_of_the_metadata_is_locked() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = format!("sqlite:{}", folder.path().join("home.db").display());
    let dialect = DialectName::Postgres;
    with_database(dialect, |target| async move { outage(home, dialect, target).await }).await;
}

/// How a job waits whose node is not heard of.
const WAITS: &str = "SELECT COUNT(*) FROM job_queue WHERE status = 'RUNNING' AND waits_on LIKE '%still holds the lock%'";

/// Procedures that must not run twice, on a node that is then cut off or killed; with the process that takes its batch
/// over.
async fn two_nodes(
    home: &str,
    (dialect, target): (DialectName, &str),
    through: &str,
    jobs: &[(&str, u64)],
) -> (Scene, Worker, Worker) {
    let mut scene = Scene::on(home, SETTINGS);
    prepare(dialect, target).await;
    let mut plot = Plot::default();
    plot.source("target", target);
    jobs.iter().for_each(|(code, takes_ms)| plot.mid(code, Class::Once, "target", *takes_ms));
    scene.stage(plot);
    let through = through.to_owned();
    let mut lives = 0;
    let life = move |_| {
        lives += 1;
        (lives == 1).then(|| Life::of(&["serve"]).with("PROCESSION_DB", &through))
    };
    let worker = Worker::start(&scene.house, "worker", Box::new(life));
    scene.open("202407");
    for (code, _) in jobs {
        until_mid(dialect, target, "202407", code).await;
    }
    let heir = scene.serve("heir");
    (scene, worker, heir)
}

async fn cut_off(home: String, dialect: DialectName, target: String) {
    let (proxy, through) = Proxy::of_url(&home).await;
    let jobs = [("KEPT", LONG_MS)];
    let (scene, mut worker, mut heir) = two_nodes(&home, (dialect, &target), &through, &jobs).await;
    let said = || format!("worker: {}\nheir: {}", worker.all_said(), heir.all_said());
    proxy.order(Orders::black_hole());
    scene.until(WAITS, "1", said).await;
    proxy.heal();
    let end = scene.until_ended("202407", said).await;
    let of = async |column: &str| scene.of("202407", "KEPT", column).await;
    let found = (end.as_str(), of("attempt").await, of("waits_on").await);
    assert_eq!(found, ("SUCCESS", "1".to_owned(), String::new()), "{}", said());
    for worker in [&mut worker, &mut heir] {
        assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    }
    scene.judge(&[&target], || format!("{}\n{}", worker.all_said(), heir.all_said())).await;
}

/// A node that is cut off alone runs its procedure to the end; its heir waits, and takes its report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_heir_waits_for_a_node_that_is_cut_off() {
    for (home, target) in
        [(DialectName::Postgres, DialectName::Mysql), (DialectName::Mysql, DialectName::Postgres)]
    {
        with_database(target, |target_url| async move {
            with_database(home, |url| async move { cut_off(url, target, target_url).await }).await;
        })
        .await;
    }
}

async fn killed(home: String, dialect: DialectName, target: String) {
    let jobs = [("KEPT", LONG_MS), ("STOPPED", 60_000)];
    let (scene, worker, mut heir) = two_nodes(&home, (dialect, &target), &home, &jobs).await;
    let said = || format!("worker: {}\nheir: {}", worker.all_said(), heir.all_said());
    assert!(worker.signal(Signal::SIGKILL), "it runs");
    scene.until(WAITS, "2", said).await;
    // An operator's kill reaches what runs on the server, whichever node began it.
    let args = ["job", "kill", "202407", "STOPPED", "--group", "story", "--reason", "too long"];
    let (code, out, told) = scene.house.said(&args);
    assert_eq!(code, 0, "{out}{told}");
    let status = "SELECT status FROM job_queue WHERE job_code = 'STOPPED'";
    scene.until(status, "KILLED", said).await;
    assert_eq!(scene.of("202407", "KEPT", "status").await, "RUNNING", "{}", said());
    scene.until_ended("202407", said).await;
    let of = async |column: &str| scene.of("202407", "KEPT", column).await;
    let found = (of("status").await, of("attempt").await, of("waits_on").await);
    assert_eq!(found, ("UNKNOWN".to_owned(), "1".to_owned(), String::new()), "{}", said());
    assert_eq!(heir.leave(Duration::from_secs(60)).await, Some(0), "{}", heir.said());
}

/// What a killed node left running on a server counts as running until its session is gone, and only then as unknown.
/// PostgreSQL ends the session of a client that is gone within five seconds by itself; MariaDB and MySQL run on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_heir_waits_for_what_a_killed_node_left_running() {
    with_database(DialectName::Mysql, |target| async move {
        let dialect = DialectName::Mysql;
        with_database(dialect, |home| async move { killed(home, dialect, target).await }).await;
    })
    .await;
}
