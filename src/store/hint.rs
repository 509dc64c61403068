//! Hints between processes: wake-ups about rows that another process may be waiting for.

use crate::store::Tx;
use anyhow::{Context as _, Result};

pub use crate::db::hint::{Ear, HintScope, ReceivedHint};

/// The topic of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintTopic {
    /// A schedule or a firing.
    Trigger,
    /// A batch was opened, released, or changed by an operator.
    Batch,
    /// A job was given to a node, or a report was written.
    Work,
    /// An executor has reported the end of a run.
    Run,
}

impl HintTopic {
    /// All topics, in the order of `place`.
    pub const ALL: [Self; 4] = [Self::Trigger, Self::Batch, Self::Work, Self::Run];

    /// The name sent between processes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Batch => "batch",
            Self::Work => "work",
            Self::Run => "run",
        }
    }

    /// Its index in `ALL`.
    pub fn place(self) -> usize {
        self as usize
    }

    /// Parses a name; `None` for topics of newer versions.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == word)
    }
}

/// Sends a hint with the commit of this transaction. A lost hint costs time, never work.
pub async fn send_hint(tx: &mut Tx, topic: HintTopic) -> Result<()> {
    tx.send_hint(topic.as_str()).await.context("hint to other processes")
}
