//! When a batch is expected to end, and which jobs decide that.

use crate::app::App;
use crate::domain::batch::{BatchStatus, Snapshot};
use crate::domain::dag::Node;
use crate::domain::forecast::certainty::Confidence;
use crate::domain::forecast::eta::Forecast;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::view::batch::View;
use crate::view::due::Dues;
use anyhow::Result;
use serde_json::{Value, json};

/// What can be said of a batch's end.
pub enum Outlook {
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

impl Outlook {
    /// What can be said of this one.
    pub async fn of(app: &App, view: &View) -> Result<Self> {
        if view.batch.status != BatchStatus::Running {
            return Ok(Self::Over);
        }
        let forecast = app.forecast(&view.snapshot, &view.rows, view.now).await?;
        let dispatched = view.is_dispatched();
        Ok(forecast
            .map(Box::new)
            .map_or(Self::Unknown, |forecast| Self::Expected { forecast, dispatched }))
    }

    /// The outlook for scripts; `null` in place of what is not known.
    pub fn document(&self, view: &View) -> Value {
        let batch = &view.batch;
        let mut document = json!({
            "batch_no": batch.values.batch_no, "group": batch.values.group,
            "status": batch.status.as_str(), "end_time": batch.end_time.map(|t| t.to_string()),
            "expected": null,
        });
        if let Outlook::Unknown = self {
            let (certainty, reason) = Confidence::NO_HISTORY;
            document["certainty"] = json!(certainty);
            document["certainty_reason"] = json!(reason);
        }
        if let Outlook::Expected { forecast, dispatched } = self {
            let states: Vec<QueueStatus> = view.rows.iter().map(|r| r.status).collect();
            document["dispatched"] = json!(dispatched);
            let opened = batch.create_time;
            document["expected"] =
                forecast_document(&view.snapshot, forecast, Some(&states), opened);
        }
        Dues::of_view(view).batch.put_end(&mut document);
        document
    }
}

/// A forecast for scripts. Moments are RFC 3339, lengths of time milliseconds.
pub fn forecast_document(
    snapshot: &Snapshot,
    forecast: &Forecast,
    states: Option<&[QueueStatus]>,
    opened: Millis,
) -> Value {
    let dues = Dues::expected(snapshot, forecast, opened);
    let codes = |nodes: &[Node]| -> Vec<&str> {
        nodes.iter().map(|n| snapshot.jobs[n.at()].code.as_str()).collect()
    };
    let jobs: Vec<Value> = snapshot
        .jobs
        .iter()
        .zip(&forecast.jobs)
        .enumerate()
        .map(|(i, (def, job))| {
            let mut document = json!({
                "job_code": def.code, "status": states.map(|s| s[i].as_str()),
                "p50_ms": job.estimate.p50, "p95_ms": job.estimate.p95,
                "basis": job.estimate.basis, "critical": job.critical, "slack_ms": job.slack,
                "start": job.start.map(|t| t.to_string()), "end": job.end.map(|t| t.to_string()),
                "turn": job.turn,
            });
            dues.jobs[i].put(&mut document);
            document
        })
        .collect();
    let doubt = forecast.confidence.doubt.as_ref();
    let mut document = json!({
        "now": forecast.now.to_string(), "open_jobs": forecast.open,
        "end": forecast.end.to_string(), "remaining_ms": forecast.remaining(),
        "end_p90": forecast.bad_end.to_string(), "remaining_p90_ms": forecast.bad_remaining(),
        "certainty": forecast.confidence.certainty,
        "certainty_reason": doubt.map(|d| d.reason),
        "certainty_jobs": doubt.map_or_else(Vec::new, |d| codes(&d.jobs)),
        "end_of_critical_path": forecast.bound.to_string(),
        "critical_path": codes(&forecast.path), "without_history": codes(&forecast.assumed),
        "held": codes(&forecast.held), "not_counted": codes(&forecast.left_out), "jobs": jobs,
    });
    dues.batch.put_end(&mut document);
    document
}
