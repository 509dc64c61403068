//! Runs one attempt of one job: time limit, log, body and result.

use crate::domain::batch::span::{self, SpanId, TraceId};
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::cluster::lease;
use crate::domain::id::{GroupCode, JobCode, NodeId, QueueId};
use crate::domain::job::JobDef;
use crate::domain::job::body::HttpHost;
use crate::domain::job::check::DataCheck;
use crate::domain::job::outcome::StoredOutputsKey;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, OutputValue, Stream};
use crate::domain::job::queue::RunMode;
use crate::domain::job::secret::Mask;
use crate::domain::job::shared_definitions::SecretFrom;
use crate::domain::params::http_call;
use crate::domain::params::{self, BoundParam, ParamSources, Start};
use crate::domain::permission::access_rules::{ForbiddenUse, SharedResource};
use crate::domain::source::DataSource;
use crate::domain::source::tx_class::IdemKey;
use crate::domain::time::Millis;
use crate::engine::attempt::approvals::{ApprovalPoll, AttemptApprovals};
use crate::engine::attempt::child_batches::{AttemptChildBatches, ChildBatchRequest};
use crate::engine::attempt::claim_ack::ClaimAck;
use crate::engine::attempt::claim_check::{Asker, LostRow, RowClaim};
use crate::engine::attempt::earlier_checks::last_checks;
use crate::engine::attempt::large_outputs;
use crate::engine::attempt::log_storage::LogStorage;
use crate::engine::attempt::record::{Recording, refuse_marked};
use crate::engine::attempt::secret_reader::SecretReader;
use crate::engine::attempt::start_gate::Gate;
use crate::engine::clock::Clock;
use crate::engine::db_retry::answered;
use crate::engine::lease::{Life, fenced};
use crate::handler::log::{JobLogLine, RunLog};
use crate::handler::remote::RemoteExecutors;
use crate::handler::{self, AttemptTask, Context, StopReason, checks};
use crate::secret_store::SecretStores;
use crate::store::log::NewLine;
use crate::store::{self, Db};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// A report of a worker to the dispatcher.
#[derive(Debug)]
pub(in crate::engine) struct AttemptReport {
    pub(in crate::engine) queue_id: QueueId,
    /// The attempt number.
    pub(in crate::engine) attempt: u32,
    /// The node that ran the attempt, if it was another one.
    pub(in crate::engine) by: Option<NodeId>,
    pub(in crate::engine) what: What,
}

/// An event of an attempt.
#[derive(Debug)]
pub(in crate::engine) enum What {
    /// The time limit has passed and the body is being stopped.
    Stopping,
    /// The attempt has ended; the lines are those not stored yet.
    Ended(Box<AttemptOutcome>, Vec<JobLogLine>),
    /// The body requests something of another batch.
    Asks(ChildBatchRequest),
}

/// Outputs by job and name; `None` is NULL.
pub(in crate::engine) type UpstreamOutputs = HashMap<(JobCode, String), OutputValue>;

/// Secrets by name.
type Secrets = BTreeMap<String, SecretString>;

/// Everything an attempt needs; built by the dispatcher when it claims the row.
pub(in crate::engine) struct AttemptOrder {
    pub(in crate::engine) queue_id: QueueId,
    pub(in crate::engine) attempt: u32,
    /// Number of failed attempts before this one.
    pub(in crate::engine) try_count: u32,
    /// When the row was claimed.
    pub(in crate::engine) began: Millis,
    /// The run mode that an operator set in place of the body.
    pub(in crate::engine) mode: Option<RunMode>,
    pub(in crate::engine) def: JobDef,
    pub(in crate::engine) batch: Arc<Batch>,
    /// The jobs it depends on directly.
    pub(in crate::engine) parents: Vec<JobCode>,
    /// Outputs of other jobs that its parameters may refer to.
    pub(in crate::engine) outputs: UpstreamOutputs,
    /// The parameters if they can be resolved without a query, or the error that explains why they
    /// cannot be.
    pub(in crate::engine) fixed: Option<Result<Vec<BoundParam>, String>>,
    pub(in crate::engine) lock_name: String,
    pub(in crate::engine) idem_key: IdemKey,
    /// The outcome of an earlier attempt is still unknown.
    pub(in crate::engine) is_unresolved: bool,
    pub(in crate::engine) stop: watch::Receiver<Option<StopReason>>,
    /// The sender of the same stop switch, for the time limit.
    pub(in crate::engine) stopper: watch::Sender<Option<StopReason>>,
    pub(in crate::engine) log: RunLog,
    pub(in crate::engine) gate: Arc<Gate>,
    /// Whether the row was found to belong to another start.
    pub(in crate::engine) lost: LostRow,
    /// Whether the claim of the row is committed.
    pub(in crate::engine) claimed: ClaimAck,
}

