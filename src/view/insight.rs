//! What past runs say: success, duration and steadiness of groups and jobs, and their course over
//! the last batches.

use crate::app::App;
use crate::domain::batch::BatchStatus;
use crate::domain::batch::run_record::{EndedRun, RunEnd, RunRecord, bands_before};
use crate::domain::id::{BatchId, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store;
use crate::store::run_facts::{self, BatchFact, FactScope, JobRunFact};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of batches that are looked at.
pub const BATCHES: u32 = 20_000;
/// Maximum number of runs of jobs that are looked at.
pub const RUNS: u32 = 200_000;
/// Maximum number of versions whose marks are shown.
const VERSIONS: u32 = 100;

/// How the batches of a group went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupInsight {
    /// The group code.
    pub group: String,
    /// Number of batches that ended, killed ones not counted.
    pub batches: usize,
    /// Number of those that succeeded.
    pub succeeded: usize,
    /// Share of those in percent, one decimal.
    pub success_percent: f64,
    /// Half of the successful batches took at most so many milliseconds from opening to end.
    pub p50_ms: Option<i64>,
    /// Nineteen of twenty took at most so many.
    pub p95_ms: Option<i64>,
    /// Milliseconds of the latest successful batch.
    pub last_ms: Option<i64>,
    /// The number of the latest batch that ended.
    pub last_batch_no: String,
    /// Its state.
    pub last_status: String,
}

/// How the runs of a job went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobInsight {
    /// The group code.
    pub group: String,
    /// The job code.
    pub job: String,
    /// Number of batches in which it ran.
    pub runs: usize,
    /// Number of those in which it succeeded.
    pub succeeded: usize,
    /// Number of those in which it failed.
    pub failed: usize,
    /// Number of those in which it succeeded after more than one attempt.
    pub repeated: usize,
    /// Share of runs in percent that failed or took more than one attempt; 0 for a job that never
    /// succeeded, which is broken rather than flaky.
    pub flaky_percent: usize,
    /// Half of the successful runs took at most so many milliseconds.
    pub p50_ms: Option<i64>,
    /// Nineteen of twenty took at most so many.
    pub p95_ms: Option<i64>,
    /// The longest successful run.
    pub longest_ms: Option<i64>,
}

/// An order of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsightOrder {
    /// The longest usual duration first.
    #[default]
    Slowest,
    /// The largest share of runs that failed or took more than one attempt first.
    Flakiest,
    /// The most failures first.
    Failures,
}

/// The jobs of a period.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobInsights {
    /// Batches opened since then are looked at.
    pub since: String,
    /// Number of runs that are looked at.
    pub runs: usize,
    /// Whether older runs of the period are left out, because there are more than 200,000.
    pub is_cut: bool,
    /// Number of jobs before the limit.
    pub jobs: usize,
    /// The jobs, in the asked order.
    pub items: Vec<JobInsight>,
}

/// The groups of a period.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupInsights {
    /// Batches opened since then are looked at.
    pub since: String,
    /// Whether older batches of the period are left out, because there are more than 20,000.
    pub is_cut: bool,
    /// The groups with a batch that ended, by code.
    pub items: Vec<GroupInsight>,
}

/// A batch in the course of a group or a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrendPoint {
    /// The batch number.
    pub batch_no: String,
    /// The state of the batch, or of the job in it.
    pub status: String,
    /// When the batch was opened, or the last attempt of the job started.
    pub start: Option<String>,
    /// Milliseconds from there to the end; null while it runs.
    pub took_ms: Option<i64>,
    /// Number of attempts of the job; null for a group.
    pub attempts: Option<u32>,
    /// The median of the up to 20 successful runs before; null with fewer than 5.
    pub p50_ms: Option<i64>,
    /// Their 95th percentile.
    pub p95_ms: Option<i64>,
}

/// A version of the definition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrendVersion {
    /// The version number.
    pub version: u32,
    /// When it was stored.
    pub at: String,
    /// The first batch that was opened after that, if there is one among the points.
    pub first_batch_no: Option<String>,
    /// The remark of its author.
    pub remark: Option<String>,
}

/// The course of a group or of a job over the last batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Trend {
    /// The group code.
    pub group: String,
    /// The job code; null for the group itself.
    pub job: Option<String>,
    /// Number of points that ended by themselves.
    pub runs: usize,
    /// Number of those that succeeded.
    pub succeeded: usize,
    /// The median of the successful ones.
    pub p50_ms: Option<i64>,
    /// Their 95th percentile.
    pub p95_ms: Option<i64>,
    /// The batches, oldest first. A batch without the job is left out.
    pub points: Vec<TrendPoint>,
    /// The versions that were stored in that time, oldest first.
    pub versions: Vec<TrendVersion>,
}

