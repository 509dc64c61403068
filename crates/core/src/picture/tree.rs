//! Renders the DAG as a tree for D3's hierarchy.

use crate::picture::PictureScene;
use crate::picture::facts::labelled;
use crate::picture::formats::Drawn;
use serde_json::{Value, json};

/// Maximum nesting. Readers recurse: serde_json stops at 128 by default, where a tree level counts twice, and a
/// browser's stack is limited too.
const DEEPEST: usize = 50;

/// `{id, …, children}`. A job with several parents appears under each of them: with its children at the first place,
/// and as `{id, ref: true}` at the others; written out everywhere, 30 diamonds in a row would be a thousand million
/// nodes. Where the tree grows too deep, it continues below the root. With one source and no such cut, the source is
/// the root.
pub(super) fn draw_tree<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let view = scene.view;
    let children = view.children();
    let mut has_parent = vec![false; view.nodes.len()];
    view.edges.iter().for_each(|link| has_parent[link.target] = true);
    let mut growing = Growing { scene, children, seen: vec![false; view.nodes.len()], cut: vec![] };
    let sources = (0..view.nodes.len()).filter(|i| !has_parent[*i]);
    let mut trees: Vec<Value> = sources.map(|i| growing.branch(i, 1)).collect();
    while !growing.cut.is_empty() {
        for i in std::mem::take(&mut growing.cut) {
            if !growing.seen[i] {
                trees.push(growing.branch(i, 1));
            }
        }
    }
    if trees.len() == 1 {
        return Drawn::Json(trees.remove(0).into());
    }
    let id = format!("dag/{}", view.title);
    let tree = json!({ "id": id, "label": view.title, "kind": "root", "children": trees });
    Drawn::Json(tree.into())
}

struct Growing<'a> {
    scene: &'a PictureScene<'a>,
    children: Vec<Vec<usize>>,
    seen: Vec<bool>,
    /// Nodes that were too deep, to be written below the root.
    cut: Vec<usize>,
}

impl Growing<'_> {
    fn branch(&mut self, i: usize, depth: usize) -> Value {
        let item = &self.scene.view.nodes[i];
        if self.seen[i] {
            return json!({ "id": item.code, "ref": true });
        }
        if depth > DEEPEST {
            self.cut.push(i);
            return json!({ "id": item.code, "ref": true });
        }
        self.seen[i] = true;
        let mut node = labelled(i, item);
        node.insert("id".to_owned(), json!(item.code));
        let below = self.children[i].clone();
        if !below.is_empty() {
            let below: Vec<Value> = below.into_iter().map(|c| self.branch(c, depth + 1)).collect();
            node.insert("children".to_owned(), Value::Array(below));
        }
        Value::Object(node)
    }
}
