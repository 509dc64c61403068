//! When a batch and its jobs are due, and how late they are or will be.

use crate::domain::batch::Snapshot;
use crate::domain::dag::Node;
use crate::domain::forecast::eta::Forecast;
use crate::domain::forecast::lateness::{Alarm, Lateness, is_missed, moments};
use crate::domain::time::Millis;
use crate::view::batch::BatchView;
use schemars::JsonSchema;
use serde::Serialize;

/// The due times of a batch and its jobs.
pub struct Dues {
    pub batch: DueMoments,
    /// Parallel to the jobs of the snapshot.
    pub jobs: Vec<DueMoments>,
}

/// The due times of a job or of the batch.
#[derive(Clone, Copy, Default)]
pub struct DueMoments {
    /// When it is due to start; only for a job.
    pub start_by: Option<Millis>,
    /// When it is due to end.
    pub due: Option<Millis>,
    /// By how many milliseconds it is late, or will be.
    pub late_by: Option<i64>,
}

impl Dues {
    /// Due times, with a function that computes the lateness of each.
    pub(crate) fn with_lateness(
        snapshot: &Snapshot,
        opened: Millis,
        late_by: impl Fn(Millis, Alarm) -> Option<i64>,
    ) -> Self {
        let (batch, jobs) =
            (DueMoments::default(), vec![DueMoments::default(); snapshot.jobs.len()]);
        let mut this = Self { batch, jobs };
        for (at, alarm) in moments(snapshot, opened) {
            let entry = match alarm {
                Alarm::Batch => Some(&mut this.batch),
                Alarm::Start(node) | Alarm::Finish(node) | Alarm::Release(node) => {
                    this.jobs.get_mut(node.index())
                }
            };
            let Some(entry) = entry else { continue };
            match alarm {
                Alarm::Start(_) => entry.start_by = Some(at),
                Alarm::Finish(_) | Alarm::Batch => entry.due = Some(at),
                Alarm::Release(_) => {}
            }
            entry.late_by = entry.late_by.max(late_by(at, alarm));
        }
        this
    }

    /// The present lateness of a batch.
    pub fn of_view(view: &BatchView) -> Self {
        let (rows, now) = (&view.rows, view.now);
        Self::with_lateness(&view.snapshot, view.batch.create_time, |at, alarm| match alarm {
            Alarm::Start(_) => is_missed(alarm, rows).then(|| now.since(at)).filter(|ms| *ms > 0),
            Alarm::Finish(node) => Lateness::of_job(at, rows.get(node.index())?, now).late_by,
            Alarm::Batch => Lateness::of_batch(at, &view.batch, now).late_by,
            Alarm::Release(_) => None,
        })
    }

    /// The lateness in a forecast, for a batch opened at `opened`.
    pub fn expected(snapshot: &Snapshot, forecast: &Forecast, opened: Millis) -> Self {
        let job = |node: Node| forecast.jobs.get(node.index());
        Self::with_lateness(snapshot, opened, |at, alarm| {
            let end = match alarm {
                Alarm::Start(node) => job(node)?.start,
                Alarm::Finish(node) => job(node)?.end,
                Alarm::Batch => Some(forecast.end),
                Alarm::Release(_) => None,
            };
            Lateness::new(at, end).late_by
        })
    }

    /// The due times of a plan without a forecast.
    pub fn planned(snapshot: &Snapshot, opened: Millis) -> Self {
        Self::with_lateness(snapshot, opened, |_, _| None)
    }
}

/// When a batch or a job is due, and whether it is late.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DueTime {
    /// When it is due to end, UTC; null without a due time.
    pub due: Option<String>,
    /// Whether it is late, or is expected to be.
    pub is_late: bool,
    /// By how many milliseconds.
    pub late_by_ms: Option<i64>,
}

/// When a job is due to start and to end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobDueTime {
    /// When it is due to start, UTC; null without a due time.
    pub start_by: Option<String>,
    /// When it is due to end.
    #[serde(flatten)]
    pub end: DueTime,
}

impl DueMoments {
    /// The document for a batch, which has no `start_by`.
    pub fn end_time(self) -> DueTime {
        DueTime {
            due: self.due.map(|at| at.to_string()),
            is_late: self.late_by.is_some(),
            late_by_ms: self.late_by,
        }
    }

    /// The document for a job.
    pub fn job_times(self) -> JobDueTime {
        JobDueTime { start_by: self.start_by.map(|at| at.to_string()), end: self.end_time() }
    }
}
