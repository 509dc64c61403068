//! Jobs that were caught committing by themselves.

use crate::domain::job::JobDef;
use crate::domain::job::job_key::JobKey;
use crate::store::breach::Breach;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The mark of a job, as long as its class says otherwise.
pub fn of<'m>(job: &JobDef, marks: &'m BTreeMap<JobKey, Breach>) -> Option<&'m Breach> {
    marks.get(&JobKey::of_definition(job)).filter(|_| job.tx.is_recorded())
}

/// A mark: in which batch, and what was found.
pub fn as_json(mark: &Breach) -> Value {
    json!({
        "batch_no": mark.batch_no, "queue_id": mark.queue_id, "attempt": mark.attempt,
        "said": mark.said, "at": mark.at.to_string(),
    })
}
