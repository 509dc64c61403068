//! Renders JSON for Cytoscape.js, as `cy.json({ elements })` and `cytoscape({ elements })` read it.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{class, group_id, labelled, whole_link};
use crate::picture::formats::Drawn;
use crate::picture::view::{PictureFrame, PictureNode};
use serde_json::{Value, json};

/// `{elements: {nodes, edges}}`, with our fields in `data`; positions are centres.
pub(super) fn draw_cytoscape<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut nodes = Vec::with_capacity(view.nodes.len());
    if scene.framed() {
        nodes.extend(view.groups.iter().map(frame));
    }
    nodes.extend((0..view.nodes.len()).map(|i| node_value(scene, i)));
    let edges =
        Document::list_of(view.edges.len(), move |i| json!({ "data": whole_link(scene, i) }));
    let elements = Document::object([("nodes", json!(nodes).into()), ("edges", edges)]);
    Drawn::Json(Document::object([("elements", elements)]))
}

fn frame(cluster: &PictureFrame) -> Value {
    let mut data = json!({ "id": group_id(&cluster.id), "label": cluster.label });
    if let Some(outer) = &cluster.parent {
        data["parent"] = json!(group_id(outer));
    }
    json!({ "data": data, "classes": "group" })
}

fn node_value(scene: &PictureScene<'_>, i: usize) -> Value {
    let item = &scene.view.nodes[i];
    let mut data = labelled(i, item);
    data.insert("id".to_owned(), json!(item.code));
    if let Some(outer) = scene.frame_of(i) {
        data.insert("parent".to_owned(), json!(group_id(outer)));
    }
    let mut node = json!({ "data": data });
    if let Some(layout) = &scene.layout {
        let (x, y) = layout.boxes[i].centre();
        node["position"] = json!({ "x": x, "y": y });
    }
    let classes = classes(item);
    if !classes.is_empty() {
        node["classes"] = json!(classes.join(" "));
    }
    node
}

fn classes(item: &PictureNode) -> Vec<String> {
    let critical = (item.timing.critical == Some(true)).then(|| "critical".to_owned());
    class(item).into_iter().chain(critical).collect()
}
