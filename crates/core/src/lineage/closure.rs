//! Follows a job from its statement or call through everything that it causes: called procedures and functions, views,
//! triggers, cascading foreign keys, partitions.
//!
//! It uses a queue instead of recursion; each body is followed once per set of arguments.

use crate::domain::source::DialectName;
use crate::domain::source::statement::split;
use crate::lineage::access::{
    Access, AccessMode, Argument, BodyFacts, CallKind, ColumnSet, ConflictKey, ObjectName,
    RoutineCall,
};
use crate::lineage::catalogue::{
    BodyText, Catalogue, CatalogueRoutine, RoutineLanguage, Table, TriggerAction,
};
use crate::lineage::reader::{BodyKind, SourceText, read_body};
use crate::lineage::reading::{JobAccess, JobReading, OpaquePart, OpaqueReason, TextPlace};
use crate::lineage::settle::{bind_arguments, events_of, narrowed_view, row_binding, settle};
use crate::lineage::slice::{Binding, Slice, SliceValue, ValueSet, bind_values};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::rc::Rc;

/// Maximum number of bodies and accesses followed for one job.
const STEPS_MAX: usize = 20_000;

/// Maximum number of places of one kind kept for one job; what matters is that there is one.
const PLACES_MAX: usize = 1_000;

/// The starting point of a job.
#[derive(Clone, Debug)]
pub enum JobRoot {
    /// A call of a procedure.
    Call {
        /// The procedure.
        routine: ObjectName,
        /// The arguments.
        arguments: Vec<Argument>,
    },
    /// The job's own statements.
    Statements {
        /// The text.
        text: String,
        /// The label of the text in messages.
        label: String,
        /// The values of its parameters `:name`.
        params: Binding,
    },
}

/// Follows a job.
pub fn trace_job(roots: &[JobRoot], catalogue: &Catalogue, server: &str) -> JobReading {
    let mut tracer = AccessTracer {
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
    tracer.trace_all();
    tracer.finish()
}

/// A step still to be followed.
enum TraceStep {
    Facts { facts: Rc<BodyFacts>, label: String, path: Vec<String>, binding: Binding },
    Access { access: Access, place: TextPlace, is_temporary: bool },
    Call { call: RoutineCall, place: TextPlace, path: Vec<String> },
}

struct AccessTracer<'c> {
    catalogue: &'c Catalogue,
    server: String,
    reading: JobReading,
    temporary: BTreeSet<String>,
    queue: VecDeque<TraceStep>,
    seen: HashSet<String>,
    read: BTreeMap<String, Rc<BodyFacts>>,
}

