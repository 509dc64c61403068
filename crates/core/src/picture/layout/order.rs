//! Orders the vertices within each layer so that few edges cross.

use crate::picture::layout::net::Net;

/// Maximum number of vertices and edges that all sweeps together examine: about 24 sweeps over 2,000 jobs with 6,000
/// dependencies, fewer over more, never fewer than 4.
const EFFORT: usize = 500_000;

/// Orders the layers by sweeps in both directions, in which each vertex moves to the mean of its neighbours, then by
/// swapping neighbours wherever that helps. The result depends on the starting order, so the sweeps start once from the
/// sources and once from the sinks. The best order found is kept.
pub(super) fn reduce_crossings(net: &mut Net) {
    let size = net.node.len() + net.after.iter().map(Vec::len).sum::<usize>();
    let sweeps = (EFFORT / size.max(1)).clamp(4, 48) / 2;
    let mut best: Option<(usize, Vec<Vec<usize>>)> = None;
    for side in [SweepSide::Before, SweepSide::After] {
        start(net, side);
        let (fewest, layers) = sweep(net, side, sweeps);
        if best.as_ref().is_none_or(|(least, _)| fewest < *least) {
            best = Some((fewest, layers));
        }
    }
    if let Some((_, layers)) = best {
        net.layers = layers;
    }
}

