//! Values of SQLite, where each value has its own type.

use super::{bytes_cell, float, utf8_cell};
use crate::db::cell::{Cell, CellType, UnreadableValue};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, TypeInfo as _, ValueRef as _};

/// The value of a column.
pub(crate) fn sqlite(row: &SqliteRow, at: usize) -> Cell {
    let failed = |error: sqlx::Error| {
        Cell::Unreadable(UnreadableValue::new(format!("cannot be read: {error}")))
    };
    let name = match row.try_get_raw(at) {
        Ok(raw) if raw.is_null() => return Cell::Null,
        Ok(raw) => raw.type_info().name().to_owned(),
        Err(error) => return failed(error),
    };
    let read = match name.as_str() {
        "INTEGER" | "BOOLEAN" => row
            .try_get_unchecked::<i64, _>(at)
            .map(|number| Cell::Value(CellType::Int, number.to_string())),
        "REAL" => row
            .try_get_unchecked::<f64, _>(at)
            .map(|number| Cell::Value(CellType::Decimal, float(number))),
        "BLOB" => row.try_get_unchecked::<Vec<u8>, _>(at).map(|bytes| bytes_cell(&bytes)),
        _ => row.try_get_unchecked::<Vec<u8>, _>(at).map(|bytes| utf8_cell(CellType::Text, &bytes)),
    };
    read.unwrap_or_else(failed)
}
