//! `job list | show | stats`.

use crate::app::EmptyDatabase;
use crate::cli::{BadInput, Ended, Global, out, stats};
use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::{Definition, JobDef, Need, ParamMode, Secrecy};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

/// Verbs of `job`.
#[derive(Subcommand)]
pub(super) enum JobVerb {
    /// All defined jobs
    List {
        /// Of this group only
        #[arg(long)]
        group: Option<String>,
    },
    /// One job with its dependencies and body
    Show {
        /// Job code
        code: String,
    },
    /// How long jobs took: their last successful tries
    Stats {
        /// Job code; without it, all jobs
        code: Option<String>,
        /// Of this group only
        #[arg(long)]
        group: Option<String>,
    },
}

pub(super) async fn job(global: &Global, verb: JobVerb) -> Result<Ended> {
    let app = global.open(EmptyDatabase::Refuse).await?;
    let defs = app.definition().await?;
    match verb {
        JobVerb::List { group } => {
            let group = group.as_deref().map(GroupCode::parse).transpose()?;
            let jobs: Vec<&JobDef> =
                defs.jobs.iter().filter(|j| group.as_ref().is_none_or(|g| *g == j.group)).collect();
            list(global, &defs, &jobs)
        }
        JobVerb::Stats { code, group } => {
            let code = code.as_deref().map(JobCode::parse).transpose()?;
            let group = group.as_deref().map(GroupCode::parse).transpose()?;
            stats::stats(global, &app, &defs, code.as_ref(), group.as_ref()).await
        }
        JobVerb::Show { code } => show(global, &defs, &JobCode::parse(&code)?),
    }
}

fn parents(defs: &Definition, code: &JobCode) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.job_code == *code);
    of.map(|d| d.depends_on.to_string()).collect()
}

fn list(global: &Global, defs: &Definition, jobs: &[&JobDef]) -> Result<Ended> {
    if global.json {
        let documents: Vec<_> =
            jobs.iter().map(|j| json!({"job": j, "depends_on": parents(defs, &j.code)})).collect();
        out::json(&json!(documents))?;
        return Ok(Ended::Well);
    }
    let rows = jobs
        .iter()
        .map(|j| {
            vec![
                j.code.to_string(),
                j.name.clone(),
                j.group.to_string(),
                j.job_type.to_string(),
                j.source.as_ref().map_or("-", SourceName::as_str).to_owned(),
                if j.is_active { "yes" } else { "no" }.to_owned(),
                out::brief(&parents(defs, &j.code).join(", "), 60),
            ]
        })
        .collect();
    let header = ["JOB", "NAME", "GROUP", "TYPE", "SOURCE", "ACTIVE", "AFTER"];
    out::line(&out::table(&header, rows));
    Ok(Ended::Well)
}

fn show(global: &Global, defs: &Definition, code: &JobCode) -> Result<Ended> {
    let Some(job) = defs.jobs.iter().find(|j| j.code == *code) else {
        let message = format!("there is no job {code}; procession job list shows those that are");
        return Err(BadInput(message).into());
    };
    let children: Vec<String> = defs
        .dependencies
        .iter()
        .filter(|d| d.depends_on == *code)
        .map(|d| d.job_code.to_string())
        .collect();
    let document = json!({"job": job, "depends_on": parents(defs, code), "children": children});
    if global.json {
        out::json(&document)?;
        return Ok(Ended::Well);
    }
    let dash =
        |words: Vec<String>| if words.is_empty() { "-".to_owned() } else { words.join(", ") };
    out::line(&format!("{} · {} · {} · group {}", job.code, job.name, job.job_type, job.group));
    out::line(&format!("after:    {}", dash(parents(defs, code))));
    out::line(&format!("before:   {}", dash(children)));
    out::line(&format!(
        "limits:   {} s, {} retries {} s apart, priority {}{}",
        job.timeout_sec,
        job.retry_count,
        job.retry_delay_sec,
        job.priority,
        if job.idempotent { ", idempotent" } else { "" }
    ));
    out::line(&format!("owners:   {}", dash(job.notify_email.clone())));
    for (part, text) in body(job) {
        out::line(&format!("{part}\n{text}"));
    }
    Ok(Ended::Well)
}

fn body(job: &JobDef) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    if let Some(name) = &job.proc_name {
        parts.push(("procedure:".to_owned(), format!("  {name}")));
    }
    match &job.sql {
        Some(crate::domain::job::SqlText::Same(text)) => {
            parts.push(("sql:".to_owned(), indent(text)))
        }
        Some(crate::domain::job::SqlText::Per(texts)) => {
            parts.extend(texts.iter().map(|(d, t)| (format!("sql ({d}):"), indent(t))));
        }
        None => {}
    }
    if let Some(text) = &job.script {
        let interpreter = job.interpreter.as_deref().unwrap_or_default();
        parts.push((format!("script ({interpreter}):"), indent(text)));
    }
    for param in &job.params {
        let value = param.value.as_deref().unwrap_or("(from the layers below the job)");
        let mut text = format!("  {:?} {:?}", param.mode, param.ty).to_lowercase();
        if param.need == Need::Required {
            text.push_str(" required");
        }
        if param.secrecy == Secrecy::Secret {
            text.push_str(" secret");
        }
        if param.mode != ParamMode::Out {
            text.push_str(&format!(" {value}"));
        }
        parts.push((format!("param {}:", param.name), text));
    }
    for rule in &job.success {
        let text = format!("  {}, else {}", rule.rule, rule.grade);
        parts.push(("success rule:".to_owned(), text));
    }
    for check in &job.checks {
        let place = check.source.as_ref().map_or(String::new(), |s| format!(" on {s}"));
        let text = format!("  expects {}{place}, else {}", check.expect, check.grade);
        parts.push((format!("check {}:", check.name), text));
    }
    parts
}

fn indent(text: &str) -> String {
    text.lines().map(|l| format!("  {l}")).collect::<Vec<_>>().join("\n")
}
