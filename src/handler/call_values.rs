//! The values returned by a CALL, each checked before it becomes an output.

use crate::db::cell::Cell;
use crate::db::results::Results;
use crate::db::routine::RoutineParamMode;
use crate::domain::job::ParamMode;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, OutputValue};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::params::BoundParam;
use crate::handler::bind;
use crate::handler::run_on_source::BodyFault;
use crate::handler::signature::ParamSlot;
use std::collections::BTreeMap;

/// Values by the names of their parameters.
pub(crate) type OutValues = BTreeMap<String, OutputValue>;

/// A fault in the returned values. The CALL has succeeded by then, so a retry would only do its
/// work twice.
pub(crate) fn after_call(why: String) -> BodyFault {
    BodyFault::Known(Box::new(AttemptOutcome::ended(AttemptEnd::Failed, why).for_good()))
}

/// OUT and INOUT values are returned in one row, in the routine's order.
pub(crate) fn out_values(
    slots: &[ParamSlot<'_>],
    row: Vec<Cell>,
    limits: OutputLimits,
) -> Result<OutValues, String> {
    let mut values = BTreeMap::new();
    for (slot, cell) in slots.iter().filter(|s| s.param_mode() != RoutineParamMode::In).zip(row) {
        let what = format!("OUT parameter {} ({})", slot.name(), slot.routine.ty);
        values.insert(slot.name().to_owned(), bind::handed_on(&what, cell, limits)?);
    }
    Ok(values)
}

/// A function returns its OUT values as columns of its one row; a plain function has one column,
/// which is the job's one OUT parameter whatever its name.
pub(crate) fn function_values(
    params: &[BoundParam],
    results: &Results,
    limits: OutputLimits,
) -> Result<OutValues, String> {
    let outs: Vec<&BoundParam> = params.iter().filter(|p| p.mode != ParamMode::In).collect();
    let mut values = BTreeMap::new();
    if outs.is_empty() {
        return Ok(values);
    }
    let set = results.sets.first().filter(|set| set.count == 1);
    let set = set.ok_or("the function gives OUT values only when it returns exactly one row")?;
    for param in &outs {
        let at = match (set.columns.iter().position(|c| c == &param.name), outs.len()) {
            (Some(at), _) => at,
            (None, 1) if set.columns.len() == 1 => 0,
            (None, _) => {
                let columns = set.columns.join(", ");
                return Err(format!("the function's row has no {}; it has: {columns}", param.name));
            }
        };
        let what = bind::column_name(set, at);
        let cell = set.cell_at(0, at).ok_or_else(|| format!("{what} was not kept"))?;
        let value = bind::handed_on(&what, cell, limits)?;
        values.insert(param.name.clone(), value);
    }
    Ok(values)
}

/// The value in that column, whatever its case, of the last result set, when that has one row.
pub(crate) fn column_of_last_row(outputs: &JobOutputs, name: &str) -> Option<OutputValue> {
    let columns = outputs.results.iter().rev().flat_map(|set| set.columns.iter());
    let spelled = columns.into_iter().find(|column| column.eq_ignore_ascii_case(name))?;
    outputs.output(&format!("result.{spelled}"))
}
