//! `db::migrate` and what `db::connect` says about a server's settings.

use super::{Place, open};
use crate::util::with_scratch;
use procession::db::migrate::{Schema, known};
use procession::db::{Dialect, Error};
use procession::domain::source::DialectName;
use procession::store::Db;

async fn refusal(db: &Db) -> String {
    let error = db.require_current().await.expect_err("not current");
    assert!(matches!(error, Error::Settings(_)), "{error:?}");
    error.to_string()
}

pub(super) async fn an_empty_database_is_behind(place: Place) {
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Behind(0));
    let said = refusal(&place.db).await;
    assert!(said.contains("no Procession tables"), "{said}");
    // The test server's URL has no password, so it is shown whole.
    let command = format!("run: procession migrate --db {}", place.scratch.url);
    assert!(said.contains(&command), "{said}");
    let numbers: Vec<i64> = (1..=known()).collect();
    assert_eq!(place.db.migrate().await.expect("migrate"), numbers);
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Current);
}

pub(super) async fn a_migrated_schema_is_current(place: Place) {
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Current);
    place.db.require_current().await.expect("current");
    assert_eq!(place.db.migrate().await.expect("again"), Vec::<i64>::new());
    // Another process sees the same.
    let elsewhere = place.open().await;
    assert_eq!(elsewhere.schema().await.expect("schema"), Schema::Current);
    elsewhere.close().await;
}

pub(super) async fn a_schema_of_a_newer_binary_is_refused(place: Place) {
    place
        .by_hand(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             SELECT 999, 'of a newer one', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1",
        )
        .await;
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Ahead(999));
    let said = refusal(&place.db).await;
    for part in ["version 999", &format!("knows only {}", known()), "use that version", "backup"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let error = place.db.migrate().await.expect_err("a newer schema is not touched");
    assert_eq!(error.to_string(), said);
}

pub(super) async fn a_broken_migration_is_refused(place: Place) {
    let sql = format!("UPDATE _sqlx_migrations SET success = FALSE WHERE version = {}", known());
    place.by_hand(&sql).await;
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Broken(known()));
    let said = refusal(&place.db).await;
    for part in [&*format!("migration {}", known()), "half-way", "backup", "_sqlx_migrations"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let error = place.db.migrate().await.expect_err("a broken schema is not touched");
    assert_eq!(error.to_string(), said);
}

pub(super) async fn two_processes_may_migrate_at_once(place: Place) {
    let elsewhere = place.open().await;
    let tasks = [place.db.clone(), elsewhere.clone()]
        .map(|db| tokio::spawn(async move { db.migrate().await }));
    let mut applied = Vec::new();
    for task in tasks {
        applied.extend(task.await.expect("task").expect("the second finds the work done"));
    }
    // Each number is reported once, by the process that applied it.
    assert_eq!(applied, (1..=known()).collect::<Vec<i64>>());
    assert_eq!(elsewhere.schema().await.expect("schema"), Schema::Current);
    elsewhere.close().await;
}

/// What is in the database, by name.
async fn names(place: &Place) -> Vec<Option<String>> {
    let sql = match place.dialect() {
        DialectName::Sqlite => "SELECT name FROM sqlite_master ORDER BY name",
        DialectName::Mysql => {
            "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
             WHERE table_schema = DATABASE() ORDER BY table_name"
        }
        DialectName::Postgres => {
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace \
             ORDER BY relname"
        }
    };
    crate::util::query(&place.scratch.url, sql).await.into_iter().flatten().collect()
}

