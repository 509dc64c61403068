//! The deadlines of a batch, and whether the batch and its jobs meet them. Only unfinished work is
//! late; what has ended or was given up no longer is.

use crate::domain::batch::history::{Durations, TRIES_NEEDED};
use crate::domain::batch::{Batch, Snapshot, zone_of};
use crate::domain::dag::Node;
use crate::domain::id::QueueId;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::job::{Group, JobDef};
use crate::domain::schedule::due::{DueContext, DueRule};
use crate::domain::time::Millis;
use chrono_tz::Tz;
use std::collections::HashMap;

/// An attempt is not slow before it exceeds its usual duration by this many milliseconds: a job of
/// two seconds that takes five alerts nobody.
pub const SLOW_OVER_MS: i64 = 60_000;
/// Default number of seconds after which a held job is reported.
pub const HELD_AFTER_SEC: u32 = 86_400;
/// Lateness in milliseconds from which a batch whose forecast had recovered is reported once more.
pub const RELAPSE_MS: i64 = 5 * 60_000;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alarm {
    /// A job should have started.
    Start(Node),
    /// A job should have ended.
    Finish(Node),
    /// A held job should have been released.
    Release(Node),
    /// The batch should have ended.
    Batch,
}

/// Lateness relative to a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// The deadline.
    pub due: Millis,
    /// Milliseconds by which it is late, or was when it ended.
    pub late_by: Option<i64>,
}

impl Lateness {
    /// Lateness of something that ended, or will end, at `end`; `None` when that is unknown, or
    /// nothing of it ran.
    pub fn new(due: Millis, end: Option<Millis>) -> Self {
        let late_by = end.map(|end| end.since(due)).filter(|ms| *ms > 0);
        Self { due, late_by }
    }

    /// Lateness of a job at `now`.
    pub fn of_job(due: Millis, row: &QueueEntry, now: Millis) -> Self {
        let end = if row.status.is_final() { row.end_time } else { Some(now) };
        Self::new(due, end)
    }

    /// Lateness of a batch at `now`.
    pub fn of_batch(due: Millis, batch: &Batch, now: Millis) -> Self {
        Self::new(due, Some(batch.end_time.filter(|_| batch.status.is_final()).unwrap_or(now)))
    }
}

/// The inputs for the deadlines of a batch opened at `at`. An unknown zone was refused when the
/// batch was opened.
pub fn opening(snapshot: &Snapshot, at: Millis) -> DueContext<'_> {
    let zone = zone_of(&snapshot.group).unwrap_or(Tz::UTC);
    DueContext { at, zone, days: snapshot.working_days() }
}

/// Every deadline of a batch, with its purpose.
pub fn moments(snapshot: &Snapshot, opened: Millis) -> Vec<(Millis, Alarm)> {
    let opening = opening(snapshot, opened);
    // A hundred thousand jobs may have the same deadline from the defaults.
    let mut known: HashMap<String, Millis> = HashMap::new();
    let mut moment = |due: DueRule| -> Millis {
        if !due.counts_working_days() {
            return due.moment(opening);
        }
        *known.entry(due.to_string()).or_insert_with(|| due.moment(opening))
    };
    let mut found = Vec::new();
    for (node, job) in (0..).map(Node).zip(&snapshot.jobs) {
        found.extend(job.start_by.map(|due| (moment(due), Alarm::Start(node))));
        found.extend(job.due.map(|due| (moment(due), Alarm::Finish(node))));
    }
    found.extend(snapshot.group.due.map(|due| (moment(due), Alarm::Batch)));
    found
}

/// Whether the purpose of a deadline is not fulfilled. A job that waits for a retry has started.
pub fn is_missed(alarm: Alarm, rows: &[QueueEntry]) -> bool {
    let row = |node: Node| rows.get(node.index());
    match alarm {
        Alarm::Start(node) => row(node).is_some_and(|row| !has_started(row)),
        Alarm::Finish(node) => row(node).is_some_and(|row| !row.status.is_final()),
        Alarm::Release(node) => row(node).is_some_and(|row| row.status == QueueStatus::Held),
        Alarm::Batch => rows.iter().any(|row| !row.status.is_final()),
    }
}

fn has_started(row: &QueueEntry) -> bool {
    match row.status {
        QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => {
            row.try_count > 0 || row.crash_count > 0
        }
        QueueStatus::Running | QueueStatus::RetryWait | QueueStatus::Killing => true,
        QueueStatus::Success | QueueStatus::Warning | QueueStatus::Failed => true,
        QueueStatus::Timeout | QueueStatus::Killed | QueueStatus::Skipped => true,
        QueueStatus::NotTaken | QueueStatus::UpstreamFailed | QueueStatus::Forced => true,
        QueueStatus::Unknown => true,
    }
}

/// A rerun of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// When.
    pub since: Millis,
    /// Whether the job had not succeeded before.
    pub was_bad: bool,
}

/// Whether a deadline had passed before the rerun `again` of what it is for. It was reported or met
/// when that ran before. A batch in which something had failed was not done by then, and is late
/// even if it is resumed only afterwards.
pub fn is_of_an_earlier_run(
    at: Millis,
    alarm: Alarm,
    rows: &[QueueEntry],
    again: &HashMap<QueueId, Again>,
) -> bool {
    let later = |row: &QueueEntry| again.get(&row.queue_id).is_some_and(|a| a.since >= at);
    let was_bad = |row: &QueueEntry| again.get(&row.queue_id).is_some_and(|a| a.was_bad);
    match alarm {
        Alarm::Start(node) | Alarm::Finish(node) => rows.get(node.index()).is_some_and(later),
        Alarm::Batch => {
            rows.iter().filter(|row| !row.status.is_final()).all(|row| later(row) && !was_bad(row))
        }
        Alarm::Release(_) => false,
    }
}

/// Milliseconds after which an attempt of a job is slow, by its own history.
pub fn slow_after(job: &JobDef, group: &Group, durations: Option<&Durations>) -> Option<i64> {
    let factor = job.slow_after.or(group.slow_after)?;
    let usual = durations.filter(|d| d.tries >= TRIES_NEEDED)?.p95;
    Some(factor.times(usual).max(usual.saturating_add(SLOW_OVER_MS)))
}

/// Whether any rule of a batch needs past durations.
pub fn asks_history(snapshot: &Snapshot) -> bool {
    let group = &snapshot.group;
    group.due.is_some()
        || group.slow_after.is_some()
        || snapshot.jobs.iter().any(|job| job.slow_after.is_some())
}

/// What has been reported about a batch's forecast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foretold {
    /// Number of reports.
    pub times: u32,
    /// Whether it was late at the last evaluation.
    is_late: bool,
}

impl Foretold {
    /// Whether a forecast that is late by `late_by` milliseconds must be reported, and the state
    /// after that. It is reported once; and again after it was in time in between, when it is late
    /// by more than `RELAPSE_MS`.
    #[must_use]
    pub fn after(self, late_by: i64) -> (bool, Self) {
        let limit = if self.times == 0 { 0 } else { RELAPSE_MS };
        match (self.is_late, late_by > 0) {
            (true, late) => (false, Self { is_late: late, ..self }),
            (false, true) if late_by > limit => {
                (true, Self { times: self.times + 1, is_late: true })
            }
            (false, _) => (false, self),
        }
    }
}

#[cfg(test)]
#[path = "lateness_tests.rs"]
mod tests;
