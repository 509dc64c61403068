//! Follows a job from its statement or call through everything that it sets in motion: called procedures and
//! functions, views, triggers, foreign keys that cascade, parts of tables.
//!
//! A queue and no recursion; each body is followed once for each set of arguments.

use crate::domain::source::DialectName;
use crate::lineage::access::{
    Access, AccessMode, Argument, BodyFacts, Call, CallKind, ColumnSet, ConflictKey, ObjectName,
};
use crate::lineage::catalogue::{
    BodyText, Catalogue, Routine, RoutineLanguage, Table, Trigger, TriggerAction, TriggerEvent,
};
use crate::lineage::reader::{Body, BodyKind, read_body};
use crate::lineage::slice::{Binding, Slice, SliceValue, ValueSet, bind_values};
use crate::lineage::words::{Words, tokenize};
use serde::Serialize;
use sqlparser::tokenizer::Token;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::rc::Rc;

/// Bodies and accesses that are followed for one job at most.
const STEPS_MAX: usize = 20_000;

/// Where a job begins.
#[derive(Clone, Debug)]
pub enum JobRoot {
    /// A call of a procedure.
    Call {
        /// The procedure.
        routine: ObjectName,
        /// What it is handed.
        arguments: Vec<Argument>,
    },
    /// Statements of the job's own.
    Statements {
        /// The text.
        text: String,
        /// What to call the text in messages.
        label: String,
        /// What its parameters `:name` are.
        params: Binding,
    },
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The routine, view or trigger, or what the job's own text is called.
    pub text: String,
    /// Line in it, from 1.
    pub line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.text, self.line)
    }
}

/// Why a part of a job is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OpaqueReason {
    /// The server hides a body from our user.
    HiddenBody {
        /// Whose.
        name: String,
        /// What the DBA may run to show it.
        grant: String,
    },
    /// There is no such routine, or our user may not see it.
    MissingRoutine {
        /// Which.
        name: String,
    },
    /// It is written in a language that is not read.
    Language {
        /// The routine.
        name: String,
        /// The language.
        language: String,
    },
    /// A place of a body could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
    /// It is no SQL: a script, a call over HTTP, an executor.
    NotSql {
        /// What it is.
        what: String,
    },
    /// Its data source could not be asked.
    SourceAway {
        /// Why.
        why: String,
    },
    /// More than so many bodies and tables hang on it.
    TooLarge {
        /// The limit.
        steps: usize,
    },
}

impl std::fmt::Display for OpaqueReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HiddenBody { name, grant } => {
                write!(f, "the body of {name} is not visible to this user; {grant}")
            }
            Self::MissingRoutine { name } => {
                write!(f, "there is no routine {name}, or this user may not see it")
            }
            Self::Language { name, language } => {
                write!(f, "{name} is written in {language}, which is not read")
            }
            Self::Unreadable { why } => write!(f, "not readable: {why}"),
            Self::NotSql { what } => write!(f, "{what} is not read"),
            Self::SourceAway { why } => f.write_str(why),
            Self::TooLarge { steps } => write!(f, "more than {steps} bodies and tables"),
        }
    }
}

/// A part of a job that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpaquePart {
    /// Where.
    pub place: Place,
    /// Why.
    pub reason: OpaqueReason,
}

/// An access of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobAccess {
    /// The access, its table with the schema, its slice in terms of the job's values.
    #[serde(flatten)]
    pub access: Access,
    /// The server and database of the table; names of different servers never meet.
    pub server: String,
    /// Where it is written.
    pub place: Place,
}

/// All that is known of what a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobReading {
    /// What it certainly may do.
    pub accesses: Vec<JobAccess>,
    /// What literals of statements that are made at run time suggest.
    pub guesses: Vec<JobAccess>,
    /// Statements that are made at run time.
    pub dynamic: Vec<Place>,
    /// Parts that are not known.
    pub opaque: Vec<OpaquePart>,
    /// Statements that were read by their words alone: rows and columns of them are not known.
    pub read_by_words: Vec<Place>,
    /// Routines, views and triggers that were read.
    pub bodies: BTreeSet<String>,
}

