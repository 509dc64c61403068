//! What processes hint to each other: that something was written which another may be waiting for.

use crate::store::Tx;
use anyhow::{Context as _, Result};

pub use crate::db::hint::{Ear, HintScope, ReceivedHint};

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintTopic {
    /// A schedule or a firing.
    Trigger,
    /// A batch was opened or given back, or an operator has changed one.
    Batch,
    /// A job was placed on a node, or a report was written.
    Work,
    /// An executor has told the end of a run.
    Run,
}

impl HintTopic {
    /// All of them, in the order of their places.
    pub const ALL: [Self; 4] = [Self::Trigger, Self::Batch, Self::Work, Self::Run];

    /// The word between processes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Batch => "batch",
            Self::Work => "work",
            Self::Run => "run",
        }
    }

    /// Its place in `ALL`.
    pub fn place(self) -> usize {
        self as usize
    }

    /// The topic of a word; none of a newer version's.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == word)
    }
}

/// Hints at the commit that this was written. A hint that is lost costs time and never work.
pub async fn send_hint(tx: &mut Tx, topic: HintTopic) -> Result<()> {
    tx.send_hint(topic.as_str()).await.context("hint to other processes")
}
