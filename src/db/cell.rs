//! One value that a statement returned, with its type.

/// The type of a value, as far as it decides what may be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// Text, and everything else that is carried as the text which its server writes.
    Text,
    /// A whole number.
    Int,
    /// Any other number.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A day.
    Date,
    /// A time of day, and MySQL's TIME, which may be negative or longer than a day.
    Time,
    /// A day and a time, without a zone.
    Timestamp,
    /// A moment, shown in UTC.
    TimestampTz,
    /// A span of time.
    Interval,
    /// Bytes, shown as `0x` and two digits for each.
    Bytes,
    /// A JSON document.
    Json,
    /// An array of PostgreSQL, as it writes it.
    Array,
}

impl CellType {
    /// The type of a column that has values of both types; `None` where one text cannot be told from the
    /// other. Only SQLite has such columns.
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
    /// Its type and its text: one form for each type, whichever way the value came.
    Value(CellType, String),
    /// It has no text that is the value.
    Unreadable(UnreadableValue),
    /// It is longer than the limit: so many bytes.
    TooLong(usize),
    /// With it the large values together are longer than their limit: so many bytes of its own.
    TooLongTogether(usize),
}

impl Cell {
    /// A text.
    pub(in crate::db) fn from_text(text: impl Into<String>) -> Self {
        Self::Value(CellType::Text, text.into())
    }
}

/// Why a value has no text that is the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableValue {
    /// What the server writes for it, to be looked at; it may not be all of it.
    pub shown: Option<String>,
    /// The reason, with what to do: it stands behind the name of the column.
    pub reason: String,
}

impl UnreadableValue {
    pub(in crate::db) fn new(reason: impl Into<String>) -> Self {
        Self { shown: None, reason: reason.into() }
    }
}
