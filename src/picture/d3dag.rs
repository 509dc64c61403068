//! d3-dag: what the default `graphStratify()` and `graphConnect()` take.

use crate::picture::Scene;
use crate::picture::facts::labelled;
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// `[{id, parentIds, data}]`; a source has no `parentIds`.
pub(super) fn stratify(scene: &Scene<'_>) -> Drawn {
    let view = scene.view;
    let parents = view.parents();
    let node = |(i, parents): (usize, &Vec<usize>)| {
        let item = &view.nodes[i];
        let mut node = json!({ "id": item.code, "data": labelled(i, item) });
        if !parents.is_empty() {
            let codes: Vec<&str> = parents.iter().map(|p| view.nodes[*p].code.as_str()).collect();
            node["parentIds"] = json!(codes);
        }
        node
    };
    Drawn::Json(Value::Array(parents.iter().enumerate().map(node).collect()))
}

/// `[[source, target]]`; a job without any dependency is `[job, job]`, which needs
/// `graphConnect().single(true)`.
pub(super) fn connect(scene: &Scene<'_>) -> Drawn {
    let view = scene.view;
    let mut alone = vec![true; view.nodes.len()];
    let mut pairs: Vec<[&str; 2]> = Vec::with_capacity(view.edges.len());
    for link in &view.edges {
        (alone[link.source], alone[link.target]) = (false, false);
        pairs.push([&view.nodes[link.source].code, &view.nodes[link.target].code]);
    }
    let single = view.nodes.iter().zip(alone).filter(|(_, alone)| *alone);
    pairs.extend(single.map(|(item, _)| [item.code.as_str(); 2]));
    Drawn::Json(json!(pairs))
}
