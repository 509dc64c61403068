//! Private database servers, for tests that stop them: started by `scripts/test-servers.sh`, which knows
//! where binaries are and as whom they run, and started again from their own command line. Where the variable
//! `PROCESSION_TEST_PRIVATE_SERVER` names a server of `scripts/server-versions.sh` (`mysql` is MySQL 9.7), that one is
//! started in place of the machine's.

use crate::trust::targets::try_session;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procession::domain::source::DialectName;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// As its operator would.
    Orderly,
    /// At once, with recovery at the next start: `pg_ctl stop -m immediate`, `kill -9` of mariadbd.
    AtOnce,
}

/// A server of this test alone; dropped, it ends and its data goes.
pub(crate) struct Server {
    pub(crate) dialect: DialectName,
    /// `mysql://root@127.0.0.1:PORT` or `postgres://postgres@127.0.0.1:PORT`.
    pub(crate) url: String,
    /// What the script remembers.
    state: tempfile::TempDir,
    /// The server that `scripts/server-versions.sh` started, by name.
    version: Option<String>,
    /// The command line that it was started with.
    command: Vec<String>,
    /// Its process, when we and not the script have started it.
    child: Option<Child>,
    pid: i32,
}

fn script(name: &str) -> Command {
    let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name));
    script.stdin(Stdio::null());
    script
}

/// Runs a script to its end; what it printed.
async fn output_of(mut script: Command) -> String {
    let output = tokio::task::spawn_blocking(move || script.output());
    let output = output.await.expect("not cancelled").expect("the script runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "no private server: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Server {
    /// Starts one.
    pub(crate) async fn start(dialect: DialectName) -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let folder = state.path().join("state");
        let version = std::env::var("PROCESSION_TEST_PRIVATE_SERVER").ok();
        let (url, pid_file) = match &version {
            Some(name) => of_version(dialect, name, &folder).await,
            None => of_machine(dialect, &folder).await,
        };
        let pid = std::fs::read_to_string(pid_file).expect("a process id");
        let pid = pid.lines().next().and_then(|line| line.trim().parse().ok());
        let pid: i32 = pid.expect("a process id");
        let command =
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("a command line");
        let command = command.split_terminator('\0').map(str::to_owned).collect();
        Self { dialect, url, state, version, command, child: None, pid }
    }

    fn state(&self) -> PathBuf {
        self.state.path().join("state")
    }

    /// Stops it, and returns when its process is gone.
    pub(crate) async fn stop(&mut self, how: Stop) {
        let signal = match (self.dialect, how) {
            (DialectName::Postgres, Stop::AtOnce) => Signal::SIGQUIT,
            (DialectName::Postgres, Stop::Orderly) => Signal::SIGINT,
            (_, Stop::AtOnce) => Signal::SIGKILL,
            (_, Stop::Orderly) => Signal::SIGTERM,
        };
        let _gone_already = kill(Pid::from_raw(self.pid), signal);
        for _ in 0..2_400 {
            if self.has_ended() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the server {} did not end within a minute of {signal}", self.url);
    }

    fn has_ended(&mut self) -> bool {
        let collected = self.child.as_mut().is_some_and(|c| matches!(c.try_wait(), Ok(Some(_))));
        collected || is_gone(self.pid)
    }

    /// Starts it again on the same port and data, and returns when it answers.
    pub(crate) async fn start_again(&mut self) {
        for _ in 0..60 {
            let mut command = self.command();
            self.remove_socket_lock();
            let child = command.spawn().expect("the server's program starts");
            self.pid = i32::try_from(child.id()).expect("a process id");
            self.child = Some(child);
            let question = match self.dialect {
                DialectName::Postgres => format!("{}/postgres", self.url),
                _ => self.url.clone(),
            };
            while !self.has_ended() {
                if let Ok(session) = try_session(&question).await {
                    session.close().await;
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            // Sessions of before may hold what it needs for a moment more.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let log = std::fs::read_to_string(self.state.path().join("again.log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(10).collect();
        panic!("the server {} did not start again; the latest first: {last:#?}", self.url);
    }

    /// MySQL, killed, leaves a file with its process number beside its socket, and refuses to start while any process has
    /// that number: among the thousands that a long run starts, another may.
    fn remove_socket_lock(&self) {
        let socket = self.command.iter().find_map(|word| word.strip_prefix("--socket="));
        if let Some(socket) = socket {
            // There is none after an orderly end, and MariaDB makes none.
            let _removed = std::fs::remove_file(format!("{socket}.lock"));
        }
    }

    fn command(&self) -> Command {
        let log = self.state.path().join("again.log");
        let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut command = Command::new(&self.command[0]);
        // It refuses to run as root; mariadbd changes by itself (--user).
        if self.dialect == DialectName::Postgres {
            let data = self.command.iter().position(|word| word == "-D").map(|at| at + 1);
            let data = &self.command[data.expect("-D FOLDER")];
            let owner = std::fs::metadata(data).expect("the data folder");
            let ours = std::fs::metadata("/proc/self").expect("/proc");
            if owner.uid() != ours.uid() {
                command.uid(owner.uid()).gid(owner.gid());
            }
        }
        let error = log.try_clone().expect("a log");
        command.args(&self.command[1..]).current_dir("/");
        command.stdin(Stdio::null()).stdout(log).stderr(error);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _gone_already = child.kill();
            let _gone_already = child.wait();
        }
        let name = if self.version.is_some() { "server-versions.sh" } else { "test-servers.sh" };
        let _gone_already =
            script(name).arg("stop").arg(self.state()).stderr(Stdio::null()).status();
    }
}

/// The machine's server of this kind: its URL and the file with its process id.
async fn of_machine(dialect: DialectName, folder: &Path) -> (String, PathBuf) {
    let (variable, port, pid_file) = match dialect {
        DialectName::Mysql => {
            ("PROCESSION_TEST_MYSQL", "PROCESSION_TEST_DEFAULT_MYSQL_PORT", "mysql.pid")
        }
        DialectName::Postgres => {
            let pid_file = "postgres/data/postmaster.pid";
            ("PROCESSION_TEST_POSTGRES", "PROCESSION_TEST_DEFAULT_POSTGRES_PORT", pid_file)
        }
        DialectName::Sqlite => panic!("SQLite has no server"),
    };
    let mut script = script("test-servers.sh");
    // Port 1 is closed, so the script does not find the server that all share.
    script.arg("start").arg(folder).env_remove(variable).env(port, "1");
    let said = output_of(script).await;
    let line = said.lines().find(|line| line.contains(variable));
    let line = line.unwrap_or_else(|| panic!("no private server: {said}"));
    let (_, url) = line.split_once('=').expect("export NAME=URL");
    let data = std::fs::read_to_string(folder.join("data")).expect("the data folder's name");
    (url.replace('\\', ""), Path::new(data.trim()).join(pid_file))
}

/// A server of `scripts/server-versions.sh`: its URL and the file with its process id.
async fn of_version(dialect: DialectName, name: &str, folder: &Path) -> (String, PathBuf) {
    let mut script = script("server-versions.sh");
    script.arg("start").arg(name).arg(folder);
    let said = output_of(script).await;
    let url = said.trim().to_owned();
    let kind = if dialect == DialectName::Mysql { "mysql" } else { "postgres" };
    assert!(url.starts_with(kind), "{name} is no server for the tests of {kind}");
    let data = std::fs::read_to_string(folder.join("versions")).expect("the data folder's name");
    (url, Path::new(data.trim()).join(format!("{name}.pid")))
}

/// A process that nobody has collected is gone all the same.
pub(crate) fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}
