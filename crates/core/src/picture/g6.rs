//! Renders JSON for AntV G6, version 5, as `new Graph({ data })` and `graph.setData` read it.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{class, group_id, labelled, link_facts, link_id};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `{nodes, edges, combos}`; positions are centres.
pub(super) fn draw_g6<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let nodes = Document::list_of(view.nodes.len(), move |i| node_value(scene, i));
    let edges = Document::list_of(view.edges.len(), move |i| {
        let link = &view.edges[i];
        json!({
            "id": link_id(view, link),
            "source": view.nodes[link.source].code,
            "target": view.nodes[link.target].code,
            "data": link_facts(link, scene.critical_edges[i]),
            "style": { "endArrow": true },
            "states": if scene.critical_edges[i] { vec!["critical"] } else { vec![] },
        })
    });
    let mut combos = Vec::new();
    for cluster in view.groups.iter().filter(|_| scene.framed()) {
        let mut combo = json!({
            "id": group_id(&cluster.id),
            "data": { "label": cluster.label },
            "style": { "labelText": cluster.label },
        });
        if let Some(outer) = &cluster.parent {
            combo["combo"] = json!(group_id(outer));
        }
        combos.push(combo);
    }
    Drawn::Json(Document::object([
        ("nodes", nodes),
        ("edges", edges),
        ("combos", json!(combos).into()),
    ]))
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let mut states: Vec<String> = class(item).into_iter().collect();
    if item.timing.critical == Some(true) {
        states.push("critical".to_owned());
    }
    let mut style = json!({ "size": [scene.sizes[i].w, scene.sizes[i].h], "labelText": item.name });
    if let Some(layout) = &scene.layout {
        let rect = layout.boxes[i];
        let (x, y) = rect.centre();
        style = json!({ "size": [rect.w, rect.h], "labelText": item.name, "x": x, "y": y });
    }
    let mut node = json!({
        "id": item.code,
        "type": "rect",
        "data": labelled(i, item),
        "states": states,
        "style": style,
    });
    if let Some(outer) = scene.frame_of(i) {
        node["combo"] = json!(group_id(outer));
    }
    node
}
