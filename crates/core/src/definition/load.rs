//! Finds out which form a definition has, and reads it.

use crate::definition::budget::{Budget, Limit};
use crate::definition::build;
use crate::definition::csv;
use crate::definition::fault::{At, Fault, Faults, Place, Report};
use crate::definition::files::{Files, Reader, excuse, label};
use crate::definition::include;
use crate::definition::keys::TOP;
use crate::definition::node::{self, Node, Value};
use crate::definition::read;
use crate::definition::schedules::Places;
use crate::definition::template;
use crate::domain::job::{Definition, JobKind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const JOBS_CSV: &str = "job_def.csv";
const DEPENDENCIES_CSV: &str = "job_dependency.csv";
/// Beside the CSV files: what a table of jobs cannot say.
const SOURCES_YAML: &str = "sources.yaml";
/// What the two tables say themselves.
const IN_TABLES: &[&str] = &["jobs", "dependencies"];

/// A definition that is sound, and what may be worth a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The definition, with the text of every file it names.
    pub definition: Definition,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Fault>,
    pub places: Places,
}

/// Reads and checks a definition: `.yaml`, `.yml` or `.json`; `job_def.csv`, or a folder that
/// holds it. `read` reads a file whole; `kinds` are the job types there are. Every fault is
/// reported, not just the first. Whether its schedules ever fire is another question, see
/// [`Loaded::look_at_schedules`].
pub fn load(
    path: &Path,
    read: &dyn Fn(&Path) -> std::io::Result<String>,
    kinds: &[JobKind],
) -> Result<Loaded, Faults> {
    load_within(path, read, kinds, Budget::default())
}

/// The same, for no more than the budget.
pub fn load_within(
    path: &Path,
    read: &dyn Fn(&Path) -> std::io::Result<String>,
    kinds: &[JobKind],
    budget: Budget,
) -> Result<Loaded, Faults> {
    let mut report = Report::within(budget);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let (folder, tree) = match extension.to_ascii_lowercase().as_str() {
        "yaml" | "yml" | "json" => (parent(path), yaml(path, read, &mut report)),
        "csv" => {
            let is_second = path.file_name().is_some_and(|n| n == DEPENDENCIES_CSV);
            let jobs = if is_second { path.with_file_name(JOBS_CSV) } else { path.to_owned() };
            (parent(path), pair(&jobs, read, &mut report))
        }
        _ => (path.to_owned(), pair(&path.join(JOBS_CSV), read, &mut report)),
    };
    let mut files = Files::new(folder, read);
    let whole = Place::new(&label(path), 0);
    let definition = tree.and_then(|tree| {
        let (tree, own_defaults) = include::gather(tree, path, &mut files, &mut report);
        if !has_few_jobs(&tree, &mut report) || !report.has_time(&whole) {
            return None;
        }
        let tree = template::expand(tree, &mut report);
        if !report.has_time(&whole) {
            return None;
        }
        let raw = read::read(tree, own_defaults, &mut report);
        report.has_time(&whole).then(|| build::build(raw, &whole, &files, kinds, &mut report))
    });
    let warnings = report.finish()?;
    // Without a tree there is a fault, so a sound definition is always here.
    let (definition, places) = definition.unwrap_or_default();
    Ok(Loaded { definition, warnings, places })
}

/// Whether the tree has no more jobs than the budget says.
fn has_few_jobs(tree: &Node, report: &mut Report) -> bool {
    let Value::Map(top) = &tree.value else { return true };
    let Some((key, jobs)) = top.iter().find(|(key, _)| key.value == "jobs") else { return true };
    let count = match &jobs.value {
        Value::Map(entries) => entries.len(),
        Value::List(items) => items.len(),
        Value::Null | Value::Text(_) => 0,
    };
    let at = key.at.clone();
    let defaults = top.iter().find(|(key, _)| key.value == "defaults");
    let copied = defaults.map_or(0, |(_, node)| node.size().saturating_mul(count));
    report.is_within(Limit::Jobs, count, &at) && report.may_copy(copied, &at)
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

fn text(
    path: &Path,
    read: Reader<'_>,
    hint: &str,
    report: &mut Report,
) -> Option<(Arc<str>, String)> {
    let file = label(path);
    match read(path) {
        Ok(text) => Some((file, text)),
        Err(error) => {
            let (why, cure) = excuse(&error);
            report.fault(
                &Place::new(&file, 0),
                format!("this file {why}"),
                format!("{cure}{hint}"),
            );
            None
        }
    }
}

fn yaml(path: &Path, read: Reader<'_>, report: &mut Report) -> Option<Node> {
    let (file, text) = text(path, read, "", report)?;
    node::parse(&file, &text, report)
}

fn pair(jobs: &Path, read: Reader<'_>, report: &mut Report) -> Option<Node> {
    let hint =
        "; a definition is a .yaml, .yml or .json file, job_def.csv or a folder that holds it";
    let (file, text) = text(jobs, read, hint, report)?;
    let list = csv::jobs(&file, &text, report);
    let beside = jobs.with_file_name(DEPENDENCIES_CSV);
    let file = label(&beside);
    let edges = match read(&beside) {
        Ok(text) => Some(csv::dependencies(&file, &text, report)),
        Err(error) => {
            let (why, cure) = excuse(&error);
            let at = Place::new(&file, 0);
            if error.kind() == std::io::ErrorKind::NotFound {
                let cure = "every job starts at once; add the file if some wait for others";
                report.warn(&at, format!("this file {why}"), cure);
            } else {
                report.fault(&at, format!("this file {why}"), cure);
            }
            None
        }
    };
    let files = Files::new(parent(jobs), read);
    let mut top =
        files.tree(SOURCES_YAML, report).map_or_else(Vec::new, |tree| others(tree, report));
    // An included file may hold the groups.
    if !top.iter().any(|(key, _)| ["groups", "include"].contains(&key.value.as_str())) {
        top.push(named("groups", groups_of(&list)));
    }
    top.push(named("jobs", list));
    top.extend(edges.map(|edges| named("dependencies", edges)));
    Some(Node { at: Place::new(&label(jobs), 0), value: Value::Map(top) })
}

fn named(key: &str, node: Node) -> (At<String>, Node) {
    (At::new(&node.at, key.to_owned()), node)
}

/// What `sources.yaml` says; jobs are not its business.
fn others(tree: Node, report: &mut Report) -> Vec<(At<String>, Node)> {
    let beside: Vec<&str> = TOP.iter().copied().filter(|k| !IN_TABLES.contains(k)).collect();
    let cure = format!("its keys are {}", beside.join(", "));
    let Value::Map(mut entries) = tree.value else {
        report.fault(&tree.at, "this file is not a map", cure);
        return Vec::new();
    };
    entries.retain(|(key, _)| {
        let fits = beside.contains(&key.value.as_str());
        if !fits {
            let what = format!("{} is not for {SOURCES_YAML}", key.value);
            report.fault(&key.at, what, cure.clone());
        }
        fits
    });
    entries
}

/// A bare group for each code in the column `group_code`.
fn groups_of(jobs: &Node) -> Node {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let Value::List(rows) = &jobs.value else {
        return jobs.clone();
    };
    for row in rows {
        let Value::Map(cells) = &row.value else {
            continue;
        };
        for (_, cell) in cells.iter().filter(|(key, _)| key.value == "group") {
            if let Value::Text(code) = &cell.value
                && seen.insert(code.clone())
            {
                let bare = Node { at: cell.at.clone(), value: Value::Null };
                found.push((At::new(&cell.at, code.clone()), bare));
            }
        }
    }
    Node { at: jobs.at.clone(), value: Value::Map(found) }
}
