//! Pictures of small, hostile and large DAGs.

use super::*;
use crate::domain::batch::Snapshot;
use crate::domain::id::{GroupCode, JobCode, JobType};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{Group, JobDef, JobDependency, Shared};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn code(word: &str) -> JobCode {
    JobCode::parse(word).expect("code")
}

pub(super) fn snapshot_of(
    group: &str,
    jobs: &[(&str, &str)],
    edges: &[(&str, &str)],
    label: &str,
) -> Snapshot {
    let group = GroupCode::parse(group).expect("group");
    let job = |(c, name): &(&str, &str)| {
        let mut job =
            JobDef::with_defaults(code(c), group.clone(), JobType::parse("NOOP").expect("type"));
        job.name = (*name).to_owned();
        job
    };
    let edge = |(job, parent): &(&str, &str)| JobDependency {
        group: GroupCode::parse("g").expect("group"),
        job_code: code(job),
        depends_on: code(parent),
        dependency_order: 1,
        when: EdgeCondition::Success,
    };
    Snapshot {
        calendars: Default::default(),
        group: Group { name: label.to_owned(), ..Group::with_defaults(group.clone()) },
        jobs: jobs.iter().map(job).collect(),
        dependencies: edges.iter().map(edge).collect(),
        sources: vec![],
        externals: vec![],
        shared: Shared::default(),
    }
}

fn snapshot(jobs: &[(&str, &str)], edges: &[(&str, &str)], label: &str) -> Snapshot {
    snapshot_of("month_end", jobs, edges, label)
}

fn view(snapshot: &Snapshot, states: Option<&[JobState]>) -> DagView {
    DagView::of_batch("202407", snapshot, &snapshot.build_dag().expect("dag"), states)
}

/// Jobs named by letters; `edges` as `B<A` for B depends on A.
pub(super) fn plain(jobs: &str, edges: &str) -> DagView {
    let jobs: Vec<(&str, &str)> = jobs.split_whitespace().map(|j| (j, j)).collect();
    let edges: Vec<(&str, &str)> =
        edges.split_whitespace().map(|e| e.split_once('<').expect("child<parent")).collect();
    view(&snapshot(&jobs, &edges, "g"), None)
}

fn state(status: QueueStatus, start: i64, end: Option<i64>, attempt: u32) -> JobState {
    JobState { status, start: Some(Millis(start)), end: end.map(Millis), attempt }
}

const BARE: Wishes = Wishes {
    placing: Placing::None,
    direction: ArrowDirection::Lr,
    lang: Lang::En,
    generated_at: None,
};

fn drawing<'a>(view: &'a DagView, name: &str, wishes: Wishes) -> Drawing<'a> {
    format(name).expect("format").draw_view(view, wishes)
}

fn value(document: &Document<'_>) -> Value {
    serde_json::to_value(document).expect("JSON")
}

fn json_of(view: &DagView, name: &str, wishes: Wishes) -> Value {
    match drawing(view, name, wishes).drawn() {
        Drawn::Json(document) => value(&document),
        Drawn::Text(text) => panic!("not JSON: {text}"),
    }
}

/// The whole text of a drawing.
fn said(drawing: &Drawing<'_>) -> String {
    match drawing.drawn() {
        Drawn::Json(document) => serde_json::to_string(&document).expect("JSON"),
        Drawn::Text(text) => text,
    }
}

fn text_of(view: &DagView, name: &str) -> String {
    match drawing(view, name, Wishes::default()).drawn() {
        Drawn::Json(document) => panic!("not text: {}", value(&document)),
        Drawn::Text(text) => text,
    }
}

fn ids(view: &DagView) -> String {
    view.nodes.iter().map(|n| n.code.as_str()).collect::<Vec<_>>().join(" ")
}

