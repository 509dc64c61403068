//! P-04: the server of the metadata and the server of the data sources restart, in order and at once, while a
//! process serves. It lives on, nothing is lost or doubled, and no try is charged for it.

use crate::trust::judge::Class;
use crate::trust::oracle::{Job, Keys};
use crate::trust::scene::{PATIENCE, Plot, Scene, prepare, report};
use crate::trust::servers::{Server, Stop};
use crate::trust::targets::make;
use procession::domain::source::DialectName;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SETTINGS: &str = "
[database]
connect_timeout_sec = 5
statement_timeout_sec = 15
[engine]
max_parallel = 4
[stop]
grace_sec = 1
confirm_sec = 10
[source]
allow_metadata_file = true
connect_timeout_sec = 5
away_sec = 90
look_sec = 1
[script.interpreters]
sh = \"/bin/sh\"
";

/// Which server, how it is stopped, and the batch that runs meanwhile.
const RESTARTS: [(What, Stop, &str); 4] = [
    (What::Home, Stop::Orderly, "202401"),
    (What::Home, Stop::AtOnce, "202402"),
    (What::Target, Stop::Orderly, "202403"),
    (What::Target, Stop::AtOnce, "202404"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Home,
    Target,
}

/// Three chains, so that at any moment some run, some wait and some are done.
fn plot(dialect: DialectName, target: &str, scene: &Scene) -> Plot {
    let mut plot = Plot::default();
    plot.source("target", target);
    let classes = [Class::Ledger, Class::Repeat, Class::ScriptRepeat];
    for (chain, first) in ["A", "B", "C"].into_iter().zip(0..) {
        let mut parents = Vec::new();
        for n in 0..6 {
            let code = format!("{chain}{n}");
            let class = classes[(first + n) % 3];
            let (body, takes_ms, keys) = (n as u64 / 3, 300, Keys::Given);
            let fx_file = scene.fx_file.as_path();
            let job = Job {
                code: &code,
                class,
                dialect,
                body,
                takes_ms,
                parents: &parents,
                fx_file,
                keys,
            };
            plot.job(&code, class, &parents, &job.yaml());
            parents = vec![code];
        }
    }
    plot
}

async fn restarts(home: DialectName, target: DialectName) {
    let (mut home_server, mut target_server) =
        tokio::join!(Server::start(home), Server::start(target));
    let (home_url, _dropped_with_the_server) = make(home, &home_server.url).await;
    let (target_url, _dropped_with_the_server) = make(target, &target_server.url).await;
    let mut scene = Scene::on(&home_url, SETTINGS);
    prepare(target, &target_url).await;
    let plot = plot(target, &target_url, &scene);
    scene.stage(plot);
    let mut worker = scene.serve("worker");
    for (what, how, number) in RESTARTS {
        scene.open(number);
        // In the middle: something has ended, something runs.
        let sql = format!(
            "SELECT CASE WHEN SUM(CASE WHEN status = 'SUCCESS' THEN 1 ELSE 0 END) >= 2 \
             AND SUM(CASE WHEN status = 'RUNNING' THEN 1 ELSE 0 END) >= 1 THEN 1 ELSE 0 END \
             FROM job_queue WHERE batch_no = '{number}'"
        );
        scene.until(&sql, "1", || worker.said()).await;
        let server = if what == What::Home { &mut home_server } else { &mut target_server };
        let dialect = server.dialect;
        server.stop(how).await;
        // Long enough that all who run notice; how much longer makes no difference.
        sleep(Duration::from_millis(1_500)).await;
        server.start_again().await;
        let back = Instant::now();
        // No batch was done before, so another start has to come.
        let starts = format!(
            "SELECT COUNT(*) FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
             WHERE q.batch_no = '{number}' AND l.status = 'RUNNING'"
        );
        let before = scene.ask(&starts).await.expect("it answers");
        while scene.ask(&starts).await.is_none_or(|now| now == before) {
            assert!(back.elapsed() < PATIENCE, "{}\n{}", scene.rows().await, worker.said());
            sleep(Duration::from_millis(20)).await;
        }
        report(&format!(
            "P-04 {what:?} on {dialect:?}, {how:?}: the next job started {} ms after the server answered",
            back.elapsed().as_millis()
        ));
        let end = scene.until_ended(number, || worker.said()).await;
        assert_eq!(end, "SUCCESS", "{what:?} {how:?}\n{}\n{}", scene.rows().await, worker.said());
        // Of its own database nothing may be charged; of another, not where it can be looked up.
        let charged = match what {
            What::Home => "try_count > 0".to_owned(),
            What::Target => {
                "try_count > 0 AND job_code IN ('A0', 'A3', 'B2', 'B5', 'C1', 'C4')".to_owned()
            }
        };
        let sql =
            format!("SELECT COUNT(*) FROM job_queue WHERE batch_no = '{number}' AND {charged}");
        let charged = scene.ask(&sql).await;
        assert_eq!(charged.as_deref(), Some("0"), "{what:?} {how:?}\n{}", scene.rows().await);
        assert_eq!((worker.starts(), worker.exits().len()), (1, 0), "{}", worker.said());
    }
    assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    let verdict = scene.judge(&[&target_url], || worker.said()).await;
    assert!(verdict.effects() >= 72, "{verdict}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_on_mariadb_and_targets_on_postgres_restart() {
    restarts(DialectName::Mysql, DialectName::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_on_postgres_and_targets_on_mariadb_restart() {
    restarts(DialectName::Postgres, DialectName::Mysql).await;
}
