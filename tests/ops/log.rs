//! The program's own log, as lines of JSON.

use crate::ops::program::{procession, said, write};
use serde_json::Value;

#[test]
fn a_line_of_the_log_is_an_object_with_its_fields_beside_the_message() {
    let dir = tempfile::tempdir().expect("folder");
    // A warning that is there on purpose.
    write(dir.path(), "procession.toml", "[trace]\nendpoint = \"http://127.0.0.1:9/v1/traces\"\n");
    write(
        dir.path(),
        "d.yaml",
        "groups: { g: { name: G } }\ndefaults: { group: g, type: SCRIPT, interpreter: sh }\n\
         jobs: { A: { script: 'true' } }\n",
    );
    let mut command = procession(dir.path());
    command.args(["--log-format", "json", "run", "d.yaml", "--batch-no", "202407", "--quiet"]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<Value> = lines.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let warning = lines.iter().find(|l| l["level"] == "WARN").expect("a warning");
    assert!(warning["message"].as_str().is_some_and(|m| m.contains("spans")), "{warning}");
    assert!(warning["timestamp"].as_str().is_some_and(|t| t.ends_with('Z')), "{warning}");
}
