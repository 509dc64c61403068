//! P-11: a worker is stopped (SIGSTOP) in the middle of its jobs for twice its lease or longer, another serves
//! beside it. The heir takes over, no two lives of a job overlap, what the zombie says in the end
//! changes no row and is kept as evidence, and the zombie lives on.

use crate::trust::judge::{Class, Phase};
use crate::trust::nodes::Worker;
use crate::trust::oracle::{Job, Keys, effects_in, rows};
use crate::trust::scene::{PATIENCE, Plot, Scene, prepare, sqlite, until_mid};
use crate::trust::targets::{session, with_database};
use futures_util::FutureExt;
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// `idle_sec`: how long a stopped worker's session may hold its lock.
const SETTINGS: &str = "
[engine]
max_parallel = 8
lease_sec = 2
[stop]
grace_sec = 1
confirm_sec = 10
[source]
allow_metadata_file = true
connect_timeout_sec = 5
away_sec = 60
idle_sec = 2
look_sec = 1
[script.interpreters]
sh = \"/bin/sh\"
";

/// Longer than the lease and what a take-over needs, so that bodies on the server live when the heir comes. On
/// a loaded machine 5 s went by before the heir was there and the worker could be stopped.
const BODY_MS: u64 = 8_000;
const LEASE: Duration = Duration::from_secs(2);

/// When the zombie wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    /// After twice the lease, whatever the heir does just then.
    Midway,
    /// When the heir has ended the batch.
    Afterwards,
}

const MID: [(&str, Class); 3] =
    [("PROC_LEDGER", Class::Ledger), ("PROC_AGAIN", Class::Repeat), ("PROC_NONE", Class::Once)];
const OTHERS: [(&str, Class); 4] = [
    ("SQL_LEDGER", Class::Ledger),
    ("SQL_AGAIN", Class::Repeat),
    ("SCRIPT", Class::Script),
    ("SCRIPT_AGAIN", Class::ScriptRepeat),
];

fn plot(dialect: DialectName, target: &str, scene: &Scene) -> Plot {
    let mut plot = Plot::default();
    plot.source("target", target);
    for (code, class) in MID {
        plot.mid(code, class, "target", BODY_MS);
    }
    for (code, class) in OTHERS {
        let (body, takes_ms, keys, parents) = (1, BODY_MS, Keys::Given, &[]);
        let fx_file = scene.fx_file.as_path();
        let job = Job { code, class, dialect, body, takes_ms, parents, fx_file, keys };
        plot.job(code, class, &[], &job.yaml());
    }
    plot
}

/// All bodies of a batch are there.
async fn until_all_run(
    scene: &Scene,
    dialect: DialectName,
    target: &str,
    number: &str,
    worker: &Worker,
) {
    let mid = MID.map(|(code, _)| until_mid(dialect, target, number, code));
    futures_util::future::join_all(mid).await;
    let limit = Instant::now() + PATIENCE;
    while effects_in(&scene.fx_file).len() < 2 {
        assert!(Instant::now() < limit, "{}\n{}", scene.rows().await, worker.said());
        sleep(Duration::from_millis(20)).await;
    }
    let running = "SELECT COUNT(*) FROM job_queue WHERE status = 'RUNNING'";
    scene.until(running, "7", || worker.said()).await;
}

/// All that Procession says of its jobs, but for their lines of log.
async fn told(scene: &Scene) -> Vec<Vec<Vec<Option<String>>>> {
    let mut all = Vec::new();
    for sql in [
        "SELECT * FROM job_queue ORDER BY queue_id",
        "SELECT * FROM job_execution_logs ORDER BY log_id",
        "SELECT queue_id, type FROM email_notifications ORDER BY id",
        "SELECT * FROM job_batch ORDER BY batch_id",
    ] {
        all.push(rows(&scene.home, sql).await);
    }
    all
}

