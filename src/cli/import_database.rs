//! `import` from schedulers that store their jobs in a database, which is read and never written.

use crate::app;
use crate::cli::import::{ImportOutputArgs, deliver_more};
use crate::cli::{BadInput, Global, VerbResult};
use crate::import::{self, TableSystem};
use anyhow::Result;
use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The environment variable that may contain the password.
const PASSWORD: &str = "PROCESSION_IMPORT_PASSWORD";

/// Arguments of an import from a scheduler's database.
#[derive(Args)]
pub(super) struct FromDatabase {
    /// Its database: mysql://user@host:3306/database or postgres://user@host:5432/database; SELECT is enough
    #[arg(long, value_name = "URL")]
    pub(super) url: String,
    /// File with the password [default: PROCESSION_IMPORT_PASSWORD, else none]
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) to: ImportOutputArgs,
}

/// Where an import reads, and where it writes.
pub(super) struct ImportSource<'a> {
    pub(super) url: &'a str,
    pub(super) password_file: Option<&'a Path>,
    pub(super) to: &'a ImportOutputArgs,
}

pub(super) async fn import(
    global: &Global,
    system: TableSystem,
    args: &FromDatabase,
) -> Result<VerbResult> {
    let FromDatabase { url, password_file, to } = args;
    import_from(global, system, ImportSource { url, password_file: password_file.as_deref(), to })
        .await
}

pub(super) async fn import_from(
    global: &Global,
    system: TableSystem,
    source: ImportSource<'_>,
) -> Result<VerbResult> {
    let ImportSource { url, password_file, to } = source;
    to.check()?;
    let password = password(password_file)?;
    let tables = app::scheduler_tables(url, password, system.wanted()).await?;
    let made = import::import_tables(system, &tables, &to.asked()?, &app::job_kinds())?;
    let version = &tables.server.version;
    let from = format!("{} ({}, {version})", system.name(), app::shown_url(url));
    deliver_more(global, &made, &from, to, &[], json!({ "version": version }))
}

/// The first line of a file, or the variable.
fn password(file: Option<&Path>) -> Result<Option<SecretString>> {
    let Some(file) = file else { return Ok(std::env::var(PASSWORD).ok().map(SecretString::from)) };
    let text = std::fs::read_to_string(file).map(SecretString::from);
    let text =
        text.map_err(|error| BadInput(format!("--password-file {}: {error}", file.display())))?;
    Ok(Some(text.expose_secret().lines().next().unwrap_or_default().trim_end().to_owned().into()))
}
