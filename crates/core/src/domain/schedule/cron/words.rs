//! What an expression means, as a sentence. First its shape is looked for in what it names (so that
//! `0/15`, `*/15` and `0,15,30,45` read alike), then it is said in a language.

mod en;
mod zh;

use super::days::Join;
use super::fields::{ALL_HOURS, from_bit};
use super::{Cron, YEAR_MAX, YEAR_MIN};
use crate::domain::text::lang::Lang;

/// Most times of a day that are said one by one.
const ONE_BY_ONE: usize = 6;
/// All minutes, or all seconds.
const ALL_SIXTY: u64 = (1 << 60) - 1;

/// A set of numbers as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    /// Everything there is.
    All,
    /// From one number on, every so many, to the end of the field.
    Every(u32, u32),
    /// From one to another without a gap; around the end of the field when the first is greater.
    Run(u32, u32),
    /// These.
    List(Vec<u32>),
}

/// The times of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Times {
    /// Few: hour, minute, second.
    Few(Vec<(u32, u32, u32)>),
    /// Minutes of hours, at second 0.
    Minutes { minutes: Set, hours: Set },
    /// Seconds of minutes of hours.
    Seconds { seconds: Set, minutes: Set, hours: Set },
}

/// Which days, from the ways in which an expression names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    /// Of the month; none when it does not say any, or all.
    days: Option<Set>,
    /// So many days before the last of the month.
    before_last: Vec<u32>,
    /// Weekday nearest to this day.
    near: Vec<u32>,
    /// Weekday nearest to so many days before the last.
    near_before_last: Vec<u32>,
    /// Of the week, 0 is Sunday; none when it does not say any, or all.
    week: Option<Set>,
    /// The last such day of the month.
    last: Vec<u32>,
    /// Which such day of the month, counted from 1.
    nth: Vec<(u32, u32)>,
}

impl Named {
    fn is_every_day(&self) -> bool {
        *self == Self::default()
    }
}

/// What an expression says.
struct Shape {
    times: Times,
    named: Named,
    /// Whether days of the month and of the week must both hold.
    join: Join,
    /// None when all.
    months: Option<Set>,
    /// First and last of stretches without a gap; none when all.
    years: Option<Vec<(i32, i32)>>,
}

impl Cron {
    /// What it means: `at 02:00 on the 1st of the month`, without a full stop.
    pub fn sentence(&self, lang: Lang) -> String {
        let shape = Shape::of(self);
        match lang {
            Lang::En => en::sentence(&shape),
            Lang::Zh => zh::sentence(&shape),
        }
    }
}

impl Shape {
    fn of(cron: &Cron) -> Self {
        // Every third month is better said by the names of the months.
        let months = match set(cron.days.months, 1..13) {
            Set::Every(..) => Set::List(list(cron.days.months)),
            other @ (Set::All | Set::Run(..) | Set::List(_)) => other,
        };
        Self {
            times: Times::of(cron),
            named: named(cron),
            join: cron.days.join,
            months: (months != Set::All).then_some(months),
            years: years(cron),
        }
    }
}

impl Times {
    fn of(cron: &Cron) -> Self {
        let times = &cron.times;
        let all = |bits| -> Vec<u32> { list(bits) };
        let (seconds, minutes, hours) = (all(times.seconds), all(times.minutes), all(times.hours));
        let few = seconds.len() * minutes.len() * hours.len() <= ONE_BY_ONE;
        if few && times.hours != ALL_HOURS {
            let of_hour = |h: u32| {
                let seconds = &seconds;
                minutes.iter().flat_map(move |m| seconds.iter().map(move |s| (h, *m, *s)))
            };
            return Self::Few(hours.iter().flat_map(|h| of_hour(*h)).collect());
        }
        let (minutes, hours) = (set(times.minutes, 0..60), set(times.hours, 0..24));
        match times.seconds {
            1 => Self::Minutes { minutes, hours },
            bits => Self::Seconds { seconds: set(bits, 0..60), minutes, hours },
        }
    }
}

fn named(cron: &Cron) -> Named {
    let (month, week) = (&cron.days.of_month, &cron.days.of_week);
    let of_month = || {
        let days = set(month.days, 1..32);
        let others = month.before_last | month.near | month.near_before_last;
        Named {
            days: (days != Set::All && (month.days != 0 || others == 0)).then_some(days),
            before_last: list(month.before_last),
            near: list(month.near),
            near_before_last: list(month.near_before_last),
            ..Named::default()
        }
    };
    let of_week = || {
        let every = set(week.every, 0..7);
        let nth = (1u32..)
            .zip(week.nth)
            .flat_map(|(n, days)| list(days).into_iter().map(move |d| (n, d)));
        Named {
            week: (every != Set::All && week.every != 0).then_some(every),
            last: list(week.last),
            nth: nth.collect(),
            ..Named::default()
        }
    };
    match cron.days.join {
        Join::OfMonth => of_month(),
        Join::OfWeek => of_week(),
        Join::Both => Named { week: of_week().week, ..of_month() },
        // Either is enough, so that when one of them names every day, every day is named.
        Join::Either => {
            let (month, week) = (of_month(), of_week());
            match month.is_every_day() || week.is_every_day() {
                true => Named::default(),
                false => Named { week: week.week, ..month },
            }
        }
    }
}

fn years(cron: &Cron) -> Option<Vec<(i32, i32)>> {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    let mut from = YEAR_MIN;
    while let Some(year) = cron.years.next(from) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == year => *last = year,
            Some(_) | None => runs.push((year, year)),
        }
        from = year + 1;
    }
    (runs != [(YEAR_MIN, YEAR_MAX)]).then_some(runs)
}

fn list(bits: u64) -> Vec<u32> {
    let next = |at: u32| from_bit(bits, at);
    std::iter::successors(next(0), |at| next(at + 1)).collect()
}

/// How the numbers of a field are said; of days and months nothing goes around.
fn set(bits: u64, field: std::ops::Range<u32>) -> Set {
    let numbers = list(bits);
    let of = usize::try_from(field.end - field.start).unwrap_or_default();
    let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
        return Set::List(Vec::new());
    };
    if numbers.len() == of || (field.end == 60 && bits == ALL_SIXTY) {
        return Set::All;
    }
    let steps: Vec<u32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let even = steps.first().filter(|step| steps.iter().all(|s| s == *step)).copied();
    match even {
        Some(1) if numbers.len() > 2 => return Set::Run(first, last),
        Some(step) if step > 1 && numbers.len() > 2 && last + step >= field.end => {
            return Set::Every(first, step);
        }
        Some(_) | None => {}
    }
    // 22-2 of hours: one gap, and it goes on at the beginning.
    let gaps: Vec<usize> =
        steps.iter().enumerate().filter(|(_, step)| **step > 1).map(|(at, _)| at).collect();
    if let ([gap], 0, true) = (&gaps[..], first, last + 1 == field.end)
        && numbers.len() > 2
    {
        return Set::Run(numbers[gap + 1], numbers[*gap]);
    }
    Set::List(numbers)
}

#[cfg(test)]
mod tests;
