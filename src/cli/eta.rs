//! `batch eta`, and its short form for `batch show`.

use crate::app::App;
use crate::cli::due;
use crate::cli::{BatchRef, Global, VerbResult, out};
use crate::domain::batch::Snapshot;
use crate::domain::batch::history::DurationBasis;
use crate::domain::dag::Node;
use crate::domain::forecast::certainty::Certainty;
use crate::domain::forecast::eta::Forecast;
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};
use crate::view::batch::BatchView;
use crate::view::delay::WhyLate;
use crate::view::due::Dues;
use crate::view::eta::{BatchEta, EndForecast};
use anyhow::Result;
use serde::Serialize;
use std::collections::HashSet;

/// Number of open jobs shown besides the critical path: those with the least slack.
const NEAR: usize = 5;

/// A forecast with the causes of delay.
#[derive(Serialize)]
struct EtaWithReasons {
    #[serde(flatten)]
    eta: BatchEta,
    why_late: WhyLate,
}

pub(super) async fn print_eta(global: &Global, app: &App, which: &BatchRef) -> Result<VerbResult> {
    let found = which.find_batch(app).await?;
    let view = BatchView::read_view(app, found.batch_id).await?;
    let outlook = EndForecast::read_outlook(app, &view).await?;
    let lang = global.language();
    let why_late = WhyLate::explain(app, &view, &outlook, lang).await?;
    if global.json {
        out::document(&EtaWithReasons { eta: outlook.document(&view), why_late })?;
        return Ok(VerbResult::Well);
    }
    let (no, group, status) =
        (&view.batch.values.batch_no, &view.batch.values.group, view.batch.status);
    let done = view.rows.iter().filter(|r| r.status.is_final()).count();
    let all = view.rows.len();
    out::print_line(&match lang {
        Lang::En => format!("Batch {no} of {group}: {status}, {done} of {all} jobs are over"),
        Lang::Zh => {
            format!("批次 {no}（作业组 {group}）：{status}，{all} 个作业中已结束 {done} 个")
        }
    });
    due_lines(&view, &outlook, lang).iter().for_each(|line| out::print_line(line));
    why_late.message.iter().for_each(|sentence| out::print_line(sentence));
    match &outlook {
        EndForecast::Over => {
            out::print_line(lang.select("Nothing is left to expect", "没有可预计的内容"))
        }
        EndForecast::Unknown | EndForecast::Expected { .. } => {
            brief(&view, &outlook, lang).iter().for_each(|line| out::print_line(line));
        }
    }
    if let EndForecast::Expected { forecast, .. } = &outlook {
        out::print_line(&table(&view, forecast, lang));
    }
    Ok(VerbResult::Well)
}

/// Present and expected lateness in a few lines.
pub(super) fn due_lines(view: &BatchView, outlook: &EndForecast, lang: Lang) -> Vec<String> {
    let expected = match outlook {
        EndForecast::Expected { forecast, .. } => {
            Some(Dues::expected(&view.snapshot, forecast, view.batch.create_time))
        }
        EndForecast::Over | EndForecast::Unknown => None,
    };
    due::lines(&view.snapshot, Some(&Dues::of_view(view)), expected.as_ref(), lang)
}

/// The forecast in a few lines; none when the batch has ended.
pub(super) fn brief(view: &BatchView, outlook: &EndForecast, lang: Lang) -> Vec<String> {
    match outlook {
        EndForecast::Over => Vec::new(),
        EndForecast::Unknown => vec![no_history(lang).to_owned()],
        EndForecast::Expected { forecast, dispatched } => {
            let mut lines = vec![end_words(&view.snapshot, forecast, lang)];
            if !dispatched {
                lines.push(
                    lang.select(
                        "No living process dispatches this batch; the figures hold if it is resumed now",
                        "没有存活的进程在调度此批次；以上按现在恢复运行估算",
                    )
                    .to_owned(),
                );
            }
            lines.push(path_words(&view.snapshot, forecast, lang));
            lines.extend(reservations(&view.snapshot, forecast, lang));
            lines
        }
    }
}

pub(super) fn no_history(lang: Lang) -> &'static str {
    lang.select(
        "No job has a history yet, so nothing can be expected; it begins with the first run",
        "尚无作业的历史耗时，无法预计；首次运行后即有",
    )
}

fn end_words(snapshot: &Snapshot, forecast: &Forecast, lang: Lang) -> String {
    let (end, bad) = (out::local_time(forecast.end), out::local_time(forecast.bad_end));
    let (left, bad_left) = (span_words(forecast.remaining()), span_words(forecast.bad_remaining()));
    let sure = forecast.confidence.describe(snapshot, lang);
    if forecast.confidence.certainty == Certainty::Unknown {
        return match lang {
            Lang::En => format!(
                "Expected end: {sure}. At a guess: {end}, in {left} (p90: {bad}, in {bad_left})"
            ),
            Lang::Zh => {
                format!("预计结束：{sure}。粗估：{end}，还需 {left}（p90:{bad}，还需 {bad_left}）")
            }
        };
    }
    let mut words = match lang {
        Lang::En => format!("Expected end: {end}, in {left} (p90: {bad}, in {bad_left}), {sure}"),
        Lang::Zh => format!("预计结束：{end}，还需 {left}（p90:{bad}，还需 {bad_left}），{sure}"),
    };
    if forecast.bound < forecast.end {
        let bound = span_words(forecast.bound.since(forecast.now));
        words.push_str(&match lang {
            Lang::En => format!("; with slots for all it would be in {bound}"),
            Lang::Zh => format!("；若并发名额不限则还需 {bound}"),
        });
    }
    words
}

