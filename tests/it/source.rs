//! Data sources beside any batch: the ledger that class `ledger` needs, and `source …`.

use crate::cli::said;
use crate::util::{Scratch, query, session, with_scratch};
use procession::db::ledger::LedgerState;
use procession::domain::source::DialectName;
use std::path::Path;

async fn ledger_of(db: &Scratch) -> LedgerState {
    let mut session = session(&db.url).await;
    let found = session.ledger().await.expect("an answer");
    session.close().await;
    found
}

/// Statements that each spoil a fresh ledger, and what is said of it.
fn spoilt(dialect: DialectName) -> Vec<(&'static str, &'static str)> {
    let table = "procession_ledger";
    let drop = "ALTER TABLE procession_ledger DROP COLUMN outputs";
    let add = "ALTER TABLE procession_ledger ADD COLUMN more INT";
    assert_eq!(table, procession::db::ledger::TABLE);
    let mut all = vec![(drop, "it has no column outputs"), (add, "a column more that is not ours")];
    all.extend(match dialect {
        DialectName::Sqlite => vec![],
        DialectName::Mysql => vec![
            (
                // MyISAM has no room for the whole key.
                "ALTER TABLE procession_ledger MODIFY idem_key VARCHAR(100) NOT NULL; \
                 ALTER TABLE procession_ledger ENGINE = MyISAM",
                "its engine is MyISAM",
            ),
            (
                "ALTER TABLE procession_ledger MODIFY idem_key VARCHAR(255) \
                 COLLATE utf8mb4_general_ci NOT NULL",
                "its keys ignore case",
            ),
            (
                "ALTER TABLE procession_ledger MODIFY idem_key VARCHAR(100) \
                 COLLATE utf8mb4_bin NOT NULL",
                "idem_key is varchar(100) and not varchar(255)",
            ),
            ("ALTER TABLE procession_ledger DROP PRIMARY KEY", "primary key is not idem_key alone"),
            (
                "ALTER TABLE procession_ledger MODIFY done_at DATETIME(3) NOT NULL",
                "done_at must take NULL",
            ),
        ],
        DialectName::Postgres => vec![
            ("ALTER TABLE procession_ledger SET UNLOGGED", "UNLOGGED, so a crash would empty it"),
            (
                "ALTER TABLE procession_ledger ALTER outputs TYPE varchar(9)",
                "outputs is character varying(9) and not text",
            ),
            (
                "ALTER TABLE procession_ledger DROP CONSTRAINT procession_ledger_pkey",
                "primary key is not idem_key alone",
            ),
            ("ALTER TABLE procession_ledger ALTER state DROP NOT NULL", "state must not take NULL"),
            (
                "ALTER TABLE procession_ledger RENAME TO other; \
                 CREATE VIEW procession_ledger AS SELECT * FROM other",
                "it is no ordinary table",
            ),
        ],
    });
    all
}

async fn the_shape_is_held_to_the_letter(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        assert_eq!(ledger_of(&db).await, LedgerState::Absent);
        for (statements, wanted) in spoilt(dialect) {
            let mut on = session(&db.url).await;
            on.make_ledger().await.expect("made");
            assert_eq!(on.ledger().await.expect("an answer"), LedgerState::Fits, "{dialect}");
            on.try_ledger().await.expect("rows can be written");
            assert!(on.make_ledger().await.is_err(), "there already");
            on.close().await;
            assert_eq!(db.value("SELECT COUNT(*) FROM procession_ledger").await, "0", "undone");
            for statement in statements.split("; ") {
                db.setup(&[statement]).await;
            }
            match ledger_of(&db).await {
                LedgerState::Other(said) => assert!(said.contains(wanted), "{said}\n{wanted}"),
                other => panic!("{dialect}: {statements}: {other:?}"),
            }
            if statements.contains("VIEW") {
                db.setup(&["DROP VIEW procession_ledger", "DROP TABLE other"]).await;
            } else {
                db.setup(&["DROP TABLE procession_ledger"]).await;
            }
        }
    })
    .await;
}

