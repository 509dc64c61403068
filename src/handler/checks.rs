//! After a body: evaluates its success rules on its outputs and runs its checks, each query on a
//! new read-only session.
//!
//! A body in one transaction is committed by then, so a failed check undoes nothing. The checks
//! count towards the time limit of the attempt and are stopped like its body. They take no session
//! lock: they change nothing, so an orphaned check blocks no one.

use crate::db::fault::ErrorCondition;
use crate::db::notice;
use crate::db::session::{Session, SessionTarget};
use crate::domain::id::SourceName;
use crate::domain::job::check::{CheckFinding, CheckGrade, DataCheck, Expect};
use crate::domain::job::outcome::{AttemptOutcome, JobOutputs, ResultSet, Stream};
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::success_rules::{self, ComparisonBasis};
use crate::domain::job::{ParamMode, ParamType};
use crate::domain::params::BoundParam;
use crate::domain::source::DataSource;
use crate::domain::source::sql_text::SqlText;
use crate::domain::value::ValueType;
use crate::handler::kill_escalation::{GuardedEnd, Ladder};
use crate::handler::run_on_source::{BodyFault, end_of, target};
use crate::handler::{AttemptTask, Context, StopReason, address, bind, sql};
use std::sync::Arc;
use std::time::Duration;

/// Why a query returned no result.
enum CheckFailure {
    /// The check could not be run.
    Said(String),
    /// The attempt was stopped.
    Stopped(StopReason, String),
}

/// Evaluates the outcome of a body: the results of rules and checks determine its end, its message
/// and some of its outputs. A body that was stopped is left as it is.
pub async fn judged(
    task: &AttemptTask,
    ctx: &Context,
    mut outcome: AttemptOutcome,
) -> AttemptOutcome {
    let job = &task.job;
    let has_any = !job.success.is_empty() || !job.checks.is_empty();
    if !has_any || !success_rules::is_judged(&job.success, &outcome) {
        return outcome;
    }
    let mut findings = rules(task, ctx, &mut outcome);
    if findings.iter().any(|(_, f)| !f.ok && f.grade >= CheckGrade::Error) {
        if !job.checks.is_empty() {
            ctx.log.add_line(Stream::System, "its checks are not run, because it is no success");
        }
        return success_rules::graded(outcome, &findings);
    }
    let params = params(task, &outcome.outputs);
    // The job may have outlived the lease of this process, and its checks hold no lock.
    ctx.lease_is_held().await;
    for check in &job.checks {
        let finding = match run_check(task, ctx, check, &params).await {
            Ok(finding) => finding,
            Err(CheckFailure::Said(why)) => success_rules::unanswered(check, &why),
            Err(CheckFailure::Stopped(reason, said)) => {
                outcome.end = end_of(reason);
                outcome.message = Some(format!("check '{}': {said}", check.name));
                return outcome;
            }
        };
        log_finding(ctx, &finding);
        outcome.outputs.checks.insert(check.name.clone(), finding.clone());
        findings.push((check.name.clone(), finding));
    }
    success_rules::graded(outcome, &findings)
}

/// The results of the rules. For a recorded body they were evaluated before its commit, and came
/// with its outputs.
fn rules(
    task: &AttemptTask,
    ctx: &Context,
    outcome: &mut AttemptOutcome,
) -> Vec<(String, CheckFinding)> {
    let before = &outcome.outputs.rules;
    if !before.is_empty() {
        return before.clone().into_iter().collect();
    }
    let findings = success_rules::judge(&task.job.success, &outcome.outputs);
    findings.iter().for_each(|(_, finding)| log_finding(ctx, finding));
    outcome.outputs.rules = findings.iter().cloned().collect();
    findings
}

/// The outcome of a successful body according to its rules alone; evaluated before a commit, so
/// that a body whose rules fail is rolled back.
pub(crate) fn ruled(
    task: &AttemptTask,
    ctx: &Context,
    mut outcome: AttemptOutcome,
) -> AttemptOutcome {
    if task.job.success.is_empty() {
        return outcome;
    }
    let findings = rules(task, ctx, &mut outcome);
    success_rules::graded(outcome, &findings)
}

fn log_finding(ctx: &Context, finding: &CheckFinding) {
    let verdict = if finding.ok { "ok".to_owned() } else { format!("broken ({})", finding.grade) };
    ctx.log.add_line(Stream::System, format!("{}: {verdict}", finding.said));
}

/// The job's parameters, OUT ones with their returned values, and the built-in batch values.
fn params(task: &AttemptTask, outputs: &JobOutputs) -> Vec<BoundParam> {
    let mut params = task.params.clone();
    for param in params.iter_mut().filter(|p| p.mode != ParamMode::In) {
        if let Some(value) = outputs.values.get(&param.name) {
            if outputs.types.get(&param.name) == Some(&ValueType::Bytes) {
                param.ty = ParamType::Bytes;
            }
            param.origin = None;
            let hidden = param.value.as_ref().is_some_and(MaskedValue::is_secret);
            let back = value.clone().map(MaskedValue::Open);
            param.value = if hidden { back.map(MaskedValue::hidden) } else { back };
        }
    }
    let batch = &task.batch;
    let date = batch.business_date.map(|d| d.to_string());
    for (name, ty, value) in [
        ("batch_no", ParamType::Text, Some(batch.batch_no.to_string())),
        ("group", ParamType::Text, Some(batch.group.to_string())),
        ("job_code", ParamType::Text, Some(task.job.code.to_string())),
        ("business_date", ParamType::Date, date),
    ] {
        if params.iter().all(|p| p.name != name) {
            let (name, value) = (name.to_owned(), value.map(MaskedValue::Open));
            params.push(BoundParam { name, mode: ParamMode::In, ty, value, origin: None });
        }
    }
    params
}

