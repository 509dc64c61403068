//! This process as an executor of XXL-JOB: runs requested by its admin become batches, and their
//! ends are reported.
//!
//! A run is stored before it is acknowledged, and its end is reported until an admin has accepted
//! it. So nothing is lost when this process dies, and any process of the same app name continues.

mod admin_reports;
mod executor_loops;
mod run_batches;
mod run_log;
mod run_progress;

pub use admin_reports::ReportOutcome;
pub use run_log::{LogEnd, RunLogPage};
pub use run_progress::Followed;

use crate::domain::batch::AskedOrder;
use crate::domain::executor::block::{BlockDecision, BlockStrategy, Busy};
use crate::domain::schedule::trigger::QUEUE_DISPATCHER;
use crate::domain::text::storable;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{
    AppName, RunResult, Stopping, XxlJobId, XxlLogId, XxlRun, XxlStatus,
};
use crate::engine::clock::Clock;
use crate::engine::host::host_name;
use crate::engine::operate::pause;
use crate::engine::xxl::rejected_access::{Knock, RejectedAccesses, STRANGER};
use crate::remote::admin::Admins;
use crate::secret_store::SecretStores;
use crate::store::audit::Operator;
use crate::store::xxl_run::{self, NewXxlRun};
use crate::store::{Db, Tx};
use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A handler name that is common elsewhere but does not exist here.
const WORKER: &str = "workerHandler";
/// The only job type that is run.
const BEAN: &str = "BEAN";
/// Maximum length of quoted text from a request, in bytes.
const WORD_MAX: usize = 60;
/// Maximum length of the parameters of a run, in bytes; the admin's own page accepts 2,048.
const PARAMS_MAX: usize = 16_000;

/// Settings of this executor, from the configuration.
pub struct ExecutorOptions {
    /// Its app name.
    pub app_name: AppName,
    /// The URL at which the admins reach it.
    pub address: String,
    /// The admins' addresses, for messages.
    pub admin: String,
    pub admins: Admins,
}

/// An executor of XXL-JOB.
pub struct Executor {
    db: Db,
    clock: Clock,
    options: ExecutorOptions,
    by: Operator,
    /// Wakes the loops when there is something to follow or to report.
    nudge: Notify,
    news: Notify,
    refused: RejectedAccesses,
    secret_stores: SecretStores,
}

/// A run request of an admin.
#[derive(Clone, Debug)]
pub struct RunAsked {
    pub job_id: XxlJobId,
    /// The admin's key of the run.
    pub log_id: XxlLogId,
    /// The trigger time according to the admin.
    pub log_date_time: i64,
    /// `BEAN`, or the language of a script.
    pub kind: String,
    /// The name of the handler.
    pub handler: String,
    /// The parameters of the handler.
    pub params: String,
    /// What to do while an earlier run has not ended.
    pub block: BlockStrategy,
    /// Time limit of its batches in seconds.
    pub timeout_sec: Option<u32>,
    /// Index and number of parts of a broadcast.
    pub shard: (i64, i64),
}

/// The answer to an admin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorReply {
    /// The run is stored, and its end will be reported.
    Taken(String),
    /// Nothing was stored, for this reason.
    Refused(String),
}

impl Executor {
    /// An executor on this database.
    pub fn new(db: Db, clock: Clock, options: ExecutorOptions) -> Self {
        let actor = format!("xxl-job {}", options.app_name);
        let by = Operator::new(actor, host_name());
        let (nudge, news) = (Notify::new(), Notify::new());
        let refused = RejectedAccesses::new(db.clone(), clock.clone());
        let secret_stores = SecretStores::default();
        Self { db, clock, options, by, nudge, news, refused, secret_stores }
    }

    /// Sets the secret rules from the settings.
    #[must_use]
    pub fn with_secret_stores(self, secret_stores: SecretStores) -> Self {
        Self { secret_stores, ..self }
    }

