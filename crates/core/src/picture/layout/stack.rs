//! Packs the parts of a picture next to each other across the layers, each as close to the previous ones as the layers
//! that it uses allow.

use crate::picture::layout::net::Net;
use crate::picture::layout::place::BOX_GAP;

/// How far each layer is occupied.
pub(super) struct Stack {
    far: Vec<f64>,
    start: f64,
}

impl Stack {
    pub(super) fn starting(at: f64, layers: usize) -> Self {
        Self { far: vec![at; layers], start: at }
    }

    /// Moves a part to the first free position and marks that space as occupied. Between its first and last layer a
    /// part counts as one block; otherwise a small part would be placed inside a gap of a large one.
    pub(super) fn push_part(&mut self, net: &Net, places: &mut [f64], widths: &[f64]) {
        let half = |v: usize| net.node[v].map_or(0.0, |node| widths[node] / 2.0);
        let used: Vec<usize> =
            (0..net.layers.len()).filter(|rank| !net.layers[*rank].is_empty()).collect();
        let (Some(&first), Some(&last)) = (used.first(), used.last()) else { return };
        let start = self.start;
        let room = |far: f64| if far > start { far + BOX_GAP } else { far };
        let by = self.far[first..=last].iter().copied().map(room).fold(start, f64::max);
        places.iter_mut().for_each(|at| *at += by);
        for rank in used {
            let ends = net.layers[rank].iter().map(|v| places[*v] + half(*v));
            self.far[rank] = ends.fold(self.far[rank], f64::max);
        }
    }

    /// The largest extent of any layer.
    pub(super) fn reach(&self) -> f64 {
        self.far.iter().copied().fold(self.start, f64::max)
    }
}
