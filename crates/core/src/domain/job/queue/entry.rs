//! A row of `job_queue` and the questions that the engine asks about its state.

use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, NodeId, QueueId};
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::domain::source::tx_class::{IdemKey, KeyForm};
use crate::domain::time::Millis;

/// Message of an attempt whose body was to be stopped and could not be confirmed stopped.
pub const KILL_UNCONFIRMED: &str = "kill unconfirmed";

/// Message of a row that was stopped while the outcome of an earlier attempt was unknown.
pub const NOT_LOOKED_UP: &str =
    "stopped before it could be looked up what became of an earlier try; a rerun looks it up";

/// A `job_queue` row as the dispatcher reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// Primary key.
    pub queue_id: QueueId,
    /// Batch of the row.
    pub batch_id: BatchId,
    /// Job of the row.
    pub job_code: JobCode,
    /// Current state.
    pub status: QueueStatus,
    /// Retries of the current run, 0 during its first attempt; a rerun resets it to 0.
    pub try_count: u32,
    /// Attempts over all runs; numbers the attempts in the logs and is never reset.
    pub attempt: u32,
    /// The node that holds the row while it runs.
    pub owner: Option<NodeId>,
    /// Earliest start.
    pub not_before: Option<Millis>,
    /// Start of the current or last attempt.
    pub start_time: Option<Millis>,
    /// End of the last attempt.
    pub end_time: Option<Millis>,
    /// Error of the last attempt, when it did not succeed; or who changed the row by hand, and why.
    pub error_message: Option<String>,
    /// The operator's run mode (skip, hold, kill …), in place of a normal run.
    pub run_mode: Option<RunMode>,
    /// Priority set by an operator in this batch; none: the definition's.
    pub priority: Option<i32>,
    /// Number of the run, from 1: the last part of the idempotency key. A rerun increments it,
    /// except for a job of unknown outcome, because the outcome is looked up under the old key.
    pub run_no: u32,
    /// Number of consecutive worker crashes while the job ran.
    pub crash_count: u32,
    /// Consecutive attempts of unknown outcome that the next attempt will look up; 0 when there are
    /// none.
    pub unresolved: u32,
    /// What the running attempt waits for before its body starts, in words.
    pub waits_on: Option<String>,
    /// How the idempotency key names the batch.
    pub key_scope: KeyScope,
    /// Whether the holder knows about the row: a row assigned by another node must be accepted
    /// first.
    pub taken: Acknowledgement,
}

/// The scope in which the batch number and job code of an idempotency key are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// Within a group, which the key includes.
    Group,
    /// Within the installation: a row written before schema version 19.
    Installation,
}

/// Whether the process that holds a row knows about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It knows, so the body may have begun.
    Yes,
    /// The row was assigned and not accepted yet: nothing of the body has begun.
    NotYet,
}

impl QueueEntry {
    /// A newly generated row: waiting, without any history.
    pub fn generated(queue_id: QueueId, batch_id: BatchId, job_code: JobCode) -> Self {
        Self {
            queue_id,
            batch_id,
            job_code,
            status: QueueStatus::Pending,
            try_count: 0,
            attempt: 0,
            owner: None,
            not_before: None,
            start_time: None,
            end_time: None,
            error_message: None,
            run_mode: None,
            priority: None,
            run_no: 1,
            crash_count: 0,
            unresolved: 0,
            waits_on: None,
            key_scope: KeyScope::Group,
            taken: Acknowledgement::Yes,
        }
    }

    /// The idempotency key of the row in the batch of this group and number.
    pub fn idem_key(&self, installation: &str, group: &GroupCode, batch_no: &BatchNo) -> IdemKey {
        let form = match self.key_scope {
            KeyScope::Group => KeyForm::WithGroup(group, batch_no),
            KeyScope::Installation => KeyForm::WithoutGroup(batch_no),
        };
        IdemKey::for_run(installation, form, &self.job_code, self.run_no)
    }

    /// Whether the row is treated as absent.
    pub fn is_on_ice(&self) -> bool {
        self.status == QueueStatus::Skipped && self.run_mode == Some(RunMode::Ice)
    }

    /// Whether an operator has requested a kill of the running body; other writers must then not change the message of
    /// the row.
    pub fn is_wanted_dead(&self) -> bool {
        self.status == QueueStatus::Killing && self.error_message.is_some()
    }

    /// Whether the row waits while the outcome of an earlier attempt is unknown: a stop at this
    /// point must not be reported as "did nothing".
    pub fn waits_unresolved(&self) -> bool {
        let waits = matches!(
            self.status,
            QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued | QueueStatus::RetryWait
        );
        waits && self.unresolved > 0
    }

    /// Whether the row is held because its workers died; an operator's hold records the operator
    /// instead.
    pub fn is_parked(&self) -> bool {
        let said = self.error_message.as_deref().unwrap_or_default();
        self.status == QueueStatus::Held && self.crash_count > 0 && !said.starts_with("held by ")
    }

    /// Whether the body was to be stopped and could not be confirmed stopped.
    pub fn may_still_run(&self) -> bool {
        let said = self.error_message.as_deref().unwrap_or_default();
        self.status == QueueStatus::Unknown && said.contains(KILL_UNCONFIRMED)
    }
}
