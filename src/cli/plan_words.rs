//! A plan as text and for scripts.

use crate::cli::due;
use crate::cli::eta::{no_history, path_words, reservations};
use crate::cli::out;
use crate::domain::batch::history::DurationBasis;
use crate::domain::dag::Node;
use crate::domain::forecast::dry_run::{OrderRefusal, ParamChange};
use crate::domain::id::{JobCode, SourceName};
use crate::domain::job::ParamMode;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::view::plan::{ChangesSince, PlannedBatch};

/// A job's duration counts as changed from a fifth of the earlier one, and half a second, on.
const NOTABLE_PERCENT: i64 = 20;
const NOTABLE_MS: i64 = 500;

/// Prints one batch of a plan.
pub(super) fn print(planned: &PlannedBatch, total: u32, lang: Lang) {
    out::print_line(&headline(planned, total, lang));
    out::print_line(&render_jobs(planned, lang));
    match &planned.forecast {
        None => out::print_line(no_history(lang)),
        Some(forecast) => {
            let (p50, p90) =
                (span_words(forecast.remaining()), span_words(forecast.bad_remaining()));
            let bound = span_words(forecast.bound.since(forecast.now));
            let snapshot = &planned.preview.plan.snapshot;
            let sure = forecast.confidence.describe(snapshot, lang);
            out::print_line(&match lang {
                Lang::En => format!(
                    "Expected duration: {p50} (p90 {p90}), {sure}; the critical path alone takes {bound}"
                ),
                Lang::Zh => {
                    format!("预计耗时：{p50}(p90 {p90}),{sure}；仅关键路径需 {bound}")
                }
            });
            out::print_line(&path_words(snapshot, forecast, lang));
            reservations(snapshot, forecast, lang).iter().for_each(|line| out::print_line(line));
        }
    }
    due_lines(planned, lang).iter().for_each(|line| out::print_line(line));
    if let Some(table) = params(planned, lang) {
        out::print_line(lang.select("\nParameters", "\n参数"));
        out::print_line(&table);
    }
    if let Some(since) = &planned.since {
        print_since(planned, since, lang);
    }
}

/// When it is due if it is opened now, and what will be late.
fn due_lines(planned: &PlannedBatch, lang: Lang) -> Vec<String> {
    let snapshot = &planned.preview.plan.snapshot;
    let dues = planned.due_times();
    match &planned.forecast {
        Some(_) => due::lines(snapshot, None, Some(&dues), lang),
        None => due::lines(snapshot, Some(&dues), None, lang),
    }
}

fn headline(planned: &PlannedBatch, total: u32, lang: Lang) -> String {
    let plan = &planned.preview.plan;
    let (no, group) = (&plan.values.batch_no, &plan.values.group);
    let kind = plan.batch_type.as_ref().map(|t| format!(" ({t})")).unwrap_or_default();
    let jobs = plan.snapshot.jobs.len();
    let waves = planned.preview.waves(None).len();
    let mut limits = vec![total.to_string()];
    limits.extend(plan.snapshot.group.max_parallel.map(|n| format!("{group} {n}")));
    let sources = plan.snapshot.sources.iter();
    limits.extend(sources.filter_map(|s| s.max_parallel.map(|n| format!("{} {n}", s.name))));
    let limits = limits.join(", ");
    match lang {
        Lang::En => {
            let date = plan.values.business_date.map(|d| format!(", business date {d}"));
            format!(
                "Plan of batch {no} of group {group}{kind}{}: {} in {}; at once at most: {limits}",
                date.unwrap_or_default(),
                out::count(jobs, "job"),
                out::count(waves, "wave"),
            )
        }
        Lang::Zh => {
            let date = plan.values.business_date.map(|d| format!("，业务日期 {d}"));
            format!(
                "批次 {no} 的计划（作业组 {group}{kind}）{}:{jobs} 个作业，{waves} 层；最大并发：{limits}",
                date.unwrap_or_default(),
            )
        }
    }
}

/// The jobs by wave, in the order in which they would start.
fn render_jobs(planned: &PlannedBatch, lang: Lang) -> String {
    let (plan, forecast) = (&planned.preview.plan, planned.forecast.as_ref());
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (wave, nodes) in planned.preview.waves(forecast).into_iter().enumerate() {
        for node in nodes {
            let job = &plan.snapshot.jobs[node.index()];
            let mut row = vec![
                wave.to_string(),
                job.code.to_string(),
                job.job_type.to_string(),
                job.source.as_ref().map_or("-", SourceName::as_str).to_owned(),
                format!("{} s", job.timeout_sec),
            ];
            row.extend(expected(planned, node, lang));
            rows.push(row);
        }
    }
    let header = match lang {
        Lang::En => [
            "WAVE",
            "JOB",
            "TYPE",
            "SOURCE",
            "TIMEOUT",
            "STARTS",
            "ENDS",
            "P50",
            "SLACK",
            "NOT BEFORE",
        ],
        Lang::Zh => ["层", "作业", "类型", "数据源", "超时", "开始", "结束", "P50", "余量", "最早"],
    };
    // Empty columns are omitted.
    let columns: Vec<usize> =
        (0..header.len()).filter(|c| rows.iter().any(|row| row[*c] != "-")).collect();
    let header: Vec<&str> = columns.iter().map(|c| header[*c]).collect();
    let rows = rows.iter().map(|row| columns.iter().map(|c| row[*c].clone()).collect()).collect();
    out::table(&header, rows)
}

