//! A dependency on a job or a whole batch of another batch number or group.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::trigger_rule::When;
use serde::{Deserialize, Serialize};

/// What to do when the batch that is waited for does not exist.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Wait until it is there.
    #[default]
    Wait,
    /// The job cannot start: UPSTREAM_FAILED.
    Fail,
    /// Go on as if it had ended well.
    Pass,
}

/// `job_code` runs after a job, or all of a batch, of another batch number or group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDependency {
    /// The one that waits.
    pub job_code: JobCode,
    /// The group waited for.
    pub group: GroupCode,
    /// The job waited for; none: the batch as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<JobCode>,
    /// Which batch numbers, seen from the batch that waits.
    pub batch: BatchExpr,
    /// What is asked of each of them.
    #[serde(default)]
    pub when: When,
    /// When there is no such batch.
    #[serde(default)]
    pub missing: Missing,
    /// Seconds after the opening of the batch beyond which waiting fails; none: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_sec: Option<u32>,
}
