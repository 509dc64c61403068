//! The comparison of two batches of a group.

use crate::app::App;
use crate::definition;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::outcome::JobOutputs;
use crate::view::batch::BatchView;
use crate::view::change::DefinitionChangeDetail;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Two batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchComparison {
    /// The first batch.
    pub a: ComparedBatch,
    /// The second batch.
    pub b: ComparedBatch,
    /// Their jobs: those of the second in its order, then those that only the first has.
    pub jobs: Vec<JobComparison>,
    /// Jobs that only the second has.
    pub added: Vec<String>,
    /// Jobs that only the first has.
    pub removed: Vec<String>,
    /// Parameters of the batches that differ.
    pub params: Vec<ValueDifference>,
    /// The differences of their definitions.
    pub definition: Vec<DefinitionChangeDetail>,
}

/// One of the two batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedBatch {
    /// The batch number.
    pub batch_no: String,
    /// The state.
    pub status: String,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
    /// Duration from the opening to the end, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The business date.
    pub business_date: Option<String>,
}

/// A job in both batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobComparison {
    /// The job code.
    pub job_code: String,
    /// In the first batch; null where it lacks the job.
    pub a: Option<ComparedRun>,
    /// In the second batch; null where it lacks the job.
    pub b: Option<ComparedRun>,
    /// By how many milliseconds it took longer in the second.
    pub longer_ms: Option<i64>,
    /// Outputs that differ.
    pub outputs: Vec<ValueDifference>,
}

/// The run of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// The state.
    pub status: String,
    /// The attempt number.
    pub attempt: u32,
    /// Duration of the last attempt in milliseconds.
    pub duration_ms: Option<i64>,
    /// Number of rows changed.
    pub rows_affected: Option<u64>,
}

/// A value in both batches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValueDifference {
    /// The name.
    pub name: String,
    /// In the first batch; null when it is NULL or missing.
    pub a: Option<String>,
    /// In the second batch; null when it is NULL or missing.
    pub b: Option<String>,
}

impl BatchComparison {
    /// The comparison of two batches with their outputs.
    pub fn from_views(a: &BatchView, b: &BatchView) -> Self {
        let (in_a, in_b) = (places(a), places(b));
        let only_a = a.rows.iter().filter(|r| !in_b.contains_key(&r.job_code));
        let codes: Vec<&JobCode> =
            b.rows.iter().chain(only_a.clone()).map(|r| &r.job_code).collect();
        let pair = |code: &&JobCode| {
            let (left, right) = (in_a.get(*code).copied(), in_b.get(*code).copied());
            pair_of(code, left.map(|at| (a, at)), right.map(|at| (b, at)))
        };
        let only_b = b.rows.iter().filter(|r| !in_a.contains_key(&r.job_code));
        let (old, new) = (a.snapshot.definition(), b.snapshot.definition());
        Self {
            jobs: codes.iter().map(pair).collect(),
            added: only_b.map(|r| r.job_code.to_string()).collect(),
            removed: only_a.map(|r| r.job_code.to_string()).collect(),
            params: params(a, b),
            definition: definition::diff_definitions(&old, &new)
                .iter()
                .map(DefinitionChangeDetail::from_change)
                .collect(),
            a: side_of(a),
            b: side_of(b),
        }
    }
}

fn places(view: &BatchView) -> HashMap<&JobCode, usize> {
    view.rows.iter().map(|row| &row.job_code).zip(0..).collect()
}

fn side_of(view: &BatchView) -> ComparedBatch {
    let batch = &view.batch;
    ComparedBatch {
        batch_no: batch.values.batch_no.to_string(),
        status: batch.status.as_str().to_owned(),
        create_time: batch.create_time.to_string(),
        end_time: batch.end_time.map(|t| t.to_string()),
        duration_ms: batch.end_time.map(|end| end.since(batch.create_time)),
        business_date: batch.values.business_date.map(|d| d.to_string()),
    }
}

fn pair_of(
    code: &JobCode,
    a: Option<(&BatchView, usize)>,
    b: Option<(&BatchView, usize)>,
) -> JobComparison {
    let outputs = |of: Option<(&'_ BatchView, usize)>| -> Option<JobOutputs> {
        let (view, at) = of?;
        view.outputs.get(&view.rows[at].queue_id.0).cloned()
    };
    let (left, right) = (outputs(a), outputs(b));
    let ran = |of: Option<(&BatchView, usize)>, outputs: &Option<JobOutputs>| {
        let (view, at) = of?;
        let row = &view.rows[at];
        Some(ComparedRun {
            status: row.status.as_str().to_owned(),
            attempt: row.attempt,
            duration_ms: row.start_time.zip(row.end_time).map(|(start, end)| end.since(start)),
            rows_affected: outputs.as_ref().map(|o| o.rows_affected),
        })
    };
    let differing = differing(&values(left.as_ref()), &values(right.as_ref()));
    let (a, b) = (ran(a, &left), ran(b, &right));
    let took = |ran: &Option<ComparedRun>| ran.as_ref().and_then(|r| r.duration_ms);
    JobComparison {
        job_code: code.to_string(),
        longer_ms: took(&a).zip(took(&b)).map(|(a, b)| b - a),
        outputs: differing,
        a,
        b,
    }
}

fn values(outputs: Option<&JobOutputs>) -> BTreeMap<String, Option<String>> {
    let Some(outputs) = outputs else { return BTreeMap::new() };
    let mut values = outputs.values.clone();
    // Two large values are equal when their digests are.
    for (name, stored) in &outputs.stored {
        let shown = format!("<{}, SHA-256 {}>", stored.describe(), stored.sha256);
        values.insert(name.clone(), Some(shown));
    }
    values
}

/// The values of two lists that differ.
fn differing(
    a: &BTreeMap<String, Option<String>>,
    b: &BTreeMap<String, Option<String>>,
) -> Vec<ValueDifference> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |name: &String| ValueDifference {
        name: name.clone(),
        a: a.get(name).cloned().flatten(),
        b: b.get(name).cloned().flatten(),
    };
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).map(value).collect()
}

fn params(a: &BatchView, b: &BatchView) -> Vec<ValueDifference> {
    let some = |view: &BatchView| -> BTreeMap<String, Option<String>> {
        let all = view.batch.values.params.iter();
        all.map(|(name, value)| (name.clone(), Some(value.clone()))).collect()
    };
    differing(&some(a), &some(b))
}

/// Reads two batches with the outputs of their jobs.
pub async fn read_both(app: &App, a: BatchId, b: BatchId) -> Result<(BatchView, BatchView)> {
    Ok((BatchView::read_view(app, a).await?, BatchView::read_view(app, b).await?))
}
