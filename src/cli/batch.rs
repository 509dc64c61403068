//! `batch open | wait | list | show | why | eta | kill | no`; other actions on a batch are in
//! `act`.

use crate::app::{App, EmptyDatabase};
use crate::cli::{
    BatchRef, Global, VerbResult, act, act_args, batch_no, batch_open, broken, eta, out, stop,
    tries, why,
};
use crate::domain::batch::Batch;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::text::count_words;
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};
use crate::store;
use crate::view::batch::BatchView;
use crate::view::eta::EndForecast;
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::collections::BTreeMap;

/// Verbs of `batch`.
#[derive(Subcommand)]
pub(super) enum BatchVerb {
    /// Open a batch without running it: the next free server (procession serve) runs it
    Open(batch_open::OpenArgs),
    /// Wait for the end of a batch, whoever runs it; the exit code is that of the batch
    Wait {
        #[command(flatten)]
        batch: BatchRef,
        /// Show no progress, only the summary
        #[arg(short, long)]
        quiet: bool,
    },
    /// The latest batches
    List {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// One batch with its jobs
    Show {
        #[command(flatten)]
        batch: BatchRef,
    },
    /// For each job that is not running: what it waits for
    Why {
        #[command(flatten)]
        batch: BatchRef,
    },
    /// When a running batch is expected to end, and which jobs decide that
    Eta {
        #[command(flatten)]
        batch: BatchRef,
    },
    /// Stop a batch: what waits is cancelled, what runs is ended on its server
    Kill {
        #[command(flatten)]
        batch: BatchRef,
        /// Why; stored with the batch
        #[arg(long)]
        reason: String,
        /// Do not wait until it has ended
        #[arg(long)]
        no_wait: bool,
    },
    #[command(flatten)]
    Act(act_args::BatchAct),
    /// The batch numbers that an expression or a range means; needs no database
    No(batch_no::NoArgs),
}

pub(super) async fn batch(global: &Global, verb: BatchVerb) -> Result<VerbResult> {
    // A future until it is awaited: a preview opens no database.
    let app = global.open_app(EmptyDatabase::Refuse);
    match verb {
        BatchVerb::No(args) => batch_no::preview(global, &args),
        BatchVerb::Open(args) => batch_open::open_batches(global, args).await,
        BatchVerb::Wait { batch, quiet } => {
            batch_open::wait_for_batch(global, &app.await?, &batch, quiet).await
        }
        BatchVerb::List { limit } => list_batches(global, &app.await?, limit).await,
        BatchVerb::Show { batch } => {
            let app = app.await?;
            let found = batch.find_batch(&app).await?;
            let view = BatchView::read_view(&app, found.batch_id).await?;
            let outlook = EndForecast::read_outlook(&app, &view).await?;
            if global.json {
                let mut document = view.document();
                document.eta = Some(outlook.document(&view));
                out::document(&document)?;
            } else {
                print(&view, global.language());
                eta::due_lines(&view, &outlook, global.language())
                    .iter()
                    .for_each(|line| out::print_line(line));
                eta::brief(&view, &outlook, global.language())
                    .iter()
                    .for_each(|line| out::print_line(line));
            }
            Ok(VerbResult::Well)
        }
        BatchVerb::Why { batch } => why::print_reasons(global, &app.await?, &batch).await,
        BatchVerb::Eta { batch } => eta::print_eta(global, &app.await?, &batch).await,
        BatchVerb::Kill { batch, reason, no_wait } => {
            stop::kill_batch(global, &app.await?, &batch, &reason, no_wait).await
        }
        BatchVerb::Act(verb) => act::on_batch(global, &app.await?, verb).await,
    }
}

async fn list_batches(global: &Global, app: &App, limit: u32) -> Result<VerbResult> {
    let mut tx = app.db.begin_read().await?;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for batch in store::batch::list_batches(&mut tx, None, limit).await? {
        let counts = store::batch::counts(&mut tx, batch.batch_id).await?;
        let mut jobs: Vec<String> = counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
        if batch.unwritten_jobs > 0 {
            jobs.push(format!("{} to be written", batch.unwritten_jobs));
        }
        documents.push(json!({
            "batch_no": batch.values.batch_no, "group": batch.values.group,
            "type": batch.batch_type, "status": batch.status.as_str(),
            "jobs": counts.iter().map(|(s, n)| (s.as_str(), n)).collect::<BTreeMap<_, _>>(),
            "started_by": batch.started_by, "create_time": batch.create_time.to_string(),
            "end_time": batch.end_time.map(|t| t.to_string()),
            "removing": batch.removing.map(|t| t.to_string()),
            "free_text": batch.is_free_text(),
            "unwritten_jobs": batch.unwritten_jobs,
        }));
        rows.push(vec![
            batch.values.batch_no.to_string(),
            batch.values.group.to_string(),
            status_of(&batch),
            jobs.join(", "),
            out::local_time(batch.create_time),
            out::moment(batch.end_time),
        ]);
    }
    if global.json {
        out::print_json(&json!(documents))?;
    } else {
        let header = match global.language() {
            Lang::En => ["BATCH", "GROUP", "STATUS", "JOBS", "OPENED", "ENDED"],
            Lang::Zh => ["批次", "作业组", "状态", "作业", "创建时间", "结束时间"],
        };
        out::print_line(&out::table(&header, rows));
    }
    Ok(VerbResult::Well)
}

/// The batch and its jobs as a table.
pub(super) fn print(view: &BatchView, lang: Lang) {
    let batch = &view.batch;
    let rows = view
        .rows
        .iter()
        .zip(&view.snapshot.jobs)
        .map(|(row, job)| {
            let took = row.start_time.zip(row.end_time).map(|(s, e)| span_words(e.since(s)));
            vec![
                row.job_code.to_string(),
                job.job_type.to_string(),
                out::state(row.status, row.run_mode),
                row.attempt.to_string(),
                took.unwrap_or_else(|| "-".to_owned()),
                result_words(row, view.outputs.get(&row.queue_id.0)),
            ]
        })
        .collect();
    let header = match lang {
        Lang::En => ["JOB", "TYPE", "STATUS", "STARTS", "TOOK", "RESULT"],
        Lang::Zh => ["作业", "类型", "状态", "启动次数", "耗时", "结果"],
    };
    out::print_line(&out::table(&header, rows));
    broken::print(view, lang);
    tries::print(view, lang);
    let took = batch.end_time.map(|end| span_words(end.since(batch.create_time)));
    let mut counts: BTreeMap<QueueStatus, usize> = BTreeMap::new();
    view.rows.iter().for_each(|row| *counts.entry(row.status).or_default() += 1);
    let counts: Vec<String> = counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
    let (no, group, status) = (&batch.values.batch_no, &batch.values.group, status_of(batch));
    let counts = counts.join(", ");
    let took = match (lang, took) {
        (_, None) => String::new(),
        (Lang::En, Some(took)) => format!(" in {took}"),
        (Lang::Zh, Some(took)) => format!("，耗时 {took}"),
    };
    out::print_line(&match lang {
        Lang::En => format!("Batch {no} of {group}: {status}{took} ({counts})"),
        Lang::Zh => format!("批次 {no}（作业组 {group}）：{status}{took}（{counts}）"),
    });
    if let Some(reason) = &batch.reason {
        let label = lang.select("Reason: ", "原因：");
        out::print_line(&format!("{label}{}", out::message(reason)));
    }
}

/// The state of a batch, and whether it is paused, being removed by retention, or without a period.
fn status_of(batch: &Batch) -> String {
    let paused = if batch.is_paused && !batch.status.is_final() { " (paused)" } else { "" };
    let removing = if batch.removing.is_some() { " (being removed)" } else { "" };
    let opening = if batch.unwritten_jobs > 0 { " (opening)" } else { "" };
    let free_text = if batch.is_free_text() { " (free text)" } else { "" };
    format!("{}{paused}{removing}{opening}{free_text}", batch.status)
}

fn result_words(row: &QueueEntry, outputs: Option<&JobOutputs>) -> String {
    if let Some(message) = &row.error_message {
        return out::brief(&out::message(message), 70);
    }
    let Some(outputs) = outputs else { return String::new() };
    let mut words: Vec<String> = outputs
        .values
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL")))
        .collect();
    let stored = outputs.stored.iter().map(|(name, of)| format!("{name}=<{}>", of.describe()));
    words.extend(stored);
    if outputs.rows_affected > 0 {
        let changed = format!("{} changed", count_words(outputs.rows_affected, "row"));
        words.push(out::message(&changed).into_owned());
    }
    if let Some(result) = outputs.results.last().filter(|_| words.is_empty()) {
        words.push(match (result.row_count, result.columns.len()) {
            (1, 1) => {
                let value = result.rows.first().and_then(|r| r.first()).cloned().flatten();
                format!("{}={}", result.columns[0], value.as_deref().unwrap_or("NULL"))
            }
            (count, _) => {
                out::message(&format!("{} returned", count_words(count, "row"))).into_owned()
            }
        });
    }
    out::brief(&words.join(", "), 70)
}

/// The present time by the database's clock.
pub(super) async fn server_now(app: &App) -> Result<Millis> {
    app.server_now().await
}
