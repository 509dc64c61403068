//! A dependency: one job of a group after another.

/// How dependencies are stored in a list, small enough for a million of them.
pub mod stored;

use crate::domain::id::JobCode;
use crate::domain::trigger_rule::When;
use serde::{Deserialize, Serialize};

/// `job_code` runs after `depends_on` has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobDependency {
    /// The one that waits.
    pub job_code: JobCode,
    /// The one waited for.
    pub depends_on: JobCode,
    /// Place in the list of dependencies as it was written; only for display.
    pub dependency_order: i32,
    /// What is asked of the parent.
    #[serde(default, skip_serializing_if = "is_success")]
    pub when: When,
}

fn is_success(when: &When) -> bool {
    *when == When::Success
}

impl JobDependency {
    /// `job_code` waits until `depends_on` has ended well.
    pub fn plain(job_code: JobCode, depends_on: JobCode, dependency_order: i32) -> Self {
        Self { job_code, depends_on, dependency_order, when: When::Success }
    }
}
