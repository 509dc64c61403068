//! Renders JSON for the Eclipse Layout Kernel, as `elk.layout` of elkjs reads it.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{group_id, labelled, link_facts, link_id};
use crate::picture::formats::{ArrowDirection, Drawn};
use serde_json::{Value, json};

/// `{id: "root", layoutOptions, children, edges}`; groups are nodes with children. Our fields are in `data`, which ELK
/// returns unchanged.
pub(super) fn draw_elk<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let direction = match scene.wishes.direction {
        ArrowDirection::Lr => "RIGHT",
        ArrowDirection::Tb => "DOWN",
    };
    let children = if scene.framed() {
        inside(scene, None)
    } else {
        (0..view.nodes.len()).map(|i| node_value(scene, i)).collect()
    };
    let edges = Document::list_of(view.edges.len(), move |i| {
        let link = &view.edges[i];
        json!({
            "id": link_id(view, link),
            "sources": [view.nodes[link.source].code],
            "targets": [view.nodes[link.target].code],
            "data": link_facts(link, scene.critical_edges[i]),
        })
    });
    let options = json!({
        "elk.algorithm": "layered",
        "elk.direction": direction,
        "elk.hierarchyHandling": "INCLUDE_CHILDREN",
    });
    Drawn::Json(Document::object([
        ("id", json!("root").into()),
        ("layoutOptions", options.into()),
        ("children", Value::Array(children).into()),
        ("edges", edges),
    ]))
}

/// Frames and nodes directly in a group, or in none.
fn inside(scene: &PictureScene<'_>, group: Option<&str>) -> Vec<Value> {
    let view = scene.view;
    let frames = view.groups.iter().filter(|g| g.parent.as_deref() == group).map(|g| {
        json!({
            "id": group_id(&g.id),
            "labels": [{ "text": g.label }],
            "layoutOptions": { "elk.padding": "[top=40,left=20,bottom=20,right=20]" },
            "children": inside(scene, Some(&g.id)),
        })
    });
    let here = (0..view.nodes.len()).filter(|i| view.nodes[*i].group.as_deref() == group);
    frames.chain(here.map(|i| node_value(scene, i))).collect()
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    json!({
        "id": item.code,
        "width": scene.sizes[i].w,
        "height": scene.sizes[i].h,
        "labels": [{ "text": item.name }],
        "data": labelled(i, item),
    })
}
