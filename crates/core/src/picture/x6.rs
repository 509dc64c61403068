//! Renders JSON for AntV X6, as `graph.fromJSON` reads it.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{group_id, labelled, link_facts, link_id};
use crate::picture::formats::{ArrowDirection, Drawn};
use crate::picture::paint::fill_colour;
use crate::picture::view::{PictureEdge, SUCCESS};
use serde_json::{Value, json};

/// `{nodes, edges}`: every node has an input port and an output port.
pub(super) fn draw_x6<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut nodes = Vec::with_capacity(view.nodes.len());
    if scene.framed() {
        nodes.extend((0..view.groups.len()).map(|g| frame(scene, g)));
    }
    nodes.extend((0..view.nodes.len()).map(|i| node_value(scene, i)));
    let edges = Document::list_of(view.edges.len(), move |i| edge_value(scene, i, &view.edges[i]));
    Drawn::Json(Document::object([("nodes", json!(nodes).into()), ("edges", edges)]))
}

fn frame(scene: &PictureScene<'_>, g: usize) -> Value {
    let view = scene.view;
    let cluster = &view.groups[g];
    let inner = view.groups.iter().filter(|c| c.parent.as_ref() == Some(&cluster.id));
    let jobs = view.nodes.iter().filter(|n| n.group.as_ref() == Some(&cluster.id));
    let children: Vec<String> =
        inner.map(|c| group_id(&c.id)).chain(jobs.map(|n| n.code.clone())).collect();
    let mut frame = json!({
        "id": group_id(&cluster.id),
        "shape": "rect",
        "zIndex": -1,
        "children": children,
        "data": { "label": cluster.label, "kind": "frame" },
        "attrs": {
            "body": { "fill": "none", "stroke": "#9aa5b1", "rx": 8, "ry": 8 },
            "label": { "text": cluster.label, "refY": 14 },
        },
    });
    if let Some(outer) = &cluster.parent {
        frame["parent"] = json!(group_id(outer));
    }
    if let Some(rect) = scene.layout.as_ref().and_then(|l| l.frames[g]) {
        frame["x"] = json!(rect.x);
        frame["y"] = json!(rect.y);
        frame["width"] = json!(rect.w);
        frame["height"] = json!(rect.h);
    }
    frame
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let (entry, exit) = match scene.wishes.direction {
        ArrowDirection::Lr => ("left", "right"),
        ArrowDirection::Tb => ("top", "bottom"),
    };
    let critical = item.timing.critical == Some(true);
    let mut node = json!({
        "id": item.code,
        "shape": "rect",
        "width": scene.sizes[i].w,
        "height": scene.sizes[i].h,
        "label": item.name,
        "data": labelled(i, item),
        "attrs": { "body": {
            "fill": fill_colour(item.state.as_ref().map(|s| s.status)),
            "stroke": "#52606d",
            "strokeWidth": if critical { 3 } else { 1 },
            "rx": 6,
            "ry": 6,
        } },
        "ports": {
            "groups": { "in": { "position": entry }, "out": { "position": exit } },
            "items": [{ "id": "in", "group": "in" }, { "id": "out", "group": "out" }],
        },
    });
    if let Some(layout) = &scene.layout {
        let rect = layout.boxes[i];
        node["x"] = json!(rect.x);
        node["y"] = json!(rect.y);
        node["width"] = json!(rect.w);
        node["height"] = json!(rect.h);
    }
    if let Some(outer) = scene.frame_of(i) {
        node["parent"] = json!(group_id(outer));
    }
    node
}

fn edge_value(scene: &PictureScene<'_>, i: usize, link: &PictureEdge) -> Value {
    let view = scene.view;
    let mut edge = json!({
        "id": link_id(view, link),
        "shape": "edge",
        "source": { "cell": view.nodes[link.source].code, "port": "out" },
        "target": { "cell": view.nodes[link.target].code, "port": "in" },
        "data": link_facts(link, scene.critical_edges[i]),
    });
    if scene.critical_edges[i] {
        edge["attrs"] = json!({ "line": { "strokeWidth": 3 } });
    }
    if link.condition != SUCCESS {
        edge["labels"] = json!([link.condition]);
    }
    edge
}
