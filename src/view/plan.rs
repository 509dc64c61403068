//! A plan: what opening batches would do, and what is expected of them.

use crate::app::{self, App};
use crate::definition::Change;
use crate::domain::batch::Batch;
use crate::domain::batch::history::History;
use crate::domain::dag::Node;
use crate::domain::forecast::dry_run::{ParamChange, Preview, param_changes};
use crate::domain::forecast::eta::Forecast;
use crate::domain::id::{BatchNo, JobCode};
use crate::domain::job::{Definition, JobDef};
use crate::domain::time::Millis;
use crate::store;
use crate::view::change::Changed;
use crate::view::due::Dues;
use crate::view::eta::forecast_document;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// One batch of the plan with what is expected of it.
pub struct Planned {
    /// What the order makes of the definition.
    pub preview: Preview,
    /// When it is expected to end; none without history.
    pub forecast: Option<Forecast>,
    /// What has changed since an earlier batch, where one was asked for.
    pub since: Option<Since>,
    /// When it would be opened.
    pub now: Millis,
}

/// What has changed since an earlier batch of the group.
pub struct Since {
    /// The earlier batch.
    pub batch: Batch,
    /// What the definition says differently.
    pub changes: Vec<Change>,
    /// Which parameters differ.
    pub params: Vec<ParamChange>,
    /// How long jobs took then and are expected to take now, where that is known of both.
    pub took: Vec<(JobCode, i64, i64)>,
}

impl Since {
    /// How long the batch took, if it has ended.
    pub fn took_in_all(&self) -> Option<i64> {
        Some(self.batch.end_time?.since(self.batch.create_time))
    }
}

impl Planned {
    /// By when its jobs and the batch should have started and ended.
    pub fn dues(&self) -> Dues {
        let (snapshot, now) = (&self.preview.plan.snapshot, self.now);
        match &self.forecast {
            Some(forecast) => Dues::expected(snapshot, forecast, now),
            None => Dues::planned(snapshot, now),
        }
    }

    /// As a document.
    pub fn document(&self) -> Result<Value> {
        document(self)
    }
}

/// What has changed since an earlier batch; none where there was none of that number.
pub async fn since(
    app: &App,
    defs: &Definition,
    preview: &Preview,
    history: &History,
    no: &BatchNo,
) -> Result<Option<Since>> {
    let mut tx = app.db.read().await?;
    let Some(batch) = store::batch::find(&mut tx, no, &preview.plan.values.group).await? else {
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
    Ok(Some(Since {
        changes: app::differences(&snapshot, defs),
        params: param_changes(&snapshot, &batch.values, preview),
        took: took.collect(),
        batch,
    }))
}

fn document(planned: &Planned) -> Result<Value> {
    let preview = &planned.preview;
    let plan = &preview.plan;
    let codes = |nodes: &[Node]| -> Vec<&JobCode> {
        nodes.iter().map(|n| &plan.snapshot.jobs[n.at()].code).collect()
    };
    let waves = preview.waves(planned.forecast.as_ref());
    let mut parents: HashMap<&JobCode, Vec<&JobCode>> = HashMap::new();
    for dependency in &plan.snapshot.dependencies {
        parents.entry(&dependency.job_code).or_default().push(&dependency.depends_on);
    }
    let dues = planned.dues();
    let job = |(i, job): (usize, &JobDef)| {
        let mut document = json!({
            "job_code": job.code, "job_name": job.name, "job_type": job.job_type,
            "wave": preview.dag.level(Node(i as u32)), "source": job.source,
            "depends_on": parents.get(&job.code).map_or(&[][..], Vec::as_slice),
            "priority": job.priority, "timeout_sec": job.timeout_sec,
            "retry_count": job.retry_count, "idempotent": job.idempotent,
            "not_before": plan.not_before[i].map(|t| t.to_string()),
            "params": preview.params[i],
        });
        dues.jobs[i].put(&mut document);
        document
    };
    let jobs: Vec<Value> = plan.snapshot.jobs.iter().enumerate().map(job).collect();
    let expected =
        planned.forecast.as_ref().map(|f| forecast_document(&plan.snapshot, f, None, planned.now));
    let mut document = json!({
        "batch_no": plan.values.batch_no, "group": plan.values.group, "type": plan.batch_type,
        "business_date": plan.values.business_date,
        "waves": waves.iter().map(|w| codes(w)).collect::<Vec<_>>(), "jobs": jobs,
        "expected": expected, "since": planned.since.as_ref().map(since_json),
    });
    dues.batch.put_end(&mut document);
    Ok(document)
}

fn since_json(since: &Since) -> Value {
    let took: Vec<Value> = since
        .took
        .iter()
        .map(
            |(code, took, expected)| json!({"job_code": code, "took_ms": took, "p50_ms": expected}),
        )
        .collect();
    json!({
        "batch_no": since.batch.values.batch_no, "status": since.batch.status.as_str(),
        "took_ms": since.took_in_all(), "changes": since.changes.iter().map(Changed::of).collect::<Vec<_>>(),
        "params": since.params, "durations": took,
    })
}
