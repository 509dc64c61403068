//! Shapes of work: how many jobs, and which waits for which.

/// Jobs by number, and for each edge the job waited for and the one that waits.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) jobs: usize,
    pub(crate) edges: Vec<(usize, usize)>,
}

impl Shape {
    /// One after the other.
    pub(crate) fn chain(jobs: usize) -> Self {
        Self { jobs, edges: (1..jobs).map(|n| (n - 1, n)).collect() }
    }

    /// One, then `wide`, then one.
    pub(crate) fn fan(wide: usize) -> Self {
        let edges = (1..=wide).flat_map(|n| [(0, n), (n, wide + 1)]).collect();
        Self { jobs: wide + 2, edges }
    }

    /// Every job waits for three of the layer before its own; what is then missing in `edges` is taken
    /// from two layers before.
    pub(crate) fn layered(layers: usize, wide: usize, edges: usize) -> Self {
        let above = |n: usize, layer: usize, step: usize| (layer * wide) + (n + step) % wide;
        let near = (1..layers).flat_map(|layer| {
            (0..wide).flat_map(move |n| {
                [0, 1, 3].map(|step| (above(n, layer - 1, step), layer * wide + n))
            })
        });
        let far = (2..layers)
            .flat_map(|layer| (0..wide).map(move |n| (above(n, layer - 2, 2), layer * wide + n)));
        Self { jobs: layers * wide, edges: near.chain(far).take(edges).collect() }
    }

    /// Every job waits for the whole layer before its own.
    pub(crate) fn full(layers: usize, wide: usize) -> Self {
        let edges = (1..layers).flat_map(|layer| {
            (0..wide).flat_map(move |n| {
                (0..wide).map(move |m| ((layer - 1) * wide + m, layer * wide + n))
            })
        });
        Self { jobs: layers * wide, edges: edges.collect() }
    }

    /// So many of it beside each other.
    pub(crate) fn times(&self, count: usize) -> Self {
        let edges = (0..count).flat_map(|at| {
            self.edges.iter().map(move |(a, b)| (a + at * self.jobs, b + at * self.jobs))
        });
        Self { jobs: self.jobs * count, edges: edges.collect() }
    }
}
