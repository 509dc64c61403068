//! Computes the lineage of a job of a definition from its call or statements, the values of its parameters, and its
//! checks.

use crate::domain::id::SourceName;
use crate::domain::job::body::Items;
use crate::domain::job::check::Expect;
use crate::domain::job::lineage_declaration::{DeclaredRows, LineageDeclaration, OpaqueParts};
use crate::domain::job::pool::LockMode;
use crate::domain::job::{JobDef, ParamMode};
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::RoutineName;
use crate::lineage::access::{Access, AccessMode, Argument, ObjectName};
use crate::lineage::catalogue::Catalogue;
use crate::lineage::closure::{JobRoot, trace_job};
use crate::lineage::conflict::JobLineage;
use crate::lineage::reading::{JobAccess, JobReading, OpaquePart, OpaqueReason, TextPlace};
use crate::lineage::slice::{Binding, Slice, SliceValue, ValueSet};
use std::collections::BTreeMap;

/// A data source with its catalogue.
#[derive(Clone, Debug)]
pub struct LineageTarget {
    /// Identifies server and database: two sources on the same database have the same value.
    pub server: String,
    /// The catalogue, or why it is unavailable.
    pub catalogue: Result<Catalogue, String>,
    /// Bodies that replace procedures missing in the database.
    pub procedures: BTreeMap<String, String>,
}

/// The lineage of a job, as far as it can be analysed.
pub fn job_lineage(job: &JobDef, targets: &BTreeMap<SourceName, LineageTarget>) -> JobLineage {
    let mut reading = JobReading::default();
    match job.job_type.as_str() {
        "NOOP" | "APPROVAL" => {}
        "PROC" | "SQL" | "SENSOR" => match job.source.as_ref() {
            Some(source) => read_on(job, source, targets, &mut reading),
            None => add_opaque(job, &mut reading, not_sql("a job without a source")),
        },
        "SCRIPT" => add_opaque(job, &mut reading, not_sql("a script")),
        "HTTP" => add_opaque(job, &mut reading, not_sql("a call over HTTP")),
        "BATCH" => add_opaque(job, &mut reading, not_sql("the batch that it opens")),
        other => add_opaque(job, &mut reading, not_sql(&format!("a job of type {other}"))),
    }
    read_checks(job, targets, &mut reading);
    let declared = job.lineage.as_deref().cloned().unwrap_or_default();
    add_declared(job, &declared, targets, &mut reading);
    let locks = job.locks.iter().filter(|lock| lock.mode == LockMode::Exclusive);
    JobLineage {
        code: job.code.clone(),
        reading,
        locks: locks.map(|lock| lock.lock.clone()).collect(),
        ignored: declared.ignore.iter().cloned().collect(),
        accepts_opaque: declared.opaque == OpaqueParts::Accepted,
    }
}

fn not_sql(what: &str) -> OpaqueReason {
    OpaqueReason::NotSql { what: what.to_owned() }
}

fn add_opaque(job: &JobDef, reading: &mut JobReading, reason: OpaqueReason) {
    let place = TextPlace { text: job.code.to_string(), line: 1 };
    reading.opaque.push(OpaquePart { place, reason });
}

fn read_on(
    job: &JobDef,
    source: &SourceName,
    targets: &BTreeMap<SourceName, LineageTarget>,
    reading: &mut JobReading,
) {
    let Some((target, catalogue)) = catalogue_of(job, source, targets, reading) else { return };
    let dialect = catalogue.dialect;
    let label = job.code.to_string();
    let root = match (&job.proc_name, &job.sql) {
        (Some(name), _) => match target.procedures.get(name) {
            Some(text) => Some(statements(job, text, label)),
            None => call(job, name, dialect),
        },
        (None, Some(sql)) => sql.text_for(dialect).map(|text| statements(job, text, label)),
        (None, None) => None,
    };
    match root {
        Some(root) => reading.extend(trace_job(&[root], catalogue, &target.server)),
        None => {
            let why = format!("it has no text for {dialect}");
            add_opaque(job, reading, OpaqueReason::Unreadable { why });
        }
    }
}

fn catalogue_of<'t>(
    job: &JobDef,
    source: &SourceName,
    targets: &'t BTreeMap<SourceName, LineageTarget>,
    reading: &mut JobReading,
) -> Option<(&'t LineageTarget, &'t Catalogue)> {
    let target = targets.get(source);
    match target.map(|target| (target, target.catalogue.as_ref())) {
        Some((target, Ok(catalogue))) => Some((target, catalogue)),
        Some((_, Err(why))) => {
            let why = format!("{source}: {why}");
            add_opaque(job, reading, OpaqueReason::SourceAway { why });
            None
        }
        None => {
            let why = format!("{source} was not asked");
            add_opaque(job, reading, OpaqueReason::SourceAway { why });
            None
        }
    }
}

fn call(job: &JobDef, name: &str, dialect: DialectName) -> Option<JobRoot> {
    let name = RoutineName::parse(name)?;
    let mut parts = name.parts;
    if dialect == DialectName::Postgres && !name.is_quoted {
        parts = parts.into_iter().map(|part| part.to_lowercase()).collect();
    }
    let last = parts.pop()?;
    let routine = ObjectName { schema: parts.pop(), name: last };
    let arguments = job.params.iter().map(|param| Argument {
        name: Some(param.name.clone()),
        values: param_values(job, param.mode, param.value.as_deref()),
    });
    Some(JobRoot::Call { routine, arguments: arguments.collect() })
}

