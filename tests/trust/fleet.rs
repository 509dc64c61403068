//! The jobs of one batch on three nodes, of which one that only works is killed in the middle of its
//! bodies and started again: the batch ends, each effect is there as its class promises, and who had
//! to run where did.

use crate::trust::judge::Class;
use crate::trust::nodes::{Life, Worker};
use crate::trust::oracle::{Job, Keys};
use crate::trust::scene::{Plot, Scene, prepare, sqlite};
use crate::trust::targets::with_database;
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::time::Duration;

const SETTINGS: &str = "
[engine]
max_parallel = 3
lease_sec = 3
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

const BODY_MS: u64 = 3_000;

const MID: [(&str, Class); 4] =
    [("P1", Class::Ledger), ("P2", Class::Repeat), ("P3", Class::Ledger), ("P4", Class::Repeat)];
const OTHERS: [(&str, Class); 5] = [
    ("L1", Class::Ledger),
    ("R1", Class::Repeat),
    ("S1", Class::ScriptRepeat),
    // Only where the label is.
    ("X1", Class::ScriptRepeat),
    ("X2", Class::ScriptRepeat),
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
        let label = if code.starts_with('X') { "    worker: x\n" } else { "" };
        plot.job(code, class, &[], &(job.yaml() + label));
    }
    plot
}

fn serve(scene: &Scene, name: &str, more: &[&str]) -> Worker {
    let life = Life::of(&[&["serve", "--name", name], more].concat());
    Worker::start(&scene.house, name, Box::new(move |_| Some(life.clone())))
}

async fn killed_while_it_works(home: String, dialect: DialectName, target: String) {
    let mut scene = Scene::on(&home, SETTINGS);
    prepare(dialect, &target).await;
    let plot = plot(dialect, &target, &scene);
    scene.stage(plot);
    let mut nodes = [
        serve(&scene, "a", &["--role", "scheduler", "--role", "worker"]),
        serve(&scene, "b", &["--role", "worker"]),
        serve(&scene, "x", &["--role", "worker", "--label", "x"]),
    ];
    let said = |nodes: &[Worker]| nodes.iter().map(Worker::said).collect::<Vec<_>>().join("\n--\n");
    let living = "SELECT COUNT(*) FROM cluster_node WHERE roles <> ''";
    scene.until(living, "3", || said(&nodes)).await;
    for round in ["202407", "202408"] {
        scene.open(round);
        // All three at once, of one batch.
        let on = format!(
            "SELECT COUNT(DISTINCT n.node_name) FROM job_queue q JOIN cluster_node n \
             ON n.node_id = q.owner WHERE q.batch_no = '{round}' AND q.status = 'RUNNING' \
             AND q.is_taken = 1"
        );
        scene.until(&on, "3", || said(&nodes)).await;
        let victim = if round == "202407" { 1 } else { 2 };
        assert!(nodes[victim].signal(Signal::SIGKILL));
        let end = scene.until_ended(round, || said(&nodes)).await;
        assert_eq!(end, "SUCCESS", "{}\n{}", scene.rows().await, said(&nodes));
        let labelled = format!(
            "SELECT COUNT(*) FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
             JOIN cluster_node n ON n.node_id = l.owner WHERE q.batch_no = '{round}' \
             AND q.job_code LIKE 'X%' AND n.node_name <> 'x'"
        );
        assert_eq!(scene.ask(&labelled).await.as_deref(), Some("0"), "{}", scene.rows().await);
    }
    assert_eq!(nodes[0].starts(), 1);
    assert!(nodes[1].starts() > 1 && nodes[2].starts() > 1);
    for node in &mut nodes {
        assert_eq!(node.leave(Duration::from_secs(60)).await, Some(0));
    }
    let left = "SELECT COUNT(*) FROM job_report";
    assert_eq!(scene.ask(left).await.as_deref(), Some("0"));
    let verdict = scene.judge(&[&target], || said(&nodes)).await;
    assert!(verdict.effects() >= 2 * 9, "{verdict}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_killed_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = sqlite(folder.path(), "home.db");
    let run = |target| async move {
        killed_while_it_works(home, DialectName::Postgres, target).await;
    };
    with_database(DialectName::Postgres, run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_killed_on_postgres() {
    let postgres = DialectName::Postgres;
    with_database(postgres, |home| async move {
        let run = |target| async move { killed_while_it_works(home, postgres, target).await };
        with_database(postgres, run).await;
    })
    .await;
}
