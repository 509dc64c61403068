//! Exports a definition as the text of a file that `apply` reads as the same definition.
//!
//! It converts the stored form and leaves out defaults, so a new field of a type needs no change here. The result is
//! parsed again and compared before it is returned.

use crate::definition::beside::{ReferencedScripts, scripts_beside};
use crate::definition::diff::{DefinitionDifference, diff_definitions};
use crate::definition::fault::{DefinitionFault, Faults};
use crate::definition::load::load_definition;
use crate::definition::write::{DefinitionFormat, Tree, write_text};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{Definition, Group, JobDef, JobDependency, JobKind};
use crate::domain::source::DataSource;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Keys that come first, in this order; the others follow by name, and those of `LAST` come at the end.
const FIRST: &[&str] = &[
    "owners",
    "sources",
    "pools",
    "hosts",
    "secrets",
    "groups",
    "job_code",
    "code",
    "name",
    "url",
    "group",
    "job",
    "type",
    "mode",
    "source",
    "aliases",
    "depends_on",
    "trigger_rule",
    "proc_name",
    "value",
];
/// Keys with long texts.
const LAST: &[&str] =
    &["params", "procedures", "checks", "sql", "script", "schedules", "jobs", "dependencies"];

/// Defaults inside maps of a job or group: the key, the value, and the place.
const TAKEN: &[(&str, &str, &str)] = &[
    ("params", "mode", "in"),
    ("params", "type", "text"),
    ("success", "else", "error"),
    ("checks", "else", "error"),
    ("http", "send", "none"),
    ("executor", "send", "json"),
    ("executor", "route", "FIRST"),
    ("executor", "block", "SERIAL_EXECUTION"),
    ("depends_on", "when", "success"),
    ("depends_on", "missing", "wait"),
];

/// Why a definition cannot be written as a file; `Display` is the sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The text would be refused.
    #[error("what is stored cannot be written as one file, because it would be refused:\n{0}")]
    Refused(Faults),
    /// The text would be read differently. A bug of ours.
    #[error(
        "what is stored cannot be written as a file, because it would be read differently:\n{0}"
    )]
    Differs(String),
    /// The text could not be made.
    #[error("what is stored cannot be written as a file: {0}")]
    Unwritable(String),
}

/// The text of a definition; reading it gives the same definition.
pub fn export(
    defs: &Definition,
    kinds: &[JobKind],
    format: DefinitionFormat,
) -> Result<String, ExportError> {
    Ok(export_beside(defs, kinds, format, usize::MAX)?.text)
}

/// The section `sources` of a file that has this source alone. It is no whole file: that has jobs.
///
/// # Errors
/// If it cannot be written.
pub fn export_source(source: &DataSource, format: DefinitionFormat) -> Result<String, ExportError> {
    let alone = Definition { sources: vec![source.clone()], ..Definition::default() };
    let tree = build_tree(&alone, &ReferencedScripts::new());
    write_text(&tree, format).map_err(ExportError::Unwritable)
}

/// A definition as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFiles {
    /// The definition file.
    pub text: String,
    /// Scripts in separate files: path and text.
    pub scripts: Vec<(String, String)>,
    /// Warnings from reading the files.
    pub warnings: Vec<DefinitionFault>,
}

/// The text of a definition, with scripts of more than `longest` lines in separate files; reading these files gives the
/// same definition.
///
/// # Errors
/// If no definition file can express `defs`.
pub fn export_beside(
    defs: &Definition,
    kinds: &[JobKind],
    format: DefinitionFormat,
    longest: usize,
) -> Result<ExportedFiles, ExportError> {
    let beside = scripts_beside(defs, longest);
    let text = write_text(&build_tree(defs, &beside), format).map_err(ExportError::Unwritable)?;
    let scripts: HashMap<&str, &str> =
        beside.values().map(|(p, text)| (p.as_str(), *text)).collect();
    let read = |path: &Path| {
        let script = path.to_str().and_then(|path| scripts.get(path));
        Ok(script.map_or_else(|| text.clone(), |&script| script.to_owned()))
    };
    // A fault of the generated text needs a file name, although the file does not exist yet.
    let name = match format {
        DefinitionFormat::Yaml => "export.yaml",
        DefinitionFormat::Json => "export.json",
    };
    let again = load_definition(Path::new(name), &read, kinds).map_err(ExportError::Refused)?;
    let changes = diff_definitions(defs, &again.definition);
    if changes.is_empty() {
        let mut scripts: Vec<(String, String)> =
            scripts.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        scripts.sort();
        return Ok(ExportedFiles { text, scripts, warnings: again.warnings });
    }
    let words: Vec<String> = changes.iter().map(DefinitionDifference::to_string).collect();
    Err(ExportError::Differs(words.join("\n")))
}

