//! handler: does one kind of job here. In: a task and where to log. Out: an outcome, never an error.
//! May name: domain, lineage, db, outbound, secret_store. Never: the store, the queue, a decision about retries.
//! Invariant: a handler returns only when its body is gone, or says that it could not confirm it.
//! A new job type is one file here and one line in `HANDLERS`.

mod address;
pub mod approval;
mod batch;
mod bind;
mod call_values;
pub mod cgroup_tree;
pub mod checks;
mod child;
mod cluster_api;
mod cursors;
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
use crate::domain::job::{JobDef, JobKind};
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

/// Every job type, in the order in which documents list them.
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
    &approval::ApprovalHandler,
];

/// The handler of a job type.
pub fn find_handler(job_type: &str) -> Option<&'static dyn WorkerHandler> {
    HANDLERS.iter().copied().find(|h| h.kind().name == job_type)
}

/// What is known of a job's type; of one that this binary does not have, only that it is plain.
pub fn kind_of(job: &JobDef) -> JobKind {
    find_handler(job.job_type.as_str()).map_or(JobKind::PLAIN, |handler| handler.kind())
}

/// Code for one job type.
pub trait WorkerHandler: Send + Sync {
    /// Its name and what a definition of this type must and may have.
    fn kind(&self) -> JobKind;

    /// Whether a try has to get something ready that takes time and changes nothing, and then asks
    /// `Claim::may_begin` before anything else: it may be run while its row is being claimed.
    fn gets_ready(&self) -> bool {
        false
    }

    /// Runs one try of one job to its end.
    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;

    /// Ends what a try left running whose worker died, see `end_orphan`.
    fn end_orphan<'a>(
        &'a self,
        _: &'a AttemptTask,
        _: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        let said = "its worker died; what became of it is not known";
        Box::pin(std::future::ready(AttemptOutcome::ended(AttemptEnd::Unknown, said)))
    }
}

/// Ends what the last try of `task` left running, whose worker died while the row was to be stopped.
/// `task.attempt` is that try's number; `ctx.claim` is not asked.
///
/// `Killed`: it ran, was ended, and is proven gone. `Unknown` with a message that starts with
/// `NOTHING_RUNS`: there is nothing of it to be ended, so whoever keeps a ledger may look there.
/// `Unknown` with `UNCONFIRMED`: it may still run; asking again is right. Any other `Unknown`: this
/// type of job leaves nothing that could be found.
pub async fn end_orphan(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    match find_handler(task.job.job_type.as_str()) {
        Some(handler) => handler.end_orphan(task, ctx).await,
        None => {
            let said = format!("this binary knows no job type {}", task.job.job_type);
            AttemptOutcome::ended(AttemptEnd::Unknown, said)
        }
    }
}

/// The number of the session that holds the lock of `task` on its data source; `None` when nobody does. A source that is
/// away is waited for as long as a job waits for one; then the error says why it cannot be asked.
pub async fn holder_of_lock(task: &AttemptTask, ctx: &Context) -> Result<Option<i64>, String> {
    orphan::holder_of_lock(task, ctx).await
}

/// One try of one job, with everything it needs worked out.
#[derive(Clone, Debug)]
pub struct AttemptTask {
    /// The row it belongs to.
    pub queue_id: QueueId,
    /// Which start of that row this is, counted from 1 over all runs.
    pub attempt: u32,
    /// The job.
    pub job: JobDef,
    /// Its batch.
    pub batch: BatchValues,
    /// Its parameters.
    pub params: Vec<BoundParam>,
    /// Its data source.
    pub source: Option<DataSource>,
    /// The host it calls.
    pub host: Option<HttpHost>,
    /// Secrets that its headers name.
    pub secrets: BTreeMap<String, SecretString>,
    /// The idempotency key of its run, the same for every try.
    pub idem_key: String,
    /// The outcome of an earlier try is open; whatever is done, it is looked up first.
    pub is_unresolved: bool,
    /// Name of the session lock its body takes on the data source, unique to the queue row, so
    /// that a second start waits for a first one that still lives there. At most 64 characters.
    pub lock_name: String,
    /// The sources that its checks name, beside its own.
    pub check_sources: Vec<DataSource>,
    /// What its checks that look back found in an earlier batch, by name.
    pub last_checks: BTreeMap<String, Earlier>,
    /// The header `traceparent` for what it calls, where traces are made.
    pub traceparent: Option<String>,
    /// Files that an isolated script does not see, beside those of the settings: secrets of definitions. Absolute paths.
    pub hidden_files: Vec<PathBuf>,
}

