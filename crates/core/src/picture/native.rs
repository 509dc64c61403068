//! Renders the neutral JSON shape, from which front ends derive their own.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{facts, whole_link};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// Version of the shape; increases when a field changes its meaning, not when one is added.
const VERSION: u32 = 1;

/// The picture as `{batch, version, generated_at, nodes, edges, groups, layout}`.
pub(super) fn draw_native<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut layout = json!({ "direction": scene.wishes.direction.as_letters() });
    if let Some(placed) = &scene.layout {
        layout["width"] = json!(placed.width);
        layout["height"] = json!(placed.height);
    }
    let groups: Vec<Value> = view
        .groups
        .iter()
        .map(|g| json!({ "id": g.id, "label": g.label, "parent": g.parent }))
        .collect();
    let at = scene.wishes.generated_at.map(|at| ("generated_at", json!(at.to_string()).into()));
    let keys = [
        ("batch", json!(view.title).into()),
        ("version", json!(VERSION).into()),
        ("nodes", Document::list_of(view.nodes.len(), move |i| node_value(scene, i))),
        ("edges", Document::list_of(view.edges.len(), move |i| edge_value(scene, i))),
        ("groups", json!(groups).into()),
        ("layout", layout.into()),
    ];
    Drawn::Json(Document::object(keys.into_iter().chain(at)))
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
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

fn edge_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let mut edge = whole_link(scene, i);
    if let Some(layout) = &scene.layout {
        edge.insert("points".to_owned(), json!(layout.routes[i]));
    }
    Value::Object(edge)
}
