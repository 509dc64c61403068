//! A firing: one planned time of one schedule, and what becomes of it.

use crate::domain::id::{BatchId, NodeId};
use crate::domain::time::Millis;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Key of a `job_trigger` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerId(pub i64);

/// Key of a `job_firing` row.
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
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in rows and JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one of this word.
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
    /// What made a firing. XXL-JOB's words where it has one.
    Source {
        /// The clock, by the schedule.
        Cron = "CRON",
        /// The clock, later than planned: the misfire policy let it fire all the same.
        Misfire = "MISFIRE",
        /// A person.
        Manual = "MANUAL",
        /// A program, through the API.
        Api = "API",
        /// An event of the schedule's name.
        Event = "EVENT",
        /// Another batch that ended.
        Parent = "PARENT",
    }
}

words! {
    /// What became of a firing.
    FiringStatus {
        /// Decided and not yet done: it waits for its time, or for its next try.
        Pending = "PENDING",
        /// Its time has come; the batch before it still runs, and its schedule says to wait.
        Waiting = "WAITING",
        /// Done: its order was handed over, once.
        Fired = "FIRED",
        /// Its time passed while nothing could fire, and the misfire policy lets it go.
        Misfired = "MISFIRED",
        /// Left out for a reason: the batch before it still ran, its batch was there already, an
        /// operator took it away.
        Skipped = "SKIPPED",
        /// Its order was refused, or its tries are used up.
        Failed = "FAILED",
    }
}

impl FiringStatus {
    /// Whether nothing changes it any more.
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
    /// Whose planned time it is.
    pub trigger_id: TriggerId,
    /// The planned time; with the schedule it is the name of this firing for ever.
    pub planned_at: Millis,
    /// The day of the schedule before it was shifted off a holiday, from which batch numbers are
    /// worked out; the day of `planned_at` in the schedule's zone when absent.
    pub nominal_date: Option<NaiveDate>,
    /// What made it.
    pub source: Source,
    /// Which handler its order goes to.
    pub handler: String,
    /// What became of it.
    pub status: FiringStatus,
    /// Not before this moment: the planned time, or that of the next try.
    pub fire_at: Millis,
    /// The process that has it on its ring.
    pub owner: Option<NodeId>,
    /// Tries so far.
    pub attempt: u32,
    /// Parameters of this firing alone, as a JSON object; they win over the schedule's.
    pub params: Option<String>,
    /// The batch whose end made it.
    pub parent_batch_id: Option<BatchId>,
    /// Of planned times too many to have a row each: the last one that this row stands for.
    pub missed_until: Option<Millis>,
    /// The number of the batch it opened, or would have.
    pub batch_no: Option<String>,
    /// Why it is what it is.
    pub reason: Option<String>,
    /// When it was done.
    pub fired_at: Option<Millis>,
}

/// A `job_firing` row about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFiring {
    /// Whose planned time it is.
    pub trigger_id: TriggerId,
    /// The planned time.
    pub planned_at: Millis,
    /// See `Firing`.
    pub nominal_date: Option<NaiveDate>,
    /// What made it.
    pub source: Source,
    /// Which handler its order goes to.
    pub handler: String,
    /// `PENDING`, or final at once: `MISFIRED`, `SKIPPED`.
    pub status: FiringStatus,
    /// Not before this moment.
    pub fire_at: Millis,
    /// See `Firing`.
    pub params: Option<String>,
    /// See `Firing`.
    pub parent_batch_id: Option<BatchId>,
    /// See `Firing`.
    pub missed_until: Option<Millis>,
    /// Why it is what it is.
    pub reason: Option<String>,
}

impl NewFiring {
    /// It as it is once it is written under `firing_id`, when `owner` has it.
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
