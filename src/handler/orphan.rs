//! Ends what a dead worker left running on a data source.
//!
//! The server holds the session lock of the row for as long as that body lives, and reports the
//! holder; so the body is found by the lock, on whichever host its worker was.

use crate::db::lock_holder::LockHolder;
use crate::db::session::{Session, SessionTarget};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::source::DataSource;
use crate::handler::kill_escalation::Ladder;
use crate::handler::wait_for_source::{Away, SourceUnavailable, SourceWaiter};
use crate::handler::{
    AttemptTask, Context, NOTHING_RUNS, StopReason, UNCONFIRMED, ledger, run_on_source,
    source_connection,
};
use std::time::Duration;

/// Number of successive lock holders before giving up: the orphan, and perhaps an attempt that was
/// waiting for it and ends when it learns that its row belongs to another.
const HOLDERS: u32 = 3;

/// Ends it, or gives up when this process itself must stop.
pub(crate) async fn end_orphan(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    tokio::select! {
        biased;
        outcome = climb(task, ctx) => outcome,
        () = leaves(ctx) => unconfirmed("this process leaves"),
    }
}

/// Returns when this process shuts down. A stop of the row is why this runs, and does not end it.
async fn leaves(ctx: &Context) {
    let mut stop = ctx.stop.clone();
    let is_leaving = |reason: &Option<StopReason>| {
        matches!(reason, Some(StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned))
    };
    if stop.wait_for(is_leaving).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn unconfirmed(why: &str) -> AttemptOutcome {
    AttemptOutcome::ended(
        AttemptEnd::Unknown,
        format!("{UNCONFIRMED}: {why}; what it left may still run"),
    )
}

async fn climb(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    let Some(source) = &task.source else {
        return AttemptOutcome::ended(
            AttemptEnd::Unknown,
            format!("{NOTHING_RUNS}: it names no data source"),
        );
    };
    let (target, at) = match run_on_source::target(source, task, &ctx.options) {
        Ok(found) => found,
        Err(said) => return unconfirmed(&said),
    };
    let mut ended = None;
    for _ in 0..HOLDERS {
        let holder = match holder(task, ctx, source, &target, &at).await {
            Ok(holder) => holder,
            Err(outcome) => return unconfirmed(&outcome.message.unwrap_or_default()),
        };
        let (session, holder) = match holder {
            (session, Some(holder)) => (session, holder),
            (session, None) => {
                session.close().await;
                let outcome = ended_outcome(ended);
                return match task.job.tx.is_recorded() {
                    true => ledger::after_orphan(task, ctx, &target, outcome).await,
                    false => outcome,
                };
            }
        };
        let number = holder.id.number;
        let said = format!("its worker died; session {number} still runs it: {}", holder.state);
        ctx.log.add_line(Stream::System, said);
        // No grace period: no one would receive its result.
        let ladder = Ladder::of_orphan(&session, holder.id, &target, &task.lock_name, ctx);
        let is_gone = ladder.climb(Duration::ZERO).await;
        session.close().await;
        if !is_gone {
            return AttemptOutcome::ended(AttemptEnd::Unknown, ladder.unconfirmed());
        }
        ended = Some(number);
    }
    unconfirmed("others took its session lock again and again")
}

fn ended_outcome(ended: Option<i64>) -> AttemptOutcome {
    match ended {
        Some(number) => AttemptOutcome::ended(
            AttemptEnd::Killed,
            format!(
                "its worker died; session {number}, which still ran it, was ended on the server; \
                 what it had committed stays"
            ),
        ),
        None => AttemptOutcome::ended(
            AttemptEnd::Unknown,
            format!(
                "{NOTHING_RUNS} on the server any more; whether it had ended before is not known"
            ),
        ),
    }
}

/// The number of the session that holds the lock of a task; an error when its server cannot be
/// queried.
pub(crate) async fn holder_of_lock(
    task: &AttemptTask,
    ctx: &Context,
) -> Result<Option<i64>, String> {
    let Some(source) = &task.source else { return Ok(None) };
    let (target, at) = run_on_source::target(source, task, &ctx.options)?;
    match holder(task, ctx, source, &target, &at).await {
        Ok((session, holder)) => {
            session.close().await;
            Ok(holder.map(|holder| holder.id.number))
        }
        Err(outcome) => Err(outcome.message.unwrap_or_default()),
    }
}

/// The present holder of the row's lock; an unavailable source is waited for.
async fn holder(
    task: &AttemptTask,
    ctx: &Context,
    source: &DataSource,
    target: &SessionTarget,
    at: &str,
) -> Result<(Session, Option<LockHolder>), AttemptOutcome> {
    let mut away = Away::new(task, ctx, &source.name, at, SourceWaiter::Cleaner);
    loop {
        let trouble = match source_connection::connect(ctx, &source.name, target, at).await {
            Ok(mut session) => match session.lock_holder(&task.lock_name).await {
                Ok(holder) => {
                    away.is_over().await;
                    return Ok((session, holder));
                }
                Err(error) => {
                    SourceUnavailable::asking("cannot ask who holds its lock".to_owned(), error)
                }
            },
            Err(trouble) => trouble,
        };
        away.wait_for_source(trouble).await?;
    }
}
