//! Converts between domain values and SQL values: arguments in, results out.

use crate::db::cell::{Cell, CellType};
use crate::db::fault::SessionError;
use crate::db::results::{ResultLimits, Results, Rows};
use crate::db::session::Arg;
use crate::db::target::{InputDay, InputType, InputValue, TargetDatabase};
use crate::domain::job::outcome::{JobOutputs, OutputValue, ResultSet, UnusableCell};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::{ParamMode, ParamType};
use crate::domain::params::{BoundParam, DateParts};
use crate::domain::source::DialectName;
use crate::domain::value::{ValueType, parse_bytes};

/// Number of result sets of a body that are kept, including the last one; a procedure with a SELECT
/// in a loop returns thousands.
const SETS_KEPT: usize = 20;

/// The domain's name of a server family's SQL.
pub(crate) fn dialect_name(database: &dyn TargetDatabase) -> Result<DialectName, SessionError> {
    let named = DialectName::ALL.into_iter().find(|name| name.as_str() == database.name());
    named.ok_or_else(|| {
        SessionError::refused(format!("this program cannot split SQL of {}", database.name()))
    })
}

fn input_type(ty: ParamType) -> InputType {
    match ty {
        ParamType::Text => InputType::Text,
        ParamType::Int => InputType::Int,
        ParamType::Decimal => InputType::Decimal,
        ParamType::Date => InputType::Date,
        ParamType::Datetime => InputType::Datetime,
        ParamType::Bool => InputType::Bool,
        ParamType::Bytes => InputType::Bytes,
    }
}

/// The value of a parameter; `None` for NULL.
fn input_value(param: &BoundParam) -> Option<InputValue<'_>> {
    let text = param.expose_text()?;
    let bytes = if param.ty == ParamType::Bytes { parse_bytes(text) } else { None };
    let day = match param.ty {
        ParamType::Date | ParamType::Datetime => day_of(text),
        _ => None,
    };
    Some(InputValue { ty: input_type(param.ty), text, bytes, day })
}

fn day_of(text: &str) -> Option<InputDay> {
    let era = if text.ends_with(" BC") { " BC" } else { "" };
    let day = text.split(' ').next().unwrap_or_default();
    let day = DateParts::parse(&format!("{day}{era}"))?;
    Some(InputDay { year: day.year, exists: day.exists() })
}

/// The type that a parameter's text is cast to, where a statement has to.
pub(crate) fn cast_type(ty: ParamType, database: &dyn TargetDatabase) -> &'static str {
    database.cast_type(input_type(ty), None)
}

/// The same for one value.
pub(crate) fn cast_type_of(param: &BoundParam, database: &dyn TargetDatabase) -> &'static str {
    database.cast_type(input_type(param.ty), param.expose_text())
}

/// A parameter as the server should get it.
pub(crate) fn bind_argument(param: &BoundParam, database: &dyn TargetDatabase) -> Arg {
    input_value(param).map_or(Arg::Null, |value| database.bind_input(&value))
}

/// Why the server has no such value in its type for the parameter: it would refuse it in the middle of the work, or
/// take another one.
pub(crate) fn refuse_unheld(
    param: &BoundParam,
    database: &dyn TargetDatabase,
) -> Result<(), String> {
    let value = input_value(param).filter(|_| param.mode != ParamMode::Out);
    let fault = value.and_then(|value| database.input_fault(&value));
    let Some(fault) = fault else { return Ok(()) };
    let (name, ty) = (&param.name, param.ty.as_str());
    Err(match &param.origin {
        None => format!("parameter {name}: {fault}"),
        Some(origin) => {
            let taker = &origin.taker;
            format!(
                "job {taker}, parameter {name} (type {ty}): {origin} cannot be handed on: {fault}"
            )
        }
    })
}

/// Why a value may not be given as text to a parameter of the server's type: the server takes the bytes of the
/// text, so that `5` becomes 53, without an error.
pub(crate) fn refuse_text_as_bits(
    param: &BoundParam,
    server_type: &str,
    database: &dyn TargetDatabase,
) -> Result<(), String> {
    let is_text = matches!(param.ty, ParamType::Text | ParamType::Date | ParamType::Datetime);
    let is_given = param.mode != ParamMode::Out && param.expose_text().is_some();
    match is_text && is_given && database.takes_text_as_bits(server_type) {
        true => Err(format!(
            "parameter {}: the routine takes {server_type}, and the server would store the bytes of the text in \
             place of its number; declare it type: int",
            param.name
        )),
        false => Ok(()),
    }
}

