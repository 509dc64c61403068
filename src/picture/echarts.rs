//! Apache ECharts: an option for `chart.setOption`, with one graph series.

use crate::picture::Scene;
use crate::picture::facts::{labelled, link_facts};
use crate::picture::formats::Drawn;
use crate::picture::paint::fill;
use crate::picture::view::Item;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `{legend, series: [{type: "graph", data, links, categories}]}`: names are the ids, categories the
/// states.
pub(super) fn draw(scene: &Scene<'_>) -> Drawn {
    let view = scene.view;
    let mut words: BTreeMap<&str, Value> = BTreeMap::new();
    for item in &view.nodes {
        let status = item.state.as_ref().map(|s| s.status);
        words.insert(word(item), json!({ "color": fill(status), "borderColor": "#52606d" }));
    }
    let at: BTreeMap<&str, usize> = words.keys().enumerate().map(|(i, w)| (*w, i)).collect();
    let data: Vec<Value> = (0..view.nodes.len()).map(|i| node(scene, i, &at)).collect();
    let links: Vec<Value> = view
        .edges
        .iter()
        .enumerate()
        .map(|(i, link)| {
            let critical = scene.critical_edges[i];
            json!({
                "source": view.nodes[link.source].code,
                "target": view.nodes[link.target].code,
                "value": link.condition,
                "lineStyle": { "width": if critical { 3 } else { 1 } },
                "data": link_facts(link, critical),
            })
        })
        .collect();
    let names: Vec<&str> = words.keys().copied().collect();
    let categories: Vec<Value> =
        words.iter().map(|(name, style)| json!({ "name": name, "itemStyle": style })).collect();
    Drawn::Json(json!({
        "title": { "text": view.title },
        "tooltip": {},
        "legend": { "data": names, "bottom": 0 },
        "series": [{
            "type": "graph",
            "layout": if scene.layout.is_some() { "none" } else { "force" },
            "roam": true,
            "symbol": "roundRect",
            "label": { "show": true, "color": "#1f2933" },
            "lineStyle": { "color": "#7b8794" },
            "edgeSymbol": ["none", "arrow"],
            "edgeSymbolSize": [4, 8],
            "data": data,
            "links": links,
            "categories": categories,
        }],
    }))
}

fn node(scene: &Scene<'_>, i: usize, categories: &BTreeMap<&str, usize>) -> Value {
    let item = &scene.view.nodes[i];
    let size = scene.sizes[i];
    let seconds = item.state.as_ref().and_then(|s| s.took()).map(|ms| ms as f64 / 1_000.0);
    let mut node = json!({
        "name": item.code,
        "value": seconds,
        "category": categories[word(item)],
        "symbolSize": [size.w, size.h],
        "data": labelled(i, item),
    });
    if let Some(layout) = &scene.layout {
        let (x, y) = layout.boxes[i].centre();
        node["x"] = json!(x);
        node["y"] = json!(y);
    }
    if item.timing.critical == Some(true) {
        node["itemStyle"] = json!({ "borderWidth": 3 });
    }
    node
}

fn word(item: &Item) -> &'static str {
    item.state.as_ref().map_or("DEFINED", |s| s.status.as_str())
}
