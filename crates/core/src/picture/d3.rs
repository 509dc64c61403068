//! Renders JSON for D3's force layout and for other libraries that read nodes and links.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{labelled, whole_link};
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `{nodes, links}`; positions are centres, from which `forceSimulation` starts.
pub(super) fn draw_d3<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let nodes = Document::list_of(view.nodes.len(), move |i| {
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
    let links = Document::list_of(view.edges.len(), move |i| Value::Object(whole_link(scene, i)));
    Drawn::Json(Document::object([("nodes", nodes), ("links", links)]))
}
