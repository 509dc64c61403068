//! Parses the text of a [`Cron`].

use super::days::{CronDays, DayJoin, MonthDays, WeekDays};
use super::error::{CronError, shortened};
use super::fields::{DayTimes, Years};
use super::{Cron, CronDialect, YEAR_MAX, YEAR_MIN};

/// Longest expression, in bytes: a list of all 60 seconds and minutes has 340.
const LENGTH_MAX: usize = 500;

/// Grammar of a field.
struct CronFieldKind {
    name: &'static str,
    low: u32,
    high: u32,
    /// The last value of `*` and of `a/n`; below `high` where two numbers mean the same.
    top: u32,
    /// Number of values after which the field wraps around; `None` where a range cannot wrap.
    cycle: Option<u32>,
    step_max: u32,
    /// Names of the values from `low` on.
    names: &'static [&'static str],
}

const MONTHS: &[&str] =
    &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const fn kind(name: &'static str, low: u32, high: u32, cycle: u32) -> CronFieldKind {
    let step_max = if cycle > high { high } else { cycle };
    CronFieldKind { name, low, high, top: high, cycle: Some(cycle), step_max, names: &[] }
}

const SECOND: CronFieldKind = kind("second", 0, 59, 60);
const MINUTE: CronFieldKind = kind("minute", 0, 59, 60);
const HOUR: CronFieldKind = kind("hour", 0, 23, 24);
const MONTH_DAY: CronFieldKind = kind("day of month", 1, 31, 31);
const MONTH: CronFieldKind = CronFieldKind { names: MONTHS, ..kind("month", 1, 12, 12) };
const WEEKDAY: CronFieldKind = CronFieldKind { names: WEEKDAYS, ..kind("day of week", 1, 7, 7) };
const CLASSIC_WEEKDAY: CronFieldKind =
    CronFieldKind { names: WEEKDAYS, top: 6, ..kind("day of week", 0, 7, 7) };
const YEAR: CronFieldKind = CronFieldKind {
    name: "year",
    low: YEAR_MIN.unsigned_abs(),
    high: YEAR_MAX.unsigned_abs(),
    top: YEAR_MAX.unsigned_abs(),
    cycle: None,
    step_max: YEAR_MAX.abs_diff(YEAR_MIN),
    names: &[],
};

/// One field of one expression.
struct CronField<'a> {
    whole: &'a str,
    kind: &'static CronFieldKind,
    part: &'a str,
}

pub(super) fn parse_cron(text: &str) -> Result<Cron, CronError> {
    check_text(text)?;
    let upper = text.to_ascii_uppercase();
    let parts: Vec<&str> = upper.split_ascii_whitespace().collect();
    let field = |kind, at: usize| CronField { whole: text, kind, part: parts[at] };
    let (dialect, seconds, at) = match parts.len() {
        5 => (CronDialect::Classic, 1, 0),
        6 | 7 => (CronDialect::Quartz, field(&SECOND, 0).parse_bits()?, 1),
        count => return Err(CronError::Fields { text: shortened(text), count }),
    };
    let times = DayTimes {
        seconds,
        minutes: field(&MINUTE, at).parse_bits()?,
        hours: field(&HOUR, at + 1).parse_bits()?,
    };
    let (of_month, months) = (field(&MONTH_DAY, at + 2), field(&MONTH, at + 3).parse_bits()?);
    let days = match dialect {
        CronDialect::Quartz => quartz_days(months, &of_month, &field(&WEEKDAY, at + 4))?,
        CronDialect::Classic => classic_days(months, &of_month, &field(&CLASSIC_WEEKDAY, at + 4))?,
    };
    let mut years = Years::NONE;
    let named = match parts.get(6) {
        Some(_) => field(&YEAR, 6).numbers()?,
        None => CronField { whole: text, kind: &YEAR, part: "*" }.numbers()?,
    };
    named
        .into_iter()
        .filter_map(|year| i32::try_from(year).ok())
        .for_each(|year| years.insert(year));
    Ok(Cron { text: text.trim().into(), dialect, times, days, years })
}

fn check_text(text: &str) -> Result<(), CronError> {
    if text.len() > LENGTH_MAX {
        let what = format!("{} bytes are too many", text.len());
        return Err(CronError::from_text(text, what, format!("{LENGTH_MAX} are the most")));
    }
    if let Some(strange) = text.chars().find(|c| !c.is_ascii()) {
        let plain = match strange {
            '？' => "?",
            '＊' => "*",
            '，' | '、' => ",",
            '／' => "/",
            '－' | '–' | '—' => "-",
            '＃' => "#",
            '\u{3000}' | '\u{a0}' => "an ordinary blank",
            _ => "digits, English names and , - * ? / L W #",
        };
        let what = format!("'{strange}' has no meaning here");
        return Err(CronError::from_text(text, what, format!("write {plain}")));
    }
    if text.trim().starts_with('@') {
        return Err(CronError::Nickname { text: shortened(text), cure: plain_form(text) });
    }
    Ok(())
}

