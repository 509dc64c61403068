//! A migrated database for each test without running the migrations each time: SQLite copies a file, PostgreSQL
//! copies a database, MySQL and MariaDB run the finished schema as one text.
//!
//! A template is made by the first test that needs it and kept for later runs, under a name with the hash of the
//! migrations. Several processes may make one at once: each makes its own, and the last step is a rename.

use crate::util::{Scratch, migrate, query};
use procession::domain::source::DialectName;
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// A hash of all migrations of a dialect.
fn hash(dialect: DialectName) -> String {
    let name = match dialect {
        DialectName::Sqlite => "sqlite",
        DialectName::Mysql => "mysql",
        DialectName::Postgres => "postgres",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(name);
    let entries = std::fs::read_dir(folder).expect("a folder of migrations");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file).expect("a migration").hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn unique(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}

/// Where templates that are files live.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates");
    std::fs::create_dir_all(&folder).expect("a folder for templates");
    folder
}

/// Copies a migrated database to `file`, which does not exist yet.
pub(crate) async fn copy_sqlite(file: &Path) {
    let template = folder().join(format!("sqlite-{}.db", hash(DialectName::Sqlite)));
    if !template.is_file() {
        let made = folder().join(unique("sqlite-"));
        migrate(&format!("sqlite:{}", made.display())).await;
        std::fs::rename(made, &template).expect("rename the template");
    }
    std::fs::copy(template, file).expect("copy the template");
}

