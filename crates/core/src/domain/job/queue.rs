//! One job in one batch (`job_queue`), with its states and the legal transitions.

mod entry;

pub use entry::{Acknowledgement, KILL_UNCONFIRMED, KeyScope, NOT_LOOKED_UP, QueueEntry};

use serde::{Serialize, Serializer};

/// State of a `job_queue` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueStatus {
    /// Waits for parents or for its start time.
    Pending,
    /// Held by an operator.
    Held,
    /// Ready: a one-shot task that waits for a slot.
    Queued,
    /// A worker runs it.
    Running,
    /// An attempt failed; the next one waits for its time.
    RetryWait,
    /// Being stopped; the server session or process may still be alive.
    Killing,
    /// Succeeded.
    Success,
    /// Succeeded with warnings; counts as success.
    Warning,
    /// The last permitted attempt failed.
    Failed,
    /// The last permitted attempt timed out.
    Timeout,
    /// Stopped by an operator.
    Killed,
    /// Skipped by an operator; its children run.
    Skipped,
    /// On a branch that was not taken; a child is not taken either if none of its parents were. The status column says
    /// SKIPPED for both, and `skip_kind` tells which.
    NotTaken,
    /// Never started, because an upstream job failed.
    UpstreamFailed,
    /// Declared successful by an operator; counts as success.
    Forced,
    /// The outcome of the body could not be determined.
    Unknown,
}

impl QueueStatus {
    /// Every state, in documentation order.
    pub const ALL: [Self; 16] = [
        Self::Pending,
        Self::Held,
        Self::Queued,
        Self::Running,
        Self::RetryWait,
        Self::Killing,
        Self::Success,
        Self::Warning,
        Self::Failed,
        Self::Timeout,
        Self::Killed,
        Self::Skipped,
        Self::NotTaken,
        Self::UpstreamFailed,
        Self::Forced,
        Self::Unknown,
    ];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Held => "HELD",
            Self::Queued => "QUEUED",
            Self::Running => "RUNNING",
            Self::RetryWait => "RETRY_WAIT",
            Self::Killing => "KILLING",
            Self::Success => "SUCCESS",
            Self::Warning => "WARNING",
            Self::Failed => "FAILED",
            Self::Timeout => "TIMEOUT",
            Self::Killed => "KILLED",
            Self::Skipped | Self::NotTaken => "SKIPPED",
            Self::UpstreamFailed => "UPSTREAM_FAILED",
            Self::Forced => "FORCED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Parses the word in the `status` column; SKIPPED means the operator's skip until `skip_kind` says otherwise.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Parses the columns `status` and `skip_kind` together.
    pub fn stored(word: &str, skip_kind: Option<&str>) -> Option<Self> {
        match Self::parse(word) {
            Some(Self::Skipped) if skip_kind == Self::NotTaken.skip_kind() => Some(Self::NotTaken),
            status => status,
        }
    }

    /// The name in the state diagram, where one status word stands for two states.
    pub fn drawn_as(self) -> &'static str {
        match self {
            Self::NotTaken => "SKIPPED_BRANCH",
            _ => self.as_str(),
        }
    }

    /// The word in the column `skip_kind`.
    pub fn skip_kind(self) -> Option<&'static str> {
        match self {
            Self::Skipped => Some("operator"),
            Self::NotTaken => Some("branch"),
            _ => None,
        }
    }

    /// Whether the state is final unless an operator acts.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Held | Self::Queued => false,
            Self::Running | Self::RetryWait | Self::Killing => false,
            Self::Success | Self::Warning | Self::Failed | Self::Timeout | Self::Killed => true,
            Self::Skipped | Self::NotTaken | Self::UpstreamFailed => true,
            Self::Forced | Self::Unknown => true,
        }
    }

    /// Whether children with the rule `all success` may run.
    pub fn lets_children_run(self) -> bool {
        matches!(self, Self::Success | Self::Warning | Self::Forced | Self::Skipped)
    }

    /// Whether the state is final and unsuccessful: a child that requires success can never run.
    pub fn blocks_children(self) -> bool {
        self.is_final() && !self.lets_children_run() && self != Self::NotTaken
    }
}

