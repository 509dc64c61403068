//! What a cron expression means, by brute force from the written rules (the top of
//! `crates/core/src/domain/schedule/cron.rs`): every day is asked, every time of it, every stretch of a zone between two
//! changes of its clock. Slow on purpose, and nothing in it is shared with the code it judges.

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime, Offset as _, TimeZone as _};
use chrono_tz::Tz;
use std::collections::BTreeSet;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEK: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// First and last day that is ever asked.
pub(crate) const FIRST: NaiveDate = NaiveDate::from_ymd_opt(2019, 12, 1).expect("a day");
const LAST: NaiveDate = NaiveDate::from_ymd_opt(2036, 2, 1).expect("a day");

/// A zone as its stretches: from, until (seconds since 1970), and seconds ahead of UTC.
pub(crate) struct Zone {
    pub(crate) tz: Tz,
    stretches: Vec<(i64, i64, i64)>,
    changes: Vec<(i64, i64)>,
}

impl Zone {
    /// Found by asking for the offset of every hour, and then of the second between two hours.
    pub(crate) fn scan(tz: Tz) -> Self {
        let ahead = |at: i64| {
            let at = DateTime::from_timestamp(at, 0).expect("in range").naive_utc();
            i64::from(tz.offset_from_utc_datetime(&at).fix().local_minus_utc())
        };
        let (first, last) = (seconds(FIRST) - 7 * 86_400, seconds(LAST) + 7 * 86_400);
        let mut stretches = Vec::new();
        let mut began = first;
        for hour in (first..last).step_by(3_600) {
            if ahead(hour) != ahead(hour + 3_600) {
                let change = (hour..=hour + 3_600).find(|at| ahead(*at) != ahead(hour));
                let change = change.expect("it changes in this hour");
                stretches.push((began, change, ahead(began)));
                began = change;
            }
        }
        stretches.push((began, last, ahead(began)));
        let change = |pair: &[(i64, i64, i64)]| (pair[1].0, pair[1].2 - pair[0].2);
        Self { tz, changes: stretches.windows(2).map(change).collect(), stretches }
    }

    /// Moments at which the clock is changed, and by how much.
    pub(crate) fn changes(&self) -> &[(i64, i64)] {
        &self.changes
    }

    /// The stretches that can show `wall`: no clock is more than a day from UTC.
    fn near(&self, wall: i64) -> &[(i64, i64, i64)] {
        let first = self.stretches.partition_point(|(_, until, _)| *until < wall - 86_400);
        let last = self.stretches.partition_point(|(from, ..)| *from <= wall + 86_400);
        &self.stretches[first..last]
    }

    pub(crate) fn ahead(&self, at: i64) -> i64 {
        let within = self.stretches.iter().find(|(from, until, _)| (*from..*until).contains(&at));
        within.expect("within the years scanned").2
    }

    /// Every moment that shows `wall` (seconds as if it were UTC), in order.
    fn moments(&self, wall: i64) -> Vec<i64> {
        let at = |(from, until, ahead): &(i64, i64, i64)| {
            Some(wall - ahead).filter(|at| (*from..*until).contains(at))
        };
        self.near(wall).iter().filter_map(at).collect()
    }

    /// The moment at which the clock leaps over `wall`.
    fn leap_over(&self, wall: i64) -> Option<i64> {
        let over = |pair: &&[(i64, i64, i64)]| {
            let at = pair[1].0;
            (at + pair[0].2..at + pair[1].2).contains(&wall)
        };
        self.near(wall).windows(2).find(over).map(|pair| pair[1].0)
    }
}

fn seconds(day: NaiveDate) -> i64 {
    day.and_hms_opt(0, 0, 0).expect("midnight").and_utc().timestamp()
}

/// An expression, taken apart into what can be asked of a day and of a time.
pub(crate) struct Expanded {
    seconds: Vec<u32>,
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days: Vec<bool>,
}

impl Expanded {
    pub(crate) fn of(expression: &str) -> Self {
        let upper = expression.to_uppercase();
        let mut parts: Vec<&str> = upper.split_whitespace().collect();
        let classic = parts.len() == 5;
        if classic {
            parts.insert(0, "0");
        }
        let all = LAST.signed_duration_since(FIRST).num_days();
        let day = |n: i64| FIRST.checked_add_days(Days::new(n.unsigned_abs())).expect("a day");
        let named = Named { classic, parts: &parts };
        Self {
            seconds: listed(parts[0], 0, 59, &[]),
            minutes: listed(parts[1], 0, 59, &[]),
            hours: listed(parts[2], 0, 23, &[]),
            days: named.days((0..all).map(day)),
        }
    }

