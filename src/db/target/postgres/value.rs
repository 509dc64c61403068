//! Which values of parameters PostgreSQL has, and in which types.

use crate::db::target::{InputDay, InputType, InputValue};

pub(super) fn input_fault(value: &InputValue<'_>) -> Option<String> {
    let last = match value.ty {
        InputType::Date => 5_874_897,
        InputType::Datetime => 294_276,
        _ => return None,
    };
    let is_held = |day: InputDay| day.exists && (-4714..=last).contains(&day.year);
    // Without a day it is an infinity.
    (!value.day.is_none_or(is_held)).then(|| {
        format!(
            "PostgreSQL has only days that exist, and {} is none; declare it type: text, or return \
             NULL or another day",
            value.text
        )
    })
}

/// The type that the text of a value is cast to: what the usual type has no room for is cast to one
/// that has.
pub(super) fn cast_type(ty: InputType, value: Option<&str>) -> &'static str {
    match (ty, value) {
        // BIGINT UNSIGNED of MySQL and MariaDB.
        (InputType::Int, Some(text)) if text.parse::<i64>().is_err() => "numeric",
        // Before version 14 a numeric has no infinity.
        (InputType::Decimal, Some("Infinity" | "-Infinity")) => "double precision",
        (InputType::Text, _) => "text",
        (InputType::Int, _) => "bigint",
        (InputType::Decimal, _) => "numeric",
        (InputType::Date, _) => "date",
        (InputType::Datetime, _) => "timestamp",
        (InputType::Bool, _) => "boolean",
        (InputType::Bytes, _) => "bytea",
    }
}
