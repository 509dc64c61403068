//! Evaluates conditions on outputs, from the outputs kept in memory.

use crate::domain::batch::Snapshot;
use crate::domain::id::JobCode;
use crate::domain::id::QueueId;
use crate::domain::job::body::Items;
use crate::domain::job::outcome::{JobOutputs, OutputValue};
use crate::domain::job::queue::QueueEntry;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{JobDef, output_of};
use crate::domain::params;
use crate::domain::value::expr::Expr;
use crate::engine::opening::large_values::{NamesByJob, load_values};
use crate::store::{Tx, queue};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};

/// Whether an expression is true for a job's outputs. One that cannot be evaluated (no such output,
/// a text compared with a number) counts as false and is logged, because the branch below is then
/// not taken.
pub(in crate::engine) fn holds(
    outputs: &HashMap<JobCode, JobOutputs>,
    job: &JobCode,
    expr: &Expr,
) -> bool {
    let found = outputs.get(job);
    answer(expr, &|name| found.and_then(|outputs| outputs.output(name)))
}

/// Whether a job's own condition on outputs `CODE.NAME` is true.
pub(in crate::engine) fn allows(outputs: &HashMap<JobCode, JobOutputs>, expr: &Expr) -> bool {
    let of = |code: &str| outputs.iter().find(|(job, _)| job.as_str() == code).map(|(_, o)| o);
    answer(expr, &|name| {
        let (code, output) = output_of(name, &|code| of(code).is_some())?;
        of(code)?.output(output)
    })
}

fn answer(expr: &Expr, look_up: &dyn Fn(&str) -> Option<OutputValue>) -> bool {
    expr.evaluate(look_up).unwrap_or_else(|error| {
        tracing::warn!(%expr, %error, "a condition cannot be answered; taken as false");
        false
    })
}

/// Jobs whose outputs are referred to, in parameters or in conditions.
pub(in crate::engine) fn wanted_outputs(snapshot: &Snapshot) -> HashSet<JobCode> {
    let mut parents: HashMap<&JobCode, Vec<JobCode>> = HashMap::new();
    for d in &snapshot.dependencies {
        parents.entry(&d.job_code).or_default().push(d.depends_on.clone());
    }
    let asked = |job: &JobDef| {
        let parents = parents.get(&job.code).map(Vec::as_slice).unwrap_or_default();
        params::outputs_asked(job, parents)
    };
    let referred = snapshot.jobs.iter().flat_map(asked).map(|(code, _)| code);
    referred.chain(needed_values(snapshot).into_keys()).collect()
}

/// The outputs that conditions and lists refer to: they are evaluated in memory, and so need the
/// values.
pub(in crate::engine) fn needed_values(snapshot: &Snapshot) -> NamesByJob {
    let lists = snapshot.jobs.iter().filter_map(|j| match &j.for_each.as_ref()?.items {
        Items::Output(code, name) => Some((code.clone(), name.clone())),
        Items::List(_) | Items::Param(_) => None,
    });
    let conditions = snapshot.dependencies.iter().filter_map(|d| match &d.when {
        EdgeCondition::Output(expr) => Some((d.depends_on.clone(), expr.names())),
        EdgeCondition::Success
        | EdgeCondition::Failure
        | EdgeCondition::Done
        | EdgeCondition::Skipped => None,
    });
    let conditions = conditions
        .flat_map(|(code, names)| names.into_iter().map(move |n| (code.clone(), n.to_owned())));
    let codes: HashMap<&str, &JobCode> =
        snapshot.jobs.iter().map(|j| (j.code.as_str(), &j.code)).collect();
    let named =
        snapshot.jobs.iter().filter_map(|j| j.condition.as_ref()).flat_map(|expr| expr.names());
    let named = named.filter_map(|name| {
        let (code, output) = output_of(name, &|code| codes.contains_key(code))?;
        codes.get(code).map(|code| ((*code).clone(), output.to_owned()))
    });
    let mut needed = NamesByJob::new();
    for (code, name) in lists.chain(conditions).chain(named) {
        needed.entry(code).or_default().insert(name);
    }
    needed
}

/// The outputs that parameters and conditions of a batch refer to.
pub(in crate::engine) async fn outputs_of(
    tx: &mut Tx,
    snapshot: &Snapshot,
    rows: &[QueueEntry],
) -> Result<HashMap<JobCode, JobOutputs>> {
    let wanted = wanted_outputs(snapshot);
    let there: HashMap<QueueId, &JobCode> = rows
        .iter()
        .filter(|r| r.status.is_final() && wanted.contains(&r.job_code))
        .map(|r| (r.queue_id, &r.job_code))
        .collect();
    let needed = needed_values(snapshot);
    let ids: Vec<QueueId> = there.keys().copied().collect();
    let mut found = HashMap::new();
    for (id, json) in queue::outputs(tx, &ids).await? {
        if let Some(code) = there.get(&id) {
            let mut outputs = serde_json::from_str(&json)
                .with_context(|| format!("read the outputs of job {code}"))?;
            load_values(tx, &mut outputs, needed.get(*code)).await?;
            found.insert((*code).clone(), outputs);
        }
    }
    Ok(found)
}
