//! Assigns each node to a layer.

use crate::picture::layout::is_external;
use crate::picture::view::DagView;

/// The layer of each node: after all its dependencies, and as close to its dependents as the edges on both sides pull
/// it. Jobs of other batches come before everything.
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
    // From the end: a job with more dependents than dependencies moves up to its first dependent, which shortens its
    // edges in total. Most sources of a period-end close feed a single late job.
    for &at in order.iter().rev() {
        if (free[at] || children[at].len() > parents[at].len()) && !is_external(view, at) {
            let first = children[at].iter().map(|child| ranks[*child]).min();
            ranks[at] = first.map_or(ranks[at], |rank| rank.saturating_sub(1).max(ranks[at]));
        }
    }
    ranks
}

/// The nodes whose ancestors have no other dependents: all these ancestors move along with the node.
fn find_free(order: &[usize], children: &[Vec<usize>], parents: &[Vec<usize>]) -> Vec<bool> {
    let mut free = vec![true; parents.len()];
    for &at in order {
        free[at] = parents[at].iter().all(|p| free[*p] && children[*p].len() == 1);
    }
    free
}
