//! Failed jobs with what people said about them.

use crate::store::failure::{FailedJob, FailureMark};
use schemars::JsonSchema;
use serde::Serialize;

/// A failed job of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailureDetail {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// The job code.
    pub job: String,
    /// FAILED, TIMEOUT or UNKNOWN.
    pub status: String,
    /// The attempt that failed; send it with a change, which is refused once there is a later one.
    pub attempt: u32,
    /// The error message.
    pub error: Option<String>,
    /// When it ended.
    pub at: Option<String>,
    /// What people said about it.
    #[serde(flatten)]
    pub mark: FailureMarkDetail,
}

/// What people said about a failure.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FailureMarkDetail {
    /// Whether it is acknowledged.
    pub is_acknowledged: bool,
    /// Who acknowledged it.
    pub acknowledged_by: Option<String>,
    /// When.
    pub acknowledged_at: Option<String>,
    /// Who looks after it.
    pub assignee: Option<String>,
    /// A note for others.
    pub note: Option<String>,
}

impl From<&FailureMark> for FailureMarkDetail {
    fn from(mark: &FailureMark) -> Self {
        let acknowledged = mark.acknowledged.as_ref();
        Self {
            is_acknowledged: acknowledged.is_some(),
            acknowledged_by: acknowledged.map(|(by, _)| by.clone()),
            acknowledged_at: acknowledged.map(|(_, at)| at.to_string()),
            assignee: mark.assignee.clone(),
            note: mark.note.clone(),
        }
    }
}

impl From<&FailedJob> for FailureDetail {
    fn from(failed: &FailedJob) -> Self {
        Self {
            group: failed.group.to_string(),
            batch_no: failed.batch_no.to_string(),
            job: failed.job.to_string(),
            status: failed.status.as_str().to_owned(),
            attempt: failed.attempt,
            error: failed.error.clone(),
            at: failed.ended.map(|at| at.to_string()),
            mark: failed.mark.as_ref().map(FailureMarkDetail::from).unwrap_or_default(),
        }
    }
}
