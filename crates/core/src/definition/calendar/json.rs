//! Reads JSON: our own format (a calendar with a list per year, as `calendar export` writes it), and the files of
//! holiday-cn, one per year. A day is `["2025-10-11", "work", "国庆节"]` or `{"date": "2025-10-11", "isOffDay": false,
//! "name": "国庆节"}` in both.

use super::{CalendarFileDays, CalendarFileEntry, KINDS, is_bad_label, kind_of};
use crate::definition::calendar::LABEL_MAX;
use crate::definition::fault::{Located, SourcePlace};
use crate::definition::near::nearest;
use crate::definition::node::{self, NodeValue, SourceNode};
use crate::domain::calendar::{CombinationRule, Combine, DayKind, DayOrigin, Weekend};
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};

/// Keys of the calendar.
const TOP: &[&str] = &["calendar", "name", "weekend", "years", "by_hand", "combines"];
/// Keys of the list of a year.
const LIST: &[&str] = &["year", "days"];
/// Keys of a day.
const DAY: &[&str] = &["date", "name", "isOffDay"];
/// Keys that name the origin of the data.
const NOTICE: &[&str] =
    &["note", "source", "commit", "licence", "license", "papers", "$schema", "$id"];

pub(super) fn read_json(text: &str, days: &mut CalendarFileDays) {
    let Some(tree) = node::parse(&days.file, text, &mut days.report) else { return };
    match &tree.value {
        NodeValue::Map(entries) if entries.iter().any(|(key, _)| key.value == "year") => {
            read_year(&tree, days);
        }
        NodeValue::Map(entries) => calendar(&tree.at, entries, days),
        NodeValue::List(lists) => lists.iter().for_each(|l| read_year(l, days)),
        NodeValue::Null | NodeValue::Text(_) => days.report.fault(
            &days.place_at(1),
            "this is no list of days",
            "write {\"calendar\": \"CODE\", \"years\": [{\"year\": 2025, \"days\": […]}]}",
        ),
    }
    // A calendar that is maintained by hand, or combined, may have no days.
    let may_be_empty = match &tree.value {
        NodeValue::Map(entries) => get(entries, "by_hand").or(get(entries, "combines")).is_some(),
        NodeValue::List(_) | NodeValue::Null | NodeValue::Text(_) => false,
    };
    if days.made.days.is_empty() && !may_be_empty && days.is_sound() {
        let cure = "import a file with days; the list of a year is published in autumn";
        days.report.fault(&days.place_at(0), "there is no day in this file", cure);
    }
}

type JsonEntries = [(Located<String>, SourceNode)];

/// Warns of unknown keys.
fn known(entries: &JsonEntries, keys: &[&str], days: &mut CalendarFileDays) {
    for (key, _) in entries {
        let name = key.value.as_str();
        if keys.contains(&name) || NOTICE.contains(&name) {
            continue;
        }
        let cure = match nearest(name, keys.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known keys are {}", keys.join(", ")),
        };
        days.report.fault(&key.at, format!("unknown key {name:?}"), cure);
    }
}

fn get<'a>(entries: &'a JsonEntries, key: &str) -> Option<&'a SourceNode> {
    entries.iter().find(|(k, _)| k.value == key).map(|(_, node)| node)
}

fn read_text<'a>(node: &'a SourceNode, what: &str, days: &mut CalendarFileDays) -> Option<&'a str> {
    if let NodeValue::Text(text) = &node.value {
        return Some(text);
    }
    let what = format!("{what} must be a single value, not {}", node.value.kind());
    days.report.fault(&node.at, what, "write it between quotes");
    None
}

fn items<'a>(node: &'a SourceNode, what: &str, days: &mut CalendarFileDays) -> &'a [SourceNode] {
    if let NodeValue::List(items) = &node.value {
        return items;
    }
    let what = format!("{what} must be a list, not {}", node.value.kind());
    days.report.fault(&node.at, what, "write it between [ and ]");
    &[]
}

