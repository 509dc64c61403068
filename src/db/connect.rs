//! Opens the metadata database with the settings that durability and locking require, and verifies
//! that the server applies them.

use crate::db::hint::HintHub;
use crate::db::nodelay::without_delay;
use crate::db::pool::{ConnectionPool, PoolConfig, PoolEndpoint, Precedence, RotatedPassword};
use crate::db::session_settings::{SessionTimeouts, postgres_session, prepare_postgres};
use crate::db::single_round_trip::{AutocommitConnection, takes_compounds};
use crate::db::sqlite_file::{create_private, keep_private};
use crate::db::{Db, Dialect, DialectPools, Error, Result, Tx, WriterShare};
use secrecy::{ExposeSecret, SecretString};
use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// The address of the metadata database, and the number of connections.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// `sqlite:procession.db`, `mysql://user@host/db` or `postgres://user@host/db`; a secret,
    /// because it may contain a password.
    pub url: SecretString,
    /// The password, if it is not in the URL.
    pub password: Option<SecretString>,
    /// A password that is replaced while the program runs; each new connection uses the present
    /// one.
    pub rotated_password: Option<Arc<RwLock<SecretString>>>,
    /// Maximum number of connections (SQLite: readers; it has one writer).
    pub max_connections: u32,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// How long a statement may take to be answered before its connection is given up.
    pub statement_timeout: Duration,
    /// Whether a missing SQLite file is created; else it is an error.
    pub may_create: bool,
    /// Lock and idle timeouts of the sessions.
    pub keeping: SessionTimeouts,
}

