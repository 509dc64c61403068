//! Writes a calendar as a JSON file that `calendar import` reads back.

use crate::domain::calendar::{Calendar, CalendarDayRule, DayOrigin};
use chrono::NaiveDate;
use serde_json::json;
use std::fmt::Write as _;

/// The calendar as JSON, one day per line.
pub fn write_calendar(calendar: &Calendar) -> String {
    let mut text = format!("{{\n\"calendar\": {},\n", json!(calendar.code));
    let mut add = |line: String| text.push_str(&line);
    add(format!("\"name\": {},\n", json!(calendar.name)));
    add(format!("\"weekend\": {}", json!(calendar.weekend)));
    if let Some(combine) = &calendar.combines {
        add(format!(",\n\"combines\": {{{}: {}}}", json!(combine.how), json!(combine.members)));
    }
    let of = |origin: DayOrigin| {
        let days: Vec<_> = calendar.days.iter().filter(|(_, day)| day.origin == origin).collect();
        listed(&days)
    };
    let lists = calendar.years.iter().map(|year| {
        format!("{{\"year\": {year}, \"days\": [\n{}\n]}}", of(DayOrigin::List(*year)))
    });
    let lists: Vec<String> = lists.collect();
    if !lists.is_empty() {
        add(format!(",\n\"years\": [\n{}\n]", lists.join(",\n")));
    }
    let by_hand = of(DayOrigin::Hand);
    if !by_hand.is_empty() || (lists.is_empty() && calendar.combines.is_none()) {
        add(format!(",\n\"by_hand\": [\n{by_hand}\n]"));
    }
    text.push_str("\n}\n");
    text
}

fn listed(days: &[(&NaiveDate, &CalendarDayRule)]) -> String {
    let mut text = String::new();
    for (i, (date, day)) in days.iter().enumerate() {
        let end = if i + 1 < days.len() { ",\n" } else { "" };
        let label = day.label.as_ref().map(|label| format!(", {}", json!(label)));
        // Writing to a String cannot fail.
        let _ = write!(text, "[\"{date}\", {}{}]{end}", json!(day.kind), label.unwrap_or_default());
    }
    text
}
