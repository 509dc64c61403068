//! Flow 2.0: a YAML file for each flow.

use super::trigger::read_trigger;
use super::{Flow, Node};
use crate::definition::Node as Tree;
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::note::Level;
use crate::import::tree::{entries, get, items, origin, plain, tree, word};

pub(super) fn flow(file: &Given, draft: &mut Draft) -> Option<Flow> {
    let text = text(file, draft)?;
    let root = tree(&file.path, text, draft)?;
    let at = origin(&root);
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let nodes = nodes(&root, draft);
    if nodes.is_empty() {
        draft.fault(&at, "this flow has no nodes", "add nodes: with name and type");
        return None;
    }
    let trigger = read_trigger(&root, draft);
    Some(Flow { at, name, config: config(&root), nodes, trigger })
}

fn config(node: &Tree) -> Vec<(String, String)> {
    let Some(config) = get(node, "config") else { return Vec::new() };
    let pairs = entries(config).filter_map(|(key, value)| Some((key, plain(value)?)));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn nodes(above: &Tree, draft: &mut Draft) -> Vec<Node> {
    let mut found = Vec::new();
    for one in items(above, "nodes") {
        let at = origin(one);
        let Some(name) = word(one, "name").map(str::trim).filter(|n| !n.is_empty()) else {
            draft.fault(&at, "this node has no name", "add name:");
            continue;
        };
        let kind = word(one, "type").unwrap_or_default().trim().to_owned();
        let mut inner = nodes(one, draft);
        let own = config(one);
        for child in &mut inner {
            // What a flow says holds for its nodes, where they do not say it anew.
            let new = own.iter().filter(|(k, _)| child.config.iter().all(|(c, _)| c != k));
            let new: Vec<(String, String)> = new.cloned().collect();
            child.config.extend(new);
        }
        if kind == "flow" && inner.is_empty() && get(one, "config").is_none() {
            draft.fault(&at, format!("flow {name} has no nodes"), "add nodes:, or take it out");
        }
        if let Some(trigger) = get(one, "trigger") {
            draft.note(
                Level::LeftOut,
                (&origin(trigger), name),
                (
                    "its trigger is left out: Azkaban starts a flow within a flow with the outer one",
                    "其 trigger 未迁移:Azkaban 中内嵌流随外层流启动",
                ),
                ("", ""),
            );
        }
        let parents = items(one, "dependsOn").iter();
        let parents = parents.filter_map(|p| Some((origin(p), plain(p)?.trim().to_owned())));
        let condition = get(one, "condition");
        let condition = condition.and_then(|c| Some((origin(c), plain(c)?.trim().to_owned())));
        found.push(Node {
            at,
            name: name.to_owned(),
            kind,
            config: own,
            parents: parents.collect(),
            condition: condition.filter(|(_, text)| !text.is_empty()),
            nodes: inner,
        });
    }
    found
}
