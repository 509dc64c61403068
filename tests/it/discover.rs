//! `discover` on real servers: the procedures of the month-end close, called one after the other by a master, become a
//! DAG that runs side by side what the data allows, and leaves the same rows behind.

use crate::cli::said;
use crate::preflight::make_login;
use crate::util::{Scratch, query, with_scratch};
use procession::app::job_kinds;
use procession::definition;
use procession::domain::job::Definition;
use procession::domain::source::DialectName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const BATCH_NO: &str = "202407";

/// The demo's tables, procedures and sample data alone.
const SETUP: &str = "
sources: { ledger: { url: 'URL' } }
jobs:
  DEMO_SETUP:
    type: SQL
    source: ledger
    transaction: none
    sql_file: month-end-close/setup.{dialect}.sql
    params: [{ name: batch_no, value: '${batch_no}' }]
";

/// What a team without a scheduler has: one procedure that calls all others.
const MYSQL_MASTER: &str = "
CREATE PROCEDURE sp_close_all(IN p_batch_no VARCHAR(50))
BEGIN
  DECLARE v_start DATE;
  DECLARE v_end DATE;
  DECLARE v_rows BIGINT;
  DECLARE v_total, v_income, v_assets DECIMAL(18,2);
  DECLARE v_rate DECIMAL(9,6) DEFAULT 0.25;
  BODY
END";
const POSTGRES_MASTER: &str = "
CREATE PROCEDURE sp_close_all(p_batch_no text) LANGUAGE plpgsql AS $$
DECLARE
  v_start date;
  v_end date;
  v_rows bigint;
  v_total numeric;
  v_income numeric;
  v_assets numeric;
  v_rate numeric := 0.25;
BEGIN
  BODY
END $$";
const CALLS: &str = "
  CALL sp_period_open(p_batch_no, v_start, v_end);
  CALL sp_fx_load(p_batch_no, 'CNY', v_rows);
  CALL sp_sl_ap(p_batch_no, v_rows, v_total);
  CALL sp_sl_ar(p_batch_no, v_rows, v_total);
  CALL sp_sl_bank(p_batch_no, v_rows, v_total);
  CALL sp_sl_payroll(p_batch_no, v_rows, v_total);
  CALL sp_fa_depreciation(p_batch_no, v_rows, v_total);
  CALL sp_sl_inventory(p_batch_no, v_rows, v_total);
  CALL sp_prepaid_amortisation(p_batch_no, v_rows, v_total);
  CALL sp_intercompany(p_batch_no, v_rows, v_total);
  CALL sp_fx_revalue(p_batch_no, v_rows, v_total);
  CALL sp_tax_provision(p_batch_no, v_rate, v_total);
  CALL sp_post_gl(p_batch_no, v_rows, v_total);
  CALL sp_trial_balance(p_batch_no, v_rows, v_total);
  CALL sp_income_statement(p_batch_no, v_income);
  CALL sp_balance_sheet(p_batch_no, v_income, v_assets);
  CALL sp_period_lock(p_batch_no, 42);";

/// Rows that the close leaves behind, from each table a text in an order of its own.
const RESULTS: [&str; 6] = [
    "SELECT journal_code, line_no, account_code, debit, credit FROM journal_line ORDER BY 1, 2",
    "SELECT account_code, closing FROM gl_balance ORDER BY 1",
    "SELECT account_code, closing_debit, closing_credit FROM trial_balance ORDER BY 1",
    "SELECT line_no, amount FROM income_statement ORDER BY 1",
    "SELECT line_no, amount FROM balance_sheet ORDER BY 1",
    "SELECT status, pack_lines FROM period ORDER BY batch_no",
];

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dag-examples")
}

async fn run_program(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let (folder, args) = (folder.to_owned(), args.iter().map(ToString::to_string));
    let args: Vec<String> = args.collect();
    tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        said(&folder, &args)
    })
    .await
    .expect("ran")
}

async fn set_up(folder: &Path, metadata: &str) {
    let args = ["--db", metadata, "run", "setup.yaml", "--batch-no", BATCH_NO];
    let (code, _, error) = run_program(folder, &args).await;
    assert_eq!(code, 0, "{error}");
}

async fn results(db: &Scratch) -> Vec<Vec<Vec<Option<String>>>> {
    let mut all = Vec::new();
    for sql in RESULTS {
        all.push(query(&db.url, sql).await);
    }
    all
}

