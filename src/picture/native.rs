//! The neutral JSON shape, from which front ends make their own.

use crate::domain::time::Millis;
use crate::picture::{Item, View};
use serde_json::{Map, Value, json};

/// Version of the shape; grows when a field changes its meaning, not when one is added.
const VERSION: u32 = 1;

/// The picture as `{batch, version, nodes, edges, groups, layout}`. `generated_at` is told by the
/// caller, for nothing here knows the time; without it two pictures of one state are equal.
pub fn native(view: &View, generated_at: Option<Millis>) -> Value {
    let nodes: Vec<Value> =
        view.nodes.iter().enumerate().map(|(order, item)| node(order, item, view)).collect();
    let edge = |(source, target): &(String, String)| {
        json!({
            "id": format!("{source}->{target}"),
            "source": source,
            "target": target,
            "kind": "success",
        })
    };
    let mut picture = json!({
        "batch": view.title,
        "version": VERSION,
        "nodes": nodes,
        "edges": view.edges.iter().map(edge).collect::<Vec<_>>(),
        "groups": [{ "id": view.group.code, "label": view.group.label }],
        "layout": { "direction": "LR" },
    });
    if let (Some(at), Value::Object(fields)) = (generated_at, &mut picture) {
        fields.insert("generated_at".to_owned(), Value::String(at.to_string()));
    }
    picture
}

fn node(order: usize, item: &Item, view: &View) -> Value {
    let mut node = Map::new();
    let mut put = |key: &str, value: Value| drop(node.insert(key.to_owned(), value));
    put("id", json!(item.code));
    put("code", json!(item.code));
    put("name", json!(item.name));
    put("type", json!(item.job_type));
    put("group", json!(view.group.code));
    put("level", json!(item.level));
    put("order", json!(order));
    if let Some(source) = &item.source {
        put("source", json!(source));
    }
    if let Some(state) = &item.state {
        let moment = |at: Option<Millis>| at.map(|at| at.to_string());
        put("status", json!(state.status.as_str()));
        put("attempt", json!(state.attempt));
        put("start", json!(moment(state.start)));
        put("end", json!(moment(state.end)));
    }
    Value::Object(node)
}