/// Why a body must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its time is up.
    TimedOut,
    /// An operator wants it stopped.
    Killed,
    /// This process leaves and hands it back.
    HandedBack,
    /// This process could not renew its lease, so another may take the row over any moment: nothing
    /// here may outlive that moment, so there is no grace. What holds a lock on its server that keeps a second start
    /// away may go on. Taken back when the lease is renewed.
    Fenced,
    /// The row or its batch is another's by now: stopped at once, whatever it holds.
    Disowned,
}

/// Asks whether the row still belongs to this try.
pub trait Claim: Send + Sync {
    /// Whether the row is still ours, by the database's word. Only a question: who waits may ask it
    /// as often as it likes.
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>>;

    /// The same for a body that begins when the answer is yes: asked last, after it has gained its
    /// session lock and before it does anything. From then on it counts as begun, and a process
    /// that leaves does not take it for one that waits.
    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>>;

    /// Whether the row was given to this try already. Until then a question has no answer, and that is
    /// nobody's fault.
    fn is_made(&self) -> bool {
        true
    }

    /// Says in the row what the try waits for before its body, for whoever asks why nothing happens;
    /// `None` when it waits no longer. A row that cannot be written is only logged.
    fn waits_on(&self, what: Option<String>) -> BoxFuture<'_, ()>;
}

/// A statement with `?` for its values.
#[derive(Clone, Debug)]
pub struct LedgerWrite {
    /// Its text.
    pub sql: String,
    /// Its values.
    pub values: Vec<db::SqlValue>,
}

/// What the transaction of a recorded body needs of Procession.
pub trait LedgerContext: Send + Sync {
    /// The time.
    fn now(&self) -> Millis;

    /// A body's outputs without what nobody may read afterwards.
    fn storable(&self, outputs: &JobOutputs) -> JobOutputs;

    /// A question that only Procession's own database answers so: its text, and how the one value
    /// begins.
    fn installation_and_key(&self) -> (String, String);

    /// The statements that end the row as `outcome` says; each must find exactly one row, else it
    /// belongs to another start by now.
    fn end_writes(&self, outcome: &AttemptOutcome) -> Vec<LedgerWrite>;
}

/// How a body says that its row is not its own any more, so that nothing was run.
pub const NOT_OURS: &str = "the row belongs to another start by now";

/// How an outcome says that what was to be stopped could not be seen to go, so that it may still run.
pub use crate::domain::job::queue::KILL_UNCONFIRMED as UNCONFIRMED;

/// How an outcome says that nothing of a dead worker's try is left to be ended.
pub const NOTHING_RUNS: &str = "its worker died; nothing of it runs";

/// How another batch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildBatchEnd {
    /// Its result.
    pub status: BatchStatus,
    /// How many of its jobs are in each state.
    pub counts: Vec<(QueueStatus, u64)>,
    /// Its jobs that did not end well, each with its state.
    pub failed: Vec<String>,
}

/// Opens and watches another batch for a job. Errors are sentences for the user.
pub trait ChildBatches: Send + Sync {
    /// Opens a batch, or goes on with the one that this row opened before.
    fn open_batch(&self, order: BatchOrder) -> BoxFuture<'_, Result<BatchId, String>>;

    /// Returns when the batch has ended.
    fn ended(&self, id: BatchId) -> BoxFuture<'_, Result<ChildBatchEnd, String>>;

    /// Has the batch stopped; it ends when its jobs have.
    fn kill_batch(&self, id: BatchId, reason: String);
}

