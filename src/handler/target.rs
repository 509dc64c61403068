//! Runs a body on a data source: connect, lock, ask whether the row is still ours, run, and when
//! it must stop, stop it on the server and prove it.

use crate::db::fault::{Kind, SessionError};
use crate::db::notice;
use crate::db::session::{Session, Target};
use crate::domain::id::SourceName;
use crate::domain::outcome::{End, Outcome, Outputs, Stream};
use crate::domain::retry::ErrorClass;
use crate::domain::source::{DialectName, Source};
use crate::handler::address;
use crate::handler::ladder::{Ended, Ladder};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{Context, NOT_OURS, StopReason, Task};
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// What a handler does with an open session.
pub(crate) trait Body: Sync {
    /// Runs it; the session is closed afterwards.
    fn run<'s>(&'s self, session: &'s mut Session) -> BoxFuture<'s, Result<Outputs, Fault>>;
}

/// Why a body did not end well.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A reason of ours, found before anything took effect or after all of it was undone.
    Said(String),
    /// An error of a question we asked before the body began: nothing has taken effect.
    Before(String, SessionError),
    /// A statement of the body failed: which one, and how.
    At(String, SessionError),
}

impl Fault {
    /// An error of a question we asked before the body began: nothing has taken effect.
    pub(crate) fn before(what: &str, error: SessionError) -> Self {
        match error {
            SessionError::Braked => Self::At(what.to_owned(), error),
            SessionError::Database(_) | SessionError::Lost(_) => {
                Self::Before(what.to_owned(), error)
            }
        }
    }
}

/// The outcome with the kind of its error, the one place where the servers' kinds get the names that
/// definitions know.
fn classed(outcome: Outcome, error: &SessionError) -> Outcome {
    let class = match error.kind() {
        Kind::Deadlock => ErrorClass::Deadlock,
        Kind::LockWait => ErrorClass::LockWait,
        Kind::Serialization => ErrorClass::Serialization,
        Kind::Lost => ErrorClass::ConnectionLost,
        Kind::Other => ErrorClass::Other,
    };
    outcome.of_class(class, error.sqlstate())
}

/// Runs `body` on the task's data source.
///
/// The order on its one connection: session lock, then `still_ours`, then the body. `kill -9` of a
/// worker does not stop its CALL, but the server holds the lock exactly as long as that orphan
/// lives; so who has the lock is alone, and who is alone asks whether it is still wanted.
pub(crate) async fn run(task: &Task, ctx: &Context, body: &dyn Body) -> Outcome {
    let Some(source) = &task.source else {
        return Outcome::ended(End::Failed, "the job names no data source");
    };
    let (target, at) = match target(source, task, ctx.options.connect_timeout) {
        Ok(found) => found,
        Err(said) => return Outcome::ended(End::Failed, said),
    };
    let ready = tokio::select! {
        biased;
        reason = ctx.stopped() => Err(Outcome::ended(end_of(reason), "stopped before it began")),
        ready = get_ready(task, ctx, &source.name, (&target, &at)) => ready,
    };
    let mut session = match ready {
        Ok(session) => session,
        Err(outcome) => return outcome,
    };
    let ladder = Ladder::new(&session, &target, &task.lock_name, ctx);
    let log = ctx.log.clone();
    let sink: notice::Sink =
        Arc::new(move |word, text| log.line(Stream::Database, format!("{word}: {text}")));
    let ended = ladder.guard(notice::scope(sink, body.run(&mut session))).await;
    settle(ended, session, &ladder, task).await
}

/// What became of a guarded body; the session is gone afterwards.
pub(crate) async fn settle(
    ended: Ended,
    mut session: Session,
    ladder: &Ladder<'_>,
    task: &Task,
) -> Outcome {
    match ended {
        Ended::Own(Ok(outputs)) => {
            // Closing would free the lock as well; this only frees it sooner for certain.
            let _closing_frees_it_too = session.unlock(&task.lock_name).await;
            session.close().await;
            Outcome::success(outputs)
        }
        Ended::Own(Err(Fault::Said(said))) => {
            session.close().await;
            Outcome::ended(End::Failed, said)
        }
        Ended::Own(Err(Fault::Before(what, error))) => {
            session.close().await;
            let said = format!("{what}: {error}; nothing was run");
            classed(Outcome::ended(End::Failed, said), &error)
        }
        Ended::Own(Err(Fault::At(place, SessionError::Lost(why)))) => {
            drop(session);
            ladder.tell_what_became().await;
            let said =
                format!("{place}: connection lost ({why}); whether it took effect is not known");
            Outcome::ended(End::Unknown, said).of_class(ErrorClass::ConnectionLost, None)
        }
        Ended::Own(Err(Fault::At(place, error))) => {
            session.close().await;
            classed(Outcome::ended(End::Failed, format!("{place}: {error}")), &error)
        }
        Ended::Stopped(reason) => {
            session.close().await;
            let gone = ladder.confirm(Duration::from_secs(1)).await;
            stopped(reason, gone, ladder)
        }
        Ended::LeftBehind(reason, gone) => {
            drop(session);
            stopped(reason, gone, ladder)
        }
    }
}