    /// Firings on a day that is named.
    pub(crate) fn per_day(&self) -> usize {
        self.seconds.len() * self.minutes.len() * self.hours.len()
    }

    /// Days named in the years 2020 to 2035.
    pub(crate) fn days_named(&self) -> usize {
        self.days.iter().filter(|named| **named).count()
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let at = day.signed_duration_since(FIRST).num_days();
        usize::try_from(at).ok().and_then(|at| self.days.get(at)).is_some_and(|named| *named)
    }

    /// Every firing after `from` and before `until` (seconds since 1970).
    pub(crate) fn firings(&self, zone: &Zone, from: i64, until: i64) -> Vec<i64> {
        // The clock shows nothing between these that it does not show within; a gap of a day included.
        let slack = 86_400 * i64::from(!zone.changes().is_empty());
        let near =
            |(at, by): &(i64, i64)| (from - slack..until + slack).contains(at).then_some(by.abs());
        let pad = zone.changes().iter().filter_map(near).max().unwrap_or(0) + 1;
        let first = from + zone.ahead(from).min(zone.ahead(until)) - pad;
        let last = until + zone.ahead(from).max(zone.ahead(until)) + pad;
        let mut found = BTreeSet::new();
        let mut day = DateTime::from_timestamp(first, 0).expect("in range").date_naive();
        while seconds(day) <= last {
            if self.has_day(day) {
                self.walls(seconds(day), first, last, |wall| self.add(zone, wall, &mut found));
            }
            day = day.succ_opt().expect("a day");
        }
        found.into_iter().filter(|at| *at > from && *at < until).collect()
    }

    fn walls(&self, midnight: i64, first: i64, last: i64, mut each: impl FnMut(i64)) {
        for hour in &self.hours {
            let hour = midnight + i64::from(*hour) * 3_600;
            if hour + 3_600 < first || hour > last {
                continue;
            }
            for minute in &self.minutes {
                let minute = hour + i64::from(*minute) * 60;
                if minute + 60 < first || minute > last {
                    continue;
                }
                self.seconds.iter().for_each(|second| each(minute + i64::from(*second)));
            }
        }
    }

    fn add(&self, zone: &Zone, wall: i64, found: &mut BTreeSet<i64>) {
        let moments = zone.moments(wall);
        if self.hours.len() == 24 {
            // Whenever the clock shows it.
            found.extend(moments);
            return;
        }
        match moments.first() {
            Some(first) => found.insert(*first),
            None => found.insert(zone.leap_over(wall).expect("what is never shown is leapt over")),
        };
    }
}

/// What the fields say of days.
struct Named<'a> {
    classic: bool,
    parts: &'a [&'a str],
}

impl Named<'_> {
    fn days(&self, days: impl Iterator<Item = NaiveDate>) -> Vec<bool> {
        let months = listed(self.parts[4], 1, 12, &MONTHS);
        let years = self.parts.get(6).map(|years| listed(years, 1970, 2199, &[]));
        let (of_month, of_week) = (self.parts[3], self.parts[5]);
        let month_items: Vec<MonthItem> =
            of_month.split(',').filter(|item| *item != "?").map(MonthItem::of).collect();
        let week_items: Vec<WeekItem> = of_week
            .split(',')
            .filter(|item| *item != "?")
            .map(|item| WeekItem::of(item, self.classic))
            .collect();
        let has = |day: NaiveDate| {
            let in_year = years.as_ref().is_none_or(|y| y.contains(&day.year().unsigned_abs()));
            if !in_year || !months.contains(&day.month()) {
                return false;
            }
            let by_month = || month_items.iter().any(|item| item.has(day));
            let by_week = || week_items.iter().any(|item| item.has(day));
            match (of_month, of_week) {
                (_, "?") => by_month(),
                ("?", _) => by_week(),
                _ if of_month.starts_with('*') || of_week.starts_with('*') => {
                    by_month() && by_week()
                }
                _ => by_month() || by_week(),
            }
        };
        days.map(has).collect()
    }
}

/// Days of the week as an item names them, 0 = Sunday.
enum WeekItem {
    Every(Vec<u32>),
    Last(Vec<u32>),
    Nth(Vec<u32>, u32),
}

