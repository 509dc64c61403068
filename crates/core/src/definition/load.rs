//! Detects the format of a definition, and loads it.

use crate::definition::budget::{Budget, Limit};
use crate::definition::build;
use crate::definition::csv;
use crate::definition::fault::{DefinitionFault, FaultReport, Faults, Located, SourcePlace};
use crate::definition::files::{DefinitionFiles, FileReader, excuse, label};
use crate::definition::include;
use crate::definition::keys::TOP;
use crate::definition::node::{self, NodeValue, SourceNode};
use crate::definition::read;
use crate::definition::schedules::SchedulePlaces;
use crate::definition::template;
use crate::domain::job::{Definition, JobKind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const JOBS_CSV: &str = "job_def.csv";
const DEPENDENCIES_CSV: &str = "job_dependency.csv";
/// The file next to the CSV tables, with everything that a table of jobs cannot express.
const SOURCES_YAML: &str = "sources.yaml";
/// The sections that the two tables contain.
const IN_TABLES: &[&str] = &["jobs", "dependencies"];

/// A valid definition with its warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The definition, including the text of every file that it names.
    pub definition: Definition,
    /// Findings that are permitted, but probably not intended.
    pub warnings: Vec<DefinitionFault>,
    pub places: SchedulePlaces,
}

/// Reads and checks a definition: `.yaml`, `.yml` or `.json`; `job_def.csv`, or a folder that contains it. `read` reads
/// a whole file; `kinds` are the known job types. Every fault is reported, not only the first. Whether schedules ever
/// fire is checked separately, see [`Loaded::look_at_schedules`].
pub fn load_definition(
    path: &Path,
    read: &dyn Fn(&Path) -> std::io::Result<String>,
    kinds: &[JobKind],
) -> Result<Loaded, Faults> {
    load_within(path, read, kinds, Budget::default())
}

/// The same within a budget.
pub fn load_within(
    path: &Path,
    read: &dyn Fn(&Path) -> std::io::Result<String>,
    kinds: &[JobKind],
    budget: Budget,
) -> Result<Loaded, Faults> {
    let mut report = FaultReport::within(budget);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let (folder, tree) = match extension.to_ascii_lowercase().as_str() {
        "yaml" | "yml" | "json" => (parent(path), read_yaml(path, read, &mut report)),
        "csv" => {
            let is_second = path.file_name().is_some_and(|n| n == DEPENDENCIES_CSV);
            let jobs = if is_second { path.with_file_name(JOBS_CSV) } else { path.to_owned() };
            (parent(path), read_csv_pair(&jobs, read, &mut report))
        }
        _ => (path.to_owned(), read_csv_pair(&path.join(JOBS_CSV), read, &mut report)),
    };
    let mut files = DefinitionFiles::new(folder, read);
    let whole = SourcePlace::new(&label(path), 0);
    let definition = tree.and_then(|tree| {
        let (tree, own_defaults) = include::gather(tree, path, &mut files, &mut report);
        if !has_few_jobs(&tree, &mut report) || !report.has_time(&whole) {
            return None;
        }
        let tree = template::expand(tree, &mut report);
        if !report.has_time(&whole) {
            return None;
        }
        let raw = read::read_root(tree, own_defaults, &mut report);
        report.has_time(&whole).then(|| build::build(raw, &whole, &files, kinds, &mut report))
    });
    let warnings = report.finish()?;
    // Without a tree there is a fault, so a valid definition always exists here.
    let (definition, places) = definition.unwrap_or_default();
    Ok(Loaded { definition, warnings, places })
}

