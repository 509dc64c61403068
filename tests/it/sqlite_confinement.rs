//! A SQLite source stays in its own file, and what a server's user may do beyond the data is named.

use crate::cli::said;
use crate::util::bench::Bench;
use crate::util::{query, session, with_scratch};
use procession::db::session::{Session, SessionTarget, let_all_through};
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::source::DialectName;
use procession::domain::source::sqlite_confinement::{confine_to_file, find_forbidden_statement};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::Duration;

/// Pieces that a text is put together from, those at which a lexer goes wrong among them.
const PIECES: &[&str] = &[
    "ATTACH ':memory:' AS other",
    "attach database ':memory:' as other",
    ";",
    "; ",
    "'",
    "\"",
    "`",
    "[",
    "]",
    "--",
    "\n",
    "/*",
    "*/",
    "/*/",
    "$a(",
    "$a::b(",
    ":c",
    "@",
    "#",
    "x'",
    "X'ab'",
    "''",
    "SELECT 1",
    "SELECT",
    " ",
    "\u{b}",
    "\t",
    "\u{feff}",
    "(",
    ")",
    "1",
    "1e",
    ".5",
    "é",
    "BEGIN",
    "END",
    "EXPLAIN",
    "\\",
    "->",
    "AS a",
];

/// Whatever our reading lets through opens no second database on the real SQLite, and one that our reading
/// refuses sometimes does: else this would prove nothing.
#[test]
fn no_text_that_is_let_through_attaches() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("runtime");
    let texts = prop::collection::vec(prop::sample::select(PIECES), 1..12);
    let attached = Cell::new(0);
    let mut runner =
        TestRunner::new(Config { cases: 5_000, failure_persistence: None, ..Config::default() });
    let done = runner.run(&texts, |pieces| {
        let sql = pieces.concat();
        let opened = runtime.block_on(databases_after(&sql));
        let refused = find_forbidden_statement(&sql).is_some();
        prop_assert!(opened == 1 || refused, "{opened} databases after {sql:?}");
        attached.set(attached.get() + usize::from(opened > 1));
        Ok(())
    });
    done.unwrap_or_else(|fault| panic!("{fault}"));
    let attached = attached.get();
    assert!(attached > 20, "only {attached} of the texts attached anything");
}

/// How many databases a connection has after a text, sent without our reading it.
async fn databases_after(sql: &str) -> usize {
    let target = SessionTarget {
        url: "sqlite::memory:".to_owned(),
        password: None,
        label: "test".to_owned(),
        timeout: Duration::from_secs(10),
        guard: let_all_through,
    };
    let mut session = Session::open_session(&target).await.expect("in memory");
    let _its_error_does_not_matter = session.run_statement(sql, &[]).await;
    let listed = session.run_statement("PRAGMA database_list", &[]).await.expect("a list");
    let names = listed.sets[0].rows.iter().filter(|row| row[1].as_deref() != Some("temp"));
    let count = names.count();
    session.close().await;
    count
}

#[tokio::test]
async fn a_body_cannot_leave_its_file() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let folder = tempfile::tempdir().expect("folder");
        let other = folder.path().join("other.db");
        let path = other.display();
        for (sql, said) in [
            (
                format!("ATTACH '{path}' AS other; CREATE TABLE other.t (a)"),
                "ATTACH opens another database",
            ),
            (
                format!("SELECT 1; /* now */ ATTACH '{path}' AS other"),
                "ATTACH opens another database",
            ),
            (format!("VACUUM INTO '{path}'"), "VACUUM INTO writes another file"),
            ("PRAGMA hard_heap_limit = 1".to_owned(), "a setting of the whole process"),
            ("SELECT load_extension('/tmp/none.so')".to_owned(), "not authorized"),
            ("SELECT writefile('x', 'y')".to_owned(), "no such function"),
        ] {
            let ran = Bench::sql(&db, &sql).run().await;
            assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{sql}");
            assert!(ran.message().contains(said), "{sql}: {}", ran.message());
        }
        assert!(!other.exists());
        let ran = Bench::sql(&db, "CREATE TABLE t (a); VACUUM").set(|_| {}).run().await;
        assert!(!other.exists(), "{}", ran.message());
    })
    .await;
}

