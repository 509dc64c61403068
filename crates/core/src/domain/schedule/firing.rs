//! A firing: one planned time of one schedule, and its state.

use crate::domain::id::{BatchId, NodeId};
use crate::domain::time::Millis;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Primary key of a `job_trigger` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerId(pub i64);

/// Primary key of a `job_firing` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FiringId(pub i64);

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
        }

        impl $type {
            /// Every variant.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in rows and JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Parses the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// Origin of a firing, in XXL-JOB's words where it has one.
    Source {
        /// The clock, by the schedule.
        Cron = "CRON",
        /// The clock, later than planned: the misfire policy let it fire anyway.
        Misfire = "MISFIRE",
        /// A user.
        Manual = "MANUAL",
        /// A program, through the API.
        Api = "API",
        /// An event with the schedule's name.
        Event = "EVENT",
        /// The end of another batch.
        Parent = "PARENT",
    }
}

words! {
    /// State of a firing.
    FiringStatus {
        /// Decided and not yet done: it waits for its time, or for its next attempt.
        Pending = "PENDING",
        /// Due; the previous batch is still running, and the schedule says to wait.
        Waiting = "WAITING",
        /// Done: its batch request was executed, exactly once.
        Fired = "FIRED",
        /// Its time passed while nothing could fire, and the misfire policy drops it.
        Misfired = "MISFIRED",
        /// Skipped for a reason: the previous batch was running, the batch existed already, or an
        /// operator removed it.
        Skipped = "SKIPPED",
        /// Its batch request was refused, or its attempts are used up.
        Failed = "FAILED",
    }
}

impl FiringStatus {
    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Waiting => false,
            Self::Fired | Self::Misfired | Self::Skipped | Self::Failed => true,
        }
    }
}

/// A `job_firing` row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Key.
    pub firing_id: FiringId,
    /// The schedule.
    pub trigger_id: TriggerId,
    /// The planned time; together with the schedule it identifies this firing permanently.
    pub planned_at: Millis,
    /// The day of the schedule before it was moved off a holiday, from which batch numbers are
    /// derived; if none, the day of `planned_at` in the schedule's zone.
    pub nominal_date: Option<NaiveDate>,
    /// Its origin.
    pub source: Source,
    /// The handler that executes it.
    pub handler: String,
    /// Its state.
    pub status: FiringStatus,
    /// Earliest execution: the planned time, or that of the next attempt.
    pub fire_at: Millis,
    /// The node that has it in its time ring.
    pub owner: Option<NodeId>,
    /// Attempts so far.
    pub attempt: u32,
    /// Parameters of this firing only, as a JSON object; they take precedence over the schedule's.
    pub params: Option<String>,
    /// The batch whose end caused it.
    pub parent_batch_id: Option<BatchId>,
    /// The last planned time that this row covers, when there were too many missed times for a row
    /// each.
    pub missed_until: Option<Millis>,
    /// Number of the batch that it opened, or would have opened.
    pub batch_no: Option<String>,
    /// Reason of its state.
    pub reason: Option<String>,
    /// When it was executed.
    pub fired_at: Option<Millis>,
}

/// A `job_firing` row to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFiring {
    /// The schedule.
    pub trigger_id: TriggerId,
    /// The planned time.
    pub planned_at: Millis,
    /// See `Firing`.
    pub nominal_date: Option<NaiveDate>,
    /// Its origin.
    pub source: Source,
    /// The handler that executes it.
    pub handler: String,
    /// `PENDING`, or final immediately: `MISFIRED`, `SKIPPED`.
    pub status: FiringStatus,
    /// Earliest execution.
    pub fire_at: Millis,
    /// See `Firing`.
    pub params: Option<String>,
    /// See `Firing`.
    pub parent_batch_id: Option<BatchId>,
    /// See `Firing`.
    pub missed_until: Option<Millis>,
    /// Reason of its state.
    pub reason: Option<String>,
}

impl NewFiring {
    /// The firing as stored under `firing_id` with owner `owner`.
    pub fn stored(self, firing_id: FiringId, owner: NodeId) -> Firing {
        Firing {
            firing_id,
            trigger_id: self.trigger_id,
            planned_at: self.planned_at,
            nominal_date: self.nominal_date,
            source: self.source,
            handler: self.handler,
            status: self.status,
            fire_at: self.fire_at,
            owner: Some(owner),
            attempt: 0,
            params: self.params,
            parent_batch_id: self.parent_batch_id,
            missed_until: self.missed_until,
            batch_no: None,
            reason: self.reason,
            fired_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for status in FiringStatus::ALL {
            assert_eq!(FiringStatus::parse(status.as_str()), Some(*status));
        }
        for source in Source::ALL {
            assert_eq!(Source::parse(source.as_str()), Some(*source));
        }
        assert_eq!(Source::parse("cron"), None);
    }
}
