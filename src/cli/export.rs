//! `export`: writes the stored definition as a definition file.

use crate::app::{self, EmptyDatabase};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::definition::{self, DefinitionFormat};
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::Definition;
use crate::domain::job::part;
use crate::view::file;
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `export`.
#[derive(Args)]
pub(super) struct DefinitionExportArgs {
    /// This group with what it names; without it, everything
    #[arg(long)]
    group: Option<String>,
    /// Write source NEW wherever OLD is named; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    map_source: Vec<String>,
    /// Give a source another URL; may be given several times
    #[arg(long, value_name = "SOURCE=URL")]
    set_url: Vec<String>,
    /// Form of the file
    #[arg(long, value_enum, default_value = "yaml")]
    format: ExportFormat,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Forms of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// YAML, long texts as blocks
    Yaml,
    /// JSON
    Json,
}

pub(super) async fn export(global: &Global, args: &DefinitionExportArgs) -> Result<VerbResult> {
    let moves = pairs("--map-source", &args.map_source)?
        .into_iter()
        .map(|(from, to)| Ok((from, SourceName::parse(&to)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let urls = pairs("--set-url", &args.set_url)?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let stored = app.definition_with_schedules().await?;
    app.close().await;
    let part = match &args.group {
        Some(code) => group_of(&stored, code)?,
        None => stored.clone(),
    };
    if part.jobs.is_empty() {
        let message = "no job is defined there; procession apply FILE defines some";
        return Err(BadInput(message.to_owned()).into());
    }
    let moved = part::on_other_sources(part, &moves, &urls, &stored.sources)?;
    let format = match (args.format, global.json) {
        (ExportFormat::Yaml, false) => DefinitionFormat::Yaml,
        (ExportFormat::Json, _) | (ExportFormat::Yaml, true) => DefinitionFormat::Json,
    };
    let text = definition::export(&moved, &app::job_kinds(), format)?;
    match &args.out {
        // Only the one line end that printing adds is removed: those before it belong to a text.
        None => out::print_line(text.strip_suffix('\n').unwrap_or(&text)),
        Some(file) => {
            write(file, &text)?;
            let jobs = out::count(moved.jobs.len(), "job");
            out::eprint_line(&format!("{}: {jobs} written", file.display()));
        }
    }
    Ok(VerbResult::Well)
}

fn group_of(stored: &Definition, code: &str) -> Result<Definition> {
    let code = GroupCode::parse(code)?;
    file::of_group(stored, &code).ok_or_else(|| {
        let known: Vec<&str> = stored.groups.iter().map(|g| g.code.as_str()).collect();
        BadInput(format!("there is no group {code}; the groups are {}", known.join(", "))).into()
    })
}

/// `NAME=VALUE` pairs; each name once.
fn pairs(flag: &str, given: &[String]) -> Result<BTreeMap<SourceName, String>> {
    let mut found = BTreeMap::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=').filter(|(_, value)| !value.is_empty())
        else {
            return Err(BadInput(format!("{flag} {pair}: write SOURCE=WORD")).into());
        };
        if found.insert(SourceName::parse(name)?, value.to_owned()).is_some() {
            return Err(BadInput(format!("{flag} says twice what becomes of {name}")).into());
        }
    }
    Ok(found)
}

/// Completely or not at all: a half-written file would be half a definition.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, file))
        .inspect_err(|_| drop(std::fs::remove_file(&fresh)))
        .with_context(|| format!("write {}", file.display()))
}
