//! Renders a Mermaid flowchart.

use crate::picture::PictureScene;
use crate::picture::formats::Drawn;
use crate::picture::measure::BoxText;
use crate::picture::paint::paint_of;
use crate::picture::view::{PictureEdge, PictureNodeKind, SUCCESS};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Maximum number of edges that Mermaid draws by default (`maxEdges`).
const EDGES_MAX: usize = 500;
/// Maximum number of characters by default (`maxTextSize`).
const TEXT_MAX: usize = 50_000;

/// A flowchart. Its ids are `n1`, `n2`, … instead of codes, because a job called `end` would break it.
pub(super) fn draw_mermaid<'a>(scene: &'a PictureScene<'_>) -> Drawn<'a> {
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = write(scene, &mut body);
    let edges = scene.view.edges.len();
    let mut out = format!("---\ntitle: \"{}\"\n---\n", escaped(&scene.view.title));
    let characters = body.chars().count();
    if edges > EDGES_MAX || characters > TEXT_MAX {
        let _ = writeln!(
            out,
            "%% {edges} arrows, {characters} characters: Mermaid stops at {EDGES_MAX} and {TEXT_MAX} \
             unless maxEdges and maxTextSize are raised. Use --focus JOB for a part of it, or --collapse."
        );
    }
    Drawn::Text(out + &body)
}

fn write(scene: &PictureScene<'_>, out: &mut String) -> std::fmt::Result {
    let view = scene.view;
    writeln!(out, "flowchart {}", scene.wishes.direction.as_letters())?;
    inside(scene, None, 1, out)?;
    for link in &view.edges {
        writeln!(out, "  n{} {} n{}", link.source + 1, arrow(link), link.target + 1)?;
    }
    let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (i, item) in view.nodes.iter().enumerate() {
        if let Some(state) = &item.state {
            let paint = paint_of(Some(state.status));
            let word = state.status.as_str();
            if !classes.contains_key(word) {
                let (fill, line) = (paint.fill, paint.line);
                writeln!(out, "  classDef {word} fill:{fill},stroke:{line},color:#1f2933")?;
            }
            classes.entry(word).or_default().push(format!("n{}", i + 1));
        }
    }
    for (word, ids) in classes {
        writeln!(out, "  class {} {word}", ids.join(","))?;
    }
    marks(scene, out)
}

/// Styles for the critical path and for nodes of other batches.
fn marks(scene: &PictureScene<'_>, out: &mut String) -> std::fmt::Result {
    let nodes = scene.view.nodes.iter().enumerate();
    let ids = |(i, _)| format!("n{}", i + 1);
    let critical: Vec<String> =
        nodes.clone().filter(|(_, item)| item.timing.critical == Some(true)).map(ids).collect();
    if !critical.is_empty() {
        writeln!(out, "  classDef critical stroke-width:4px")?;
        writeln!(out, "  class {} critical", critical.join(","))?;
    }
    let external: Vec<String> =
        nodes.filter(|(_, item)| item.kind == PictureNodeKind::External).map(ids).collect();
    if !external.is_empty() {
        writeln!(out, "  classDef external stroke-dasharray:5 4")?;
        writeln!(out, "  class {} external", external.join(","))?;
    }
    let bold = scene.critical_edges.iter().enumerate().filter(|(_, critical)| **critical);
    let bold: Vec<String> = bold.map(|(i, _)| i.to_string()).collect();
    if bold.is_empty() {
        return Ok(());
    }
    writeln!(out, "  linkStyle {} stroke-width:4px", bold.join(","))
}

/// Subgraphs and nodes directly in a group, or in none.
fn inside(
    scene: &PictureScene<'_>,
    group: Option<&str>,
    depth: usize,
    out: &mut String,
) -> std::fmt::Result {
    let view = scene.view;
    let pad = "  ".repeat(depth);
    let numbers: HashMap<&str, usize> =
        view.groups.iter().enumerate().map(|(i, g)| (g.id.as_str(), i + 1)).collect();
    for cluster in view.groups.iter().filter(|g| g.parent.as_deref() == group) {
        let number = numbers[cluster.id.as_str()];
        writeln!(out, "{pad}subgraph g{number}[\"{}\"]", escaped(&cluster.label))?;
        inside(scene, Some(&cluster.id), depth + 1, out)?;
        writeln!(out, "{pad}end")?;
    }
    for (i, item) in view.nodes.iter().enumerate() {
        if item.group.as_deref() == group {
            let lines: Vec<String> = BoxText::of_item(item).all_lines().map(escaped).collect();
            writeln!(out, "{pad}n{}[\"{}\"]", i + 1, lines.join("<br/>"))?;
        }
    }
    Ok(())
}

fn arrow(link: &PictureEdge) -> String {
    if link.condition == SUCCESS {
        "-->".to_owned()
    } else {
        format!("-->|\"{}\"|", escaped(&link.condition))
    }
}

/// Escapes everything that Mermaid, its Markdown or HTML would interpret: letters, digits and a few harmless characters
/// stay, everything else becomes `#code;`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' => {}
            c if c.is_control() => out.push(' '),
            ' ' | '_' | '-' | '.' | ',' | ':' | '/' | '+' | '=' | '(' | ')' | '≈' | '…' => {
                out.push(c);
            }
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
    }
    out
}
