//! Calls a routine of MySQL or MariaDB, and reads its warnings, the state of its transaction and its
//! output values.

use crate::db::cell::Cell;
use crate::db::decode::as_declared;
use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::mysql_server::MysqlServer;
use crate::db::results::{ResultLimits, Results, Rows};
use crate::db::session::Session;
use crate::db::session_reset::MYSQL_TRANSACTION_PROBE;
use crate::db::target::call::{CallError, CallResult, CallStep, RoutineCall};
use crate::db::target::mysql::errors::is_execute_denied;
use crate::db::target::mysql::routine_path;

/// A session variable that holds a value of a CALL.
struct CallVariable {
    /// Its name, with the @.
    name: String,
    /// The declared type of the parameter.
    type_name: String,
}

/// The state after a CALL.
#[derive(Default)]
struct StateAfterCall {
    warnings: Vec<(String, String, String)>,
    has_open_transaction: bool,
    /// The values of the requested variables.
    values: Vec<Cell>,
}

/// The name of the first column of our own row after a CALL.
const MARK: &str = "procession_called";
/// MySQL's name of the column of `SHOW COUNT(*) WARNINGS`, the only query that keeps the warnings
/// readable.
const WARNING_COUNT: &str = "@@session.warning_count";

/// Arguments are passed in session variables, because a CALL by the text protocol returns every
/// result as text, and OUT values need a variable anyway.
pub(super) async fn call_routine(
    session: &mut Session,
    call: &RoutineCall<'_>,
) -> Result<CallResult, CallError> {
    let (mut names, mut sets, mut args) = (Vec::new(), Vec::new(), Vec::new());
    let (mut outs, mut count) = (Vec::new(), 0);
    for argument in &call.arguments {
        let Some(value) = &argument.value else { continue };
        let number = value.number;
        count = count.max(number + 1);
        let name = format!("@procession_p{number}");
        // An INOUT variable may have changed: a deadlock victim's CALL may have set it, and is run
        // again.
        let is_there = argument.is_input_only() && session.is_given(number);
        if !argument.is_output_only() && !is_there {
            sets.push(format!("{name} = ?"));
            args.push(value.arg.clone());
        }
        if !argument.is_input_only() {
            let type_name = argument.param.ty.clone();
            outs.push(CallVariable { name: name.clone(), type_name });
        }
        names.push(name);
    }
    session.has_arguments(count);
    if !sets.is_empty() {
        let set = format!("SET {}", sets.join(", "));
        let done = session.run_statement(&set, &args).await;
        done.map_err(CallError::at(CallStep::Arguments))?;
    }
    let path = routine_path(call.routine);
    let text = match call.routine.is_function {
        true => {
            let column = super::quote_name(&call.routine.name);
            format!("SELECT {path}({}) AS {column}", names.join(", "))
        }
        false => format!("CALL {path}({})", names.join(", ")),
    };
    let mut results = Results::of_body(call.limits);
    let after = run_call(session, &text, &outs, &mut results).await;
    let (schema, name) = (&call.routine.schema, &call.routine.name);
    let after = after.map_err(CallError::of_call(|e| is_execute_denied(e, schema, name)))?;
    Ok(CallResult {
        results,
        outputs: after.values,
        warnings: after.warnings,
        has_open_transaction: after.has_open_transaction,
        ..CallResult::default()
    })
}

