//! Examines the metadata database before it is used, in two round trips: the product, its
//! durability settings, and the schema version.

use crate::db::migrate::{self, Schema};
use crate::db::{Db, Dialect, Error, MysqlServer, Result, Row, Tx};

/// The result of the examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Settings under which acknowledged commits may be lost, each as a sentence with a hint.
    pub durability_warnings: Vec<String>,
    /// The schema version compared with this binary.
    pub schema: Schema,
}

/// A server setting that decides whether acknowledged commits survive a crash.
struct DurabilitySetting {
    expression: &'static str,
    wanted: &'static str,
    fix: &'static str,
}

const fn setting(
    expression: &'static str,
    wanted: &'static str,
    fix: &'static str,
) -> DurabilitySetting {
    DurabilitySetting { expression, wanted, fix }
}

const ON_MYSQL: &[DurabilitySetting] = &[
    setting(
        "@@innodb_flush_log_at_trx_commit",
        "1",
        "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
    ),
    setting("IF(@@log_bin, @@sync_binlog, 1)", "1", "SET GLOBAL sync_binlog = 1"),
];

const ON_POSTGRES: &[DurabilitySetting] = &[
    setting("current_setting('fsync')", "on", "fsync = on in postgresql.conf"),
    setting(
        "current_setting('full_page_writes')",
        "on",
        "full_page_writes = on in postgresql.conf",
    ),
    setting(
        "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'off' ELSE 'on' END",
        "on",
        "ALTER SYSTEM SET synchronous_commit = on",
    ),
];

fn durability_settings(dialect: Dialect) -> &'static [DurabilitySetting] {
    match dialect {
        Dialect::Sqlite => &[],
        Dialect::Mysql => ON_MYSQL,
        Dialect::Postgres => ON_POSTGRES,
    }
}

const fn version_query(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "SELECT sqlite_version() AS v",
        Dialect::Mysql | Dialect::Postgres => "SELECT version() AS v",
    }
}

/// A query for one row with a column for each setting.
fn durability_query(dialect: Dialect) -> String {
    let text = if dialect == Dialect::Mysql { "CHAR" } else { "TEXT" };
    let columns = durability_settings(dialect).iter().enumerate();
    let columns = columns.map(|(at, one)| format!(", CAST({} AS {text}) AS v{at}", one.expression));
    format!("SELECT 1 AS asked{}", columns.collect::<String>())
}

impl Db {
    /// Refuses a server that is too old, and examines everything else.
    pub async fn examine(&self) -> Result<Examination> {
        let (dialect, mut tx) = (self.dialect(), self.begin_read().await?);
        let durability = durability_query(dialect);
        let questions = [version_query(dialect), &durability, migrate::table_query(dialect)];
        let [version, settings, table] = tx.fetch_sets(questions).await?;
        check_version(dialect, &version)?;
        let durability_warnings = warnings(dialect, &settings)?;
        Ok(Examination {
            durability_warnings,
            schema: migrate::schema_behind(&mut tx, &table).await?,
        })
    }
}

impl Tx {
    /// Refuses a server that is too old.
    pub async fn check_version(&mut self) -> Result<String> {
        let dialect = self.dialect();
        check_version(dialect, &self.fetch_all(version_query(dialect), &[]).await?)
    }

    /// Server settings under which acknowledged commits may be lost in a power failure or crash,
    /// each as a sentence with a hint. An acknowledged SUCCESS that vanishes leads to a second run.
    pub async fn durability_warnings(&mut self) -> Result<Vec<String>> {
        let dialect = self.dialect();
        warnings(dialect, &self.fetch_all(&durability_query(dialect), &[]).await?)
    }
}

fn check_version(dialect: Dialect, rows: &[Row]) -> Result<String> {
    let version = rows.first().ok_or(Error::Missing("version()"))?.get_text("v")?;
    let needed = match (dialect, MysqlServer::from_version(&version)) {
        (Dialect::Sqlite, _) => return Ok(version),
        (Dialect::Mysql, MysqlServer::MariaDb) => (10, 6, "MariaDB 10.6"),
        (Dialect::Mysql, MysqlServer::Mysql) => (8, 0, "MySQL 8"),
        (Dialect::Mysql, MysqlServer::OceanBase) => {
            return Err(Error::Settings(format!(
                "the server is {version}; Procession's tables can be on MySQL 8, MariaDB 10.6, \
                 PostgreSQL 13, or later ones, or SQLite, and not on OceanBase"
            )));
        }
        (Dialect::Postgres, _) => (13, 0, "PostgreSQL 13"),
    };
    if numbers(&version) < (needed.0, needed.1) {
        return Err(Error::Settings(format!(
            "the server is {version}; Procession needs {} or later",
            needed.2
        )));
    }
    Ok(version)
}

fn warnings(dialect: Dialect, rows: &[Row]) -> Result<Vec<String>> {
    let row = rows.first().ok_or(Error::Missing("the settings"))?;
    let mut warnings = Vec::new();
    for (at, DurabilitySetting { expression, wanted, fix }) in
        durability_settings(dialect).iter().enumerate()
    {
        let found = row.get_text(&format!("v{at}"))?;
        if found != *wanted {
            warnings.push(format!(
                "the database may lose acknowledged work in a crash: {expression} is {found}, not \
                 {wanted}; cure: {fix}"
            ));
        }
    }
    Ok(warnings)
}

fn numbers(version: &str) -> (u32, u32) {
    let start = version.find(|c: char| c.is_ascii_digit()).unwrap_or(version.len());
    let mut parts = version[start..].split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
    (next(), next())
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_read_as_servers_write_them() {
        assert_eq!(super::numbers("10.11.19-MariaDB-0+deb12u1"), (10, 11));
        assert_eq!(super::numbers("PostgreSQL 15.18 (Debian)"), (15, 18));
        assert_eq!(super::numbers("8.0.36"), (8, 0));
    }
}
