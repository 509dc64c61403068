//! `backfill`: runs the batches of a range; `backfill list | show | stop | resume`.

use crate::app::{self, App, Apply, EmptyDatabase, whoami};
use crate::cli::backfill_args::{HowArgs, StartArgs};
use crate::cli::backfill_progress::watch;
use crate::cli::backfill_words as words;
use crate::cli::progress::Show;
use crate::cli::run::to_the_end;
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::domain::backfill::BackfillStatus;
use crate::domain::id::BackfillId;
use crate::domain::job::Definition;
use crate::domain::time::span_words;
use crate::engine::dispatch::backfill::{
    self, BackfillSurvey, NotBackfilled, Request, Resumption, survey, survey_of_nothing,
};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::operate::operator_actions::operator_here;
use crate::store;
use crate::view::backfill::{BackfillSummary, BackfillView};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Arguments of `backfill`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct BackfillArgs {
    #[command(subcommand)]
    verb: Option<BackfillVerb>,
    #[command(flatten)]
    start: StartArgs,
}

/// Verbs of `backfill`.
#[derive(Subcommand)]
enum BackfillVerb {
    /// The latest backfills
    List {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// One backfill with each of its batches
    Show {
        /// Its number
        id: i64,
    },
    /// Stop a backfill: jobs that run end, nothing new is started; it can be resumed
    Stop {
        /// Its number
        id: i64,
        /// Do not wait until it has stopped
        #[arg(long)]
        no_wait: bool,
        /// Why; the audit log keeps it
        #[arg(long)]
        reason: Option<String>,
    },
    /// Go on with a backfill that was stopped, failed, or whose process died
    Resume {
        /// Its number
        id: i64,
        /// Definition file to store first; without it, what is stored
        file: Option<PathBuf>,
        /// Batches at once from now on
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        parallel: Option<u32>,
        /// Why; the audit log keeps it
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        how: HowArgs,
    },
}

pub(super) async fn backfill(global: &Global, args: BackfillArgs) -> Result<VerbResult> {
    match args.verb {
        None => start(global, &args.start).await,
        Some(BackfillVerb::List { limit }) => list_backfills(global, limit).await,
        Some(BackfillVerb::Show { id }) => {
            let app = global.open_app(EmptyDatabase::Refuse).await?;
            let view = BackfillView::read_view(&app, BackfillId(id)).await?;
            print_backfill(global, &view)?;
            Ok(VerbResult::Well)
        }
        Some(BackfillVerb::Stop { id, no_wait, reason }) => {
            let wait = if no_wait { WaitMode::No } else { WaitMode::Yes };
            stop_backfill(global, BackfillId(id), wait, reason.as_deref()).await
        }
        Some(BackfillVerb::Resume { id, file, parallel, reason, how }) => {
            let by = operator_here(&whoami());
            let asked = Resumption { id: BackfillId(id), parallel, by, reason };
            resume(global, &asked, file.as_deref(), &how).await
        }
    }
}

async fn start(global: &Global, args: &StartArgs) -> Result<VerbResult> {
    let mut request = args.to_request()?;
    let loaded = args.file.as_deref().map(app::load_definition).transpose()?;
    let mut config = global.config()?;
    config.engine.max_parallel = args.how.max_parallel.unwrap_or(config.engine.max_parallel);
    for warning in loaded.iter().flat_map(|l| &l.warnings) {
        out::eprint_line(&format!("warning: {warning}"));
    }
    let file = loaded.map(|l| l.definition);
    if args.dry_run
        && let Some(defs) = &file
    {
        let app = App::open_if_there(config).await?;
        let defs = &match &app {
            Some(app) => app.with_installation(defs.clone()).await?,
            None => defs.clone(),
        };
        request.group = args.group(defs, request.group)?;
        let survey = surveyed(app.as_ref(), defs, &request).await?;
        return dry_run(global, &request, &survey);
    }
    let empty = if args.dry_run { EmptyDatabase::Refuse } else { EmptyDatabase::Prepare };
    let app = App::open(config, empty).await?;
    let defs = match &file {
        Some(defs) => app.with_installation(defs.clone()).await?,
        None => app.definition().await?,
    };
    request.group = args.group(&defs, request.group)?;
    let survey = surveyed(Some(&app), &defs, &request).await?;
    if args.dry_run {
        return dry_run(global, &request, &survey);
    }
    if !global.json && !args.how.quiet {
        words::print_steps(&request, &survey, global.language());
    }
    survey.refusal(&request.group)?;
    if !survey.runs_any() {
        nothing(global, &request, &survey)?;
        return Ok(VerbResult::Well);
    }
    if let (Some(defs), Some(path)) = (&file, &args.file) {
        store_file(&app, defs, path, &args.how).await?;
    }
    let mut dispatcher;
    let (jobs, job_news) = mpsc::unbounded_channel();
    let (batches, batch_news) = mpsc::unbounded_channel();
    dispatcher = app.dispatcher(Some(jobs)).await?;
    let id = match dispatcher.start_backfill(&defs, &request, Some(batches)).await {
        Ok(id) => id,
        Err(error) => {
            dispatcher.leave().await?;
            return Err(error);
        }
    };
    let running = Running { dispatcher, news: (job_news, batch_news), id };
    run_backfill(global, app, running, &args.how).await
}

async fn surveyed(
    app: Option<&App>,
    defs: &Definition,
    request: &Request,
) -> Result<BackfillSurvey> {
    let Some(app) = app else {
        let now = crate::engine::clock::Clock::system().now();
        return survey_of_nothing(defs, request, now);
    };
    let now = batch::server_now(app).await?;
    survey(&mut app.db.begin_read().await?, defs, request, now).await
}

fn dry_run(global: &Global, request: &Request, survey: &BackfillSurvey) -> Result<VerbResult> {
    if global.json {
        out::print_json(&words::steps_as_json(request, survey))?;
    } else {
        words::print_steps(request, survey, global.language());
    }
    survey.refusal(&request.group).map(|()| VerbResult::Well)
}

fn nothing(global: &Global, request: &Request, survey: &BackfillSurvey) -> Result<()> {
    if global.json {
        return out::print_json(&words::steps_as_json(request, survey));
    }
    out::print_line(global.language().select(
        "Nothing to do: no batch of the range is missing or to be run again",
        "无事可做：范围内没有缺失或需要重跑的批次",
    ));
    Ok(())
}

async fn store_file(app: &App, wanted: &Definition, path: &Path, how: &HowArgs) -> Result<()> {
    let changes = app.apply(wanted, Apply::Write).await?;
    if !changes.is_empty() && !how.quiet {
        let (file, changes) = (path.display(), out::count(changes.len(), "change"));
        out::eprint_line(&format!(
            "{file}: {changes} stored (procession history GROUP shows them)"
        ));
    }
    Ok(())
}

/// A backfill about to run here, with its progress events.
struct Running {
    dispatcher: QueueDispatcher,
    news: crate::cli::backfill_progress::AllNews,
    id: BackfillId,
}

async fn run_backfill(
    global: &Global,
    app: App,
    running: Running,
    how: &HowArgs,
) -> Result<VerbResult> {
    let Running { dispatcher, news, id } = running;
    let lang = global.language();
    let show_as = if how.quiet || global.json { Show::Nothing } else { Show::for_terminal() };
    if show_as != Show::Nothing {
        out::eprint_line(&words::begun(id, lang));
    }
    let (done, total) = BackfillView::read_view(&app, id).await?.count_final();
    let sender = app.sender(&dispatcher)?;
    to_the_end(dispatcher, sender, watch(news, show_as, done, total, lang), lang).await?;
    let view = BackfillView::read_view(&app, id).await?;
    print_backfill(global, &view)?;
    app.close().await;
    Ok(match view.row.status {
        BackfillStatus::Success => VerbResult::Well,
        BackfillStatus::Running | BackfillStatus::Stopping => VerbResult::BatchFailed,
        BackfillStatus::Stopped | BackfillStatus::Failed => VerbResult::BatchFailed,
    })
}

fn print_backfill(global: &Global, view: &BackfillView) -> Result<()> {
    if global.json {
        return out::document(&view.detail());
    }
    view.print(global.language());
    Ok(())
}

async fn list_backfills(global: &Global, limit: u32) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let mut all = Vec::new();
    for row in store::backfill::list_backfills(&mut tx, limit).await? {
        let counts = store::backfill::counts(&mut tx, row.id).await?;
        all.push((row, counts));
    }
    if global.json {
        let documents: Vec<_> =
            all.iter().map(|(row, counts)| BackfillSummary::from_row(row, counts)).collect();
        out::print_json(&json!(documents))?;
    } else {
        words::print_list(&all, global.language());
    }
    Ok(VerbResult::Well)
}

