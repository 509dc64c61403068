//! When a batch is expected to end, and which jobs decide that.

use crate::app::App;
use crate::domain::batch::history::DurationBasis;
use crate::domain::batch::{BatchStatus, Snapshot};
use crate::domain::dag::Node;
use crate::domain::forecast::certainty::{Certainty, Confidence, DoubtReason};
use crate::domain::forecast::eta::Forecast;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::view::batch::BatchView;
use crate::view::due::{DueTime, Dues, JobDueTime};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// The forecast of a batch's end.
pub enum EndForecast {
    /// It has ended, or is being stopped.
    Over,
    /// No job of it has a history.
    Unknown,
    /// A forecast.
    Expected {
        forecast: Box<Forecast>,
        /// Whether a living process dispatches it; else the forecast assumes that one does from now
        /// on.
        dispatched: bool,
    },
}

impl EndForecast {
    /// The forecast of this batch.
    pub async fn read_outlook(app: &App, view: &BatchView) -> Result<Self> {
        if view.batch.status != BatchStatus::Running {
            return Ok(Self::Over);
        }
        let forecast = app.forecast(&view.snapshot, &view.rows, view.now).await?;
        let dispatched = view.is_dispatched();
        Ok(forecast
            .map(Box::new)
            .map_or(Self::Unknown, |forecast| Self::Expected { forecast, dispatched }))
    }

    /// The document; null in place of what is unknown.
    pub fn document(&self, view: &BatchView) -> BatchEta {
        let batch = &view.batch;
        let (certainty, certainty_reason) = match self {
            Self::Unknown => {
                let (certainty, reason) = Confidence::NO_HISTORY;
                (Some(certainty), Some(reason))
            }
            Self::Over | Self::Expected { .. } => (None, None),
        };
        let (expected, dispatched) = match self {
            Self::Expected { forecast, dispatched } => {
                let states: Vec<QueueStatus> = view.rows.iter().map(|r| r.status).collect();
                let opened = batch.create_time;
                let snapshot = &view.snapshot;
                let expected = BatchForecast::new(snapshot, forecast, Some(&states), opened);
                (Some(expected), Some(*dispatched))
            }
            Self::Over | Self::Unknown => (None, None),
        };
        BatchEta {
            batch_no: batch.values.batch_no.to_string(),
            group: batch.values.group.to_string(),
            status: batch.status.as_str(),
            end_time: batch.end_time.map(|t| t.to_string()),
            expected,
            certainty,
            certainty_reason,
            dispatched,
            due: Dues::of_view(view).batch.end_time(),
        }
    }
}

/// When a batch is expected to end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchEta {
    /// The batch number.
    pub batch_no: String,
    /// The group code.
    pub group: String,
    /// The state: `RUNNING`, `SUCCESS`, …
    pub status: &'static str,
    /// When it ended, UTC.
    pub end_time: Option<String>,
    /// The forecast; null when the batch has ended, or when its jobs have no history.
    pub expected: Option<BatchForecast>,
    /// `unknown` where the history says nothing about the batch. A forecast has its own certainty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// Why it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty_reason: Option<DoubtReason>,
    /// Whether a living process runs the batch; if not, the forecast assumes that one does from now
    /// on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatched: Option<bool>,
    /// When it is due.
    #[serde(flatten)]
    pub due: DueTime,
}

/// When the open jobs of a batch are expected to start and to end. Times are UTC, durations
/// milliseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchForecast {
    /// When the forecast was made.
    pub now: String,
    /// Number of unfinished jobs.
    pub open_jobs: usize,
    /// When the batch is expected to end: earlier or later with equal probability.
    pub end: String,
    /// The remaining time until then.
    pub remaining_ms: i64,
    /// In nine of ten cases it ends before this.
    pub end_p90: String,
    /// The remaining time until then.
    pub remaining_p90_ms: i64,
    /// The certainty of the forecast.
    pub certainty: Certainty,
    /// The main reason for doubt.
    pub certainty_reason: Option<DoubtReason>,
    /// The jobs concerned by that.
    pub certainty_jobs: Vec<String>,
    /// When the critical path alone would end, if nothing waited for a slot.
    pub end_of_critical_path: String,
    /// The chain of jobs that decides the end.
    pub critical_path: Vec<String>,
    /// Jobs that have never succeeded; their duration is assumed.
    pub without_history: Vec<String>,
    /// Jobs held by an operator.
    pub held: Vec<String>,
    /// Jobs that are not included, because the time of what they wait for is unknown.
    pub not_counted: Vec<String>,
    /// The jobs of the batch.
    pub jobs: Vec<JobForecast>,
    /// When the batch is due.
    #[serde(flatten)]
    pub due: DueTime,
}

/// When a job is expected to run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobForecast {
    /// The job code.
    pub job_code: String,
    /// The state; null in a plan.
    pub status: Option<&'static str>,
    /// Median of its duration.
    pub p50_ms: i64,
    /// 95th percentile of its duration.
    pub p95_ms: i64,
    /// Whether that is from its own history.
    pub basis: DurationBasis,
    /// Whether it is on the chain that decides the end.
    pub critical: bool,
    /// By how much it may be later without moving the end.
    pub slack_ms: Option<i64>,
    /// The expected or actual start.
    pub start: Option<String>,
    /// The expected or actual end.
    pub end: Option<String>,
    /// Its index in the order in which the jobs start, from 0.
    pub turn: Option<usize>,
    /// When it is due.
    #[serde(flatten)]
    pub due: JobDueTime,
}

impl BatchForecast {
    /// The document of a forecast. `states` are parallel to the jobs of the snapshot; `None` in a
    /// plan. `opened` is when the batch was or would be opened.
    pub fn new(
        snapshot: &Snapshot,
        forecast: &Forecast,
        states: Option<&[QueueStatus]>,
        opened: Millis,
    ) -> Self {
        let dues = Dues::expected(snapshot, forecast, opened);
        let codes = |nodes: &[Node]| -> Vec<String> {
            nodes.iter().map(|n| snapshot.jobs[n.index()].code.to_string()).collect()
        };
        let jobs = snapshot.jobs.iter().zip(&forecast.jobs).enumerate().map(|(i, (def, job))| {
            JobForecast {
                job_code: def.code.to_string(),
                status: states.map(|s| s[i].as_str()),
                p50_ms: job.estimate.p50,
                p95_ms: job.estimate.p95,
                basis: job.estimate.basis,
                critical: job.critical,
                slack_ms: job.slack,
                start: job.start.map(|t| t.to_string()),
                end: job.end.map(|t| t.to_string()),
                turn: job.turn,
                due: dues.jobs[i].job_times(),
            }
        });
        let doubt = forecast.confidence.doubt.as_ref();
        Self {
            now: forecast.now.to_string(),
            open_jobs: forecast.open,
            end: forecast.end.to_string(),
            remaining_ms: forecast.remaining(),
            end_p90: forecast.bad_end.to_string(),
            remaining_p90_ms: forecast.bad_remaining(),
            certainty: forecast.confidence.certainty,
            certainty_reason: doubt.map(|d| d.reason),
            certainty_jobs: doubt.map_or_else(Vec::new, |d| codes(&d.jobs)),
            end_of_critical_path: forecast.bound.to_string(),
            critical_path: codes(&forecast.path),
            without_history: codes(&forecast.assumed),
            held: codes(&forecast.held),
            not_counted: codes(&forecast.left_out),
            jobs: jobs.collect(),
            due: dues.batch.end_time(),
        }
    }
}
