//! What a firing does when the batch before it still runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a firing does when a batch of the same group, opened by an order of its own, still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OverlapPolicy")]
pub enum Overlap {
    /// It waits until that one has ended. Firings that wait go in the order of their planned times.
    #[default]
    Queue,
    /// It is left out, with a row that says why.
    Skip,
    /// It opens its batch beside the other.
    Parallel,
    /// The other is killed; it opens its batch once that has ended.
    Replace,
}

impl Overlap {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Skip, Self::Parallel, Self::Replace];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Skip => "skip",
            Self::Parallel => "parallel",
            Self::Replace => "replace",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is done with a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its batch is opened now.
    Open,
    /// It waits.
    Wait,
    /// It is left out.
    Skip,
    /// What runs is killed, and it waits.
    KillAndWait,
}

/// Whether something is ahead of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing.
    Nothing,
    /// An earlier firing of the same schedule waits for its turn.
    Firing,
    /// A batch of the group runs.
    Batch,
    /// A batch of the group is being killed.
    Dying,
}

/// What a firing with this policy does. A policy that leaves out looks only at what runs: an earlier
/// firing of the same schedule that still waits would have been left out itself.
pub fn decide(policy: Overlap, ahead: Ahead) -> Turn {
    match (policy, ahead) {
        (_, Ahead::Nothing) | (Overlap::Parallel, _) => Turn::Open,
        (Overlap::Skip, Ahead::Batch | Ahead::Dying) => Turn::Skip,
        (Overlap::Replace, Ahead::Batch) => Turn::KillAndWait,
        (Overlap::Queue, Ahead::Firing | Ahead::Batch | Ahead::Dying)
        | (Overlap::Skip, Ahead::Firing)
        | (Overlap::Replace, Ahead::Firing | Ahead::Dying) => Turn::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_in_each_case() {
        use Ahead::{Batch, Dying, Firing, Nothing};
        for (policy, wanted) in [
            (Overlap::Queue, [Turn::Open, Turn::Wait, Turn::Wait, Turn::Wait]),
            (Overlap::Skip, [Turn::Open, Turn::Wait, Turn::Skip, Turn::Skip]),
            (Overlap::Parallel, [Turn::Open; 4]),
            (Overlap::Replace, [Turn::Open, Turn::Wait, Turn::KillAndWait, Turn::Wait]),
        ] {
            let turns = [Nothing, Firing, Batch, Dying].map(|ahead| decide(policy, ahead));
            assert_eq!(turns, wanted, "{policy}");
        }
    }
}
