//! The states of a batch.

use crate::domain::job::queue::QueueStatus;
use serde::{Deserialize, Serialize};

/// State of a `job_batch` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BatchStatus {
    /// Some jobs are not final.
    Running,
    /// Being stopped by an operator.
    Killing,
    /// Every job succeeded.
    Success,
    /// Every job counts as success, some with warnings, forced or skipped.
    Warning,
    /// A job failed, timed out or has an unknown outcome.
    Failed,
    /// Stopped by an operator.
    Killed,
}

impl BatchStatus {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Killing, Self::Success, Self::Warning, Self::Failed, Self::Killed];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Killing => "KILLING",
            Self::Success => "SUCCESS",
            Self::Warning => "WARNING",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
        }
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether the batch changes no more without an operator.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Running | Self::Killing)
    }

    /// Whether the batch succeeded.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Success | Self::Warning)
    }

    /// The corresponding state of a job: used by conditions on a whole batch.
    pub fn as_job(self) -> QueueStatus {
        match self {
            Self::Running | Self::Killing => QueueStatus::Running,
            Self::Success | Self::Warning => QueueStatus::Success,
            Self::Failed | Self::Killed => QueueStatus::Failed,
        }
    }

    /// The result of a batch whose jobs are all final.
    pub fn from_job_statuses(jobs: impl Iterator<Item = QueueStatus>) -> Self {
        jobs.fold(Self::Success, |result, job| result.max_severity(Self::of_job(job)))
    }

    fn of_job(job: QueueStatus) -> Self {
        match job {
            // A branch that was not taken is as planned as one that was.
            QueueStatus::Success | QueueStatus::NotTaken => Self::Success,
            QueueStatus::Warning | QueueStatus::Forced | QueueStatus::Skipped => Self::Warning,
            QueueStatus::Killed => Self::Killed,
            QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::UpstreamFailed => {
                Self::Failed
            }
            QueueStatus::Unknown => Self::Failed,
            QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => Self::Running,
            QueueStatus::Running | QueueStatus::RetryWait | QueueStatus::Killing => Self::Running,
        }
    }

    fn max_severity(self, other: Self) -> Self {
        let rank = |s: Self| match s {
            Self::Success => 0,
            Self::Warning => 1,
            Self::Failed => 2,
            Self::Killed => 3,
            Self::Killing => 4,
            Self::Running => 5,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl std::fmt::Display for BatchStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
