//! The `serve` that is measured, and what executors say to it.

use crate::place::Place;
use anyhow::{Context as _, Result, ensure};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const APP: &str = "bench-app";
pub(crate) const TOKEN: &str = "quiet-harbour-lantern-42";
/// Seals the token; of no other use.
const KEY: &str = "VGhpcyBrZXkgc2VhbHMgbm90aGluZyBvZiB3b3J0aC4=";

/// A process that answers, until it is dropped.
pub(crate) struct Admin {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Drop for Admin {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

impl Admin {
    /// Starts it with a group of executors, and waits until it answers.
    pub(crate) async fn start(place: &Place) -> Result<Self> {
        std::fs::write(place.folder().join("token"), TOKEN)?;
        command(place, &["executor-group", "add", APP, "--from-file", "token"])?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut program = program(place.folder(), &place.url);
        program.args(["serve", "--quiet", "--http", &address.to_string()]);
        program.stdout(Stdio::null()).stderr(Stdio::null());
        let child = program.spawn().context("start procession serve")?;
        let admin = Self { address, child };
        for _ in 0..400 {
            if TcpStream::connect(address).await.is_ok() {
                return Ok(admin);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("serve does not answer at {address}")
    }

    /// Processor time and memory of it.
    pub(crate) fn process(&self) -> String {
        self.child.id().to_string()
    }
}

fn program(folder: &Path, url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env("PROCESSION_DB", url).env("PROCESSION_SECRET_KEY", KEY);
    command.env("PROCESSION_LANG", "en").stdin(Stdio::null());
    command
}

/// Runs a command of the program to its end, which must be a good one.
pub(crate) fn command(place: &Place, words: &[&str]) -> Result<()> {
    let output = program(place.folder(), &place.url).args(words).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "procession {}: {said}", words.join(" "));
    Ok(())
}

/// The way to an admin: a connection, kept open from one request to the next as long as the admin does.
pub(crate) struct Line {
    to: SocketAddr,
    stream: Option<TcpStream>,
    read: Vec<u8>,
}

impl Line {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self> {
        let mut line = Self { to, stream: None, read: Vec::new() };
        line.stream().await?;
        Ok(line)
    }

    async fn stream(&mut self) -> Result<&mut TcpStream> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.to).await?;
            stream.set_nodelay(true)?;
            self.read.clear();
            self.stream = Some(stream);
        }
        self.stream.as_mut().context("it is there")
    }

    /// Says something under this name; whether it was taken.
    pub(crate) async fn say(&mut self, name: &str, body: &str) -> Result<bool> {
        let said = self.ask(name, body).await;
        if said.is_err() {
            self.stream = None;
        }
        said
    }

    async fn ask(&mut self, name: &str, body: &str) -> Result<bool> {
        let len = body.len();
        let request = format!(
            "POST /xxl-job-admin/api/{name} HTTP/1.1\r\nHost: admin\r\nContent-Type: application/json\r\n\
             XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        self.stream().await?.write_all(request.as_bytes()).await?;
        let answer = self.answer().await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        Ok(answer["code"] == 200)
    }

    /// The body of the next answer.
    async fn answer(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(head) = Head::of(&self.read) {
                let whole = head.end + head.len;
                if self.read.len() >= whole {
                    let body = self.read[head.end..whole].to_vec();
                    self.read.drain(..whole);
                    if head.closes {
                        self.stream = None;
                    }
                    return Ok(body);
                }
            }
            let stream = self.stream.as_mut().context("a request was sent")?;
            ensure!(stream.read_buf(&mut self.read).await? > 0, "the admin hung up");
        }
    }
}

/// Of an answer: where its head ends, how long its body is, and whether no other comes after it.
struct Head {
    end: usize,
    len: usize,
    closes: bool,
}

impl Head {
    fn of(read: &[u8]) -> Option<Self> {
        let end = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let len = value("content-length:").and_then(|len| len.trim().parse().ok()).unwrap_or(0);
        let closes = value("connection:").is_some_and(|word| word.trim() == "close");
        Some(Self { end, len, closes })
    }
}
