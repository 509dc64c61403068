//! Text is the source: what is stored comes out as a file and goes in again, what a file would change
//! is said before, editors know what may be written.

use procession::app::{self, App, Apply, EmptyDatabase};
use procession::definition::{self, DefinitionFormat};
use procession::domain::job::Definition;
use secrecy::SecretString;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dag-examples");
    let entries = std::fs::read_dir(&folder).expect("dag-examples");
    let mut found: Vec<PathBuf> = entries.map(|e| e.expect("entry").path()).collect();
    found.retain(|p| p.extension().is_some_and(|e| e == "yaml"));
    assert!(found.len() >= 8, "{found:?}");
    found.sort();
    found
}

fn load(path: &Path) -> Definition {
    let loaded = app::load_definition(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    loaded.definition
}

async fn app(folder: &Path) -> App {
    let empty = tempfile::NamedTempFile::new().expect("a settings file");
    let mut config = crate::util::config(empty.path());
    config.database.url = SecretString::from(format!("sqlite:{}/m.db", folder.display()));
    App::open(config, EmptyDatabase::Prepare).await.expect("open")
}

// --- export ------------------------------------------------------------------------------------------

#[tokio::test]
async fn every_example_comes_out_as_it_went_in() {
    let csv = Path::new(env!("CARGO_MANIFEST_DIR")).join("dag-examples/csv/job_def.csv");
    for path in examples().into_iter().chain([csv]) {
        let folder = tempfile::tempdir().expect("folder");
        let app = app(folder.path()).await;
        app.apply(&load(&path), Apply::Write).await.expect("apply");
        let stored = app.definition().await.expect("stored");
        for (name, format) in
            [("x.yaml", DefinitionFormat::Yaml), ("x.json", DefinitionFormat::Json)]
        {
            let text = definition::export(&stored, &app::job_kinds(), format)
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let file = folder.path().join(name);
            std::fs::write(&file, &text).expect("file");
            let changes = app.apply(&load(&file), Apply::DryRun).await.expect("diff");
            assert_eq!(changes, [], "{}:\n{text}", path.display());
            assert_valid(&text, name);
        }
        app.close().await;
    }
}

// --- the schema for editors --------------------------------------------------------------------------

fn schema() -> Value {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/procession.schema.json"),
    );
    serde_json::from_str(&text.expect("make docs writes it")).expect("JSON")
}

/// What an editor would underline, if anything.
fn underlined(text: &str) -> Option<String> {
    let document: Value = serde_saphyr::from_str(text).expect("YAML");
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("mem:///schema.json", schema()).expect("a resource");
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile("mem:///schema.json", &mut schemas).expect("a JSON Schema");
    schemas.validate(&document, index).err().map(|error| format!("{error:#}"))
}

fn assert_valid(text: &str, name: &str) {
    if let Some(error) = underlined(text) {
        panic!("{name}: {error}");
    }
}

#[test]
fn editors_underline_nothing_in_the_examples() {
    for path in examples() {
        let text = std::fs::read_to_string(&path).expect("text");
        let name = path.display().to_string();
        assert_valid(&text, &name);
        let first = text.lines().next().unwrap_or_default();
        let wanted = "# yaml-language-server: $schema=../docs/procession.schema.json";
        assert_eq!(first, wanted, "{name}");
    }
}