/// Makes a migrated database of this name; `server` is the URL of the server without a database.
pub(crate) async fn create_postgres(server: &str, name: &str) {
    let admin = format!("{server}/postgres");
    let template = format!("procession_template_{}", hash(DialectName::Postgres));
    let there = format!("SELECT 1 FROM pg_database WHERE datname = '{template}'");
    if query(&admin, &there).await.is_empty() {
        drop_old_templates(&admin).await;
        let made = unique("procession_template_new_");
        query(&admin, &format!("CREATE DATABASE {made}")).await;
        migrate(&format!("{server}/{made}")).await;
        let now = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')";
        let today = query(&admin, &format!("SELECT {now}")).await;
        let today = today[0][0].clone().expect("a date");
        query(&admin, &format!("COMMENT ON DATABASE {made} IS 'made {today}'")).await;
        let rename = format!("ALTER DATABASE {made} RENAME TO {template}");
        if try_query(&admin, &rename).await.is_err() {
            query(&admin, &format!("DROP DATABASE {made}")).await;
            assert!(!query(&admin, &there).await.is_empty(), "nobody else made {template}");
        }
    }
    query(&admin, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
}

/// Drops templates of migrations of more than a week ago.
async fn drop_old_templates(admin: &str) {
    let sql = "SELECT datname FROM pg_database \
               WHERE datname LIKE 'procession\\_template\\_%' \
               AND shobj_description(oid, 'pg_database') LIKE 'made %' \
               AND substr(shobj_description(oid, 'pg_database'), 6)::date < current_date - 7";
    for row in query(admin, sql).await {
        let name = row[0].clone().expect("a name");
        // Another process may drop it at the same time.
        let _gone_already = try_query(admin, &format!("DROP DATABASE IF EXISTS {name}")).await;
    }
}

async fn try_query(url: &str, sql: &str) -> Result<(), String> {
    let mut session = crate::util::session(url).await;
    let done = session.run_statement(sql, &[]).await.map(|_| ()).map_err(|e| e.to_string());
    session.close().await;
    done
}

/// Makes the tables in an empty database of a MySQL or MariaDB server.
pub(crate) async fn fill_mysql(url: &str) {
    let version = query(url, "SELECT VERSION()").await[0][0].clone().expect("a version");
    let version = version.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let template = folder().join(format!("mysql-{version}-{}.sql", hash(DialectName::Mysql)));
    let Ok(text) = std::fs::read_to_string(&template) else {
        migrate(url).await;
        let made = folder().join(unique("mysql-"));
        std::fs::write(&made, dump_mysql(url).await).expect("write the template");
        std::fs::rename(made, template).expect("rename the template");
        return;
    };
    let mut connection = MySqlConnection::connect(url).await.expect("connect");
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await.expect("make the tables");
    connection.close().await.expect("close");
}

/// All tables and their rows as one text.
async fn dump_mysql(url: &str) -> String {
    let mut text = "SET foreign_key_checks = 0;\n".to_owned();
    let tables = "SELECT table_name FROM information_schema.tables \
                  WHERE table_schema = DATABASE() ORDER BY table_name";
    for table in query(url, tables).await {
        let table = table[0].clone().expect("a name");
        let shown = query(url, &format!("SHOW CREATE TABLE `{table}`")).await;
        text.push_str(&format!("{};\n", shown[0][1].as_deref().expect("a statement")));
        let columns = format!(
            "SELECT column_name, data_type FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY ordinal_position"
        );
        let values: Vec<String> =
            query(url, &columns).await.iter().map(|row| literal(row)).collect();
        let rows = format!("SELECT CONCAT_WS(', ', {}) FROM `{table}`", values.join(", "));
        for row in query(url, &rows).await {
            let row = row[0].as_deref().expect("a row");
            text.push_str(&format!("INSERT INTO `{table}` VALUES ({row});\n"));
        }
    }
    text.push_str("SET foreign_key_checks = 1;\n");
    text
}

/// An expression for a column's value as a literal.
fn literal(column: &[Option<String>]) -> String {
    let [Some(name), Some(kind)] = column else { panic!("a column: {column:?}") };
    if kind.contains("blob") || kind.contains("binary") {
        return format!("COALESCE(CONCAT('X''', HEX(`{name}`), ''''), 'NULL')");
    }
    format!("QUOTE(`{name}`)")
}

/// Columns, indexes, constraints and the number of rows of each table.
async fn describe(scratch: &Scratch) -> Vec<String> {
    let url = &scratch.url;
    let mut lines = Vec::new();
    let (tables, details) = match scratch.dialect {
        DialectName::Sqlite => (
            "SELECT name FROM sqlite_master WHERE type = 'table'",
            "SELECT type, name, sql FROM sqlite_master",
        ),
        DialectName::Mysql => (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
            "SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() \
             UNION ALL SELECT trigger_name FROM information_schema.triggers \
             WHERE trigger_schema = DATABASE()",
        ),
        DialectName::Postgres => (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
            "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' \
             || COALESCE(column_default, '') || ' ' || COALESCE(collation_name, '') \
             FROM information_schema.columns WHERE table_schema = 'public' \
             UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
             UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) \
             FROM pg_constraint WHERE connamespace = 'public'::regnamespace \
             UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
        ),
    };
    for row in query(url, details).await {
        lines.push(format!("{row:?}"));
    }
    for row in query(url, tables).await {
        let table = row[0].clone().expect("a name");
        if scratch.dialect == DialectName::Mysql {
            // MySQL shows the character set of a column only when a statement named its collation.
            let shown = query(url, &format!("SHOW CREATE TABLE {table}")).await;
            lines.push(format!("{shown:?}").replace(" CHARACTER SET utf8mb4", ""));
        }
        let rows = query(url, &format!("SELECT COUNT(*) FROM {table}")).await;
        lines.push(format!("{table}: {rows:?}"));
    }
    let versions = "SELECT version, success FROM _sqlx_migrations ORDER BY version";
    lines.push(format!("{:?}", query(url, versions).await));
    lines.sort();
    lines
}

async fn copy_equals_migrations(dialect: DialectName) {
    crate::util::with_scratch(dialect, |migrated| async move {
        migrate(&migrated.url).await;
        let expected = describe(&migrated).await;
        assert!(expected.len() > 40, "{expected:#?}");
        crate::util::with_migrated_scratch(dialect, |copied| async move {
            assert_eq!(describe(&copied).await, expected);
            let db = crate::util::connect(&copied.url).await;
            db.require_current().await.expect("current");
            db.close().await;
        })
        .await;
    })
    .await;
}

mod sqlite {
    #[tokio::test]
    async fn a_copy_is_what_the_migrations_make() {
        super::copy_equals_migrations(super::DialectName::Sqlite).await;
    }
}
mod mysql {
    #[tokio::test]
    async fn a_copy_is_what_the_migrations_make() {
        super::copy_equals_migrations(super::DialectName::Mysql).await;
    }
}
mod postgres {
    #[tokio::test]
    async fn a_copy_is_what_the_migrations_make() {
        super::copy_equals_migrations(super::DialectName::Postgres).await;
    }
}
