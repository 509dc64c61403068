//! Computes positions: layers along the edges, few crossings, straight long edges.
//!
//! The method is Sugiyama's: layers (`ranks`), long edges cut into steps (`net`), order within a layer (`order`),
//! coordinates (`place`). It is implemented here because the available crates (rust-sugiyama 0.4 and ports of dagre)
//! compute positions of nodes only, not routes of edges, and do not support groups.

mod bands;
mod frames;
mod net;
mod order;
mod place;
mod ranks;
mod stack;

use crate::picture::formats::ArrowDirection;
use crate::picture::measure::{Size, width};
use crate::picture::view::{DagView, PictureNodeKind, SUCCESS};
use bands::{bands, depth, parts};
use frames::{FRAME_HEAD, FRAME_PAD, frames};
use net::Net;
use stack::Stack;

/// Margin around the picture.
const MARGIN: f64 = 24.0;
/// Space between two layers, before edges require more.
const LAYER_GAP: f64 = 48.0;
/// Font size of an edge's condition, and the maximum space for it.
pub(super) const CONDITION_SIZE: f64 = 10.0;
pub(super) const LONGEST_CONDITION: f64 = 140.0;
/// Space between two frames.
const FRAME_GAP: f64 = 36.0;

/// A rectangle, in pixels from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) w: i64,
    pub(super) h: i64,
}

impl Rect {
    pub(super) fn centre(self) -> (i64, i64) {
        (self.x + self.w / 2, self.y + self.h / 2)
    }
}

/// A finished layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Parallel to the nodes of the view.
    pub(super) boxes: Vec<Rect>,
    /// Parallel to the edges of the view: from the border of one box to the border of the other.
    pub(super) routes: Vec<Vec<(i64, i64)>>,
    /// Parallel to the groups of the view; `None` if there is only one group, which needs no frame.
    pub(super) frames: Vec<Option<Rect>>,
    pub(super) width: i64,
    pub(super) height: i64,
}

/// A length along the edges and one across them; the direction decides which one is horizontal.
#[derive(Clone, Copy, Debug)]
struct LayoutSpan {
    from: f64,
    to: f64,
}

/// Lays out `view`, given the sizes of its nodes.
pub(super) fn layered(view: &DagView, sizes: &[Size], direction: ArrowDirection) -> Layout {
    let ranks = ranks::ranks(view);
    let columns = columns(view, sizes, &ranks, direction);
    let across = |size: &Size| match direction {
        ArrowDirection::Lr => size.h,
        ArrowDirection::Tb => size.w,
    };
    let widths: Vec<f64> = sizes.iter().map(across).collect();
    let mut centres = vec![0.0; view.nodes.len()];
    let mut ways: Vec<Vec<(usize, f64)>> = vec![Vec::new(); view.edges.len()];
    let head = if direction == ArrowDirection::Lr { FRAME_HEAD } else { 0.0 };
    let frame = depth(view) as f64 * (2.0 * FRAME_PAD + head);
    let mut next = 0.0;
    for band in bands(view) {
        let mut stack = Stack::starting(next, columns.len());
        for part in parts(view, &band) {
            let mut net = Net::from_view(view, &part, &ranks);
            order::reduce_crossings(&mut net);
            let mut places = place::place(&net, &widths);
            stack.push_part(&net, &mut places, &widths);
            net.write_places(&places, &mut centres, &mut ways);
        }
        next = stack.reach() + FRAME_GAP + frame;
    }
    let spans =
        LayoutSpans { ranks: &ranks, columns: &columns, centres: &centres, widths: &widths };
    let routes = spans.routes(view, &ways);
    spans.finish(view, routes, sizes, direction)
}

/// Start and end of each layer in the direction of the edges. The more edges pass between two
/// layers, the more space they get to bend.
fn columns(
    view: &DagView,
    sizes: &[Size],
    ranks: &[usize],
    direction: ArrowDirection,
) -> Vec<LayoutSpan> {
    let layers = ranks.iter().max().map_or(0, |most| most + 1);
    let mut deep = vec![0.0f64; layers];
    for (rank, size) in ranks.iter().zip(sizes) {
        let along = match direction {
            ArrowDirection::Lr => size.w,
            ArrowDirection::Tb => size.h,
        };
        deep[*rank] = deep[*rank].max(along);
    }
    let mut starts = vec![0i64; layers + 1];
    let mut gaps = vec![LAYER_GAP; layers];
    for edge in &view.edges {
        if edge.condition != SUCCESS {
            // Space for the condition above the edge.
            let words = width(&edge.condition, CONDITION_SIZE) + 24.0;
            let gap = &mut gaps[ranks[edge.source]];
            *gap = gap.max(words.min(LONGEST_CONDITION + 24.0));
        }
        starts[ranks[edge.source]] += 1;
        starts[ranks[edge.target]] -= 1;
    }
    let mut columns = Vec::with_capacity(layers);
    let (mut at, mut passing) = (0.0, 0i64);
    for ((deep, starting), gap) in deep.into_iter().zip(starts).zip(gaps) {
        columns.push(LayoutSpan { from: at, to: at + deep });
        passing += starting;
        at += deep + gap + (passing as f64).min(60.0);
    }
    columns
}

