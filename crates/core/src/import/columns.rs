//! Columns of another scheduler's tables. Every filled column of a row is either read by the
//! importer or reported as not imported; unknown columns are reported as well.

use crate::domain::source::scheduler_tables::{SchedulerRow, SchedulerTables};
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, KeyRule, KnownKey};
use crate::import::note::ImportOrigin;

/// A row, its place, and its title in notes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPlace<'a> {
    pub(crate) at: &'a ImportOrigin,
    pub(crate) about: &'a str,
}

/// Checks the columns of a row against the list of its table.
pub(crate) fn check_columns(
    row: &SchedulerRow,
    known: &[KnownKey],
    place: RowPlace<'_>,
    draft: &mut Draft,
) {
    let filled =
        row.0.iter().filter_map(|(column, value)| Some((column.as_str(), value.as_deref()?)));
    check_pairs(filled, &[known], place, draft);
}

/// Checks keys with plain values against tables; an empty value is none.
pub(crate) fn check_pairs<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    tables: &[&[KnownKey]],
    place: RowPlace<'_>,
    draft: &mut Draft,
) {
    let RowPlace { at, about } = place;
    for (key, value) in pairs.map(|(key, value)| (key, value.trim())) {
        if value.is_empty() {
            continue;
        }
        let known = tables.iter().flat_map(|table| table.iter()).find(|known| known.name == key);
        match known.map(|known| known.rule) {
            Some(KeyRule::Read) => {}
            Some(KeyRule::Record) => draft.note_record_key(&at.file, key),
            Some(KeyRule::Noted { harmless, hint }) => {
                if !harmless.contains(&value) {
                    draft.note_key(KeyNote { at, about, key, value: Some(value) }, hint);
                }
            }
            None => draft.note_unknown_key(at, about, key),
        }
    }
}

/// The place of a row: its table, and its key or index.
pub(crate) fn row_origin(table: &str, key: i64) -> ImportOrigin {
    ImportOrigin::new(table, u64::try_from(key).unwrap_or(0))
}

/// Refuses tables without any importable row; `fix` is the hint.
pub(crate) fn refuse_empty(tables: &SchedulerTables, table: &str, fix: &str, draft: &mut Draft) {
    if tables.table_rows(table).is_empty() {
        draft.fault(&ImportOrigin::new(table, 0), "there is no row in this table", fix);
    }
}
