//! The value of a job's parameter, as a server family binds it.

use crate::db::session::Arg;
use bigdecimal::{BigDecimal, ToPrimitive as _};
use std::str::FromStr as _;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputType {
    Text,
    Int,
    Decimal,
    Date,
    Datetime,
    Bool,
    Bytes,
}

/// A value that is not NULL, as text in the form that all servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputValue<'a> {
    pub ty: InputType,
    pub text: &'a str,
    /// The value of `Bytes`, if the text is readable.
    pub bytes: Option<Vec<u8>>,
    /// The day of `Date` and `Datetime`, if the text has one.
    pub day: Option<InputDay>,
}

/// A day, which need not exist in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputDay {
    /// Negative for BC, where -1 is the year before the year 1.
    pub year: i32,
    pub exists: bool,
}

impl InputValue<'_> {
    /// The value as text, or as bytes.
    pub(super) fn to_text_argument(&self) -> Arg {
        let bytes = self.bytes.clone().filter(|_| self.ty == InputType::Bytes);
        bytes.map_or_else(|| Arg::Text(self.text.to_owned()), Arg::Bytes)
    }

    /// The value with numbers as numbers, because a server that gets text compares it with numbers
    /// as floating point, or not at all. `has_decimal` tells which decimals the server holds
    /// exactly.
    pub(super) fn to_number_argument(&self, has_decimal: fn(&BigDecimal) -> bool) -> Arg {
        let text = || Arg::Text(self.text.to_owned());
        let double = || self.text.parse().map_or_else(|_| text(), Arg::Double);
        let decimal = BigDecimal::from_str(self.text);
        match self.ty {
            InputType::Int => match (self.text.parse(), decimal) {
                (Ok(number), _) => Arg::Int(number),
                // An unsigned number may need all 64 bits; as a decimal it stays exact.
                (Err(_), Ok(number)) => Arg::Decimal(number),
                (Err(_), Err(_)) => text(),
            },
            InputType::Bool => Arg::Int((self.text == "true").into()),
            InputType::Decimal => match decimal {
                Ok(number) if has_decimal(&number) => Arg::Decimal(number),
                Ok(_) | Err(_) => double(),
            },
            InputType::Text | InputType::Date | InputType::Datetime | InputType::Bytes => {
                self.to_text_argument()
            }
        }
    }

    /// Whether a floating point has the number exactly as it is written.
    pub(super) fn is_double(&self, number: &BigDecimal) -> bool {
        let near = self.text.parse::<f64>().ok().filter(|near| near.is_finite());
        near.and_then(|near| BigDecimal::from_str(&near.to_string()).ok()).as_ref() == Some(number)
    }
}

/// Whether 64 bits hold the number.
pub(super) fn is_whole(number: &BigDecimal) -> bool {
    number.is_integer() && number.to_i64().is_some()
}