/// A folder with the example's files, and a database with its procedures and a master.
async fn close_with_master(db: &Scratch) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    symlink(shipped().join("month-end-close"), folder.path().join("month-end-close"))
        .expect("a link");
    std::fs::write(folder.path().join("setup.yaml"), SETUP.replace("URL", &db.url)).expect("file");
    set_up(folder.path(), "sqlite:first.db").await;
    let master = match db.dialect {
        DialectName::Postgres => POSTGRES_MASTER,
        DialectName::Mysql | DialectName::Sqlite => MYSQL_MASTER,
    };
    db.setup(&[&master.replace("BODY", CALLS)]).await;
    folder
}

fn load(path: &Path) -> Definition {
    let read = |file: &Path| std::fs::read_to_string(file);
    definition::load_definition(path, &read, &job_kinds()).expect("a definition").definition
}

/// Which procedures come before which, by any path.
fn orders(defs: &Definition) -> BTreeSet<(String, String)> {
    let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &defs.dependencies {
        parents.entry(one.job_code.as_str()).or_default().push(one.depends_on.as_str());
    }
    let procedure = |code: &str| {
        let job = defs.jobs.iter().find(|job| job.code.as_str() == code).expect("a job");
        job.proc_name.clone()
    };
    let mut found = BTreeSet::new();
    for job in &defs.jobs {
        let (mut above, mut open) = (BTreeSet::new(), vec![job.code.as_str()]);
        while let Some(code) = open.pop() {
            for parent in parents.get(code).into_iter().flatten() {
                if above.insert(*parent) {
                    open.push(parent);
                }
            }
        }
        let own = procedure(job.code.as_str());
        let pairs = above.into_iter().filter_map(|code| Some((procedure(code)?, own.clone()?)));
        found.extend(pairs);
    }
    found
}

async fn check_lineage(folder: &Path) -> Value {
    let (code, text, error) =
        run_program(folder, &["check", "draft.yaml", "--lineage", "--strict", "--json"]).await;
    assert_eq!(code, 0, "{text}{error}");
    serde_json::from_str(&text).expect("JSON")
}

async fn a_serial_master_becomes_a_parallel_dag_with_the_same_result(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let folder = close_with_master(&db).await;
        let path = folder.path();
        query(&db.url, &format!("CALL sp_close_all('{BATCH_NO}')")).await;
        let serial = results(&db).await;
        assert!(serial.iter().all(|rows| !rows.is_empty()), "{serial:?}");
        assert_eq!(serial[5][0][0].as_deref(), Some("LOCKED"));

        let from = ["--source", "ledger", "--url", &db.url, "--from-master", "sp_close_all"];
        let args = [&["discover"], &from[..], &["--out", "draft.yaml"]].concat();
        let (code, text, error) = run_program(path, &args).await;
        assert_eq!((code, text.as_str()), (0, ""), "{error}");
        assert!(error.contains("draft.yaml: 17 jobs, "), "{error}");
        let (code, text, error) = run_program(path, &["check", "draft.yaml"]).await;
        assert_eq!(code, 0, "{text}{error}");

        let group = &check_lineage(path).await["lineage"]["groups"][0];
        assert_eq!(group["conflicts"], serde_json::json!([]), "{group}");
        assert_eq!(group["coverage"]["safe_pairs"], group["coverage"]["pairs"], "{group}");

        let (draft, by_hand) =
            (load(&path.join("draft.yaml")), load(&shipped().join("month-end-close.yaml")));
        let (drafted, wanted) = (orders(&draft), orders(&by_hand));
        let more: Vec<_> = drafted.difference(&wanted).collect();
        assert!(more.is_empty(), "ordered in the draft and not by hand: {more:?}");
        let serial_orders = 17 * 16 / 2;
        assert!(drafted.len() < serial_orders - 20, "{} of {serial_orders}", drafted.len());
        let income = "${jobs.INCOME_STATEMENT.p_net_income}";
        let takes = |job: &procession::domain::job::JobDef| {
            job.params.iter().any(|param| param.value.as_deref() == Some(income))
        };
        assert!(draft.jobs.iter().any(takes), "an output is handed on");

        set_up(path, "sqlite:second.db").await;
        let opened = db.value("SELECT status FROM period").await;
        assert_eq!(opened, "OPEN", "the data is as it was before");
        let run = ["--db", "sqlite:third.db", "run", "draft.yaml", "--batch-no", BATCH_NO];
        let (code, text, error) = run_program(path, &run).await;
        assert_eq!(code, 0, "{text}{error}");
        let parallel = results(&db).await;
        for ((sql, serial), parallel) in RESULTS.iter().zip(&serial).zip(&parallel) {
            assert_eq!(serial, parallel, "{dialect}: {sql}");
        }
    })
    .await;
}

