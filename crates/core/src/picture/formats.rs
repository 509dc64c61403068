//! The list of picture shapes, and the code they share.

use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::picture::document::Document;
use crate::picture::layout::{Layout, layered};
use crate::picture::measure::{Size, sizes, steady_sizes};
use crate::picture::view::DagView;
use crate::picture::{
    cytoscape, d3, d3dag, dagre, dot, echarts, elk, g6, jgf, mermaid, native, reactflow, svg, tree,
    x6,
};
use std::sync::Arc;

/// A shape of picture: one file in this folder and one entry in `FORMATS`.
#[derive(Debug)]
pub struct PictureFormat {
    /// The value of `--format`.
    pub name: &'static str,
    /// Its purpose in one sentence.
    pub about: &'static str,
    positions: Positions,
    draw: for<'a> fn(&'a PictureScene<'_>) -> Drawn<'a>,
}

/// Whether a shape contains positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Positions {
    /// It requires them.
    Needed,
    /// It can contain them.
    Welcome,
    /// Its reader computes them.
    Unused,
}

/// Every shape, in display order.
#[rustfmt::skip]
pub const FORMATS: &[PictureFormat] = &[
    PictureFormat { name: "native", about: "Procession's own JSON, of which the others are made", positions: Positions::Welcome, draw: native::draw_native },
    PictureFormat { name: "reactflow", about: "React Flow: nodes, edges and viewport, with positions", positions: Positions::Welcome, draw: reactflow::draw_reactflow },
    PictureFormat { name: "cytoscape", about: "Cytoscape.js: elements of a graph", positions: Positions::Welcome, draw: cytoscape::draw_cytoscape },
    PictureFormat { name: "g6", about: "AntV G6, version 5: nodes, edges and combos", positions: Positions::Welcome, draw: g6::draw_g6 },
    PictureFormat { name: "x6", about: "AntV X6: nodes with ports, and edges between the ports", positions: Positions::Welcome, draw: x6::draw_x6 },
    PictureFormat { name: "d3dag", about: "d3-dag, for graphStratify: a list of ids with parentIds", positions: Positions::Unused, draw: d3dag::stratify },
    PictureFormat { name: "d3dag-connect", about: "d3-dag, for graphConnect: a list of pairs of ids", positions: Positions::Unused, draw: d3dag::connect },
    PictureFormat { name: "d3", about: "D3 force layout: nodes and links", positions: Positions::Welcome, draw: d3::draw_d3 },
    PictureFormat { name: "tree", about: "D3 hierarchy: a tree; what comes a second time is only named", positions: Positions::Unused, draw: tree::draw_tree },
    PictureFormat { name: "elk", about: "ELK and elkjs: a graph to be laid out there", positions: Positions::Unused, draw: elk::draw_elk },
    PictureFormat { name: "dagre", about: "dagre: what graphlib's json.read reads", positions: Positions::Unused, draw: dagre::draw_dagre },
    PictureFormat { name: "jgf", about: "JSON Graph Format, version 2", positions: Positions::Welcome, draw: jgf::draw_jgf },
    PictureFormat { name: "echarts", about: "Apache ECharts: an option with a graph series", positions: Positions::Welcome, draw: echarts::draw_echarts },
    PictureFormat { name: "dot", about: "Graphviz DOT text", positions: Positions::Unused, draw: dot::draw_dot },
    PictureFormat { name: "mermaid", about: "Mermaid flowchart text, for Markdown pages", positions: Positions::Unused, draw: mermaid::draw_mermaid },
    PictureFormat { name: "svg", about: "A drawing that stands by itself, for reports and browsers", positions: Positions::Needed, draw: svg::draw_svg },
];

/// Finds a shape by name.
pub fn format(name: &str) -> Option<&'static PictureFormat> {
    FORMATS.iter().find(|f| f.name == name)
}

/// A view in a shape, with positions if the shape needs them.
#[derive(Debug)]
pub struct Drawing<'a> {
    scene: PictureScene<'a>,
    draw: for<'s> fn(&'s PictureScene<'_>) -> Drawn<'s>,
}

