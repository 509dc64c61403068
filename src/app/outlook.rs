//! Forecasts of batches, and the refusals to expect, according to the tables. Reads only.

use crate::app::secrets::read_secret_settings;
use crate::app::{App, EmptyDatabase, Schema};
use crate::config::Config;
use crate::db;
use crate::domain::batch::history::History;
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::forecast::dry_run::{BatchPreview, OrderRefusal};
use crate::domain::forecast::eta::{self, Forecast, JobProgress};
use crate::domain::id::GroupCode;
use crate::domain::job::queue::QueueEntry;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};

impl App {
    /// Like `open`, for callers that can do without a database: `None` where there are no tables
    /// yet. Creates nothing.
    pub async fn open_if_there(config: Config) -> Result<Option<Self>> {
        let stores = config.secret_stores()?;
        read_secret_settings(&config, &stores, Clock::system().uptime()).await?;
        let settings = db::ConnectSettings { may_create: false, ..config.database_settings() };
        if settings.is_new_file() {
            return Ok(None);
        }
        let db = Db::connect(&settings).await.context("open the metadata database")?;
        let schema = db.schema().await;
        db.close().await;
        if schema? == Schema::Behind(0) {
            return Ok(None);
        }
        Self::open(config, EmptyDatabase::Refuse).await.map(Some)
    }

    /// The durations of the jobs of a group.
    pub async fn history(&self, group: &GroupCode) -> Result<History> {
        let mut tx = self.db.begin_read().await?;
        store::history::of_group(&mut tx, group).await
    }

    /// The forecast of a batch with these rows, parallel to the jobs of its snapshot. `None` when
    /// no job of it has a history.
    pub async fn forecast(
        &self,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        now: Millis,
    ) -> Result<Option<Forecast>> {
        let history = self.history(&snapshot.group.code).await?;
        let standing: Vec<JobProgress> = rows.iter().map(JobProgress::from).collect();
        let (dag, total) = (snapshot.build_dag()?, self.config.engine.max_parallel);
        Ok(eta::forecast(snapshot, &dag, &standing, &history, total, now))
    }

    /// Removes existing batches from a preview of several: they will be left as they are, and the
    /// others opened. When all exist, they are kept, because the order will be refused.
    pub async fn take_out_existing(&self, previews: &mut Vec<BatchPreview>) -> Result<Vec<Batch>> {
        let mut tx = self.db.begin_read().await?;
        let mut existing = Vec::new();
        for preview in &*previews {
            let values = &preview.plan.values;
            existing
                .extend(store::batch::find_batch(&mut tx, &values.batch_no, &values.group).await?);
        }
        if existing.len() == previews.len() {
            return Ok(Vec::new());
        }
        let is_there = |preview: &BatchPreview| {
            existing.iter().any(|batch| batch.values.group == preview.plan.values.group)
        };
        previews.retain(|preview| !is_there(preview));
        Ok(existing)
    }

    /// Why the tables would refuse these batches.
    pub async fn refusals(&self, batches: &[BatchPreview]) -> Result<Vec<OrderRefusal>> {
        let mut tx = self.db.begin_read().await?;
        let mut found = Vec::new();
        for batch in batches {
            let values = &batch.plan.values;
            let (no, group) = (&values.batch_no, &values.group);
            if let Some(there) = store::batch::find_batch(&mut tx, no, group).await? {
                let reason = OpeningRefusal::exists(&there).to_string();
                found.push(OrderRefusal { group: Some(group.clone()), job: None, reason });
            }
        }
        Ok(found)
    }
}
