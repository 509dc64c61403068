//! Pictures of small and of hostile DAGs.

use super::*;
use crate::domain::id::{GroupCode, JobCode, JobType};
use crate::domain::job::{Group, JobDependency, Shared};
use crate::domain::trigger_rule::When;
use proptest::prelude::*;
use serde_json::json;

fn snapshot(jobs: &[(&str, &str)], edges: &[(&str, &str)], label: &str) -> Snapshot {
    let code = |c: &str| JobCode::parse(c).expect("code");
    let group = GroupCode::parse("month_end").expect("group");
    let job = |(c, name): &(&str, &str)| {
        let mut job = JobDef::bare(code(c), group.clone(), JobType::parse("NOOP").expect("type"));
        job.name = (*name).to_owned();
        job
    };
    let edge = |(job, parent): &(&str, &str)| JobDependency {
        job_code: code(job),
        depends_on: code(parent),
        dependency_order: 1,
        when: When::Success,
    };
    Snapshot {
        group: Group { name: label.to_owned(), ..Group::bare(group.clone()) },
        jobs: jobs.iter().map(job).collect(),
        dependencies: edges.iter().map(edge).collect(),
        sources: vec![],
        externals: vec![],
        shared: Shared::default(),
    }
}

fn view(snapshot: &Snapshot, states: Option<&[JobState]>) -> View {
    View::of("202407", snapshot, &snapshot.dag().expect("dag"), states)
}

fn state(status: QueueStatus, start: i64, end: Option<i64>, attempt: u32) -> JobState {
    JobState { status, start: Some(Millis(start)), end: end.map(Millis), attempt }
}

#[test]
fn the_native_shape() {
    let snapshot = snapshot(&[("B", "B"), ("A", "Load")], &[("B", "A")], "Month-end");
    let states = [
        JobState { status: QueueStatus::Pending, start: None, end: None, attempt: 0 },
        state(QueueStatus::Success, 0, Some(1_500), 1),
    ];
    let wanted = json!({
        "batch": "202407",
        "version": 1,
        "generated_at": "1970-01-01T00:00:02.000Z",
        "nodes": [
            {"id": "A", "code": "A", "name": "Load", "type": "NOOP", "group": "month_end",
             "level": 0, "order": 0, "status": "SUCCESS", "attempt": 1,
             "start": "1970-01-01T00:00:00.000Z", "end": "1970-01-01T00:00:01.500Z"},
            {"id": "B", "code": "B", "name": "B", "type": "NOOP", "group": "month_end",
             "level": 1, "order": 1, "status": "PENDING", "attempt": 0, "start": null, "end": null},
        ],
        "edges": [{"id": "A->B", "source": "A", "target": "B", "kind": "success"}],
        "groups": [{"id": "month_end", "label": "Month-end"}],
        "layout": {"direction": "LR"},
    });
    assert_eq!(native(&view(&snapshot, Some(&states)), Some(Millis(2_000))), wanted);
    let bare = native(&view(&snapshot, None), None);
    assert!(bare.get("generated_at").is_none() && bare["nodes"][0].get("status").is_none());
}

#[test]
fn dot_text() {
    let snapshot = snapshot(&[("A", "A"), ("B", "Post")], &[("B", "A")], "Month-end");
    let states =
        [state(QueueStatus::Success, 0, Some(12_345), 2), state(QueueStatus::Failed, 0, None, 1)];
    let wanted = r##"digraph "202407" {
  rankdir=LR;
  node [shape=box, style="rounded,filled", fillcolor="#ffffff"];
  subgraph "cluster_month_end" {
    label="Month-end";
    "A" [label="A\nSUCCESS 12.3 s (try 2)", fillcolor="#b7e4b7"];
    "B" [label="B\nPost\nFAILED", fillcolor="#f5a3a3"];
  }
  "A" -> "B";
}
"##;
    assert_eq!(dot(&view(&snapshot, Some(&states))), wanted);
}

#[test]
fn hostile_names_stay_text() {
    let nasty = "\"]; evil [label=\"x\\";
    let snapshot = snapshot(&[("月末:1.a", nasty), ("Z", "a\nb\r\0\u{1b}中文\\N")], &[], nasty);
    let view = view(&snapshot, None);
    let text = dot(&view);
    assert!(
        text.contains(r#""月末:1.a" [label="月末:1.a\n\"]; evil [label=\"x\\", fillcolor="#),
        "{text}"
    );
    assert!(text.contains(r#"label="Z\na\nb  中文\\N""#), "{text}");
    assert!(text.contains(r#"label="\"]; evil [label=\"x\\";"#), "{text}");
    assert_eq!(native(&view, None)["nodes"][1]["name"], nasty);
}

proptest! {
    /// Every DOT string that opens also closes, on its own line, whatever a name holds.
    #[test]
    fn quotes_always_balance(name: String, label: String) {
        let text = dot(&view(&snapshot(&[("A", &name)], &[], &label), None));
        for line in text.lines() {
            let mut open = false;
            let mut chars = line.chars();
            while let Some(c) = chars.next() {
                match c {
                    '\\' if open => drop(chars.next()),
                    '"' => open = !open,
                    _ => {}
                }
            }
            prop_assert!(!open, "{line}");
        }
        prop_assert_eq!(text.lines().count(), 8);
    }

    /// The order in which jobs and dependencies are written leaves no trace.
    #[test]
    fn the_same_dag_gives_the_same_bytes(
        jobs in Just(["A", "B", "C", "D"].map(|c| (c, c)).to_vec()).prop_shuffle(),
        edges in Just(vec![("B", "A"), ("C", "A"), ("D", "B"), ("D", "C")]).prop_shuffle(),
    ) {
        let view = view(&snapshot(&jobs, &edges, "g"), None);
        let ids: Vec<String> = native(&view, None)["edges"].as_array().expect("edges")
            .iter().map(|e| e["id"].to_string()).collect();
        prop_assert_eq!(ids, ["\"A->B\"", "\"A->C\"", "\"B->D\"", "\"C->D\""]);
        let first = view.nodes.iter().map(|n| n.code.as_str()).collect::<String>();
        prop_assert_eq!(first, "ABCD");
    }
}
