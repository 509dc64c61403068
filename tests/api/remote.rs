//! `--server`: the program itself, asking a door that is open.

use crate::api::server::Server;
use procession::api::Door;
use procession::domain::access::{Permission, Role};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use tokio_util::sync::CancellationToken;

const GL: &str = "
groups: {gl: {}}
jobs:
  - {code: A, group: gl, type: NOOP}
  - {code: B, group: gl, type: NOOP}
dependencies: [{job_code: B, depends_on: A}]
";

/// A door, and what is said through it.
struct Remote {
    address: SocketAddr,
    token: String,
    folder: tempfile::TempDir,
    stop: CancellationToken,
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn remote(server: &Server, token: String) -> Remote {
    let door = Door::open_socket(([127, 0, 0, 1], 0).into()).await.expect("a door");
    let (address, stop) = (door.address(), CancellationToken::new());
    tokio::spawn(door.attend(server.house.clone(), stop.clone()));
    Remote { address, token, folder: tempfile::tempdir().expect("a folder"), stop }
}

impl Remote {
    /// Exit code, standard output and standard error of the program.
    async fn say(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command.args(words).arg("--server").arg(format!("http://{}", self.address));
        command.env("PROCESSION_TOKEN", &self.token).env("LC_ALL", "C");
        command.current_dir(self.folder.path()).stdin(std::process::Stdio::null());
        let done = tokio::task::spawn_blocking(move || command.output()).await.expect("a thread");
        let done = done.expect("the program");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code().unwrap_or(-1), text(&done.stdout), text(&done.stderr))
    }

    async fn json(&self, words: &[&str]) -> Value {
        let (code, out, err) = self.say(&[words, &["--json"]].concat()).await;
        assert_eq!(code, 0, "{words:?}: {err}");
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?}: {e}: {out}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_asks_a_server_in_place_of_a_database() {
    let server = Server::new().await;
    let far = remote(&server, server.admin().await).await;
    std::fs::write(far.folder.path().join("dag.yaml"), GL).expect("a file");
    assert_eq!(far.say(&["diff", "dag.yaml"]).await.0, 1, "it differs");
    let (code, out, err) = far.say(&["apply", "dag.yaml", "--remark", "first"]).await;
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("4 changes applied"), "{out}");
    assert_eq!(far.say(&["diff", "dag.yaml"]).await.0, 0, "it is stored");
    let opened = far.json(&["batch", "open", "--batch-no", "202407", "--group", "gl"]).await;
    assert_eq!(opened[0]["batch_no"], "202407");
    let all = far.json(&["batch", "list"]).await;
    assert_eq!(all[0]["group"], "gl", "{all}");
    let held = far.json(&["job", "hold", "202407", "A", "--reason", "wait"]).await;
    assert_eq!((&held["written"], &held["lines"][0]["to"]), (&true.into(), &"HELD".into()));
    let (code, out, _) = far.say(&["job", "release", "202407", "A", "--reason", "go"]).await;
    assert_eq!((code, out.contains("PENDING")), (0, true), "{out}");
    let (code, out, _) = far.say(&["batch", "show", "202407"]).await;
    assert_eq!((code, out.contains("status: RUNNING")), (0, true), "{out}");
    let acts = far.json(&["audit"]).await;
    assert_eq!(acts[0]["action"], "release", "{acts}");
    assert_eq!(far.say(&["batch", "pause", "202407", "--reason", "x"]).await.0, 0);
    let (code, _, err) = far.say(&["batch", "pause", "202407", "--reason", "x"]).await;
    assert_eq!((code, err.contains("paused already")), (2, true), "{err}");
    assert_eq!(far.say(&["batch", "show", "209912"]).await.0, 2);
    let (code, _, err) = far.say(&["migrate"]).await;
    assert_eq!((code, err.contains("not through --server")), (2, true), "{err}");
    std::fs::write(far.folder.path().join("bad.yaml"), "jobs: 7\n").expect("a file");
    assert_eq!(far.say(&["apply", "bad.yaml"]).await.0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_done_is_the_users_and_no_answer_is_not() {
    let server = Server::new().await;
    server.apply(GL).await;
    let token = server.token(&[("gl", Role::Viewer, &[] as &[Permission])]).await;
    let mut far = remote(&server, token).await;
    let (code, _, err) = far.say(&["batch", "open", "--batch-no", "1", "--group", "gl"]).await;
    assert_eq!((code, err.contains("permission `run`")), (2, true), "{err}");
    far.token = "pcs_nonsense".to_owned();
    assert_eq!(far.say(&["batch", "list"]).await.0, 2);
    far.address.set_port(1);
    let (code, _, err) = far.say(&["batch", "list"]).await;
    assert_eq!((code, err.contains("no answer")), (3, true), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_name_says_which_batch_is_meant() {
    let server = Server::new().await;
    let far = remote(&server, server.admin().await).await;
    let yaml = "groups: { a: {}, b: {} }\ndefaults: { type: NOOP }\njobs:\n  - { code: LOAD, group: a }\n  \
                - { code: LOAD, group: b }\n  - { code: ONLY, group: b }\n";
    std::fs::write(far.folder.path().join("dag.yaml"), yaml).expect("a file");
    assert_eq!(far.say(&["apply", "dag.yaml"]).await.0, 0);
    for group in ["a", "b"] {
        far.json(&["batch", "open", "--batch-no", "202407", "--group", group]).await;
    }
    let both = "LOAD is in groups a and b; write a.LOAD or b.LOAD, or add --group";
    for words in [
        &["logs", "202407", "LOAD"][..],
        &["job", "hold", "202407", "LOAD", "--reason", "x"],
        &["job", "ice", "202407", "LOAD", "--reason", "x"],
        &["batch", "rerun", "202407", "--jobs", "LOAD", "--reason", "x"],
        &["dag", "--batch", "202407", "--focus", "LOAD"],
    ] {
        let (code, _, err) = far.say(words).await;
        assert_eq!((code, err.contains(both)), (2, true), "{words:?}: {err}");
    }
    let held = far.json(&["job", "hold", "202407", "b.LOAD", "--reason", "wait"]).await;
    assert_eq!(held["lines"][0]["to"], "HELD", "{held}");
    let state = async |group: &str| {
        let batch = far.json(&["batch", "show", "202407", "--group", group]).await;
        batch["jobs"][0]["status"].clone()
    };
    assert_eq!([state("a").await, state("b").await], ["PENDING", "HELD"]);
    for words in [
        &["logs", "202407", "a.LOAD"][..],
        &["logs", "202407", "ONLY"],
        &["dag", "--batch", "202407", "--focus", "a.LOAD"],
    ] {
        let (code, _, err) = far.say(words).await;
        assert_eq!(code, 0, "{words:?}: {err}");
    }
    let acts = far.json(&["audit", "--job", "b.LOAD"]).await;
    assert_eq!((acts[0]["action"].as_str(), acts[0]["group"].as_str()), (Some("hold"), Some("b")));
    assert_eq!(far.json(&["audit", "--job", "a.LOAD"]).await.as_array().map(Vec::len), Some(0));
}
