//! `run`: applies a file, opens or resumes a batch, and runs it to its end.

use crate::app::preflight::{PreflightSeverity, check_jobs};
use crate::app::task::as_task;
use crate::app::{self, App, Apply, EmptyDatabase};
use crate::cli::define::{AuthorArgs, record_bypass};
use crate::cli::opening_progress::OpeningDisplay;
use crate::cli::order::{self, OrderArgs};
use crate::cli::preflight::{self, ShownFindings};
use crate::cli::progress::{self, Show};
use crate::cli::watch::RunWatch;
use crate::cli::{BadInput, Global, VerbResult, batch, breach, heard, out, resume};
use crate::definition::DefinitionFault;
use crate::domain::action::rerun::UnknownJobs;
use crate::domain::batch::{Batch, BatchOrder, BatchStatus, plan};
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::job::{Definition, JobDependency};
use crate::domain::text::lang::Lang;
use crate::engine::ProgressEvent;
use crate::engine::dispatch::dispatcher::{BatchStanding, QueueDispatcher};
use crate::engine::dispatch::open::ReportProgress;
use crate::engine::observe::traces::SpanExporter;
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::opening::unfinished_opening::OpeningProgress;
use crate::engine::outbox::Sender;
use crate::engine::trigger::schedule_actions::refuse_while_suspended;
use crate::store;
use crate::view::batch::BatchView;
use anyhow::{Context as _, Result};
use clap::Args;
use std::borrow::Cow;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Arguments of `run`.
#[derive(Args)]
pub(super) struct RunArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv; without it, what is stored
    file: Option<PathBuf>,
    #[command(flatten)]
    order: OrderArgs,
    /// Go on with a batch that exists: where a dead process left it, or from its failures
    #[arg(long)]
    resume: bool,
    /// With --resume: start jobs of unknown outcome over as well (look at their data first)
    #[arg(long, requires = "resume")]
    rerun_unknown: bool,
    /// With --resume: go on with the present bodies and settings of the batch's jobs, not with those
    /// it was opened with
    #[arg(long, requires = "resume")]
    latest: bool,
    /// Jobs at once, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_parallel: Option<u32>,
    /// Show no progress, only the summary
    #[arg(short, long)]
    quiet: bool,
    /// Do not ask the data sources beforehand whether the jobs can run there
    #[arg(long)]
    no_connect: bool,
    #[command(flatten)]
    by: AuthorArgs,
}

pub(super) async fn run_batch(global: &Global, args: RunArgs) -> Result<VerbResult> {
    let asked = args.order.to_order()?;
    // Faults of the file are reported first, before any database is opened.
    let loaded = args.file.as_deref().map(app::load_definition).transpose()?;
    let mut config = global.config()?;
    if let Some(max) = args.max_parallel {
        config.engine.max_parallel = max;
    }
    let app = App::open(config, EmptyDatabase::Prepare).await?;
    // Before the file is stored.
    app.can_tell()?;
    // Moved, not copied: two definitions of 100,000 jobs are 200 MB, and the positions of keys are
    // not needed any more.
    let (defs, warnings) = match loaded {
        None => (app.definition().await?, Vec::new()),
        Some(loaded) => (app.with_installation(loaded.definition).await?, loaded.warnings),
    };
    let order = order::work_out(asked, &defs, batch::server_now(&app).await?)?;
    if !args.resume && !args.no_connect {
        refuse_hopeless(&app, &defs, &order, global.language()).await?;
    }
    if let Some(file) = args.file.as_deref() {
        store_before_run(&app, (&defs, &warnings), &order, (file, &args)).await?;
    }
    let (tells, news) = mpsc::unbounded_channel();
    let mut dispatcher = start_dispatcher(&app, tells).await?;
    let show = if args.quiet || global.json { Show::Nothing } else { Show::for_terminal() };
    let mut display = OpeningDisplay::new(show, global.language());
    let mut report = |progress: OpeningProgress| display.show_progress(&progress);
    breach::warn_breaches(&app, &defs, global.language()).await?;
    heard::warn_executors(&app, &defs, order.group.as_ref(), global.language()).await?;
    let renewals = dispatcher.keep_lease();
    // In both cases the definition is dropped before the batch runs: for 100,000 jobs it is 170 MB.
    let opened = if args.resume {
        let defs = defs;
        resume::resume(&app, &mut dispatcher, &defs, &order, args.resume_options(), &mut report)
            .await
    } else {
        open_each(&mut dispatcher, defs, &order, global.language(), &mut report).await
    };
    renewals.end_and_wait().await;
    drop(display);
    let ids = match opened {
        Ok(ids) => ids,
        Err(error) => {
            dispatcher.leave().await?;
            return Err(error);
        }
    };
    let standings = standings(&app, &dispatcher, &ids).await?;
    let total = standings.iter().map(|one| one.jobs).sum();
    let done = standings.iter().map(|one| one.ended).sum();
    if !args.quiet {
        standings.iter().for_each(|one| announce(one, global.language()));
    }
    // Read while the first jobs run.
    let expected = RunWatch::for_batches(&app, &ids, global.language());
    let shown = progress::watch(news, show, (total, done), expected);
    let sender = app.sender(&dispatcher)?;
    to_the_end((dispatcher, sender), shown, global.language()).await?;
    let ended = summarise(global, &app, &ids).await;
    app.close().await;
    ended
}

