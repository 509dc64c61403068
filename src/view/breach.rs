//! Jobs that were caught committing by themselves (transaction-class violations).

use crate::domain::job::JobDef;
use crate::domain::job::job_key::JobKey;
use crate::store::breach::Breach;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The mark of a job, as long as it contradicts the job's class.
pub fn find_mark<'m>(job: &JobDef, marks: &'m BTreeMap<JobKey, Breach>) -> Option<&'m Breach> {
    marks.get(&JobKey::of_definition(job)).filter(|_| job.tx.is_recorded())
}

/// The mark of a job that was caught committing by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BreachDetail {
    /// The number of the batch it ran in.
    pub batch_no: String,
    /// The key of its row.
    pub queue_id: i64,
    /// The attempt number.
    pub attempt: u32,
    /// The observation.
    pub message: String,
    /// The time, UTC.
    pub at: String,
}

impl BreachDetail {
    /// The document of a mark.
    pub fn from_mark(mark: &Breach) -> Self {
        Self {
            batch_no: mark.batch_no.to_string(),
            queue_id: mark.queue_id.0,
            attempt: mark.attempt,
            message: mark.said.clone(),
            at: mark.at.to_string(),
        }
    }
}
