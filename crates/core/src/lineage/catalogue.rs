//! The catalogue of a server as plain values: tables, views, triggers, cascades, partitions, routines.

use crate::domain::source::DialectName;
use crate::lineage::access::{CatalogueParam, ObjectName};
use std::collections::{BTreeMap, BTreeSet};

/// A text of the catalogue, unless it is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyText {
    /// The text as the server stores it.
    Text(String),
    /// The server hides it from the connected user; with the statement that would grant access.
    Hidden {
        /// A statement for the DBA.
        grant: String,
    },
}

/// How the body of a routine is analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineLanguage {
    /// Compound statements of MySQL and MariaDB, and PL/pgSQL.
    Procedural,
    /// A list of SQL statements (`LANGUAGE sql`).
    Sql,
    /// A routine of the server or of an extension, in C: it accesses no table that is not passed to it.
    Native,
    /// An unsupported language.
    Other(String),
}

/// A stored routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueRoutine {
    /// Name with its schema.
    pub name: ObjectName,
    /// Whether it is a function: a function is part of a statement, not a step.
    pub is_function: bool,
    /// Parameters, in order.
    pub params: Vec<CatalogueParam>,
    /// How its body is analysed.
    pub language: RoutineLanguage,
    pub body: BodyText,
    /// Its own search path for unqualified names; none: the caller's.
    pub search_path: Option<Vec<String>>,
}

/// The event of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerEvent {
    /// A row is inserted.
    Insert,
    /// A row is updated.
    Update,
    /// A row is deleted.
    Delete,
    /// The table is truncated.
    Truncate,
}

/// The action of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerAction {
    /// Its own text.
    Body(BodyText),
    /// A call of a function without arguments.
    Calls(ObjectName),
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueTrigger {
    pub name: String,
    /// The events that fire it.
    pub events: BTreeSet<TriggerEvent>,
    /// Whether it runs before the change, and so may alter the row.
    pub is_before: bool,
    /// Whether it replaces the change (of a view).
    pub is_instead: bool,
    /// Its action.
    pub action: TriggerAction,
}

/// A foreign key of another table with a cascade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cascade {
    /// The referencing table.
    pub child: ObjectName,
    /// Whether deleting a row deletes or updates rows of it.
    pub on_delete: bool,
    /// Whether updating a key does.
    pub on_update: bool,
}

/// A table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Columns, in order.
    pub columns: Vec<String>,
    /// Columns that change together with others: generated ones, `ON UPDATE CURRENT_TIMESTAMP`.
    pub derived_columns: BTreeSet<String>,
    /// The columns of each unique key.
    pub unique_keys: Vec<BTreeSet<String>>,
    /// The query of a view.
    pub view: Option<BodyText>,
    /// The query of a materialized view, which REFRESH runs.
    pub materialized: Option<BodyText>,
    pub triggers: Vec<CatalogueTrigger>,
    /// Foreign keys of other tables that cascade from this one.
    pub cascades: Vec<Cascade>,
    /// The table of which it is a partition.
    pub partition_of: Option<ObjectName>,
    /// The server or kind of a foreign table, which is not analysed further.
    pub foreign: Option<String>,
}

/// The catalogue of one data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    /// The SQL dialect of the server.
    pub dialect: DialectName,
    /// Search path for unqualified names: the schemas of PostgreSQL in order, or the database of MySQL.
    pub search_path: Vec<String>,
    /// Whether table names are case-insensitive.
    pub folds_tables: bool,
    tables: BTreeMap<ObjectName, Table>,
    routines: BTreeMap<ObjectName, Vec<CatalogueRoutine>>,
    column_sets: BTreeMap<ObjectName, BTreeSet<String>>,
    parts: BTreeMap<ObjectName, Vec<ObjectName>>,
}

impl Catalogue {
    /// An empty catalogue.
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

    /// An added table, to be completed.
    pub fn table_mut(&mut self, name: &ObjectName) -> Option<&mut Table> {
        let key = self.table_key(name);
        self.tables.get_mut(&key)
    }

    /// Adds a routine.
    pub fn add_routine(&mut self, routine: CatalogueRoutine) {
        let key = self.routine_key(&routine.name);
        self.routines.entry(key).or_default().push(routine);
    }

    /// The number of routines.
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

    /// The key of a routine: its name is case-insensitive except on PostgreSQL.
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

    /// Finds a table by its full name.
    pub fn table(&self, name: &ObjectName) -> Option<&Table> {
        self.tables.get(name)
    }

    /// The columns of a table by its full name.
    pub fn columns_of(&self, name: &ObjectName) -> Option<&BTreeSet<String>> {
        self.column_sets.get(name).filter(|columns| !columns.is_empty())
    }

    /// The partitions of a table by its full name.
    pub fn parts_of(&self, name: &ObjectName) -> &[ObjectName] {
        self.parts.get(name).map_or(&[], Vec::as_slice)
    }

    /// The routines that a call may refer to: those with its name and number of arguments.
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
        // With defaults, VARIADIC, or OUT parameters that the caller omits, no number may fit; then all with the name.
        if fitting.is_empty() { all } else { fitting }
    }

    /// The indexes of a call's output arguments; `None` if the routine is unknown.
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