async fn only_old_rows_that_are_done_go(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let mut on = session(&db.url).await;
        on.make_ledger().await.expect("made");
        for (key, state, done) in [
            ("old", "done", "'2023-01-31 23:59:59.999'"),
            ("older", "done", "'2022-01-31 00:00:00.000'"),
            ("canary", "open", "'2022-01-31 00:00:00.000'"),
            ("lost", "open", "NULL"),
            ("young", "done", "'2023-02-01 00:00:00.000'"),
        ] {
            // SQLite keeps times as text, in whatever form they were written.
            let done = match dialect {
                DialectName::Postgres if done != "NULL" => {
                    format!("TIMESTAMPTZ {}+00'", &done[..done.len() - 1])
                }
                DialectName::Sqlite if key == "older" => "'2022-01-31T08:00:00+08:00'".to_owned(),
                _ => done.to_owned(),
            };
            let opened = done.replace("NULL", "'2022-01-01 00:00:00'");
            db.setup(&[&format!(
                "INSERT INTO procession_ledger VALUES ('{key}', '{state}', '1', 'A', 1, NULL, \
                 {opened}, {done})"
            )])
            .await;
        }
        let cut = "2023-02-01 00:00:00";
        assert_eq!(on.old_of_ledger(cut).await.expect("counts"), 2);
        assert_eq!(on.prune_ledger(cut, 1).await.expect("removes"), 1, "in small groups");
        assert_eq!(on.prune_ledger(cut, 9).await.expect("removes"), 1);
        assert_eq!(on.prune_ledger(cut, 9).await.expect("removes"), 0);
        on.close().await;
        let left =
            "SELECT COUNT(*) FROM procession_ledger WHERE idem_key IN ('canary', 'lost', 'young')";
        assert_eq!(db.value(left).await, "3");
        assert_eq!(db.value("SELECT COUNT(*) FROM procession_ledger").await, "3");
    })
    .await;
}

fn define(folder: &Path, url: &str) {
    let yaml = format!(
        "sources: {{ledger-db: {{url: '{url}'}}, idle: {{url: 'sqlite:idle.db'}}}}
defaults: {{type: SQL, source: ledger-db}}
templates: {{t: {{sql: DELETE FROM t}}}}
jobs: {{A: {{template: t, tx: ledger}}, B: {{template: t}}, C: {{template: t, source: idle}}}}
"
    );
    std::fs::write(folder.join("dag.yaml"), yaml).expect("file");
    let (code, _, error) = said(folder, &["apply", "dag.yaml"]);
    assert_eq!(code, 0, "{error}");
}

