//! Nodes in layers, with long edges cut into one step per layer.

use crate::picture::view::DagView;

/// A vertex is a node of the view, or a step of a long edge in a layer.
#[derive(Clone, Debug)]
pub(super) struct Net {
    /// Vertices of each layer, in order.
    pub(super) layers: Vec<Vec<usize>>,
    /// Neighbours of each vertex in the layer before.
    pub(super) before: Vec<Vec<usize>>,
    /// Neighbours of each vertex in the layer after.
    pub(super) after: Vec<Vec<usize>>,
    /// The node of the view that a vertex stands for; `None` for a step.
    pub(super) node: Vec<Option<usize>>,
    /// Long edges: index in the view, and the vertex in each layer in between.
    steps: Vec<(usize, Vec<(usize, usize)>)>,
}

impl Net {
    /// Builds the net of some nodes of `view`. The number of steps is limited to twice the number of nodes and edges:
    /// with 2,000 jobs in a chain of which every tenth depends on the first, there would be half a million. The longest
    /// edges get no steps, and are drawn with one bend.
    pub(super) fn from_view(view: &DagView, nodes: &[usize], ranks: &[usize]) -> Self {
        let layers = nodes.iter().map(|n| ranks[*n] + 1).max().unwrap_or(0);
        let mut net = Self {
            layers: vec![Vec::new(); layers],
            before: Vec::new(),
            after: Vec::new(),
            node: Vec::new(),
            steps: Vec::new(),
        };
        let mut vertex = vec![None; view.nodes.len()];
        for node in nodes {
            vertex[*node] = Some(net.add_vertex(Some(*node), ranks[*node]));
        }
        let inside = |i: &usize| {
            let edge = &view.edges[*i];
            vertex[edge.source].is_some() && vertex[edge.target].is_some()
        };
        let mut edges: Vec<usize> = (0..view.edges.len()).filter(inside).collect();
        let mut left = 1_000 + 2 * (nodes.len() + edges.len());
        edges.sort_by_key(|i| {
            let edge = &view.edges[*i];
            (ranks[edge.target] - ranks[edge.source], *i)
        });
        for i in edges {
            let edge = &view.edges[i];
            let (Some(source), Some(target)) = (vertex[edge.source], vertex[edge.target]) else {
                continue;
            };
            let between = ranks[edge.source] + 1..ranks[edge.target];
            if between.len() > left {
                continue;
            }
            left -= between.len();
            let mut way = Vec::with_capacity(between.len());
            let mut from = source;
            for rank in between {
                let step = net.add_vertex(None, rank);
                net.add_arc(from, step);
                way.push((rank, step));
                from = step;
            }
            net.add_arc(from, target);
            net.steps.push((i, way));
        }
        net
    }

    fn add_vertex(&mut self, node: Option<usize>, rank: usize) -> usize {
        let vertex = self.node.len();
        self.node.push(node);
        self.before.push(Vec::new());
        self.after.push(Vec::new());
        self.layers[rank].push(vertex);
        vertex
    }

    fn add_arc(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }

    /// Copies the positions of the vertices to the nodes and edges of the view.
    pub(super) fn write_places(
        &self,
        places: &[f64],
        centres: &mut [f64],
        ways: &mut [Vec<(usize, f64)>],
    ) {
        for (node, place) in self.node.iter().zip(places) {
            if let Some(node) = node {
                centres[*node] = *place;
            }
        }
        for (edge, way) in &self.steps {
            ways[*edge] = way.iter().map(|(rank, step)| (*rank, places[*step])).collect();
        }
    }
}
