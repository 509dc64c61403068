//! The forecast shown by a running `run`.

use crate::app::App;
use crate::cli::out;
use crate::domain::batch::Snapshot;
use crate::domain::batch::history::History;
use crate::domain::dag::Dag;
use crate::domain::forecast::certainty::Certainty;
use crate::domain::forecast::eta::{Forecast, JobProgress, forecast};
use crate::domain::id::{BatchId, BatchNo, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};
use crate::engine::ProgressEvent;
use crate::engine::clock::Clock;
use crate::store;
use anyhow::Result;
use std::collections::HashMap;

/// Minimum interval of the forecast in plain progress, in milliseconds.
const LINE_EVERY_MS: i64 = 60_000;

/// The forecasts of the batches of a running `run`, updated by its events.
pub(super) struct RunWatch {
    batches: Vec<WatchedBatch>,
    clock: Clock,
    total: u32,
    lang: Lang,
    last_line_at: Option<Millis>,
}

struct WatchedBatch {
    batch_no: BatchNo,
    snapshot: Snapshot,
    dag: Dag,
    places: HashMap<JobCode, usize>,
    standing: Vec<JobProgress>,
    history: History,
}

impl RunWatch {
    /// Reads what it needs. A run does not depend on its forecast, so an error here is logged and
    /// the run continues.
    pub(super) async fn for_batches(app: &App, ids: &[BatchId], lang: Lang) -> Self {
        let (clock, total) = (app.clock.clone(), app.config.engine.max_parallel);
        let mut watch = Self { batches: Vec::new(), clock, total, lang, last_line_at: None };
        for id in ids {
            match WatchedBatch::load_batch(app, *id).await {
                Ok(one) => watch.batches.push(one),
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "no forecast of the batch's end");
                }
            }
        }
        watch
    }

    /// Applies a change.
    pub(super) fn apply_change(&mut self, item: &ProgressEvent) {
        for batch in &mut self.batches {
            batch.apply_change(item);
        }
    }

    /// When everything is expected to have ended; `None` when that is unknown.
    pub(super) fn words(&mut self) -> Option<String> {
        let now = self.clock.now();
        let forecasts: Option<Vec<Forecast>> =
            self.batches.iter().map(|b| b.forecast(self.total, now)).collect();
        let forecasts = forecasts.filter(|f| f.iter().any(|f| f.open > 0))?;
        let left = forecasts.iter().map(Forecast::remaining).max()?;
        let bad = forecasts.iter().map(Forecast::bad_remaining).max()?;
        let (left, bad) = (span_words(left), span_words(bad));
        let is_unknown = |f: &Forecast| f.confidence.certainty == Certainty::Unknown;
        Some(match (self.lang, forecasts.iter().any(is_unknown)) {
            (Lang::En, false) => format!("expected end in {left} (p90 {bad})"),
            (Lang::Zh, false) => format!("预计 {left}后结束(p90 {bad})"),
            (Lang::En, true) => format!("expected end unknown (at a guess in {left})"),
            (Lang::Zh, true) => format!("预计结束时间未知（粗估 {left}后）"),
        })
    }

    /// The same as a line with its time, when it is due to be printed again.
    pub(super) fn line_if_due(&mut self) -> Option<String> {
        let now = self.clock.now();
        if self.last_line_at.is_some_and(|message| now.since(message) < LINE_EVERY_MS) {
            return None;
        }
        self.last_line_at = Some(now);
        self.words().map(|words| format!("{} {words}", out::precise_local_time(now)))
    }
}

impl WatchedBatch {
    async fn load_batch(app: &App, id: BatchId) -> Result<Self> {
        let mut tx = app.db.begin_read().await?;
        let batch = store::batch::get(&mut tx, id).await?;
        let snapshot = store::batch::snapshot(&mut tx, id).await?;
        let rows = store::queue::of_batch(&mut tx, id).await?;
        let history = store::history::of_group(&mut tx, &batch.values.group).await?;
        let standing = rows.iter().map(JobProgress::from).collect();
        let dag = snapshot.build_dag()?;
        let places = snapshot.jobs.iter().enumerate().map(|(i, j)| (j.code.clone(), i)).collect();
        Ok(Self { batch_no: batch.values.batch_no, snapshot, dag, places, standing, history })
    }

    fn apply_change(&mut self, item: &ProgressEvent) {
        if item.batch_no != self.batch_no || item.group != self.snapshot.group.code {
            return;
        }
        let Some(place) = self.places.get(&item.job_code) else { return };
        let standing = &mut self.standing[*place];
        standing.status = item.status;
        standing.not_before = item.not_before;
        match item.status {
            QueueStatus::Running => (standing.start, standing.end) = (Some(item.at), None),
            status if status.is_final() => standing.end = Some(item.at),
            _ => {}
        }
        if matches!(item.status, QueueStatus::Success | QueueStatus::Warning) {
            item.took_ms.iter().for_each(|ms| self.history.learn(&item.job_code, *ms));
        }
    }

    fn forecast(&self, total: u32, now: Millis) -> Option<Forecast> {
        forecast(&self.snapshot, &self.dag, &self.standing, &self.history, total, now)
    }
}
