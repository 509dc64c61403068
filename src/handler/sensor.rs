//! SENSOR: repeats a query until its answer is yes.
//!
//! Between two queries it holds no connection and no slot. Its session may only read, so a second
//! start after a crash does no harm. An unavailable database means "not yet".

use crate::db::connect_error::Hope;
use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::{Session, SessionTarget};
use crate::domain::job::body::Sensor;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::domain::time::span_words;
use crate::handler::kill_escalation::{GuardedEnd, Ladder};
use crate::handler::run_on_source::{self, BodyFault, end_of};
use crate::handler::sql::StatementRunner;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, StopReason, WorkerHandler, address, bind};
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::time::sleep;

/// The SENSOR handler.
pub(crate) struct SqlSensor;

/// One log line for this many queries with the same answer: at 30 s one in ten minutes.
const REPEAT: u32 = 20;

impl WorkerHandler for SqlSensor {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "SENSOR",
            about: "Asks a query on a data source until it says yes.",
            needs: &[BodyPart::Source, BodyPart::Sql],
            may_have: &[BodyPart::Sensor, BodyPart::Params],
            takes: Takes::Nothing,
            after_crash: AfterCrash::StartsAgain,
            holds_session_lock: false,
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            match watch(task, ctx).await {
                Ok(outcome) => outcome,
                Err(said) => AttemptOutcome::ended(AttemptEnd::Failed, said),
            }
        })
    }
}

/// The result of one query.
enum SensorAnswer {
    /// Yes, with the result of the query.
    Yes(JobOutputs),
    /// Not yet, and why.
    NotYet(String),
    /// Further queries are pointless.
    Over(AttemptOutcome),
    /// Stopped before it was connected.
    Stopped(StopReason),
}

async fn watch(task: &AttemptTask, ctx: &Context) -> Result<AttemptOutcome, String> {
    let source = task.source.as_ref().ok_or("the job names no data source")?;
    let at = run_on_source::target(source, task, &ctx.options)?;
    ctx.claimed().await?;
    let poll = task.job.sensor.as_ref().map_or(Sensor::POLL_SEC, |s| s.poll_sec);
    let pause = Duration::from_secs(poll.into());
    let (since, mut last, mut polls) = (Stopwatch::start(), String::new(), 0_u32);
    loop {
        polls += 1;
        match query_once(task, ctx, &at.0, &at.1).await {
            SensorAnswer::Over(outcome) => return Ok(outcome),
            SensorAnswer::Stopped(reason) => return Ok(stopped(reason, polls - 1, &last)),
            SensorAnswer::Yes(mut outputs) => {
                let waited = since.elapsed_ms();
                let line = format!("yes, after {polls} questions in {}", span_words(waited));
                ctx.log.add_line(Stream::System, line);
                outputs.values.insert("polls".to_owned(), Some(polls.to_string()));
                return Ok(AttemptOutcome::success(outputs));
            }
            SensorAnswer::NotYet(why) => {
                if why != last || polls % REPEAT == 0 {
                    ctx.log.add_line(Stream::System, format!("question {polls}: {why}"));
                    last = why;
                }
            }
        }
        tokio::select! {
            biased;
            reason = ctx.stopped() => return Ok(stopped(reason, polls, &last)),
            () = sleep(pause) => {}
        }
    }
}

/// The message of a wait that was stopped after so many answers.
fn stopped(reason: StopReason, answers: u32, last: &str) -> AttemptOutcome {
    let said = match answers {
        0 => "stopped while it connected".to_owned(),
        n => format!("it had not said yes after {n} questions; the last answer: {last}"),
    };
    AttemptOutcome::ended(end_of(reason), said)
}

async fn query_once(
    task: &AttemptTask,
    ctx: &Context,
    target: &SessionTarget,
    at: &str,
) -> SensorAnswer {
    let opened = tokio::select! {
        biased;
        reason = ctx.stopped() => return SensorAnswer::Stopped(reason),
        opened = Session::open_session(target) => opened,
    };
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => {
            let why = address::opening(error.to_string());
            // A wrong name or password does not fix itself, and repeated attempts lock accounts.
            let is_refused = error.hope == Hope::None;
            if is_refused {
                let said = format!("the database at {at} lets nobody in: {why}");
                return SensorAnswer::Over(AttemptOutcome::ended(AttemptEnd::Failed, said));
            }
            return SensorAnswer::NotYet(format!("the database at {at} is away: {why}"));
        }
    };
    let ladder = Ladder::new(&session, target, &task.lock_name, ctx);
    match ladder.guard(query(&mut session, task, ctx)).await {
        GuardedEnd::Own(Ok(outputs)) => {
            session.close().await;
            judge(outputs)
        }
        GuardedEnd::Own(Err(BodyFault::At(_, SessionError::Lost(why)))) => {
            SensorAnswer::NotYet(format!("the database went away: {why}"))
        }
        GuardedEnd::Own(Err(BodyFault::At(_, SessionError::Database(error))))
            if error.is_passing =>
        {
            session.close().await;
            SensorAnswer::NotYet(format!("the database cannot answer now: {error}"))
        }
        ended => SensorAnswer::Over(run_on_source::settle(ended, session, &ladder, task).await),
    }
}

async fn query(
    session: &mut Session,
    task: &AttemptTask,
    ctx: &Context,
) -> Result<JobOutputs, BodyFault> {
    let dialect = bind::dialect_name(session.database());
    let dialect = dialect.map_err(|e| BodyFault::At("the query".to_owned(), e))?;
    let read_only = session.database().read_only_statement();
    let at = |e| BodyFault::At("making the session read-only".to_owned(), e);
    session.run_statement(read_only, &[]).await.map_err(at)?;
    let text = task.job.sql.as_ref().and_then(|sql| sql.text_for(dialect));
    let text = text.ok_or_else(|| BodyFault::Said(format!("the job has no SQL for {dialect}")))?;
    let (sql, args) = StatementRunner::new(text, &task.params, session, ctx)?.single_statement()?;
    let mut results: Results = bind::results(ctx.options.outputs);
    let at = |e| BodyFault::At("the query".to_owned(), e);
    session.run_into(&sql, &args, &mut results).await.map_err(at)?;
    Ok(bind::outputs(results, ctx.options.outputs))
}

fn judge(outputs: JobOutputs) -> SensorAnswer {
    let set = outputs.results.last().filter(|set| set.row_count > 0);
    let Some(set) = set else { return SensorAnswer::NotYet("no row".to_owned()) };
    if set.row_count != 1 {
        let said = format!(
            "the query gave {} rows; a sensor asks for one: SELECT COUNT(*) … or SELECT EXISTS (…)",
            set.row_count
        );
        return SensorAnswer::Over(AttemptOutcome::ended(AttemptEnd::Failed, said));
    }
    let value = set.rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    if Sensor::is_true(value) {
        return SensorAnswer::Yes(outputs);
    }
    SensorAnswer::NotYet(format!(
        "the answer is {}",
        value.map_or("NULL".to_owned(), |v| format!("{v:?}"))
    ))
}
