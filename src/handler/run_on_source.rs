//! Runs a body on a data source: connect, take the session lock, check the claim, run, and if it
//! must stop, stop it on the server and prove that.

use crate::db::fault::{ServerErrorKind, SessionError};
use crate::db::notice;
use crate::db::routine::Routine;
use crate::db::session::{Arg, Session, SessionTarget, StatementGuard, let_all_through};
use crate::db::target::{self, TargetDatabase};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::retry::ErrorClass;
use crate::domain::source::DataSource;
use crate::domain::source::sqlite_confinement::confine_to_file;
use crate::domain::source::transport::with_verified_tls;
use crate::handler::address;
use crate::handler::kill_escalation::{GuardedEnd, Ladder};
use crate::handler::ledger;
use crate::handler::signature::Name;
use crate::handler::source_connection::get_ready;
use crate::handler::{AttemptTask, Context, HandlerOptions, StopReason};
use crate::secret_store::secret_file::SecretFile;
use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a handler does with an open session.
pub(crate) trait SessionBody: Sync {
    /// The routine that it calls, to be looked up together with the lock.
    fn calls(&self) -> Option<Name> {
        None
    }

    /// Receives the routines found for that name.
    fn found(&self, _: Vec<Routine>) {}

    /// The values that are sent with the lock, by index; `None` for those that must not be.
    fn gives(&self, _: &dyn TargetDatabase) -> Vec<Option<Arg>> {
        Vec::new()
    }

    /// Queries what it needs from the server before it runs, without changes; runs while the
    /// metadata database is asked for the claim.
    fn look_up_routine<'s>(&'s self, _: &'s mut Session) -> BoxFuture<'s, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Runs it; the session is closed afterwards.
    fn run<'s>(&'s self, session: &'s mut Session) -> BoxFuture<'s, Result<JobOutputs, BodyFault>>;

    /// Runs it inside an open transaction, and leaves that open.
    fn run_inside<'s>(
        &'s self,
        session: &'s mut Session,
    ) -> BoxFuture<'s, Result<JobOutputs, BodyFault>>;
}

/// Why a body did not succeed.
#[derive(Debug)]
pub(crate) enum BodyFault {
    /// A reason of this program, found before anything took effect or after all of it was undone.
    Said(String),
    /// A query before the body failed: nothing has taken effect.
    Before(String, SessionError),
    /// A statement of the body failed: which one, and how.
    At(String, SessionError),
    /// The complete outcome of the attempt, which may even be a success.
    Known(Box<AttemptOutcome>),
}

impl BodyFault {
    /// A failed query before the body: nothing has taken effect.
    pub(crate) fn before(what: &str, error: SessionError) -> Self {
        match error {
            SessionError::Braked => Self::At(what.to_owned(), error),
            SessionError::Database(_) | SessionError::Lost(_) => {
                Self::Before(what.to_owned(), error)
            }
        }
    }
}

/// The outcome with the class of its error; the only place where the servers' error kinds get the
/// names that definitions use.
pub(crate) fn classed(outcome: AttemptOutcome, error: &SessionError) -> AttemptOutcome {
    let class = match error.kind() {
        ServerErrorKind::Deadlock => ErrorClass::Deadlock,
        ServerErrorKind::LockWait => ErrorClass::LockWait,
        ServerErrorKind::Serialization => ErrorClass::Serialization,
        ServerErrorKind::Lost => ErrorClass::ConnectionLost,
        ServerErrorKind::Other => ErrorClass::Other,
    };
    outcome.of_class(class, error.sqlstate())
}

