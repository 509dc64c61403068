//! DOT text for Graphviz.

use crate::domain::queue::QueueStatus;
use crate::domain::time::span_words;
use crate::picture::{Item, JobState, View};
use std::fmt::Write;

/// The picture as a DOT digraph, from left to right, the group as a cluster, states as colours.
pub fn dot(view: &View) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail; fmt::Error is a formality.
    let _ = draw(view, &mut out);
    out
}

fn draw(view: &View, out: &mut String) -> std::fmt::Result {
    writeln!(out, "digraph {} {{", quoted(&view.title))?;
    writeln!(out, "  rankdir=LR;")?;
    writeln!(out, "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\"];")?;
    writeln!(out, "  subgraph {} {{", quoted(&format!("cluster_{}", view.group.code)))?;
    writeln!(out, "    label={};", quoted(&view.group.label))?;
    for item in &view.nodes {
        let colour = item.state.as_ref().map_or("#ffffff", |s| colour(s.status));
        writeln!(
            out,
            "    {} [label={}, fillcolor=\"{colour}\"];",
            quoted(&item.code),
            quoted(&label(item))
        )?;
    }
    writeln!(out, "  }}")?;
    for (source, target) in &view.edges {
        writeln!(out, "  {} -> {};", quoted(source), quoted(target))?;
    }
    writeln!(out, "}}")
}

/// Code, name where it says more, state and time taken, a line each.
fn label(item: &Item) -> String {
    let mut lines = vec![item.code.clone()];
    if item.name != item.code {
        lines.push(item.name.clone());
    }
    if let Some(state) = &item.state {
        lines.push(state_words(state));
    }
    lines.join("\n")
}

fn state_words(state: &JobState) -> String {
    let took = state.start.zip(state.end).filter(|(start, end)| end >= start);
    let took = took.map(|(start, end)| format!(" {}", span_words(end.since(start))));
    let again = if state.attempt > 1 { format!(" (try {})", state.attempt) } else { String::new() };
    format!("{}{}{again}", state.status, took.unwrap_or_default())
}

/// A DOT string: whatever it holds, it stays one string. A backslash is doubled, for DOT reads
/// `\N` or `\l` in a label as orders of its own; a line end becomes `\n`; other control
/// characters, which Graphviz hands on to SVG as they are, become spaces.
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

/// Fill colours light enough for black text: green done, yellow look, red wrong, blue at work,
/// grey not yet or not at all.
fn colour(status: QueueStatus) -> &'static str {
    match status {
        QueueStatus::Success => "#b7e4b7",
        QueueStatus::Warning | QueueStatus::Forced => "#f6e58d",
        QueueStatus::Failed | QueueStatus::Timeout => "#f5a3a3",
        QueueStatus::Killed | QueueStatus::Killing => "#e0b0d5",
        QueueStatus::Unknown => "#f0932b",
        QueueStatus::UpstreamFailed => "#f8d7d7",
        QueueStatus::Running => "#a9d3f5",
        QueueStatus::Queued | QueueStatus::RetryWait => "#d6eaf8",
        QueueStatus::Held => "#d7ccc8",
        QueueStatus::Skipped | QueueStatus::NotTaken => "#e0e0e0",
        QueueStatus::Pending => "#f5f5f5",
    }
}
