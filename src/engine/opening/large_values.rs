//! Values that are stored aside, loaded for those who need them: conditions and lists of a batch when
//! outputs come into its memory, parameters when their job begins.

use crate::domain::id::JobCode;
use crate::domain::outcome::{LargeValue, LargeValues, Outcome, OutputValue, Outputs, StoredValue};
use crate::engine::attempt::run::{Given, Job, Report, Surroundings, What};
use crate::engine::db_retry::answered;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::store::{Tx, output_value};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap};

/// Names of outputs, by the job that returns them.
pub(in crate::engine) type NamesByJob = HashMap<JobCode, BTreeSet<String>>;

/// The references among `outputs` that `names` mean.
fn references(outputs: &Outputs, names: Option<&BTreeSet<String>>) -> Vec<StoredValue> {
    names.into_iter().flatten().flat_map(|name| outputs.stored_for(name)).collect()
}

/// The outputs of an outcome as memory keeps them: with the values that `names` mean.
pub(in crate::engine) fn kept_outputs(
    outcome: &Outcome,
    names: Option<&BTreeSet<String>>,
) -> Outputs {
    let mut kept = outcome.outputs.clone();
    for reference in references(&outcome.outputs, names) {
        if let Some(text) = outcome.large_values.text_of(&reference) {
            kept.restore(&reference, text);
        }
    }
    kept
}

/// Loads the values that `names` mean into outputs. What cannot be loaded stays a reference, so that
/// whoever asks for it gets an error and no value.
pub(in crate::engine) async fn load_values(
    tx: &mut Tx,
    outputs: &mut Outputs,
    names: Option<&BTreeSet<String>>,
) -> Result<()> {
    for reference in references(outputs, names) {
        match output_value::load(tx, &reference).await? {
            Ok(text) => outputs.restore(&reference, &text),
            Err(why) => tracing::error!(queue_id = reference.queue_id, "a value of a job: {why}"),
        }
    }
    Ok(())
}

impl QueueDispatcher {
    /// Loads the values that conditions and lists ask for and that another node has stored with its
    /// report: those of bodies of this node come with their outcomes.
    pub(in crate::engine) async fn load_reported_values(&mut self) -> Result<()> {
        for report in &mut self.waiting {
            let Report { queue_id, by: Some(_), what: What::Ended(outcome, _), .. } = report else {
                continue;
            };
            let place = self.places.get(queue_id);
            let active = place.and_then(|(id, node)| Some((self.active.get(id)?, *node)));
            let Some((active, node)) = active else { continue };
            let names = active.needed_values.get(&active.row(node).job_code);
            let missing: Vec<StoredValue> = references(&outcome.outputs, names)
                .into_iter()
                .filter(|reference| outcome.large_values.text_of(reference).is_none())
                .collect();
            if missing.is_empty() {
                continue;
            }
            let mut tx = self.db.read().await?;
            let mut values = Vec::new();
            for reference in missing {
                match output_value::load(&mut tx, &reference).await? {
                    Ok(text) => values.push(LargeValue { reference, name: String::new(), text }),
                    Err(why) => tracing::error!(queue_id = queue_id.0, "a value of a job: {why}"),
                }
            }
            outcome.large_values = LargeValues::read_back(values);
        }
        Ok(())
    }
}

/// The outputs that the parameters of a job may ask for, each with its value; one that cannot be loaded
/// says why.
pub(in crate::engine) async fn loaded(job: &Job, around: &Surroundings) -> Result<Given, String> {
    let mut outputs = job.outputs.clone();
    for ((code, name), output) in &mut outputs {
        let OutputValue::Stored(reference) = output else { continue };
        // The commit that claims this row may be the one that stores what its parent returned: 20 MB were not there yet.
        if !job.claimed.is_committed().await {
            return Err("its row was not claimed; nothing was run".to_owned());
        }
        let look = async || {
            let mut tx = around.db.read().await?;
            output_value::load(&mut tx, reference).await
        };
        let loaded = answered(&job.stop, look).await.map_err(|error| {
            format!("cannot load output {name} of job {code}: {error:#}; nothing was run")
        })?;
        *output = match loaded {
            Ok(text) => OutputValue::of(reference.value_type, text),
            Err(why) => OutputValue::Unusable(why),
        };
    }
    Ok(outputs)
}
