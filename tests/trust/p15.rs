//! P-15, disk full: under Procession's own SQLite file, and under the folder of scripts. The process lives and
//! says why, and goes on by itself when there is space again; nothing is lost or doubled.
//!
//! The disk is a tmpfs of two megabytes in a mount namespace, in which the test runs itself once more; it
//! goes with that process, whatever happens there.

use crate::trust::judge::Class;
use crate::trust::oracle::{self, Job, Keys};
use crate::trust::scene::{PATIENCE, Plot, Scene, sqlite};
use procession::domain::source::DialectName;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Says where the small disk is, to the test that runs itself once more.
const MARK: &str = "PROCESSION_P15_DISK";

/// A small disk.
struct Disk {
    path: PathBuf,
}

/// Runs the test `name` once more where there is a small disk, by root or by anybody who may make a
/// namespace of users; there, gives the disk.
fn on_a_small_disk(name: &str) -> Option<Disk> {
    if let Some(path) = std::env::var_os(MARK) {
        return Some(Disk { path: path.into() });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mounts = |rights: &&str| {
        let script = "mount -t tmpfs -o size=2m,mode=700 tmpfs \"$0\"";
        let tried =
            Command::new("unshare").args([rights, "sh", "-c", script]).arg(folder.path()).output();
        tried.expect("unshare, of util-linux").status.success()
    };
    let Some(rights) = ["-m", "-rm"].into_iter().find(mounts) else {
        panic!("no small disk can be mounted here, neither as root nor in a namespace of users");
    };
    let script = "mount -t tmpfs -o size=2m,mode=700 tmpfs \"$0\" && exec \"$@\"";
    let done = Command::new("unshare")
        .args([rights, "sh", "-c", script])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("this binary"))
        .args(["--exact", name, "--nocapture"])
        .env(MARK, folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    None
}

impl Disk {
    /// Takes all that is free.
    fn fill(&self) {
        let mut file =
            std::fs::File::options().create(true).append(true).open(self.filler()).expect("a file");
        // By whole pages first, as tmpfs gives them out.
        while file.write_all(&[b'x'; 4_096]).is_ok() {}
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("the filler is there");
    }
}

/// A job that waits for a file, prints `lines` lines of a kilobyte and has its effect in the file.
fn printer(code: &str, class: Class, scene: &Scene, parents: &[String], lines: u32) -> String {
    let (body, takes_ms, keys, dialect) = (0, 0, Keys::Given, DialectName::Sqlite);
    let fx_file = scene.fx_file.as_path();
    let job = Job { code, class, dialect, body, takes_ms, parents, fx_file, keys };
    let (go, kilobyte) = (scene.house.path().join("go"), "y".repeat(1_000));
    let wait = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; n=0; while [ $n -lt {lines} ]; do echo {kilobyte}; n=$((n+1)); done",
        go.display()
    );
    job.yaml().replace("      note B\n", &format!("      note B\n      {wait}\n"))
}

/// Returns when a text is in a file.
async fn until_said(file: &Path, text: &str) {
    let limit = Instant::now() + PATIENCE;
    loop {
        let said = std::fs::read_to_string(file).unwrap_or_default();
        if said.contains(text) {
            return;
        }
        assert!(Instant::now() < limit, "{text:?} is not said:\n{said}");
        sleep(Duration::from_millis(50)).await;
    }
}

const SETTINGS: &str = "
[engine]
max_parallel = 4
lease_sec = 2
[stop]
grace_sec = 1
confirm_sec = 10
[script.interpreters]
sh = \"/bin/sh\"
";

