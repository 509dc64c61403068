//! `history` and `rollback`: the versions of a group, and restoring one.

use crate::app::{App, Apply, EmptyDatabase};
use crate::cli::define::{AuthorArgs, change_json, print_changes, remark};
use crate::cli::{BadInput, Global, VerbResult, four_eyes, out};
use crate::definition::{self, DefinitionDifference, DifferenceKind};
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::store::version::Version;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

/// Arguments of `history`.
#[derive(Args)]
pub(super) struct HistoryArgs {
    /// Group
    group: String,
    /// What this version changed
    #[arg(long, value_name = "VERSION")]
    show: Option<u32>,
}

/// Arguments of `rollback`.
#[derive(Args)]
pub(super) struct RollbackArgs {
    /// Group
    group: String,
    /// The version to go back to
    #[arg(long, value_name = "VERSION")]
    to: u32,
    /// Why; it is kept
    #[arg(long, value_parser = remark)]
    reason: String,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    by: AuthorArgs,
}

pub(super) async fn history(global: &Global, args: &HistoryArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let versions = versions(&app, &args.group).await?;
    app.close().await;
    if let Some(no) = args.show {
        let at = position(&versions, no)?;
        let changes = changes(&versions, at);
        if global.json {
            return out::print_json(&as_json(&versions[at], &changes)).map(|()| VerbResult::Well);
        }
        out::print_line(&version_header(&versions[at]));
        changes.iter().for_each(|change| out::print_line(&change.to_string()));
        return Ok(VerbResult::Well);
    }
    let each = || versions.iter().enumerate().rev().map(|(i, v)| (v, changes(&versions, i)));
    if global.json {
        let all: Vec<Value> = each().map(|(version, changes)| as_json(version, &changes)).collect();
        return out::print_json(&json!(all)).map(|()| VerbResult::Well);
    }
    let rows = each()
        .map(|(version, changes)| {
            let (added, changed, removed) = counts(&changes);
            vec![
                version.no.to_string(),
                out::local_time(version.at),
                version.author.clone(),
                format!("+{added} ~{changed} -{removed}"),
                out::brief(version.remark.as_deref().unwrap_or("-"), 60),
            ]
        })
        .collect();
    out::print_line(&out::table(&["VERSION", "WHEN", "AUTHOR", "CHANGES", "REMARK"], rows));
    Ok(VerbResult::Well)
}

pub(super) async fn rollback(global: &Global, args: &RollbackArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let versions = versions(&app, &args.group).await?;
    let to = &versions[position(&versions, args.to)?];
    let how = if args.dry_run { Apply::DryRun } else { Apply::Write };
    if how == Apply::Write {
        let summary = format!("roll group {} back to version {}", to.group, to.no);
        let change = four_eyes::applied(&to.definition);
        four_eyes::record(&app, change, &summary, Some(&args.reason), global.language()).await?;
    }
    let changes = app.rollback(to, how, &args.by.authorship(), &args.reason).await?;
    app.close().await;
    print_changes(global, &changes, how)?;
    if !global.json && how == Apply::Write && !changes.is_empty() {
        let last = versions.last().map_or(0, |v| v.no);
        let now = format!("group {} is version {} now", to.group, last + 1);
        out::print_line(&out::message(&now));
    }
    Ok(VerbResult::Well)
}

async fn versions(app: &App, group: &str) -> Result<Vec<Version>> {
    let code = GroupCode::parse(group)?;
    let found = app.versions(&code).await?;
    if !found.is_empty() {
        return Ok(found);
    }
    let defs = app.definition().await?;
    let message = if defs.groups.iter().any(|g| g.code == code) {
        format!("group {code} has no versions yet; the next apply that changes it writes the first")
    } else {
        let known: Vec<&str> = defs.groups.iter().map(|g| g.code.as_str()).collect();
        format!("there is no group {code}; the groups are {}", known.join(", "))
    };
    Err(BadInput(message).into())
}

fn position(versions: &[Version], no: u32) -> Result<usize> {
    versions.iter().position(|v| v.no == no).ok_or_else(|| {
        let last = versions.last().map_or(0, |v| v.no);
        BadInput(format!("there is no version {no}; the versions are 1 to {last}")).into()
    })
}

/// The differences of a version from the previous one, or from an empty definition.
fn changes(versions: &[Version], at: usize) -> Vec<DefinitionDifference> {
    let nothing = Definition::default();
    let before = at.checked_sub(1).map_or(&nothing, |i| &versions[i].definition);
    definition::diff_definitions(before, &versions[at].definition)
}

fn counts(changes: &[DefinitionDifference]) -> (usize, usize, usize) {
    let count = |fits: fn(&DifferenceKind) -> bool| changes.iter().filter(|c| fits(&c.how)).count();
    (
        count(|h| matches!(h, DifferenceKind::Added)),
        count(|h| matches!(h, DifferenceKind::Changed(_))),
        count(|h| matches!(h, DifferenceKind::Removed)),
    )
}

fn version_header(version: &Version) -> String {
    let remark = version.remark.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
    format!(
        "version {} of {}, {} by {}{remark}",
        version.no, version.group, version.at, version.author
    )
}

fn as_json(version: &Version, changes: &[DefinitionDifference]) -> Value {
    json!({
        "group": version.group, "version": version.no, "at": version.at.to_string(),
        "author": version.author, "remark": version.remark,
        "changes": changes.iter().map(change_json).collect::<Vec<_>>(),
    })
}