/// Runs job bodies on executors outside this program.
pub(in crate::engine) trait RemoteRuns: Send + Sync {
    /// The access to executors that one attempt is given.
    fn of_attempt(&self, attempt: StoredOutputsKey) -> Arc<dyn RemoteExecutors>;
}

/// State shared by all attempts of this process.
pub(in crate::engine) struct Surroundings {
    pub(in crate::engine) db: Db,
    /// The same database for log lines, which yield to all other statements.
    pub(in crate::engine) log_db: Db,
    pub(in crate::engine) clock: Clock,
    /// Prefix of the lock names of this installation.
    pub(in crate::engine) installation: String,
    pub(in crate::engine) owner: NodeId,
    pub(in crate::engine) reports: mpsc::UnboundedSender<AttemptReport>,
    pub(in crate::engine) handlers: Arc<handler::HandlerOptions>,
    /// Counts the lease renewals of this process.
    pub(in crate::engine) pulse: watch::Receiver<u64>,
    /// Second connections to data sources, which watch running bodies.
    pub(in crate::engine) watchers: Arc<handler::liveness_probe::Watchers>,
    /// Idle sessions on data sources, for reuse by the next body.
    pub(in crate::engine) sessions: Arc<handler::sessions::SessionPool>,
    /// State of the lease.
    pub(in crate::engine) life: watch::Receiver<Life>,
    pub(in crate::engine) log_flush: Duration,
    pub(in crate::engine) log_max_bytes: usize,
    /// Claim checks of bodies.
    pub(in crate::engine) asker: Asker,
    /// Access to executors for attempts.
    pub(in crate::engine) remote_runs: Arc<dyn RemoteRuns>,
    /// Polls for approval decisions.
    pub(in crate::engine) approvals: ApprovalPoll,
    /// Whether tracing is on, so that calls made by bodies carry the trace context.
    pub(in crate::engine) traced: AtomicBool,
    /// The configured secret stores.
    pub(in crate::engine) secret_stores: SecretStores,
}

/// Runs an attempt to its end and reports it. Never fails: every error becomes an outcome. An
/// attempt whose claim was not committed reports nothing.
pub(in crate::engine) async fn run_task(
    job: AttemptOrder,
    snapshot: Arc<Snapshot>,
    around: Arc<Surroundings>,
) {
    let (queue_id, attempt) = (job.queue_id, job.attempt);
    let log = job.log.clone();
    if job.mode == Some(RunMode::NoExec) {
        log.add_line(
            Stream::System,
            "no-exec: an operator wants its body left out; it counts as done",
        );
        let what =
            What::Ended(Box::new(AttemptOutcome::success(JobOutputs::default())), log.finish());
        let _ = around.reports.send(AttemptReport { queue_id, attempt, by: None, what });
        return;
    }
    let storage = LogStorage::new(&job, &around);
    let work = AssertUnwindSafe(run_attempt(&job, &snapshot, &around, &storage)).catch_unwind();
    let done = tokio::select! {
        biased;
        done = work => done,
        () = job.claimed.wait_until_lost() => return,
    };
    if !job.claimed.is_committed().await {
        return;
    }
    let outcome = match done {
        Ok(outcome) => outcome,
        Err(_) => AttemptOutcome::ended(
            AttemptEnd::Unknown,
            "Procession's own code for this job type broke down (see the program's log); whether \
             the body took effect is not known",
        ),
    };
    let what = What::Ended(Box::new(outcome), storage.finish().await);
    // The dispatcher is gone only with the process; the process that resumes the batch settles the
    // row.
    let _ = around.reports.send(AttemptReport { queue_id, attempt, by: None, what });
}

