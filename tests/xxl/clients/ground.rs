//! A server with a database of its own, and what one asks it.

use super::client::{APP, Client, Kind, TOKEN, tell, until};
use crate::util::port::free_port;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One job in each group, so that a batch is a run.
const DEFINITION: &str = r#"
groups:
  ok: { type: monthly }
  fail: { type: monthly }
  nobody: { type: monthly }
  echo: { type: monthly }
  text: { type: monthly }
  late: { type: monthly }
  serial: { type: monthly }
  discard: { type: monthly }
  cover: { type: monthly }
  parts: { type: monthly }
  parts_fail: { type: monthly }
defaults: { type: HANDLER }
jobs:
  OK: { group: ok, executor: { app: host-app, handler: ok, send: none } }
  FAIL: { group: fail, executor: { app: host-app, handler: fail, send: none } }
  NOBODY: { group: nobody, timeout_sec: 2, executor: { app: host-app, handler: nobody, send: none } }
  ECHO:
    group: echo
    executor: { app: host-app, handler: echo }
    params: [ { name: branch, value: 上海 }, { name: count, value: 3, type: INT } ]
  TEXT:
    group: text
    executor: { app: host-app, handler: echo, send: text }
    params: [ { name: param, value: "${batch_no},a=1" } ]
  LATE:
    group: late
    timeout_sec: 1
    executor: { app: host-app, handler: sleep, send: text }
    params: [ { name: millis, value: "6000" } ]
  SERIAL:
    group: serial
    executor: { app: host-app, handler: sleep, send: text, block: SERIAL_EXECUTION }
    params: [ { name: millis, value: "1500" } ]
  DISCARD:
    group: discard
    executor: { app: host-app, handler: sleep, send: text, block: DISCARD_LATER }
    params: [ { name: millis, value: "3000" } ]
  COVER:
    group: cover
    executor: { app: host-app, handler: sleep, send: text, block: COVER_EARLY }
    params: [ { name: millis, value: "4000" } ]
  PARTS:
    group: parts
    executor: { app: host-app, handler: echo, send: none, route: SHARDING_BROADCAST }
  PARTS_FAIL:
    group: parts_fail
    executor: { app: host-app, handler: fail, send: none, route: SHARDING_BROADCAST }
"#;

/// Processes that die are noticed sooner, and kills given up sooner, than by default.
const SETTINGS: &str =
    "[engine]\nlease_sec = 3\n[stop]\ngrace_sec = 1\nconfirm_sec = 10\n[log]\nflush_ms = 50\n";

/// A key to seal tokens with; of no other use.
const KEY: &str = "VGhpcyBrZXkgc2VhbHMgbm90aGluZyBvZiB3b3J0aC4=";

/// A database, a `serve` and a group of executors.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    port: u16,
    serve: RefCell<Option<Child>>,
    clients: Cell<u32>,
}