fn calendar(at: &SourcePlace, entries: &JsonEntries, days: &mut CalendarFileDays) {
    known(entries, TOP, days);
    if let Some((node, word)) = named(entries, "calendar", days) {
        match CalendarCode::parse(&word) {
            Ok(code) => days.made.code = Some(code),
            Err(error) => days.report.fault(&node, error.to_string(), ""),
        }
    }
    if let Some((node, word)) = named(entries, "weekend", days) {
        match Weekend::parse(&word) {
            Ok(weekend) => days.made.weekend = Some(weekend),
            Err(error) => days.report.fault(&node, error.to_string(), ""),
        }
    }
    if let Some((node, name)) = named(entries, "name", days) {
        if name.trim().is_empty() || is_bad_label(&name) {
            let cure = format!("write 1 to {LABEL_MAX} characters on one line");
            days.report.fault(&node, "the name of the calendar cannot be used", cure);
        }
        days.made.name = Some(name);
    }
    if let Some(node) = get(entries, "combines") {
        combine(node, days);
    }
    let (years, by_hand) = (get(entries, "years"), get(entries, "by_hand"));
    if let Some(years) = years {
        for one in items(years, "years", days) {
            read_year(one, days);
        }
    }
    if let Some(by_hand) = by_hand {
        for one in items(by_hand, "by_hand", days) {
            read_day(one, None, days);
        }
    }
    if years.is_none() && by_hand.is_none() && get(entries, "combines").is_none() {
        let cure = "write \"years\": [{\"year\": 2025, \"days\": […]}]";
        days.report.fault(at, "there are no years in this file", cure);
    }
}

fn named(
    entries: &JsonEntries,
    key: &str,
    days: &mut CalendarFileDays,
) -> Option<(SourcePlace, String)> {
    let node = get(entries, key)?;
    Some((node.at.clone(), read_text(node, key, days)?.to_owned()))
}

fn combine(node: &SourceNode, days: &mut CalendarFileDays) {
    let found = match &node.value {
        NodeValue::Map(entries) if entries.len() == 1 => match entries[0].0.value.as_str() {
            "all_of" => Some((CombinationRule::AllOf, &entries[0].1)),
            "any_of" => Some((CombinationRule::AnyOf, &entries[0].1)),
            _ => None,
        },
        NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Text(_) | NodeValue::Null => None,
    };
    let Some((how, members)) = found else {
        let cure = "write {\"all_of\": [\"cn\", \"company\"]}, or any_of";
        days.report.fault(&node.at, "combines has neither all_of nor any_of", cure);
        return;
    };
    let mut codes = Vec::new();
    for member in items(members, how.as_str(), days) {
        match read_text(member, "a member", days).map(CalendarCode::parse) {
            Some(Ok(code)) => codes.push(code),
            Some(Err(error)) => days.report.fault(&member.at, error.to_string(), ""),
            None => {}
        }
    }
    days.made.combines = Some(Combine { how, members: codes });
}

/// The list of one year.
fn read_year(node: &SourceNode, days: &mut CalendarFileDays) {
    let NodeValue::Map(entries) = &node.value else {
        let what = format!("the list of a year must be a map, not {}", node.value.kind());
        days.report.fault(&node.at, what, "write {\"year\": 2025, \"days\": […]}");
        return;
    };
    known(entries, LIST, days);
    let Some(at) = get(entries, "year") else {
        days.report.fault(&node.at, "this list has no year", "add \"year\": 2025");
        return;
    };
    let word = read_text(at, "year", days).unwrap_or_default();
    let Some(year) = word.parse::<i32>().ok().filter(|year| (1..=9999).contains(year)) else {
        days.report.fault(&at.at, format!("{word:?} is no year"), "write a number such as 2025");
        return;
    };
    let Some(found) = get(entries, "days") else {
        let cure = "add \"days\": [[\"2025-01-01\", \"off\", \"元旦\"], …]";
        days.report.fault(&node.at, format!("the list of {year} has no days"), cure);
        return;
    };
    let found = items(found, "days", days);
    if found.is_empty() {
        // holiday-cn has such a file for a year that is not announced yet.
        let what = format!("the list of {year} is empty and is left out");
        days.report.add_warning(&at.at, what, "import it again when the days are published");
        return;
    }
    if !days.made.years.insert(year) {
        let what = format!("there are two lists of {year}");
        days.report.fault(&at.at, what, "keep one of the two");
    }
    for one in found {
        read_day(one, Some(year), days);
    }
}

