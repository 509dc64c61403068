//! Real processes of the program on one database: started, killed, stalled, told to leave. Whatever a test
//! does, also when it panics, nothing of it lives on.

use crate::trust::servers::is_gone;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Marks every process of one house, scripts of bodies as well.
const MARK: &str = "PROCESSION_TRUST_HOUSE";

/// A folder with settings, on one metadata database; its processes end with it.
pub(crate) struct House {
    dir: tempfile::TempDir,
    db: String,
    mark: String,
    /// Where its processes put what is temporary, when not where all do.
    temp: Option<PathBuf>,
}

impl House {
    /// On a metadata database, whose tables it makes; `settings` are added to short leases.
    pub(crate) fn on(db: &str, settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let house = Self { dir, db: db.to_owned(), mark, temp: None };
        let inherit = format!("[\"PATH\", \"HOME\", \"LANG\", \"{MARK}\"]");
        // No listener: several of them serve on one machine, beside those of other tests.
        let text =
            format!("[http]\nlisten = \"off\"\n[script]\ninherit_env = {inherit}\n{settings}\n");
        std::fs::write(house.path().join("procession.toml"), text).expect("a file");
        let (code, _, told) = house.said(&["migrate"]);
        assert_eq!(code, 0, "migrate: {told}");
        house
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// From now on its processes put there what is temporary.
    pub(crate) fn with_temp(&mut self, folder: &Path) {
        self.temp = Some(folder.to_owned());
    }

    /// Puts a file into the folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file");
    }

    /// The program with this house's settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command.current_dir(self.path()).args(args);
        command
            .env("PROCESSION_DB", &self.db)
            .env(MARK, &self.mark)
            .env("LANG", "C")
            .env("PROCESSION_HTTP", "off");
        command.env_remove("FAILPOINTS").stdin(Stdio::null());
        command.envs(self.temp.iter().map(|folder| ("TMPDIR", folder)));
        command
    }

    /// Exit code, stdout and stderr of one call.
    pub(crate) fn said(&self, args: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(args).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }

    /// Whether this binary knows a command.
    pub(crate) fn knows(&self, args: &[&str]) -> bool {
        self.said(&[args, &["--help"]].concat()).0 == 0
    }

    /// Processes of this house that live, but for this one.
    pub(crate) fn living(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let is_ours = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|var| var == wanted.as_bytes()) && !is_gone(*pid)
        };
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Twice, because one may have been about to start another.
        for pid in self.living().into_iter().chain(self.living()) {
            let _gone_already = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// One life of a worker: its arguments, and what its environment has beside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Life {
    /// With these arguments.
    pub(crate) fn of(args: &[&str]) -> Self {
        Self { args: args.iter().copied().map(str::to_owned).collect(), env: Vec::new() }
    }

    /// With this in its environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// What a worker does next, told the exit code of its last life; `None`: nothing more.
pub(crate) type Next = Box<dyn FnMut(Option<i32>) -> Option<Life> + Send>;

/// A worker process that is started again whenever it ends, as a supervisor would.
pub(crate) struct Worker {
    name: String,
    pid: Arc<AtomicI32>,
    starts: Arc<AtomicUsize>,
    leaving: Arc<AtomicBool>,
    /// Exit codes of lives that ended by themselves or were told to.
    exits: Arc<Mutex<Vec<Option<i32>>>>,
    errors: PathBuf,
    loop_: JoinHandle<()>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.loop_.abort();
        self.signal(Signal::SIGKILL);
        // Not every assertion says what the processes said.
        if std::thread::panicking() {
            crate::trust::scene::report(&format!("{} said:\n{}", self.name, self.said()));
        }
    }
}

impl Worker {
    /// Starts one whose commands `next` gives, told the exit code of the last.
    pub(crate) fn start(house: &House, name: &str, mut next: Next) -> Self {
        let errors = house.path().join(format!("{name}.stderr"));
        let (pid, starts) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicUsize::new(0)));
        let (leaving, exits) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let template = (house.path().to_owned(), house.db.clone(), house.mark.clone());
        let temp = house.temp.clone();
        let shared = (pid.clone(), starts.clone(), leaving.clone(), exits.clone(), errors.clone());
        let loop_ = tokio::spawn(async move {
            let (pid, starts, leaving, exits, errors) = shared;
            let (path, db, mark) = template;
            let mut last = Some(0);
            while !leaving.load(SeqCst) {
                let Some(life) = next(last) else { return };
                let log = std::fs::File::options().create(true).append(true).open(&errors);
                let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_procession"));
                command
                    .current_dir(&path)
                    .args(&life.args)
                    .env("PROCESSION_DB", &db)
                    .env(MARK, &mark);
                command.env_remove("FAILPOINTS").stdin(Stdio::null()).stdout(Stdio::null());
                command.env("LANG", "C").env("PROCESSION_HTTP", "off").kill_on_drop(true);
                command.stderr(log.expect("a log"));
                command.envs(temp.iter().map(|folder| ("TMPDIR", folder))).envs(life.env);
                let mut child = command.spawn().expect("the program starts");
                pid.store(child.id().map_or(0, |id| i32::try_from(id).unwrap_or(0)), SeqCst);
                starts.fetch_add(1, SeqCst);
                last = child.wait().await.ok().and_then(|status| status.code());
                pid.store(0, SeqCst);
                exits.lock().expect("the list").push(last);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { name: name.to_owned(), pid, starts, leaving, exits, errors, loop_ }
    }

    /// Sends a signal to the present life, if there is one.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        match self.pid.load(SeqCst) {
            0 => false,
            pid => kill(Pid::from_raw(pid), signal).is_ok(),
        }
    }

    /// Process id of the present life; 0 between two.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.load(SeqCst)
    }

    /// Lives so far.
    pub(crate) fn starts(&self) -> usize {
        self.starts.load(SeqCst)
    }

    /// Has done all that it was to do.
    pub(crate) fn is_done(&self) -> bool {
        self.loop_.is_finished()
    }

    /// Exit codes so far; `None`: by a signal.
    pub(crate) fn exits(&self) -> Vec<Option<i32>> {
        self.exits.lock().expect("the list").clone()
    }

    /// Tells it to leave, and waits until it has, at most so long; its exit code.
    pub(crate) async fn leave(&mut self, at_most: Duration) -> Option<i32> {
        self.leaving.store(true, SeqCst);
        self.signal(Signal::SIGCONT);
        self.signal(Signal::SIGTERM);
        let left = tokio::time::timeout(at_most, &mut self.loop_).await;
        assert!(left.is_ok(), "{} did not leave within {at_most:?}:\n{}", self.name, self.said());
        self.exits().last().copied().flatten()
    }

    /// Its standard error, over all lives.
    pub(crate) fn all_said(&self) -> String {
        let text = std::fs::read(&self.errors).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The last lines of its standard error, over all lives, without batches that went well.
    pub(crate) fn said(&self) -> String {
        let text = self.all_said();
        let is_dull = |line: &&str| line.ends_with(": taken") || line.ends_with(": ended SUCCESS");
        let lines: Vec<&str> = text.lines().filter(|line| !is_dull(line)).collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }
}