fn statements(job: &JobDef, text: &str, label: String) -> JobRoot {
    let params = job.params.iter().map(|param| {
        let values = param_values(job, param.mode, param.value.as_deref());
        (format!(":{}", param.name.to_lowercase()), values)
    });
    let params: Binding = params.collect();
    JobRoot::Statements { text: text.to_owned(), label, params }
}

/// The possible values of a parameter: a fixed text, or a symbol that has one value per batch.
fn param_values(job: &JobDef, mode: ParamMode, value: Option<&str>) -> Option<ValueSet> {
    if mode == ParamMode::Out {
        return None;
    }
    let value = value?;
    if value == "${item}" {
        let Items::List(items) = &job.for_each.as_ref()?.items else { return None };
        return Some(items.iter().cloned().map(SliceValue::Text).collect());
    }
    let value = if value.contains("${") {
        SliceValue::Symbol(value.to_owned())
    } else {
        SliceValue::Text(value.to_owned())
    };
    Some(ValueSet::from([value]))
}

/// Adds a job's checks, which read after its body and before its dependents.
fn read_checks(
    job: &JobDef,
    targets: &BTreeMap<SourceName, LineageTarget>,
    reading: &mut JobReading,
) {
    for check in &job.checks {
        let own = check.source.as_ref().or(job.source.as_ref());
        let mut queries = vec![(own, &check.sql)];
        if let Expect::Equals { source, sql, .. } = &check.expect {
            queries.push((source.as_ref().or(own), sql));
        }
        for (source, sql) in queries {
            let Some(source) = source else { continue };
            let Some((target, catalogue)) = catalogue_of(job, source, targets, reading) else {
                continue;
            };
            let Some(text) = sql.text_for(catalogue.dialect) else { continue };
            let label = format!("{} check {:?}", job.code, check.name);
            let root = statements(job, text, label);
            reading.extend(trace_job(&[root], catalogue, &target.server));
        }
    }
}

/// Adds the owner's declaration: it narrows the rows of a table found in the texts, and adds any other table.
fn add_declared(
    job: &JobDef,
    declared: &LineageDeclaration,
    targets: &BTreeMap<SourceName, LineageTarget>,
    reading: &mut JobReading,
) {
    let target = job.source.as_ref().and_then(|source| targets.get(source));
    let catalogue = target.and_then(|target| target.catalogue.as_ref().ok());
    // A script has no source: its tables belong to the only source there is.
    let only = (targets.len() == 1).then(|| targets.values().next()).flatten();
    let server = target.or(only).map_or(String::new(), |target| target.server.clone());
    let catalogue = catalogue.or(only.and_then(|target| target.catalogue.as_ref().ok()));
    for (rows, mode) in declared
        .reads
        .iter()
        .map(|rows| (rows, AccessMode::Read))
        .chain(declared.writes.iter().map(|rows| (rows, AccessMode::Upsert)))
    {
        let table = declared_table(&rows.table, catalogue);
        let of_table: Vec<&DeclaredRows> = match mode {
            AccessMode::Read => declared.reads.iter().collect(),
            _ => declared.writes.iter().collect(),
        };
        let slice = declared_slice(&of_table, &rows.table);
        let mut is_found = false;
        for access in &mut reading.accesses {
            let is_write = access.access.mode.is_write();
            if access.access.table == table && is_write == mode.is_write() {
                is_found = true;
                for (column, conditions) in &slice.columns {
                    for values in conditions {
                        access.access.slice.require(column, values.clone());
                    }
                }
            }
        }
        if !is_found {
            let mut access = Access::new(table, mode, 1);
            access.slice = slice;
            let place = TextPlace { text: format!("{} lineage", job.code), line: 1 };
            reading.accesses.push(JobAccess { access, server: server.clone(), place });
        }
    }
}

fn declared_table(text: &str, catalogue: Option<&Catalogue>) -> ObjectName {
    let name = match text.rsplit_once('.') {
        Some((schema, name)) => ObjectName::within(schema, name),
        None => ObjectName::bare(text),
    };
    match catalogue {
        Some(catalogue) => catalogue.resolve_table(&name, &catalogue.search_path),
        None => name,
    }
}

/// The rows of all declarations of a table: a column is narrowed if each of them narrows it.
fn declared_slice(all: &[&DeclaredRows], table: &str) -> Slice {
    let same: Vec<&&DeclaredRows> = all.iter().filter(|rows| rows.table == table).collect();
    let mut slice = Slice::default();
    for (column, _) in same.first().into_iter().flat_map(|rows| &rows.conditions) {
        let of_each = same.iter().map(|rows| {
            let found = rows.conditions.iter().find(|(name, _)| name == column);
            found.map(|(_, values)| values)
        });
        let Some(values) = of_each.collect::<Option<Vec<_>>>() else { continue };
        let value = |text: &String| match text.contains("${") {
            true => SliceValue::Symbol(text.clone()),
            false => SliceValue::Text(text.clone()),
        };
        slice.require(column, values.into_iter().flatten().map(value).collect());
    }
    slice
}
