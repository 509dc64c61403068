//! Tables of another scheduler, as its database or an export of it gives them: every value is a text, and nothing of it
//! is checked yet.

use crate::domain::source::DialectName;
use std::collections::BTreeMap;

/// All that is read of another scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTables {
    /// Each table once.
    pub tables: Vec<SchedulerTable>,
    /// What its server says of itself.
    pub server: SchedulerServer,
}

/// A table with its rows, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTable {
    /// Its name with its schema: `cron.job`.
    pub name: String,
    /// Names of its columns, in lower case.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<SchedulerRow>,
}

/// A row: what stands in each column, by its name in lower case; none is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerRow(pub BTreeMap<String, Option<String>>);

/// The server on which the tables are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerServer {
    /// Where it is, without a password; none for an export.
    pub url: Option<String>,
    /// Its version in its own words.
    pub version: String,
    /// The name of its time zone, where it has one of IANA.
    pub zone: Option<String>,
    /// Seconds by which its clock is ahead of UTC now.
    pub utc_offset_sec: Option<i32>,
    /// Settings that change what the tables mean, by name.
    pub settings: BTreeMap<String, String>,
}

/// A table that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedTable {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub table: &'static str,
    /// The columns whose values give the order of its rows.
    pub order: &'static [&'static str],
    /// A condition on its rows, in SQL, without values of anybody.
    pub condition: &'static str,
    /// Whether there is nothing to import without it.
    pub presence: TablePresence,
}

/// Whether a table has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablePresence {
    /// Without it this is another database.
    Needed,
    /// Releases differ.
    Optional,
}

/// What is asked of a database of another scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedTables {
    /// The scheduler, for people.
    pub system: &'static str,
    /// The database that it is in.
    pub dialect: DialectName,
    /// Its tables.
    pub tables: &'static [WantedTable],
    /// Settings of the server that count, by name.
    pub settings: &'static [&'static str],
}

impl SchedulerTables {
    /// The rows of a table; none of one that is not there.
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

    /// What stands in a column; none for NULL and for a column that is not there.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }

    /// The same without the spaces around it, and nothing in place of none.
    pub fn trimmed_value(&self, column: &str) -> &str {
        self.value(column).unwrap_or_default().trim()
    }

    /// A whole number; none for NULL and for what is no number.
    pub fn number(&self, column: &str) -> Option<i64> {
        self.value(column)?.trim().parse().ok()
    }

    /// A truth value, as databases write them.
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