async fn resume(
    global: &Global,
    asked: &Resumption,
    file: Option<&Path>,
    how: &HowArgs,
) -> Result<VerbResult> {
    let loaded = file.map(app::load_definition).transpose()?;
    let mut config = global.config()?;
    config.engine.max_parallel = how.max_parallel.unwrap_or(config.engine.max_parallel);
    let app = App::open(config, EmptyDatabase::Refuse).await?;
    let defs = match (loaded, file) {
        (Some(loaded), Some(path)) => {
            store_file(&app, &loaded.definition, path, how).await?;
            app.with_installation(loaded.definition).await?
        }
        _ => app.definition().await?,
    };
    let (jobs, job_news) = mpsc::unbounded_channel();
    let (batches, batch_news) = mpsc::unbounded_channel();
    let mut dispatcher = app.dispatcher(Some(jobs)).await?;
    let mut waited = false;
    loop {
        let went = dispatcher.resume_backfill(&defs, asked, Some(batches.clone())).await;
        let Err(error) = went else { break };
        let until = match error.downcast_ref() {
            Some(NotBackfilled::Owned { host, pid, until, .. }) if !waited => {
                let rest = until.since(app.clock.now());
                out::eprint_line(&format!(
                    "another process ({host}, pid {pid}) holds the backfill; waiting {} to see \
                     whether it lives",
                    span_words(rest)
                ));
                rest
            }
            _ => {
                dispatcher.leave().await?;
                return Err(error);
            }
        };
        // The lease of a killed process lasts until it expires; a living one renews it.
        waited = true;
        let rest = u64::try_from(until).unwrap_or(0) + 50;
        tokio::time::sleep(Duration::from_millis(rest)).await;
    }
    drop(batches);
    let running = Running { dispatcher, news: (job_news, batch_news), id: asked.id };
    run_backfill(global, app, running, how).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitMode {
    Yes,
    No,
}

async fn stop_backfill(
    global: &Global,
    id: BackfillId,
    wait: WaitMode,
    reason: Option<&str>,
) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let view = BackfillView::read_view(&app, id).await?;
    let now = batch::server_now(&app).await?;
    let by = operator_here(&whoami());
    if !backfill::stop_backfill(&app.db, &view.row, &by, reason, now).await? {
        let status = view.row.status;
        return Err(BadInput(format!("backfill {id} is {status}; there is nothing to stop")).into());
    }
    out::eprint_line(&words::stopping(id, global.language()));
    if wait == WaitMode::No {
        return Ok(VerbResult::Well);
    }
    let view = loop {
        let view = BackfillView::read_view(&app, id).await?;
        if !view.row.status.is_open() {
            break view;
        }
        match &view.row.owner {
            // Its process has died: no other process will mark it as stopped.
            Some(owner) if !view.is_alive() => {
                let mut tx = app.db.begin().await?;
                let stopped = BackfillStatus::Stopped;
                let now = app.clock.now();
                store::backfill::finish(&mut tx, id, owner, stopped, now).await?;
                tx.commit().await?;
            }
            Some(_) | None => tokio::time::sleep(Duration::from_millis(300)).await,
        }
    };
    print_backfill(global, &view)?;
    Ok(VerbResult::Well)
}
