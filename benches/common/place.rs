//! A scratch database and the settings of a process on it.

use crate::slow_line::via_slow_line;
use anyhow::{Context as _, Result};
use clap::ValueEnum;
use procession::config::Config;
use procession::db::Db;
use procession::db::session::{Session, SessionTarget, let_all_through};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Where it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    /// A file
    Sqlite,
    /// The server that PROCESSION_TEST_MYSQL names
    Mysql,
    /// The server that PROCESSION_TEST_POSTGRES names
    Postgres,
}

impl Database {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Mysql => "MySQL/MariaDB",
            Self::Postgres => "PostgreSQL",
        }
    }

    fn server(self) -> Result<String> {
        let (variable, port) = match self {
            Self::Sqlite => return Ok(String::new()),
            Self::Mysql => ("PROCESSION_TEST_MYSQL", 3306),
            Self::Postgres => ("PROCESSION_TEST_POSTGRES", 5432),
        };
        let url = std::env::var(variable)
            .with_context(|| format!("set {variable} to a server, or start by `make bench`"))?;
        via_slow_line(url.trim_end_matches('/').to_owned(), port)
    }
}

/// Databases that are there now, for whoever is stopped in the middle.
static THERE: Mutex<Vec<(Database, String)>> = Mutex::new(Vec::new());

fn there() -> MutexGuard<'static, Vec<(Database, String)>> {
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be told to stop, and drops what was made so far.
pub(crate) async fn stopped() -> anyhow::Error {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    let names = std::mem::take(&mut *there());
    for (database, name) in names {
        if let Err(error) = drop_database(database, &name).await {
            return error.context("stopped");
        }
    }
    anyhow::anyhow!("stopped; the scratch databases are dropped")
}

async fn drop_database(database: Database, name: &str) -> Result<()> {
    match database {
        // Its folder goes with whoever has it.
        Database::Sqlite => Ok(()),
        Database::Mysql => admin(database, &format!("DROP DATABASE {name}")).await,
        Database::Postgres => admin(database, &format!("DROP DATABASE {name} WITH (FORCE)")).await,
    }
}

/// An empty database that is dropped after the run.
pub(crate) struct Scratch {
    pub(crate) database: Database,
    pub(crate) url: String,
    name: String,
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) async fn make(database: Database) -> Result<Self> {
        let name = format!("procession_bench_{}", uuid::Uuid::new_v4().simple());
        let folder = tempfile::tempdir()?;
        let url = match database {
            Database::Sqlite => format!("sqlite:{}", folder.path().join("bench.db").display()),
            Database::Mysql | Database::Postgres => format!("{}/{name}", database.server()?),
        };
        match database {
            // A body's connection makes no file.
            Database::Sqlite => std::fs::write(folder.path().join("bench.db"), "")?,
            _ => admin(database, &format!("CREATE DATABASE {name}")).await?,
        }
        there().push((database, name.clone()));
        Ok(Self { database, url, name, folder })
    }

    /// Drops it, whoever is still connected.
    pub(crate) async fn remove(self) -> Result<()> {
        there().retain(|(_, name)| *name != self.name);
        drop_database(self.database, &self.name).await?;
        Ok(self.folder.close()?)
    }
}

/// A migrated database that is dropped after the run.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) url: String,
    pub(crate) config: Config,
    /// For looking at rows from outside.
    pub(crate) db: Db,
    scratch: Scratch,
}

impl Place {
    pub(crate) async fn make(database: Database) -> Result<Self> {
        let scratch = Scratch::make(database).await?;
        let none = scratch.folder.path().join("procession.toml");
        std::fs::write(&none, "")?;
        let mut config = Config::load_file(Some(&none))?;
        config.database.url = scratch.url.clone().into();
        let settings =
            procession::db::ConnectSettings { may_create: true, ..config.database_settings() };
        let db = Db::connect(&settings).await?;
        db.migrate().await?;
        Ok(Self { database, url: scratch.url.clone(), config, db, scratch })
    }

    /// An empty folder but for settings of which none differs from the defaults.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.scratch.folder.path()
    }

    /// Drops it, whoever is still connected.
    pub(crate) async fn remove(self) -> Result<()> {
        self.db.close().await;
        self.scratch.remove().await
    }

    /// The numbers of a row.
    pub(crate) async fn numbers<const N: usize>(
        &self,
        sql: &str,
        columns: [&str; N],
    ) -> Result<[i64; N]> {
        let mut tx = self.db.begin_read().await?;
        let row = tx.fetch_optional(sql, &[]).await?.context("one row")?;
        let mut found = [0; N];
        for (at, column) in found.iter_mut().zip(columns) {
            *at = row.opt_int(column)?.unwrap_or(0);
        }
        Ok(found)
    }
}

async fn admin(database: Database, sql: &str) -> Result<()> {
    let server = database.server()?;
    let url = match database {
        Database::Postgres => format!("{server}/postgres"),
        Database::Sqlite | Database::Mysql => server,
    };
    let timeout = Duration::from_secs(10);
    let target = SessionTarget {
        url,
        password: None,
        label: "bench".to_owned(),
        timeout,
        guard: let_all_through,
    };
    let mut session = Session::open_session(&target).await?;
    session.run_statement(sql, &[]).await.map_err(|e| anyhow::anyhow!("{sql}: {e}"))?;
    session.close().await;
    Ok(())
}
