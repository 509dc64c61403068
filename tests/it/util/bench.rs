//! Runs one task with its handler, as the worker would.

use crate::util::Scratch;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use procession::db::notice;
use procession::db::sqlite_file::ProtectedFiles;
use procession::domain::access::approval::{
    ApprovalDecision, ApprovalId, ApprovalRule, ApprovalStatus,
};
use procession::domain::batch::BatchOrder;
use procession::domain::id::{BatchId, BatchNo, GroupCode, JobCode, JobType, QueueId, SourceName};
use procession::domain::job::body::{HttpBody, HttpCall, HttpHost, Sensor};
use procession::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use procession::domain::job::script_isolation::{IsolationPolicy, ScriptUsers};
use procession::domain::job::{JobDef, ParamMode, ParamType, SqlText};
use procession::domain::params::{BatchValues, BoundParam};
use procession::domain::source::DataSource;
use procession::domain::time::Millis;
use procession::handler::approval::{Approvals, AskedApproval};
use procession::handler::isolation_probe::IsolationProbe;
use procession::handler::log::{JobLogLine, RunLog};
use procession::handler::remote::{RemoteCall, RemoteExecutors};
use procession::handler::script_confinement::ScriptFiles;
use procession::handler::{
    AttemptTask, ChildBatchEnd, ChildBatches, Claim, Context, HandlerOptions, LedgerContext,
    LedgerWrite, StopReason, StoredApplication, find_handler,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Longest time of a run in a test, in seconds; a cluster on a busy machine takes long.
const RUN_SEC: u64 = 240;

/// Whether the row is ours, as the test says; and what its try said it waits on.
/// Then, how often a body was allowed to begin, and the application that it stored.
pub(crate) struct Says(
    pub(crate) AtomicBool,
    pub(crate) watch::Sender<Vec<Option<String>>>,
    pub(crate) AtomicU32,
    pub(crate) std::sync::Mutex<Option<StoredApplication>>,
);

impl Says {
    /// Returns when the try says that it waits on something that begins so, with all of it.
    pub(crate) async fn waits_on(&self, start: &str) -> String {
        let is_it = |said: &Option<String>| said.as_ref().is_some_and(|s| s.starts_with(start));
        let mut said = self.1.subscribe();
        let said = said.wait_for(|said| said.last().is_some_and(is_it));
        let said = tokio::time::timeout(Duration::from_secs(20), said).await;
        said.expect("it must say so").expect("a bench").last().cloned().flatten().expect("words")
    }
}

impl Claim for Says {
    fn still_ours(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        async { Ok(self.0.load(Ordering::SeqCst)) }.boxed()
    }

    fn may_begin(&self) -> BoxFuture<'_, anyhow::Result<bool>> {
        self.2.fetch_add(1, Ordering::SeqCst);
        self.still_ours()
    }

    fn waits_on(&self, what: Option<String>) -> BoxFuture<'_, ()> {
        self.1.send_modify(|said| said.push(what));
        async {}.boxed()
    }

    fn store_application(&self, made: StoredApplication) -> BoxFuture<'_, anyhow::Result<()>> {
        *self.3.lock().expect("a lock") = Some(made);
        async { Ok(()) }.boxed()
    }

    fn stored_application(&self) -> BoxFuture<'_, anyhow::Result<Option<StoredApplication>>> {
        let stored = self.3.lock().expect("a lock").clone();
        async move { Ok(stored) }.boxed()
    }
}

/// Records as the test says: `home` is asked as it stands, and the row needs no end.
pub(crate) struct Recorded {
    pub(crate) home: (String, String),
}

impl LedgerContext for Recorded {
    fn now(&self) -> Millis {
        Millis(1_722_470_400_000)
    }

    fn storable(&self, outputs: &JobOutputs) -> JobOutputs {
        outputs.clone()
    }

    fn installation_and_key(&self) -> (String, String) {
        self.home.clone()
    }

