//! Splits a picture into parts that are laid out separately: groups, and connected components within a group.

use crate::picture::view::DagView;
use std::collections::HashMap;

/// The sets of nodes that are laid out next to each other: those of each group, if there are several. A node without a
/// group joins its first dependent.
pub(super) fn bands(view: &DagView) -> Vec<Vec<usize>> {
    if view.groups.len() < 2 {
        return vec![(0..view.nodes.len()).collect()];
    }
    let order = nested(view);
    let at: HashMap<&str, usize> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let own = |i: usize| view.nodes[i].group.as_deref().and_then(|g| at.get(g).copied());
    let mut of: Vec<Option<usize>> = (0..view.nodes.len()).map(own).collect();
    for edge in &view.edges {
        if of[edge.source].is_none() {
            of[edge.source] = own(edge.target);
        }
    }
    let mut bands = vec![Vec::new(); order.len() + 1];
    for (i, band) in of.iter().enumerate() {
        bands[band.unwrap_or(order.len())].push(i);
    }
    bands.retain(|band| !band.is_empty());
    bands
}

/// The connected components of `band`, largest first; each is laid out separately.
pub(super) fn parts(view: &DagView, band: &[usize]) -> Vec<Vec<usize>> {
    let mut near = vec![Vec::new(); view.nodes.len()];
    let mut open = vec![false; view.nodes.len()];
    band.iter().for_each(|i| open[*i] = true);
    for edge in view.edges.iter().filter(|e| open[e.source] && open[e.target]) {
        near[edge.source].push(edge.target);
        near[edge.target].push(edge.source);
    }
    let mut parts = Vec::new();
    for &first in band {
        let mut part = Vec::new();
        let mut next = vec![first];
        while let Some(at) = next.pop() {
            if std::mem::replace(&mut open[at], false) {
                part.push(at);
                next.extend(&near[at]);
            }
        }
        if !part.is_empty() {
            part.sort_unstable();
            parts.push(part);
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

/// Groups in an order in which a group and its subgroups are adjacent.
pub(super) fn nested(view: &DagView) -> Vec<&str> {
    let mut order: Vec<&str> = Vec::new();
    let mut open: Vec<&str> =
        view.groups.iter().rev().filter(|g| g.parent.is_none()).map(|g| g.id.as_str()).collect();
    while let Some(id) = open.pop() {
        order.push(id);
        let inner = view.groups.iter().rev().filter(|g| g.parent.as_deref() == Some(id));
        open.extend(inner.map(|g| g.id.as_str()));
    }
    order
}

/// The maximum nesting of frames; 0 without frames.
pub(super) fn depth(view: &DagView) -> usize {
    if view.groups.len() < 2 {
        return 0;
    }
    let mut depths: HashMap<&str, usize> = HashMap::new();
    // Outer groups come first.
    for id in nested(view) {
        let group = view.groups.iter().find(|g| g.id == id);
        let outer = group.and_then(|g| g.parent.as_deref());
        let depth = 1 + outer.and_then(|outer| depths.get(outer)).copied().unwrap_or(0);
        depths.insert(id, depth);
    }
    depths.into_values().max().unwrap_or(0)
}