async fn all_procedures_of_a_schema_become_a_draft_that_is_safe(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let folder = close_with_master(&db).await;
        let path = folder.path();
        let from = ["discover", "--file", "setup.yaml", "--source", "ledger"];
        let (code, text, error) = run_program(path, &from).await;
        assert_eq!(code, 0, "{error}");
        std::fs::write(path.join("draft.yaml"), &text).expect("file");
        let group = &check_lineage(path).await["lineage"]["groups"][0];
        assert_eq!(group["conflicts"], serde_json::json!([]), "{group}");
        let draft = load(&path.join("draft.yaml"));
        let drafted = orders(&draft);
        // Who makes rows is before who reads them.
        for (first, second) in [
            ("sp_fx_load", "sp_sl_ap"),
            ("sp_sl_ap", "sp_fx_revalue"),
            ("sp_sl_payroll", "sp_post_gl"),
            ("sp_post_gl", "sp_trial_balance"),
            ("sp_post_gl", "sp_income_statement"),
        ] {
            assert!(drafted.contains(&(first.into(), second.into())), "{first} {second}: {text}");
        }
        let codes: Vec<&str> = draft.jobs.iter().map(|job| job.code.as_str()).collect();
        assert!(!codes.contains(&"CLOSE_ALL"), "{codes:?}");
        assert!(
            text.contains("# QUESTION: sp_close_all is no job: it only calls 17 procedures"),
            "{text}"
        );
        if dialect == DialectName::Mysql {
            assert!(!codes.contains(&"CLEAR_JOURNAL") && !codes.contains(&"RAISE"), "{codes:?}");
        }
        // Which of those that lock the period and read it comes first, only people know.
        assert!(text.contains("  # QUESTION: PERIOD_LOCK changes rows"), "{text}");
        assert!(text.contains("p_base_currency is not known"), "{text}");

        let args = [&from[..], &["--like", "sp_sl_%", "--json"]].concat();
        let (code, text, error) = run_program(path, &args).await;
        assert_eq!(code, 0, "{error}");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["jobs"], 5, "{document}");
        let params = &document["definition"]["jobs"]["SL_AP"]["params"];
        assert_eq!(params[0]["value"], "${batch_no}", "{document}");
        assert_eq!(params[2]["mode"], "out");
        assert_eq!(params[2]["type"], "decimal");
        assert_eq!(document["notes"][0]["kind"], "taken_for_batch_no", "{document}");
    })
    .await;
}

