//! Renders JSON Graph Format, version 2: nodes are an object, and all our keys are inside `metadata`.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{facts, link_facts, link_id};
use crate::picture::formats::Drawn;
use serde_json::{Map, Value, json};

/// `{graph: {id, directed, type, label, metadata, nodes, edges}}`.
pub(super) fn draw_jgf<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut nodes = Map::new();
    for (i, item) in view.nodes.iter().enumerate() {
        let mut metadata = facts(i, item);
        if let Some(layout) = &scene.layout {
            let rect = layout.boxes[i];
            metadata.insert("x".to_owned(), json!(rect.x));
            metadata.insert("y".to_owned(), json!(rect.y));
        }
        nodes.insert(item.code.clone(), json!({ "label": item.name, "metadata": metadata }));
    }
    let edges = Document::list_of(view.edges.len(), move |i| {
        let link = &view.edges[i];
        json!({
            "id": link_id(view, link),
            "source": view.nodes[link.source].code,
            "target": view.nodes[link.target].code,
            "relation": link.condition,
            "metadata": link_facts(link, scene.critical_edges[i]),
        })
    });
    let groups: Vec<Value> = view
        .groups
        .iter()
        .map(|g| json!({ "id": g.id, "label": g.label, "parent": g.parent }))
        .collect();
    let label = view.groups.first().map_or(view.title.as_str(), |g| g.label.as_str());
    let metadata = json!({ "groups": groups, "direction": scene.wishes.direction.as_letters() });
    let graph = Document::object([
        ("id", json!(view.title).into()),
        ("directed", json!(true).into()),
        ("type", json!(view.subject.as_word()).into()),
        ("label", json!(label).into()),
        ("metadata", metadata.into()),
        ("nodes", Value::Object(nodes).into()),
        ("edges", edges),
    ]);
    Drawn::Json(Document::object([("graph", graph)]))
}