pub(super) async fn tables_of_somebody_else_are_left_alone(place: Place) {
    for sql in [
        "CREATE TABLE job_def (theirs INTEGER)",
        "CREATE TABLE customer (id INTEGER)",
        "CREATE VIEW job_queue AS SELECT id FROM customer",
    ] {
        place.by_hand(sql).await;
    }
    let before = names(&place).await;
    // Twice, because the first must not leave its lock or a table behind.
    for _ in 0..2 {
        let error = place.db.migrate().await.expect_err("taken names");
        assert!(matches!(error, Error::Settings(_)), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("needs: job_def, job_queue; nothing was changed"), "{said}");
        assert!(said.contains("schema of its own") && said.contains(&place.scratch.url), "{said}");
        assert!(!said.contains("customer"), "{said}");
    }
    assert_eq!(names(&place).await, before);
    // Other tables do no harm.
    place.by_hand("DROP VIEW job_queue").await;
    place.by_hand("DROP TABLE job_def").await;
    let elsewhere = place.open().await;
    assert_eq!(elsewhere.migrate().await.expect("migrate").len() as i64, known());
    elsewhere.close().await;
}

async fn warnings(db: &Db) -> Vec<String> {
    let mut tx = db.begin_read().await.expect("read");
    tx.durability_warnings().await.expect("settings are readable")
}

#[tokio::test]
async fn sqlite_is_opened_so_that_it_keeps_what_it_acknowledged() {
    with_scratch(DialectName::Sqlite, |scratch| async move {
        let db = open(&scratch.url).await;
        assert_eq!(warnings(&db).await, Vec::<String>::new());
        let mut tx = db.begin().await.expect("begin");
        let mode = tx.fetch_optional("PRAGMA journal_mode", &[]).await.expect("pragma");
        assert_eq!(mode.expect("row").get_text("journal_mode").expect("text"), "wal");
        for (name, number) in [("synchronous", 2), ("foreign_keys", 1)] {
            let sql = format!("PRAGMA {name}");
            let row = tx.fetch_optional(&sql, &[]).await.expect("pragma").expect("row");
            assert_eq!(row.get_int(name).expect("int"), number, "{name}");
        }
        drop(tx);
        db.close().await;
    })
    .await;
}

#[tokio::test]
async fn mysql_warns_of_what_its_settings_may_lose() {
    with_scratch(DialectName::Mysql, |scratch| async move {
        let db = open(&scratch.url).await;
        // The server's settings are not ours to change, so the words follow what they are.
        let flush = scratch.value("SELECT @@innodb_flush_log_at_trx_commit").await;
        let binlog = scratch.value("SELECT IF(@@log_bin, @@sync_binlog, 1)").await;
        let said = warnings(&db).await;
        assert_eq!(said.len(), usize::from(flush != "1") + usize::from(binlog != "1"), "{said:?}");
        assert!(said.iter().all(|w| w.contains("cure: SET GLOBAL")), "{said:?}");
        db.close().await;
    })
    .await;
}

#[tokio::test]
async fn postgres_warns_of_commits_that_do_not_wait() {
    with_scratch(DialectName::Postgres, |scratch| async move {
        let db = open(&scratch.url).await;
        let before = warnings(&db).await;
        db.close().await;
        let sql = format!("ALTER DATABASE {} SET synchronous_commit = off", scratch.name);
        scratch.setup(&[&sql]).await;
        let db = open(&scratch.url).await;
        let after = warnings(&db).await;
        let new: Vec<&String> = after.iter().filter(|w| !before.contains(w)).collect();
        let [warning] = new[..] else { panic!("one new warning: {after:?}") };
        assert!(warning.contains("synchronous_commit") && warning.contains("is off"), "{warning}");
        assert!(warning.contains("cure: ALTER"), "{warning}");
        db.close().await;
    })
    .await;
}

/// Somebody else's table of the same name, or an edited migration: not ours, so not touched.
pub(super) async fn a_foreign_migration_is_refused(place: Place) {
    let mark = match place.db.dialect() {
        Dialect::Postgres => "decode('00ff', 'hex')",
        Dialect::Sqlite | Dialect::Mysql => "x'00ff'",
    };
    place.by_hand(&format!("UPDATE _sqlx_migrations SET checksum = {mark}")).await;
    assert_eq!(place.db.schema().await.expect("schema"), Schema::Foreign(1));
    let said = refusal(&place.db).await;
    for part in ["migration 1", "_sqlx_migrations", "of its own"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let error = place.db.migrate().await.expect_err("a foreign schema is not touched");
    assert_eq!(error.to_string(), said);
}