#[test]
fn editors_underline_what_would_be_refused() {
    let sound = "\
include: a.yaml
owners: {gl: {email: a@b.c}}
templates: {t: {timeout_sec: 5, proc_name: }}
groups: [{code: g, params: {rate: 7.1, day: {type: date}}}]
defaults: {type: NOOP, source: s}
jobs:
  A:
  B: {type: PROC, proc_name: p, params: [{name: x, mode: out, type: int}], aliases: OLD}
  C: {type: SQL, sql: {mysql: SELECT 1}, depends_on: [A, {job: B, when: done}], timeout_sec: '60'}
  D: {type: SQL, sql_file: x.sql, depends_on: B, is_active: yes}
  E: {type: PROC, template: t, schedule_time: '22:30'}
  G: {type: NOOP, start_by: 45s, due: workday(+2) 08:00, slow_after: 1.25}
  H: {type: NOOP, start_by: '08:00', due: +1d 08:00, slow_after: 2}
  I: {type: NOOP, start_by: 1h30m, due: workday(3) 08:00:30, slow_after: '2.0'}
  F: {type: NOOP, transaction: one, notify: {failed: off, late_finish: day}, notify_email: 'channel:ops'}
";
    assert_valid(sound, "a sound file");
    for broken in [
        "jbos: {}",
        "jobs: 5",
        "jobs: {A: {tpye: NOOP}}",
        "jobs: {A: {type: NOPE}}",
        "jobs: {A: {type: PROC}}",
        "jobs: {A: {type: NOOP, sql: SELECT 1}}",
        "jobs: {A: {type: SQL, sql: x, script: y}}",
        "jobs: {A: {type: SQL, template: t, script: y}}",
        "jobs: {A: {type: SQL, sql: {oracle: x}}}",
        "jobs: {A: {type: NOOP, timeout_sec: 0}}",
        "jobs: {A: {type: NOOP, timeout_sec: soon}}",
        "jobs: {A: {type: NOOP, is_active: maybe}}",
        "jobs: {A: {type: NOOP, schedule_time: late}}",
        "jobs: {A: {type: NOOP, trigger_rule: all_sucess}}",
        "jobs: {A: {type: NOOP, depends_on: [{jbo: B}]}}",
        "jobs: {A: {type: SQL, sql: x, params: {a: 1}}}",
        "jobs: {A: {type: SQL, sql: x, params: [{name: a, mode: outside}]}}",
        "jobs: [{type: NOOP}]",
        "groups: {g: {zone: x}}",
        "groups: {g: {params: {a: {typ: int}}}}",
        "templates: {t: {code: X}}",
        "templates: {t: {timeout_sec: soon}}",
        "owners: {o: {mail: x}}",
        "jobs: {A: {type: NOOP, due: tomorrow}}",
        "jobs: {A: {type: NOOP, due: 2h 08:00}}",
        "jobs: {A: {type: NOOP, slow_after: 1}}",
        "groups: {g: {start_by: 2h}}",
        "owners: {o: {lang: fr}}",
        "groups: {g: {notify: {faild: now}}}",
        "jobs: {A: {type: NOOP, notify: {failed: never}}}",
        "sources: {s: {url: x, password: y}}",
        "defaults: {proc_name: x}",
        "dependencies: [{job: A}]",
        "include: {a: b}",
    ] {
        assert!(underlined(broken).is_some(), "nobody minds {broken}");
    }
}

// --- the page about definition files -------------------------------------------------------------------

/// The blocks of a page that have a file's name over them: `<!-- file: close.yaml -->`.
fn files_of(page: &str) -> Vec<(String, String)> {
    let parts = page.split("<!-- file: ").skip(1);
    let file = |part: &str| -> Option<(String, String)> {
        let (name, rest) = part.split_once(" -->")?;
        let (_, rest) = rest.split_once("```yaml\n")?;
        let (text, _) = rest.split_once("```")?;
        Some((name.to_owned(), text.to_owned()))
    };
    parts.map(|part| file(part).expect("a block of YAML under its name")).collect()
}

#[test]
fn what_the_page_shows_is_accepted() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/definitions.md");
    let files = files_of(&std::fs::read_to_string(page).expect("text"));
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in &files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        std::fs::write(path, text).expect("file");
        assert_valid(text, name);
    }
    let loaded = app::load_definition(&folder.path().join(&files[0].0)).expect("sound");
    assert_eq!(loaded.warnings, []);
    let job = |code: &str| {
        let found = loaded.definition.jobs.iter().find(|j| j.code.as_str() == code);
        found.unwrap_or_else(|| panic!("no {code}")).clone()
    };
    let params = |code: &str| {
        let named: Vec<String> = job(code).params.into_iter().map(|p| p.name).collect();
        named.join(" ")
    };
    assert_eq!(params("GL_LOAD"), "p_batch_no p_rows p_region");
    assert_eq!((job("GL_LOAD").timeout_sec, job("GL_LOAD").retry_count), (3_600, 0));
    assert_eq!((job("FX_LOAD").timeout_sec, job("FX_LOAD").retry_count), (60, 2));
    let used = job("GL_POST").params[1].value.clone();
    assert_eq!(used.as_deref(), Some("${jobs.GL_LOAD.p_rows}"));
}

