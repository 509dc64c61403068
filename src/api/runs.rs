//! One list of the runs of all jobs.

use crate::api::authorize;
use crate::api::batches::{DayEdge, moment, seen_groups};
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::store::run_facts::{self, FactScope, ListedRun, RunFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Days that are looked back without another wish, in milliseconds.
const USUAL_MS: i64 = 7 * 86_400_000;

pub(super) fn routes() -> Noun {
    Noun::new("runs").expensive().get(
        "listRuns",
        "/runs",
        CallerNeeds::Somewhere(Permission::View),
        "List the jobs of all batches with their last attempt, latest batch first",
        list_runs,
    )
}

/// Filter for runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ListRunsQuery {
    /// Of these groups, separated by commas.
    group: Option<String>,
    /// In one of these states, separated by commas: `FAILED,TIMEOUT`.
    status: Option<String>,
    /// A text contained in the code of the job.
    q: Option<String>,
    /// Of batches opened at or after this time: `2024-07-31T18:00:00Z`, or a day, which begins at
    /// midnight UTC; default seven days ago.
    from: Option<String>,
    /// Of batches opened before this time; for a day: before its end.
    to: Option<String>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A job of a batch.
#[derive(Debug, Serialize, JsonSchema)]
struct RunSummary {
    /// The key of the run, within the whole installation.
    queue_id: i64,
    /// The key of its batch.
    batch_id: i64,
    /// The group code.
    group: String,
    /// The batch number.
    batch_no: String,
    /// The job code.
    job: String,
    /// The state of the job.
    status: String,
    /// The attempt number; 0 for a job that has not started.
    attempt: u32,
    /// Start of the last attempt.
    start: Option<String>,
    /// End of the last attempt.
    end: Option<String>,
    /// Duration of the last attempt in milliseconds; null while it runs.
    duration_ms: Option<i64>,
    /// The error message, or which operator changed it and why.
    message: Option<String>,
}

impl From<&ListedRun> for RunSummary {
    fn from(run: &ListedRun) -> Self {
        Self {
            queue_id: run.queue_id.0,
            batch_id: run.batch.0,
            group: run.group.to_string(),
            batch_no: run.batch_no.clone(),
            job: run.job.to_string(),
            status: run.status.as_str().to_owned(),
            attempt: run.attempt,
            start: run.start.map(|at| at.to_string()),
            end: run.end.map(|at| at.to_string()),
            duration_ms: run.start.zip(run.end).map(|(start, end)| end.since(start)),
            message: run.error.clone(),
        }
    }
}

fn parse_statuses(list: Option<&str>) -> Result<Vec<QueueStatus>, Problem> {
    let words = list.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let parse = |word: &str| {
        let refused =
            || Problem::unreadable(format!("status: {word} is no state of a job, such as FAILED"));
        QueueStatus::parse(&word.to_uppercase()).ok_or_else(refused)
    };
    words.map(parse).collect()
}

async fn list_runs(
    ask: ApiRequest,
    _: Nothing,
    which: ListRunsQuery,
) -> Result<Page<RunSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let groups = seen_groups(&ask, which.group.as_deref())?;
    let since = match which.from.as_deref() {
        Some(at) => moment("from", at, DayEdge::Begin)?,
        None => authorize::now(&ask).await?.plus_ms(-USUAL_MS),
    };
    let after = page::read_cursor::<(i64, i64)>(which.cursor.as_deref())?;
    let asked = RunFilter {
        scope: FactScope { groups: groups.as_deref(), since },
        until: which.to.as_deref().map(|at| moment("to", at, DayEdge::End)).transpose()?,
        statuses: parse_statuses(which.status.as_deref())?,
        text: which.q.filter(|text| !text.trim().is_empty()),
        after: after.map(|(batch, row)| (BatchId(batch), QueueId(row))),
    };
    let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut tx = authorize::open_read(&ask).await?;
    let found = run_facts::list_runs(&mut tx, &asked, most).await?;
    drop(tx);
    let runs = found.iter().map(RunSummary::from).collect();
    Ok(Page::from_items(runs, limit, |run: &RunSummary| (run.batch_id, run.queue_id)))
}
