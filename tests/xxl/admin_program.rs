//! Groups of executors from the command line, and the program that hears them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// 32 bytes.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

pub(crate) fn procession(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(dir).args(["--lang", "en", "--db", "sqlite:p.db"]).args(args);
    command.env("PROCESSION_SECRET_KEY", KEY);
    command
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub(crate) fn ask(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    said(&procession(dir, args).output().expect("run"))
}

#[test]
fn groups_are_added_changed_and_removed() {
    let dir = tempfile::tempdir().expect("folder");
    assert_eq!(ask(dir.path(), &["migrate"]).0, Some(0));
    let (code, token, words) =
        ask(dir.path(), &["executor-group", "add", "pay-executor", "--title", "支付"]);
    assert_eq!((code, token.len()), (Some(0), 43), "{words}");
    assert!(words.contains("shown now and never again"), "{words}");
    let (code, _, words) = ask(dir.path(), &["executor-group", "add", "pay-executor"]);
    assert!(code == Some(2) && words.contains("already"), "{words}");
    for (file, said) in [
        ("short", "fewer than 16 characters"),
        ("xxl-job-access-token", "everybody knows"),
        ("blanks in a token are odd", "visible ASCII"),
    ] {
        std::fs::write(dir.path().join("t"), format!("{file}\n")).expect("file");
        let args = ["executor-group", "add", "stock-executor", "--from-file", "t"];
        let (code, _, words) = ask(dir.path(), &args);
        assert!(code == Some(2) && words.contains(said) && !words.contains(file), "{words}");
    }
    let (code, out, words) = ask(dir.path(), &["--json", "executor-group", "add", "log-executor"]);
    let told: serde_json::Value = serde_json::from_str(&out).expect("what a script reads");
    assert_eq!((code, &told["app_name"]), (Some(0), &"log-executor".into()), "{words}");
    assert_eq!(told["token"].as_str().map(str::len), Some(43));
    assert_eq!(ask(dir.path(), &["executor-group", "remove", "log-executor"]).0, Some(0));
    let other = a_second_group_is_made_and_removed(dir.path(), &token);
    no_token_is_kept_as_it_is(dir.path(), &[&token, &other, "a-token-of-the-team"]);
    let mut keyless = procession(dir.path(), &["executor-group", "token", "pay-executor"]);
    let (code, _, words) =
        said(&keyless.env_remove("PROCESSION_SECRET_KEY").output().expect("run"));
    assert!(code == Some(2) && words.contains("procession secret key"), "{words}");
}

/// Gives the token that the first group was given anew.
fn a_second_group_is_made_and_removed(dir: &Path, token: &str) -> String {
    std::fs::write(dir.join("t"), "a-token-of-the-team\n").expect("file");
    let args = [
        "executor-group",
        "add",
        "stock-executor",
        "--from-file",
        "t",
        "--allow-glue",
        "--address",
        "http://10.0.0.7:9999/",
        "--address",
        "http://10.0.0.6:9999",
    ];
    let (code, out, words) = ask(dir, &args);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{words}");
    let args =
        ["executor-group", "add", "bad-executor", "--address", "http://user:hunter22@10.0.0.7"];
    let (code, _, words) = ask(dir, &args);
    assert!(
        code == Some(2) && words.contains("address 1") && !words.contains("hunter22"),
        "{words}"
    );
    // The listener of Procession itself, at its usual address: nothing there is an executor.
    for own in ["http://127.0.0.1:8088", "http://localhost:8088/x"] {
        let args = ["executor-group", "add", "bad-executor", "--address", own];
        let (code, _, words) = ask(dir, &args);
        assert!(code == Some(2) && words.contains("is Procession itself"), "{words}");
    }
    let (_, out, _) = ask(dir, &["--json", "executor-group", "list"]);
    let all: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(all[0]["title"], "支付");
    assert_eq!(
        all[1]["addresses"],
        serde_json::json!(["http://10.0.0.6:9999", "http://10.0.0.7:9999"])
    );
    assert_eq!((&all[0]["allows_glue"], &all[1]["allows_glue"]), (&false.into(), &true.into()));
    let set = ["executor-group", "set", "stock-executor", "--registered", "--refuse-glue"];
    assert_eq!(ask(dir, &set).0, Some(0));
    let (_, out, _) = ask(dir, &["--json", "executor-group", "show", "stock-executor"]);
    let group: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (&group["addresses"], &group["allows_glue"]),
        (&serde_json::Value::Null, &false.into())
    );
    let (code, other, _) = ask(dir, &["executor-group", "token", "pay-executor"]);
    assert!(code == Some(0) && other.len() == 43 && other != token);
    assert_eq!(ask(dir, &["executor-group", "remove", "stock-executor"]).0, Some(0));
    let (code, _, words) = ask(dir, &["executor-group", "show", "stock-executor"]);
    assert!(
        code == Some(2) && words.contains("there is no executor group stock-executor"),
        "{words}"
    );
    other
}

