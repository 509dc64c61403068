//! Jobs: what is defined, what stands beside it, how long they took.

use crate::domain::history::Durations;
use crate::domain::id::JobCode;
use crate::domain::job::{Definition, JobDef};
use crate::domain::queue::RunMode;
use crate::store::breach::Breach;
use crate::view::breach;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is known of jobs beside their definition.
pub struct Standing {
    /// What operators want with them in every new batch.
    pub modes: BTreeMap<JobCode, RunMode>,
    /// Those that were caught committing by themselves.
    pub marks: BTreeMap<JobCode, Breach>,
}

/// Who answers for a job: its owner, else its group's.
pub fn owner_of<'a>(defs: &'a Definition, job: &'a JobDef) -> Option<&'a String> {
    let group = || defs.groups.iter().find(|g| g.code == job.group)?.owner.as_ref();
    job.owner.as_ref().or_else(group)
}

/// The jobs that a job waits for.
pub fn parents(defs: &Definition, code: &JobCode) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.job_code == *code);
    of.map(|d| d.depends_on.to_string()).collect()
}

/// The jobs that wait for a job.
pub fn children(defs: &Definition, code: &JobCode) -> Vec<String> {
    let of = defs.dependencies.iter().filter(|d| d.depends_on == *code);
    of.map(|d| d.job_code.to_string()).collect()
}

/// A job in a list.
pub fn listed(defs: &Definition, job: &JobDef, standing: &Standing) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, &job.code),
        "run_mode": standing.modes.get(&job.code).map(|m| m.as_str()),
        "breach": breach::of(job, &standing.marks).map(breach::as_json),
    })
}

/// A job by itself.
pub fn whole(defs: &Definition, job: &JobDef, marks: &BTreeMap<JobCode, Breach>) -> Value {
    json!({
        "job": job, "depends_on": parents(defs, &job.code), "children": children(defs, &job.code),
        "breach": breach::of(job, marks).map(breach::as_json),
    })
}

/// How long a job took in its last successful tries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stats {
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

impl Stats {
    /// Of a job and its durations.
    pub fn of(job: &JobDef, of: Option<&Durations>) -> Self {
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
