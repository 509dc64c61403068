//! Why a batch is late: the chain of jobs that decides its end, and what delayed it.

use crate::app::App;
use crate::domain::forecast::delay::{
    ChainLink, DelayCause, DelayInput, DelayKind, DelayReport, JobTimes, StateChange,
};
use crate::domain::forecast::delay_words::Punctuality;
use crate::domain::forecast::eta::Forecast;
use crate::domain::text::lang::Lang;
use crate::store;
use crate::view::batch::BatchView;
use crate::view::due::Dues;
use crate::view::eta::EndForecast;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// Number of jobs of a chain whose logs are read; a longer chain is judged by its rows.
const LOGS: usize = 100;

/// Why a batch is late.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WhyLate {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// The state.
    pub status: String,
    /// When it is due.
    pub due: Option<String>,
    /// By how many milliseconds it is late, or was when it ended.
    pub late_by_ms: Option<i64>,
    /// By how many milliseconds it is expected to be late.
    pub expected_late_by_ms: Option<i64>,
    /// The explanation in one sentence; null where no job has run.
    pub message: Option<String>,
    /// The jobs that decide when it ends, in the order of execution; including those that have not
    /// begun.
    pub chain: Vec<DelayLink>,
    /// What delayed them, the longest delay first.
    pub causes: Vec<DelayFault>,
}

/// A job of the chain.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DelayLink {
    /// The job code.
    pub job: String,
    /// The state.
    pub status: String,
    /// Milliseconds from the end of its last parent to its first start.
    pub waited_ms: i64,
    /// Duration of its last attempt so far, in milliseconds.
    pub ran_ms: Option<i64>,
    /// Its usual duration in milliseconds.
    pub usual_ms: Option<i64>,
}

/// A cause of delay in the chain.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DelayFault {
    /// The delayed job.
    pub job: String,
    /// The kind of cause.
    pub kind: DelayKind,
    /// The delay in milliseconds; for a long run, by how much it exceeded the usual duration.
    pub delay_ms: i64,
    /// The duration of a long run, in milliseconds.
    pub ran_ms: Option<i64>,
    /// The usual duration, for a long run, in milliseconds.
    pub usual_ms: Option<i64>,
    /// The name of what it waited for.
    pub resource: Option<String>,
    /// The job of this batch that held it.
    pub held_by: Option<String>,
    /// The cause as a sentence.
    pub message: String,
}

impl WhyLate {
    /// The explanation for a batch with a forecast.
    pub async fn explain(
        app: &App,
        view: &BatchView,
        outlook: &EndForecast,
        lang: Lang,
    ) -> Result<Self> {
        let forecast = match outlook {
            EndForecast::Expected { forecast, .. } => Some(forecast.as_ref()),
            EndForecast::Over | EndForecast::Unknown => None,
        };
        let report = report(app, view, forecast).await?;
        let (late, expected) = lateness(view, forecast);
        let is = match (late, expected) {
            (Some(ms), _) => Punctuality::Late(ms),
            (None, Some(ms)) => Punctuality::WillBeLate(ms),
            (None, None) => Punctuality::InTime,
        };
        let link = |link: &ChainLink| DelayLink {
            job: view.snapshot.jobs[link.job.index()].code.to_string(),
            status: view.rows[link.job.index()].status.as_str().to_owned(),
            waited_ms: link.waited_ms,
            ran_ms: link.ran_ms,
            usual_ms: link.usual_ms,
        };
        Ok(Self {
            group: view.batch.values.group.to_string(),
            batch_no: view.batch.values.batch_no.to_string(),
            status: view.batch.status.as_str().to_owned(),
            due: Dues::of_view(view).batch.due.map(|at| at.to_string()),
            late_by_ms: late,
            expected_late_by_ms: expected,
            message: report.sentence(&view.snapshot, is, lang),
            chain: report.chain.iter().map(link).collect(),
            causes: report.causes.iter().map(|cause| fault(view, cause, lang)).collect(),
        })
    }
}

fn fault(view: &BatchView, cause: &DelayCause, lang: Lang) -> DelayFault {
    let code = |node: crate::domain::dag::Node| view.snapshot.jobs[node.index()].code.to_string();
    DelayFault {
        job: code(cause.job),
        kind: cause.kind,
        delay_ms: cause.ms,
        ran_ms: cause.took.map(|(ran, _)| ran),
        usual_ms: cause.took.map(|(_, usual)| usual),
        resource: cause.resource.clone(),
        held_by: cause.held_by.map(code),
        message: cause.describe(&view.snapshot, lang),
    }
}

/// By how much a batch is late, and is expected to be.
fn lateness(view: &BatchView, forecast: Option<&Forecast>) -> (Option<i64>, Option<i64>) {
    let opened = view.batch.create_time;
    let expected = forecast.and_then(|f| Dues::expected(&view.snapshot, f, opened).batch.late_by);
    (Dues::of_view(view).batch.late_by, expected)
}

async fn report(app: &App, view: &BatchView, forecast: Option<&Forecast>) -> Result<DelayReport> {
    let dag = view.snapshot.build_dag()?;
    let history = app.history(&view.snapshot.group.code).await?;
    let times: Vec<JobTimes> = view.rows.iter().map(JobTimes::from).collect();
    let input = DelayInput {
        snapshot: &view.snapshot,
        dag: &dag,
        times: &times,
        history: &history,
        total: app.config.engine.max_parallel,
        opened: view.batch.create_time,
        now: view.batch.end_time.unwrap_or(view.now),
    };
    let chain = input.decisive_chain(forecast);
    let mut times = times.clone();
    let mut tx = app.db.begin_read().await?;
    for node in chain.iter().take(LOGS) {
        let row = &view.rows[node.index()];
        let changes = store::log::of_entry(&mut tx, row.queue_id).await?;
        let change = |c: &store::log::LoggedChange| StateChange {
            at: c.at,
            status: c.log.status,
            start: c.log.start_time,
        };
        let changes: Vec<StateChange> = changes.iter().map(change).collect();
        times[node.index()] = times[node.index()].with_changes(&changes);
    }
    drop(tx);
    Ok(DelayInput { times: &times, ..input }.explain(&chain))
}