impl JobReading {
    /// Adds what another part of the job does.
    pub fn extend(&mut self, other: Self) {
        self.accesses.extend(other.accesses);
        self.guesses.extend(other.guesses);
        self.dynamic.extend(other.dynamic);
        self.opaque.extend(other.opaque);
        self.read_by_words.extend(other.read_by_words);
        self.bodies.extend(other.bodies);
    }

    /// Whether everything that it does is known.
    pub fn is_whole(&self) -> bool {
        self.dynamic.is_empty() && self.opaque.is_empty()
    }
}

/// Follows a job.
pub fn trace_job(roots: &[JobRoot], catalogue: &Catalogue, server: &str) -> JobReading {
    let mut tracer = Tracer {
        catalogue,
        server: server.to_owned(),
        reading: JobReading::default(),
        temporary: BTreeSet::new(),
        queue: VecDeque::new(),
        seen: HashSet::new(),
        read: BTreeMap::new(),
    };
    for root in roots {
        tracer.start(root);
    }
    tracer.run();
    tracer.finish()
}

/// What is to be followed.
enum Step {
    Facts { facts: Rc<BodyFacts>, label: String, path: Vec<String>, binding: Binding },
    Access { access: Access, place: Place, is_temporary: bool },
    Call { call: Call, place: Place, path: Vec<String> },
}

struct Tracer<'c> {
    catalogue: &'c Catalogue,
    server: String,
    reading: JobReading,
    temporary: BTreeSet<String>,
    queue: VecDeque<Step>,
    seen: HashSet<String>,
    read: BTreeMap<String, Rc<BodyFacts>>,
}

