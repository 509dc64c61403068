//! Accesses a tree of YAML or JSON by keys.

use crate::definition::{NodeValue, SourceNode, parse};
use crate::import::draft::Draft;
use crate::import::note::ImportOrigin;
use std::sync::Arc;

/// Parses a text as YAML or JSON; faults go to the draft.
pub(crate) fn tree(file: &str, text: &str, draft: &mut Draft) -> Option<SourceNode> {
    parse(&Arc::from(file), text, &mut draft.report)
}

/// The place of a node.
pub(crate) fn origin(node: &SourceNode) -> ImportOrigin {
    ImportOrigin::new(node.at.file.as_ref(), u64::from(node.at.line))
}

/// The value of a key in a map; `None` if it is absent or null, or if the node is not a map.
pub(crate) fn get<'a>(node: &'a SourceNode, key: &str) -> Option<&'a SourceNode> {
    let NodeValue::Map(entries) = &node.value else { return None };
    let found = entries.iter().find(|(k, _)| k.value == key).map(|(_, value)| value)?;
    (!matches!(found.value, NodeValue::Null)).then_some(found)
}

/// The value of the first key that exists: versions of a system use different names.
pub(crate) fn any<'a>(node: &'a SourceNode, keys: &[&str]) -> Option<&'a SourceNode> {
    keys.iter().find_map(|key| get(node, key))
}

/// The text of the scalar under a key.
pub(crate) fn word<'a>(node: &'a SourceNode, key: &str) -> Option<&'a str> {
    plain(get(node, key)?)
}

/// The text of a scalar.
pub(crate) fn plain(node: &SourceNode) -> Option<&str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
    }
}

/// The items of a list under a key; empty for any other value.
pub(crate) fn items<'a>(node: &'a SourceNode, key: &str) -> &'a [SourceNode] {
    get(node, key).map_or(&[], list)
}

/// The items of a list.
pub(crate) fn list(node: &SourceNode) -> &[SourceNode] {
    match &node.value {
        NodeValue::List(items) => items,
        NodeValue::Null | NodeValue::Text(_) | NodeValue::Map(_) => &[],
    }
}

/// The entries of a map, with their keys.
pub(crate) fn entries(node: &SourceNode) -> impl Iterator<Item = (&str, &SourceNode)> {
    let all = match &node.value {
        NodeValue::Map(entries) => entries.as_slice(),
        NodeValue::Null | NodeValue::Text(_) | NodeValue::List(_) => &[],
    };
    all.iter().map(|(key, value)| (key.value.as_str(), value))
}

/// The boolean under a key; `None` if there is none.
pub(crate) fn is_yes(node: &SourceNode, key: &str) -> Option<bool> {
    let word = word(node, key)?.to_ascii_lowercase();
    Some(matches!(word.as_str(), "true" | "yes" | "y" | "on" | "1"))
}

/// A whole number under a key; any other value is a fault.
pub(crate) fn number(node: &SourceNode, key: &str, draft: &mut Draft) -> Option<i64> {
    let found = get(node, key)?;
    let text = plain(found).unwrap_or_default();
    let number = text.trim().parse::<i64>();
    if number.is_err() {
        draft.fault(&origin(found), format!("{key} is {text:?}, no whole number"), "");
    }
    number.ok()
}