fn plain_form(text: &str) -> String {
    let expression = match text.trim().to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 0 1 1 ?",
        "@monthly" => "0 0 0 1 * ?",
        "@weekly" => "0 0 0 ? * SUN",
        "@daily" | "@midnight" => "0 0 0 * * ?",
        "@hourly" => "0 0 * * * ?",
        word if word.starts_with("@every") => {
            return "write every_sec with a number of seconds instead of cron".to_owned();
        }
        _ => return "write the fields out, such as 0 0 2 * * ? for every day at 02:00".to_owned(),
    };
    format!("write {expression}")
}

fn quartz_days(
    months: u64,
    of_month: &CronField,
    of_week: &CronField,
) -> Result<CronDays, CronError> {
    let none = (MonthDays::default(), WeekDays::default());
    let (of_month, of_week, join) = match (of_month.part, of_week.part) {
        ("?", "?") => {
            return Err(of_week.fault("?", "? in both day fields names no day", "write * in one"));
        }
        (_, "?") => (of_month.month_days()?, none.1, DayJoin::OfMonth),
        ("?", _) => (none.0, of_week.week_days()?, DayJoin::OfWeek),
        ("*", _) => {
            let cure = "write ? for the day of the month, which * does not leave open";
            return Err(of_month.fault("*", "both day fields are given", cure));
        }
        (_, part) => {
            let cure = "write ? in one of them; for both kinds of days make two schedules";
            return Err(of_week.fault(part, "both day fields are given", cure));
        }
    };
    Ok(CronDays { months, of_month, of_week, join })
}

fn classic_days(
    months: u64,
    of_month: &CronField,
    of_week: &CronField,
) -> Result<CronDays, CronError> {
    let open = |field: &CronField| field.part.starts_with('*');
    let join = if open(of_month) || open(of_week) { DayJoin::Both } else { DayJoin::Either };
    let of_month = MonthDays { days: of_month.parse_bits()?, ..MonthDays::default() };
    let every = of_week.parse_bits()?;
    let of_week = WeekDays { every, ..WeekDays::default() };
    Ok(CronDays { months, of_month, of_week, join })
}

