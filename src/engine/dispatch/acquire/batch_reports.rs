//! What a process that serves tells of its batches.

use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::time::Millis;

/// What a process that serves has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// When.
    pub at: Millis,
    /// Which batch.
    pub batch_no: BatchNo,
    /// Of which group.
    pub group: GroupCode,
    /// What became of it.
    pub what: BatchOutcome,
}

/// What became of a batch in the hands of a process that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It was taken: nobody had it.
    Taken,
    /// It was taken: the process that had it is dead.
    TakenOver,
    /// It ended.
    Ended(BatchStatus),
    /// It is nobody's again, because this process leaves.
    GivenBack,
    /// Another process has it now.
    Lost,
    /// It cannot be gone on with here, for this reason; it is nobody's for a while.
    CastOut(String),
}

impl BatchOutcome {
    /// Its word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::TakenOver => "taken_over",
            Self::Ended(_) => "ended",
            Self::GivenBack => "given_back",
            Self::Lost => "lost",
            Self::CastOut(_) => "cast_out",
        }
    }
}
