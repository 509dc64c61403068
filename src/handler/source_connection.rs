//! The connection to a data source: connect, take the session lock, check the claim.
//!
//! No statement of a body has been sent before this is done, so every failure here may be retried,
//! and is marked accordingly (`before_it_began`).

use crate::db::fault::SessionError;
use crate::db::session::{Session, SessionTarget};
use crate::db::session_lock::Lock;
use crate::db::target::TargetDatabase;
use crate::domain::id::SourceName;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::retry::ErrorClass;
use crate::domain::time::span_words;
use crate::handler::run_on_source::{SessionBody, facts, label};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::wait_for_source::{Away, SourceUnavailable, SourceWaiter, not_ours};
use crate::handler::{AttemptTask, Context};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The first pause between two attempts to take the session lock; doubled after each.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause. The following attempt keeps the session from being idle.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why there is no ready session.
enum NotReady {
    /// The source is unavailable, perhaps only briefly.
    Away(SourceUnavailable),
    /// The session cannot be used: the previous body left something on it.
    Spent,
    /// Further attempts are pointless.
    Over(AttemptOutcome),
}

/// Connects, waits for the lock, checks the claim; waits for an unavailable source.
pub(crate) async fn get_ready(
    task: &AttemptTask,
    ctx: &Context,
    source: &SourceName,
    target: &SessionTarget,
    at: &str,
    body: &dyn SessionBody,
) -> Result<Session, AttemptOutcome> {
    let mut away = Away::new(task, ctx, source, at, SourceWaiter::Try);
    let mut asking = None;
    loop {
        // The COMMIT statements of such a body are counted, from zero.
        let ends = |db: &dyn TargetDatabase| db.capabilities().lets_bodies_end_transactions;
        let is_counted = task.job.tx.is_recorded() && target.database().is_some_and(ends);
        let kept = if is_counted { None } else { ctx.sessions.take_session(target).await };
        let is_kept = kept.is_some();
        let opened = match kept {
            Some(session) => Ok(session),
            None => connect(ctx, source, target, at).await,
        };
        let trouble = match opened {
            Ok(mut session) => {
                tracing::trace!(target: "procession::moment", id = task.queue_id.0, "connected");
                let ready =
                    lock_and_ask(&mut session, is_kept, task, body, ctx, &mut away, &mut asking);
                match ready.await {
                    Ok(()) => return Ok(session),
                    Err(NotReady::Spent) => {
                        session.close().await;
                        continue;
                    }
                    // Its server may be fine: the session was not used since the last body.
                    Err(NotReady::Away(_)) if is_kept => {
                        ctx.sessions.forget(target);
                        continue;
                    }
                    Err(NotReady::Away(trouble)) => trouble,
                    Err(NotReady::Over(outcome)) => {
                        session.close().await;
                        return Err(outcome);
                    }
                }
            }
            Err(trouble) => trouble,
        };
        away.wait_for_source(trouble).await?;
    }
}

/// The steps on a session before a body may run on it.
async fn lock_and_ask(
    session: &mut Session,
    is_kept: bool,
    task: &AttemptTask,
    body: &dyn SessionBody,
    ctx: &Context,
    away: &mut Away<'_>,
    asking: &mut Option<Stopwatch>,
) -> Result<(), NotReady> {
    session.introduce(facts(task), &label(task), body.gives(session.database()));
    // The ledger may show that a recorded body is done already.
    let body = Some(body).filter(|_| !task.job.tx.is_recorded());
    gain_lock(session, is_kept, task, body, ctx, away).await?;
    tracing::trace!(target: "procession::moment", id = task.queue_id.0, "locked");
    claim(session, body, ctx, asking).await
}

