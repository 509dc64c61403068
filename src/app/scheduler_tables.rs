//! The tables of another scheduler as they stand in its database, for an import.

use crate::app::from_xxl::shown_url;
use crate::db::{ConnectSettings, Dialect, SessionTimeouts};
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{SchedulerTables, WantedTables};
use crate::domain::source::transport::with_verified_tls;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};
use secrecy::SecretString;
use std::time::Duration;

/// How long that server may take to answer: tables of jobs are a few megabytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why its tables cannot be had; `Display` is the sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum NoSchedulerDatabase {
    /// A URL of another kind of database, or none.
    #[error("{system} is on a server: --url {}", example(.dialect))]
    Kind {
        /// The scheduler.
        system: &'static str,
        /// What its database is.
        dialect: DialectName,
    },
    /// It would stand in process lists.
    #[error(
        "the URL holds a password, which process lists show; leave it out, and give --password-file FILE \
         or PROCESSION_IMPORT_PASSWORD"
    )]
    Password,
}

fn example(dialect: &DialectName) -> &'static str {
    match dialect {
        DialectName::Mysql => "mysql://user@host:3306/database",
        DialectName::Postgres | DialectName::Sqlite => "postgres://user@host:5432/database",
    }
}

/// All that a scheduler's database says, as of one moment. Nothing is written there, and the server is told
/// that nothing will be.
///
/// # Errors
/// That it cannot be reached, or is no such database.
pub async fn scheduler_tables(
    url: &str,
    password: Option<SecretString>,
    wanted: &WantedTables,
) -> Result<SchedulerTables> {
    let is_of_kind = match (Dialect::of_url(url), wanted.dialect) {
        (Some(Dialect::Mysql), dialect) => dialect == DialectName::Mysql,
        (Some(Dialect::Postgres), dialect) => dialect == DialectName::Postgres,
        (Some(Dialect::Sqlite) | None, _) => false,
    };
    if !is_of_kind {
        return Err(
            NoSchedulerDatabase::Kind { system: wanted.system, dialect: wanted.dialect }.into()
        );
    }
    if url::Url::parse(url).is_ok_and(|url| url.password().is_some()) {
        return Err(NoSchedulerDatabase::Password.into());
    }
    let settings = ConnectSettings {
        url: with_verified_tls(url).into(),
        password,
        rotated_password: None,
        max_connections: 1,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: PATIENCE,
        may_create: false,
        keeping: SessionTimeouts::Usual,
    };
    let db = Db::connect(&settings).await.with_context(|| {
        format!("open the database of {}, with the password of --password-file or PROCESSION_IMPORT_PASSWORD", wanted.system)
    })?;
    let read = async {
        let mut tx = db.begin_look().await?;
        store::scheduler_tables::read_tables(&mut tx, wanted).await
    };
    let tables = read.await.with_context(|| format!("read the tables of {}", wanted.system));
    db.close().await;
    let mut tables = tables?;
    tables.server.url = Some(shown_url(url)).filter(|url| !url.is_empty());
    Ok(tables)
}