async fn what_cannot_be_drafted_is_told_with_the_fix(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let (plain, hidden) = match dialect {
            DialectName::Postgres => (
                "CREATE PROCEDURE sp_step(p int) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$",
                "CREATE PROCEDURE sp_master() LANGUAGE sql AS 'SELECT 1'",
            ),
            DialectName::Mysql | DialectName::Sqlite => (
                "CREATE PROCEDURE sp_step(IN p INT) BEGIN END",
                "CREATE PROCEDURE sp_master() BEGIN CALL sp_step(1); END",
            ),
        };
        db.setup(&[plain, hidden]).await;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let yaml = "sources: {ledger: {url: 'URL'}, file: {url: 'sqlite:x.db'}}\njobs: {A: {type: NOOP}}\n";
        std::fs::write(path.join("dag.yaml"), yaml.replace("URL", &db.url)).expect("file");
        std::fs::write(path.join("there.yaml"), "mine").expect("file");
        let from_file = |args: &'static [&'static str]| {
            [&["discover", "--file", "dag.yaml"], args].concat()
        };
        for (args, expected) in [
            (from_file(&["--source", "leger"]), "dag.yaml has no source leger; did you mean ledger?"),
            (from_file(&["--source", "file"]), "SQLite has no procedures"),
            (from_file(&["--source", "ledger", "--like", "sp_stp"]), "did you mean sp_step?"),
            (from_file(&["--source", "ledger", "--schema", "nowhere"]), "nowhere has no procedure"),
            (from_file(&["--source", "ledger", "--from-master", "sp_mastr"]), "did you mean sp_master?"),
            (from_file(&["--source", "ledger", "--from-master", "sp_step"]), "calls no procedure"),
            (from_file(&["--source", "ledger", "--out", "there.yaml"]), "add --force"),
            (from_file(&["--source", "ledger", "--group", "a b"]), "group code"),
            (vec!["discover", "--source", "s", "--url", "oracle://x/y"], "not supported"),
            (vec!["discover", "--source", "s"], "--url URL one that is in no definition yet"),
        ] {
            let (code, text, error) = run_program(path, &args).await;
            assert_eq!((code, text.as_str()), (2, ""), "{args:?}: {error}");
            assert!(error.contains(expected), "{args:?}: {error}");
        }
        assert_eq!(std::fs::read_to_string(path.join("there.yaml")).expect("file"), "mine");
        let args = from_file(&["--source", "ledger", "--out", "there.yaml", "--force"]);
        assert_eq!(run_program(path, &args).await.0, 0);
        let args = from_file(&["--source", "ledger", "--like", "sp_step", "--lang", "zh"]);
        let (_, chinese, _) = run_program(path, &args).await;
        assert!(chinese.contains("  # 待定：p 的值未知"), "{chinese}");
        let text = std::fs::read_to_string(path.join("there.yaml")).expect("file");
        assert!(text.contains("# A draft from the procedures of ledger"), "{text}");
        let away = match dialect {
            DialectName::Postgres => "postgres://postgres@127.0.0.1:1/x",
            DialectName::Mysql | DialectName::Sqlite => "mysql://root@127.0.0.1:1/x",
        };
        let (code, _, error) =
            run_program(path, &["discover", "--source", "s", "--url", away]).await;
        assert_eq!(code, 3, "{error}");
    })
    .await;
}

/// A user who may call the master and not see it.
#[tokio::test]
async fn mysql_a_master_that_is_hidden_names_the_grant() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE PROCEDURE sp_step(IN p INT) BEGIN END"]).await;
        db.setup(&["CREATE PROCEDURE sp_master() BEGIN CALL sp_step(1); END"]).await;
        let login = make_login(&db).await;
        let (schema, name) = (&db.name, &login.name);
        db.setup(&[&format!("GRANT EXECUTE ON `{schema}`.* TO {name}")]).await;
        let folder = tempfile::tempdir().expect("folder");
        let url = login.url.clone();
        let args = ["discover", "--source", "s", "--url", &url, "--from-master", "sp_master"];
        let (code, _, error) = run_program(folder.path(), &args).await;
        let (drafted, text, _) = run_program(folder.path(), &args[..5]).await;
        login.drop(&db).await;
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("sp_master is not visible") && error.contains("GRANT S"), "{error}");
        assert_eq!(drafted, 0);
        assert!(text.contains("the body of") && text.contains("GRANT S"), "{text}");
    })
    .await;
}

mod mysql {
    use super::DialectName::Mysql;

    #[tokio::test]
    async fn a_serial_master_becomes_a_parallel_dag_with_the_same_result() {
        super::a_serial_master_becomes_a_parallel_dag_with_the_same_result(Mysql).await;
    }

    #[tokio::test]
    async fn all_procedures_of_a_schema_become_a_draft_that_is_safe() {
        super::all_procedures_of_a_schema_become_a_draft_that_is_safe(Mysql).await;
    }

    #[tokio::test]
    async fn what_cannot_be_drafted_is_told_with_the_fix() {
        super::what_cannot_be_drafted_is_told_with_the_fix(Mysql).await;
    }
}

mod postgres {
    use super::DialectName::Postgres;

    #[tokio::test]
    async fn a_serial_master_becomes_a_parallel_dag_with_the_same_result() {
        super::a_serial_master_becomes_a_parallel_dag_with_the_same_result(Postgres).await;
    }

    #[tokio::test]
    async fn all_procedures_of_a_schema_become_a_draft_that_is_safe() {
        super::all_procedures_of_a_schema_become_a_draft_that_is_safe(Postgres).await;
    }

    #[tokio::test]
    async fn what_cannot_be_drafted_is_told_with_the_fix() {
        super::what_cannot_be_drafted_is_told_with_the_fix(Postgres).await;
    }
}
