//! The only place that prints: tables and lines to stdout, errors to stderr.

#![expect(clippy::print_stderr, reason = "this is the file that prints")]

use crate::domain::queue::QueueStatus;
use crate::domain::time::Millis;
use anyhow::Result;
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use std::io::{IsTerminal as _, Write as _};

/// A line to stdout. A reader that has gone away (`| head`) ends the program quietly.
pub(super) fn line(text: &str) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// A line to stderr.
pub(super) fn note(text: &str) {
    eprintln!("{text}");
}

/// An error to stderr.
pub(super) fn error(text: &str) {
    eprintln!("error: {text}");
}

/// A JSON document to stdout.
pub(super) fn json(value: &serde_json::Value) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// A table with a header; wide characters are measured as terminals show them.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule).bottom_border(rule));
    // On a terminal long texts are wrapped; whoever pipes a table into a tool wants whole lines.
    match console::Term::stdout().size_checked() {
        Some((_, columns)) => {
            table.set_width(columns).set_content_arrangement(ContentArrangement::Dynamic)
        }
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    table.to_string()
}

/// Whether people look at stderr, and colour is welcome there (https://no-color.org is heeded).
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A state in its colour, for terminals.
pub(super) fn coloured(status: QueueStatus) -> String {
    let colour = match status {
        QueueStatus::Success | QueueStatus::Forced => 32,
        QueueStatus::Warning | QueueStatus::RetryWait | QueueStatus::Killing => 33,
        QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => 31,
        QueueStatus::Unknown => 35,
        QueueStatus::Running => 36,
        QueueStatus::UpstreamFailed | QueueStatus::Skipped => 90,
        QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => 37,
    };
    format!("\u{1b}[{colour}m{status}\u{1b}[0m")
}

/// A moment, or a dash.
pub(super) fn moment(at: Option<Millis>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

/// The first line of a text, cut to `max` characters.
pub(super) fn brief(text: &str, max: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() <= max {
        return first.to_owned();
    }
    let cut: String = first.chars().take(max.saturating_sub(1)).collect();
    format!("{cut}…")
}
