//! Reads whole-day events from iCalendar (RFC 5545). Apple's feed for China marks its events 休 (off) and 班 (worked), in
//! the summary and as `X-APPLE-SPECIAL-DAY`, and also contains days that are neither (Mother's Day, New Year's Day of
//! six years by a rule). In a file that marks days off, events without a mark are therefore skipped, and their number
//! is reported. Other feeds (holiday-cn) mark only worked days: 上班.

use super::{CalendarFileDays, CalendarFileEntry};
use crate::definition::fault::SourcePlace;
use crate::domain::calendar::{DayKind, DayOrigin};
use chrono::{Days as Span, NaiveDate};

/// Maximum length of an event, in days.
const SPAN_MAX: u64 = 366;

/// A content line, unfolded.
struct IcsLine {
    at: SourcePlace,
    name: String,
    params: String,
    value: String,
}

/// An event of the file.
struct IcsEvent {
    at: SourcePlace,
    lines: Vec<IcsLine>,
}

impl IcsEvent {
    fn find_line(&self, name: &str) -> Option<&IcsLine> {
        self.lines.iter().find(|l| l.name == name)
    }

    fn value(&self, name: &str) -> String {
        self.find_line(name).map(|l| unescaped(&l.value)).unwrap_or_default()
    }

    /// The name of the event in faults.
    fn words(&self) -> String {
        let summary = self.value("SUMMARY");
        if summary.is_empty() { "this event".to_owned() } else { format!("event {summary:?}") }
    }
}

pub(super) fn read_ics(text: &str, days: &mut CalendarFileDays) {
    let events = events(text, days);
    if events.is_empty() && days.is_sound() {
        let cure = "export the calendar with its events as an .ics file";
        days.report.fault(&days.place_at(0), "there is no event in this file", cure);
    }
    let has_off = events.iter().any(|event| event_mark(event) == Some(DayKind::Off));
    let mut left_out: Vec<(SourcePlace, String)> = Vec::new();
    for event in &events {
        let mark = event_mark(event);
        if has_off && mark.is_none() {
            // Before the other checks: Apple's feed repeats those by a rule.
            left_out.push((event.at.clone(), event.value("SUMMARY")));
            continue;
        }
        let Some((first, count)) = event_span(event, days) else { continue };
        let label = Some(label(&event.value("SUMMARY")));
        let kind = mark.unwrap_or(DayKind::Off);
        for date in first.iter_days().take(count) {
            let (at, label) = (event.at.clone(), label.clone());
            days.add_entry(CalendarFileEntry { at, date, kind, label, origin: DayOrigin::Hand });
        }
    }
    if let Some((at, first)) = left_out.first() {
        let what = format!(
            "{} without 休 or 班 left out, because others have such a mark; the first is {first:?}",
            match left_out.len() {
                1 => "1 event".to_owned(),
                n => format!("{n} events"),
            }
        );
        days.report.add_warning(at, what, "mark those that are days off: (休)");
    }
}

/// The unfolded lines: a line that begins with a blank continues the previous one.
fn lines(text: &str, days: &mut CalendarFileDays) -> Vec<IcsLine> {
    let mut whole: Vec<(u32, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix([' ', '\t']), whole.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            (Some(_), None) | (None, _) => whole.push((number, line.to_owned())),
        }
    }
    let mut found = Vec::new();
    for (number, line) in whole.into_iter().filter(|(_, line)| !line.trim().is_empty()) {
        let at = days.place_at(number);
        match taken_apart(&line) {
            Some((name, params, value)) => found.push(IcsLine { at, name, params, value }),
            None => {
                let shown: String = line.chars().take(40).collect();
                let cure =
                    "write NAME:VALUE; a line that goes on from the one above begins with a blank";
                days.report.fault(&at, format!("{shown:?} is no line of iCalendar"), cure);
            }
        }
    }
    found
}

/// Splits `NAME;PARAMS:VALUE`; a colon between double quotes belongs to a parameter.
fn taken_apart(line: &str) -> Option<(String, String, String)> {
    let mut is_quoted = false;
    let colon = line.char_indices().find(|(_, c)| {
        is_quoted ^= *c == '"';
        *c == ':' && !is_quoted
    });
    let (head, value) = line.split_at(colon?.0);
    let (name, params) = head.split_once(';').unwrap_or((head, ""));
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    fits.then(|| (name.to_ascii_uppercase(), params.to_ascii_uppercase(), value[1..].to_owned()))
}