    fn end_writes(&self, _outcome: &AttemptOutcome) -> Vec<LedgerWrite> {
        Vec::new()
    }
}

/// Knows no other batch.
struct NoBatches;

impl ChildBatches for NoBatches {
    fn open_batch(&self, _order: BatchOrder) -> BoxFuture<'_, Result<BatchId, String>> {
        async { Err("this test has one task and no batches".to_owned()) }.boxed()
    }

    fn ended(&self, _id: BatchId) -> BoxFuture<'_, Result<ChildBatchEnd, String>> {
        async { Err("this test has one task and no batches".to_owned()) }.boxed()
    }

    fn kill_batch(&self, _id: BatchId, _reason: String) {}
}

/// Reaches no executor.
struct NoExecutors;

impl RemoteExecutors for NoExecutors {
    fn call<'a>(&'a self, _call: RemoteCall, _ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        async { AttemptOutcome::ended(AttemptEnd::Failed, "this test has no executors") }.boxed()
    }

    fn end_run<'a>(&'a self, _ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        async { AttemptOutcome::ended(AttemptEnd::Unknown, "this test has no executors") }.boxed()
    }
}

/// Asks nobody.
struct NoApprovals;

impl Approvals for NoApprovals {
    fn request_approval<'a>(
        &'a self,
        _: &'a ApprovalRule,
    ) -> BoxFuture<'a, Result<AskedApproval, String>> {
        async { Err("this test has no approvers".to_owned()) }.boxed()
    }

    fn ended(&self, _: ApprovalId) -> BoxFuture<'_, Result<ApprovalDecision, String>> {
        async { Err("this test has no approvers".to_owned()) }.boxed()
    }

    fn close(
        &self,
        _: ApprovalId,
        _: ApprovalStatus,
    ) -> BoxFuture<'_, Result<ApprovalDecision, String>> {
        async { Err("this test has no approvers".to_owned()) }.boxed()
    }
}

/// One task with what surrounds it.
pub(crate) struct Bench {
    pub(crate) task: AttemptTask,
    pub(crate) ctx: Context,
    pub(crate) claim: Arc<Says>,
    pub(crate) stop: watch::Sender<Option<StopReason>>,
    log: RunLog,
}

/// What a task came to.
pub(crate) struct Ran {
    pub(crate) outcome: AttemptOutcome,
    pub(crate) lines: Vec<JobLogLine>,
}

impl Ran {
    /// All lines as one text.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|l| format!("{}: {}\n", l.stream.as_str(), l.text)).collect()
    }

    /// The lines of one stream.
    pub(crate) fn of(&self, stream: Stream) -> Vec<&str> {
        self.lines.iter().filter(|l| l.stream == stream).map(|l| l.text.as_str()).collect()
    }

    /// The server session that the body ran on.
    pub(crate) fn session(&self) -> String {
        let text = self.text();
        let (_, after) = text.split_once(", session ").expect("a line that names the session");
        after.chars().take_while(char::is_ascii_digit).collect()
    }

    /// The message, or nothing.
    pub(crate) fn message(&self) -> &str {
        self.outcome.message.as_deref().unwrap_or_default()
    }

    /// An output value.
    pub(crate) fn value(&self, name: &str) -> String {
        let outputs = &self.outcome.outputs;
        let shown = || format!("{:?}\n{}", self.outcome, self.text());
        outputs.value(name).unwrap_or_else(|| panic!("no {name}: {}", shown()))
    }
}

static NEXT: AtomicI64 = AtomicI64::new(1);