/// One day, from the list of a year or set by hand.
fn read_day(node: &SourceNode, year: Option<i32>, days: &mut CalendarFileDays) {
    let found = match &node.value {
        NodeValue::List(parts) => tuple(node, parts, days),
        NodeValue::Map(entries) => object(node, entries, days),
        NodeValue::Null | NodeValue::Text(_) => {
            let what = format!("a day must be a list or a map, not {}", node.value.kind());
            days.report.fault(&node.at, what, "write [\"2025-10-11\", \"work\", \"国庆节\"]");
            None
        }
    };
    let Some((date, kind, label)) = found else { return };
    if let Some(year) = year.filter(|year| !is_of(date, *year)) {
        let what = format!("{date} stands in the list of {year}");
        days.report.fault(&node.at, what, "move it to the list of its own year");
        return;
    }
    let origin = year.map_or(DayOrigin::Hand, DayOrigin::List);
    days.add_entry(CalendarFileEntry { at: node.at.clone(), date, kind, label, origin });
}

/// A list contains its year, and the days of its first and last holidays that lie outside it.
fn is_of(date: NaiveDate, year: i32) -> bool {
    match date.year() - year {
        0 => true,
        -1 => date.month() == 12,
        1 => date.month() == 1,
        _ => false,
    }
}

type FoundDay = (NaiveDate, DayKind, Option<String>);

fn tuple(node: &SourceNode, parts: &[SourceNode], days: &mut CalendarFileDays) -> Option<FoundDay> {
    if !(2..=3).contains(&parts.len()) {
        let what = format!("a day has {} parts", parts.len());
        days.report.fault(&node.at, what, "write [\"2025-10-11\", \"work\", \"国庆节\"]");
        return None;
    }
    let date =
        read_text(&parts[0], "the date", days).and_then(|word| days.parse_date(&parts[0].at, word));
    let word = read_text(&parts[1], "the kind", days)?;
    let kind = kind_of(word);
    if kind.is_none() {
        days.report.fault(&parts[1].at, format!("{word:?} is no kind of day"), KINDS);
    }
    let label = match parts.get(2) {
        Some(part) => read_text(part, "the name", days).map(str::to_owned),
        None => None,
    };
    Some((date?, kind?, label))
}

fn object(
    node: &SourceNode,
    entries: &JsonEntries,
    days: &mut CalendarFileDays,
) -> Option<FoundDay> {
    known(entries, DAY, days);
    let mut part = |key: &str| {
        let found = get(entries, key);
        if found.is_none() {
            let what = format!("this day has no {key}");
            let cure = "write {\"name\": \"元旦\", \"date\": \"2025-01-01\", \"isOffDay\": true}";
            days.report.fault(&node.at, what, cure);
        }
        found
    };
    let (date, is_off) = (part("date"), part("isOffDay"));
    let date = date.and_then(|d| read_text(d, "date", days).map(|word| (d, word)));
    let date = date.and_then(|(d, word)| days.parse_date(&d.at, word));
    let kind = is_off.and_then(|node| match read_text(node, "isOffDay", days)? {
        "true" => Some(DayKind::Off),
        "false" => Some(DayKind::Work),
        other => {
            let what = format!("isOffDay {other:?} is neither true nor false");
            days.report.fault(&node.at, what, "write true for a day off, false for a worked one");
            None
        }
    });
    let label = get(entries, "name").and_then(|name| read_text(name, "name", days));
    Some((date?, kind?, label.map(str::to_owned)))
}
