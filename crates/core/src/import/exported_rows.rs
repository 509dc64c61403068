//! Rows of another scheduler's tables that a person exported: CSV with a header, or JSON. A table is known by the name of its
//! file, or by the key under which its rows stand.

use crate::definition::{NodeValue, SourceNode};
use crate::domain::source::scheduler_tables::SchedulerRow;
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::note::ImportOrigin;
use crate::import::tree::{entries, list, origin, tree};
use std::collections::BTreeMap;

/// A row of an export, with where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExportedRow {
    pub(crate) at: ImportOrigin,
    pub(crate) row: SchedulerRow,
}

/// Names of tables, in lower case, and what may stand before them, such as `dba_`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableNames {
    pub(crate) known: &'static [&'static str],
    pub(crate) prefixes: &'static [&'static str],
}

/// Rows by the name of their table, in the order of the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportedTables(BTreeMap<&'static str, Vec<ExportedRow>>);

impl ExportedTables {
    /// Reads all files; a file of no known table is a fault.
    pub(crate) fn read_files(given: &[Given], names: TableNames, draft: &mut Draft) -> Self {
        let mut found = Self::default();
        for file in given {
            let Some(text) = text(file, draft) else { continue };
            let stem = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
            let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
            let of_file = names.find_table(stem);
            let first = text.trim_start();
            if first.starts_with(['{', '[']) {
                let Some(root) = tree(&file.path, text, draft) else { continue };
                found.read_json(&root, of_file, names, draft);
            } else if let Some(table) = of_file {
                found.read_csv(file, text, table, draft);
            } else {
                refuse_unknown(&ImportOrigin::new(&file.path, 0), names, draft);
            }
        }
        found
    }

    /// The rows of a table; empty for a missing one.
    pub(crate) fn rows(&self, table: &str) -> &[ExportedRow] {
        self.0.get(table).map_or(&[], Vec::as_slice)
    }

    fn read_csv(&mut self, file: &Given, text: &str, table: &'static str, draft: &mut Draft) {
        let header = text.lines().next().unwrap_or_default();
        let delimiters = [b',', b';', b'\t', b'|'];
        let count = |d: &u8| header.bytes().filter(|byte| byte == d).count();
        let delimiter = delimiters.into_iter().max_by_key(count).unwrap_or(b',');
        let mut reader =
            csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        let rows = self.0.entry(table).or_default();
        let columns: Vec<String> = match reader.headers() {
            Ok(header) => header.iter().map(|name| name.trim().to_lowercase()).collect(),
            Err(error) => {
                let at = ImportOrigin::new(&file.path, 1);
                draft.fault(&at, format!("its header cannot be read: {error}"), CSV_FIX);
                return;
            }
        };
        if let Some(twice) =
            columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name))
        {
            let at = ImportOrigin::new(&file.path, 1);
            draft.fault(&at, format!("column {} is there twice", twice.1), CSV_FIX);
            return;
        }
        for record in reader.records() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    let line = error.position().map_or(0, csv::Position::line);
                    let at = ImportOrigin::new(&file.path, line);
                    draft.fault(&at, format!("this row cannot be read: {error}"), CSV_FIX);
                    continue;
                }
            };
            let line = record.position().map_or(0, csv::Position::line);
            let cell = |value: &str| (!is_null(value)).then(|| value.to_owned());
            let pairs = columns.iter().cloned().zip(record.iter().map(cell));
            let at = ImportOrigin::new(&file.path, line);
            rows.push(ExportedRow { at, row: SchedulerRow(pairs.collect()) });
        }
    }

    /// A list of rows, a map of such lists by table, or what SQLcl writes: `results` with `items`.
    fn read_json(
        &mut self,
        node: &SourceNode,
        table: Option<&'static str>,
        names: TableNames,
        draft: &mut Draft,
    ) {
        match &node.value {
            NodeValue::List(items) => {
                let Some(table) = table else {
                    // A list of documents, each of which says what it is.
                    if items.iter().any(|item| matches!(item.value, NodeValue::List(_))) {
                        items.iter().for_each(|item| self.read_json(item, None, names, draft));
                    } else {
                        refuse_unknown(&origin(node), names, draft);
                    }
                    return;
                };
                let rows = self.0.entry(table).or_default();
                for item in items {
                    match row_of(item) {
                        Some(row) => rows.push(ExportedRow { at: origin(item), row }),
                        None => draft.fault(
                            &origin(item),
                            "this is no row: a map of columns and values is one",
                            "export the table again",
                        ),
                    }
                }
            }
            NodeValue::Map(_) => {
                for (key, value) in entries(node) {
                    match (names.find_table(key), key, table) {
                        (Some(table), ..) => self.read_json(value, Some(table), names, draft),
                        (None, "results", table) => {
                            for result in list(value) {
                                let items = entries(result).find(|(key, _)| *key == "items");
                                if let Some((_, items)) = items {
                                    self.read_json(items, table, names, draft);
                                }
                            }
                        }
                        (None, "items", table) => self.read_json(value, table, names, draft),
                        (None, ..) => refuse_unknown(&origin(value), names, draft),
                    }
                }
            }
            NodeValue::Null if table.is_some() => {
                self.0.entry(table.unwrap_or_default()).or_default();
            }
            NodeValue::Null | NodeValue::Text(_) => {
                draft.fault(&origin(node), "this is no list of rows", "export the table again");
            }
        }
    }
}

const CSV_FIX: &str =
    "export it with a header, and quote values that hold delimiters, quotes or line breaks";

impl TableNames {
    fn find_table(self, name: &str) -> Option<&'static str> {
        let name = name.trim().to_lowercase();
        // A name may stand with its schema: msdb.dbo.sysjobs.
        let last = name.rsplit('.').next().unwrap_or(&name);
        let bare = self.prefixes.iter().find_map(|prefix| last.strip_prefix(prefix));
        let bare = bare.unwrap_or(last);
        self.known.iter().find(|table| **table == bare).copied()
    }
}

fn refuse_unknown(at: &ImportOrigin, names: TableNames, draft: &mut Draft) {
    draft.fault(
        at,
        "of which table these rows are cannot be told",
        format!("name the file, or the key, after the table: {}", names.known.join(", ")),
    );
}

/// A row of a JSON map: plain values by column in lower case.
fn row_of(node: &SourceNode) -> Option<SchedulerRow> {
    let NodeValue::Map(all) = &node.value else { return None };
    let mut row = BTreeMap::new();
    for (key, value) in all {
        let text = match &value.value {
            NodeValue::Null => None,
            NodeValue::Text(text) => (!is_null(text)).then(|| text.clone()),
            NodeValue::List(_) | NodeValue::Map(_) => return None,
        };
        row.insert(key.value.trim().to_lowercase(), text);
    }
    Some(SchedulerRow(row))
}

/// What exports write for NULL.
fn is_null(text: &str) -> bool {
    text.is_empty() || text == "NULL" || text == "(null)"
}
