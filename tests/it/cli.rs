//! The real program: exit codes, and readers that go away.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn procession(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C");
    command
}

pub(crate) fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        procession(folder).args(args).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

const FAILS: &str = "
jobs:
  A: { type: SCRIPT, interpreter: sh, script: 'sleep 0.3' }
  B: { type: SCRIPT, interpreter: sh, script: 'exit 4', depends_on: [A] }
  C: { type: NOOP, depends_on: [A] }
";

pub(crate) fn folder(yaml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    folder
}

#[test]
fn exit_codes_tell_whose_fault_it_was() {
    let folder = folder(FAILS);
    let path = folder.path();
    let code = |args: &[&str]| said(path, args).0;
    assert_eq!(code(&["check", "dag.yaml"]), 0);
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "1"]), 1);
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "1"]), 2, "exists");
    assert_eq!(code(&["run", "dag.yaml", "--batch-no", "no/good"]), 2);
    assert_eq!(code(&["run", "missing.yaml", "--batch-no", "2"]), 2);
    assert_eq!(code(&["run"]), 2);
    assert_eq!(code(&["batch", "show", "999"]), 2);
    assert_eq!(code(&["batch", "kill", "1", "--reason", "x"]), 2, "ended already");
    assert_eq!(code(&["logs", "1", "NOBODY"]), 2);
    assert_eq!(code(&["--db", "mysql://nobody@127.0.0.1:1/x", "batch", "list"]), 3, "unreachable");
}

/// A service of cron or systemd has no `$USER`; what it does is not done by "unknown".
#[test]
fn who_acts_is_known_without_the_environment() {
    let folder = folder("jobs:\n  A: { type: NOOP }\n");
    let mut command = procession(folder.path());
    command.env_remove("USER").env_remove("LOGNAME").args(["apply", "dag.yaml"]);
    assert!(command.status().expect("it runs").success());
    let name = Command::new("id").arg("-un").output().expect("id");
    let name = String::from_utf8(name.stdout).expect("UTF-8");
    let (_, audit, _) = said(folder.path(), &["audit", "--json"]);
    let actor = format!("\"actor\":\"{}\"", name.trim());
    assert!(audit.replace(": ", ":").contains(&actor), "{audit}");
}

/// A closed pager or a dropped session must neither stop a batch nor change how it ends.
#[test]
fn a_reader_that_goes_away_changes_nothing() {
    for (number, json) in [("1", false), ("2", true)] {
        let folder = folder(FAILS);
        let mut command = procession(folder.path());
        command.args(["run", "dag.yaml", "--batch-no", number]);
        if json {
            command.arg("--json");
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
        if !json {
            // One byte proves that it speaks; then nobody listens any more.
            let mut first = [0u8; 1];
            child.stderr.as_mut().expect("stderr").read_exact(&mut first).expect("a byte");
        }
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().expect("wait").code(), Some(1));
        let (_, shown, _) = said(folder.path(), &["--json", "batch", "show", number]);
        let batch: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(batch["status"], "FAILED");
        assert_eq!(batch["jobs"][2]["status"], "SUCCESS");
    }
}

#[test]
fn what_a_script_reads_is_json_and_what_people_read_is_not_obeyed() {
    let folder = folder(
        "sources: { s: { url: 'sqlite::memory:' } }\n\
         jobs: { A: { type: SQL, source: s, sql: \"SELECT 'x' || char(27) || '[31m red' AS v\" } }\n",
    );
    let path = folder.path();
    let (code, shown, _) = said(path, &["run", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0);
    assert!(shown.contains("[31m red") && !shown.contains('\u{1b}'), "{shown}");
    for args in [
        &["--json", "batch", "list"][..],
        &["--json", "batch", "why", "1"],
        &["--json", "job", "list"],
        &["--json", "job", "show", "A"],
        &["--json", "check", "dag.yaml"],
        &["--json", "migrate"],
        &["dag", "dag.yaml"],
        &["dag", "--batch", "1"],
    ] {
        let (code, shown, error) = said(path, args);
        assert_eq!(code, 0, "{args:?}: {error}");
        serde_json::from_str::<serde_json::Value>(&shown)
            .unwrap_or_else(|e| panic!("{args:?}: {e}"));
    }
    std::fs::write(path.join("bad.yaml"), "jobs: { A: { type: NOPE } }\n").expect("file");
    let (code, shown, _) = said(path, &["--json", "check", "bad.yaml"]);
    let faults: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((code, &faults["ok"]), (2, &serde_json::Value::Bool(false)));
    assert_eq!(faults["faults"][0]["line"], 1);
}

#[test]
fn a_batch_number_may_be_an_expression() {
    let folder = folder("jobs: { A: { type: NOOP } }\n");
    let path = folder.path();
    let run = |args: &[&str]| said(path, &[&["run", "dag.yaml"], args].concat());
    let (code, shown, told) = run(&["--batch-no", "month(-1)", "--business-date", "2024-03-31"]);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("month(-1) is batch 202402"), "{told}");
    assert!(shown.contains("202402"), "{shown}");
    let json = r#"{"batchNo":"quarter(0)","businessDate":"2024-03-31"}"#;
    assert!(run(&["--order", json]).2.contains("quarter(0) is batch 2024Q1"));
    // Without a business date: today, which a test cannot know. Free text says nothing of itself.
    let (code, _, told) = run(&["--batch-no", "year(-1)"]);
    assert!(code == 0 && told.contains("year(-1) is batch 20"), "{told}");
    assert!(!run(&["--batch-no", "adhoc"]).2.contains("is batch"));
    for (no, said) in [
        ("prev", "prev is counted from another batch, and here is only a day"),
        ("last month", "'last month' is not a batch number and not an expression for one; write"),
        ("month", "'month' wants a number; write month(0)"),
    ] {
        let (code, _, told) = run(&["--batch-no", no]);
        assert!(code == 2 && told.contains(said), "{told}");
    }
    let (_, shown, _) = said(path, &["--json", "batch", "list"]);
    let batches: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(batches.as_array().map(Vec::len), Some(4), "a refused order leaves nothing");
}

