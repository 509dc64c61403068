//! A row of `job_queue`, and what it says of its body.

use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, NodeId, QueueId};
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::domain::source::tx_class::{IdemKey, KeyForm};
use crate::domain::time::Millis;

/// How a try says that its body was to be stopped and could not be proven gone.
pub const KILL_UNCONFIRMED: &str = "kill unconfirmed";

/// What a row says that was stopped while the outcome of an earlier try was open.
pub const NOT_LOOKED_UP: &str =
    "stopped before it could be looked up what became of an earlier try; a rerun looks it up";

/// A `job_queue` row as the dispatcher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// Key of the row.
    pub queue_id: QueueId,
    /// Its batch.
    pub batch_id: BatchId,
    /// Its job.
    pub job_code: JobCode,
    /// Its state.
    pub status: QueueStatus,
    /// Retries of the present run, 0 during the first attempt; a rerun starts it at 0 again.
    pub try_count: u32,
    /// Starts ever, over all runs; numbers the tries in the logs and is never reset.
    pub attempt: u32,
    /// The process that holds it while it runs.
    pub owner: Option<NodeId>,
    /// It is not started before this moment.
    pub not_before: Option<Millis>,
    /// Start of the present or last try.
    pub start_time: Option<Millis>,
    /// End of the last try.
    pub end_time: Option<Millis>,
    /// What the last try said, when it did not end well; or who changed the row by hand, and why.
    pub error_message: Option<String>,
    /// What an operator wants with it in place of running it.
    pub run_mode: Option<RunMode>,
    /// An operator's priority for it in this batch; its definition's otherwise.
    pub priority: Option<i32>,
    /// Which run this is, counted from 1: what its idempotency key ends with. A rerun begins the next,
    /// but not of a job whose outcome is unknown, for what became of it is found by its key.
    pub run_no: u32,
    /// How many workers in a row died while it ran.
    pub crash_count: u32,
    /// Tries in a row whose outcome is open and will be looked up by the next; 0 when none is.
    pub unresolved: u32,
    /// What its running try waits for before its body, in words.
    pub waits_on: Option<String>,
    /// How its idempotency key names the batch.
    pub key_scope: KeyScope,
    /// Whether the process that holds it knows: one that was given it by another takes it first.
    pub taken: Acknowledgement,
}

/// Where the batch number and the job code that an idempotency key names are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// Within a group, which the key names too.
    Group,
    /// In the installation: a row of a version before 19 of the schema.
    Installation,
}

/// Whether the process that holds a row knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It does, so its body may have begun.
    Yes,
    /// It was given the row and has not taken it yet: nothing of its body has begun.
    NotYet,
}

impl QueueEntry {
    /// A row as it is generated: it waits, and nothing has happened to it.
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

    /// Its idempotency key, as a row of the batch of this group and number.
    pub fn idem_key(&self, installation: &str, group: &GroupCode, batch_no: &BatchNo) -> IdemKey {
        let form = match self.key_scope {
            KeyScope::Group => KeyForm::WithGroup(group, batch_no),
            KeyScope::Installation => KeyForm::WithoutGroup(batch_no),
        };
        IdemKey::for_run(installation, form, &self.job_code, self.run_no)
    }

    /// Whether it is treated as absent.
    pub fn is_on_ice(&self) -> bool {
        self.status == QueueStatus::Skipped && self.run_mode == Some(RunMode::Ice)
    }

    /// Whether an operator wants its running body stopped: nobody else leaves a message in a row
    /// that is being stopped.
    pub fn is_wanted_dead(&self) -> bool {
        self.status == QueueStatus::Killing && self.error_message.is_some()
    }

    /// Whether it waits while the outcome of an earlier try is open: who stops it now cannot say that
    /// it did nothing.
    pub fn waits_unresolved(&self) -> bool {
        let waits = matches!(
            self.status,
            QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued | QueueStatus::RetryWait
        );
        waits && self.unresolved > 0
    }

    /// Whether it is held because its workers died, and not by an operator, whose hold says so.
    pub fn is_parked(&self) -> bool {
        let said = self.error_message.as_deref().unwrap_or_default();
        self.status == QueueStatus::Held && self.crash_count > 0 && !said.starts_with("held by ")
    }

    /// Whether its body was to be stopped and could not be proven gone.
    pub fn may_still_run(&self) -> bool {
        let said = self.error_message.as_deref().unwrap_or_default();
        self.status == QueueStatus::Unknown && said.contains(KILL_UNCONFIRMED)
    }
}
