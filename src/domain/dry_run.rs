//! What an order would become, without becoming it: every batch with its resolved parameters, and
//! everything that would be refused.

use crate::domain::batch::{BatchError, BatchOrder, BatchPlan, Snapshot, plan};
use crate::domain::dag::{Dag, Node};
use crate::domain::eta::Forecast;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::{Definition, JobDef, Need, Param, ParamMode, ParamType};
use crate::domain::params::{
    BatchValues, Outside, Reference, Start, references, resolve, takes_upstream,
};
use crate::domain::secret::Value;
use crate::domain::time::Millis;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashSet;

/// What would come of an order.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    /// The batches. Those of a group that is refused are there too where enough of it can be told.
    pub batches: Vec<Preview>,
    /// Why it would be refused; empty when it would run.
    pub refusals: Vec<Refusal>,
}

/// One batch that would be opened.
#[derive(Clone, Debug)]
pub struct Preview {
    /// What would be written.
    pub plan: BatchPlan,
    /// Its graph.
    pub dag: Dag,
    /// Parallel to the jobs: their parameters with values.
    pub params: Vec<Vec<ShownParam>>,
}

/// A parameter as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownParam {
    /// Its name.
    pub name: String,
    /// Which way it travels.
    pub mode: ParamMode,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: ParamType,
    /// Its value; `None` is NULL, or what the body will hand back.
    pub value: Option<String>,
}

/// One thing that stands in the way of an order; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Of which group.
    pub group: Option<GroupCode>,
    /// Because of which job.
    pub job: Option<JobCode>,
    /// What, and what to do about it.
    pub reason: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Plays an order through. `types` are the job types that this binary can run.
pub fn dry_run(defs: &Definition, order: &BatchOrder, types: &[&str], now: Millis) -> DryRun {
    let mut found = DryRun::default();
    let wanted = defs.groups.iter().map(|g| &g.code).filter(|code| {
        // The plan itself says which groups an order means; a group that it cannot plan is meant too.
        let alone = BatchOrder { group: Some((*code).clone()), ..order.clone() };
        order.group.as_ref().is_none_or(|asked| asked == *code)
            && !matches!(plan(defs, &alone, now), Err(BatchError::NoGroup(..)))
    });
    for code in wanted {
        let alone = BatchOrder { group: Some(code.clone()), ..order.clone() };
        if let Some(plan) = mended(defs.clone(), &alone, now, &mut found.refusals) {
            preview(plan, types, &mut found);
        }
    }
    if found.batches.is_empty() && found.refusals.is_empty() {
        let error = plan(defs, order, now).err().map(|e| e.to_string());
        let reason = error.unwrap_or_else(|| "nothing to run".to_owned());
        found.refusals.push(Refusal { group: order.group.clone(), job: None, reason });
    }
    found
}

/// The plan of one group, with what is refused taken out of its way so that the next refusal comes
/// to light too; `None` when nothing is left to plan.
fn mended(
    mut defs: Definition,
    order: &BatchOrder,
    now: Millis,
    refusals: &mut Vec<Refusal>,
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
        let refusal = |reason| Refusal { group: group.clone(), job: job.clone(), reason };
        refusals.extend(reasons.into_iter().map(refusal));
        if !take_out(&mut defs, &error) {
            return None;
        }
    }
}

/// Takes out of a copy what an error complains of; `false` when that cannot be done.
fn take_out(defs: &mut Definition, error: &BatchError) -> bool {
    if let BatchError::Inactive { job, inactive } = error {
        let before = defs.dependencies.len();
        defs.dependencies.retain(|d| d.job_code != *job || d.depends_on != *inactive);
        return defs.dependencies.len() < before;
    }
    if let BatchError::BadZone(code, _) = error
        && let Some(group) = defs.groups.iter_mut().find(|g| g.code == *code)
    {
        return group.time_zone.take().is_some();
    }
    false
}

fn preview(plan: BatchPlan, types: &[&str], found: &mut DryRun) {
    // A plan's graph has been built once already.
    let Ok(dag) = plan.snapshot.dag() else { return };
    let sources: HashSet<_> = plan.snapshot.sources.iter().map(|s| &s.name).collect();
    let mut refuse = |job: &JobDef, reason: String| {
        let (group, job) = (Some(job.group.clone()), Some(job.code.clone()));
        found.refusals.push(Refusal { group, job, reason });
    };
    let mut params = Vec::new();
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
        let (shown, faults) = shown_params(job, &plan.snapshot, &plan.values);
        faults.into_iter().for_each(|fault| refuse(job, format!("job {code}: {fault}")));
        params.push(shown);
    }
    found.batches.push(Preview { plan, dag, params });
}

