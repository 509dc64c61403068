//! JSON: our own form (a calendar with a list per year, which `calendar export` writes), and the files of
//! holiday-cn, one year each. A day is `["2025-10-11", "work", "国庆节"]` or
//! `{"date": "2025-10-11", "isOffDay": false, "name": "国庆节"}` in both.

use super::{Days, Entry, KINDS, is_bad_label, kind_of};
use crate::definition::calendar::LABEL_MAX;
use crate::definition::fault::{At, Place};
use crate::definition::near::nearest;
use crate::definition::node::{self, Node, Value};
use crate::domain::calendar::{Combine, DayKind, How, Origin, Weekend};
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};

/// Keys of the calendar.
const TOP: &[&str] = &["calendar", "name", "weekend", "years", "by_hand", "combines"];
/// Keys of the list of a year.
const LIST: &[&str] = &["year", "days"];
/// Keys of a day.
const DAY: &[&str] = &["date", "name", "isOffDay"];
/// Keys that tell where the data is from.
const NOTICE: &[&str] =
    &["note", "source", "commit", "licence", "license", "papers", "$schema", "$id"];

pub(super) fn read(text: &str, days: &mut Days) {
    let Some(tree) = node::parse(&days.file, text, &mut days.report) else { return };
    match &tree.value {
        Value::Map(entries) if entries.iter().any(|(key, _)| key.value == "year") => {
            list(&tree, days);
        }
        Value::Map(entries) => calendar(&tree.at, entries, days),
        Value::List(lists) => lists.iter().for_each(|l| list(l, days)),
        Value::Null | Value::Text(_) => days.report.fault(
            &days.at(1),
            "this is no list of days",
            "write {\"calendar\": \"CODE\", \"years\": [{\"year\": 2025, \"days\": […]}]}",
        ),
    }
    // A calendar that is kept by hand, or combined, may have no days.
    let may_be_empty = match &tree.value {
        Value::Map(entries) => get(entries, "by_hand").or(get(entries, "combines")).is_some(),
        Value::List(_) | Value::Null | Value::Text(_) => false,
    };
    if days.made.days.is_empty() && !may_be_empty && days.is_sound() {
        let cure = "import a file with days; the list of a year is published in autumn";
        days.report.fault(&days.at(0), "there is no day in this file", cure);
    }
}

type Entries = [(At<String>, Node)];

/// Says which keys are not known.
fn known(entries: &Entries, keys: &[&str], days: &mut Days) {
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

fn get<'a>(entries: &'a Entries, key: &str) -> Option<&'a Node> {
    entries.iter().find(|(k, _)| k.value == key).map(|(_, node)| node)
}

fn text<'a>(node: &'a Node, what: &str, days: &mut Days) -> Option<&'a str> {
    if let Value::Text(text) = &node.value {
        return Some(text);
    }
    let what = format!("{what} must be a single value, not {}", node.value.kind());
    days.report.fault(&node.at, what, "write it between quotes");
    None
}

fn items<'a>(node: &'a Node, what: &str, days: &mut Days) -> &'a [Node] {
    if let Value::List(items) = &node.value {
        return items;
    }
    let what = format!("{what} must be a list, not {}", node.value.kind());
    days.report.fault(&node.at, what, "write it between [ and ]");
    &[]
}

fn calendar(at: &Place, entries: &Entries, days: &mut Days) {
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
            list(one, days);
        }
    }
    if let Some(by_hand) = by_hand {
        for one in items(by_hand, "by_hand", days) {
            day(one, None, days);
        }
    }
    if years.is_none() && by_hand.is_none() && get(entries, "combines").is_none() {
        let cure = "write \"years\": [{\"year\": 2025, \"days\": […]}]";
        days.report.fault(at, "there are no years in this file", cure);
    }
}

fn named(entries: &Entries, key: &str, days: &mut Days) -> Option<(Place, String)> {
    let node = get(entries, key)?;
    Some((node.at.clone(), text(node, key, days)?.to_owned()))
}

