//! Reads Flow 1.0: one file per job, dependencies by name, and one flow per job without dependents.

use super::properties::{Property, properties};
use super::{AzkabanFlow, FlowNode};
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A job, and the properties that it inherits from its directories.
type Inherits = (FlowNode, Vec<(String, String)>);

/// The flows of a project.
pub(super) fn flows(jobs: &[&Given], shared: &[&Given], draft: &mut Draft) -> Vec<AzkabanFlow> {
    let mut shared_by_folder: BTreeMap<&str, Vec<Property>> = BTreeMap::new();
    for file in shared {
        if let Some(text) = text(file, draft) {
            shared_by_folder.entry(folder(&file.path)).or_default().extend(properties(text));
        }
    }
    let mut nodes: Vec<Inherits> = Vec::new();
    for file in jobs {
        let Some(text) = text(file, draft) else { continue };
        // Properties of a directory apply to those below it, which may override them.
        let above = shared_by_folder.iter().filter(|(at, _)| is_below(folder(&file.path), at));
        let above = above.flat_map(|(_, all)| all.iter().map(|p| (p.key.clone(), p.value.clone())));
        let above: Vec<(String, String)> = above.collect();
        nodes.push((read_node(file, text), above));
    }
    gathered(nodes, draft)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn is_below(folder: &str, above: &str) -> bool {
    above.is_empty()
        || folder == above
        || folder.strip_prefix(above).is_some_and(|r| r.starts_with('/'))
}

fn read_node(file: &Given, text: &str) -> FlowNode {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let mut node = FlowNode {
        at: ImportOrigin::new(&file.path, 1),
        name,
        kind: String::new(),
        config: Vec::new(),
        parents: Vec::new(),
        condition: None,
        nodes: Vec::new(),
        is_last: false,
    };
    for Property { key, value, line } in properties(text) {
        let at = ImportOrigin::new(&file.path, line);
        match key.as_str() {
            "type" => node.kind = value.trim().to_owned(),
            "dependencies" | "depends" => {
                let names = value.split(',').map(str::trim).filter(|n| !n.is_empty());
                node.parents.extend(names.map(|n| (at.clone(), n.to_owned())));
            }
            "condition" => node.condition = Some((at, value.trim().to_owned())),
            _ => node.config.push((key, value)),
        }
    }
    node
}

/// Connected jobs form one group, named after the last of them.
fn gathered(nodes: Vec<Inherits>, draft: &mut Draft) -> Vec<AzkabanFlow> {
    let mut part: HashMap<String, usize> = HashMap::new();
    for (at, (node, _)) in nodes.iter().enumerate() {
        let own = part.get(&node.name).copied().unwrap_or(at);
        let met: BTreeSet<usize> =
            node.parents.iter().filter_map(|(_, p)| part.get(p).copied()).chain([own]).collect();
        let one = met.first().copied().unwrap_or(at);
        part.values_mut().filter(|p| met.contains(p)).for_each(|p| *p = one);
        part.insert(node.name.clone(), one);
        for (_, parent) in &node.parents {
            part.insert(parent.clone(), one);
        }
    }
    let waited: BTreeSet<String> =
        nodes.iter().flat_map(|(n, _)| n.parents.iter().map(|(_, p)| p.clone())).collect();
    let mut parts: BTreeMap<usize, Vec<Inherits>> = BTreeMap::new();
    for node in nodes {
        let one = part.get(&node.0.name).copied().unwrap_or_default();
        parts.entry(one).or_default().push(node);
    }
    parts.into_values().map(|nodes| make_flow(nodes, &waited, draft)).collect()
}

fn make_flow(nodes: Vec<Inherits>, waited: &BTreeSet<String>, draft: &mut Draft) -> AzkabanFlow {
    let ends: Vec<&FlowNode> =
        nodes.iter().map(|(n, _)| n).filter(|n| !waited.contains(&n.name)).collect();
    let first = ends.first().copied().or(nodes.first().map(|(n, _)| n));
    let (at, name) = first.map_or_else(Default::default, |n| (n.at.clone(), n.name.clone()));
    if ends.len() > 1 {
        let names: Vec<&str> = ends.iter().map(|n| n.name.as_str()).collect();
        draft.note(
            Level::Differs,
            &at, &name,
            (format!("there these are flows of their own that share jobs: {}; here they are one group, which \
                      runs all of them", names.join(", ")),
             format!("原系统中这些是共用作业的多个流:{};此处合为一个作业组,一并运行", names.join("、"))),
            ("", ""),
        );
    }
    let mut config: Vec<(String, String)> = Vec::new();
    for (key, value) in nodes.iter().flat_map(|(_, shared)| shared) {
        config.retain(|(k, _)| k != key);
        config.push((key.clone(), value.clone()));
    }
    let is_last = |node: &FlowNode| !waited.contains(&node.name);
    let nodes = nodes.into_iter().map(|(n, _)| FlowNode { is_last: is_last(&n), ..n }).collect();
    AzkabanFlow { at, name, config, nodes, trigger: None }
}
