//! Defines what one routine or statement does to tables: the values that the reader passes to the closure.

use crate::lineage::slice::{Slice, ValueSet};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The name of a table or routine as written, without quotes. PostgreSQL's unquoted names are folded to lower case when
/// they are parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectName {
    /// Schema (PostgreSQL) or database (MySQL); none for an unqualified name.
    pub schema: Option<String>,
    /// The name itself.
    pub name: String,
}

impl ObjectName {
    /// A name without a schema.
    pub fn bare(name: &str) -> Self {
        Self { schema: None, name: name.to_owned() }
    }

    /// A qualified name.
    pub fn within(schema: &str, name: &str) -> Self {
        Self { schema: Some(schema.to_owned()), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// What an access does to the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// Reads rows.
    Read,
    /// Inserts rows without changing existing ones.
    Insert,
    /// Inserts rows, or updates those with the same key.
    Upsert,
    /// Updates columns of rows.
    Update,
    /// Deletes rows.
    Delete,
    /// Affects the whole table: TRUNCATE, DROP, CREATE, ALTER, RENAME, EXCHANGE PARTITION.
    Whole,
}

impl AccessMode {
    /// Whether it changes the table.
    pub fn is_write(self) -> bool {
        self != Self::Read
    }

    /// The verb for messages.
    pub fn as_verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Insert => "inserts into",
            Self::Upsert => "inserts into or updates",
            Self::Update => "updates",
            Self::Delete => "deletes from",
            Self::Whole => "replaces",
        }
    }
}

/// A set of columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnSet {
    /// Every column, or an unknown set.
    All,
    /// Exactly these columns.
    Only(BTreeSet<String>),
}

impl ColumnSet {
    /// No column.
    pub fn no_columns() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Adds a column; `*` adds all of them.
    pub fn add_column(&mut self, column: &str) {
        if column == "*" {
            *self = Self::All;
        } else if let Self::Only(columns) = self {
            columns.insert(column.to_owned());
        }
    }

    /// Whether the sets share a column.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Only(one), Self::Only(two)) => one.intersection(two).next().is_some(),
            (Self::Only(one), Self::All) | (Self::All, Self::Only(one)) => !one.is_empty(),
            (Self::All, Self::All) => true,
        }
    }
}

/// How an INSERT treats an existing row with the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKey {
    /// Updates it; the statement does not name the key columns (`ON DUPLICATE KEY`, `REPLACE`).
    AnyKey,
    /// Updates the row with equal values in these columns (`ON CONFLICT (a, b)`).
    Columns(BTreeSet<String>),
}

/// One access to one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The table or view.
    pub table: ObjectName,
    /// Kind of access.
    pub mode: AccessMode,
    /// Written columns; none for a read.
    pub written: ColumnSet,
    /// Read columns.
    pub read: ColumnSet,
    /// The rows.
    pub slice: Slice,
    /// The row that an upsert updates.
    pub conflict_key: Option<ConflictKey>,
    /// Line in the text of the routine or statement, from 1.
    pub line: u32,
}

impl Access {
    /// An access to all rows and columns.
    pub fn new(table: ObjectName, mode: AccessMode, line: u32) -> Self {
        let (written, read) = match mode {
            AccessMode::Read => (ColumnSet::no_columns(), ColumnSet::All),
            AccessMode::Insert
            | AccessMode::Upsert
            | AccessMode::Update
            | AccessMode::Delete
            | AccessMode::Whole => (ColumnSet::All, ColumnSet::no_columns()),
        };
        Self { table, mode, written, read, slice: Slice::default(), conflict_key: None, line }
    }
}

/// How a routine is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// `CALL p(…)`; it is an error if there is no such procedure.
    Procedure,
    /// `f(…)` in an expression or in FROM. A name that the catalogue does not contain is a built-in of the server.
    Function,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// The name of its parameter, if given.
    pub name: Option<String>,
    /// Its possible values; `None` if unknown.
    pub values: Option<ValueSet>,
}

/// A call of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoutineCall {
    /// The routine.
    pub routine: ObjectName,
    /// Kind of call.
    pub kind: CallKind,
    /// The arguments.
    pub arguments: Vec<Argument>,
    /// Line of the call, from 1.
    pub line: u32,
}

/// A dynamic statement, whose text is built while the routine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DynamicStatement {
    /// Line, from 1.
    pub line: u32,
}

/// A place that could not be analysed, or only scanned for keywords.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadablePlace {
    /// Line, from 1.
    pub line: u32,
    /// The reason as a sentence.
    pub why: String,
}

/// The findings about one body by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BodyFacts {
    /// Accesses to tables, in the order written.
    pub accesses: Vec<Access>,
    /// Calls of routines.
    pub calls: Vec<RoutineCall>,
    /// Dynamic statements.
    pub dynamic: Vec<DynamicStatement>,
    /// Accesses that literals of such statements suggest: a guess, never complete.
    pub guesses: Vec<Access>,
    /// Temporary tables that the body creates.
    pub temporary: BTreeSet<String>,
    /// Places that could not be analysed.
    pub unreadable: Vec<UnreadablePlace>,
    /// Statements that were only scanned for keywords, because the parser refused them.
    pub read_by_words: Vec<UnreadablePlace>,
}

/// A parameter of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogueParam {
    /// Name as written; PostgreSQL permits unnamed parameters.
    pub name: Option<String>,
    /// Whether the caller passes a value.
    pub is_input: bool,
    /// Whether the routine returns a value in it.
    pub is_output: bool,
    /// Type as the server writes it; empty if unknown.
    pub type_name: String,
    /// Whether a caller may omit it.
    pub has_default: bool,
}