/// How the one job of a batch ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) batch: String,
    pub(crate) job: String,
    pub(crate) words: String,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in
            [("d.yaml", DEFINITION), ("procession.toml", SETTINGS), ("token", TOKEN)]
        {
            std::fs::write(dir.path().join(name), text).expect("a file");
        }
        let (serve, clients) = (RefCell::new(None), Cell::new(0));
        let ground = Self { dir, port: free_port(), serve, clients };
        ground.does(&["apply", "d.yaml"]);
        ground.does(&["executor-group", "add", APP, "--title", "主机", "--from-file", "token"]);
        ground.serve();
        ground
    }

    /// Where executors reach their admin.
    pub(crate) fn admin(&self) -> String {
        format!("http://127.0.0.1:{}/xxl-job-admin", self.port)
    }

    /// A client that is registered.
    pub(crate) fn client(&self, kind: Kind) -> Client {
        let client = self.client_with(kind, TOKEN);
        self.until_registered(&client);
        client
    }

    /// A client with this token, registered or not.
    pub(crate) fn client_with(&self, kind: Kind, token: &str) -> Client {
        self.clients.set(self.clients.get() + 1);
        let dir = self.dir.path().join(format!("client-{}", self.clients.get()));
        Client::start(kind, dir, &self.admin(), token)
    }

    pub(crate) fn until_registered(&self, client: &Client) {
        until(Duration::from_secs(40), || {
            let all = self.registered();
            let is_there = all.contains(&client.address());
            if is_there { Ok(()) } else { Err(format!("{} among {all:?}", client.address())) }
        });
    }

    /// Addresses that have said that they are there, in their order.
    pub(crate) fn registered(&self) -> Vec<String> {
        let sql = format!(
            "SELECT address FROM executor_registry WHERE app_name = '{APP}' ORDER BY address"
        );
        self.rows(&sql).into_iter().map(|row| row.join(" ")).collect()
    }

    /// Rows of a query, NULL as a minus.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let url = format!("sqlite:{}", self.dir.path().join("p.db").display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let rows = runtime.expect("a runtime").block_on(crate::util::query(&url, sql));
        let text = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
    }

    /// Changes rows behind the server's back.
    pub(crate) fn change(&self, sql: &str) {
        self.rows(sql);
    }

    /// Writes a file beside the database.
    pub(crate) fn change_file(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).expect("a file");
    }

    /// Tells the server something, from any thread.
    pub(crate) fn raw_teller(&self) -> impl Fn(&str, &str) + Send + use<> {
        let port = self.port;
        move |name, body| {
            let answer = told_well(port, name, body);
            assert_eq!(answer["code"], 200, "{answer}");
        }
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.current_dir(self.dir.path()).args(["--lang", "en", "--db", "sqlite:p.db"]);
        command.env("PROCESSION_SECRET_KEY", KEY).stdin(Stdio::null());
        command
    }

    /// What a command prints; it must do well.
    pub(crate) fn does(&self, args: &[&str]) -> String {
        let output = self.program().args(args).output().expect("the program");
        let (out, err) = (&output.stdout, &output.stderr);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(err));
        String::from_utf8_lossy(out).into_owned()
    }

    /// Starts the server, at the same address each time, and waits until it is ready.
    pub(crate) fn serve(&self) {
        let said = File::options().create(true).append(true).open(self.dir.path().join("said"));
        let said = said.expect("a file for its words");
        let mut command = self.program();
        command.args(["serve", "--http", &format!("127.0.0.1:{}", self.port)]);
        command.stdout(Stdio::null()).stderr(said);
        *self.serve.borrow_mut() = Some(command.spawn().expect("serve"));
        until(Duration::from_secs(40), || {
            let status = self.ready();
            if status == 200 { Ok(()) } else { Err(format!("ready, but {status}")) }
        });
    }

    /// The status of `/readyz`; 0 for no answer.
    fn ready(&self) -> u16 {
        let answer = self.raw("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
    }

    fn raw(&self, request: &str) -> String {
        raw(self.port, request)
    }

    /// The answer to a POST of an executor, which is JSON under status 200 whatever it says.
    pub(crate) fn told(&self, path: &str, headers: &str, body: &str) -> Value {
        told(self.port, path, headers, body)
    }

    /// The same with the token, as Java sends it.
    pub(crate) fn told_well(&self, name: &str, body: &str) -> Value {
        told_well(self.port, name, body)
    }

    /// Registers an executor that is of the test.
    pub(crate) fn register(&self, address: &str) {
        let body = serde_json::json!({
            "registryGroup": "EXECUTOR", "registryKey": APP, "registryValue": address,
        });
        let answer = self.told_well("registry", &body.to_string());
        assert_eq!(answer["code"], 200, "{answer}");
    }

    /// As kill -9 does.
    pub(crate) fn kill_serve(&self) {
        if let Some(mut child) = self.serve.borrow_mut().take() {
            let _gone = child.kill();
            let _waited = child.wait();
        }
    }

    /// In the server's place, hangs up so often on who tells an end; registrations may come too.
    pub(crate) fn hang_up_on(&self, ends: usize) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).expect("its port");
        let mut told = 0;
        while told < ends {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut start = [0; 200];
            let read = stream.read(&mut start).unwrap_or_default();
            told += usize::from(String::from_utf8_lossy(&start[..read]).contains("/api/callback"));
        }
    }

    /// Opens a batch, which the server takes.
    pub(crate) fn open(&self, group: &str, no: &str) {
        self.does(&["batch", "open", "--group", group, "--batch-no", no]);
    }

    /// The same with another value of its one parameter.
    pub(crate) fn open_with(&self, group: &str, no: &str, param: &str) {
        self.does(&["batch", "open", "--group", group, "--batch-no", no, "--param", param]);
    }

    /// The batch with its job, now.
    pub(crate) fn shown(&self, group: &str, no: &str) -> Ended {
        let text = self.does(&["--json", "batch", "show", no, "--group", group]);
        let batch: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let job = &batch["jobs"][0];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let words = word(&job["error_message"]);
        Ended { batch: word(&batch["status"]), job: word(&job["status"]), words }
    }

    /// Waits for the end of the batch.
    pub(crate) fn until_end(&self, group: &str, no: &str) -> Ended {
        self.until_end_within(Duration::from_secs(90), group, no)
    }

    /// The same for one that takes long.
    pub(crate) fn until_end_within(&self, limit: Duration, group: &str, no: &str) -> Ended {
        until(limit, || {
            let shown = self.shown(group, no);
            let is_over = ["SUCCESS", "FAILED", "KILLED"].contains(&shown.batch.as_str());
            if is_over { Ok(shown) } else { Err(format!("the end, but {shown:?}")) }
        })
    }

    /// Opens a batch and waits for its end.
    pub(crate) fn run(&self, group: &str, no: &str) -> Ended {
        self.open(group, no);
        self.until_end(group, no)
    }

    /// What the job printed, as it was archived.
    pub(crate) fn log(&self, group: &str, no: &str) -> String {
        let job = group.to_uppercase();
        self.does(&["logs", no, &job, "--group", group])
    }
}

impl Drop for Ground {
    #[expect(clippy::print_stderr, reason = "somebody looks at a failure")]
    fn drop(&mut self) {
        self.kill_serve();
        if std::thread::panicking() {
            tell("serve", &self.dir.path().join("said"));
            for row in self.rows("SELECT log_id, job_code, status, stopping, trigger_code, trigger_msg, handle_code, handle_msg, result FROM executor_run ORDER BY log_id") {
                eprintln!("executor_run: {}", row.join(" | "));
            }
        }
    }
}

/// Sends a request byte by byte as it is, and gives what comes back; nothing when nobody answers.
pub(super) fn raw(port: u16, request: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().unwrap_or_default()
}

fn told(port: u16, path: &str, headers: &str, body: &str) -> Value {
    let length = body.len();
    let answer = raw(
        port,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ),
    );
    assert!(answer.starts_with("HTTP/1.1 200 "), "{path} {body}: {answer}");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn told_well(port: u16, name: &str, body: &str) -> Value {
    let headers = format!(
        "Content-Type: application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n"
    );
    told(port, &format!("/xxl-job-admin/api/{name}"), &headers, body)
}
