//! `import` of schedulers that keep their jobs in a database, from the real ones: events of the server, pg_cron and pgAgent
//! as Debian has them, which `scripts/test-schedulers.sh` installs. What they would fire next is what the definition fires.

mod agents;
mod events;
mod quartz;
mod workflows;

use crate::xxl_import::said;
use procession::definition::load_definition;
use procession::domain::calendar::Calendars;
use procession::domain::job::Definition;
use procession::domain::schedule::Anchor;
use procession::domain::time::Millis;
use procession::domain::time::local_time::wall_at;
use serde_json::Value;
use std::path::Path;

/// Imports with flags into `out` of a folder; the document that is printed.
fn imported(folder: &Path, args: &[&str]) -> Value {
    let args = [&["--json", "import"], args, &["--out", "out"]].concat();
    let (code, out, err) = said(folder, &args);
    assert_eq!(code, 0, "{args:?}\n{out}\n{err}");
    let (code, checked, err) = said(folder, &["check", "out/definition.yaml"]);
    assert_eq!(code, 0, "{checked}\n{err}");
    serde_json::from_str(&out).expect("JSON")
}

fn text(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn definition(folder: &Path) -> Definition {
    let path = folder.join("out/definition.yaml");
    let read = |path: &Path| std::fs::read_to_string(path);
    let loaded = load_definition(&path, &read, &procession::app::job_kinds());
    loaded.unwrap_or_else(|faults| panic!("{faults}")).definition
}

/// The next times of all schedules of a group together, by the wall clock of their zone: `2026-11-27 02:00:00`.
fn next_times(defs: &Definition, group: &str, now: Millis, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    let own = |trigger: &&procession::domain::schedule::trigger::TriggerDef| {
        trigger.group().is_some_and(|g| g.as_str() == group)
    };
    for trigger in defs.schedules.iter().filter(own) {
        let mut after = now;
        for _ in 0..count {
            let found = trigger.timing.next_after(&Calendars::default(), after, Anchor::new(now));
            let Some(found) = found.expect("it can be asked") else { break };
            after = found.planned;
            all.push(wall_at(after, trigger.timing.zone).format("%Y-%m-%d %H:%M:%S").to_string());
        }
    }
    all.sort();
    all.truncate(count);
    all
}

/// The line of the report that counts a kind.
fn count(document: &Value, kind: &str) -> [u64; 4] {
    let all = document["counts"].as_array().expect("counts");
    let found = all.iter().find(|count| count["kind"] == kind).expect("this kind");
    ["read", "carried", "changed", "left_out"].map(|key| found[key].as_u64().expect("a number"))
}

/// Whether a note about a thing has these words.
fn has_note(document: &Value, about: &str, words: &str) -> bool {
    let all = document["notes"].as_array().expect("notes");
    let is = |note: &&Value| {
        note["about"] == about
            && note["message"]["en"].as_str().is_some_and(|said| said.contains(words))
    };
    all.iter().any(|note| is(&note))
}