impl ConnectSettings {
    /// Whether the database is a missing or an empty SQLite file: nothing can be read from it, and
    /// connecting would write to it.
    pub fn is_new_file(&self) -> bool {
        let url = self.url.expose_secret();
        if Dialect::of_url(url) != Some(Dialect::Sqlite) {
            return false;
        }
        let Ok(options) = SqliteConnectOptions::from_str(url) else { return false };
        match std::fs::metadata(options.get_filename()) {
            Ok(found) => found.is_file() && found.len() == 0,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

impl Db {
    /// Connects. A fault that the user can fix is `Error::ConnectSettings`; each error names the
    /// address without the password.
    pub async fn connect(settings: &ConnectSettings) -> Result<Self> {
        let url = settings.url.expose_secret();
        let Some(dialect) = Dialect::of_url(url) else {
            return Err(Error::Settings(unknown_scheme(url)));
        };
        let shown = match dialect {
            Dialect::Sqlite => url.to_owned(),
            Dialect::Mysql | Dialect::Postgres => redacted(url)?,
        };
        let (pools, takes_compounds) = match dialect {
            Dialect::Sqlite => (sqlite(url, settings).await?, false),
            Dialect::Mysql => mysql(url, &shown, settings).await?,
            Dialect::Postgres => (postgres(url, &shown, settings).await?, false),
        };
        let alone = match &pools {
            DialectPools::Sqlite { .. } | DialectPools::Mysql(_) => None,
            DialectPools::Postgres(pool) => Some(AutocommitConnection::beside(pool)),
        };
        let db = Self {
            pools,
            alone,
            takes_compounds,
            shown: shown.into(),
            hub: HintHub::new(),
            writer_share: None,
            precedence: Precedence::InTurn,
        };
        db.learn_to_hint().await;
        Ok(db)
    }
}

impl Db {
    /// A second pool on the same database, with the session timeouts in `settings`; on SQLite the
    /// same pool, because a second writer would only wait for the first by polling.
    pub async fn beside(&self, settings: &ConnectSettings) -> Result<Self> {
        match self.dialect() {
            Dialect::Sqlite => Ok(self.clone()),
            Dialect::Mysql | Dialect::Postgres => {
                let other = Self::connect(settings).await?;
                Ok(Self { hub: self.hub.clone(), ..other })
            }
        }
    }

    /// The pool of HTTP requests on the same database: they take no connection from the engine. On
    /// SQLite they read through connections of their own, and at most one of them waits for the
    /// writer.
    pub async fn for_requests(&self, settings: &ConnectSettings) -> Result<Self> {
        let DialectPools::Sqlite { writer, reader } = &self.pools else {
            return self.beside(settings).await;
        };
        let in_memory = reader.is_in_memory();
        let reader = match in_memory {
            true => reader.clone(),
            false => reader.beside(reader.options().clone(), settings.max_connections),
        };
        let share = WriterShare::new(settings.connect_timeout);
        let pools = DialectPools::Sqlite { writer: writer.clone(), reader };
        Ok(Self { pools, writer_share: (!in_memory).then_some(share), ..self.clone() })
    }

    /// The access of log lines to the same database: on SQLite at most one of their transactions
    /// waits for the writer.
    pub fn for_log_lines(&self) -> Self {
        let DialectPools::Sqlite { writer, .. } = &self.pools else { return self.clone() };
        let share = WriterShare::new(writer.wait_limit());
        Self { writer_share: Some(share), ..self.clone() }
    }

    /// The access of the lease to the same database. On a server it is a separate connection,
    /// opened at its first use; on SQLite, which has one writer, it precedes all others that wait
    /// for it.
    pub fn for_lease(&self) -> Self {
        let pools = match &self.pools {
            DialectPools::Sqlite { .. } => self.pools.clone(),
            DialectPools::Mysql(pool) => {
                DialectPools::Mysql(pool.beside(pool.options().clone(), 1))
            }
            DialectPools::Postgres(pool) => {
                DialectPools::Postgres(pool.beside(pool.options().clone(), 1))
            }
        };
        let precedence = Precedence::First;
        Self { pools, alone: None, writer_share: None, precedence, ..self.clone() }
    }

    /// Closes idle connections to a server; they are opened again when needed.
    pub async fn close_idle(&self) {
        match &self.pools {
            DialectPools::Sqlite { .. } => {}
            DialectPools::Mysql(pool) => pool.close_idle().await,
            DialectPools::Postgres(pool) => pool.close_idle().await,
        }
    }
}

impl WriterShare {
    fn new(wait_limit: Duration) -> Self {
        Self { writer: Arc::new(Semaphore::new(1)), wait_limit }
    }
}

const FORMS: &str = "sqlite:FILE, mysql://user@host:3306/db or postgres://user@host:5432/db";

/// Names the scheme only if there is one: in a URL without a scheme the first word may be a
/// password.
fn unknown_scheme(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            format!("the database URL begins with '{scheme}:'; use {FORMS}")
        }
        _ => format!("the database URL does not begin with a scheme; use {FORMS}"),
    }
}

/// A server's URL without its password, for messages; refuses one that is misleading. A `/`, `#` or
/// `?` in a password ends the address there, and the rest of the password would pass for a database
/// name.
fn redacted(url: &str) -> Result<String> {
    let unreadable = || {
        Error::Settings(
            "the database URL cannot be read; write mysql://user@host:3306/db or \
             postgres://user@host:5432/db, and percent-encode / # ? @ : in the password (%2F %23 \
             %3F %40 %3A), or give it in PROCESSION_DB_PASSWORD"
                .to_owned(),
        )
    };
    if !url.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//")) {
        return Err(unreadable());
    }
    let mut parsed = Url::parse(url).map_err(|_| unreadable())?;
    let name = parsed.path().trim_start_matches('/');
    let query = parsed.query().unwrap_or_default();
    if parsed.fragment().is_some() || name.contains(['/', '@']) || query.contains('@') {
        return Err(unreadable());
    }
    let has_name = !name.is_empty() || parsed.query_pairs().any(|(key, _)| key == "dbname");
    // Fails only where there is no host, and then there is no password either.
    let _no_host = parsed.set_password(None);
    if parsed.query_pairs().any(|(key, _)| key == "password") {
        let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        let shown = pairs.iter().filter(|(key, _)| key != "password");
        parsed.query_pairs_mut().clear().extend_pairs(shown);
    }
    if !has_name {
        parsed.set_path("");
        let given = parsed.to_string();
        parsed.set_path("/procession");
        return Err(Error::Settings(format!(
            "the database URL {given} names no database; write one behind the address, e.g. {parsed}"
        )));
    }
    Ok(parsed.to_string())
}

async fn sqlite(url: &str, settings: &ConnectSettings) -> Result<DialectPools> {
    // A second connection to an in-memory database would be a second database.
    let in_memory = url.contains(":memory:") || url.contains("mode=memory");
    let may_create = settings.may_create || in_memory;
    // FULL, because an acknowledged SUCCESS that a power failure reverts leads to a second run.
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(may_create)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(10))
        .disable_statement_logging();
    let file = options.get_filename().to_owned();
    if file.as_os_str().is_empty() && !in_memory {
        return Err(Error::Settings(
            "the database URL names no file; write sqlite:FILE".to_owned(),
        ));
    }
    let said = |error| Error::of_file(error, Path::new(&file), may_create);
    if may_create && !in_memory {
        // For a missing directory SQLite's message is better than this one's.
        let _sqlite_says_why = create_private(&file);
    }
    let first = options.connect().await.map_err(said)?;
    if !in_memory {
        keep_private(&file);
    }
    let end = if in_memory { PoolEndpoint::Memory } else { PoolEndpoint::File };
    let plan = |most, options| PoolConfig {
        end,
        options,
        rotated: None,
        prepare: None,
        most,
        patience: settings.connect_timeout,
        limit: settings.statement_timeout,
        shown: file.display().to_string(),
    };
    let writer = ConnectionPool::new(plan(1, options.clone()), first);
    if in_memory {
        return Ok(DialectPools::Sqlite { reader: writer.clone(), writer });
    }
    let options = options.create_if_missing(false).read_only(true);
    let first = options.connect().await.map_err(said)?;
    let reader = ConnectionPool::new(plan(settings.max_connections.max(1), options), first);
    Ok(DialectPools::Sqlite { writer, reader })
}

