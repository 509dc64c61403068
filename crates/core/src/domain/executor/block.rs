//! Decides what happens to a run that is requested while an earlier run of the same job has not ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The strategy that an XXL-JOB admin requests for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BlockStrategy {
    /// The run waits until the earlier ones end.
    #[default]
    #[serde(rename = "SERIAL_EXECUTION")]
    Serial,
    /// The run is refused.
    #[serde(rename = "DISCARD_LATER")]
    Discard,
    /// The earlier runs are stopped, and the run waits for their end.
    #[serde(rename = "COVER_EARLY")]
    Cover,
}

/// Whether an earlier run of the job has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Every earlier run has ended.
    Idle,
    /// An earlier run is running or waiting.
    Busy,
}

/// Decision about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDecision {
    /// Accept it; it starts now or after the earlier ones.
    Take,
    /// Refuse it.
    Refuse,
    /// Stop the earlier runs and accept it.
    StopAndTake,
}

impl BlockStrategy {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Serial, Self::Discard, Self::Cover];

    /// XXL-JOB's name of the strategy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serial => "SERIAL_EXECUTION",
            Self::Discard => "DISCARD_LATER",
            Self::Cover => "COVER_EARLY",
        }
    }

    /// Parses a strategy; unknown names mean the first one, as in XXL-JOB.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|s| s.as_str() == word).unwrap_or_default()
    }

    /// Decides about a run.
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
