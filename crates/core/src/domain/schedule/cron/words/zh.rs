//! Words a cron expression in Chinese.

use super::{CronShape, DayJoin, NamedCronDays, NamedCronTimes, NumberSet};

const WEEK: [&str; 7] = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"];

pub(super) fn sentence(shape: &CronShape) -> String {
    let years = shape.years.as_ref().map(|runs| {
        let run = |(from, to): &(i32, i32)| match from == to {
            true => format!("{from} 年"),
            false => format!("{from} 至 {to} 年"),
        };
        runs.iter().map(run).collect::<Vec<_>>().join("、")
    });
    let words = [years.unwrap_or_default(), describe_days(shape), times(&shape.times)];
    let said: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
    said.join(" ")
}

/// Lists the numbers of a field, each with its unit.
fn describe_set(set: &NumberSet, name: &dyn Fn(u32) -> String) -> String {
    match set {
        NumberSet::All => "所有".to_owned(),
        NumberSet::Every(from, step) => format!("从 {} 起每隔 {step}", name(*from)),
        NumberSet::Run(from, to) => {
            let (from, to) = (name(*from), name(*to));
            // A blank before a digit, as in 6 月至 8 月.
            let blank = if to.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
            format!("{from}至{blank}{to}")
        }
        NumberSet::List(numbers) => numbers.iter().map(|n| name(*n)).collect::<Vec<_>>().join("、"),
    }
}

fn times(times: &NamedCronTimes) -> String {
    match times {
        NamedCronTimes::Few(few) => {
            let time = |(h, m, s): &(u32, u32, u32)| match s {
                0 => format!("{h:02}:{m:02}"),
                s => format!("{h:02}:{m:02}:{s:02}"),
            };
            few.iter().map(time).collect::<Vec<_>>().join("、")
        }
        NamedCronTimes::Minutes { minutes, hours } => minutes_of(minutes, hours),
        NamedCronTimes::Seconds { seconds, minutes, hours } => {
            let often = match seconds {
                NumberSet::All => "每秒".to_owned(),
                NumberSet::Every(0, step) if 60 % step == 0 => format!("每 {step} 秒"),
                NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_) => {
                    format!("第 {} 秒", describe_set(seconds, &|n| n.to_string()))
                }
            };
            match (minutes, hours, seconds) {
                (NumberSet::All, NumberSet::All, NumberSet::All | NumberSet::Every(..)) => often,
                (
                    NumberSet::All | NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_),
                    _,
                    _,
                ) => {
                    format!("{}的{often}", minutes_of(minutes, hours))
                }
            }
        }
    }
}

fn minutes_of(minutes: &NumberSet, hours: &NumberSet) -> String {
    let span = match hours {
        NumberSet::All => String::new(),
        NumberSet::Run(from, to) => format!("{from} 点至 {to} 点"),
        NumberSet::Every(from, step) => format!("{from} 点起每 {step} 小时"),
        NumberSet::List(hours) => {
            let hours: Vec<String> = hours.iter().map(|h| format!("{h} 点")).collect();
            hours.join("、")
        }
    };
    let often = match minutes {
        NumberSet::All => "每分钟".to_owned(),
        NumberSet::Every(0, step) if 60 % step == 0 => format!("每 {step} 分钟"),
        NumberSet::Every(from, step) if 60 % step == 0 => format!("从第 {from} 分起每 {step} 分钟"),
        NumberSet::List(one) if one[..] == [0] => "整点".to_owned(),
        NumberSet::Every(..) | NumberSet::Run(..) | NumberSet::List(_) => {
            format!("第 {} 分", describe_set(minutes, &|n| n.to_string()))
        }
    };
    match (minutes, hours) {
        (NumberSet::List(_) | NumberSet::Run(..), NumberSet::All) => format!("每小时{often}"),
        (NumberSet::Every(_, step), NumberSet::All) if 60 % step != 0 => format!("每小时{often}"),
        (NumberSet::All | NumberSet::Every(..), NumberSet::All) => often,
        (NumberSet::List(_) | NumberSet::Run(..), NumberSet::Run(..)) => {
            format!("{span}每小时{often}")
        }
        (NumberSet::All | NumberSet::Every(..) | NumberSet::List(_) | NumberSet::Run(..), _) => {
            format!("{span}{often}")
        }
    }
}

