//! Jobs: definition, run modes and marks, durations.

use crate::domain::batch::history::Durations;
use crate::domain::id::{JobCode, SourceName};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::queue::RunMode;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{Definition, JobDef, JobDependency};
use crate::store::breach::Breach;
use crate::store::{self, Tx};
use crate::view::breach::{self, BreachDetail};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Facts about jobs beyond their definition.
pub struct JobStanding {
    /// Their run modes in every new batch.
    pub modes: BTreeMap<JobKey, RunMode>,
    /// Those that were caught committing by themselves.
    pub marks: BTreeMap<JobKey, Breach>,
}

/// The owner of a job, else of its group.
pub fn owner_of<'a>(defs: &'a Definition, job: &'a JobDef) -> Option<&'a String> {
    let group = || defs.groups.iter().find(|g| g.code == job.group)?.owner.as_ref();
    job.owner.as_ref().or_else(group)
}

/// The direct dependencies of a job.
pub fn parents(defs: &Definition, job: &JobDef) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.group == job.group && d.job_code == job.code);
    of.map(|d| d.depends_on.to_string()).collect()
}

/// The direct dependents of a job.
pub fn children(defs: &Definition, job: &JobDef) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.group == job.group && d.depends_on == job.code);
    of.map(|d| d.job_code.to_string()).collect()
}

/// A job in a list.
pub fn listed(defs: &Definition, job: &JobDef, standing: &JobStanding) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, job),
        "run_mode": standing.modes.get(&job.key()).map(|m| m.as_str()),
        "violation": breach::find_mark(job, &standing.marks).map(BreachDetail::from_mark),
    })
}

/// A single job.
pub fn whole(defs: &Definition, job: &JobDef, marks: &BTreeMap<JobKey, Breach>) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, job), "children": children(defs, job),
        "violation": breach::find_mark(job, marks).map(BreachDetail::from_mark),
    })
}

/// Durations of a job's last successful attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobStats {
    /// The job code.
    pub job_code: String,
    /// The group code.
    pub group: String,
    /// Number of attempts counted, at most 20.
    pub successful_attempts: usize,
    /// Median.
    pub p50_ms: Option<i64>,
    /// 95th percentile.
    pub p95_ms: Option<i64>,
    /// The latest.
    pub last_ms: Option<i64>,
    /// By how many percent the latest took longer than the median.
    pub drift_percent: Option<i64>,
}

impl JobStats {
    /// The statistics of a job.
    pub fn from_durations(job: &JobDef, of: Option<&Durations>) -> Self {
        Self {
            job_code: job.code.to_string(),
            group: job.group.to_string(),
            successful_attempts: of.map_or(0, |d| d.tries),
            p50_ms: of.map(|d| d.p50),
            p95_ms: of.map(|d| d.p95),
            last_ms: of.map(|d| d.last),
            drift_percent: of.and_then(|d| d.drift()),
        }
    }
}

/// A job in a list, without its body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobSummary {
    /// The job code.
    pub code: String,
    /// The job name.
    pub name: String,
    /// The group code.
    pub group: String,
    /// PROC, SQL, SCRIPT, NOOP, HTTP, …
    #[serde(rename = "type")]
    pub job_type: String,
    /// The data source it runs on.
    pub source: Option<String>,
    /// The procedure it calls.
    pub proc_name: Option<String>,
    /// The app name of the XXL-JOB executors that run it.
    pub executor: Option<String>,
    /// The handler that it calls there; null when it sends a script.
    pub handler: Option<String>,
    /// Its own owner; null means the group's.
    pub owner: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The aliases.
    pub aliases: Vec<String>,
    /// The transaction class: none, same, ledger.
    pub tx: String,
    /// Whether it is part of batches.
    pub is_active: bool,
    /// The run mode in every new batch: SKIP, ICE, …
    pub run_mode: Option<String>,
    /// The mark of a job that was caught committing by itself; it is refused until that is settled.
    pub violation: Option<BreachDetail>,
}

impl JobSummary {
    /// The document of a job.
    pub fn from_job(job: &JobDef, standing: &JobStanding) -> Self {
        Self {
            code: job.code.to_string(),
            name: job.name.clone(),
            group: job.group.to_string(),
            job_type: job.job_type.to_string(),
            source: job.source.as_ref().map(SourceName::to_string),
            proc_name: job.proc_name.clone(),
            executor: job.executor.as_ref().map(|e| e.app.to_string()),
            handler: job.executor.as_ref().and_then(|e| e.handler.clone()),
            owner: job.owner.clone(),
            tags: job.tags.clone(),
            aliases: job.aliases.iter().map(JobCode::to_string).collect(),
            tx: job.tx.as_str().to_owned(),
            is_active: job.is_active,
            run_mode: standing.modes.get(&job.key()).map(|m| m.as_str().to_owned()),
            violation: breach::find_mark(job, &standing.marks).map(BreachDetail::from_mark),
        }
    }
}

/// A single job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Job {
    /// Its keys, as in a definition file.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub job: JobDef,
    /// The direct dependencies.
    pub depends_on: Vec<String>,
    /// The direct dependents.
    pub children: Vec<String>,
    /// The mark of a job that was caught committing by itself; it is refused until that is settled.
    pub violation: Option<BreachDetail>,
    /// The direct dependencies, with their conditions.
    pub dependencies: Vec<JobDependencyDetail>,
    /// Dependencies on other batches, as in a definition file.
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub externals: Vec<ExternalDependency>,
    /// The run mode in every new batch: SKIP, ICE, …
    pub run_mode: Option<&'static str>,
    /// The latest version of the definition of its group; 0 before the first.
    pub group_version: u32,
}

/// A dependency of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobDependencyDetail {
    /// The job depended on.
    pub depends_on: String,
    /// The condition: `success`, `failure`, `done`, `skipped` or an expression.
    #[schemars(with = "String")]
    pub when: EdgeCondition,
}

impl Job {
    /// Reads a job with the conditions of its edges, its dependencies on other batches, its run
    /// mode and the version of its group.
    pub async fn read_job(tx: &mut Tx, job: JobDef) -> Result<Self> {
        let marks = store::breach::list_marks(tx).await?;
        let mode = store::run_mode::standing(tx).await?.remove(&job.key());
        let group_version = store::version::last_number(tx, &job.group).await?;
        let defs = store::job_list::around(tx, job.clone()).await?;
        let edges = defs.dependencies.iter().filter(|d| d.job_code == job.code);
        let edge = |d: &JobDependency| JobDependencyDetail {
            depends_on: d.depends_on.to_string(),
            when: d.when.clone(),
        };
        Ok(Self {
            depends_on: parents(&defs, &job),
            children: children(&defs, &job),
            violation: breach::find_mark(&job, &marks).map(BreachDetail::from_mark),
            dependencies: edges.map(edge).collect(),
            externals: defs.externals.clone(),
            run_mode: mode.map(RunMode::as_str),
            group_version,
            job,
        })
    }
}
