//! Converts between domain values and SQL values: arguments in, results out.

use crate::db::cell::{Cell, CellType};
use crate::db::dialect::Dialect;
use crate::db::results::{ResultLimits, Results, Rows};
use crate::db::session::Arg;
use crate::domain::job::outcome::{JobOutputs, OutputValue, ResultSet, UnusableCell};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::{ParamMode, ParamType};
use crate::domain::params::{BoundParam, DateParts};
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

/// The same for one value: what the usual type has no room for is cast to one that has.
pub(crate) fn cast_type_of(param: &BoundParam) -> &'static str {
    match (param.ty, param.expose_text()) {
        // BIGINT UNSIGNED of MySQL and MariaDB.
        (ParamType::Int, Some(text)) if text.parse::<i64>().is_err() => "numeric",
        // Before version 14 a numeric has no infinity.
        (ParamType::Decimal, Some("Infinity" | "-Infinity")) => "double precision",
        (ty, _) => cast_type(ty),
    }
}

/// A parameter as the dialect should get it: text with a cast on PostgreSQL, numbers as numbers
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
        ParamType::Decimal => decimal_argument(text, dialect),
        ParamType::Text | ParamType::Date | ParamType::Datetime | ParamType::Bytes => as_text(),
    }
}

fn decimal_argument(text: &str, dialect: Dialect) -> Arg {
    let double = || text.parse().map_or_else(|_| Arg::Text(text.to_owned()), Arg::Double);
    match BigDecimal::from_str(text) {
        Ok(number) if dialect == Dialect::Mysql && !is_decimal_of_mysql(&number) => double(),
        Ok(number) => Arg::Decimal(number),
        Err(_) => double(),
    }
}

/// Whether DECIMAL of MySQL and MariaDB holds it: 65 digits, 30 of them behind the point.
fn is_decimal_of_mysql(number: &BigDecimal) -> bool {
    let (digits, scale) = number.as_bigint_and_exponent();
    let count = i64::try_from(digits.magnitude().to_string().len()).unwrap_or(i64::MAX);
    scale <= 30 && count.max(count.saturating_sub(scale)).max(scale) <= 65
}

/// Whether a floating point has the number exactly as it is written.
fn is_double(text: &str, number: &BigDecimal) -> bool {
    let near = text.parse::<f64>().ok().filter(|near| near.is_finite());
    near.and_then(|near| BigDecimal::from_str(&near.to_string()).ok()).as_ref() == Some(number)
}

/// Why the server has no such value in its type for the parameter: it would refuse it in the middle of the work, or
/// take another one.
pub(crate) fn refuse_unheld(param: &BoundParam, dialect: Dialect) -> Result<(), String> {
    let Some(text) = param.expose_text().filter(|_| param.mode != ParamMode::Out) else {
        return Ok(());
    };
    let fault = match param.ty {
        ParamType::Int => int_fault(text, dialect),
        ParamType::Decimal => decimal_fault(text, dialect),
        ParamType::Date | ParamType::Datetime => date_fault(param.ty, text, dialect),
        ParamType::Text | ParamType::Bool | ParamType::Bytes => None,
    };
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

/// Why a value may not be given as text to a BIT parameter of MySQL or MariaDB: the server takes the bytes of the
/// text, so that `5` becomes 53, without an error.
pub(crate) fn refuse_text_as_bits(
    param: &BoundParam,
    server_type: &str,
    dialect: Dialect,
) -> Result<(), String> {
    let is_bits = server_type.get(..3).is_some_and(|head| head.eq_ignore_ascii_case("bit"));
    let is_text = matches!(param.ty, ParamType::Text | ParamType::Date | ParamType::Datetime);
    let is_given = param.mode != ParamMode::Out && param.expose_text().is_some();
    match dialect == Dialect::Mysql && is_bits && is_text && is_given {
        true => Err(format!(
            "parameter {}: the routine takes {server_type}, and the server would store the bytes of the text in \
             place of its number; declare it type: int",
            param.name
        )),
        false => Ok(()),
    }
}

fn int_fault(text: &str, dialect: Dialect) -> Option<String> {
    (dialect == Dialect::Sqlite && text.parse::<i64>().is_err()).then(|| {
        "SQLite has whole numbers up to 9223372036854775807 and would take another number; declare \
         it type: text"
            .to_owned()
    })
}

fn decimal_fault(text: &str, dialect: Dialect) -> Option<String> {
    let Ok(number) = BigDecimal::from_str(text) else {
        return match (dialect, text) {
            (Dialect::Mysql, _) => Some(format!(
                "MySQL and MariaDB have no number {text}; declare it type: text, or return NULL or another number"
            )),
            (Dialect::Sqlite, "NaN") => Some(
                "SQLite has no NaN and would take NULL; declare it type: text, or return NULL"
                    .to_owned(),
            ),
            (Dialect::Sqlite | Dialect::Postgres, _) => None,
        };
    };
    match dialect {
        Dialect::Postgres => None,
        Dialect::Mysql if is_decimal_of_mysql(&number) || is_double(text, &number) => None,
        Dialect::Mysql => Some(format!(
            "MySQL and MariaDB have decimals of 65 digits, 30 of them behind the point, and would take another \
             number for this value of {} digits; declare it type: text, or round it",
            number.digits()
        )),
        Dialect::Sqlite => {
            let whole = number.is_integer() && number.to_i64().is_some();
            (!whole && !is_double(text, &number)).then(|| {
                format!(
                    "SQLite has no exact decimals and would take another number for this value of {} \
                     digits; declare it type: text, or hand on whole cents as type: int",
                    number.digits()
                )
            })
        }
    }
}

fn date_fault(ty: ParamType, text: &str, dialect: Dialect) -> Option<String> {
    let era = if text.ends_with(" BC") { " BC" } else { "" };
    let day = text.split(' ').next().unwrap_or_default();
    let day = DateParts::parse(&format!("{day}{era}"));
    let (server, is_held) = match dialect {
        Dialect::Sqlite => return None,
        Dialect::Mysql => {
            let is_held = day.is_some_and(|day| (0..=9999).contains(&day.year));
            ("MySQL and MariaDB have days of the years 0000 to 9999", is_held)
        }
        Dialect::Postgres => {
            let last = if ty == ParamType::Datetime { 294_276 } else { 5_874_897 };
            let is_held = |day: DateParts| day.exists() && (-4714..=last).contains(&day.year);
            let is_held = day.is_none_or(is_held);
            ("PostgreSQL has only days that exist", is_held)
        }
    };
    (!is_held).then(|| {
        format!(
            "{server}, and {text} is none; declare it type: text, or return NULL or another day"
        )
    })
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
