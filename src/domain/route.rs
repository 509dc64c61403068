//! Which of its executors a run goes to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How an executor is chosen; the names are XXL-JOB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RouteStrategy {
    /// The first address in the alphabet.
    #[default]
    First,
    /// The last.
    Last,
    /// Each in its turn.
    Round,
    /// Any.
    Random,
    /// The same for the same job, and for most jobs also when another comes or goes.
    ConsistentHash,
    /// The one that this job used least often in the last day.
    LeastFrequentlyUsed,
    /// The one that this job used the longest time ago.
    LeastRecentlyUsed,
    /// The first that answers.
    Failover,
    /// The first that does not run this job.
    Busyover,
    /// All of them, each a part.
    ShardingBroadcast,
}

impl RouteStrategy {
    /// Every strategy.
    pub const ALL: [Self; 10] = [
        Self::First,
        Self::Last,
        Self::Round,
        Self::Random,
        Self::ConsistentHash,
        Self::LeastFrequentlyUsed,
        Self::LeastRecentlyUsed,
        Self::Failover,
        Self::Busyover,
        Self::ShardingBroadcast,
    ];

    /// XXL-JOB's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "FIRST",
            Self::Last => "LAST",
            Self::Round => "ROUND",
            Self::Random => "RANDOM",
            Self::ConsistentHash => "CONSISTENT_HASH",
            Self::LeastFrequentlyUsed => "LEAST_FREQUENTLY_USED",
            Self::LeastRecentlyUsed => "LEAST_RECENTLY_USED",
            Self::Failover => "FAILOVER",
            Self::Busyover => "BUSYOVER",
            Self::ShardingBroadcast => "SHARDING_BROADCAST",
        }
    }

    /// The strategy of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

impl fmt::Display for RouteStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
