//! The data of a node, edge and group that every JSON shape contains besides positions, under the same keys in every
//! shape.

use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::picture::PictureScene;
use crate::picture::view::{
    DagView, LinkKind, PictureEdge, PictureNode, PictureNodeKind, PictureSubject,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The data of a node without its id: `code, name, type, kind, group, level, order, …`. Unknown values have no key,
/// except `start` and `end` of a job with a state.
pub(super) fn facts(order: usize, item: &PictureNode) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut put = |key: &str, value: Value| drop(facts.insert(key.to_owned(), value));
    put("code", json!(item.code));
    put("name", json!(item.name));
    put("kind", json!(item.kind.as_word()));
    put("level", json!(item.level));
    put("order", json!(order));
    if !item.job_type.is_empty() {
        put("type", json!(item.job_type));
    }
    if let Some(group) = &item.group {
        put("group", json!(group));
    }
    if let Some(source) = &item.source {
        put("source", json!(source));
    }
    if !item.tags.is_empty() {
        put("tags", json!(item.tags));
    }
    if let Some(state) = &item.state {
        let moment = |at: Option<Millis>| at.map(|at| at.to_string());
        put("status", json!(state.status.as_str()));
        if let Some(kind) = state.status.skip_kind() {
            put("skip_kind", json!(kind));
        }
        put("attempt", json!(state.attempt));
        put("start", json!(moment(state.start)));
        put("end", json!(moment(state.end)));
    }
    let took = item.state.as_ref().and_then(|state| state.time_taken());
    let times = [
        ("duration_sec", took),
        ("est_sec", item.timing.est_ms),
        ("slack_sec", item.timing.slack_ms),
    ];
    for (key, ms) in times {
        if let Some(ms) = ms {
            put(key, seconds(ms));
        }
    }
    if item.timing.is_assumed {
        put("est_assumed", json!(true));
    }
    if let Some(critical) = item.timing.critical {
        put("critical", json!(critical));
    }
    if !item.members.is_empty() {
        let word = |status: &Option<QueueStatus>| status.map_or("DEFINED", QueueStatus::as_str);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (status, number) in &item.members {
            *counts.entry(word(status)).or_default() += number;
        }
        put("jobs", json!(item.members.values().sum::<usize>()));
        put("statuses", json!(counts));
    }
    facts
}

/// The same with `label`, the display name that libraries show.
pub(super) fn labelled(order: usize, item: &PictureNode) -> Map<String, Value> {
    let mut facts = facts(order, item);
    facts.insert("label".to_owned(), json!(item.name));
    facts
}

/// `12` or `12.345`: whole seconds stay integers.
fn seconds(ms: i64) -> Value {
    if ms % 1_000 == 0 { json!(ms / 1_000) } else { json!(ms as f64 / 1_000.0) }
}

/// Id of an edge. No code contains a `>`, so it differs from every node id.
pub(super) fn link_id(view: &DagView, link: &PictureEdge) -> String {
    format!("{}->{}", view.nodes[link.source].code, view.nodes[link.target].code)
}

/// The data of an edge without its id and ends.
pub(super) fn link_facts(link: &PictureEdge, critical: bool) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("kind".to_owned(), json!(link.kind.as_word()));
    facts.insert("condition".to_owned(), json!(link.condition));
    if critical {
        facts.insert("critical".to_owned(), json!(true));
    }
    facts
}

/// The same with `id`, `source` and `target`, of edge `i`.
pub(super) fn whole_link(scene: &PictureScene<'_>, i: usize) -> Map<String, Value> {
    let (view, link) = (scene.view, &scene.view.edges[i]);
    let mut facts = link_facts(link, scene.critical_edges[i]);
    facts.insert("id".to_owned(), json!(link_id(view, link)));
    facts.insert("source".to_owned(), json!(view.nodes[link.source].code));
    facts.insert("target".to_owned(), json!(view.nodes[link.target].code));
    facts
}

/// Id of a group in shapes where groups are nodes. A job may have the same code as its group, but no code contains a
/// `/`.
pub(super) fn group_id(group: &str) -> String {
    format!("group/{group}")
}

/// The state as a CSS class: `success`, `upstream_failed`.
pub(super) fn class(item: &PictureNode) -> Option<String> {
    item.state.as_ref().map(|s| s.status.as_str().to_lowercase())
}

impl PictureNodeKind {
    pub(super) fn as_word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::External => "external",
            Self::Group => "group",
            Self::Tag => "tag",
        }
    }
}

impl LinkKind {
    pub(super) fn as_word(self) -> &'static str {
        match self {
            Self::Dependency => "dependency",
            Self::External => "external",
        }
    }
}

impl PictureSubject {
    pub(super) fn as_word(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Definition => "definition",
        }
    }
}