/// Runs `body` on the task's data source.
///
/// The order on its one connection: session lock, then `may_begin`, then the body. `kill -9` of a
/// worker does not stop its CALL, but the server holds the lock exactly as long as that orphan
/// lives; so the holder of the lock is alone, and checks then whether it may still run.
pub(crate) async fn run_on_source(
    task: &AttemptTask,
    ctx: &Context,
    body: &dyn SessionBody,
) -> AttemptOutcome {
    let Some(source) = &task.source else {
        return AttemptOutcome::ended(AttemptEnd::Failed, "the job names no data source")
            .before_it_began();
    };
    let (target, at) = match target(source, task, &ctx.options) {
        Ok(found) => found,
        Err(said) => return AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began(),
    };
    let ready = tokio::select! {
        biased;
        reason = ctx.stopped() => {
            Err(AttemptOutcome::ended(end_of(reason), "stopped before it began").before_it_began())
        }
        ready = get_ready(task, ctx, &source.name, &target, &at, body) => ready,
    };
    let mut session = match ready {
        Ok(session) => session,
        Err(outcome) => return outcome,
    };
    let ladder = Ladder::new(&session, &target, &task.lock_name, ctx);
    let log = ctx.log.clone();
    let sink: notice::NoticeSink =
        Arc::new(move |word, text| log.add_line(Stream::Database, format!("{word}: {text}")));
    tracing::trace!(target: "procession::moment", id = task.queue_id.0, "begun");
    if task.job.tx.is_recorded() {
        let work = ledger::run_recorded(task, ctx, body, &mut session);
        let ended = ladder.guard(notice::scope(sink, work)).await;
        tracing::trace!(target: "procession::moment", id = task.queue_id.0, "ended");
        let outcome = settle(ended, session, &ladder, task).await;
        return ledger::after_stop(task, ctx, &target, outcome).await;
    }
    let ended = ladder.guard(notice::scope(sink, under_way(body.run(&mut session)))).await;
    tracing::trace!(target: "procession::moment", id = task.queue_id.0, "ended");
    settle(ended, session, &ladder, task).await
}

/// Runs a body between two failpoints.
pub(crate) async fn under_way<T>(body: impl Future<Output = T>) -> T {
    failpoint!("body.before");
    let done = sent_in_time(body).await;
    failpoint!("body.after");
    done
}

/// The failpoint at which a sufficiently slow body has been sent and not answered.
#[cfg(debug_assertions)]
async fn sent_in_time<T>(body: impl Future<Output = T>) -> T {
    let mut body = std::pin::pin!(body);
    tokio::select! {
        biased;
        done = &mut body => return done,
        () = tokio::time::sleep(Duration::from_millis(20)) => {}
    }
    failpoint!("body.sent");
    body.await
}

#[cfg(not(debug_assertions))]
async fn sent_in_time<T>(body: impl Future<Output = T>) -> T {
    body.await
}

/// The application name of the body's session on its server.
pub(crate) fn label(task: &AttemptTask) -> String {
    format!("{}:{}", task.batch.batch_no, task.job.code)
}

/// The facts that a body may read from its session.
pub(crate) fn facts(task: &AttemptTask) -> Vec<(&'static str, String)> {
    vec![
        ("idem_key", task.idem_key.clone()),
        ("batch_no", task.batch.batch_no.to_string()),
        ("job_code", task.job.code.to_string()),
        ("attempt", task.attempt.to_string()),
    ]
}

/// The outcome of a guarded body; its session is gone afterwards.
pub(crate) async fn settle(
    ended: GuardedEnd,
    session: Session,
    ladder: &Ladder<'_>,
    task: &AttemptTask,
) -> AttemptOutcome {
    match ended {
        GuardedEnd::Own(Ok(outputs)) => {
            let outcome = AttemptOutcome::success(outputs);
            done_with(session, &outcome, ladder, task).await;
            outcome
        }
        GuardedEnd::Own(Err(BodyFault::Known(outcome))) => {
            done_with(session, &outcome, ladder, task).await;
            *outcome
        }
        GuardedEnd::Own(Err(BodyFault::Said(said))) => {
            session.close().await;
            AttemptOutcome::ended(AttemptEnd::Failed, said)
        }
        GuardedEnd::Own(Err(BodyFault::Before(what, error))) => {
            session.close().await;
            let said = format!("{what}: {error}; nothing was run");
            classed(AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began(), &error)
        }
        GuardedEnd::Own(Err(BodyFault::At(place, SessionError::Lost(why)))) => {
            drop(session);
            ladder.tell_what_became().await;
            let said =
                format!("{place}: connection lost ({why}); whether it took effect is not known");
            AttemptOutcome::ended(AttemptEnd::Unknown, said)
                .of_class(ErrorClass::ConnectionLost, None)
        }
        GuardedEnd::Own(Err(BodyFault::At(place, error))) => {
            session.close().await;
            classed(AttemptOutcome::ended(AttemptEnd::Failed, format!("{place}: {error}")), &error)
        }
        GuardedEnd::Stopped(reason) => {
            session.close().await;
            let gone = ladder.confirm(Duration::from_secs(1)).await;
            stopped(reason, gone, ladder)
        }
        GuardedEnd::LeftBehind(reason, gone) => {
            drop(session);
            stopped(reason, gone, ladder)
        }
    }
}

