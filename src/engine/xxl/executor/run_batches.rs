//! Opens the batches of a run that may start.

use super::Executor;
use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{AskedOrder, BatchError};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{RunResult, XxlRun, moment};
use crate::engine::opening::create_batch::{PackedPlan, open_in};
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::{self, job, xxl_run};
use anyhow::{Context as _, Result};

impl Executor {
    /// Opens the batches of a run without an owner; a run that cannot have any ends. An error is a
    /// database error: the run is unchanged.
    pub(super) async fn open_batches(&self, run: &XxlRun, now: Millis) -> Result<()> {
        let error = match self.try_to_open(run, now).await {
            Ok(()) => return Ok(()),
            Err(error) if store::is_transient(&error) => return Err(error),
            Err(error) => error,
        };
        let said = format!("{error:#}");
        if !is_the_orders(&error) {
            tracing::error!(log_id = run.log_id.0, error = said, "a run could not be opened");
        }
        let mut tx = self.db.begin().await?;
        xxl_run::end_run(&mut tx, run, &RunResult::failed(&said), now).await?;
        tx.commit().await.context("end a run that cannot be opened")?;
        self.news.notify_one();
        Ok(())
    }

    /// The run's row and its batches are written in one transaction, the row first: of two
    /// processes one waits there and finds it done. So a crash at any point opens them once.
    async fn try_to_open(&self, run: &XxlRun, now: Millis) -> Result<()> {
        let mut tx = self.db.begin_read().await?;
        let defs = self.secret_stores.add_access(job::definition(&mut tx).await?);
        drop(tx);
        let at = moment(run.log_date_time, run.create_time);
        let order = AskedOrder::parse_asked(&run.params)?.resolve_order(&defs, at)?;
        let plans = PackedPlan::pack_plans(plan_opening(&defs, &order, at)?)?;
        let mut tx = self.db.begin().await?;
        if !xxl_run::hold_unopened(&mut tx, run.run_id, now).await? {
            tx.rollback().await?;
            return Ok(());
        }
        let by = format!("xxl-job {} job {} log {}", run.app_name, run.job_id, run.log_id);
        let opened = open_in(&mut tx, None, &plans, by.as_str().into(), now).await?.opened;
        let deadline = run.timeout_sec.map(|sec| now.plus_ms(i64::from(sec) * 1_000));
        xxl_run::set_batches(&mut tx, run.run_id, (&opened, deadline), now).await?;
        tx.commit().await.context("open the batches of a run")?;
        for warning in plans.iter().flat_map(|packed| &packed.plan.warnings) {
            tracing::warn!(log_id = run.log_id.0, "{warning}");
        }
        Ok(())
    }
}

/// Whether an error describes a fault of the order, and not of this program.
fn is_the_orders(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<BatchError>() || e.is::<OpeningRefusal>())
}