impl Tracer<'_> {
    fn start(&mut self, root: &JobRoot) {
        let path = self.catalogue.search_path.clone();
        match root {
            JobRoot::Call { routine, arguments } => {
                let call = Call {
                    routine: routine.clone(),
                    kind: CallKind::Procedure,
                    arguments: arguments.clone(),
                    line: 1,
                };
                let place = Place { text: routine.to_string(), line: 1 };
                self.queue.push_back(Step::Call { call, place, path });
            }
            JobRoot::Statements { text, label, params } => {
                let body = Body { text, kind: BodyKind::Sql, params: &[], path: &path };
                let facts = Rc::new(read_body(&body, self.catalogue));
                self.queue.push_back(Step::Facts {
                    facts,
                    label: label.clone(),
                    path,
                    binding: params.clone(),
                });
            }
        }
    }

    fn run(&mut self) {
        let mut steps = 0;
        while let Some(step) = self.queue.pop_front() {
            steps += 1;
            if steps > STEPS_MAX {
                let place = Place { text: "the job".to_owned(), line: 1 };
                self.add_opaque(place, OpaqueReason::TooLarge { steps: STEPS_MAX });
                return;
            }
            match step {
                Step::Facts { facts, label, path, binding } => {
                    self.follow_facts(&facts, &label, &path, &binding);
                }
                Step::Access { access, place, is_temporary } => {
                    self.follow_access(access, place, is_temporary);
                }
                Step::Call { call, place, path } => self.follow_call(&call, &place, &path),
            }
        }
    }

    fn finish(mut self) -> JobReading {
        // A table that exists only while the job runs is nobody else's.
        let temporary = std::mem::take(&mut self.temporary);
        let is_real = |one: &JobAccess| {
            !temporary.contains(&one.access.table.name.to_lowercase())
                || self.catalogue.table(&one.access.table).is_some()
        };
        self.reading.accesses.retain(is_real);
        self.reading.guesses.retain(is_real);
        self.reading
    }

    fn push_access(&mut self, access: Access, place: Place) {
        self.reading.accesses.push(JobAccess { access, server: self.server.clone(), place });
    }

    fn add_opaque(&mut self, place: Place, reason: OpaqueReason) {
        let part = OpaquePart { place, reason };
        if !self.reading.opaque.contains(&part) {
            self.reading.opaque.push(part);
        }
    }

    fn follow_facts(
        &mut self,
        facts: &BodyFacts,
        label: &str,
        path: &[String],
        binding: &Binding,
    ) {
        let place = |line: u32| Place { text: label.to_owned(), line };
        self.temporary.extend(facts.temporary.iter().cloned());
        let add = |list: &mut Vec<Place>, place: Place| {
            if !list.contains(&place) {
                list.push(place);
            }
        };
        for one in &facts.dynamic {
            add(&mut self.reading.dynamic, place(one.line));
        }
        for one in &facts.read_by_words {
            add(&mut self.reading.read_by_words, place(one.line));
        }
        for one in &facts.unreadable {
            self.add_opaque(place(one.line), OpaqueReason::Unreadable { why: one.why.clone() });
        }
        for guess in &facts.guesses {
            let mut access = guess.clone();
            access.table = self.catalogue.resolve_table(&access.table, path);
            let place = place(guess.line);
            self.reading.guesses.push(JobAccess { access, server: self.server.clone(), place });
        }
        for access in &facts.accesses {
            let mut bound = access.clone();
            bound.slice = access.slice.bind(binding);
            let is_temporary = access.table.schema.is_none()
                && facts.temporary.contains(&access.table.name.to_lowercase())
                || access.table.schema.as_deref() == Some("pg_temp");
            bound.table = self.catalogue.resolve_table(&access.table, path);
            self.queue.push_back(Step::Access {
                access: bound,
                place: place(access.line),
                is_temporary,
            });
        }
        for call in &facts.calls {
            let mut bound = call.clone();
            for argument in &mut bound.arguments {
                let values = argument.values.as_ref();
                argument.values = values.and_then(|values| bind_values(values, binding));
            }
            self.queue.push_back(Step::Call {
                place: place(call.line),
                call: bound,
                path: path.to_vec(),
            });
        }
    }

    fn follow_call(&mut self, call: &Call, place: &Place, path: &[String]) {
        let routines =
            self.catalogue.resolve_routine(&call.routine, call.arguments.len(), path);
        if routines.is_empty() {
            let own = ["pg_catalog", "information_schema", "sys", "mysql", "performance_schema"];
            let is_servers = match (call.kind, &call.routine.schema) {
                (CallKind::Procedure, schema) => {
                    schema.as_deref().is_some_and(|schema| own.contains(&schema))
                }
                // A function that is in no schema of the path is one of the server's own.
                (CallKind::Function, None) => true,
                (CallKind::Function, Some(schema)) => own.contains(&schema.as_str()),
            };
            if !is_servers {
                let name = call.routine.to_string();
                self.add_opaque(place.clone(), OpaqueReason::MissingRoutine { name });
            }
            return;
        }
        for routine in routines {
            let binding = bind_arguments(routine, &call.arguments);
            self.enter(routine, binding, place, path);
        }
    }

    /// Reads a routine's body, once for each binding.
    fn enter(&mut self, routine: &Routine, binding: Binding, place: &Place, path: &[String]) {
        let own_path = routine.search_path.clone().unwrap_or_else(|| path.to_vec());
        let key = format!("{:?} {:?} {binding:?} {own_path:?}", routine.name, routine.params);
        if !self.seen.insert(key) {
            return;
        }
        let name = routine.name.to_string();
        let kind = match &routine.language {
            RoutineLanguage::Procedural => BodyKind::Procedural,
            RoutineLanguage::Sql => BodyKind::Sql,
            RoutineLanguage::Native => return,
            RoutineLanguage::Other(language) => {
                let reason = OpaqueReason::Language { name, language: language.clone() };
                self.add_opaque(place.clone(), reason);
                return;
            }
        };
        let text = match &routine.body {
            BodyText::Text(text) => text,
            BodyText::Hidden { grant } => {
                let reason = OpaqueReason::HiddenBody { name, grant: grant.clone() };
                self.add_opaque(place.clone(), reason);
                return;
            }
        };
        let cached = format!("{:?} {:?} {own_path:?}", routine.name, routine.params);
        let facts = match self.read.get(&cached) {
            Some(facts) => facts.clone(),
            None => {
                let body = Body { text, kind, params: &routine.params, path: &own_path };
                let facts = Rc::new(read_body(&body, self.catalogue));
                self.read.insert(cached, facts.clone());
                facts
            }
        };
        self.reading.bodies.insert(name);
        let label = routine.name.name.clone();
        self.queue.push_back(Step::Facts { facts, label, path: own_path, binding });
    }

    fn follow_access(&mut self, access: Access, place: Place, is_temporary: bool) {
        let system = ["information_schema", "pg_catalog", "performance_schema", "mysql", "sys"];
        let schema = access.table.schema.as_deref().unwrap_or_default();
        if is_temporary || system.contains(&schema) || access.table.name.eq_ignore_ascii_case("dual")
        {
            return;
        }
        let key = format!(
            "{:?} {:?} {:?} {:?} {:?}",
            access.table, access.mode, access.slice, access.written, access.read
        );
        if !self.seen.insert(key) {
            return;
        }
        let Some(table) = self.catalogue.table(&access.table).cloned() else {
            let mut access = access;
            // Columns by place are of no use without the table's list.
            access.slice.columns.retain(|column, _| !column.starts_with('#'));
            if access.conflict_key == Some(ConflictKey::AnyKey) {
                access.slice = Slice::default();
            }
            access.written = if access.mode.is_write() { ColumnSet::All } else { access.written };
            self.push_access(access, place);
            return;
        };
        if let Some(view) = &table.view {
            self.follow_view(&access, &place, &table, view);
            return;
        }
        if let (Some(query), AccessMode::Whole) = (&table.materialized, access.mode) {
            let read = Access::new(access.table.clone(), AccessMode::Read, access.line);
            self.follow_view(&read, &place, &table, query);
        }
        let access = settle(access, &table, self.catalogue);
        self.follow_triggers(&access, &place, &table);
        self.follow_cascades(&access, &place, &table);
        let access = self.whole_table(access, &table);
        self.push_access(access, place);
    }

    /// A part of a table is the table, in a slice of its own.
    fn whole_table(&self, mut access: Access, table: &Table) -> Access {
        let mut whole = table.partition_of.clone();
        if whole.is_some() && self.catalogue.parts_of(&access.table).is_empty() {
            let part = SliceValue::Text(access.table.to_string());
            access.slice.require("(partition)", ValueSet::from([part]));
        }
        for _ in 0..16 {
            let Some(name) = whole else { break };
            access.table = self.catalogue.resolve_table(&name, &[]);
            whole = self.catalogue.table(&access.table).and_then(|one| one.partition_of.clone());
        }
        access
    }

    fn follow_view(&mut self, access: &Access, place: &Place, table: &Table, view: &BodyText) {
        let name = access.table.to_string();
        let instead = table.triggers.iter().any(|trigger| trigger.is_instead);
        if access.mode.is_write() && instead {
            self.follow_triggers(access, place, table);
            return;
        }
        let text = match view {
            BodyText::Text(text) => text.trim_end().trim_end_matches(';'),
            BodyText::Hidden { grant } => {
                let reason = OpaqueReason::HiddenBody { name, grant: grant.clone() };
                self.add_opaque(place.clone(), reason);
                return;
            }
        };
        let (text, binding) = narrowed_view(text, access, table, self.catalogue.dialect);
        let schema: Vec<String> = access.table.schema.iter().cloned().collect();
        let path = match self.catalogue.dialect {
            DialectName::Mysql => schema,
            DialectName::Postgres | DialectName::Sqlite => self.catalogue.search_path.clone(),
        };
        let body = Body { text: &text, kind: BodyKind::Sql, params: &[], path: &path };
        let mut facts = read_body(&body, self.catalogue);
        if access.mode.is_write() {
            // A view that is written through writes its tables.
            for one in &mut facts.accesses {
                one.mode = access.mode;
                one.written = ColumnSet::All;
                one.slice = Slice::default();
            }
        }
        self.reading.bodies.insert(name);
        let label = access.table.name.clone();
        self.queue.push_back(Step::Facts { facts: Rc::new(facts), label, path, binding });
    }

    fn follow_triggers(&mut self, access: &Access, place: &Place, table: &Table) {
        let events = events_of(access);
        for trigger in &table.triggers {
            if trigger.events.iter().all(|event| !events.contains(event)) {
                continue;
            }
            let binding = row_binding(&access.slice);
            let schema: Vec<String> = access.table.schema.iter().cloned().collect();
            let path = match self.catalogue.dialect {
                DialectName::Mysql | DialectName::Sqlite => schema,
                DialectName::Postgres => self.catalogue.search_path.clone(),
            };
            match &trigger.action {
                TriggerAction::Calls(function) => {
                    let found = self.catalogue.resolve_routine(function, 0, &path);
                    let Some(routine) = found.first() else {
                        let name = function.to_string();
                        self.add_opaque(place.clone(), OpaqueReason::MissingRoutine { name });
                        continue;
                    };
                    self.enter(routine, binding, place, &path);
                }
                TriggerAction::Body(BodyText::Hidden { grant }) => {
                    let name = format!("trigger {}", trigger.name);
                    let reason = OpaqueReason::HiddenBody { name, grant: grant.clone() };
                    self.add_opaque(place.clone(), reason);
                }
                TriggerAction::Body(BodyText::Text(text)) => {
                    let kind = BodyKind::Procedural;
                    let body = Body { text, kind, params: &[], path: &path };
                    let facts = Rc::new(read_body(&body, self.catalogue));
                    self.reading.bodies.insert(format!("trigger {}", trigger.name));
                    let label = trigger.name.clone();
                    self.queue.push_back(Step::Facts { facts, label, path, binding });
                }
            }
        }
    }

    fn follow_cascades(&mut self, access: &Access, place: &Place, table: &Table) {
        let removes = matches!(access.mode, AccessMode::Delete)
            || access.mode == AccessMode::Upsert
                && access.conflict_key == Some(ConflictKey::AnyKey);
        let changes_key = access.mode == AccessMode::Update
            && table.unique_keys.iter().any(|key| {
                access.written == ColumnSet::All
                    || access.written.meets(&ColumnSet::Only(key.clone()))
            });
        for cascade in &table.cascades {
            let mode = match (removes && cascade.on_delete, changes_key && cascade.on_update) {
                (true, _) => AccessMode::Delete,
                (false, true) => AccessMode::Update,
                (false, false) => continue,
            };
            let table = self.catalogue.resolve_table(&cascade.child, &[]);
            let mut access = Access::new(table, mode, place.line);
            access.read = ColumnSet::All;
            let place = place.clone();
            self.queue.push_back(Step::Access { access, place, is_temporary: false });
        }
    }
}

