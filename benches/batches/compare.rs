//! What changed between two files of results.

use crate::report::shown;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A file that is not what `--out` writes.
#[derive(Debug, thiserror::Error)]
#[error("{file}{place}: {why}; give two files that were written with --out")]
pub(crate) struct Unreadable {
    file: String,
    place: String,
    why: String,
}

/// Scene, database and body.
type Name = (String, String, String);

/// Whether a smaller figure is the better one, and below how many per cent a change says nothing.
struct Judged {
    key: &'static str,
    head: &'static str,
    noise: Noise,
}

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    /// The spread of the runs and of the floor around them, and never less than 5 %.
    Measured,
    /// Counts differ by how the tasks met.
    Counted,
}

const fn judged(key: &'static str, head: &'static str, noise: Noise) -> Judged {
    Judged { key, head, noise }
}

/// What is compared; of all of them less is better.
const COMPARED: [Judged; 9] = [
    judged("makespan_ms", "makespan ms", Noise::Measured),
    judged("x_fused", "x F", Noise::Measured),
    judged("x_trusted", "x FT", Noise::Measured),
    judged("latency_p50_x_commit", "hop p50 x C", Noise::Measured),
    judged("trust_p50_us", "trust µs", Noise::Measured),
    judged("statements_per_job", "statements/job", Noise::Counted),
    judged("commits_per_job", "commits/job", Noise::Counted),
    judged("cpu_s", "cpu s", Noise::Measured),
    judged("peak_mib", "peak MiB", Noise::Measured),
];

/// The table of both.
pub(crate) fn files(old: &Path, new: &Path) -> anyhow::Result<String> {
    let (old, new) = (read(old)?, read(new)?);
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["scene", "db", "body", "figure", "old", "new", "change %", "noise %", ""]);
    for column in table.column_iter_mut().skip(4).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut alone = Vec::new();
    for (name, was) in &old {
        let Some(is) = new.get(name) else {
            alone.push(format!("{} {} {}: only in the old file\n", name.0, name.1, name.2));
            continue;
        };
        for row in COMPARED.iter().filter_map(|judged| row(name, judged, was, is)) {
            table.add_row(row);
        }
    }
    let fresh = new.keys().filter(|name| !old.contains_key(*name));
    alone.extend(fresh.map(|n| format!("{} {} {}: only in the new file\n", n.0, n.1, n.2)));
    Ok(format!("{table}\n\n{}", alone.concat()))
}

fn row(name: &Name, judged: &Judged, was: &Value, is: &Value) -> Option<Vec<String>> {
    let (old, new) = (was[judged.key].as_f64()?, is[judged.key].as_f64()?);
    let change = if old == 0.0 { 0.0 } else { 100.0 * (new - old) / old };
    let spreads = [was, is].into_iter().flat_map(|line| {
        let floor = match judged.key {
            "x_trusted" => "trusted_spread_pct",
            _ => "fused_spread_pct",
        };
        ["spread_pct", floor].map(|key| line[key].as_f64().unwrap_or(0.0))
    });
    let noise = match judged.noise {
        Noise::Measured => spreads.fold(5.0, f64::max),
        Noise::Counted => 2.0,
    };
    let word = match change {
        c if c > noise => "worse",
        c if c < -noise => "better",
        _ => "",
    };
    let (scene, db, body) = name.clone();
    let figures = [shown(old), shown(new), format!("{change:+.1}"), format!("{noise:.0}")];
    let head = [scene, db, body, judged.head.to_owned()];
    Some(head.into_iter().chain(figures).chain([word.to_owned()]).collect())
}

/// The lines of a file by what they are of; the last of two of the same counts.
fn read(file: &Path) -> Result<BTreeMap<Name, Value>, Unreadable> {
    let unreadable =
        |place: String, why: String| Unreadable { file: file.display().to_string(), place, why };
    let text =
        std::fs::read_to_string(file).map_err(|e| unreadable(String::new(), e.to_string()))?;
    let mut cells = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: String| unreadable(format!(", line {number}"), why);
        let value: Value = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        let word = |key: &str| {
            let found = value[key].as_str().map(str::to_owned);
            found.ok_or_else(|| wrong(format!("it has no \"{key}\"")))
        };
        let name = (word("scene")?, word("db")?, word("body")?);
        if value["makespan_ms"].as_f64().is_none() {
            return Err(wrong("it has no \"makespan_ms\"".to_owned()));
        }
        cells.insert(name, value);
    }
    if cells.is_empty() {
        return Err(unreadable(String::new(), "it holds no result".to_owned()));
    }
    Ok(cells)
}
