//! Flows that nobody here wrote: each is turned into our format and must get upstream's verdict.

use procession::definition::{Faults, Loaded, load_definition};
use procession::domain::job::JobKind;
use procession::picture::{DagView, Drawn, Wishes, format};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::Path;

const FLOWS: &str = include_str!("../data/05_azkaban_validation_fixtures.json");
const CLOSE: &str = include_str!("../data/01_netsuite_period_close.json");

/// The flows test the graph and not the bodies, so every node becomes a milestone.
const KINDS: &[JobKind] = &[JobKind { name: "NOOP", about: "Does nothing.", ..JobKind::PLAIN }];

/// What our sentence must hold for each of upstream's reasons to refuse a flow; those about conditions
/// have no reason in the fixtures and go by their case.
const REASONS: [(&str, &str); 8] = [
    (
        "cycle",
        "wait for one another in a circle: shell_echo -> shell_pwd -> shell_bash -> shell_echo",
    ),
    ("dangling_dependency", "job shell_end depends on shell_bash, which is not defined"),
    ("duplicate_job_code", "job shell_echo is defined twice"),
    ("condition_on_descendant", "if asks for jobD.param, and jobD does not run before it"),
    ("empty_operand", "job jobB: if: condition, column"),
    ("invalid_variable_substitution", "job jobB: if: condition, column"),
    ("job_not_exist", "if asks for jobC.param, which is no output of a job"),
    ("multiple_condition_on_job_status_macros", "trigger_rule"),
];

