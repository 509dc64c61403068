//! What whoever watches is told once it is committed.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;

/// News of a change that is committed; for whoever shows progress. Losing one loses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressEvent {
    /// When.
    pub at: Millis,
    /// Which batch.
    pub batch_no: BatchNo,
    /// Of which group.
    pub group: GroupCode,
    /// Which job.
    pub job_code: JobCode,
    /// Its state from now on.
    pub status: QueueStatus,
    /// Which start.
    pub attempt: u32,
    /// How long the try took, when one ended; milliseconds.
    pub took_ms: Option<i64>,
    /// What was said.
    pub message: Option<String>,
    /// When it may start again.
    pub not_before: Option<Millis>,
}
