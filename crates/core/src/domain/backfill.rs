//! A backfill: the batches of a range of numbers, run as a unit with limited parallelism.

mod needs;
mod status;

pub use needs::{BackfillNeed, NeededExtent, hopeless, needs, would_wait};
pub use status::{BackfillStatus, EntryStatus};

use crate::domain::batch::BatchStatus;
use crate::domain::batch_no::{BatchExprError, compare};
use crate::domain::id::{BatchNo, JobCode};
use crate::domain::time::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Order of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BackfillOrder")]
pub enum RangeOrder {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// Effect of a failed batch on the following ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillFailurePolicy {
    /// No further batch is opened; open ones run to their end.
    #[default]
    Stop,
    /// The others are run, except those that wait for the failed one.
    GoOn,
}

/// Which batches of the range are run; a succeeded batch never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[schemars(rename = "BackfillScope")]
pub enum BackfillSelection {
    /// Batches that do not exist.
    #[serde(rename = "missing")]
    Missing,
    /// Batches that exist and failed, and those that a dead process left open.
    #[serde(rename = "failed")]
    Failed,
    /// Both.
    #[default]
    #[serde(rename = "missing,failed")]
    Undone,
}

impl BackfillSelection {
    /// Parses the word on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "missing" => Some(Self::Missing),
            "failed" => Some(Self::Failed),
            "missing,failed" | "failed,missing" | "all" => Some(Self::Undone),
            _ => None,
        }
    }

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Undone => "missing,failed",
        }
    }
}

/// Options of a backfill; stored in `backfill.options` as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillOptions {
    /// Maximum number of open batches.
    pub parallel: u32,
    /// Order of the batches; none: as the range names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<RangeOrder>,
    /// Which batches are run.
    pub only: BackfillSelection,
    /// Effect of a failure on the others.
    pub on_failure: BackfillFailurePolicy,
    /// Parameters of each batch, with precedence over the group's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Whether batch numbers may deviate from the type of the group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

/// One batch of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillEntry {
    pub batch_no: BatchNo,
    /// Its state within the backfill.
    pub status: EntryStatus,
    /// Why it was not run.
    pub message: Option<String>,
}

/// The process that dispatches a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchHolder {
    /// Its host.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// End of its lease unless renewed.
    pub until: Millis,
}

/// What exists for a batch number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingBatchState {
    /// Nothing.
    Missing,
    /// A batch that has ended.
    Ended(BatchStatus),
    /// A batch that has not ended and has no owner: its process died or released it.
    Interrupted(BatchStatus),
    /// A batch owned by a live process.
    Held(BatchStatus, BatchHolder),
}

/// The action for a batch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillAction {
    /// Open a batch.
    Open,
    /// Resume the batch from its failures.
    Resume,
    /// Resume the batch where a dead process left it.
    GoOn,
    /// None.
    Leave,
    /// Refuse: it cannot be run.
    Refuse,
}

impl BackfillAction {
    /// The word for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resume => "resume",
            Self::GoOn => "go_on",
            Self::Leave => "leave",
            Self::Refuse => "refuse",
        }
    }

    /// Whether the batch is run.
    pub fn runs_batch(self) -> bool {
        matches!(self, Self::Open | Self::Resume | Self::GoOn)
    }
}

/// Decides the action from what exists. A batch that an operator is stopping is never touched.
pub fn decide(found: &ExistingBatchState, only: BackfillSelection) -> BackfillAction {
    let missing = matches!(only, BackfillSelection::Missing | BackfillSelection::Undone);
    let failed = matches!(only, BackfillSelection::Failed | BackfillSelection::Undone);
    match found {
        ExistingBatchState::Missing if missing => BackfillAction::Open,
        ExistingBatchState::Ended(status) if failed && !status.is_success() => {
            BackfillAction::Resume
        }
        ExistingBatchState::Interrupted(BatchStatus::Killing) => BackfillAction::Leave,
        ExistingBatchState::Interrupted(_) if failed => BackfillAction::GoOn,
        ExistingBatchState::Held(..) if failed => BackfillAction::Refuse,
        ExistingBatchState::Missing
        | ExistingBatchState::Ended(_)
        | ExistingBatchState::Interrupted(_)
        | ExistingBatchState::Held(..) => BackfillAction::Leave,
    }
}

/// One line of the plan that is shown before anything is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillStep {
    /// The batch number.
    pub batch_no: BatchNo,
    /// What exists.
    pub found: ExistingBatchState,
    /// The action.
    pub action: BackfillAction,
}

