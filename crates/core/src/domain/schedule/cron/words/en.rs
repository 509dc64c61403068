//! Words a cron expression in English.

use super::{CronShape, DayJoin, NamedCronDays, NamedCronTimes, NumberSet};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEK: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn sentence(shape: &CronShape) -> String {
    let times = times(&shape.times);
    let days = describe_days(shape);
    let years = shape.years.as_ref().map(|runs| {
        let run = |(from, to): &(i32, i32)| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        };
        format!(" in {}", join_with_and(&runs.iter().map(run).collect::<Vec<_>>()))
    });
    let between = match (&shape.times, days.is_empty()) {
        (_, true) => "",
        (NamedCronTimes::Few(_), false) => " ",
        (NamedCronTimes::Minutes { .. } | NamedCronTimes::Seconds { .. }, false) => ", ",
    };
    format!("{times}{between}{days}{}", years.unwrap_or_default())
}

/// `a`, `a and b`, `a, b and c`.
fn join_with_and(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `1st`.
fn ordinal(n: u32) -> String {
    let end = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

/// Lists the numbers of a field by their names.
fn describe_set(set: &NumberSet, name: &dyn Fn(u32) -> String) -> String {
    match set {
        NumberSet::All => "all".to_owned(),
        NumberSet::Every(from, step) => format!("every {} from {} on", ordinal(*step), name(*from)),
        NumberSet::Run(from, to) => format!("{} to {}", name(*from), name(*to)),
        NumberSet::List(numbers) => {
            join_with_and(&numbers.iter().map(|n| name(*n)).collect::<Vec<_>>())
        }
    }
}

fn times(times: &NamedCronTimes) -> String {
    match times {
        NamedCronTimes::Few(few) => {
            let time = |(h, m, s): &(u32, u32, u32)| match s {
                0 => format!("{h:02}:{m:02}"),
                s => format!("{h:02}:{m:02}:{s:02}"),
            };
            format!("at {}", join_with_and(&few.iter().map(time).collect::<Vec<_>>()))
        }
        NamedCronTimes::Minutes { minutes, hours } => minutes_of(minutes, hours),
        NamedCronTimes::Seconds { seconds, minutes, hours } => {
            let often = match seconds {
                NumberSet::All => "every second".to_owned(),
                NumberSet::Every(0, step) if 60 % step == 0 => format!("every {step} seconds"),
                NumberSet::List(one) if one.len() == 1 => format!("at second {}", one[0]),
                NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_) => {
                    format!("at seconds {}", describe_set(seconds, &|n| n.to_string()))
                }
            };
            match (minutes, hours, seconds) {
                (NumberSet::All, NumberSet::All, NumberSet::All | NumberSet::Every(..)) => often,
                (NumberSet::All, NumberSet::All, NumberSet::Run(..) | NumberSet::List(_)) => {
                    format!("{often} of every minute")
                }
                (
                    NumberSet::All | NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_),
                    _,
                    _,
                ) => {
                    format!("{often}, {}", minutes_of(minutes, hours))
                }
            }
        }
    }
}

fn minutes_of(minutes: &NumberSet, hours: &NumberSet) -> String {
    let (first, last) = minute_bounds(minutes);
    // From the first to the last time within consecutive hours.
    let span = match hours {
        NumberSet::All => String::new(),
        NumberSet::Run(from, to) => format!(" from {from:02}:{first:02} to {to:02}:{last:02}"),
        NumberSet::Every(..) | NumberSet::List(_) => {
            format!(" of the hours {}", describe_set(hours, &|h| format!("{h:02}")))
        }
    };
    match (minutes, hours) {
        (NumberSet::All, _) => format!("every minute{span}"),
        (NumberSet::Every(0, step), _) if 60 % step == 0 => format!("every {step} minutes{span}"),
        (NumberSet::Every(from, step), _) if 60 % step == 0 => {
            format!("every {step} minutes from minute {from} on{span}")
        }
        (NumberSet::List(one), NumberSet::All) if one[..] == [0] => {
            "every hour, on the hour".to_owned()
        }
        (NumberSet::List(one), NumberSet::All) if one.len() == 1 => {
            format!("every hour at minute {}", one[0])
        }
        (NumberSet::List(one), NumberSet::Run(..)) if one.len() == 1 => format!("every hour{span}"),
        (NumberSet::List(one), NumberSet::Every(from, step)) if one.len() == 1 => {
            format!("every {step} hours from {from:02}:{:02} on", one[0])
        }
        (NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_), _) => {
            let of = if span.is_empty() { " of every hour" } else { &span };
            format!("at minutes {}{of}", describe_set(minutes, &|n| n.to_string()))
        }
    }
}

