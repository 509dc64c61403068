//! `plan`: shows what `run` would do, without doing it.

use crate::app::preflight::{PreflightReport, PreflightSeverity, check_jobs};
use crate::app::{self, App, Apply};
use crate::cli::order::{self, OrderArgs};
use crate::cli::preflight::{self, ShownFindings};
use crate::cli::run::note_existing;
use crate::cli::{BadInput, Global, VerbResult, breach, out, plan_words};
use crate::config::Config;
use crate::domain::batch::history::History;
use crate::domain::batch::{AskedOrder, Batch};
use crate::domain::forecast::dry_run::{DryRun, OrderRefusal, dry_run};
use crate::domain::forecast::eta::of_plan;
use crate::domain::id::BatchNo;
use crate::domain::job::Definition;
use crate::domain::source::DataSource;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::view::plan::{ChangesSince, PlannedBatch, since};
use crate::view::preflight::PreflightDocument;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `plan`.
#[derive(Args)]
pub(super) struct PlanArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv; without it, what is stored
    file: Option<PathBuf>,
    #[command(flatten)]
    order: OrderArgs,
    /// Show also what has changed since this batch: definition, parameters, durations
    #[arg(long, value_name = "BATCH_NO")]
    against_batch: Option<String>,
    /// Jobs at once, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_parallel: Option<u32>,
    /// Do not ask the data sources whether the jobs can run there
    #[arg(long)]
    no_connect: bool,
}

pub(super) async fn print_plan(global: &Global, args: &PlanArgs) -> Result<VerbResult> {
    let asked = args.order.to_order()?;
    let against = args.against_batch.as_deref().map(BatchNo::parse).transpose()?;
    let loaded = args.file.as_deref().map(app::load_definition).transpose()?;
    let mut config = global.config()?;
    config.engine.max_parallel = args.max_parallel.unwrap_or(config.engine.max_parallel);
    let total = config.engine.max_parallel;
    let settings = config.clone();
    // The stored definition and the history are read from an existing database; a file can be
    // planned without one.
    let app = match &loaded {
        None => Some(App::open(config, app::EmptyDatabase::Refuse).await?),
        Some(_) => App::open_if_there(config).await?,
    };
    for warning in loaded.iter().flat_map(|l| &l.warnings) {
        out::eprint_line(&format!("warning: {warning}"));
    }
    let file = match (loaded.map(|l| l.definition), &app) {
        (Some(defs), Some(app)) => Some(app.with_installation(defs).await?),
        (file, _) => file,
    };
    let made = match &app {
        Some(app) => {
            if let Some(defs) = &file {
                // What `run` refuses before it stores a file: missing calendars, sources that
                // another file declares differently, sources and secrets of other groups. Nothing
                // is written.
                app.apply(defs, Apply::DryRun).await?;
            }
            breach::warn_of(app, file.as_ref(), global.language()).await?;
            with_tables(app, file.as_ref(), asked, against.as_ref()).await
        }
        None => {
            if let Some(defs) = &file {
                app::refuse_uses_by_settings(&settings, defs)?;
                app::refuse_absent_calendars(defs)?;
            }
            without_tables(file.as_ref(), asked, against.as_ref())
        }
    };
    if let Some(app) = app {
        app.close().await;
    }
    let mut made = made?;
    note_existing(&made.existing, global.language());
    let report = match args.no_connect {
        true => None,
        false => Some(look_ahead(&settings, &mut made.run, global.language()).await),
    };
    let (planned, refusals) = made.expected(total);
    if global.json {
        let batches: Vec<_> = planned.iter().map(PlannedBatch::document).collect();
        let found = report.as_ref().map(PreflightDocument::from_report);
        out::print_json(&json!({"batches": batches, "refused": refusals, "preflight": found}))?;
    } else {
        planned.iter().for_each(|one| plan_words::print(one, total, global.language()));
        plan_words::print_refusals(&refusals, global.language());
    }
    if refusals.is_empty() {
        return Ok(VerbResult::Well);
    }
    let things = out::count(refusals.len(), "reason");
    Err(BadInput(format!("this order would be refused, for {things}")).into())
}

