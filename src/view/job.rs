//! Jobs: what is defined, what stands beside it, how long they took.

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

/// What is known of jobs beside their definition.
pub struct JobStanding {
    /// What operators want with them in every new batch.
    pub modes: BTreeMap<JobKey, RunMode>,
    /// Those that were caught committing by themselves.
    pub marks: BTreeMap<JobKey, Breach>,
}

/// Who answers for a job: its owner, else its group's.
pub fn owner_of<'a>(defs: &'a Definition, job: &'a JobDef) -> Option<&'a String> {
    let group = || defs.groups.iter().find(|g| g.code == job.group)?.owner.as_ref();
    job.owner.as_ref().or_else(group)
}

/// The jobs that a job waits for.
pub fn parents(defs: &Definition, job: &JobDef) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.group == job.group && d.job_code == job.code);
    of.map(|d| d.depends_on.to_string()).collect()
}

/// The jobs that wait for a job.
pub fn children(defs: &Definition, job: &JobDef) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.group == job.group && d.depends_on == job.code);
    of.map(|d| d.job_code.to_string()).collect()
}

/// A job in a list.
pub fn listed(defs: &Definition, job: &JobDef, standing: &JobStanding) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, job),
        "run_mode": standing.modes.get(&job.key()).map(|m| m.as_str()),
        "breach": breach::find_mark(job, &standing.marks).map(BreachDetail::from_mark),
    })
}

/// A job by itself.
pub fn whole(defs: &Definition, job: &JobDef, marks: &BTreeMap<JobKey, Breach>) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, job), "children": children(defs, job),
        "breach": breach::find_mark(job, marks).map(BreachDetail::from_mark),
    })
}

/// How long a job took in its last successful tries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobStats {
    /// Its code.
    pub job_code: String,
    /// Its group.
    pub group: String,
    /// How many tries are counted, 20 at most.
    pub tries: usize,
    /// Half of them took no longer.
    pub p50_ms: Option<i64>,
    /// Nineteen of twenty took no longer.
    pub p95_ms: Option<i64>,
    /// The latest of them.
    pub last_ms: Option<i64>,
    /// By how much the latest took longer than usual, in percent.
    pub drift_percent: Option<i64>,
}

impl JobStats {
    /// Of a job and its durations.
    pub fn from_durations(job: &JobDef, of: Option<&Durations>) -> Self {
        Self {
            job_code: job.code.to_string(),
            group: job.group.to_string(),
            tries: of.map_or(0, |d| d.tries),
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
    /// Its code.
    pub code: String,
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// PROC, SQL, SCRIPT, NOOP, HTTP, …
    #[serde(rename = "type")]
    pub job_type: String,
    /// The data source it runs on.
    pub source: Option<String>,
    /// The procedure it calls.
    pub proc_name: Option<String>,
    /// The executors of XXL-JOB that run it, by their appname.
    pub executor: Option<String>,
    /// The handler that it calls there; none when it sends a script.
    pub handler: Option<String>,
    /// Its own owner; the group's holds where it has none.
    pub owner: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Its other codes.
    pub aliases: Vec<String>,
    /// What ties its effect to the record of it: none, same, ledger.
    pub tx: String,
    /// Whether it is part of batches.
    pub is_active: bool,
    /// What operators want with it in every new batch: SKIP, ICE, …
    pub run_mode: Option<String>,
    /// The mark of a job that was caught committing by itself; it is refused until that is settled.
    pub breach: Option<BreachDetail>,
}

impl JobSummary {
    /// Of a job and what stands beside it.
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
            breach: breach::find_mark(job, &standing.marks).map(BreachDetail::from_mark),
        }
    }
}

/// A job by itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Job {
    /// Its keys, as a definition file has them.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub job: JobDef,
    /// The jobs that it waits for.
    pub depends_on: Vec<String>,
    /// The jobs that wait for it.
    pub children: Vec<String>,
    /// The mark of a job that was caught committing by itself; it is refused until that is settled.
    pub breach: Option<BreachDetail>,
    /// What it waits for, with what is asked of each.
    pub dependencies: Vec<JobDependencyDetail>,
    /// What it waits for in other batches, as a definition file has it.
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub externals: Vec<ExternalDependency>,
    /// What operators want with it in every new batch: SKIP, ICE, …
    pub run_mode: Option<&'static str>,
    /// The newest version of the definition of its group; 0 before the first.
    pub group_version: u32,
}

/// A job that another waits for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobDependencyDetail {
    /// The job that is waited for.
    pub depends_on: String,
    /// What is asked of it: `success`, `failure`, `done`, `skipped` or a condition.
    #[schemars(with = "String")]
    pub when: EdgeCondition,
}

impl Job {
    /// With the conditions of its edges, what it waits for in other batches, its run mode and the version of its
    /// group.
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
            breach: breach::find_mark(&job, &marks).map(BreachDetail::from_mark),
            dependencies: edges.map(edge).collect(),
            externals: defs.externals.clone(),
            run_mode: mode.map(RunMode::as_str),
            group_version,
            job,
        })
    }
}
