//! The grid of a group: jobs by batches.

use crate::app::App;
use crate::domain::batch::Batch;
use crate::domain::id::{BatchId, GroupCode, JobCode};
use crate::domain::time::Millis;
use crate::store;
use crate::store::batch::BatchFilter;
use crate::store::glance::JobCell;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Jobs by batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupGrid {
    /// The batches, newest first.
    pub batches: Vec<GridColumn>,
    /// Jobs, in the order of the newest batch that has them.
    pub jobs: Vec<GridRow>,
    /// Number of jobs, including those on other pages.
    pub all_jobs: usize,
    /// Send this as `cursor` for the following jobs; null when there are no more.
    pub next: Option<String>,
}

/// A batch in the grid.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GridColumn {
    /// The batch number.
    pub batch_no: String,
    /// The state.
    pub status: String,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
}

/// A job in the grid.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GridRow {
    /// The job code.
    pub job_code: String,
    /// Parallel to the batches; null where the batch lacks the job.
    pub cells: Vec<Option<CellOutcome>>,
}

/// The run of a job in a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CellOutcome {
    /// The state.
    pub status: String,
    /// The attempt number.
    pub attempt: u32,
    /// Duration of the last attempt in milliseconds.
    pub duration_ms: Option<i64>,
}

/// The part of a grid to read.
#[derive(Clone, Debug)]
pub struct GridRequest {
    /// Number of batches.
    pub batches: u32,
    /// A text contained in the job code.
    pub text: Option<String>,
    /// Index of the first job.
    pub from: usize,
    /// Number of jobs.
    pub limit: usize,
}

impl GroupGrid {
    /// Reads the grid of a group.
    pub async fn read_grid(app: &App, group: &GroupCode, wanted: &GridRequest) -> Result<Self> {
        let mut tx = app.db.begin_read().await?;
        let asked = BatchFilter { groups: Some(vec![group.clone()]), ..BatchFilter::default() };
        let batches = store::batch::list_page(&mut tx, &asked, wanted.batches).await?;
        let ids: Vec<BatchId> = batches.iter().map(|b| b.batch_id).collect();
        let cells = store::glance::cells(&mut tx, &ids).await?;
        drop(tx);
        let place: HashMap<BatchId, usize> = ids.iter().copied().zip(0..).collect();
        let text = wanted.text.as_deref().map(str::to_lowercase);
        let fits = |code: &JobCode| {
            text.as_deref().is_none_or(|text| code.as_str().to_lowercase().contains(text))
        };
        let order = order(&cells, &ids, fits);
        let shown: Vec<&JobCode> =
            order.iter().copied().skip(wanted.from).take(wanted.limit).collect();
        let line: HashMap<&JobCode, usize> = shown.iter().copied().zip(0..).collect();
        let mut jobs: Vec<GridRow> = shown
            .iter()
            .map(|code| GridRow { job_code: code.to_string(), cells: vec![None; ids.len()] })
            .collect();
        for cell in &cells {
            if let Some((at, column)) = line.get(&cell.job_code).zip(place.get(&cell.batch)) {
                jobs[*at].cells[*column] = Some(outcome_of(cell));
            }
        }
        let took = |(start, end): (Millis, Option<Millis>)| end.map(|end| end.since(start));
        let column = |b: &Batch| GridColumn {
            batch_no: b.values.batch_no.to_string(),
            status: b.status.as_str().to_owned(),
            create_time: b.create_time.to_string(),
            end_time: b.end_time.map(|t| t.to_string()),
            duration_ms: took((b.create_time, b.end_time)),
        };
        let more = wanted.from + shown.len() < order.len();
        Ok(Self {
            batches: batches.iter().map(column).collect(),
            all_jobs: order.len(),
            next: more.then(|| (wanted.from + shown.len()).to_string()),
            jobs,
        })
    }
}

/// The jobs of all the batches: those of the newest first, in its order, then those that only older
/// ones have.
fn order<'c>(
    cells: &'c [JobCell],
    newest_first: &[BatchId],
    fits: impl Fn(&JobCode) -> bool,
) -> Vec<&'c JobCode> {
    let mut by_batch: HashMap<BatchId, Vec<&JobCode>> = HashMap::new();
    for cell in cells {
        by_batch.entry(cell.batch).or_default().push(&cell.job_code);
    }
    let mut known: HashSet<&JobCode> = HashSet::new();
    let mut order = Vec::new();
    for id in newest_first {
        for code in by_batch.remove(id).unwrap_or_default() {
            if fits(code) && known.insert(code) {
                order.push(code);
            }
        }
    }
    order
}

fn outcome_of(cell: &JobCell) -> CellOutcome {
    CellOutcome {
        status: cell.status.as_str().to_owned(),
        attempt: cell.attempt,
        duration_ms: cell.took_ms,
    }
}
