//! Reads `date,kind,label` with a header; `label` is optional.

use super::{CalendarFileDays, CalendarFileEntry, KINDS, kind_of};
use crate::definition::csv;
use crate::domain::calendar::DayOrigin;

const COLUMNS: &[&str] = &["date", "kind", "label"];

pub(super) fn read_csv(text: &str, days: &mut CalendarFileDays) {
    let rows = csv::read_rows(&days.file, text, COLUMNS, "date", &mut days.report);
    let has_kind = text.lines().next().unwrap_or_default().to_lowercase().contains("kind");
    if !has_kind {
        let cure = "add it; the first line names the columns: date,kind,label";
        days.report.fault(&days.place_at(1), "there is no column kind", cure);
        return;
    }
    if rows.is_empty() {
        days.report.fault(
            &days.place_at(0),
            "there is no day in this file",
            "write date,kind,label",
        );
    }
    for row in rows {
        let cell = |name: &str| row.cells.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
        let date = days.parse_date(&row.at, cell("date").unwrap_or_default());
        let kind = kind_of(cell("kind").unwrap_or_default());
        if kind.is_none() {
            let what = format!("{:?} is no kind of day", cell("kind").unwrap_or_default());
            days.report.fault(&row.at, what, KINDS);
        }
        if let (Some(date), Some(kind)) = (date, kind) {
            let (at, label) = (row.at.clone(), cell("label").map(str::to_owned));
            days.add_entry(CalendarFileEntry { at, date, kind, label, origin: DayOrigin::Hand });
        }
    }
}
