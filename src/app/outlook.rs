//! What is expected of batches, and what would be refused, as far as the tables know. Reads only.

use crate::app::{App, EmptyDatabase, Schema, foreign_jobs};
use crate::config::Config;
use crate::db;
use crate::domain::batch::Snapshot;
use crate::domain::dry_run::{Preview, Refusal};
use crate::domain::eta::{self, Forecast, Standing};
use crate::domain::history::History;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::queue::QueueEntry;
use crate::domain::time::Millis;
use crate::engine::opening::Refused;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};

impl App {
    /// As `open`, for whoever can do without: `None` where there are no tables yet, be it no file or
    /// an empty database. Nothing is made.
    pub async fn open_if_there(config: Config) -> Result<Option<Self>> {
        let settings = db::Settings { may_create: false, ..config.db() };
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

    /// How long the jobs of a group took.
    pub async fn history(&self, group: &GroupCode) -> Result<History> {
        let mut tx = self.db.read().await?;
        store::history::of_group(&mut tx, group).await
    }

    /// What is expected of a batch whose rows, parallel to the jobs of its snapshot, are these.
    /// `None` when no job of it has a history.
    pub async fn forecast(
        &self,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        now: Millis,
    ) -> Result<Option<Forecast>> {
        let history = self.history(&snapshot.group.code).await?;
        let standing: Vec<Standing> = rows.iter().map(Standing::from).collect();
        let (dag, total) = (snapshot.dag()?, self.config.engine.max_parallel);
        Ok(eta::forecast(snapshot, &dag, &standing, &history, total, now))
    }

    /// Why the tables would refuse these batches. `file` is the definition that would be applied
    /// first, where one would be.
    pub async fn refusals(
        &self,
        file: Option<&Definition>,
        batches: &[Preview],
    ) -> Result<Vec<Refusal>> {
        let mut tx = self.db.read().await?;
        let mut found = Vec::new();
        if let Some(wanted) = file {
            let stored = store::job::definition(&mut tx).await?;
            found.extend(foreign_jobs(&stored, wanted).map(|foreign| Refusal {
                group: None,
                job: Some(foreign.job.clone()),
                reason: foreign.to_string(),
            }));
        }
        for batch in batches {
            let values = &batch.plan.values;
            let (no, group) = (&values.batch_no, &values.group);
            let refuse = |job, reason| Refusal { group: Some(group.clone()), job, reason };
            if let Some(there) = store::batch::find(&mut tx, no, group).await? {
                found.push(refuse(None, Refused::exists(&there).to_string()));
                continue;
            }
            let jobs = &batch.plan.snapshot.jobs;
            for (job, _) in store::outside::taken_elsewhere(&mut tx, no, group).await? {
                if jobs.iter().any(|j| j.code == job) {
                    let refused = Refused::JobTaken(no.to_string(), group.to_string());
                    let reason = format!("job {job}: {refused}");
                    found.push(refuse(Some(job), reason));
                }
            }
        }
        Ok(found)
    }
}
