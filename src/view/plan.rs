//! A plan: what opening batches would do, with a forecast.

use crate::app::{self, App};
use crate::definition::DefinitionDifference;
use crate::domain::batch::Batch;
use crate::domain::batch::history::History;
use crate::domain::batch::param_preview::ShownParam;
use crate::domain::dag::Node;
use crate::domain::forecast::dry_run::{BatchPreview, ParamChange, param_changes};
use crate::domain::forecast::eta::Forecast;
use crate::domain::id::{BatchNo, JobCode};
use crate::domain::job::{Definition, JobDef};
use crate::domain::time::Millis;
use crate::store;
use crate::view::change::DefinitionChangeDetail;
use crate::view::due::{DueTime, Dues, JobDueTime};
use crate::view::eta::BatchForecast;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// One batch of the plan with its forecast.
pub struct PlannedBatch {
    /// What the order would open from the definition.
    pub preview: BatchPreview,
    /// The forecast; `None` without history.
    pub forecast: Option<Forecast>,
    /// The changes since an earlier batch, if one was requested.
    pub since: Option<ChangesSince>,
    /// When it would be opened.
    pub now: Millis,
}

/// The changes since an earlier batch of the group.
pub struct ChangesSince {
    /// The earlier batch.
    pub batch: Batch,
    /// The differences of the definition.
    pub changes: Vec<DefinitionDifference>,
    /// The parameters that differ.
    pub params: Vec<ParamChange>,
    /// Durations of jobs then and as forecast now, where both are known, in milliseconds.
    pub took: Vec<(JobCode, i64, i64)>,
}

impl ChangesSince {
    /// Duration of the earlier batch, if it has ended.
    pub fn took_in_all(&self) -> Option<i64> {
        Some(self.batch.end_time?.since(self.batch.create_time))
    }
}

impl PlannedBatch {
    /// When its jobs and the batch are due.
    pub fn due_times(&self) -> Dues {
        let (snapshot, now) = (&self.preview.plan.snapshot, self.now);
        match &self.forecast {
            Some(forecast) => Dues::expected(snapshot, forecast, now),
            None => Dues::planned(snapshot, now),
        }
    }

    /// The document of the plan.
    pub fn document(&self) -> BatchPlanDetail {
        let plan = &self.preview.plan;
        let codes = |nodes: &Vec<Node>| -> Vec<String> {
            nodes.iter().map(|n| plan.snapshot.jobs[n.index()].code.to_string()).collect()
        };
        let dues = self.due_times();
        BatchPlanDetail {
            batch_no: plan.values.batch_no.to_string(),
            group: plan.values.group.to_string(),
            batch_type: plan.batch_type.clone(),
            business_date: plan.values.business_date.map(|day| day.to_string()),
            waves: self.preview.waves(self.forecast.as_ref()).iter().map(codes).collect(),
            jobs: planned_jobs(&self.preview, &dues),
            expected: self
                .forecast
                .as_ref()
                .map(|f| BatchForecast::new(&plan.snapshot, f, None, self.now)),
            since: self.since.as_ref().map(PlanComparison::new),
            due: dues.batch.end_time(),
        }
    }
}

/// The changes since an earlier batch; `None` if there was none of that number.
pub async fn since(
    app: &App,
    defs: &Definition,
    preview: &BatchPreview,
    history: &History,
    no: &BatchNo,
) -> Result<Option<ChangesSince>> {
    let mut tx = app.db.begin_read().await?;
    let Some(batch) = store::batch::find_batch(&mut tx, no, &preview.plan.values.group).await?
    else {
        return Ok(None);
    };
    let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
    let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
    let took = rows.iter().filter(|r| r.status.is_final()).filter_map(|row| {
        let took = row.end_time?.since(row.start_time?);
        let planned = preview.plan.snapshot.jobs.iter().any(|j| j.code == row.job_code);
        let expected = history.get(&row.job_code).filter(|_| planned)?.p50;
        Some((row.job_code.clone(), took, expected))
    });
    Ok(Some(ChangesSince {
        changes: app::differences(&snapshot, defs),
        params: param_changes(&snapshot, &batch.values, preview),
        took: took.collect(),
        batch,
    }))
}

