//! What a killed worker leaves on its host: scripts that run on, and their folders.

use crate::cli::{procession, said};
use crate::util::bench::Bench;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procession::domain::job::outcome::AttemptEnd;
use procession::handler::StopReason;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

const ENDED: &str = " of an earlier start still ran here: killed";

/// A process that carries the cookie of try `attempt`, in a group of its own.
struct Orphan(Child);

impl Orphan {
    fn start(lock_name: &str, attempt: u32) -> Self {
        Self::of(lock_name, attempt, "sleep 300; :")
    }

    /// One that runs this in a shell.
    fn of(lock_name: &str, attempt: u32, text: &str) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", text])
            .env("PROCESSION_RUN", format!("{lock_name}:{attempt}"))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        Self(child.expect("an orphan"))
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }

    /// Waits for its end, and whether it was killed; by itself it ends well, after minutes. One that was
    /// killed has neither memory nor environment, which is what is looked for, some microseconds before its
    /// parent can see that it has ended.
    fn was_killed(&mut self) -> bool {
        self.0.wait().expect("a child").signal() == Some(9)
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _gone =
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _reaped = self.0.wait();
    }
}

fn second_start() -> (Bench, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("folder");
    let mut bench = Bench::script(&format!("touch {}", dir.path().join("ran").display()));
    bench.task.attempt = 2;
    (bench, dir)
}

#[tokio::test]
async fn a_second_start_ends_what_the_first_left_running() {
    let (bench, dir) = second_start();
    let mut orphan = Orphan::start(&bench.task.lock_name, 1);
    let second = bench.run().await;
    assert_eq!(second.outcome.end, AttemptEnd::Success, "{}", second.message());
    assert!(dir.path().join("ran").exists() && orphan.was_killed());
    let text = second.text();
    assert!(text.contains(ENDED) && text.contains("the earlier start is gone after "), "{text}");
    let (ended, began) = (text.find(ENDED), text.find("started as process"));
    assert!(ended < began, "both starts ran: {text}");
}

#[tokio::test]
async fn it_ends_what_descends_from_it_too_whatever_that_did_to_hide() {
    let (bench, dir) = second_start();
    let file = dir.path().join("pid");
    let hidden = format!(
        "trap '' TERM; env -i setsid sh -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; \
         sleep 300; :' & sleep 301; :",
        file.display()
    );
    let mut orphan = Orphan::of(&bench.task.lock_name, 1, &hidden);
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = bench.run().await;
    assert_eq!(second.outcome.end, AttemptEnd::Success, "{}", second.message());
    let pid = std::fs::read_to_string(&file).expect("its number");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}: {}", second.text());
    assert!(orphan.was_killed());
}

const RESTARTED: &str = "
jobs:
  LOAD:
    type: SCRIPT
    interpreter: sh
    idempotent: true
    script: |
      [ \"$PROCESSION_ATTEMPT\" -gt 1 ] && exit 0
      env -i setsid sh -c 'touch hidden; sleep 300; :' &
      while [ ! -e hidden ]; do sleep 0.02; done
      touch ready
      sleep 300
    working_dir: FOLDER
";

/// The worker and the keeper of a script are killed at once, as by a machine that runs out of memory: nothing is left
/// that knows of a process that has cleared its environment and begun a session.
struct KilledAtOnce {
    home: tempfile::TempDir,
    hidden: i32,
}

const RUN: [&str; 4] = ["run", "dag.yaml", "--batch-no", "202407"];

fn kill_worker_and_keeper(isolation: &str) -> KilledAtOnce {
    let home = tempfile::tempdir().expect("folder");
    let path = home.path();
    let dag = RESTARTED.replace("FOLDER", &path.display().to_string());
    std::fs::write(path.join("dag.yaml"), dag).expect("file");
    let settings = format!("[engine]\nlease_sec = 3\n[script]\nisolation = '{isolation}'\n");
    std::fs::write(path.join("procession.toml"), settings).expect("file");
    let mut worker = procession(path).args(RUN).stdout(Stdio::null()).spawn().expect("a worker");
    while !path.join("ready").exists() {
        assert!(worker.try_wait().expect("a child").is_none(), "it must run");
        std::thread::sleep(Duration::from_millis(20));
    }
    let of = |name: &'static str, at: &dyn Fn(i32) -> bool| {
        let found = numbers().into_iter().find(|pid| has_name(*pid, name) && at(*pid));
        found.unwrap_or_else(|| panic!("no process {name}"))
    };
    let keeper = of("script-keeper", &|pid| is_child(pid, worker.id()));
    let in_it = std::fs::read_link(format!("/proc/{}/cwd", worker.id())).expect("its folder");
    let is_hidden = |pid| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        cwd.is_ok_and(|cwd| cwd == in_it)
            && String::from_utf8_lossy(&words).contains("touch hidden; sleep 300")
    };
    let hidden = of("sh", &is_hidden);
    // A keeper that runs would end everything in the moment in which its worker is gone.
    signal(keeper, Signal::SIGSTOP);
    worker.kill().expect("KILL");
    worker.wait().expect("its end");
    signal(keeper, Signal::SIGKILL);
    KilledAtOnce { home, hidden }
}

