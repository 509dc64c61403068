//! Evaluates a batch request without executing it: every batch with its resolved parameters, and
//! every reason for a refusal.

use crate::domain::batch::open_check::{check_batch_no, sub_batch_faults};
use crate::domain::batch::param_preview::{ParamPreview, ShownParam};
use crate::domain::batch::{BatchError, BatchOrder, BatchPlan, Snapshot, plan};
use crate::domain::dag::{Dag, Node};
use crate::domain::forecast::eta::Forecast;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::{Definition, JobDef, JobDependency};
use crate::domain::params::BatchValues;
use crate::domain::time::Millis;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashSet;

/// Result of a dry run.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    /// The batches; those of refused groups as far as they can be planned.
    pub batches: Vec<BatchPreview>,
    /// Reasons for a refusal; empty when the request would be accepted.
    pub refusals: Vec<OrderRefusal>,
}

/// A batch that would be opened.
#[derive(Clone, Debug)]
pub struct BatchPreview {
    /// What would be stored.
    pub plan: BatchPlan,
    /// Its graph.
    pub dag: Dag,
    /// The parameters of each job with their values, parallel to the jobs.
    pub params: Vec<Vec<ShownParam>>,
}

/// A reason to refuse a request; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OrderRefusal")]
pub struct OrderRefusal {
    /// The group concerned.
    #[schemars(with = "Option<String>")]
    pub group: Option<GroupCode>,
    /// The job concerned.
    #[schemars(with = "Option<String>")]
    pub job: Option<JobCode>,
    /// The reason, with a hint.
    pub reason: String,
}

impl std::fmt::Display for OrderRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Evaluates a request. `types` are the job types that this binary can run.
pub fn dry_run(defs: &Definition, order: &BatchOrder, types: &[&str], now: Millis) -> DryRun {
    let mut found = DryRun::default();
    let wanted = defs.groups.iter().map(|g| &g.code).filter(|code| {
        // The plan itself decides which groups a request means; a group that cannot be planned is
        // meant too.
        let alone = BatchOrder { group: Some((*code).clone()), ..order.clone() };
        order.group.as_ref().is_none_or(|asked| asked == *code)
            && !matches!(plan(defs, &alone, now), Err(BatchError::NoGroup(..)))
    });
    for code in wanted {
        let alone = BatchOrder { group: Some(code.clone()), ..order.clone() };
        // For a wrong period nothing else can be determined.
        if let Err(error) = check_batch_no(defs, &alone) {
            let (group, reason) = (Some(code.clone()), error.to_string());
            found.refusals.push(OrderRefusal { group, job: None, reason });
        } else if let Some(plan) = mended(defs.clone(), &alone, now, &mut found.refusals) {
            preview(plan, defs, types, &mut found);
        }
    }
    if found.batches.is_empty() && found.refusals.is_empty() {
        let error = plan(defs, order, now).err().map(|e| e.to_string());
        let reason = error.unwrap_or_else(|| "nothing to run".to_owned());
        found.refusals.push(OrderRefusal { group: order.group.clone(), job: None, reason });
    }
    found
}

/// The plan of one group after removing each reason for refusal, so that the next one is found too;
/// `None` when nothing is left to plan.
fn mended(
    mut defs: Definition,
    order: &BatchOrder,
    now: Millis,
    refusals: &mut Vec<OrderRefusal>,
) -> Option<BatchPlan> {
    loop {
        let error = match plan(&defs, order, now) {
            Ok(mut plans) => return plans.pop(),
            Err(error) => error,
        };
        let job = match &error {
            BatchError::Inactive { job, .. } => Some(job.clone()),
            _ => None,
        };
        let reasons = match &error {
            BatchError::Params { faults, .. } => faults.clone(),
            other => vec![other.to_string()],
        };
        let group = order.group.clone();
        let refusal = |reason| OrderRefusal { group: group.clone(), job: job.clone(), reason };
        refusals.extend(reasons.into_iter().map(refusal));
        if !take_out(&mut defs, &error) {
            return None;
        }
    }
}

