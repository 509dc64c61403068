//! The hash chain from outside: the program seals, verifies and exports; Python verifies what was exported.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Verifies an export by nothing but docs/audit.md, and prints its head.
const VERIFIER: &str = r#"
import hashlib, json, sys
head, number, acts = bytes(32), 0, 0
for line in sys.stdin:
    act = json.loads(line)
    if "audit_head" in act:
        wanted = act["audit_head"]
        assert (wanted["seal_no"], wanted["hash"]) == (number, head.hex()), wanted
        continue
    detail = act["detail"]
    if detail is not None:
        detail = json.dumps(detail, separators=(",", ":"), ensure_ascii=False)
    columns = [act["audit_id"], act["actor"], act["host"], act["action"], act["group"], act["batch_id"],
               act["batch_no"], act["job_code"], detail, act["reason"], act["at_ms"]]
    row = hashlib.sha256(b"procession-audit-1")
    for column in columns:
        text = None if column is None else str(column).encode()
        row.update(b"\0" if text is None else b"\1" + len(text).to_bytes(8, "big") + text)
    assert row.hexdigest() == act["row_hash"], act
    number += 1
    acts += 1
    numbers = [number, act["audit_id"], act["at_ms"]]
    head = hashlib.sha256(head + b"".join(n.to_bytes(8, "big", signed=True) for n in numbers) + row.digest()).digest()
    assert (act["seal_no"], act["chain_hash"]) == (number, head.hex()), act
print(f"{acts} {number}:{head.hex()}")
"#;

fn procession(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).args(["--lang", "en"]).args(args).stdin(Stdio::null());
    command
}

fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = procession(folder, args).output().expect("the program");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn well(folder: &Path, args: &[&str]) -> String {
    let (code, out, error) = said(folder, args);
    assert_eq!(code, 0, "{args:?}: {out} {error}");
    out
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// A database with some acts.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    well(folder.path(), &["migrate"]);
    for name in ["ann", "bob"] {
        well(
            folder.path(),
            &["user", "add", name, "--role", "viewer", "--display-name", "安娜 \"A\" \u{7f}\n"],
        );
    }
    let yaml = "groups: {gl: {}}\njobs: {A: {type: NOOP, group: gl}}\n";
    std::fs::write(folder.path().join("d.yaml"), yaml).expect("file");
    well(folder.path(), &["apply", "d.yaml"]);
    well(folder.path(), &["batch", "open", "--batch-no", "202407", "--group", "gl"]);
    well(folder.path(), &["batch", "kill", "202407", "--reason", "a \\ \"test\" 😀"]);
    folder
}

async fn by_hand(folder: &Path, sql: &str) {
    let settings = procession::db::ConnectSettings {
        url: format!("sqlite:{}", folder.join("procession.db").display()).into(),
        password: None,
        rotated_password: None,
        max_connections: 1,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(30),
        may_create: false,
        keeping: procession::db::SessionTimeouts::Usual,
    };
    let db = procession::store::Db::connect(&settings).await.expect("open");
    let mut tx = db.begin().await.expect("begin");
    tx.execute(sql, &[]).await.expect("by hand");
    tx.commit().await.expect("commit");
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_verified_by_others_and_a_change_is_found_here() {
    let folder = place();
    let (code, out, _) = said(folder.path(), &["audit", "verify"]);
    assert!(code == 0 && out.contains("not sealed yet"), "{out}");
    let export = well(folder.path(), &["audit", "export"]);
    std::fs::write(folder.path().join("acts.jsonl"), &export).expect("file");
    let mut python = Command::new("python3");
    python.args(["-c", VERIFIER]);
    python.stdin(std::fs::File::open(folder.path().join("acts.jsonl")).expect("file"));
    let output = python.output().expect("Python");
    let words = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{words} {}", String::from_utf8_lossy(&output.stderr));
    let (acts, head) = words.split_once(' ').expect("a head");
    let wanted = format!(
        "the chain holds: {acts} acts verified, 0 removed by retention, 0 not sealed yet\nhead {head}\n"
    );
    assert_eq!(well(folder.path(), &["audit", "verify", "--head", head]), wanted);
    let number: i64 = acts.parse().expect("a number");
    assert!(number >= 4, "{export}");
    // What comes after an export alone.
    let rest = well(folder.path(), &["audit", "export", "--after", &(number - 1).to_string()]);
    assert_eq!(rest.lines().count(), 2, "an act and the head: {rest}");
    assert_eq!(
        well(folder.path(), &["audit", "export", "--since", "2100-01-01"]).lines().count(),
        1
    );
    let (code, _, error) = said(folder.path(), &["audit", "export", "--after", "999"]);
    assert!(code == 2 && error.contains("the chain does not reach so far"), "{error}");
    let (code, _, error) = said(folder.path(), &["audit", "verify", "--head", "7"]);
    assert!(code == 2 && error.contains("write NUMBER:HASH"), "{error}");
    by_hand(folder.path(), "UPDATE audit_log SET actor = 'eve' WHERE audit_id = 2").await;
    let (code, out, _) = said(folder.path(), &["audit", "verify"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("BROKEN: act 2 (seal 2) is not what was sealed"), "{out}");
    let (code, out, _) = said(folder.path(), &["--json", "audit", "verify"]);
    assert!(code == 1 && out.contains("\"holds\": false"), "{out}");
}

#[expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]
#[test]
fn serve_seals_by_itself_and_an_export_follows() {
    let folder = place();
    let mut serve = procession(folder.path(), &["serve", "--http", "127.0.0.1:0", "-q"]);
    let serving = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("serve");
    let _serving = Running(serving);
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        let (_, out, error) = said(folder.path(), &["--json", "audit", "verify"]);
        if out.contains("\"not_sealed_yet\": 0") {
            break;
        }
        assert!(Instant::now() < end, "{out} {error}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut follow = procession(folder.path(), &["audit", "export", "--follow"]);
    let mut following = Running(follow.stdout(Stdio::piped()).spawn().expect("follow"));
    let mut lines = BufReader::new(following.0.stdout.take().expect("lines")).lines();
    let mut until = |words: &str| {
        let found = lines.by_ref().map_while(Result::ok).find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("no {words}"))
    };
    until("audit_head");
    well(folder.path(), &["user", "add", "carl", "--role", "viewer"]);
    assert!(until("carl").contains("\"chain_hash\""));
    until("audit_head");
}
