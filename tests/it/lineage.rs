//! `check FILE --lineage` on real servers: what their catalogues say, and what follows for pairs of jobs.

use crate::cli::{procession, said};
use crate::preflight::make_login;
use crate::util::with_scratch;
use procession::domain::source::DialectName;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Example, batch number, variable that names its server, an order and the one it is changed to, the table that the
/// change makes two jobs meet on.
const EXAMPLES: [(&str, &str, &str, [&str; 2], &str); 2] = [
    (
        "month-end-close",
        "202407",
        "PROCESSION_SOURCE_LEDGER",
        ["payable\n    depends_on: [FX_LOAD]", "payable\n    depends_on: [PERIOD_OPEN]"],
        "fx_rate",
    ),
    (
        "quarter-end-consolidation",
        "2024Q3",
        "PROCESSION_SOURCE_CONSOLIDATION",
        ["depends_on: [INVESTMENT_ELIMINATE]", "depends_on: [PACKAGE_STATUS]"],
        "group_entry",
    ),
];

/// Exit code and document of `check --lineage --json`.
fn check(folder: &Path, file: &str, source: (&str, &str), more: &[&str]) -> (i32, Value) {
    let mut program = procession(folder);
    program.args(["check", file, "--lineage", "--json"]).args(more).env(source.0, source.1);
    let output = program.output().expect("check");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code().unwrap_or(-1), found)
}

async fn the_examples_are_safe_and_a_missing_order_is_told(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        for (name, batch_no, variable, [order, changed], table) in EXAMPLES {
            let folder = tempfile::tempdir().expect("folder");
            let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("dag-examples");
            symlink(shipped.join(name), folder.path().join(name)).expect("a link");
            let text = std::fs::read_to_string(shipped.join(format!("{name}.yaml"))).expect("YAML");
            std::fs::write(folder.path().join("whole.yaml"), &text).expect("file");
            assert!(text.contains(order), "{name} has no {order}");
            let text = text.replacen(order, changed, 1);
            std::fs::write(folder.path().join("changed.yaml"), text).expect("file");
            let (path, url) = (folder.path().to_owned(), db.url.clone());
            let ran = tokio::task::spawn_blocking(move || {
                let mut run = procession(&path);
                run.args(["run", "whole.yaml", "--batch-no", batch_no]).env(variable, &url);
                let ran = run.output().expect("run");
                assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
                let source = (variable, url.as_str());
                (check(&path, "whole.yaml", source, &[]), check(&path, "changed.yaml", source, &[]))
            });
            let ((code, whole), (changed_code, changed)) = ran.await.expect("ran");
            assert_eq!(code, 0, "{name} on {dialect}: {whole}");
            let group = &whole["lineage"]["groups"][0];
            assert_eq!(group["conflicts"], serde_json::json!([]), "{name} on {dialect}");
            let coverage = &group["coverage"];
            assert_eq!(coverage["safe_pairs"], coverage["pairs"], "{name} on {dialect}: {group}");
            assert!(coverage["pairs"].as_u64() > Some(3), "{coverage}");
            assert_eq!(changed_code, 1, "{name} on {dialect}: {changed}");
            let conflicts = changed["lineage"]["groups"][0]["conflicts"].as_array();
            let told = |one: &Value| {
                one["kind"] == "race"
                    && one["table"].as_str().is_some_and(|name| name.ends_with(table))
            };
            assert!(conflicts.is_some_and(|all| all.iter().any(told)), "{dialect}: {changed}");
        }
    })
    .await;
}