/// Stops it, but not while it holds the one write lock of an SQLite file: nobody could take that from
/// it, and all would wait until it wakes up.
async fn stop(scene: &Scene, zombie: &Worker) {
    for _ in 0..100 {
        assert!(zombie.signal(Signal::SIGSTOP));
        if !scene.home.starts_with("sqlite:") {
            return;
        }
        let mut session = session(&scene.home).await;
        let is_free = session.run_statement("BEGIN IMMEDIATE", &[]).await.is_ok();
        session.close().await;
        if is_free {
            return;
        }
        assert!(zombie.signal(Signal::SIGCONT));
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it writes all the time: {}", zombie.said());
}

async fn stalled(home: String, dialect: DialectName, target: String, wakes: Wakes) {
    let mut scene = Scene::on(&home, SETTINGS);
    prepare(dialect, &target).await;
    let plot = plot(dialect, &target, &scene);
    scene.stage(plot);
    let mut zombie = scene.serve("zombie");
    scene.open("202407");
    until_all_run(&scene, dialect, &target, "202407", &zombie).await;
    let owner = scene.ask("SELECT owner FROM job_batch").await.expect("its owner");
    let mut heir = scene.serve("heir");
    stop(&scene, &zombie).await;
    let stopped = Instant::now();
    let taken =
        format!("SELECT COUNT(*) FROM job_batch WHERE owner IS NOT NULL AND owner <> '{owner}'");
    scene.until(&taken, "1", || heir.said()).await;
    let before = match wakes {
        Wakes::Midway => {
            sleep((LEASE * 2).saturating_sub(stopped.elapsed())).await;
            None
        }
        Wakes::Afterwards => {
            let end = scene.until_ended("202407", || heir.said()).await;
            assert_eq!(end, "FAILED", "what may start once is in doubt: {}", scene.rows().await);
            Some(told(&scene).await)
        }
    };
    assert!(zombie.signal(Signal::SIGCONT));
    // It has heard of its bodies' ends, and nobody wants to know.
    let late = "SELECT CASE WHEN COUNT(*) > 0 THEN 1 ELSE 0 END FROM job_log_line \
                WHERE line_text LIKE 'late result, changes nothing: %'";
    scene.until(late, "1", || format!("{}\n{}", zombie.said(), heir.said())).await;
    scene.until_ended("202407", || heir.said()).await;
    let heirs = scene
        .ask("SELECT COUNT(DISTINCT owner) FROM job_execution_logs WHERE owner IS NOT NULL")
        .await;
    assert_eq!(heirs.as_deref(), Some("2"), "{}", scene.rows().await);
    if let Some(before) = before {
        assert_eq!(told(&scene).await, before, "the zombie wrote\n{}", zombie.said());
    }
    of_jobs(&scene, wakes).await;
    // The heir leaves; the zombie is as good as new.
    assert_eq!(heir.leave(Duration::from_secs(60)).await, Some(0), "{}", heir.said());
    scene.open("202408");
    let end = scene.until_ended("202408", || zombie.said()).await;
    assert_eq!(end, "SUCCESS", "{}\n{}", scene.rows().await, zombie.said());
    assert_eq!((zombie.starts(), zombie.exits().len()), (1, 0), "{}", zombie.said());
    assert_eq!(zombie.leave(Duration::from_secs(60)).await, Some(0), "{}", zombie.said());
    let verdict = scene.judge(&[&target], || format!("{}\n{}", zombie.said(), heir.said())).await;
    assert!(verdict.effects() >= 7 + 4, "{verdict}");
}

/// What each class makes of it: who may start again did, by the heir.
async fn of_jobs(scene: &Scene, wakes: Wakes) {
    for (code, class) in MID.into_iter().chain(OTHERS) {
        let status = scene.of("202407", code, "status").await;
        let tries = scene.of("202407", code, "try_count").await;
        let wanted = match (class, wakes) {
            // Its session held the lock of the job all the while, so that the heir waited for its report.
            (Class::Once, Wakes::Midway) => "SUCCESS",
            (Class::Once | Class::Script, _) => "UNKNOWN",
            _ => "SUCCESS",
        };
        let said = || format!("{code} {wakes:?}: {status}\n{}", scene.log("202407", code));
        assert_eq!((status.as_str(), tries.as_str()), (wanted, "0"), "{}", said());
    }
    // The zombie's script was ended by its keeper, before it had its effect.
    let first = effects_in(&scene.fx_file);
    let ends = first.iter().filter(|e| e.name.1 == "SCRIPT" && e.phase == Phase::End);
    assert_eq!(ends.count(), 0, "{first:?}");
}

async fn on(home: DialectName, wakes: Wakes) {
    let target = if home == DialectName::Sqlite { DialectName::Mysql } else { home };
    let folder = tempfile::tempdir().expect("a folder");
    let file = sqlite(folder.path(), "home.db");
    with_database(target, |target_url| async move {
        match home {
            DialectName::Sqlite => stalled(file, target, target_url, wakes).await,
            _ => {
                with_database(
                    home,
                    |url| async move { stalled(url, target, target_url, wakes).await },
                )
                .await
            }
        }
    })
    .await;
}

/// Both at once, because they mostly wait; each to its end, so that each cleans up.
async fn both(home: DialectName) {
    let [midway, afterwards] = [Wakes::Midway, Wakes::Afterwards]
        .map(|wakes| AssertUnwindSafe(on(home, wakes)).catch_unwind());
    let (midway, afterwards) = tokio::join!(midway, afterwards);
    for ended in [midway, afterwards] {
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_on_sqlite() {
    both(DialectName::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_on_mysql() {
    both(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_on_postgres() {
    both(DialectName::Postgres).await;
}