/// Ledger jobs on another file, scripts that may start again, and one that may not behind them.
async fn own_file(disk: Disk) {
    let home = sqlite(&disk.path, "home.db");
    let mut scene = Scene::on(&home, SETTINGS);
    let target = sqlite(scene.house.path(), "target.db");
    oracle::prepare(DialectName::Sqlite, &target).await;
    let mut plot = Plot::default();
    plot.source("target", &target);
    let printing = printer("PRINTS", Class::ScriptRepeat, &scene, &[], 300);
    plot.job("PRINTS", Class::ScriptRepeat, &[], &printing);
    let mut parents = Vec::new();
    let dialect = DialectName::Sqlite;
    let classes = [Class::Ledger, Class::Repeat, Class::ScriptRepeat, Class::Script, Class::Once];
    for (n, class) in classes.into_iter().cycle().take(10).enumerate() {
        let code = format!("J{n}");
        let (body, takes_ms, keys, fx_file) = (1, 50, Keys::Given, scene.fx_file.as_path());
        let above: &[String] = if n == 0 { &[] } else { &parents };
        // The chain goes on behind the full disk.
        let above = if n == 1 { [above, &["PRINTS".to_owned()]].concat() } else { above.to_vec() };
        let parents_ = above.as_slice();
        let job =
            Job { code: &code, class, dialect, body, takes_ms, parents: parents_, fx_file, keys };
        plot.job(&code, class, &above, &job.yaml());
        parents = vec![code];
    }
    scene.stage(plot);
    let mut worker = scene.serve("worker");
    scene.open("202407");
    let first = "SELECT COUNT(*) FROM job_queue WHERE job_code IN ('J0', 'PRINTS') \
                 AND status IN ('SUCCESS', 'RUNNING')";
    scene.until(first, "2", || worker.said()).await;
    while oracle::effects_in(&scene.fx_file).is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
    disk.fill();
    scene.house.write("go", "");
    // The reason is said, in the words of the database.
    until_said(&scene.house.path().join("worker.stderr"), "full").await;
    // Twice the lease, which cannot be renewed meanwhile, and it lives.
    sleep(Duration::from_secs(4)).await;
    assert_eq!((worker.starts(), worker.exits().len()), (1, 0), "{}", worker.said());
    disk.free();
    let end = scene.until_ended("202407", || worker.said()).await;
    assert_eq!(end, "SUCCESS", "{}\n{}", scene.rows().await, worker.said());
    assert_eq!((worker.starts(), worker.exits().len()), (1, 0), "{}", worker.said());
    let charged = scene.ask("SELECT COUNT(*) FROM job_queue WHERE try_count > 0").await;
    assert_eq!(charged.as_deref(), Some("0"), "{}", scene.rows().await);
    assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    let sound = scene.ask("PRAGMA integrity_check").await;
    assert_eq!(sound.as_deref(), Some("ok"));
    let verdict = scene.judge(&[&target], || worker.said()).await;
    assert!(verdict.effects() >= 11, "{verdict}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_its_own_file_is_waited_for() {
    let name = "trust::p15::a_full_disk_under_its_own_file_is_waited_for";
    if let Some(disk) = on_a_small_disk(name) {
        own_file(disk).await;
    }
}

/// The folder of scripts is full: they are tried again and say so, others go on.
async fn temp_folder(disk: Disk) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scene = Scene::on(&sqlite(folder.path(), "home.db"), SETTINGS);
    let target = sqlite(folder.path(), "target.db");
    oracle::prepare(DialectName::Sqlite, &target).await;
    let mut plot = Plot::default();
    plot.source("target", &target);
    let jobs = [
        ("SCRIPT", Class::Script, vec![]),
        ("AGAIN", Class::ScriptRepeat, vec!["SCRIPT".to_owned()]),
        ("LEDGER", Class::Ledger, vec![]),
        ("NONE", Class::Once, vec!["LEDGER".to_owned()]),
    ];
    let dialect = DialectName::Sqlite;
    for (code, class, parents) in &jobs {
        let (body, takes_ms, keys, fx_file) = (1, 0, Keys::Given, scene.fx_file.as_path());
        let job = Job { code, class: *class, dialect, body, takes_ms, parents, fx_file, keys };
        plot.job(code, *class, parents, &job.yaml());
    }
    scene.stage(plot);
    disk.fill();
    scene.house.with_temp(&disk.path);
    let mut worker = scene.serve("worker");
    scene.open("202407");
    let others = "SELECT COUNT(*) FROM job_queue WHERE job_code IN ('LEDGER', 'NONE') AND status = 'SUCCESS'";
    scene.until(others, "2", || worker.said()).await;
    let tried = "SELECT COUNT(*) FROM job_queue WHERE job_code = 'SCRIPT' AND try_count >= 1";
    scene.until(tried, "1", || worker.said()).await;
    let said =
        scene.ask("SELECT error_message FROM job_execution_logs WHERE status = 'RETRY_WAIT'").await;
    let said = said.unwrap_or_default();
    assert!(said.contains("cannot write the script") && said.contains("No space left"), "{said}");
    disk.free();
    let end = scene.until_ended("202407", || worker.said()).await;
    assert_eq!(end, "SUCCESS", "{}\n{}", scene.rows().await, worker.said());
    assert_eq!((worker.starts(), worker.exits().len()), (1, 0), "{}", worker.said());
    assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    let verdict = scene.judge(&[&target], || worker.said()).await;
    assert_eq!(verdict.effects(), 4, "{verdict}");
    // The one folder of all scripts' folders stays.
    let all: Vec<_> = std::fs::read_dir(&disk.path).expect("the disk").flatten().collect();
    assert!(all.len() <= 1, "left behind: {all:?}");
    let scripts = all.iter().flat_map(|one| std::fs::read_dir(one.path()).expect("a folder"));
    let left: Vec<_> = scripts.flatten().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_the_folder_of_scripts_fails_their_tries_alone() {
    let name = "trust::p15::a_full_disk_under_the_folder_of_scripts_fails_their_tries_alone";
    if let Some(disk) = on_a_small_disk(name) {
        temp_folder(disk).await;
    }
}
