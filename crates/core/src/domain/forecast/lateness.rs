//! What a batch's times ask for, and whether it and its jobs keep them. Late is what is still to be done;
//! what is done, or given up, is late no more.

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

/// A try is not slow before it takes so much longer than usual: a job of two seconds that takes five
/// wakes nobody.
pub const SLOW_OVER_MS: i64 = 60_000;
/// A job is held for a day before anybody hears of it.
pub const HELD_AFTER_SEC: u32 = 86_400;
/// A batch whose forecast was in time again is told of once more from so late on.
pub const RELAPSE_MS: i64 = 5 * 60_000;

/// What a moment of a batch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alarm {
    /// By then a job should have started.
    Start(Node),
    /// By then a job should have ended.
    Finish(Node),
    /// By then a job should have been released.
    Release(Node),
    /// By then the batch should have ended.
    Batch,
}

/// How something stands against the moment at which it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// By when.
    pub due: Millis,
    /// By how many milliseconds it is late, or was when it ended.
    pub late_by: Option<i64>,
}

impl Lateness {
    /// What is due then and has ended, or will, at `end`; `None` when that is not known, or nothing of it
    /// ran.
    pub fn new(due: Millis, end: Option<Millis>) -> Self {
        let late_by = end.map(|end| end.since(due)).filter(|ms| *ms > 0);
        Self { due, late_by }
    }

    /// Of a job at `now`.
    pub fn of_job(due: Millis, row: &QueueEntry, now: Millis) -> Self {
        let end = if row.status.is_final() { row.end_time } else { Some(now) };
        Self::new(due, end)
    }

    /// Of a batch at `now`.
    pub fn of_batch(due: Millis, batch: &Batch, now: Millis) -> Self {
        Self::new(due, Some(batch.end_time.filter(|_| batch.status.is_final()).unwrap_or(now)))
    }
}

/// What the times of a batch that was opened at `at` are read from. A zone that nobody knows was refused
/// when the batch was opened.
pub fn opening(snapshot: &Snapshot, at: Millis) -> DueContext<'_> {
    let zone = zone_of(&snapshot.group).unwrap_or(Tz::UTC);
    DueContext { at, zone, days: snapshot.working_days() }
}

/// Every moment that the times of a batch ask for, each with what for.
pub fn moments(snapshot: &Snapshot, opened: Millis) -> Vec<(Millis, Alarm)> {
    let opening = opening(snapshot, opened);
    // A hundred thousand jobs may have the same time from the defaults.
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

/// Whether what a moment is for has not come about by it. A job that waits for another try has started.
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

/// How a job was started over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// When.
    pub since: Millis,
    /// Whether it had not ended well before.
    pub was_bad: bool,
}

/// Whether a moment was over when what it is for was started over; `again` says when that was. It was
/// told, or kept, when it ran before. A batch in which something had failed was not done by then, and is
/// late also when it goes on only afterwards.
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

/// How long a try of a job takes before it is slow, in milliseconds, by its own past.
pub fn slow_after(job: &JobDef, group: &Group, durations: Option<&Durations>) -> Option<i64> {
    let factor = job.slow_after.or(group.slow_after)?;
    let usual = durations.filter(|d| d.tries >= TRIES_NEEDED)?.p95;
    Some(factor.times(usual).max(usual.saturating_add(SLOW_OVER_MS)))
}

/// Whether anything of a batch asks how long jobs took.
pub fn asks_history(snapshot: &Snapshot) -> bool {
    let group = &snapshot.group;
    group.due.is_some()
        || group.slow_after.is_some()
        || snapshot.jobs.iter().any(|job| job.slow_after.is_some())
}

/// What has been said of a batch's forecast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foretold {
    /// How many times it was told.
    pub times: u32,
    /// Whether it was late when it was looked at last.
    is_late: bool,
}

impl Foretold {
    /// Whether a forecast that is late by `late_by` milliseconds is to be told, and what has been said
    /// then. It is told once; and again once it was in time in between, when it is late by more than
    /// `RELAPSE_MS`.
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
