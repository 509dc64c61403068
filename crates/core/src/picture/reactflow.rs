//! Renders a React Flow `ReactFlowJsonObject`. React Flow computes no layout, so every node has a position and size.

use crate::domain::job::queue::QueueStatus;
use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{group_id, labelled, link_facts, link_id};
use crate::picture::formats::{ArrowDirection, Drawn};
use crate::picture::layout::{Layout, Rect};
use crate::picture::view::{PictureEdge, SUCCESS};
use serde_json::{Value, json};

/// `{nodes, edges, viewport}`; frames come before their content.
pub(super) fn draw_reactflow<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut nodes = Vec::with_capacity(view.nodes.len());
    if scene.framed() {
        // An inner frame comes after its outer frame, however the groups are listed.
        let mut waiting: Vec<usize> = (0..view.groups.len()).collect();
        let mut done: Vec<&str> = Vec::new();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|g| {
                let outer = view.groups[*g].parent.as_deref();
                let ready = outer.is_none_or(|outer| done.contains(&outer));
                if ready {
                    done.push(&view.groups[*g].id);
                    nodes.push(frame(scene, *g));
                }
                !ready
            });
            if waiting.len() == before {
                break;
            }
        }
    }
    nodes.extend((0..view.nodes.len()).map(|i| node_value(scene, i)));
    let edges = Document::list_of(view.edges.len(), move |i| edge_value(scene, i, &view.edges[i]));
    Drawn::Json(Document::object([
        ("nodes", json!(nodes).into()),
        ("edges", edges),
        ("viewport", json!({ "x": 0, "y": 0, "zoom": 1 }).into()),
    ]))
}

fn frame(scene: &PictureScene<'_>, g: usize) -> Value {
    let cluster = &scene.view.groups[g];
    let rect = scene.layout.as_ref().and_then(|l| l.frames[g]);
    let mut node = json!({
        "id": group_id(&cluster.id),
        "type": "group",
        "position": position(scene, rect, cluster.parent.as_deref()),
        "data": { "label": cluster.label },
    });
    if let Some(rect) = rect {
        node["width"] = json!(rect.w);
        node["height"] = json!(rect.h);
    }
    if let Some(outer) = &cluster.parent {
        node["parentId"] = json!(group_id(outer));
    }
    node
}

/// Relative to the surrounding frame, as React Flow requires.
fn position(scene: &PictureScene<'_>, rect: Option<Rect>, outer: Option<&str>) -> Value {
    let Some(rect) = rect else { return json!({ "x": 0, "y": 0 }) };
    let frame = |layout: &Layout| {
        let at = scene.view.groups.iter().position(|g| Some(g.id.as_str()) == outer)?;
        layout.frames[at]
    };
    let (x, y) = scene.layout.as_deref().and_then(frame).map_or((0, 0), |f| (f.x, f.y));
    json!({ "x": rect.x - x, "y": rect.y - y })
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let rect = scene.layout.as_ref().map(|l| l.boxes[i]);
    let (source, target) = match scene.wishes.direction {
        ArrowDirection::Lr => ("right", "left"),
        ArrowDirection::Tb => ("bottom", "top"),
    };
    let outer = scene.frame_of(i);
    let mut node = json!({
        "id": item.code,
        "type": "job",
        "position": position(scene, rect, outer),
        "width": rect.map_or(scene.sizes[i].w as i64, |r| r.w),
        "height": rect.map_or(scene.sizes[i].h as i64, |r| r.h),
        "data": labelled(i, item),
        "sourcePosition": source,
        "targetPosition": target,
    });
    if let Some(outer) = outer {
        node["parentId"] = json!(group_id(outer));
        node["extent"] = json!("parent");
    }
    node
}

fn edge_value(scene: &PictureScene<'_>, i: usize, link: &PictureEdge) -> Value {
    let view = scene.view;
    let status = view.nodes[link.target].state.as_ref().map(|s| s.status);
    let mut edge = json!({
        "id": link_id(view, link),
        "source": view.nodes[link.source].code,
        "target": view.nodes[link.target].code,
        "type": "smoothstep",
        "animated": status == Some(QueueStatus::Running),
        "data": link_facts(link, scene.critical_edges[i]),
        "markerEnd": { "type": "arrowclosed" },
    });
    if link.condition != SUCCESS {
        edge["label"] = json!(link.condition);
    }
    if scene.critical_edges[i] {
        edge["style"] = json!({ "strokeWidth": 3 });
    }
    edge
}
