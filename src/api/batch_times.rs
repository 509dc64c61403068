//! Batches over time: Gantt, the grid of jobs by batches, two batches beside each other, the runs of a job.

use crate::api::authorize;
use crate::api::caller::{Ask, Needs};
use crate::api::page::{self, Page};
use crate::api::path_params::{BatchPath, CodePath, GroupPath};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::BatchId;
use crate::view::batch::View;
use crate::view::compare::{self, Comparison};
use crate::view::grid::{self, Grid};
use crate::view::job_history::{self, Run};
use crate::view::times::Times;
use schemars::JsonSchema;
use serde::Deserialize;

/// Most batches in a grid.
const BATCHES: u32 = 100;
/// Most jobs in one answer of a grid.
const JOBS: u32 = 2_000;

pub(super) fn noun() -> Noun {
    let needs = Needs::Somewhere(Permission::View);
    Noun::new("times of batches")
        .expensive()
        .get(
            "/groups/{group}/batches/{batch_no}/gantt",
            needs,
            "When each job of a batch ran, against when it would have run as usual",
            gantt,
        )
        .expensive()
        .get("/groups/{group}/grid", needs, "How each job went in the last batches", grid)
        .expensive()
        .get("/groups/{group}/compare", needs, "Two batches of a group beside each other", compare)
        .expensive()
        .get(
            "/jobs/{code}/history",
            needs,
            "How a job went in the last batches of its group",
            history,
        )
}

async fn gantt(ask: Ask, of: BatchPath, _: Nothing) -> Result<Times, Problem> {
    let batch = of.seen(&ask).await?;
    let view = View::without_outputs(&ask.house.app, batch.batch_id).await?;
    Ok(Times::of(&ask.house.app, &view).await?)
}

/// Which part of a grid.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct GridQuery {
    /// How many batches, 1 to 100; 20 when it is left out.
    batches: Option<u32>,
    /// Jobs with this text in their code.
    q: Option<String>,
    /// How many jobs, 1 to 2000; 500 when it is left out.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

fn between(name: &str, asked: Option<u32>, usual: u32, most: u32) -> Result<u32, Problem> {
    let n = asked.unwrap_or(usual);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(Problem::unreadable(format!("{name} is {n}; it may be 1 to {most}"))),
    }
}

async fn grid(ask: Ask, of: GroupPath, which: GridQuery) -> Result<Grid, Problem> {
    let code = authorize::group(&ask, Permission::View, &of.group)?;
    let from = which.cursor.as_deref().map(str::parse::<usize>).transpose();
    let refused =
        |_| Problem::unreadable("cursor: send the value of `next` as it was given, or none");
    let wanted = grid::GridRequest {
        batches: between("batches", which.batches, 20, BATCHES)?,
        text: which.q.filter(|q| !q.trim().is_empty()),
        from: from.map_err(refused)?.unwrap_or(0),
        limit: between("limit", which.limit, 500, JOBS)? as usize,
    };
    Ok(Grid::of(&ask.house.app, &code, &wanted).await?)
}

/// Which two batches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Two {
    /// The number of the first.
    a: String,
    /// The number of the second.
    b: String,
}

async fn compare(ask: Ask, of: GroupPath, two: Two) -> Result<Comparison, Problem> {
    let a = authorize::batch(&ask, Permission::View, (&of.group, &two.a)).await?;
    let b = authorize::batch(&ask, Permission::View, (&of.group, &two.b)).await?;
    let (a, b) = compare::both(&ask.house.app, a.batch_id, b.batch_id).await?;
    Ok(Comparison::of(&a, &b))
}

/// Which runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Past {
    /// How many batches are looked at, 1 to 500; 50 when it is left out.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

async fn history(ask: Ask, of: CodePath, past: Past) -> Result<Page<Run>, Problem> {
    let app = &ask.house.app;
    let mut tx = app.db.read().await.map_err(anyhow::Error::from)?;
    let job = authorize::job(&ask, &mut tx, Permission::View, &of.code).await?;
    drop(tx);
    let limit = u32::try_from(page::limit(past.limit)?).unwrap_or(u32::MAX);
    let before = page::read_cursor::<i64>(past.cursor.as_deref())?.map(BatchId);
    let (items, next) = job_history::page(app, (&job.group, &job.code), before, limit).await?;
    Ok(Page { items, next: next.map(|id| page::cursor(&id.0)) })
}