/// The groups of a scope with their results.
pub async fn read_groups(app: &App, scope: FactScope<'_>) -> Result<GroupInsights> {
    let mut tx = app.db.begin_read().await?;
    let found = run_facts::batches(&mut tx, scope, BATCHES).await?;
    drop(tx);
    let is_cut = found.len() == BATCHES as usize;
    let mut by_group: BTreeMap<&GroupCode, Vec<(&BatchFact, EndedRun)>> = BTreeMap::new();
    for fact in &found {
        if let Some(run) = run_of_batch(fact) {
            by_group.entry(&fact.group).or_default().push((fact, run));
        }
    }
    let items = by_group.into_values().filter_map(|runs| group_insight(&runs)).collect();
    Ok(GroupInsights { since: scope.since.to_string(), is_cut, items })
}

/// The insight of one group, whose batches come latest first.
fn group_insight(found: &[(&BatchFact, EndedRun)]) -> Option<GroupInsight> {
    let (last, _) = found.first()?;
    let runs: Vec<EndedRun> = found.iter().map(|(_, run)| *run).collect();
    let record = RunRecord::from_runs(&runs);
    let good = |run: &&EndedRun| run.end == RunEnd::Succeeded;
    Some(GroupInsight {
        group: last.group.to_string(),
        batches: record.runs,
        succeeded: record.succeeded,
        success_percent: percent(record.succeeded, record.runs),
        p50_ms: record.band.map(|band| band.p50),
        p95_ms: record.band.map(|band| band.p95),
        last_ms: runs.iter().find(good).and_then(|run| run.took_ms),
        last_batch_no: last.batch_no.clone(),
        last_status: last.status.as_str().to_owned(),
    })
}

/// A share in percent with one decimal.
fn percent(part: usize, of: usize) -> f64 {
    let tenths = (part * 2_000 + of).checked_div(of * 2).unwrap_or_default();
    u32::try_from(tenths).map_or(100.0, |tenths| f64::from(tenths) / 10.0)
}

/// The jobs of a scope with their results.
pub async fn read_jobs(
    app: &App,
    scope: FactScope<'_>,
    order: InsightOrder,
    limit: usize,
) -> Result<JobInsights> {
    let mut tx = app.db.begin_read().await?;
    let found = run_facts::job_runs(&mut tx, scope, RUNS).await?;
    drop(tx);
    let mut by_job: BTreeMap<(&GroupCode, &JobCode), Vec<EndedRun>> = BTreeMap::new();
    for fact in &found {
        by_job.entry((&fact.group, &fact.job)).or_default().extend(run_of_job(fact));
    }
    let mut items: Vec<JobInsight> = by_job.into_iter().map(job_insight).collect();
    let jobs = items.len();
    match order {
        InsightOrder::Slowest => items.sort_by_key(|one| Reverse(one.p50_ms)),
        InsightOrder::Flakiest => {
            items.sort_by_key(|one| Reverse((one.flaky_percent, one.failed + one.repeated)));
        }
        InsightOrder::Failures => items.sort_by_key(|one| Reverse(one.failed)),
    }
    items.truncate(limit);
    let is_cut = found.len() == RUNS as usize;
    Ok(JobInsights { since: scope.since.to_string(), runs: found.len(), is_cut, jobs, items })
}

fn job_insight(((group, job), runs): ((&GroupCode, &JobCode), Vec<EndedRun>)) -> JobInsight {
    let record = RunRecord::from_runs(&runs);
    let failed = record.runs - record.succeeded;
    JobInsight {
        group: group.to_string(),
        job: job.to_string(),
        runs: record.runs,
        succeeded: record.succeeded,
        failed,
        repeated: record.unsteady - failed,
        flaky_percent: record.flaky_percent(),
        p50_ms: record.band.map(|band| band.p50),
        p95_ms: record.band.map(|band| band.p95),
        longest_ms: record.longest_ms,
    }
}

/// `None` for a batch that is open or was killed: an operator ended that.
fn run_of_batch(fact: &BatchFact) -> Option<EndedRun> {
    let end = match fact.status {
        BatchStatus::Success | BatchStatus::Warning => RunEnd::Succeeded,
        BatchStatus::Failed => RunEnd::Failed,
        BatchStatus::Running | BatchStatus::Killing | BatchStatus::Killed => return None,
    };
    let took_ms = fact.ended.map(|ended| ended.since(fact.opened));
    Some(EndedRun { end, took_ms, is_repeated: false })
}

fn run_of_job(fact: &JobRunFact) -> Option<EndedRun> {
    let end = end_of_job(fact.status)?;
    Some(EndedRun { end, took_ms: fact.took_ms, is_repeated: fact.attempt > 1 })
}

