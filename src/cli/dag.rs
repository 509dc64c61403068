//! `dag`: the graph of a file, a group or a batch, in any shape that `picture` knows.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::batch::server_now;
use crate::cli::{BadInput, BatchRef, Ended, Global, out};
use crate::definition::did_you_mean;
use crate::domain::batch::{BatchOrder, Snapshot, plan};
use crate::domain::dag::Node;
use crate::domain::eta::{self, Forecast};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::picture::{
    Collapse, Direction, Drawn, External, FORMATS, Format, JobState, Placing, Timing, View, Wishes,
    format,
};
use crate::store;
use anyhow::{Context as _, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Arguments of `dag`.
#[derive(Args)]
pub(super) struct DagArgs {
    /// Definition file, or the code of a stored group
    what: Option<String>,
    /// Show the states of this batch
    #[arg(long, required_unless_present = "what")]
    batch: Option<String>,
    /// Group, when the file or the batch number has several
    #[arg(long)]
    group: Option<String>,
    /// Shape of the output
    #[arg(long, default_value = "native", value_parser = shapes())]
    format: &'static Format,
    /// Show only this job, what it waits for and what waits for it
    #[arg(long, value_name = "JOB")]
    focus: Option<String>,
    /// With --focus: how many steps towards what it waits for [default: all]
    #[arg(long, value_name = "STEPS", requires = "focus")]
    up: Option<u32>,
    /// With --focus: how many steps towards what waits for it [default: all]
    #[arg(long, value_name = "STEPS", requires = "focus")]
    down: Option<u32>,
    /// One node for all jobs of a group, or for all with the same first tag
    #[arg(long, value_enum)]
    collapse: Option<By>,
    /// Leave out dependencies that follow from others
    #[arg(long, value_enum)]
    reduce: Option<Reduction>,
    /// Whether positions are worked out here or by the front end
    #[arg(long, value_enum, default_value = "layered")]
    layout: LayoutWish,
    /// Where the arrows run to
    #[arg(long, value_enum, ignore_case = true, default_value = "LR")]
    direction: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// One node per group
    Group,
    /// One node per tag; jobs without one stay
    Tag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reduction {
    /// Without A -> C where there is A -> B -> C
    Transitive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayoutWish {
    /// In layers along the arrows
    Layered,
    /// No positions; what cannot do without gets 0, 0
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From left to right
    #[value(name = "LR")]
    Lr,
    /// From top to bottom
    #[value(name = "TB")]
    Tb,
}

fn shapes() -> impl clap::builder::TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(names).try_map(|name| format(&name).ok_or("is in no list of shapes"))
}

pub(super) async fn dag(global: &Global, args: &DagArgs) -> Result<Ended> {
    if args.layout == LayoutWish::None && args.format.needs_positions() {
        let message = format!("{} needs positions; leave out --layout none", args.format.name);
        return Err(BadInput(message).into());
    }
    let view = part(whole(global, args).await?, args)?;
    let wishes = Wishes {
        placing: match args.layout {
            LayoutWish::Layered => Placing::Layered,
            LayoutWish::None => Placing::None,
        },
        direction: match args.direction {
            Way::Lr => Direction::Lr,
            Way::Tb => Direction::Tb,
        },
        lang: global.lang(),
        generated_at: None,
    };
    match args.format.draw(&view, wishes) {
        Drawn::Json(value) => out::json(&value)?,
        Drawn::Text(text) => out::line(text.trim_end()),
    }
    Ok(Ended::Well)
}

async fn whole(global: &Global, args: &DagArgs) -> Result<View> {
    let group = args.group.clone();
    match (&args.batch, &args.what) {
        (Some(no), what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            let which = BatchRef { batch_no: no.clone(), group: group.or_else(|| what.clone()) };
            of_batch(&app, &which).await
        }
        (None, Some(what)) if Path::new(what).exists() => {
            of_definition(&app::load_definition(Path::new(what))?.definition, group)
        }
        (None, what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            let defs = app.definition().await?;
            let view = of_definition(&defs, group.clone().or_else(|| what.clone()))?;
            let wanted = group.or_else(|| what.clone());
            let wanted = wanted.as_deref().map(GroupCode::parse).transpose()?;
            Ok(view.timed(&planned(&app, &defs, wanted.as_ref()).await?))
        }
    }
}

/// What is expected of the jobs of stored groups, from their history.
async fn planned(
    app: &App,
    defs: &Definition,
    wanted: Option<&GroupCode>,
) -> Result<BTreeMap<JobCode, Timing>> {
    let mut timings = BTreeMap::new();
    for group in defs.groups.iter().filter(|g| wanted.is_none_or(|w| *w == g.code)) {
        let Ok(mut plans) = plan(defs, &nobodys(Some(group.code.clone()))?, Millis(0)) else {
            continue;
        };
        let (Some(plan), history) = (plans.pop(), app.history(&group.code).await?) else {
            continue;
        };
        let (dag, total) = (plan.snapshot.dag()?, app.config.engine.max_parallel);
        if let Some(forecast) = eta::of_plan(&plan, &dag, &history, total, Millis(0)) {
            timings.extend(timings_of(&plan.snapshot, &forecast));
        }
    }
    Ok(timings)
}

fn timings_of(snapshot: &Snapshot, forecast: &Forecast) -> BTreeMap<JobCode, Timing> {
    let each = snapshot.jobs.iter().zip(&forecast.jobs);
    each.map(|(job, expected)| {
        let timing = Timing {
            est_ms: Some(expected.estimate.p50),
            slack_ms: expected.slack,
            critical: Some(expected.critical),
        };
        (job.code.clone(), timing)
    })
    .collect()
}

/// The order of a batch that nobody runs: the same checks, the same jobs.
fn nobodys(group: Option<GroupCode>) -> Result<BatchOrder> {
    Ok(BatchOrder {
        batch_no: BatchNo::parse("definition")?,
        batch_type: None,
        group,
        business_date: None,
        params: BTreeMap::new(),
    })
}

/// The part of the picture that was asked for.
fn part(mut view: View, args: &DagArgs) -> Result<View> {
    if let Some(job) = &args.focus {
        let found = view.focus(job, args.up, args.down);
        view = found.ok_or_else(|| no_job(job, &view))?;
    }
    view = match args.collapse {
        Some(By::Group) => view.collapsed(Collapse::Group),
        Some(By::Tag) => view.collapsed(Collapse::Tag),
        None => view,
    };
    Ok(match args.reduce {
        Some(Reduction::Transitive) => view.reduced(),
        None => view,
    })
}

fn no_job(job: &str, view: &View) -> BadInput {
    let hint = did_you_mean(job, view.codes());
    BadInput(format!(
        "--focus: there is no job {job} here; {hint}list the jobs with --format native"
    ))
}

/// Every group that has something to run, or the one that was asked for.
fn of_definition(defs: &Definition, group: Option<String>) -> Result<View> {
    let runs = |g: &&GroupCode| defs.jobs.iter().any(|j| j.group == **g && j.is_active);
    let wanted: Vec<Option<GroupCode>> = match group {
        Some(group) => vec![Some(GroupCode::parse(&group)?)],
        None => defs.groups.iter().map(|g| &g.code).filter(runs).cloned().map(Some).collect(),
    };
    // Without any job the plan says what is missing.
    let wanted = if wanted.is_empty() { vec![None] } else { wanted };
    let mut views = Vec::with_capacity(wanted.len());
    for group in wanted {
        let order = nobodys(group)?;
        let plan = plan(defs, &order, Millis(0))?.pop().context("a plan of one group")?;
        views.push(view(plan.values.group.as_str(), &plan.snapshot, None)?);
    }
    match views.len() {
        1 => views.pop().context("one view"),
        _ => Ok(View::join("definition", views)),
    }
}

async fn of_batch(app: &App, which: &BatchRef) -> Result<View> {
    let batch = which.find(app).await?;
    let mut tx = app.db.read().await?;
    let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
    let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
    drop(tx);
    let states: Vec<JobState> = rows.iter().map(JobState::from).collect();
    let drawn = view(batch.values.batch_no.as_str(), &snapshot, Some(&states))?;
    let now = server_now(app).await?;
    let forecast = app.forecast(&snapshot, &rows, now).await?;
    let mut timings = forecast.map(|f| timings_of(&snapshot, &f)).unwrap_or_default();
    if batch.status.is_final() {
        // What is over has no slack; the chain that decided its end is drawn instead.
        let dag = snapshot.dag()?;
        let ends: Vec<_> =
            rows.iter().map(|r| r.end_time.filter(|_| r.start_time.is_some())).collect();
        let chain: HashSet<Node> = eta::decisive(&dag, &ends).into_iter().collect();
        for (i, job) in (0..).zip(&snapshot.jobs) {
            let timing = timings.entry(job.code.clone()).or_default();
            timing.critical = Some(chain.contains(&Node(i)));
        }
    }
    Ok(drawn.timed(&timings))
}

fn view(title: &str, snapshot: &Snapshot, states: Option<&[JobState]>) -> Result<View> {
    let externals: Vec<External> = snapshot.externals.iter().map(External::from).collect();
    Ok(View::of(title, snapshot, &snapshot.dag()?, states).with_external(&externals))
}