fn combine(node: &Node, days: &mut Days) {
    let found = match &node.value {
        Value::Map(entries) if entries.len() == 1 => match entries[0].0.value.as_str() {
            "all_of" => Some((How::AllOf, &entries[0].1)),
            "any_of" => Some((How::AnyOf, &entries[0].1)),
            _ => None,
        },
        Value::Map(_) | Value::List(_) | Value::Text(_) | Value::Null => None,
    };
    let Some((how, members)) = found else {
        let cure = "write {\"all_of\": [\"cn\", \"company\"]}, or any_of";
        days.report.fault(&node.at, "combines has neither all_of nor any_of", cure);
        return;
    };
    let mut codes = Vec::new();
    for member in items(members, how.as_str(), days) {
        match text(member, "a member", days).map(CalendarCode::parse) {
            Some(Ok(code)) => codes.push(code),
            Some(Err(error)) => days.report.fault(&member.at, error.to_string(), ""),
            None => {}
        }
    }
    days.made.combines = Some(Combine { how, members: codes });
}

/// The list of one year.
fn list(node: &Node, days: &mut Days) {
    let Value::Map(entries) = &node.value else {
        let what = format!("the list of a year must be a map, not {}", node.value.kind());
        days.report.fault(&node.at, what, "write {\"year\": 2025, \"days\": […]}");
        return;
    };
    known(entries, LIST, days);
    let Some(at) = get(entries, "year") else {
        days.report.fault(&node.at, "this list has no year", "add \"year\": 2025");
        return;
    };
    let word = text(at, "year", days).unwrap_or_default();
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
        days.report.warn(&at.at, what, "import it again when the days are published");
        return;
    }
    if !days.made.years.insert(year) {
        let what = format!("there are two lists of {year}");
        days.report.fault(&at.at, what, "keep one of the two");
    }
    for one in found {
        day(one, Some(year), days);
    }
}

/// One day, of the list of a year or set by hand.
fn day(node: &Node, year: Option<i32>, days: &mut Days) {
    let found = match &node.value {
        Value::List(parts) => tuple(node, parts, days),
        Value::Map(entries) => object(node, entries, days),
        Value::Null | Value::Text(_) => {
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
    let origin = year.map_or(Origin::Hand, Origin::List);
    days.add(Entry { at: node.at.clone(), date, kind, label, origin });
}

/// A list holds its year, and what belongs to its first and last holidays.
fn is_of(date: NaiveDate, year: i32) -> bool {
    match date.year() - year {
        0 => true,
        -1 => date.month() == 12,
        1 => date.month() == 1,
        _ => false,
    }
}

type Found = (NaiveDate, DayKind, Option<String>);

fn tuple(node: &Node, parts: &[Node], days: &mut Days) -> Option<Found> {
    if !(2..=3).contains(&parts.len()) {
        let what = format!("a day has {} parts", parts.len());
        days.report.fault(&node.at, what, "write [\"2025-10-11\", \"work\", \"国庆节\"]");
        return None;
    }
    let date = text(&parts[0], "the date", days).and_then(|word| days.date(&parts[0].at, word));
    let word = text(&parts[1], "the kind", days)?;
    let kind = kind_of(word);
    if kind.is_none() {
        days.report.fault(&parts[1].at, format!("{word:?} is no kind of day"), KINDS);
    }
    let label = match parts.get(2) {
        Some(part) => text(part, "the name", days).map(str::to_owned),
        None => None,
    };
    Some((date?, kind?, label))
}

fn object(node: &Node, entries: &Entries, days: &mut Days) -> Option<Found> {
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
    let date = date.and_then(|d| text(d, "date", days).map(|word| (d, word)));
    let date = date.and_then(|(d, word)| days.date(&d.at, word));
    let kind = is_off.and_then(|node| match text(node, "isOffDay", days)? {
        "true" => Some(DayKind::Off),
        "false" => Some(DayKind::Work),
        other => {
            let what = format!("isOffDay {other:?} is neither true nor false");
            days.report.fault(&node.at, what, "write true for a day off, false for a worked one");
            None
        }
    });
    let label = get(entries, "name").and_then(|name| text(name, "name", days));
    Some((date?, kind?, label.map(str::to_owned)))
}
