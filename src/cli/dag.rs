//! `dag`: the graph of a file, a group or a batch, as JSON or DOT.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::{BadInput, Ended, Global, out};
use crate::domain::batch::{BatchOrder, Snapshot, plan};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::picture::{self, JobState, View};
use crate::store;
use anyhow::Result;
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
    let group = args.group.as_deref().map(GroupCode::parse).transpose()?;
    let view = match (&args.batch, &args.what) {
        (Some(no), what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            let group = match (group, what) {
                (None, Some(code)) => Some(GroupCode::parse(code)?),
                (group, _) => group,
            };
            of_batch(&app, &BatchNo::parse(no)?, group).await?
        }
        (None, Some(what)) if Path::new(what).exists() => {
            of_definition(&app::load_definition(Path::new(what))?.definition, group)?
        }
        (None, what) => {
            let app = global.open(EmptyDatabase::Refuse).await?;
            let code = what.as_deref().map(GroupCode::parse).transpose()?;
            of_definition(&app.definition().await?, group.or(code))?
        }
    };
    match args.format {
        Format::Native => out::json(&picture::native(&view, None))?,
        Format::Dot => out::line(picture::dot(&view).trim_end()),
    }
    Ok(Ended::Well)
}

fn one<T>(mut found: Vec<T>, name: impl Fn(&T) -> String) -> Result<T> {
    match (found.len(), found.pop()) {
        (1, Some(only)) => Ok(only),
        (0, _) | (_, None) => {
            Err(BadInput("there is nothing of this number or group".to_owned()).into())
        }
        (_, Some(last)) => {
            let mut names: Vec<String> = found.iter().map(&name).collect();
            names.push(name(&last));
            Err(BadInput(format!("several groups fit ({}); add --group", names.join(", "))).into())
        }
    }
}

fn of_definition(defs: &Definition, group: Option<GroupCode>) -> Result<View> {
    // The plan of a batch that nobody runs: the same checks, the same jobs.
    let order = BatchOrder {
        batch_no: BatchNo::parse("definition")?,
        batch_type: None,
        group,
        business_date: None,
        params: BTreeMap::new(),
    };
    let plan = one(plan(defs, &order, Millis(0))?, |p| p.values.group.to_string())?;
    view(&plan.values.group.to_string(), &plan.snapshot, None)
}

async fn of_batch(app: &App, no: &BatchNo, group: Option<GroupCode>) -> Result<View> {
    let mut tx = app.db.read().await?;
    let mut found = store::batch::list(&mut tx, Some(no), u32::MAX).await?;
    found.retain(|b| group.as_ref().is_none_or(|g| *g == b.values.group));
    let batch = one(found, |b| b.values.group.to_string())?;
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
    view(no.as_str(), &snapshot, Some(&states))
}

fn view(title: &str, snapshot: &Snapshot, states: Option<&[JobState]>) -> Result<View> {
    Ok(View::of(title, snapshot, &snapshot.dag()?, states))
}
