//! The graph of a definition or a batch, ready for drawing.

use crate::app::App;
use crate::definition::did_you_mean;
use crate::domain::batch::history::DurationBasis;
use crate::domain::batch::{Batch, BatchOrder, Snapshot, plan};
use crate::domain::dag::Node;
use crate::domain::forecast::eta::{self, Forecast};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::picture::{Collapse, DagView, External, ForecastTiming, JobState};
use crate::store;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashSet};

/// The part of a graph to draw.
#[derive(Clone, Copy, Debug, Default)]
pub struct DagPart<'a> {
    /// Only this job, with a number of steps upstream and downstream; all steps where it is `None`.
    pub focus: Option<(&'a str, Option<u32>, Option<u32>)>,
    /// One node in place of many jobs.
    pub collapse: Option<Collapse>,
    /// Fewer edges.
    pub reduce: Option<Reduce>,
}

/// Which edges are omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// A -> C where there is A -> B -> C.
    Transitive,
}

/// The job in focus is missing or ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFocus {
    /// No job has this name; with a suggestion, as the beginning of a sentence, or empty.
    Missing(String, String),
    /// Jobs of several groups have this code; their full names.
    Several(String, Vec<String>),
}

impl NoFocus {
    /// The message for the user; `otherwise` says how to see all jobs.
    pub fn describe(&self, otherwise: &str) -> String {
        match self {
            Self::Missing(job, hint) => format!("there is no job {job} here; {hint}{otherwise}"),
            Self::Several(job, names) => {
                format!("several groups have a job {job}; write {}", names.join(" or "))
            }
        }
    }
}

impl DagPart<'_> {
    /// Selects this part of the graph.
    pub fn select_part(self, mut view: DagView) -> Result<DagView, NoFocus> {
        if let Some((job, up, down)) = self.focus {
            let missing = || NoFocus::Missing(job.to_owned(), did_you_mean(job, view.codes()));
            let found = view.find_codes(job);
            if found.len() > 1 {
                let names = found.into_iter().map(str::to_owned).collect();
                return Err(NoFocus::Several(job.to_owned(), names));
            }
            let focused = found.first().and_then(|code| view.focus(code, up, down));
            view = focused.ok_or_else(missing)?;
        }
        view = self.collapse.map(|by| view.collapsed(by)).unwrap_or(view);
        Ok(match self.reduce {
            Some(Reduce::Transitive) => view.reduced(),
            None => view,
        })
    }
}

/// A stored group, or all groups, with the forecasts of their jobs.
pub async fn of_stored(app: &App, defs: &Definition, group: Option<GroupCode>) -> Result<DagView> {
    let view = of_definition(defs, group.clone())?;
    Ok(view.timed(&planned(app, defs, group.as_ref()).await?))
}

/// The forecasts of the jobs of stored groups, from their history.
async fn planned(
    app: &App,
    defs: &Definition,
    wanted: Option<&GroupCode>,
) -> Result<BTreeMap<JobCode, ForecastTiming>> {
    let mut timings = BTreeMap::new();
    for group in defs.groups.iter().filter(|g| wanted.is_none_or(|w| *w == g.code)) {
        let Ok(mut plans) = plan(defs, &nobodys(Some(group.code.clone()))?, Millis(0)) else {
            continue;
        };
        let (Some(plan), history) = (plans.pop(), app.history(&group.code).await?) else {
            continue;
        };
        let (dag, total) = (plan.snapshot.build_dag()?, app.config.engine.max_parallel);
        if let Some(forecast) = eta::of_plan(&plan, &dag, &history, total, Millis(0)) {
            timings.extend(timings_of(&plan.snapshot, &forecast));
        }
    }
    Ok(timings)
}

fn timings_of(snapshot: &Snapshot, forecast: &Forecast) -> BTreeMap<JobCode, ForecastTiming> {
    let each = snapshot.jobs.iter().zip(&forecast.jobs);
    each.map(|(job, expected)| {
        let timing = ForecastTiming {
            est_ms: Some(expected.estimate.p50),
            is_assumed: expected.estimate.basis == DurationBasis::Assumed,
            slack_ms: expected.slack,
            critical: Some(expected.critical),
        };
        (job.code.clone(), timing)
    })
    .collect()
}

/// The order of a batch that will not be run: the same checks, the same jobs.
fn nobodys(group: Option<GroupCode>) -> Result<BatchOrder> {
    Ok(BatchOrder {
        batch_no: BatchNo::parse("definition")?,
        batch_type: None,
        group,
        business_date: None,
        params: BTreeMap::new(),
        free_text: true,
    })
}

/// Every group with active jobs, or the requested one.
pub fn of_definition(defs: &Definition, group: Option<GroupCode>) -> Result<DagView> {
    let runs = |g: &&GroupCode| defs.jobs.iter().any(|j| j.group == **g && j.is_active);
    let wanted: Vec<Option<GroupCode>> = match group {
        Some(group) => vec![Some(group)],
        None => defs.groups.iter().map(|g| &g.code).filter(runs).cloned().map(Some).collect(),
    };
    // Without any job the plan reports what is missing.
    let wanted = if wanted.is_empty() { vec![None] } else { wanted };
    let mut views = Vec::with_capacity(wanted.len());
    for group in wanted {
        let order = nobodys(group)?;
        let plan = plan(defs, &order, Millis(0))?.pop().context("a plan of one group")?;
        views.push(dag_view(plan.values.group.as_str(), &plan.snapshot, None)?);
    }
    match views.len() {
        1 => views.pop().context("one view"),
        _ => Ok(DagView::join_views("definition", views)),
    }
}

/// A batch: its jobs with their states, and the forecasts of open ones.
pub async fn of_batch(app: &App, batch: &Batch) -> Result<DagView> {
    let mut tx = app.db.begin_read().await?;
    let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
    let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
    drop(tx);
    let states: Vec<JobState> = rows.iter().map(JobState::from).collect();
    let drawn = dag_view(batch.values.batch_no.as_str(), &snapshot, Some(&states))?;
    let now = app.server_now().await?;
    let forecast = app.forecast(&snapshot, &rows, now).await?;
    let mut timings = forecast.map(|f| timings_of(&snapshot, &f)).unwrap_or_default();
    if batch.status.is_final() {
        // An ended batch has no slack; the chain that decided its end is drawn instead.
        let dag = snapshot.build_dag()?;
        let ends: Vec<_> =
            rows.iter().map(|r| r.end_time.filter(|_| r.start_time.is_some())).collect();
        let chain: HashSet<Node> = eta::decisive(&dag, &ends).into_iter().collect();
        for (i, job) in (0..).zip(&snapshot.jobs) {
            let timing = timings.entry(job.code.clone()).or_default();
            timing.critical = Some(chain.contains(&Node(i)));
        }
    }
    Ok(drawn.timed(&timings))
}

fn dag_view(title: &str, snapshot: &Snapshot, states: Option<&[JobState]>) -> Result<DagView> {
    let externals: Vec<External> = snapshot.externals.iter().map(External::from).collect();
    Ok(DagView::of_batch(title, snapshot, &snapshot.build_dag()?, states).with_external(&externals))
}