fn end_of_job(status: QueueStatus) -> Option<RunEnd> {
    match status {
        QueueStatus::Success | QueueStatus::Warning => Some(RunEnd::Succeeded),
        QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Unknown => Some(RunEnd::Failed),
        QueueStatus::Pending
        | QueueStatus::Held
        | QueueStatus::Queued
        | QueueStatus::Running
        | QueueStatus::RetryWait
        | QueueStatus::Killing
        | QueueStatus::Killed
        | QueueStatus::Skipped
        | QueueStatus::NotTaken
        | QueueStatus::UpstreamFailed
        | QueueStatus::Forced => None,
    }
}

/// A point before its band is known.
struct BarePoint {
    point: TrendPoint,
    run: Option<EndedRun>,
}

/// The course of a group, or of one of its jobs, over its last batches.
pub async fn read_trend(
    app: &App,
    group: &GroupCode,
    job: Option<&JobCode>,
    batches: u32,
) -> Result<Trend> {
    let mut tx = app.db.begin_read().await?;
    let mut found = run_facts::last_batches(&mut tx, group, batches).await?;
    found.reverse();
    let bare = match job {
        None => found.iter().map(point_of_batch).collect(),
        Some(job) => {
            let runs = store::glance::list_runs(&mut tx, group, job, None, batches).await?;
            let by_batch: HashMap<BatchId, _> =
                runs.into_iter().filter_map(|(id, row)| Some((id, row?))).collect();
            found
                .iter()
                .filter_map(|fact| Some(point_of_job(fact, by_batch.get(&fact.batch)?)))
                .collect()
        }
    };
    let versions = store::version::heads(&mut tx, group, None, VERSIONS).await?;
    drop(tx);
    let since = found.first().map(|fact| fact.opened);
    let versions = versions.into_iter().rev().filter(|head| since.is_some_and(|at| head.at >= at));
    let versions = versions.map(|head| TrendVersion {
        version: head.no,
        at: head.at.to_string(),
        first_batch_no: found.iter().find(|b| b.opened >= head.at).map(|b| b.batch_no.clone()),
        remark: head.remark,
    });
    Ok(trend_of(group, job, bare, versions.collect()))
}

fn trend_of(
    group: &GroupCode,
    job: Option<&JobCode>,
    bare: Vec<BarePoint>,
    versions: Vec<TrendVersion>,
) -> Trend {
    let ended: Vec<EndedRun> = bare.iter().filter_map(|one| one.run).collect();
    let record = RunRecord::from_runs(&ended);
    let mut bands = bands_before(&ended).into_iter();
    let points = bare.into_iter().map(|BarePoint { point, run }| {
        let band = run.and_then(|_| bands.next().flatten());
        TrendPoint { p50_ms: band.map(|b| b.p50), p95_ms: band.map(|b| b.p95), ..point }
    });
    Trend {
        group: group.to_string(),
        job: job.map(ToString::to_string),
        runs: record.runs,
        succeeded: record.succeeded,
        p50_ms: record.band.map(|band| band.p50),
        p95_ms: record.band.map(|band| band.p95),
        points: points.collect(),
        versions,
    }
}

fn point_of_batch(fact: &BatchFact) -> BarePoint {
    let point = TrendPoint {
        batch_no: fact.batch_no.clone(),
        status: fact.status.as_str().to_owned(),
        start: Some(fact.opened.to_string()),
        took_ms: fact.ended.map(|ended| ended.since(fact.opened)),
        attempts: None,
        p50_ms: None,
        p95_ms: None,
    };
    BarePoint { point, run: run_of_batch(fact) }
}

fn point_of_job(fact: &BatchFact, row: &crate::domain::job::queue::QueueEntry) -> BarePoint {
    let took_ms = row.start_time.zip(row.end_time).map(|(start, end)| end.since(start));
    let end = end_of_job(row.status).filter(|_| row.run_mode.is_none());
    let point = TrendPoint {
        batch_no: fact.batch_no.clone(),
        status: row.status.as_str().to_owned(),
        start: row.start_time.map(|at: Millis| at.to_string()),
        took_ms,
        attempts: Some(row.attempt),
        p50_ms: None,
        p95_ms: None,
    };
    let run = end.map(|end| EndedRun { end, took_ms, is_repeated: row.attempt > 1 });
    BarePoint { point, run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_a_tenth() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(percent(2, 3), 66.7));
        assert!(close(percent(1, 3), 33.3));
        assert!(close(percent(7, 7), 100.0));
        assert!(close(percent(0, 0), 0.0));
    }
}
