//! A server's catalogue as plain values: tables, views, triggers, cascades, partitions, routines.

use crate::domain::source::DialectName;
use crate::lineage::access::{CatalogueParam, ObjectName};
use std::collections::{BTreeMap, BTreeSet};

/// A text of the catalogue, or that it may not be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyText {
    /// As the server keeps it.
    Text(String),
    /// The server hides it from the connected user; with the statement that would grant access.
    Hidden {
        /// A statement for the DBA.
        grant: String,
    },
}

/// How a routine's body is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineLanguage {
    /// MySQL's and MariaDB's compound statements, PL/pgSQL.
    Procedural,
    /// A list of SQL statements (`LANGUAGE sql`).
    Sql,
    /// A routine of the server or of an extension, in C: it touches no table that is not passed to
    /// it.
    Native,
    /// A language that is not read.
    Other(String),
}

/// A stored routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueRoutine {
    /// With its schema.
    pub name: ObjectName,
    /// Whether it is a function: it is part of a statement, and no step of its own.
    pub is_function: bool,
    /// What it takes, in order.
    pub params: Vec<CatalogueParam>,
    /// How its body is read.
    pub language: RoutineLanguage,
    /// Its body.
    pub body: BodyText,
    /// Its search path for unqualified names; none: the caller's.
    pub search_path: Option<Vec<String>>,
}

/// What a trigger waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerEvent {
    /// A row is added.
    Insert,
    /// A row is changed.
    Update,
    /// A row is removed.
    Delete,
    /// The table is emptied.
    Truncate,
}

/// What a trigger does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerAction {
    /// Its own text.
    Body(BodyText),
    /// A function without arguments.
    Calls(ObjectName),
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueTrigger {
    /// Its name.
    pub name: String,
    /// What it waits for.
    pub events: BTreeSet<TriggerEvent>,
    /// Whether it may change the row before it is written.
    pub is_before: bool,
    /// Whether it takes the place of the change (of a view).
    pub is_instead: bool,
    /// What it does.
    pub action: TriggerAction,
}

/// A foreign key of another table that follows this one's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cascade {
    /// The table that follows.
    pub child: ObjectName,
    /// When a row is removed: its rows are removed, or changed.
    pub on_delete: bool,
    /// When a key is changed.
    pub on_update: bool,
}

/// A table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// Columns that change by themselves with others: generated ones, `ON UPDATE CURRENT_TIMESTAMP`.
    pub derived_columns: BTreeSet<String>,
    /// Columns of each unique key.
    pub unique_keys: Vec<BTreeSet<String>>,
    /// The query of a view.
    pub view: Option<BodyText>,
    /// The query of a materialized view, which REFRESH runs.
    pub materialized: Option<BodyText>,
    /// Its triggers.
    pub triggers: Vec<CatalogueTrigger>,
    /// Who follows its changes.
    pub cascades: Vec<Cascade>,
    /// The table that it is a part of.
    pub partition_of: Option<ObjectName>,
    /// A table of another server, or of another kind that is not followed; which.
    pub foreign: Option<String>,
}

/// All of it, for one data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    /// How the server writes SQL.
    pub dialect: DialectName,
    /// Search path for unqualified names: schemas of PostgreSQL in order, the database of MySQL.
    pub search_path: Vec<String>,
    /// Whether names of tables that differ in case alone are the same.
    pub folds_tables: bool,
    tables: BTreeMap<ObjectName, Table>,
    routines: BTreeMap<ObjectName, Vec<CatalogueRoutine>>,
    column_sets: BTreeMap<ObjectName, BTreeSet<String>>,
    parts: BTreeMap<ObjectName, Vec<ObjectName>>,
}

impl Catalogue {
    /// One that knows of nothing yet.
    pub fn new(dialect: DialectName, search_path: Vec<String>, folds_tables: bool) -> Self {
        Self {
            dialect,
            search_path,
            folds_tables,
            tables: BTreeMap::new(),
            routines: BTreeMap::new(),
            column_sets: BTreeMap::new(),
            parts: BTreeMap::new(),
        }
    }