// --- the verbs ---------------------------------------------------------------------------------------

fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C").env("USER", "li");
    let Output { status, stdout, stderr } = command.args(args).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

const CLOSE: &str = "\
include: [sources.yaml]
owners: {gl: {name: GL team, email: [gl@bank.example]}}
groups: {close: {owner: gl}}
templates:
  quick: {timeout_sec: 60, tags: [nightly]}
jobs:
  LOAD: {type: SQL, source: dev, sql: 'SELECT 7 AS n', template: quick, aliases: [OLD_LOAD]}
  DONE: {type: NOOP, depends_on: [OLD_LOAD], owner: gl}
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("file");
    };
    write("close.yaml", CLOSE);
    write("sources.yaml", "sources: {dev: {url: 'sqlite:dev.db'}}\n");
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn diff_says_what_apply_would_change_and_touches_nothing() {
    let folder = folder();
    let path = folder.path();
    let (code, shown, error) = said(path, &["diff", "close.yaml"]);
    assert_eq!(code, 1, "{error}");
    assert!(
        shown.contains("+ job LOAD\n") && shown.ends_with("6 changes would be applied\n"),
        "{shown}"
    );
    assert_eq!(files(path), ["close.yaml", "sources.yaml"], "no database was made");
    assert_eq!(said(path, &["apply", "close.yaml"]).0, 0);
    let (code, shown, _) = said(path, &["diff", "close.yaml"]);
    assert_eq!((code, shown.as_str()), (0, "no changes\n"));
    std::fs::write(path.join("close.yaml"), CLOSE.replace("60", "90")).expect("file");
    let (code, shown, _) = said(path, &["diff", "close.yaml"]);
    assert_eq!(code, 1);
    assert_eq!(shown, "~ job LOAD\n    timeout_sec: 60 -> 90\n1 change would be applied\n");
    let (code, shown, _) = said(path, &["--json", "diff", "close.yaml"]);
    let document: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((code, &document["applied"]), (1, &Value::Bool(false)));
    let field = &document["changes"][0]["fields"][0];
    assert_eq!((field["field"].as_str(), field["new"].as_str()), (Some("timeout_sec"), Some("90")));
    assert_eq!(said(path, &["diff", "gone.yaml"]).0, 2);
}

#[test]
fn a_pipeline_moves_between_environments() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(said(path, &["apply", "close.yaml"]).0, 0);
    let (code, shown, error) = said(
        path,
        &[
            "export",
            "--map-source",
            "dev=prod",
            "--set-url",
            "prod=mysql://u@db.bank.example/gl",
            "--out",
            "prod.yaml",
        ],
    );
    assert_eq!((code, shown.as_str(), error.as_str()), (0, "", "prod.yaml: 2 jobs written\n"));
    let text = std::fs::read_to_string(path.join("prod.yaml")).expect("file");
    assert!(text.contains("  prod:\n    url: mysql://u@db.bank.example/gl\n"), "{text}");
    assert!(text.contains("    source: prod\n") && !text.contains("dev"), "{text}");
    assert_eq!(said(path, &["--db", "sqlite:other.db", "apply", "prod.yaml"]).0, 0);
    // The same from the other side, and as JSON to standard output.
    let (code, shown, _) =
        said(path, &["--db", "sqlite:other.db", "export", "--group", "close", "--format", "json"]);
    let document: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((code, &document["jobs"]["LOAD"]["source"]), (0, &Value::from("prod")));
    let before = files(path);
    for (args, wanted) in [
        (
            &["export", "--map-source", "stage=prod"][..],
            "there is no source stage to map; the sources are dev",
        ),
        (&["export", "--map-source", "dev"], "--map-source dev: write SOURCE=WORD"),
        (&["export", "--map-source", "dev=a b"], "source name 'a b' is not usable"),
        (&["export", "--set-url", "dev=oracle://x"], "source dev: url has the scheme \"oracle\""),
        (
            &["export", "--set-url", "dev=mysql://u:geheim@h/d", "--out", "x.yaml"],
            "url holds a password",
        ),
        (&["export", "--group", "open"], "there is no group open; the groups are close"),
    ] {
        let (code, shown, error) = said(path, args);
        assert_eq!((code, shown.as_str()), (2, ""), "{args:?}");
        assert!(error.contains(wanted) && !error.contains("geheim"), "{error}");
    }
    assert_eq!(files(path), before, "nothing is left behind");
}