/// The first and the last minute of an hour.
fn minute_bounds(minutes: &NumberSet) -> (u32, u32) {
    match minutes {
        NumberSet::All => (0, 59),
        NumberSet::Every(from, step) => (*from, from + (59 - from) / step * step),
        NumberSet::Run(from, to) => (*from, *to),
        NumberSet::List(list) => {
            (list.first().copied().unwrap_or_default(), list.last().copied().unwrap_or_default())
        }
    }
}

/// The days; empty for every day if the times alone are clear.
fn describe_days(shape: &CronShape) -> String {
    let CronShape { named, months, join, times, .. } = shape;
    let month = |n: u32| MONTHS[(n as usize + 11) % 12].to_owned();
    let named_months = months.as_ref().map(|set| describe_set(set, &month));
    if named.is_every_day() {
        return match (named_months, times) {
            (Some(months), _) => format!("every day in {months}"),
            (None, NamedCronTimes::Few(_)) => "every day".to_owned(),
            (None, NamedCronTimes::Minutes { .. } | NamedCronTimes::Seconds { .. }) => {
                String::new()
            }
        };
    }
    let of = format!(" of {}", named_months.as_deref().unwrap_or("the month"));
    let inside = named_months.as_ref().map(|m| format!(" in {m}")).unwrap_or_default();
    let of_month = of_month(named, &of);
    let weekdays = named.week.as_ref().map(|set| match set {
        NumberSet::Run(from, to) => format!("from {} to {}", weekday(*from), weekday(*to)),
        NumberSet::All | NumberSet::Every(..) | NumberSet::List(_) => {
            format!(
                "on {}",
                join_with_and(&week_list(set).iter().map(|d| weekday(*d)).collect::<Vec<_>>())
            )
        }
    });
    match (of_month.is_empty(), weekdays, join) {
        (true, Some(weekdays), _) => {
            let more = of_week(named, &of);
            if more.is_empty() {
                format!("{weekdays}{inside}")
            } else {
                format!("{weekdays}{inside} and on {more}")
            }
        }
        (true, None, _) => format!("on {}", of_week(named, &of)),
        (false, None, _) => format!("on {of_month}"),
        (false, Some(weekdays), DayJoin::Both) => {
            format!("on {of_month} where it is {}", weekdays.replacen("on ", "", 1))
        }
        (false, Some(weekdays), DayJoin::Either | DayJoin::OfMonth | DayJoin::OfWeek) => {
            format!("on {of_month} and {weekdays}{inside}")
        }
    }
}

fn weekday(day: u32) -> String {
    WEEK[day as usize % 7].to_owned()
}

/// Days of the week, Monday first.
fn week_list(set: &NumberSet) -> Vec<u32> {
    let mut days: Vec<u32> = match set {
        NumberSet::All => (0..7).collect(),
        NumberSet::Every(from, step) => (*from..7).step_by(*step as usize).collect(),
        NumberSet::Run(from, to) => (*from..=*to).collect(),
        NumberSet::List(days) => days.clone(),
    };
    days.sort_by_key(|day| (day + 6) % 7);
    days
}

fn of_month(named: &NamedCronDays, of: &str) -> String {
    let mut words = Vec::new();
    if let Some(set) = &named.days {
        words.push(match set {
            NumberSet::Every(from, step) => {
                format!("every {} day from the {} on", ordinal(*step), ordinal(*from))
            }
            NumberSet::All | NumberSet::Run(..) | NumberSet::List(_) => {
                format!("the {}", describe_set(set, &ordinal))
            }
        });
    }
    words.extend(named.before_last.iter().map(|n| last_day(*n)));
    let nearest = |day: String| format!("the weekday (Monday to Friday) nearest to {day}");
    words.extend(named.near.iter().map(|day| nearest(format!("the {}", ordinal(*day)))));
    words.extend(named.near_before_last.iter().map(|n| match n {
        0 => "the last weekday (Monday to Friday)".to_owned(),
        n => nearest(last_day(*n)),
    }));
    if words.is_empty() { String::new() } else { format!("{}{of}", join_with_and(&words)) }
}

fn last_day(before: u32) -> String {
    match before {
        0 => "the last day".to_owned(),
        1 => "the day before the last".to_owned(),
        n => format!("the day {n} days before the last"),
    }
}

fn of_week(named: &NamedCronDays, of: &str) -> String {
    let nth = named.nth.iter().map(|(n, day)| format!("the {} {}", ordinal(*n), weekday(*day)));
    let last = named.last.iter().map(|day| format!("the last {}", weekday(*day)));
    let words: Vec<String> = nth.chain(last).collect();
    if words.is_empty() { String::new() } else { format!("{}{of}", join_with_and(&words)) }
}
