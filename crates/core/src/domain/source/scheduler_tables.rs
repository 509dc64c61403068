//! Tables of another scheduler, read from its database or an export: every value is a text, and
//! nothing is checked yet.

use crate::domain::source::DialectName;
use std::collections::BTreeMap;

/// Everything read from another scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTables {
    /// Each table once.
    pub tables: Vec<SchedulerTable>,
    /// Facts about its server.
    pub server: SchedulerServer,
}

/// A table with its rows, in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTable {
    /// Its name with its schema: `cron.job`.
    pub name: String,
    /// Names of its columns, in lower case.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<SchedulerRow>,
}

/// A row: column values by lower-case name; none is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerRow(pub BTreeMap<String, Option<String>>);

/// The server on which the tables are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerServer {
    /// URL without a password; none for an export.
    pub url: Option<String>,
    /// Version as reported.
    pub version: String,
    /// IANA name of its time zone, if known.
    pub zone: Option<String>,
    /// Current offset of its clock to UTC, in seconds.
    pub utc_offset_sec: Option<i32>,
    /// Settings that affect the meaning of the tables, by name.
    pub settings: BTreeMap<String, String>,
}

/// A table to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedTable {
    /// Schema; empty: the connection's current schema.
    pub schema: &'static str,
    /// Its name.
    pub table: &'static str,
    /// Columns that define the order of rows.
    pub order: &'static [&'static str],
    /// A condition on its rows, in SQL, without user-supplied values.
    pub condition: &'static str,
    /// Whether the table is required.
    pub presence: TablePresence,
}

/// Whether a table is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablePresence {
    /// Required: without it, this is not the expected database.
    Needed,
    /// Optional: it depends on the release.
    Optional,
}

/// The tables and settings to read from another scheduler's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedTables {
    /// Display name of the scheduler.
    pub system: &'static str,
    /// Dialects of database that it supports.
    pub dialects: &'static [DialectName],
    /// Its tables.
    pub tables: &'static [WantedTable],
    /// Names of the server settings to read.
    pub settings: &'static [&'static str],
}

impl WantedTable {
    /// Its name with its schema, as [`SchedulerTable::name`] has it.
    pub fn full_name(&self) -> String {
        if self.schema.is_empty() {
            self.table.to_owned()
        } else {
            format!("{}.{}", self.schema, self.table)
        }
    }
}

impl SchedulerTables {
    /// The rows of a table; empty for a missing table.
    pub fn table_rows(&self, name: &str) -> &[SchedulerRow] {
        self.tables.iter().find(|table| table.name == name).map_or(&[], |table| &table.rows)
    }

    /// A setting of the server.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.server.settings.get(name).map(String::as_str)
    }
}

impl SchedulerRow {
    /// A row of pairs.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect())
    }

    /// A column's value; none for NULL and for a missing column.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }

    /// The value without surrounding spaces; empty for none.
    pub fn trimmed_value(&self, column: &str) -> &str {
        self.value(column).unwrap_or_default().trim()
    }

    /// A whole number; none for NULL and for other text.
    pub fn number(&self, column: &str) -> Option<i64> {
        self.value(column)?.trim().parse().ok()
    }

    /// A boolean in any form that databases use.
    pub fn is_true(&self, column: &str) -> bool {
        matches!(
            self.trimmed_value(column).to_ascii_lowercase().as_str(),
            "t" | "true" | "1" | "y" | "yes"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let mut row = SchedulerRow::from_pairs(&[("a", " x "), ("n", "7"), ("b", "t"), ("w", "x")]);
        row.0.insert("none".to_owned(), None);
        assert_eq!((row.value("a"), row.trimmed_value("a")), (Some(" x "), "x"));
        assert_eq!(
            (row.value("none"), row.trimmed_value("none"), row.trimmed_value("absent")),
            (None, "", "")
        );
        assert_eq!((row.number("n"), row.number("w"), row.number("none")), (Some(7), None, None));
        assert!(row.is_true("b") && !row.is_true("w") && !row.is_true("none"));
    }
}