fn build_tree(defs: &Definition, beside: &ReferencedScripts<'_>) -> Tree {
    let shared = json_map(&defs.shared);
    let mut top = Map::new();
    for (section, items) in shared {
        let key = if section == "owners" { "code" } else { "name" };
        let items = match items {
            Value::Array(items) => items,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => continue,
        };
        let named = if section == "params" { declared(items) } else { key_items_by(key, items) };
        top.insert(section, named);
    }
    let sources = defs.sources.iter().map(|s| Value::Object(json_map(s))).collect();
    top.insert("sources".to_owned(), key_items_by("name", sources));
    let groups = defs.groups.iter().map(|g| Value::Object(group(g))).collect();
    top.insert("groups".to_owned(), key_items_by("code", groups));
    let waits = ExportedWaits::from_definition(defs);
    let jobs =
        defs.jobs.iter().map(|j| Value::Object(job_entry(j, defs, &waits, beside))).collect();
    let several = defs.codes_of_several_groups();
    // A map by code cannot contain duplicates.
    let jobs = if several.is_empty() { key_items_by("code", jobs) } else { Value::Array(jobs) };
    top.insert("jobs".to_owned(), jobs);
    let listed = defs.dependencies.iter().filter(|d| !waits.is_with_job(&(&d.group, &d.job_code)));
    let listed: Vec<Value> = listed.map(|d| Value::Object(listed_wait(d, &several))).collect();
    if !listed.is_empty() {
        top.insert("dependencies".to_owned(), Value::Array(listed));
    }
    let schedules = defs.schedules.iter().map(|s| Value::Object(json_map(s))).collect();
    top.insert("schedules".to_owned(), key_items_by("code", schedules));
    top.retain(|_, section| *section != Value::Object(Map::new()));
    // The definition has an order of entries, which a JSON map does not keep.
    let order = ExportOrder {
        sources: numbered(defs.sources.iter().map(|s| s.name.as_str())),
        groups: numbered(defs.groups.iter().map(|g| g.code.as_str())),
        jobs: numbered(defs.jobs.iter().map(|j| j.code.as_str())),
        schedules: numbered(defs.schedules.iter().map(|s| s.code.as_str())),
    };
    order.ordered_tree(top)
}

/// A dependency in the separate list, for jobs without a group.
fn listed_wait(d: &JobDependency, several: &HashSet<&JobCode>) -> Map<String, Value> {
    let mut fields = json_map(d);
    if several.contains(&d.job_code) {
        let job = format!("{}.{}", d.group, d.job_code);
        fields.insert("job_code".to_owned(), Value::String(job));
    }
    fields
}

