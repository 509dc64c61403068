//! Which values of parameters MySQL and MariaDB have.

use crate::db::target::{InputType, InputValue};
use bigdecimal::BigDecimal;
use std::str::FromStr as _;

pub(super) fn input_fault(value: &InputValue<'_>) -> Option<String> {
    match value.ty {
        InputType::Decimal => decimal_fault(value),
        InputType::Date | InputType::Datetime => {
            let is_held = value.day.is_some_and(|day| (0..=9999).contains(&day.year));
            (!is_held).then(|| {
                format!(
                    "MySQL and MariaDB have days of the years 0000 to 9999, and {} is none; declare \
                     it type: text, or return NULL or another day",
                    value.text
                )
            })
        }
        InputType::Text | InputType::Int | InputType::Bool | InputType::Bytes => None,
    }
}

fn decimal_fault(value: &InputValue<'_>) -> Option<String> {
    let Ok(number) = BigDecimal::from_str(value.text) else {
        return Some(format!(
            "MySQL and MariaDB have no number {}; declare it type: text, or return NULL or another \
             number",
            value.text
        ));
    };
    (!is_decimal(&number) && !value.is_double(&number)).then(|| {
        format!(
            "MySQL and MariaDB have decimals of 65 digits, 30 of them behind the point, and would \
             take another number for this value of {} digits; declare it type: text, or round it",
            number.digits()
        )
    })
}

/// Whether DECIMAL holds it: 65 digits, 30 of them behind the point.
pub(super) fn is_decimal(number: &BigDecimal) -> bool {
    let (digits, scale) = number.as_bigint_and_exponent();
    let count = i64::try_from(digits.magnitude().to_string().len()).unwrap_or(i64::MAX);
    scale <= 30 && count.max(count.saturating_sub(scale)).max(scale) <= 65
}