/// The best order within this number of sweeps, and its crossings.
fn sweep(net: &mut Net, first: SweepSide, sweeps: usize) -> (usize, Vec<Vec<usize>>) {
    let mut at = places(net);
    let mut best = net.layers.clone();
    let mut fewest = crossings(net, &at);
    let mut in_vain = 0;
    let mut side = first;
    for _ in 0..sweeps {
        if fewest == 0 || in_vain > 7 {
            break;
        }
        sweep_once(net, &mut at, side);
        side = side.other();
        swap_neighbours(net, &mut at);
        let found = crossings(net, &at);
        in_vain += 1;
        if found < fewest {
            (fewest, in_vain) = (found, 0);
            best.clone_from(&net.layers);
        }
    }
    (fewest, best)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SweepSide {
    Before,
    After,
}

impl SweepSide {
    fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// The starting order: depth first from the sources or the sinks, so that connected vertices are next to each other.
fn start(net: &mut Net, from: SweepSide) {
    net.layers.iter_mut().for_each(|layer| layer.sort_unstable());
    let mut rank = vec![0; net.node.len()];
    for (r, layer) in net.layers.iter().enumerate() {
        layer.iter().for_each(|v| rank[*v] = r);
    }
    let mut seen = vec![false; net.node.len()];
    let mut layers = vec![Vec::new(); net.layers.len()];
    let roots: Vec<usize> = match from {
        SweepSide::Before => net.layers.iter().flatten().copied().collect(),
        SweepSide::After => net.layers.iter().rev().flatten().copied().collect(),
    };
    for root in roots {
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            layers[rank[at]].push(at);
            // Both directions, so that all sources of one job are next to each other.
            open.extend(net.before[at].iter().rev().filter(|v| !seen[**v]));
            open.extend(net.after[at].iter().rev().filter(|v| !seen[**v]));
        }
    }
    net.layers = layers;
}

/// The position of each vertex in its layer.
fn places(net: &Net) -> Vec<usize> {
    let mut at = vec![0; net.node.len()];
    for layer in &net.layers {
        layer.iter().enumerate().for_each(|(i, v)| at[*v] = i);
    }
    at
}

/// One sweep: layer by layer, each vertex moves to the mean position of its neighbours on `side`; a vertex without
/// neighbours there does not move.
fn sweep_once(net: &mut Net, at: &mut [usize], side: SweepSide) {
    let count = net.layers.len();
    for step in 1..count {
        let (rank, near) = match side {
            SweepSide::Before => (step, &net.before),
            SweepSide::After => (count - 1 - step, &net.after),
        };
        let layer = &mut net.layers[rank];
        let mut keyed: Vec<(f64, usize)> = layer
            .iter()
            .map(|v| (mean_place(&near[*v], at).unwrap_or(at[*v] as f64), *v))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (i, (_, v)) in keyed.into_iter().enumerate() {
            layer[i] = v;
            at[v] = i;
        }
    }
}

fn mean_place(near: &[usize], at: &[usize]) -> Option<f64> {
    let sum: usize = near.iter().map(|v| at[*v]).sum();
    (!near.is_empty()).then(|| sum as f64 / near.len() as f64)
}

/// Swaps two neighbours in a layer if that reduces crossings, in two passes over all layers.
fn swap_neighbours(net: &mut Net, at: &mut [usize]) {
    for _ in 0..2 {
        let mut changed = false;
        for rank in 0..net.layers.len() {
            for i in 1..net.layers[rank].len() {
                let (a, b) = (net.layers[rank][i - 1], net.layers[rank][i]);
                let cost = |a: usize, b: usize, at: &[usize]| {
                    between(&net.before[a], &net.before[b], at)
                        + between(&net.after[a], &net.after[b], at)
                };
                if cost(b, a, at) < cost(a, b, at) {
                    net.layers[rank].swap(i - 1, i);
                    (at[a], at[b]) = (i, i - 1);
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Crossings between the edges of two neighbours, in their current order. Vertices with very many edges keep their mean
/// position: comparing two with 1,000 edges takes a million steps.
fn between(first: &[usize], second: &[usize], at: &[usize]) -> usize {
    if first.len() * second.len() > 400 {
        return 0;
    }
    first.iter().map(|a| second.iter().filter(|b| at[**b] < at[*a]).count()).sum()
}

/// All crossings, layer by layer, counted as inversions with a Fenwick tree.
fn crossings(net: &Net, at: &[usize]) -> usize {
    let mut sum = 0;
    for (rank, layer) in net.layers.iter().enumerate() {
        let Some(next) = net.layers.get(rank + 1) else { break };
        let mut tree = vec![0usize; next.len() + 1];
        let mut passed = 0;
        for v in layer {
            let mut ends: Vec<usize> = net.after[*v].iter().map(|w| at[*w]).collect();
            ends.sort_unstable();
            for end in &ends {
                let mut i = end + 1;
                let mut before = 0;
                while i > 0 {
                    before += tree[i];
                    i &= i - 1;
                }
                sum += passed - before;
            }
            for end in &ends {
                let mut i = end + 1;
                while i < tree.len() {
                    tree[i] += 1;
                    i += i & i.wrapping_neg();
                }
                passed += 1;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::layout::ranks::ranks;
    use crate::picture::tests::large;

    fn net() -> Net {
        let view = large(300);
        Net::from_view(&view, &(0..300).collect::<Vec<_>>(), &ranks(&view))
    }

    #[test]
    fn crossings_are_counted_as_one_would_by_hand() {
        let net = net();
        let at = places(&net);
        let pairs = |v: usize| net.after[v].iter().map(move |w| (v, *w));
        let mut by_hand = 0;
        for layer in &net.layers {
            let arrows: Vec<(usize, usize)> = layer.iter().flat_map(|v| pairs(*v)).collect();
            for (i, (a, b)) in arrows.iter().enumerate() {
                let cross = |(c, d): &&(usize, usize)| at[*a] < at[*c] && at[*b] > at[*d];
                by_hand += arrows[i + 1..].iter().filter(cross).count();
            }
        }
        assert!(by_hand > 0);
        assert_eq!(crossings(&net, &at), by_hand);
    }

    #[test]
    fn each_stage_leaves_fewer_crossings() {
        let (as_written, mut started, mut done) = (net(), net(), net());
        start(&mut started, SweepSide::Before);
        reduce_crossings(&mut done);
        let count = |net: &Net| crossings(net, &places(net));
        let counts = [&as_written, &started, &done].map(count);
        assert!(counts[0] > counts[1] && counts[1] > counts[2], "{counts:?}");
        let sorted = |net: &Net| {
            let mut layers = net.layers.clone();
            layers.iter_mut().for_each(|layer| layer.sort_unstable());
            layers
        };
        assert_eq!(sorted(&done), sorted(&as_written), "nobody is lost");
    }
}
