//! Reads `job_def.csv` and `job_dependency.csv` into the same tree as YAML, so that one reader checks both; a fault
//! names the line on which its record begins.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::near::nearest;
use crate::definition::node::{NodeValue, SourceNode, parse};
use std::sync::Arc;

/// Columns of `job_def` that only a running system fills.
const IGNORED: &[&str] = &[
    "id",
    "job_id",
    "status",
    "is_depend",
    "last_run_time",
    "next_run_time",
    "create_time",
    "update_time",
    "queue",
    "queue_id",
];
/// Columns whose key in a definition has another name.
const RENAMED: &[(&str, &str)] =
    [("job_code", "code"), ("job_name", "name"), ("job_type", "type"), ("group_code", "group")]
        .as_slice();
/// Columns named like their key.
const COLUMNS: &[&str] = &[
    "proc_name",
    "schedule_time",
    "timeout_sec",
    "retry_count",
    "retry_delay_sec",
    "notify_email",
    "is_active",
    "source",
    "sql",
    "sql_file",
    "transaction",
    "script",
    "script_file",
    "interpreter",
    "working_dir",
    "priority",
    "idempotent",
    "tx",
    "on_unknown",
    "worker",
    "owner",
    "tags",
    "params",
    "trigger_rule",
    "template",
    "aliases",
];
const DEPENDENCY: &[&str] = &["job_code", "depends_on", "dependency_order"];

/// The rows of `job_def.csv` as a list of jobs.
pub(crate) fn read_jobs(file: &Arc<str>, text: &str, report: &mut FaultReport) -> SourceNode {
    let known: Vec<&str> =
        RENAMED.iter().map(|(column, _)| *column).chain(COLUMNS.iter().copied()).collect();
    let rows = read_rows(file, text, &known, "job_code", report);
    let jobs = rows.into_iter().map(|row| read_job(row, report)).collect();
    SourceNode { at: SourcePlace::new(file, 0), value: NodeValue::List(jobs) }
}

/// The rows of `job_dependency.csv` as a list of dependencies.
pub(crate) fn dependencies(file: &Arc<str>, text: &str, report: &mut FaultReport) -> SourceNode {
    let rows = read_rows(file, text, DEPENDENCY, "depends_on", report);
    let list = rows.into_iter().map(CsvRow::into_node).collect();
    SourceNode { at: SourcePlace::new(file, 0), value: NodeValue::List(list) }
}

/// A record: its first line, and its non-empty cells by column.
pub(crate) struct CsvRow {
    pub at: SourcePlace,
    pub cells: Vec<(String, String)>,
}

impl CsvRow {
    fn into_node(self) -> SourceNode {
        let entry = |(key, text): (String, String)| {
            (Located::new(&self.at, key), SourceNode::from_text(&self.at, text))
        };
        let entries = self.cells.into_iter().map(entry).collect();
        SourceNode { at: self.at.clone(), value: NodeValue::Map(entries) }
    }
}

fn read_job(mut row: CsvRow, report: &mut FaultReport) -> SourceNode {
    for (column, _) in &mut row.cells {
        if let Some((_, key)) = RENAMED.iter().find(|(from, _)| from == column) {
            *column = (*key).to_owned();
        }
    }
    let has = |key: &str| row.cells.iter().any(|(k, _)| k == key);
    // Tables from before job types existed contain only procedures.
    if !has("type") && has("proc_name") {
        row.cells.push(("type".to_owned(), "PROC".to_owned()));
    }
    let mut node = row.into_node();
    if let NodeValue::Map(entries) = &mut node.value {
        for (key, cell) in entries {
            match key.value.as_str() {
                "params" => *cell = list_in(cell, report),
                "tags" | "aliases" => *cell = split(cell),
                _ => {}
            }
        }
    }
    node
}