const SQLITE_SCHEMA: &[&str] = &[
    "CREATE TABLE head (id INTEGER PRIMARY KEY, code TEXT, total INT)",
    "CREATE TABLE line (id INTEGER, head_id INT REFERENCES head (id) ON DELETE CASCADE)",
    "CREATE TABLE audit (code TEXT)",
    "CREATE VIEW v AS SELECT code, total FROM head",
    "CREATE TRIGGER t AFTER UPDATE ON head FOR EACH ROW BEGIN INSERT INTO audit (code) VALUES (NEW.code); END",
];
const MYSQL_SCHEMA: &[&str] = &[
    "CREATE TABLE head (id INT PRIMARY KEY, code VARCHAR(9), total INT)",
    "CREATE TABLE line (id INT, head_id INT, FOREIGN KEY (head_id) REFERENCES head (id) ON DELETE CASCADE)",
    "CREATE TABLE audit (code VARCHAR(9))",
    "CREATE VIEW v AS SELECT code, total FROM head",
    "CREATE TRIGGER t AFTER UPDATE ON head FOR EACH ROW INSERT INTO audit (code) VALUES (NEW.code)",
    "CREATE FUNCTION f_total(p VARCHAR(9)) RETURNS INT READS SQL DATA RETURN (SELECT SUM(total) FROM v WHERE code = p)",
    "CREATE PROCEDURE sp_read(IN p VARCHAR(9)) BEGIN DECLARE n INT; SET n = f_total(p); END",
];
const POSTGRES_SCHEMA: &[&str] = &[
    "CREATE TABLE head (id int PRIMARY KEY, code text, total int)",
    "CREATE TABLE line (id int, head_id int REFERENCES head (id) ON DELETE CASCADE)",
    "CREATE TABLE audit (code text)",
    "CREATE VIEW v AS SELECT code, total FROM head",
    "CREATE FUNCTION t_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (code) VALUES (NEW.code); RETURN NEW; END $$",
    "CREATE TRIGGER t AFTER UPDATE ON head FOR EACH ROW EXECUTE FUNCTION t_audit()",
    "CREATE FUNCTION f_total(p text) RETURNS bigint LANGUAGE sql AS 'SELECT sum(total) FROM v WHERE code = p'",
    "CREATE PROCEDURE sp_read(p text) LANGUAGE plpgsql AS $$ BEGIN PERFORM f_total(p); END $$",
];

fn schema(dialect: DialectName) -> &'static [&'static str] {
    match dialect {
        DialectName::Sqlite => SQLITE_SCHEMA,
        DialectName::Mysql => MYSQL_SCHEMA,
        DialectName::Postgres => POSTGRES_SCHEMA,
    }
}

/// Jobs whose accesses are all behind something: a procedure, a function, a view, a trigger, a foreign key.
fn jobs(dialect: DialectName) -> String {
    let reader = match dialect {
        DialectName::Sqlite => {
            "{type: SQL, sql: SELECT SUM(total) FROM v WHERE code = 'A'}".to_owned()
        }
        DialectName::Mysql | DialectName::Postgres => {
            "{proc_name: sp_read, params: [{name: p, value: A}]}".to_owned()
        }
    };
    format!(
        "  READ: {reader}
  WRITE_A: {{type: SQL, sql: UPDATE head SET total = 1 WHERE code = 'A'}}
  WRITE_B: {{type: SQL, sql: UPDATE head SET total = 1 WHERE code = 'B'}}
  AUDIT_A: {{type: SQL, sql: SELECT COUNT(*) FROM audit WHERE code = 'A'}}
  LINES: {{type: SQL, sql: SELECT head_id FROM line}}
  PURGE: {{type: SQL, sql: DELETE FROM head WHERE code = 'C'}}
"
    )
}

async fn lineage_of(url: &str, jobs: String, more: &'static [&'static str]) -> (i32, Value) {
    let yaml = format!(
        "sources: {{s: {{url: '{url}'}}}}\ndefaults: {{type: PROC, source: s}}\njobs:\n{jobs}"
    );
    tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
        check(folder.path(), "dag.yaml", ("PROCESSION_UNUSED", ""), more)
    })
    .await
    .expect("ran")
}

