//! Batches in a list, one line each.

use crate::app::App;
use crate::domain::batch::Batch;
use crate::domain::forecast::certainty::Certainty;
use crate::domain::id::BatchId;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store;
use crate::store::batch::BatchFilter;
use crate::view::batch::BatchView;
use crate::view::due::Dues;
use crate::view::eta::EndForecast;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A batch in a list, with the number of its jobs in each state.
pub struct Listed {
    pub batch: Batch,
    /// Number of its jobs by state.
    pub counts: BTreeMap<QueueStatus, u64>,
}

/// Batches, newest first, in two statements however many they are.
pub async fn list_page(app: &App, asked: &BatchFilter, limit: u32) -> Result<Vec<Listed>> {
    let mut tx = app.db.begin_read().await?;
    let found = store::batch::list_page(&mut tx, asked, limit).await?;
    let ids: Vec<BatchId> = found.iter().map(|b| b.batch_id).collect();
    let mut counts = store::batch::counts_of(&mut tx, &ids).await?;
    let listed = |batch: Batch| {
        let counts = counts.remove(&batch.batch_id).unwrap_or_default();
        Listed { batch, counts }
    };
    Ok(found.into_iter().map(listed).collect())
}

/// A batch in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BatchSummary {
    /// The key of the batch.
    pub batch_id: i64,
    /// The batch number.
    pub batch_no: String,
    /// The group code.
    pub group: String,
    /// The type in the order, or that of its group.
    pub r#type: Option<String>,
    /// RUNNING, KILLING, SUCCESS, WARNING, FAILED or KILLED.
    pub status: String,
    /// Whether it is paused.
    pub is_paused: bool,
    /// The business date.
    pub business_date: Option<String>,
    /// Number of its jobs in each state.
    pub jobs: BTreeMap<String, u64>,
    /// Who opened it.
    pub started_by: String,
    /// Why it was stopped, or another remark of an operator.
    pub reason: Option<String>,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
    /// When an open batch is due.
    pub due: Option<String>,
    /// Whether it is open although it is past due.
    pub is_late: bool,
    /// When it is expected to end; for a running batch whose jobs have a history.
    pub expected_end: Option<String>,
    /// The certainty of that; where it is unknown, the time is a guess.
    pub certainty: Option<Certainty>,
    /// Whether it is expected to end after it is due.
    pub will_be_late: bool,
    /// Since when retention has been removing it.
    pub removing: Option<String>,
    /// Number of its jobs without a queue row; not 0 while a large batch is being opened.
    pub unwritten_jobs: u32,
}

impl BatchSummary {
    /// The document of a listed batch; `prospect` is the forecast of its end.
    pub fn from_listed(listed: &Listed, prospect: Option<&Prospect>, now: Millis) -> Self {
        let Listed { batch, counts } = listed;
        let words = |at: Option<Millis>| at.map(|at| at.to_string());
        let due = prospect.and_then(|p| p.due);
        let expected = prospect.and_then(|p| p.expected_end);
        Self {
            batch_id: batch.batch_id.0,
            batch_no: batch.values.batch_no.to_string(),
            group: batch.values.group.to_string(),
            r#type: batch.batch_type.clone(),
            status: batch.status.as_str().to_owned(),
            is_paused: batch.is_paused,
            business_date: batch.values.business_date.map(|d| d.to_string()),
            jobs: counts.iter().map(|(s, n)| (s.as_str().to_owned(), *n)).collect(),
            started_by: batch.started_by.clone(),
            reason: batch.reason.clone(),
            create_time: batch.create_time.to_string(),
            end_time: words(batch.end_time),
            due: words(due),
            is_late: due.is_some_and(|due| now > due),
            expected_end: words(expected),
            certainty: prospect.and_then(|p| p.certainty),
            will_be_late: due.zip(expected).is_some_and(|(due, end)| end > due),
            removing: words(batch.removing),
            unwritten_jobs: batch.unwritten_jobs,
        }
    }
}

/// The forecast of an open batch's end. Reading it takes all its jobs and their history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prospect {
    /// When it is due.
    pub due: Option<Millis>,
    /// When it is expected to end.
    pub expected_end: Option<Millis>,
    /// The certainty of that; `None` for an ended batch.
    pub certainty: Option<Certainty>,
}

impl Prospect {
    /// The present forecast of this batch.
    pub async fn read_prospect(app: &App, id: BatchId) -> Result<Self> {
        let view = BatchView::without_outputs(app, id).await?;
        let due = Dues::of_view(&view).batch.due;
        let (expected_end, certainty) = match EndForecast::read_outlook(app, &view).await? {
            EndForecast::Expected { forecast, .. } => {
                (Some(forecast.end), Some(forecast.confidence.certainty))
            }
            EndForecast::Unknown => (None, Some(Certainty::Unknown)),
            EndForecast::Over => (None, None),
        };
        Ok(Self { due, expected_end, certainty })
    }
}
