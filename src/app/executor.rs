//! Builds this process as an executor of XXL-JOB from its command-line options.

use crate::app::App;
use crate::domain::text::truncate_text;
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::xxl::executor::{Executor, ExecutorOptions};
use crate::outbound::ClientTlsFiles;
use crate::remote::admin::{AdminSettings, Admins, XxlDialect};
use anyhow::Result;
use secrecy::SecretString;
use std::time::Duration;

/// Time limit of an answer of an admin.
const LIMIT: Duration = Duration::from_secs(5);

/// The options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorWords {
    /// Addresses of the admins.
    pub admins: Vec<String>,
    /// Its app name.
    pub app_name: String,
    /// The URL at which the admins reach it.
    pub address: String,
    /// The token shared with the admins.
    pub token: SecretString,
    /// The version of the admins, if it is not to be detected.
    pub version: Option<String>,
    /// TLS files for connections to the admins.
    pub tls: ClientTlsFiles,
}

/// Invalid options; the message contains a hint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadExecutor(String);

/// Validated options.
pub struct CheckedExecutorOptions(ExecutorOptions);

impl ExecutorWords {
    /// Validates the options before anything is opened.
    pub fn check(&self) -> Result<CheckedExecutorOptions> {
        let app_name = AppName::parse(&self.app_name)?;
        let settings = AdminSettings {
            addresses: self.admins.clone(),
            app_name: self.app_name.clone(),
            token: self.token.clone(),
            dialect: self.version.as_deref().map(dialect).transpose()?,
            limit: LIMIT,
            tls: self.tls.clone(),
        };
        let admins = Admins::new(&settings).map_err(BadExecutor)?;
        for url in admins.unprotected() {
            tracing::warn!(
                admin = url,
                "this admin is spoken to without TLS: whoever is on the way can read the token"
            );
        }
        // Cut to the length of its column; only for people.
        let (address, admin) =
            (address(&self.address)?, truncate_text(&self.admins.join(", "), 900));
        Ok(CheckedExecutorOptions(ExecutorOptions { app_name, address, admin, admins }))
    }
}

impl App {
    /// An executor on this database.
    pub fn executor(&self, CheckedExecutorOptions(options): CheckedExecutorOptions) -> Executor {
        Executor::new(self.db.clone(), self.clock.clone(), options)
            .with_secret_stores(self.secret_stores.clone())
    }
}

fn dialect(version: &str) -> Result<XxlDialect, BadExecutor> {
    XxlDialect::of_version(version).ok_or_else(|| {
        let known: Vec<&str> = XxlDialect::ALL.into_iter().map(XxlDialect::since).collect();
        BadExecutor(format!(
            "--admin-version {version} is not known; what is spoken changed with {}",
            known.join(", ")
        ))
    })
}

/// The address in the form that admins expect: with a slash at its end.
fn address(text: &str) -> Result<String, BadExecutor> {
    let begins = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let is_plain = !text.contains(['?', '#', '@', ',', ' ']);
    if !begins || !is_plain || text.len() > 255 {
        return Err(BadExecutor(
            "--address must be the URL at which the admin reaches this process, as in \
             http://batch-1.example:9999"
                .to_owned(),
        ));
    }
    Ok(format!("{}/", text.trim_end_matches('/')))
}