/// A dispatcher, unless the database was restored to an earlier state, which a process may detect
/// at its start.
async fn start_dispatcher(
    app: &App,
    tells: mpsc::UnboundedSender<ProgressEvent>,
) -> Result<QueueDispatcher> {
    let dispatcher = app.dispatcher(Some(tells)).await?;
    if let Err(suspended) = refuse_while_suspended(&mut app.db.begin_read().await?).await {
        dispatcher.leave().await?;
        return Err(suspended);
    }
    Ok(dispatcher)
}

/// Refuses an order with jobs that are certain to fail, before anything is stored or opened. An
/// unavailable source does not prevent opening: its jobs wait for it, and the others need not.
async fn refuse_hopeless(
    app: &App,
    defs: &Definition,
    order: &BatchOrder,
    lang: Lang,
) -> Result<()> {
    refuse_existing(app, defs, order).await?;
    // Before the jobs are copied: 100,000 of them are 140 MB.
    if defs.sources.is_empty() {
        return Ok(());
    }
    // What is wrong with the order itself is said where it is opened.
    let plans = plan(defs, order, app.clock.now()).unwrap_or_default();
    let snapshots = || plans.iter().map(|plan| &plan.snapshot);
    let dependencies: Cow<'_, [JobDependency]> = match &plans[..] {
        [one] => Cow::Borrowed(&one.snapshot.dependencies),
        _ => snapshots().flat_map(|one| one.dependencies.clone()).collect(),
    };
    let jobs = snapshots().flat_map(|one| &one.jobs);
    let mut sources = Vec::new();
    for source in &defs.sources {
        let read = app.with_password(source).await;
        let cure = "--no-connect opens it all the same";
        sources.push(read.map_err(|fault| BadInput(format!("{fault}; {cure}")))?);
    }
    let report = check_jobs(&app.config, &sources, jobs, &dependencies).await;
    preflight::print_findings(&report, ShownFindings::Certain, lang);
    let errors = report.with_severity(PreflightSeverity::Error).count();
    if errors == 0 {
        return Ok(());
    }
    let faults = out::count(errors, "fault");
    Err(BadInput(match lang {
        Lang::En => format!(
            "nothing is opened: {faults} would keep jobs from running; --no-connect opens it all the same"
        ),
        Lang::Zh => format!("未开启批次：{errors} 处错误会使作业无法运行；加 --no-connect 可跳过此检查"),
    })
    .into())
}

/// Opens the batches of an order, and prints which of them exist already.
async fn open_each(
    dispatcher: &mut QueueDispatcher,
    defs: Definition,
    order: &BatchOrder,
    lang: Lang,
    report: ReportProgress<'_>,
) -> Result<Vec<BatchId>> {
    let made = dispatcher.create_batches(defs, order, &app::whoami()).await?;
    dispatcher.read_opened(&made, report).await?;
    note_existing(&made.existing, lang);
    Ok(made.opened)
}

/// Prints which batches of an order exist already.
pub(super) fn note_existing(existing: &[Batch], lang: Lang) {
    for there in existing {
        let (no, group, status) = (&there.values.batch_no, &there.values.group, there.status);
        out::eprint_line(&match lang {
            Lang::En => {
                format!(
                    "batch {no} of group {group} exists already ({status}) and is left as it is"
                )
            }
            Lang::Zh => format!("批次 {no}（作业组 {group}）已存在（{status}），保持不变"),
        });
    }
}

