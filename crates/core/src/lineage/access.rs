//! What one routine or statement does to tables: the values that the reader hands to the closure.

use crate::lineage::slice::{Slice, ValueSet};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The name of a table or routine as it is written, without quotes. PostgreSQL's unquoted names are folded to
/// lower case when they are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectName {
    /// Schema (PostgreSQL) or database (MySQL); none when the name stands alone.
    pub schema: Option<String>,
    /// The name itself.
    pub name: String,
}

impl ObjectName {
    /// A name without a schema.
    pub fn bare(name: &str) -> Self {
        Self { schema: None, name: name.to_owned() }
    }

    /// A name in a schema.
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

/// What is done to rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// Rows are read.
    Read,
    /// Rows are added, and none that was there is touched.
    Insert,
    /// Rows are added, or those with the same key are changed.
    Upsert,
    /// Columns of rows are changed.
    Update,
    /// Rows are removed.
    Delete,
    /// The whole table: TRUNCATE, DROP, CREATE, ALTER, RENAME, EXCHANGE PARTITION.
    Whole,
}

impl AccessMode {
    /// Whether it changes the table.
    pub fn is_write(self) -> bool {
        self != Self::Read
    }

    /// The verb of a sentence about it.
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

/// Columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnSet {
    /// Every column, or it is not known which.
    All,
    /// These and no others.
    Only(BTreeSet<String>),
}

impl ColumnSet {
    /// No column.
    pub fn no_columns() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Adds a column; `*` stands for all of them.
    pub fn add_column(&mut self, column: &str) {
        if column == "*" {
            *self = Self::All;
        } else if let Self::Only(columns) = self {
            columns.insert(column.to_owned());
        }
    }

    /// Whether some column is in both.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Only(one), Self::Only(two)) => one.intersection(two).next().is_some(),
            (Self::Only(one), Self::All) | (Self::All, Self::Only(one)) => !one.is_empty(),
            (Self::All, Self::All) => true,
        }
    }
}

/// How an INSERT treats a row whose key is there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKey {
    /// Changes it; which columns identify it is not said (`ON DUPLICATE KEY`, `REPLACE`).
    AnyKey,
    /// Changes the row that agrees in these columns (`ON CONFLICT (a, b)`).
    Columns(BTreeSet<String>),
}

/// One access to one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The table or view.
    pub table: ObjectName,
    /// What is done.
    pub mode: AccessMode,
    /// The columns that are written; of a read, none.
    pub written: ColumnSet,
    /// The columns that are read.
    pub read: ColumnSet,
    /// Which rows.
    pub slice: Slice,
    /// Which row an upsert changes.
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
    /// `f(…)` in an expression or in FROM. A name that is no routine of the catalogue is a function of the server.
    Function,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// The parameter it is for, where it is named.
    pub name: Option<String>,
    /// What it may be; none when that is not known.
    pub values: Option<ValueSet>,
}

/// A call of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoutineCall {
    /// The routine.
    pub routine: ObjectName,
    /// How it is called.
    pub kind: CallKind,
    /// What it is handed.
    pub arguments: Vec<Argument>,
    /// Line of the call, from 1.
    pub line: u32,
}

/// A statement that is put together while the routine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DynamicStatement {
    /// Line, from 1.
    pub line: u32,
}

/// A place that could not be read, or not by the parser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadablePlace {
    /// Line, from 1.
    pub line: u32,
    /// Why, as a sentence.
    pub why: String,
}

/// All that one body does by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BodyFacts {
    /// Accesses to tables, in the order written.
    pub accesses: Vec<Access>,
    /// Calls of routines.
    pub calls: Vec<RoutineCall>,
    /// Statements that are put together at run time.
    pub dynamic: Vec<DynamicStatement>,
    /// What the texts of such statements name, as far as literals say: a guess, never the whole.
    pub guesses: Vec<Access>,
    /// Temporary tables that it makes.
    pub temporary: BTreeSet<String>,
    /// Places that could not be read.
    pub unreadable: Vec<UnreadablePlace>,
    /// Statements that were read by their words alone, because the parser refused them.
    pub read_by_words: Vec<UnreadablePlace>,
}

/// A parameter of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogueParam {
    /// Its name as written; PostgreSQL allows none.
    pub name: Option<String>,
    /// Whether the caller hands a value in.
    pub is_input: bool,
    /// Whether the routine hands a value back in it.
    pub is_output: bool,
    /// Its type as the server writes it; empty where that is not known.
    pub type_name: String,
    /// Whether a caller may leave it out.
    pub has_default: bool,
}
