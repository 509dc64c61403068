//! Renders a self-contained SVG: no script, no font, no external file.

mod legend;
mod style;
mod words;

use crate::picture::PictureScene;
use crate::picture::facts::class;
use crate::picture::formats::{ArrowDirection, Drawn};
use crate::picture::layout::{CONDITION_SIZE, LONGEST_CONDITION, Layout, Rect};
use crate::picture::measure::{BoxText, LINE, PAD, clipped};
use crate::picture::view::{LinkKind, PictureNode, PictureNodeKind, SUCCESS};
use legend::Legend;
use std::fmt::Write;
use style::style;
use words::{hover_text, summary, title};

/// Height of title and summary above the drawing.
const HEAD: i64 = 64;
/// Height of the legend below it.
const FOOT: i64 = 44;
/// Minimum width: the title and some of the legend need space too.
const NARROWEST: i64 = 480;

/// Boxes in the colour of their state, edges around the boxes, the critical path in bold, frames, title and legend;
/// readable on white, and on black in dark mode.
pub(super) fn draw_svg<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let mut out = String::new();
    // Writing to a String cannot fail.
    if let Some(layout) = &scene.layout {
        let _ = write(scene, layout, &mut out);
    }
    Drawn::Text(out)
}

fn write(scene: &PictureScene<'_>, layout: &Layout, out: &mut String) -> std::fmt::Result {
    let legend = Legend::of_scene(scene);
    let width = layout.width.max(NARROWEST).max(legend.width);
    let height = layout.height + HEAD + FOOT;
    let title = title(scene);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"{FONTS}\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&title))?;
    style(scene, out)?;
    writeln!(out, "<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>")?;
    writeln!(out, "<text class=\"title\" x=\"24\" y=\"32\">{}</text>", escaped(&title))?;
    writeln!(out, "<text class=\"sum\" x=\"24\" y=\"52\">{}</text>", escaped(&summary(scene)))?;
    writeln!(out, "<g transform=\"translate({},{HEAD})\">", (width - layout.width) / 2)?;
    frames(scene, layout, out)?;
    arrows(scene, layout, out)?;
    for (item, rect) in scene.view.nodes.iter().zip(&layout.boxes) {
        draw_job(item, *rect, out)?;
    }
    writeln!(out, "</g>")?;
    legend.write(height - FOOT, out)?;
    writeln!(out, "</svg>")
}

const FONTS: &str = "'Segoe UI','Helvetica Neue',Roboto,'Noto Sans','PingFang SC',\
                     'Microsoft YaHei','Noto Sans CJK SC',Arial,sans-serif";

fn frames(scene: &PictureScene<'_>, layout: &Layout, out: &mut String) -> std::fmt::Result {
    // Outer frames first, because later elements cover earlier ones.
    let mut frames: Vec<(&str, Rect)> = scene
        .view
        .groups
        .iter()
        .zip(&layout.frames)
        .filter_map(|(group, rect)| rect.map(|rect| (group.label.as_str(), rect)))
        .collect();
    frames.sort_by_key(|(_, rect)| std::cmp::Reverse(rect.w * rect.h));
    for (label, Rect { x, y, w, h }) in frames {
        writeln!(
            out,
            "<rect class=\"frame\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"12\"/>"
        )?;
        let label = escaped(&clipped(label, 13.5, w as f64 - 32.0));
        writeln!(
            out,
            "<text class=\"frame-name\" x=\"{}\" y=\"{}\">{label}</text>",
            x + 16,
            y + 24
        )?;
    }
    Ok(())
}

/// Thin edges first, so that the critical path is drawn on top.
fn arrows(scene: &PictureScene<'_>, layout: &Layout, out: &mut String) -> std::fmt::Result {
    for bold in [false, true] {
        for (i, link) in scene.view.edges.iter().enumerate() {
            if scene.critical_edges[i] != bold {
                continue;
            }
            let other = match link.kind {
                LinkKind::Dependency => "",
                LinkKind::External => " other",
            };
            let (line, tip) = if bold { (" bold", "bold-tip") } else { ("", "tip") };
            let points = &layout.routes[i];
            let ends = (&scene.view.nodes[link.source].code, &scene.view.nodes[link.target].code);
            writeln!(
                out,
                "<path class=\"edge{line}{other}\" data-source=\"{}\" data-target=\"{}\" d=\"{}\"/>",
                escaped(ends.0),
                escaped(ends.1),
                curve(points, scene.wishes.direction)
            )?;
            if let Some((x, y)) = points.last() {
                writeln!(
                    out,
                    "<path class=\"{tip}\" d=\"{}\"/>",
                    arrowhead(*x, *y, scene.wishes.direction, bold)
                )?;
            }
            if link.condition != SUCCESS {
                condition(&link.condition, points, out)?;
            }
        }
    }
    Ok(())
}

