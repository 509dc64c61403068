//! Combines a definition and its included files into one tree; every value keeps its place, so that a fault names the
//! right file.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::fields::single;
use crate::definition::files::{DefinitionFiles, excuse, label};
use crate::definition::node::{self, NodeValue, SourceNode};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The only list whose entries have no name.
const UNNAMED: &str = "dependencies";

/// `defaults` of the included files, each for the jobs of its own file; `None` for a file without any.
pub(crate) type OwnDefaults = Vec<(Arc<str>, Option<SourceNode>)>;

/// The combined tree of a file and its includes, and the defaults of the includes.
pub(crate) fn gather(
    root: SourceNode,
    path: &Path,
    files: &mut DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> (SourceNode, OwnDefaults) {
    let mut gathering =
        Gathering { files, open: Vec::new(), done: Vec::new(), defaults: Vec::new(), report };
    let mut top = Vec::new();
    let at = root.at.clone();
    match root.value {
        NodeValue::Map(entries) => gathering.add_entries(entries, path, &mut top),
        value @ (NodeValue::Null | NodeValue::Text(_) | NodeValue::List(_)) => {
            return (SourceNode { at, value }, Vec::new());
        }
    }
    (SourceNode { at, value: NodeValue::Map(top) }, gathering.defaults)
}

type IncludedEntries = Vec<(Located<String>, SourceNode)>;

struct Gathering<'g, 'f> {
    files: &'g mut DefinitionFiles<'f>,
    /// The chain of files from the first to the current one.
    open: Vec<PathBuf>,
    done: Vec<PathBuf>,
    defaults: OwnDefaults,
    report: &'g mut FaultReport,
}

impl Gathering<'_, '_> {
    /// Adds the content of a file to `top`, then that of its includes.
    fn add_entries(&mut self, entries: IncludedEntries, path: &Path, top: &mut IncludedEntries) {
        self.open.push(plain(path));
        let mut includes = Vec::new();
        for (key, node) in entries {
            if key.value == "include" {
                includes.extend(names(node, self.report));
            } else {
                add_section(key, node, top, self.report);
            }
        }
        for name in includes {
            self.include(&name, top);
        }
        self.done.extend(self.open.pop());
    }

    fn include(&mut self, name: &Located<String>, top: &mut IncludedEntries) {
        let path = self.files.beside(name);
        let id = plain(&path);
        if let Some(from) = self.open.iter().position(|open| *open == id) {
            let ring = self.open[from..].iter().chain([&id]);
            let ring: Vec<String> = ring.map(|p| p.display().to_string()).collect();
            let what = format!("these files include one another in a ring: {}", ring.join(" -> "));
            self.report.fault(&name.at, what, "remove one of these includes");
        } else if !self.done.contains(&id) {
            self.read_included(name, &path, &id, top);
        }
    }

    fn read_included(
        &mut self,
        name: &Located<String>,
        path: &Path,
        id: &Path,
        top: &mut IncludedEntries,
    ) {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if !["yaml", "yml", "json"].contains(&extension.to_ascii_lowercase().as_str()) {
            let what = format!("include {} is neither YAML nor JSON", name.value);
            self.report.fault(&name.at, what, "include a .yaml, .yml or .json file");
            return;
        }
        let text = match (self.files.read)(path) {
            Ok(text) => text,
            Err(error) => {
                let (why, cure) = excuse(&error);
                self.report.fault(&name.at, format!("include {} {why}", id.display()), cure);
                return;
            }
        };
        let file = label(id);
        self.files.includes(&file, path);
        let Some(tree) = node::parse(&file, &text, self.report) else { return };
        let mut entries = match tree.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => Vec::new(),
            NodeValue::Text(_) | NodeValue::List(_) => {
                let what = format!("this file is {}, not a map", tree.value.kind());
                self.report.fault(
                    &tree.at,
                    what,
                    "write the keys of a definition: jobs:, sources:",
                );
                return;
            }
        };
        let own = entries.iter().position(|(key, _)| key.value == "defaults");
        self.defaults.push((file, own.map(|at| entries.remove(at).1)));
        self.add_entries(entries, path, top);
    }
}

