//! Job definitions, and their durations.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::job_key::JobKey;
use crate::store::job_list::{self, JobListFilter};
use crate::store::{self, Tx};
use crate::view::job::{Job, JobStanding, JobStats, JobSummary};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("jobs")
        .get(
            "listJobs",
            "/jobs",
            needs,
            "List the jobs of the groups that the caller may see, by code",
            list_jobs,
        )
        .get(
            "getJob",
            "/jobs/{code}",
            needs,
            "Get a job by code or alias, with its payload and dependencies",
            get_job,
        )
        .get(
            "getJobStats",
            "/jobs/{code}/stats",
            needs,
            "Get the durations of a job's last successful attempts",
            stats,
        )
}

/// Filter for jobs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListJobsQuery {
    /// A text contained in code, name, owner, tags or an alias.
    q: Option<String>,
    /// Of this group.
    group: Option<String>,
    /// With this tag.
    tag: Option<String>,
    /// Of this type: PROC, SQL, SCRIPT, NOOP, HTTP, …
    #[serde(rename = "type")]
    job_type: Option<String>,
    /// Whether active.
    active: Option<bool>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A job.
#[derive(Debug, Deserialize, JsonSchema)]
struct JobPath {
    /// The job's code or an alias.
    code: String,
}

async fn list_jobs(
    ask: ApiRequest,
    _: Nothing,
    which: ListJobsQuery,
) -> Result<Page<JobSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let after: Option<(GroupCode, JobCode)> = page::read_cursor(which.cursor.as_deref())?;
    let after = after.map(|(group, code)| JobKey { group, code });
    let group = which.group.as_deref().map(GroupCode::parse).transpose();
    let group = group.map_err(|e| Problem::unreadable(format!("group: {e}")))?;
    let filter = JobListFilter {
        text: which.q.filter(|q| !q.trim().is_empty()).map(|q| q.trim().to_owned()),
        group,
        tag: which.tag,
        job_type: which.job_type,
        is_active: which.active,
    };
    let seen = ask.caller()?.grants.places(Permission::View);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let jobs =
        job_list::list_page(&mut tx, &filter, seen.as_ref(), after.as_ref(), limit + 1).await?;
    let standing = JobStanding {
        modes: store::run_mode::standing(&mut tx).await?,
        marks: store::breach::list_marks(&mut tx).await?,
    };
    let items = jobs.iter().map(|job| JobSummary::from_job(job, &standing)).collect();
    Ok(Page::from_items(items, limit, |job: &JobSummary| (job.group.clone(), job.code.clone())))
}

/// The job of the path, if the caller sees it.
async fn found(ask: &ApiRequest, tx: &mut Tx, at: &JobPath) -> Result<JobDef, Problem> {
    authorize::find_job(ask, tx, Permission::View, &at.code).await
}

async fn get_job(ask: ApiRequest, at: JobPath, _: Nothing) -> Result<Job, Problem> {
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let job = found(&ask, &mut tx, &at).await?;
    Ok(Job::read_job(&mut tx, job).await?)
}

async fn stats(ask: ApiRequest, at: JobPath, _: Nothing) -> Result<JobStats, Problem> {
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let job = found(&ask, &mut tx, &at).await?;
    let (group, code) = (job.group.as_str(), job.code.as_str());
    let durations = store::history::of_job(&mut tx, group, code).await?;
    Ok(JobStats::from_durations(&job, durations.as_ref()))
}