/// How a new connection gets a replaced password.
fn rotated<O>(settings: &ConnectSettings, set: fn(O, &str) -> O) -> Option<RotatedPassword<O>> {
    let password = settings.rotated_password.clone()?;
    Some(RotatedPassword { password, set })
}

/// Also returns whether the server accepts compound statements.
async fn mysql(url: &str, shown: &str, settings: &ConnectSettings) -> Result<(DialectPools, bool)> {
    let mut options = MySqlConnectOptions::from_str(url)
        .map_err(|error| Error::of_server(error, shown, ""))?
        .charset("utf8mb4")
        .statement_cache_capacity(500)
        .disable_statement_logging();
    if let Some(password) = &settings.password {
        options = options.password(password.expose_secret());
    }
    let database = options.get_database().unwrap_or_default().to_owned();
    let prepare = settings.keeping.mysql();
    let once = || async {
        let mut conn = without_delay(options.connect()).await?;
        prepare(&mut conn).await?;
        Ok(conn)
    };
    let mut first = probe(settings.connect_timeout, shown, &database, once).await?;
    let takes_compounds = takes_compounds(&mut first).await;
    let plan = PoolConfig {
        end: PoolEndpoint::Server,
        options,
        rotated: rotated(settings, MySqlConnectOptions::password),
        prepare: Some(prepare),
        most: settings.max_connections.max(1),
        patience: settings.connect_timeout,
        limit: settings.statement_timeout,
        shown: shown.to_owned(),
    };
    Ok((DialectPools::Mysql(ConnectionPool::new(plan, first)), takes_compounds))
}

async fn postgres(url: &str, shown: &str, settings: &ConnectSettings) -> Result<DialectPools> {
    let mut options = PgConnectOptions::from_str(url)
        .map_err(|error| Error::of_server(error, shown, ""))?
        .application_name("procession")
        .options(settings.keeping.postgres())
        .disable_statement_logging();
    if let Some(password) = &settings.password {
        options = options.password(password.expose_secret());
    }
    let database = options.get_database().unwrap_or_default().to_owned();
    let once = || async {
        let mut conn = without_delay(options.connect()).await?;
        prepare_postgres(&mut conn).await?;
        Ok(conn)
    };
    let first = probe(settings.connect_timeout, shown, &database, once).await?;
    let plan = PoolConfig {
        end: PoolEndpoint::Server,
        options,
        rotated: rotated(settings, PgConnectOptions::password),
        prepare: Some(postgres_session),
        most: settings.max_connections.max(1),
        patience: settings.connect_timeout,
        limit: settings.statement_timeout,
        shown: shown.to_owned(),
    };
    Ok(DialectPools::Postgres(ConnectionPool::new(plan, first)))
}

/// Opens the first connection outside of the pool, which would silently retry a refused connection
/// and finally report only that there was none. A starting or full server is retried.
async fn probe<C, F, Fut>(limit: Duration, shown: &str, database: &str, once: F) -> Result<C>
where
    F: Fn() -> Fut,
    Fut: Future<Output = sqlx::Result<C>>,
{
    let mut last = None;
    let tries = async {
        loop {
            match once().await.map_err(|e| Error::of_server(e, shown, database)) {
                Err(Error::TryAgain(said)) => last = Some(said),
                done => return done,
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    if let Ok(done) = tokio::time::timeout(limit, tries).await {
        return done;
    }
    Err(Error::Lost(last.unwrap_or_else(|| {
        format!("{shown} gave no answer within {limit:?}; are host and port right, and is it let through?")
    })))
}

impl Tx {
    /// The server's clock, which decides on leases and times in rows.
    pub async fn server_time(&mut self) -> Result<chrono::DateTime<chrono::Utc>> {
        let sql = self.dialect().clock_query();
        self.fetch_optional(sql, &[]).await?.ok_or(Error::Missing("the clock"))?.get_time("t")
    }
}