fn expected(planned: &PlannedBatch, node: Node, lang: Lang) -> [String; 5] {
    let not_before = out::moment(planned.preview.plan.not_before[node.index()]);
    let dash = || "-".to_owned();
    let Some(forecast) = &planned.forecast else {
        return [dash(), dash(), dash(), dash(), not_before];
    };
    let job = &forecast.jobs[node.index()];
    let from_start =
        |at: Option<crate::domain::time::Millis>| match at.map(|at| at.since(forecast.now)) {
            Some(ms) => format!("+{}", span_words(ms)),
            None => dash(),
        };
    let assumed = if job.estimate.basis == DurationBasis::Assumed { "?" } else { "" };
    let slack = if job.critical {
        lang.select("critical", "关键").to_owned()
    } else {
        job.slack.map_or_else(dash, span_words)
    };
    let p50 = format!("{}{assumed}", span_words(job.estimate.p50));
    [from_start(job.start), from_start(job.end), p50, slack, not_before]
}

fn params(planned: &PlannedBatch, lang: Lang) -> Option<String> {
    let jobs = planned.preview.plan.snapshot.jobs.iter().zip(&planned.preview.params);
    let rows: Vec<Vec<String>> = jobs
        .flat_map(|(job, params)| {
            let given = params.iter().filter(|p| p.mode != ParamMode::Out);
            given.map(|p| {
                let value = p.value.clone().unwrap_or_else(|| "NULL".to_owned());
                vec![job.code.to_string(), p.name.clone(), value]
            })
        })
        .collect();
    let header = match lang {
        Lang::En => ["JOB", "PARAMETER", "VALUE"],
        Lang::Zh => ["作业", "参数", "值"],
    };
    (!rows.is_empty()).then(|| out::table(&header, rows))
}

fn print_since(planned: &PlannedBatch, since: &ChangesSince, lang: Lang) {
    let (no, status) = (&since.batch.values.batch_no, since.batch.status);
    let took = since.took_in_all().map(span_words);
    out::print_line(&match (lang, took) {
        (Lang::En, Some(took)) => format!("\nSince batch {no} ({status} in {took})"),
        (Lang::En, None) => format!("\nSince batch {no} ({status})"),
        (Lang::Zh, Some(took)) => format!("\n自批次 {no}（{status}，耗时 {took}）以来"),
        (Lang::Zh, None) => format!("\n自批次 {no}（{status}）以来"),
    });
    let mut lines: Vec<String> = since.changes.iter().map(|c| format!("  {c}")).collect();
    lines.extend(since.params.iter().map(|c| param_line(c, lang)));
    lines.extend(notable(since).map(|(code, took, expected)| {
        let (took, expected) = (span_words(took), span_words(expected));
        match lang {
            Lang::En => format!("  ~ duration of {code}: took {took}, p50 now {expected}"),
            Lang::Zh => format!("  ~ {code} 耗时：当时 {took}，现 p50 {expected}"),
        }
    }));
    if let (Some(took), Some(forecast)) = (since.took_in_all(), &planned.forecast) {
        let (took, expected) = (span_words(took), span_words(forecast.remaining()));
        lines.push(match lang {
            Lang::En => format!("  duration in all: took {took}, expected {expected}"),
            Lang::Zh => format!("  总耗时：当时 {took}，预计 {expected}"),
        });
    }
    if since.changes.is_empty() && since.params.is_empty() {
        let text = lang.select("  no change of definition or parameters", "  定义与参数均无变化");
        lines.insert(0, text.to_owned());
    }
    lines.iter().for_each(|line| out::print_line(line));
}

fn param_line(change: &ParamChange, lang: Lang) -> String {
    let ParamChange { job_code, param, .. } = change;
    let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "NULL".to_owned());
    let (old, new) = (value(&change.old), value(&change.new));
    match lang {
        Lang::En => format!("  ~ parameter {param} of {job_code}: {old} -> {new}"),
        Lang::Zh => format!("  ~ {job_code} 的参数 {param}:{old} -> {new}"),
    }
}

/// The jobs whose earlier duration differs considerably from the forecast.
fn notable(since: &ChangesSince) -> impl Iterator<Item = (&JobCode, i64, i64)> {
    since.took.iter().map(|(code, took, expected)| (code, *took, *expected)).filter(
        |(_, took, expected)| {
            let apart = (took - expected).abs();
            apart >= NOTABLE_MS && apart * 100 >= took * NOTABLE_PERCENT
        },
    )
}

/// Prints the refusals.
pub(super) fn print_refusals(refusals: &[OrderRefusal], lang: Lang) {
    if refusals.is_empty() {
        return;
    }
    out::print_line(lang.select("\nWould be refused", "\n将被拒绝"));
    for refusal in refusals {
        let group = refusal.group.as_ref().map(|g| format!("{g}: ")).unwrap_or_default();
        out::print_line(&format!("  {group}{refusal}"));
    }
}
