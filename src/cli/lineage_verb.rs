//! `lineage`: the effects of one job on tables, and the users of a table.

use crate::app;
use crate::app::lineage::check_lineage;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::text::did_you_mean::nearest;
use crate::domain::text::lang::Lang;
use crate::lineage::{JobLineage, JobReading, TableImpact, TableUse, find_impact};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is asked of lineage.
#[derive(Subcommand)]
pub(super) enum LineageVerb {
    /// What jobs read and write, with the place of each access
    Show(LineageShowArgs),
    /// Who writes and reads a table, and which jobs a change of it reaches
    Impact(ImpactArgs),
}

/// Arguments of `lineage show`.
#[derive(Args)]
pub(super) struct LineageShowArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
    /// The job [default: all]
    job: Option<String>,
}

/// Arguments of `lineage impact`.
#[derive(Args)]
pub(super) struct ImpactArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
    /// The table, with or without its schema
    #[arg(long, value_name = "TABLE")]
    table: String,
}

/// The effects of a job, for scripts.
#[derive(Serialize)]
struct JobDocument<'a> {
    job: &'a str,
    is_whole: bool,
    #[serde(flatten)]
    reading: &'a JobReading,
}

pub(super) async fn lineage(global: &Global, verb: &LineageVerb) -> Result<VerbResult> {
    match verb {
        LineageVerb::Show(args) => show_lineage(global, args).await,
        LineageVerb::Impact(args) => impact(global, args).await,
    }
}

/// The jobs of all groups of a file. The jobs of a source that cannot be read are opaque, which is
/// reported.
async fn read_jobs(global: &Global, file: &Path) -> Result<Vec<JobLineage>> {
    let config = global.config()?;
    let loaded = app::load_definition(file)?;
    let found = check_lineage(&config, &loaded.definition).await?;
    for (source, why) in &found.unread_sources {
        let word = global.language().select("not read", "未读取");
        out::eprint_line(&format!("{word}: {source}: {why}"));
    }
    Ok(found.groups.into_iter().flat_map(|group| group.jobs).collect())
}

async fn show_lineage(global: &Global, args: &LineageShowArgs) -> Result<VerbResult> {
    let mut jobs = read_jobs(global, &args.file).await?;
    if let Some(wanted) = &args.job {
        let codes: Vec<String> = jobs.iter().map(|job| job.code.to_string()).collect();
        jobs.retain(|job| job.code.as_str() == wanted);
        if jobs.is_empty() {
            let meant = nearest(wanted, codes.iter().map(String::as_str));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            let file = args.file.display();
            return Err(BadInput(format!("{file} has no active job {wanted}{meant}")).into());
        }
    }
    if global.json {
        let documents: Vec<JobDocument<'_>> = jobs
            .iter()
            .map(|job| JobDocument {
                job: job.code.as_str(),
                is_whole: job.reading.is_whole(),
                reading: &job.reading,
            })
            .collect();
        out::print_json(&serde_json::to_value(&documents)?)?;
        return Ok(VerbResult::Well);
    }
    for job in &jobs {
        out::lines(describe_job(job, global.language()).into_iter());
    }
    Ok(VerbResult::Well)
}

fn describe_job(job: &JobLineage, lang: Lang) -> Vec<String> {
    let mut lines = vec![job.code.to_string()];
    for one in &job.reading.accesses {
        let rows = match one.access.slice.is_everything() {
            true => String::new(),
            false => format!(" [{}]", one.access.slice),
        };
        let (verb, table) = (one.access.mode.as_verb(), &one.access.table);
        lines.push(format!("  {verb} {table}{rows}  {}", one.place));
    }
    for place in &job.reading.dynamic {
        let what = lang.select("SQL made at run time", "运行时拼接 SQL");
        lines.push(format!("  {what}  {place}"));
    }
    for part in &job.reading.opaque {
        lines.push(format!("  {}  {}", part.reason, part.place));
    }
    if lines.len() == 1 {
        lines.push(format!("  {}", lang.select("touches no table", "不访问任何表")));
    }
    lines
}

async fn impact(global: &Global, args: &ImpactArgs) -> Result<VerbResult> {
    let jobs = read_jobs(global, &args.file).await?;
    let found = find_impact(&jobs, &args.table);
    if global.json {
        out::print_json(&serde_json::to_value(&found)?)?;
        return Ok(VerbResult::Well);
    }
    out::lines(describe_impact(&args.table, &found, global.language()).into_iter());
    Ok(VerbResult::Well)
}

fn describe_impact(table: &str, found: &TableImpact, lang: Lang) -> Vec<String> {
    let list = |uses: &[TableUse]| match uses {
        [] => lang.select("nobody", "无").to_owned(),
        uses => {
            let one = |one: &TableUse| format!("{} ({})", one.job, one.verbs.join(", "));
            uses.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    };
    let (writes, reads) = (list(&found.writers), list(&found.readers));
    let mut lines = match lang {
        Lang::En => vec![format!("{table} is written by {writes}"), format!("  read by {reads}")],
        Lang::Zh => vec![format!("{table} 由以下作业写入：{writes}"), format!("  读取：{reads}")],
    };
    for one in &found.reached {
        let Some(through) = &one.through else { continue };
        lines.push(match lang {
            Lang::En => format!("  → {}, which reads {} of {through}", one.job, one.table),
            Lang::Zh => format!("  → {}，读取 {through} 的 {}", one.job, one.table),
        });
    }
    if !found.unknown.is_empty() {
        let jobs = found.unknown.join(", ");
        lines.push(match lang {
            Lang::En => format!("  not wholly known, and may touch it too: {jobs}"),
            Lang::Zh => format!("  未完全读取，也可能访问：{jobs}"),
        });
    }
    lines
}