/// An end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrowEnd {
    Leaving,
    Coming,
}

/// All positions along and across, before the direction is applied.
struct LayoutSpans<'a> {
    ranks: &'a [usize],
    columns: &'a [LayoutSpan],
    centres: &'a [f64],
    widths: &'a [f64],
}

impl LayoutSpans<'_> {
    /// The points of each edge: out of one box, through each layer in between, into the other.
    fn routes(&self, view: &DagView, ways: &[Vec<(usize, f64)>]) -> Vec<Vec<(f64, f64)>> {
        let leaving = self.ports(view, ways, ArrowEnd::Leaving);
        let coming = self.ports(view, ways, ArrowEnd::Coming);
        let mut routes = Vec::with_capacity(view.edges.len());
        for (i, edge) in view.edges.iter().enumerate() {
            let mut points = vec![(
                self.columns[self.ranks[edge.source]].to,
                self.centres[edge.source] + leaving[i],
            )];
            for (rank, at) in &ways[i] {
                let column = self.columns[*rank];
                points.extend([(column.from, *at), (column.to, *at)]);
            }
            let end = self.columns[self.ranks[edge.target]].from;
            points.push((end, self.centres[edge.target] + coming[i]));
            routes.push(points);
        }
        routes
    }

    /// Where each edge starts or ends, as a distance from the middle of the box's side: spread in the order of their
    /// other ends, so that they do not cross at the box.
    fn ports(&self, view: &DagView, ways: &[Vec<(usize, f64)>], end: ArrowEnd) -> Vec<f64> {
        let mut at_box: Vec<Vec<(f64, usize)>> = vec![Vec::new(); self.centres.len()];
        for (i, edge) in view.edges.iter().enumerate() {
            let (here, there, near) = match end {
                ArrowEnd::Leaving => (edge.source, edge.target, ways[i].first()),
                ArrowEnd::Coming => (edge.target, edge.source, ways[i].last()),
            };
            let towards = near.map_or(self.centres[there], |(_, at)| *at);
            at_box[here].push((towards, i));
        }
        let mut offsets = vec![0.0; view.edges.len()];
        for (here, arrows) in at_box.iter_mut().enumerate() {
            arrows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let count = arrows.len() as f64;
            let step = (self.widths[here] * 0.55 / count).min(7.0);
            for (n, (_, i)) in arrows.iter().enumerate() {
                offsets[*i] = (n as f64 - (count - 1.0) / 2.0) * step;
            }
        }
        offsets
    }

    fn finish(
        &self,
        view: &DagView,
        routes: Vec<Vec<(f64, f64)>>,
        sizes: &[Size],
        direction: ArrowDirection,
    ) -> Layout {
        let turn = |(along, across): (f64, f64)| match direction {
            ArrowDirection::Lr => (along, across),
            ArrowDirection::Tb => (across, along),
        };
        let corner = |i: usize| {
            let column = self.columns[self.ranks[i]];
            turn((column.from, self.centres[i] - self.widths[i] / 2.0))
        };
        let boxes: Vec<[f64; 4]> = (0..sizes.len())
            .map(|i| {
                let ((x, y), column) = (corner(i), self.columns[self.ranks[i]]);
                // In a column of boxes, all are as wide as the widest.
                let w = match direction {
                    ArrowDirection::Lr => column.to - column.from,
                    ArrowDirection::Tb => sizes[i].w,
                };
                [x, y, x + w, y + sizes[i].h]
            })
            .collect();
        let frames = frames(view, &boxes);
        let all = boxes.iter().chain(frames.iter().flatten());
        let (mut left, mut top, mut right, mut bottom) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
        for [x, y, to_x, to_y] in all {
            (left, top) = (left.min(*x), top.min(*y));
            (right, bottom) = (right.max(*to_x), bottom.max(*to_y));
        }
        for (x, y) in routes.iter().flatten().map(|point| turn(*point)) {
            (left, top, right, bottom) = (left.min(x), top.min(y), right.max(x), bottom.max(y));
        }
        let (dx, dy) = (MARGIN - left, MARGIN - top);
        let rect = |[x, y, to_x, to_y]: [f64; 4]| {
            let (x, y) = ((x + dx).round() as i64, (y + dy).round() as i64);
            Rect { x, y, w: (to_x + dx).round() as i64 - x, h: (to_y + dy).round() as i64 - y }
        };
        let point = |(x, y): (f64, f64)| ((x + dx).round() as i64, (y + dy).round() as i64);
        Layout {
            boxes: boxes.into_iter().map(rect).collect(),
            routes: routes
                .into_iter()
                .map(|way| way.into_iter().map(|at| point(turn(at))).collect())
                .collect(),
            frames: frames.into_iter().map(|frame| frame.map(rect)).collect(),
            width: (right + dx + MARGIN).round() as i64,
            height: (bottom + dy + MARGIN).round() as i64,
        }
    }
}

/// Whether a node is in the first layer, before all jobs.
fn is_external(view: &DagView, i: usize) -> bool {
    view.nodes[i].kind == PictureNodeKind::External
}

#[cfg(test)]
mod tests;
