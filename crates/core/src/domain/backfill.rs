//! A backfill: the batches of a range, run as one thing, so many at a time.

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

/// Which end of the range comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BackfillOrder")]
pub enum RangeOrder {
    /// The oldest.
    Asc,
    /// The newest.
    Desc,
}

/// What a batch that did not end well means for those that come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillFailurePolicy {
    /// No further batch is opened; those that are open end.
    #[default]
    Stop,
    /// The others are run all the same, but for those that wait for it.
    GoOn,
}

/// Which batches of the range are run; one that ended well never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[schemars(rename = "BackfillScope")]
pub enum BackfillSelection {
    /// Those that do not exist.
    #[serde(rename = "missing")]
    Missing,
    /// Those that exist and did not end well, and those that a dead process left open.
    #[serde(rename = "failed")]
    Failed,
    /// Both.
    #[default]
    #[serde(rename = "missing,failed")]
    Undone,
}

impl BackfillSelection {
    /// The meaning of the word on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "missing" => Some(Self::Missing),
            "failed" => Some(Self::Failed),
            "missing,failed" | "failed,missing" | "all" => Some(Self::Undone),
            _ => None,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Undone => "missing,failed",
        }
    }
}

/// How a backfill goes about it; kept in `backfill.options` as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillOptions {
    /// Batches open at once, at most.
    pub parallel: u32,
    /// None: the order in which the range names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<RangeOrder>,
    /// Which are run.
    pub only: BackfillSelection,
    /// What a failure means for the rest.
    pub on_failure: BackfillFailurePolicy,
    /// Parameters of each batch, over the group's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Open batches although their numbers do not fit the type of the group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

/// One batch of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillEntry {
    /// Its number.
    pub batch_no: BatchNo,
    /// What became of it here.
    pub status: EntryStatus,
    /// Why it was not run.
    pub message: Option<String>,
}

/// The process that has a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchHolder {
    /// Where it is.
    pub host: String,
    /// Which it is.
    pub pid: i64,
    /// When its lease ends unless it is renewed.
    pub until: Millis,
}

/// What there is of a batch number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingBatchState {
    /// Nothing.
    Missing,
    /// A batch that has ended.
    Ended(BatchStatus),
    /// One that has not, and nobody has it: its process died, or let it go.
    Interrupted(BatchStatus),
    /// One that a living process has.
    Held(BatchStatus, BatchHolder),
}

/// What is done with a batch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillAction {
    /// A batch is opened.
    Open,
    /// The batch goes on from its failures.
    Resume,
    /// The batch goes on where a dead process left it.
    GoOn,
    /// Nothing.
    Leave,
    /// It cannot be run.
    Refuse,
}

impl BackfillAction {
    /// The word for it, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resume => "resume",
            Self::GoOn => "go_on",
            Self::Leave => "leave",
            Self::Refuse => "refuse",
        }
    }

    /// The batch is run.
    pub fn runs_batch(self) -> bool {
        matches!(self, Self::Open | Self::Resume | Self::GoOn)
    }
}

/// What is done with what there is. A batch that an operator is stopping is never touched.
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

/// One line of the list that is shown before anything is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillStep {
    /// The batch number.
    pub batch_no: BatchNo,
    /// What there is.
    pub found: ExistingBatchState,
    /// What is done.
    pub action: BackfillAction,
}

/// Why a backfill is not begun; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackfillError {
    /// Numbers of different kinds.
    #[error(
        "{0} and {1} have no order (one is not a day, month, quarter or year, or they are of \
         different kinds); leave out --order, then they are run as the range names them"
    )]
    Unordered(BatchNo, BatchNo),
    /// A batch comes before the one it waits for.
    #[error(
        "batch {batch_no} waits for batch {on} (job {job} depends on it), which comes later in this \
         order, and with {parallel} at a time its turn would never come; turn the order round \
         (--order asc or desc), or run more at a time (--parallel)"
    )]
    WouldWait {
        /// The one that waits.
        batch_no: BatchNo,
        /// The one that it waits for.
        on: BatchNo,
        /// Its job that does.
        job: JobCode,
        /// How many are open at once.
        parallel: u32,
    },
    /// A batch waits for one of the range that is not run.
    #[error(
        "batch {batch_no} waits for batch {on} (job {job} depends on it), which has not ended well \
         and is left alone by --only {only}; leave out --only, so that it is run too"
    )]
    LeftAlone {
        /// The one that waits.
        batch_no: BatchNo,
        /// The one that it waits for.
        on: BatchNo,
        /// Its job that does.
        job: JobCode,
        /// What was asked for.
        only: &'static str,
    },
    /// A dependency on other batches cannot be worked out.
    #[error("batch {0}, job {1}: {2}")]
    Expr(BatchNo, JobCode, Box<BatchExprError>),
}

/// Puts the numbers of a range into the order that is wanted.
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

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Places whose batches are run now.
    pub open: Vec<usize>,
    /// Places that are never run, each with the place that it waits for.
    pub blocked: Vec<(usize, usize)>,
}

impl Next {
    /// Nothing.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.blocked.is_empty()
    }
}

/// Which batches are opened now: the first that wait, as far as there is room. After one that did
/// not end well none is, or all but those that wait for it.
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

/// How the backfill ended; `None` while a batch is open or may be opened.
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

/// What an entry starts from when its backfill goes on: what ended well or was left alone stays.
pub fn again(status: EntryStatus) -> EntryStatus {
    if status.is_bad() { EntryStatus::Pending } else { status }
}

#[cfg(test)]
mod tests;
