//! A run requested by an XXL-JOB admin, and the result reported to it.
//!
//! The row is written before the admin gets the answer that the run was accepted, so that a process
//! that dies forgets none.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::executor::block::BlockStrategy;
use crate::domain::id::BatchId;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::{storable, truncate_text};
use crate::domain::time::Millis;
use std::fmt::{self, Write as _};

pub use crate::domain::executor::app_name::AppName;

/// Primary key of an `xxl_run` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XxlRunId(pub i64);

/// The admin's key of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XxlLogId(pub i64);

/// The admin's key of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XxlJobId(pub i64);

impl fmt::Display for XxlLogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for XxlJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XxlStatus {
    /// It waits for its turn among the runs of its job.
    Waiting,
    /// It is running: its batches are open, or about to be opened.
    Running,
    /// It has ended, and its result is known.
    Done,
}

impl XxlStatus {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Running, Self::Done];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Running => "RUNNING",
            Self::Done => "DONE",
        }
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// Why the batches of a run are being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopping {
    /// Requested by the admin.
    Killed,
    /// Its `executorTimeout` has passed.
    TimedOut,
    /// A later run of the same job replaces it.
    Covered,
}

impl Stopping {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Killed, Self::TimedOut, Self::Covered];

    /// The word in the `stopping` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "KILLED",
            Self::TimedOut => "TIMED_OUT",
            Self::Covered => "COVERED",
        }
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// The reason as reported to the admin and recorded in the batches.
    pub fn words(self) -> &'static str {
        match self {
            Self::Killed => "killed by the XXL-JOB admin",
            Self::TimedOut => "ran longer than its executorTimeout in XXL-JOB",
            Self::Covered => "covered by a later run of its XXL-JOB job (COVER_EARLY)",
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XxlRun {
    /// Key.
    pub run_id: XxlRunId,
    /// App name of the called executor.
    pub app_name: AppName,
    /// The admin's key of it.
    pub log_id: XxlLogId,
    /// When the admin triggered it, by the admin's clock; sent back unchanged.
    pub log_date_time: i64,
    /// The admin's job.
    pub job_id: XxlJobId,
    /// The executor parameters of the call.
    pub params: String,
    /// Block strategy while an earlier run has not ended.
    pub block: BlockStrategy,
    /// Time limit of its batches in seconds.
    pub timeout_sec: Option<u32>,
    /// How far it is.
    pub status: XxlStatus,
    /// Why it is being stopped.
    pub stopping: Option<Stopping>,
    /// Its batches; none before they are opened.
    pub batches: Option<Vec<BatchId>>,
    /// When its batches are stopped if still running.
    pub deadline: Option<Millis>,
    /// The result to report to the admin.
    pub result: Option<RunResult>,
    /// Attempts to report the result.
    pub tries: u32,
    /// When it was requested.
    pub create_time: Millis,
    /// When it ended.
    pub end_time: Option<Millis>,
}

/// The result reported to an admin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// 200, 500 or 502.
    pub code: i32,
    /// Message.
    pub message: String,
}

/// XXL-JOB's code for success.
const DONE: i32 = 200;
/// XXL-JOB's code for failure.
const FAILED: i32 = 500;
/// XXL-JOB's code for a timeout.
const TIMED_OUT: i32 = 502;
/// Longest message in bytes: an admin stores 15,000 characters of it.
const MESSAGE_MAX: usize = 10_000;
/// Longest sentence about one job, in bytes.
const FAILURE_MAX: usize = 300;
/// Maximum number of failures listed individually.
pub const FAILURES_MOST: u32 = 5;

impl RunResult {
    /// A success.
    pub fn success(message: &str) -> Self {
        Self::with_code(DONE, message)
    }

    /// A failure.
    pub fn failed(message: &str) -> Self {
        Self::with_code(FAILED, message)
    }

    fn with_code(code: i32, message: &str) -> Self {
        Self { code, message: storable(message.as_bytes(), MESSAGE_MAX) }
    }
}

/// An ended batch of a run.
#[derive(Clone, Debug)]
pub struct EndedBatch {
    /// The batch.
    pub batch: Batch,
    /// Number of its jobs by state.
    pub counts: Vec<(QueueStatus, u64)>,
    /// The first of its failed jobs, with their messages.
    pub failures: Vec<(String, QueueStatus, Option<String>)>,
}

/// The result when all batches of a run have ended. Their actual results count, not a requested
/// stop: a batch that succeeded before it could be stopped is a success.
pub fn result(stopping: Option<Stopping>, batches: &[EndedBatch]) -> RunResult {
    let is_good = batches.iter().all(|ended| ended.batch.status.is_success());
    let code = match stopping {
        _ if is_good && !batches.is_empty() => DONE,
        Some(Stopping::TimedOut) => TIMED_OUT,
        Some(Stopping::Killed | Stopping::Covered) | None => FAILED,
    };
    let mut words: Vec<String> = Vec::new();
    if code != DONE {
        words.extend(stopping.map(|stopping| stopping.words().to_owned()));
    }
    words.extend(batches.iter().map(about));
    if batches.is_empty() && stopping.is_none() {
        words.push("its batches are gone".to_owned());
    }
    RunResult::with_code(code, &words.join("; "))
}

