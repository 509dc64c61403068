//! Reports to the admins: registrations of this executor, and ends of runs.

use super::Executor;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{XxlRun, XxlRunId, again_after_ms};
use crate::remote::admin::{AdminRefusal, Callback};
use crate::store::xxl_run;
use anyhow::{Context as _, Result};

/// Ends of runs per report, as XXL-JOB's own executors send them.
const AT_ONCE: u32 = 50;
/// Time to record that a report was accepted, beyond the time of sending it, in milliseconds.
const NOTE_MS: i64 = 30_000;
/// How long runs are kept after the admin knows their end, in milliseconds: as long as XXL-JOB
/// keeps its logs.
const KEPT_MS: i64 = 30 * 86_400_000;
/// Runs removed in one step.
const FORGET_MOST: u32 = 500;

/// The result of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportOutcome {
    /// Ends that an admin accepted.
    pub taken: usize,
    /// Ends that none accepted; they are reported again.
    pub again: usize,
}

impl Executor {
    /// Reports ended runs to the admins. A process that dies between the report and its record
    /// reports twice; an admin ignores the second.
    pub async fn report_ends(&self) -> Result<ReportOutcome> {
        let ended = self.claimed().await?;
        if ended.is_empty() {
            return Ok(ReportOutcome::default());
        }
        let items: Vec<Callback> = ended.iter().filter_map(callback).collect();
        let answer = self.options.admins.callback(&items).await;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        match &answer {
            Ok(()) => {
                let ids: Vec<XxlRunId> = ended.iter().map(|run| run.run_id).collect();
                xxl_run::taken(&mut tx, &ids, now).await?;
            }
            Err(not_taken) => {
                let said = storable(not_taken.to_string().as_bytes(), MESSAGE_MAX);
                for run in &ended {
                    let at = now.plus_ms(again_after_ms(run.tries.saturating_add(1)));
                    xxl_run::put_off(&mut tx, run.run_id, at, &said, now).await?;
                }
            }
        }
        tx.commit().await.context("note what the admins took")?;
        match answer {
            Ok(()) => Ok(ReportOutcome { taken: ended.len(), again: 0 }),
            Err(AdminRefusal { .. }) => Ok(ReportOutcome { taken: 0, again: ended.len() }),
        }
    }

    /// Claims ended runs to report, so that no other process reports them meanwhile.
    async fn claimed(&self) -> Result<Vec<XxlRun>> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let due = xxl_run::list_due(&mut tx, self.app_name(), now, AT_ONCE).await?;
        drop(tx);
        if due.is_empty() {
            return Ok(due);
        }
        let longest = i64::try_from(self.options.admins.longest().as_millis()).unwrap_or(i64::MAX);
        let until = now.plus_ms(longest).plus_ms(NOTE_MS);
        let mut tx = self.db.begin().await?;
        let mut ours = Vec::new();
        for run in due {
            if xxl_run::claim(&mut tx, &run, until, now).await? {
                ours.push(run);
            }
        }
        tx.commit().await.context("take ends of runs to tell")?;
        Ok(ours)
    }

    /// Registers this executor; repeated every half minute.
    pub async fn register(&self) -> Result<(), AdminRefusal> {
        self.options.admins.register(self.app_name().as_str(), &self.options.address).await
    }

    /// Deregisters this executor.
    pub async fn deregister(&self) -> Result<(), AdminRefusal> {
        self.options.admins.remove(self.app_name().as_str(), &self.options.address).await
    }

    /// Removes runs whose end an admin has known for a month.
    pub async fn forget(&self) -> Result<u64> {
        let before: Millis = self.clock.now().plus_ms(-KEPT_MS);
        let mut tx = self.db.begin().await?;
        let gone = xxl_run::forget(&mut tx, self.app_name(), before, FORGET_MOST).await?;
        tx.commit().await.context("remove old runs")?;
        Ok(gone)
    }
}

fn callback(run: &XxlRun) -> Option<Callback> {
    let result = run.result.as_ref()?;
    Some(Callback {
        log_id: run.log_id.0,
        log_date_time: run.log_date_time,
        handle_code: result.code,
        handle_msg: Some(result.message.clone()),
    })
}
