//! Values of PostgreSQL. Those of a body are sent in binary, with or without bound values: the
//! server's text form depends on settings that the body may change (`DateStyle`, `IntervalStyle`,
//! `TimeZone`, `bytea_output`, `extra_float_digits`). The text produced here is what the server
//! writes with `ISO`, `postgres` and UTC, except that booleans are words, bytes begin with `0x`,
//! and numbers have no exponent.

use super::postgres_nested::{array, composite, range};
use super::postgres_scalar::scalar;
use super::{Purpose, bytes_cell, lossy};
use crate::db::cell::{Cell, CellType, UnreadableValue};
use sqlx::postgres::{PgRow, PgTypeInfo, PgTypeKind, PgValueFormat};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _};

/// The value of a column.
pub(crate) fn postgres(row: &PgRow, at: usize, purpose: Purpose) -> Cell {
    let raw = match row.try_get_raw(at) {
        Ok(raw) => raw,
        Err(error) => {
            return Cell::Unreadable(UnreadableValue::new(format!("cannot be read: {error}")));
        }
    };
    let Ok(bytes) = raw.as_bytes() else { return Cell::Null };
    let info = raw.type_info();
    match (raw.format(), purpose) {
        (PgValueFormat::Binary, _) => binary(&info, bytes),
        (PgValueFormat::Text, Purpose::Own) => Cell::from_text(lossy(bytes)),
        (PgValueFormat::Text, Purpose::Body) => server_text(info.name(), bytes),
    }
}

/// A value of a statement that was expected to return no rows.
fn server_text(name: &str, bytes: &[u8]) -> Cell {
    let ty = match name {
        "INT2" | "INT4" | "INT8" => CellType::Int,
        "NUMERIC" => CellType::Decimal,
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" => CellType::Text,
        _ => {
            return Cell::Unreadable(UnreadableValue {
                shown: Some(lossy(bytes)),
                reason: "came as the server writes it, which its settings decide; return it by a SELECT of its \
                         own"
                    .to_owned(),
            });
        }
    };
    super::utf8_cell(ty, bytes)
}

fn binary(info: &PgTypeInfo, bytes: &[u8]) -> Cell {
    if let PgTypeKind::Domain(base) = info.kind() {
        return binary(base, bytes);
    }
    let name = info.name().to_ascii_uppercase();
    if name == "BYTEA" {
        return bytes_cell(bytes);
    }
    if name == "REFCURSOR" {
        let shown = String::from_utf8(bytes.to_vec()).ok();
        return Cell::Unreadable(UnreadableValue { shown, reason: reason(&name) });
    }
    let text = match (info.kind(), name.as_str()) {
        (_, "BOOL") => {
            bytes.first().map(|byte| if *byte == 0 { "false" } else { "true" }.to_owned())
        }
        (PgTypeKind::Simple | PgTypeKind::Pseudo, "JSONB") => {
            bytes.strip_prefix(&[1]).and_then(|text| String::from_utf8(text.to_vec()).ok())
        }
        _ => nested(info, bytes),
    };
    match text {
        Some(text) => Cell::Value(cell_type(info, &name), text),
        None => Cell::Unreadable(UnreadableValue::new(reason(&name))),
    }
}

/// The text of a value inside an array, a range or a composite, as the server writes it there.
pub(super) fn nested(info: &PgTypeInfo, bytes: &[u8]) -> Option<String> {
    match info.kind() {
        PgTypeKind::Domain(base) => nested(base, bytes),
        PgTypeKind::Enum(_) => String::from_utf8(bytes.to_vec()).ok(),
        PgTypeKind::Array(element) => array(element, bytes),
        PgTypeKind::Range(element) => range(element, bytes),
        PgTypeKind::Composite(fields) => {
            let types: Vec<&PgTypeInfo> = fields.iter().map(|(_, ty)| ty).collect();
            composite(Some(&types), bytes)
        }
        PgTypeKind::Simple | PgTypeKind::Pseudo => {
            let name = info.name().to_ascii_uppercase();
            if name == "RECORD" { composite(None, bytes) } else { scalar(&name, bytes) }
        }
    }
}

fn cell_type(info: &PgTypeInfo, name: &str) -> CellType {
    match (info.kind(), name) {
        (PgTypeKind::Array(_), _) => CellType::Array,
        (_, "BOOL") => CellType::Bool,
        (_, "INT2" | "INT4" | "INT8" | "OID") => CellType::Int,
        (_, "FLOAT4" | "FLOAT8" | "NUMERIC") => CellType::Decimal,
        (_, "DATE") => CellType::Date,
        (_, "TIME" | "TIMETZ") => CellType::Time,
        (_, "TIMESTAMP") => CellType::Timestamp,
        (_, "TIMESTAMPTZ") => CellType::TimestampTz,
        (_, "INTERVAL") => CellType::Interval,
        (_, "JSON" | "JSONB") => CellType::Json,
        _ => CellType::Text,
    }
}

/// Why a value of that type is not supported.
fn reason(name: &str) -> String {
    match name {
        "MONEY" => "depends on the server's locale; cast it to numeric".to_owned(),
        "REFCURSOR" => {
            "names a cursor, whose rows are not fetched; return them by a query, or FETCH ALL in a SQL job"
                .to_owned()
        }
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "JSON" | "JSONB" => {
            "is not UTF-8; convert it, or return it as bytea".to_owned()
        }
        _ => "is of a type that is not carried; cast it to text".to_owned(),
    }
}
