//! Renders DOT text for Graphviz.

use crate::picture::PictureScene;
use crate::picture::formats::Drawn;
use crate::picture::measure::BoxText;
use crate::picture::paint::fill_colour;
use crate::picture::view::{PictureEdge, PictureNode, PictureNodeKind, SUCCESS};
use std::fmt::Write;

/// A DOT digraph: groups are clusters, states are colours, the critical path is bold, and nodes of other batches are
/// dashed.
pub(super) fn draw_dot<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(scene, &mut out);
    Drawn::Text(out)
}

fn write(scene: &PictureScene<'_>, out: &mut String) -> std::fmt::Result {
    let view = scene.view;
    writeln!(out, "digraph {} {{", quoted(&view.title))?;
    writeln!(out, "  rankdir={};", scene.wishes.direction.as_letters())?;
    writeln!(out, "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\"];")?;
    inside(scene, None, 1, out)?;
    for (link, critical) in view.edges.iter().zip(&scene.critical_edges) {
        let ends = (&view.nodes[link.source].code, &view.nodes[link.target].code);
        writeln!(out, "  {} -> {}{};", quoted(ends.0), quoted(ends.1), style(link, *critical))?;
    }
    writeln!(out, "}}")
}

/// Clusters and nodes directly in a group, or in none.
fn inside(
    scene: &PictureScene<'_>,
    group: Option<&str>,
    depth: usize,
    out: &mut String,
) -> std::fmt::Result {
    let view = scene.view;
    let pad = "  ".repeat(depth);
    for cluster in view.groups.iter().filter(|g| g.parent.as_deref() == group) {
        writeln!(out, "{pad}subgraph {} {{", quoted(&format!("cluster_{}", cluster.id)))?;
        writeln!(out, "{pad}  label={};", quoted(&cluster.label))?;
        inside(scene, Some(&cluster.id), depth + 1, out)?;
        writeln!(out, "{pad}}}")?;
    }
    for item in view.nodes.iter().filter(|item| item.group.as_deref() == group) {
        let lines: Vec<String> = BoxText::of_item(item).all_lines().map(str::to_owned).collect();
        let colour = fill_colour(item.state.as_ref().map(|s| s.status));
        let (code, label) = (quoted(&item.code), quoted(&lines.join("\n")));
        writeln!(out, "{pad}{code} [label={label}, fillcolor=\"{colour}\"{}];", extra(item))?;
    }
    Ok(())
}

fn extra(item: &PictureNode) -> &'static str {
    match (item.kind, item.timing.critical) {
        (PictureNodeKind::External, _) => ", style=\"rounded,filled,dashed\"",
        (PictureNodeKind::Job | PictureNodeKind::Group | PictureNodeKind::Tag, Some(true)) => {
            ", penwidth=3"
        }
        (PictureNodeKind::Job | PictureNodeKind::Group | PictureNodeKind::Tag, _) => "",
    }
}

fn style(link: &PictureEdge, critical: bool) -> String {
    let mut words = Vec::new();
    if link.condition != SUCCESS {
        words.push(format!("label={}", quoted(&link.condition)));
    }
    if critical {
        words.push("penwidth=3".to_owned());
    }
    if words.is_empty() { String::new() } else { format!(" [{}]", words.join(", ")) }
}

/// A quoted DOT string. A backslash is doubled, because DOT interprets `\N` or `\l` in a label; a line end becomes
/// `\n`; other control characters, which Graphviz copies into SVG, become spaces.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => {}
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
