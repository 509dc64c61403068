//! `batch open` and `batch wait`: opens a batch that another process runs, and waits for its end.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::define::AuthorArgs;
use crate::cli::order::{self, OrderArgs};
use crate::cli::run::{announce, note_existing, stored_standing, take_file};
use crate::cli::{BatchRef, Global, VerbResult, batch, breach, out};
use crate::domain::batch::Batch;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::engine::opening::create_batch::open_unowned;
use crate::store;
use crate::view::batch::BatchView;
use crate::view::batches::{BatchSummary, Listed};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `batch open`.
#[derive(Args)]
pub(super) struct OpenArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv; without it, what is stored
    file: Option<PathBuf>,
    #[command(flatten)]
    order: OrderArgs,
    /// Say nothing of what was opened
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    by: AuthorArgs,
}

/// Opens the batches of an order and leaves them to the serving processes.
pub(super) async fn open_batches(global: &Global, args: OpenArgs) -> Result<VerbResult> {
    let asked = args.order.to_order()?;
    let loaded = args.file.as_deref().map(app::load_definition).transpose()?;
    let app = App::open(global.config()?, EmptyDatabase::Prepare).await?;
    let (defs, warnings) = match loaded {
        None => (app.definition().await?, Vec::new()),
        Some(loaded) => (app.with_installation(loaded.definition).await?, loaded.warnings),
    };
    let now = batch::server_now(&app).await?;
    let order = order::work_out(asked, &defs, now)?;
    if let Some(file) = &args.file {
        take_file(&app, &defs, &warnings, &order, file, &args.by, args.quiet).await?;
    }
    let made = open_unowned(&app.db, &defs, &order, &app::whoami(), now).await?;
    note_existing(&made.existing, global.language());
    let ids = made.opened;
    if !args.quiet {
        for id in &ids {
            announce(&stored_standing(&app, *id).await?, global.language());
        }
    }
    breach::warn_breaches(&app, &defs, global.language()).await?;
    let mut documents = Vec::new();
    for id in &ids {
        let mut tx = app.db.begin_read().await?;
        let batch = store::batch::get(&mut tx, *id).await?;
        if global.json && batch.unwritten_jobs == 0 {
            documents
                .push(serde_json::to_value(BatchView::read_view(&app, *id).await?.document())?);
        } else if global.json {
            let counts = store::batch::counts(&mut tx, *id).await?.into_iter().collect();
            let brief = BatchSummary::from_listed(&Listed { batch, counts }, None, now);
            documents.push(serde_json::to_value(brief)?);
        } else if !args.quiet {
            print_next_steps(&batch, global.language());
        }
    }
    if global.json {
        out::print_json(&json!(documents))?;
    }
    app.close().await;
    Ok(VerbResult::Well)
}

fn print_next_steps(batch: &Batch, lang: Lang) {
    let (no, group) = (&batch.values.batch_no, &batch.values.group);
    out::eprint_line(&match lang {
        Lang::En => format!(
            "the next free server runs it (procession serve); to follow it: \
             procession batch wait {no} --group {group}"
        ),
        Lang::Zh => format!(
            "由正在服务的进程(procession serve)接手；跟踪：procession batch wait {no} --group {group}"
        ),
    });
}

/// Poll interval while waiting for a batch.
const LOOK: Duration = Duration::from_millis(500);

/// Waits for the end of a batch, whichever process runs it, and exits with its result.
pub(super) async fn wait_for_batch(
    global: &Global,
    app: &App,
    which: &BatchRef,
    quiet: bool,
) -> Result<VerbResult> {
    let id = which.find_batch(app).await?.batch_id;
    let mut last_line = String::new();
    let ended = loop {
        match read_progress(app, id, global.language()).await {
            Ok((batch, _)) if batch.status.is_final() => break batch,
            Ok((_, now)) => {
                if now != last_line && !quiet && !global.json {
                    out::eprint_line(&now);
                }
                last_line = now;
            }
            // The batch ends whether or not the database is reachable for a while.
            Err(error) if store::is_transient(&error) => {
                tracing::warn!(error = format!("{error:#}"), "cannot look; looking again");
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(LOOK).await;
    };
    let view = BatchView::read_view(app, id).await?;
    if global.json {
        out::document(&view.document())?;
    } else {
        batch::print(&view, global.language());
    }
    Ok(if ended.status.is_success() { VerbResult::Well } else { VerbResult::BatchFailed })
}

/// The batch, and its progress as text.
async fn read_progress(
    app: &App,
    id: crate::domain::id::BatchId,
    lang: Lang,
) -> Result<(Batch, String)> {
    let mut tx = app.db.begin_read().await?;
    let batch = store::batch::get(&mut tx, id).await?;
    let counts: BTreeMap<QueueStatus, u64> =
        store::batch::counts(&mut tx, id).await?.into_iter().collect();
    drop(tx);
    let mut counts: Vec<String> =
        counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    if batch.unwritten_jobs > 0 {
        let words = lang.select("to be written", "待写入");
        counts.push(format!("{} {words}", batch.unwritten_jobs));
    }
    let (no, group) = (&batch.values.batch_no, &batch.values.group);
    let nobody = match batch.owner {
        Some(_) => "",
        None => lang.select(
            "; nobody has it (procession serve takes it)",
            "；尚无进程接手(procession serve)",
        ),
    };
    let words = match lang {
        Lang::En => format!("batch {no} of group {group}: {}{nobody}", counts.join(", ")),
        Lang::Zh => format!("批次 {no}（作业组 {group}）：{}{nobody}", counts.join(", ")),
    };
    Ok((batch, words))
}
