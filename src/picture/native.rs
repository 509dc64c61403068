//! The neutral JSON shape, from which front ends make their own.

use crate::picture::Scene;
use crate::picture::facts::{facts, link_facts, link_id};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// Version of the shape; grows when a field changes its meaning, not when one is added.
const VERSION: u32 = 1;

/// The picture as `{batch, version, generated_at, nodes, edges, groups, layout}`.
pub(super) fn draw(scene: &Scene<'_>) -> Drawn {
    let view = scene.view;
    let nodes: Vec<Value> = (0..view.nodes.len()).map(|i| node(scene, i)).collect();
    let edges: Vec<Value> = (0..view.edges.len()).map(|i| edge(scene, i)).collect();
    let mut layout = json!({ "direction": scene.wishes.direction.word() });
    if let Some(placed) = &scene.layout {
        layout["width"] = json!(placed.width);
        layout["height"] = json!(placed.height);
    }
    let groups: Vec<Value> = view
        .groups
        .iter()
        .map(|g| json!({ "id": g.id, "label": g.label, "parent": g.parent }))
        .collect();
    let mut picture = json!({
        "batch": view.title,
        "version": VERSION,
        "nodes": nodes,
        "edges": edges,
        "groups": groups,
        "layout": layout,
    });
    if let Some(at) = scene.wishes.generated_at {
        picture["generated_at"] = json!(at.to_string());
    }
    Drawn::Json(picture)
}

fn node(scene: &Scene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let mut node = facts(i, item);
    node.insert("id".to_owned(), json!(item.code));
    if let Some(layout) = &scene.layout {
        let rect = layout.boxes[i];
        for (key, value) in [("x", rect.x), ("y", rect.y), ("w", rect.w), ("h", rect.h)] {
            node.insert(key.to_owned(), json!(value));
        }
    }
    Value::Object(node)
}

fn edge(scene: &Scene<'_>, i: usize) -> Value {
    let link = &scene.view.edges[i];
    let mut edge = link_facts(link, scene.critical_edges[i]);
    edge.insert("id".to_owned(), json!(link_id(scene.view, link)));
    edge.insert("source".to_owned(), json!(scene.view.nodes[link.source].code));
    edge.insert("target".to_owned(), json!(scene.view.nodes[link.target].code));
    if let Some(layout) = &scene.layout {
        edge.insert("points".to_owned(), json!(layout.routes[i]));
    }
    Value::Object(edge)
}
