//! D3's force layout, and whatever else reads nodes and links.

use crate::picture::Scene;
use crate::picture::facts::{labelled, link_facts, link_id};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `{nodes, links}`; positions are of the middle, where `forceSimulation` starts from.
pub(super) fn draw(scene: &Scene<'_>) -> Drawn {
    let view = scene.view;
    let node = |(i, item)| {
        let mut node = labelled(i, item);
        node.insert("id".to_owned(), json!(item.code));
        if let Some(layout) = &scene.layout {
            let (x, y) = layout.boxes[i].centre();
            node.insert("x".to_owned(), json!(x));
            node.insert("y".to_owned(), json!(y));
        }
        Value::Object(node)
    };
    let links = view.edges.iter().enumerate().map(|(i, link)| {
        let mut facts = link_facts(link, scene.critical_edges[i]);
        facts.insert("id".to_owned(), json!(link_id(view, link)));
        facts.insert("source".to_owned(), json!(view.nodes[link.source].code));
        facts.insert("target".to_owned(), json!(view.nodes[link.target].code));
        Value::Object(facts)
    });
    let nodes: Vec<Value> = view.nodes.iter().enumerate().map(node).collect();
    Drawn::Json(json!({ "nodes": nodes, "links": links.collect::<Vec<_>>() }))
}
