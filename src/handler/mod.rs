//! handler: does one kind of job here. In: a task and where to log. Out: an outcome, never an error.
//! May name: domain, lineage, db, outbound, secret_store. Never: the store, the queue, a decision about retries.
//! Invariant: a handler returns only when its body is gone, or says that it could not confirm it.
//! A new job type is one file here and one line in `HANDLERS`.

mod address;
mod application_log;
pub mod approval;
mod batch;
mod bind;
mod call_values;
pub mod cgroup_tree;
pub mod checks;
mod child;
mod cluster_api;
mod earlier_attempts;
mod executor;
mod flink;
mod held_limits;
mod http;
mod http_answer;
mod init_process;
pub mod isolation_probe;
mod kill_escalation;
mod ledger;
mod ledger_table;
pub mod lineage;
mod lines;
pub mod liveness_probe;
pub mod log;
mod noop;
mod orphan;
mod packet_limit;
pub mod preflight;
mod proc;
mod process_tree;
pub mod remote;
mod remote_application;
mod remote_engine;
mod routine_lookup;
pub(crate) mod run_on_source;
mod script;
pub mod script_account;
mod script_cgroup;
pub mod script_confinement;
mod script_exit;
pub mod script_init;
mod script_landlock;
mod script_launch;
mod script_mounts;
mod script_namespace;
mod script_outputs;
mod script_supervised;
#[cfg(target_os = "linux")]
pub mod script_supervisor;
mod script_unsupervised;
mod script_workdir;
mod sensor;
pub mod sessions;
mod signature;
pub mod source;
mod source_connection;
mod spark;
mod spark_submit;
mod sql;
mod stop_trial;
mod stopwatch;
pub mod supervisor_protocol;
mod transactional_body;
mod wait_for_source;

use crate::db;
use crate::db::sqlite_file::ProtectedFiles;
use crate::domain::batch::{BatchOrder, BatchStatus};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::body::HttpHost;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::script_isolation::ScriptUsers;
use crate::domain::job::script_limits::ScriptLimitSettings;
use crate::domain::job::success_rules::Earlier;
use crate::domain::job::{AfterCrash, JobDef, JobKind, Takes};
use crate::domain::params::{BatchValues, BoundParam};
use crate::domain::source::DataSource;
use crate::domain::time::Millis;
use crate::handler::cgroup_tree::CgroupTree;
use crate::handler::isolation_probe::IsolationProbe;
use crate::handler::script_confinement::ScriptFiles;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Every job type, in the order of the documentation.
pub static HANDLERS: &[&dyn WorkerHandler] = &[
    &proc::Proc,
    &sql::Sql,
    &script::ScriptHandler,
    &noop::Noop,
    &http::HttpHandler,
    &sensor::SqlSensor,
    &batch::BatchHandler,
    &executor::Bean,
    &executor::GlueHandler,
    &flink::FlinkHandler,
    &spark::SparkHandler,
    &approval::ApprovalHandler,
];

/// The handler of a job type.
pub fn find_handler(job_type: &str) -> Option<&'static dyn WorkerHandler> {
    HANDLERS.iter().copied().find(|h| h.kind().name == job_type)
}

/// The properties of a job's type; for an unknown type those of a plain one.
pub fn kind_of(job: &JobDef) -> JobKind {
    let kind = find_handler(job.job_type.as_str()).map_or(JobKind::PLAIN, |handler| handler.kind());
    // Like a script, it runs below this program.
    let is_here = job.application.is_some() && !job.is_submitted();
    match is_here {
        true => JobKind { takes: Takes::Slots, after_crash: AfterCrash::AsDeclared, ..kind },
        false => kind,
    }
}

/// Code for one job type.
pub trait WorkerHandler: Send + Sync {
    /// Its name, and the required and optional keys of its definition.
    fn kind(&self) -> JobKind;

    /// Whether an attempt first prepares something that takes time and changes nothing, and then
    /// calls `Claim::may_begin` before anything else: it may be run while its row is being claimed.
    fn gets_ready(&self) -> bool {
        false
    }

    /// Runs one attempt of one job to its end.
    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;