fn json_map(item: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(item) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// Items by their name, which becomes the key.
fn key_items_by(key: &str, items: Vec<Value>) -> Value {
    let mut found = Map::new();
    for item in items {
        let Value::Object(mut fields) = item else { continue };
        if let Some(Value::String(name)) = fields.remove(key) {
            found.insert(name, Value::Object(fields));
        }
    }
    Value::Object(found)
}

/// Declared parameters by name, with plain text as the value alone; a list if a map by name would not keep their order.
fn declared(items: Vec<Value>) -> Value {
    let names: Vec<&str> = items.iter().filter_map(|i| i["name"].as_str()).collect();
    if !names.is_sorted() || names.iter().any(|name| place(name) != PLAIN) {
        let mut list = Value::Array(items);
        drop_taken("params", &mut list);
        return list;
    }
    let Value::Object(mut params) = key_items_by("name", items) else { return Value::Null };
    for param in params.values_mut() {
        drop_taken("params", param);
        if let Value::Object(fields) = param
            && fields.len() == 1
            && let Some(value) = fields.remove("value")
        {
            *param = value;
        }
    }
    Value::Object(params)
}

fn group(group: &Group) -> Map<String, Value> {
    let mut fields =
        without(json_map(group), &json_map(&Group::with_defaults(group.code.clone())), &["code"]);
    if let Some(Value::Array(params)) = fields.remove("params") {
        fields.insert("params".to_owned(), declared(params));
    }
    fields
}

fn job_entry(
    job: &JobDef,
    defs: &Definition,
    waits: &ExportedWaits<'_>,
    beside: &ReferencedScripts<'_>,
) -> Map<String, Value> {
    let bare = JobDef::with_defaults(job.code.clone(), job.group.clone(), job.job_type.clone());
    let mut fields = without(json_map(job), &json_map(&bare), &["code", "group", "type"]);
    if let Some((path, _)) = beside.get(&(&job.group, &job.code)) {
        fields.remove("script");
        fields.insert("script_file".to_owned(), Value::String(path.clone()));
    }
    if defs.groups.len() == 1 {
        fields.remove("group");
    }
    let parents = waits.parents(&(&job.group, &job.code));
    if !parents.is_empty() {
        fields.insert("depends_on".to_owned(), Value::Array(parents));
    }
    for (key, value) in &mut fields {
        drop_taken(key, value);
    }
    fields
}

/// The fields that differ from `bare`, and those of `keep`.
fn without(
    mut fields: Map<String, Value>,
    bare: &Map<String, Value>,
    keep: &[&str],
) -> Map<String, Value> {
    fields.retain(|key, value| keep.contains(&key.as_str()) || bare.get(key) != Some(value));
    fields
}

fn drop_taken(section: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| drop_taken(section, item)),
        Value::Object(fields) => fields.retain(|key, value| {
            TAKEN.iter().all(|(s, k, word)| *s != section || k != key || value != word)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Group and code of a waiting job.
type WaitingJob<'a> = (&'a GroupCode, &'a JobCode);

/// The dependencies of each job.
struct ExportedWaits<'a> {
    inside: HashMap<WaitingJob<'a>, Vec<&'a JobDependency>>,
    outside: HashMap<WaitingJob<'a>, Vec<&'a ExternalDependency>>,
}

impl<'a> ExportedWaits<'a> {
    fn from_definition(defs: &'a Definition) -> Self {
        let mut waits = Self { inside: HashMap::new(), outside: HashMap::new() };
        for one in &defs.dependencies {
            waits.inside.entry((&one.group, &one.job_code)).or_default().push(one);
        }
        waits.inside.values_mut().for_each(|own| own.sort_by_key(|d| d.dependency_order));
        for one in &defs.externals {
            waits.outside.entry((&one.waiting_group, &one.job_code)).or_default().push(one);
        }
        waits
    }

    /// Whether the dependencies of a job have the numbers that a list inside the job would give them.
    fn is_with_job(&self, job: &WaitingJob<'_>) -> bool {
        let own = self.inside.get(job).into_iter().flatten();
        (1..).zip(own).all(|(order, d)| d.dependency_order == order)
    }

    fn parents(&self, job: &WaitingJob<'_>) -> Vec<Value> {
        let inside = self.inside.get(job).filter(|_| self.is_with_job(job));
        let inside = inside.into_iter().flatten().map(|d| match &d.when {
            EdgeCondition::Success => Value::from(d.depends_on.as_str()),
            when => serde_json::json!({"job": d.depends_on, "when": when}),
        });
        let outside = self.outside.get(job).into_iter().flatten().map(|e| {
            let mut fields = json_map(e);
            fields.remove("job_code");
            if let Some(job) = fields.remove("depends_on") {
                fields.insert("job".to_owned(), job);
            }
            Value::Object(fields)
        });
        inside.chain(outside).collect()
    }
}

/// Index by name.
type PositionByName = HashMap<String, usize>;

fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> PositionByName {
    names.enumerate().map(|(i, name)| (name.to_owned(), i)).collect()
}

/// The order of the entries in sections where the user chooses the order.
struct ExportOrder {
    sources: PositionByName,
    groups: PositionByName,
    jobs: PositionByName,
    schedules: PositionByName,
}

impl ExportOrder {
    fn ordered_tree(&self, top: Map<String, Value>) -> Tree {
        let section = |(key, value): (String, Value)| {
            let order = match key.as_str() {
                "sources" => Some(&self.sources),
                "groups" => Some(&self.groups),
                "jobs" => Some(&self.jobs),
                "schedules" => Some(&self.schedules),
                _ => None,
            };
            let value = match (value, order) {
                (Value::Object(entries), order) => Tree::Map(by_name(entries, order)),
                (other, _) => nested(other),
            };
            (key, value)
        };
        let mut all: Vec<(String, Tree)> = top.into_iter().map(section).collect();
        all.sort_by_cached_key(|(key, _)| place(key));
        Tree::Map(all)
    }
}

/// Entries with keys chosen by the user.
fn by_name(entries: Map<String, Value>, order: Option<&PositionByName>) -> Vec<(String, Tree)> {
    let mut all: Vec<(String, Tree)> = entries.into_iter().map(|(k, v)| (k, nested(v))).collect();
    all.sort_by_key(|(name, _)| order.and_then(|o| o.get(name).copied()));
    all
}

/// Entries with keys of the format.
fn by_key(entries: Map<String, Value>) -> Vec<(String, Tree)> {
    let mut all: Vec<(String, Tree)> = entries.into_iter().map(|(k, v)| (k, nested(v))).collect();
    all.sort_by_cached_key(|(key, _)| place(key));
    all
}

fn nested(value: Value) -> Tree {
    match value {
        Value::String(text) => Tree::Text(text),
        Value::Array(items) => Tree::List(items.into_iter().map(nested).collect()),
        Value::Object(fields) => Tree::Map(by_key(fields)),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Tree::Plain(plain),
    }
}

/// The rank of a key in neither list.
const PLAIN: (usize, usize) = (1, 0);

fn place(key: &str) -> (usize, usize) {
    let at = |list: &[&str]| list.iter().position(|k| *k == key);
    match (at(FIRST), at(LAST)) {
        (Some(first), _) => (0, first),
        (None, None) => PLAIN,
        (None, Some(last)) => (2, last),
    }
}
