//! Renders JSON for d3-dag, as the default `graphStratify()` and `graphConnect()` read it.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::labelled;
use crate::picture::formats::Drawn;
use serde_json::json;

/// `[{id, parentIds, data}]`; a root has no `parentIds`.
pub(super) fn stratify<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let parents = view.parents();
    let node = move |i: usize| {
        let (item, parents) = (&view.nodes[i], &parents[i]);
        let mut node = json!({ "id": item.code, "data": labelled(i, item) });
        if !parents.is_empty() {
            let codes: Vec<&str> = parents.iter().map(|p| view.nodes[*p].code.as_str()).collect();
            node["parentIds"] = json!(codes);
        }
        node
    };
    Drawn::Json(Document::list_of(view.nodes.len(), node))
}

/// `[[source, target]]`; a job without any dependency is `[job, job]`, which needs
/// `graphConnect().single(true)`.
pub(super) fn connect<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut alone = vec![true; view.nodes.len()];
    let mut pairs: Vec<[&str; 2]> = Vec::with_capacity(view.edges.len());
    for link in &view.edges {
        (alone[link.source], alone[link.target]) = (false, false);
        pairs.push([&view.nodes[link.source].code, &view.nodes[link.target].code]);
    }
    let single = view.nodes.iter().zip(alone).filter(|(_, alone)| *alone);
    pairs.extend(single.map(|(item, _)| [item.code.as_str(); 2]));
    Drawn::Json(Document::list_of(pairs.len(), move |i| json!(pairs[i])))
}
