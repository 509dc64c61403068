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
pub enum OverlapDecision {
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
pub enum PrecedingFiring {
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
pub fn decide(policy: Overlap, ahead: PrecedingFiring) -> OverlapDecision {
    match (policy, ahead) {
        (_, PrecedingFiring::Nothing) | (Overlap::Parallel, _) => OverlapDecision::Open,
        (Overlap::Skip, PrecedingFiring::Batch | PrecedingFiring::Dying) => OverlapDecision::Skip,
        (Overlap::Replace, PrecedingFiring::Batch) => OverlapDecision::KillAndWait,
        (
            Overlap::Queue,
            PrecedingFiring::Firing | PrecedingFiring::Batch | PrecedingFiring::Dying,
        )
        | (Overlap::Skip, PrecedingFiring::Firing)
        | (Overlap::Replace, PrecedingFiring::Firing | PrecedingFiring::Dying) => {
            OverlapDecision::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_in_each_case() {
        use PrecedingFiring::{Batch, Dying, Firing, Nothing};
        for (policy, wanted) in [
            (
                Overlap::Queue,
                [
                    OverlapDecision::Open,
                    OverlapDecision::Wait,
                    OverlapDecision::Wait,
                    OverlapDecision::Wait,
                ],
            ),
            (
                Overlap::Skip,
                [
                    OverlapDecision::Open,
                    OverlapDecision::Wait,
                    OverlapDecision::Skip,
                    OverlapDecision::Skip,
                ],
            ),
            (Overlap::Parallel, [OverlapDecision::Open; 4]),
            (
                Overlap::Replace,
                [
                    OverlapDecision::Open,
                    OverlapDecision::Wait,
                    OverlapDecision::KillAndWait,
                    OverlapDecision::Wait,
                ],
            ),
        ] {
            let turns = [Nothing, Firing, Batch, Dying].map(|ahead| decide(policy, ahead));
            assert_eq!(turns, wanted, "{policy}");
        }
    }
}
