//! Computes the frames of groups.

use crate::picture::layout::bands::nested;
use crate::picture::view::DagView;
use std::collections::HashMap;

/// Space between a frame and its content.
pub(super) const FRAME_PAD: f64 = 18.0;
/// Space for the name of a frame.
pub(super) const FRAME_HEAD: f64 = 24.0;

/// A frame around the boxes and frames of each group, inner ones first.
pub(super) fn frames(view: &DagView, boxes: &[[f64; 4]]) -> Vec<Option<[f64; 4]>> {
    let mut frames: Vec<Option<[f64; 4]>> = vec![None; view.groups.len()];
    if view.groups.len() < 2 {
        return frames;
    }
    let at: HashMap<&str, usize> =
        view.groups.iter().enumerate().map(|(i, g)| (g.id.as_str(), i)).collect();
    for (item, rect) in view.nodes.iter().zip(boxes) {
        if let Some(i) = item.group.as_deref().and_then(|g| at.get(g)) {
            frames[*i] = Some(around(frames[*i], *rect));
        }
    }
    for id in nested(view).into_iter().rev() {
        let i = at[id];
        let Some([x, y, to_x, to_y]) = frames[i] else { continue };
        let padded =
            [x - FRAME_PAD, y - FRAME_PAD - FRAME_HEAD, to_x + FRAME_PAD, to_y + FRAME_PAD];
        frames[i] = Some(padded);
        if let Some(outer) = view.groups[i].parent.as_deref().and_then(|g| at.get(g)) {
            frames[*outer] = Some(around(frames[*outer], padded));
        }
    }
    frames
}

fn around(frame: Option<[f64; 4]>, rect: [f64; 4]) -> [f64; 4] {
    frame.map_or(rect, |f| {
        [f[0].min(rect[0]), f[1].min(rect[1]), f[2].max(rect[2]), f[3].max(rect[3])]
    })
}
