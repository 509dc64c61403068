//! `job list | show | stats | trust`; actions on jobs of a batch are in `act`.

use crate::app::EmptyDatabase;
use crate::cli::{Global, VerbResult, act, act_args, breach, out, stats};
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::job_key::{JobKey, find_named};
use crate::domain::job::{Definition, JobDef, ParamMode, ParamNeed, Secrecy};
use crate::store;
use crate::store::breach::Breach;
use crate::view::job::{JobStanding, children, listed, owner_of, parents, whole};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::collections::BTreeMap;

/// Verbs of `job`.
#[derive(Subcommand)]
pub(super) enum JobVerb {
    /// All defined jobs
    List {
        /// Of this group only
        #[arg(long)]
        group: Option<String>,
        /// With this tag only
        #[arg(long)]
        tag: Option<String>,
        /// Of this owner only: its own, or its group's where it has none
        #[arg(long)]
        owner: Option<String>,
    },
    /// One job with its dependencies and body
    Show {
        /// Job: CODE or group.CODE, or an alias
        code: String,
    },
    /// How long jobs took: their last successful tries
    Stats {
        /// Job: CODE or group.CODE; without it, all jobs
        code: Option<String>,
        /// Of this group only
        #[arg(long)]
        group: Option<String>,
    },
    /// Clear the breach flag of jobs that committed by themselves although they are declared tx: same
    /// or ledger, after their procedures were fixed
    Trust {
        /// Jobs: CODE or group.CODE
        #[arg(required = true)]
        jobs: Vec<String>,
        /// What was fixed; stored in the audit log
        #[arg(long)]
        reason: String,
    },
    #[command(flatten)]
    Act(act_args::JobAct),
}

pub(super) async fn run_job_verb(global: &Global, verb: JobVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    match verb {
        JobVerb::Act(verb) => act::on_jobs(global, &app, verb).await,
        JobVerb::List { group, tag, owner } => {
            let defs = app.definition().await?;
            let group = group.as_deref().map(GroupCode::parse).transpose()?;
            let fits = |j: &&JobDef| {
                group.as_ref().is_none_or(|g| *g == j.group)
                    && tag.as_ref().is_none_or(|t| j.tags.contains(t))
                    && owner.as_ref().is_none_or(|o| owner_of(&defs, j) == Some(o))
            };
            let jobs: Vec<&JobDef> = defs.jobs.iter().filter(fits).collect();
            let mut tx = app.db.begin_read().await?;
            let standing = JobStanding {
                modes: store::run_mode::standing(&mut tx).await?,
                marks: store::breach::list_marks(&mut tx).await?,
            };
            list_jobs(global, &defs, &jobs, &standing)
        }
        JobVerb::Trust { jobs, reason } => breach::trust(global, &app, &jobs, &reason).await,
        JobVerb::Stats { code, group } => {
            let defs = app.definition().await?;
            let group = group.as_deref().map(GroupCode::parse).transpose()?;
            stats::stats(global, &app, &defs, code.as_deref(), group.as_ref()).await
        }
        JobVerb::Show { code } => {
            let defs = app.definition().await?;
            let mut tx = app.db.begin_read().await?;
            let marks = store::breach::list_marks(&mut tx).await?;
            show_job(global, &defs, &code, &marks)
        }
    }
}

fn list_jobs(
    global: &Global,
    defs: &Definition,
    jobs: &[&JobDef],
    standing: &JobStanding,
) -> Result<VerbResult> {
    let JobStanding { modes, marks } = standing;
    if global.json {
        let documents: Vec<_> = jobs.iter().map(|job| listed(defs, job, standing)).collect();
        out::print_json(&json!(documents))?;
        return Ok(VerbResult::Well);
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
                class_of(j, marks),
                if j.is_active { "yes" } else { "no" }.to_owned(),
                modes.get(&j.key()).map_or("-", |m| m.as_str()).to_owned(),
                out::brief(&all_parents(defs, j).join(", "), 60),
            ]
        })
        .collect();
    let header = ["JOB", "NAME", "GROUP", "TYPE", "SOURCE", "TX", "ACTIVE", "MODE", "AFTER"];
    out::print_line(&out::table(&header, rows));
    for job in jobs {
        if let Some(mark) = breach::find_mark(job, marks) {
            out::print_line(&breach::sentence(job, mark, global.language()));
        }
    }
    Ok(VerbResult::Well)
}

