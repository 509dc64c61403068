//! Ends what an attempt of a dead process left running, because an operator or a limit wants it
//! stopped. The row belongs to this process and is KILLING by then; if this process dies as well,
//! the next owner does the same.

use crate::domain::batch::Snapshot;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::AfterCrash;
use crate::domain::job::body::HttpCall;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::queue::KILL_UNCONFIRMED;
use crate::domain::job::secret::Mask;
use crate::domain::params::http_call;
use crate::engine::attempt::approvals::AttemptApprovals;
use crate::engine::attempt::child_batches::AttemptChildBatches;
use crate::engine::attempt::claim_check::read_application;
use crate::engine::attempt::log_storage::append_of_orphan;
use crate::engine::attempt::record::Recording;
use crate::engine::attempt::run::{AttemptOrder, AttemptReport, Surroundings, What, find_host};
use crate::engine::attempt::secret_reader::SecretReader;
use crate::engine::db_retry::answered_at_last;
use crate::handler::{self, AttemptTask, Claim, Context, StopReason, StoredApplication};
use crate::store::{Db, queue};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Ends what is left of an attempt and reports the result. Never fails.
pub(in crate::engine) async fn end_orphan(
    job: AttemptOrder,
    reason: StopReason,
    snapshot: Arc<Snapshot>,
    around: Arc<Surroundings>,
) {
    let log = job.log.clone();
    log.add_line(Stream::System, "its worker died and it is to stop: ending what is left of it");
    let work = AssertUnwindSafe(ended(&job, reason, &snapshot, &around)).catch_unwind();
    let mut work = std::pin::pin!(work);
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            () = tokio::time::sleep(around.log_flush) => {
                if let Err(error) = append_of_orphan(&job, &around).await {
                    tracing::debug!("log lines are kept and sent again: {error:#}");
                }
            }
        }
    };
    let outcome = ended.unwrap_or_else(|_| {
        unconfirmed("Procession's own code broke down (see the program's log)")
    });
    log.finish_lines();
    if let Err(error) = answered_at_last(|| append_of_orphan(&job, &around)).await {
        tracing::warn!(
            queue_id = job.queue_id.0,
            error = format!("{error:#}"),
            "{} log lines of the end of an orphan could not be stored and are lost",
            log.finish().len()
        );
    }
    let inline_bytes = around.handlers.outputs.inline_bytes;
    let outcome = outcome.with_values_aside(job.key(), inline_bytes);
    let what = What::Ended(Box::new(outcome), Vec::new());
    // The dispatcher is gone only when the whole process stops; the next owner repeats this.
    let _ = around.reports.send(AttemptReport {
        queue_id: job.queue_id,
        attempt: job.attempt,
        by: None,
        what,
    });
}

async fn ended(
    job: &AttemptOrder,
    reason: StopReason,
    snapshot: &Arc<Snapshot>,
    around: &Arc<Surroundings>,
) -> AttemptOutcome {
    let (mut task, context) = (orphan_task(job, snapshot), orphan_context(job, snapshot, around));
    if let Err(why) = context.claimed().await {
        return unconfirmed(&why);
    }
    let reader = SecretReader { job, around, declared: &snapshot.shared.secrets };
    if let Err(outcome) = reader.read_passwords(task.source.as_mut_slice()).await {
        return unconfirmed(outcome.message.as_deref().unwrap_or_default());
    }
    let starts_again = handler::kind_of(&job.def).after_crash == AfterCrash::StartsAgain;
    if let Err(outcome) = read_host(&mut task, job, snapshot, &reader).await {
        return unconfirmed(outcome.message.as_deref().unwrap_or_default());
    }
    let is_elsewhere = job.def.executor.is_some() || job.def.is_submitted();
    if starts_again && job.def.sub_batch.is_none() && !is_elsewhere {
        return AttemptOutcome::ended(
            end_of(reason),
            "its worker died; it only asked, nothing of it is left",
        );
    }
    let outcome = handler::end_orphan(&task, &context).await;
    match outcome.end {
        AttemptEnd::Killed => AttemptOutcome { end: end_of(reason), ..outcome },
        AttemptEnd::Success | AttemptEnd::Warning | AttemptEnd::Failed => outcome,
        AttemptEnd::TimedOut | AttemptEnd::Returned | AttemptEnd::Unknown => outcome,
    }
}