impl AccessTracer<'_> {
    fn start(&mut self, root: &JobRoot) {
        let path = self.catalogue.search_path.clone();
        match root {
            JobRoot::Call { routine, arguments } => {
                let call = RoutineCall {
                    routine: routine.clone(),
                    kind: CallKind::Procedure,
                    arguments: arguments.clone(),
                    line: 1,
                };
                let place = TextPlace { text: routine.to_string(), line: 1 };
                self.queue.push_back(TraceStep::Call { call, place, path });
            }
            JobRoot::Statements { text, label, params } => {
                for statement in split(text, self.catalogue.dialect) {
                    // Creating a routine does not run it.
                    if statement.is_routine {
                        continue;
                    }
                    let body = SourceText {
                        text: &statement.text,
                        first_line: statement.line,
                        kind: BodyKind::Sql,
                        params: &[],
                        path: &path,
                    };
                    self.queue.push_back(TraceStep::Facts {
                        facts: Rc::new(read_body(&body, self.catalogue)),
                        label: label.clone(),
                        path: path.clone(),
                        binding: params.clone(),
                    });
                }
            }
        }
    }

    fn trace_all(&mut self) {
        let mut steps = 0;
        while let Some(step) = self.queue.pop_front() {
            steps += 1;
            if steps > STEPS_MAX {
                let place = TextPlace { text: "the job".to_owned(), line: 1 };
                self.add_opaque(place, OpaqueReason::TooLarge { steps: STEPS_MAX });
                return;
            }
            match step {
                TraceStep::Facts { facts, label, path, binding } => {
                    self.follow_facts(&facts, &label, &path, &binding);
                }
                TraceStep::Access { access, place, is_temporary } => {
                    self.follow_access(access, place, is_temporary);
                }
                TraceStep::Call { call, place, path } => self.follow_call(&call, &place, &path),
            }
        }
    }

    fn finish(mut self) -> JobReading {
        // A temporary table is invisible to other jobs.
        let temporary = std::mem::take(&mut self.temporary);
        let is_real = |one: &JobAccess| {
            !temporary.contains(&one.access.table.name.to_lowercase())
                || self.catalogue.table(&one.access.table).is_some()
        };
        self.reading.accesses.retain(is_real);
        self.reading.guesses.retain(is_real);
        self.reading
    }

    fn push_access(&mut self, access: Access, place: TextPlace) {
        self.reading.accesses.push(JobAccess { access, server: self.server.clone(), place });
    }

    fn add_opaque(&mut self, place: TextPlace, reason: OpaqueReason) {
        let part = OpaquePart { place, reason };
        if self.reading.opaque.len() < PLACES_MAX && !self.reading.opaque.contains(&part) {
            self.reading.opaque.push(part);
        }
    }

    fn follow_facts(&mut self, facts: &BodyFacts, label: &str, path: &[String], binding: &Binding) {
        let place = |line: u32| TextPlace { text: label.to_owned(), line };
        self.temporary.extend(facts.temporary.iter().cloned());
        let add = |list: &mut Vec<TextPlace>, place: TextPlace| {
            if list.len() < PLACES_MAX && !list.contains(&place) {
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
            bound.slice = access.slice.bind_params(binding);
            let is_temporary = access.table.schema.is_none()
                && facts.temporary.contains(&access.table.name.to_lowercase())
                || access.table.schema.as_deref() == Some("pg_temp");
            bound.table = self.catalogue.resolve_table(&access.table, path);
            self.queue.push_back(TraceStep::Access {
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
            self.queue.push_back(TraceStep::Call {
                place: place(call.line),
                call: bound,
                path: path.to_vec(),
            });
        }
    }

    fn follow_call(&mut self, call: &RoutineCall, place: &TextPlace, path: &[String]) {
        let routines = self.catalogue.resolve_routine(&call.routine, call.arguments.len(), path);
        if routines.is_empty() {
            let own = ["pg_catalog", "information_schema", "sys", "mysql", "performance_schema"];
            let is_servers = match (call.kind, &call.routine.schema) {
                (CallKind::Procedure, schema) => {
                    schema.as_deref().is_some_and(|schema| own.contains(&schema))
                }
                // A function that no schema of the path contains is a built-in of the server.
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

    /// Follows the body of a routine, once per binding.
    fn enter(
        &mut self,
        routine: &CatalogueRoutine,
        binding: Binding,
        place: &TextPlace,
        path: &[String],
    ) {
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
                let body = SourceText {
                    text,
                    first_line: 1,
                    kind,
                    params: &routine.params,
                    path: &own_path,
                };
                let facts = Rc::new(read_body(&body, self.catalogue));
                self.read.insert(cached, facts.clone());
                facts
            }
        };
        self.reading.bodies.insert(name);
        let label = routine.name.name.clone();
        self.queue.push_back(TraceStep::Facts { facts, label, path: own_path, binding });
    }

    fn follow_access(&mut self, access: Access, place: TextPlace, is_temporary: bool) {
        let system = ["information_schema", "pg_catalog", "performance_schema", "mysql", "sys"];
        let schema = access.table.schema.as_deref().unwrap_or_default();
        if is_temporary
            || system.contains(&schema)
            || access.table.name.eq_ignore_ascii_case("dual")
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
            // Columns by position are useless without the table's column list.
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

    /// Replaces a partition by its table with a narrower slice.
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

    fn follow_view(&mut self, access: &Access, place: &TextPlace, table: &Table, view: &BodyText) {
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
        let body = SourceText {
            text: &text,
            first_line: 1,
            kind: BodyKind::Sql,
            params: &[],
            path: &path,
        };
        let mut facts = read_body(&body, self.catalogue);
        if access.mode.is_write() {
            // A write through a view changes the tables of the view.
            for one in &mut facts.accesses {
                one.mode = access.mode;
                one.written = ColumnSet::All;
                one.slice = Slice::default();
            }
        }
        self.reading.bodies.insert(name);
        let label = access.table.name.clone();
        self.queue.push_back(TraceStep::Facts { facts: Rc::new(facts), label, path, binding });
    }

    fn follow_triggers(&mut self, access: &Access, place: &TextPlace, table: &Table) {
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
                    let body = SourceText { text, first_line: 1, kind, params: &[], path: &path };
                    let facts = Rc::new(read_body(&body, self.catalogue));
                    self.reading.bodies.insert(format!("trigger {}", trigger.name));
                    let label = trigger.name.clone();
                    self.queue.push_back(TraceStep::Facts { facts, label, path, binding });
                }
            }
        }
    }

    fn follow_cascades(&mut self, access: &Access, place: &TextPlace, table: &Table) {
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
            self.queue.push_back(TraceStep::Access { access, place, is_temporary: false });
        }
    }
}
