//! PROC: calls a stored procedure on a data source.
//!
//! The name is first looked up in the server's catalogue, and the name found there is called,
//! quoted; so a name can neither inject SQL nor call something else by accident.
//!
//! On MySQL `ROW_COUNT()` after an UPDATE counts the rows *found* here, while the mysql client
//! shows those *changed*: sqlx always connects with CLIENT_FOUND_ROWS. MySQL's warnings of a CALL
//! are written to the log but do not change its end.

use crate::db::call_result::CallVariable;
use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::routine::{Routine, RoutineParamMode};
use crate::db::session::{Arg, Session};
use crate::db::target::TargetDatabase;
use crate::domain::job::outcome::{
    AttemptEnd, AttemptOutcome, JobOutputs, OutputValue, Stream, array_of_json,
};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{BodyPart, JobKind, ParamMode};
use crate::domain::params::BoundParam;
use crate::domain::time::span_words;
use crate::handler::call_values::{
    OutValues, after_call, column_of_last_row, function_values, out_values,
};
use crate::handler::cursors::{fetch_cursors, may_return_cursors};
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
        let start = Stopwatch::start();
        let (outputs, is_open) = match session.dialect() {
            // PostgreSQL ends the transaction of a CALL with it, whatever the procedure did.
            Dialect::Postgres => {
                (self.postgres(&routine, &slots, session, transaction).await?, false)
            }
            Dialect::Mysql | Dialect::Sqlite => self.mysql(&routine, &slots, session).await?,
        };
        let took = start.elapsed_ms();
        let line = format!(
            "{} rows changed, {} result sets in {}",
            outputs.rows_affected,
            outputs.results.len(),
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

    /// An error of the call itself. Without the privilege to call it the server refused it before
    /// anything ran.
    fn call_fault(&self, routine: &Routine, error: SessionError) -> BodyFault {
        if !matches!(error, SessionError::Braked) {
            self.log.add_line(Stream::System, format!("{} failed: {error}", place(routine)));
        }
        let SessionError::Database(said) = &error else {
            return BodyFault::At(place(routine), error);
        };
        if !said.is_execute_denied(&routine.schema, &routine.name) {
            return BodyFault::At(place(routine), error);
        }
        let kind = if routine.is_function { "FUNCTION" } else { "PROCEDURE" };
        let why = format!("{}: {error}; GRANT EXECUTE ON {kind} {0} to this user", place(routine));
        self.refuse(&why)
    }

    /// The index of its parameter in the job, which identifies its value and its session variable.
    fn number(&self, param: &BoundParam) -> usize {
        self.task.params.iter().position(|p| p.name == param.name).unwrap_or_default()
    }

    /// Arguments are passed in session variables, because a CALL by the text protocol returns every
    /// result as text, and OUT values need a variable anyway.
    async fn mysql(
        &self,
        routine: &Routine,
        slots: &[ParamSlot<'_>],
        session: &mut Session,
    ) -> Result<(JobOutputs, bool), BodyFault> {
        session.has_arguments(self.task.params.len());
        let (mut names, mut sets, mut args) = (Vec::new(), Vec::new(), Vec::new());
        let given = refuse_gap(routine, slots).map_err(|why| self.refuse(&why))?;
        for slot in &slots[..given] {
            let Some(param) = slot.param else { continue };
            let number = self.number(param);
            names.push(format!("@procession_p{number}"));
            // An INOUT variable may have changed: a deadlock victim's CALL may have set it, and is
            // run again.
            let is_there = slot.param_mode() == RoutineParamMode::In && session.is_given(number);
            if slot.param_mode() != RoutineParamMode::Out && !is_there {
                sets.push(format!("@procession_p{number} = ?"));
                args.push(bind::bind_argument(param, session.database()));
            }
        }
        if !sets.is_empty() {
            refuse_oversized(session, &self.task.params).await?;
            let set = format!("SET {}", sets.join(", "));
            session
                .run_statement(&set, &args)
                .await
                .map_err(|e| BodyFault::before("setting arguments", e))?;
        }
        let path = path(routine, Dialect::Mysql);
        let call = match routine.is_function {
            true => {
                let column = Dialect::Mysql.quote(&routine.name);
                format!("SELECT {path}({}) AS {column}", names.join(", "))
            }
            false => format!("CALL {path}({})", names.join(", ")),
        };
        self.log.add_line(Stream::System, format!("calls {routine}"));
        let mut results = bind::results(self.limits());
        let at = |e| self.call_fault(routine, e);
        let outs: Vec<CallVariable> = slots
            .iter()
            .zip(names)
            .filter(|(slot, _)| slot.param_mode() != RoutineParamMode::In)
            .map(|(slot, name)| CallVariable { name, type_name: slot.routine.ty.clone() })
            .collect();
        let called = session.call(&call, &outs, &mut results).await.map_err(at)?;
        say_warnings(&called.warnings, self.log);
        let values = match routine.is_function {
            true => function_values(&self.task.params, &results, self.limits()),
            false => out_values(slots, called.values, self.limits()),
        };
        let values = values.map_err(after_call)?;
        let mut outputs = bind::outputs(results, self.limits());
        set_values(&mut outputs, values);
        Ok((outputs, called.has_open_transaction))
    }

    /// A procedure may COMMIT only outside of a transaction block, so neither a recorded one may,
    /// nor one that returns a cursor.
    async fn postgres(
        &self,
        routine: &Routine,
        slots: &[ParamSlot<'_>],
        session: &mut Session,
        transaction: CallTransaction,
    ) -> Result<JobOutputs, BodyFault> {
        if transaction == CallTransaction::Open || !may_return_cursors(routine) {
            return self.postgres_call(routine, slots, session).await;
        }
        session.begin().await.map_err(|e| BodyFault::before("opening the transaction", e))?;
        let fault = match self.postgres_call(routine, slots, session).await {
            Ok(outputs) => {
                let done = session.commit().await;
                return done.map(|()| outputs).map_err(|e| BodyFault::At("COMMIT".to_owned(), e));
            }
            Err(fault) => fault,
        };
        if !matches!(fault, BodyFault::At(_, SessionError::Lost(_)))
            && session.rollback().await.is_ok()
        {
            self.log.add_line(Stream::System, "rolled back");
        }
        match fault {
            BodyFault::At(_, SessionError::Database(error)) if error.is_end_refused() => {
                let said = format!(
                    "{}: {error}; a routine that returns a cursor runs in one transaction, in which its \
                     rows are read: take COMMIT and ROLLBACK out of it; nothing took effect",
                    place(routine)
                );
                Err(BodyFault::Known(Box::new(
                    AttemptOutcome::ended(AttemptEnd::Failed, said).for_good(),
                )))
            }
            other => Err(other),
        }
    }

    async fn postgres_call(
        &self,
        routine: &Routine,
        slots: &[ParamSlot<'_>],
        session: &mut Session,
    ) -> Result<JobOutputs, BodyFault> {
        let is_whole = slots.iter().all(|s| s.param.is_some());
        let gives_back =
            routine.is_function || slots.iter().any(|s| s.param_mode() != RoutineParamMode::In);
        let (mut parts, mut args) = (Vec::new(), Vec::new());
        for slot in slots {
            if routine.is_function && slot.param_mode() == RoutineParamMode::Out {
                continue;
            }
            let Some(param) = slot.param else { continue };
            let number = self.number(param);
            let value = if slot.param_mode() == RoutineParamMode::Out {
                "NULL".to_owned()
            } else if !gives_back && !slot.routine.is_variadic && session.is_given(number) {
                format!("pg_catalog.current_setting('procession.p{number}')")
            } else {
                let list = param
                    .expose_text()
                    .filter(|_| slot.routine.is_variadic)
                    .and_then(array_of_json);
                let plain = || bind::bind_argument(param, session.database());
                args.push(list.map_or_else(plain, Arg::Text));
                format!("${}::text", args.len())
            };
            let value = format!("CAST({value} AS {})", slot.routine.ty);
            let word = if slot.routine.is_variadic { "VARIADIC " } else { "" };
            let named = format!("{} => {value}", Dialect::Postgres.quote(&slot.routine.name));
            parts.push(format!("{word}{}", if is_whole { value } else { named }));
        }
        let verb = if routine.is_function { "SELECT * FROM" } else { "CALL" };
        let call = format!("{verb} {}({})", path(routine, Dialect::Postgres), parts.join(", "));
        self.log.add_line(Stream::System, format!("calls {routine}"));
        let results = bind::results(self.limits());
        let mut results = if gives_back { results } else { results.without_values() };
        let at = |e| self.call_fault(routine, e);
        session.run_into(&call, &args, &mut results).await.map_err(at)?;
        let mut of_cursors = bind::results(self.limits());
        fetch_cursors(session, &mut results, &mut of_cursors).await?;
        let mut outputs = bind::outputs(of_cursors, self.limits());
        outputs.rows_affected = results.rows_affected;
        if routine.is_function {
            let values = function_values(&self.task.params, &results, self.limits());
            let values = values.map_err(after_call)?;
            let own = bind::outputs(results, self.limits());
            outputs.results = own.results.into_iter().chain(outputs.results).collect();
            outputs.sets_left_out += own.sets_left_out;
            set_values(&mut outputs, values);
            return Ok(outputs);
        }
        if let Some(set) = results.sets.first() {
            let values = out_values(slots, set.first_cells(), self.limits());
            set_values(&mut outputs, values.map_err(after_call)?);
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

fn set_values(outputs: &mut JobOutputs, values: OutValues) {
    for (name, value) in values {
        outputs.set_value(&name, value);
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

/// The quoted path of a routine.
fn path(routine: &Routine, dialect: Dialect) -> String {
    let parts = [Some(&routine.schema), routine.package.as_ref(), Some(&routine.name)];
    parts.into_iter().flatten().map(|part| dialect.quote(part)).collect::<Vec<_>>().join(".")
}

fn place(routine: &Routine) -> String {
    format!("{}.{}", routine.schema, routine.name)
}
