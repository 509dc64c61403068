//! Removes edges that are implied by others (transitive reduction).

use crate::picture::view::{DagView, LinkKind, PictureEdge, SUCCESS};

/// Number of targets per round: one row of bits per node, so 100,000 nodes need 51 MB at a time instead of 1.2 GB for
/// the whole table.
const ROUND: usize = 4_096;
const WORDS: usize = ROUND / 64;

/// The outgoing edges of each node: target, and index of the edge in the view.
type Arrows = Vec<Vec<(usize, usize)>>;

impl DagView {
    /// The transitive reduction: an edge from A to C is removed if A reaches C over other edges. Only success
    /// dependencies count, both as the removed edge and on the path: that A succeeded follows from a chain of
    /// successes, and from nothing weaker.
    pub fn reduced(&self) -> Self {
        let plain = |e: &PictureEdge| e.kind == LinkKind::Dependency && e.condition == SUCCESS;
        let mut arrows: Arrows = vec![Vec::new(); self.nodes.len()];
        for (i, edge) in self.edges.iter().enumerate().filter(|(_, e)| plain(e)) {
            arrows[edge.source].push((edge.target, i));
        }
        let mut order = self.in_order();
        order.reverse();
        let mut implied = vec![false; self.edges.len()];
        for first in (0..self.nodes.len()).step_by(ROUND) {
            round(first, &order, &arrows, &mut implied);
        }
        let kept = self.edges.iter().zip(implied).filter(|(_, implied)| !implied);
        let edges = kept.map(|(edge, _)| edge.clone()).collect();
        Self { nodes: self.nodes.clone(), edges, ..self.without_content() }
    }
}

/// Marks the implied edges among those to the nodes `first …`: the target is also reachable from a child of the source.
/// `order` has children before parents.
fn round(first: usize, order: &[usize], arrows: &Arrows, implied: &mut [bool]) {
    let mut below = vec![0u64; arrows.len() * WORDS];
    let place = |node: usize| {
        let bit = node.checked_sub(first).filter(|bit| *bit < ROUND)?;
        Some((bit / 64, 1u64 << (bit % 64)))
    };
    for &at in order {
        let mut row = [0u64; WORDS];
        for (child, _) in &arrows[at] {
            let theirs = &below[child * WORDS..(child + 1) * WORDS];
            row.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        }
        let further = row;
        for (child, edge) in &arrows[at] {
            if let Some((word, bit)) = place(*child) {
                implied[*edge] = further[word] & bit != 0;
                row[word] |= bit;
            }
        }
        below[at * WORDS..(at + 1) * WORDS].copy_from_slice(&row);
    }
}
