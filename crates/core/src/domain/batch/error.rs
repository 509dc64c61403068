//! Why an order cannot become a batch.

use crate::domain::batch_no::{BatchExpr, BatchExprError, NumberMismatch};
use crate::domain::calendar::CalendarError;
use crate::domain::dag::DagError;
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::params::fan_out::FanOutError;
use crate::domain::permission::access_rules::ForbiddenUse;

/// Why an order cannot become a batch; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The JSON of the order is wrong.
    #[error(
        "the batch parameters are not usable: {0}; expected {{\"batchNo\":\"202407\",\"type\":\"monthly\"}}"
    )]
    BadOrder(String),
    /// Neither type nor group finds anything.
    #[error("no group {0}; groups that exist: {1}")]
    NoGroup(String, String),
    /// A group has nothing to run.
    #[error("group {0} has no active job; nothing to run")]
    Empty(GroupCode),
    /// An active job waits for an inactive one.
    #[error(
        "job {job} depends on {inactive}, which is not active; activate it, or remove the dependency"
    )]
    Inactive {
        /// The job that waits.
        job: JobCode,
        /// The job that is off.
        inactive: JobCode,
    },
    /// The group's zone is not in the IANA table.
    #[error("group {0}: time zone {1:?} is not known; use an IANA name such as Asia/Shanghai")]
    BadZone(GroupCode, String),
    /// A parameter asks a calendar that cannot answer.
    #[error("group {0}: {1}")]
    Calendar(GroupCode, CalendarError),
    /// The order's parameters do not fit what is declared.
    #[error("the parameters of this batch of group {group} are not usable:\n  {}", .faults.join("\n  "))]
    Params {
        /// The group.
        group: GroupCode,
        /// What is wrong, a sentence each.
        faults: Vec<String>,
    },
    /// It uses data sources or secrets of other groups.
    #[error(
        "group {group} cannot be opened, because it uses what is not for it:\n  {}",
        .uses.iter().map(|each| format!("{each}; {}", each.hint_text())).collect::<Vec<_>>().join("\n  ")
    )]
    Forbidden {
        /// The group.
        group: GroupCode,
        /// Each use.
        uses: Vec<ForbiddenUse>,
    },
    /// The number is not one of the group's type.
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
        /// The number, and what was meant.
        mismatch: NumberMismatch,
    },
    /// Jobs of the batch have parameters that can have no value.
    #[error(
        "batch {batch_no} of group {group} cannot run, so nothing was started:\n  {}",
        .faults.join("\n  ")
    )]
    Values {
        /// The number.
        batch_no: BatchNo,
        /// The group.
        group: GroupCode,
        /// What is wrong, a sentence each.
        faults: Vec<String>,
    },
    /// The expression for the batch number gives none.
    #[error(transparent)]
    Number(#[from] BatchExprError),
    /// The groups of the order are in zones where it is not the same day now.
    #[error(
        "{expr} is {one} and {other}, because it is not the same day now in their time zones; add \
         --business-date YYYY-MM-DD, or --group for one of them"
    )]
    TwoDays {
        /// The expression.
        expr: BatchExpr,
        /// Number and group.
        one: String,
        /// Another number and group.
        other: String,
    },
    /// Not a DAG.
    #[error(transparent)]
    Dag(#[from] DagError),
    /// A list that cannot become jobs.
    #[error(transparent)]
    FanOut(#[from] FanOutError),
}
