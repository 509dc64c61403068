//! docs/values.md, from the table that the tests run.

use super::table::{MYSQL, POSTGRES, POSTGRES_NOT_CARRIED, SQLITE, TypedValue};
use std::fmt::Write;

/// As code in a table of Markdown.
fn code(text: &str) -> String {
    let shown: String = text
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect();
    match shown.trim().is_empty() || shown.contains('`') {
        true => format!("<code>{shown}</code>"),
        false => format!("`{}`", shown.replace('|', "\\|")),
    }
}

fn table(values: &[TypedValue]) -> String {
    let mut table = String::from("| type | value | its text | its type |\n|---|---|---|---|\n");
    for value in values {
        let (ty, sql, text) = (code(value.ty), code(value.sql), code(value.text));
        let _ = writeln!(table, "| {ty} | {sql} | {text} | {} |", value.kind);
    }
    table
}

/// What stands behind the introduction.
pub(crate) fn tables() -> String {
    let mut page = String::new();
    for (name, values) in
        [("PostgreSQL", POSTGRES), ("MySQL and MariaDB", MYSQL), ("SQLite", SQLITE)]
    {
        let _ = write!(page, "\n## {name}\n\n{}", table(values));
        if name == "PostgreSQL" {
            page.push_str("\nNot carried:\n\n| type | the error says |\n|---|---|\n");
            for (ty, _, reason) in POSTGRES_NOT_CARRIED {
                let _ = writeln!(page, "| {} | {reason} |", code(ty));
            }
        }
    }
    page
}
