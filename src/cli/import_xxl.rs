//! `import xxl-job`: from the database of an XXL-JOB admin, which is read and never written.

use crate::app::access::Authority;
use crate::app::{self, Apply, Brought, EmptyDatabase};
use crate::cli::import::{ImportOutputArgs, deliver_more};
use crate::cli::{BadInput, Global, VerbResult};
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::operator_here;
use crate::import::{
    self, Beyond, BilingualSentence, ChildJoin, ImportOrigin, Level, Note, XxlAsked,
};
use anyhow::Result;
use clap::{Args, ValueEnum};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The environment variable that may contain the password.
const PASSWORD: &str = "PROCESSION_XXL_PASSWORD";

/// Arguments of `import xxl-job`.
#[derive(Args)]
pub(super) struct XxlImportArgs {
    /// Its database: mysql://user@host:3306/xxl_job, or postgres://…; SELECT on its tables is enough
    #[arg(long, value_name = "URL")]
    url: String,
    /// File with the password [default: PROCESSION_XXL_PASSWORD, else none]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// What a child of several parents waits for: the first that succeeds, as there, or all of them
    #[arg(long, value_enum, default_value_t = ChildJoinArg::Any)]
    children: ChildJoinArg,
    /// Write its executors and users into Procession's database; what is there stays as it is
    #[arg(long)]
    apply: bool,
    /// File with the token that its executors have (xxl.job.accessToken), for those without one of their own
    #[arg(long, value_name = "FILE", requires = "apply")]
    executor_token_file: Option<PathBuf>,
    #[command(flatten)]
    to: ImportOutputArgs,
}

/// What a child of several parents waits for.
#[derive(Clone, Copy, ValueEnum)]
enum ChildJoinArg {
    /// The first that succeeds
    Any,
    /// All of them
    All,
}

pub(super) async fn import(global: &Global, args: &XxlImportArgs) -> Result<VerbResult> {
    args.to.check()?;
    let token = args
        .executor_token_file
        .as_deref()
        .map(|file| read_first_line("--executor-token-file", file))
        .transpose()?;
    let tables = app::xxl_tables(&args.url, password(args)?).await?;
    let asked = args.to.asked()?;
    let wish = XxlAsked {
        children: match args.children {
            ChildJoinArg::Any => ChildJoin::Any,
            ChildJoinArg::All => ChildJoin::All,
        },
        beyond: if args.apply { Beyond::Written } else { Beyond::Told },
    };
    let mut made = import::xxl_job(&tables, &asked, wish, &app::job_kinds())?;
    let mut more = json!({
        "version": tables.schema.to_string(), "executor_groups": made.executors.len(),
        "users": made.users.len(),
    });
    let mut lines = Vec::new();
    if args.apply {
        let brought = bring(global, args, &made, token.as_ref()).await?;
        made.imported.notes.extend(there(&brought));
        made.imported.notes.sort();
        lines.push(import_summary(&brought, global.language()));
        more["applied"] = json!({
            "executor_groups": brought.executors, "executor_groups_there": brought.executors_there,
            "users": brought.users, "users_there": brought.users_there,
        });
    }
    let from = format!("XXL-JOB {} ({})", tables.schema, app::shown_url(&args.url));
    deliver_more(global, &made.imported, &from, &args.to, &lines, more)
}

async fn bring(
    global: &Global,
    args: &XxlImportArgs,
    made: &import::XxlImport,
    token: Option<&SecretString>,
) -> Result<Brought> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    // Times are those of the database, for all its clients.
    app.server_now().await?;
    let by = Authority { operator: operator_here(&app::whoami()), user: None };
    let apply = if args.to.dry_run { Apply::DryRun } else { Apply::Write };
    let brought = app.bring_from_xxl(&by, &made.executors, token, &made.users, apply).await;
    app.close().await;
    brought
}

/// Existing objects, as notes of the report.
fn there(brought: &Brought) -> Vec<Note> {
    let note = |table: &str, about: &str, fix: String| Note {
        level: Level::Differs,
        origin: ImportOrigin::new(table, 0),
        about: about.to_owned(),
        message: BilingualSentence::new("is here already, and stays as it is", "已存在，保持不变"),
        fix: BilingualSentence::new(fix.clone(), fix),
    };
    let executors = brought.executors_there.iter().map(|app| {
        note("xxl_job_group", app.as_str(), format!("procession executor-group set {app} …"))
    });
    let users = brought
        .users_there
        .iter()
        .map(|name| note("xxl_job_user", name.as_str(), format!("procession user set {name} …")));
    executors.chain(users).collect()
}

fn import_summary(brought: &Brought, lang: Lang) -> String {
    let Brought { executors, executors_there, users, users_there } = brought;
    let (e, et, u, ut) = (executors.len(), executors_there.len(), users.len(), users_there.len());
    match lang {
        Lang::En => format!(
            "executor groups: {e} added, {et} were there; users: {u} added, {ut} were there"
        ),
        Lang::Zh => format!("执行器：新增 {e}，已存在 {et}；用户：新增 {u}，已存在 {ut}"),
    }
}

fn password(args: &XxlImportArgs) -> Result<Option<SecretString>> {
    if let Some(file) = &args.password_file {
        return read_first_line("--password-file", file).map(Some);
    }
    Ok(std::env::var(PASSWORD).ok().map(SecretString::from))
}

/// The first line of a file.
fn read_first_line(flag: &str, file: &Path) -> Result<SecretString> {
    let text = std::fs::read_to_string(file).map(SecretString::from);
    let text = text.map_err(|error| BadInput(format!("{flag} {}: {error}", file.display())))?;
    Ok(text.expose_secret().lines().next().unwrap_or_default().trim_end().to_owned().into())
}
