//! Displays documents of a server: lists as tables, with the columns of each verb; everything else
//! as fields.

use crate::cli::out;
use crate::domain::text::lang::Lang;
use serde_json::Value;

/// A column: its position in a document, and its heading in both languages.
pub(super) type TableColumn = (&'static str, &'static str, &'static str);

/// Maximum length of a cell, in characters.
const CELL: usize = 60;

/// A list as a table.
pub(super) fn table(items: &[Value], columns: &[TableColumn], lang: Lang) {
    if items.is_empty() {
        out::print_line(lang.select("nothing", "无"));
        return;
    }
    let header: Vec<&str> = columns.iter().map(|(_, en, zh)| lang.select(en, zh)).collect();
    let row = |item: &Value| {
        columns
            .iter()
            .map(|(at, ..)| match (*at, item.pointer(&pointer(at)).unwrap_or(&Value::Null)) {
                ("error_message" | "reason", Value::String(text)) => {
                    out::brief(&out::message(text), CELL)
                }
                (_, value) => table_cell(value),
            })
            .collect()
    };
    out::print_line(&out::table(&header, items.iter().map(row).collect()));
}

fn pointer(at: &str) -> String {
    format!("/{}", at.replace('.', "/"))
}

/// A value in a cell.
fn table_cell(value: &Value) -> String {
    out::brief(&words(value), CELL)
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => out::local_text(text),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let one = |(name, value): (&String, &Value)| match value {
                Value::Number(n) => format!("{n} {name}"),
                other => format!("{name}={}", words(other)),
            };
            fields.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Prints a document: its plain fields, and each list of documents in it as a table.
pub(super) fn document(document: &Value, lists: &[(&str, &[TableColumn])], lang: Lang) {
    let Value::Object(fields) = document else {
        out::print_line(&words(document));
        return;
    };
    for (name, columns) in lists {
        if let Some(Value::Array(items)) = fields.get(*name) {
            table(items, columns, lang);
        }
    }
    let is_shown = |(name, value): &(&String, &Value)| {
        let is_list = lists.iter().any(|(list, _)| list == name);
        let is_nothing = match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        !is_list && !is_nothing
    };
    for (name, value) in fields.iter().filter(is_shown) {
        out::print_line(&format!("{}: {}", name.replace('_', " "), words(value)));
    }
}
