//! The program itself: what it is started with, and that it says goodbye.

use crate::xxl::admin::{Admin, TOKEN};
use crate::xxl::desk::{APP, JULY, asked, post};
use procession::wire::xxl::XxlDialect;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The program with a database in `dir`.
fn executor(dir: &Path, token: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(dir).args(["--lang", "en", "--db", "sqlite:p.db"]);
    command.env("PROCESSION_XXL_TOKEN", token).args(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[test]
fn it_does_not_start_with_what_everybody_knows() {
    let dir = tempfile::tempdir().expect("folder");
    let plain = ["executor", "--admin", "http://127.0.0.1:1/xxl-job-admin", "--appname", APP];
    for (token, more, said) in [
        ("", &["--listen", "127.0.0.1:0"][..], "there is no token"),
        ("default_token", &["--listen", "127.0.0.1:0"], "everybody knows"),
        ("fifteen-chars-x", &["--listen", "127.0.0.1:0"], "less than 16 characters"),
        (TOKEN, &["--listen", "0.0.0.0:0"], "say which one the admin is to use"),
        (TOKEN, &["--listen", "127.0.0.1:0", "--admin-version", "1.9"], "is not known"),
        (
            TOKEN,
            &["--listen", "127.0.0.1:0", "--address", "batch-1:9999"],
            "--address must be the URL",
        ),
        (TOKEN, &["--listen", "127.0.0.1:0", "--token-file", "none"], "--token-file none"),
    ] {
        let args = [&plain[..], more].concat();
        let output = executor(dir.path(), token, &args).output().expect("run");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(said), "{words}");
        assert!(token.len() < 16 || !words.contains(token), "{words}");
    }
}

const DEFINITION: &str =
    "groups: { month_end: { type: monthly } }\njobs: { A: { type: NOOP, group: month_end } }\n";

#[tokio::test(flavor = "multi_thread")]
async fn it_registers_runs_what_it_is_asked_and_says_goodbye() {
    let admin = Admin::of(XxlDialect::D2).await;
    let dir = tempfile::tempdir().expect("folder");
    std::fs::write(dir.path().join("d.yaml"), DEFINITION).expect("file");
    let applied = executor(dir.path(), "", &["apply", "d.yaml"]).status().expect("apply");
    assert!(applied.success());
    let url = admin.url();
    let args =
        ["executor", "--admin", &url, "--appname", APP, "--listen", "127.0.0.1:0", "--serve"];
    let mut running = Running(executor(dir.path(), TOKEN, &args).spawn().expect("start"));
    let mut said = BufReader::new(running.0.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains("reached at") {
        assert!(said.read_line(&mut line).expect("a line") > 0, "{line}");
    }
    let address = line.split("reached at http://").nth(1).and_then(|rest| rest.split('/').next());
    let door = address.and_then(|a| a.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    let token = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let answer = post(door, "/run", &token, &asked(7, 101, JULY).to_string()).await;
    assert!(answer.contains("\"code\":200"), "{answer}");
    until(|| !admin.taken().is_empty()).await;
    let said_so = "batch 202407 of month_end ended SUCCESS: 1 SUCCESS";
    assert_eq!(admin.taken(), [(101, 200, said_so.to_owned())]);
    assert_eq!(admin.heard("registry")[0].body["registryValue"], format!("http://{door}/"));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(running.0.id()).expect("pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("TERM");
    let status = running.0.wait().expect("end");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("words");
    assert!(status.success(), "{rest}");
    assert_eq!(admin.heard("registryRemove").len(), 1);
    assert!(!rest.contains(TOKEN) && !line.contains(TOKEN));
}

/// Waits for another process; a bounded loop, not a sleep.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..800 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came");
}