/// The transaction class, with a marker if it was violated.
fn class_of(job: &JobDef, marks: &BTreeMap<JobKey, Breach>) -> String {
    let mark = breach::find_mark(job, marks).map_or("", |_| " !");
    format!("{}{mark}", job.tx.as_str())
}

fn show_job(
    global: &Global,
    defs: &Definition,
    word: &str,
    marks: &BTreeMap<JobKey, Breach>,
) -> Result<VerbResult> {
    let job = find_named(&defs.jobs, word)?;
    let children = all_children(defs, job);
    let mark = breach::find_mark(job, marks);
    let document = whole(defs, job, marks);
    if global.json {
        out::print_json(&document)?;
        return Ok(VerbResult::Well);
    }
    let dash =
        |words: Vec<String>| if words.is_empty() { "-".to_owned() } else { words.join(", ") };
    out::print_line(&format!(
        "{} · {} · {} · group {}",
        job.code, job.name, job.job_type, job.group
    ));
    if !job.aliases.is_empty() {
        let aliases = job.aliases.iter().map(ToString::to_string).collect();
        out::print_line(&format!("aliases:  {}", dash(aliases)));
    }
    out::print_line(&format!("owner:    {}", owner_of(defs, job).map_or("-", String::as_str)));
    out::print_line(&format!("tags:     {}", dash(job.tags.clone())));
    out::print_line(&format!("after:    {}", dash(all_parents(defs, job))));
    out::print_line(&format!("before:   {}", dash(children)));
    out::print_line(&format!(
        "limits:   {} s, {} retries {} s apart, priority {}{}",
        job.timeout_sec,
        job.retry_count,
        job.retry_delay_sec,
        job.priority,
        if job.idempotent { ", idempotent" } else { "" }
    ));
    out::print_line(&format!("outcome:  {}", class_words(job)));
    if let Some(mark) = mark {
        out::print_line(&breach::sentence(job, mark, global.language()));
    }
    out::print_line(&format!("mails to: {}", dash(job.notify_email.clone())));
    for (part, text) in body_sections(job) {
        out::print_line(&format!("{part}\n{text}"));
    }
    Ok(VerbResult::Well)
}

/// The dependencies of a job, those in other batches with their group.
fn all_parents(defs: &Definition, job: &JobDef) -> Vec<String> {
    let is_mine = |e: &&ExternalDependency| e.waiting_group == job.group && e.job_code == job.code;
    let outside = defs.externals.iter().filter(is_mine).map(|e| match &e.depends_on {
        Some(code) => format!("{}.{code}", e.group),
        None => format!("{} (the whole batch)", e.group),
    });
    parents(defs, job).into_iter().chain(outside).collect()
}

/// The dependents of a job, those of other groups with their group.
fn all_children(defs: &Definition, job: &JobDef) -> Vec<String> {
    let waits = |e: &&ExternalDependency| {
        e.group == job.group && e.depends_on.as_ref().is_none_or(|code| *code == job.code)
    };
    let outside = defs
        .externals
        .iter()
        .filter(waits)
        .filter(|e| e.waiting_group != job.group || e.depends_on.is_some())
        .map(|e| format!("{}.{}", e.waiting_group, e.job_code));
    children(defs, job).into_iter().chain(outside).collect()
}

/// The transaction class, and what happens after an unknown outcome.
fn class_words(job: &JobDef) -> String {
    match job.tx.is_recorded() {
        true => format!("tx {}: looked up when it is not known", job.tx.as_str()),
        false => format!("tx none, {} when it is not known", job.when_unknown().as_str()),
    }
}

fn body_sections(job: &JobDef) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    if let Some(name) = &job.proc_name {
        parts.push(("procedure:".to_owned(), format!("  {name}")));
    }
    if let Some(call) = &job.executor {
        parts.push(("executor:".to_owned(), format!("  {call}")));
    }
    if let Some(call) = &job.application {
        parts.push(("application:".to_owned(), format!("  {call}")));
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
        let language = job.executor.as_ref().and_then(|e| e.language).map(|l| l.as_str());
        let interpreter = job.interpreter.as_deref().or(language).unwrap_or_default();
        parts.push((format!("script ({interpreter}):"), indent(text)));
    }
    for param in &job.params {
        let value = param.value.as_deref().unwrap_or("(from the layers below the job)");
        let mut text = format!("  {:?} {:?}", param.mode, param.ty).to_lowercase();
        if param.need == ParamNeed::Required {
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