impl Serialize for QueueStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl std::fmt::Display for QueueStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// An event in the life of a job in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueEvent {
    /// The job is ready, but no slot is free.
    Enqueue,
    /// A worker claims it.
    Claim,
    /// The body succeeded.
    Succeed,
    /// The body succeeded with warnings.
    Warn,
    /// An attempt failed, and another is permitted.
    RetryLater,
    /// The last permitted attempt failed.
    Fail,
    /// The last permitted attempt timed out.
    TimeOut,
    /// The effect of the body cannot be determined.
    LoseTrack,
    /// The worker died, and the body may be started again.
    Orphan,
    /// The worker died each time the job ran; it is held until an operator releases it.
    Park,
    /// The body is being stopped, after a time-out or by an operator.
    BeginKill,
    /// An operator requests another stop of a body that could not be confirmed stopped.
    KillAgain,
    /// It was stopped, or no longer needs to start.
    Kill,
    /// An upstream job failed.
    FailUpstream,
    /// Its branch is not taken.
    LeaveOut,
    /// An operator holds it.
    Hold,
    /// An operator releases it.
    Release,
    /// An operator skips it.
    Skip,
    /// An operator declares it successful.
    ForceSuccess,
    /// An operator declares it failed.
    ForceFailure,
    /// An operator reruns it.
    Rerun,
    /// An operator reopened a dependency, so it waits again.
    Recall,
}

impl QueueEvent {
    /// Every event, in documentation order.
    pub const ALL: [Self; 22] = [
        Self::Enqueue,
        Self::Claim,
        Self::Succeed,
        Self::Warn,
        Self::RetryLater,
        Self::Fail,
        Self::TimeOut,
        Self::LoseTrack,
        Self::Orphan,
        Self::Park,
        Self::BeginKill,
        Self::KillAgain,
        Self::Kill,
        Self::FailUpstream,
        Self::LeaveOut,
        Self::Hold,
        Self::Release,
        Self::Skip,
        Self::ForceSuccess,
        Self::ForceFailure,
        Self::Rerun,
        Self::Recall,
    ];
}

/// An event that is not legal in a state: a bug of ours, or an operator's action that came too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {from} cannot take the event {event:?}")]
pub struct Illegal {
    /// The current state.
    pub from: QueueStatus,
    /// The event.
    pub event: QueueEvent,
}

impl QueueStatus {
    /// The state after `event`: the complete state machine of a job. `docs/state-machine.md` is generated from this
    /// function.
    pub fn after(self, event: QueueEvent) -> Result<Self, Illegal> {
        use QueueStatus as S;
        let next = match (self, event) {
            (S::Pending, QueueEvent::Enqueue) => S::Queued,
            (S::Pending | S::Queued | S::RetryWait, QueueEvent::Claim) => S::Running,

            // A body may end by itself before the stop reaches it; its real outcome is recorded then.
            (S::Running | S::Killing, QueueEvent::Succeed) => S::Success,
            (S::Running | S::Killing, QueueEvent::Warn) => S::Warning,
            (S::Running | S::Killing, QueueEvent::RetryLater) => S::RetryWait,
            (S::Running | S::Killing, QueueEvent::Fail) => S::Failed,
            (S::Running | S::Killing, QueueEvent::TimeOut) => S::Timeout,
            (S::Running | S::Killing, QueueEvent::LoseTrack) => S::Unknown,
            // Stopped before the outcome of an earlier attempt could be looked up.
            (S::Pending | S::Held | S::Queued | S::RetryWait, QueueEvent::LoseTrack) => S::Unknown,
            (S::Running | S::Killing, QueueEvent::Orphan) => S::RetryWait,
            (S::Running | S::Killing, QueueEvent::Park) => S::Held,
            (S::Running, QueueEvent::BeginKill) => S::Killing,
            (S::Unknown, QueueEvent::KillAgain) => S::Killing,

            (S::Killing, QueueEvent::Kill) => S::Killed,
            (S::Pending | S::Held | S::Queued | S::RetryWait, QueueEvent::Kill) => S::Killed,
            (S::Pending | S::Held, QueueEvent::FailUpstream) => S::UpstreamFailed,
            // Only `fail_fast` affects jobs that were ready.
            (S::Queued | S::RetryWait, QueueEvent::FailUpstream) => S::UpstreamFailed,
            (S::Pending | S::Held, QueueEvent::LeaveOut) => S::NotTaken,

            (S::Pending | S::Queued | S::RetryWait, QueueEvent::Hold) => S::Held,
            (S::Held, QueueEvent::Release) => S::Pending,
            (S::Pending | S::Held | S::Queued | S::RetryWait, QueueEvent::Skip) => S::Skipped,
            (
                S::Failed | S::Timeout | S::Killed | S::UpstreamFailed | S::Unknown,
                QueueEvent::Skip,
            ) => S::Skipped,
            (
                S::Failed | S::Timeout | S::Killed | S::UpstreamFailed | S::Unknown,
                QueueEvent::ForceSuccess,
            ) => S::Forced,
            (
                S::Pending | S::Held | S::Queued | S::RetryWait | S::Unknown,
                QueueEvent::ForceFailure,
            ) => S::Failed,
            (from, QueueEvent::Rerun) if from.is_final() => S::Pending,
            (S::Queued | S::RetryWait, QueueEvent::Recall) => S::Pending,
            (from, event) => return Err(Illegal { from, event }),
        };
        Ok(next)
    }
}

