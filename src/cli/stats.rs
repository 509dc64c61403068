//! `job stats`: durations of jobs.

use crate::app::App;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::batch::history::Durations;
use crate::domain::id::GroupCode;
use crate::domain::job::job_key::{JobNameError, find_named};
use crate::domain::job::{Definition, JobDef};
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::view::job::JobStats;
use anyhow::Result;
use serde_json::json;

pub(super) async fn stats(
    global: &Global,
    app: &App,
    defs: &Definition,
    word: Option<&str>,
    group: Option<&GroupCode>,
) -> Result<VerbResult> {
    let mut in_group = defs.jobs.iter().filter(|j| group.is_none_or(|g| *g == j.group));
    let wanted: Vec<&JobDef> = match word {
        None => in_group.collect(),
        Some(word) => match find_named(in_group.by_ref(), word) {
            Ok(job) => vec![job],
            Err(error @ JobNameError::Ambiguous { .. }) => return Err(error.into()),
            Err(JobNameError::Unknown(_)) => Vec::new(),
        },
    };
    if wanted.is_empty() {
        return Err(BadInput(nothing(word, group)).into());
    }
    let mut found: Vec<(&JobDef, Option<Durations>)> = Vec::new();
    for group in &defs.groups {
        let jobs: Vec<&JobDef> = wanted.iter().filter(|j| j.group == group.code).copied().collect();
        if !jobs.is_empty() {
            let history = app.history(&group.code).await?;
            found.extend(jobs.into_iter().map(|job| (job, history.get(&job.code).copied())));
        }
    }
    if global.json {
        let documents: Vec<_> =
            found.iter().map(|(job, of)| JobStats::from_durations(job, of.as_ref())).collect();
        out::print_json(&json!(documents))?;
        return Ok(VerbResult::Well);
    }
    let rows = found.iter().map(|(job, of)| render_row(job, of.as_ref())).collect();
    let header = match global.language() {
        Lang::En => ["JOB", "GROUP", "TRIES", "P50", "P95", "LAST", "DRIFT"],
        Lang::Zh => ["作业", "作业组", "次数", "P50", "P95", "最近", "偏离"],
    };
    out::print_line(&out::table(&header, rows));
    Ok(VerbResult::Well)
}

fn render_row(job: &JobDef, of: Option<&Durations>) -> Vec<String> {
    let span = |of: Option<i64>| of.map_or_else(|| "-".to_owned(), span_words);
    let drift = of.and_then(Durations::drift);
    vec![
        job.code.to_string(),
        job.group.to_string(),
        of.map_or(0, |d| d.tries).to_string(),
        span(of.map(|d| d.p50)),
        span(of.map(|d| d.p95)),
        span(of.map(|d| d.last)),
        drift.map_or_else(|| "-".to_owned(), |percent| format!("{percent:+} %")),
    ]
}

fn nothing(code: Option<&str>, group: Option<&GroupCode>) -> String {
    let what = match (code, group) {
        (Some(code), Some(group)) => format!("job {code} in group {group}"),
        (Some(code), None) => format!("job {code}"),
        (None, Some(group)) => format!("job in group {group}"),
        (None, None) => "job".to_owned(),
    };
    format!("there is no {what}; procession job list shows those that are")
}
