//! Every shape of picture is read by the library that is to read it, in Node.js (tests/node).

use procession::app;
use procession::domain::batch::{BatchOrder, Snapshot, plan};
use procession::domain::id::{BatchNo, GroupCode, JobCode};
use procession::domain::job::queue::QueueStatus;
use procession::domain::time::Millis;
use procession::picture::{DagView, Drawn, External, FORMATS, ForecastTiming, JobState, Wishes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn procession(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C").args(args);
    command.output().expect("the program runs")
}

/// What the libraries must find, and whether the check is to be tried on spoilt copies as well.
#[derive(Default)]
struct Expected {
    nodes: Vec<String>,
    edges: Vec<(String, String)>,
    status: BTreeMap<String, String>,
    heads: BTreeMap<String, String>,
    groups: usize,
}

impl Expected {
    fn of(snapshot: &Snapshot) -> Self {
        let ends = |d: &procession::domain::job::JobDependency| {
            (d.depends_on.to_string(), d.job_code.to_string())
        };
        Self {
            nodes: snapshot.jobs.iter().map(|j| j.code.to_string()).collect(),
            edges: snapshot.dependencies.iter().map(ends).collect(),
            groups: 1,
            ..Self::default()
        }
    }

    fn write(&self, scene: &Path, spoil: bool) {
        let expected = json!({
            "nodes": self.nodes, "edges": self.edges, "status": self.status,
            "heads": self.heads, "groups": self.groups, "spoil": spoil,
        });
        std::fs::write(scene.join("expected.json"), expected.to_string()).expect("written");
    }
}

/// Exports every shape with the program itself.
fn export(scene: &Path, folder: &Path, what: &[&str]) {
    std::fs::create_dir(scene).expect("scene");
    for format in FORMATS {
        let args = [&["dag"][..], what, &["--format", format.name]].concat();
        let Output { status, stdout, stderr } = procession(folder, &args);
        assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        std::fs::write(scene.join(format.name), stdout).expect("written");
    }
}

fn snapshots(file: &Path) -> Vec<Snapshot> {
    let defs = app::load_definition(file).expect("a definition").definition;
    let order = BatchOrder {
        batch_no: BatchNo::parse("202407").expect("number"),
        batch_type: None,
        group: None,
        business_date: None,
        params: BTreeMap::new(),
        free_text: false,
    };
    let plans = plan(&defs, &order, Millis(0)).expect("a plan");
    plans.into_iter().map(|plan| plan.snapshot).collect()
}

/// Codes and names that would break a shape which does not quote: words of Mermaid, DOT and
/// JavaScript, the code of the group, quotes, tags, entities and backslashes.
const AWKWARD: &str = r##"
groups:
  default: { name: "\"月末\" <b>&amp; end\\ [close] %% #1;" }
jobs:
  end: { name: "end", type: NOOP }
  default: { name: 'say "hi" <script>alert(1)</script>', type: NOOP, depends_on: [end] }
  月末:1.a: { name: "back\\slash \\N \\l new; 中文 `code` **bold**", type: NOOP, depends_on: [end, default] }
  subgraph: { name: "]]> --> %%{init}%% &lt; #quot;", type: NOOP, depends_on: ["月末:1.a"] }
  o1: { name: "o", type: SCRIPT, interpreter: sh, script: "exit 3", depends_on: [end] }
  x-2: { name: "x", type: NOOP, depends_on: [o1] }
  class: { name: "graph TD; A-->B", type: NOOP, depends_on: [default] }
  "007": { name: "&quot;", type: NOOP }
  "7": { name: "{b} ${x} {{y}}", type: NOOP, depends_on: ["007", subgraph] }
"##;

fn awkward(scene: &Path, home: &Path) {
    std::fs::write(home.join("awkward.yaml"), AWKWARD).expect("file");
    let ran = procession(home, &["run", "awkward.yaml", "--batch-no", "1", "--json"]);
    assert_eq!(ran.status.code(), Some(1), "o1 fails: {}", String::from_utf8_lossy(&ran.stderr));
    let batch: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    export(scene, home, &["--batch", "1"]);
    let mut expected = Expected::of(&snapshots(&home.join("awkward.yaml"))[0]);
    for job in batch[0]["jobs"].as_array().expect("jobs") {
        let text = |key: &str| job[key].as_str().expect("text").to_owned();
        expected.status.insert(text("job_code"), text("status"));
    }
    assert_eq!(expected.status["x-2"], "UPSTREAM_FAILED");
    expected.write(scene, true);
}

/// Jobs `J0` … `J15`, one for each state, the first eight in one group.
fn every_state() -> String {
    let mut text =
        "groups: { ledger: { name: 总账 Ledger }, tax: { name: 税务 Tax } }\njobs:\n".to_owned();
    for (i, status) in QueueStatus::ALL.iter().enumerate() {
        let (group, first) = if i < 8 { ("ledger", 0) } else { ("tax", 8) };
        let parents = [i.checked_sub(1), i.checked_sub(3)].into_iter().flatten();
        let parents: Vec<String> =
            parents.filter(|p| *p >= first).map(|p| format!("J{p}")).collect();
        text += &format!(
            "  J{i}: {{ type: NOOP, name: '{status} {i}', group: {group}, depends_on: [{}] }}\n",
            parents.join(", ")
        );
    }
    text
}

fn number(code: &JobCode) -> usize {
    code.as_str()[1..].parse().expect("number")
}

/// The state of job `Ji`: each runs a minute from minute `i` on.
fn state(i: usize) -> JobState {
    let status = QueueStatus::ALL[i];
    let start = Millis(61_000 * (i as i64 + 1));
    let end = status.is_final().then(|| start.plus_ms(61_000));
    JobState { status, start: Some(start), end, attempt: 1 }
}

/// A forecast, a condition, jobs of another batch, and a frame around the frame of a group.
fn enriched(view: DagView) -> DagView {
    let code = |i: usize| JobCode::parse(&format!("J{i}")).expect("code");
    let timing = |i: usize| ForecastTiming {
        est_ms: Some(1_500 * i as i64),
        slack_ms: Some(if i.is_multiple_of(2) { 0 } else { 30_000 }),
        critical: Some(i.is_multiple_of(3)),
        ..ForecastTiming::default()
    };
    let external = |job: Option<&str>, child| External {
        batch: "202406".to_owned(),
        group: "ledger".to_owned(),
        job: job.map(str::to_owned),
        state: None,
        child: code(child),
        condition: "success".to_owned(),
    };
    let externals = [external(Some("J7"), 0), external(Some("J7"), 8), external(None, 9)];
    view.timed(&(0..QueueStatus::ALL.len()).map(|i| (code(i), timing(i))).collect())
        .conditioned(&BTreeMap::from([((code(0), code(1)), "done | skipped".to_owned())]))
        .with_external(&externals)
        .framed("authorities", "Authorities", &[GroupCode::parse("tax").expect("group")])
}

/// What the program cannot yet be brought to show by running something, drawn by the library.
fn rich(scene: &Path, home: &Path) {
    let file = home.join("rich.yaml");
    std::fs::write(&file, every_state()).expect("file");
    let mut expected = Expected { groups: 3, ..Expected::default() };
    let mut views = Vec::new();
    for snapshot in snapshots(&file) {
        let states: Vec<JobState> =
            snapshot.jobs.iter().map(|job| state(number(&job.code))).collect();
        for (job, state) in snapshot.jobs.iter().zip(&states) {
            expected.status.insert(job.code.to_string(), state.status.to_string());
        }
        let one = Expected::of(&snapshot);
        expected.nodes.extend(one.nodes);
        expected.edges.extend(one.edges);
        views.push(DagView::of_batch(
            "202407",
            &snapshot,
            &snapshot.build_dag().expect("a DAG"),
            Some(&states),
        ));
    }
    let view = enriched(DagView::join_views("202407", views));
    let (job, whole) = ("202406/ledger/J7", "202406/ledger");
    for (id, head) in [(job, "202406 J7"), (whole, "202406 ledger")] {
        expected.nodes.push(id.to_owned());
        expected.heads.insert(id.to_owned(), head.to_owned());
    }
    for (id, child) in [(job, "J0"), (job, "J8"), (whole, "J9")] {
        expected.edges.push((id.to_owned(), child.to_owned()));
    }
    std::fs::create_dir(scene).expect("scene");
    for format in FORMATS {
        let text = match format.draw_view(&view, Wishes::default()).drawn() {
            Drawn::Json(document) => serde_json::to_string(&document).expect("JSON"),
            Drawn::Text(text) => text,
        };
        std::fs::write(scene.join(format.name), text).expect("written");
    }
    expected.write(scene, true);
}

#[test]
fn every_shape_is_read_by_its_library() {
    let modules = root("tests/node/node_modules");
    assert!(modules.exists(), "{} is missing; run scripts/test-node.sh", modules.display());
    let home = tempfile::tempdir().expect("folder");
    let scenes = home.path().join("scenes");
    std::fs::create_dir(&scenes).expect("scenes");
    for name in ["month-end-close", "netsuite-period-close"] {
        let file = root(&format!("dag-examples/{name}.yaml"));
        export(&scenes.join(name), home.path(), &[file.to_str().expect("path")]);
        Expected::of(&snapshots(&file)[0]).write(&scenes.join(name), false);
    }
    awkward(&scenes.join("awkward"), home.path());
    rich(&scenes.join("rich"), home.path());
    if let Some(keep) = std::env::var_os("PROCESSION_KEEP_SCENES") {
        let copied = Command::new("cp").arg("-r").arg(&scenes).arg(keep).status();
        assert!(copied.expect("cp").success());
    }
    let checked = Command::new("node").arg(root("tests/node/check.mjs")).arg(&scenes).output();
    let checked = checked.expect("node runs; scripts/test-node.sh says what is missing");
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "\n{told}");
    let lines = String::from_utf8_lossy(&checked.stdout).lines().count();
    assert_eq!(lines, FORMATS.len() * 4, "a line per scene and shape");
}