/// `JOB JOB table`, in their order.
fn pairs(document: &Value) -> Vec<String> {
    let conflicts = document["lineage"]["groups"][0]["conflicts"].as_array().expect("conflicts");
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let one = |found: &Value| {
        let mut jobs = [word(&found["first"]["job"]), word(&found["second"]["job"])];
        jobs.sort();
        let table = word(&found["table"]);
        let table = table.rsplit('.').next().unwrap_or_default().to_owned();
        format!("{} {} {table}", jobs[0], jobs[1])
    };
    let mut all: Vec<String> = conflicts.iter().map(one).collect();
    all.sort();
    all
}

async fn a_catalogue_leads_through_views_triggers_and_foreign_keys(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        db.setup(schema(dialect)).await;
        let (code, document) = lineage_of(&db.url, jobs(dialect), &[]).await;
        assert_eq!(
            document["lineage"]["groups"][0]["unknown"],
            serde_json::json!([]),
            "{document}"
        );
        let expected = ["AUDIT_A WRITE_A audit", "LINES PURGE line", "READ WRITE_A head"];
        assert_eq!(pairs(&document), expected, "{dialect}: {document}");
        assert_eq!(code, 1);
    })
    .await;
}

/// A user who may call a procedure and not see it.
async fn a_hidden_body_is_opaque_and_names_the_grant(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        db.setup(schema(dialect)).await;
        let login = make_login(&db).await;
        let (schema, name) = (&db.name, &login.name);
        db.setup(&[
            &format!("GRANT EXECUTE ON `{schema}`.* TO {name}"),
            &format!("GRANT SELECT, UPDATE ON `{schema}`.* TO {name}"),
        ])
        .await;
        let two: Vec<String> = jobs(dialect).lines().take(2).map(str::to_owned).collect();
        let (code, document) = lineage_of(&login.url, two.join("\n"), &[]).await;
        login.drop(&db).await;
        let unknown = document["lineage"]["groups"][0]["unknown"].as_array().expect("a list");
        let of = |job: &str| {
            let found = unknown.iter().find(|one| one["job"] == job);
            found.unwrap_or_else(|| panic!("{job}: {document}"))["opaque"].to_string()
        };
        assert!(of("READ").contains("sp_read") && of("READ").contains("GRANT S"), "{}", of("READ"));
        assert!(of("WRITE_A").contains("GRANT TRIGGER ON"), "{}", of("WRITE_A"));
        assert_eq!(code, 0, "what cannot be told is no race: {document}");
    })
    .await;
}

/// SQL that is made at run time: possible, and a fault only when the caller is strict.
async fn dynamic_sql_is_possible_and_a_fault_when_strict(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let dynamic = match dialect {
            DialectName::Postgres => {
                "CREATE PROCEDURE sp_dyn(p text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DELETE FROM head WHERE code = $1' USING p; END $$"
            }
            DialectName::Mysql | DialectName::Sqlite => {
                "CREATE PROCEDURE sp_dyn(IN p VARCHAR(9)) BEGIN SET @q = 'DELETE FROM head WHERE 1'; PREPARE s FROM @q; EXECUTE s; END"
            }
        };
        db.setup(schema(dialect)).await;
        db.setup(&[dynamic]).await;
        let jobs = "  DYN: {proc_name: sp_dyn, params: [{name: p, value: A}]}\n  \
                    LOOK: {type: SQL, sql: SELECT total FROM head}\n";
        let (code, document) = lineage_of(&db.url, jobs.to_owned(), &[]).await;
        assert_eq!(document["lineage"]["groups"][0]["conflicts"][0]["kind"], "possible", "{document}");
        assert_eq!(code, 0);
        let (strict, _) = lineage_of(&db.url, jobs.to_owned(), &["--strict"]).await;
        assert_eq!(strict, 1);
        let accepted = jobs.replace("sp_dyn,", "sp_dyn, lineage: {opaque: accepted, writes: [\"head[code=A]\"]},")
            .replace("FROM head}", "FROM head WHERE code = 'B'}");
        let (code, document) = lineage_of(&db.url, accepted, &["--strict"]).await;
        assert_eq!(code, 0, "{document}");
        assert_eq!(document["lineage"]["groups"][0]["coverage"]["safe_pairs"], 1, "{document}");
    })
    .await;
}

