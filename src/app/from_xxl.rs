//! Imports from an XXL-JOB admin: reads its tables from its database, and adds its executors and
//! users to ours.

use crate::app::access::{self, Authority};
use crate::app::{App, Apply, executor_groups};
use crate::db::{ConnectSettings, Dialect, SessionTimeouts};
use crate::domain::access::user::UserName;
use crate::domain::source::transport::with_verified_tls;
use crate::domain::xxl::xxl_run::AppName;
use crate::domain::xxl::xxl_tables::XxlTables;
use crate::engine::secrets::executor_token::{self, TokenError};
use crate::import::{ImportedUser, NewExecutors};
use crate::store::{self, Db};
use anyhow::{Context as _, Result};
use secrecy::SecretString;
use std::time::Duration;

/// Time limit of an answer of that server: a table of jobs is a few megabytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the import fails; `Display` is the message for the user.
#[derive(Debug, thiserror::Error)]
pub enum NotFromXxl {
    /// The URL is a SQLite file, or invalid.
    #[error(
        "tables of XXL-JOB are on a server: --url mysql://user@host:3306/xxl_job, or postgres://…"
    )]
    NoServer,
    /// A password in the URL would be visible in process lists.
    #[error(
        "the URL holds a password, which process lists show; leave it out, and give --password-file FILE \
         or PROCESSION_XXL_PASSWORD"
    )]
    Password,
    /// Executors without a token.
    #[error(
        "--apply needs a token for the executors {0}: give the one that they have (xxl.job.accessToken) \
         with --executor-token-file FILE"
    )]
    NoToken(String),
    /// An invalid token.
    #[error(
        "executors {0}: {1}. Choose another, give it to the executors (xxl.job.accessToken), and name its file \
         with --executor-token-file"
    )]
    Token(AppName, TokenError),
}

/// Reads all tables of an admin's database in one read-only snapshot.
///
/// # Errors
///
/// When the server cannot be reached, or is no such database.
pub async fn xxl_tables(url: &str, password: Option<SecretString>) -> Result<XxlTables> {
    match Dialect::of_url(url) {
        Some(Dialect::Mysql | Dialect::Postgres) => {}
        Some(Dialect::Sqlite) | None => return Err(NotFromXxl::NoServer.into()),
    }
    if url::Url::parse(url).is_ok_and(|url| url.password().is_some()) {
        return Err(NotFromXxl::Password.into());
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
    let db = Db::connect(&settings).await.context("open the database of XXL-JOB, with the password of --password-file or PROCESSION_XXL_PASSWORD")?;
    let read = async {
        let mut tx = db.begin_look().await?;
        store::xxl_admin::read_all(&mut tx).await
    };
    let tables = read.await.context("read the tables of XXL-JOB");
    db.close().await;
    tables
}

/// The result of the import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Executor groups that were added.
    pub executors: Vec<AppName>,
    /// Groups that existed and were not changed.
    pub executors_there: Vec<AppName>,
    /// Users that were added.
    pub users: Vec<UserName>,
    /// Users that existed and were not changed.
    pub users_there: Vec<UserName>,
}

impl App {
    /// Adds executor groups and users in one transaction; existing ones are not changed. `token` is
    /// used for groups without one of their own.
    ///
    /// # Errors
    ///
    /// [`NotFromXxl::NoToken`], and invalid tokens.
    pub async fn bring_from_xxl(
        &self,
        by: &Authority,
        executors: &[NewExecutors],
        token: Option<&SecretString>,
        users: &[ImportedUser],
        apply: Apply,
    ) -> Result<Brought> {
        let mut kept = Vec::new();
        let mut without = Vec::new();
        for new in executors {
            match new.token.as_ref().or(token) {
                Some(token) => {
                    let app = &new.group.app_name;
                    let sealed = executor_token::seal_token(app, token);
                    kept.push(sealed.map_err(|error| NotFromXxl::Token(app.clone(), error))?);
                }
                None => without.push(new.group.app_name.as_str()),
            }
        }
        if !without.is_empty() {
            return Err(NotFromXxl::NoToken(without.join(", ")).into());
        }
        let hashes = match apply {
            Apply::Write => self.porter().wrapped(users).await?,
            Apply::DryRun => vec![None; users.len()],
        };
        let now = self.clock.now();
        let mut brought = Brought::default();
        let mut tx = self.db.begin().await?;
        for (new, kept) in executors.iter().zip(&kept) {
            let added =
                executor_groups::bring(&mut tx, &by.operator, &new.group, kept, now).await?;
            let list = if added { &mut brought.executors } else { &mut brought.executors_there };
            list.push(new.group.app_name.clone());
        }
        for (user, hash) in users.iter().zip(&hashes) {
            let added = access::bring(&mut tx, by, user, hash.as_deref(), now).await?;
            let list = if added { &mut brought.users } else { &mut brought.users_there };
            list.push(user.name.clone());
        }
        match apply {
            Apply::Write => tx.commit().await.context("write executors and users")?,
            Apply::DryRun => drop(tx),
        }
        Ok(brought)
    }
}

/// The URL without its password; used before it is shown anywhere.
pub fn shown_url(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) => {
            // Fails only where there is no host, and then there is no password either.
            let _no_host = parsed.set_password(None);
            parsed.set_query(None);
            parsed.to_string()
        }
        Err(_) => String::new(),
    }
}
