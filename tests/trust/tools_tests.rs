//! The servers and processes that other tests stop and kill: they stop, come back, and leave nothing.

use crate::trust::nodes::{House, Worker};
use crate::trust::servers::{Server, Stop};
use crate::trust::targets::{query, session, try_session};
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::time::Duration;

async fn stops_and_comes_back(dialect: DialectName) {
    let mut server = Server::start(dialect).await;
    let url = match dialect {
        DialectName::Postgres => format!("{}/postgres", server.url),
        _ => format!("{}/mysql", server.url),
    };
    query(&url, "CREATE TABLE kept (n INT)").await;
    for (how, rows) in [(Stop::AtOnce, "1"), (Stop::Orderly, "2")] {
        query(&url, "INSERT INTO kept VALUES (1)").await;
        let mut open = session(&url).await;
        server.stop(how).await;
        assert!(open.run_statement("SELECT 1", &[]).await.is_err(), "{how:?} ends sessions");
        assert!(try_session(&url).await.is_err(), "{how:?}");
        server.start_again().await;
        assert_eq!(query(&url, "SELECT COUNT(*) FROM kept").await[0][0].as_deref(), Some(rows));
    }
    drop(server);
    assert!(try_session(&url).await.is_err(), "it ends with its guard");
}

#[tokio::test]
async fn a_private_mariadb_stops_and_comes_back_with_its_data() {
    stops_and_comes_back(DialectName::Mysql).await;
}

#[tokio::test]
async fn a_private_postgres_stops_and_comes_back_with_its_data() {
    stops_and_comes_back(DialectName::Postgres).await;
}

const SLEEPS: &str = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'exec sleep 600' } }\n";

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came that {what}");
}

/// A worker is killed and starts again; what it left behind ends with the house.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_killed_and_started_again_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let db = format!("sqlite:{}", dir.path().join("meta.db").display());
    let house = House::on(&db, "[engine]\nlease_sec = 1");
    house.write("dag.yaml", SLEEPS);
    let mut number = 0;
    let next = move |_| {
        number += 1;
        let no = number.to_string();
        Some(crate::trust::nodes::Life::of(&["run", "dag.yaml", "--batch-no", &no]))
    };
    let worker = Worker::start(&house, "one", Box::new(next));
    // Itself, and the keeper of the script.
    until("the script runs", || house.living().len() >= 2).await;
    assert!(worker.signal(Signal::SIGSTOP) && worker.signal(Signal::SIGCONT));
    assert!(worker.signal(Signal::SIGKILL));
    until("it lives again", || worker.starts() == 2 && house.living().len() >= 2).await;
    assert_eq!(worker.exits(), [None]);
    let all = house.living();
    drop((worker, house));
    until("all are gone", || all.iter().all(|pid| crate::trust::servers::is_gone(*pid))).await;
}