/// Runs a dispatcher until its batches have ended or, after a signal, until what runs has ended,
/// while `shown` displays the progress. `shown` ends when the senders of events are dropped.
pub(super) async fn to_the_end(
    (mut dispatcher, sender): (QueueDispatcher, Option<Sender>),
    shown: impl Future<Output = ()>,
    lang: Lang,
) -> Result<()> {
    let (stop, done) = (CancellationToken::new(), CancellationToken::new());
    let told = stop.clone();
    let sends = send_to_the_end(sender, done.clone());
    let traces = trace_to_the_end(dispatcher.tracer(), done.clone());
    let work = as_task(async move {
        // Also after a panic.
        let _done = done.drop_guard();
        let ended = dispatcher.run_until_done(&told).await;
        // `leave` drops the dispatcher and with it the senders of events.
        let left = dispatcher.leave().await;
        ended.and(left.context("end this process's lease"))
    });
    let watched = async { tokio::join!(work, shown, sends, traces) };
    let (worked, (), (), ()) = tokio::select! {
        all = watched => all,
        never = stop_on_signal(&stop, Signalled::Run, lang) => match never {},
    };
    worked
}

/// Sends the outbox until the batches have ended, including their last notifications.
async fn send_to_the_end(sender: Option<Sender>, done: CancellationToken) {
    if let Some(sender) = sender {
        as_task(sender.run_to_the_end(done)).await;
    }
}

/// Sends spans until the dispatcher is gone, including its last ones.
pub(super) async fn trace_to_the_end(tracer: Option<SpanExporter>, done: CancellationToken) {
    if let Some(tracer) = tracer {
        as_task(tracer.run(done)).await;
    }
}

impl RunArgs {
    fn resume_options(&self) -> resume::ResumeMode {
        let unknown = if self.rerun_unknown { UnknownJobs::Rerun } else { UnknownJobs::Leave };
        resume::ResumeMode { unknown, latest: self.latest }
    }
}

async fn store_before_run(
    app: &App,
    (defs, warnings): (&Definition, &[DefinitionFault]),
    order: &BatchOrder,
    (file, args): (&Path, &RunArgs),
) -> Result<()> {
    if !args.resume {
        return take_file(app, (defs, warnings), order, (file, &args.by), args.quiet).await;
    }
    print_warnings(warnings);
    if args.latest {
        store_file(app, defs, (file, &args.by), args.quiet).await?;
    }
    Ok(())
}

/// Stores the file of an order that opens new batches, unless all of them exist.
pub(super) async fn take_file(
    app: &App,
    (defs, warnings): (&Definition, &[DefinitionFault]),
    order: &BatchOrder,
    whose: (&Path, &AuthorArgs),
    quiet: bool,
) -> Result<()> {
    print_warnings(warnings);
    refuse_existing(app, defs, order).await?;
    if !defs.schedules.is_empty() && !quiet {
        let (file, n) = (whose.0.display(), defs.schedules.len());
        let n = out::count(n, "schedule");
        out::eprint_line(&format!("{file}: {n} left as stored; to store: procession apply {file}"));
    }
    store_file(app, defs, whose, quiet).await
}

fn print_warnings(warnings: &[DefinitionFault]) {
    for warning in warnings {
        out::eprint_line(&format!("warning: {warning}"));
    }
}

/// Checks before the file is stored, so that a refused run changes nothing; `open_each` checks
/// again in its own transaction.
async fn refuse_existing(app: &App, defs: &Definition, order: &BatchOrder) -> Result<()> {
    let mut tx = app.db.begin_read().await?;
    let mut first = None;
    for group in groups_of(defs, order) {
        match store::batch::find_batch(&mut tx, &order.batch_no, &group).await? {
            Some(there) => drop(first.get_or_insert(there)),
            // A new one is opened, whatever the others.
            None => return Ok(()),
        }
    }
    first.map_or(Ok(()), |there| Err(OpeningRefusal::exists(&there).into()))
}

async fn store_file(
    app: &App,
    wanted: &Definition,
    (file, by): (&Path, &AuthorArgs),
    quiet: bool,
) -> Result<()> {
    let by = by.authorship();
    if app.config.four_eyes()?.is_on() {
        let ahead = app.apply_as(wanted, Apply::DryRun, &by).await?;
        record_bypass(app, wanted, (ahead, &by), Lang::default()).await?;
    }
    let changes = app.apply_as(wanted, Apply::Write, &by).await?;
    if changes > 0 && !quiet {
        out::eprint_line(&format!(
            "{}: {} stored (procession history GROUP shows them)",
            file.display(),
            out::count(changes, "change")
        ));
    }
    Ok(())
}

/// The groups of an order.
pub(super) fn groups_of(defs: &Definition, order: &BatchOrder) -> Vec<GroupCode> {
    let fits = |g: &&crate::domain::job::Group| {
        order.group.as_ref().is_none_or(|code| *code == g.code)
            && order.batch_type.as_ref().is_none_or(|t| g.batch_type.as_ref() == Some(t))
    };
    defs.groups.iter().filter(fits).map(|g| g.code.clone()).collect()
}

