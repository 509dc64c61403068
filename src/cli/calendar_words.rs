//! Texts about calendars: the changes of an import, and warnings about them.

use crate::app::{Apply, CalendarChange};
use crate::cli::out;
use crate::domain::calendar::{
    Calendar, CalendarDayRule, Calendars, CombinationRule, Combine, DayChange, DayKind,
};
use crate::domain::id::CalendarCode;
use crate::domain::text::lang::Lang;
use chrono::{Datelike as _, NaiveDate, Weekday};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of days that are listed one by one.
const SHOWN: usize = 60;

/// The day of the week, in two characters or one wide character.
pub(super) fn weekday(day: Weekday, lang: Lang) -> &'static str {
    let at = day.num_days_from_monday() as usize;
    match lang {
        Lang::En => ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"][at],
        Lang::Zh => ["一", "二", "三", "四", "五", "六", "日"][at],
    }
}

/// `off 国庆节`
fn day_words(day: &CalendarDayRule, lang: Lang) -> String {
    let kind = match day.kind {
        DayKind::Off => lang.select("off", "休"),
        DayKind::Work => lang.select("work", "班"),
    };
    day.label.as_ref().map_or(kind.to_owned(), |label| format!("{kind} {label}"))
}

fn change_line(date: NaiveDate, change: &DayChange, lang: Lang) -> String {
    let on = format!("{date} {}", weekday(date.weekday(), lang));
    match change {
        DayChange::Added(day) => format!("+ {on} {}", day_words(day, lang)),
        DayChange::Removed(day) => format!("- {on} {}", day_words(day, lang)),
        DayChange::Changed(old, new) => {
            format!("~ {on} {} -> {}", day_words(old, lang), day_words(new, lang))
        }
    }
}

/// The differences, one per line, and their number.
pub(super) fn changes(
    code: &CalendarCode,
    change: &CalendarChange,
    how: Apply,
    lang: Lang,
) -> String {
    let differs = &change.difference;
    let mut lines: Vec<String> = Vec::new();
    for head in &differs.head {
        lines.push(format!("~ {}: {} -> {}", head.what, head.old, head.new));
    }
    let days = differs.days.iter().map(|(date, change)| change_line(*date, change, lang));
    lines.extend(days.take(SHOWN));
    if differs.days.len() > SHOWN {
        let rest = differs.days.len() - SHOWN;
        lines.push(match lang {
            Lang::En => format!("… and {}", out::count(rest, "more day")),
            Lang::Zh => format!("……另有 {rest} 天"),
        });
    }
    let list = |years: &BTreeSet<i32>| {
        years.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    if !differs.years_added.is_empty() {
        lines.push(format!("+ {} {}", lang.select("years", "年份"), list(&differs.years_added)));
    }
    if !differs.years_removed.is_empty() {
        lines.push(format!("- {} {}", lang.select("years", "年份"), list(&differs.years_removed)));
    }
    lines.push(summary(code, change, how, lang));
    lines.join("\n")
}

fn summary(code: &CalendarCode, change: &CalendarChange, how: Apply, lang: Lang) -> String {
    let is_new = change.before.is_none();
    if change.difference.is_empty() && !is_new {
        return lang.select("no changes", "没有变化").to_owned();
    }
    let of = |wanted: fn(&DayChange) -> bool| {
        change.difference.days.values().filter(|c| wanted(c)).count()
    };
    let added = of(|c| matches!(c, DayChange::Added(_)));
    let removed = of(|c| matches!(c, DayChange::Removed(_)));
    let changed = of(|c| matches!(c, DayChange::Changed(..)));
    match (lang, how) {
        (Lang::En, Apply::Write) => format!(
            "calendar {code} is stored{}: {} added, {removed} removed, {changed} changed",
            if is_new { " (new)" } else { "" },
            out::count(added, "day")
        ),
        (Lang::En, Apply::DryRun) => format!(
            "calendar {code} would be stored{}: {} added, {removed} removed, {changed} changed",
            if is_new { " (new)" } else { "" },
            out::count(added, "day")
        ),
        (Lang::Zh, Apply::Write) => {
            format!("日历 {code} 已保存：新增 {added} 天，删除 {removed} 天，修改 {changed} 天")
        }
        (Lang::Zh, Apply::DryRun) => {
            format!("日历 {code} 将保存：新增 {added} 天，删除 {removed} 天，修改 {changed} 天")
        }
    }
}

pub(super) fn removed(code: &CalendarCode, lang: Lang) -> String {
    match lang {
        Lang::En => format!("calendar {code} is removed"),
        Lang::Zh => format!("日历 {code} 已删除"),
    }
}

pub(super) fn nothing_lacks(lang: Lang) -> &'static str {
    lang.select("the calendars in use have all their days", "使用中的日历数据齐全")
}

