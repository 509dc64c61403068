//! A dependency: one job of a group after another.

/// How dependencies are stored in a list, small enough for a million of them.
pub mod stored;

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use serde::{Deserialize, Serialize};

/// `job_code` runs after `depends_on` has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobDependency {
    /// The group of both. What is stored is of one group and does not repeat it.
    #[serde(skip_serializing, default = "GroupCode::not_read")]
    pub group: GroupCode,
    /// The one that waits.
    pub job_code: JobCode,
    /// The one waited for.
    pub depends_on: JobCode,
    /// Place in the list of dependencies as it was written; only for display.
    pub dependency_order: i32,
    /// What is asked of the parent.
    #[serde(default, skip_serializing_if = "is_success")]
    pub when: EdgeCondition,
}

fn is_success(when: &EdgeCondition) -> bool {
    *when == EdgeCondition::Success
}

impl JobDependency {
    /// `job_code` waits until `depends_on` has ended well.
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