fn check(text: &str) -> Result<Loaded, Faults> {
    let read = |path: &Path| match path.to_str() {
        Some("flow.json") => Ok(text.to_owned()),
        _ => Err(Error::from(ErrorKind::NotFound)),
    };
    load_definition(Path::new("flow.json"), &read, KINDS)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn parents(node: &Value) -> Vec<&str> {
    node["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A node as jobs of ours: itself, or, when it is a flow, what is inside it under its name. Jobs
/// inside that wait for nothing there wait for what the flow waits for; who waits for the flow
/// waits for its last jobs.
fn flatten(nodes: &[Value], prefix: &str, above: &[String], jobs: &mut Vec<Value>) {
    for node in nodes {
        let code = format!("{prefix}{}", text(node, "name"));
        let own = parents(node);
        let mut waits: Vec<String> = own.iter().flat_map(|p| last_jobs(nodes, prefix, p)).collect();
        if own.is_empty() {
            waits.extend_from_slice(above);
        }
        match node["nodes"].as_array() {
            Some(inner) => flatten(inner, &format!("{code}."), &waits, jobs),
            None => {
                let mut job = json!({"code": code, "type": "NOOP", "depends_on": waits});
                if let Some(condition) = node["condition"].as_str() {
                    conditions(condition, &mut job);
                }
                jobs.push(job);
            }
        }
    }
}

/// The codes to wait for when `name` is waited for: itself, or the leaves of the flow it is.
fn last_jobs(nodes: &[Value], prefix: &str, name: &str) -> Vec<String> {
    let code = format!("{prefix}{name}");
    let inner = nodes.iter().find(|n| text(n, "name") == name).and_then(|n| n["nodes"].as_array());
    let Some(inner) = inner else {
        return vec![code];
    };
    let waited_for: BTreeSet<&str> = inner.iter().flat_map(parents).collect();
    let leaves = inner.iter().map(|n| text(n, "name")).filter(|n| !waited_for.contains(n));
    leaves.flat_map(|leaf| last_jobs(inner, &format!("{code}."), leaf)).collect()
}

/// A condition of theirs as ours: the macro over the parents' states is a trigger rule, the rest a
/// condition on outputs with `${job:output}` as `job.output`. What is neither is handed on as it is.
fn conditions(condition: &str, job: &mut Value) {
    const MACROS: [&str; 6] =
        ["all_success", "all_done", "all_failed", "one_failed", "one_success", "none_failed"];
    let parts: Vec<&str> = condition.split("&&").map(str::trim).collect();
    let (rules, rest): (Vec<&str>, Vec<&str>) = parts
        .into_iter()
        .partition(|p| MACROS.contains(&p.split([' ', '|']).next().unwrap_or_default()));
    if !rules.is_empty() {
        job["trigger_rule"] = json!(rules.join(" && "));
    }
    if !rest.is_empty() {
        let ours =
            rest.join(" and ").replace("||", " or ").replace("${", "").replace("!(", "not (");
        let names = ours.split(' ').map(|word| match word.split_once(':') {
            Some((code, output)) => format!("{code}.{}", output.trim_end_matches('}')),
            None => word.to_owned(),
        });
        job["if"] = json!(names.collect::<Vec<_>>().join(" "));
    }
}

fn flow(case: &Value) -> String {
    let mut jobs = Vec::new();
    flatten(case["nodes"].as_array().expect("nodes"), "", &[], &mut jobs);
    serde_json::to_string_pretty(&json!({ "jobs": jobs })).expect("JSON")
}

fn cases() -> Vec<Value> {
    let all: Value = serde_json::from_str(FLOWS).expect("fixtures");
    let all = all["cases"].as_array().expect("cases").clone();
    assert_eq!(all.len(), 24);
    all
}

#[test]
fn every_flow_gets_the_verdict_of_upstream() {
    let (mut accepted, mut refused) = (0, 0);
    for case in cases() {
        let name = text(&case, "case");
        match (text(&case, "expect"), check(&flow(&case))) {
            ("accept", Ok(_)) => accepted += 1,
            ("reject", Err(faults)) => {
                let why = match text(&case, "why") {
                    "cycle" | "dangling_dependency" | "duplicate_job_code" => text(&case, "why"),
                    _ => name.rsplit('/').next().unwrap_or_default(),
                };
                let reason = REASONS.iter().find(|(key, _)| *key == why);
                let (_, words) = reason.unwrap_or_else(|| panic!("{name}: no words for {why}"));
                assert_eq!(faults.as_slice().len(), 1, "{name}: {faults}");
                assert!(faults.to_string().contains(words), "{name}: {faults}");
                refused += 1;
            }
            (expected, Ok(_)) => panic!("{name}: upstream says {expected}, we accept"),
            (expected, Err(faults)) => panic!("{name}: upstream says {expected}, we say {faults}"),
        }
    }
    assert_eq!((accepted, refused), (16, 8));
}

#[test]
fn nested_flows_keep_their_order_when_flattened() {
    let all = cases();
    let case = all.iter().find(|c| text(c, "case") == "embedded4/valid_dag_2").expect("case");
    let loaded = check(&flow(case)).unwrap_or_else(|faults| panic!("{faults}"));
    let definition = loaded.definition;
    // 25 nodes upstream, of which 5 are flows.
    assert_eq!(definition.jobs.len(), 20);
    let edges: BTreeSet<(&str, &str)> = definition
        .dependencies
        .iter()
        .map(|d| (d.job_code.as_str(), d.depends_on.as_str()))
        .collect();
    for edge in [
        ("valid_dag_5.valid_dag_6.task_6_1", "valid_dag_5.task_5_2"),
        ("valid_dag_5.task_5_3", "valid_dag_5.valid_dag_6.task_6_4"),
        ("valid_dag_5.task_5_1", "task_2_2"),
        ("_end_", "local_emb_2.task_2a"),
        ("_end_", "valid_dag_4.task_4_3"),
    ] {
        assert!(edges.contains(&edge), "{edge:?} is missing");
    }
}

#[test]
fn a_period_close_of_sixty_nine_jobs_is_accepted_and_drawn() {
    let close: Value = serde_json::from_str(CLOSE).expect("workload");
    let jobs: Vec<Value> = close["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|j| json!({"code": j["job_code"], "type": "NOOP", "tags": [j["group"]]}))
        .collect();
    let definition = json!({"jobs": jobs, "dependencies": close["dependencies"]}).to_string();
    let loaded = check(&definition).unwrap_or_else(|faults| panic!("{faults}"));
    let d = loaded.definition;
    assert_eq!((d.jobs.len(), d.dependencies.len()), (69, 89));
    let snapshot = procession::domain::batch::Snapshot {
        calendars: Default::default(),
        group: d.groups[0].clone(),
        jobs: d.jobs,
        dependencies: d.dependencies,
        sources: d.sources,
        externals: d.externals,
        shared: d.shared,
    };
    let dag = snapshot.build_dag().expect("acyclic");
    let view = DagView::of_batch("close", &snapshot, &dag, None);
    let drawing = format("native").expect("native").draw_view(&view, Wishes::default());
    let Drawn::Json(document) = drawing.drawn() else { panic!("native is JSON") };
    let picture = serde_json::to_value(&document).expect("JSON");
    let levels = picture["nodes"].as_array().expect("nodes").iter();
    let deepest = levels.filter_map(|n| n["level"].as_u64()).max();
    assert_eq!(deepest.map(|d| d + 1), close["stats"]["depth"].as_u64());
    assert_eq!(picture["edges"].as_array().map(Vec::len), Some(89));
}
