//! What past runs and deadlines say: the board of deadlines, groups and jobs of a period, and the
//! course of a group or a job over its last batches.

use crate::api::authorize;
use crate::api::batches::seen_groups;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::GroupPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::time::Millis;
use crate::store::run_facts::FactScope;
use crate::view::deadline_board::{self, BoardRequest, DeadlineBoard};
use crate::view::insight::{self, GroupInsights, InsightOrder, JobInsights, Trend};
use schemars::JsonSchema;
use serde::Deserialize;

const HOUR_MS: i64 = 3_600_000;
/// Maximum number of hours to each side of now.
const HOURS: u32 = 168;
/// Maximum number of days of a period.
const DAYS: u32 = 400;
/// Maximum number of jobs in an answer.
const JOBS: u32 = 500;
/// Maximum number of batches in a trend.
const BATCHES: u32 = 500;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("insights")
        .expensive()
        .get(
            "getDeadlineBoard",
            "/insights/deadlines",
            needs,
            "Get the batches of the last and the next hours with deadline, forecast and lateness, \
             what needs attention first",
            get_board,
        )
        .expensive()
        .get(
            "listGroupInsights",
            "/insights/groups",
            needs,
            "List the success rates and usual durations of groups over a period",
            list_groups,
        )
        .expensive()
        .get(
            "listJobInsights",
            "/insights/jobs",
            needs,
            "List the slowest or flakiest jobs, or those with the most failures, of a period",
            list_jobs,
        )
        .expensive()
        .get(
            "getTrend",
            "/groups/{group}/trend",
            needs,
            "Get how long the last batches of a group, or a job in them, took, with the usual band \
             and the versions",
            get_trend,
        )
}

/// Which batches.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DeadlineBoardQuery {
    /// Number of hours back and ahead, 1 to 168; default 24.
    hours: Option<u32>,
    /// Only these groups, separated by commas.
    group: Option<String>,
}

/// Which period and groups.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct GroupInsightsQuery {
    /// Number of days back, 1 to 400; default 30.
    days: Option<u32>,
    /// Only these groups, separated by commas.
    group: Option<String>,
}

/// Which period, groups and jobs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct JobInsightsQuery {
    /// Number of days back, 1 to 400; default 30.
    days: Option<u32>,
    /// Only these groups, separated by commas.
    group: Option<String>,
    /// What comes first; default slowest.
    order: InsightOrder,
    /// Number of jobs, 1 to 500; default 20.
    limit: Option<u32>,
}

/// Which course.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TrendQuery {
    /// A job of the group; default the group itself.
    job: Option<String>,
    /// Number of batches, 1 to 500; default 60.
    batches: Option<u32>,
}

fn between(name: &str, asked: Option<u32>, usual: u32, most: u32) -> Result<u32, Problem> {
    let n = asked.unwrap_or(usual);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(Problem::unreadable(format!("{name} is {n}; it may be 1 to {most}"))),
    }
}

async fn get_board(
    ask: ApiRequest,
    _: Nothing,
    which: DeadlineBoardQuery,
) -> Result<DeadlineBoard, Problem> {
    let app = &ask.house.app;
    let now = app.server_now().await?;
    let hours = i64::from(between("hours", which.hours, 24, HOURS)?);
    let wanted = BoardRequest {
        now,
        from: now.plus_ms(-hours * HOUR_MS),
        until: now.plus_ms(hours * HOUR_MS),
        groups: seen_groups(&ask, which.group.as_deref())?,
    };
    let listed = deadline_board::list_batches(app, &wanted).await?;
    let prospects = ask.house.reads.prospects(app, &listed, now).await?;
    Ok(deadline_board::read_board(app, &wanted, &listed, &prospects).await?)
}

/// The groups that are asked for and seen, and when the period begins.
async fn period(
    ask: &ApiRequest,
    days: Option<u32>,
    group: Option<&str>,
) -> Result<(Option<Vec<GroupCode>>, Millis), Problem> {
    let days = i64::from(between("days", days, 30, DAYS)?);
    let since = ask.house.app.server_now().await?.plus_ms(-days * 24 * HOUR_MS);
    Ok((seen_groups(ask, group)?, since))
}

async fn list_groups(
    ask: ApiRequest,
    _: Nothing,
    which: GroupInsightsQuery,
) -> Result<GroupInsights, Problem> {
    let (groups, since) = period(&ask, which.days, which.group.as_deref()).await?;
    let scope = FactScope { groups: groups.as_deref(), since };
    Ok(insight::read_groups(&ask.house.app, scope).await?)
}

async fn list_jobs(
    ask: ApiRequest,
    _: Nothing,
    which: JobInsightsQuery,
) -> Result<JobInsights, Problem> {
    let (groups, since) = period(&ask, which.days, which.group.as_deref()).await?;
    let limit = between("limit", which.limit, 20, JOBS)? as usize;
    let scope = FactScope { groups: groups.as_deref(), since };
    Ok(insight::read_jobs(&ask.house.app, scope, which.order, limit).await?)
}

async fn get_trend(ask: ApiRequest, of: GroupPath, which: TrendQuery) -> Result<Trend, Problem> {
    let group = authorize::group(&ask, Permission::View, &of.group)?;
    let batches = between("batches", which.batches, 60, BATCHES)?;
    // A text that cannot be a code names no job.
    let missing = || Problem::not_found(format!("group {group}"));
    let job = which.job.as_deref().map(JobCode::parse).transpose();
    let job = job.map_err(|_| {
        Problem::not_found(format!("job {}", which.job.as_deref().unwrap_or_default()))
    })?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let (groups, _) = crate::store::job::audience(&mut tx).await?;
    drop(tx);
    if !groups.iter().any(|one| one.code == group) {
        return Err(missing());
    }
    Ok(insight::read_trend(&ask.house.app, &group, job.as_ref(), batches).await?)
}