/// Without isolation the next start finds it, by a file that all processes of a script inherit.
#[test]
fn two_lives_do_not_meet_after_worker_and_keeper_were_killed_at_once() {
    let KilledAtOnce { home, hidden } = kill_worker_and_keeper("off");
    assert!(is_living(hidden), "the test is to meet it");
    let (code, shown, told) = said(home.path(), &[&RUN[..], &["--resume"]].concat());
    assert_eq!(code, 0, "{shown}{told}");
    assert!(!is_living(hidden), "it ran beside the second start: {shown}{told}");
    let (_, log, _) = said(home.path(), &["logs", "202407", "LOAD"]);
    assert!(log.contains(&format!("process {hidden} ")) && log.contains(ENDED), "{log}");
}

/// Isolated, it ends with the keeper: nobody has to find it.
#[test]
fn nothing_of_an_isolated_script_outlives_its_keeper() {
    let KilledAtOnce { home, hidden } = kill_worker_and_keeper("auto");
    let patience = std::time::Duration::from_millis(20);
    assert!((0..250).any(|_| !is_living(hidden) || {
        std::thread::sleep(patience);
        false
    }));
    let (code, shown, told) = said(home.path(), &[&RUN[..], &["--resume"]].concat());
    assert_eq!(code, 0, "{shown}{told}");
    let (_, log, _) = said(home.path(), &["logs", "202407", "LOAD"]);
    assert!(!log.contains(ENDED), "nothing was left: {log}");
}

fn numbers() -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn has_name(pid: i32, name: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}

fn is_child(pid: i32, parent: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().to_owned();
    fields.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
}

fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("it lives");
}

fn is_living(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn who_has_lost_the_claim_ends_nothing() {
    let (bench, dir) = second_start();
    let mut orphan = Orphan::start(&bench.task.lock_name, 1);
    bench.claim.0.store(false, Ordering::SeqCst);
    let second = bench.run().await;
    assert_eq!(second.outcome.end, AttemptEnd::Failed);
    assert!(second.message().contains("belongs to another start"), "{}", second.message());
    assert!(!dir.path().join("ran").exists());
    assert!(orphan.is_alive(), "that start may be the one that counts");
}

#[tokio::test]
async fn a_stop_before_it_begins_starts_and_ends_nothing() {
    for (reason, end) in
        [(StopReason::Killed, AttemptEnd::Killed), (StopReason::TimedOut, AttemptEnd::TimedOut)]
    {
        let (bench, dir) = second_start();
        let mut orphan = Orphan::start(&bench.task.lock_name, 1);
        bench.stop.send_replace(Some(reason));
        let ran = bench.run().await;
        assert_eq!((ran.outcome.end.clone(), ran.message()), (end, "stopped before it began"));
        assert!(!dir.path().join("ran").exists() && !ran.text().contains("started as process"));
        assert!(orphan.is_alive());
    }
}

#[tokio::test]
async fn other_rows_and_the_own_try_are_left_alone() {
    let (bench, dir) = second_start();
    let name = bench.task.lock_name.clone();
    let mut others =
        [Orphan::start(&name, 2), Orphan::start(&format!("{name}1"), 1), Orphan::start("x", 1)];
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert!(dir.path().join("ran").exists());
    assert!(!ran.text().contains(ENDED), "{}", ran.text());
    assert!(others.iter_mut().all(Orphan::is_alive));
}

#[test]
fn the_first_script_of_a_process_sweeps_what_a_killed_one_left() {
    let temp = tempfile::tempdir().expect("folder");
    let mut gone = Command::new("true").spawn().expect("true");
    gone.wait().expect("its end");
    let own = nix::unistd::getuid();
    let all = temp.path().join(format!("procession-scripts-{own}"));
    let left = all.join(format!("procession-{}-7-{:032x}", gone.id(), 7));
    std::fs::DirBuilder::new().mode(0o711).create(&all).expect("a folder");
    std::fs::create_dir(&left).expect("a folder");
    std::fs::write(left.join("script"), "secret").expect("a script");
    // A process of its own, for ours may have run its first script long ago.
    let ran = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "handler::orphan::other_rows_and_the_own_try_are_left_alone"])
        .env("TMPDIR", temp.path())
        .output()
        .expect("a run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"));
    let rest: Vec<_> = std::fs::read_dir(&all).expect("folder").flatten().collect();
    assert!(rest.is_empty(), "{rest:?}");
}
