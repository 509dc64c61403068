//! What becomes of a run that is asked for while an earlier one of the same job is not over.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What an admin of XXL-JOB wants then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BlockStrategy {
    /// It waits for its turn.
    #[default]
    #[serde(rename = "SERIAL_EXECUTION")]
    Serial,
    /// It is refused.
    #[serde(rename = "DISCARD_LATER")]
    Discard,
    /// The earlier ones are stopped, and it waits until they are.
    #[serde(rename = "COVER_EARLY")]
    Cover,
}

/// Whether an earlier run of the job is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// None.
    Idle,
    /// One runs or waits.
    Busy,
}

/// What is done with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDecision {
    /// It waits for its turn, which may be now.
    Take,
    /// It is refused.
    Refuse,
    /// What is before it is stopped, and it waits.
    StopAndTake,
}

impl BlockStrategy {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Serial, Self::Discard, Self::Cover];

    /// XXL-JOB's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serial => "SERIAL_EXECUTION",
            Self::Discard => "DISCARD_LATER",
            Self::Cover => "COVER_EARLY",
        }
    }

    /// The strategy of a word; words that nobody knows mean the first, as in XXL-JOB.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|s| s.as_str() == word).unwrap_or_default()
    }

    /// What becomes of a run.
    pub fn decide(self, busy: Busy) -> BlockDecision {
        match (self, busy) {
            (_, Busy::Idle) | (Self::Serial, Busy::Busy) => BlockDecision::Take,
            (Self::Discard, Busy::Busy) => BlockDecision::Refuse,
            (Self::Cover, Busy::Busy) => BlockDecision::StopAndTake,
        }
    }
}

impl fmt::Display for BlockStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_by_what_is_before_it() {
        for (word, idle, busy) in [
            ("SERIAL_EXECUTION", BlockDecision::Take, BlockDecision::Take),
            ("DISCARD_LATER", BlockDecision::Take, BlockDecision::Refuse),
            ("COVER_EARLY", BlockDecision::Take, BlockDecision::StopAndTake),
            ("CONCURRENT", BlockDecision::Take, BlockDecision::Take),
            ("", BlockDecision::Take, BlockDecision::Take),
        ] {
            let strategy = BlockStrategy::parse(word);
            assert_eq!(
                (strategy.decide(Busy::Idle), strategy.decide(Busy::Busy)),
                (idle, busy),
                "{word}"
            );
        }
    }
}
