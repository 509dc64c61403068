//! The actions of an operator on jobs of a batch, and the states in which each is legal.

pub mod action_effects;
pub mod action_plan;
pub mod refusal;
pub mod rerun;

use crate::domain::access::Permission;
use crate::domain::action::rerun::{RerunScope, UnknownJobs};
use crate::domain::job::queue::{QueueEvent, QueueStatus, RunMode};

/// Whether a job that is started by hand waits for its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// It waits for its parents, but not for its start time.
    Wait,
    /// It does not wait for its parents.
    Ignore,
}

/// An action of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAction {
    /// Hold jobs until they are released.
    Hold,
    /// Release held jobs.
    Release,
    /// Skip jobs: their children run.
    Skip,
    /// Treat jobs as absent from the graph: their children do not wait for them.
    Ice,
    /// Undo `Ice`.
    Thaw,
    /// Mark jobs as successful when their turn comes, without running them.
    NoExec,
    /// Undo ice and no-exec.
    Normal,
    /// Declare jobs succeeded.
    ForceSuccess,
    /// Declare jobs failed.
    ForceFailure,
    /// Stop jobs.
    Kill,
    /// Change the priority of waiting jobs.
    Priority(i32),
    /// Start jobs before their start time.
    StartNow(Parents),
    /// Rerun jobs.
    Rerun(RerunScope, UnknownJobs),
}

impl OperatorAction {
    /// The name on the command line and in `audit_log`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Skip => "skip",
            Self::Ice => "ice",
            Self::Thaw => "thaw",
            Self::NoExec => "no-exec",
            Self::Normal => "normal",
            Self::ForceSuccess => "force-success",
            Self::ForceFailure => "force-failure",
            Self::Kill => "kill",
            Self::Priority(_) => "priority",
            Self::StartNow(_) => "start-now",
            Self::Rerun(..) => "rerun",
        }
    }

    /// Past tense, for the message in the row.
    pub fn past_tense(self) -> &'static str {
        match self {
            Self::Hold => "held",
            Self::Release => "released",
            Self::Skip => "skipped",
            Self::Ice => "put on ice",
            Self::Thaw => "taken off the ice",
            Self::NoExec => "set to no-exec",
            Self::Normal => "set to normal",
            Self::ForceSuccess => "forced to success",
            Self::ForceFailure => "forced to failure",
            Self::Kill => "killed",
            Self::Priority(_) => "given another priority",
            Self::StartNow(_) => "started at once",
            Self::Rerun(..) => "started over",
        }
    }

    /// The required permission: to run, or to record something that did not happen. Rerunning a job
    /// whose effect may exist already asserts that it does not.
    pub fn permission(self) -> Permission {
        match self {
            Self::Hold | Self::Release | Self::Thaw | Self::Normal => Permission::Run,
            Self::Kill | Self::Priority(_) | Self::StartNow(Parents::Wait) => Permission::Run,
            Self::Rerun(_, UnknownJobs::Leave) => Permission::Run,
            Self::Skip | Self::Ice | Self::NoExec => Permission::Force,
            Self::ForceSuccess | Self::ForceFailure => Permission::Force,
            Self::StartNow(Parents::Ignore) => Permission::Force,
            Self::Rerun(_, UnknownJobs::Rerun) => Permission::Force,
        }
    }

    /// The event that the action causes in a named job's state; `None` when it changes no state.
    pub fn event(self, status: QueueStatus) -> Option<QueueEvent> {
        match self {
            Self::Hold => Some(QueueEvent::Hold),
            Self::Release => Some(QueueEvent::Release),
            Self::Skip | Self::Ice => Some(QueueEvent::Skip),
            Self::Thaw | Self::Rerun(..) => Some(QueueEvent::Rerun),
            Self::ForceSuccess => Some(QueueEvent::ForceSuccess),
            Self::ForceFailure => Some(QueueEvent::ForceFailure),
            Self::Kill => match status {
                QueueStatus::Running => Some(QueueEvent::BeginKill),
                // The job is already being stopped; the request is recorded once more.
                QueueStatus::Killing => None,
                QueueStatus::Unknown => Some(QueueEvent::KillAgain),
                QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => {
                    Some(QueueEvent::Kill)
                }
                QueueStatus::RetryWait | QueueStatus::Success | QueueStatus::Warning => {
                    Some(QueueEvent::Kill)
                }
                QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => {
                    Some(QueueEvent::Kill)
                }
                QueueStatus::Skipped | QueueStatus::NotTaken => Some(QueueEvent::Kill),
                QueueStatus::UpstreamFailed | QueueStatus::Forced => Some(QueueEvent::Kill),
            },
            Self::StartNow(Parents::Ignore) if status == QueueStatus::UpstreamFailed => {
                Some(QueueEvent::Rerun)
            }
            Self::NoExec | Self::Normal | Self::Priority(_) | Self::StartNow(_) => None,
        }
    }

    /// The states in which the action is legal for a named job.
    pub fn legal_in(self) -> impl Iterator<Item = QueueStatus> {
        use QueueStatus as S;
        let waits = |s: S| matches!(s, S::Pending | S::Held | S::Queued | S::RetryWait);
        let takes = move |s: S| self.event(s).is_some_and(|event| s.after(event).is_ok());
        S::ALL.into_iter().filter(move |s| match self {
            Self::Thaw => *s == S::Skipped,
            Self::Normal => waits(*s) || *s == S::Skipped,
            Self::NoExec | Self::Priority(_) => waits(*s),
            Self::StartNow(Parents::Wait) => waits(*s) && *s != S::Held,
            Self::StartNow(Parents::Ignore) => {
                waits(*s) && *s != S::Held || *s == S::UpstreamFailed
            }
            Self::Kill if *s == S::Killing => true,
            Self::Hold | Self::Release | Self::Skip | Self::Ice | Self::ForceSuccess => takes(*s),
            Self::ForceFailure | Self::Kill | Self::Rerun(..) => takes(*s),
        })
    }
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowChange {
    /// Its state only.
    State,
    /// Back to PENDING, with the attempt count reset.
    StartOver,
    /// Its run mode.
    Mode(Option<RunMode>),
    /// Its priority.
    Priority(i32),
    /// It no longer waits for its start time.
    NoTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_run_is_one_thing_and_to_say_what_did_not_happen_another() {
        use Permission::{Force, Run};
        for (action, needed) in [
            (OperatorAction::Hold, Run),
            (OperatorAction::Release, Run),
            (OperatorAction::Thaw, Run),
            (OperatorAction::Normal, Run),
            (OperatorAction::Kill, Run),
            (OperatorAction::Priority(3), Run),
            (OperatorAction::StartNow(Parents::Wait), Run),
            (OperatorAction::StartNow(Parents::Ignore), Force),
            (OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave), Run),
            (OperatorAction::Rerun(RerunScope::Downstream, UnknownJobs::Leave), Run),
            (OperatorAction::Rerun(RerunScope::Upstream, UnknownJobs::Leave), Run),
            (OperatorAction::Rerun(RerunScope::FromFailure, UnknownJobs::Leave), Run),
            (OperatorAction::Rerun(RerunScope::These, UnknownJobs::Rerun), Force),
            (OperatorAction::Skip, Force),
            (OperatorAction::Ice, Force),
            (OperatorAction::NoExec, Force),
            (OperatorAction::ForceSuccess, Force),
            (OperatorAction::ForceFailure, Force),
        ] {
            assert_eq!(action.permission(), needed, "{action:?}");
        }
    }
}
