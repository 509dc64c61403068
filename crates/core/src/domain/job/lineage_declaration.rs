//! The owner's declaration of the tables that a job reads and writes, for bodies that cannot be
//! analysed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `lineage:` of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageDeclaration {
    /// Tables read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<DeclaredRows>,
    /// Tables written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<DeclaredRows>,
    /// Treatment of parts that cannot be analysed.
    #[serde(default, skip_serializing_if = "OpaqueParts::is_told")]
    pub opaque: OpaqueParts,
    /// Tables excluded from conflict reports, such as log tables that every job writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl LineageDeclaration {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Treatment of parts that cannot be analysed: scripts, hidden bodies, dynamic SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpaqueParts {
    /// They are reported, and nothing that involves them counts as safe.
    #[default]
    Told,
    /// The owner vouches for them: the analysed and declared tables are complete.
    Accepted,
}

impl OpaqueParts {
    /// All variants with their words in a definition.
    pub const WORDS: [(&'static str, Self); 2] =
        [("told", Self::Told), ("accepted", Self::Accepted)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_told(&self) -> bool {
        *self == Self::Told
    }
}

/// Rows of a table: `journal_line`, `fin.journal_line[journal_code=AP|AR, batch_no=${batch_no}]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeclaredRows {
    /// Table name, with or without schema.
    pub table: String,
    /// Columns, each with its possible values.
    pub conditions: Vec<(String, Vec<String>)>,
}

/// Why a text is not a declaration of rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not TABLE or TABLE[COLUMN=VALUE]; several values are separated by |")]
pub struct BadRows(String);

impl FromStr for DeclaredRows {
    type Err = BadRows;

    fn from_str(text: &str) -> Result<Self, BadRows> {
        let bad = || BadRows(text.to_owned());
        let (table, inner) = match text.trim().split_once('[') {
            None => (text.trim(), None),
            Some((table, rest)) => (table.trim(), Some(rest.strip_suffix(']').ok_or_else(bad)?)),
        };
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_$#.".contains(c))
        };
        if !is_name(table) || inner.is_some_and(|inner| inner.trim().is_empty()) {
            return Err(bad());
        }
        let mut conditions = Vec::new();
        for part in inner.into_iter().flat_map(|inner| inner.split(',')) {
            let (column, values) = part.split_once('=').ok_or_else(bad)?;
            let values: Vec<String> =
                values.split('|').map(|value| value.trim().to_owned()).collect();
            if !is_name(column.trim()) || values.iter().any(String::is_empty) {
                return Err(bad());
            }
            conditions.push((column.trim().to_owned(), values));
        }
        Ok(Self { table: table.to_owned(), conditions })
    }
}

impl fmt::Display for DeclaredRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        if self.conditions.is_empty() {
            return Ok(());
        }
        let one =
            |(column, values): &(String, Vec<String>)| format!("{column}={}", values.join("|"));
        let all: Vec<String> = self.conditions.iter().map(one).collect();
        write!(f, "[{}]", all.join(", "))
    }
}

impl TryFrom<String> for DeclaredRows {
    type Error = BadRows;

    fn try_from(text: String) -> Result<Self, BadRows> {
        text.parse()
    }
}

impl From<DeclaredRows> for String {
    fn from(rows: DeclaredRows) -> Self {
        rows.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_written_in_one_form() {
        for text in ["t", "fin.t", "t[code=AP]", "t[code=AP|AR, batch_no=${batch_no}]"] {
            let rows: DeclaredRows = text.parse().expect(text);
            assert_eq!(rows.to_string(), text);
            let json = serde_json::to_string(&rows).expect("JSON");
            assert_eq!(serde_json::from_str::<DeclaredRows>(&json).expect("rows"), rows);
        }
        for text in ["", "t[", "t[]", "t[code]", "t[=X]", "t[code=]", "t; drop", "t[a=1]x"] {
            assert!(text.parse::<DeclaredRows>().is_err(), "{text}");
        }
    }
}