fn describe_days(shape: &CronShape) -> String {
    let CronShape { named, months, join, times, .. } = shape;
    let months =
        months.as_ref().map(|set| format!("每年 {}", describe_set(set, &|n| format!("{n} 月"))));
    if named.is_every_day() {
        return match (months, times) {
            (Some(months), _) => format!("{months}每天"),
            (None, NamedCronTimes::Few(_)) => "每天".to_owned(),
            (None, NamedCronTimes::Minutes { .. } | NamedCronTimes::Seconds { .. }) => {
                String::new()
            }
        };
    }
    let of = months.clone().map_or_else(|| "每月".to_owned(), |m| format!("{m}的"));
    let of_month = of_month(named, &of);
    let of_week = of_week(named, &of, months.as_deref());
    match (of_month.is_empty(), of_week.is_empty(), join) {
        (true, _, _) => of_week,
        (false, true, _) => of_month,
        (false, false, DayJoin::Both) => {
            format!("{of_month}且为{}", of_week.trim_start_matches('每'))
        }
        (false, false, DayJoin::Either | DayJoin::OfMonth | DayJoin::OfWeek) => {
            format!("{of_month}以及{of_week}")
        }
    }
}

fn weekday(day: u32) -> String {
    WEEK[day as usize % 7].to_owned()
}

fn of_month(named: &NamedCronDays, of: &str) -> String {
    let mut words = Vec::new();
    if let Some(set) = &named.days {
        words.push(match set {
            NumberSet::Every(from, step) => format!(" {from} 日起每 {step} 天"),
            NumberSet::All | NumberSet::Run(..) | NumberSet::List(_) => {
                format!(" {}", describe_set(set, &|n| format!("{n} 日")))
            }
        });
    }
    words.extend(named.before_last.iter().map(|n| last_day(*n)));
    let nearest = |day: String| format!("最接近{day}的平日（周一至周五）");
    words.extend(named.near.iter().map(|day| nearest(format!(" {day} 日"))));
    words.extend(named.near_before_last.iter().map(|n| match n {
        0 => "最后一个平日（周一至周五）".to_owned(),
        n => nearest(last_day(*n)),
    }));
    if words.is_empty() { String::new() } else { format!("{of}{}", words.join("、")) }
}

fn last_day(before: u32) -> String {
    match before {
        0 => "最后一天".to_owned(),
        n => format!("倒数第 {} 天", n + 1),
    }
}

fn of_week(named: &NamedCronDays, of: &str, months: Option<&str>) -> String {
    let weekdays = named.week.as_ref().map(|set| {
        let days = match set {
            NumberSet::Run(..) => describe_set(set, &weekday),
            NumberSet::All | NumberSet::Every(..) | NumberSet::List(_) => {
                let mut days: Vec<u32> = match set {
                    NumberSet::Every(from, step) => (*from..7).step_by(*step as usize).collect(),
                    NumberSet::List(days) => days.clone(),
                    NumberSet::All | NumberSet::Run(..) => (0..7).collect(),
                };
                days.sort_by_key(|day| (day + 6) % 7);
                days.iter().map(|d| weekday(*d)).collect::<Vec<_>>().join("、")
            }
        };
        months.map_or_else(|| format!("每{days}"), |m| format!("{m}的{days}"))
    });
    let nth = named.nth.iter().map(|(n, day)| format!("{of}第 {n} 个{}", weekday(*day)));
    let last = named.last.iter().map(|day| format!("{of}最后一个{}", weekday(*day)));
    weekdays.into_iter().chain(nth).chain(last).collect::<Vec<_>>().join("、")
}