/// Checks the sources of the batches; errors are refusals, other findings are printed.
async fn look_ahead(settings: &Config, run: &mut DryRun, lang: Lang) -> PreflightReport {
    let snapshots = || run.batches.iter().map(|preview| &preview.plan.snapshot);
    let mut sources: Vec<DataSource> = Vec::new();
    for source in snapshots().flat_map(|snapshot| &snapshot.sources) {
        if !sources.contains(source) {
            sources.push(source.clone());
        }
    }
    let jobs = snapshots().flat_map(|snapshot| &snapshot.jobs);
    let dependencies: Vec<_> = snapshots().flat_map(|one| one.dependencies.clone()).collect();
    let report = check_jobs(settings, &sources, jobs, &dependencies).await;
    for finding in &report.findings {
        if finding.severity != PreflightSeverity::Error {
            continue;
        }
        let hint = finding.hint_text(lang).map_or(String::new(), |hint| format!("; {hint}"));
        let reason = format!("{}{hint}", finding.describe(lang, &report.shared_codes));
        run.refusals.push(OrderRefusal {
            group: finding.group.clone(),
            job: finding.job.clone(),
            reason,
        });
    }
    let mut others = report.clone();
    others.findings.retain(|finding| finding.severity != PreflightSeverity::Error);
    preflight::print_findings(&others, ShownFindings::Certain, lang);
    report
}

/// A dry run, with what the tables show for each of its batches.
struct DryRunResult {
    run: DryRun,
    known: Vec<(History, Option<ChangesSince>)>,
    /// Existing batches of the order, while others would be opened.
    existing: Vec<Batch>,
    now: Millis,
}

impl DryRunResult {
    fn expected(self, total: u32) -> (Vec<PlannedBatch>, Vec<OrderRefusal>) {
        let Self { run, known, now, .. } = self;
        let planned = run.batches.into_iter().zip(known).map(|(preview, (history, since))| {
            let forecast = of_plan(&preview.plan, &preview.dag, &history, total, now);
            PlannedBatch { preview, forecast, since, now }
        });
        (planned.collect(), run.refusals)
    }
}

fn types() -> Vec<&'static str> {
    app::job_kinds().iter().map(|k| k.name).collect()
}

fn without_tables(
    file: Option<&Definition>,
    asked: AskedOrder,
    against: Option<&BatchNo>,
) -> Result<DryRunResult> {
    if let Some(no) = against {
        let message = format!("there is no batch {no} to compare with: there is no database yet");
        return Err(BadInput(message).into());
    }
    let now = Clock::system().now();
    let nothing = Definition::default();
    let defs = file.unwrap_or(&nothing);
    let order = order::work_out(asked, defs, now)?;
    let run = dry_run(defs, &order, &types(), now);
    let known = run.batches.iter().map(|_| (History::default(), None)).collect();
    Ok(DryRunResult { run, known, existing: Vec::new(), now })
}

async fn with_tables(
    app: &App,
    file: Option<&Definition>,
    asked: AskedOrder,
    against: Option<&BatchNo>,
) -> Result<DryRunResult> {
    let now = crate::cli::batch::server_now(app).await?;
    let stored = match file {
        Some(_) => None,
        None => Some(app.definition().await?),
    };
    let defs = file.or(stored.as_ref()).ok_or_else(|| BadInput("nothing to plan".to_owned()))?;
    let order = order::work_out(asked, defs, now)?;
    let mut run = dry_run(defs, &order, &types(), now);
    let existing = app.take_out_existing(&mut run.batches).await?;
    run.refusals.extend(app.refusals(&run.batches).await?);
    let mut known = Vec::new();
    for preview in &run.batches {
        let history = app.history(&preview.plan.values.group).await?;
        let since = match against {
            Some(no) => since(app, defs, preview, &history, no).await?,
            None => None,
        };
        known.push((history, since));
    }
    let nowhere = !known.is_empty() && known.iter().all(|(_, since)| since.is_none());
    if let Some(no) = against.filter(|_| nowhere) {
        let groups: Vec<String> =
            run.batches.iter().map(|p| p.plan.values.group.to_string()).collect();
        let message = format!(
            "there is no batch {no} of {} to compare with; procession batch list shows those that are",
            if groups.is_empty() { "these groups".to_owned() } else { groups.join(", ") }
        );
        return Err(BadInput(message).into());
    }
    Ok(DryRunResult { run, known, existing, now })
}
