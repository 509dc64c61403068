//! Describes an expression as a sentence. First it classifies the named values (so that `0/15`,
//! `*/15` and `0,15,30,45` read alike), then a language module words them.

mod en;
mod zh;

use super::days::DayJoin;
use super::fields::{ALL_HOURS, from_bit};
use super::{Cron, YEAR_MAX, YEAR_MIN};
use crate::domain::text::lang::Lang;

/// Maximum number of times of a day that are listed individually.
const ONE_BY_ONE: usize = 6;
/// All minutes, or all seconds.
const ALL_SIXTY: u64 = (1 << 60) - 1;

/// A set of numbers, classified for display.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NumberSet {
    /// All values.
    All,
    /// From one number on, every n-th, to the end of the field.
    Every(u32, u32),
    /// From one to another without a gap; wraps around the end of the field when the first is
    /// greater.
    Run(u32, u32),
    /// Individual values.
    List(Vec<u32>),
}

/// The times of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamedCronTimes {
    /// Few: hour, minute, second.
    Few(Vec<(u32, u32, u32)>),
    /// Minutes of hours, at second 0.
    Minutes { minutes: NumberSet, hours: NumberSet },
    /// Seconds of minutes of hours.
    Seconds { seconds: NumberSet, minutes: NumberSet, hours: NumberSet },
}

/// The named days, by the ways in which an expression names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NamedCronDays {
    /// Days of the month; none when unrestricted.
    days: Option<NumberSet>,
    /// Days counted back from the last of the month.
    before_last: Vec<u32>,
    /// Weekday nearest to this day.
    near: Vec<u32>,
    /// Weekday nearest to so many days before the last.
    near_before_last: Vec<u32>,
    /// Days of the week, 0 is Sunday; none when unrestricted.
    week: Option<NumberSet>,
    /// The last such day of the month.
    last: Vec<u32>,
    /// Which such day of the month, counted from 1.
    nth: Vec<(u32, u32)>,
}

impl NamedCronDays {
    fn is_every_day(&self) -> bool {
        *self == Self::default()
    }
}

/// The classified parts of an expression.
struct CronShape {
    times: NamedCronTimes,
    named: NamedCronDays,
    /// Whether days of the month and of the week must both hold.
    join: DayJoin,
    /// None: all months.
    months: Option<NumberSet>,
    /// First and last of contiguous ranges; none: all years.
    years: Option<Vec<(i32, i32)>>,
}

impl Cron {
    /// The meaning as a phrase: `at 02:00 on the 1st of the month`, without a full stop.
    pub fn sentence(&self, lang: Lang) -> String {
        let shape = CronShape::from_cron(self);
        match lang {
            Lang::En => en::sentence(&shape),
            Lang::Zh => zh::sentence(&shape),
        }
    }
}

impl CronShape {
    fn from_cron(cron: &Cron) -> Self {
        // Every third month reads better as names of months.
        let months = match classify_set(cron.days.months, 1..13) {
            NumberSet::Every(..) => NumberSet::List(bit_numbers(cron.days.months)),
            other @ (NumberSet::All | NumberSet::Run(..) | NumberSet::List(_)) => other,
        };
        Self {
            times: NamedCronTimes::from_cron(cron),
            named: named(cron),
            join: cron.days.join,
            months: (months != NumberSet::All).then_some(months),
            years: years(cron),
        }
    }
}

impl NamedCronTimes {
    fn from_cron(cron: &Cron) -> Self {
        let times = &cron.times;
        let all = |bits| -> Vec<u32> { bit_numbers(bits) };
        let (seconds, minutes, hours) = (all(times.seconds), all(times.minutes), all(times.hours));
        let few = seconds.len() * minutes.len() * hours.len() <= ONE_BY_ONE;
        if few && times.hours != ALL_HOURS {
            let of_hour = |h: u32| {
                let seconds = &seconds;
                minutes.iter().flat_map(move |m| seconds.iter().map(move |s| (h, *m, *s)))
            };
            return Self::Few(hours.iter().flat_map(|h| of_hour(*h)).collect());
        }
        let (minutes, hours) =
            (classify_set(times.minutes, 0..60), classify_set(times.hours, 0..24));
        match times.seconds {
            1 => Self::Minutes { minutes, hours },
            bits => Self::Seconds { seconds: classify_set(bits, 0..60), minutes, hours },
        }
    }
}

fn named(cron: &Cron) -> NamedCronDays {
    let (month, week) = (&cron.days.of_month, &cron.days.of_week);
    let of_month = || {
        let days = classify_set(month.days, 1..32);
        let others = month.before_last | month.near | month.near_before_last;
        NamedCronDays {
            days: (days != NumberSet::All && (month.days != 0 || others == 0)).then_some(days),
            before_last: bit_numbers(month.before_last),
            near: bit_numbers(month.near),
            near_before_last: bit_numbers(month.near_before_last),
            ..NamedCronDays::default()
        }
    };
    let of_week = || {
        let every = classify_set(week.every, 0..7);
        let nth = (1u32..)
            .zip(week.nth)
            .flat_map(|(n, days)| bit_numbers(days).into_iter().map(move |d| (n, d)));
        NamedCronDays {
            week: (every != NumberSet::All && week.every != 0).then_some(every),
            last: bit_numbers(week.last),
            nth: nth.collect(),
            ..NamedCronDays::default()
        }
    };
    match cron.days.join {
        DayJoin::OfMonth => of_month(),
        DayJoin::OfWeek => of_week(),
        DayJoin::Both => NamedCronDays { week: of_week().week, ..of_month() },
        // Either suffices, so when one of them names every day, every day is named.
        DayJoin::Either => {
            let (month, week) = (of_month(), of_week());
            match month.is_every_day() || week.is_every_day() {
                true => NamedCronDays::default(),
                false => NamedCronDays { week: week.week, ..month },
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

fn bit_numbers(bits: u64) -> Vec<u32> {
    let next = |at: u32| from_bit(bits, at);
    std::iter::successors(next(0), |at| next(at + 1)).collect()
}

/// Classifies the numbers of a field; days and months never wrap around.
fn classify_set(bits: u64, field: std::ops::Range<u32>) -> NumberSet {
    let numbers = bit_numbers(bits);
    let of = usize::try_from(field.end - field.start).unwrap_or_default();
    let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
        return NumberSet::List(Vec::new());
    };
    if numbers.len() == of || (field.end == 60 && bits == ALL_SIXTY) {
        return NumberSet::All;
    }
    let steps: Vec<u32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let even = steps.first().filter(|step| steps.iter().all(|s| s == *step)).copied();
    match even {
        Some(1) if numbers.len() > 2 => return NumberSet::Run(first, last),
        Some(step) if step > 1 && numbers.len() > 2 && last + step >= field.end => {
            return NumberSet::Every(first, step);
        }
        Some(_) | None => {}
    }
    // 22-2 of hours: one gap, and the range continues at the beginning.
    let gaps: Vec<usize> =
        steps.iter().enumerate().filter(|(_, step)| **step > 1).map(|(at, _)| at).collect();
    if let ([gap], 0, true) = (&gaps[..], first, last + 1 == field.end)
        && numbers.len() > 2
    {
        return NumberSet::Run(numbers[gap + 1], numbers[*gap]);
    }
    NumberSet::List(numbers)
}

#[cfg(test)]
mod tests;
