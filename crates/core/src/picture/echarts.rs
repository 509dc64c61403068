//! Renders an Apache ECharts option for `chart.setOption`, with one graph series.

use crate::picture::PictureScene;
use crate::picture::document::Document;
use crate::picture::facts::{labelled, link_facts};
use crate::picture::formats::Drawn;
use crate::picture::paint::fill_colour;
use crate::picture::view::PictureNode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `{legend, series: [{type: "graph", data, links, categories}]}`: names are ids, categories are states.
pub(super) fn draw_echarts<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let mut words: BTreeMap<&str, Value> = BTreeMap::new();
    for item in &view.nodes {
        let status = item.state.as_ref().map(|s| s.status);
        words.insert(
            category(item),
            json!({ "color": fill_colour(status), "borderColor": "#52606d" }),
        );
    }
    let at: BTreeMap<&str, usize> = words.keys().enumerate().map(|(i, w)| (*w, i)).collect();
    let data: Vec<Value> = (0..view.nodes.len()).map(|i| node_value(scene, i, &at)).collect();
    let links = Document::list_of(view.edges.len(), move |i| {
        let (link, critical) = (&view.edges[i], scene.critical_edges[i]);
        json!({
            "source": view.nodes[link.source].code,
            "target": view.nodes[link.target].code,
            "value": link.condition,
            "lineStyle": { "width": if critical { 3 } else { 1 } },
            "data": link_facts(link, critical),
        })
    });
    let names: Vec<&str> = words.keys().copied().collect();
    let categories: Vec<Value> =
        words.iter().map(|(name, style)| json!({ "name": name, "itemStyle": style })).collect();
    let layout = if scene.layout.is_some() { "none" } else { "force" };
    let series = Document::object([
        ("type", json!("graph").into()),
        ("layout", json!(layout).into()),
        ("roam", json!(true).into()),
        ("symbol", json!("roundRect").into()),
        ("label", json!({ "show": true, "color": "#1f2933" }).into()),
        ("lineStyle", json!({ "color": "#7b8794" }).into()),
        ("edgeSymbol", json!(["none", "arrow"]).into()),
        ("edgeSymbolSize", json!([4, 8]).into()),
        ("data", json!(data).into()),
        ("links", links),
        ("categories", json!(categories).into()),
    ]);
    Drawn::Json(Document::object([
        ("title", json!({ "text": view.title }).into()),
        ("tooltip", json!({}).into()),
        ("legend", json!({ "data": names, "bottom": 0 }).into()),
        ("series", Document::items([series])),
    ]))
}

fn node_value(scene: &PictureScene<'_>, i: usize, categories: &BTreeMap<&str, usize>) -> Value {
    let item = &scene.view.nodes[i];
    let size = scene.sizes[i];
    let seconds = item.state.as_ref().and_then(|s| s.time_taken()).map(|ms| ms as f64 / 1_000.0);
    let mut node = json!({
        "name": item.code,
        "value": seconds,
        "category": categories[category(item)],
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

fn category(item: &PictureNode) -> &'static str {
    item.state.as_ref().map_or("DEFINED", |s| s.status.as_str())
}
