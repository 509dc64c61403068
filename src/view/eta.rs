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

/// What can be said of a batch's end.
pub enum EndForecast {
    /// It has ended, or is being stopped.
    Over,
    /// No job of it has a history.
    Unknown,
    /// A forecast.
    Expected {
        /// It.
        forecast: Box<Forecast>,
        /// Whether a living process dispatches it; else the figures hold if one did from now on.
        dispatched: bool,
    },
}

impl EndForecast {
    /// What can be said of this one.
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

    /// The outlook for programs; null in place of what is not known.
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
    /// Its number.
    pub batch_no: String,
    /// Its group.
    pub group: String,
    /// Its state: `RUNNING`, `SUCCESS`, …
    pub status: &'static str,
    /// When it ended, UTC.
    pub end_time: Option<String>,
    /// The forecast; null when the batch has ended, or when nothing is known of its jobs.
    pub expected: Option<BatchForecast>,
    /// `unknown` where the past says nothing about the batch. A forecast has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// Why it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty_reason: Option<DoubtReason>,
    /// Whether a living process runs the batch; if not, the forecast holds from when one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatched: Option<bool>,
    /// By when it should have ended.
    #[serde(flatten)]
    pub due: DueTime,
}

/// When the open jobs of a batch are expected to start and to end. Moments are UTC, lengths of time milliseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchForecast {
    /// When it was worked out.
    pub now: String,
    /// Jobs that are not over.
    pub open_jobs: usize,
    /// When the batch is expected to end: as likely before as after.
    pub end: String,
    /// How long that is from now.
    pub remaining_ms: i64,
    /// It ends earlier in nine of ten cases.
    pub end_p90: String,
    /// How long that is from now.
    pub remaining_p90_ms: i64,
    /// How far the forecast can be relied on.
    pub certainty: Certainty,
    /// The weightiest thing against it.
    pub certainty_reason: Option<DoubtReason>,
    /// The jobs that this is about.
    pub certainty_jobs: Vec<String>,
    /// When the critical path alone would end, if nothing waited for a slot.
    pub end_of_critical_path: String,
    /// The chain of jobs that decides the end.
    pub critical_path: Vec<String>,
    /// Jobs that have never ended well; their duration is assumed.
    pub without_history: Vec<String>,
    /// Jobs that an operator holds back.
    pub held: Vec<String>,
    /// Jobs that are not counted, because they wait for something of which no time is known.
    pub not_counted: Vec<String>,
    /// Each job of the batch.
    pub jobs: Vec<JobForecast>,
    /// By when the batch should have ended.
    #[serde(flatten)]
    pub due: DueTime,
}

/// When a job is expected to run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobForecast {
    /// Its code.
    pub job_code: String,
    /// Its state; null in a plan.
    pub status: Option<&'static str>,
    /// How long it usually takes: half of its attempts took no longer.
    pub p50_ms: i64,
    /// Nineteen of twenty took no longer.
    pub p95_ms: i64,
    /// Whether that is from its own past.
    pub basis: DurationBasis,
    /// Whether it is on the chain that decides the end.
    pub critical: bool,
    /// By how much it may be later without moving the end.
    pub slack_ms: Option<i64>,
    /// When it starts or did start.
    pub start: Option<String>,
    /// When it ends or did end.
    pub end: Option<String>,
    /// Its place in the order in which the jobs start, from 0.
    pub turn: Option<usize>,
    /// By when it should.
    #[serde(flatten)]
    pub due: JobDueTime,
}

impl BatchForecast {
    /// A forecast for programs. `states` are parallel to the jobs of the snapshot; none in a plan. `opened` is when the
    /// batch was or would be opened.
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