#[test]
fn batch_no_shows_what_an_expression_means_without_a_database() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let numbers = |args: &[&str]| -> Vec<String> {
        let (code, shown, told) = said(path, &[&["--json", "batch", "no"], args].concat());
        assert_eq!(code, 0, "{told}");
        let rows: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let rows = rows.as_array().expect("array");
        rows.iter().map(|r| r["batch_no"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(numbers(&["month(-1)", "--at", "2024-03-31"]), ["202402"]);
    assert_eq!(numbers(&["202411..202501"]), ["202411", "202412", "202501"]);
    assert_eq!(numbers(&["months", "--from", "2024Q3"]), ["202407", "202408", "202409"]);
    assert_eq!(numbers(&["month(0)", "--from", "2024Q3", "--at", "2024-07-01"]), ["202407"]);
    assert_eq!(numbers(&["day(0)"]).len(), 1);
    let (code, shown, _) = said(path, &["batch", "no", "A,2024Q1"]);
    assert_eq!(code, 0);
    assert!(shown.contains("quarter") && shown.contains("2024-03-31"), "{shown}");
    let (_, shown, _) = said(path, &["batch", "no", "latest", "--from", "202407"]);
    assert!(shown.contains("the newest batch there is of the same kind, up to 202407"), "{shown}");
    for (args, told) in [
        (&["prev"][..], "prev is counted from another batch; name that batch: --from 202407"),
        (&["week(1)"], "is not a batch number and not an expression"),
        (&["202401..2024Q1"], "one end is a month, the other a quarter"),
        (&["A,B", "--at", "2024-01-01"], "a range names its batch numbers itself; leave out --at"),
        (&["prev", "--from", "adhoc"], "prev of batch adhoc: free text has no period"),
        (&["prev", "--from", "no/good"], "batch number 'no/good' is not usable"),
    ] {
        let (code, _, error) = said(path, &[&["batch", "no"], args].concat());
        assert!(code == 2 && error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(std::fs::read_dir(path).expect("folder").count(), 0, "no database file");
}

#[test]
fn chinese_is_spoken_where_it_is_asked_for() {
    let folder = folder("jobs: { A: { type: NOOP } }\n");
    let (code, shown, told) =
        said(folder.path(), &["--lang", "zh", "run", "dag.yaml", "--batch-no", "202407"]);
    assert_eq!(code, 0);
    assert!(shown.contains("批次 202407（作业组 default）：SUCCESS"), "{shown}");
    assert!(told.contains("业务日期 2024-07-31"), "{told}");
}

#[test]
fn errors_and_faults_are_chinese_and_json_is_not() {
    let folder = folder("jobs: { A: { type: PRC }, B: { type: NOOP, depends_on: [C] } }\n");
    let path = folder.path();
    let (code, _, error) = said(path, &["--lang", "zh", "check", "dag.yaml"]);
    assert_eq!(code, 2, "{error}");
    for part in
        ["错误：", "：作业 A：类型 PRC 不存在；是否想写 PROC？", "作业 B 依赖 C，而它没有定义；"]
    {
        assert!(error.contains(part), "{error}");
    }
    let (_, shown, _) = said(path, &["--lang", "zh", "--json", "check", "dag.yaml"]);
    assert!(shown.contains("type PRC does not exist"), "{shown}");
    std::fs::write(path.join("dag.yaml"), "jobs: { A: { type: NOOP } }\n").expect("file");
    let (code, shown, error) = said(path, &["--lang", "zh", "check", "dag.yaml"]);
    assert_eq!(
        (code, shown.as_str()),
        (0, "dag.yaml：没有错误；1 个作业，0 条依赖，1 个作业组，0 个数据源\n"),
        "{error}"
    );
    assert_eq!(said(path, &["run", "dag.yaml", "--batch-no", "1", "-q"]).0, 0);
    let (_, _, error) = said(path, &["--lang", "zh", "batch", "show", "999999"]);
    assert!(error.starts_with("错误：没有批次 999999；最近的批次有：1"), "{error}");
}

#[test]
fn what_does_not_hold_is_listed_and_a_warning_is_no_failure() {
    let folder = folder(
        "sources: { s: { url: 'sqlite:data.db' } }\n\
         jobs:\n  A:\n    type: SQL\n    sql: SELECT 1 AS n\n    success: { rule: result.n == 2, else: warning }\n    \
         checks: { tb: { sql: SELECT 5, expect: zero_rows, else: warning }, ok: { sql: SELECT 5, expect: { min: 5 } } }\n",
    );
    let path = folder.path();
    let (code, shown, _) = said(path, &["run", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0, "{shown}");
    for part in ["WARNING", "warning   check 'tb' found 1 row (5); expected no row"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("'ok'"), "{shown}");
    let (_, shown, _) = said(path, &["--lang", "zh", "batch", "show", "1"]);
    for part in ["未通过的成功条件或检查", "警告", "成功规则 'result.n == 2' 不成立"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    let (_, shown, _) = said(path, &["--json", "batch", "show", "1"]);
    let batch: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let outputs = &batch["jobs"][0]["outputs"];
    assert_eq!(outputs["checks"]["tb"]["value"], "1");
    assert_eq!(outputs["checks"]["ok"]["ok"], true);
    assert_eq!(outputs["rules"]["result.n == 2"]["grade"], "warning");
    let (_, shown, _) = said(path, &["job", "show", "A"]);
    assert!(shown.contains("check ok:\n  expects a value of 5 or more, else error"), "{shown}");
}

/// A chain, a side arm and two groups; `dag` without a database.
const PICTURE: &str = "
groups: { one: { name: One }, two: { name: Two } }
jobs:
  GL_LOAD: { type: NOOP, group: one, tags: [load] }
  GL_POST: { type: NOOP, group: one, depends_on: [GL_LOAD], tags: [post] }
  GL_SUM: { type: NOOP, group: one, depends_on: [GL_POST, GL_LOAD], tags: [post] }
  TAX: { type: NOOP, group: two }
";

fn picture(folder: &Path, args: &[&str]) -> serde_json::Value {
    let (code, shown, error) = said(folder, &[&["dag", "dag.yaml"][..], args].concat());
    assert_eq!(code, 0, "{args:?}: {error}");
    serde_json::from_str(&shown).expect("JSON")
}

fn ids(list: &serde_json::Value) -> Vec<&str> {
    list.as_array().expect("list").iter().map(|n| n["id"].as_str().expect("id")).collect()
}

#[test]
fn a_picture_shows_the_part_that_was_asked_for() {
    let folder = folder(PICTURE);
    let path = folder.path();
    let whole = picture(path, &[]);
    assert_eq!(ids(&whole["groups"]), ["one", "two"], "a file with several groups is one picture");
    assert_eq!(ids(&whole["nodes"]), ["GL_LOAD", "TAX", "GL_POST", "GL_SUM"]);
    let one = picture(path, &["--group", "one", "--reduce", "transitive", "--direction", "tb"]);
    assert_eq!(ids(&one["edges"]), ["GL_LOAD->GL_POST", "GL_POST->GL_SUM"]);
    assert_eq!(one["layout"]["direction"], "TB");
    let near = picture(path, &["--focus", "GL_POST", "--up", "1", "--down", "0"]);
    assert_eq!(ids(&near["nodes"]), ["GL_LOAD", "GL_POST"]);
    let tags = picture(path, &["--collapse", "tag", "--layout", "none", "--format", "native"]);
    assert_eq!(ids(&tags["nodes"]), ["TAX", "tag/one/load", "tag/one/post"]);
    assert!(tags["nodes"][0].get("x").is_none());
    let groups = picture(path, &["--collapse", "group"]);
    assert_eq!(ids(&groups["nodes"]), ["group/one", "group/two"]);
}

#[test]
fn a_picture_that_cannot_be_drawn_says_why() {
    let folder = folder(PICTURE);
    let refused = |args: &[&str]| {
        let (code, shown, error) = said(folder.path(), &[&["dag", "dag.yaml"][..], args].concat());
        assert_eq!((code, shown.as_str()), (2, ""), "{args:?}");
        error
    };
    let error = refused(&["--focus", "GL_PSOT"]);
    assert!(error.contains("there is no job GL_PSOT here; did you mean GL_POST?"), "{error}");
    let error = refused(&["--format", "visio"]);
    assert!(error.contains("native, reactflow, cytoscape") && error.contains("svg"), "{error}");
    assert!(refused(&["--up", "2"]).contains("--focus"));
    assert!(refused(&["--down", "2"]).contains("--focus"));
    let error = refused(&["--format", "svg", "--layout", "none"]);
    assert!(error.contains("svg needs positions; leave out --layout none"), "{error}");
    assert!(refused(&["--group", "three"]).contains("groups that exist: one"));
}
