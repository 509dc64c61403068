//! Converts values of any column type to text: one form per type, whichever protocol delivered the
//! value.
//!
//! A value without such a form becomes `UnreadableValue` and never a text that looks like a value.
//! sqlx's own decoders are not used: PostgreSQL's `infinity` overflows in them, its NUMERIC loses
//! its scale, MySQL's zero dates become NULL, and the sign of a short negative time is lost.

mod mysql;
mod postgres;
mod postgres_nested;
mod postgres_scalar;
mod postgres_time;
mod sqlite;

pub(crate) use mysql::{as_declared, mysql, mysql_type_name};
pub(crate) use postgres::postgres;
pub(crate) use sqlite::sqlite;

use crate::db::cell::{Cell, CellType, UnreadableValue};

/// The protocol of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// Each value as text written by the server.
    Text,
    /// Each value in the driver's binary form.
    Binary,
}

/// Whose statement a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A statement of our own: the text is used as it is.
    #[default]
    Own,
    /// A statement of a body: the values may become outputs.
    Body,
}

/// Two digits for each byte.
pub(crate) fn hex_digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn bytes_cell(bytes: &[u8]) -> Cell {
    Cell::Value(CellType::Bytes, format!("0x{}", hex_digits(bytes)))
}

/// A text of that type, if it is valid UTF-8.
fn utf8_cell(ty: CellType, bytes: &[u8]) -> Cell {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cell::Value(ty, text.to_owned()),
        Err(_) => Cell::Unreadable(UnreadableValue {
            shown: Some(lossy(bytes)),
            reason: "is not UTF-8; convert it, or return it as bytes".to_owned(),
        }),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The shortest decimal notation of exactly this number, without an exponent.
fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    number.to_string()
}

/// The same for a single-precision number.
fn float4(number: f32) -> String {
    if number.is_infinite() { float(number.into()) } else { number.to_string() }
}

/// A fraction of a second without trailing zeros, with its point; servers write as many digits as
/// were declared, and in binary none.
fn fraction(micros: u32) -> String {
    if micros == 0 {
        return String::new();
    }
    format!(".{micros:06}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_exponent() {
        for (number, text) in [
            (1.5, "1.5"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (1e-7, "0.0000001"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(number), text);
        }
        assert_eq!(float4(0.1), "0.1");
        assert_eq!(float4(f32::INFINITY), "Infinity");
    }

    #[test]
    fn fractions_say_what_they_must() {
        assert_eq!((fraction(0).as_str(), fraction(500).as_str()), ("", ".0005"));
        assert_eq!((fraction(500_000).as_str(), fraction(999_999).as_str()), (".5", ".999999"));
    }
}