/// What opening a batch would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchPlanDetail {
    /// The batch number.
    pub batch_no: String,
    /// The group code.
    pub group: String,
    /// The type of the group: `monthly`, `daily`, …
    #[serde(rename = "type")]
    pub batch_type: Option<String>,
    /// The business date, `2024-07-31`; null where the number implies none and none was given.
    pub business_date: Option<String>,
    /// Jobs that can start together, one list per wave.
    pub waves: Vec<Vec<String>>,
    /// The jobs with their parameters.
    pub jobs: Vec<PlannedJob>,
    /// The forecast; null without history.
    pub expected: Option<BatchForecast>,
    /// The changes since an earlier batch, if one was named.
    pub since: Option<PlanComparison>,
    /// When it is due.
    #[serde(flatten)]
    pub due: DueTime,
}

/// A job of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlannedJob {
    /// The job code.
    pub job_code: String,
    /// The job name.
    pub job_name: String,
    /// PROC, SQL, SCRIPT, NOOP, HTTP, …
    pub job_type: String,
    /// The wave in which it can start, from 0.
    pub wave: u32,
    /// The data source it runs on.
    pub source: Option<String>,
    /// The direct dependencies.
    pub depends_on: Vec<String>,
    /// A higher priority gets a slot first.
    pub priority: i32,
    /// Time limit of an attempt in seconds.
    pub timeout_sec: u32,
    /// Number of retries of a failed attempt.
    pub retry_count: u32,
    /// Whether it may safely be started twice.
    pub idempotent: bool,
    /// The earliest start time, UTC.
    pub not_before: Option<String>,
    /// Its parameters with their values, secrets masked.
    pub params: Vec<ShownParam>,
    /// When it is due to start and to end.
    #[serde(flatten)]
    pub due: JobDueTime,
}

/// The changes since an earlier batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanComparison {
    /// The number of the earlier batch.
    pub batch_no: String,
    /// How it ended.
    pub status: &'static str,
    /// Its duration in milliseconds.
    pub took_ms: Option<i64>,
    /// The differences of the definition.
    pub changes: Vec<DefinitionChangeDetail>,
    /// Parameters with different values.
    pub params: Vec<ParamChange>,
    /// Durations of jobs then and usually.
    pub durations: Vec<DurationComparison>,
}

/// The duration of a job in an earlier batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DurationComparison {
    /// The job code.
    pub job_code: String,
    /// The duration then, in milliseconds.
    pub took_ms: i64,
    /// Median of its durations, in milliseconds.
    pub p50_ms: i64,
}

fn planned_jobs(preview: &BatchPreview, dues: &Dues) -> Vec<PlannedJob> {
    let plan = &preview.plan;
    let mut parents: HashMap<&JobCode, Vec<String>> = HashMap::new();
    for dependency in &plan.snapshot.dependencies {
        let of = parents.entry(&dependency.job_code).or_default();
        of.push(dependency.depends_on.to_string());
    }
    let planned = |(i, job): (usize, &JobDef)| PlannedJob {
        job_code: job.code.to_string(),
        job_name: job.name.clone(),
        job_type: job.job_type.to_string(),
        wave: preview.dag.level(Node(i as u32)),
        source: job.source.as_ref().map(ToString::to_string),
        depends_on: parents.remove(&job.code).unwrap_or_default(),
        priority: job.priority,
        timeout_sec: job.timeout_sec,
        retry_count: job.retry_count,
        idempotent: job.idempotent,
        not_before: plan.not_before[i].map(|t| t.to_string()),
        params: preview.params[i].clone(),
        due: dues.jobs[i].job_times(),
    };
    plan.snapshot.jobs.iter().enumerate().map(planned).collect()
}

impl PlanComparison {
    fn new(since: &ChangesSince) -> Self {
        let duration = |(code, took, usual): &(JobCode, i64, i64)| DurationComparison {
            job_code: code.to_string(),
            took_ms: *took,
            p50_ms: *usual,
        };
        Self {
            batch_no: since.batch.values.batch_no.to_string(),
            status: since.batch.status.as_str(),
            took_ms: since.took_in_all(),
            changes: since.changes.iter().map(DefinitionChangeDetail::from_change).collect(),
            params: since.params.clone(),
            durations: since.took.iter().map(duration).collect(),
        }
    }
}