/// The files in `include`: a list, or one.
fn names(node: SourceNode, report: &mut FaultReport) -> Vec<Located<String>> {
    let items = match node.value {
        NodeValue::List(items) => items,
        NodeValue::Null => Vec::new(),
        value @ (NodeValue::Text(_) | NodeValue::Map(_)) => vec![SourceNode { at: node.at, value }],
    };
    items.into_iter().filter_map(|item| single("include", item, report)).collect()
}

/// A path without `.` and `a/..`, by which a file is recognized.
fn plain(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(parts.components().next_back(), Some(Component::Normal(_))) =>
            {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

fn add_section(
    key: Located<String>,
    node: SourceNode,
    top: &mut IncludedEntries,
    report: &mut FaultReport,
) {
    let Some((_, there)) = top.iter_mut().find(|(k, _)| k.value == key.value) else {
        top.push((key, node));
        return;
    };
    let before = std::mem::replace(&mut there.value, NodeValue::Null);
    there.value = match (before, node.value) {
        (value, NodeValue::Null) | (NodeValue::Null, value) => value,
        (NodeValue::List(mut all), NodeValue::List(more)) => {
            all.extend(more);
            NodeValue::List(all)
        }
        (all, more) => {
            let mut all =
                named(&key.value, SourceNode { at: there.at.clone(), value: all }, report);
            let more = named(&key.value, SourceNode { at: node.at, value: more }, report);
            add_named(&key.value, &mut all, more, report);
            NodeValue::Map(all)
        }
    };
}

/// The singular name of an entry of a section.
pub(crate) fn singular(section: &str) -> &str {
    section.strip_suffix('s').unwrap_or(section)
}

fn add_named(
    section: &str,
    all: &mut IncludedEntries,
    more: IncludedEntries,
    report: &mut FaultReport,
) {
    let mut places: HashMap<String, SourcePlace> =
        all.iter().map(|(name, _)| (name.value.clone(), name.at.clone())).collect();
    for (name, node) in more {
        let Some(first) = places.get(&name.value) else {
            places.insert(name.value.clone(), name.at.clone());
            all.push((name, node));
            continue;
        };
        let (one, first) = (singular(section), first.seen_from(&name.at));
        let what = format!("{one} {} is defined twice, first {first}", name.value);
        report.fault(&name.at, what, "rename one of the two or remove it");
    }
}

/// The entries of a section by name; entries of a list contain their name.
pub(crate) fn named(section: &str, node: SourceNode, report: &mut FaultReport) -> IncludedEntries {
    let items = match node.value {
        NodeValue::Map(entries) => return entries,
        NodeValue::Null => return Vec::new(),
        NodeValue::List(items) if section != UNNAMED => items,
        value @ (NodeValue::Text(_) | NodeValue::List(_)) => {
            let what = format!("{section} is {} here and something else before", value.kind());
            report.fault(&node.at, what, "write the section in the same form in every file");
            return Vec::new();
        }
    };
    items.into_iter().filter_map(|item| with_name(section, item, report)).collect()
}

fn with_name(
    section: &str,
    item: SourceNode,
    report: &mut FaultReport,
) -> Option<(Located<String>, SourceNode)> {
    let one = singular(section);
    let NodeValue::Map(entries) = &item.value else {
        let what = format!("a {one} is {}, not a map", item.value.kind());
        report.fault(&item.at, what, "write its keys below it");
        return None;
    };
    // A job has both; it is identified by its code.
    let key = ["code", "name"].into_iter().find(|k| entries.iter().any(|(e, _)| e.value == **k));
    let Some((_, name)) = entries.iter().find(|(e, _)| Some(e.value.as_str()) == key) else {
        report.fault(&item.at, format!("a {one} without a name"), "give it one");
        return None;
    };
    let name = single(&format!("{one}: name"), name.clone(), report)?;
    Some((name, item))
}

impl SourcePlace {
    /// Describes this place as seen from the line of `other`.
    pub fn seen_from(&self, other: &Self) -> String {
        if self.file == other.file {
            format!("on line {}", self.line)
        } else {
            format!("in {}:{}", self.file, self.line)
        }
    }
}
