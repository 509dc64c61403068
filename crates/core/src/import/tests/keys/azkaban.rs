//! The keys of Azkaban's flows, and the properties of its jobs.

use super::{KeyCase, heard};
use crate::import::System;
use crate::import::azkaban::config::{NOTED, READ};
use crate::import::azkaban::flow2::{FLOW_KEYS, NODE_KEYS};
use crate::import::azkaban::trigger::{DEPENDENCY_KEYS, SCHEDULE_KEYS, TRIGGER_KEYS};
use crate::import::tests::{given, has_note, import_files, import_text, job};

const NODES: &str = "[{name: a, type: noop}]";
const TRIGGER: &str = "{schedule: {type: cron, value: '0 0 2 ? * *'}}";

#[test]
fn keys_of_a_flow_and_of_its_nodes() {
    let case = KeyCase {
        system: System::Azkaban,
        path: "x.flow",
        aliases: &[],
        tables: &[FLOW_KEYS],
        around: &str::to_owned,
        base: &[("nodes", NODES)],
        samples: &[
            ("nodes", "[{name: b, type: noop}]"),
            ("config", "{region: EU}"),
            ("trigger", TRIGGER),
            ("name", "other"),
            ("type", "noop"),
            ("dependsOn", "[a]"),
            ("condition", "one_success"),
        ],
    };
    case.assert_each_key_is_heard();
    KeyCase {
        tables: &[NODE_KEYS],
        around: &|map| format!("{{nodes: [{map}, {{name: z, type: noop}}]}}"),
        base: &[
            ("name", "n"),
            ("type", "command"),
            ("config", "{command: echo}"),
            ("dependsOn", "[z]"),
        ],
        samples: &[
            ("name", "m"),
            ("type", "noop"),
            ("config", "{command: [echo]}"),
            ("dependsOn", "[]"),
            ("condition", "one_success"),
            ("nodes", NODES),
            ("trigger", TRIGGER),
        ],
        ..case
    }
    .assert_each_key_is_heard();
}

#[test]
fn keys_of_a_trigger() {
    let case = KeyCase {
        system: System::Azkaban,
        path: "x.flow",
        aliases: &[],
        tables: &[TRIGGER_KEYS],
        around: &|map| format!("{{trigger: {map}, nodes: {NODES}}}"),
        base: &[("schedule", "{type: cron, value: '0 0 2 ? * *'}")],
        samples: &[
            ("schedule", "{type: cron, value: '0 0 3 ? * *'}"),
            ("maxWaitMins", "5"),
            ("triggerDependencies", "[{name: k, type: kafka}]"),
        ],
    };
    case.assert_each_key_is_heard();
    KeyCase {
        tables: &[SCHEDULE_KEYS],
        around: &|map| format!("{{trigger: {{schedule: {map}}}, nodes: {NODES}}}"),
        base: &[("type", "cron"), ("value", "'0 0 2 ? * *'")],
        samples: &[("type", "fixed"), ("value", "'0 0 3 ? * *'")],
        ..case
    }
    .assert_each_key_is_heard();
    KeyCase {
        tables: &[DEPENDENCY_KEYS],
        around: &|map| {
            format!(
                "{{trigger: {{schedule: {{type: cron, value: '0 0 2 ? * *'}}, triggerDependencies: [{map}]}}, nodes: {NODES}}}"
            )
        },
        base: &[("name", "k"), ("type", "kafka")],
        samples: &[("name", "l"), ("type", "hdfs"), ("params", "{topic: orders}")],
        ..case
    }
    .assert_each_key_is_heard();
}

/// A value for each of Azkaban's properties.
fn value_of(key: &str) -> &'static str {
    match key {
        "type" => "noop",
        "dependencies" | "depends" => "z",
        "condition" => "one_success",
        "retries" | "retry.backoff" => "7000",
        "failure.emails" | "notify.emails" => "ops@bank.example",
        _ => "other",
    }
}

#[test]
fn properties_of_jobs_and_of_folders() {
    let own = |name: &str| if name.ends_with('.') { format!("{name}x") } else { name.to_owned() };
    let told = NOTED.iter().map(|(name, _)| own(name));
    let read = READ.iter().map(|name| (*name).to_owned());
    let names: Vec<String> = told
        .chain(read)
        .chain(["command.1".to_owned(), "env.A".to_owned(), "zz".to_owned()])
        .collect();
    let z = given("p/z.job", "type=noop\n");
    let base = "type=command\ncommand=echo a\n";
    for in_folder in ["", "p/a.properties"] {
        let heard = |more: &str| {
            let mut files = vec![z.clone(), given("p/last.job", "type=noop\ndependencies=a\n")];
            match in_folder {
                "" => files.push(given("p/a.job", &format!("{base}{more}"))),
                path => files.extend([given("p/a.job", base), given(path, more)]),
            }
            heard(System::Azkaban, &files)
        };
        let before = heard("");
        for name in &names {
            let after = heard(&format!("{name}={}\n", value_of(name)));
            assert_ne!(after, before, "{name} in {in_folder:?} is ignored");
        }
    }
}

#[test]
fn mails_come_from_the_last_job_and_variables_from_folders() {
    let files = [
        given("p/a.job", "type=command\ncommand=echo\nfailure.emails=a@bank.example\n"),
        given("p/b.job", "type=noop\ndependencies=a\nfailure.emails=b@bank.example, ops\n"),
        given("p/c.properties", "env.MODE=full\n"),
    ];
    let made = import_files(System::Azkaban, &files).expect("a project");
    assert_eq!(made.definition.groups[0].notify_email, ["b@bank.example"]);
    assert!(has_note(&made, "a", "failure.emails: a@bank.example is left out"), "{:?}", made.notes);
    assert!(has_note(&made, "b", "no addresses: ops"), "{:?}", made.notes);
    let script = job(&made, "a").script.clone().unwrap_or_default();
    assert!(script.contains("export MODE=\"full\"\n"), "{script}");
}

#[test]
fn the_condition_of_an_inner_flow_is_that_of_its_first_jobs() {
    let made = import_text(
        System::Azkaban,
        "x.flow",
        "nodes:\n- {name: a, type: command, config: {command: echo}}\n- name: f\n  type: flow\n  \
         dependsOn: [a]\n  condition: '${a:rows} > 0 && all_done'\n  nodes:\n  - {name: b, type: noop}\n  \
         - {name: c, type: noop, dependsOn: [b]}\n",
    );
    let first = job(&made, "f.b");
    assert_eq!(first.trigger_rule.to_string(), "all_done");
    assert_eq!(first.condition.as_ref().map(ToString::to_string).as_deref(), Some("a.rows > 0"));
    assert!(job(&made, "f.c").condition.is_none());
}