fn define(folder: &Path, url: &str, sql: &str) -> (i32, String) {
    let yaml = format!(
        "sources: {{s: {{url: '{url}'}}}}\ndefaults: {{type: SQL, source: s}}\njobs:\n  A:\n    sql: \"{sql}\"\n"
    );
    std::fs::write(folder.join("dag.yaml"), yaml).expect("file");
    let (code, _, error) = said(folder, &["apply", "dag.yaml"]);
    (code, error)
}

#[test]
fn a_definition_that_attaches_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let (code, error) =
        define(folder.path(), "sqlite:data.db", "SELECT 1;\\nATTACH 'procession.db' AS p");
    assert_eq!(code, 2);
    assert!(
        error.contains("dag.yaml:5: job A: line 2 of its sql: ATTACH opens another database"),
        "{error}"
    );
    assert!(error.contains("declare a source for the other file"), "{error}");
    assert!(confine_to_file("SELECT 1").is_ok());
}

/// An author who can write SQL alone must not become admin by the file that holds the rights.
#[test]
fn no_source_leads_to_the_metadata_file() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    assert_eq!(define(path, "sqlite:data.db", "SELECT 1").0, 0);
    symlink("procession.db", path.join("soft.db")).expect("link");
    std::fs::hard_link(path.join("procession.db"), path.join("hard.db")).expect("link");
    for name in [
        "procession.db",
        "./procession.db",
        "soft.db",
        "hard.db",
        "procession.db-wal",
        "procession%2edb",
    ] {
        let (code, error) = define(path, &format!("sqlite:{name}"), "CREATE TABLE stolen (a INT)");
        assert_eq!(code, 0, "{error}");
        let (code, text, error) = said(path, &["run", "--batch-no", "1"]);
        assert_ne!(code, 0, "{name}: {text}{error}");
        let (_, log, _) = said(path, &["why", "A", "--batch-no", "1"]);
        let (_, checked, _) = said(path, &["source", "check", "s"]);
        assert!(checked.contains("leads to Procession's own database"), "{name}: {checked}{log}");
    }
    let (_, tables, _) = said(path, &["audit"]);
    assert!(!tables.contains("stolen"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let url = format!("sqlite:{}", path.join("procession.db").display());
    let sql = "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'stolen'";
    let found = runtime.expect("runtime").block_on(query(&url, sql));
    assert_eq!(found[0][0].as_deref(), Some("0"));
    let mode = |name: &str| path.join(name).metadata().map_or(0o600, |found| found.mode() & 0o777);
    assert_eq!(
        (mode("procession.db"), mode("procession.db-wal"), mode("procession.db-shm")),
        (0o600, 0o600, 0o600)
    );
    std::fs::write(path.join("procession.toml"), "[source]\nallow_metadata_file = true\n")
        .expect("file");
    assert_eq!(said(path, &["source", "check", "s"]).0, 0, "an operator may let it");
}

/// No client of ours sends a file of its own, whatever the server asks for.
#[tokio::test]
async fn mysql_gets_no_local_file() {
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&["CREATE TABLE t (a TEXT)"]).await;
        let ran =
            Bench::sql(&db, "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t").run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.text());
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, "0");
    })
    .await;
}

