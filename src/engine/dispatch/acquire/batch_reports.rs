//! Reports of a serving process about its batches.

use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::time::Millis;

/// One report about a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub at: Millis,
    pub batch_no: BatchNo,
    pub group: GroupCode,
    pub what: BatchOutcome,
}

/// What happened to a batch in a serving process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// Claimed: no process owned it.
    Taken,
    /// Claimed: its owner is dead.
    TakenOver,
    /// It ended.
    Ended(BatchStatus),
    /// Released, because this process shuts down.
    GivenBack,
    /// Another process owns it now.
    Lost,
    /// Excluded and released for a while, for this reason.
    CastOut(String),
}

impl BatchOutcome {
    /// The value in machine-readable output.
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
