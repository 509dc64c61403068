//! Properties of layouts that readers rely on.

use crate::picture::formats::ArrowDirection;
use crate::picture::layout::{Layout, Rect, layered};
use crate::picture::measure::sizes;
use crate::picture::tests::{large, plain};
use crate::picture::view::DagView;
use proptest::prelude::*;

fn laid(view: &DagView, direction: ArrowDirection) -> Layout {
    layered(view, &sizes(view), direction)
}

fn apart(a: Rect, b: Rect) -> bool {
    a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
}

/// Checks that no two boxes touch, everything is on the page, and edges run forwards from border to border.
fn faults(view: &DagView, layout: &Layout, direction: ArrowDirection) -> Vec<String> {
    let mut found = Vec::new();
    let boxes = &layout.boxes;
    for (i, a) in boxes.iter().enumerate() {
        if a.x < 0 || a.y < 0 || a.x + a.w > layout.width || a.y + a.h > layout.height {
            found.push(format!("{i} is off the page"));
        }
        found.extend(
            (i + 1..boxes.len())
                .filter(|j| !apart(*a, boxes[*j]))
                .map(|j| format!("{i} and {j} overlap")),
        );
    }
    for (edge, route) in view.edges.iter().zip(&layout.routes) {
        let (a, b) = (boxes[edge.source], boxes[edge.target]);
        let along = |(x, y): (i64, i64)| if direction == ArrowDirection::Lr { x } else { y };
        let ends = match direction {
            ArrowDirection::Lr => (a.x + a.w, b.x),
            ArrowDirection::Tb => (a.y + a.h, b.y),
        };
        let (Some(first), Some(last)) = (route.first(), route.last()) else {
            found.push("an arrow without a way".to_owned());
            continue;
        };
        if (along(*first), along(*last)) != ends {
            found.push(format!(
                "an arrow from {first:?} to {last:?} does not meet its boxes {ends:?}"
            ));
        }
        if !route.windows(2).all(|pair| along(pair[0]) <= along(pair[1])) {
            found.push(format!("an arrow turns back: {route:?}"));
        }
    }
    found
}

#[test]
fn a_chain_is_a_straight_line_and_a_long_arrow_goes_around() {
    let view = plain("A B C", "B<A C<B");
    let middles: Vec<i64> =
        laid(&view, ArrowDirection::Lr).boxes.iter().map(|b| b.centre().1).collect();
    assert!(middles.iter().all(|y| *y == middles[0]), "{middles:?}");
    let view = plain("A B C", "B<A C<B C<A");
    let layout = laid(&view, ArrowDirection::Lr);
    let (long, box_b) = (&layout.routes[1], layout.boxes[1]);
    assert_eq!(long.len(), 4, "from A through the layer of B to C");
    for (_, y) in &long[1..3] {
        assert!(*y < box_b.y || *y > box_b.y + box_b.h, "{long:?} crosses {box_b:?}");
    }
}

#[test]
fn a_source_stands_next_to_what_needs_it() {
    let view = plain("A B C D LATE PRE", "B<A C<B D<C D<LATE LATE<PRE");
    let layout = laid(&view, ArrowDirection::Lr);
    let x = |code: &str| {
        let at = view.nodes.iter().position(|n| n.code == code).expect("node");
        layout.boxes[at].x
    };
    assert_eq!((x("LATE"), x("PRE")), (x("C"), x("B")));
}

#[test]
fn crossings_that_need_not_be_are_not_there() {
    // Defined so that sorting by code would cross A–Z, B–Y and C–X.
    let view = plain("R A B C X Y Z", "A<R B<R C<R Z<A Y<B X<C");
    let layout = laid(&view, ArrowDirection::Lr);
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        let (a, b) = (&layout.routes[a], &layout.routes[b]);
        assert_eq!(a[0].1 < b[0].1, a[1].1 < b[1].1, "{a:?} and {b:?}");
    }
}

#[test]
fn a_large_dag_has_its_place() {
    let view = large(2_000);
    let layout = laid(&view, ArrowDirection::Lr);
    assert_eq!(faults(&view, &layout, ArrowDirection::Lr), Vec::<String>::new());
    assert_eq!(layout, laid(&view, ArrowDirection::Lr), "the same again");
}

proptest! {
    #[test]
    fn boxes_never_touch_and_arrows_never_turn_back(
        pairs in prop::collection::btree_set((0usize..14, 0usize..14), 0..40),
        down: bool,
    ) {
        let names: Vec<String> = (0..14).map(|i| format!("J{i}")).collect();
        let edges: Vec<String> = pairs.iter().filter(|(p, c)| p < c)
            .map(|(p, c)| format!("{}<{}", names[*c], names[*p])).collect();
        let view = plain(&names.join(" "), &edges.join(" "));
        let direction = if down { ArrowDirection::Tb } else { ArrowDirection::Lr };
        prop_assert_eq!(faults(&view, &laid(&view, direction), direction), Vec::<String>::new());
    }
}
