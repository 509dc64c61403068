//! Output values of bodies, their types, and text forms of bytes.

pub mod expr;
pub mod value_order;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fmt::Write as _;

/// Type of an output value; its text has the form of docs/values.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Text, and every type transferred in the server's own text form.
    Text,
    /// A whole number.
    Int,
    /// Any other number.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A date.
    Date,
    /// A time of day, and MySQL's TIME, which may be negative or longer than a day.
    Time,
    /// A date and time, without a zone.
    Timestamp,
    /// A moment, in UTC.
    TimestampTz,
    /// A span of time.
    Interval,
    /// Bytes: `0x` and two digits for each.
    Bytes,
    /// A JSON document.
    Json,
    /// An array of PostgreSQL.
    Array,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Decimal => "decimal",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
            Self::Interval => "interval",
            Self::Bytes => "bytes",
            Self::Json => "json",
            Self::Array => "array",
        })
    }
}

/// Parses `0x00ff` or `base64:AP8=`.
pub fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x") {
        let digits: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
        let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).ok();
        return digits.chunks(2).map(byte).collect();
    }
    STANDARD.decode(text.strip_prefix("base64:")?).ok()
}

/// Formats bytes as `0x` and two digits for each.
pub fn bytes_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// A reference to a value that is stored aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredValue {
    /// The job row that returned the value.
    pub queue_id: i64,
    /// The attempt that returned it.
    pub attempt: u32,
    /// Its index among the stored values of that attempt, from 0.
    pub position: u32,
    /// Its type; none for a script's output.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueType>,
    /// Length of its text in bytes.
    pub bytes: u64,
    /// SHA-256 of its text, in hexadecimal.
    pub sha256: String,
}

impl StoredValue {
    /// A reference with the type, length and digest of a text.
    pub fn describing(value_type: Option<ValueType>, text: &str) -> Self {
        Self { value_type, bytes: text.len() as u64, sha256: sha256(text), ..Self::default() }
    }

    /// `text of 3200000 bytes, stored aside`
    pub fn describe(&self) -> String {
        let type_name = self.value_type.map_or("text".to_owned(), |ty| ty.to_string());
        format!("{type_name} of {} bytes, stored aside", self.bytes)
    }

    /// Whether `text` matches the length and digest.
    pub fn matches(&self, text: &str) -> bool {
        self.bytes == text.len() as u64 && self.sha256 == sha256(text)
    }
}

fn sha256(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        let _never_fails = write!(digits, "{byte:02x}");
    }
    digits
}

/// An existing output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputValue {
    /// NULL.
    Null,
    /// A text of unknown type: printed by a script, or stored by an older version.
    Text(String),
    /// Type and text.
    Typed(ValueType, String),
    /// Stored aside, and not loaded.
    Stored(StoredValue),
    /// Returned, but not usable as input of another job: the reason and a hint.
    Unusable(String),
}

impl OutputValue {
    /// A text, with its type if known.
    pub fn with_type(ty: Option<ValueType>, text: String) -> Self {
        match ty {
            Some(ty) => Self::Typed(ty, text),
            None => Self::Text(text),
        }
    }

    /// Its text; `Some(None)` is NULL, and `None` a value that is not usable or not loaded.
    pub fn into_text(self) -> Option<Option<String>> {
        match self {
            Self::Null => Some(None),
            Self::Text(text) | Self::Typed(_, text) => Some(Some(text)),
            Self::Stored(_) | Self::Unusable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_both_forms() {
        for (text, bytes) in [
            ("0x", Some(&[][..])),
            ("0x00fF", Some(&[0, 255])),
            ("base64:AP8=", Some(&[0, 255])),
            ("base64:", Some(&[])),
            ("0x0", None),
            ("0xgg", None),
            ("0x+1", None),
            ("00ff", None),
            ("base64:A", None),
        ] {
            assert_eq!(parse_bytes(text).as_deref(), bytes, "{text}");
        }
        assert_eq!(bytes_text(&[0, 255]), "0x00ff");
    }
}
