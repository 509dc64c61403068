//! What a killed worker leaves on its host: scripts that run on, and their folders.

use crate::util::bench::Bench;
use procession::domain::outcome::{End, Stream};
use procession::handler::StopReason;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

const WAITS: &str = "waits for an earlier start of this job that still runs here (process ";

/// A process that carries the cookie of try `attempt`, in a group of its own.
struct Orphan(Child);

impl Orphan {
    fn start(lock_name: &str, attempt: u32) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", "sleep 300; :"])
            .env("PROCESSION_RUN", format!("{lock_name}:{attempt}"))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        Self(child.expect("an orphan"))
    }

    /// Ends its whole group; the zombie is not waited for at once, as nobody may do so in life.
    fn end(&self) {
        let group = format!("-{}", self.0.id());
        let ended = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(ended.expect("kill").success());
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

/// Returns when the log has said that it waits.
async fn waiting(log: procession::handler::log::RunLog) -> String {
    for _ in 0..1_000 {
        let lines = log.drain();
        if let Some(line) = lines.iter().find(|l| l.text.starts_with(WAITS)) {
            return line.text.clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not wait");
}

#[tokio::test]
async fn a_second_start_waits_for_what_the_first_left_running() {
    let (bench, dir) = second_start();
    let orphan = Orphan::start(&bench.task.lock_name, 1);
    let ran = dir.path().join("ran");
    let log = bench.ctx.log.clone();
    let end_it = async {
        let line = waiting(log).await;
        assert!(line.contains("sh)") || line.contains("sleep)"), "{line}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!ran.exists(), "both starts run");
        orphan.end();
    };
    let (second, ()) = tokio::join!(bench.run(), end_it);
    assert_eq!(second.outcome.end, End::Success, "{}", second.message());
    assert!(ran.exists());
    let text = second.text();
    assert!(text.contains("the earlier start is gone after "), "{text}");
    assert!(!text.contains(WAITS), "it is said once: {text}");
}

#[tokio::test]
async fn the_claim_is_asked_again_after_the_wait() {
    let (bench, dir) = second_start();
    let orphan = Orphan::start(&bench.task.lock_name, 1);
    let (log, claim) = (bench.ctx.log.clone(), bench.claim.clone());
    let end_it = async {
        waiting(log).await;
        claim.0.store(false, Ordering::SeqCst);
        orphan.end();
    };
    let (second, ()) = tokio::join!(bench.run(), end_it);
    assert_eq!(second.outcome.end, End::Failed);
    assert!(second.message().contains("belongs to another start"), "{}", second.message());
    assert!(!dir.path().join("ran").exists());
}

#[tokio::test]
async fn a_stop_while_waiting_starts_nothing() {
    for (reason, end) in [(StopReason::Killed, End::Killed), (StopReason::TimedOut, End::TimedOut)]
    {
        let (bench, dir) = second_start();
        let mut orphan = Orphan::start(&bench.task.lock_name, 1);
        let log = bench.ctx.log.clone();
        let ran = bench.stop_when(reason, async { drop(waiting(log).await) }).await;
        assert_eq!((ran.outcome.end.clone(), ran.message()), (end, "stopped before it began"));
        assert!(!dir.path().join("ran").exists() && !ran.text().contains("started as process"));
        assert!(orphan.0.try_wait().expect("a child").is_none(), "the orphan is not ours to end");
    }
}

#[tokio::test]
async fn other_rows_and_the_own_try_are_not_waited_for() {
    let (bench, dir) = second_start();
    let name = bench.task.lock_name.clone();
    let _others =
        [Orphan::start(&name, 2), Orphan::start(&format!("{name}1"), 1), Orphan::start("x", 1)];
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, End::Success, "{}", ran.message());
    assert!(dir.path().join("ran").exists());
    assert!(!ran.of(Stream::System).iter().any(|l| l.starts_with(WAITS)), "{}", ran.text());
}

#[test]
fn the_first_script_of_a_process_sweeps_what_a_killed_one_left() {
    let temp = tempfile::tempdir().expect("folder");
    let mut gone = Command::new("true").spawn().expect("true");
    gone.wait().expect("its end");
    let left = temp.path().join(format!("procession-{}-7-{:032x}", gone.id(), 7));
    std::fs::create_dir(&left).expect("a folder");
    std::fs::write(left.join("script"), "secret").expect("a script");
    // A process of its own, for ours may have run its first script long ago.
    let ran = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "handler::orphan::other_rows_and_the_own_try_are_not_waited_for"])
        .env("TMPDIR", temp.path())
        .output()
        .expect("a run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"));
    let rest: Vec<_> = std::fs::read_dir(temp.path()).expect("folder").flatten().collect();
    assert!(rest.is_empty(), "{rest:?}");
}