#[test]
fn a_group_has_a_history_and_can_go_back() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(said(path, &["apply", "close.yaml", "--remark", "first"]).0, 0);
    std::fs::write(path.join("close.yaml"), CLOSE.replace("DONE", "CLOSED")).expect("file");
    let by = ["--author", "wang", "--remark", "renamed\nand so on"];
    assert_eq!(said(path, &[&["apply", "close.yaml"][..], &by].concat()).0, 0);
    let (code, shown, _) = said(path, &["--json", "history", "close"]);
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (code, all[0]["version"].as_i64(), all[0]["author"].as_str()),
        (0, Some(2), Some("wang"))
    );
    assert_eq!((all[1]["author"].as_str(), all[1]["remark"].as_str()), (Some("li"), Some("first")));
    let (_, shown, _) = said(path, &["history", "close"]);
    assert!(shown.contains(" wang ") && shown.contains("+2 ~0 -2"), "{shown}");
    let (_, shown, _) = said(path, &["history", "close", "--show", "2"]);
    assert!(
        shown.starts_with("version 2 of close, ") && shown.contains("\n+ job CLOSED\n"),
        "{shown}"
    );

    let back = ["rollback", "close", "--to", "1", "--reason", "was right"];
    let (code, shown, _) = said(path, &[&back[..], &["--dry-run"]].concat());
    assert_eq!(code, 0);
    assert!(shown.ends_with("4 changes would be applied\n"), "{shown}");
    let (code, shown, error) = said(path, &back);
    assert_eq!(code, 0, "{error}");
    assert!(shown.ends_with("- dependency CLOSED <- LOAD\n+ dependency DONE <- LOAD\n4 changes applied\ngroup close is version 3 now\n"), "{shown}");
    let (_, shown, _) = said(path, &["history", "close"]);
    assert!(shown.contains("rollback to version 1: was right"), "{shown}");
    for (args, wanted) in [
        (&["history", "open"][..], "there is no group open; the groups are close"),
        (&["history", "close", "--show", "9"], "there is no version 9; the versions are 1 to 3"),
        (&["rollback", "close", "--to", "9", "--reason", "x"], "there is no version 9"),
        (&["rollback", "close", "--to", "1"], "--reason"),
        (&["rollback", "close", "--to", "1", "--reason", " "], "write 1 to 10000 characters"),
        (&["apply", "close.yaml", "--author", "a\nb"], "write 1 to 255 characters on one line"),
    ] {
        let (code, _, error) = said(path, args);
        assert!(code == 2 && error.contains(wanted), "{args:?}: {code} {error}");
    }
}

#[test]
fn jobs_are_found_by_alias_tag_and_owner() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(said(path, &["run", "close.yaml", "--batch-no", "1", "--remark", "go"]).0, 0);
    let (code, shown, _) = said(path, &["job", "show", "OLD_LOAD"]);
    assert_eq!(code, 0);
    for part in
        ["LOAD · ", "aliases:  OLD_LOAD", "owner:    gl", "tags:     nightly", "before:   DONE"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(said(path, &["logs", "1", "OLD_LOAD"]).1.contains("SUCCESS"));
    let listed = |args: &[&str]| -> String {
        let (_, shown, _) = said(path, &[&["--json", "job", "list"], args].concat());
        let all: Vec<Value> = serde_json::from_str(&shown).expect("JSON");
        let codes: Vec<&str> = all.iter().filter_map(|j| j["job"]["code"].as_str()).collect();
        codes.join(" ")
    };
    assert_eq!(listed(&["--tag", "nightly"]), "LOAD");
    assert_eq!(listed(&["--tag", "night"]), "");
    assert_eq!(listed(&["--owner", "gl"]), "LOAD DONE");
    assert_eq!(listed(&["--owner", "fx"]), "");
    let (_, shown, _) = said(path, &["--json", "history", "close"]);
    assert!(shown.contains("\"remark\": \"go\""), "{shown}");
    let (code, shown, _) = said(path, &["schema"]);
    let printed: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((code, printed), (0, schema()));
}
