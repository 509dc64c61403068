//! Renders JSON for dagre, as `json.read` of graphlib reads it, ready for `dagre.layout`.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{group_id, labelled, link_facts};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `{options, nodes: [{v, value, parent}], edges: [{v, w, value}], value}`.
pub(super) fn draw_dagre<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut nodes = Vec::with_capacity(view.nodes.len());
    for cluster in view.groups.iter().filter(|_| scene.framed()) {
        let mut node = json!({
            "v": group_id(&cluster.id),
            "value": { "label": cluster.label, "kind": "frame" },
        });
        if let Some(outer) = &cluster.parent {
            node["parent"] = json!(group_id(outer));
        }
        nodes.push(node);
    }
    nodes.extend((0..view.nodes.len()).map(|i| node_value(scene, i)));
    let edges = Document::list_of(view.edges.len(), move |i| {
        let link = &view.edges[i];
        json!({
            "v": view.nodes[link.source].code,
            "w": view.nodes[link.target].code,
            "value": link_facts(link, scene.critical_edges[i]),
        })
    });
    let options = json!({ "directed": true, "multigraph": false, "compound": scene.framed() });
    Drawn::Json(Document::object([
        ("options", options.into()),
        ("nodes", json!(nodes).into()),
        ("edges", edges),
        ("value", json!({ "rankdir": scene.wishes.direction.as_letters() }).into()),
    ]))
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let mut value = labelled(i, item);
    value.insert("width".to_owned(), json!(scene.sizes[i].w));
    value.insert("height".to_owned(), json!(scene.sizes[i].h));
    let mut node = json!({ "v": item.code, "value": value });
    if let Some(outer) = scene.frame_of(i) {
        node["parent"] = json!(group_id(outer));
    }
    node
}