/// What each parameter of a routine is handed.
fn bind_arguments(routine: &Routine, arguments: &[Argument]) -> Binding {
    let mut binding = Binding::new();
    for (at, param) in routine.params.iter().enumerate() {
        let place = format!("${}", at + 1);
        let name = param.name.as_ref().map(|name| name.to_lowercase());
        let by_name = arguments.iter().find(|argument| {
            argument.name.is_some() && argument.name.as_ref().map(|n| n.to_lowercase()) == name
        });
        // A parameter without a name is handed what stands in its place.
        let by_place = arguments
            .get(at)
            .filter(|argument| argument.name.is_none() || param.name.is_none());
        let values = by_name.or(by_place).and_then(|argument| argument.values.clone());
        if let Some(name) = name {
            binding.insert(name, values.clone());
        }
        binding.insert(place, values);
    }
    binding
}

/// The columns of the row a trigger sees.
fn row_binding(slice: &Slice) -> Binding {
    let mut binding = Binding::new();
    for (column, conditions) in &slice.columns {
        for row in ["new", "old"] {
            let values = conditions.first().cloned();
            binding.insert(format!("{row}.{}", column.to_lowercase()), values);
        }
    }
    binding
}

/// What a table's definition says beyond the statement: names of columns by place, columns that change with others,
/// keys of upserts, triggers that change the row first.
fn settle(mut access: Access, table: &Table, catalogue: &Catalogue) -> Access {
    let mut slice = Slice::default();
    for (column, conditions) in &access.slice.columns {
        let place = column.strip_prefix('#').and_then(|place| place.parse::<usize>().ok());
        let name = match place {
            Some(place) => table.columns.get(place.saturating_sub(1)).cloned(),
            None => Some(column.clone()),
        };
        for values in conditions {
            if let Some(name) = &name {
                slice.require(name, values.clone());
            }
        }
    }
    access.slice = slice;
    if access.mode == AccessMode::Upsert {
        // The row that is changed agrees with the new one in its key, and may differ in all else.
        let is_key = |column: &str| match &access.conflict_key {
            Some(ConflictKey::Columns(key)) => key.contains(column),
            Some(ConflictKey::AnyKey) | None => {
                !table.unique_keys.is_empty()
                    && table.unique_keys.iter().all(|key| key.contains(column))
            }
        };
        access.slice.columns.retain(|column, _| is_key(column));
    }
    if access.mode == AccessMode::Update {
        for column in &table.derived_columns {
            access.written.add(column);
        }
    }
    let events = events_of(&access);
    let before = table.triggers.iter().filter(|trigger| trigger.is_before);
    for trigger in before.filter(|one| one.events.iter().any(|event| events.contains(event))) {
        if access.mode == AccessMode::Update {
            access.written = ColumnSet::All;
        }
        match changed_columns(trigger, catalogue) {
            ColumnSet::All => access.slice = Slice::default(),
            ColumnSet::Only(changed) => {
                access.slice.columns.retain(|column, _| !changed.contains(column));
            }
        }
    }
    access
}