async fn run_attempt(
    job: &AttemptOrder,
    snapshot: &Arc<Snapshot>,
    around: &Arc<Surroundings>,
    storage: &LogStorage<'_>,
) -> AttemptOutcome {
    let log = &job.log;
    let (params, secrets, mask) = match bind_params(job, snapshot, around).await {
        Ok(bound) => bound,
        Err(outcome) => return outcome,
    };
    log.add_mask(mask.clone());
    let Some(handler) = handler::find_handler(job.def.job_type.as_str()) else {
        let message = format!("this binary knows no job type {}", job.def.job_type);
        return AttemptOutcome::ended(AttemptEnd::Failed, message);
    };
    let task = match build_task(job, snapshot, params, secrets, around).await {
        Ok(task) => task,
        Err(outcome) => return outcome,
    };
    let claim = RowClaim::for_attempt(job, around);
    let context = Context {
        log: log.clone(),
        stop: job.stop.clone(),
        claim: Arc::new(claim),
        record: Arc::new(Recording::for_attempt(job, around, mask.clone())),
        batches: Arc::new(AttemptChildBatches::new(around, job.queue_id, job.attempt)),
        executors: around.remote_runs.of_attempt(job.key()),
        approvals: Arc::new(AttemptApprovals::new(around, job, snapshot)),
        pulse: around.pulse.clone(),
        watchers: around.watchers.clone(),
        sessions: around.sessions.clone(),
        options: around.handlers.clone(),
    };
    let work = async {
        tracing::trace!(target: "procession::moment", id = job.queue_id.0, "handed");
        let outcome = handler.run(&task, &context).await;
        tracing::trace!(target: "procession::moment", id = job.queue_id.0, "returned");
        checks::judged(&task, &context, outcome).await
    };
    let outcome = beside_its_log(storage, limited(job, around, Box::pin(work))).await;
    let outcome = stopped_before(outcome, &job.lost, *job.stop.borrow());
    let outcome = lease::returned(outcome, handler.kind().after_crash, job.gate.progress());
    let secret_outs = job.secret_outs();
    let secret_outs: Vec<&str> = secret_outs.iter().map(String::as_str).collect();
    let outcome = outcome.without(&secret_outs).masked(&mask);
    outcome.with_values_aside(job.key(), around.handlers.outputs.inline_bytes)
}

/// Resolves the parameters of an attempt and the values to mask in its output. `Err` is the outcome
/// of an attempt that cannot begin.
async fn bind_params(
    job: &AttemptOrder,
    snapshot: &Snapshot,
    around: &Surroundings,
) -> Result<(Vec<BoundParam>, Secrets, Mask), AttemptOutcome> {
    let failed = |words: String| AttemptOutcome::ended(AttemptEnd::Failed, words);
    if let Some(fixed) = &job.fixed {
        let bound = fixed.clone().map(|params| (params, Secrets::new(), Mask::default()));
        return bound.map_err(failed);
    }
    let start = Start { idem_key: job.idem_key.clone(), attempt: job.attempt };
    let layers = snapshot.layers(&job.batch.values, &job.parents, &start);
    let outputs = large_outputs::loaded(job, around).await.map_err(failed)?;
    let output =
        |code: &JobCode, name: &str| outputs.get(&(code.clone(), name.to_owned())).cloned();
    let mut needed =
        params::secrets_needed(&job.def, layers, &output).map_err(|e| failed(e.to_string()))?;
    needed.extend(http_call::secrets(job.def.http.as_ref(), find_host(job, snapshot)));
    let reader = SecretReader { job, around, declared: &snapshot.shared.secrets };
    let secrets = reader.fetch(needed).await?;
    let mask = Mask::from_secrets(secrets.values());
    let known = |name: &str| secrets.get(name).cloned();
    let outside = ParamSources { output: &output, secret: Some(&known) };
    let bound = params::resolve(&job.def, layers, outside);
    bound.map(|params| (params, secrets.clone(), mask)).map_err(|e| failed(e.to_string()))
}

pub(in crate::engine) fn find_host<'a>(
    job: &AttemptOrder,
    snapshot: &'a Snapshot,
) -> Option<&'a HttpHost> {
    let name = job.def.called_host()?;
    snapshot.shared.hosts.iter().find(|host| host.name == name)
}

