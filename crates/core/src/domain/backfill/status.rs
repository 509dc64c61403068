//! The states of a backfill and of its batches.

use crate::domain::batch::BatchStatus;

/// State of a `backfill` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackfillStatus {
    /// A process executes it.
    Running,
    /// An operator requested a stop, and its process has not stopped yet.
    Stopping,
    /// Stopped; it can be resumed.
    Stopped,
    /// Every batch to run ended well.
    Success,
    /// A batch did not end well.
    Failed,
}

impl BackfillStatus {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Stopping, Self::Stopped, Self::Success, Self::Failed];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }

    /// Parses the word in the `status` column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether a process executes it, or did so until the process died.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Stopping)
    }
}

impl std::fmt::Display for BackfillStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// State of a `backfill_batch` row: one batch within the backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryStatus {
    /// Not opened yet.
    Pending,
    /// Opened, resumed or taken over, and not ended.
    Open,
    /// The batch succeeded.
    Success,
    /// The batch ended with warnings.
    Warning,
    /// The batch failed.
    Failed,
    /// The batch was stopped by an operator.
    Killed,
    /// Not run: already done, or not selected.
    Left,
    /// It could not be run; the message holds the reason.
    Refused,
    /// It depends on a batch of this backfill that did not end well.
    UpstreamFailed,
}

impl EntryStatus {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Open,
        Self::Success,
        Self::Warning,
        Self::Failed,
        Self::Killed,
        Self::Left,
        Self::Refused,
        Self::UpstreamFailed,
    ];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Open => "OPEN",
            Self::Success => "SUCCESS",
            Self::Warning => "WARNING",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
            Self::Left => "LEFT",
            Self::Refused => "REFUSED",
            Self::UpstreamFailed => "UPSTREAM_FAILED",
        }
    }

    /// Parses the word in the `status` column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether the entry is finished in this run of the backfill.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Open)
    }

    /// Whether the batch was to run and did not end well.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Killed | Self::Refused | Self::UpstreamFailed)
    }

    /// The entry state for a batch that ended with this status.
    pub fn from_batch_status(batch: BatchStatus) -> Self {
        match batch {
            BatchStatus::Running | BatchStatus::Killing => Self::Open,
            BatchStatus::Success => Self::Success,
            BatchStatus::Warning => Self::Warning,
            BatchStatus::Failed => Self::Failed,
            BatchStatus::Killed => Self::Killed,
        }
    }
}

impl std::fmt::Display for EntryStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