/// The parameters of a job as they would be bound, and why some cannot be. The outputs of earlier
/// jobs are not known before these have run; they are shown by name.
pub fn shown_params(
    job: &JobDef,
    snapshot: &Snapshot,
    values: &BatchValues,
) -> (Vec<ShownParam>, Vec<String>) {
    let parents = snapshot.parents(&job.code);
    let (mut shown, mut faults) = (Vec::new(), Vec::new());
    for param in &job.params {
        let value = match resolved(job, param, (snapshot, &parents), values) {
            Ok(value) => value,
            Err(fault) => {
                faults.push(fault);
                None
            }
        };
        shown.push(ShownParam { name: param.name.clone(), mode: param.mode, ty: param.ty, value });
    }
    (shown, faults)
}

/// One parameter's value; each on its own, so that one fault does not hide the next. A secret is a mask.
fn resolved(
    job: &JobDef,
    param: &Param,
    (snapshot, parents): (&Snapshot, &[JobCode]),
    values: &BatchValues,
) -> Result<Option<String>, String> {
    let names = references(param).map_err(|e| e.to_string())?;
    let mut alone = JobDef { params: vec![param.clone()], ..job.clone() };
    // Of outputs by the parameter's own name only those are known that a parent declares.
    let declares = |code: &JobCode| {
        let of = snapshot.jobs.iter().filter(|j| j.code == *code).flat_map(|j| &j.params);
        takes_upstream(param)
            && of.filter(|p| p.mode != ParamMode::In).any(|p| p.name == param.name)
    };
    let refers = |name: &Reference| matches!(name, Reference::Output(..));
    if names.iter().any(refers) || parents.iter().any(declares) {
        // Its type can be checked only when the output is there.
        alone.params[0].ty = ParamType::Text;
    }
    if takes_upstream(param) && !parents.is_empty() {
        // A parent may hand it out; only the try itself can tell.
        alone.params[0].need = Need::Optional;
    }
    let output = |code: &JobCode, name: &str| {
        let asked = Reference::Output(code.clone(), name.to_owned());
        let known = names.contains(&asked) || declares(code);
        known.then(|| Some(format!("(output {name} of {code})")))
    };
    let start = Start::shown(values, &job.code);
    let layers = snapshot.layers(values, parents, &start);
    let outside = Outside { output: &output, secret: None };
    let mut bound = resolve(&alone, layers, outside).map_err(|e| e.to_string())?;
    Ok(bound.pop().and_then(|b| b.value).as_ref().map(Value::shown).map(str::to_owned))
}

impl Preview {
    /// The jobs by wave, within a wave in the order in which they would start: as forecast, or
    /// without a forecast by priority and then as written.
    pub fn waves(&self, forecast: Option<&Forecast>) -> Vec<Vec<Node>> {
        let mut nodes = self.dag.in_order().to_vec();
        let jobs = &self.plan.snapshot.jobs;
        nodes.sort_by_key(|n| {
            let turn = forecast.and_then(|f| f.jobs[n.at()].turn);
            (self.dag.level(*n), turn, Reverse(jobs[n.at()].priority), *n)
        });
        let by_level = nodes.chunk_by(|a, b| self.dag.level(*a) == self.dag.level(*b));
        by_level.map(<[Node]>::to_vec).collect()
    }
}

/// A parameter that comes to another value than in an earlier batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParamChange {
    /// Of which job.
    pub job_code: JobCode,
    /// Which parameter.
    pub param: String,
    /// Its value by the earlier batch's definition and parameters.
    pub old: Option<String>,
    /// Its value now.
    pub new: Option<String>,
}

/// Parameters of jobs that are in both batches and come to other values. The earlier ones are worked
/// out for the new number and business date, because those differ between any two batches and would
/// hide what has really changed.
pub fn param_changes(snapshot: &Snapshot, old: &BatchValues, new: &Preview) -> Vec<ParamChange> {
    let values = &new.plan.values;
    let (batch_no, business_date) = (values.batch_no.clone(), values.business_date);
    let old = BatchValues { batch_no, business_date, ..old.clone() };
    let mut found = Vec::new();
    for (job, after) in new.plan.snapshot.jobs.iter().zip(&new.params) {
        let Some(before) = snapshot.jobs.iter().find(|j| j.code == job.code) else { continue };
        let (before, _) = shown_params(before, snapshot, &old);
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
