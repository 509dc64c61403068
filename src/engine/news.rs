//! Progress events: published after the commit of a change, for consumers that show progress.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;

/// Event of a committed change, for progress displays. A lost event loses no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressEvent {
    pub at: Millis,
    pub batch_no: BatchNo,
    pub group: GroupCode,
    pub job_code: JobCode,
    /// The new state of the job.
    pub status: QueueStatus,
    /// The attempt number.
    pub attempt: u32,
    /// Duration of the attempt in milliseconds, if one ended.
    pub took_ms: Option<i64>,
    pub message: Option<String>,
    /// The earliest time of the next start.
    pub not_before: Option<Millis>,
}
