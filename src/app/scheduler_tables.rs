//! Reads the tables of another scheduler from its database, for an import.

use crate::app::from_xxl::shown_url;
use crate::db::{ConnectSettings, Dialect, SessionTimeouts};
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{SchedulerTables, WantedTables};
use crate::domain::source::transport::with_verified_tls;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};
use secrecy::SecretString;
use std::time::Duration;

/// Time limit of an answer of that server: tables of jobs are a few megabytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the tables cannot be read; `Display` is the message for the user.
#[derive(Debug, thiserror::Error)]
pub enum NoSchedulerDatabase {
    /// The URL is for another kind of database, or invalid.
    #[error("{system} is on a server: --url {}", examples(.dialects))]
    Kind {
        system: &'static str,
        /// The supported kinds of database.
        dialects: &'static [DialectName],
    },
    /// A password in the URL would be visible in process lists.
    #[error(
        "the URL holds a password, which process lists show; leave it out, and give --password-file FILE \
         or PROCESSION_IMPORT_PASSWORD"
    )]
    Password,
}

fn examples(dialects: &[DialectName]) -> String {
    dialects.iter().map(|dialect| example(*dialect)).collect::<Vec<_>>().join(" or ")
}

fn example(dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::Mysql => "mysql://user@host:3306/database",
        DialectName::Postgres | DialectName::Sqlite => "postgres://user@host:5432/database",
    }
}

/// Reads all tables of a scheduler's database in one read-only snapshot.
///
/// # Errors
///
/// When the server cannot be reached, or is no such database.
pub async fn scheduler_tables(
    url: &str,
    password: Option<SecretString>,
    wanted: &WantedTables,
) -> Result<SchedulerTables> {
    let given = match Dialect::of_url(url) {
        Some(Dialect::Mysql) => Some(DialectName::Mysql),
        Some(Dialect::Postgres) => Some(DialectName::Postgres),
        Some(Dialect::Sqlite) | None => None,
    };
    if !given.is_some_and(|dialect| wanted.dialects.contains(&dialect)) {
        let WantedTables { system, dialects, .. } = *wanted;
        return Err(NoSchedulerDatabase::Kind { system, dialects }.into());
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