/// Why a backfill is refused; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackfillError {
    /// Numbers of different kinds.
    #[error(
        "{0} and {1} have no order (one is not a day, month, quarter or year, or they are of \
         different kinds); leave out --order, then they are run as the range names them"
    )]
    Unordered(BatchNo, BatchNo),
    /// A batch precedes the one that it waits for.
    #[error(
        "batch {batch_no} waits for batch {on} (job {job} depends on it), which comes later in this \
         order, and with {parallel} at a time its turn would never come; turn the order round \
         (--order asc or desc), or run more at a time (--parallel)"
    )]
    WouldWait {
        /// The waiting batch.
        batch_no: BatchNo,
        /// The awaited batch.
        on: BatchNo,
        /// The job with the dependency.
        job: JobCode,
        /// Number of batches open at once.
        parallel: u32,
    },
    /// A batch waits for one of the range that is not run.
    #[error(
        "batch {batch_no} waits for batch {on} (job {job} depends on it), which has not ended well \
         and is left alone by --only {only}; leave out --only, so that it is run too"
    )]
    LeftAlone {
        /// The waiting batch.
        batch_no: BatchNo,
        /// The awaited batch.
        on: BatchNo,
        /// The job with the dependency.
        job: JobCode,
        /// The requested selection.
        only: &'static str,
    },
    /// A dependency on other batches cannot be resolved.
    #[error("batch {0}, job {1}: {2}")]
    Expr(BatchNo, JobCode, Box<BatchExprError>),
}

/// Sorts the numbers of a range into the requested order.
pub fn arrange(
    mut numbers: Vec<BatchNo>,
    order: Option<RangeOrder>,
) -> Result<Vec<BatchNo>, BackfillError> {
    let Some(order) = order else { return Ok(numbers) };
    if let Some(first) = numbers.first()
        && let Some(other) = numbers.iter().find(|no| compare(first, no).is_none())
    {
        return Err(BackfillError::Unordered(first.clone(), other.clone()));
    }
    numbers.sort_by(|a, b| {
        let asc = compare(a, b).unwrap_or(std::cmp::Ordering::Equal);
        match order {
            RangeOrder::Asc => asc,
            RangeOrder::Desc => asc.reverse(),
        }
    });
    Ok(numbers)
}

/// The next steps of a backfill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Indexes of the batches to run now.
    pub open: Vec<usize>,
    /// Indexes of batches that will never run, each with the index of the batch that it waits for.
    pub blocked: Vec<(usize, usize)>,
}

impl Next {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.blocked.is_empty()
    }
}

/// The batches to open now: the first waiting ones, up to the limit. After a failure none is
/// opened, or all except those that wait for the failed one.
pub fn next(
    entries: &[BackfillEntry],
    needs: &[Vec<BackfillNeed>],
    options: &BackfillOptions,
) -> Next {
    let mut next = Next::default();
    let mut bad: Vec<bool> = entries.iter().map(|e| e.status.is_bad()).collect();
    if options.on_failure == BackfillFailurePolicy::Stop && bad.contains(&true) {
        return next;
    }
    let open = entries.iter().filter(|e| e.status == EntryStatus::Open).count();
    let mut room = (options.parallel as usize).saturating_sub(open);
    for (place, entry) in entries.iter().enumerate() {
        if entry.status != EntryStatus::Pending {
            continue;
        }
        let whole = needs[place].iter().filter(|need| need.whole == NeededExtent::Batch);
        if let Some(need) = whole.into_iter().find(|need| bad[need.place]) {
            bad[place] = true;
            next.blocked.push((place, need.place));
        } else if room > 0 {
            room -= 1;
            next.open.push(place);
        }
    }
    next
}

/// Result of the backfill; `None` while a batch is open or may be opened.
pub fn result(
    entries: &[BackfillEntry],
    needs: &[Vec<BackfillNeed>],
    options: &BackfillOptions,
) -> Option<BackfillStatus> {
    let open = entries.iter().any(|e| e.status == EntryStatus::Open);
    if open || !next(entries, needs, options).is_empty() {
        return None;
    }
    let bad = entries.iter().any(|e| e.status.is_bad());
    Some(if bad { BackfillStatus::Failed } else { BackfillStatus::Success })
}

/// Initial state of an entry when its backfill is resumed: succeeded and untouched ones keep
/// theirs.
pub fn again(status: EntryStatus) -> EntryStatus {
    if status.is_bad() { EntryStatus::Pending } else { status }
}

#[cfg(test)]
mod tests;
