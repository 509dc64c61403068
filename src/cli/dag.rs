//! `dag`: the graph of a file, a group or a batch, as JSON or DOT.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::{BadInput, BatchRef, Ended, Global, out};
use crate::domain::batch::{BatchOrder, Snapshot, plan};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::picture::{self, JobState, View};
use crate::store;
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
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
    #[arg(long, value_enum, default_value = "native")]
    format: Format,
}

/// Shapes of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Procession's own JSON: nodes with level and state, edges, groups
    Native,
    /// Graphviz DOT
    Dot,
}

pub(super) async fn dag(global: &Global, args: &DagArgs) -> Result<Ended> {
    let group = args.group.clone();
    let view = match (&args.batch, &args.what) {
        (Some(no), what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            let which = BatchRef { batch_no: no.clone(), group: group.or_else(|| what.clone()) };
            of_batch(&app, &which).await?
        }
        (None, Some(what)) if Path::new(what).exists() => {
            of_definition(&app::load_definition(Path::new(what))?.definition, group)?
        }
        (None, what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            of_definition(&app.definition().await?, group.or_else(|| what.clone()))?
        }
    };
    match args.format {
        Format::Native => out::json(&picture::native(&view, None))?,
        Format::Dot => out::line(picture::dot(&view).trim_end()),
    }
    Ok(Ended::Well)
}

fn of_definition(defs: &Definition, group: Option<String>) -> Result<View> {
    // The plan of a batch that nobody runs: the same checks, the same jobs.
    let order = BatchOrder {
        batch_no: BatchNo::parse("definition")?,
        batch_type: None,
        group: group.as_deref().map(GroupCode::parse).transpose()?,
        business_date: None,
        params: BTreeMap::new(),
    };
    let mut plans = plan(defs, &order, Millis(0))?;
    if plans.len() > 1 {
        let groups: Vec<String> = plans.iter().map(|p| p.values.group.to_string()).collect();
        let message = format!("there are several groups ({}); add --group", groups.join(", "));
        return Err(BadInput(message).into());
    }
    let plan = plans.pop().context("a plan of one group")?;
    view(&plan.values.group.to_string(), &plan.snapshot, None)
}

async fn of_batch(app: &App, which: &BatchRef) -> Result<View> {
    let batch = which.find(app).await?;
    let mut tx = app.db.read().await?;
    let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
    let states: Vec<JobState> = store::queue::of_batch(&mut tx, batch.batch_id)
        .await?
        .iter()
        .map(|row| JobState {
            status: row.status,
            start: row.start_time,
            end: row.end_time,
            attempt: row.attempt,
        })
        .collect();
    view(batch.values.batch_no.as_str(), &snapshot, Some(&states))
}

fn view(title: &str, snapshot: &Snapshot, states: Option<&[JobState]>) -> Result<View> {
    Ok(View::of(title, snapshot, &snapshot.dag()?, states))
}
