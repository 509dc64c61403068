//! Reads the days of a calendar from JSON, CSV or ICS. Output: the days, and the years for which they are complete.
//!
//! ICS is parsed here and not by a crate: `icalendar`, the maintained one, reports lines of its own normalized text and
//! stops at the first fault, while a fault must name the line of the user's file.

mod csv;
mod ics;
mod json;
mod write;

use crate::definition::fault::{DefinitionFault, FaultReport, Faults, SourcePlace};
use crate::definition::files::label;
use crate::domain::calendar::{Calendar, CalendarDayRule, Combine, DayKind, DayOrigin, Weekend};
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

pub use write::write_calendar;

/// Maximum length of the name of a day or a calendar, in characters.
const LABEL_MAX: usize = 200;
/// Maximum number of days of one event or file; a century of 40 holidays a year is 4,000.
const DAYS_MAX: usize = 20_000;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarForm {
    /// One list per year, in our format or that of holiday-cn.
    Json,
    /// `date,kind,label`.
    Csv,
    /// iCalendar (RFC 5545), whole days.
    Ics,
}

impl CalendarForm {
    /// Derives the format from the extension of the file.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "ics" | "ical" => Some(Self::Ics),
            _ => None,
        }
    }
}

/// The content of a calendar file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CalendarFile {
    /// Code of the calendar, if the file has one.
    pub code: Option<CalendarCode>,
    /// Name of the calendar.
    pub name: Option<String>,
    /// Weekend of the calendar.
    pub weekend: Option<Weekend>,
    /// The combined members; only in files written by `export`.
    pub combines: Option<Combine>,
    pub days: BTreeMap<NaiveDate, CalendarDayRule>,
    /// Years for which the list is complete.
    pub years: BTreeSet<i32>,
    /// Findings that are permitted, but probably not intended.
    pub warnings: Vec<DefinitionFault>,
}

impl CalendarFile {
    /// The calendar of this file alone; what the file omits comes from `old`, or from the defaults.
    pub fn calendar(&self, code: &CalendarCode, old: Option<&Calendar>) -> Calendar {
        let base = old.cloned().unwrap_or_else(|| Calendar::with_defaults(code.clone()));
        Calendar {
            code: code.clone(),
            name: self.name.clone().unwrap_or(base.name),
            weekend: self.weekend.unwrap_or(base.weekend),
            days: self.days.clone(),
            years: self.years.clone(),
            combines: self.combines.clone(),
        }
    }
}

/// Reads a file with days. `years` names the years for which it is complete, since CSV and ICS files cannot state them;
/// if empty, they are derived from the days. Every fault is reported, not only the first.
pub fn read_calendar(
    path: &Path,
    text: &str,
    form: CalendarForm,
    years: &BTreeSet<i32>,
) -> Result<CalendarFile, Faults> {
    let file = label(path);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut days = CalendarFileDays::new(&file);
    match form {
        CalendarForm::Json => json::read_json(text, &mut days),
        CalendarForm::Csv => csv::read_csv(text, &mut days),
        CalendarForm::Ics => ics::read_ics(text, &mut days),
    }
    if form != CalendarForm::Json {
        days.years_of_days(years);
    } else if let Some(year) = years.iter().find(|year| !days.made.years.contains(*year)) {
        let what = format!("the list of {year} is not in this file");
        days.report.fault(
            &SourcePlace::new(&file, 0),
            what,
            "leave out --year; the file names its years",
        );
    }
    let mut made = days.made;
    made.warnings = days.report.finish()?;
    Ok(made)
}

/// Collects days while a file is read.
struct CalendarFileDays {
    file: Arc<str>,
    made: CalendarFile,
    lines: BTreeMap<NaiveDate, u32>,
    report: FaultReport,
}

/// One day as the file states it.
struct CalendarFileEntry {
    at: SourcePlace,
    date: NaiveDate,
    kind: DayKind,
    label: Option<String>,
    origin: DayOrigin,
}

impl CalendarFileDays {
    fn new(file: &Arc<str>) -> Self {
        let (made, lines) = (CalendarFile::default(), BTreeMap::new());
        Self { file: Arc::clone(file), made, lines, report: FaultReport::default() }
    }

    fn is_sound(&self) -> bool {
        self.report.is_sound()
    }

    fn place_at(&self, line: u32) -> SourcePlace {
        SourcePlace::new(&self.file, line)
    }