fn links(view: &DagView) -> String {
    let code = |i: usize| view.nodes[i].code.as_str();
    let words = view.edges.iter().map(|e| format!("{}>{}", code(e.source), code(e.target)));
    words.collect::<Vec<_>>().join(" ")
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
            {"id": "A", "code": "A", "name": "Load", "type": "NOOP", "kind": "job",
             "group": "month_end", "level": 0, "order": 0, "status": "SUCCESS", "attempt": 1,
             "start": "1970-01-01T00:00:00.000Z", "end": "1970-01-01T00:00:01.500Z",
             "duration_sec": 1.5, "est_sec": 2, "slack_sec": 0, "critical": true},
            {"id": "B", "code": "B", "name": "B", "type": "NOOP", "kind": "job",
             "group": "month_end", "level": 1, "order": 1, "status": "PENDING", "attempt": 0,
             "start": null, "end": null},
        ],
        "edges": [{"id": "A->B", "source": "A", "target": "B", "kind": "dependency",
                   "condition": "success"}],
        "groups": [{"id": "month_end", "label": "Month-end", "parent": null}],
        "layout": {"direction": "LR"},
    });
    let timing = ForecastTiming {
        est_ms: Some(2_000),
        slack_ms: Some(0),
        critical: Some(true),
        ..ForecastTiming::default()
    };
    let shown = view(&snapshot, Some(&states)).timed(&BTreeMap::from([(code("A"), timing)]));
    let wishes = Wishes { generated_at: Some(Millis(2_000)), ..BARE };
    assert_eq!(json_of(&shown, "native", wishes), wanted);
    let bare = json_of(&view(&snapshot, None), "native", Wishes::default());
    assert!(bare.get("generated_at").is_none() && bare["nodes"][0].get("status").is_none());
    for key in ["x", "y", "w", "h"] {
        assert!(bare["nodes"][0][key].as_i64().is_some_and(|n| n > 0), "{bare}");
    }
    assert_eq!(bare["edges"][0]["points"].as_array().map(Vec::len), Some(2));
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
    assert_eq!(text_of(&view(&snapshot, Some(&states)), "dot"), wanted);
}

#[test]
fn mermaid_text() {
    let snapshot = snapshot(&[("end", "\"#1;\" <b>"), ("B", "Post")], &[("B", "end")], "月末 [1]");
    let states =
        [state(QueueStatus::Success, 0, Some(12_345), 1), state(QueueStatus::Failed, 0, None, 1)];
    let wanted = r##"---
title: "202407"
---
flowchart LR
  subgraph g1["月末 #91;1#93;"]
    n1["end<br/>#34;#35;1#59;#34; #60;b#62;<br/>SUCCESS 12.3 s"]
    n2["B<br/>Post<br/>FAILED"]
  end
  n1 --> n2
  classDef SUCCESS fill:#b7e4b7,stroke:#2f8f4e,color:#1f2933
  classDef FAILED fill:#f5a3a3,stroke:#c62828,color:#1f2933
  class n2 FAILED
  class n1 SUCCESS
"##;
    assert_eq!(text_of(&view(&snapshot, Some(&states)), "mermaid"), wanted);
}

