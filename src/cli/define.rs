//! `check` and `apply`.

use crate::app::{self, Apply, EmptyDatabase};
use crate::cli::{Ended, Global, out};
use crate::definition::{Faults, Loaded};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `check`.
#[derive(Args)]
pub(super) struct CheckArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
}

/// Arguments of `apply`.
#[derive(Args)]
pub(super) struct ApplyArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn check(global: &Global, args: &CheckArgs) -> Result<Ended> {
    // The settings are checked with it: a fault there would stop the run just as well.
    global.config()?;
    let loaded = match app::load_definition(&args.file) {
        Ok(loaded) => loaded,
        Err(error) => {
            if let Some(faults) = error.downcast_ref::<Faults>().filter(|_| global.json) {
                print_faults(args, faults)?;
            }
            return Err(error);
        }
    };
    warn(&loaded);
    let defs = &loaded.definition;
    if global.json {
        return out::json(&json!({
            "file": args.file, "ok": true, "groups": defs.groups.len(), "jobs": defs.jobs.len(),
            "dependencies": defs.dependencies.len(), "sources": defs.sources.len(),
            "warnings": loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))
        .map(|()| Ended::Well);
    }
    out::line(&format!(
        "{}: no faults; {}, {}, {}, {}",
        args.file.display(),
        out::count(defs.jobs.len(), "job"),
        out::count(defs.dependencies.len(), "dependency"),
        out::count(defs.groups.len(), "group"),
        out::count(defs.sources.len(), "source")
    ));
    Ok(Ended::Well)
}

fn print_faults(args: &CheckArgs, faults: &Faults) -> Result<()> {
    let faults: Vec<_> = faults
        .as_slice()
        .iter()
        .map(|f| json!({"file": f.file, "line": f.line, "what": f.what, "cure": f.cure}))
        .collect();
    out::json(&json!({"file": args.file, "ok": false, "faults": faults}))
}

pub(super) async fn apply(global: &Global, args: &ApplyArgs) -> Result<Ended> {
    let loaded = app::load_definition(&args.file)?;
    warn(&loaded);
    let app = global.open(EmptyDatabase::Prepare).await?;
    let how = if args.dry_run { Apply::DryRun } else { Apply::Write };
    let changes = app.apply(&loaded.definition, how).await?;
    app.close().await;
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    if global.json {
        out::json(&json!({"applied": !args.dry_run, "changes": words}))?;
        return Ok(Ended::Well);
    }
    words.iter().for_each(|w| out::line(w));
    out::line(&match (words.len(), args.dry_run) {
        (0, _) => "no changes".to_owned(),
        (n, false) => format!("{} applied", out::count(n, "change")),
        (n, true) => format!("{} would be applied", out::count(n, "change")),
    });
    Ok(Ended::Well)
}

fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        out::note(&format!("warning: {warning}"));
    }
}