fn json(folder: &Path, args: &[&str]) -> (i32, serde_json::Value) {
    let (code, text, error) = said(folder, args);
    (code, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{error}")))
}

fn is_looked_at(path: &Path) {
    let (code, list) = json(path, &["source", "list", "--json"]);
    assert_eq!((code, &list[0]["name"]), (0, &"ledger-db".into()));
    assert_eq!(
        list[0]["jobs"][0],
        serde_json::json!({"job_code": "A", "tx": "ledger", "idempotent": false})
    );
    assert_eq!(list[1]["jobs"].as_array().map(Vec::len), Some(1));
    let (_, text, _) = said(path, &["source", "list"]);
    assert!(text.contains("1 ledger, 1 none"), "{text}");

    let (code, text, error) = said(path, &["source", "check"]);
    assert_eq!(code, 2, "{text}{error}");
    assert!(text.contains("→ procession source prepare ledger-db"), "{text}");
    assert!(error.contains("1 of 2 sources cannot be used as its jobs need"), "{error}");
    let (code, found) = json(path, &["source", "check", "ledger-db", "--json"]);
    let words = |key: &str| found[0][key].clone();
    assert_eq!((code, words("ledger")), (2, "absent".into()));
    assert_eq!(
        (words("session_lock"), words("stops_sessions")),
        (true.into(), true.into()),
        "{found}"
    );
}

fn is_prepared(path: &Path, dialect: DialectName) {
    let (code, text, _) = said(path, &["source", "prepare", "--dry-run"]);
    assert!(code == 0 && text.contains("CREATE TABLE procession_ledger ("), "{text}");
    assert!(!text.contains("idle"), "no job there needs one: {text}");
    assert_eq!(text.contains("GRANT SELECT, INSERT, UPDATE"), dialect != DialectName::Sqlite);
    let (code, made) = json(path, &["source", "prepare", "--json"]);
    assert_eq!((code, &made[0]["ledger"]), (0, &"made".into()), "the dry run made nothing");
    let (code, made) = json(path, &["source", "prepare", "--json"]);
    assert_eq!((code, &made[0]["ledger"]), (0, &"was_there".into()));
    let (code, found) = json(path, &["source", "check", "--json"]);
    assert_eq!(
        (code, &found[0]["ledger"], &found[0]["ok"]),
        (0, &"there".into(), &true.into()),
        "{found}"
    );
    let (code, text, _) =
        said(path, &["source", "prune", "ledger-db", "--older-than", "400d", "--dry-run"]);
    assert!(code == 0 && text.contains("0 rows"), "{text}");
    assert_eq!(said(path, &["source", "prune", "ledger-db", "--older-than", "3d"]).0, 2);
    assert_eq!(said(path, &["source", "prune", "idle", "--older-than", "400d"]).0, 2, "no ledger");
    assert_eq!(said(path, &["source", "check", "nobody"]).0, 2);
}

#[test]
fn a_source_that_is_away_is_told_from_one_that_is_wrong() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    let text = "sources:\n  away: {url: 'postgres://u@127.0.0.1:1/d'}\n  \
                shut: {url: 'postgres://u@127.0.0.1:1/d', password_env: NOBODY_SET_THIS}\n\
                groups: {g: {}}\ndefaults: {group: g, type: SQL}\n\
                jobs: {A: {source: away, sql: SELECT 1}, B: {source: shut, sql: SELECT 1}}\n";
    std::fs::write(path.join("d.yaml"), text).expect("file");
    let (code, text, error) = said(path, &["apply", "d.yaml"]);
    assert_eq!(code, 0, "{text}{error}");
    let (code, text, error) = said(path, &["source", "check", "away"]);
    assert_eq!(code, 3, "{text}{error}");
    assert!(text.contains("→ start the server, or mend its URL or the network"), "{text}");
    assert!(error.contains("1 of 1 source could not be reached"), "{error}");
    let (code, found) = json(path, &["source", "check", "away", "--json"]);
    assert_eq!((code, &found[0]["is_away"]), (3, &true.into()), "{found}");
    let (code, text, error) = said(path, &["source", "check"]);
    assert_eq!(code, 2, "{text}{error}");
    let both = "1 of 2 sources cannot be used as its jobs need, and 1 could not be reached";
    assert!(error.contains(both), "{error}");
    // The verdict of a check comes last, and there is one only.
    for (file, args, code, ends) in [
        ("d.yaml", &["check", "d.yaml"][..], 0, "2 jobs, 0 dependencies, 1 group, 2 sources\n"),
        ("d.yaml", &["check", "d.yaml", "--connect"], 2, "shut: not reached\n"),
    ] {
        let (found, text, error) = said(path, args);
        assert_eq!(found, code, "{text}{error}");
        assert_eq!(text.contains("no faults"), code == 0, "{file}: {text}");
        assert!(text.ends_with(ends), "{text}");
    }
    let well = "sources: {s: {url: 'sqlite:s.db'}}\ngroups: {h: {}}\njobs: {C: {group: h, type: SQL, source: s, sql: SELECT 1}}\n";
    std::fs::write(path.join("well.yaml"), well).expect("file");
    std::fs::write(path.join("s.db"), "").expect("file");
    let (code, text, error) = said(path, &["check", "well.yaml", "--connect"]);
    assert!(code == 0 && text.ends_with("well.yaml: no faults\n"), "{text}{error}");
}

async fn a_source_is_checked_and_prepared(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().to_owned();
        define(&path, &db.url);
        tokio::task::spawn_blocking(move || {
            is_looked_at(&path);
            is_prepared(&path, dialect);
        })
        .await
        .expect("checked");
        db.setup(&["ALTER TABLE procession_ledger DROP COLUMN outputs"]).await;
        let (path, _keep) = (folder.path().to_owned(), folder);
        tokio::task::spawn_blocking(move || {
            let (code, text, _) = said(&path, &["source", "prepare", "--lang", "en"]);
            assert_eq!(code, 2);
            assert!(text.contains("another procession_ledger: it has no column outputs"), "{text}");
        })
        .await
        .expect("refused");
    })
    .await;
}

/// A user who may not make tables is told what to hand to a DBA, and that is enough.
async fn a_dba_can_prepare_in_place_of_the_user(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let user = format!("u{}", &db.name[db.name.len() - 12..]);
        let (setup, away): (Vec<String>, Vec<String>) = match dialect {
            DialectName::Postgres => (
                vec![
                    format!("CREATE ROLE {user} LOGIN"),
                    "REVOKE CREATE ON SCHEMA public FROM PUBLIC".to_owned(),
                ],
                vec![format!("DROP OWNED BY {user}"), format!("DROP ROLE {user}")],
            ),
            _ => (
                vec![
                    format!("CREATE USER {user}@'%'"),
                    format!("GRANT EXECUTE ON {}.* TO {user}@'%'", db.name),
                ],
                vec![format!("DROP USER {user}@'%'")],
            ),
        };
        for statement in &setup {
            db.setup(&[statement]).await;
        }
        let before = db.url.split_once("://").expect("a URL").1.split_once('@').expect("a user").0;
        let url = db.url.replacen(&format!("://{before}@"), &format!("://{user}@"), 1);
        let folder = tempfile::tempdir().expect("folder");
        define(folder.path(), &url);
        let path = folder.path().to_owned();
        let found =
            tokio::task::spawn_blocking(move || json(&path, &["source", "prepare", "--json"]))
                .await
                .expect("ran");
        let statements = found.1[0]["statements"].as_array().cloned().unwrap_or_default();
        for statement in &statements {
            db.setup(&[statement.as_str().expect("text")]).await;
        }
        let path = folder.path().to_owned();
        let checked = tokio::task::spawn_blocking(move || {
            json(&path, &["source", "check", "ledger-db", "--json"])
        })
        .await
        .expect("ran");
        for statement in &away {
            db.setup(&[statement]).await;
        }
        assert_eq!((found.0, &found.1[0]["ledger"]), (2, &"refused".into()), "{}", found.1);
        assert_eq!(statements.len(), 2, "{statements:?}");
        assert_eq!((checked.0, &checked.1[0]["ok"]), (0, &true.into()), "{}", checked.1);
        assert_eq!(checked.1[0]["ledger_writes"], true);
    })
    .await;
}

