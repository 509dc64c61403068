//! `import --paused`: what is applied does not fire until its schedule is resumed, with the real program.

use crate::cli::{procession, said};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Two chains that fire each second, and one that is switched off.
const CHAINS: &str = "\
chains:
- {name: first, schedule: '@every 1 second', live: true, tasks: [{kind: BUILTIN, command: NoOp}]}
- {name: second, schedule: '@every 1 second', live: true, tasks: [{kind: BUILTIN, command: NoOp}]}
- {name: off, schedule: '0 2 * * *', tasks: [{kind: BUILTIN, command: NoOp}]}
";

/// A serving process, which ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn well(path: &Path, args: &[&str]) -> String {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 0, "{args:?}: {shown}{told}");
    shown
}

fn json(path: &Path, args: &[&str]) -> Value {
    let shown = well(path, &[&["--json"], args].concat());
    serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{args:?}: {e}: {shown}"))
}

/// Codes and states of all schedules.
fn states(path: &Path) -> Vec<String> {
    let list = json(path, &["schedule", "list"]);
    let state = |s: &Value| {
        let text = |v: &Value| v.as_str().map(str::to_owned).unwrap_or_default();
        format!("{} {}", text(&s["schedule"]["code"]), text(&s["status"]))
    };
    list.as_array().expect("a list").iter().map(state).collect()
}

fn batches(path: &Path, group: &str) -> usize {
    let list = json(path, &["batch", "list"]);
    list.as_array().expect("a list").iter().filter(|batch| batch["group"] == group).count()
}

#[test]
fn nothing_fires_until_its_schedule_is_resumed() {
    let home = tempfile::tempdir().expect("folder");
    let path = home.path();
    std::fs::write(path.join("chains.yaml"), CHAINS).expect("file");
    let import = ["import", "pg-timetable", "chains.yaml", "--zone", "UTC"];
    let document = json(path, &[&import[..], &["--paused", "--out", "out"]].concat());
    let commands = ["first", "second"]
        .map(|code| format!("procession schedule resume {code} --reason 'moved here'"));
    assert_eq!(document["resume_commands"], serde_json::json!(commands));
    let report = std::fs::read_to_string(path.join("out/import-report.md")).expect("report");
    assert!(commands.iter().all(|command| report.contains(command)), "{report}");
    well(path, &["check", "out/definition.yaml"]);
    well(path, &["apply", "out/definition.yaml"]);
    // What was switched off there fires by hand alone.
    assert_eq!(states(path), ["first PAUSED", "off ENABLED", "second PAUSED"]);
    let serve = procession(path)
        .args(["serve", "--http", "off"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _serving = Serving(serve.expect("it starts"));
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!((batches(path, "first"), batches(path, "second")), (0, 0));
    well(path, &["schedule", "resume", "first", "--reason", "moved here"]);
    let fires = (0..240).any(|_| {
        std::thread::sleep(Duration::from_millis(250));
        batches(path, "first") > 1
    });
    assert!(fires, "{}", well(path, &["schedule", "show", "first"]));
    assert_eq!(batches(path, "second"), 0);
    // Applied again, what was resumed goes on.
    let again = well(path, &["apply", "out/definition.yaml"]);
    assert_eq!(again.trim(), "no changes");
    assert_eq!(states(path), ["first ENABLED", "off ENABLED", "second PAUSED"]);
}