#[test]
fn hostile_names_stay_text() {
    let nasty = "\"]; evil [label=\"x\\";
    let snapshot = snapshot(
        &[("月末:1.a", nasty), ("Z", "a\nb\r\0\u{1b}中文\\N\u{FFFF}</title><script>'&")],
        &[],
        nasty,
    );
    let view = view(&snapshot, None);
    let text = text_of(&view, "dot");
    assert!(
        text.contains(r#""月末:1.a" [label="月末:1.a\n\"]; evil [label=\"x\\", fillcolor="#),
        "{text}"
    );
    assert!(text.contains(r#"label="Z\na\nb  中文\\N"#), "{text}");
    assert!(text.contains(r#"label="\"]; evil [label=\"x\\";"#), "{text}");
    assert_eq!(json_of(&view, "native", BARE)["nodes"][1]["name"], nasty);
    let svg = text_of(&view, "svg");
    assert!(
        !svg.contains("<script") && svg.contains("&lt;/title&gt;&lt;script&gt;&#39;&amp;"),
        "{svg}"
    );
    assert!(!svg.contains(['\0', '\u{1b}', '\r', '\u{FFFF}']), "{svg}");
}

#[test]
fn a_focus_is_a_neighbourhood() {
    let view = plain("A B C D E X", "B<A C<B D<C E<D X<A");
    let around = |job, up, down| view.focus(job, up, down).map(|v| (ids(&v), links(&v)));
    let part = |nodes: &str, edges: &str| Some((nodes.to_owned(), edges.to_owned()));
    assert_eq!(around("C", Some(1), Some(1)), part("B C D", "B>C C>D"));
    assert_eq!(around("C", Some(0), Some(0)), part("C", ""));
    assert_eq!(around("C", None, Some(0)), part("A B C", "A>B B>C"));
    assert_eq!(around("B", None, None), part("A B C D E", "A>B B>C C>D D>E"));
    assert_eq!(around("Q", None, None), None);
    // The wave of a job is a fact about the job, even if its parents are not shown.
    assert_eq!(view.focus("E", Some(0), None).expect("E").nodes[0].level, 4);
}

#[test]
fn a_reduction_leaves_out_what_follows_from_the_rest() {
    let view = plain("A B C D", "B<A C<B C<A D<C D<A D<B");
    assert_eq!(links(&view.reduced()), "A>B B>C C>D");
    // That B was not taken says nothing about A: such an edge does not imply another, and stays.
    let weak = BTreeMap::from([((code("B"), code("C")), "done".to_owned())]);
    assert_eq!(links(&view.conditioned(&weak).reduced()), "A>B A>C B>C B>D C>D");
}

fn tagged(jobs: &[(&str, &str)], edges: &[(&str, &str)]) -> DagView {
    let codes: Vec<(&str, &str)> = jobs.iter().map(|(c, _)| (*c, *c)).collect();
    let mut snapshot = snapshot(&codes, edges, "Month-end");
    for (job, (_, tags)) in snapshot.jobs.iter_mut().zip(jobs) {
        job.tags = tags.split_whitespace().map(str::to_owned).collect();
    }
    let states: Vec<JobState> = (0..jobs.len() as i64)
        .map(|i| {
            let status = if i == 1 { QueueStatus::Failed } else { QueueStatus::Success };
            state(status, 1_000 * i, Some(1_000 * i + 500), 1)
        })
        .collect();
    view(&snapshot, Some(&states))
}

#[test]
fn a_collapsed_tag_is_one_node_and_never_a_circle() {
    let jobs = [("A", "load x"), ("B", "load"), ("C", "post"), ("D", "load"), ("E", "")];
    let view = tagged(&jobs, &[("C", "A"), ("C", "B"), ("D", "C"), ("E", "C"), ("E", "A")]);
    let small = view.collapsed(Collapse::Tag);
    assert_eq!(
        links(&small),
        "tag/month_end/load>E tag/month_end/load>tag/month_end/post \
         tag/month_end/post>E tag/month_end/post>tag/month_end/load#2"
    );
    let load = &json_of(&small, "native", BARE)["nodes"][0];
    assert_eq!(
        (&load["name"], &load["kind"], &load["jobs"]),
        (&json!("load"), &json!("tag"), &json!(2))
    );
    assert_eq!(load["status"], "FAILED", "the worst of them");
    assert_eq!(load["statuses"], json!({"SUCCESS": 1, "FAILED": 1}));
    assert_eq!(load["duration_sec"], 1.5, "from the first start to the last end");
    assert_eq!(small.nodes.iter().map(|n| n.level).collect::<Vec<_>>(), [0, 1, 2, 2]);
    let group = view.collapsed(Collapse::Group);
    assert_eq!((ids(&group), links(&group)), ("group/month_end".to_owned(), String::new()));
    assert_eq!(group.nodes[0].name, "Month-end");
}

fn two_groups() -> DagView {
    let first = snapshot_of("one", &[("A", "A"), ("B", "B")], &[("B", "A")], "One");
    let second = snapshot_of("two", &[("C", "C"), ("D", "D")], &[("D", "C")], "Two");
    DagView::join_views("both", vec![view(&first, None), view(&second, None)])
}

/// Codes that two groups share: each job is a separate node in every shape, and is found by its full name.
#[test]
fn a_code_of_several_groups_is_a_node_for_each() {
    let group = |code: &str, jobs: &[(&str, &str)]| {
        view(&snapshot_of(code, jobs, &[("POST", "LOAD")], code), None)
    };
    let one = group("one", &[("LOAD", "LOAD"), ("POST", "Posting"), ("ONLY", "ONLY")]);
    let two = group("two", &[("LOAD", "LOAD"), ("POST", "POST")]);
    let view = DagView::join_views("both", vec![one, two]);
    assert_eq!(ids(&view), "ONLY one.LOAD two.LOAD one.POST two.POST");
    assert_eq!(links(&view), "one.LOAD>one.POST two.LOAD>two.POST");
    let name =
        |code: &str| view.nodes.iter().find(|n| n.code == code).expect("a node").name.clone();
    assert_eq!([name("one.LOAD"), name("one.POST")], ["one.LOAD", "Posting"]);
    for format in FORMATS {
        let text = said(&format.draw_view(&view, Wishes::default()));
        assert!(text.contains("two.LOAD") && text.contains("one.LOAD"), "{}: {text}", format.name);
    }
    for (word, found) in [
        ("one.LOAD", &["one.LOAD"][..]),
        ("LOAD", &["one.LOAD", "two.LOAD"]),
        ("ONLY", &["ONLY"]),
        ("one.ONLY", &["ONLY"]),
        ("two.ONLY", &[]),
    ] {
        assert_eq!(view.find_codes(word), found, "{word}");
    }
    // A code that looks like the full name of another group's job.
    let odd = group("two", &[("LOAD", "LOAD"), ("POST", "POST"), ("one.LOAD", "one.LOAD")]);
    let one = group("one", &[("LOAD", "LOAD"), ("POST", "POST")]);
    let view = DagView::join_views("both", vec![one, odd]);
    assert_eq!(ids(&view), "job/one/LOAD job/two/one.LOAD two.LOAD one.POST two.POST");
}

#[test]
fn several_groups_are_frames_that_do_not_touch() {
    let view = two_groups();
    let flow = json_of(&view, "reactflow", Wishes::default());
    let nodes = flow["nodes"].as_array().expect("nodes");
    assert_eq!(nodes[0]["id"], "group/one");
    assert_eq!(nodes[1]["id"], "group/two", "frames come before what stands in them");
    for node in &nodes[2..] {
        let frame = nodes.iter().find(|n| n["id"] == node["parentId"]).expect("its frame");
        for (at, size) in [("x", "width"), ("y", "height")] {
            let number = |v: &Value| v.as_i64().expect("number");
            assert!(number(&node["position"][at]) > 0, "{node}");
            assert!(number(&node["position"][at]) + number(&node[size]) < number(&frame[size]));
        }
    }
    let bottom = nodes[0]["position"]["y"].as_i64().zip(nodes[0]["height"].as_i64());
    assert!(bottom.is_some_and(|(y, h)| Some(y + h) < nodes[1]["position"]["y"].as_i64()));
    assert!(
        json_of(&plain("A", ""), "cytoscape", BARE)["elements"]["nodes"][0]["data"]
            .get("parent")
            .is_none(),
        "one group is no frame"
    );
}

#[test]
fn a_frame_within_a_frame_lies_within_it_and_touches_no_other() {
    let inner = [GroupCode::parse("two").expect("code")];
    let view = two_groups().framed("outer", "Outer", &inner);
    for direction in [ArrowDirection::Lr, ArrowDirection::Tb] {
        let layout = layout::layered(&view, &measure::sizes(&view), direction);
        let frame = |i: usize| layout.frames[i].expect("a frame");
        let (one, two, outer) = (frame(0), frame(1), frame(2));
        assert!(outer.x < two.x && outer.x + outer.w > two.x + two.w, "{layout:?}");
        assert!(outer.y < two.y && outer.y + outer.h > two.y + two.h, "{layout:?}");
        assert!(one.x + one.w < outer.x || one.y + one.h < outer.y, "{layout:?}");
    }
    let flow = json_of(&view, "reactflow", Wishes::default());
    let order: Vec<&str> =
        flow["nodes"].as_array().expect("nodes").iter().filter_map(|n| n["id"].as_str()).collect();
    assert_eq!(order, ["group/one", "group/outer", "group/two", "A", "C", "B", "D"]);
}

#[test]
fn another_batch_is_a_dashed_node_before_all_others() {
    let external = |job: Option<&str>, child| External {
        batch: "202406".to_owned(),
        group: "month_end".to_owned(),
        job: job.map(str::to_owned),
        state: None,
        child: code(child),
        condition: "success".to_owned(),
    };
    let view = plain("A B", "B<A").with_external(&[
        external(Some("CLOSE"), "A"),
        external(Some("CLOSE"), "B"),
        external(None, "NOT_DRAWN"),
    ]);
    assert_eq!(links(&view), "202406/month_end/CLOSE>A 202406/month_end/CLOSE>B A>B");
    let native = json_of(&view, "native", Wishes::default());
    assert_eq!(native["nodes"][0]["kind"], "external");
    assert_eq!(native["edges"][0]["kind"], "external");
    assert!(native["nodes"][0]["x"].as_i64() < native["nodes"][1]["x"].as_i64());
    assert!(text_of(&view, "dot").contains("style=\"rounded,filled,dashed\""));
    assert!(text_of(&view, "mermaid").contains("class n1 external"));
    assert!(text_of(&view, "svg").contains("class=\"box defined other\""));
}

#[test]
fn two_groups_that_wait_for_one_batch_share_its_node() {
    let waits = |group: &str, job: &str| {
        let external = External {
            batch: "prev".to_owned(),
            group: "ledger".to_owned(),
            job: None,
            state: None,
            child: code(job),
            condition: "done".to_owned(),
        };
        view(&snapshot_of(group, &[(job, job)], &[], group), None).with_external(&[external])
    };
    let both = DagView::join_views("both", vec![waits("one", "A"), waits("two", "B")]);
    assert_eq!(links(&both), "prev/ledger>A prev/ledger>B");
    assert_eq!(ids(&both), "A B prev/ledger");
}

#[test]
fn conditions_are_those_of_the_definition() {
    let mut snapshot = snapshot(&[("A", "A"), ("B", "B")], &[("B", "A")], "g");
    snapshot.dependencies[0].when = EdgeCondition::Failure;
    let view = view(&snapshot, None);
    assert_eq!(json_of(&view, "native", BARE)["edges"][0]["condition"], "failure");
    assert!(text_of(&view, "dot").contains("\"A\" -> \"B\" [label=\"failure\"];"));
    assert!(text_of(&view, "svg").contains(">failure</text>"));
}

#[test]
fn the_critical_path_is_one_path() {
    let critical =
        |c: &str| (code(c), ForecastTiming { critical: Some(true), ..ForecastTiming::default() });
    let view = plain("A B C D", "B<A C<B C<A D<A")
        .timed(&["A", "B", "C"].map(critical).into_iter().collect());
    let native = json_of(&view, "native", BARE);
    let bold: Vec<&str> = native["edges"]
        .as_array()
        .expect("edges")
        .iter()
        .filter(|e| e["critical"] == true)
        .filter_map(|e| e["id"].as_str())
        .collect();
    assert_eq!(bold, ["A->B", "B->C"]);
    assert!(text_of(&view, "svg").contains("critical path"));
    assert!(text_of(&view, "mermaid").contains("linkStyle 0,3 stroke-width:4px"));
}

#[test]
fn a_tree_names_a_job_again_and_ends() {
    let view = plain("A B C D", "B<A C<A D<B D<C");
    let tree = json_of(&view, "tree", BARE);
    assert_eq!(tree["children"][0]["children"][0]["id"], "D");
    assert_eq!(tree["children"][1]["children"][0], json!({"id": "D", "ref": true}));
    // 40 diamonds in a row; each would double the number of paths below it.
    let jobs: Vec<String> =
        (0..40).flat_map(|i| [format!("T{i}"), format!("L{i}"), format!("R{i}")]).collect();
    let edges: Vec<String> = (0..40)
        .flat_map(|i| {
            let top = (i > 0).then(|| [format!("T{i}<L{}", i - 1), format!("T{i}<R{}", i - 1)]);
            let own = [format!("L{i}<T{i}"), format!("R{i}<T{i}")];
            top.into_iter().flatten().chain(own)
        })
        .collect();
    let tree = json_of(&plain(&jobs.join(" "), &edges.join(" ")), "tree", BARE);
    let text = tree.to_string();
    assert_eq!(text.matches("\"code\":").count(), jobs.len(), "each job once in full");
    assert!(text.matches("\"ref\":true").count() < edges.len());
    serde_json::from_str::<Value>(&text).expect("not too deep for a common reader");
}

/// 2,000 jobs with 6,000 dependencies, generated deterministically: each job waits for three of the hundred before it.
pub(super) fn large(jobs: usize) -> DagView {
    let names: Vec<String> = (0..jobs).map(|i| format!("JOB_{i:05}")).collect();
    let mut edges = BTreeSet::new();
    for i in 1..jobs {
        for (k, step) in [7, 31, 53].into_iter().enumerate() {
            let back = 1 + (i * step + k) % 100;
            if back <= i {
                edges.insert((i, i - back));
            }
        }
    }
    let named: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), n.as_str())).collect();
    let edges: Vec<(&str, &str)> =
        edges.iter().map(|(c, p)| (names[*c].as_str(), names[*p].as_str())).collect();
    view(&snapshot(&named, &edges, "large"), None)
}

/// Keys have the order of a `Value`, both in short lists and in generated ones.
#[test]
fn a_document_is_the_text_of_its_value() {
    let wishes = Wishes { generated_at: Some(Millis(0)), ..Wishes::default() };
    for view in [large(40), plain("A B C", "B<A C<A C<B"), plain("A", "")] {
        for format in FORMATS {
            let drawing = format.draw_view(&view, wishes);
            let Drawn::Json(document) = drawing.drawn() else { continue };
            assert_eq!(said(&drawing), value(&document).to_string(), "{}", format.name);
        }
    }
}

#[test]
fn every_shape_holds_2000_jobs_and_their_dependencies() {
    let view = large(2_000);
    let (nodes, edges) = (view.nodes.len(), view.edges.len());
    assert!(nodes == 2_000 && edges > 5_700, "{edges}");
    let list = |value: &Value| value.as_array().map_or(0, Vec::len);
    for format in FORMATS {
        let found = match format.draw_view(&view, Wishes::default()).drawn() {
            Drawn::Text(text) => match format.name {
                "dot" => (text.matches("[label=").count(), text.matches(" -> ").count()),
                "mermaid" => {
                    assert!(text.contains("%% ") && text.contains("--focus"), "it says so");
                    (text.matches("[\"JOB_").count(), text.matches(" --> ").count())
                }
                _ => (text.matches("<g data-job").count(), text.matches("data-source=").count()),
            },
            Drawn::Json(document) => {
                let v = value(&document);
                match format.name {
                    "cytoscape" => (list(&v["elements"]["nodes"]), list(&v["elements"]["edges"])),
                    "d3" => (list(&v["nodes"]), list(&v["links"])),
                    "d3dag" => {
                        let parents =
                            v.as_array().expect("list").iter().map(|n| list(&n["parentIds"]));
                        (list(&v), parents.sum())
                    }
                    "d3dag-connect" => {
                        let alone = v.as_array().expect("list").iter().filter(|p| p[0] == p[1]);
                        (nodes, list(&v) - alone.count())
                    }
                    "echarts" => (list(&v["series"][0]["data"]), list(&v["series"][0]["links"])),
                    "elk" => (list(&v["children"]), list(&v["edges"])),
                    "jgf" => (
                        v["graph"]["nodes"].as_object().map_or(0, |n| n.len()),
                        list(&v["graph"]["edges"]),
                    ),
                    "tree" => (v.to_string().matches("\"code\":").count(), edges),
                    _ => (list(&v["nodes"]), list(&v["edges"])),
                }
            }
        };
        assert_eq!(found, (nodes, edges), "{}", format.name);
    }
}

#[test]
fn names_and_sentences_of_the_shapes() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), FORMATS.len(), "each name once");
    assert!(FORMATS.iter().all(|f| !f.about.is_empty() && !f.about.ends_with('.')));
    assert!(format("svg").is_some_and(PictureFormat::needs_positions) && format("nope").is_none());
}