macro_rules! on_each {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            super::$name(super::DialectName::Sqlite).await;
        })* }
        on_each! { @servers $($name)* a_dba_can_prepare_in_place_of_the_user }
    };
    (@servers $($name:ident)*) => {
        mod mariadb { $(#[tokio::test] async fn $name() {
            super::$name(super::DialectName::Mysql).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            super::$name(super::DialectName::Postgres).await;
        })* }
    };
}

on_each! {
    the_shape_is_held_to_the_letter
    only_old_rows_that_are_done_go
    a_source_is_checked_and_prepared
}

/// A job that was caught is told of wherever it is looked at, until it is trusted again.
#[tokio::test]
async fn a_job_that_was_caught_is_told_of_and_trusted_again() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    define(path, "sqlite:data.db");
    let db = format!("sqlite:{}", path.join("procession.db").display());
    let insert = "INSERT INTO tx_breach (group_code, job_code, batch_no, queue_id, attempt, said, create_time) \
                  VALUES ('default', 'A', '202406', 7, 2, 'an open row was there', '2024-07-01T00:00:00.000Z')";
    query(&db, insert).await;
    let said = |args: &[&str]| said(path, args);
    let sentence = "A is declared tx: ledger but was caught committing by itself (batch 202406, \
                    attempt 2: an open row was there), and is refused until that is settled: declare \
                    tx: none, or mend it and: procession job trust default.A --reason";
    for args in [&["job", "list"][..], &["job", "show", "A"]] {
        let (code, text, _) = said(args);
        assert!(code == 0 && text.contains(sentence), "{args:?}: {text}");
    }
    for args in [
        &["plan", "--batch-no", "202407"][..],
        &["plan", "dag.yaml", "--batch-no", "202407"],
        &["apply", "dag.yaml"],
    ] {
        let (_, _, error) = said(args);
        assert!(error.contains(&format!("warning: {sentence}")), "{args:?}: {error}");
    }
    let (_, list) = json(path, &["job", "list", "--json"]);
    assert_eq!(
        (&list[0]["violation"]["attempt"], &list[1]["violation"]),
        (&2.into(), &serde_json::Value::Null)
    );
    let (_, text, _) = said(&["job", "show", "A", "--lang", "zh"]);
    assert!(text.contains("被发现自行提交"), "{text}");

    assert_eq!(said(&["job", "trust", "A"]).0, 2, "without a reason");
    let (code, _, error) = said(&["job", "trust", "A", "B", "--reason", "mended"]);
    assert!(code == 2 && error.contains("B: not caught"), "{error}");
    assert!(said(&["job", "list"]).1.contains(sentence), "nothing was changed");
    assert_eq!(said(&["job", "trust", "A", "--reason", "COMMIT taken out"]).0, 0);
    assert!(!said(&["job", "list"]).1.contains("caught"));
    let (_, audit) = json(path, &["audit", "--json"]);
    assert_eq!((&audit[0]["action"], &audit[0]["job_code"]), (&"trust".into(), &"A".into()));
    assert_eq!(audit[0]["reason"], "COMMIT taken out");
    assert_eq!(audit[0]["detail"]["message"], "an open row was there");

    query(&db, insert).await;
    let yaml = std::fs::read_to_string(path.join("dag.yaml")).expect("file");
    std::fs::write(path.join("dag.yaml"), yaml.replace("tx: ledger", "tx: none")).expect("file");
    assert_eq!(said(&["apply", "dag.yaml"]).0, 0);
    assert_eq!(query(&db, "SELECT COUNT(*) FROM tx_breach").await[0][0].as_deref(), Some("0"));
}