    /// Ends what an attempt whose worker died left running, see `end_orphan`.
    fn end_orphan<'a>(
        &'a self,
        _: &'a AttemptTask,
        _: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        let said = "its worker died; what became of it is not known";
        Box::pin(std::future::ready(AttemptOutcome::ended(AttemptEnd::Unknown, said)))
    }
}

/// Ends what the last attempt of `task` left running, whose worker died while the row was to be
/// stopped. `task.attempt` is that attempt's number; `ctx.claim` is not called.
///
/// `Killed`: it ran, was ended, and is proven gone. `Unknown` with a message that starts with
/// `NOTHING_RUNS`: nothing is left to end, so the caller may look in a ledger. `Unknown` with
/// `UNCONFIRMED`: it may still run; the caller should repeat this. Any other `Unknown`: this job
/// type leaves nothing that could be found.
pub async fn end_orphan(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    match find_handler(task.job.job_type.as_str()) {
        Some(handler) => handler.end_orphan(task, ctx).await,
        None => {
            let said = format!("this binary knows no job type {}", task.job.job_type);
            AttemptOutcome::ended(AttemptEnd::Unknown, said)
        }
    }
}

/// The number of the session that holds the lock of `task` on its data source; `None` when none
/// does. An unavailable source is waited for as long as a job waits for one; then the error says
/// why it cannot be queried.
pub async fn holder_of_lock(task: &AttemptTask, ctx: &Context) -> Result<Option<i64>, String> {
    orphan::holder_of_lock(task, ctx).await
}

/// One attempt of one job, with all its inputs resolved.
#[derive(Clone, Debug)]
pub struct AttemptTask {
    pub queue_id: QueueId,
    /// The attempt number of the row, counted from 1 over all runs.
    pub attempt: u32,
    pub job: JobDef,
    pub batch: BatchValues,
    pub params: Vec<BoundParam>,
    pub source: Option<DataSource>,
    pub host: Option<HttpHost>,
    /// Secrets that its headers name.
    pub secrets: BTreeMap<String, SecretString>,
    /// The idempotency key of its run, the same for every attempt.
    pub idem_key: String,
    /// The outcome of an earlier attempt is open; it is looked up before anything else.
    pub is_unresolved: bool,
    /// The session lock that its body takes on the data source, unique to the queue row, so that a
    /// second start waits for a first one that still runs there. At most 64 characters.
    pub lock_name: String,
    /// The sources that its checks name, besides its own.
    pub check_sources: Vec<DataSource>,
    /// Results of its comparing checks in an earlier batch, by name.
    pub last_checks: BTreeMap<String, Earlier>,
    /// The `traceparent` header for its calls, when tracing is on.
    pub traceparent: Option<String>,
    /// Files that are hidden from an isolated script, besides those of the settings: secrets of
    /// definitions. Absolute paths.
    pub hidden_files: Vec<PathBuf>,
}

/// Why a body must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its time limit has passed.
    TimedOut,
    /// An operator requested it.
    Killed,
    /// This process shuts down and hands it back.
    HandedBack,
    /// This process could not renew its lease, so another may take the row over at any moment:
    /// nothing here may run beyond that, so there is no grace period. A body that holds a lock on
    /// its server, which keeps a second start away, may continue. Withdrawn when the lease is
    /// renewed.
    Fenced,
    /// The row or its batch belongs to another process now: stopped at once, whatever lock it
    /// holds.
    Disowned,
}

/// Checks whether the row still belongs to this attempt.
pub trait Claim: Send + Sync {
    /// Whether the row still belongs to this attempt, according to the database. A pure query: a
    /// waiting attempt may call it repeatedly.
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>>;

    /// The same for a body that begins if the answer is yes: called last, after it has got its
    /// session lock and before it has any effect. From then on it counts as begun, and a shutdown
    /// does not treat it as waiting.
    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>>;

    /// Whether the row was given to this attempt already. Until then a check has no answer, which
    /// is not an error.
    fn is_made(&self) -> bool {
        true
    }

    /// Stores in the row what the attempt waits for before its body, for display; `None` when it no
    /// longer waits. A failed write is only logged.
    fn waits_on(&self, what: Option<String>) -> BoxFuture<'_, ()>;

