//! Jobs that were caught committing by themselves.

use crate::domain::job::JobDef;
use crate::domain::job::job_key::JobKey;
use crate::store::breach::Breach;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The mark of a job, as long as its class says otherwise.
pub fn find_mark<'m>(job: &JobDef, marks: &'m BTreeMap<JobKey, Breach>) -> Option<&'m Breach> {
    marks.get(&JobKey::of_definition(job)).filter(|_| job.tx.is_recorded())
}

/// The mark of a job that was caught committing by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BreachDetail {
    /// The batch number it ran in.
    pub batch_no: String,
    /// Its row there.
    pub queue_id: i64,
    /// The attempt.
    pub attempt: u32,
    /// What was seen.
    pub said: String,
    /// When, UTC.
    pub at: String,
}

impl BreachDetail {
    /// A mark: in which batch, and what was found.
    pub fn from_mark(mark: &Breach) -> Self {
        Self {
            batch_no: mark.batch_no.to_string(),
            queue_id: mark.queue_id.0,
            attempt: mark.attempt,
            said: mark.said.clone(),
            at: mark.at.to_string(),
        }
    }
}
