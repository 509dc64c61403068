//! D3's force layout, and whatever else reads nodes and links.

use crate::picture::Scene;
use crate::picture::document::Document;
use crate::picture::facts::{labelled, link_facts, link_id};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `{nodes, links}`; positions are of the middle, where `forceSimulation` starts from.
pub(super) fn draw<'a>(scene: &'a Scene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let nodes = Document::list(view.nodes.len(), move |i| {
        let item = &view.nodes[i];
        let mut node = labelled(i, item);
        node.insert("id".to_owned(), json!(item.code));
        if let Some(layout) = &scene.layout {
            let (x, y) = layout.boxes[i].centre();
            node.insert("x".to_owned(), json!(x));
            node.insert("y".to_owned(), json!(y));
        }
        Value::Object(node)
    });
    let links = Document::list(view.edges.len(), move |i| {
        let link = &view.edges[i];
        let mut facts = link_facts(link, scene.critical_edges[i]);
        facts.insert("id".to_owned(), json!(link_id(view, link)));
        facts.insert("source".to_owned(), json!(view.nodes[link.source].code));
        facts.insert("target".to_owned(), json!(view.nodes[link.target].code));
        Value::Object(facts)
    });
    Drawn::Json(Document::object([("nodes", nodes), ("links", links)]))
}
