//! Computes coordinates across the layers: each node as close to its neighbours as order and space permit.

use crate::picture::layout::net::Net;

/// Space between two boxes.
pub(super) const BOX_GAP: f64 = 18.0;
/// Space between a passing edge and a box.
const STEP_GAP: f64 = 14.0;
/// Space between two passing edges.
const WAY_GAP: f64 = 9.0;
/// Number of sweeps over all layers; more make no visible difference.
const SWEEPS: usize = 16;

/// The centre of each vertex across the layers; the smallest is half its width.
pub(super) fn place(net: &Net, widths: &[f64]) -> Vec<f64> {
    let half = |v: usize| net.node[v].map_or(0.0, |node| widths[node] / 2.0);
    let apart = |a: usize, b: usize| {
        let gap = match (net.node[a], net.node[b]) {
            (Some(_), Some(_)) => BOX_GAP,
            (None, None) => WAY_GAP,
            (Some(_), None) | (None, Some(_)) => STEP_GAP,
        };
        half(a) + half(b) + gap
    };
    let mut at = vec![0.0; net.node.len()];
    // The minimum distance of each vertex from the first one of its layer.
    let offsets: Vec<Vec<f64>> = net
        .layers
        .iter()
        .map(|layer| {
            let mut sum = 0.0;
            let steps = layer.windows(2).map(|pair| {
                sum += apart(pair[0], pair[1]);
                sum
            });
            std::iter::once(0.0).chain(steps).take(layer.len()).collect()
        })
        .collect();
    for (layer, offsets) in net.layers.iter().zip(&offsets) {
        let middle = offsets.last().copied().unwrap_or(0.0) / 2.0;
        layer.iter().zip(offsets).for_each(|(v, offset)| at[*v] = offset - middle);
    }
    let count = net.layers.len();
    for sweep in 0..SWEEPS {
        for step in 0..count {
            let rank = if sweep % 2 == 0 { step } else { count - 1 - step };
            let sides: &[&Vec<Vec<usize>>] = match (sweep + 4 >= SWEEPS, sweep % 2) {
                (true, _) => &[&net.before, &net.after],
                (false, 0) => &[&net.before],
                (false, _) => &[&net.after],
            };
            settle(net, &net.layers[rank], &offsets[rank], sides, &mut at);
        }
    }
    let least = at.iter().enumerate().map(|(v, at)| at - half(v)).fold(f64::INFINITY, f64::min);
    at.iter_mut().for_each(|at| *at -= least);
    at
}

/// Places one layer: of all placements with the same order and minimum distances, the one with the least sum of squared
/// distances to the wanted positions. Neighbours that want the same position form blocks (pool adjacent violators), so
/// one pass finds it.
fn settle(net: &Net, layer: &[usize], offsets: &[f64], sides: &[&Vec<Vec<usize>>], at: &mut [f64]) {
    // Each block: its weight, the weighted sum of wanted positions, and its number of vertices.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(layer.len());
    for (v, offset) in layer.iter().zip(offsets) {
        let (wish, weight) = wanted_place(net, *v, sides, at);
        let mut block = (weight, weight * (wish - offset), 1);
        while let Some(last) = blocks.last() {
            if last.1 / last.0 <= block.1 / block.0 {
                break;
            }
            block = (block.0 + last.0, block.1 + last.1, block.2 + last.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let mut i = 0;
    for (weight, sum, count) in blocks {
        for _ in 0..count {
            at[layer[i]] = sum / weight + offsets[i];
            i += 1;
        }
    }
}

/// The wanted position of a vertex and its weight: the mean of its neighbours. Steps of a long edge weigh more, because
/// a straight edge is easier to follow.
fn wanted_place(net: &Net, v: usize, sides: &[&Vec<Vec<usize>>], at: &[f64]) -> (f64, f64) {
    let (mut weight, mut sum) = (0.0, 0.0);
    for side in sides {
        for near in &side[v] {
            let pull = match (net.node[v], net.node[*near]) {
                (None, None) => 8.0,
                (Some(_), None) | (None, Some(_)) => 2.0,
                (Some(_), Some(_)) => 1.0,
            };
            weight += pull;
            sum += pull * at[*near];
        }
    }
    if weight == 0.0 { (at[v], 0.05) } else { (sum / weight, weight) }
}