    /// Adds a table or view.
    pub fn add_table(&mut self, name: ObjectName, table: Table) {
        let key = self.table_key(&name);
        self.column_sets.insert(key.clone(), table.columns.iter().cloned().collect());
        if let Some(whole) = &table.partition_of {
            self.parts.entry(self.table_key(whole)).or_default().push(key.clone());
        }
        self.tables.insert(key, table);
    }

    /// A table that was added, to be completed.
    pub fn table_mut(&mut self, name: &ObjectName) -> Option<&mut Table> {
        let key = self.table_key(name);
        self.tables.get_mut(&key)
    }

    /// Adds a routine.
    pub fn add_routine(&mut self, routine: CatalogueRoutine) {
        let key = self.routine_key(&routine.name);
        self.routines.entry(key).or_default().push(routine);
    }

    /// How many routines there are.
    pub fn routine_count(&self) -> usize {
        self.routines.values().map(Vec::len).sum()
    }

    /// All routines.
    pub fn routines(&self) -> impl Iterator<Item = &CatalogueRoutine> {
        self.routines.values().flatten()
    }

    fn table_key(&self, name: &ObjectName) -> ObjectName {
        if !self.folds_tables {
            return name.clone();
        }
        ObjectName {
            schema: name.schema.as_ref().map(|schema| schema.to_lowercase()),
            name: name.name.to_lowercase(),
        }
    }

    /// Names of routines differ by more than case on PostgreSQL alone.
    fn routine_key(&self, name: &ObjectName) -> ObjectName {
        let schema = match self.dialect {
            DialectName::Postgres => return name.clone(),
            DialectName::Mysql if !self.folds_tables => name.schema.clone(),
            DialectName::Mysql | DialectName::Sqlite => {
                name.schema.as_ref().map(|schema| schema.to_lowercase())
            }
        };
        ObjectName { schema, name: name.name.to_lowercase() }
    }

    /// The full name of a table found along a search path; a missing one is assumed to be in the
    /// first schema.
    pub fn resolve_table(&self, name: &ObjectName, path: &[String]) -> ObjectName {
        if name.schema.is_some() {
            return self.table_key(name);
        }
        let within = |schema: &String| self.table_key(&ObjectName::within(schema, &name.name));
        let found = path.iter().map(within).find(|key| self.tables.contains_key(key));
        let first = || path.first().map(within);
        found.or_else(first).unwrap_or_else(|| self.table_key(name))
    }

    /// A table by its full name.
    pub fn table(&self, name: &ObjectName) -> Option<&Table> {
        self.tables.get(name)
    }

    /// The columns of a table by its full name.
    pub fn columns_of(&self, name: &ObjectName) -> Option<&BTreeSet<String>> {
        self.column_sets.get(name).filter(|columns| !columns.is_empty())
    }

    /// The parts of a table by its full name.
    pub fn parts_of(&self, name: &ObjectName) -> &[ObjectName] {
        self.parts.get(name).map_or(&[], Vec::as_slice)
    }

    /// The routines that a call may mean: those of the name that take so many arguments.
    pub fn resolve_routine(
        &self,
        name: &ObjectName,
        arguments: usize,
        path: &[String],
    ) -> Vec<&CatalogueRoutine> {
        let found = if name.schema.is_some() {
            self.routines.get(&self.routine_key(name))
        } else {
            let within = |schema: &String| {
                self.routines.get(&self.routine_key(&ObjectName::within(schema, &name.name)))
            };
            path.iter().find_map(within)
        };
        let all: Vec<&CatalogueRoutine> = found.into_iter().flatten().collect();
        let fitting: Vec<&CatalogueRoutine> =
            all.iter().copied().filter(|one| one.params.len() == arguments).collect();
        // Defaults, VARIADIC and OUT parameters that a caller leaves out: all of the name then.
        if fitting.is_empty() { all } else { fitting }
    }

    /// The places of a call's arguments that its routine fills; none when the routine is not known.
    pub fn output_places(
        &self,
        name: &ObjectName,
        arguments: usize,
        path: &[String],
    ) -> Option<BTreeSet<usize>> {
        let found = self.resolve_routine(name, arguments, path);
        if found.is_empty() {
            return None;
        }
        let outputs = found.iter().flat_map(|routine| {
            routine.params.iter().enumerate().filter(|(_, param)| param.is_output).map(|(at, _)| at)
        });
        Some(outputs.collect())
    }
}