    /// Stores the id of an application that the attempt has submitted, so that a later attempt
    /// finds it.
    fn store_application(&self, made: StoredApplication) -> BoxFuture<'_, anyhow::Result<()>>;

    /// The application that an attempt of the row stored last.
    fn stored_application(&self) -> BoxFuture<'_, anyhow::Result<Option<StoredApplication>>>;
}

/// The id of an application on its cluster, with the key of the attempt that submitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApplication {
    pub key: String,
    pub id: String,
}

/// A statement with `?` for its values.
#[derive(Clone, Debug)]
pub struct LedgerWrite {
    pub sql: String,
    pub values: Vec<db::SqlValue>,
}

/// What the transaction of a recorded body needs from Procession.
pub trait LedgerContext: Send + Sync {
    /// The present time.
    fn now(&self) -> Millis;

    /// A body's outputs without secret values.
    fn storable(&self, outputs: &JobOutputs) -> JobOutputs;

    /// A query that only Procession's own database answers in this way: its text, and the prefix of
    /// the expected value.
    fn installation_and_key(&self) -> (String, String);

    /// The statements that end the row with `outcome`; each must change exactly one row, else the
    /// row belongs to another start.
    fn end_writes(&self, outcome: &AttemptOutcome) -> Vec<LedgerWrite>;
}

/// Message of a body whose row belongs to another start, so that nothing was run.
pub const NOT_OURS: &str = "the row belongs to another start by now";

/// Message of an outcome whose stop could not be confirmed, so that the body may still run.
pub use crate::domain::job::queue::KILL_UNCONFIRMED as UNCONFIRMED;

/// Message of an outcome when nothing of a dead worker's attempt is left to end.
pub const NOTHING_RUNS: &str = "its worker died; nothing of it runs";

/// The end of another batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildBatchEnd {
    pub status: BatchStatus,
    /// Number of its jobs in each state.
    pub counts: Vec<(QueueStatus, u64)>,
    /// Its failed jobs, each with its state.
    pub failed: Vec<String>,
}

/// Opens and watches another batch for a job. Errors are messages for the user.
pub trait ChildBatches: Send + Sync {
    /// Opens a batch, or continues the one that this row opened before.
    fn open_batch(&self, order: BatchOrder) -> BoxFuture<'_, Result<BatchId, String>>;

    /// Returns when the batch has ended.
    fn ended(&self, id: BatchId) -> BoxFuture<'_, Result<ChildBatchEnd, String>>;

    /// Requests a stop of the batch; it ends when its jobs have.
    fn kill_batch(&self, id: BatchId, reason: String);
}

/// The environment of an attempt.
pub struct Context {
    /// The log of the attempt.
    pub log: log::RunLog,
    /// Changes from `None` to a reason when the body must stop.
    pub stop: tokio::sync::watch::Receiver<Option<StopReason>>,
    /// Checks whether the row still belongs to the attempt.
    pub claim: std::sync::Arc<dyn Claim>,
    /// What is written together with the body's effect, for a recorded job.
    pub record: std::sync::Arc<dyn LedgerContext>,
    /// Access to other batches.
    pub batches: std::sync::Arc<dyn ChildBatches>,
    /// Access to executors of XXL-JOB.
    pub executors: std::sync::Arc<dyn remote::RemoteExecutors>,
    /// Access to approvals.
    pub approvals: std::sync::Arc<dyn approval::Approvals>,
    /// Counts the lease renewals of this process, for bodies with their own supervisor.
    pub pulse: tokio::sync::watch::Receiver<u64>,
    /// Second connections, over which running bodies are probed.
    pub watchers: std::sync::Arc<liveness_probe::Watchers>,
    /// Idle sessions for reuse.
    pub sessions: std::sync::Arc<sessions::SessionPool>,
    pub options: std::sync::Arc<HandlerOptions>,
}

impl Context {
    /// Checks the claim of a body that begins now; an error is the reason why nothing may be run.
    pub(crate) async fn claimed(&self) -> Result<(), String> {
        said_of_claim(self.claim.may_begin().await)
    }