/// The user of the test servers is a superuser; one with rights on the data alone is not.
async fn powers_beyond_the_data_are_named(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let power = if dialect == DialectName::Postgres { "superuser" } else { "FILE" };
        let mut own = session(&db.url).await;
        let powers = own.server_powers().await.expect("rights");
        own.close().await;
        assert!(powers.iter().any(|found| found == power), "{powers:?}");
        let user = format!("u{}", &db.name[db.name.len() - 12..]);
        let (make, drop) = match dialect {
            DialectName::Postgres => {
                (format!("CREATE ROLE {user} LOGIN"), format!("DROP ROLE {user}"))
            }
            _ => (format!("CREATE USER {user}@'%'"), format!("DROP USER {user}@'%'")),
        };
        db.setup(&[&make]).await;
        if dialect == DialectName::Mysql {
            db.setup(&[&format!("GRANT SELECT ON {}.* TO {user}@'%'", db.name)]).await;
        }
        let before = db.url.split_once("://").expect("a URL").1.split_once('@').expect("a user").0;
        let url = db.url.replacen(&format!("://{before}@"), &format!("://{user}@"), 1);
        let mut plain = session(&url).await;
        let powers = plain.server_powers().await;
        plain.close().await;
        if dialect == DialectName::Mysql {
            db.setup(&[&format!("REVOKE ALL ON {}.* FROM {user}@'%'", db.name)]).await;
        }
        db.setup(&[&drop]).await;
        assert_eq!(powers.expect("rights"), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn powers_beyond_the_data_are_named_on_mariadb() {
    powers_beyond_the_data_are_named(DialectName::Mysql).await;
}

#[tokio::test]
async fn powers_beyond_the_data_are_named_on_postgres() {
    powers_beyond_the_data_are_named(DialectName::Postgres).await;
}

/// A search path that an administrator set, or a job that may write SQL, counts as it is for the next session.
#[tokio::test]
async fn a_search_path_that_others_write_is_named_on_postgres() {
    with_scratch(DialectName::Postgres, |db| async move {
        let user = format!("p{}", &db.name[db.name.len() - 12..]);
        let other = format!("o{}", &db.name[db.name.len() - 12..]);
        db.setup(&[
            &format!("CREATE ROLE {user} LOGIN"),
            &format!("CREATE ROLE {other}"),
            "CREATE SCHEMA ledger",
            "CREATE SCHEMA trap",
            &format!("GRANT USAGE ON SCHEMA ledger, trap TO {user}"),
            &format!("ALTER ROLE {user} SET search_path = ledger"),
        ])
        .await;
        let before = db.url.split_once("://").expect("a URL").1.split_once('@').expect("a user").0;
        let url = db.url.replacen(&format!("://{before}@"), &format!("://{user}@"), 1);
        let open_path = async || {
            let mut own = session(&url).await;
            let open = own.open_search_path().await.expect("the path");
            own.close().await;
            open
        };
        let closed = open_path().await;
        db.setup(&[&format!("GRANT CREATE ON SCHEMA trap TO {other}")]).await;
        let elsewhere = open_path().await;
        db.setup(&[&format!("ALTER ROLE {user} SET search_path = trap, ledger")]).await;
        let by_role = open_path().await;
        db.setup(&["GRANT CREATE ON SCHEMA trap TO PUBLIC"]).await;
        let by_everybody = open_path().await;
        db.setup(&[
            "DROP SCHEMA trap",
            "DROP SCHEMA ledger",
            &format!("DROP ROLE {user}"),
            &format!("DROP ROLE {other}"),
        ])
        .await;
        assert_eq!(closed, None);
        assert_eq!(elsewhere, None, "it is not in the path");
        let by_role = by_role.expect("others may write it");
        assert_eq!((by_role.set_by.as_str(), by_role.path.as_str()), ("user", "trap, ledger"));
        assert_eq!(by_role.writers, [("trap".to_owned(), other.clone())]);
        let writers = by_everybody.expect("everybody may write it").writers;
        assert_eq!(writers.len(), 2, "{writers:?}");
        assert!(writers.contains(&("trap".to_owned(), "PUBLIC".to_owned())), "{writers:?}");
    })
    .await;
}