/// A finished picture.
#[derive(Debug)]
pub enum Drawn<'a> {
    /// A JSON document.
    Json(Document<'a>),
    /// Text in the shape's own language.
    Text(String),
}

/// Direction of the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArrowDirection {
    /// Left to right.
    #[default]
    Lr,
    /// Top to bottom.
    Tb,
}

impl ArrowDirection {
    /// The abbreviation used by dagre, Graphviz and Mermaid.
    pub fn as_letters(self) -> &'static str {
        match self {
            Self::Lr => "LR",
            Self::Tb => "TB",
        }
    }
}

/// How positions are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Placing {
    /// In layers along the edges.
    #[default]
    Layered,
    /// In layers with boxes of maximum size: nothing moves when a state changes.
    Steady,
    /// Not at all: the front end computes them.
    None,
}

/// Options of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Wishes {
    pub placing: Placing,
    /// Direction of the edges.
    pub direction: ArrowDirection,
    /// Language of the texts around the jobs.
    pub lang: Lang,
    /// The moment that the picture shows. This crate reads no clock; without it, two pictures of the same state are
    /// equal.
    pub generated_at: Option<Millis>,
}

/// Input of a shape.
#[derive(Debug)]
pub(super) struct PictureScene<'a> {
    pub(super) view: &'a DagView,
    pub(super) wishes: Wishes,
    pub(super) sizes: Vec<Size>,
    pub(super) layout: Option<Arc<Layout>>,
    pub(super) critical_edges: Vec<bool>,
}

impl PictureFormat {
    /// Draws the picture.
    pub fn draw_view<'a>(&self, view: &'a DagView, wishes: Wishes) -> Drawing<'a> {
        let sizes = match wishes.placing {
            Placing::Steady => steady_sizes(view),
            Placing::Layered | Placing::None => sizes(view),
        };
        let layout = self.places(wishes).then(|| Arc::new(layered(view, &sizes, wishes.direction)));
        let critical_edges = view.critical_edges();
        let scene = PictureScene { view, wishes, sizes, layout, critical_edges };
        Drawing { scene, draw: self.draw }
    }

    /// Draws a steady picture with positions from an earlier picture whose `DagView::outline` is equal.
    pub fn draw_at<'a>(
        &self,
        view: &'a DagView,
        wishes: Wishes,
        places: &PicturePlaces,
    ) -> Drawing<'a> {
        let layout = self.places(wishes).then(|| Arc::clone(&places.0));
        let (sizes, critical_edges) = (steady_sizes(view), view.critical_edges());
        let scene = PictureScene { view, wishes, sizes, layout, critical_edges };
        Drawing { scene, draw: self.draw }
    }

    /// Whether the shape contains positions with these options.
    pub fn places(&self, wishes: Wishes) -> bool {
        match (self.positions, wishes.placing) {
            (Positions::Needed, _) => true,
            (Positions::Welcome, Placing::Layered | Placing::Steady) => true,
            (Positions::Welcome, Placing::None) | (Positions::Unused, _) => false,
        }
    }

    /// Whether the shape requires positions.
    pub fn needs_positions(&self) -> bool {
        self.positions == Positions::Needed
    }
}

/// The positions of a steady picture: the most expensive part of drawing it.
#[derive(Clone, Debug)]
pub struct PicturePlaces(Arc<Layout>);

impl Drawing<'_> {
    /// The picture in the form for its reader.
    pub fn drawn(&self) -> Drawn<'_> {
        (self.draw)(&self.scene)
    }
}

impl PicturePlaces {
    /// Computes the positions for a view.
    pub fn from_view(view: &DagView, direction: ArrowDirection) -> Self {
        Self(Arc::new(layered(view, &steady_sizes(view), direction)))
    }
}

impl PictureScene<'_> {
    /// Whether groups are drawn as frames. A single frame around everything tells nothing, and costs every front end a
    /// level of nesting.
    pub(super) fn framed(&self) -> bool {
        self.view.groups.len() > 1
    }

    /// The frame of node `i`.
    pub(super) fn frame_of(&self, i: usize) -> Option<&str> {
        self.view.nodes[i].group.as_deref().filter(|_| self.framed())
    }
}