/// Runs a CALL without arguments of its own to its end (see `run_into`), and then reads its
/// warnings, whether it left a transaction open, and the values of our session variables: in the
/// same round trip, unless MariaDB has warnings.
async fn run_call(
    session: &mut Session,
    call: &str,
    variables: &[CallVariable],
    into: &mut Results,
) -> Result<StateAfterCall, SessionError> {
    let after = match session.server() {
        Some(MysqlServer::MariaDb) => call_mariadb(session, call, variables, into).await?,
        Some(MysqlServer::Mysql) => call_mysql(session, call, variables, into).await?,
        Some(MysqlServer::OceanBase) | None => {
            session.run_into(call, &[], into).await?;
            None
        }
    };
    let mut after = match after {
        Some(after) => after,
        // A body may have changed the encoding of results to one in which our column names are
        // garbled.
        None => ask_one_by_one(session, variables).await?,
    };
    for (cell, variable) in after.values.iter_mut().zip(variables) {
        *cell = as_declared(std::mem::replace(cell, Cell::Null), &variable.type_name);
    }
    Ok(after)
}

async fn call_mariadb(
    session: &mut Session,
    call: &str,
    variables: &[CallVariable],
    into: &mut Results,
) -> Result<Option<StateAfterCall>, SessionError> {
    into.set_apart(MARK);
    let wanted = selected("@@in_transaction", variables);
    let text = format!("{call}; SELECT @@warning_count AS {MARK}, {wanted}");
    session.run_into(&text, &[], into).await?;
    let Some(row) = into.take_own().into_iter().next() else { return Ok(None) };
    let has_warnings = row.first(0).is_none_or(|count| count != "0");
    let has_open_transaction = row.first(1).is_none_or(|is_open| is_open != "0");
    // A query that only reads variables keeps the warnings readable.
    let warnings = if has_warnings { session.warnings().await? } else { Vec::new() };
    let values = row.first_cells().into_iter().skip(2).collect();
    Ok(Some(StateAfterCall { warnings, has_open_transaction, values }))
}

/// MySQL reveals an open transaction by refusing the last statement, after everything else.
async fn call_mysql(
    session: &mut Session,
    call: &str,
    variables: &[CallVariable],
    into: &mut Results,
) -> Result<Option<StateAfterCall>, SessionError> {
    into.set_apart(WARNING_COUNT);
    let wanted = selected(&format!("1 AS {MARK}"), variables);
    let text = format!(
        "{call}; SHOW COUNT(*) WARNINGS; SHOW WARNINGS; SELECT {wanted}; {MYSQL_TRANSACTION_PROBE}"
    );
    let ran = session.run_into(&text, &[], into).await;
    let mut own = into.take_own();
    let values = own.pop().filter(|set| set.columns.first().is_some_and(|name| name == MARK));
    let has_open_transaction = match (ran, &values) {
        (Ok(()), _) => false,
        (Err(error), Some(_)) if error.is(ErrorCondition::TransactionOpen) => true,
        (Err(error), _) => return Err(error),
    };
    session.traces.own_sets += 1;
    let Some(values) = values else { return Ok(None) };
    // Without a warning the result set is missing.
    let warnings = own.get(1).map(Rows::warnings).unwrap_or_default();
    let values = values.first_cells().into_iter().skip(1).collect();
    Ok(Some(StateAfterCall { warnings, has_open_transaction, values }))
}

async fn ask_one_by_one(
    session: &mut Session,
    variables: &[CallVariable],
) -> Result<StateAfterCall, SessionError> {
    let warnings = session.warnings().await?;
    let values = match variables {
        [] => Vec::new(),
        _ => {
            let limits = ResultLimits { rows: 1, sets: 1, ..ResultLimits::uncut() };
            let mut asked = Results::of_body(limits);
            let names: Vec<&str> = variables.iter().map(|v| v.name.as_str()).collect();
            session
                .send_statement(&format!("SELECT {}", names.join(", ")), &[], &mut asked)
                .await?;
            asked.sets.first().map(Rows::first_cells).unwrap_or_default()
        }
    };
    let has_open_transaction = session.has_open_transaction().await?;
    Ok(StateAfterCall { warnings, has_open_transaction, values })
}

fn selected(first: &str, variables: &[CallVariable]) -> String {
    let mut all = vec![first];
    all.extend(variables.iter().map(|variable| variable.name.as_str()));
    all.join(", ")
}