/// The events; a property of a component inside an event (an alarm) does not belong to the event.
fn events(text: &str, days: &mut CalendarFileDays) -> Vec<IcsEvent> {
    let lines = lines(text, days);
    let mut open: Vec<(String, SourcePlace)> = Vec::new();
    let mut found: Vec<IcsEvent> = Vec::new();
    let mut is_calendar = false;
    for line in lines {
        let within = open.last().map(|(name, _)| name.as_str());
        match (line.name.as_str(), within) {
            ("BEGIN", _) => {
                let name = line.value.trim().to_ascii_uppercase();
                is_calendar |= name == "VCALENDAR";
                if name == "VEVENT" {
                    found.push(IcsEvent { at: line.at.clone(), lines: Vec::new() });
                }
                open.push((name, line.at));
            }
            ("END", Some(name)) if line.value.trim().eq_ignore_ascii_case(name) => {
                open.pop();
            }
            ("END", _) => {
                let what = format!("END:{} ends nothing that is open", line.value.trim());
                days.report.fault(&line.at, what, "download the file again; it is damaged");
            }
            ("X-WR-CALNAME", Some("VCALENDAR")) => {
                let name = unescaped(&line.value);
                let fits = !name.trim().is_empty() && !super::is_bad_label(&name);
                days.made.name = fits.then(|| name.trim().to_owned());
            }
            (_, Some("VEVENT")) => {
                let event = found.last_mut().expect("VEVENT is open, so one was begun");
                event.lines.push(line);
            }
            (_, Some(_) | None) => {}
        }
    }
    if !is_calendar {
        let cure = "export the calendar as an .ics file (iCalendar)";
        days.report.fault(&days.place_at(1), "there is no BEGIN:VCALENDAR", cure);
    }
    for (name, at) in open {
        let what = format!("BEGIN:{name} has no end");
        days.report.fault(&at, what, "download the file again; its end is missing");
    }
    found
}

/// Properties of an event that covers more than the days that it names.
const REPEATS: &[&str] = &["RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID"];

/// First day and number of days.
fn event_span(event: &IcsEvent, days: &mut CalendarFileDays) -> Option<(NaiveDate, usize)> {
    let words = event.words();
    if event.value("STATUS").eq_ignore_ascii_case("CANCELLED") {
        let what = format!("{words} is cancelled and left out");
        days.report.add_warning(&event.at, what, "");
        return None;
    }
    if let Some(repeat) = REPEATS.iter().find_map(|name| event.find_line(name)) {
        let what = format!("{words} repeats ({})", repeat.name);
        let cure = "holidays move from year to year: write each day as an event of its own, or import \
                    a CSV file date,kind,label";
        days.report.fault(&repeat.at, what, cure);
        return None;
    }
    let Some(start) = event.find_line("DTSTART") else {
        days.report.fault(
            &event.at,
            format!("{words} has no DTSTART"),
            "add DTSTART;VALUE=DATE:20250101",
        );
        return None;
    };
    let first = whole_day(start, &words, days)?;
    let count = match (event.find_line("DTEND"), event.find_line("DURATION")) {
        (Some(end), _) => {
            let last = whole_day(end, &words, days)?;
            let count = last.signed_duration_since(first).num_days();
            if count == 0 {
                let what = format!("{words} ends where it begins and is taken for one day");
                days.report.add_warning(&end.at, what, "DTEND is the day after the last one");
            }
            u64::try_from(count).ok().map(|count| count.max(1))
        }
        (None, Some(duration)) => days_of(&duration.value),
        (None, None) => Some(1),
    };
    let fits = count
        .filter(|n| (1..=SPAN_MAX).contains(n) && first.checked_add_days(Span::new(*n)).is_some());
    let Some(count) = fits.and_then(|n| usize::try_from(n).ok()) else {
        let what = format!("{words} has an end that cannot be used");
        let cure = format!("DTEND is the day after the last one; at most {SPAN_MAX} days");
        days.report.fault(&event.at, what, cure);
        return None;
    };
    Some((first, count))
}

fn whole_day(line: &IcsLine, words: &str, days: &mut CalendarFileDays) -> Option<NaiveDate> {
    let value = line.value.trim();
    if value.contains('T') || line.params.split(';').any(|p| p == "VALUE=DATE-TIME") {
        let what = format!("{words} has a time of day ({} {value})", line.name);
        let cure = format!(
            "make it a whole-day event ({};VALUE=DATE:20250101), or take it out",
            line.name
        );
        days.report.fault(&line.at, what, cure);
        return None;
    }
    days.parse_date(&line.at, value)
}

/// `P3D` or `P1W`.
fn days_of(duration: &str) -> Option<u64> {
    let text = duration.trim().strip_prefix('+').unwrap_or(duration.trim()).strip_prefix('P')?;
    match text.strip_suffix('W') {
        Some(weeks) => weeks.parse::<u64>().ok()?.checked_mul(7),
        None => text.strip_suffix('D')?.parse().ok(),
    }
}

const OFF: &[&str] = &["(休)", "（休）", "[休]", "【休】"];
const WORK: &[&str] = &["(班)", "（班）", "[班]", "【班】"];

/// The mark of an event.
fn event_mark(event: &IcsEvent) -> Option<DayKind> {
    let summary = event.value("SUMMARY");
    let has = |marks: &[&str]| marks.iter().any(|mark| summary.contains(mark));
    let is_worked = has(WORK) || has(&["上班", "补班"]);
    match event.value("X-APPLE-SPECIAL-DAY").trim() {
        "ALTERNATE-WORKDAY" => Some(DayKind::Work),
        "WORK-HOLIDAY" => Some(DayKind::Off),
        _ if is_worked => Some(DayKind::Work),
        _ if has(OFF) => Some(DayKind::Off),
        _ => None,
    }
}

/// The summary without its mark.
fn label(summary: &str) -> String {
    let marks = OFF.iter().chain(WORK);
    marks.fold(summary.to_owned(), |text, mark| text.replace(mark, "")).trim().to_owned()
}

/// TEXT of RFC 5545: `\,` `\;` `\\` and `\n`.
fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some('n' | 'N')) => text.push(' '),
            ('\\', Some(next)) => text.push(next),
            _ => {
                text.push(c);
                continue;
            }
        }
        chars.next();
    }
    text
}