async fn run_check(
    task: &AttemptTask,
    ctx: &Context,
    check: &DataCheck,
    params: &[BoundParam],
) -> Result<CheckFinding, CheckFailure> {
    let own = source(task, check.source.as_ref())?;
    let found = query_source(task, ctx, own, &check.sql, params).await?;
    let other = match &check.expect {
        Expect::Equals { source: there, sql, .. } => {
            let there = source(task, there.as_ref().or(check.source.as_ref()))?;
            Some(query_source(task, ctx, there, sql, params).await?)
        }
        Expect::ZeroRows | Expect::Between { .. } | Expect::Drift { .. } => None,
    };
    let basis = ComparisonBasis { other: other.as_ref(), last: task.last_checks.get(&check.name) };
    Ok(success_rules::compare(check, &found, basis))
}

/// The source of that name, or the job's own.
fn source<'a>(
    task: &'a AttemptTask,
    name: Option<&SourceName>,
) -> Result<&'a DataSource, CheckFailure> {
    let found = match name {
        Some(name) => {
            task.check_sources.iter().chain(&task.source).find(|source| source.name == *name)
        }
        None => task.source.as_ref(),
    };
    found.ok_or_else(|| {
        let said = name.map_or("it names no data source".to_owned(), |name| {
            format!("source '{name}' is not in the batch's definition")
        });
        CheckFailure::Said(said)
    })
}

/// Runs one query on a session of its own and returns its result.
async fn query_source(
    task: &AttemptTask,
    ctx: &Context,
    source: &DataSource,
    sql: &SqlText,
    params: &[BoundParam],
) -> Result<ResultSet, CheckFailure> {
    let (target, at) = target(source, task, &ctx.options).map_err(CheckFailure::Said)?;
    let mut session = open_session(ctx, source, &target, &at).await?;
    let ladder = Ladder::new(&session, &target, &task.lock_name, ctx);
    let log = ctx.log.clone();
    let sink: notice::NoticeSink =
        Arc::new(move |word, text| log.add_line(Stream::Database, format!("{word}: {text}")));
    let work = query(&mut session, sql, params, ctx);
    match ladder.guard(notice::scope(sink, work)).await {
        GuardedEnd::Own(result) => {
            session.close().await;
            let outputs = result.map_err(|fault| CheckFailure::Said(words(fault)))?;
            Ok(outputs.results.into_iter().next_back().unwrap_or_default())
        }
        GuardedEnd::Stopped(reason) => {
            session.close().await;
            let is_gone = ladder.confirm(Duration::from_secs(1)).await;
            Err(stopped(reason, is_gone, &ladder))
        }
        GuardedEnd::LeftBehind(reason, is_gone) => {
            drop(session);
            Err(stopped(reason, is_gone, &ladder))
        }
    }
}

async fn open_session(
    ctx: &Context,
    source: &DataSource,
    target: &SessionTarget,
    at: &str,
) -> Result<Session, CheckFailure> {
    tokio::select! {
        biased;
        reason = ctx.stopped() => {
            Err(CheckFailure::Stopped(reason, "stopped before it was sent".to_owned()))
        }
        opened = Session::open_session(target) => opened.map_err(|error| {
            let why = address::opening(error.to_string());
            CheckFailure::Said(format!("cannot connect to source '{}' at {at}: {why}", source.name))
        }),
    }
}

async fn query(
    session: &mut Session,
    sql: &SqlText,
    params: &[BoundParam],
    ctx: &Context,
) -> Result<JobOutputs, BodyFault> {
    let dialect = bind::dialect_name(session.database());
    let dialect = dialect.map_err(|e| BodyFault::At("before its query".to_owned(), e))?;
    let text = sql
        .text_for(dialect)
        .ok_or_else(|| BodyFault::Said(format!("it has no SQL for {dialect}")))?;
    session.only_read().await.map_err(|e| BodyFault::At("before its query".to_owned(), e))?;
    sql::StatementRunner::new(text, params, session, ctx)?.query(session).await
}

fn words(fault: BodyFault) -> String {
    match fault {
        BodyFault::Said(said) => said,
        BodyFault::Before(what, error) => format!("{what}: {error}"),
        BodyFault::Known(outcome) => outcome.message.unwrap_or_default(),
        BodyFault::At(_, error) if error.is(ErrorCondition::ReadOnly) => {
            format!(
                "{error}; a check may only read, what changes data belongs in the body of a job"
            )
        }
        BodyFault::At(_, error) => error.to_string(),
    }
}

/// The result of the body is known, so the end is the requested stop, whatever is left of a query
/// that changes nothing.
fn stopped(reason: StopReason, is_gone: bool, ladder: &Ladder<'_>) -> CheckFailure {
    let said = if is_gone {
        "stopped on the server; the body had ended well".to_owned()
    } else {
        let name = ladder.name();
        format!("{name} may still run its query on the server; the body had ended well")
    };
    CheckFailure::Stopped(reason, said)
}
