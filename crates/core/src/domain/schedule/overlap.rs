//! What a firing does when the previous batch is still running.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Policy of a firing when a batch of the same group, opened by a request of its own, is still
/// running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OverlapPolicy")]
pub enum Overlap {
    /// Wait until that batch has ended. Waiting firings are executed in the order of their planned
    /// times.
    #[default]
    Queue,
    /// Skip the firing, with a row that gives the reason.
    Skip,
    /// Open the batch beside the running one.
    Parallel,
    /// Kill the running batch and open the new one once it has ended.
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

/// The decision about a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapDecision {
    /// Open its batch now.
    Open,
    /// Wait.
    Wait,
    /// Skip the firing.
    Skip,
    /// Kill the running batch, and wait.
    KillAndWait,
}

/// What precedes a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecedingFiring {
    /// Nothing.
    Nothing,
    /// An earlier firing of the same schedule is waiting.
    Firing,
    /// A batch of the group is running.
    Batch,
    /// A batch of the group is being killed.
    Dying,
}

/// The decision about a firing with this policy. A skipping policy considers only running batches:
/// an earlier firing of the same schedule that still waits would have been skipped itself.
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