proptest! {
    /// Every DOT string is closed on its own line, whatever a name contains.
    #[test]
    fn quotes_always_balance(name: String, label: String) {
        let text = text_of(&view(&snapshot(&[("A", &name)], &[], &label), None), "dot");
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

    /// The order in which jobs and dependencies are defined affects no shape.
    #[test]
    fn the_same_dag_gives_the_same_bytes(
        jobs in Just(["A", "B", "C", "D"].map(|c| (c, c)).to_vec()).prop_shuffle(),
        edges in Just(vec![("B", "A"), ("C", "A"), ("D", "B"), ("D", "C")]).prop_shuffle(),
    ) {
        let shuffled = view(&snapshot(&jobs, &edges, "g"), None);
        prop_assert_eq!(links(&shuffled), "A>B A>C B>D C>D");
        prop_assert_eq!(ids(&shuffled), "A B C D");
        let plain = plain("A B C D", "B<A C<A D<B D<C");
        for format in FORMATS {
            let wishes = Wishes::default();
            let [one, other] = [&shuffled, &plain].map(|view| said(&format.draw_view(view, wishes)));
            prop_assert_eq!(one, other);
        }
    }

    /// However jobs are tagged, the collapsed picture has no cycle and loses no job.
    #[test]
    fn a_collapse_is_a_dag(
        tags in prop::collection::vec(0usize..4, 9),
        pairs in prop::collection::btree_set((0usize..9, 0usize..9), 0..20),
    ) {
        let names: Vec<String> = (0..9).map(|i| format!("J{i}")).collect();
        let words = ["", "a", "b", "c"];
        let jobs: Vec<(&str, &str)> =
            names.iter().zip(&tags).map(|(n, t)| (n.as_str(), words[*t])).collect();
        let edges: Vec<(&str, &str)> = pairs.iter().filter(|(p, c)| p < c)
            .map(|(p, c)| (names[*c].as_str(), names[*p].as_str())).collect();
        let small = tagged(&jobs, &edges).collapsed(Collapse::Tag);
        prop_assert_eq!(small.in_order().len(), small.nodes.len(), "no circle");
        let jobs: usize = small.nodes.iter().map(|n| n.members.values().sum::<usize>().max(1)).sum();
        prop_assert_eq!(jobs, 9);
    }

    /// The reduction keeps reachability with the minimum number of edges.
    #[test]
    fn a_reduction_keeps_what_reaches_what(
        pairs in prop::collection::btree_set((0usize..8, 0usize..8), 0..25),
    ) {
        let names: Vec<String> = (0..8).map(|i| format!("J{i}")).collect();
        let edges: Vec<String> = pairs.iter().filter(|(p, c)| p < c)
            .map(|(p, c)| format!("{}<{}", names[*c], names[*p])).collect();
        let view = plain(&names.join(" "), &edges.join(" "));
        let small = view.reduced();
        let reach = |view: &DagView, leave_out: Option<usize>| {
            let mut reach = [[false; 8]; 8];
            let place = |i: usize| view.nodes[i].code[1..].parse::<usize>().expect("number");
            for (_, e) in view.edges.iter().enumerate().filter(|(i, _)| Some(*i) != leave_out) {
                reach[place(e.source)][place(e.target)] = true;
            }
            for k in 0..8 { for i in 0..8 { for j in 0..8 {
                reach[i][j] |= reach[i][k] && reach[k][j];
            } } }
            reach
        };
        prop_assert_eq!(reach(&view, None), reach(&small, None));
        for i in 0..small.edges.len() {
            prop_assert_ne!(reach(&small, Some(i)), reach(&small, None), "each is needed");
        }
    }
}
