//! Both sides of XXL-JOB with certificates: `serve` as the admin, `executor` as its executor.

use super::{Authority, Place, Running, curl, eventually, free_port, procession, said, well};
use serde_json::Value;
use std::path::Path;

const TOKEN: &str = "a-token-of-the-team-33";

/// The group of the executor, in whose database it opens batches.
const THERE: &str =
    "groups: { month_end: { type: monthly } }\njobs: { A: { type: NOOP, group: month_end } }\n";

/// The job that asks the executor.
const HERE: &str = r#"
groups: { gl: { type: monthly } }
jobs:
  CLOSE:
    group: gl
    type: HANDLER
    executor: { app: month-end-executor, handler: queueDispatcherHandler, send: text }
    params:
      - { name: p, value: '{"batchNo":"202407","type":"monthly"}' }
"#;

/// The folder of an executor, with settings for both ways.
fn executor(place: &Place, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    place.authority.write(folder.path(), "ca");
    place.authority.issue(folder.path(), "node");
    let text = format!(
        "[http]\nlisten = 'off'\ntls_cert = 'node.pem'\ntls_key = 'node.key'\ntls_client_ca = 'ca.pem'\n\
         [executors]\n{more}\n"
    );
    std::fs::write(folder.path().join("procession.toml"), text).expect("settings");
    std::fs::write(folder.path().join("token"), TOKEN).expect("file");
    std::fs::write(folder.path().join("d.yaml"), THERE).expect("file");
    well(folder.path(), &["apply", "d.yaml"]);
    folder
}

fn start(place: &Place, folder: &Path) -> Running {
    let admin = place.url("/xxl-job-admin");
    let listen = format!("127.0.0.1:{}", free_port());
    let args = [
        "executor",
        "--admin",
        &admin,
        "--appname",
        "month-end-executor",
        "--listen",
        &listen,
        "--token-file",
        "token",
        "--serve",
    ];
    Running::start(folder, &args, "reached at https://127.0.0.1:")
}

fn status(place: &Place) -> Result<(), String> {
    let shown = well(place.path(), &["--json", "batch", "show", "202407"]);
    let document: Value = serde_json::from_str(&shown).expect("JSON");
    match document["status"].as_str() {
        Some("SUCCESS") => Ok(()),
        _ => Err(shown),
    }
}

#[test]
fn admin_and_executor_show_each_other_their_certificates() {
    let place = Place::new(
        "tls_client_ca = 'ca.pem'\n[executors]\ntls_ca = 'ca.pem'\ntls_cert = 'server.pem'\ntls_key = 'server.key'",
    );
    std::fs::write(place.path().join("token"), TOKEN).expect("file");
    std::fs::write(place.path().join("d.yaml"), HERE).expect("file");
    well(place.path(), &["migrate"]);
    well(place.path(), &["executor-group", "add", "month-end-executor", "--from-file", "token"]);
    well(place.path(), &["apply", "d.yaml"]);
    let serving = place.serve();
    // Without a certificate the right token is worth nothing, and that is on record.
    let url = place.url("/xxl-job-admin/api/registry");
    let header = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}");
    let (_, words) = curl(place.path(), &["--cacert", "ca.pem", "-H", &header, "-d", "{}", &url]);
    assert!(words.contains("executors have to show a certificate"), "{words}");
    eventually(|| match well(place.path(), &["--json", "audit", "--action", "xxl-refused"]) {
        acts if acts.contains("certificate") => Ok(()),
        acts => Err(acts),
    });
    let folder = executor(&place, "tls_ca = 'ca.pem'\ntls_cert = 'node.pem'\ntls_key = 'node.key'");
    let running = start(&place, folder.path());
    well(place.path(), &["batch", "open", "--batch-no", "202407", "--group", "gl"]);
    eventually(|| status(&place).map_err(|seen| seen + &running.log() + &serving.log()));
    let there = well(folder.path(), &["--json", "batch", "show", "202407"]);
    assert!(there.contains("SUCCESS"), "{there}");
    // The listener of the executor has no connection for who shows none.
    let address = running.log().split("reached at ").nth(1).expect("an address").to_owned();
    let address: String = address.chars().take_while(|c| *c != ';').collect();
    let (code, words) =
        curl(place.path(), &["--cacert", "ca.pem", "-d", "{}", &format!("{address}beat")]);
    assert!(code != 0 && !words.contains("\"code\""), "{code} {words}");
}

#[test]
fn an_executor_says_why_it_cannot_reach_an_admin() {
    let place = Place::new("tls_client_ca = 'ca.pem'");
    let _serving = place.serve();
    let folder = executor(&place, "");
    let running = start(&place, folder.path());
    running.waits_for("UnknownIssuer");
    drop(running);
    Authority::new().write(folder.path(), "other");
    let text = "[executors]\ntls_ca = 'none.pem'\n";
    std::fs::write(folder.path().join("procession.toml"), text).expect("settings");
    let admin = place.url("");
    let args = ["executor", "--admin", &admin, "--appname", "x-executor", "--token-file", "token"];
    let (code, words) = said(&mut procession(folder.path(), &args));
    assert!(code == 2 && words.contains("executors.tls_ca none.pem: "), "{code} {words}");
}
