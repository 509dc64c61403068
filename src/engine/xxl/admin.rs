//! This installation as the admin of XXL-JOB's executors: jobs are run by them, and their ends come back.
//!
//! A run is a row before an executor is asked for it, and it is asked for once. What happens to runs is
//! gathered and written in one transaction a beat; whatever is sent is sent after that. Nothing is done for
//! a run that only waits.

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
    /// How long a run that is to be stopped is waited for.
    give_up_ms: i64,
    next_call: AtomicU64,
    inbox: Mutex<Vec<Inbound>>,
    nudge: Notify,
    book: tokio::sync::Mutex<RunRegister>,
    /// Tokens that were opened, with what they were sealed as.
    tokens: Mutex<HashMap<AppName, (String, SecretString)>>,
}

/// What has happened and is not dealt with yet.
#[derive(Debug)]
enum Inbound {
    /// A try wants a run, or to go on with one.
    Begin(Begin),
    /// A try is to stop.
    Stop(CallId, StopWhy),
    /// A try is not waited for here any more.
    Leave(CallId),
    /// An executor was asked whether a run may go there.
    Tested(CallId, String, Result<(), String>),
    /// It was asked to run.
    Posted(LogId, Posted),
    /// It was asked whether it is busy.
    Looked(LogId, Looked),
    /// It was asked for lines of a log.
    Logged(LogId, Option<LogPage>),
    /// Its executor has not said elsewhere either that it is there.
    Gone(LogId),
}

/// One call of a try, in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CallId(u64);

#[derive(Debug)]
struct Begin {
    id: CallId,
    queue_id: QueueId,
    attempt: u32,
    /// None, when what there is is to be ended.
    ask: Option<RemoteCall>,
    log: RunLog,
    waits: watch::Sender<Option<RunWait>>,
    answer: oneshot::Sender<AttemptOutcome>,
}

impl Admin {
    /// Of the process that is this node.
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

    /// Tells it what a sealed token is, so that it needs no key to open it.
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

/// A call that was handed in.
struct SubmittedCall {
    id: CallId,
    answered: oneshot::Receiver<AttemptOutcome>,
    /// What it waits for before an executor is asked.
    waiting: watch::Receiver<Option<RunWait>>,
}

/// The door to executors that one try is given.
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
                // The next start finds its run where it is.
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