/// Puts the HTTP host of the job's cluster into the task, with the secrets that its headers name.
async fn read_host(
    task: &mut AttemptTask,
    job: &AttemptOrder,
    snapshot: &Snapshot,
    reader: &SecretReader<'_>,
) -> Result<(), AttemptOutcome> {
    if job.def.is_submitted() {
        let host = find_host(job, snapshot);
        task.secrets = reader.fetch(http_call::secrets(None::<&HttpCall>, host)).await?;
        task.host = host.cloned();
    }
    Ok(())
}

fn end_of(reason: StopReason) -> AttemptEnd {
    if reason == StopReason::TimedOut { AttemptEnd::TimedOut } else { AttemptEnd::Killed }
}

fn unconfirmed(why: &str) -> AttemptOutcome {
    AttemptOutcome::ended(AttemptEnd::Unknown, format!("{KILL_UNCONFIRMED}: {why}"))
}

/// The part of a task that is known without resolving parameters; ending an attempt needs no more.
pub(in crate::engine) fn orphan_task(job: &AttemptOrder, snapshot: &Snapshot) -> AttemptTask {
    let source = snapshot.sources.iter().find(|s| Some(&s.name) == job.def.source.as_ref());
    AttemptTask {
        queue_id: job.queue_id,
        attempt: job.attempt,
        job: job.def.clone(),
        batch: job.batch.values.clone(),
        params: Vec::new(),
        source: source.cloned(),
        host: None,
        secrets: BTreeMap::new(),
        idem_key: job.idem_key.to_string(),
        is_unresolved: true,
        lock_name: job.lock_name.clone(),
        check_sources: Vec::new(),
        last_checks: BTreeMap::new(),
        traceparent: None,
        hidden_files: Vec::new(),
    }
}

/// The context for ending a dead node's attempt, or for querying its state.
pub(in crate::engine) fn orphan_context(
    job: &AttemptOrder,
    snapshot: &Arc<Snapshot>,
    around: &Arc<Surroundings>,
) -> Context {
    let claim = ToEnd {
        db: around.db.clone(),
        queue_id: job.queue_id,
        attempt: job.attempt,
        owner: around.owner.clone(),
    };
    Context {
        log: job.log.clone(),
        stop: job.stop.clone(),
        claim: Arc::new(claim),
        record: Arc::new(Recording::for_attempt(job, around, Mask::default())),
        batches: Arc::new(AttemptChildBatches::new(around, job.queue_id, job.attempt)),
        executors: around.remote_runs.of_attempt(job.key()),
        approvals: Arc::new(AttemptApprovals::new(around, job, snapshot)),
        pulse: around.pulse.clone(),
        watchers: around.watchers.clone(),
        sessions: around.sessions.clone(),
        options: around.handlers.clone(),
    }
}

/// Checks that the row is still this process's to end: another start of it must not be hit.
struct ToEnd {
    db: Db,
    queue_id: QueueId,
    attempt: u32,
    owner: NodeId,
}

impl Claim for ToEnd {
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        Box::pin(async move {
            let mut tx = self.db.begin_read().await?;
            queue::is_ours_to_end(&mut tx, self.queue_id, self.attempt, &self.owner).await
        })
    }

    /// No body begins here, so no gate is passed.
    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        self.still_ours()
    }

    fn waits_on(&self, _what: Option<String>) -> BoxFuture<'_, ()> {
        // This only waits for the end of the attempt, and its row is KILLING.
        Box::pin(async {})
    }

    fn store_application(&self, _made: StoredApplication) -> BoxFuture<'_, anyhow::Result<()>> {
        // Nothing is submitted here.
        Box::pin(async { Ok(()) })
    }

    fn stored_application(&self) -> BoxFuture<'_, anyhow::Result<Option<StoredApplication>>> {
        Box::pin(read_application(&self.db, self.queue_id))
    }
}
