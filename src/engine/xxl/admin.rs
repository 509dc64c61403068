//! This installation as the admin of XXL-JOB executors: they run jobs and report how the runs
//! ended.
//!
//! A run is stored before an executor receives it, and it is sent once. Events of runs are gathered
//! and written in one transaction per tick; requests are sent after that. A run that only waits
//! costs nothing.

mod dispatch;
mod executor_requests;
pub mod registry_api;
mod run_state;
mod state_store;
mod tick;
mod write_batch;

use crate::domain::executor::LogId;
use crate::domain::executor::run_wait::RunWait;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, StoredOutputsKey};
use crate::domain::xxl::executor_run::{Looked, Posted, StopWhy};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::attempt::run::RemoteRuns;
use crate::engine::clock::Clock;
use crate::engine::hints::Hints;
use crate::handler::log::RunLog;
use crate::handler::remote::{RemoteCall, RemoteExecutors};
use crate::handler::{Context, StopReason};
use crate::remote::executors::{ClientTlsFiles, ExecutorClient, LogPage};
use crate::store::Db;
use futures_util::future::BoxFuture;
use run_state::RunRegister;
use secrecy::SecretString;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot, watch};

/// The admin of executors in one process.
pub struct Admin {
    db: Db,
    clock: Clock,
    me: NodeId,
    hints: Hints,
    line: Arc<ExecutorClient>,
    /// How long the end of a run is waited for after a stop request, in milliseconds.
    give_up_ms: i64,
    next_call: AtomicU64,
    inbox: Mutex<Vec<Inbound>>,
    nudge: Notify,
    book: tokio::sync::Mutex<RunRegister>,
    /// Opened tokens, with their sealed form.
    tokens: Mutex<HashMap<AppName, (String, SecretString)>>,
}

/// Events that are not handled yet.
#[derive(Debug)]
enum Inbound {
    /// An attempt requests a run, or continues one.
    Begin(Begin),
    /// An attempt is to stop.
    Stop(CallId, StopWhy),
    /// This process no longer waits for the attempt.
    Leave(CallId),
    /// The answer of an executor to an idle check.
    Tested(CallId, String, Result<(), String>),
    /// The answer to a run request.
    Posted(LogId, Posted),
    /// The answer to a busy check.
    Looked(LogId, Looked),
    /// The answer to a log request.
    Logged(LogId, Option<LogPage>),
    /// The executor of the run is no longer registered anywhere.
    Gone(LogId),
}

/// One call of an attempt, in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CallId(u64);

#[derive(Debug)]
struct Begin {
    id: CallId,
    queue_id: QueueId,
    attempt: u32,
    /// `None` to end the existing runs.
    ask: Option<RemoteCall>,
    log: RunLog,
    waits: watch::Sender<Option<RunWait>>,
    answer: oneshot::Sender<AttemptOutcome>,
}

impl Admin {
    /// The admin of this node's process.
    pub(in crate::engine) fn new(
        db: Db,
        clock: Clock,
        me: NodeId,
        hints: Hints,
        give_up_ms: i64,
        tls: ClientTlsFiles,
    ) -> Self {
        let line = Arc::new(ExecutorClient::new(tls));
        let (next_call, inbox, nudge) = (AtomicU64::new(1), Mutex::default(), Notify::new());
        let book = tokio::sync::Mutex::default();
        let tokens = Mutex::default();
        Self { db, clock, me, hints, line, give_up_ms, next_call, inbox, nudge, book, tokens }
    }

    /// Adds an opened token, so that this admin needs no key to open it.
    pub fn know_token(&self, app: &AppName, sealed: &str, token: SecretString) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(app.clone(), (sealed.to_owned(), token));
    }

    fn receive(&self, inbound: Inbound) {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(inbound);
        self.nudge.notify_one();
    }

    fn take_inbox(&self) -> Vec<Inbound> {
        std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A submitted call.
struct SubmittedCall {
    id: CallId,
    answered: oneshot::Receiver<AttemptOutcome>,
    /// What it waits for before an executor receives it.
    waiting: watch::Receiver<Option<RunWait>>,
}

/// The access to executors that one attempt is given.
struct OfTry {
    admin: Arc<Admin>,
    queue_id: QueueId,
    attempt: u32,
}

impl RemoteRuns for Arc<Admin> {
    fn of_attempt(
        &self,
        StoredOutputsKey { queue_id, attempt }: StoredOutputsKey,
    ) -> Arc<dyn RemoteExecutors> {
        Arc::new(OfTry { admin: self.clone(), queue_id, attempt })
    }
}

impl OfTry {
    fn begin(&self, ask: Option<RemoteCall>, log: &RunLog) -> SubmittedCall {
        let id = CallId(self.admin.next_call.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        let (waits, waiting) = watch::channel(None);
        let (queue_id, attempt, log) = (self.queue_id, self.attempt, log.clone());
        self.admin.receive(Inbound::Begin(Begin {
            id,
            queue_id,
            attempt,
            ask,
            log,
            waits,
            answer,
        }));
        SubmittedCall { id, answered, waiting }
    }

    fn outcome_of(&self, id: CallId) -> AttemptOutcome {
        self.admin.receive(Inbound::Leave(id));
        let said = "its run goes on; this process does not wait for it any more";
        AttemptOutcome::ended(AttemptEnd::Returned, said).before_it_began()
    }
}

impl RemoteExecutors for OfTry {
    fn call<'a>(&'a self, call: RemoteCall, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            let SubmittedCall { id, mut answered, mut waiting } = self.begin(Some(call), &ctx.log);
            let mut has_said = false;
            let reason = loop {
                tokio::select! {
                    biased;
                    outcome = &mut answered => return outcome.unwrap_or_else(|_| self.outcome_of(id)),
                    reason = ctx.stopped() => break reason,
                    Ok(()) = waiting.changed() => {
                        let wait = *waiting.borrow_and_update();
                        if wait.is_some() || has_said {
                            ctx.claim.waits_on(wait.map(|wait| wait.to_string())).await;
                        }
                        has_said = wait.is_some();
                    }
                }
            };
            let why = match reason {
                StopReason::TimedOut => StopWhy::TimedOut,
                StopReason::Killed => StopWhy::Killed,
                // The next start finds the run where it is.
                StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
                    return self.outcome_of(id);
                }
            };
            self.admin.receive(Inbound::Stop(id, why));
            answered.await.unwrap_or_else(|_| self.outcome_of(id))
        })
    }

    fn end_run<'a>(&'a self, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            let SubmittedCall { id, answered, .. } = self.begin(None, &ctx.log);
            self.admin.receive(Inbound::Stop(id, StopWhy::Killed));
            answered.await.unwrap_or_else(|_| self.outcome_of(id))
        })
    }
}
