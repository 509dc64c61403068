//! Loads large values, which are stored in a table of their own: for conditions and lists when
//! outputs are read into memory, for parameters when their job begins.

use crate::domain::id::JobCode;
use crate::domain::job::outcome::{AttemptOutcome, JobOutputs, StoredValue};
use crate::store::{Tx, output_value};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap};

/// Names of outputs, by the job that returns them.
pub(in crate::engine) type NamesByJob = HashMap<JobCode, BTreeSet<String>>;

/// The stored references among `outputs` that `names` select.
pub(in crate::engine) fn references(
    outputs: &JobOutputs,
    names: Option<&BTreeSet<String>>,
) -> Vec<StoredValue> {
    names.into_iter().flatten().flat_map(|name| outputs.stored_for(name)).collect()
}

/// The outputs of an outcome as kept in memory: with the values that `names` select.
pub(in crate::engine) fn kept_outputs(
    outcome: &AttemptOutcome,
    names: Option<&BTreeSet<String>>,
) -> JobOutputs {
    let mut kept = outcome.outputs.clone();
    for reference in references(&outcome.outputs, names) {
        if let Some(text) = outcome.large_values.text_of(&reference) {
            kept.restore(&reference, text);
        }
    }
    kept
}

/// Loads the values that `names` select into outputs. A value that cannot be loaded stays a
/// reference, so that its reader gets an error instead of a value.
pub(super) async fn load_values(
    tx: &mut Tx,
    outputs: &mut JobOutputs,
    names: Option<&BTreeSet<String>>,
) -> Result<()> {
    for reference in references(outputs, names) {
        match output_value::load_value(tx, &reference).await? {
            Ok(text) => outputs.restore(&reference, &text),
            Err(why) => tracing::error!(queue_id = reference.queue_id, "a value of a job: {why}"),
        }
    }
    Ok(())
}
