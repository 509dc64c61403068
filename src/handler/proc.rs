//! PROC: calls a stored procedure on a data source.
//!
//! The name is first looked up in the server's catalogue, and the name found there is called,
//! quoted; so a name can neither inject SQL nor call something else by accident.
//!
//! On MySQL `ROW_COUNT()` after an UPDATE counts the rows *found* here, while the mysql client
//! shows those *changed*: sqlx always connects with CLIENT_FOUND_ROWS. MySQL's warnings of a CALL
//! are written to the log but do not change its end.

use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::routine::Routine;
use crate::db::session::{Arg, Session};
use crate::db::target::{
    CallArgument, CallResult, CallStep, CallValue, RoutineCall, TargetDatabase,
};
use crate::domain::job::outcome::{
    AttemptEnd, AttemptOutcome, JobOutputs, OutputValue, Stream, array_of_json,
};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{BodyPart, JobKind, ParamMode};
use crate::domain::params::BoundParam;
use crate::domain::text::count_words;
use crate::domain::time::span_words;
use crate::handler::call_values::{after_call, column_of_last_row, function_values, out_values};
use crate::handler::log::RunLog;
use crate::handler::packet_limit::refuse_oversized;
use crate::handler::routine_lookup::{LookupError, find_routine};
use crate::handler::run_on_source::{self, BodyFault, SessionBody};
use crate::handler::signature::{Name, ParamSlot, arrange, choose, parse_name, refuse_gap};
use crate::handler::sql::{self, say_warnings, undo_open_transaction};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, WorkerHandler, bind, orphan};
use futures_util::future::BoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The PROC handler.
pub(crate) struct Proc;

impl WorkerHandler for Proc {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "PROC",
            about: "Calls a stored procedure on a data source.",
            needs: &[BodyPart::Source, BodyPart::ProcName],
            may_have: &[BodyPart::Tx, BodyPart::Params],
            holds_session_lock: true,
            ..JobKind::PLAIN
        }
    }

    fn gets_ready(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        let call = ProcedureCall { task, ctx, log: &ctx.log, found: Mutex::default() };
        Box::pin(async move { run_on_source::run_on_source(task, ctx, &call).await })
    }

    fn end_orphan<'a>(
        &'a self,
        task: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(orphan::end_orphan(task, ctx))
    }
}

/// How long the result of the lookup is trusted: the metadata database may take half a minute to
/// confirm that the body may begin, and the procedure may be altered meanwhile.
const FRESH: Duration = Duration::from_secs(1);

/// Maximum length of a value that is sent with the lock, in bytes.
const GIVEN_MOST: usize = 256;

/// Whether a CALL runs in a transaction that is open already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallTransaction {
    None,
    Open,
}

struct ProcedureCall<'a> {
    task: &'a AttemptTask,
    ctx: &'a Context,
    log: &'a RunLog,
    /// The procedure, if it was found already, and when.
    found: Mutex<Option<(Routine, Stopwatch)>>,
}

impl SessionBody for ProcedureCall<'_> {
    fn calls(&self) -> Option<Name> {
        // A server whose encoding lacks a character would refuse the lock statement because of it.
        let name = self.task.job.proc_name.as_deref().filter(|name| is_plain(name))?;
        parse_name(name).ok().filter(|name| name.package.is_none())
    }

    fn found(&self, mut routines: Vec<Routine>) {
        // An error is found again, and reported, by the body.
        if let Some(name) = self.calls() {
            name.retain_types(&mut routines);
        }
        self.believe(choose(routines, &self.task.params).ok());
    }

    fn gives(&self, database: &dyn TargetDatabase) -> Vec<Option<Arg>> {
        let params = &self.task.params;
        let has_outs = params.iter().any(|param| param.mode != ParamMode::In);
        if has_outs && !database.capabilities().sends_values_of_output_calls {
            return Vec::new();
        }
        params.iter().map(|param| may_be_told(param, database)).collect()
    }

    fn look_up_routine<'s>(&'s self, session: &'s mut Session) -> BoxFuture<'s, ()> {
        Box::pin(async move {
            if !session.database().capabilities().has_routines || self.known().is_some() {
                return;
            }
            self.believe(self.look_up(session).await.ok());
        })
    }

    fn run<'s>(&'s self, session: &'s mut Session) -> BoxFuture<'s, Result<JobOutputs, BodyFault>> {
        Box::pin(async move {
            if !session.database().capabilities().has_routines {
                let run = self.named_body(session)?;
                let has_outs = self.task.params.iter().any(|p| p.mode != ParamMode::In);
                if !has_outs && run.is_change_alone() {
                    return run.alone(session).await;
                }
                return run.in_one_transaction(session, |outputs| self.take_outs(outputs)).await;
            }
            let (outputs, is_open) = self.call(session, CallTransaction::None).await?;
            if is_open { Err(undo_open_transaction(session).await?) } else { Ok(outputs) }
        })
    }

    fn run_inside<'s>(
        &'s self,
        session: &'s mut Session,
    ) -> BoxFuture<'s, Result<JobOutputs, BodyFault>> {
        Box::pin(async move {
            if !session.database().capabilities().has_routines {
                let run = self.named_body(session)?;
                return run.inside(session, |outputs| self.take_outs(outputs)).await;
            }
            self.call(session, CallTransaction::Open).await.map(|(outputs, _)| outputs)
        })
    }
}