    pub fn app_name(&self) -> &AppName {
        &self.options.app_name
    }

    /// Notes that `peer` requested `what` without a valid token.
    pub async fn note_refused(&self, peer: &str, what: &str) {
        let by = Operator::new(STRANGER.to_owned(), peer.to_owned());
        let what = storable(what.as_bytes(), WORD_MAX);
        let detail = json!({ "app_name": self.app_name().as_str(), "asked": what });
        self.refused.note_refusal("token", Knock { by, detail }).await;
    }

    /// Records refusals that were held back for a minute, until `stop`.
    pub async fn keep_refused(&self, stop: &CancellationToken) {
        self.refused.record_held_back(stop).await;
    }

    /// Records the last of them; no further requests are answered.
    pub async fn close(&self) {
        self.refused.close().await;
    }

    /// Accepts a run, or refuses it. Its result is reported when it has ended.
    pub async fn run_job(&self, ask: &RunAsked) -> Result<ExecutorReply> {
        if let Err(why) = acceptable(ask) {
            return Ok(ExecutorReply::Refused(why));
        }
        match self.take_run(ask).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                // The answer to the commit may be what was lost.
                let mut tx = self.db.begin_read().await.context("look for a run")?;
                let app = self.app_name();
                match xxl_run::find_run(&mut tx, app, ask.log_id, ask.log_date_time).await? {
                    Some(_) => Ok(ExecutorReply::Taken("taken".to_owned())),
                    None => Err(error),
                }
            }
        }
    }

    async fn take_run(&self, ask: &RunAsked) -> Result<ExecutorReply> {
        let (now, app) = (self.clock.now(), self.app_name());
        let mut tx = self.db.begin().await?;
        xxl_run::lock_runs(&mut tx, now).await?;
        if let Some(there) = xxl_run::find_run(&mut tx, app, ask.log_id, ask.log_date_time).await? {
            tx.rollback().await?;
            let said = format!("run {} is known already ({})", ask.log_id, there.status.as_str());
            return Ok(ExecutorReply::Taken(said));
        }
        let before = match ask.shard.0 {
            0 => xxl_run::list_open(&mut tx, app, Some(ask.job_id)).await?,
            // One part does all the work; the others neither wait nor stop anything.
            _ => Vec::new(),
        };
        let busy = if before.is_empty() { Busy::Idle } else { Busy::Busy };
        let ahead = before.last().map(|run| run.log_id);
        match (ask.block.decide(busy), ahead) {
            (BlockDecision::Refuse, Some(ahead)) => {
                tx.rollback().await?;
                let why = "and its block strategy is DISCARD_LATER";
                let said = format!("run {ahead} of job {} is not over, {why}", ask.job_id);
                return Ok(ExecutorReply::Refused(said));
            }
            (BlockDecision::StopAndTake, _) => {
                for run in &before {
                    self.stop_run(&mut tx, run, Stopping::Covered, now).await?;
                }
            }
            (BlockDecision::Refuse | BlockDecision::Take, _) => {}
        }
        xxl_run::insert(&mut tx, &self.new_row(ask), now).await?;
        let said = match ask.shard {
            (0, _) => ahead.map_or("taken".to_owned(), |run| format!("taken; waits for run {run}")),
            (index, total) => self.leave_shard(&mut tx, ask, index, total, now).await?,
        };
        tx.commit().await.context("take a run on")?;
        self.nudge();
        Ok(ExecutorReply::Taken(said))
    }

    fn new_row<'a>(&'a self, ask: &'a RunAsked) -> NewXxlRun<'a> {
        NewXxlRun {
            app_name: self.app_name(),
            log_id: ask.log_id,
            log_date_time: ask.log_date_time,
            job_id: ask.job_id,
            handler: &ask.handler,
            params: &ask.params,
            admin: &self.options.admin,
            block: ask.block,
            timeout_sec: ask.timeout_sec,
            shard: ask.shard,
        }
    }

    /// Stores a part of a broadcast other than the first: the first one opens the batch.
    async fn leave_shard(
        &self,
        tx: &mut Tx,
        ask: &RunAsked,
        index: i64,
        total: i64,
        now: Millis,
    ) -> Result<String> {
        let said = format!("part {index} of {total}: the batch is opened by part 0 alone");
        let run = xxl_run::find_run(tx, self.app_name(), ask.log_id, ask.log_date_time);
        let run = run.await?.context("a run that was written")?;
        xxl_run::end_run(tx, &run, &RunResult::success(&said), now).await?;
        Ok(said)
    }

    /// Whether a run of this job has not ended.
    pub async fn is_busy(&self, job: XxlJobId) -> Result<bool> {
        let mut tx = self.db.begin_read().await?;
        Ok(!xxl_run::list_open(&mut tx, self.app_name(), Some(job)).await?.is_empty())
    }

    /// Stops every unfinished run of a job; returns their number. The stop is recorded before the
    /// answer; the batches end when their jobs have really ended.
    pub async fn kill_job(&self, job: XxlJobId) -> Result<usize> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        xxl_run::lock_runs(&mut tx, now).await?;
        let open = xxl_run::list_open(&mut tx, self.app_name(), Some(job)).await?;
        for run in &open {
            self.stop_run(&mut tx, run, Stopping::Killed, now).await?;
        }
        tx.commit().await.context("stop the runs of a job")?;
        self.nudge();
        Ok(open.len())
    }

    /// Marks a run as stopping, and stops its batches.
    async fn stop_run(&self, tx: &mut Tx, run: &XxlRun, why: Stopping, now: Millis) -> Result<()> {
        if run.status == XxlStatus::Waiting {
            xxl_run::end_run(tx, run, &RunResult::failed(why.words()), now).await?;
            return Ok(());
        }
        if !xxl_run::stop_run(tx, run.run_id, why, now).await? {
            return Ok(());
        }
        // Its batches may have been opened since it was read; now its row is ours.
        let run = xxl_run::find_run(tx, &run.app_name, run.log_id, run.log_date_time);
        let run = run.await?.context("a run that was there")?;
        for batch in xxl_run::batches(tx, &run.batches.unwrap_or_default()).await? {
            if !batch.status.is_final() {
                pause::stop_in(tx, batch.batch_id, &self.by, why.words(), now).await?;
            }
        }
        Ok(())
    }

    /// Wakes the loops.
    fn nudge(&self) {
        self.nudge.notify_one();
        self.news.notify_one();
    }
}