/// Builds the task that the handler receives.
async fn build_task(
    job: &AttemptOrder,
    snapshot: &Snapshot,
    params: Vec<BoundParam>,
    secrets: Secrets,
    around: &Surroundings,
) -> Result<AttemptTask, AttemptOutcome> {
    refuse_marked(job, around).await?;
    let look = || last_checks(&around.db, &job.batch, &job.def);
    let last_checks = answered(&job.stop, look).await.map_err(|error| {
        let message =
            format!("cannot look up what its checks found before: {error:#}; nothing was run");
        AttemptOutcome::ended(AttemptEnd::Failed, message)
    })?;
    let source = snapshot.sources.iter().find(|s| Some(&s.name) == job.def.source.as_ref());
    let of_checks: Vec<_> = job.def.checks.iter().flat_map(DataCheck::sources).collect();
    let check_sources = snapshot.sources.iter().filter(|s| of_checks.contains(&&s.name));
    let used = source.into_iter().chain(check_sources.clone());
    refuse_foreign_sources(&job.def.group, used).map_err(|found| {
        let message = format!("{found}; {}; nothing was run", found.hint_text());
        AttemptOutcome::ended(AttemptEnd::Failed, message).for_good()
    })?;
    let hidden_files = hidden_files(job, snapshot, around).await?;
    let mut sources: Vec<DataSource> = source.into_iter().chain(check_sources).cloned().collect();
    let reader = SecretReader { job, around, declared: &snapshot.shared.secrets };
    reader.read_passwords(&mut sources).await?;
    let check_sources = sources.split_off(usize::from(source.is_some()));
    Ok(AttemptTask {
        queue_id: job.queue_id,
        attempt: job.attempt,
        job: job.def.clone(),
        batch: job.batch.values.clone(),
        params,
        source: sources.pop(),
        host: find_host(job, snapshot).cloned(),
        secrets,
        idem_key: job.idem_key.to_string(),
        is_unresolved: job.is_unresolved,
        lock_name: job.lock_name.clone(),
        check_sources,
        last_checks,
        traceparent: traceparent(job, around),
        hidden_files,
    })
}

/// The files of all secrets that definitions name, of this batch and of others: scripts must not
/// see them.
async fn hidden_files(
    job: &AttemptOrder,
    snapshot: &Snapshot,
    around: &Surroundings,
) -> Result<Vec<PathBuf>, AttemptOutcome> {
    if job.def.script.is_none() {
        return Ok(Vec::new());
    }
    let read = || async {
        let mut tx = around.db.begin_read().await?;
        store::shared::secret_files(&mut tx).await
    };
    let now = answered(&job.stop, read).await.map_err(|error| {
        let message =
            format!("cannot look up which files hold secrets: {error:#}; nothing was run");
        AttemptOutcome::ended(AttemptEnd::Failed, message)
    })?;
    let declared = snapshot.shared.secrets.iter().filter_map(|secret| match &secret.from {
        SecretFrom::File(path) => Some(path),
        SecretFrom::Env(_) | SecretFrom::Sealed(_) => None,
    });
    let passwords = snapshot.sources.iter().filter_map(|source| source.password_file.as_ref());
    let all: BTreeSet<&String> = now.iter().chain(declared).chain(passwords).collect();
    // Absolute paths, because a script runs in another directory.
    Ok(all.into_iter().filter_map(|path| std::path::absolute(path).ok()).collect())
}

/// A batch that continues with the latest definition (`--latest`) also takes over the rules on who
/// may use its sources.
fn refuse_foreign_sources<'a>(
    group: &GroupCode,
    mut sources: impl Iterator<Item = &'a DataSource>,
) -> Result<(), ForbiddenUse> {
    sources.try_for_each(|source| {
        let resource = SharedResource::Source(source.name.to_string());
        ForbiddenUse::check(group, resource, &source.access)
    })
}

/// Runs the body; when its time limit passes, requests a stop and waits until it has ended.
async fn limited(
    job: &AttemptOrder,
    around: &Surroundings,
    body: BoxFuture<'_, AttemptOutcome>,
) -> AttemptOutcome {
    let mut body = body;
    let limit = Duration::from_secs(job.def.timeout_sec.into());
    let time_is_up = async {
        // The time limit does not include the commit of the claim.
        job.claimed.wait_until_committed().await;
        tokio::time::sleep(limit).await;
    };
    let fence = pass_fence_on(&job.stopper, around.life.clone());
    tokio::select! {
        outcome = &mut body => return outcome,
        () = time_is_up => {}
        () = fence => {}
    }
    // Before the report: the dispatcher passes on a row's KILLING, and must find that the time
    // limit was the reason.
    request_stop(&job.stopper, StopReason::TimedOut);
    let stopping = AttemptReport {
        queue_id: job.queue_id,
        attempt: job.attempt,
        by: None,
        what: What::Stopping,
    };
    let _ = around.reports.send(stopping);
    let mut outcome = body.await;
    if outcome.end == AttemptEnd::TimedOut {
        let how = outcome.message.unwrap_or_default();
        outcome.message = Some(format!("ran past its {} s; {how}", limit.as_secs()));
    }
    outcome
}

/// Stops a task when the lease of this process expires, and withdraws the request when the lease is
/// renewed. Never returns.
async fn pass_fence_on(
    stopper: &watch::Sender<Option<StopReason>>,
    mut life: watch::Receiver<Life>,
) {
    loop {
        fenced(life.clone()).await;
        request_stop(stopper, StopReason::Fenced);
        if life.wait_for(|life| !life.is_fenced).await.is_err() {
            return std::future::pending().await;
        }
        stopper.send_if_modified(|reason| {
            let was_fenced = *reason == Some(StopReason::Fenced);
            *reason = reason.filter(|_| !was_fenced);
            was_fenced
        });
    }
}