/// Returns the session of a successful body to the pool; any other is closed.
async fn done_with(
    mut session: Session,
    outcome: &AttemptOutcome,
    ladder: &Ladder<'_>,
    task: &AttemptTask,
) {
    let is_well = matches!(outcome.end, AttemptEnd::Success) && outcome.breach.is_none();
    let counts_commits = session.database().capabilities().lets_bodies_end_transactions;
    if !is_well || (task.job.tx.is_recorded() && counts_commits) {
        // Closing frees the lock as well; this frees it earlier.
        let _closing_frees_it_too = session.unlock(&task.lock_name).await;
        return session.close().await;
    }
    // A rule or a check may still fail, and the next attempt must not find the lock held by this
    // one.
    let is_judged = !task.job.checks.is_empty() || !task.job.success.is_empty();
    if is_judged && session.unlock(&task.lock_name).await.is_err() {
        return;
    }
    ladder.give_back(session);
}

fn stopped(reason: StopReason, is_gone: bool, ladder: &Ladder<'_>) -> AttemptOutcome {
    if !is_gone {
        return AttemptOutcome::ended(AttemptEnd::Unknown, ladder.unconfirmed());
    }
    let said = match reason {
        StopReason::TimedOut => "stopped on the server",
        StopReason::Killed => "stopped on the server, as was asked",
        StopReason::HandedBack => "stopped on the server, to be handed back",
        StopReason::Fenced => "stopped on the server, because this process lost its lease",
        StopReason::Disowned => {
            "stopped on the server, because its row is another process's by now"
        }
    };
    AttemptOutcome::ended(end_of(reason), said)
}

/// The attempt end for a confirmed stop.
pub(crate) fn end_of(reason: StopReason) -> AttemptEnd {
    match reason {
        StopReason::TimedOut => AttemptEnd::TimedOut,
        StopReason::Killed => AttemptEnd::Killed,
        StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => AttemptEnd::Returned,
    }
}

/// The connection target of a source: its URL, or the value of `PROCESSION_SOURCE_<NAME>`, and its
/// password from the environment or a file. A relative SQLite path is relative to the program's
/// directory. Includes the displayable part of the URL.
pub(crate) fn target(
    source: &DataSource,
    task: &AttemptTask,
    options: &HandlerOptions,
) -> Result<(SessionTarget, String), String> {
    reach(source, label(task), options)
}

/// The same for callers without a task; `label` is shown on the server.
pub(crate) fn reach(
    source: &DataSource,
    label: String,
    options: &HandlerOptions,
) -> Result<(SessionTarget, String), String> {
    let (name, timeout) = (&source.name, options.connect_timeout);
    let url = std::env::var(source.url_env()).unwrap_or_else(|_| source.url.clone());
    let Some(database) = target::of_url(&url) else {
        return Err(format!(
            "the URL of source '{name}' must begin with sqlite:, mysql:// or postgres://"
        ));
    };
    let at = address::shown(database, &url)
        .map_err(|said| format!("source '{name}': configuration fault: {said}; nothing was run"))?;
    let is_file = database.capabilities().is_file;
    if is_file {
        let refused = options.protected_files.check_sqlite_url(&url);
        let refused = refused.map_err(address::opening);
        refused.map_err(|said| format!("source '{name}' at {at}: {said}; nothing was run"))?;
    }
    let password = match (&source.password_env, &source.password_file) {
        _ if source.password_secret.is_some() => Some(password_of_secret(source)?),
        (Some(variable), _) => Some(std::env::var(variable).map_err(|_| {
            format!("source '{name}': its password should be in {variable}, which is not set")
        })?),
        (None, Some(file)) => {
            let read = SecretFile::read_file(Path::new(file));
            let read = read.map_err(|e| format!("source '{name}': its password: {e}"))?;
            Some(read.first_line().expose_secret().to_owned())
        }
        (None, None) => None,
    };
    let url = if options.verify_tls { with_verified_tls(&url) } else { url };
    let guard: StatementGuard = if is_file { confine_to_file } else { let_all_through };
    Ok((
        SessionTarget { url, password: password.map(SecretString::from), label, timeout, guard },
        at,
    ))
}

/// The caller that started this has read it; a caller that cannot read secrets does not get here
/// with one.
fn password_of_secret(source: &DataSource) -> Result<String, String> {
    let read = source.read_password.0.as_ref().map(|read| read.expose_secret().to_owned());
    read.ok_or_else(|| {
        let secret = source.password_secret.as_deref().unwrap_or_default();
        format!(
            "source '{}': its password is the secret {secret}, which is read where its definition has been applied; \
             apply it, and ask there",
            source.name
        )
    })
}