impl CronField<'_> {
    fn fault(&self, part: &str, what: impl Into<String>, cure: impl Into<String>) -> CronError {
        CronError::Field {
            text: shortened(self.whole),
            field: self.kind.name,
            part: shortened(part),
            what: what.into(),
            cure: cure.into(),
        }
    }

    fn month_days(&self) -> Result<MonthDays, CronError> {
        let mut days = MonthDays::default();
        for item in self.part.split(',') {
            match item.strip_prefix('L') {
                Some("") => days.before_last |= 1,
                Some("W") => days.near_before_last |= 1,
                Some(rest) => {
                    let (set, rest) = match rest.strip_suffix('W') {
                        Some(rest) => (&mut days.near_before_last, rest),
                        None => (&mut days.before_last, rest),
                    };
                    *set |= 1 << self.before_last(item, rest)?;
                }
                None => match item.strip_suffix('W') {
                    Some(day) => days.near |= 1 << self.value(item, day)?,
                    None => self.add_item(item, &mut days.days)?,
                },
            }
        }
        Ok(days)
    }

    /// Parses the 3 of `L-3`.
    fn before_last(&self, item: &str, rest: &str) -> Result<u32, CronError> {
        let cure = "write L, L-1 to L-30, LW or L-1W to L-30W";
        let days = rest.strip_prefix('-').filter(|days| is_number(days));
        match days.and_then(|days| days.parse().ok()) {
            Some(days) if days <= 30 => Ok(days),
            _ => Err(self.fault(item, "is not a count back from the last day", cure)),
        }
    }

    fn week_days(&self) -> Result<WeekDays, CronError> {
        let mut days = WeekDays::default();
        for item in self.part.split(',') {
            if item == "L" {
                days.every |= 1 << 6;
            } else if let Some((weekday, nth)) = item.split_once('#') {
                let weekday = self.value(item, weekday)? - 1;
                let nth = match nth {
                    "1" | "2" | "3" | "4" | "5" => usize::from(nth.as_bytes()[0] - b'1'),
                    _ => {
                        let cure = "write #1 to #5; #5 skips months that have four";
                        return Err(self.fault(item, "a month has no such week", cure));
                    }
                };
                days.nth[nth] |= 1 << weekday;
            } else if let Some(weekday) = item.strip_suffix('L') {
                days.last |= 1 << (self.value(item, weekday)? - 1);
            } else {
                let mut every = 0;
                self.add_item(item, &mut every)?;
                days.every |= every >> 1;
            }
        }
        Ok(days)
    }

    fn parse_bits(&self) -> Result<u64, CronError> {
        Ok(self.numbers()?.into_iter().fold(0, |bits, number| bits | 1 << number))
    }

    fn add_item(&self, item: &str, bits: &mut u64) -> Result<(), CronError> {
        for number in self.parse_item(item)? {
            *bits |= 1 << number;
        }
        Ok(())
    }

    fn numbers(&self) -> Result<Vec<u32>, CronError> {
        let mut numbers = Vec::new();
        for item in self.part.split(',') {
            numbers.extend(self.parse_item(item)?);
        }
        Ok(numbers)
    }

    /// Parses `*`, `a`, `a-b`, each with or without a step.
    fn parse_item(&self, item: &str) -> Result<Vec<u32>, CronError> {
        let kind = self.kind;
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(self.parse_step(item, step)?)),
            None => (item, None),
        };
        let (from, to) = match (base, base.split_once('-'), step) {
            ("*", _, _) | ("", _, Some(_)) => (kind.low, kind.top),
            (_, Some((from, to)), _) => (self.value(item, from)?, self.value(item, to)?),
            (_, None, None) => {
                let only = self.value(item, base)?;
                (only, only)
            }
            (_, None, Some(_)) => {
                let from = self.value(item, base)?;
                (from, kind.top.max(from))
            }
        };
        let around = if from <= to { Some(0) } else { kind.cycle };
        let Some(around) = around else {
            return Err(self.fault(item, "the range ends before it begins", "swap its ends"));
        };
        let step = usize::try_from(step.unwrap_or(1)).expect("a step is small");
        let back = |number: u32| match kind.cycle {
            Some(cycle) if number > kind.top => number - cycle,
            Some(_) | None => number,
        };
        Ok((from..=to + around).step_by(step).map(back).collect())
    }

    fn parse_step(&self, item: &str, step: &str) -> Result<u32, CronError> {
        let max = self.kind.step_max;
        match step.parse() {
            Ok(step) if (1..=max).contains(&step) => Ok(step),
            Ok(0) => Err(self.fault(item, "a step of 0 gets nowhere", "leave /0 away")),
            Ok(step) => {
                let what = format!("a step of {step} leads out of the field");
                Err(self.fault(item, what, format!("a step is 1 to {max} here")))
            }
            Err(_) => {
                let what = "after / stands the step, a number";
                Err(self.fault(item, what, format!("write 1 to {max} after /")))
            }
        }
    }

    /// Parses a number or name. `item` is the surrounding text, for messages.
    fn value(&self, item: &str, word: &str) -> Result<u32, CronError> {
        let CronFieldKind { low, high, names, .. } = *self.kind;
        if is_number(word)
            && let Ok(number) = word.parse::<u32>()
        {
            if (low..=high).contains(&number) {
                return Ok(number);
            }
            let what = format!("{number} is out of range");
            return Err(self.fault(item, what, format!("write {}", self.choice())));
        }
        if let Some(at) = (low..).zip(names).find(|(_, name)| **name == word) {
            return Ok(at.0);
        }
        let (what, cure) = self.strange(word);
        Err(self.fault(item, what, cure))
    }

    fn strange(&self, word: &str) -> (String, String) {
        let kind = self.kind;
        if word.is_empty() {
            return ("a value is missing".to_owned(), format!("write {}", self.choice()));
        }
        if word.contains('?') {
            let cure = "it stands alone, for the day of month or the day of week";
            return ("? is not possible here".to_owned(), cure.to_owned());
        }
        let long = kind.names.iter().find(|name| word.len() > 3 && word.starts_with(**name));
        if let Some(name) = long {
            return (format!("'{word}' is not a name"), format!("write {name}"));
        }
        let special = |c: char| matches!(c, 'L' | 'W' | '#');
        if word.contains(special) && word.chars().all(|c| special(c) || c.is_ascii_digit()) {
            return ("L, W and # are not possible here".to_owned(), self.special_cure().to_owned());
        }
        (format!("'{word}' is not understood"), format!("write {}", self.choice()))
    }

    fn special_cure(&self) -> &'static str {
        if self.whole.split_ascii_whitespace().count() == 5 {
            return "they need six fields, with the seconds first";
        }
        "L and W belong to the day of month, L and # to the day of week, and none of them to a range \
         or step"
    }

    fn choice(&self) -> String {
        let CronFieldKind { low, high, names, .. } = *self.kind;
        match (names.first(), names.last(), low) {
            (Some(first), Some(last), 0) => {
                format!("{low} to {high} (0 and 7 are Sunday), or {first} to {last}")
            }
            (Some(first), Some(last), _) if names.len() == 7 => {
                format!("{low} to {high} (1 is Sunday), or {first} to {last}")
            }
            (Some(first), Some(last), _) => format!("{low} to {high}, or {first} to {last}"),
            (None, ..) | (_, None, _) => format!("{low} to {high}"),
        }
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.len() <= 9 && word.bytes().all(|b| b.is_ascii_digit())
}
