//! The real program, serving on a port and a database of its own.

use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The account that tests log in with, which may do everything.
pub(crate) const NAME: &str = "linwei";
/// A password that nobody would guess in a test.
pub(crate) const PASSWORD: &str = "quiet-harbour-lantern-42";

/// A process that serves, and its folder; both go with the value.
pub(crate) struct House {
    /// `http://127.0.0.1:PORT`
    pub(crate) address: String,
    /// What the first to log in needs.
    pub(crate) secret: String,
    dir: TempDir,
    serve: Child,
}

impl House {
    /// One with these definitions stored, and nobody who could log in.
    pub(crate) fn open(definition: &str) -> Self {
        Self::open_with(definition, "")
    }

    /// The same with settings.
    pub(crate) fn open_with(definition: &str, settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("folder");
        std::fs::write(dir.path().join("procession.toml"), settings).expect("settings");
        std::fs::write(dir.path().join("d.yaml"), definition).expect("a file");
        let applied = procession(dir.path()).args(["apply", "d.yaml"]).output().expect("it runs");
        assert!(applied.status.success(), "{}", said(&applied));
        Self::serve_in(dir)
    }

    fn serve_in(dir: TempDir) -> Self {
        let mut serve = serve(&dir, "");
        let mut lines = BufReader::new(serve.stderr.take().expect("stderr")).lines();
        let (mut address, mut secret) = (None, None);
        while address.is_none() || secret.is_none() {
            let line = lines.next().expect("it says address and secret").expect("text");
            if let Some((_, rest)) = line.split_once("http://") {
                address = address.or(rest.split('/').next().map(|at| format!("http://{at}")));
            }
            // It stands alone in a line of its own.
            if let Some(alone) = line.strip_prefix("    ") {
                secret = secret.or(Some(alone.trim().to_owned()));
            }
        }
        // Its pipe must not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        let (address, secret) = (address.expect("seen"), secret.expect("seen"));
        Self { address, secret, dir, serve }
    }

    /// Waits until the process has died by itself, and starts another, which has these failpoints.
    pub(crate) fn serve_again(&mut self, failpoints: &str) {
        let _died = self.serve.wait().expect("it ends");
        let mut serve = serve(&self.dir, failpoints);
        let mut lines = BufReader::new(serve.stderr.take().expect("stderr")).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.expect("text");
            let (_, rest) = line.split_once("http://")?;
            rest.split(|c: char| c == '/' || c.is_whitespace()).next().map(str::to_owned)
        });
        std::thread::spawn(move || lines.for_each(drop));
        self.address = format!("http://{}", address.expect("it says its address"));
        self.serve = serve;
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.serve.kill().expect("it lives");
    }

    /// The same, with somebody who may do everything.
    pub(crate) async fn with_admin(definition: &str) -> Self {
        Self::with_admin_and(definition, "").await
    }

    /// The same with settings.
    pub(crate) async fn with_admin_and(definition: &str, settings: &str) -> Self {
        Self::open_with(definition, settings).set_up().await
    }

    /// One in which nothing is defined yet, with somebody who may do everything.
    pub(crate) async fn empty_with_admin() -> Self {
        Self::serve_in(tempfile::tempdir().expect("folder")).set_up().await
    }

    async fn set_up(self) -> Self {
        let house = self;
        let body = json!({ "secret": house.secret, "name": NAME, "password": PASSWORD });
        let answer = client()
            .post(format!("{}/api/v1/setup", house.address))
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("an answer");
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        assert!(status.is_success(), "{status} {text}");
        house
    }

    /// A file beside its database.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).expect("a file");
    }

    /// The whole path of a file beside its database.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// What an executor of XXL-JOB says to it; the answer.
    pub(crate) async fn hears(&self, word: &str, token: &str, body: &Value) -> Value {
        let answer = client()
            .post(format!("{}/xxl-job-admin/api/{word}", self.address))
            .header("XXL-JOB-ACCESS-TOKEN", token)
            .body(body.to_string())
            .send()
            .await
            .expect("an answer");
        serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON")
    }

    /// Writes rows that only other programs make come about.
    pub(crate) async fn writes(&self, sql: &str) {
        let url = format!("sqlite:{}", self.dir.path().join("p.db").display());
        let settings = procession::db::ConnectSettings {
            url: url.into(),
            password: None,
            rotated_password: None,
            max_connections: 1,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            may_create: false,
            keeping: procession::db::SessionTimeouts::Usual,
        };
        let db = procession::db::Db::connect(&settings).await.expect("connect");
        let mut tx = db.begin().await.expect("begin");
        tx.execute(sql, &[]).await.expect(sql);
        tx.commit().await.expect("commit");
    }

    /// A command on the same database, which must end well; what it said.
    pub(crate) fn does(&self, args: &[&str]) -> String {
        let output = procession(self.dir.path()).args(args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command that asks the server with a token; its exit code, and what it said.
    pub(crate) fn asks(&self, token: &str, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command.current_dir(self.dir.path()).env_remove("PROCESSION_DB");
        command.args(["--lang", "en", "--server", &self.address]).env("PROCESSION_TOKEN", token);
        let output = command.args(args).output().expect("it runs");
        (output.status.code(), said(&output))
    }

    /// A batch that has ended, however.
    pub(crate) fn ended(&self, group: &str, no: &str) -> Value {
        let args = ["batch", "wait", no, "--group", group, "--json", "--quiet"];
        let output = procession(self.dir.path()).args(args).output().expect("it runs");
        let show = self.does(&["batch", "show", no, "--group", group, "--json"]);
        serde_json::from_str(&show).unwrap_or_else(|e| panic!("{e}: {show}{}", said(&output)))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _gone = self.serve.kill();
        let _seen = self.serve.wait();
    }
}

fn serve(dir: &TempDir, failpoints: &str) -> Child {
    procession(dir.path())
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("FAILPOINTS", failpoints)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs")
}

fn procession(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(dir).args(["--lang", "en", "--db", "sqlite:p.db"]);
    // 32 bytes, for what is kept sealed.
    command.env("PROCESSION_SECRET_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    command
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Plain HTTP; the library wants to know how it would speak TLS all the same.
fn client() -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let client = Client::builder().tls_backend_preconfigured(tls).no_proxy();
    client.timeout(Duration::from_secs(30)).build().expect("a client")
}
