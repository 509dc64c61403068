//! The reasons why an operator's action is refused; each is a sentence for the operator.

use crate::domain::action::OperatorAction;
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionRefusal {
    /// The action is not legal in the state of the job.
    State(JobCode, QueueStatus, OperatorAction),
    /// Only a job on ice can be thawed.
    NotOnIce(JobCode, QueueStatus),
    /// The job is neither on ice nor no-exec.
    IsNormal(JobCode, QueueStatus),
    /// The job is no-exec already.
    IsNoExec(JobCode),
    /// The job has no start time to wait for.
    NoTime(JobCode),
    /// The effect of the job may already exist.
    Unknown(JobCode),
    /// Nothing of the job is running that could be ended.
    NothingRuns(JobCode),
    /// The batch has ended, so no process would start the job.
    Over(JobCode, BatchStatus),
    /// Nothing failed; these jobs are UNKNOWN.
    Nothing(Vec<JobCode>),
    /// The batch is being stopped.
    Stopping,
    /// The batch has no job with this code; with the most similar code that exists.
    NotThere(JobCode, Option<JobCode>),
}

/// Every reason why an action was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusals {
    batch_no: BatchNo,
    group: GroupCode,
    /// At least one reason.
    pub all: Vec<ActionRefusal>,
}

impl Refusals {
    /// The reasons why an action on `batch` was refused.
    pub fn for_batch(batch: &Batch, all: Vec<ActionRefusal>) -> Self {
        let values = &batch.values;
        Self { batch_no: values.batch_no.clone(), group: values.group.clone(), all }
    }

    pub fn single(batch: &Batch, refusal: ActionRefusal) -> Self {
        Self::for_batch(batch, vec![refusal])
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, refusal) in self.all.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            refusal.write_reason(f, &self.batch_no, &self.group)?;
        }
        Ok(())
    }
}

const NOTHING_RUNS: &str = "is UNKNOWN, and nothing of it is known to run still. Look at its data, then: \
                            procession job force-success, force-failure or rerun --rerun-unknown";

impl ActionRefusal {
    fn write_reason(
        &self,
        f: &mut fmt::Formatter<'_>,
        no: &BatchNo,
        group: &GroupCode,
    ) -> fmt::Result {
        match self {
            Self::State(code, QueueStatus::Running, _) => write!(
                f,
                "{code} is RUNNING; kill it first: procession job kill {no} {code} --group {group} \
                 --reason WHY"
            ),
            Self::State(code, QueueStatus::Killing, _) => {
                write!(f, "{code} is being stopped; wait until it is gone")
            }
            Self::State(code, status, action) => {
                let mut legal: Vec<&str> = action.legal_in().map(QueueStatus::as_str).collect();
                legal.dedup();
                let legal = legal.join(", ");
                write!(f, "{code} is {status}; {} is for jobs that are {legal}", action.as_str())
            }
            Self::NotOnIce(code, status) => write!(f, "{code} is {status}, and not on ice"),
            Self::IsNormal(code, status) => {
                write!(f, "{code} is {status}, and neither on ice nor no-exec")
            }
            Self::IsNoExec(code) => write!(f, "{code} is no-exec already"),
            Self::NoTime(code) => write!(
                f,
                "{code} waits for no moment; procession batch why {no} --group {group} says what it \
                 waits for"
            ),
            Self::NothingRuns(code) => write!(f, "{code} {NOTHING_RUNS}"),
            Self::Unknown(code) => write!(
                f,
                "{code} is UNKNOWN: its effect may be there already. Look at its data, then: \
                 --rerun-unknown, or force-success"
            ),
            Self::Over(code, status) => write!(
                f,
                "batch {no} has ended ({status}); to run {code} all the same: procession job rerun \
                 {no} {code} --group {group} --reason WHY"
            ),
            Self::Nothing(unknown) if unknown.is_empty() => {
                write!(
                    f,
                    "nothing in batch {no} of group {group} has failed; nothing to start over"
                )
            }
            Self::Nothing(unknown) => {
                let unknown: Vec<&str> = unknown.iter().map(JobCode::as_str).collect();
                write!(
                    f,
                    "batch {no} of group {group} has only jobs of unknown outcome ({}) left; look at \
                     their data, then: --rerun-unknown",
                    unknown.join(", ")
                )
            }
            Self::Stopping => {
                write!(f, "batch {no} of group {group} is being stopped; wait until it has ended")
            }
            Self::NotThere(code, near) => {
                write!(f, "batch {no} of group {group} has no job {code}")?;
                near.iter().try_for_each(|near| write!(f, "; did you mean {near}?"))
            }
        }
    }
}