fn stopped(reason: StopReason, is_gone: bool, ladder: &Ladder<'_>) -> Outcome {
    if !is_gone {
        let said = format!("kill unconfirmed: {} may still run on the server", ladder.name());
        return Outcome::ended(End::Unknown, said);
    }
    let said = match reason {
        StopReason::TimedOut => "stopped on the server",
        StopReason::Killed => "stopped on the server, as was asked",
        StopReason::HandedBack => "stopped on the server, to be handed back",
        StopReason::Fenced => "stopped on the server, because this process lost its lease",
    };
    Outcome::ended(end_of(reason), said)
}

/// The end that a reason makes when it is confirmed.
pub(crate) fn end_of(reason: StopReason) -> End {
    match reason {
        StopReason::TimedOut => End::TimedOut,
        StopReason::Killed => End::Killed,
        StopReason::HandedBack | StopReason::Fenced => End::Returned,
    }
}

/// Connects, waits for the lock, asks for the claim. Nothing of the body has been sent when this
/// fails, so every failure may be tried again.
async fn get_ready(
    task: &Task,
    ctx: &Context,
    source: &SourceName,
    (target, at): (&Target, &str),
) -> Result<Session, Outcome> {
    let failed = |said: String| Outcome::ended(End::Failed, format!("{said}; nothing was run"));
    let mut session = Session::open(target).await.map_err(|e| {
        let why = address::opening(e.to_string());
        classed(failed(format!("cannot connect to source '{source}' at {at}: {why}")), &e)
    })?;
    let who = session.id().map_or(String::new(), |id| format!(", session {}", id.number));
    let dialect = session.dialect().as_str();
    ctx.log.line(Stream::System, format!("connected to source '{source}' ({dialect}{who})"));
    let since = Stopwatch::start();
    let mut pause = Duration::from_millis(50);
    while !session.try_lock(&task.lock_name).await.map_err(|e| {
        classed(failed(format!("cannot take the session lock on '{source}': {e}")), &e)
    })? {
        if pause == Duration::from_millis(50) {
            let said = "waits for an earlier start of this job that still runs on the server";
            ctx.log.line(Stream::System, said);
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
    if pause > Duration::from_millis(50) {
        let waited = since.elapsed().as_secs_f64();
        ctx.log.line(Stream::System, format!("the earlier start is gone after {waited:.1} s"));
    }
    match ctx.claim.still_ours().await {
        Ok(true) => Ok(session),
        Ok(false) => {
            session.close().await;
            Err(failed(NOT_OURS.to_owned()))
        }
        Err(error) => {
            session.close().await;
            Err(failed(format!("cannot ask whether the row is still ours: {error:#}")))
        }
    }
}

/// Where a source is: its URL, or what `PROCESSION_SOURCE_<NAME>` says instead, and its password
/// from the environment or a file. A relative path of SQLite begins at the program's folder. With
/// it comes what people may be shown of the URL.
pub(crate) fn target(
    source: &Source,
    task: &Task,
    timeout: Duration,
) -> Result<(Target, String), String> {
    reach(source, format!("{}:{}", task.batch.batch_no, task.job.code), timeout)
}

/// The same for whoever has no task; `label` is shown on the server.
pub(crate) fn reach(
    source: &Source,
    label: String,
    timeout: Duration,
) -> Result<(Target, String), String> {
    let name = &source.name;
    let url = std::env::var(source.url_env()).unwrap_or_else(|_| source.url.clone());
    let Some(dialect) = DialectName::of_url(&url) else {
        return Err(format!(
            "the URL of source '{name}' must begin with sqlite:, mysql:// or postgres://"
        ));
    };
    let at = address::shown(dialect, &url)
        .map_err(|said| format!("source '{name}': configuration fault: {said}; nothing was run"))?;
    let password = match (&source.password_env, &source.password_file) {
        (Some(variable), _) => Some(std::env::var(variable).map_err(|_| {
            format!("source '{name}': its password should be in {variable}, which is not set")
        })?),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|e| {
                format!("source '{name}': cannot read its password file {file}: {e}")
            })?;
            Some(text.lines().next().unwrap_or_default().to_owned())
        }
        (None, None) => None,
    };
    Ok((Target { url, password: password.map(SecretString::from), label, timeout }, at))
}