impl ProcedureCall<'_> {
    fn limits(&self) -> OutputLimits {
        self.ctx.options.outputs
    }

    fn known(&self) -> MutexGuard<'_, Option<(Routine, Stopwatch)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn believe(&self, routine: Option<Routine>) {
        *self.known() = routine.map(|routine| (routine, Stopwatch::start()));
    }

    /// Looks the procedure up and calls it, on a server that has procedures; also returns whether
    /// it left a transaction open.
    async fn call(
        &self,
        session: &mut Session,
        transaction: CallTransaction,
    ) -> Result<(JobOutputs, bool), BodyFault> {
        let found = self.known().take();
        let routine = match found {
            Some((routine, since)) if since.elapsed() < FRESH => routine,
            _ => self.look_up(session).await?,
        };
        let slots = arrange(&routine, &self.task.params).map_err(|why| self.refuse(&why))?;
        for slot in &slots {
            let Some(param) = slot.param else { continue };
            let database = session.database();
            let held = bind::refuse_unheld(param, database)
                .and_then(|()| bind::refuse_text_as_bits(param, &slot.routine.ty, database));
            held.map_err(|why| self.refuse(&why))?;
        }
        let can = session.database().capabilities();
        if can.omits_only_last_arguments {
            refuse_gap(&routine, &slots).map_err(|why| self.refuse(&why))?;
        }
        refuse_oversized(session, &self.task.params).await?;
        let start = Stopwatch::start();
        let result = self.send_call(&routine, &slots, session, transaction).await?;
        say_warnings(&result.warnings, self.log);
        let is_open = result.has_open_transaction;
        let outputs = self.outputs(&routine, &slots, result)?;
        let took = start.elapsed_ms();
        let line = format!(
            "{} changed, {} in {}",
            count_words(outputs.rows_affected, "row"),
            count_words(outputs.results.len() as u64, "result set"),
            span_words(took)
        );
        self.log.add_line(Stream::System, line);
        Ok((outputs, is_open))
    }

    /// The routine that the job names, or why there is none, with the existing signatures.
    async fn look_up(&self, session: &mut Session) -> Result<Routine, BodyFault> {
        let name = self.task.job.proc_name.as_deref().unwrap_or_default();
        find_routine(session, name, &self.task.params).await.map_err(|error| match error {
            LookupError::Missing { why, .. } | LookupError::Misfit(why) => self.refuse(&why),
            LookupError::Asking(error) => BodyFault::before("looking up the procedure", error),
        })
    }

    /// A fault that no retry would change: the definition or the catalogue must.
    fn refuse(&self, why: &str) -> BodyFault {
        let (job, source) =
            (&self.task.job.code, self.task.source.as_ref().map_or("", |s| s.name.as_str()));
        let said = format!(
            "{why}; nothing was run, and it is not tried again: correct proc_name and params of job {job}, or the \
             procedure or its rights on source '{source}', then rerun it"
        );
        BodyFault::Known(Box::new(AttemptOutcome::ended(AttemptEnd::Failed, said).for_good()))
    }

    /// Without the privilege to call it the server refused it before anything ran.
    fn denied(&self, routine: &Routine, error: &SessionError) -> BodyFault {
        let kind = if routine.is_function { "FUNCTION" } else { "PROCEDURE" };
        let why = format!("{}: {error}; GRANT EXECUTE ON {kind} {0} to this user", place(routine));
        self.refuse(&why)
    }

    /// The index of its parameter in the job, which identifies its value and its session variable.
    fn number(&self, param: &BoundParam) -> usize {
        self.task.params.iter().position(|p| p.name == param.name).unwrap_or_default()
    }

    async fn send_call(
        &self,
        routine: &Routine,
        slots: &[ParamSlot<'_>],
        session: &mut Session,
        transaction: CallTransaction,
    ) -> Result<CallResult, BodyFault> {
        let database = session.database();
        let call = RoutineCall {
            routine,
            arguments: slots.iter().map(|slot| self.argument(slot, database)).collect(),
            is_in_transaction: transaction == CallTransaction::Open,
            limits: bind::result_limits(self.limits()),
        };
        self.log.add_line(Stream::System, format!("calls {routine}"));
        let failed = match session.call_routine(&call).await {
            Ok(result) => return Ok(result),
            Err(failed) => failed,
        };
        let is_of_call = matches!(failed.step, CallStep::Call | CallStep::Denied);
        if is_of_call && !matches!(failed.error, SessionError::Braked) {
            let line = format!("{} failed: {}", place(routine), failed.error);
            self.log.add_line(Stream::System, line);
        }
        if failed.is_rolled_back {
            self.log.add_line(Stream::System, "rolled back");
        }
        Err(match failed.step {
            CallStep::Arguments => BodyFault::before("setting arguments", failed.error),
            CallStep::Opening => BodyFault::before("opening the transaction", failed.error),
            CallStep::Commit => BodyFault::At("COMMIT".to_owned(), failed.error),
            CallStep::Cursor(name) => {
                BodyFault::At(format!("reading the rows of cursor {name}"), failed.error)
            }
            CallStep::Call
                if failed.is_rolled_back && failed.error.is(ErrorCondition::EndRefused) =>
            {
                let said = format!(
                    "{}: {}; a routine that returns a cursor runs in one transaction, in which its \
                     rows are read: take COMMIT and ROLLBACK out of it; nothing took effect",
                    place(routine),
                    failed.error
                );
                let outcome = AttemptOutcome::ended(AttemptEnd::Failed, said);
                BodyFault::Known(Box::new(outcome.for_good()))
            }
            CallStep::Denied => self.denied(routine, &failed.error),
            CallStep::Call => BodyFault::At(place(routine), failed.error),
        })
    }

    fn argument<'s>(
        &self,
        slot: &ParamSlot<'s>,
        database: &dyn TargetDatabase,
    ) -> CallArgument<'s> {
        let value = |param: &BoundParam| {
            let text = param.expose_text().filter(|_| slot.routine.is_variadic);
            let list = text.and_then(array_of_json).map(Arg::Text);
            let arg = list.unwrap_or_else(|| bind::bind_argument(param, database));
            CallValue { number: self.number(param), arg }
        };
        CallArgument { param: slot.routine, value: slot.param.map(value) }
    }

    fn outputs(
        &self,
        routine: &Routine,
        slots: &[ParamSlot<'_>],
        result: CallResult,
    ) -> Result<JobOutputs, BodyFault> {
        let CallResult { results, cursors, outputs: cells, .. } = result;
        let values = match routine.is_function {
            true => function_values(&self.task.params, &results, self.limits()),
            false => out_values(slots, cells, self.limits()),
        };
        let values = values.map_err(after_call)?;
        let mut outputs = bind::outputs(results, self.limits());
        let cursors = bind::outputs(cursors, self.limits());
        outputs.results.extend(cursors.results);
        outputs.sets_left_out += cursors.sets_left_out;
        for (name, value) in values {
            outputs.set_value(&name, value);
        }
        Ok(outputs)
    }

    /// SQLite has no procedures; a body of that name in the data source replaces it.
    fn named_body(&self, session: &Session) -> Result<sql::StatementRunner<'_>, BodyFault> {
        let name = self.task.job.proc_name.as_deref().unwrap_or_default();
        let procedures = self.task.source.as_ref().map(|s| &s.procedures);
        let text = procedures.and_then(|p| p.get(name)).ok_or_else(|| {
            let known = procedures.map_or(String::new(), |p| {
                p.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
            });
            self.refuse(&format!(
                "SQLite has no procedures and the data source has no body '{name}' in \
                 `procedures`; it has: {known}"
            ))
        })?;
        self.log.add_line(Stream::System, format!("runs the body '{name}' of the data source"));
        sql::StatementRunner::new(text, &self.task.params, session, self.ctx)
    }

    /// The OUT values of such a body.
    fn take_outs(&self, outputs: &mut JobOutputs) -> Result<(), String> {
        for param in self.task.params.iter().filter(|p| p.mode != ParamMode::In) {
            let value = column_of_last_row(outputs, &param.name).ok_or_else(|| {
                format!(
                    "the body '{}' gives no {1}: its last result set of one row should have a \
                     column {1}",
                    self.task.job.proc_name.as_deref().unwrap_or_default(),
                    param.name
                )
            })?;
            if let OutputValue::Unusable(why) = value {
                return Err(why);
            }
            outputs.set_value(&param.name, value);
        }
        Ok(())
    }
}

/// A value that may be sent with the lock: not a secret, and interpreted there exactly as in a
/// CALL. PostgreSQL's settings have no NULL.
fn may_be_told(param: &BoundParam, database: &dyn TargetDatabase) -> Option<Arg> {
    let may_be = match &param.value {
        Some(MaskedValue::Open(text)) => is_plain(text),
        Some(MaskedValue::Secret(_)) => false,
        None => database.capabilities().sends_null_with_lock,
    };
    let may_be = may_be && bind::refuse_unheld(param, database).is_ok();
    (may_be && param.mode != ParamMode::Out).then(|| bind::bind_argument(param, database))
}

fn is_plain(text: &str) -> bool {
    text.len() <= GIVEN_MOST && text.bytes().all(|byte| byte.is_ascii() && byte != 0)
}

fn place(routine: &Routine) -> String {
    format!("{}.{}", routine.schema, routine.name)
}
