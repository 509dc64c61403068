//! Assigns each node to a layer.

use crate::picture::layout::is_external;
use crate::picture::view::DagView;

/// A layer for each node: after all that it waits for, and as near to what waits for it as the
/// arrows it has on both sides pull it. Jobs of other batches stand before everything.
pub(super) fn ranks(view: &DagView) -> Vec<usize> {
    let (order, children, parents) = (view.in_order(), view.children(), view.parents());
    let some_external = (0..view.nodes.len()).any(|i| is_external(view, i));
    let earliest = |i: usize| usize::from(some_external && !is_external(view, i));
    let mut ranks: Vec<usize> = (0..view.nodes.len()).map(earliest).collect();
    for &at in &order {
        for &child in &children[at] {
            ranks[child] = ranks[child].max(ranks[at] + 1);
        }
    }
    let free = find_free(&order, &children, &parents);
    // From the end: a job that more wait for than it waits for moves up to the first of them, which
    // makes its arrows shorter in sum. Most of the sources of a close feed one late job only.
    for &at in order.iter().rev() {
        if (free[at] || children[at].len() > parents[at].len()) && !is_external(view, at) {
            let first = children[at].iter().map(|child| ranks[*child]).min();
            ranks[at] = first.map_or(ranks[at], |rank| rank.saturating_sub(1).max(ranks[at]));
        }
    }
    ranks
}

/// Which nodes have nothing above them that anything else waits for: all of that follows them
/// wherever they go.
fn find_free(order: &[usize], children: &[Vec<usize>], parents: &[Vec<usize>]) -> Vec<bool> {
    let mut free = vec![true; parents.len()];
    for &at in order {
        free[at] = parents[at].iter().all(|p| free[*p] && children[*p].len() == 1);
    }
    free
}