/// The critical path as one line.
pub(super) fn path_words(snapshot: &Snapshot, forecast: &Forecast, lang: Lang) -> String {
    let codes: Vec<&str> =
        forecast.path.iter().map(|n| snapshot.jobs[n.index()].code.as_str()).collect();
    format!("{}{}", lang.select("Critical path: ", "关键路径："), codes.join(" -> "))
}

/// Assumptions of the forecast besides history.
pub(super) fn reservations(snapshot: &Snapshot, forecast: &Forecast, lang: Lang) -> Vec<String> {
    let codes = |nodes: &[Node]| {
        let all: Vec<&str> = nodes.iter().map(|n| snapshot.jobs[n.index()].code.as_str()).collect();
        out::brief(&all.join(", "), 200)
    };
    let mut lines = Vec::new();
    if let Some(first) = forecast.assumed.first() {
        let (number, open) = (forecast.assumed.len(), forecast.open);
        let taken = span_words(forecast.jobs[first.index()].estimate.p50);
        let codes = codes(&forecast.assumed);
        lines.push(match lang {
            Lang::En => format!(
                "Without history: {number} of {open} open jobs ({codes}); each is taken as {taken}, \
                 the median of the others"
            ),
            Lang::Zh => format!(
                "无历史耗时：未结束的 {open} 个作业中有 {number} 个（{codes}）；各按其余作业的中位数 {taken} 计"
            ),
        });
    }
    if !forecast.held.is_empty() {
        let (number, codes) = (forecast.held.len(), codes(&forecast.held));
        lines.push(match lang {
            Lang::En => format!("Held: {number} ({codes}); taken as if they were released now"),
            Lang::Zh => format!("已挂起：{number} 个（{codes}）；按现在释放估算"),
        });
    }
    let waits: Vec<Node> = (0..)
        .zip(&snapshot.jobs)
        .filter(|(i, job)| {
            let open = forecast.jobs.get(*i as usize).is_some_and(|j| j.slack.is_some());
            open && snapshot.externals.iter().any(|e| e.job_code == job.code)
        })
        .map(|(i, _)| Node(i))
        .collect();
    if !waits.is_empty() {
        let (number, codes) = (waits.len(), codes(&waits));
        lines.push(match lang {
            Lang::En => format!(
                "Waits for other batches: {number} ({codes}); taken as if those had ended well now"
            ),
            Lang::Zh => format!("等待其他批次：{number} 个（{codes}）；按其现在已成功结束估算"),
        });
    }
    if !forecast.left_out.is_empty() {
        let (number, codes) = (forecast.left_out.len(), codes(&forecast.left_out));
        lines.push(match lang {
            Lang::En => format!("Not counted: {number} ({codes}); not to run if all goes well"),
            Lang::Zh => format!("未计入：{number} 个（{codes}）；一切顺利则不会运行"),
        });
    }
    lines
}

/// The critical path and the jobs with the least slack.
fn table(view: &BatchView, forecast: &Forecast, lang: Lang) -> String {
    let on_path: HashSet<usize> = forecast.path.iter().map(|n| n.index()).collect();
    let mut near: Vec<usize> = (0..forecast.jobs.len())
        .filter(|i| forecast.jobs[*i].slack.is_some() && !on_path.contains(i))
        .collect();
    near.sort_by_key(|i| (forecast.jobs[*i].slack, *i));
    let path = forecast.path.iter().map(|n| n.index());
    let rows = path.chain(near.into_iter().take(NEAR)).map(|i| {
        let (job, row) = (&forecast.jobs[i], &view.rows[i]);
        let assumed = if job.estimate.basis == DurationBasis::Assumed { "?" } else { "" };
        vec![
            row.job_code.to_string(),
            row.status.to_string(),
            from_now(job.start, forecast.now, lang),
            from_now(job.end, forecast.now, lang),
            format!("{}{assumed}", span_words(job.estimate.p50)),
            format!("{}{assumed}", span_words(job.estimate.p95)),
            job.slack.map(span_words).unwrap_or_default(),
        ]
    });
    let header = match lang {
        Lang::En => ["JOB", "STATUS", "STARTS", "ENDS", "P50", "P95", "SLACK"],
        Lang::Zh => ["作业", "状态", "开始", "结束", "P50", "P95", "余量"],
    };
    out::table(&header, rows.collect())
}

fn from_now(at: Option<Millis>, now: Millis, lang: Lang) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let span = span_words(at.since(now).abs());
    match (lang, at < now) {
        (Lang::En, true) => format!("{span} ago"),
        (Lang::En, false) => format!("in {span}"),
        (Lang::Zh, true) => format!("{span}前"),
        (Lang::Zh, false) => format!("{span}后"),
    }
}
