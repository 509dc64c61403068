//! Reads Flow 2.0: one YAML file per flow.

use super::trigger::read_trigger;
use super::{AzkabanFlow, FlowNode};
use crate::definition::NodeValue;
use crate::definition::SourceNode as Tree;
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::keys::{Hint, KeyNote, KnownKey, check_keys, hint, noted, read_key};
use crate::import::note::Level;
use crate::import::tree::{entries, get, items, origin, plain, tree, word};

/// Keys of a flow file, and of a node in it.
pub(in crate::import) const FLOW_KEYS: &[KnownKey] = &[
    read_key("config"),
    read_key("nodes"),
    read_key("trigger"),
    noted("name", &[], OF_FILE),
    noted("type", &["flow"], OF_FILE),
    noted("dependsOn", &[], OF_FILE),
    noted("condition", &[], OF_FILE),
];
const OF_FILE: Hint = hint(
    "a flow has the name of its file and waits for nothing, there, too",
    "流以文件命名且不等待其他节点,原系统亦然",
);
pub(in crate::import) const NODE_KEYS: &[KnownKey] = &[
    read_key("name"),
    read_key("type"),
    read_key("config"),
    read_key("dependsOn"),
    read_key("condition"),
    read_key("nodes"),
    read_key("trigger"),
];

pub(super) fn read_flow(file: &Given, draft: &mut Draft) -> Option<AzkabanFlow> {
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
    check_keys(&root, &[FLOW_KEYS], &name, draft);
    Some(AzkabanFlow {
        at,
        name: name.clone(),
        config: config(&root, &name, draft),
        nodes,
        trigger,
    })
}

fn config(node: &Tree, about: &str, draft: &mut Draft) -> Vec<(String, String)> {
    let Some(config) = get(node, "config") else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in entries(config) {
        match &value.value {
            NodeValue::Text(text) => found.push((key.to_owned(), text.clone())),
            NodeValue::Null => found.push((key.to_owned(), String::new())),
            NodeValue::List(_) | NodeValue::Map(_) => {
                let at = origin(value);
                let note = KeyNote { at: &at, about, key, value: None };
                let single = hint("properties are single values, there, too", "属性只能是单个值");
                draft.note_key(note, single);
            }
        }
    }
    found
}

fn nodes(above: &Tree, draft: &mut Draft) -> Vec<FlowNode> {
    let mut found = Vec::new();
    for one in items(above, "nodes") {
        let at = origin(one);
        let Some(name) = word(one, "name").map(str::trim).filter(|n| !n.is_empty()) else {
            draft.fault(&at, "this node has no name", "add name:");
            continue;
        };
        let kind = word(one, "type").unwrap_or_default().trim().to_owned();
        check_keys(one, &[NODE_KEYS], name, draft);
        let mut inner = nodes(one, draft);
        if kind != "flow" && !inner.is_empty() {
            let flows_alone =
                hint("only a node of type flow has nodes", "只有 flow 类型的节点有 nodes");
            draft
                .note_key(KeyNote { at: &at, about: name, key: "nodes", value: None }, flows_alone);
            inner.clear();
        }
        let own = config(one, name, draft);
        for child in &mut inner {
            // Properties of a flow apply to its nodes, which may override them.
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
                &origin(trigger), name,
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
        found.push(FlowNode {
            is_last: false,
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