/// An empty buffer for the results of a body.
pub(crate) fn results(limits: OutputLimits) -> Results {
    Results::of_body(result_limits(limits))
}

/// How much of the results of a body is kept.
pub(crate) fn result_limits(limits: OutputLimits) -> ResultLimits {
    ResultLimits {
        rows: limits.max_rows,
        sets: SETS_KEPT,
        value_bytes: limits.max_value_bytes,
        inline_bytes: limits.inline_bytes,
        total_bytes: limits.max_total_bytes,
        large_bytes: limits.max_stored_bytes,
    }
}

/// The results as the body's outputs.
pub(crate) fn outputs(results: Results, limits: OutputLimits) -> JobOutputs {
    let set = |rows: Rows| {
        let unusable = rows.faults.iter().filter_map(|fault| {
            let reason = fault_of(&column_name(&rows, fault.column), &fault.cell, limits)?;
            let (row, column) = (fault.row, fault.column);
            Some(UnusableCell { row, column, reason, stored: None })
        });
        let unusable = unusable.collect();
        let Rows { columns, types, value_types, rows, count, .. } = rows;
        let value_types = value_types.into_iter().map(|ty| ty.map(value_type)).collect();
        ResultSet { columns, types, value_types, rows, row_count: count, unusable }
    };
    JobOutputs {
        results: results.sets.into_iter().map(set).collect(),
        sets_left_out: results.sets_left_out,
        rows_affected: results.rows_affected,
        ..JobOutputs::default()
    }
}

/// The domain's type of a value.
fn value_type(ty: CellType) -> ValueType {
    match ty {
        CellType::Text => ValueType::Text,
        CellType::Int => ValueType::Int,
        CellType::Decimal => ValueType::Decimal,
        CellType::Bool => ValueType::Bool,
        CellType::Date => ValueType::Date,
        CellType::Time => ValueType::Time,
        CellType::Timestamp => ValueType::Timestamp,
        CellType::TimestampTz => ValueType::TimestampTz,
        CellType::Interval => ValueType::Interval,
        CellType::Bytes => ValueType::Bytes,
        CellType::Json => ValueType::Json,
        CellType::Array => ValueType::Array,
    }
}

/// `column total (NUMERIC)`
pub(crate) fn column_name(rows: &Rows, at: usize) -> String {
    let name = rows.columns.get(at).map_or("?", String::as_str);
    let type_name = rows.types.get(at).map_or("?", String::as_str);
    format!("column {name} ({type_name})")
}

/// Why a value of that name cannot become an output; `None` when it can.
fn fault_of(what: &str, cell: &Cell, limits: OutputLimits) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Value(_, text) if text.len() <= limits.max_value_bytes => None,
        Cell::Value(_, text) => Some(limits.too_long(what, text.len())),
        Cell::TooLong(bytes) => Some(limits.too_long(what, *bytes)),
        Cell::TooLongTogether(bytes) => Some(limits.too_long_together(what, *bytes)),
        Cell::Unreadable(unreadable) => Some(format!("{what} {}", unreadable.reason)),
    }
}

/// A value as an output, or why it cannot be one.
pub(crate) fn handed_on(
    what: &str,
    cell: Cell,
    limits: OutputLimits,
) -> Result<OutputValue, String> {
    match (fault_of(what, &cell, limits), cell) {
        (Some(fault), _) => Err(fault),
        (None, Cell::Value(ty, text)) => Ok(OutputValue::Typed(value_type(ty), text)),
        (None, Cell::Null | Cell::Unreadable(_)) => Ok(OutputValue::Null),
        (None, Cell::TooLong(_) | Cell::TooLongTogether(_)) => Ok(OutputValue::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::target;

    #[test]
    fn each_server_family_has_its_sql_in_the_domain() {
        for name in DialectName::ALL {
            let database = target::named(name.as_str()).expect("its family");
            assert_eq!(dialect_name(database), Ok(name));
        }
        for url in ["sqlite:a.db", "mysql://h/a", "mariadb://h/a", "postgres://h/a"] {
            let database = target::of_url(url).expect("its family");
            assert_eq!(dialect_name(database).ok(), DialectName::of_url(url), "{url}");
        }
    }
}
