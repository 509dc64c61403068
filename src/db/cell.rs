//! One value returned by a statement, with its type.

/// The type of a value, as far as it matters for its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// Text, and everything else that is kept as the text written by its server.
    Text,
    /// An integer.
    Int,
    /// Any other number.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A date.
    Date,
    /// A time of day, and MySQL's TIME, which may be negative or longer than a day.
    Time,
    /// A date and time without a zone.
    Timestamp,
    /// A point in time, shown in UTC.
    TimestampTz,
    /// An interval.
    Interval,
    /// Bytes, shown as `0x` and two digits for each.
    Bytes,
    /// A JSON document.
    Json,
    /// An array of PostgreSQL, in its own notation.
    Array,
}

impl CellType {
    /// The common type of a column with values of both types; `None` where their texts would be
    /// ambiguous. Only SQLite has such columns.
    pub(in crate::db) fn joined_with(self, other: Self) -> Option<Self> {
        let is_number = |ty| matches!(ty, Self::Int | Self::Decimal);
        match (self, other) {
            (one, same) if one == same => Some(one),
            (Self::Bytes, _) | (_, Self::Bytes) => None,
            (one, other) if is_number(one) && is_number(other) => Some(Self::Decimal),
            (_, _) => Some(Self::Text),
        }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL.
    Null,
    /// Its type and its text: one form per type, whichever protocol delivered it.
    Value(CellType, String),
    /// It has no text that represents the value.
    Unreadable(UnreadableValue),
    /// It exceeds the limit: its length in bytes.
    TooLong(usize),
    /// With it the large values together exceed their limit: its length in bytes.
    TooLongTogether(usize),
}

impl Cell {
    /// A text value.
    pub(in crate::db) fn from_text(text: impl Into<String>) -> Self {
        Self::Value(CellType::Text, text.into())
    }
}

/// Why a value has no text that represents it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableValue {
    /// The server's notation of it, for display; possibly incomplete.
    pub shown: Option<String>,
    /// The reason and a hint, to be shown after the name of the column.
    pub reason: String,
}

impl UnreadableValue {
    pub(in crate::db) fn new(reason: impl Into<String>) -> Self {
        Self { shown: None, reason: reason.into() }
    }
}
