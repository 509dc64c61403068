//! Why an occurrence has its time, or does not take place, in words.

use crate::domain::id::CalendarCode;
use crate::domain::text::lang::Lang;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, Weekday};
use schemars::JsonSchema;
use serde::Serialize;

/// A remark about an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "reason")]
#[schemars(rename = "FiringNote")]
pub enum OccurrenceReason {
    /// A calendar moved it to another day.
    Shifted {
        /// The day that the schedule names.
        #[schemars(with = "String")]
        from: NaiveDate,
        /// Name of the holiday, if that day is one; a weekend day has none.
        holiday: Option<String>,
    },
    /// Other days of the schedule are moved here as well, and fire with it.
    AlsoFor {
        /// The other days.
        #[schemars(with = "Vec<String>")]
        days: Vec<NaiveDate>,
    },
    /// The rule that names the day, with the period: `last working day of 2026Q3`.
    Rule {
        /// Text of the rule.
        text: String,
    },
    /// The calendar has no data for that year, so weekdays were assumed; the day may change.
    Assumed {
        /// The calendar.
        #[schemars(with = "String")]
        calendar: CalendarCode,
        /// The year.
        year: i32,
    },
    /// The local time does not exist on that day; this is the first moment after the gap.
    Gap {
        /// The local time.
        #[schemars(with = "String")]
        wall: NaiveDateTime,
    },
    /// The local time occurs twice on that day.
    Overlap {
        /// Which of the two this is.
        pass: ClockPass,
    },
}

/// Which of two moments with the same local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ClockPass")]
pub enum ClockPass {
    /// Before the clocks are put back.
    First,
    /// After.
    Second,
}

/// Why an occurrence does not take place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "reason")]
#[schemars(rename = "SkipReason")]
pub enum Swallowed {
    /// A day off, with `shift: skip`.
    DayOff {
        /// The day.
        #[schemars(with = "String")]
        day: NaiveDate,
        /// Holiday's name, if it is one.
        holiday: Option<String>,
    },
    /// A blackout.
    Blackout {
        /// The blackout, as written.
        text: String,
        /// Its reason, in the user's words.
        because: Option<String>,
    },
    /// Before the start or after the end of the schedule's window.
    Window,
}

impl OccurrenceReason {
    /// The remark in the user's language, without a full stop.
    pub fn words(&self, lang: Lang) -> String {
        let zh = lang == Lang::Zh;
        match self {
            Self::Shifted { from, holiday } => {
                let off = off_words(*from, holiday.as_deref(), lang);
                if zh {
                    format!("由 {from}（{off}）顺移")
                } else {
                    format!("moved from {from}, {off}")
                }
            }
            Self::AlsoFor { days } => {
                let days: Vec<String> = days.iter().map(NaiveDate::to_string).collect();
                let days = days.join(lang.select(", ", "、"));
                if zh {
                    format!("同时代表 {days}")
                } else {
                    format!("stands for {days} as well")
                }
            }
            Self::Rule { text } => text.clone(),
            Self::Assumed { calendar, year } if zh => {
                format!("日历 {calendar} 没有 {year} 年的数据，按星期推算")
            }
            Self::Assumed { calendar, year } => {
                format!("assumed: calendar {calendar} has no days for {year}")
            }
            Self::Gap { wall } if zh => format!("{wall} 因拨快时钟不存在，取其后第一刻"),
            Self::Gap { wall } => {
                format!("{wall} does not exist that day, the first moment after the gap")
            }
            Self::Overlap { pass: ClockPass::First } => lang
                .select("first of two moments of that time", "该时刻出现两次，取第一次")
                .to_owned(),
            Self::Overlap { pass: ClockPass::Second } => lang
                .select("second of two moments of that time", "该时刻出现两次，此为第二次")
                .to_owned(),
        }
    }
}

impl Swallowed {
    /// The reason in the user's language, without a full stop.
    pub fn words(&self, lang: Lang) -> String {
        match self {
            Self::DayOff { day, holiday } => {
                let off = off_words(*day, holiday.as_deref(), lang);
                match lang {
                    Lang::En => format!("day off: {day}, {off}"),
                    Lang::Zh => format!("非工作日：{day}，{off}"),
                }
            }
            Self::Blackout { text, because } => {
                let because = because.as_ref().map_or_else(String::new, |b| format!(" ({b})"));
                format!("{} {text}{because}", lang.select("blackout", "禁止窗口"))
            }
            Self::Window => lang
                .select("outside start and end of the schedule", "不在生效起止时间内")
                .to_owned(),
        }
    }
}

/// The holiday, or the weekday.
fn off_words(day: NaiveDate, holiday: Option<&str>, lang: Lang) -> String {
    if let Some(holiday) = holiday {
        return holiday.to_owned();
    }
    let (en, zh) = match day.weekday() {
        Weekday::Mon => ("a Monday off", "周一休"),
        Weekday::Tue => ("a Tuesday off", "周二休"),
        Weekday::Wed => ("a Wednesday off", "周三休"),
        Weekday::Thu => ("a Thursday off", "周四休"),
        Weekday::Fri => ("a Friday off", "周五休"),
        Weekday::Sat => ("a Saturday", "周六"),
        Weekday::Sun => ("a Sunday", "周日"),
    };
    lang.select(en, zh).to_owned()
}