fn options() -> HandlerOptions {
    HandlerOptions {
        interpreters: BTreeMap::from([("sh".to_owned(), "/bin/sh".into())]),
        script_env: vec!["PATH".to_owned()],
        kill_grace: Duration::from_secs(1),
        kill_confirm: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        away: Duration::ZERO,
        idle: Duration::from_secs(60),
        look_every: Duration::from_secs(5),
        script_lease: Duration::from_secs(60),
        // Elsewhere where a user runs the tests who may not enter the checkout (scripts/test-cgroups.sh).
        keeper: Some(
            std::env::var_os("PROCESSION_TEST_KEEPER")
                .map_or_else(|| env!("CARGO_BIN_EXE_procession").into(), Into::into),
        ),
        script_limits: Default::default(),
        script_cgroups: Default::default(),
        script_users: ScriptUsers::default(),
        script_files: ScriptFiles::default(),
        isolation_probe: IsolationProbe::default(),
        secrets_in_files: false,
        protected_files: ProtectedFiles::default(),
        verify_tls: true,
        outputs: procession::domain::job::output_limits::OutputLimits::default(),
    }
}

impl Bench {
    /// A task of a type without source.
    pub(crate) fn new(job_type: &str) -> Self {
        static NOTICES: Once = Once::new();
        NOTICES.call_once(|| tracing_subscriber::registry().with(notice::layer()).init());
        let group = GroupCode::parse("month_end").expect("group");
        let job_type = JobType::parse(job_type).expect("type");
        let job =
            JobDef::with_defaults(JobCode::parse("GL").expect("code"), group.clone(), job_type);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let batch = BatchValues {
            batch_no: BatchNo::parse("202407").expect("number"),
            group,
            business_date: "2024-07-31".parse().ok(),
            params: BTreeMap::new(),
        };
        let task = AttemptTask {
            queue_id: QueueId(number),
            attempt: 1,
            job,
            batch,
            params: Vec::new(),
            source: None,
            host: None,
            secrets: BTreeMap::new(),
            idem_key: format!("{}/202407/GL/{number}", std::process::id()),
            is_unresolved: false,
            lock_name: format!("procession:{}:{number}", std::process::id()),
            check_sources: Vec::new(),
            last_checks: BTreeMap::new(),
            traceparent: None,
            hidden_files: Vec::new(),
        };
        let (stop, receiver) = watch::channel(None);
        let claim = Arc::new(Says(
            AtomicBool::new(true),
            watch::channel(Vec::new()).0,
            AtomicU32::default(),
            std::sync::Mutex::default(),
        ));
        let log = RunLog::new(1_000_000);
        let ctx = Context {
            log: log.clone(),
            stop: receiver,
            claim: claim.clone(),
            record: Arc::new(Recorded { home: ("SELECT 'away'".to_owned(), "home".to_owned()) }),
            batches: Arc::new(NoBatches),
            executors: Arc::new(NoExecutors),
            approvals: Arc::new(NoApprovals),
            pulse: watch::channel(0).1,
            watchers: Arc::default(),
            sessions: Arc::new(procession::handler::sessions::SessionPool::new(4)),
            options: Arc::new(options()),
        };
        Self { task, ctx, claim, stop, log }
    }

    fn on(job_type: &str, url: &str) -> Self {
        let mut bench = Self::new(job_type);
        bench.task.source = Some(DataSource {
            name: SourceName::parse("ledger").expect("name"),
            url: url.to_owned(),
            password_env: None,
            password_file: None,
            password_secret: None,
            read_password: Default::default(),
            max_parallel: None,
            procedures: BTreeMap::new(),
            access: procession::domain::access::group_access::GroupAccess::default(),
        });
        bench
    }

    /// A PROC task.
    pub(crate) fn proc(db: &Scratch, name: &str) -> Self {
        let mut bench = Self::on("PROC", &db.url);
        bench.task.job.proc_name = Some(name.to_owned());
        bench
    }

    /// A SQL task.
    pub(crate) fn sql(db: &Scratch, text: &str) -> Self {
        let mut bench = Self::on("SQL", &db.url);
        bench.task.job.sql = Some(SqlText::Same(text.to_owned()));
        bench
    }