/// Requests a stop of a task. The first reason decides the outcome, except that any other reason
/// replaces a lost lease, which may be renewed again.
pub(in crate::engine) fn request_stop(
    stopper: &watch::Sender<Option<StopReason>>,
    why: StopReason,
) {
    stopper.send_if_modified(|reason| {
        let is_new = matches!(*reason, None | Some(StopReason::Fenced)) && *reason != Some(why);
        if is_new {
            *reason = Some(why);
        }
        is_new
    });
}

/// Runs the body and stores its new lines meanwhile, so that `logs -f` can follow it. Both run in
/// one task: a second task was one more to start and to join at each hop.
async fn beside_its_log(
    storage: &LogStorage<'_>,
    body: impl Future<Output = AttemptOutcome>,
) -> AttemptOutcome {
    let mut body = pin!(body);
    let done = CancellationToken::new();
    let mut flush = pin!(storage.store_while_running(&done));
    let outcome = tokio::select! {
        biased;
        outcome = &mut body => outcome,
        () = &mut flush => return body.await,
    };
    // A group under way is awaited: dropping it would leave unknown whether it is stored.
    done.cancel();
    flush.await;
    outcome
}

/// A line as stored: its time is the start of the attempt plus the line's offset.
pub(in crate::engine) fn dated(line: JobLogLine, began: Millis) -> NewLine {
    (line.number, began.plus_ms(line.at_ms), line.stream, line.text)
}

/// The outcome of a body that found its row taken because it is to be stopped: stopped before it
/// began, not failed.
fn stopped_before(
    outcome: AttemptOutcome,
    lost: &LostRow,
    stop: Option<StopReason>,
) -> AttemptOutcome {
    let is_gone = outcome.end == AttemptEnd::Failed && (outcome.is_row_lost || lost.is_noted());
    let end = match (stop, is_gone) {
        (Some(StopReason::TimedOut), true) => AttemptEnd::TimedOut,
        (Some(StopReason::Killed), true) => AttemptEnd::Killed,
        (Some(StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned), true) => {
            AttemptEnd::Returned
        }
        (Some(_), false) | (None, _) => return outcome,
    };
    AttemptOutcome::ended(end, "stopped before it began").before_it_began()
}

/// The `traceparent` header for calls of an attempt; `None` when tracing is off.
fn traceparent(job: &AttemptOrder, around: &Surroundings) -> Option<String> {
    around.traced.load(Ordering::Relaxed).then(|| {
        let batch = &job.batch;
        let trace = TraceId::for_batch(&around.installation, batch.batch_id, batch.create_time);
        span::traceparent(trace, SpanId::of_try(trace, job.queue_id, job.attempt))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(outcome: AttemptOutcome, is_noted: bool, stop: Option<StopReason>) -> AttemptEnd {
        let lost = LostRow::default();
        if is_noted {
            lost.mark_lost();
        }
        stopped_before(outcome, &lost, stop).end
    }

    #[test]
    fn a_row_that_was_lost_to_a_stop_is_no_failure() {
        let failed = || AttemptOutcome::ended(AttemptEnd::Failed, "any words");
        assert_eq!(end_of(failed(), true, Some(StopReason::Killed)), AttemptEnd::Killed);
        assert_eq!(end_of(failed(), true, Some(StopReason::TimedOut)), AttemptEnd::TimedOut);
        assert_eq!(end_of(failed(), true, Some(StopReason::Fenced)), AttemptEnd::Returned);
        assert_eq!(
            end_of(failed().of_lost_row(), false, Some(StopReason::Killed)),
            AttemptEnd::Killed
        );
        assert_eq!(end_of(failed(), true, None), AttemptEnd::Failed, "nobody wanted it stopped");
        assert_eq!(end_of(failed(), false, Some(StopReason::Killed)), AttemptEnd::Failed);
        let words = format!("{}; nothing was run", handler::NOT_OURS);
        let only_says_so = AttemptOutcome::ended(AttemptEnd::Failed, words);
        assert_eq!(end_of(only_says_so, false, Some(StopReason::Killed)), AttemptEnd::Failed);
        let done = AttemptOutcome::success(JobOutputs::default());
        assert_eq!(end_of(done, true, Some(StopReason::Killed)), AttemptEnd::Success);
    }
}
