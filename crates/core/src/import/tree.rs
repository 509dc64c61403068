//! A tree of YAML or JSON, read key by key.

use crate::definition::{NodeValue, SourceNode, parse};
use crate::import::draft::Draft;
use crate::import::note::ImportOrigin;
use std::sync::Arc;

/// Reads a text as YAML or JSON; a fault of it is in the draft.
pub(crate) fn tree(file: &str, text: &str, draft: &mut Draft) -> Option<SourceNode> {
    parse(&Arc::from(file), text, &mut draft.report)
}

/// Where a node stands.
pub(crate) fn origin(node: &SourceNode) -> ImportOrigin {
    ImportOrigin::new(node.at.file.as_ref(), u64::from(node.at.line))
}

/// What a map has under a key; of a key without a value, and of what is no map, nothing.
pub(crate) fn get<'a>(node: &'a SourceNode, key: &str) -> Option<&'a SourceNode> {
    let NodeValue::Map(entries) = &node.value else { return None };
    let found = entries.iter().find(|(k, _)| k.value == key).map(|(_, value)| value)?;
    (!matches!(found.value, NodeValue::Null)).then_some(found)
}

/// The first of several keys that is there: versions of a system call one thing differently.
pub(crate) fn any<'a>(node: &'a SourceNode, keys: &[&str]) -> Option<&'a SourceNode> {
    keys.iter().find_map(|key| get(node, key))
}

/// The text of a plain value under a key.
pub(crate) fn word<'a>(node: &'a SourceNode, key: &str) -> Option<&'a str> {
    plain(get(node, key)?)
}

/// The text of a plain value.
pub(crate) fn plain(node: &SourceNode) -> Option<&str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
    }
}

/// The items of a list under a key; of anything else nothing.
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

/// Whether a plain value says yes; `default` where there is none.
pub(crate) fn is_yes(node: &SourceNode, key: &str) -> Option<bool> {
    let word = word(node, key)?.to_ascii_lowercase();
    Some(matches!(word.as_str(), "true" | "yes" | "y" | "on" | "1"))
}

/// A whole number under a key; what is none is a fault.
pub(crate) fn number(node: &SourceNode, key: &str, draft: &mut Draft) -> Option<i64> {
    let found = get(node, key)?;
    let text = plain(found).unwrap_or_default();
    let number = text.trim().parse::<i64>();
    if number.is_err() {
        draft.fault(&origin(found), format!("{key} is {text:?}, no whole number"), "");
    }
    number.ok()
}