    /// A SENSOR task that asks again at once.
    pub(crate) fn sensor(db: &Scratch, text: &str) -> Self {
        let mut bench = Self::on("SENSOR", &db.url);
        bench.task.job.sql = Some(SqlText::Same(text.to_owned()));
        bench.task.job.sensor = Some(Sensor { poll_sec: 0 });
        bench
    }

    /// An HTTP task that calls `base_url`, registered as `core`.
    pub(crate) fn http(base_url: &str, method: &str, path: &str) -> Self {
        let mut bench = Self::new("HTTP");
        bench.task.host = Some(HttpHost {
            name: "core".to_owned(),
            base_url: base_url.to_owned(),
            ui_url: None,
            headers: BTreeMap::new(),
            max_parallel: None,
        });
        bench.task.job.http = Some(Box::new(HttpCall {
            host: "core".to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::new(),
            send: HttpBody::None,
            expect_status: Vec::new(),
        }));
        bench
    }

    /// A SCRIPT task.
    pub(crate) fn script(text: &str) -> Self {
        let mut bench = Self::new("SCRIPT");
        bench.task.job.script = Some(text.to_owned());
        bench
    }

    /// Without a keeper for scripts.
    pub(crate) fn alone(self) -> Self {
        self.options(|options| options.keeper = None)
    }

    /// Without isolation of scripts.
    pub(crate) fn not_isolated(self) -> Self {
        self.options(|options| options.script_users.policy = IsolationPolicy::Off)
    }

    /// With other settings.
    pub(crate) fn options(mut self, change: impl FnOnce(&mut HandlerOptions)) -> Self {
        let mut options = (*self.ctx.options).clone();
        change(&mut options);
        self.ctx.options = Arc::new(options);
        self
    }

    /// With one more parameter.
    pub(crate) fn param(
        mut self,
        name: &str,
        mode: ParamMode,
        ty: ParamType,
        value: Option<&str>,
    ) -> Self {
        let value = value.map(str::to_owned);
        self.task.params.push(BoundParam {
            name: name.to_owned(),
            mode,
            ty,
            value: value.map(procession::domain::job::secret::MaskedValue::Open),
            origin: None,
        });
        self
    }

    /// With other settings.
    pub(crate) fn set(mut self, change: impl FnOnce(&mut HandlerOptions)) -> Self {
        let mut options = (*self.ctx.options).clone();
        change(&mut options);
        self.ctx.options = Arc::new(options);
        self
    }

    /// With its data source behind another address.
    pub(crate) fn at(mut self, url: &str) -> Self {
        self.task.source.as_mut().expect("a source").url = url.to_owned();
        self
    }

    /// Ends what its last try left, as is done behind a dead worker.
    pub(crate) async fn end_orphan(self) -> Ran {
        let outcome = procession::handler::end_orphan(&self.task, &self.ctx);
        let outcome = tokio::time::timeout(Duration::from_secs(60), outcome).await;
        Ran { outcome: outcome.expect("it must end"), lines: self.log.finish() }
    }

    /// Runs it to its end.
    pub(crate) async fn run(self) -> Ran {
        let handler = find_handler(self.task.job.job_type.as_str()).expect("a handler");
        let run = async {
            let outcome = handler.run(&self.task, &self.ctx).await;
            procession::handler::checks::judged(&self.task, &self.ctx, outcome).await
        };
        let outcome = tokio::time::timeout(Duration::from_secs(RUN_SEC), run).await;
        let lines = self.log.finish();
        Ran { outcome: outcome.expect("a handler must end"), lines }
    }

    /// Runs it, and asks it to stop for `reason` as soon as `ready` has returned.
    pub(crate) async fn stop_when(
        self,
        reason: StopReason,
        ready: impl Future<Output = ()>,
    ) -> Ran {
        let stop = self.stop.clone();
        let asked = async move {
            ready.await;
            stop.send_replace(Some(reason));
        };
        let (ran, ()) = tokio::join!(self.run(), asked);
        ran
    }
}
