//! A dependency between two jobs of a group.

/// Compact stored form of a list of dependencies, sized for a million of them.
pub mod stored;

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use serde::{Deserialize, Serialize};

/// `job_code` runs after `depends_on`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobDependency {
    /// The group of both jobs. The stored form belongs to one group and omits it.
    #[serde(skip_serializing, default = "GroupCode::not_read")]
    pub group: GroupCode,
    /// The dependent job.
    pub job_code: JobCode,
    /// Its parent.
    pub depends_on: JobCode,
    /// Position in the list of dependencies as written; only for display.
    pub dependency_order: i32,
    /// Condition on the parent.
    #[serde(default, skip_serializing_if = "is_success")]
    pub when: EdgeCondition,
}

fn is_success(when: &EdgeCondition) -> bool {
    *when == EdgeCondition::Success
}

impl JobDependency {
    /// An unconditional dependency: `job_code` waits until `depends_on` has succeeded.
    pub fn plain(
        group: &GroupCode,
        job_code: JobCode,
        depends_on: JobCode,
        dependency_order: i32,
    ) -> Self {
        let group = group.clone();
        Self { group, job_code, depends_on, dependency_order, when: EdgeCondition::Success }
    }
}
