//! When the jobs of a batch ran, compared with their plan.

use crate::app::App;
use crate::domain::batch::zone_of;
use crate::domain::dag::{Dag, Node};
use crate::domain::forecast::eta::{self, Forecast, JobProgress};
use crate::domain::id::QueueId;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::{Millis, at_wall_clock, day_in};
use crate::store;
use crate::view::batch::BatchView;
use crate::view::due::Dues;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The times of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchTimes {
    /// When it was opened.
    pub opened: String,
    /// When it ended.
    pub ended: Option<String>,
    /// When this was read.
    pub now: String,
    /// When it is due.
    pub due: Option<String>,
    /// When it would have ended if each job had taken its usual duration.
    pub planned_end: Option<String>,
    /// The present forecast of its end.
    pub expected_end: Option<String>,
    /// Its jobs, in the order of execution: by wave, then as defined.
    pub items: Vec<GanttBar>,
}

/// The times of one job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GanttBar {
    /// The job code.
    pub job: String,
    /// The job name.
    pub name: String,
    /// Its depth in the graph.
    pub level: u32,
    /// The state.
    pub status: String,
    /// The attempt number.
    pub attempt: u32,
    /// Start of the present or last attempt.
    pub start: Option<String>,
    /// End of the last attempt.
    pub end: Option<String>,
    /// When it would have started if each job had taken its usual duration.
    pub planned_start: Option<String>,
    /// When it would have ended then.
    pub planned_end: Option<String>,
    /// For an unfinished job: the present forecast of its start.
    pub expected_start: Option<String>,
    /// For an unfinished job: the present forecast of its end.
    pub expected_end: Option<String>,
    /// When it is due.
    pub due: Option<String>,
    /// Whether it is on the chain of jobs that decides, or decided, when the batch ends.
    pub critical: bool,
    /// Its attempts, where there is more than one.
    pub attempts: Vec<AttemptTimes>,
}

/// The times of one attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AttemptTimes {
    /// The attempt number.
    pub attempt: u32,
    /// When it began.
    pub start: String,
    /// When it ended.
    pub end: String,
    /// How it ended.
    pub status: String,
}

impl BatchTimes {
    /// Reads the times of a batch.
    pub async fn read_times(app: &App, view: &BatchView) -> Result<Self> {
        let (snapshot, opened) = (&view.snapshot, view.batch.create_time);
        let dag = snapshot.build_dag()?;
        let history = app.history(&snapshot.group.code).await?;
        let total = app.config.engine.max_parallel;
        let forecast = |standing: &[JobProgress], at| {
            eta::forecast(snapshot, &dag, standing, &history, total, at)
        };
        let planned = forecast(&as_opened(view)?, opened);
        let present: Vec<JobProgress> = view.rows.iter().map(JobProgress::from).collect();
        let expected = match view.batch.status.is_final() {
            true => None,
            false => forecast(&present, view.now),
        };
        let mut tx = app.db.begin_read().await?;
        let tries = tries_of(store::glance::tries(&mut tx, view.batch.batch_id).await?);
        drop(tx);
        let critical = critical(view, &dag, expected.as_ref());
        let dues = Dues::of_view(view);
        let words = |at: Option<Millis>| at.map(|at| at.to_string());
        let bar = |node: Node| {
            let (job, row) = (&snapshot.jobs[node.index()], &view.rows[node.index()]);
            let plan = planned.as_ref().and_then(|f| f.jobs.get(node.index()));
            let open = expected.as_ref().and_then(|f| f.jobs.get(node.index()));
            let open = open.filter(|_| !row.status.is_final());
            GanttBar {
                job: job.code.to_string(),
                name: job.name.clone(),
                level: dag.level(node),
                status: row.status.as_str().to_owned(),
                attempt: row.attempt,
                start: words(row.start_time),
                end: words(row.end_time),
                planned_start: words(plan.and_then(|p| p.start)),
                planned_end: words(plan.and_then(|p| p.end)),
                expected_start: words(open.and_then(|e| e.start)),
                expected_end: words(open.and_then(|e| e.end)),
                due: words(dues.jobs[node.index()].due),
                critical: critical.contains(&node),
                attempts: tries.get(&row.queue_id).cloned().unwrap_or_default(),
            }
        };
        let mut order: Vec<Node> = (0..view.rows.len()).map(|i| Node(i as u32)).collect();
        order.sort_by_key(|node| (dag.level(*node), *node));
        Ok(Self {
            opened: opened.to_string(),
            ended: words(view.batch.end_time),
            now: view.now.to_string(),
            due: words(dues.batch.due),
            planned_end: words(planned.as_ref().map(|f| f.end)),
            expected_end: words(expected.as_ref().map(|f| f.end)),
            items: order.into_iter().map(bar).collect(),
        })
    }
}

/// The chain of jobs that decides, or decided, when a batch ends.
fn critical(view: &BatchView, dag: &Dag, expected: Option<&Forecast>) -> HashSet<Node> {
    if let Some(forecast) = expected {
        return forecast.path.iter().copied().collect();
    }
    let ran = |row: &QueueEntry| row.end_time.filter(|_| row.start_time.is_some());
    let ends: Vec<Option<Millis>> = view.rows.iter().map(ran).collect();
    eta::decisive(dag, &ends).into_iter().collect()
}

/// The state of the batch when it was opened.
fn as_opened(view: &BatchView) -> Result<Vec<JobProgress>> {
    let zone = zone_of(&view.snapshot.group)?;
    let day = day_in(view.batch.create_time, zone);
    let standing = |time: Option<chrono::NaiveTime>| JobProgress {
        status: QueueStatus::Pending,
        start: None,
        end: None,
        not_before: time.map(|time| at_wall_clock(day, time, zone)),
    };
    Ok(view.snapshot.jobs.iter().map(|job| standing(job.schedule_time)).collect())
}

/// Attempts by row, each once: a later message about an attempt belongs to the same one.
fn tries_of(
    found: Vec<(QueueId, u32, Millis, Millis, QueueStatus)>,
) -> HashMap<QueueId, Vec<AttemptTimes>> {
    let mut of: HashMap<QueueId, Vec<AttemptTimes>> = HashMap::new();
    for (row, attempt, start, end, status) in found {
        let tries = of.entry(row).or_default();
        tries.retain(|t| t.attempt != attempt);
        let (start, end) = (start.to_string(), end.to_string());
        tries.push(AttemptTimes { attempt, start, end, status: status.as_str().to_owned() });
    }
    of
}
