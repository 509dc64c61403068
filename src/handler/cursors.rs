//! Cursors of PostgreSQL returned by a CALL: their rows are read as result sets, in the transaction
//! in which they were opened.

use crate::db::results::Results;
use crate::db::routine::{Routine, RoutineParamMode};
use crate::db::session::Session;
use crate::handler::run_on_source::BodyFault;

/// Whether a routine may return a cursor, as far as its parameters show: then it has to be called
/// in a transaction, with which the cursor ends. Return values of functions without OUT parameters
/// are not considered.
pub(crate) fn may_return_cursors(routine: &Routine) -> bool {
    let comes_back = |mode| {
        matches!(mode, RoutineParamMode::Out | RoutineParamMode::InOut | RoutineParamMode::Column)
    };
    let mut returned = routine.params.iter().filter(|param| comes_back(param.mode)).peekable();
    let is_plain_function = routine.is_function && returned.peek().is_none();
    is_plain_function || returned.any(|param| param.ty == "refcursor")
}

/// Reads the rows of the returned cursors into further result sets, and closes the cursors: one
/// WITH HOLD would stay open for as long as the session is kept.
pub(crate) async fn fetch_cursors(
    session: &mut Session,
    returned: &mut Results,
    into: &mut Results,
) -> Result<(), BodyFault> {
    let mut names: Vec<String> = Vec::new();
    for name in returned.sets.iter_mut().flat_map(|set| set.take_cursors()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let quoted = session.database().quote_name(&name);
        let at = |error| BodyFault::At(format!("reading the rows of cursor {name}"), error);
        session.run_into(&format!("FETCH ALL FROM {quoted}"), &[], into).await.map_err(at)?;
        session.run_statement(&format!("CLOSE {quoted}"), &[]).await.map_err(at)?;
    }
    Ok(())
}