/// Which command receives the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signalled {
    /// `run` and other commands that run their own batches.
    Run,
    /// `serve`.
    Serve,
}

/// The first Ctrl-C or TERM lets running bodies end, or hands them back, and starts nothing new;
/// the second ends the program at once: what runs is then settled by the next owner of the batch.
pub(super) async fn stop_on_signal(
    stop: &CancellationToken,
    whom: Signalled,
    lang: Lang,
) -> Infallible {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    let mut once = false;
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        if once {
            out::eprint_line(match whom {
                Signalled::Run => "ended at once; go on with: --resume",
                Signalled::Serve => "ended at once; another process takes over when the lease ends",
            });
            std::process::exit(1);
        }
        once = true;
        stop.cancel();
        out::eprint_line(lang.select(
            "no new jobs are started; waiting for those that run (again: end at once)",
            "不再启动新作业；等待正在运行的作业结束（再按一次立即退出）",
        ));
    }
}

/// The progress of the batches of this process, including those it no longer owns.
pub(super) async fn standings(
    app: &App,
    dispatcher: &QueueDispatcher,
    ids: &[BatchId],
) -> Result<Vec<BatchStanding>> {
    let mut all = Vec::new();
    for id in ids {
        // Of an ended batch only the rows know.
        all.push(match dispatcher.standing(*id) {
            Some(standing) => standing,
            None => stored_standing(app, *id).await?,
        });
    }
    Ok(all)
}

/// The progress of a batch from its rows.
pub(super) async fn stored_standing(app: &App, id: BatchId) -> Result<BatchStanding> {
    let mut tx = app.db.begin_read().await?;
    let batch = store::batch::get(&mut tx, id).await?;
    let (mut jobs, mut ended) = (u64::from(batch.unwritten_jobs), 0);
    for (status, count) in store::batch::counts(&mut tx, id).await? {
        jobs += count;
        ended += if status.is_final() { count } else { 0 };
    }
    Ok(BatchStanding { values: batch.values, jobs, ended })
}

/// Prints which batch is run.
pub(super) fn announce(BatchStanding { values, jobs, .. }: &BatchStanding, lang: Lang) {
    let (no, group) = (&values.batch_no, &values.group);
    let count = out::count(usize::try_from(*jobs).unwrap_or(usize::MAX), "job");
    out::eprint_line(&match (lang, values.business_date) {
        (Lang::En, None) => format!("batch {no} of group {group}: {count}"),
        (Lang::En, Some(date)) => {
            format!("batch {no} of group {group}: {count}, business date {date}")
        }
        (Lang::Zh, None) => format!("批次 {no}（作业组 {group}）：{jobs} 个作业"),
        (Lang::Zh, Some(date)) => {
            format!("批次 {no}（作业组 {group}）：{jobs} 个作业，业务日期 {date}")
        }
    });
}

fn print_next_steps(batch: &Batch, lang: Lang) {
    let (no, group) = (&batch.values.batch_no, &batch.values.group);
    match batch.status {
        BatchStatus::Failed => out::print_line(&match lang {
            Lang::En => format!(
                "To see why:     procession batch why {no} --group {group}\n\
                 After the fix:  add --resume to the same command (and --latest if the file was changed)"
            ),
            Lang::Zh => format!(
                "失败原因：procession batch why {no} --group {group}\n处理后：在同一命令后加 --resume（若修改了定义文件，再加 --latest）"
            ),
        }),
        BatchStatus::Running | BatchStatus::Killing => out::print_line(lang.select(
            "It has not ended; to continue: add --resume to the same command",
            "批次尚未结束；继续请在同一命令后加 --resume",
        )),
        BatchStatus::Success | BatchStatus::Warning | BatchStatus::Killed => {}
    }
}

async fn summarise(global: &Global, app: &App, ids: &[BatchId]) -> Result<VerbResult> {
    let mut worst = VerbResult::Well;
    let mut documents = Vec::new();
    for id in ids {
        let view = BatchView::read_view(app, *id).await?;
        if !view.batch.status.is_success() {
            worst = VerbResult::BatchFailed;
        }
        if global.json {
            documents.push(view.document());
        } else {
            batch::print(&view, global.language());
        }
        if !global.json {
            breach::describe_breaches(app, &view, global.language())
                .await?
                .iter()
                .for_each(|s| out::print_line(s));
            print_next_steps(&view.batch, global.language());
        }
    }
    if global.json {
        out::document(&documents)?;
    }
    Ok(worst)
}
