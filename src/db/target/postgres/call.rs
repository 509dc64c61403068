//! Calls a routine of PostgreSQL, and reads the rows of the cursors that it returns.

use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::routine::{Routine, RoutineParamMode};
use crate::db::session::Session;
use crate::db::target::call::{CallArgument, CallError, CallResult, CallStep, RoutineCall};
use crate::db::target::postgres::errors::is_execute_denied;
use crate::db::target::postgres::{quote_name, routine_path};

/// A procedure may COMMIT only outside of a transaction block, so neither a recorded one may, nor
/// one that returns a cursor.
pub(super) async fn call_routine(
    session: &mut Session,
    call: &RoutineCall<'_>,
) -> Result<CallResult, CallError> {
    if call.is_in_transaction || !may_return_cursors(call.routine) {
        return call_once(session, call).await;
    }
    session.begin().await.map_err(CallError::at(CallStep::Opening))?;
    match call_once(session, call).await {
        Ok(result) => {
            session.commit().await.map_err(CallError::at(CallStep::Commit))?;
            Ok(result)
        }
        Err(error) => {
            let is_lost = matches!(error.error, SessionError::Lost(_));
            let is_rolled_back = !is_lost && session.rollback().await.is_ok();
            Err(CallError { is_rolled_back, ..error })
        }
    }
}

async fn call_once(session: &mut Session, call: &RoutineCall<'_>) -> Result<CallResult, CallError> {
    let routine = call.routine;
    let gives_back = routine.is_function || call.arguments.iter().any(|a| !a.is_input_only());
    // Arguments without names have only positions; of those the last are left out.
    let is_by_position = call.arguments.iter().all(|argument| argument.value.is_some())
        || call.arguments.iter().any(|argument| argument.param.name.is_empty());
    let (mut parts, mut args) = (Vec::new(), Vec::new());
    for argument in &call.arguments {
        let Some(given) = &argument.value else { continue };
        let may_be_set = !gives_back && !argument.param.is_variadic;
        let value = if argument.is_output_only() {
            "NULL".to_owned()
        } else if may_be_set && session.is_given(given.number) {
            format!("pg_catalog.current_setting('procession.p{}')", given.number)
        } else {
            args.push(given.arg.clone());
            format!("${}::text", args.len())
        };
        parts.push(part(argument, &value, is_by_position));
    }
    let verb = if routine.is_function { "SELECT * FROM" } else { "CALL" };
    let text = format!("{verb} {}({})", routine_path(routine), parts.join(", "));
    let results = Results::of_body(call.limits);
    let mut results = if gives_back { results } else { results.without_values() };
    let done = session.run_into(&text, &args, &mut results).await;
    let (schema, name) = (&routine.schema, &routine.name);
    done.map_err(CallError::of_call(|e| is_execute_denied(e, schema, name)))?;
    let mut cursors = Results::of_body(call.limits);
    fetch_cursors(session, &mut results, &mut cursors).await?;
    let mut outputs = Vec::new();
    if !routine.is_function {
        // The row of a CALL has the output values and nothing else.
        let row = std::mem::take(&mut results.sets).into_iter().next();
        outputs = row.map(|row| row.first_cells()).unwrap_or_default();
    }
    // A CALL ends the transaction that its procedure opened.
    Ok(CallResult { results, cursors, outputs, ..CallResult::default() })
}

/// `VARIADIC "name" => CAST($1::text AS integer[])`
fn part(argument: &CallArgument<'_>, value: &str, is_by_position: bool) -> String {
    let value = format!("CAST({value} AS {})", argument.param.ty);
    let word = if argument.param.is_variadic { "VARIADIC " } else { "" };
    match is_by_position {
        true => format!("{word}{value}"),
        false => format!("{word}{} => {value}", quote_name(&argument.param.name)),
    }
}

/// Whether a routine may return a cursor, as far as its parameters show: then it has to be called
/// in a transaction, with which the cursor ends. Return values of functions without OUT parameters
/// are not considered.
fn may_return_cursors(routine: &Routine) -> bool {
    let comes_back = |mode| {
        matches!(mode, RoutineParamMode::Out | RoutineParamMode::InOut | RoutineParamMode::Column)
    };
    let mut returned = routine.params.iter().filter(|param| comes_back(param.mode)).peekable();
    let is_plain_function = routine.is_function && returned.peek().is_none();
    is_plain_function || returned.any(|param| param.ty == "refcursor")
}

/// Reads the rows of the returned cursors into further result sets, and closes the cursors: one
/// WITH HOLD would stay open for as long as the session is kept.
async fn fetch_cursors(
    session: &mut Session,
    returned: &mut Results,
    into: &mut Results,
) -> Result<(), CallError> {
    let mut names: Vec<String> = Vec::new();
    for name in returned.sets.iter_mut().flat_map(|set| set.take_cursors()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let quoted = quote_name(&name);
        let fetched = session.run_into(&format!("FETCH ALL FROM {quoted}"), &[], into).await;
        fetched.map_err(CallError::at(CallStep::Cursor(name.clone())))?;
        let closed = session.run_statement(&format!("CLOSE {quoted}"), &[]).await;
        closed.map_err(CallError::at(CallStep::Cursor(name)))?;
    }
    Ok(())
}
