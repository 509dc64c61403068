//! The states of a backfill and of its batches.

use crate::domain::batch::BatchStatus;

/// State of a `backfill` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackfillStatus {
    /// A process works on it.
    Running,
    /// An operator wants it stopped, and its process has not done so yet.
    Stopping,
    /// Stopped; it can go on.
    Stopped,
    /// Every batch that it was to run ended well.
    Success,
    /// One did not.
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

    /// The state a column's word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// A process works on it, or did until it died.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Stopping)
    }
}

impl std::fmt::Display for BackfillStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// State of a `backfill_batch` row: what became of one batch in this backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryStatus {
    /// Its turn has not come.
    Pending,
    /// Opened, resumed or taken over, and not ended.
    Open,
    /// The batch ended so.
    Success,
    /// The batch ended so.
    Warning,
    /// The batch ended so.
    Failed,
    /// The batch was stopped by an operator.
    Killed,
    /// Left alone: done already, or not asked for.
    Left,
    /// It could not be run; the message says why.
    Refused,
    /// It waits for a batch of this backfill that did not end well.
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

    /// The state a column's word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Nothing more happens to it in this run of the backfill.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Open)
    }

    /// It was to be run, and did not end well.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Killed | Self::Refused | Self::UpstreamFailed)
    }

    /// What a batch that ended so is in its backfill.
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