    /// Checks whether the row still belongs to the attempt, before a step that is not the body yet.
    pub(crate) async fn still_claimed(&self) -> Result<(), String> {
        said_of_claim(self.claim.still_ours().await)
    }

    /// Returns the reason when the body must stop; never returns if that is not requested.
    pub async fn stopped(&self) -> StopReason {
        let mut stop = self.stop.clone();
        loop {
            if let Some(reason) = *stop.borrow_and_update() {
                return reason;
            }
            if stop.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

impl Context {
    /// Returns the reason when a task must stop that survives a lost lease of its process.
    pub(crate) async fn stopped_for_good(&self) -> StopReason {
        let is_final =
            |reason: &Option<StopReason>| !matches!(reason, None | Some(StopReason::Fenced));
        let mut stop = self.stop.clone();
        let found = stop.wait_for(is_final).await.map(|reason| *reason);
        match found {
            Ok(Some(reason)) => reason,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Waits while this process has no valid lease: what has not begun yet begins after the
    /// renewal, or is stopped for another reason.
    pub(crate) async fn lease_is_held(&self) {
        let is_held = |reason: &Option<StopReason>| *reason != Some(StopReason::Fenced);
        let mut stop = self.stop.clone();
        // Without a sender nothing can stop it any more.
        let _no_sender = stop.wait_for(is_held).await.is_err();
    }
}

fn said_of_claim(answer: anyhow::Result<bool>) -> Result<(), String> {
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{NOT_OURS}; nothing was run")),
        Err(e) => Err(format!("cannot ask whether the row is still ours: {e:#}")),
    }
}

/// Settings of the handlers, from the configuration.
#[derive(Clone, Debug)]
pub struct HandlerOptions {
    /// Interpreters that scripts may name, with their absolute paths.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// Environment variables that scripts inherit; all others are removed.
    pub script_env: Vec<String>,
    /// Grace period of a body between a stop request and its forced end: for a script between TERM
    /// and KILL, for a statement between cancel and the end of its connection.
    pub kill_grace: Duration,
    /// How long to check for a killed session or process before its end counts as unconfirmed.
    pub kill_confirm: Duration,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// How long an attempt waits for an unavailable data source before it fails.
    pub away: Duration,
    /// Idle time after which the server ends a session on a data source, so that a stalled worker
    /// does not hold its session lock forever.
    pub idle: Duration,
    /// Interval of the liveness probe of a body's session.
    pub look_every: Duration,
    /// Whether a server on another machine must present a verifiable certificate.
    pub verify_tls: bool,
    /// How long a script may continue without a renewal of this process's lease.
    pub script_lease: Duration,
    /// The supervisor program for scripts (`procession script-keeper`); without one, a script
    /// survives a worker that is killed.
    pub keeper: Option<PathBuf>,
    /// Resource limits of scripts.
    pub script_limits: ScriptLimitSettings,
    /// The control groups that enforce them.
    pub script_cgroups: CgroupTree,
    /// The accounts that scripts run under.
    pub script_users: ScriptUsers,
    /// The files that isolated scripts may use, and those hidden from them.
    pub script_files: ScriptFiles,
    /// The isolation that this machine supports.
    pub isolation_probe: IsolationProbe,
    /// Whether secrets are passed to scripts in files instead of the environment.
    pub secrets_in_files: bool,
    /// Files that must not be used as SQLite sources.
    pub protected_files: ProtectedFiles,
    /// Limits of a job's outputs.
    pub outputs: OutputLimits,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobType;

    #[test]
    fn every_job_type_has_its_own_usable_name_and_one_sentence() {
        let mut names = std::collections::BTreeSet::new();
        for handler in HANDLERS {
            let kind = handler.kind();
            assert!(names.insert(kind.name), "{} is there twice", kind.name);
            assert!(JobType::parse(kind.name).is_ok(), "{}", kind.name);
            assert!(kind.about.ends_with('.') && kind.about.matches(". ").count() == 0);
            assert!(kind.needs.iter().all(|part| !kind.may_have.contains(part)));
            assert_eq!(find_handler(kind.name).map(|h| h.kind().name), Some(kind.name));
        }
        assert!(find_handler("NONE").is_none());
    }
}