/// Whether the body may begin, or why that could not be learnt.
async fn ask_to_begin(ctx: &Context) -> Result<bool, String> {
    match timeout(ctx.options.idle / 2, ctx.claim.may_begin()).await {
        Ok(answer) => answer.map_err(|error| format!("{error:#}")),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// The same while the body queries what it needs. A session without an answer to that is not
/// reused.
async fn ask_and_look(
    session: &mut Session,
    body: &dyn SessionBody,
    ctx: &Context,
) -> Result<Result<bool, String>, NotReady> {
    let limit = ctx.options.connect_timeout;
    let (answer, looked) =
        tokio::join!(ask_to_begin(ctx), timeout(limit, body.look_up_routine(session)));
    if looked.is_err() && answer != Ok(false) {
        let error = SessionError::Lost(format!("no answer within {limit:?}"));
        return Err(NotReady::Away(SourceUnavailable::asking("before the body".to_owned(), error)));
    }
    Ok(answer)
}

/// Opens a session for a body or for its observer.
pub(crate) async fn connect(
    ctx: &Context,
    source: &SourceName,
    target: &SessionTarget,
    at: &str,
) -> Result<Session, SourceUnavailable> {
    let opened = Session::open_session(target).await;
    let mut session = opened.map_err(|none| SourceUnavailable::opening(source, at, none))?;
    if session.database().capabilities().is_file {
        session.take_turns(ctx.sessions.turns(target));
    }
    let limited = session.limit_idle(ctx.options.idle).await;
    limited.map_err(|e| {
        SourceUnavailable::asking(format!("cannot set up the session on '{source}'"), e)
    })?;
    let who = whose(&session);
    ctx.log.add_line(Stream::System, format!("connected to source '{source}' ({who})"));
    Ok(session)
}

fn whose(session: &Session) -> String {
    let number = session.id().map_or(String::new(), |id| format!(", session {}", id.number));
    format!("{}{number}", session.database().name())
}

/// Waits until no earlier start of the row holds its lock. The server holds it for exactly as long
/// as that start lives, whatever happened to its worker.
async fn gain_lock(
    session: &mut Session,
    mut is_kept: bool,
    task: &AttemptTask,
    body: Option<&dyn SessionBody>,
    ctx: &Context,
    away: &mut Away<'_>,
) -> Result<(), NotReady> {
    let source = task.source.as_ref().map_or("", |s| s.name.as_str());
    let trouble = |e| {
        NotReady::Away(SourceUnavailable::asking(
            format!("cannot take the session lock on '{source}'"),
            e,
        ))
    };
    let (since, mut pause, mut has_waited) = (Stopwatch::start(), PAUSE_MIN, false);
    let longest = PAUSE_MAX.min(ctx.options.idle / 3);
    loop {
        let lock = try_lock(session, &task.lock_name, body).await.map_err(trouble)?;
        if lock == Lock::Spent {
            // It may have the lock, and the next session should not wait for its end.
            let _closing_frees_it_too = session.unlock(&task.lock_name).await;
            return Err(NotReady::Spent);
        }
        // Only now it is known to be reset.
        if std::mem::take(&mut is_kept) {
            let who = whose(session);
            ctx.log
                .add_line(Stream::System, format!("connected to source '{source}' ({who}, kept)"));
        }
        if lock == Lock::Gained {
            break;
        }
        away.is_over().await;
        if !has_waited {
            // `None` when it ended between the two queries.
            let holder = session.lock_holder(&task.lock_name).await.map_err(trouble)?;
            if let Some(holder) = holder {
                has_waited = true;
                let number = holder.id.number;
                let said = format!(
                    "waits for an earlier start of this job that still runs on the server (session \
                     {number}: {})",
                    holder.state
                );
                ctx.log.add_line(Stream::System, said);
                let said = format!(
                    "an earlier start of it still runs on source '{source}' (session {number})"
                );
                ctx.claim.waits_on(Some(said)).await;
            }
        }
        sleep(pause.min(longest)).await;
        pause = (pause * 2).min(PAUSE_MAX);
        away.still_wanted().await.map_err(NotReady::Over)?;
    }
    away.is_over().await;
    if has_waited {
        let waited = span_words(since.elapsed_ms());
        ctx.log.add_line(Stream::System, format!("the earlier start is gone after {waited}"));
        ctx.claim.waits_on(None).await;
    }
    Ok(())
}

/// Tries to take the lock; where the same statement can return it, the body receives the routine
/// that it calls.
async fn try_lock(
    session: &mut Session,
    lock: &str,
    body: Option<&dyn SessionBody>,
) -> Result<Lock, SessionError> {
    let Some((body, name)) = body.and_then(|body| Some((body, body.calls()?))) else {
        return session.try_lock(lock).await;
    };
    let (schema, routine) = (name.schema.as_deref(), name.name.as_str());
    let (locked, found) = session.try_lock_and_look(lock, schema, routine).await?;
    if let Some(found) = found {
        body.found(found);
    }
    Ok(locked)
}

/// Checks whether the body may begin, now that no other start can run. While the metadata database
/// does not answer, the session is kept active, or its server would end it and free the lock; after
/// `Options.away` the attempt gives up.
///
/// Meanwhile `body` queries what it needs (for a CALL, the procedure): the two queries are
/// independent.
async fn claim(
    session: &mut Session,
    mut body: Option<&dyn SessionBody>,
    ctx: &Context,
    asking: &mut Option<Stopwatch>,
) -> Result<(), NotReady> {
    let mut since = *asking.get_or_insert_with(Stopwatch::start);
    loop {
        let answer = match body.take() {
            Some(body) => ask_and_look(session, body, ctx).await?,
            None => ask_to_begin(ctx).await,
        };
        let why = match answer {
            Ok(true) => return Ok(()),
            Ok(false) => return Err(NotReady::Over(not_ours())),
            Err(why) => why,
        };
        if !ctx.claim.is_made() {
            since = *asking.insert(Stopwatch::start());
        }
        if since.elapsed() >= ctx.options.away {
            let said = format!("cannot ask whether the row is still ours: {why}; nothing was run");
            let outcome = AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began();
            return Err(NotReady::Over(outcome.of_class(ErrorClass::ConnectionLost, None)));
        }
        let awake = session.run_statement("SELECT 1", &[]).await;
        awake.map_err(|e| {
            NotReady::Away(SourceUnavailable::asking("before the body".to_owned(), e))
        })?;
        sleep(PAUSE_MAX.min(ctx.options.idle / 3)).await;
    }
}