/// Splits `a; b` into a list.
fn split(cell: &SourceNode) -> SourceNode {
    let NodeValue::Text(text) = &cell.value else {
        return cell.clone();
    };
    let parts = text.split([';', ',']).map(str::trim).filter(|p| !p.is_empty());
    let items = parts.map(|p| SourceNode::from_text(&cell.at, p)).collect();
    SourceNode { at: cell.at.clone(), value: NodeValue::List(items) }
}

/// A cell that holds YAML or JSON; its values are all on the record's line.
fn list_in(cell: &SourceNode, report: &mut FaultReport) -> SourceNode {
    let NodeValue::Text(text) = &cell.value else {
        return cell.clone();
    };
    let mut inner = FaultReport::default();
    let found = parse(&cell.at.file, text, &mut inner);
    match (found, inner.finish()) {
        (Some(node), Ok(_)) => moved(node, &cell.at),
        _ => {
            let cure = "write [{name: NAME, value: \"…\"}, …]";
            report.fault(&cell.at, "the cell params is not a list of parameters", cure);
            SourceNode { at: cell.at.clone(), value: NodeValue::List(Vec::new()) }
        }
    }
}

fn moved(node: SourceNode, at: &SourcePlace) -> SourceNode {
    let value = match node.value {
        NodeValue::List(items) => {
            NodeValue::List(items.into_iter().map(|i| moved(i, at)).collect())
        }
        NodeValue::Map(entries) => NodeValue::Map(
            entries.into_iter().map(|(k, v)| (Located::new(at, k.value), moved(v, at))).collect(),
        ),
        value @ (NodeValue::Null | NodeValue::Text(_)) => value,
    };
    SourceNode { at: at.clone(), value }
}

/// The records of a text with a header; unknown columns are faults.
pub(crate) fn read_rows(
    file: &Arc<str>,
    text: &str,
    known: &[&str],
    needed: &str,
    report: &mut FaultReport,
) -> Vec<CsvRow> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header: Vec<String> = match reader.headers() {
        Ok(header) => header.iter().map(str::to_lowercase).collect(),
        Err(error) => {
            unreadable(&SourcePlace::new(file, 1), &error, report);
            return Vec::new();
        }
    };
    check_header(&SourcePlace::new(file, 1), &header, known, needed, report);
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => {
                let at = SourcePlace::new(file, line_of(record.position()));
                let cells = header.iter().zip(record.iter()).filter(|(column, cell)| {
                    known.contains(&column.as_str()) && !matches!(*cell, "" | "NULL" | "\\N")
                });
                let cells = cells.map(|(k, v)| (k.clone(), v.to_owned())).collect();
                rows.push(CsvRow { at, cells });
            }
            Err(error) => {
                unreadable(&SourcePlace::new(file, line_of(error.position())), &error, report)
            }
        }
    }
    rows
}

fn line_of(position: Option<&csv::Position>) -> u32 {
    position.map_or(0, |p| u32::try_from(p.line()).unwrap_or(u32::MAX))
}

fn unreadable(at: &SourcePlace, error: &csv::Error, report: &mut FaultReport) {
    let (what, cure) = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => (
            format!("this record has {len} cells and the header {expected_len}"),
            "put texts that hold a comma between double quotes",
        ),
        _ => ("this is not readable as CSV".to_owned(), "save it as UTF-8, separated by commas"),
    };
    report.fault(at, what, cure);
}

fn check_header(
    at: &SourcePlace,
    header: &[String],
    known: &[&str],
    needed: &str,
    report: &mut FaultReport,
) {
    for (i, column) in header.iter().enumerate() {
        let fits = known.contains(&column.as_str()) || IGNORED.contains(&column.as_str());
        if !fits {
            let cure = match nearest(column, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known columns are {}", known.join(", ")),
            };
            report.fault(at, format!("unknown column {column:?}"), cure);
        } else if header[..i].contains(column) {
            report.fault(at, format!("column {column} occurs twice"), "keep one of the two");
        }
    }
    if !header.iter().any(|column| column == needed) {
        report.fault(
            at,
            format!("there is no column {needed}"),
            "add it; the first line names the columns",
        );
    }
}