/// Removes the cause of an error from a copy of the definitions; `false` when that is not possible.
fn take_out(defs: &mut Definition, error: &BatchError) -> bool {
    if let BatchError::Inactive { job, inactive } = error {
        let before = defs.dependencies.len();
        let off: HashSet<GroupCode> = defs
            .jobs
            .iter()
            .filter(|j| j.code == *inactive && !j.is_active)
            .map(|j| j.group.clone())
            .collect();
        let is_refused = |d: &JobDependency| {
            d.job_code == *job && d.depends_on == *inactive && off.contains(&d.group)
        };
        defs.dependencies.retain(|d| !is_refused(d));
        return defs.dependencies.len() < before;
    }
    if let BatchError::BadZone(code, _) = error
        && let Some(group) = defs.groups.iter_mut().find(|g| g.code == *code)
    {
        return group.time_zone.take().is_some();
    }
    false
}

fn preview(plan: BatchPlan, defs: &Definition, types: &[&str], found: &mut DryRun) {
    // A plan's graph has been built once already.
    let Ok(dag) = plan.snapshot.build_dag() else { return };
    let sources: HashSet<_> = plan.snapshot.sources.iter().map(|s| &s.name).collect();
    let mut refuse = |job: &JobDef, reason: String| {
        let (group, job) = (Some(job.group.clone()), Some(job.code.clone()));
        found.refusals.push(OrderRefusal { group, job, reason });
    };
    let mut params = Vec::new();
    let values = ParamPreview::new(&plan.snapshot, &plan.values);
    for job in &plan.snapshot.jobs {
        let code = &job.code;
        if !types.contains(&job.job_type.as_str()) {
            let known = types.join(", ");
            refuse(
                job,
                format!(
                    "job {code} has the type {}, which this binary cannot run; it knows {known}",
                    job.job_type
                ),
            );
        }
        if let Some(source) = job.source.as_ref().filter(|s| !sources.contains(s)) {
            refuse(
                job,
                format!(
                    "job {code} runs on source {source}, which is not defined; define it, or name another"
                ),
            );
        }
        let (shown, mut faults) = values.preview_job(job);
        faults.extend(sub_batch_faults(defs, &plan, job));
        faults.into_iter().for_each(|fault| refuse(job, format!("job {code}: {fault}")));
        params.push(shown);
    }
    found.batches.push(BatchPreview { plan, dag, params });
}

impl BatchPreview {
    /// The jobs by wave, and within a wave in starting order: as forecast, or without a forecast by
    /// priority and definition order.
    pub fn waves(&self, forecast: Option<&Forecast>) -> Vec<Vec<Node>> {
        let mut nodes = self.dag.in_order().to_vec();
        let jobs = &self.plan.snapshot.jobs;
        nodes.sort_by_key(|n| {
            let turn = forecast.and_then(|f| f.jobs[n.index()].turn);
            (self.dag.level(*n), turn, Reverse(jobs[n.index()].priority), *n)
        });
        let by_level = nodes.chunk_by(|a, b| self.dag.level(*a) == self.dag.level(*b));
        by_level.map(<[Node]>::to_vec).collect()
    }
}

/// A parameter whose value differs from that in an earlier batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ParamChange {
    /// Code of the job.
    #[schemars(with = "String")]
    pub job_code: JobCode,
    /// Name of the parameter.
    pub param: String,
    /// Value under the earlier batch's definition and parameters.
    pub old: Option<String>,
    /// Current value.
    pub new: Option<String>,
}

/// Parameters of jobs in both batches whose values differ. The earlier ones are evaluated for the
/// new number and business date, because these differ between any two batches and would hide the
/// real changes.
pub fn param_changes(
    snapshot: &Snapshot,
    old: &BatchValues,
    new: &BatchPreview,
) -> Vec<ParamChange> {
    let values = &new.plan.values;
    let (batch_no, business_date) = (values.batch_no.clone(), values.business_date);
    let old = BatchValues { batch_no, business_date, ..old.clone() };
    let old = ParamPreview::new(snapshot, &old);
    let mut found = Vec::new();
    for (job, after) in new.plan.snapshot.jobs.iter().zip(&new.params) {
        let Some(before) = snapshot.jobs.iter().find(|j| j.code == job.code) else { continue };
        let (before, _) = old.preview_job(before);
        let names = before.iter().chain(after).map(|p| &p.name);
        let mut seen = HashSet::new();
        for name in names.filter(|n| seen.insert(n.as_str())) {
            let of = |all: &[ShownParam]| {
                all.iter().find(|p| p.name == *name).and_then(|p| p.value.clone())
            };
            let (old, new) = (of(&before), of(after));
            if old != new {
                found.push(ParamChange {
                    job_code: job.code.clone(),
                    param: name.clone(),
                    old,
                    new,
                });
            }
        }
    }
    found
}

#[cfg(test)]
#[path = "dry_run_tests.rs"]
mod tests;