/// An operator's instruction in place of a normal run, for one batch or for every new one (`job_def.run_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunMode {
    /// Treated as absent: it does not run, and no job waits for it.
    Ice,
    /// Marked successful when its turn comes, without running its body.
    NoExec,
    /// Runs without waiting for its parents.
    NoWait,
}

impl RunMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Ice, Self::NoExec, Self::NoWait];

    /// The word in the `run_mode` columns.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ice => "ICE",
            Self::NoExec => "NOEXEC",
            Self::NoWait => "NOWAIT",
        }
    }

    /// Parses the word in a `run_mode` column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.as_str() == word)
    }
}

impl std::fmt::Display for RunMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for status in QueueStatus::ALL.into_iter().filter(|s| *s != QueueStatus::NotTaken) {
            assert_eq!(QueueStatus::parse(status.as_str()), Some(status));
        }
        // Two states share the word; `skip_kind` distinguishes them.
        assert_eq!(QueueStatus::NotTaken.as_str(), QueueStatus::Skipped.as_str());
        assert_ne!(QueueStatus::NotTaken.skip_kind(), QueueStatus::Skipped.skip_kind());
    }

    #[test]
    fn final_is_final_but_for_an_operator() {
        let operator = [
            QueueEvent::Skip,
            QueueEvent::ForceSuccess,
            QueueEvent::ForceFailure,
            QueueEvent::Rerun,
            QueueEvent::KillAgain,
        ];
        for status in QueueStatus::ALL.into_iter().filter(|s| s.is_final()) {
            for event in QueueEvent::ALL.into_iter().filter(|e| !operator.contains(e)) {
                assert!(status.after(event).is_err(), "{status} must not take {event:?}");
            }
            assert_eq!(status.after(QueueEvent::Rerun), Ok(QueueStatus::Pending));
        }
    }

    #[test]
    fn every_state_that_is_not_final_has_an_exit() {
        for status in QueueStatus::ALL.into_iter().filter(|s| !s.is_final()) {
            let mut seen = vec![status];
            let mut open = vec![status];
            while let Some(at) = open.pop() {
                for next in QueueEvent::ALL.into_iter().filter_map(|e| at.after(e).ok()) {
                    if !seen.contains(&next) {
                        seen.push(next);
                        open.push(next);
                    }
                }
            }
            assert!(seen.contains(&QueueStatus::Success), "{status} can never succeed");
            assert!(seen.contains(&QueueStatus::Killed), "{status} can never be stopped");
        }
    }

    #[test]
    fn a_body_runs_only_after_a_claim() {
        for status in QueueStatus::ALL {
            for event in QueueEvent::ALL {
                if status.after(event) == Ok(QueueStatus::Running) {
                    assert_eq!(event, QueueEvent::Claim);
                }
            }
        }
    }
}