fn about(ended: &EndedBatch) -> String {
    let Batch { values, status, reason, .. } = &ended.batch;
    let counts: Vec<String> = ended.counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
    let mut words = format!(
        "batch {} of {} ended {status}: {}",
        values.batch_no,
        values.group,
        counts.join(", ")
    );
    if let Some(reason) = reason.as_ref().filter(|_| *status == BatchStatus::Killed) {
        let _ = write!(words, " ({})", truncate_text(reason, FAILURE_MAX));
    }
    for (job, status, said) in &ended.failures {
        let said = said.as_deref().map(|said| truncate_text(said, FAILURE_MAX)).unwrap_or_default();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = match said.is_empty() {
            true => write!(words, "; {job} {status}"),
            false => write!(words, "; {job} {status}: {said}"),
        };
    }
    words
}

/// First and longest pause in milliseconds before a report to an admin is repeated.
const AGAIN_MS: (i64, i64) = (2_000, 30_000);

/// Milliseconds before the next report after this many failed attempts.
pub fn again_after_ms(tries: u32) -> i64 {
    AGAIN_MS.0.saturating_mul(1 << tries.saturating_sub(1).min(10)).min(AGAIN_MS.1)
}

/// The moment for which a batch number is evaluated: when the admin triggered the run, unless its
/// clock differs by more than a day.
pub fn moment(log_date_time: i64, received: Millis) -> Millis {
    const DAY_MS: u64 = 86_400_000;
    let said = Millis(log_date_time);
    if said.since(received).unsigned_abs() <= DAY_MS { said } else { received }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{BatchNo, GroupCode};
    use crate::domain::params::BatchValues;
    use std::collections::BTreeMap;

    fn ended(status: BatchStatus, failures: &[(&str, &str)]) -> EndedBatch {
        let values = BatchValues {
            batch_no: BatchNo::parse("202407").expect("no"),
            group: GroupCode::parse("month_end").expect("group"),
            business_date: None,
            params: BTreeMap::new(),
        };
        let batch = Batch {
            batch_id: BatchId(1),
            values,
            batch_type: None,
            status,
            owner: None,
            started_by: String::new(),
            create_time: Millis(0),
            end_time: Some(Millis(1)),
            reason: Some("why".to_owned()),
            deadline: None,
            revision: 0,
            is_paused: false,
            removing: None,
            unwritten_jobs: 0,
        };
        let failed = |(job, said): &(&str, &str)| {
            (
                (*job).to_owned(),
                QueueStatus::Failed,
                Some((*said).to_owned()).filter(|s| !s.is_empty()),
            )
        };
        let counts = vec![(QueueStatus::Success, 3), (QueueStatus::Failed, 2)];
        EndedBatch { batch, counts, failures: failures.iter().map(failed).collect() }
    }

    #[test]
    fn what_the_batches_came_to_is_what_is_told() {
        use BatchStatus::{Failed, Killed, Success, Warning};
        for (stopping, statuses, code, said) in [
            (
                None,
                &[Success][..],
                200,
                "batch 202407 of month_end ended SUCCESS: 3 SUCCESS, 2 FAILED",
            ),
            (None, &[Success, Warning], 200, "ended WARNING"),
            (None, &[Success, Failed], 500, "ended FAILED"),
            (Some(Stopping::Killed), &[Killed], 500, "killed by the XXL-JOB admin; batch 202407"),
            (Some(Stopping::TimedOut), &[Killed], 502, "ran longer than its executorTimeout"),
            (Some(Stopping::Covered), &[Killed], 500, "COVER_EARLY"),
            (Some(Stopping::TimedOut), &[Success], 200, "ended SUCCESS"),
            (Some(Stopping::Killed), &[], 500, "killed by"),
            (None, &[], 500, "its batches are gone"),
        ] {
            let batches: Vec<EndedBatch> = statuses.iter().map(|s| ended(*s, &[])).collect();
            let told = result(stopping, &batches);
            assert_eq!(told.code, code, "{stopping:?} {statuses:?}");
            assert!(told.message.contains(said), "{}", told.message);
        }
        let told = result(None, &[ended(Failed, &[("A", "ORA-1\nat 7"), ("B", "")])]);
        assert!(told.message.ends_with("; A FAILED: ORA-1 at 7; B FAILED"), "{}", told.message);
        let long = "x".repeat(60_000);
        let told = result(None, &[ended(Failed, &[("A", &long)])]);
        assert!(told.message.len() < 1_000, "{}", told.message.len());
    }

    #[test]
    fn an_admin_that_is_away_is_told_again_at_last_every_half_minute() {
        let pauses: Vec<i64> = (1..=6).map(again_after_ms).collect();
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(again_after_ms(u32::MAX), 30_000);
    }

    #[test]
    fn the_admins_time_counts_unless_its_clock_is_wrong() {
        let now = Millis(1_722_470_400_000);
        assert_eq!(moment(now.0 - 3_000, now), now.plus_ms(-3_000));
        for wrong in [0, i64::MIN, i64::MAX, now.0 - 200_000_000] {
            assert_eq!(moment(wrong, now), now, "{wrong}");
        }
    }
}