/// Whether the number of jobs is within the budget.
fn has_few_jobs(tree: &SourceNode, report: &mut FaultReport) -> bool {
    let NodeValue::Map(top) = &tree.value else { return true };
    let Some((key, jobs)) = top.iter().find(|(key, _)| key.value == "jobs") else { return true };
    let count = match &jobs.value {
        NodeValue::Map(entries) => entries.len(),
        NodeValue::List(items) => items.len(),
        NodeValue::Null | NodeValue::Text(_) => 0,
    };
    let at = key.at.clone();
    let defaults = top.iter().find(|(key, _)| key.value == "defaults");
    let copied = defaults.map_or(0, |(_, node)| node.count_values().saturating_mul(count));
    report.is_within(Limit::Jobs, count, &at) && report.may_copy(copied, &at)
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

fn read_text(
    path: &Path,
    read: FileReader<'_>,
    hint: &str,
    report: &mut FaultReport,
) -> Option<(Arc<str>, String)> {
    let file = label(path);
    match read(path) {
        Ok(text) => Some((file, text)),
        Err(error) => {
            let (why, cure) = excuse(&error);
            report.fault(
                &SourcePlace::new(&file, 0),
                format!("this file {why}"),
                format!("{cure}{hint}"),
            );
            None
        }
    }
}

fn read_yaml(path: &Path, read: FileReader<'_>, report: &mut FaultReport) -> Option<SourceNode> {
    let (file, text) = read_text(path, read, "", report)?;
    node::parse(&file, &text, report)
}

fn read_csv_pair(
    jobs: &Path,
    read: FileReader<'_>,
    report: &mut FaultReport,
) -> Option<SourceNode> {
    let hint =
        "; a definition is a .yaml, .yml or .json file, job_def.csv or a folder that holds it";
    let (file, text) = read_text(jobs, read, hint, report)?;
    let list = csv::read_jobs(&file, &text, report);
    let beside = jobs.with_file_name(DEPENDENCIES_CSV);
    let file = label(&beside);
    let edges = match read(&beside) {
        Ok(text) => Some(csv::dependencies(&file, &text, report)),
        Err(error) => {
            let (why, cure) = excuse(&error);
            let at = SourcePlace::new(&file, 0);
            if error.kind() == std::io::ErrorKind::NotFound {
                let cure = "every job starts at once; add the file if some wait for others";
                report.add_warning(&at, format!("this file {why}"), cure);
            } else {
                report.fault(&at, format!("this file {why}"), cure);
            }
            None
        }
    };
    let files = DefinitionFiles::new(parent(jobs), read);
    let mut top =
        files.read_tree(SOURCES_YAML, report).map_or_else(Vec::new, |tree| others(tree, report));
    // An included file may define the groups.
    if !top.iter().any(|(key, _)| ["groups", "include"].contains(&key.value.as_str())) {
        top.push(named("groups", groups_of(&list)));
    }
    top.push(named("jobs", list));
    top.extend(edges.map(|edges| named("dependencies", edges)));
    Some(SourceNode { at: SourcePlace::new(&label(jobs), 0), value: NodeValue::Map(top) })
}

fn named(key: &str, node: SourceNode) -> (Located<String>, SourceNode) {
    (Located::new(&node.at, key.to_owned()), node)
}

/// The content of `sources.yaml` except jobs.
fn others(tree: SourceNode, report: &mut FaultReport) -> Vec<(Located<String>, SourceNode)> {
    let beside: Vec<&str> = TOP.iter().copied().filter(|k| !IN_TABLES.contains(k)).collect();
    let cure = format!("its keys are {}", beside.join(", "));
    let NodeValue::Map(mut entries) = tree.value else {
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

/// A group without further keys for each code in the column `group_code`.
fn groups_of(jobs: &SourceNode) -> SourceNode {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let NodeValue::List(rows) = &jobs.value else {
        return jobs.clone();
    };
    for row in rows {
        let NodeValue::Map(cells) = &row.value else {
            continue;
        };
        for (_, cell) in cells.iter().filter(|(key, _)| key.value == "group") {
            if let NodeValue::Text(code) = &cell.value
                && seen.insert(code.clone())
            {
                let bare = SourceNode { at: cell.at.clone(), value: NodeValue::Null };
                found.push((Located::new(&cell.at, code.clone()), bare));
            }
        }
    }
    SourceNode { at: jobs.at.clone(), value: NodeValue::Map(found) }
}
