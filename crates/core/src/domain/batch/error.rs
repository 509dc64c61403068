//! Why a batch request is refused.

use crate::domain::batch_no::{BatchExpr, BatchExprError, NumberMismatch};
use crate::domain::calendar::CalendarError;
use crate::domain::dag::DagError;
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::params::fan_out::FanOutError;
use crate::domain::permission::access_rules::ForbiddenUse;

/// Why a batch request is refused; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Malformed JSON.
    #[error(
        "the batch parameters are not usable: {0}; expected {{\"batchNo\":\"202407\",\"type\":\"monthly\"}}"
    )]
    BadOrder(String),
    /// No group matches the type or the code.
    #[error("no group {0}; groups that exist: {1}")]
    NoGroup(String, String),
    /// The group has no active jobs.
    #[error("group {0} has no active job; nothing to run")]
    Empty(GroupCode),
    /// An active job depends on an inactive one.
    #[error(
        "job {job} depends on {inactive}, which is not active; activate it, or remove the dependency"
    )]
    Inactive {
        /// The dependent job.
        job: JobCode,
        /// The inactive job.
        inactive: JobCode,
    },
    /// The group's zone is not an IANA zone.
    #[error("group {0}: time zone {1:?} is not known; use an IANA name such as Asia/Shanghai")]
    BadZone(GroupCode, String),
    /// A parameter refers to a calendar that has no answer.
    #[error("group {0}: {1}")]
    Calendar(GroupCode, CalendarError),
    /// The request's parameters do not match the declarations.
    #[error("the parameters of this batch of group {group} are not usable:\n  {}", .faults.join("\n  "))]
    Params {
        /// The group.
        group: GroupCode,
        /// The faults, one sentence each.
        faults: Vec<String>,
    },
    /// The group uses data sources or secrets that it may not use.
    #[error(
        "group {group} cannot be opened, because it uses what is not for it:\n  {}",
        .uses.iter().map(|each| format!("{each}; {}", each.hint_text())).collect::<Vec<_>>().join("\n  ")
    )]
    Forbidden {
        /// The group.
        group: GroupCode,
        /// Each forbidden use.
        uses: Vec<ForbiddenUse>,
    },
    /// The number does not match the group's type.
    #[error(
        "group {group} is {batch_type}, and {mismatch}{stop} A batch that stands for no period is opened \
         with --free-text (free_text in the API and in schedules, freeText in JSON orders), which is put \
         on record",
        stop = if mismatch.to_string().ends_with('?') { "" } else { "." }
    )]
    WrongNumber {
        /// The group.
        group: GroupCode,
        /// Its type.
        batch_type: String,
        /// The number, and the probable intention.
        mismatch: NumberMismatch,
    },
    /// Jobs of the batch have parameters without a value.
    #[error(
        "batch {batch_no} of group {group} cannot run, so nothing was started:\n  {}",
        .faults.join("\n  ")
    )]
    Values {
        /// The number.
        batch_no: BatchNo,
        /// The group.
        group: GroupCode,
        /// The faults, one sentence each.
        faults: Vec<String>,
    },
    /// The expression for the batch number has no value.
    #[error(transparent)]
    Number(#[from] BatchExprError),
    /// The groups of the request are in time zones with different dates at this moment.
    #[error(
        "{expr} is {one} and {other}, because it is not the same day now in their time zones; add \
         --business-date YYYY-MM-DD, or --group for one of them"
    )]
    TwoDays {
        /// The expression.
        expr: BatchExpr,
        /// One group's number.
        one: String,
        /// Another group's number.
        other: String,
    },
    /// Not a DAG.
    #[error(transparent)]
    Dag(#[from] DagError),
    /// A list that cannot be expanded into jobs.
    #[error(transparent)]
    FanOut(#[from] FanOutError),
}
