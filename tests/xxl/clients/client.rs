//! One client: which there are, and the process of one.

use super::ground::raw;
use crate::util::port::free_port;
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The group of executors that clients register in, and the token that they share with us.
pub(crate) const APP: &str = "host-app";
pub(crate) const TOKEN: &str = "quiet-harbour-lantern-42";

/// Who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// pyxxl, PyPI
    Pyxxl,
    /// Flask-XXLJob, PyPI
    Flask,
    /// xxl-job, npm
    Npm,
    /// xxljob-sdk-rs, crates.io
    Rust,
}

impl Kind {
    /// Where `scripts/test-xxl.sh` puts it.
    fn place(self) -> PathBuf {
        let name = match self {
            Self::Pyxxl | Self::Flask => "python",
            Self::Npm => "npm",
            Self::Rust => "rust",
        };
        root("target/xxl-clients").join(name)
    }

    /// Whether it is there; says loudly when it is not.
    pub(crate) fn is_installed(self) -> bool {
        let is_there = self.place().join(".installed").exists();
        if !is_there {
            let words = format!(
                "\nSKIPPED: a test with {self:?}, a client of XXL-JOB that is not installed here; run scripts/test-xxl.sh\n"
            );
            // Not eprintln!, which is captured from a test that passes.
            let _told = std::io::stderr().write_all(words.as_bytes());
        }
        is_there
    }

    fn command(self) -> Command {
        let host = |path: &str| root("tests/xxl-clients").join(path);
        let (program, script) = match self {
            Self::Pyxxl => (self.place().join("bin/python"), Some(host("pyxxl/host.py"))),
            Self::Flask => (self.place().join("bin/python"), Some(host("flask/host.py"))),
            Self::Npm => ("node".into(), Some(host("npm/host.cjs"))),
            Self::Rust => (self.place().join("debug/procession-test-xxl-rust"), None),
        };
        let mut command = Command::new(program);
        command.args(script).env("NODE_PATH", self.place().join("node_modules"));
        command.env("PYTHONUTF8", "1").env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// As it registers, and we keep it.
    pub(crate) fn address(self, port: u16) -> String {
        let path = if self == Self::Npm { "/job" } else { "" };
        format!("http://127.0.0.1:{port}{path}")
    }
}

/// A client that runs; it ends with this value.
pub(crate) struct Client {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    dir: PathBuf,
    admin: String,
    token: String,
    child: Option<Child>,
}

impl Client {
    /// Starts it in a folder of its own; it registers in its own time.
    pub(crate) fn start(kind: Kind, dir: PathBuf, admin: &str, token: &str) -> Self {
        std::fs::create_dir(&dir).expect("a folder for the client");
        let (admin, token) = (admin.to_owned(), token.to_owned());
        let mut client = Self { port: free_port(), kind, dir, admin, token, child: None };
        client.start_again();
        client
    }

    /// Another process at the same address.
    pub(crate) fn start_again(&mut self) {
        let said = File::options().create(true).append(true).open(self.dir.join("said"));
        let said = said.expect("a file for its words");
        let mut command = self.kind.command();
        command.args([&self.admin, APP, &self.port.to_string()]).env("XXL_TOKEN", &self.token);
        command.current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(said.try_clone().expect("the same file")).stderr(said);
        self.child = Some(command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", self.kind)));
    }

    pub(crate) fn address(&self) -> String {
        self.kind.address(self.port)
    }

    /// Another admin asks it to sleep, as a run of the job that it knows by this number.
    pub(crate) fn is_asked_elsewhere(&self, job: i64, log: i64, millis: u32) {
        let ask = serde_json::json!({
            "jobId": job, "executorHandler": "sleep", "executorParams": millis.to_string(),
            "executorBlockStrategy": "SERIAL_EXECUTION", "executorTimeout": 0, "logId": log,
            "logDateTime": 1_722_470_400_000_i64, "glueType": "BEAN", "glueSource": "",
            "glueUpdatetime": 1_722_470_400_000_i64, "broadcastIndex": 0, "broadcastTotal": 1,
        });
        let (body, address) = (ask.to_string(), self.address());
        let path = address.splitn(4, '/').nth(3).map_or(String::new(), |path| format!("/{path}"));
        let request = format!(
            "POST {path}/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
             XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = raw(self.port, &request);
        let body: String = answer.split_whitespace().collect();
        assert!(body.contains("\"code\":200"), "{:?}: {answer}", self.kind);
    }

    /// As a machine does that loses its power.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _waited = child.wait();
        }
    }

    /// As one that is switched off.
    pub(crate) fn leave(&mut self) {
        let child = self.child.as_ref().expect("it runs");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("TERM");
        self.child.take().expect("it runs").wait().expect("its end");
    }

    /// What reached its handlers, in order: `ok`, `fail`, `sleep`, `slept`, `echo`, with what came along.
    pub(crate) fn seen(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.join("seen")).unwrap_or_default();
        let read =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(read).collect()
    }

    /// The names of it alone.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |line: &Value| line["what"].as_str().expect("a name").to_owned();
        self.seen().iter().map(name).collect()
    }

    /// Waits until its handlers were reached so.
    pub(crate) fn until_names(&self, expected: &[&str]) {
        until(Duration::from_secs(40), || {
            let names = self.names();
            if names == expected { Ok(()) } else { Err(format!("{expected:?}, but {names:?}")) }
        });
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            tell(&format!("{:?}", self.kind), &self.dir.join("said"));
        }
    }
}

/// Prints the end of a file, for somebody who looks at a failure.
#[expect(clippy::print_stderr, reason = "somebody looks at a failure")]
pub(crate) fn tell(what: &str, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(60)..];
    eprintln!("---- {what} said ({} lines)\n{}", lines.len(), last.join("\n"));
}

/// Where the project stands.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Waits for other processes; a bounded loop, which ends as soon as it is so.
#[expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(wanted) if start.elapsed() > limit => panic!("within {limit:?} not: {wanted}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