/// Checks a request without reading any row.
fn acceptable(ask: &RunAsked) -> Result<(), String> {
    if ask.kind != BEAN {
        return Err(format!(
            "{} is not run here: no script of an admin is; make the job a BEAN with the handler \
             {QUEUE_DISPATCHER}",
            short(&ask.kind)
        ));
    }
    if ask.handler == WORKER {
        return Err(format!(
            "{WORKER} is not for an admin to call: jobs of a batch are started by Procession, each in \
             its turn; call {QUEUE_DISPATCHER}"
        ));
    }
    if ask.handler != QUEUE_DISPATCHER {
        return Err(format!(
            "job handler [{}] is not known; known is {QUEUE_DISPATCHER}",
            short(&ask.handler)
        ));
    }
    let (index, total) = ask.shard;
    if index < 0 || index >= total.max(1) {
        return Err(format!("there is no part {index} of {total}"));
    }
    if ask.params.len() > PARAMS_MAX {
        return Err(format!("the parameters have more than {PARAMS_MAX} bytes"));
    }
    if ask.params.trim().is_empty() {
        let example = r#"{"batchNo":"month(-1)","type":"monthly"}"#;
        return Err(format!("the job has no parameters; write them as {example}"));
    }
    AskedOrder::parse_asked(&ask.params).map(drop).map_err(|error| error.to_string())
}

fn short(word: &str) -> String {
    word.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
