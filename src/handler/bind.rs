//! Converts between domain values and SQL values: arguments in, results out.

use crate::db::cell::{Cell, CellType};
use crate::db::dialect::Dialect;
use crate::db::results::{ResultLimits, Results, Rows};
use crate::db::session::Arg;
use crate::domain::job::ParamType;
use crate::domain::job::outcome::{JobOutputs, OutputValue, ResultSet, UnusableCell};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::params::BoundParam;
use crate::domain::source::DialectName;
use crate::domain::value::{ValueType, parse_bytes};
use bigdecimal::{BigDecimal, ToPrimitive as _};
use std::str::FromStr;

/// Number of result sets of a body that are kept, including the last one; a procedure with a SELECT
/// in a loop returns thousands.
const SETS_KEPT: usize = 20;

/// The domain's name of a dialect.
pub(crate) fn dialect_name(dialect: Dialect) -> DialectName {
    match dialect {
        Dialect::Sqlite => DialectName::Sqlite,
        Dialect::Mysql => DialectName::Mysql,
        Dialect::Postgres => DialectName::Postgres,
    }
}

/// The PostgreSQL type that a parameter's text is cast to.
pub(crate) fn cast_type(ty: ParamType) -> &'static str {
    match ty {
        ParamType::Text => "text",
        ParamType::Int => "bigint",
        ParamType::Decimal => "numeric",
        ParamType::Date => "date",
        ParamType::Datetime => "timestamp",
        ParamType::Bool => "boolean",
        ParamType::Bytes => "bytea",
    }
}

/// A parameter in the form for the dialect: text with a cast on PostgreSQL, numbers as numbers
/// elsewhere, because MySQL compares text with numbers as floating point.
pub(crate) fn bind_argument(param: &BoundParam, dialect: Dialect) -> Arg {
    let Some(text) = param.expose_text() else {
        return Arg::Null;
    };
    let as_text = || Arg::Text(text.to_owned());
    if param.ty == ParamType::Bytes {
        return parse_bytes(text).map_or_else(as_text, Arg::Bytes);
    }
    if dialect == Dialect::Postgres {
        return as_text();
    }
    match param.ty {
        // An unsigned number may need all 64 bits; as a decimal it stays exact, as text it would be
        // compared as floating point.
        ParamType::Int => match text.parse() {
            Ok(number) => Arg::Int(number),
            Err(_) => BigDecimal::from_str(text).map_or_else(|_| as_text(), Arg::Decimal),
        },
        ParamType::Bool => Arg::Int((text == "true").into()),
        ParamType::Decimal => BigDecimal::from_str(text).map_or_else(|_| as_text(), Arg::Decimal),
        ParamType::Text | ParamType::Date | ParamType::Datetime | ParamType::Bytes => as_text(),
    }
}

/// Refuses a parameter that SQLite cannot represent: it has no exact decimals, and the nearest
/// number differs.
pub(crate) fn refuse_inexact(param: &BoundParam, dialect: Dialect) -> Result<(), String> {
    let beyond = |text: &&str| param.ty == ParamType::Int && text.parse::<i64>().is_err();
    if dialect == Dialect::Sqlite && param.expose_text().as_ref().is_some_and(beyond) {
        return Err(format!(
            "parameter {}: SQLite has whole numbers up to 9223372036854775807 and would take another number; \
             declare it type: text",
            param.name
        ));
    }
    let text = param
        .expose_text()
        .filter(|_| dialect == Dialect::Sqlite && param.ty == ParamType::Decimal);
    let Some(number) = text.and_then(|text| BigDecimal::from_str(text).ok()) else {
        return Ok(());
    };
    let whole = number.is_integer() && number.to_i64().is_some();
    let nearest = number.to_f64().and_then(|near| BigDecimal::from_str(&near.to_string()).ok());
    if whole || nearest.is_some_and(|near| near == number) {
        return Ok(());
    }
    Err(format!(
        "parameter {}: SQLite has no exact decimals and would take another number for this value of {} \
         digits; declare it type: text, or hand on whole cents as type: int",
        param.name,
        number.digits()
    ))
}

/// An empty buffer for the results of a body.
pub(crate) fn results(limits: OutputLimits) -> Results {
    Results::of_body(ResultLimits {
        rows: limits.max_rows,
        sets: SETS_KEPT,
        value_bytes: limits.max_value_bytes,
        inline_bytes: limits.inline_bytes,
        total_bytes: limits.max_total_bytes,
        large_bytes: limits.max_stored_bytes,
    })
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