/// What surrounds a try.
pub struct Context {
    /// Where its lines go.
    pub log: log::RunLog,
    /// Turns from `None` to a reason when the body must stop.
    pub stop: tokio::sync::watch::Receiver<Option<StopReason>>,
    /// Whether the row is still ours.
    pub claim: std::sync::Arc<dyn Claim>,
    /// What is written with its effect, when it is recorded.
    pub record: std::sync::Arc<dyn LedgerContext>,
    /// Other batches.
    pub batches: std::sync::Arc<dyn ChildBatches>,
    /// Executors of XXL-JOB.
    pub executors: std::sync::Arc<dyn remote::RemoteExecutors>,
    /// Decisions of people.
    pub approvals: std::sync::Arc<dyn approval::Approvals>,
    /// Counts the renewals of this process's lease, for bodies that watch over themselves.
    pub pulse: tokio::sync::watch::Receiver<u64>,
    /// Second connections, over which bodies are looked after.
    pub watchers: std::sync::Arc<liveness_probe::Watchers>,
    /// Sessions that wait for a body.
    pub sessions: std::sync::Arc<sessions::SessionPool>,
    /// Settings.
    pub options: std::sync::Arc<HandlerOptions>,
}

impl Context {
    /// Asks for the claim of a body that begins now; an error is the reason why nothing may be run.
    pub(crate) async fn claimed(&self) -> Result<(), String> {
        said_of_claim(self.claim.may_begin().await)
    }

    /// Asks whether the row is still ours, before something that is not the body yet.
    pub(crate) async fn still_claimed(&self) -> Result<(), String> {
        said_of_claim(self.claim.still_ours().await)
    }

    /// Returns when the body must stop, with the reason; never, when nobody asks.
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
    /// Returns when a task must stop that outlives the lease of its process, with the reason.
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

    /// Waits while this process has no lease: what has not begun yet begins when it has one, or is stopped for another
    /// reason.
    pub(crate) async fn lease_is_held(&self) {
        let is_held = |reason: &Option<StopReason>| *reason != Some(StopReason::Fenced);
        let mut stop = self.stop.clone();
        // Without a sender nothing stops it any more.
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

/// Settings of the handlers.
#[derive(Clone, Debug)]
pub struct HandlerOptions {
    /// Interpreters that scripts may name, with their absolute paths.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// Environment variables that scripts inherit; all others are withheld.
    pub script_env: Vec<String>,
    /// How long a body may take to end after it was asked, before it is ended by force: a script
    /// between TERM and KILL, a statement between cancel and the end of its connection.
    pub kill_grace: Duration,
    /// How long to look for a killed session or process before it is called unconfirmed.
    pub kill_confirm: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a try waits for a data source that is away before it fails.
    pub away: Duration,
    /// How long a session on a data source may sit idle before the server ends it, so that a worker
    /// which is stalled does not hold its session lock for ever.
    pub idle: Duration,
    /// How often it is looked whether a body's session still lives on its server.
    pub look_every: Duration,
    /// Whether a server on another machine has to show a certificate that can be verified.
    pub verify_tls: bool,
    /// How long a script may run on without a renewal of this process's lease.
    pub script_lease: Duration,
    /// The program that keeps scripts (`procession script-keeper`); without one, a script outlives a
    /// worker that is killed.
    pub keeper: Option<PathBuf>,
    /// How much a script may use.
    pub script_limits: ScriptLimitSettings,
    /// What holds them to it.
    pub script_cgroups: CgroupTree,
    /// As whom scripts run.
    pub script_users: ScriptUsers,
    /// The files that isolated scripts may use, and those that they do not see.
    pub script_files: ScriptFiles,
    /// What this machine can isolate them with.
    pub isolation_probe: IsolationProbe,
    /// Whether secrets reach a script in files, in place of its environment.
    pub secrets_in_files: bool,
    /// Files that no SQLite source may be.
    pub protected_files: ProtectedFiles,
    /// How much a job may hand on.
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
        assert!(find_handler("SPARK").is_none());
    }
}
