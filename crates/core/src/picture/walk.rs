//! Traverses a view along its edges.

use crate::picture::view::{DagView, PictureEdge};

impl DagView {
    /// Indexes of the nodes, parents before children.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut open = vec![0usize; self.nodes.len()];
        let children = self.children();
        for edge in &self.edges {
            open[edge.target] += 1;
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|i| open[*i] == 0).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            for &child in &children[at] {
                open[child] -= 1;
                if open[child] == 0 {
                    order.push(child);
                }
            }
        }
        order
    }

    /// The dependents of each node, in the order of the edges.
    pub(super) fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            children[edge.source].push(edge.target);
        }
        children
    }

    /// The dependencies of each node, in the order of the edges.
    pub(super) fn parents(&self) -> Vec<Vec<usize>> {
        let mut parents = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            parents[edge.target].push(edge.source);
        }
        parents
    }

    /// Which edges are on the critical path. Of several critical parents only those of the latest wave count: with A →
    /// B → C all critical, A → C is not part of the path.
    pub(super) fn critical_edges(&self) -> Vec<bool> {
        let critical = |i: usize| self.nodes[i].timing.critical == Some(true);
        let on_path = |e: &PictureEdge| critical(e.source) && critical(e.target);
        let mut latest = vec![0; self.nodes.len()];
        for edge in self.edges.iter().filter(|e| on_path(e)) {
            latest[edge.target] = latest[edge.target].max(self.nodes[edge.source].level);
        }
        let last = |e: &PictureEdge| self.nodes[e.source].level == latest[e.target];
        self.edges.iter().map(|e| on_path(e) && last(e)).collect()
    }
}
