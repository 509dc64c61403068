//! TLS of the listeners: the program itself, asked by curl, OpenSSL and Python, and by itself.

mod authority;
mod executors;
mod listener;

use authority::Authority;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A process that ends with the test, and what it wrote.
struct Running {
    process: Child,
    log: Arc<Mutex<String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _waited = self.process.wait();
    }
}

impl Running {
    /// Starts the program in a folder, and waits until it has written these words.
    fn start(folder: &Path, args: &[&str], until: &str) -> Self {
        let mut command = procession(folder, args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("start");
        let lines = BufReader::new(process.stderr.take().expect("its log")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let written = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = written.lock().expect("log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let running = Self { process, log };
        running.waits_for(until);
        running
    }

    fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    fn waits_for(&self, words: &str) {
        eventually(|| self.log().contains(words).then_some(()).ok_or_else(|| self.log()));
    }
}

/// Waits until something is so; a real process takes real time.
#[expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]
fn eventually<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < end, "{seen}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn procession(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("PROCESSION_") || name == "RUST_LOG" || name == "SSL_CERT_FILE" {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).args(["--lang", "en"]).args(args).stdin(Stdio::null());
    command.env("PROCESSION_SECRET_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    command
}

/// What a program prints on both ways, and its exit code.
fn said(command: &mut Command) -> (i32, String) {
    let output = command.output().expect("the program");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout) + &text(&output.stderr))
}

fn well(folder: &Path, args: &[&str]) -> String {
    let (code, words) = said(&mut procession(folder, args));
    assert_eq!(code, 0, "{args:?}: {words}");
    words
}

/// A port of this machine that nobody listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// curl, with what it is asked.
fn curl(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new("curl");
    said(command.args(["-sS", "--max-time", "20"]).args(args).current_dir(folder))
}

/// A folder with certificates and settings, and where its `serve` listens.
struct Place {
    folder: tempfile::TempDir,
    authority: Authority,
    port: u16,
}

impl Place {
    /// With these settings in `[http]` beside listener, certificate and key.
    fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let authority = Authority::new();
        authority.write(folder.path(), "ca");
        authority.issue(folder.path(), "server");
        let port = free_port();
        let place = Self { folder, authority, port };
        place.settings(&format!("tls_cert = 'server.pem'\ntls_key = 'server.key'\n{more}"));
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn settings(&self, http: &str) {
        let text = format!("[http]\nlisten = '127.0.0.1:{}'\n{http}\n", self.port);
        std::fs::write(self.path().join("procession.toml"), text).expect("settings");
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// A `serve` that nobody has asked yet.
    fn start(&self) -> Running {
        Running::start(self.path(), &["serve"], "console, API")
    }

    fn serve(&self) -> Running {
        let running = self.start();
        eventually(|| match curl(self.path(), &["--cacert", "ca.pem", &self.url("/readyz")]) {
            (0, words) if words.starts_with("ok") => Ok(()),
            (_, words) => Err(words + &running.log()),
        });
        running
    }
}