impl WeekItem {
    fn of(item: &str, classic: bool) -> Self {
        if classic {
            // 7 is another word for 0, but not as a step.
            let (range, step) = item.split_at(item.find('/').unwrap_or(item.len()));
            return Self::Every(listed(&(range.replace('7', "0") + step), 0, 6, &WEEK));
        }
        let days = |word: &str| listed(word, 1, 7, &WEEK).into_iter().map(|d| d - 1).collect();
        if item == "L" {
            return Self::Every(days("SAT"));
        }
        if let Some(word) = item.strip_suffix('L') {
            return Self::Last(days(word));
        }
        match item.split_once('#') {
            Some((word, nth)) => Self::Nth(days(word), number(nth, &[], 0)),
            None => Self::Every(days(item)),
        }
    }

    fn has(&self, day: NaiveDate) -> bool {
        let weekday = day.weekday().num_days_from_sunday();
        match self {
            Self::Every(days) => days.contains(&weekday),
            Self::Last(days) => {
                days.contains(&weekday) && (day + Days::new(7)).month() != day.month()
            }
            Self::Nth(days, nth) => days.contains(&weekday) && (day.day() - 1) / 7 + 1 == *nth,
        }
    }
}

/// Days of the month as an item names them.
enum MonthItem {
    Days(Vec<u32>),
    BeforeLast(u32),
    Near(u32),
    NearBeforeLast(u32),
}

impl MonthItem {
    fn of(item: &str) -> Self {
        let back = |word: &str| word.trim_start_matches('-').parse().unwrap_or(0);
        match (item.strip_prefix('L'), item.strip_suffix('W')) {
            (Some(rest), Some(_)) => Self::NearBeforeLast(back(rest.trim_end_matches('W'))),
            (Some(rest), None) => Self::BeforeLast(back(rest)),
            (None, Some(day)) => Self::Near(number(day, &[], 0)),
            (None, None) => Self::Days(listed(item, 1, 31, &[])),
        }
    }

    fn has(&self, day: NaiveDate) -> bool {
        let left = || {
            let rest = day.iter_days().skip(1);
            u32::try_from(rest.take_while(|d| d.month() == day.month()).count()).expect("a month")
        };
        match self {
            Self::Days(days) => days.contains(&day.day()),
            Self::BeforeLast(back) => left() == *back,
            Self::Near(wanted) => is_nearest(day, *wanted, day.day() + left()),
            Self::NearBeforeLast(back) => {
                let last = day.day() + left();
                last > *back && is_nearest(day, last - back, last)
            }
        }
    }
}

/// Whether of all days from Monday to Friday of a month of `last` days, `day` is the one the fewest
/// days away from the day `wanted` of it.
fn is_nearest(day: NaiveDate, wanted: u32, last: u32) -> bool {
    let works = |d: &u32| {
        let date = day.with_day(*d).expect("in the month");
        (1..=5).contains(&date.weekday().num_days_from_sunday())
    };
    // More than three days away there is always a nearer one.
    let far = day.day().abs_diff(wanted) > 3 || wanted > last;
    !far && (1..=last).filter(works).min_by_key(|d| d.abs_diff(wanted)) == Some(day.day())
}

/// The values of a field, by walking from each item's first to its last, round the end.
fn listed(field: &str, low: u32, high: u32, names: &[&str]) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for item in field.split(',') {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (first, last) = match range {
            "*" | "" => (low, high),
            _ => match range.split_once('-') {
                Some((a, b)) => (number(a, names, low), number(b, names, low)),
                None if item.contains('/') => (number(range, names, low), high),
                None => (number(range, names, low), number(range, names, low)),
            },
        };
        let step = number(step, &[], 0);
        let (mut at, mut walked) = (first, 0);
        loop {
            if walked % step == 0 {
                found.insert(at);
            }
            if at == last {
                break;
            }
            at = if at == high { low } else { at + 1 };
            walked += 1;
        }
    }
    found.into_iter().collect()
}

fn number(word: &str, names: &[&str], low: u32) -> u32 {
    match names.iter().position(|name| *name == word) {
        Some(at) => u32::try_from(at).expect("small") + low,
        None => word.parse().unwrap_or_else(|_| panic!("{word} is a number")),
    }
}

/// Seconds since 1970 as people write them.
pub(crate) fn written(at: i64, zone: Tz) -> String {
    let at = DateTime::from_timestamp(at, 0).expect("in range");
    let wall: NaiveDateTime = at.with_timezone(&zone).naive_local();
    format!("{wall} ({})", at.to_rfc3339())
}