#[test]
fn a_race_is_printed_with_both_places_and_the_fix() {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "sources: {s: {url: 'sqlite:l.db'}}\ndefaults: {type: SQL, source: s}\njobs:\n  \
                LOAD: {sql: DELETE FROM fx WHERE day = 1}\n  USE: {sql: SELECT r FROM fx WHERE day = 1}\n";
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    std::fs::write(folder.path().join("l.db"), "").expect("an empty database");
    let (code, text, error) = said(folder.path(), &["check", "dag.yaml", "--lineage"]);
    assert_eq!(code, 1, "{text}{error}");
    for part in [
        "RACE      LOAD and USE: no path orders them, and both touch main.fx",
        "LOAD  deletes from main.fx [day = 1]  LOAD:1",
        "USE   reads main.fx [day = 1]  USE:1",
        "→ USE: depends_on: [LOAD]",
        "read 2 of 2 jobs wholly; 0 of 1 pairs that no path orders are safe, 1 in conflict, 0 cannot be told",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (code, text, _) = said(folder.path(), &["lineage", "show", "dag.yaml", "USE"]);
    assert_eq!((code, text.as_str()), (0, "USE\n  reads main.fx [day = 1]  USE:1\n"));
    let (code, text, _) = said(folder.path(), &["lineage", "impact", "dag.yaml", "--table", "fx"]);
    assert_eq!(code, 0);
    let expected = "fx is written by LOAD (deletes from)\n  read by USE (reads)\n";
    assert_eq!(text, expected);
    let (code, _, error) = said(folder.path(), &["lineage", "show", "dag.yaml", "USED"]);
    assert_eq!(code, 2);
    assert!(error.contains("has no active job USED"), "{error}");
    let (code, text, _) = said(folder.path(), &["check", "dag.yaml", "--lineage", "--lang", "zh"]);
    assert_eq!(code, 1);
    assert!(text.contains("RACE      LOAD 与 USE"), "{text}");
}

mod sqlite {
    use super::DialectName::Sqlite;

    #[tokio::test]
    async fn the_examples_are_safe_and_a_missing_order_is_told() {
        super::the_examples_are_safe_and_a_missing_order_is_told(Sqlite).await;
    }

    #[tokio::test]
    async fn a_catalogue_leads_through_views_triggers_and_foreign_keys() {
        super::a_catalogue_leads_through_views_triggers_and_foreign_keys(Sqlite).await;
    }
}

mod mysql {
    use super::DialectName::Mysql;

    #[tokio::test]
    async fn the_examples_are_safe_and_a_missing_order_is_told() {
        super::the_examples_are_safe_and_a_missing_order_is_told(Mysql).await;
    }

    #[tokio::test]
    async fn a_catalogue_leads_through_views_triggers_and_foreign_keys() {
        super::a_catalogue_leads_through_views_triggers_and_foreign_keys(Mysql).await;
    }

    #[tokio::test]
    async fn a_hidden_body_is_opaque_and_names_the_grant() {
        super::a_hidden_body_is_opaque_and_names_the_grant(Mysql).await;
    }

    #[tokio::test]
    async fn dynamic_sql_is_possible_and_a_fault_when_strict() {
        super::dynamic_sql_is_possible_and_a_fault_when_strict(Mysql).await;
    }
}

mod postgres {
    use super::DialectName::Postgres;

    #[tokio::test]
    async fn the_examples_are_safe_and_a_missing_order_is_told() {
        super::the_examples_are_safe_and_a_missing_order_is_told(Postgres).await;
    }

    #[tokio::test]
    async fn a_catalogue_leads_through_views_triggers_and_foreign_keys() {
        super::a_catalogue_leads_through_views_triggers_and_foreign_keys(Postgres).await;
    }

    #[tokio::test]
    async fn dynamic_sql_is_possible_and_a_fault_when_strict() {
        super::dynamic_sql_is_possible_and_a_fault_when_strict(Postgres).await;
    }
}