/// Warnings about what is allowed but seldom intended.
pub(super) fn surprises(change: &CalendarChange, code: &CalendarCode, lang: Lang) -> Vec<String> {
    let Some(after) = &change.after else { return Vec::new() };
    let mut found = Vec::new();
    let new = change.difference.days.iter().filter(|(date, change)| match change {
        DayChange::Added(day) | DayChange::Changed(_, day) => {
            day.kind == DayKind::Work && is_worked_anyway(after, **date)
        }
        DayChange::Removed(_) => false,
    });
    let idle: Vec<String> = new.map(|(date, _)| date.to_string()).collect();
    if !idle.is_empty() && after.combines.is_none() {
        found.push(match lang {
            Lang::En => format!(
                "warning: {} is no day of the weekend ({}) and worked anyway; are off and work \
                 mixed up?",
                idle.join(", "),
                after.weekend
            ),
            Lang::Zh => format!(
                "警告：{} 不是周末（{}），本来就上班；休和班是否写反了？",
                idle.join(", "),
                after.weekend
            ),
        });
    }
    if let Some(Combine { how: CombinationRule::AllOf, members }) = &after.combines {
        found.extend(lost_work_days(change, code, members, lang));
    }
    found
}

fn is_worked_anyway(calendar: &Calendar, date: NaiveDate) -> bool {
    !calendar.weekend.has_day_of(date)
}

/// A make-up day of one member is lost when another has that day as a weekend and does not list it.
fn lost_work_days(
    change: &CalendarChange,
    code: &CalendarCode,
    members: &[CalendarCode],
    lang: Lang,
) -> Option<String> {
    let there: Vec<&Calendar> = members.iter().filter_map(|m| change.all.get(m).ok()).collect();
    for one in &there {
        let worked = one.days.iter().filter(|(_, day)| day.kind == DayKind::Work);
        for (date, _) in worked {
            let off = |other: &&&Calendar| {
                other.combines.is_none()
                    && !other.days.contains_key(date)
                    && other.weekend.has_day_of(*date)
            };
            let Some(other) = there.iter().find(off) else { continue };
            let (a, b) = (&one.code, &other.code);
            return Some(match lang {
                Lang::En => format!(
                    "warning: {date} is worked in {a} and a weekend day of {b}, so it is off in {code}; \
                     if {b} only adds days off, take its weekend away: procession calendar add {b} \
                     --weekend none"
                ),
                Lang::Zh => format!(
                    "警告：{date} 在 {a} 中上班，在 {b} 中是周末，因此在 {code} 中是休息日；如果 {b} \
                     只用来增加休息日，请去掉它的周末：procession calendar add {b} --weekend none"
                ),
            });
        }
    }
    None
}

/// `2023-2026`, `2023, 2025`.
fn ranges(years: &BTreeSet<i32>) -> String {
    let mut parts: Vec<(i32, i32)> = Vec::new();
    for year in years {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *year => *last = *year,
            Some(_) | None => parts.push((*year, *year)),
        }
    }
    let words: Vec<String> = parts
        .into_iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    words.join(", ")
}

/// The table of calendars.
pub(super) fn render_calendars(
    all: &Calendars,
    used: &BTreeMap<CalendarCode, BTreeSet<String>>,
    lang: Lang,
) -> String {
    let header = match lang {
        Lang::En => ["CALENDAR", "NAME", "WEEKEND", "YEARS", "DAYS", "USED BY"],
        Lang::Zh => ["日历", "名称", "周末", "年份", "天数", "使用者"],
    };
    let rows = all.iter().map(|c| {
        let (weekend, years) = match &c.combines {
            Some(combine) => {
                let members: Vec<&str> = combine.members.iter().map(|m| m.as_str()).collect();
                let how = match combine.how {
                    CombinationRule::AllOf => lang.select("all of", "全部上班"),
                    CombinationRule::AnyOf => lang.select("any of", "任一上班"),
                };
                ("-".to_owned(), format!("{how} {}", members.join(", ")))
            }
            None if c.is_listed() => (c.weekend.to_string(), ranges(&c.years)),
            None => (c.weekend.to_string(), lang.select("by hand", "手工维护").to_owned()),
        };
        let groups = used.get(&c.code).into_iter().flatten().cloned();
        let users = all.users_of(&c.code).into_iter().map(|user| format!("calendar {user}"));
        let users: Vec<String> = groups.chain(users).collect();
        let users = if users.is_empty() { "-".to_owned() } else { users.join(", ") };
        vec![c.code.to_string(), c.name.clone(), weekend, years, c.days.len().to_string(), users]
    });
    out::table(&header, rows.collect())
}