/// Neither in the audit log nor in the database.
fn no_token_is_kept_as_it_is(dir: &Path, tokens: &[&str]) {
    let (_, audit, _) = ask(dir, &["--json", "audit"]);
    for act in ["add", "set", "token", "remove"] {
        assert!(audit.contains(&format!("executor-group {act}")), "{audit}");
    }
    for secret in tokens {
        assert!(!audit.contains(secret), "{audit}");
        let mut rows = Vec::new();
        for file in ["p.db", "p.db-wal"] {
            let _none = std::fs::File::open(dir.join(file)).map(|mut f| f.read_to_end(&mut rows));
        }
        let rows = String::from_utf8_lossy(&rows).into_owned();
        assert!(!rows.contains(secret), "a token stands in the database as it is");
    }
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn post(door: &str, token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(door).expect("connect");
    let len = body.len();
    let head = format!(
        "POST /xxl-job-admin/api/registry HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n"
    );
    let request = format!("{head}Content-Length: {len}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn serve_hears_executors_and_its_log_holds_no_token() {
    let dir = tempfile::tempdir().expect("folder");
    assert_eq!(ask(dir.path(), &["migrate"]).0, Some(0));
    let (_, token, _) = ask(dir.path(), &["executor-group", "add", "pay-executor"]);
    let serve = ["-vv", "--log-format", "json", "serve", "--http", "127.0.0.1:0"];
    let mut command = procession(dir.path(), &serve);
    command.env("RUST_LOG", "trace").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("start"));
    let mut lines = BufReader::new(running.0.stderr.take().expect("stderr")).lines();
    let (mut log, mut door) = (String::new(), None);
    for line in lines.by_ref().map_while(Result::ok) {
        log.push_str(&line);
        door = line.split("http://127.0.0.1:").nth(1).map(|rest| {
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            format!("127.0.0.1:{port}")
        });
        if door.is_some() {
            break;
        }
    }
    let door = door.unwrap_or_else(|| panic!("no door: {log}"));
    let reader =
        std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    let body = r#"{"registryGroup":"EXECUTOR","registryKey":"pay-executor","registryValue":"http://127.0.0.1:9999/"}"#;
    let answer = post(&door, &token, body);
    assert!(answer.contains(r#""code":200"#), "{answer}");
    let own = body.replace("127.0.0.1:9999/", &door);
    let answer = post(&door, &token, &own);
    assert!(answer.contains("is Procession itself"), "{answer}");
    let forged = "a-token-that-is-not-the-right-one";
    let answer = post(&door, forged, body);
    assert!(answer.contains("The access token is wrong."), "{answer}");
    let (_, out, _) = ask(dir.path(), &["executor-group", "show", "pay-executor"]);
    assert!(out.contains("http://127.0.0.1:9999") && out.contains("there"), "{out}");
    drop(running);
    log.push_str(&reader.join().expect("the rest of the log"));
    assert!(log.contains("somebody was refused"), "{log}");
    for secret in [token.as_str(), forged, KEY] {
        assert!(!log.contains(secret), "a secret stands in the log");
    }
}

/// A batch of its own process has no door: whether somebody else hears its executors is said before it waits
/// for them.
#[test]
fn run_says_when_nobody_hears_executors() {
    let dir = tempfile::tempdir().expect("folder");
    let job = "groups: { pay: {} }\ndefaults: { group: pay }\njobs:\n  PAY: { type: HANDLER, executor: { app: \
               pay-executor, handler: h } }\n";
    std::fs::write(dir.path().join("d.yaml"), job).expect("file");
    let run = |no| ask(dir.path(), &["run", "d.yaml", "--batch-no", no, "--quiet"]);
    let warned = "warning: PAY calls an executor of XXL-JOB, and nobody hears how its run ends";
    let (code, _, words) = run("202407");
    assert!(code == Some(1) && words.contains(warned), "{code:?} {words}");
    let mut serve = procession(dir.path(), &["serve", "--http", "127.0.0.1:0"]);
    serve.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(serve.spawn().expect("start"));
    let lines = BufReader::new(running.0.stderr.take().expect("stderr")).lines();
    let is_there = lines.map_while(Result::ok).any(|line| line.contains("http://127.0.0.1:"));
    assert!(is_there, "it opens its door");
    let (code, _, words) = run("202408");
    assert!(code == Some(1) && !words.contains("nobody hears"), "{code:?} {words}");
}
