//! Opens the metadata database with the settings that our promises need, and looks whether the
//! server keeps them.

use crate::db::{Db, Dialect, Error, Pools, Result, Tx};
use secrecy::{ExposeSecret, SecretString};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Executor as _, pool::PoolConnection};
use std::str::FromStr;
use std::time::Duration;

/// Where the metadata database is and how many connections it may take.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `sqlite:procession.db`, `mysql://user@host/db` or `postgres://user@host/db`; a secret,
    /// because it may hold a password.
    pub url: SecretString,
    /// The password, when it is not in the URL.
    pub password: Option<SecretString>,
    /// Connections at most (SQLite: readers; it has one writer).
    pub max_connections: u32,
    /// How long to try to connect.
    pub connect_timeout: Duration,
}

impl Db {
    /// Connects. On SQLite the file is made when it is not there.
    pub async fn connect(settings: &Settings) -> Result<Self> {
        let url = settings.url.expose_secret();
        let pools = match Dialect::of_url(url) {
            Some(Dialect::Sqlite) => sqlite(url, settings).await?,
            Some(Dialect::Mysql) => mysql(url, settings).await?,
            Some(Dialect::Postgres) => postgres(url, settings).await?,
            None => {
                let scheme = url.split(':').next().unwrap_or_default();
                return Err(Error::Settings(format!(
                    "the database URL begins with '{scheme}:'; use sqlite:FILE, \
                     mysql://user@host:3306/db or postgres://user@host:5432/db"
                )));
            }
        };
        Ok(Self { pools })
    }
}

async fn sqlite(url: &str, settings: &Settings) -> Result<Pools> {
    // FULL, because an acknowledged SUCCESS that a power cut takes back is a second run.
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(10));
    let writer = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(settings.connect_timeout)
        .connect_with(options.clone())
        .await?;
    if url.contains(":memory:") {
        // A second connection to an in-memory database would be a second database.
        return Ok(Pools::Sqlite { reader: writer.clone(), writer });
    }
    let reader = SqlitePoolOptions::new()
        .max_connections(settings.max_connections.max(1))
        .acquire_timeout(settings.connect_timeout)
        .connect_with(options.create_if_missing(false).read_only(true))
        .await?;
    Ok(Pools::Sqlite { writer, reader })
}

async fn mysql(url: &str, settings: &Settings) -> Result<Pools> {
    let mut options =
        MySqlConnectOptions::from_str(url)?.charset("utf8mb4").statement_cache_capacity(500);
    if let Some(password) = &settings.password {
        options = options.password(password.expose_secret());
    }
    let pool = MySqlPoolOptions::new()
        .max_connections(settings.max_connections.max(1))
        .acquire_timeout(settings.connect_timeout)
        .after_connect(|conn, _| {
            Box::pin(async move {
                // REPEATABLE READ takes its snapshot at the first plain SELECT and then shows old
                // rows after a lock was gained.
                conn.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
                conn.execute("SET SESSION innodb_lock_wait_timeout = 10").await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await?;
    Ok(Pools::Mysql(pool))
}

async fn postgres(url: &str, settings: &Settings) -> Result<Pools> {
    let mut options = PgConnectOptions::from_str(url)?
        .application_name("procession")
        .options([("lock_timeout", "10s"), ("idle_in_transaction_session_timeout", "30s")]);
    if let Some(password) = &settings.password {
        options = options.password(password.expose_secret());
    }
    let pool = PgPoolOptions::new()
        .max_connections(settings.max_connections.max(1))
        .acquire_timeout(settings.connect_timeout)
        .connect_with(options)
        .await?;
    let _: PoolConnection<sqlx::Postgres> = pool.acquire().await?;
    Ok(Pools::Postgres(pool))
}

impl Tx {
    /// The server's own clock, by which leases and times in rows are judged.
    pub async fn server_time(&mut self) -> Result<chrono::DateTime<chrono::Utc>> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now') AS t",
            Dialect::Mysql => "SELECT UTC_TIMESTAMP(3) AS t",
            Dialect::Postgres => "SELECT clock_timestamp() AS t",
        };
        self.fetch_optional(sql, &[]).await?.ok_or(Error::Missing("the clock"))?.time("t")
    }

    /// Refuses a server that is too old.
    pub async fn check_version(&mut self) -> Result<String> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT sqlite_version() AS v",
            Dialect::Mysql | Dialect::Postgres => "SELECT version() AS v",
        };
        let row = self.fetch_optional(sql, &[]).await?.ok_or(Error::Missing("version()"))?;
        let version = row.text("v")?;
        let needed = match self.dialect() {
            Dialect::Sqlite => return Ok(version),
            Dialect::Mysql if version.to_lowercase().contains("mariadb") => (10, 6, "MariaDB 10.6"),
            Dialect::Mysql => (8, 0, "MySQL 8"),
            Dialect::Postgres => (13, 0, "PostgreSQL 13"),
        };
        if numbers(&version) < (needed.0, needed.1) {
            return Err(Error::Settings(format!(
                "the server is {version}; Procession needs {} or later",
                needed.2
            )));
        }
        Ok(version)
    }

    /// Settings of the server under which work it has acknowledged may be lost in a power cut or
    /// crash, each as a sentence with its cure. An acknowledged SUCCESS that vanishes is a second
    /// run.
    pub async fn durability_warnings(&mut self) -> Result<Vec<String>> {
        let checks: &[(&str, &str, &str)] = match self.dialect() {
            Dialect::Sqlite => &[],
            Dialect::Mysql => &[
                (
                    "@@innodb_flush_log_at_trx_commit",
                    "1",
                    "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
                ),
                ("IF(@@log_bin, @@sync_binlog, 1)", "1", "SET GLOBAL sync_binlog = 1"),
            ],
            Dialect::Postgres => &[
                ("current_setting('fsync')", "on", "fsync = on in postgresql.conf"),
                (
                    "current_setting('full_page_writes')",
                    "on",
                    "full_page_writes = on in postgresql.conf",
                ),
                (
                    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'off' ELSE 'on' END",
                    "on",
                    "ALTER SYSTEM SET synchronous_commit = on",
                ),
            ],
        };
        let mut warnings = Vec::new();
        for (expression, wanted, cure) in checks {
            let cast = if self.dialect() == Dialect::Mysql { "CHAR" } else { "TEXT" };
            let sql = format!("SELECT CAST({expression} AS {cast}) AS v");
            let row = self.fetch_optional(&sql, &[]).await?.ok_or(Error::Missing("a setting"))?;
            let found = row.text("v")?;
            if found != *wanted {
                warnings.push(format!(
                    "the database may lose acknowledged work in a crash: {expression} is {found}, \
                     not {wanted}; cure: {cure}"
                ));
            }
        }
        Ok(warnings)
    }
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
