//! Figures, and how they are shown.

use crate::machine::{self, quantile};
use crate::place::Database;
use comfy_table::{CellAlignment, Table};
use serde_json::json;
use std::time::Duration;

/// A figure of a scene: what it is of, its unit, how much.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    value: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds are small")]
pub(crate) fn figure(name: impl Into<String>, unit: &'static str, value: i64) -> Figure {
    Figure { name: name.into(), unit, value: value as f64 }
}

pub(crate) fn ratio(name: impl Into<String>, unit: &'static str, value: f64) -> Figure {
    Figure { name: name.into(), unit, value }
}

/// What one scene came to on one database.
pub(crate) struct Report {
    /// As one types it.
    pub(crate) scene: String,
    pub(crate) database: Database,
    /// Of the machine, before and after.
    pub(crate) load: (String, String),
    pub(crate) rows: Vec<Figure>,
}

impl Report {
    pub(crate) fn json(&self) -> String {
        let figures: Vec<_> = self
            .rows
            .iter()
            .map(|f| json!({"name": f.name, "unit": f.unit, "value": f.value}))
            .collect();
        json!({
            "scene": self.scene, "db": self.database.name(),
            "load_before": self.load.0, "load_after": self.load.1, "figures": figures,
        })
        .to_string()
    }
}

/// A table for each scene, a column for each database.
pub(crate) fn table(all: &[Report]) -> String {
    let mut out = String::new();
    for group in all.chunk_by(|a, b| a.scene == b.scene) {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::ASCII_MARKDOWN);
        let names = group.iter().map(|r| r.database.name().to_owned());
        let head = std::iter::once(group[0].scene.clone()).chain(names);
        table.set_header(head);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for (place, row) in group[0].rows.iter().enumerate() {
            let values = group.iter().map(|r| r.rows.get(place).map_or_else(String::new, shown));
            let name = format!("{} [{}]", row.name, row.unit);
            table.add_row(std::iter::once(name).chain(values));
        }
        let loads = group.iter().map(|r| format!("{} → {}", r.load.0, r.load.1));
        table.add_row(std::iter::once("load of the machine".to_owned()).chain(loads));
        out.push_str(&format!("{table}\n\n"));
    }
    out
}

fn shown(figure: &Figure) -> String {
    let value = figure.value;
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// p50, p99 and the greatest.
pub(crate) fn spread(name: &str, unit: &'static str, mut values: Vec<i64>) -> Vec<Figure> {
    let parts = [("p50", 500), ("p99", 990), ("max", 1_000)];
    parts
        .into_iter()
        .map(|(word, at)| figure(format!("{name} {word}"), unit, quantile(&mut values, at)))
        .collect()
}

/// Processor time and memory of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    cpu: Duration,
}

impl Used {
    pub(crate) fn now() -> Self {
        Self { cpu: machine::cpu_of("self") }
    }

    /// Since then, of one processor, and the memory of now.
    pub(crate) fn since(self, passed: Duration) -> Vec<Figure> {
        let cpu = Self::now().cpu.saturating_sub(self.cpu);
        vec![
            ratio("processor", "% of one", 100.0 * cpu.as_secs_f64() / passed.as_secs_f64()),
            figure("memory", "MiB", machine::memory_kib("VmRSS").unwrap_or(0) / 1_024),
        ]
    }
}
