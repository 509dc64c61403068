//! Between the domain's values and the SQL door's: arguments in, results out.

use crate::db::dialect::Dialect;
use crate::db::results::Results;
use crate::db::session::Arg;
use crate::domain::job::ParamType;
use crate::domain::outcome::{Outputs, ROWS_KEPT, ResultSet};
use crate::domain::params::BoundParam;
use crate::domain::source::DialectName;
use std::str::FromStr;

/// Result sets of a body that are kept; a procedure with a SELECT in a loop makes thousands.
const SETS_KEPT: usize = 20;

/// The domain's word for a dialect.
pub(crate) fn dialect_name(dialect: Dialect) -> DialectName {
    match dialect {
        Dialect::Sqlite => DialectName::Sqlite,
        Dialect::Mysql => DialectName::Mysql,
        Dialect::Postgres => DialectName::Postgres,
    }
}

/// The PostgreSQL type that a parameter's text is cast to.
pub(crate) fn cast(ty: ParamType) -> &'static str {
    match ty {
        ParamType::Text => "text",
        ParamType::Int => "bigint",
        ParamType::Decimal => "numeric",
        ParamType::Date => "date",
        ParamType::Datetime => "timestamp",
        ParamType::Bool => "boolean",
    }
}

/// A parameter as the dialect should get it: text with a cast on PostgreSQL, numbers as numbers
/// elsewhere, because MySQL compares text with numbers as floating point.
pub(crate) fn arg(param: &BoundParam, dialect: Dialect) -> Arg {
    let Some(text) = param.text() else {
        return Arg::Null;
    };
    let as_text = || Arg::Text(text.to_owned());
    if dialect == Dialect::Postgres {
        return as_text();
    }
    match param.ty {
        ParamType::Int => text.parse().map_or_else(|_| as_text(), Arg::Int),
        ParamType::Bool => Arg::Int((text == "true").into()),
        ParamType::Decimal => {
            bigdecimal::BigDecimal::from_str(text).map_or_else(|_| as_text(), Arg::Decimal)
        }
        ParamType::Text | ParamType::Date | ParamType::Datetime => as_text(),
    }
}

/// Room for what a body returns.
pub(crate) fn results() -> Results {
    Results::keeping(ROWS_KEPT, SETS_KEPT)
}

/// What came back, as the body's outputs.
pub(crate) fn outputs(results: Results) -> Outputs {
    let set = |rows: crate::db::results::Rows| ResultSet {
        columns: rows.columns,
        rows: rows.rows,
        row_count: rows.count,
    };
    Outputs {
        results: results.sets.into_iter().map(set).collect(),
        rows_affected: results.rows_affected,
        ..Outputs::default()
    }
}