    /// Adds a day, unless it contradicts another one of the file.
    fn add_entry(&mut self, entry: CalendarFileEntry) {
        let CalendarFileEntry { at, date, kind, label, origin } = entry;
        let label = label.map(|l| l.trim().to_owned()).filter(|l| !l.is_empty());
        if label.as_deref().is_some_and(is_bad_label) {
            let what = format!("the name of {date} is too long, or not on one line");
            self.report.fault(&at, what, format!("write at most {LABEL_MAX} characters"));
            return;
        }
        if let Some(other) = self.made.days.get(&date) {
            if other.kind != kind {
                let line = self.lines[&date];
                let (one, two) = (other.kind.as_str(), kind.as_str());
                let what = format!("{date} is {two} here and {one} on line {line}");
                self.report.fault(&at, what, "keep one of the two");
            }
            return;
        }
        if self.made.days.len() == DAYS_MAX {
            let what = format!("more than {DAYS_MAX} days");
            self.report.fault(&self.place_at(0), what, "import the years that are needed");
        }
        self.lines.insert(date, at.line);
        self.made.days.insert(date, CalendarDayRule { kind, label, origin });
    }

    /// Parses a date, `YYYY-MM-DD` or `YYYYMMDD`, between the years 1 and 9999.
    fn parse_date(&mut self, at: &SourcePlace, text: &str) -> Option<NaiveDate> {
        let forms = ["%Y-%m-%d", "%Y%m%d"];
        let found = forms.iter().find_map(|form| {
            let date = NaiveDate::parse_from_str(text.trim(), form).ok()?;
            // chrono also accepts +12025-1-1.
            (date.format(form).to_string() == text.trim()).then_some(date)
        });
        let found = found.filter(|date| (1..=9999).contains(&date.year()));
        if found.is_none() {
            let what = format!("{text:?} is no date");
            self.report.fault(at, what, "write one that exists, as YYYY-MM-DD");
        }
        found
    }

    /// The years for which a file that does not state them is complete: those of its days. A year with only days of its
    /// last week belongs to the list of the following year, if the file has that year; one with only days of its first
    /// week belongs to the list of the previous year. If such a year counted as complete, the calendar would lose its
    /// holidays. If both years around a New Year have only such days, neither list can be inferred, and each year
    /// counts for itself.
    fn years_of_days(&mut self, given: &BTreeSet<i32>) {
        let all: BTreeSet<i32> = self.made.days.keys().map(|d| d.year()).collect();
        let only = |year: i32, fits: fn(&NaiveDate) -> bool| {
            self.made.days.keys().filter(|d| d.year() == year).all(fits)
        };
        let beside = |year: i32| match (all.contains(&(year - 1)), all.contains(&(year + 1))) {
            (_, true) if only(year, |d| d.month() == 12 && d.day() > 24) => Some(year + 1),
            (true, _) if only(year, |d| d.month() == 1 && d.day() <= 7) => Some(year - 1),
            _ => None,
        };
        let list_of = |year: i32| beside(year).filter(|list| beside(*list).is_none());
        let edges: Vec<(i32, i32)> =
            all.iter().filter_map(|year| Some((*year, list_of(*year)?))).collect();
        let whole = self.place_at(0);
        if given.is_empty() {
            let years = all.iter().copied().filter(|year| list_of(*year).is_none()).collect();
            self.made.years = years;
            for (year, list) in edges {
                let what = format!("the days of {year} are taken for part of the list of {list}");
                let cure = format!("say --year with {year} in it when its own list is complete");
                self.report.add_warning(&whole, what, cure);
            }
            for year in all.iter().filter(|y| beside(**y).is_some() && list_of(**y).is_none()) {
                let what = format!("{year} has only days at its edge and is taken for complete");
                self.report.add_warning(
                    &whole,
                    what,
                    "give the days of the whole year, or say --year",
                );
            }
        } else {
            self.made.years.clone_from(given);
            for year in given.difference(&all) {
                let what = format!("there is no day of {year} in this file");
                self.report.fault(&whole, what, "name the years that it is complete for");
            }
        }
        let years = &self.made.years;
        for (date, day) in &mut self.made.days {
            // A day outside all complete years belongs to the nearest list.
            let year = date.year();
            let near = years.iter().min_by_key(|y| (y.abs_diff(year), Reverse(**y)));
            day.origin = DayOrigin::List(near.copied().unwrap_or(year));
        }
    }
}

fn is_bad_label(label: &str) -> bool {
    label.chars().count() > LABEL_MAX || label.contains(char::is_control)
}

/// Parses the kind of a day.
fn kind_of(word: &str) -> Option<DayKind> {
    match word.trim().to_lowercase().as_str() {
        "off" | "holiday" | "休" => Some(DayKind::Off),
        "work" | "workday" | "班" => Some(DayKind::Work),
        _ => None,
    }
}

const KINDS: &str = "write off (or holiday) or work (or workday)";

#[cfg(test)]
mod tests;