/// The columns of its row that a trigger assigns: `NEW.a := …`, `SET NEW.a = …`.
fn changed_columns(trigger: &Trigger, catalogue: &Catalogue) -> ColumnSet {
    let text = match &trigger.action {
        TriggerAction::Body(BodyText::Text(text)) => text,
        TriggerAction::Body(BodyText::Hidden { .. }) => return ColumnSet::All,
        TriggerAction::Calls(function) => {
            let found = catalogue.resolve_routine(function, 0, &catalogue.search_path);
            match found.first().map(|routine| &routine.body) {
                Some(BodyText::Text(text)) => text,
                Some(BodyText::Hidden { .. }) | None => return ColumnSet::All,
            }
        }
    };
    let Ok(tokens) = tokenize(text, catalogue.dialect, 1) else { return ColumnSet::All };
    let words = Words(&tokens);
    let mut changed = BTreeSet::new();
    let is_assigned =
        |at: usize| words.has(at, &Token::Assignment) || words.has(at, &Token::Eq);
    for at in 0..tokens.len() {
        if !words.is(at, "NEW") {
            continue;
        }
        if words.has(at + 1, &Token::Period) && is_assigned(at + 3) {
            changed.extend(words.word(at + 2).map(str::to_lowercase));
        } else if words.has(at + 1, &Token::Assignment) || words.is(at.wrapping_sub(1), "INTO") {
            return ColumnSet::All;
        }
    }
    ColumnSet::Only(changed)
}

