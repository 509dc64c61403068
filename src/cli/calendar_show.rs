//! `calendar show`: a year as a wall calendar, and the days that differ from their weekday.

use crate::cli::{calendar_words, out};
use crate::domain::batch_no::Period;
use crate::domain::calendar::{CalendarCertainty, Calendars, DayBasis};
use crate::domain::id::CalendarCode;
use crate::domain::text::lang::Lang;
use crate::view::calendar::{DayMark, YearDays, looks, worked, year_of};
use anyhow::Result;
use chrono::{Datelike as _, NaiveDate, Weekday};
use console::{measure_text_width, pad_str};

/// Months side by side.
const ACROSS: usize = 3;
/// Width of a month: seven days of four columns.
const WIDTH: usize = 28;
/// Between two months.
const GAP: &str = "   ";

/// The symbol of a day.
fn mark_symbol(mark: DayMark) -> char {
    match mark {
        DayMark::Worked => ' ',
        DayMark::Weekend => '.',
        DayMark::Holiday => '*',
        DayMark::MadeUp => '+',
    }
}

fn colour(mark: DayMark) -> Option<u8> {
    match mark {
        DayMark::Worked => None,
        DayMark::Weekend => Some(90),
        DayMark::Holiday => Some(31),
        DayMark::MadeUp => Some(33),
    }
}

/// Prints the year.
pub(super) fn print(all: &Calendars, code: &CalendarCode, year: i32, lang: Lang) -> Result<()> {
    let period = year_of(year)?;
    let looks = looks(all, code, period)?;
    let name = &all.get(code)?.name;
    let count = worked(&looks, period);
    out::print_line(&match lang {
        Lang::En => format!("{code} {name} {year}: {}", out::count(count, "working day")),
        Lang::Zh => format!("{code} {name} {year}：{count} 个工作日"),
    });
    let ink = if out::may_colour() { Ink::Colour } else { Ink::Plain };
    let months: Vec<Vec<String>> =
        period.months().into_iter().map(|m| month(m, &looks, all, lang, ink)).collect();
    for row in months.chunks(ACROSS) {
        let lines = row.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..lines {
            let cells = row.iter().map(|m| {
                let cell = m.get(at).map_or("", String::as_str);
                pad_str(cell, WIDTH, console::Alignment::Left, None).into_owned()
            });
            out::painted(cells.collect::<Vec<_>>().join(GAP).trim_end());
        }
    }
    out::print_line(match lang {
        Lang::En => "  . weekend   * holiday   + worked weekend day",
        Lang::Zh => "  . 周末   * 节假日   + 调休上班",
    });
    for run in listed_ranges(&looks, all, lang) {
        out::print_line(&run);
    }
    if looks.values().any(|look| look.certainty() == CalendarCertainty::Assumed) {
        out::eprint_line(&match lang {
            Lang::En => format!(
                "warning: calendar {code} has no days for {year}: weekends are taken for days off and \
                 holidays are not known; import them: procession calendar import FILE"
            ),
            Lang::Zh => format!(
                "警告：日历 {code} 没有 {year} 年的节假日，只按周末判断；请导入：procession calendar \
                 import 文件"
            ),
        });
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ink {
    Colour,
    Plain,
}

/// A month: its name, the days of the week, and its weeks.
fn month(period: Period, looks: &YearDays, all: &Calendars, lang: Lang, ink: Ink) -> Vec<String> {
    let first = period.first_day();
    let title = format!("{} ({})", first.format("%Y-%m"), worked(looks, period));
    let width = measure_text_width(&title);
    let mut lines = vec![format!("{}{title}", " ".repeat((WIDTH - width) / 2))];
    let week = [
        Weekday::Mon,
        Weekday::Tue,
        Weekday::Wed,
        Weekday::Thu,
        Weekday::Fri,
        Weekday::Sat,
        Weekday::Sun,
    ];
    let head = week.map(|day| format!(" {} ", calendar_words::weekday(day, lang)));
    lines.push(head.concat());
    let mut line = " ".repeat(4 * first.weekday().num_days_from_monday() as usize);
    for (date, look) in looks.range(first..=period.last_day()) {
        let mark = DayMark::for_day(*date, look, all);
        let cell = format!("{:>3}{}", date.day(), mark_symbol(mark));
        line.push_str(&match colour(mark).filter(|_| ink == Ink::Colour) {
            Some(colour) => format!("\u{1b}[{colour}m{cell}\u{1b}[0m"),
            None => cell,
        });
        if date.weekday() == Weekday::Sun {
            lines.push(std::mem::take(&mut line));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The listed days; successive days of one name as one line.
fn listed_ranges(looks: &YearDays, all: &Calendars, lang: Lang) -> Vec<String> {
    let mut found: Vec<(NaiveDate, NaiveDate, DayMark, String)> = Vec::new();
    for (date, look) in looks {
        let DayBasis::Listed(label) = &look.basis else { continue };
        let (mark, label) = (DayMark::for_day(*date, look, all), label.clone().unwrap_or_default());
        match found.last_mut() {
            Some((_, last, kind, name))
                if last.succ_opt() == Some(*date) && *kind == mark && *name == label =>
            {
                *last = *date;
            }
            Some(_) | None => found.push((*date, *date, mark, label)),
        }
    }
    let line = |(from, to, mark, label): (NaiveDate, NaiveDate, DayMark, String)| {
        let kind = match mark {
            DayMark::Holiday | DayMark::Weekend => lang.select("off ", "休"),
            DayMark::MadeUp | DayMark::Worked => lang.select("work", "班"),
        };
        let end = if from == to { " ".repeat(9) } else { format!(" .. {}", to.format("%m-%d")) };
        format!("  {from}{end}  {kind}  {label}").trim_end().to_owned()
    };
    found.into_iter().map(line).collect()
}
