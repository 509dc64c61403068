//! Files of calendars: JSON, CSV and iCalendar.

use super::bundle::Bundle;
use super::place::{assert_place, assert_places};
use super::text_of;
use procession::definition::{CalendarForm, read_calendar, write_calendar};
use procession::domain::id::CalendarCode;
use std::collections::BTreeSet;
use std::path::Path;

/// A calendar that is accepted is read again from what `calendar export` writes; a refusal has places.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    let (form, name) = form_of(text);
    let bundle = Bundle { files: vec![(name.to_owned(), text.to_owned())] };
    let file = match read_calendar(Path::new(name), text, form, &BTreeSet::new()) {
        Ok(file) => file,
        Err(faults) => return assert_places(&faults, &bundle),
    };
    file.warnings.iter().for_each(|warning| assert_place(warning, &bundle));
    let code = file.code.clone();
    let code = code.unwrap_or_else(|| CalendarCode::parse("fuzz").expect("a calendar code"));
    let calendar = file.calendar(&code, None);
    let written = write_calendar(&calendar);
    let again =
        read_calendar(Path::new("again.json"), &written, CalendarForm::Json, &BTreeSet::new())
            .unwrap_or_else(|faults| panic!("what was written is refused: {faults}\n{written}"));
    assert_eq!(again.calendar(&code, None), calendar, "read differently:\n{written}");
    assert_eq!(write_calendar(&again.calendar(&code, None)), written);
}

fn form_of(text: &str) -> (CalendarForm, &'static str) {
    let start = text.trim_start_matches('\u{FEFF}').trim_start();
    match start {
        _ if start.starts_with(['{', '[']) => (CalendarForm::Json, "days.json"),
        _ if start.starts_with("BEGIN:") => (CalendarForm::Ics, "days.ics"),
        _ => (CalendarForm::Csv, "days.csv"),
    }
}