/// What triggers an access sets off.
fn events_of(access: &Access) -> BTreeSet<TriggerEvent> {
    use TriggerEvent::{Delete, Insert, Truncate, Update};
    match access.mode {
        AccessMode::Read => BTreeSet::new(),
        AccessMode::Insert => BTreeSet::from([Insert]),
        AccessMode::Upsert => BTreeSet::from([Insert, Update, Delete]),
        AccessMode::Update => BTreeSet::from([Update]),
        AccessMode::Delete => BTreeSet::from([Delete]),
        AccessMode::Whole => BTreeSet::from([Truncate]),
    }
}

/// A view's query with what its reader asks of its columns around it, so that its tables are narrowed too.
fn narrowed_view(
    text: &str,
    access: &Access,
    table: &Table,
    dialect: DialectName,
) -> (String, Binding) {
    let mut binding = Binding::new();
    let mut conditions = Vec::new();
    let quote = |name: &str| match dialect {
        DialectName::Mysql => format!("`{}`", name.replace('`', "``")),
        DialectName::Postgres | DialectName::Sqlite => {
            format!("\"{}\"", name.replace('"', "\"\""))
        }
    };
    for (column, all) in &access.slice.columns {
        if !table.columns.contains(column) {
            continue;
        }
        for values in all {
            let name = format!(":view_param_{}", binding.len());
            conditions.push(format!("v.{} = {name}", quote(column)));
            binding.insert(name, Some(values.clone()));
        }
    }
    if conditions.is_empty() || access.mode.is_write() {
        return (text.to_owned(), Binding::new());
    }
    let columns: Vec<String> = table.columns.iter().map(|column| quote(column)).collect();
    let (columns, conditions) = (columns.join(", "), conditions.join(" AND "));
    (format!("SELECT 1 FROM ({text}\n) v ({columns}) WHERE {conditions}"), binding)
}
