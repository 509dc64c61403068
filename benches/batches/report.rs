//! Tables for people.

use crate::cell::Cell;
use crate::figures::{Figure, Part};
use comfy_table::{CellAlignment, Table};

/// For each database its tables, below what they were measured on.
pub(crate) fn tables(cells: &[Cell]) -> String {
    let mut out = String::new();
    let mut databases: Vec<_> = cells.iter().map(|c| c.database).collect();
    databases.sort_by_key(|d| d.name());
    databases.dedup();
    for database in databases {
        let own: Vec<&Cell> = cells.iter().filter(|c| c.database == database).collect();
        let loads: Vec<&str> =
            own.iter().flat_map(|c| [c.load.0.as_str(), c.load.1.as_str()]).collect();
        let (first, last) = (loads.first().copied(), loads.last().copied());
        out.push_str(&format!(
            "## {} · {} · {} · load {} → {}\n\n",
            database.name(),
            own.first().map_or("", |c| c.durability.as_str()),
            crate::machine::machine(),
            first.unwrap_or("?"),
            last.unwrap_or("?"),
        ));
        for (part, title) in [
            (Part::Speed, "speed, beside the floors"),
            (Part::Hop, "a hop, p50 in µs; trust = connect + lock + fence + close"),
            (Part::Cost, "cost"),
        ] {
            out.push_str(&format!("{title}\n{}\n\n", table(&own, part)));
        }
    }
    out
}

fn table(cells: &[&Cell], part: Part) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    for cell in cells {
        let of_part: Vec<Figure> = cell.figures().into_iter().filter(|f| f.part == part).collect();
        if table.header().is_none() {
            let heads = of_part.iter().map(|f| f.head.to_owned());
            table.set_header(["scene".to_owned(), "body".to_owned()].into_iter().chain(heads));
            for column in table.column_iter_mut().skip(2) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let values = of_part.iter().map(|f| f.value.map_or_else(|| "-".to_owned(), shown));
        table.add_row([cell.scene.word(), cell.body.word()].into_iter().chain(values));
    }
    table
}

/// Three digits that count.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
