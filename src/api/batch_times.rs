//! Batches over time: Gantt chart, the grid of jobs by batches, the comparison of two batches, the
//! runs of a job.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::path_params::{BatchPath, CodePath, GroupPath};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::BatchId;
use crate::view::batch::BatchView;
use crate::view::compare::{self, BatchComparison};
use crate::view::grid::{self, GroupGrid};
use crate::view::job_history::{self, JobRunSummary};
use crate::view::times::BatchTimes;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of batches in a grid.
const BATCHES: u32 = 100;
/// Maximum number of jobs per page of a grid.
const JOBS: u32 = 2_000;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("batches")
        .expensive()
        .get(
            "getBatchGantt",
            "/groups/{group}/batches/{batch_no}/gantt",
            needs,
            "Get the Gantt chart of a batch: when each job ran, and when it usually runs",
            gantt,
        )
        .expensive()
        .get(
            "getGroupGrid",
            "/groups/{group}/grid",
            needs,
            "Get the states of a group's jobs in its last batches",
            get_grid,
        )
        .expensive()
        .get(
            "compareBatches",
            "/groups/{group}/compare",
            needs,
            "Compare two batches of a group",
            compare,
        )
        .expensive()
        .get(
            "getJobHistory",
            "/jobs/{code}/history",
            needs,
            "Get how a job went in the last batches of its group",
            history,
        )
}

async fn gantt(ask: ApiRequest, of: BatchPath, _: Nothing) -> Result<BatchTimes, Problem> {
    let batch = of.find_visible(&ask).await?;
    let view = BatchView::without_outputs(&ask.house.app, batch.batch_id).await?;
    Ok(BatchTimes::read_times(&ask.house.app, &view).await?)
}

/// Which part of a grid.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct GridQuery {
    /// Number of batches, 1 to 100; default 20.
    batches: Option<u32>,
    /// Jobs whose code contains this text.
    q: Option<String>,
    /// Number of jobs, 1 to 2000; default 500.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

fn between(name: &str, asked: Option<u32>, usual: u32, most: u32) -> Result<u32, Problem> {
    let n = asked.unwrap_or(usual);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(Problem::unreadable(format!("{name} is {n}; it may be 1 to {most}"))),
    }
}

async fn get_grid(ask: ApiRequest, of: GroupPath, which: GridQuery) -> Result<GroupGrid, Problem> {
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
    Ok(GroupGrid::read_grid(&ask.house.app, &code, &wanted).await?)
}

/// The two batches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareBatchesQuery {
    /// The number of the first batch.
    a: String,
    /// The number of the second batch.
    b: String,
}

async fn compare(
    ask: ApiRequest,
    of: GroupPath,
    two: CompareBatchesQuery,
) -> Result<BatchComparison, Problem> {
    let a = authorize::batch(&ask, Permission::View, (&of.group, &two.a)).await?;
    let b = authorize::batch(&ask, Permission::View, (&of.group, &two.b)).await?;
    let (a, b) = compare::read_both(&ask.house.app, a.batch_id, b.batch_id).await?;
    Ok(BatchComparison::from_views(&a, &b))
}

/// Which runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct JobHistoryQuery {
    /// Number of batches to read, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

async fn history(
    ask: ApiRequest,
    of: CodePath,
    past: JobHistoryQuery,
) -> Result<Page<JobRunSummary>, Problem> {
    let app = &ask.house.app;
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let job = authorize::find_job(&ask, &mut tx, Permission::View, &of.code).await?;
    drop(tx);
    let limit = u32::try_from(page::limit(past.limit)?).unwrap_or(u32::MAX);
    let before = page::read_cursor::<i64>(past.cursor.as_deref())?.map(BatchId);
    let (items, next) = job_history::read_page(app, (&job.group, &job.code), before, limit).await?;
    Ok(Page { items, next: next.map(|id| page::cursor(&id.0)) })
}