/// A smooth line through the points: it passes each layer straight and bends only between layers, where there are no
/// boxes.
fn curve(points: &[(i64, i64)], direction: ArrowDirection) -> String {
    let mut path = String::new();
    let Some((first, rest)) = points.split_first() else { return path };
    let _ = write!(path, "M{} {}", first.0, first.1);
    let mut from = *first;
    for (n, &(x, y)) in rest.iter().enumerate() {
        // Into a layer, through it, out of it: every second segment passes the layer itself.
        let bends = n % 2 == 0;
        let _ = match (bends, direction) {
            (false, _) => write!(path, "L{x} {y}"),
            (true, ArrowDirection::Lr) => {
                let half = (from.0 + x) / 2;
                write!(path, "C{half} {} {half} {y} {x} {y}", from.1)
            }
            (true, ArrowDirection::Tb) => {
                let half = (from.1 + y) / 2;
                write!(path, "C{} {half} {x} {half} {x} {y}", from.0)
            }
        };
        from = (x, y);
    }
    path
}

fn arrowhead(x: i64, y: i64, direction: ArrowDirection, bold: bool) -> String {
    let (long, wide) = if bold { (10, 6) } else { (7, 4) };
    match direction {
        ArrowDirection::Lr => {
            format!("M{x} {y}L{} {}L{} {}Z", x - long, y - wide, x - long, y + wide)
        }
        ArrowDirection::Tb => {
            format!("M{x} {y}L{} {}L{} {}Z", x - wide, y - long, x + wide, y - long)
        }
    }
}

/// The condition of an edge, above its first bend.
fn condition(text: &str, points: &[(i64, i64)], out: &mut String) -> std::fmt::Result {
    let (Some(from), Some(to)) = (points.first(), points.get(1)) else { return Ok(()) };
    let (x, y) = ((from.0 + to.0) / 2, (from.1 + to.1) / 2 - 4);
    writeln!(
        out,
        "<text class=\"when\" x=\"{x}\" y=\"{y}\">{}</text>",
        escaped(&clipped(text, CONDITION_SIZE, LONGEST_CONDITION))
    )
}

fn draw_job(item: &PictureNode, Rect { x, y, w, h }: Rect, out: &mut String) -> std::fmt::Result {
    let state = class(item).unwrap_or_else(|| "defined".to_owned());
    let critical = if item.timing.critical == Some(true) { " critical" } else { "" };
    let other = if item.kind == PictureNodeKind::External { " other" } else { "" };
    let status = item.state.as_ref().map(|s| format!(" data-status=\"{}\"", s.status));
    writeln!(
        out,
        "<g data-job=\"{}\"{}><title>{}</title>",
        escaped(&item.code),
        status.unwrap_or_default(),
        escaped(&hover_text(item))
    )?;
    if matches!(item.kind, PictureNodeKind::Group | PictureNodeKind::Tag) {
        writeln!(
            out,
            "<rect class=\"box {state}\" x=\"{}\" y=\"{}\" width=\"{w}\" height=\"{h}\" rx=\"8\"/>",
            x + 4,
            y + 4
        )?;
    }
    writeln!(
        out,
        "<rect class=\"box {state}{critical}{other}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"8\"/>"
    )?;
    if item.state.is_some() {
        let (y, h) = (y + 8, h - 16);
        writeln!(
            out,
            "<rect class=\"{state}-bar\" x=\"{x}\" y=\"{y}\" width=\"4\" height=\"{h}\"/>"
        )?;
    }
    let lines = BoxText::of_item(item);
    let count = lines.all_lines().count() as f64;
    let mut base = y as f64 + (h as f64 - count * LINE) / 2.0 + 12.0;
    let room = w as f64 - 2.0 * PAD + 4.0;
    let rows = [
        ("head", Some(&lines.head)),
        ("name", lines.name.as_ref()),
        ("state", lines.state.as_ref()),
    ];
    for (class, text) in rows {
        let Some(text) = text else { continue };
        let size = if class == "head" { 12.5 } else { 11.0 };
        let text = escaped(&clipped(text, size, room));
        writeln!(
            out,
            "<text class=\"{class}\" x=\"{}\" y=\"{base}\">{text}</text>",
            x + PAD as i64
        )?;
        base += LINE;
    }
    writeln!(out, "</g>")
}

/// Escapes text for XML: its five special characters as entities, and characters that XML 1.0 forbids (most control
/// characters, U+FFFE, U+FFFF) as U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}
